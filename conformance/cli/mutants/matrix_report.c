/* matrix_report.c - the kill matrix as text and as JSON (matrix.h). */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "conformance/cli/mutants/matrix.h"

/* ---- Text ---------------------------------------------------------------------------- */

static const char *const kind_names[] = {"fault", "liar", "look-alike"};

/* Checks are columns of three characters, named by letters and digits above the table. */
static char letter(int32_t i)
{
    static const char names[CHECKS_MOST + 1] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return names[i];
}

void matrix_print_head(FILE *out, const check *const *checks)
{
    fprintf(out,
            "Cases that kill, of the cases claimed. .: none, blank: not claimed, **: 100 or "
            "more.\n");
    for (int32_t i = 0; checks[i]; i++)
        fprintf(out, "  %c %-18s%s", letter(i), checks[i]->name,
                i % 4 == 3 || !checks[i + 1] ? "\n" : "");
    fprintf(out, "\n%-28s", "");
    for (int32_t i = 0; checks[i]; i++) fprintf(out, "  %c", letter(i));
    fprintf(out, "  named check: killed/cases @ least n\n");
}

static void print_cell(FILE *out, const matrix_cell *c)
{
    if (c->cases == 0)
        fprintf(out, "   ");
    else if (c->killed == 0)
        fprintf(out, "  .");
    else if (c->killed > 99)
        fprintf(out, " **");
    else
        fprintf(out, " %2d", c->killed);
}

static int32_t named_check(const check *const *checks, const mutant *m)
{
    for (int32_t i = 0; checks[i]; i++)
        if (strcmp(checks[i]->name, m->check) == 0) return i;
    return -1;
}

void matrix_print_row(FILE *out, const check *const *checks, const matrix_row *row)
{
    const int32_t at = named_check(checks, row->mutant);
    fprintf(out, "%-28s", row->mutant->name);
    for (int32_t i = 0; checks[i]; i++) print_cell(out, &row->cell[i]);
    if (row->mutant->kind == MUTANT_FAULT && at >= 0)
        fprintf(out, "  %c %d/%d @ %lld", letter(at), row->cell[at].killed, row->cell[at].cases,
                (long long)row->cell[at].n);
    else if (row->mutant->kind == MUTANT_LIAR)
        fprintf(out, "  %s", row->mutant->expected);
    else
        fprintf(out, "  passes");
    fprintf(out, row->judged_rightly ? "\n" : "  WRONG: %s\n", row->why);
    fflush(out);
}

void matrix_print_stale(FILE *out, const matrix_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].stale)
            fprintf(out,
                    "stale: %s: %s; its named check %s kills it; --relock mends the line\n",
                    rows[i].mutant->name, rows[i].why, rows[i].mutant->check);
}

static void print_tv(FILE *out, double tv)
{
    if (tv < 0)
        fprintf(out, " %12s", "-");
    else if (tv == 0)
        fprintf(out, " %12s", "0");
    else
        fprintf(out, " %12.2g", tv);
}

void matrix_print_laws(FILE *out, const matrix_row *rows, size_t n)
{
    fprintf(out,
            "\nExact total variation of the first gamma+2 tokens from the target, by "
            "enumeration over\nsymbolic uniforms. 0: this panel cannot show the fault to any "
            "sampler. -: not enumerable.\n%-28s",
            "");
    for (int p = 0; p < EXACT_PANELS; p++) fprintf(out, " %12s", exact_panel_name(p));
    fprintf(out, "\n");
    for (size_t i = 0; i < n; i++) {
        if (rows[i].mutant->kind == MUTANT_LIAR) continue;
        fprintf(out, "%-28s", rows[i].mutant->name);
        for (int p = 0; p < EXACT_PANELS; p++) print_tv(out, rows[i].tv[p]);
        fprintf(out, "\n");
    }
}

/* ---- JSON ---------------------------------------------------------------------------- */

static json_t *cells_of(const check *const *checks, const matrix_row *row)
{
    json_t *cells = json_object();
    for (int32_t i = 0; checks[i]; i++) {
        const matrix_cell *c = &row->cell[i];
        if (c->cases == 0) continue;
        json_object_set_new(cells, checks[i]->name,
                            json_pack("{s:i, s:i, s:I}", "cases", c->cases, "killed", c->killed,
                                      "n", (json_int_t)c->n));
    }
    return cells;
}

static json_t *row_of(const check *const *checks, const matrix_row *row)
{
    const mutant *m = row->mutant;
    json_t *laws = json_object();
    for (int p = 0; p < EXACT_PANELS; p++)
        if (row->tv[p] >= 0)
            json_object_set_new(laws, exact_panel_name(p), json_real(row->tv[p]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:f, s:o, s:o}", "name", m->name,
                     "kind", kind_names[m->kind], "clause", m->clause, "check", m->check,
                     "provenance", m->provenance, "text", m->text, "judged_rightly",
                     row->judged_rightly, "why", row->why, "seconds", row->seconds, "checks",
                     cells_of(checks, row), "exact_tv", laws);
}

bool matrix_json(const char *file, const check *const *checks, const matrix_row *rows, size_t n,
                 bool sound)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, row_of(checks, &rows[i]));
    json_t *all = json_pack("{s:b, s:o}", "sound", sound, "mutants", list);
    const int failed = all ? json_dump_file(all, file, JSON_INDENT(1)) : -1;
    json_decref(all);
    return failed == 0;
}
