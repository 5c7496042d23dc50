/* table.h - a table of figures that is told three ways: as text, as JSON, as curves in an SVG file. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_TABLE_H
#define ASSAY_CONFORMANCE_CLI_PLAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum { TABLE_COLUMNS = 8, TABLE_ROWS = 260, TABLE_FACTS = 16, TABLES = 16 };

/* Names are members of the JSON; the text shows their '_' as blanks. */
typedef struct {
    const char *name, *format; /* "walltime", "%.3f" */
    bool curve;                /* drawn over the first column */
} table_column;

typedef struct {
    const char *name, *format;
    double value;
} table_fact;

typedef struct {
    const char *name; /* "chain" */
    char title[200];
    bool logarithmic; /* the first column, in the drawing */
    table_column column[TABLE_COLUMNS];
    int32_t columns, rows;
    double cell[TABLE_ROWS][TABLE_COLUMNS]; /* NaN: none */
    table_fact fact[TABLE_FACTS];           /* below the table */
    int32_t facts;
} table;

typedef struct {
    table of[TABLES]; /* [count] */
    int32_t count;
} table_list;

/* A new, empty table at the end of the list; at most TABLES are asked for. */
table *table_new(table_list *list, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void table_column_add(table *t, const char *name, const char *format, bool curve);
/* The next row, one value a column. Rows beyond TABLE_ROWS are the caller's fault. */
double *table_row(table *t);
void table_fact_add(table *t, const char *name, const char *format, double value);

void tables_print(const table_list *list);
/* {NAME: {"rows": [{COLUMN: value, ...}, ...], FACT: value, ...}, ...}; false, with errno: not written. */
bool tables_json(const table_list *list, const char *file);
/* Axes for each table that has curves; false, with errno: not written. */
bool tables_draw(const table_list *list, const char *file);

#endif
