/* ouroboros.c - chapter 11, clause by clause; see ouroboros.h. */
#include "conformance/oracle/methods/ouroboros.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/candidates.h"
#include "conformance/oracle/methods/decoding.h"

const oracle_switch oracle_ouroboros_switch[OUR_SWITCHES] = {
    {"init", "prompt given"},        {"draft_bonus", "no yes"},
    {"overrun", "no yes"},           {"suffix_bonus", "no yes"},
    {"inspire", "phrase tail none"}, {"refine", "value newest none"},
    {"refine_refused", "all few"}};

static const struct {
    const char *name;
    int32_t sw[OUR_SWITCHES];
} preset_table[] = {
    {"paper", {OUR_INIT_PROMPT, 1, 1, 1, OUR_INSPIRE_PHRASE, OUR_REFINE_VALUE, OUR_REFINE_ALL}},
    {"code", {OUR_INIT_PROMPT, 0, 0, 0, OUR_INSPIRE_TAIL, OUR_REFINE_NEWEST, OUR_REFINE_FEW}}};

bool oracle_ouroboros_preset(oracle_ouroboros *m, const char *preset)
{
    for (size_t i = 0; i < sizeof preset_table / sizeof *preset_table; i++)
        if (!strcmp(preset_table[i].name, preset)) {
            memcpy(m->sw, preset_table[i].sw, sizeof m->sw);
            return true;
        }
    return false;
}

typedef struct {
    const oracle_ouroboros *m;
    oracle_decoding d;    /* the target: history and output */
    oracle_decoding line; /* the draft model: history and drafts of the round (OUR-05) */
    oracle_lookahead *drafter;
    oracle_pool *pool; /* the drafter's */
} ouroboros;

/* ---- Drafting --------------------------------------------------------------------- */

/* OUR-07: drafts that the round has room for. */
static int32_t room(const ouroboros *o)
{
    const oracle_request *q = o->d.q;
    const int32_t left = q->budget - oracle_position(&o->d);
    return oracle_at_most(left - 1, q->rows ? q->rows - 1 : left);
}

static bool has_position(const oracle_decoding *line)
{
    return !line->q->positions || line->history.n <= line->q->positions;
}

/* OUR-06 to OUR-08. */
static void make_drafts(ouroboros *o, oracle_round *r)
{
    const int32_t most = room(o), g = oracle_at_most(o->m->gamma, most);
    oracle_copy(&o->line.history, &o->d.history);
    o->line.ended = false;
    while (r->drafts.n < g && !o->line.ended && has_position(&o->line)) {
        const oracle_step *s = oracle_lookahead_step(o->drafter);
        oracle_append(&r->drafts, s->emitted.t, s->emitted.n);
        r->draft_steps++;
    }
    r->drafts.n = oracle_at_most(r->drafts.n, o->m->sw[OUR_OVERRUN] ? most : g);
}

/* ---- Suffixes --------------------------------------------------------------------- */

/* d_i; d_0 is the root, last of a history of n tokens. */
static int32_t draft(const oracle_decoding *d, const oracle_round *r, int32_t n, int32_t i)
{
    return i > 0 ? r->drafts.t[i - 1] : d->history.t[n - 1];
}

/* OUR-09, OUR-10. */
static void choose_suffixes(const ouroboros *o, oracle_round *r)
{
    const oracle_request *q = o->d.q;
    const int32_t n = r->drafts.n, length = o->m->N - 1, before = o->d.history.n;
    const oracle_lists *values = oracle_pool_values(o->pool, draft(&o->d, r, before, n));
    int32_t s = oracle_at_most(o->m->K, values->n);
    if (q->positions && before + n + length > q->positions) s = 0;
    if (q->rows) s = oracle_at_most(s, (q->rows - 1 - n) / length);
    for (int32_t i = values->n - s; i < values->n; i++)
        oracle_add_copy(&r->suffixes, &values->l[i]);
}

/* The drafts and the first `length` tokens of a suffix. */
static oracle_list path_into(const oracle_round *r, const oracle_list *suffix, int32_t length)
{
    oracle_list path = {0};
    oracle_append(&path, r->drafts.t, r->drafts.n);
    oracle_append(&path, suffix->t, length);
    return path;
}

/* OUR-11. */
static void list_rows(oracle_round *r)
{
    oracle_chain_rows(&r->drafts, &r->step.rows);
    for (int32_t i = 0; i < r->suffixes.n; i++)
        for (int32_t j = 1; j <= r->suffixes.l[i].n; j++)
            *oracle_another(&r->step.rows) = path_into(r, &r->suffixes.l[i], j);
}

/* ---- Answers ---------------------------------------------------------------------- */

/* OUR-12: e_1 ... e_{n+1} at places 0 ... n. */
static void answer_drafts(ouroboros *o, const oracle_round *r, oracle_list *e)
{
    for (int32_t i = 0; i <= r->drafts.n; i++)
        oracle_push(e, oracle_path_argmax(&o->d, &r->step.rows.l[i]));
}

/* OUR-12: the refined suffixes. */
static void answer_suffixes(ouroboros *o, oracle_round *r, int32_t first)
{
    for (int32_t i = 0; i < r->suffixes.n; i++) {
        oracle_list *refined = oracle_another(&r->refined);
        oracle_push(refined, first);
        for (int32_t j = 1; j < r->suffixes.l[i].n; j++) {
            oracle_list path = path_into(r, &r->suffixes.l[i], j);
            oracle_push(refined, oracle_path_argmax(&o->d, &path));
            oracle_list_free(&path);
        }
    }
}

/* ---- Verification ----------------------------------------------------------------- */

/* OUR-13 to OUR-15: the drafts with each suffix behind them are candidates. */
static void verify(ouroboros *o, oracle_round *r)
{
    oracle_step *s = &r->step;
    const bool suffixes = r->suffixes.n > 0;
    for (int32_t i = 0; i < r->suffixes.n; i++)
        *oracle_another(&s->candidates) = path_into(r, &r->suffixes.l[i], r->suffixes.l[i].n);
    if (!suffixes && r->drafts.n > 0) oracle_add_copy(&s->candidates, &r->drafts);
    oracle_verify_step(&o->d, s, &s->candidates, true, !suffixes || o->m->sw[OUR_SUFFIX_BONUS]);
}

/* ---- Inspiration ------------------------------------------------------------------ */

static void insert_phrase(ouroboros *o, oracle_round *r, int32_t key, const int32_t *value)
{
    oracle_list *phrase = oracle_another(&r->inspired);
    oracle_push(phrase, key);
    oracle_append(phrase, value, o->m->N - 1);
    const oracle_list tail = {o->m->N - 1, 0, phrase->t + 1};
    oracle_pool_insert(o->pool, key, &tail);
}

/* OUR-16; `before` is the length of the history before the round, e has e_i at place i - 1. */
static void inspire(ouroboros *o, oracle_round *r, const oracle_list *e, int32_t before)
{
    const int32_t n = r->drafts.n, N = o->m->N, l = oracle_at_most(r->step.accepted, n);
    const int32_t how = o->m->sw[OUR_INSPIRE];
    const bool tail = how == OUR_INSPIRE_TAIL;
    if (how == OUR_INSPIRE_NONE) return;
    for (int32_t i = l + (tail ? 1 : 2); i <= n - N + 2; i++) {
        bool equal = true;
        for (int32_t k = tail ? i + 1 : i; k <= i + N - 2; k++)
            equal &= draft(&o->d, r, before, k) == e->t[k - 1];
        if (equal) insert_phrase(o, r, draft(&o->d, r, before, i), e->t + i);
    }
}

/* ---- Refinement ------------------------------------------------------------------- */

static int32_t place_of(const oracle_lists *values, const oracle_list *value)
{
    int32_t i = values->n - 1;
    while (i >= 0 && !oracle_alike(&values->l[i], value)) i--;
    return i;
}

/* OUR-18: c becomes f. */
static void refine_value(ouroboros *o, int32_t key, const oracle_list *c, const oracle_list *f)
{
    oracle_lists *values = oracle_pool_key(o->pool, key);
    const int32_t at = place_of(values, c), other = place_of(values, f);
    if (oracle_alike(c, f)) return; /* (a) */
    if (at < 0) {                   /* (b) */
        oracle_pool_insert(o->pool, key, f);
        return;
    }
    oracle_copy(&values->l[at], f);                                 /* (c), (d) */
    if (other >= 0) oracle_remove(values, at < other ? at : other); /* (d) */
}

/* OUR-17: how many suffixes. */
static int32_t refinements(const ouroboros *o, const oracle_round *r)
{
    const int32_t s = r->suffixes.n;
    const bool few = o->m->sw[OUR_REFINE_REFUSED] == OUR_REFINE_FEW;
    return few && r->step.accepted < r->drafts.n ? s / (o->m->N - 1) : s;
}

/* OUR-17 to OUR-19. */
static void refine(ouroboros *o, const oracle_round *r, int32_t key)
{
    const int32_t n = refinements(o, r);
    for (int32_t i = 0; i < n; i++) {
        const oracle_list *c = &r->suffixes.l[i], *f = &r->refined.l[i];
        oracle_lists *values = oracle_pool_key(o->pool, key);
        if (o->m->sw[OUR_REFINE] == OUR_REFINE_VALUE) refine_value(o, key, c, f);
        if (o->m->sw[OUR_REFINE] == OUR_REFINE_NEWEST)
            oracle_copy(&values->l[values->n - n + i], f);
    }
}

/* ---- Rounds ----------------------------------------------------------------------- */

static void run_round(ouroboros *o, oracle_round *r)
{
    const int32_t before = o->d.history.n;
    oracle_list e = {0};
    make_drafts(o, r);
    const int32_t key = draft(&o->d, r, before, r->drafts.n);
    choose_suffixes(o, r);
    list_rows(r);
    answer_drafts(o, r, &e);
    answer_suffixes(o, r, e.t[r->drafts.n]);
    verify(o, r);
    oracle_emit(&o->d, &r->step);
    inspire(o, r, &e, before); /* OUR-21: the last round's, too */
    refine(o, r, key);
    oracle_lookahead_show(o->drafter, &r->step.window);
    oracle_pool_copy(&r->step.pool, o->pool);
    oracle_list_free(&e);
}

static oracle_round *another_round(oracle_rounds *t)
{
    if (t->rounds == t->room) {
        t->room = t->room ? 2 * t->room : 16;
        oracle_round *more = oracle_take((size_t)t->room, sizeof *more);
        for (int32_t i = 0; i < t->rounds; i++) more[i] = t->round[i];
        free(t->round);
        t->round = more;
    }
    return &t->round[t->rounds++];
}

/* ---- Requests --------------------------------------------------------------------- */

static bool in_range(const int32_t *t, int32_t n, int32_t V)
{
    for (int32_t i = 0; i < n; i++)
        if (t[i] < 0 || t[i] >= V) return false;
    return true;
}

/* OUR-01, and chapter 8's words on `given`: the name of what is refused, or NULL. */
static const char *refused(const oracle_pair *pair, const oracle_request *q,
                           const oracle_ouroboros *m)
{
    const char *what = oracle_bad_request(pair->target, q);
    if (what) return what;
    for (int32_t i = 0; i < OUR_SWITCHES; i++)
        if (m->sw[i] < 0 || m->sw[i] >= oracle_switch_values(&oracle_ouroboros_switch[i]))
            return oracle_ouroboros_switch[i].name;
    if (m->gamma < 0) return "gamma";
    if (m->W < 1) return "W";
    if (m->N < 2) return "N";
    if (m->K < 0) return "K";
    if (pair->draft->V != pair->target->V) return "draft";
    if (m->sw[OUR_INIT] != OUR_INIT_GIVEN) return NULL;
    return m->given_n < 1 || !in_range(m->given, m->given_n, pair->target->V) ? "given" : NULL;
}

/* OUR-04: the pool that the request begins with. */
static void take_pool(oracle_instance *x, const oracle_ouroboros *m, int32_t V,
                      oracle_pool *pool)
{
    const bool same = x->warm && x->holds && x->V == V && x->W == m->W && x->N == m->N &&
                      !memcmp(x->sw, m->sw, sizeof x->sw);
    if (same) *pool = x->pool;
    if (!same) oracle_pool_free(&x->pool);
    pool->G = m->W; /* OUR-02 */
    x->pool = (oracle_pool){0};
    x->holds = true;
    x->V = V, x->W = m->W, x->N = m->N;
    memcpy(x->sw, m->sw, sizeof x->sw);
}

void oracle_ouroboros_decode(oracle_instance *x, const oracle_pair *pair,
                             const oracle_request *q, const oracle_ouroboros *m,
                             oracle_rounds *trace)
{
    const char *what = refused(pair, q, m);
    *trace = (oracle_rounds){0};
    if (what) snprintf(trace->error, sizeof trace->error, "%s", what);
    if (what || q->budget == 0) return; /* STOP-08 */

    oracle_seeded_lane uniforms = oracle_seeded(q->seed);
    oracle_request drafting = *q;
    oracle_trace said = {.steps = 0}, drafted = {.steps = 0};
    oracle_method lookahead = {.name = ORACLE_LOOKAHEAD,
                               .size = {m->W, m->N, m->W},
                               .given = m->given,
                               .given_n = m->given_n};
    oracle_preset(&lookahead, "paper"); /* which has the switches of OUR-05 but these two */
    lookahead.sw[LAH_BONUS] = m->sw[OUR_DRAFT_BONUS];
    lookahead.sw[LAH_INIT] =
        m->sw[OUR_INIT] == OUR_INIT_GIVEN ? LAH_INIT_GIVEN : LAH_INIT_PROMPT;
    drafting.budget = INT32_MAX;
    drafting.positions = pair->draft_positions;
    drafting.rows = pair->draft_rows;
    drafting.sampling.temperature = 0;
    ouroboros o = {.m = m,
                   .d = {.lm = pair->target, .q = q, .trace = &said, .lane = &uniforms.base},
                   .line = {.lm = pair->draft,
                            .q = &drafting,
                            .method = &lookahead,
                            .trace = &drafted,
                            .lane = &uniforms.base}};
    oracle_append(&o.d.history, q->prompt, q->n);
    o.drafter = oracle_lookahead_open(&o.line);
    o.pool = oracle_lookahead_pool(o.drafter);
    take_pool(x, m, pair->target->V, o.pool);
    oracle_lookahead_show(o.drafter, &trace->window0);
    oracle_pool_copy(&trace->pool0, o.pool);
    while (!o.d.ended) run_round(&o, another_round(trace));
    x->pool = *o.pool;
    *o.pool = (oracle_pool){0};
    oracle_lookahead_close(o.drafter);
    oracle_list_free(&o.d.history);
    oracle_list_free(&o.line.history);
    trace->tokens = said.tokens;
    memcpy(trace->error, said.error, sizeof trace->error);
    oracle_trace_free(&drafted);
}

void oracle_ouroboros_trace(const oracle_lm *target, const oracle_request *q,
                            const oracle_method *m, oracle_trace *trace)
{
    const int32_t *z = m->size;
    const oracle_pair pair = {target, m->draft, 0, 0};
    oracle_ouroboros o = {
        .gamma = z[0], .W = z[1], .N = z[2], .K = z[3], .given = m->given, .given_n = m->given_n};
    oracle_instance x = {.warm = false};
    oracle_rounds rounds;
    memcpy(o.sw, m->sw, sizeof o.sw);
    oracle_ouroboros_decode(&x, &pair, q, &o, &rounds);
    *trace = (oracle_trace){.tokens = rounds.tokens,
                            .window0 = rounds.window0,
                            .pool0 = rounds.pool0,
                            .steps = rounds.rounds,
                            .step = oracle_take((size_t)rounds.rounds + 1, sizeof *trace->step)};
    memcpy(trace->error, rounds.error, sizeof trace->error);
    for (int32_t i = 0; i < rounds.rounds; i++) {
        oracle_round *r = &rounds.round[i];
        trace->step[i] = r->step;
        trace->step[i].drafts = r->drafts;
        r->step = (oracle_step){.accepted = 0};
        r->drafts = (oracle_list){0};
    }
    rounds.tokens = (oracle_list){0}; /* they are the trace's now */
    rounds.window0 = (oracle_lists){0};
    rounds.pool0 = (oracle_pool){0};
    oracle_rounds_free(&rounds);
    oracle_pool_free(&x.pool);
}

bool oracle_rounds_alike(const oracle_rounds *a, const oracle_rounds *b)
{
    bool same = !strcmp(a->error, b->error) && a->rounds == b->rounds &&
                oracle_alike(&a->tokens, &b->tokens) &&
                oracle_lists_alike(&a->window0, &b->window0) &&
                oracle_pool_alike(&a->pool0, &b->pool0);
    for (int32_t i = 0; same && i < a->rounds; i++) {
        const oracle_round *r = &a->round[i], *s = &b->round[i];
        same = oracle_alike(&r->drafts, &s->drafts) && r->draft_steps == s->draft_steps &&
               oracle_lists_alike(&r->suffixes, &s->suffixes) &&
               oracle_lists_alike(&r->refined, &s->refined) &&
               oracle_lists_alike(&r->inspired, &s->inspired) &&
               oracle_step_alike(&r->step, &s->step);
    }
    return same;
}

void oracle_rounds_free(oracle_rounds *trace)
{
    for (int32_t i = 0; i < trace->rounds; i++) {
        oracle_round *r = &trace->round[i];
        oracle_list_free(&r->drafts);
        oracle_lists_free(&r->suffixes);
        oracle_lists_free(&r->refined);
        oracle_lists_free(&r->inspired);
        oracle_step_free(&r->step);
    }
    free(trace->round);
    oracle_lists_free(&trace->window0);
    oracle_pool_free(&trace->pool0);
    oracle_list_free(&trace->tokens);
    *trace = (oracle_rounds){0};
}
