/* See methods.h. */
#include "conformance/cli/arguments/methods.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/switches.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"

bool method_known(const char *method)
{
    return strcmp(method, "jacobi") == 0 || strcmp(method, "lookahead") == 0 ||
           strcmp(method, "lookup") == 0;
}

static bool say(char *why, size_t size, const char *what, const char *value, const char *there)
{
    snprintf(why, size, "%s %s is unknown; there are %s", what, value, there);
    return false;
}

static const switch_list of_lookahead = {as_lookahead_switches, 8, true},
                         of_lookup = {as_lookup_switches, 9, false};

/* ---- Drafters. ------------------------------------------------------------------------- */

static int32_t number(uint64_t given, int32_t otherwise)
{
    return given ? (int32_t)given : otherwise;
}

static bool lookahead(const method_options *o, const method_guesses *given, int32_t V,
                      as_drafter **d, as_rule *verify, char *why, size_t why_size)
{
    const char *name = o->preset ? o->preset : "paper";
    const as_lookahead *preset = as_lookahead_preset(name);
    as_error e = {.text = ""};
    if (!preset)
        return say(why, why_size, "--preset", name, "paper, lade, llamacpp and trtllm");
    as_lookahead x = *preset;
    x.W = number(o->window, 5);
    x.N = number(o->ngram, 4);
    x.G = o->pool == UINT64_MAX ? x.W : (int32_t)o->pool;
    if (!switches_set(&x, &of_lookahead, o->switches, given != NULL, why, why_size)) return false;
    if (given) x.init = AS_FILL_GIVEN, x.given = given->token, x.givens = given->n;
    *verify = x.rule;
    if (as_draft_lookahead(&x, V, d, &e) == AS_OK) return true;
    snprintf(why, why_size, "%s", e.text);
    return false;
}

static bool jacobi(const method_options *o, const method_guesses *given, int32_t V,
                   as_drafter **d, char *why, size_t why_size)
{
    static const char *const name[] = {"pad", "last", "prompt", "vocabulary"};
    static const as_jacobi_init init[] = {AS_GUESS_PAD, AS_GUESS_LAST, AS_GUESS_PROMPT,
                                          AS_GUESS_VOCABULARY};
    const char *asked = o->init ? o->init : "last";
    as_error e = {.text = ""};
    int i = 0;
    while (i < 4 && strcmp(name[i], asked) != 0) i++;
    if (i == 4) return say(why, why_size, "--init", asked, "pad, last, prompt and vocabulary");
    const as_jacobi x = {number(o->block, 8), given ? AS_GUESS_GIVEN : init[i], 0,
                         given ? given->token : NULL, given ? given->n : 0,
                         o->stop && strcmp(o->stop, "block") == 0};
    if (as_draft_jacobi(&x, V, d, &e) == AS_OK) return true;
    snprintf(why, why_size, "%s", e.text);
    return false;
}

static bool lookup(const method_options *o, as_drafter **d, char *why, size_t why_size)
{
    const char *name = o->preset ? o->preset : "hf";
    const as_lookup *preset = as_lookup_preset(name);
    as_error e = {.text = ""};
    if (!preset) return say(why, why_size, "--preset", name, "original and hf");
    as_lookup x = *preset;
    x.longest = number(o->ngram, x.longest);
    x.drafts = number(o->gamma, x.drafts);
    if (!switches_set(&x, &of_lookup, o->switches, false, why, why_size)) return false;
    if (as_draft_lookup(&x, d, &e) == AS_OK) return true;
    snprintf(why, why_size, "%s", e.text);
    return false;
}

bool method_drafter(const char *method, const method_options *o, const method_guesses *given,
                    const char *rule, int32_t V, as_drafter **d, as_rule *verify, char *why,
                    size_t why_size)
{
    *verify = strcmp(method, "jacobi") == 0 ? AS_RULE_GREEDY : AS_RULE_MATCH;
    if (!(strcmp(method, "lookahead") == 0 ? lookahead(o, given, V, d, verify, why, why_size)
          : strcmp(method, "jacobi") == 0  ? jacobi(o, given, V, d, why, why_size)
                                           : lookup(o, d, why, why_size)))
        return false;
    return !rule || as_rule_named(rule, verify);
}

/* ---- The picture of a step. ------------------------------------------------------------ */

static bool accepted(const as_step *s, int32_t row)
{
    for (int32_t i = 1; i <= s->accepted; i++)
        if (s->path[i] == row) return true;
    return false;
}

/* A row that hangs under accepted rows, but was not accepted itself. */
static bool refused(const as_step *s, int32_t row)
{
    const int32_t parent = s->tree->row[row].parent;
    return !accepted(s, row) && (parent == 0 || accepted(s, parent));
}

static void show_drafts(const as_step *s, method_show_token *show, const void *data)
{
    for (int32_t r = s->plan->drafts; r < s->tree->rows; r++) {
        if (s->tree->row[r].parent == 0) fputs(r == s->plan->drafts ? "" : " |", stderr);
        show(data, s->tree->row[r].token);
        fputs(accepted(s, r) ? "+" : refused(s, r) ? "-" : "", stderr);
    }
    if (s->plan->drafts == s->tree->rows) fputs(" none", stderr);
}

static void show_window(const as_drafter *d, method_show_token *show, const void *data)
{
    int32_t n;
    for (int32_t l = 0; as_lookahead_row(d, l, &n); l++) {
        const int32_t *row = as_lookahead_row(d, l, &n);
        fprintf(stderr, "  %s %2d ", l ? "      " : "window", (int)l);
        for (int32_t i = 0; i < n; i++)
            if (row[i] < 0)
                fputs("  . ", stderr);
            else
                show(data, row[i]);
        fputc('\n', stderr);
    }
}

void method_show(const char *method, const as_drafter *d, const as_step *s,
                 method_show_token *show, const void *data)
{
    const bool window = strcmp(method, "lookahead") == 0;
    fprintf(stderr, "step %d at %llu: root", (int)s->step, (unsigned long long)s->position);
    show(data, s->tree->row[0].token);
    fprintf(stderr, ", %d row%s, %s", (int)s->tree->rows, s->tree->rows == 1 ? "" : "s",
            window ? "pool hits" : "drafts");
    show_drafts(s, show, data);
    fputs(", emitted", stderr);
    for (int32_t i = 0; i < s->emitted; i++) show(data, s->run[i]);
    fputc('\n', stderr);
    if (window) show_window(d, show, data);
}

/* ---- JSON. ----------------------------------------------------------------------------- */

static json_t *list(const int32_t *x, int32_t n)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(a, json_integer(x[i]));
    return a;
}

static json_t *rows_json(const as_tree *t)
{
    json_t *a = json_array();
    for (int32_t r = 0; r < t->rows; r++)
        json_array_append_new(a,
                              json_pack("[i, i]", (int)t->row[r].token, (int)t->row[r].parent));
    return a;
}

/* The row at which each candidate begins. */
static json_t *candidates_json(const as_tree *t, const as_plan *plan)
{
    json_t *a = json_array();
    for (int32_t r = plan->drafts; r < t->rows; r++)
        if (t->row[r].parent == 0) json_array_append_new(a, json_integer(r));
    return a;
}

static json_t *window_json(const as_drafter *d)
{
    json_t *a = json_array();
    int32_t n;
    for (int32_t l = 0; as_lookahead_row(d, l, &n); l++) {
        const int32_t *row = as_lookahead_row(d, l, &n);
        json_array_append_new(a, list(row, n));
    }
    return a;
}

/* By key, each a list of its values in the pool's order. */
static json_t *pool_json(as_drafter *d, int32_t length)
{
    json_t *all = json_object();
    for (int32_t key = 0; key < d->V; key++) {
        int32_t count;
        char name[16];
        const int32_t *value = as_pool_find(as_lookahead_pool(d), key, &count);
        if (count == 0) continue;
        json_t *values = json_array();
        for (int32_t i = 0; i < count; i++)
            json_array_append_new(values, list(value + (ptrdiff_t)i * length, length));
        snprintf(name, sizeof name, "%d", (int)key);
        json_object_set_new(all, name, values);
    }
    return all;
}

void method_add_state(json_t *step, as_drafter *lookahead)
{
    json_object_set_new(step, "window", window_json(lookahead));
    json_object_set_new(step, "pool",
                        pool_json(lookahead, as_pool_length(as_lookahead_pool(lookahead))));
}

json_t *method_json(const char *method, as_drafter *d, const as_step *s)
{
    json_t *step =
        json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:i}", "step", (int)s->step, "position",
                  (json_int_t)s->position, "rows", rows_json(s->tree), "candidates",
                  candidates_json(s->tree, s->plan), "path", list(s->path, s->accepted + 1),
                  "run", list(s->run, s->length), "emitted", (int)s->emitted);
    if (step && strcmp(method, "lookahead") == 0) method_add_state(step, d);
    return step;
}
