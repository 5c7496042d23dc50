/* table.c - see table.h. */
#include "conformance/cli/plan/table.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

table *table_new(table_list *list, const char *name, const char *format, ...)
{
    table *t = &list->of[list->count++];
    va_list arguments;
    va_start(arguments, format);
    t->name = name;
    vsnprintf(t->title, sizeof t->title, format, arguments);
    va_end(arguments);
    return t;
}

void table_column_add(table *t, const char *name, const char *format, bool curve)
{
    t->column[t->columns++] = (table_column){name, format, curve};
}

double *table_row(table *t)
{
    double *row = t->cell[t->rows++];
    for (int32_t k = 0; k < TABLE_COLUMNS; k++) row[k] = NAN;
    return row;
}

void table_fact_add(table *t, const char *name, const char *format, double value)
{
    t->fact[t->facts++] = (table_fact){name, format, value};
}

/* ---- Text. ----------------------------------------------------------------------------- */

static void print_name(const char *name, int width)
{
    printf("%*s", width > (int)strlen(name) ? width - (int)strlen(name) : 0, "");
    for (; *name; name++) putchar(*name == '_' ? ' ' : *name);
}

static int width_of(const table_column *c)
{
    const int n = (int)strlen(c->name);
    return 2 + (n < 8 ? 8 : n);
}

/* Formats take one double. */
static void print_value(const char *format, double value, int width)
{
    char text[40] = "-";
    if (!isnan(value)) snprintf(text, sizeof text, format, value);
    printf("%*s", width, text);
}

static void print_one(const table *t)
{
    puts(t->title);
    for (int32_t k = 0; k < t->columns; k++) print_name(t->column[k].name, width_of(&t->column[k]));
    puts("");
    for (int32_t i = 0; i < t->rows; i++, puts(""))
        for (int32_t k = 0; k < t->columns; k++)
            print_value(t->column[k].format, t->cell[i][k], width_of(&t->column[k]));
    for (int32_t i = 0; i < t->facts; i++, puts("")) {
        fputs("  ", stdout);
        print_name(t->fact[i].name, 0);
        fputs(": ", stdout);
        print_value(t->fact[i].format, t->fact[i].value, 0);
    }
}

void tables_print(const table_list *list)
{
    for (int32_t i = 0; i < list->count; i++) {
        if (i) puts("");
        print_one(&list->of[i]);
    }
}

/* ---- JSON. ----------------------------------------------------------------------------- */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *one_json(const table *t)
{
    json_t *object = json_object(), *rows = json_array();
    for (int32_t i = 0; i < t->rows; i++) {
        json_t *row = json_object();
        for (int32_t k = 0; k < t->columns; k++)
            json_object_set_new(row, t->column[k].name, number(t->cell[i][k]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "rows", rows);
    for (int32_t i = 0; i < t->facts; i++)
        json_object_set_new(object, t->fact[i].name, number(t->fact[i].value));
    return object;
}

bool tables_json(const table_list *list, const char *file)
{
    json_t *all = json_object();
    errno = ENOMEM;
    for (int32_t i = 0; i < list->count; i++) json_object_set_new(all, list->of[i].name, one_json(&list->of[i]));
    const bool written = all && json_dump_file(all, file, JSON_INDENT(1)) == 0;
    json_decref(all);
    return written;
}
