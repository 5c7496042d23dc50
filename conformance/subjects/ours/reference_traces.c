/* reference_traces.c - see reference_traces.h. */
#include "conformance/subjects/ours/reference_traces.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"
#include "conformance/subjects/ours/path_lm.h"
#include "ref/draft/switches.h"

/* A drafter around another one: it notes the state before the first step. */
typedef struct {
    as_drafter base, *inner;
    const as_lm *lm;
    const oracle_method *m;
    const ref_trace_watch *watch;
    oracle_trace *trace;
    bool noted;
    as_drafter *window; /* who has window and pool; NULL: nobody */
    bool drafted;       /* Ouroboros: there has been a draft step, so that the window exists */
} scribe;

/* ---- What a step shows ------------------------------------------------------------ */

static void show_window(const scribe *s, oracle_lists *window)
{
    const bool stale = s->m->name == ORACLE_LOOKAHEAD && s->m->sw[LAH_KEY] == LAH_KEY_STALE;
    const int32_t *row;
    int32_t n;
    for (int32_t l = 0; (row = as_lookahead_row(s->window, l, &n)); l++) {
        const int32_t hidden = l == 0 && !stale;
        oracle_append(oracle_another(window), row + hidden, n - hidden);
    }
}

void ref_show_values(const int32_t *value, int32_t count, int32_t length, oracle_lists *values)
{
    for (int32_t i = 0; i < count; i++)
        oracle_append(oracle_another(values), value + i * length, length);
}

static void show_pool(const scribe *s, oracle_pool *pool)
{
    const as_pool *from = as_lookahead_pool(s->window);
    pool->of = oracle_take((size_t)s->lm->V, sizeof *pool->of);
    for (int32_t t = 0; t < s->lm->V; t++) {
        int32_t count;
        const int32_t *value = as_pool_find(from, t, &count);
        if (count == 0) continue;
        struct oracle_pool_key *key = &pool->of[pool->keys++];
        key->key = t;
        ref_show_values(value, count, as_pool_length(from), &key->values);
    }
}

static void show_state(const scribe *s, oracle_lists *window, oracle_pool *pool)
{
    if (!s->window) return;
    if (s->m->name == ORACLE_OUROBOROS && !s->drafted)
        for (int32_t l = 0; l < s->trace->window0.n; l++) oracle_add_copy(window, &s->trace->window0.l[l]);
    else
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

void ref_show_tree(const oracle_method *m, const as_tree *t, int32_t first, oracle_step *to)
{
    const int32_t drafts = t->rows - first, length = m->name == ORACLE_LOOKAHEAD   ? m->size[1] - 1
                                                     : m->name == ORACLE_OUROBOROS ? m->size[2] - 1
                                                                                   : drafts;
    for (int32_t r = 0; r < t->rows; r++) show_path(t, r, oracle_another(&to->rows));
    for (int32_t r = first; r < t->rows; r += length)
        show_path(t, r + length - 1, oracle_another(&to->candidates));
}

/* Drafts, and what stands behind them; the reference makes its window at the first draft step. */
static void show_round(scribe *s, const as_tree *t, oracle_step *to)
{
    int32_t steps;
    const int32_t n = as_ouroboros_drafts(s->inner, &steps);
    s->drafted |= steps > 0;
    for (int32_t r = 1; r <= n; r++) oracle_push(&to->drafts, t->row[r].token);
    ref_show_tree(s->m, t, 1 + n, to);
    if (t->rows == 1 + n && n > 0) show_path(t, n, oracle_another(&to->candidates));
}

/* OUR-03: the window before the first round is that of a lookahead of its own before its first step. */
static as_status show_first_window(scribe *s, const as_context *c, as_error *e)
{
    as_lookahead o = *as_lookahead_preset("paper");
    as_context line = *c;
    as_tree tree = {0};
    as_plan plan;
    scribe first = *s;
    o.W = o.G = s->m->size[1], o.N = s->m->size[2];
    if (s->m->sw[OUR_INIT] == OUR_INIT_GIVEN)
        o.init = AS_FILL_GIVEN, o.given = s->m->given, o.givens = s->m->given_n;
    line.depth = line.rows = INT32_MAX;
    as_status status = as_draft_lookahead(&o, s->lm->V, &first.window, e);
    if (status != AS_OK) return status;
    status = as_tree_plant(&tree, c->history[c->n - 1], e);
    if (status == AS_OK) status = as_drafter_propose(first.window, &line, &tree, &plan, e);
    if (status == AS_OK) show_window(&first, &s->trace->window0);
    as_tree_free(&tree);
    as_drafter_free(first.window);
    return status;
}

/* ---- The drafter ------------------------------------------------------------------ */

static as_status reset(as_drafter *d, as_error *e)
{
    const scribe *s = (const scribe *)d;
    return as_drafter_reset(s->inner, e);
}

static as_status propose(as_drafter *d, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    scribe *s = (scribe *)d;
    const bool pair = s->m->name == ORACLE_OUROBOROS, notes = !s->noted;
    as_status status = AS_OK;
    s->noted = true;
    if (notes && pair) {
        status = show_first_window(s, c, e);
        show_pool(s, &s->trace->pool0);
    }
    if (status == AS_OK) status = as_drafter_propose(s->inner, c, tree, plan, e);
    if (status == AS_OK && notes && !pair) show_state(s, &s->trace->window0, &s->trace->pool0);
    return status;
}

static as_status observe(as_drafter *d, const as_context *c, const as_step *step, as_error *e)
{
    const scribe *s = (const scribe *)d;
    return as_drafter_observe(s->inner, c, step, e);
}

static void free_drafter(as_drafter *d)
{
    (void)d;
}

static uint64_t digest(const as_drafter *d, uint64_t h)
{
    const as_drafter *inner = ((const scribe *)d)->inner;
    return inner->ops->digest ? inner->ops->digest(inner, h) : h;
}

oracle_step *ref_another_step(oracle_trace *t)
{
    if (t->steps == t->room) {
        t->room = 2 * t->room + 16;
        t->step = realloc(t->step, (size_t)t->room * sizeof *t->step);
        if (!t->step) abort();
    }
    t->step[t->steps] = (oracle_step){.accepted = 0};
    return &t->step[t->steps++];
}

static void note(void *data, const as_step *step)
{
    scribe *s = data;
    oracle_step *to = ref_another_step(s->trace);
    to->accepted = step->accepted;
    if (s->m->name == ORACLE_OUROBOROS)
        show_round(s, step->tree, to);
    else
        ref_show_tree(s->m, step->tree, step->plan->drafts, to);
    oracle_append(&to->run, step->run, step->length);
    oracle_append(&to->emitted, step->run, step->emitted);
    show_state(s, &to->window, &to->pool);
    if (s->watch) s->watch->step(s->watch->data, step, s->trace);
}

/* ---- Methods ---------------------------------------------------------------------- */

/* Sets the switches of the method, but its rule above T = 0 if the list has none, by their
 * words. */
static void set_switches(const oracle_method *m, const as_switch *list, void *o)
{
    int32_t n;
    const oracle_switch *sw = oracle_method_switches(m->name, &n);
    for (int32_t i = 0; i < n; i++) {
        const char *value = sw[i].values;
        for (int32_t v = 0; v < m->sw[i]; v++) value += strcspn(value, " ") + 1;
        as_set_switch(o, list, sw[i].name, strlen(sw[i].name), value, strcspn(value, " "));
    }
}

as_lookahead ref_lookahead_of(const oracle_method *m)
{
    as_lookahead o = {.W = m->size[0],
                      .N = m->size[1],
                      .G = m->size[2],
                      .given = m->given,
                      .givens = m->given_n};
    set_switches(m, as_lookahead_switches, &o);
    return o;
}

as_jacobi ref_jacobi_of(const oracle_method *m)
{
    static const as_jacobi_init init[] = {AS_GUESS_PAD, AS_GUESS_LAST, AS_GUESS_PROMPT,
                                          AS_GUESS_GIVEN, AS_GUESS_VOCABULARY};
    return (as_jacobi){m->size[0], init[m->sw[JACOBI_INIT]], m->size[1], m->given, m->given_n, false};
}

as_lookup ref_lookup_of(const oracle_method *m)
{
    as_lookup o = {.longest = m->size[0], .drafts = m->size[1]};
    set_switches(m, as_lookup_switches, &o);
    return o;
}

as_status ref_drafter_of(const oracle_method *m, int32_t V, as_drafter **d, as_error *e)
{
    if (m->name == ORACLE_LOOKAHEAD) {
        const as_lookahead o = ref_lookahead_of(m);
        return as_draft_lookahead(&o, V, d, e);
    }
    if (m->name == ORACLE_JACOBI) {
        const as_jacobi o = ref_jacobi_of(m);
        return as_draft_jacobi(&o, V, d, e);
    }
    const as_lookup o = ref_lookup_of(m);
    return as_draft_lookup(&o, d, e);
}

as_rule ref_rule_of(const oracle_request *q, const oracle_method *m)
{
    if (q->sampling.temperature == 0) return AS_RULE_GREEDY;
    const bool onehot = m->name == ORACLE_LOOKUP
                            ? m->sw[LKP_RULE] == LKP_RULE_ONEHOT
                            : m->name == ORACLE_LOOKAHEAD && m->sw[LAH_RULE] == LAH_RULE_ONEHOT;
    return onehot ? AS_RULE_ONEHOT : AS_RULE_MATCH;
}

/* ---- A request -------------------------------------------------------------------- */

/* TRC-03. The reference is asked for a rule where the vectors ask for a temperature. */
void ref_refuse(const oracle_request *q, const as_error *e, oracle_trace *trace)
{
    const bool hot = q->sampling.temperature != 0 && strcmp(e->about, "rule") == 0;
    snprintf(trace->error, sizeof trace->error, "%.150s",
             hot         ? "temperature"
             : *e->about ? e->about
                         : e->text);
}

void ref_trace(as_lm *lm, as_drafter *d, const oracle_request *q, const oracle_method *m,
               as_ranks *ranks, const ref_trace_watch *watch, oracle_trace *trace, as_result *result)
{
    static const as_drafter_ops ops = {reset, propose, observe, free_drafter, digest};
    scribe s = {.base = {&ops, d->name, d->rules, d->V, d->cold}, .inner = d, .lm = lm, .m = m, .watch = watch, .trace = trace};
    s.window = m->name == ORACLE_LOOKAHEAD   ? d
               : m->name == ORACLE_OUROBOROS ? as_ouroboros_lookahead(d)
                                             : NULL;
    const oracle_sampling *p = &q->sampling;
    const as_request r = {.target = lm,
                          .drafter = &s.base,
                          .rule = ref_rule_of(q, m),
                          .sampling = {p->temperature, p->top_k, p->top_p, p->min_p},
                          .seed = q->seed,
                          .prompt = q->prompt,
                          .prompts = q->n,
                          .eos = &q->eos,
                          .eoses = q->eos >= 0,
                          .budget = q->budget,
                          .trace = note,
                          .trace_data = &s,
                          .ranks = ranks};
    as_error e = {.text = ""};
    int32_t *out = oracle_take((size_t)(q->budget > 0 ? q->budget : 0) + 1, sizeof *out);
    *trace = (oracle_trace){.steps = 0};
    if (as_decode(&r, out, result, &e) != AS_OK)
        ref_refuse(q, &e, trace);
    else
        oracle_append(&trace->tokens, out, result->tokens);
    free(out);
}

as_ouroboros ref_ouroboros_of(const oracle_method *m)
{
    const int32_t *z = m->size, *sw = m->sw;
    return (as_ouroboros){.gamma = z[0],
                          .W = z[1],
                          .N = z[2],
                          .K = z[3],
                          .draft_bonus = sw[OUR_DRAFT_BONUS],
                          .overrun = sw[OUR_OVERRUN],
                          .suffix_bonus = sw[OUR_SUFFIX_BONUS],
                          .inspire = (as_inspire)sw[OUR_INSPIRE],
                          .refine = (as_refine)sw[OUR_REFINE],
                          .refine_few = sw[OUR_REFINE_REFUSED] == OUR_REFINE_FEW,
                          .given = sw[OUR_INIT] == OUR_INIT_GIVEN ? m->given : NULL,
                          .givens = sw[OUR_INIT] == OUR_INIT_GIVEN ? m->given_n : 0};
}

/* A list that is empty has no drafter of its own: the lookahead's word for it is the same. */
static as_status drafter_of_vector(const oracle_method *m, as_lm *draft, int32_t V, as_drafter **d, as_error *e)
{
    if (!draft) return ref_drafter_of(m, V, d, e);
    if (m->sw[OUR_INIT] == OUR_INIT_GIVEN && m->given_n < 1)
        return as_refuse(e, AS_BAD_INPUT, "given", "an empty list of first tokens");
    const as_ouroboros o = ref_ouroboros_of(m);
    return as_draft_ouroboros(draft, &o, d, e);
}

void ref_trace_vector(const vector_group *g, const vector_test *t, oracle_trace *trace)
{
    path_lm *lm = path_lm_new(g->toy, t->request->positions, t->request->rows),
            *draft = g->draft ? path_lm_new(g->draft, 0, 0) : NULL;
    as_drafter *d = NULL;
    as_error e = {.text = ""};
    as_result result;
    *trace = (oracle_trace){.steps = 0};
    if (drafter_of_vector(t->method, draft ? &draft->base : NULL, lm->base.V, &d, &e) == AS_OK)
        ref_trace(&lm->base, d, t->request, t->method, NULL, NULL, trace, &result);
    else
        ref_refuse(t->request, &e, trace);
    as_drafter_free(d);
    if (draft) as_lm_free(&draft->base);
    as_lm_free(&lm->base);
}
