/* traces_differ.c - the first difference of two traces, member by member; see traces.h. */
#include <stdio.h>
#include <string.h>

#include "vectors/read/traces.h"

/* Where a text goes on. */
typedef struct {
    char *text;
    size_t size;
} line;

static void print_list(char *text, size_t size, const oracle_list *list)
{
    size_t n = (size_t)snprintf(text, size, "[");
    for (int32_t i = 0; i < list->n && n + 16 < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%d", i ? "," : "", (int)list->t[i]);
    snprintf(text + n, size - n, "]");
}

static bool number_differs(const char *what, int32_t due, int32_t got, const line *why)
{
    if (due == got) return false;
    snprintf(why->text, why->size, "%s: expected %d, got %d", what, (int)due, (int)got);
    return true;
}

static bool list_differs(const char *what, const oracle_list *due, const oracle_list *got,
                         const line *why)
{
    char want[100], has[100];
    if (oracle_alike(due, got)) return false;
    print_list(want, sizeof want, due);
    print_list(has, sizeof has, got);
    snprintf(why->text, why->size, "%s: expected %s, got %s", what, want, has);
    return true;
}

static bool lists_differ(const char *what, const oracle_lists *due, const oracle_lists *got,
                         const line *why)
{
    char want[100] = "none", has[100] = "none";
    int32_t i = 0;
    if (oracle_lists_alike(due, got)) return false;
    while (i < due->n && i < got->n && oracle_alike(&due->l[i], &got->l[i])) i++;
    if (i < due->n) print_list(want, sizeof want, &due->l[i]);
    if (i < got->n) print_list(has, sizeof has, &got->l[i]);
    snprintf(why->text, why->size, "%s[%d]: expected %s, got %s (%d expected, %d there)", what,
             (int)i, want, has, (int)due->n, (int)got->n);
    return true;
}

/* The first row of `rows` whose path no row of `among` has; -1: there is none. */
static int32_t row_alone(const oracle_lists *rows, const oracle_lists *among)
{
    for (int32_t i = 0; i < rows->n; i++) {
        int32_t k = 0;
        while (k < among->n && !oracle_alike(&among->l[k], &rows->l[i])) k++;
        if (k == among->n) return i;
    }
    return -1;
}

/* TRC-04: as sets of paths. */
static bool rows_differ(const oracle_lists *due, const oracle_lists *got, const line *why)
{
    char path[100];
    if (oracle_lists_alike(due, got)) return false;
    const int32_t missing = row_alone(due, got), surplus = row_alone(got, due);
    if (missing < 0 && surplus < 0) return false;
    print_list(path, sizeof path, missing < 0 ? &got->l[surplus] : &due->l[missing]);
    if (missing < 0)
        snprintf(why->text, why->size, "rows[%d]: got %s, a path that no row should have",
                 (int)surplus, path);
    else
        snprintf(why->text, why->size, "rows[%d]: expected %s, and no row has that path",
                 (int)missing, path);
    return true;
}

static bool pools_differ(const oracle_pool *due, const oracle_pool *got, const line *why)
{
    char what[40];
    int32_t i = 0;
    while (i < due->keys && i < got->keys && due->of[i].key == got->of[i].key) {
        snprintf(what, sizeof what, "pool, values of %d", (int)due->of[i].key);
        if (lists_differ(what, &due->of[i].values, &got->of[i].values, why)) return true;
        i++;
    }
    if (i == due->keys && i == got->keys) return false;
    snprintf(why->text, why->size, "pool, key %d: expected %d, got %d (-1: no more)", (int)i,
             i < due->keys ? (int)due->of[i].key : -1,
             i < got->keys ? (int)got->of[i].key : -1);
    return true;
}

static bool steps_differ(const oracle_step *due, const oracle_step *got, const line *why)
{
    return list_differs("drafts", &due->drafts, &got->drafts, why) ||
           lists_differ("candidates", &due->candidates, &got->candidates, why) ||
           rows_differ(&due->rows, &got->rows, why) ||
           number_differs("accepted", due->accepted, got->accepted, why) ||
           list_differs("run", &due->run, &got->run, why) ||
           list_differs("emitted", &due->emitted, &got->emitted, why) ||
           lists_differ("window", &due->window, &got->window, why) ||
           pools_differ(&due->pool, &got->pool, why);
}

static bool decodings_differ(const oracle_trace *due, const oracle_trace *got, const line *why)
{
    if (lists_differ("before the first step: window", &due->window0, &got->window0, why))
        return true;
    if (pools_differ(&due->pool0, &got->pool0, why)) return true;
    for (int32_t i = 0; i < due->steps && i < got->steps; i++) {
        const int n = snprintf(why->text, why->size, "step %d: ", (int)i);
        const line rest = {why->text + n, why->size - (size_t)n};
        if (steps_differ(&due->step[i], &got->step[i], &rest)) return true;
    }
    return number_differs("steps", due->steps, got->steps, why) ||
           list_differs("tokens", &due->tokens, &got->tokens, why);
}

/* TRC-03. */
static bool refusals_differ(const vector_answer *due, const vector_answer *got, const line *why)
{
    const char *what = due->error ? due->error : "nothing";
    if (due->error && got->error && !strcmp(got->error, due->error)) return false;
    snprintf(why->text, why->size, "error: expected a refusal for %s, got %s%.120s", what,
             got->error ? "one for " : "none", got->error ? got->error : "");
    return true;
}

bool traces_differ(const vector_answer *due, const vector_answer *observed, char *why,
                   size_t why_size)
{
    const line text = {why, why_size};
    const bool differ = due->error || observed->error
                            ? refusals_differ(due, observed, &text)
                            : decodings_differ(due->trace, observed->trace, &text);
    if (!differ) *why = 0;
    return differ;
}
