/* follow.c - see follow.h. */
#include "tests/oracle/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"

/* A drafter around the one under test: it notes the state before the first step. */
typedef struct {
    as_drafter base, *inner;
    as_lm *lm;
    const oracle_request *q;
    const oracle_method *m;
    const follow_options *options;
    oracle_trace *trace;
    bool noted;
    int32_t accepted;
    char *fault;
    size_t fault_size;
} spy;

static void blame(spy *s, const char *what, int32_t step)
{
    if (!*s->fault) snprintf(s->fault, s->fault_size, "step %d: %s", (int)step, what);
}

/* ---- What a step shows ------------------------------------------------------------ */

static void show_window(const spy *s, oracle_lists *window)
{
    const bool stale = s->m->sw[LAH_KEY] == LAH_KEY_STALE;
    const int32_t *row;
    int32_t n;
    for (int32_t l = 0; (row = as_lookahead_row(s->inner, l, &n)); l++) {
        const int32_t hidden = l == 0 && !stale;
        oracle_append(oracle_another(window), row + hidden, n - hidden);
    }
}

static void show_values(const int32_t *value, int32_t count, int32_t length,
                        oracle_lists *values)
{
    for (int32_t i = 0; i < count; i++)
        oracle_append(oracle_another(values), value + i * length, length);
}

static void show_pool(const spy *s, oracle_pool *pool)
{
    const as_pool *from = as_lookahead_pool(s->inner);
    pool->of = oracle_take((size_t)s->lm->V, sizeof *pool->of);
    for (int32_t t = 0; t < s->lm->V; t++) {
        int32_t count;
        const int32_t *value = as_pool_find(from, t, &count);
        if (count == 0) continue;
        struct oracle_pool_key *key = &pool->of[pool->keys++];
        key->key = t;
        show_values(value, count, as_pool_length(from), &key->values);
    }
}

static void show_state(const spy *s, oracle_lists *window, oracle_pool *pool)
{
    if (s->m->name != ORACLE_LOOKAHEAD) return;
    show_window(s, window);
    show_pool(s, pool);
}

static void show_path(const as_tree *t, int32_t r, oracle_list *path)
{
    int32_t depth = 0;
    for (int32_t above = r; above > 0; above = t->row[above].parent) depth++;
    for (int32_t i = 0; i < depth; i++) oracle_push(path, 0);
    for (int32_t above = r; above > 0; above = t->row[above].parent)
        path->t[--depth] = t->row[above].token;
}

static void show_tree(const spy *s, const as_tree *t, oracle_step *to)
{
    const int32_t drafts = t->rows - t->drafts,
                  length = s->m->name == ORACLE_LOOKAHEAD ? s->m->size[1] - 1 : drafts;
    for (int32_t r = 0; r < t->rows; r++) show_path(t, r, oracle_another(&to->rows));
    for (int32_t r = t->drafts; r < t->rows; r += length)
        show_path(t, r + length - 1, oracle_another(&to->candidates));
}

/* ---- What must hold of a step ----------------------------------------------------- */

/* The last row of the accepted path: of the first candidate that has these tokens, or else the
 * first row. Rows of the window rank behind all candidates (LAH-20). */
static int32_t winner(const spy *s, const as_step *step)
{
    const as_tree *t = step->tree;
    int32_t found = -1;
    for (int32_t r = 1; r < t->rows && step->accepted > 0; r++) {
        oracle_list path = {0};
        const oracle_list run = {step->accepted, 0, (int32_t *)(uintptr_t)step->run};
        show_path(t, r, &path);
        const bool same = oracle_alike(&path, &run),
                   better = found < 0 || (found < t->drafts && r >= t->drafts);
        oracle_list_free(&path);
        if (same && better && (r >= t->drafts || s->m->sw[LAH_ACCEPT_WINDOW])) found = r;
    }
    return step->accepted > 0 ? found : 0;
}

static void check_path(spy *s, const as_step *step)
{
    for (int32_t i = step->accepted; i > 0; i--)
        if (step->tree->row[step->path[i]].parent != step->path[i - 1])
            blame(s, "the accepted rows are no path", step->step);
    if (step->path[0] != 0 || step->path[step->accepted] != winner(s, step))
        blame(s, "the accepted rows are not the winner's", step->step);
}

/* LAH-30, JAC-10: the history but for its last token. */
static void check_prefix(spy *s, int32_t step)
{
    int32_t n;
    if (!s->options->prefix) return;
    const int32_t *prefix = s->options->prefix(s->lm, &n);
    const oracle_list *out = &s->trace->tokens;
    bool same = n == s->q->n + out->n - 1;
    for (int32_t i = 0; same && i < n; i++)
        same = prefix[i] == (i < s->q->n ? s->q->prompt[i] : out->t[i - s->q->n]);
    if (!same) blame(s, "the model holds other tokens than the history's", step);
}

/* ---- The drafter ------------------------------------------------------------------ */

static as_status reset(as_drafter *d, as_error *e)
{
    const spy *s = (const spy *)d;
    return s->inner->ops->reset(s->inner, e);
}

static as_status propose(as_drafter *d, const as_context *c, as_tree *tree, as_error *e)
{
    spy *s = (spy *)d;
    const as_status status = s->inner->ops->propose(s->inner, c, tree, e);
    if (status == AS_OK && !s->noted) show_state(s, &s->trace->window0, &s->trace->pool0);
    s->noted = true;
    return status;
}

static as_status observe(as_drafter *d, const as_context *c, const as_step *step, as_error *e)
{
    const spy *s = (const spy *)d;
    return s->inner->ops->observe(s->inner, c, step, e);
}

static void free_drafter(as_drafter *d)
{
    (void)d;
}

static void note(void *data, const as_step *step)
{
    spy *s = data;
    oracle_trace *t = s->trace;
    if (t->steps == t->room) {
        t->room = 2 * t->room + 16;
        t->step = realloc(t->step, (size_t)t->room * sizeof *t->step);
        if (!t->step) abort();
    }
    oracle_step *to = &t->step[t->steps++];
    *to = (oracle_step){.accepted = step->accepted};
    show_tree(s, step->tree, to);
    oracle_append(&to->run, step->run, step->length);
    oracle_append(&to->emitted, step->run, step->emitted);
    oracle_append(&t->tokens, step->run, step->emitted);
    show_state(s, &to->window, &to->pool);
    check_path(s, step);
    check_prefix(s, step->step);
    s->accepted += step->accepted;
}

/* ---- A request -------------------------------------------------------------------- */

static as_lookahead lookahead_of(const oracle_method *m)
{
    static const as_fill fill[] = {AS_FILL_PROMPT, AS_FILL_CONSTANT, AS_FILL_GIVEN};
    static const as_pool_policy pool[] = {AS_POOL_LRU, AS_POOL_RING};
    static const as_key key[] = {AS_KEY_ROOT, AS_KEY_STALE, AS_KEY_NEXT};
    static const as_shift shift[] = {AS_SHIFT_REL1, AS_SHIFT_ABSPAD, AS_SHIFT_ROWROT};
    static const as_rule rule[] = {AS_RULE_ONEHOT, AS_RULE_MATCH, AS_RULE_GREEDY};
    const int32_t *sw = m->sw;
    return (as_lookahead){.W = m->size[0],
                          .N = m->size[1],
                          .G = m->size[2],
                          .init = fill[sw[LAH_INIT]],
                          .first_plain = sw[LAH_FIRST_PLAIN],
                          .warmup = sw[LAH_WARMUP],
                          .verify_filling = sw[LAH_VERIFY_FILLING],
                          .pool_from_prompt = sw[LAH_POOL_FROM_PROMPT],
                          .pool_from_output = sw[LAH_POOL_FROM_OUTPUT],
                          .pool = pool[sw[LAH_POOL]],
                          .key = key[sw[LAH_KEY]],
                          .bonus = sw[LAH_BONUS],
                          .accept_window = sw[LAH_ACCEPT_WINDOW],
                          .shift = shift[sw[LAH_SHIFT]],
                          .sampled = sw[LAH_WINDOW] == LAH_WINDOW_SAMPLED,
                          .rule = rule[sw[LAH_RULE]],
                          .eos_filter = sw[LAH_EOS_FILTER],
                          .given = m->given,
                          .givens = m->given_n};
}

static bool same_lookahead(const as_lookahead *a, const as_lookahead *b)
{
    return a->W == b->W && a->N == b->N && a->G == b->G && a->init == b->init &&
           a->first_plain == b->first_plain && a->warmup == b->warmup &&
           a->verify_filling == b->verify_filling &&
           a->pool_from_prompt == b->pool_from_prompt &&
           a->pool_from_output == b->pool_from_output && a->pool == b->pool &&
           a->key == b->key && a->bonus == b->bonus && a->accept_window == b->accept_window &&
           a->shift == b->shift && a->sampled == b->sampled && a->rule == b->rule &&
           a->eos_filter == b->eos_filter;
}

static as_jacobi jacobi_of(const oracle_method *m)
{
    static const as_jacobi_init init[] = {AS_GUESS_PAD, AS_GUESS_LAST, AS_GUESS_PROMPT,
                                          AS_GUESS_GIVEN};
    return (as_jacobi){m->size[0], init[m->sw[JACOBI_INIT]], m->size[1], m->given, m->given_n};
}

static as_lookup lookup_of(const oracle_method *m)
{
    return (as_lookup){m->size[0], m->size[1], m->sw[LKP_PARTIAL], m->sw[LKP_CUT_AT_EOS]};
}

static bool same_lookup(const as_lookup *a, const as_lookup *b)
{
    return a->longest == b->longest && a->drafts == b->drafts && a->partial == b->partial &&
           a->cut_at_eos == b->cut_at_eos;
}

bool follow_preset(const oracle_method *m, const char *name)
{
    if (m->name == ORACLE_LOOKAHEAD) {
        const as_lookahead *has = as_lookahead_preset(name), due = lookahead_of(m);
        return has && same_lookahead(has, &due);
    }
    const as_lookup *has = as_lookup_preset(name), due = lookup_of(m);
    return has && same_lookup(has, &due);
}

static as_status make_drafter(const oracle_method *m, int32_t V, as_drafter **d, as_error *e)
{
    if (m->name == ORACLE_LOOKAHEAD) {
        const as_lookahead o = lookahead_of(m);
        return as_draft_lookahead(&o, V, d, e);
    }
    if (m->name == ORACLE_JACOBI) {
        const as_jacobi o = jacobi_of(m);
        return as_draft_jacobi(&o, V, d, e);
    }
    const as_lookup o = lookup_of(m);
    return as_draft_lookup(&o, d, e);
}

/* Above temperature 0; where there is none, one that must be refused. */
static as_rule warm_rule(const oracle_method *m)
{
    const bool onehot = m->name == ORACLE_LOOKUP
                            ? m->sw[LKP_RULE] == LKP_RULE_ONEHOT
                            : m->name == ORACLE_LOOKAHEAD && m->sw[LAH_RULE] == LAH_RULE_ONEHOT;
    return onehot ? AS_RULE_ONEHOT : AS_RULE_MATCH;
}

static void decode(spy *s, as_error *e)
{
    const oracle_request *q = s->q;
    const oracle_sampling *p = &q->sampling;
    const as_request r = {.target = s->lm,
                          .drafter = &s->base,
                          .rule = p->temperature == 0 ? AS_RULE_GREEDY : warm_rule(s->m),
                          .sampling = {p->temperature, p->top_k, p->top_p, p->min_p},
                          .seed = q->seed,
                          .prompt = q->prompt,
                          .prompts = q->n,
                          .eos = &q->eos,
                          .eoses = q->eos >= 0,
                          .budget = q->budget,
                          .trace = note,
                          .trace_data = s};
    as_result result;
    int32_t *out = oracle_take((size_t)(q->budget > 0 ? q->budget : 0), sizeof *out);
    const oracle_list *seen = &s->trace->tokens;
    if (as_decode(&r, out, &result, e) != AS_OK) {
        if (!*e->text) snprintf(e->text, sizeof e->text, "an error without a text");
    } else if (result.tokens != seen->n || result.steps != s->trace->steps ||
               result.accepted != s->accepted ||
               memcmp(out, seen->t, (size_t)seen->n * sizeof *out) != 0)
        blame(s, "the result does not agree with the steps", result.steps);
    free(out);
}

/* Twice with one drafter and one model: nothing of the first run may be left in the second
 * (LAH-02, KV-07). */
void follow(as_lm *lm, const oracle_request *q, const oracle_method *m,
            const follow_options *options, oracle_trace *trace, char *fault, size_t fault_size)
{
    static const as_drafter_ops ops = {reset, propose, observe, free_drafter};
    as_error e = {""};
    as_drafter *inner = NULL;
    *trace = (oracle_trace){.steps = 0};
    *fault = 0;
    if (make_drafter(m, lm->V, &inner, &e) == AS_OK) {
        if (options->show) options->show(inner, options->data);
        for (int run = 0; run < 2; run++) {
            spy s = {{&ops, inner->name, inner->rules, inner->V},
                     inner,
                     lm,
                     q,
                     m,
                     options,
                     trace,
                     false,
                     0,
                     fault,
                     fault_size};
            oracle_trace_free(trace);
            decode(&s, &e);
        }
        as_drafter_free(inner);
    }
    snprintf(trace->error, sizeof trace->error, "%s", e.text);
}

/* ---- Comparing -------------------------------------------------------------------- */

static void print_list(char *text, size_t size, const oracle_list *list)
{
    size_t n = 0;
    text[0] = 0;
    for (int32_t i = 0; i < list->n && n + 8 < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%d", i ? "," : "", (int)list->t[i]);
}

static bool lists_differ(const char *what, const oracle_lists *a, const oracle_lists *b,
                         char *why, size_t size)
{
    char want[60], got[60];
    static const oracle_list none;
    if (oracle_lists_alike(a, b)) return false;
    int32_t i = 0;
    while (i < a->n && i < b->n && oracle_alike(&a->l[i], &b->l[i])) i++;
    print_list(want, sizeof want, i < a->n ? &a->l[i] : &none);
    print_list(got, sizeof got, i < b->n ? &b->l[i] : &none);
    snprintf(why, size, "%s: the oracle has %d, the reference %d; entry %d is %s, not %s", what,
             (int)a->n, (int)b->n, (int)i, i < a->n ? want : "none", i < b->n ? got : "none");
    return true;
}

static bool list_differs(const char *what, const oracle_list *a, const oracle_list *b,
                         char *why, size_t size)
{
    char want[60], got[60];
    if (oracle_alike(a, b)) return false;
    print_list(want, sizeof want, a);
    print_list(got, sizeof got, b);
    snprintf(why, size, "%s: %s, not %s", what, want, got);
    return true;
}

static bool pools_differ(const oracle_pool *a, const oracle_pool *b, char *why, size_t size)
{
    char what[40];
    if (oracle_pool_alike(a, b)) return false;
    int32_t i = 0;
    while (i < a->keys && i < b->keys && a->of[i].key == b->of[i].key) {
        snprintf(what, sizeof what, "pool, values of %d", (int)a->of[i].key);
        if (lists_differ(what, &a->of[i].values, &b->of[i].values, why, size)) return true;
        i++;
    }
    snprintf(why, size, "pool: %d keys, not %d; key %d is %d, not %d", (int)a->keys,
             (int)b->keys, (int)i, i < a->keys ? (int)a->of[i].key : -1,
             i < b->keys ? (int)b->of[i].key : -1);
    return true;
}

static bool steps_differ(const oracle_step *a, const oracle_step *b, char *why, size_t size)
{
    if (lists_differ("candidates", &a->candidates, &b->candidates, why, size) ||
        lists_differ("rows", &a->rows, &b->rows, why, size) ||
        list_differs("run", &a->run, &b->run, why, size) ||
        list_differs("emitted", &a->emitted, &b->emitted, why, size) ||
        lists_differ("window", &a->window, &b->window, why, size) ||
        pools_differ(&a->pool, &b->pool, why, size))
        return true;
    if (a->accepted == b->accepted) return false;
    snprintf(why, size, "accepted %d, not %d", (int)a->accepted, (int)b->accepted);
    return true;
}

/* What the reference's text has for the word of the oracle's. The reference is asked for a rule
 * where the oracle is asked for a temperature. */
static const char *named(const char *error)
{
    static const char *const other[][2] = {
        {"block", "m "}, {"temperature", "rule"}, {"longest", "n-grams"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (!strcmp(error, other[i][0])) return other[i][1];
    return error;
}

void follow_compare(const oracle_trace *want, const oracle_trace *got, char *why, size_t size)
{
    char part[240];
    *why = 0;
    if (*want->error || *got->error) {
        if (!*want->error || !*got->error || !strstr(got->error, named(want->error)))
            snprintf(why, size, "refused for \"%s\", not \"%s\"", want->error, got->error);
        return;
    }
    if (lists_differ("window before the first step", &want->window0, &got->window0, why,
                     size) ||
        pools_differ(&want->pool0, &got->pool0, why, size))
        return;
    for (int32_t i = 0; i < want->steps && i < got->steps; i++)
        if (steps_differ(&want->step[i], &got->step[i], part, sizeof part)) {
            snprintf(why, size, "step %d, %s", (int)i, part);
            return;
        }
    if (want->steps != got->steps)
        snprintf(why, size, "%d steps, not %d", (int)want->steps, (int)got->steps);
    else
        list_differs("tokens", &want->tokens, &got->tokens, why, size);
}
