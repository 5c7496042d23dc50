/* engine.law - an engine above temperature 0: the first k = gamma + 2 tokens after a prompt, by
 * one of the methods the first k of its cell, have the joint law of the target,
 * served under the request's sampling (LAY-08, LAH-28, LKP-07).
 *
 * Vocabularies are small, or top-k makes them so: every prefix of up to k tokens is a context
 * of its own, and its row is the oracle's: the network's logits over that very path, served
 * without roundings. So nothing is approximated, and nothing pooled. One e-process bets at each
 * context, the others at the first token given the requests before (neighbours.h).
 * Chi-square looks at all k tokens together, at the first two, and at pairs of neighbouring
 * requests (STAT-01, STAT-06). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_rows.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_cause.h"
#include "conformance/stats/chi2.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/neighbours.h"
#include "conformance/stats/power.h"
#include "conformance/wire/clock.h"

typedef struct {
    int32_t method, sizes[3], k;
    bool itself; /* the target drafts for itself */
} without; /* a chain of a draft model's: k tokens by a method */
/* clang-format off */
#define DRAFTS {0}, 0

typedef struct {
    const char *more; /* of its id: what comes behind pair, drafts and method */
    engine_pair pair;
    int32_t gamma, prompt;
    iut_sampling sampling;
    int64_t n[3]; /* by level; 0: not at it */
    without by;
    uint64_t head; /* of a pruned pair that was drawn: what its draft's own ids follow from; 0: those of "pruned" */
} cell;

static const cell cells[] = {
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {1000, 3000, 1000000}, DRAFTS},
    {"", PAIR_FEW, 1, 3, {1, 0, 1, 0}, {3000, 10000, 1000000}, DRAFTS},
    {"-minp0.1", PAIR_FEW, 1, 2, {0.7f, 0, 1, 0.1f}, {1000, 3000, 1000000}, DRAFTS},
    {"-topp0.8", PAIR_FEW, 1, 3, {1, 0, 0.8f, 0}, {1000, 3000, 1000000}, DRAFTS},
    {"-T0.7-top4", PAIR_FEW, 2, 0, {0.7f, 4, 1, 0}, {3000, 5000, 1000000}, DRAFTS},
    {"-T1.3-topp0.7", PAIR_FEW, 2, 3, {1.3f, 0, 0.7f, 0}, {1000, 3000, 1000000}, DRAFTS},
    {"-top3", PAIR_FEW, 4, 1, {1, 3, 1, 0}, {1000, 5000, 1000000}, DRAFTS},
    {"-top4", PAIR_TRAINED, 2, 2, {1, 4, 1, 0}, {0, 1500, 100000}, DRAFTS},
    {"-T0.8-top3", PAIR_TRAINED, 4, 3, {0.8f, 3, 1, 0}, {0, 0, 100000}, DRAFTS},
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {3000, 6000, 1000000},
     {IUT_LOOKAHEAD, {9, 3, 8}, 4, false}, 0},
    {"-top3", PAIR_FEW, 0, 3, {1, 3, 1, 0}, {2500, 6000, 1000000},
     {IUT_LOOKAHEAD, {9, 3, 8}, 4, false}, 0},
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {2000, 6000, 1000000},
     {IUT_LOOKAHEAD, {9, 2, 8}, 3, false}, 0},
    {"-T1.2", PAIR_FEW, 0, 3, {1.2f, 0, 1, 0}, {0, 6000, 1000000},
     {IUT_LOOKAHEAD, {12, 2, 8}, 3, false}, 0},
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {1500, 6000, 1000000},
     {IUT_JACOBI, {4}, 4, false}, 0},
    {"-top3", PAIR_FEW, 0, 3, {1, 3, 1, 0}, {1500, 6000, 1000000},
     {IUT_JACOBI, {3}, 4, false}, 0},
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {1500, 6000, 1000000},
     {IUT_LOOKUP, {2, 2}, 4, false}, 0},
    {"-T0.8", PAIR_FEW, 0, 3, {0.8f, 0, 1, 0}, {2500, 6000, 1000000},
     {IUT_LOOKUP, {1, 2}, 3, false}, 0},
    {"", PAIR_FEW, 0, 3, {1, 0, 1, 0}, {1500, 5000, 1000000},
     {IUT_LOOKUP, {1, 2}, 3, false}, 0},
    {"", PAIR_FEW, 2, 3, {1, 0, 1, 0}, {500, 6000, 1000000},
     {IUT_OUROBOROS, {3, 3, 2}, 4, false}, 0},
    {"-T0.7-minp0.1", PAIR_FEW, 1, 2, {0.7f, 0, 1, 0.1f}, {1000, 6000, 1000000},
     {IUT_OUROBOROS, {8, 2, 4}, 5, true}, 0},
    {"", PAIR_PRUNED, 1, 3, {1, 0, 1, 0}, {1000, 4000, 1000000}, DRAFTS},
    {"-T0.7", PAIR_PRUNED, 2, 1, {0.7f, 0, 1, 0}, {2000, 6000, 1000000}, DRAFTS},
    {"-top3", PAIR_PRUNED, 2, 2, {1, 3, 1, 0}, {0, 4000, 1000000}, DRAFTS},
    {"-long", PAIR_FEW, 1, 3, {1, 0, 1, 0}, {0, 0, 10000000}, DRAFTS},
};
/* clang-format on */
/* The tables of chi-square: all tokens, the first two, and those of neighbouring requests. */
enum { ALL, TWO, NEIGHBOURS, TABLES = NEIGHBOURS + NEIGHBOUR_TABLES };
enum { CELLS = sizeof cells / sizeof *cells, MOST_TOKENS = 6, MOST_V = 258, MOST_DRAWN_GAMMA = 2 };
/* Variants of a drawn case: of pairs with chains of drafts, then of each method. */
enum { SAMPLINGS = ENGINE_TEMPERATURES * ENGINE_FILTERS, DRAWN_FEW = CELLS, DRAWN_PRUNED = DRAWN_FEW + SAMPLINGS,
       DRAWN_METHODS = DRAWN_PRUNED + SAMPLINGS };
enum { METHOD_TOKENS = 4 };
enum { FEW_REQUESTS = 8, MANY_REQUESTS = 128 }; /* of a call */
static const double QUICK = 0.5;                /* seconds: the next call may be larger */

static void plan(check_plan *p, check_level level)
{
    for (int32_t i = 0; i < CELLS; i++) {
        if (cells[i].n[level] == 0) continue;
        const cell *of = &cells[i];
        check_case *c =
            engine_plan_case(p, &check_engine_law, of->pair, of->gamma, of->by.method, of->by.sizes, of->more);
        c->variant = i;
        c->n = cells[i].n[level];
        c->cost = 60.0 * (double)c->n;
        c->tables = TABLES;
        c->statistical = true;
    }
}

/* Of a pair with drafts: every temperature and every set of filters in turn (VER-11). */
static void draw_pair(check_plan *p, check_draw *d, engine_pair pair, int32_t count)
{
    static const int64_t n[] = {500, 3000, 100000};
    for (int32_t i = 0; i < count; i++) {
        const int32_t temperature = draw_place(d, DRAW_FIRST, ENGINE_TEMPERATURES),
                      filters = draw_place(d, DRAW_SECOND, ENGINE_FILTERS),
                      gamma = draw_gamma(d, pair == PAIR_PRUNED, MOST_DRAWN_GAMMA);
        check_case *c = draw_case(p, d, &check_engine_law, "%s-g%d%s%s%s", engine_pair_name[pair], (int)gamma,
                                  filters & ENGINE_TOP_K ? "-top" : "",
                                  filters & ENGINE_TOP_P ? "-topp" : "",
                                  filters & ENGINE_MIN_P ? "-minp" : "");
        c->V = engine_pair_V[pair];
        c->gamma = gamma;
        c->variant = (pair == PAIR_PRUNED ? DRAWN_PRUNED : DRAWN_FEW) + temperature * ENGINE_FILTERS + filters;
        c->n = n[d->level];
        c->cost = 60.0 * (double)c->n;
        c->tables = TABLES;
        c->statistical = true;
    }
}

/* Every method in turn, under any temperature and filters. */
static void draw_methods(check_plan *p, check_draw *d, int32_t rounds)
{
    static const int64_t n[] = {500, 3000, 100000};
    for (int32_t i = 0; i < rounds * (ENGINE_METHODS - 1); i++) {
        const int32_t place = i % (ENGINE_METHODS - 1), method = engine_methods[1 + place],
                      temperature = probe_below(&d->rng, ENGINE_TEMPERATURES),
                      filters = probe_below(&d->rng, ENGINE_FILTERS),
                      gamma = gamma_within(probe_below(&d->rng, MOST_DRAWN_GAMMA + 1), d->iut);
        check_case *c = draw_case(p, d, &check_engine_law, "few-%s%s%s%s", engine_method_name(method),
                                  filters & ENGINE_TOP_K ? "-top" : "", filters & ENGINE_TOP_P ? "-topp" : "",
                                  filters & ENGINE_MIN_P ? "-minp" : "");
        c->V = engine_pair_V[PAIR_FEW];
        c->gamma = engine_drafts(method) ? gamma : 0;
        c->variant = DRAWN_METHODS + place * SAMPLINGS + temperature * ENGINE_FILTERS + filters;
        c->n = n[d->level];
        c->cost = 60.0 * (double)c->n;
        c->tables = TABLES;
        c->statistical = true;
    }
}

static void draw_some(check_plan *p, check_draw *d)
{
    static const int32_t few[] = {4, 16, 48}, pruned[] = {1, 3, 12}, rounds[] = {1, 3, 12};
    draw_pair(p, d, PAIR_FEW, few[d->level]);
    draw_pair(p, d, PAIR_PRUNED, pruned[d->level]);
    draw_methods(p, d, rounds[d->level]);
}

static engine_pair pair_of(const check_case *c)
{
    return c->variant < CELLS                                        ? cells[c->variant].pair
           : c->variant >= DRAWN_PRUNED && c->variant < DRAWN_METHODS ? PAIR_PRUNED
                                                                      : PAIR_FEW;
}

static int32_t method_of(const check_case *c)
{
    return c->variant < CELLS           ? cells[c->variant].by.method
           : c->variant < DRAWN_METHODS ? 0
                                        : engine_methods[1 + (c->variant - DRAWN_METHODS) / SAMPLINGS];
}

/* A drawn case has the sampling, the prompt and the head that its seed says. */
static cell cell_of(const check_case *c, const check_context *x)
{
    if (c->variant < CELLS) return cells[c->variant];
    const int32_t drawn = (c->variant - CELLS) % SAMPLINGS;
    uint64_t rng = check_seed(x, c, 2);
    cell of = {.pair = pair_of(c), .gamma = c->gamma, .prompt = probe_below(&rng, LM_PROMPTS)};
    of.sampling = engine_sampling(drawn / ENGINE_FILTERS, drawn % ENGINE_FILTERS, &rng);
    if (of.pair == PAIR_PRUNED) of.head = probe_next(&rng) | 1;
    of.by.method = method_of(c), of.by.k = METHOD_TOKENS;
    if (of.by.method) engine_draw_sizes(of.by.method, &rng, of.by.sizes);
    return of;
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const engine_pair pair = pair_of(c);
    const bool own_head = c->drawn && pair == PAIR_PRUNED;
    return engine_claimed(tested, pair, c->gamma, why, size) &&
           (!own_head || lm_serves_kind(tested, IUT_LLAMA, engine_pair_V[pair], why, size)) &&
           engine_claims_law(tested, method_of(c), why, size);
}

/* ---- The tree of prefixes. ------------------------------------------------------- */

/* Context 0 is the prompt. Leaves are paths of k tokens. */
typedef struct {
    int32_t V, k, contexts, leaves, room; /* room: contexts that the arrays have */
    bool too_close; /* a cut of a filter was, so that the tree is of no use */
    int32_t *next;  /* [contexts][V] context or, behind the last token, leaf; -1: p = 0 */
    double *p, *q;  /* [contexts][V] */
    double *leaf;   /* [leaves] probability */
    double *two;    /* [V * V] probability of the first two tokens, by token V + token */
    double *second; /* [V] law of the second token */
} tree;

static void tree_close(tree *t)
{
    free(t->next);
    free(t->p);
    free(t->q);
    free(t->leaf);
    free(t->two);
    free(t->second);
    *t = (tree){0};
}

/* Contexts of depth below k and leaves, when each row has `most` tokens at most. */
static bool tree_open(tree *t, int32_t V, int32_t k, int32_t most)
{
    int32_t contexts = 0, leaves = 1;
    for (int32_t d = 0; d < k; d++) contexts += leaves, leaves *= most;
    const size_t entries = (size_t)contexts * (size_t)V;
    *t = (tree){.V = V, .k = k, .room = contexts};
    t->next = malloc(entries * sizeof *t->next);
    t->p = malloc(entries * sizeof *t->p);
    t->q = malloc(entries * sizeof *t->q);
    t->leaf = malloc((size_t)leaves * sizeof *t->leaf);
    t->two = calloc((size_t)V * (size_t)V, sizeof *t->two);
    t->second = calloc((size_t)V, sizeof *t->second);
    return t->next && t->p && t->q && t->leaf && t->two && t->second;
}

/* The two networks on their way down the tree. */
typedef struct {
    tree *t;
    engine_rows rows;
    oracle_sampling sampling;
    int32_t at;  /* positions that both hold */
    int32_t end; /* after it every token is it again (CLM-12); -1: no token is */
} walker;

static bool serve(walker *w, int which, int32_t token, double *row)
{
    engine_rows_step(&w->rows, which, token);
    w->t->too_close =
        which == ROWS_TARGET && !engine_rows_clear(&w->rows, &w->sampling, engine_fine);
    return !w->t->too_close && engine_rows_serve(&w->rows, &w->sampling, row);
}

/* Walks the subtree behind `token`, which ends a prefix of `depth` tokens of probability
 * `mass`; its context, or -1. */
static int32_t walk(walker *w, int32_t token, int32_t depth, double mass)
{
    tree *t = w->t;
    const int32_t c = t->contexts, V = t->V;
    if (c == t->room) {
        result_set(w->rows.r, STATE_ERROR, "a row has more tokens than planned");
        return -1;
    }
    t->contexts++;
    double *p = t->p + (int64_t)c * V, *q = t->q + (int64_t)c * V;
    const bool ended = depth > 0 && token == w->end;
    for (int32_t x = 0; ended && x < V; x++) p[x] = q[x] = x == token;
    if (!ended && (!serve(w, ROWS_TARGET, token, p) || !serve(w, ROWS_DRAFT, token, q)))
        return -1;
    w->at += !ended;
    for (int32_t x = 0; x < V; x++) {
        int32_t *next = &t->next[(int64_t)c * V + x];
        *next = -1;
        if (p[x] == 0) continue;
        if (depth + 1 == t->k) {
            t->leaf[ *next = t->leaves++] = mass * p[x];
            continue;
        }
        *next = walk(w, x, depth + 1, mass * p[x]);
        if (*next < 0) return -1;
    }
    w->at -= !ended;
    engine_rows_cut(&w->rows, w->at);
    return c;
}

static void fill_two(tree *t)
{
    const int32_t V = t->V;
    for (int32_t a = 0; a < V; a++)
        for (int32_t b = 0; t->p[a] > 0 && b < V; b++) {
            const double both = t->p[a] * t->p[(int64_t)t->next[a] * V + b];
            t->two[a * V + b] = both;
            t->second[b] += both;
        }
}

/* Both networks read the prompt but for its last token, from where the tree is walked. */
static bool grow(tree *t, engine *e, const engine_prompt *prompt, const iut_sampling *s)
{
    walker w = {.t = t,
                .sampling = {s->temperature, s->top_k, s->top_p, s->min_p},
                .at = prompt->n - 1,
                .end = e->end};
    bool ok = engine_rows_open(&w.rows, e, true, prompt->n + t->k);
    if (ok) {
        engine_rows_read(&w.rows, prompt->token, w.at);
        ok = walk(&w, prompt->token[prompt->n - 1], 0, 1) == 0;
    }
    engine_rows_close(&w.rows);
    if (ok) fill_two(t);
    return ok;
}

/* ---- Counting. ------------------------------------------------------------------- */

typedef struct {
    engine e;
    const check_case *c;
    cell of;
    engine_prompt prompt;
    engine_request q;
    tree t;
    st_ep *ep;
    neighbours before;     /* the first token, given the requests before */
    int64_t *leaf, *two;   /* counts, as the tree has probabilities */
    int64_t first[MOST_V]; /* of the first token */
    int64_t n;
    int32_t call; /* requests of the next call */
    double log_e;
    int most; /* the context of `before` that has more of it than the tokens; -1: none has */
} job;

static bool lost(job *j)
{
    result_set(j->e.r, STATE_ERROR, "counts were lost: the suite is short of memory");
    return false;
}

static bool count(job *j, const int32_t *x)
{
    tree *t = &j->t;
    int32_t context = 0;
    for (int32_t i = 0; i < t->k; i++) {
        const int32_t next = t->next[(int64_t)context * t->V + x[i]];
        if (next < 0) {
            result_set(j->e.r, STATE_FAIL,
                       "token %d of a stream is %d, which has probability 0 there (LAY-08)",
                       (int)i, (int)x[i]);
            return false;
        }
        if (!st_ep_add(j->ep, context, x[i], 1)) return lost(j);
        context = next;
    }
    if (!neighbours_add(&j->before, x[0], x[1])) return lost(j);
    j->leaf[context]++;
    j->two[x[0] * t->V + x[1]]++;
    j->first[x[0]]++;
    j->n++;
    return true;
}

/* What the tree has behind an end (CLM-12). */
static void fill_ends(const job *j, int32_t *out, const int32_t *length, int32_t n)
{
    for (int32_t i = 0; j->e.end >= 0 && i < n; i++)
        for (int32_t t = length[i]; t < j->t.k; t++) out[i * j->t.k + t] = j->e.end;
}

/* Calls grow while they are quick: a slow engine must not run into the time limit. */
static bool advance(job *j, int64_t until)
{
    int32_t out[MANY_REQUESTS * MOST_TOKENS], length[MANY_REQUESTS];
    while (j->n < until) {
        const int32_t n = until - j->n < j->call ? (int32_t)(until - j->n) : j->call;
        const double start = clock_now();
        if (!engine_repeat(&j->e, &j->q, &j->prompt, n, out, length)) return false;
        fill_ends(j, out, length, n);
        for (int32_t i = 0; i < n; i++)
            if (!count(j, out + i * j->t.k)) return false;
        j->q.seed += (uint64_t)n;
        if (2 * j->call <= MANY_REQUESTS && clock_now() - start < QUICK) j->call *= 2;
    }
    return true;
}

/* ---- Judgement. ------------------------------------------------------------------ */

/* STAT-03: below the floor of the declared arithmetic there is no strict null to test. */
static bool strict(job *j)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const double draws = (double)j->c->n * j->t.k;
    for (int32_t c = 0; c < j->t.contexts; c++) {
        const st_floor f =
            st_floor_row(j->t.p + (int64_t)c * j->t.V, j->t.q + (int64_t)c * j->t.V, j->t.V,
                         law_arith(m), law_bits(m), true);
        j->e.r->nats = fmax(j->e.r->nats, draws * f.kl);
        if (isnan(f.tv))
            result_set(j->e.r, STATE_ERROR, "a floor could not be computed");
        else if (st_floor_eps(f, draws) > 0)
            result_set(j->e.r, STATE_NOT_CLAIMED,
                       "uniforms of %d bits and the declared arithmetic are too coarse for "
                       "%lld draws (STAT-03)",
                       law_bits(m), (long long)draws);
        else
            continue;
        return false;
    }
    return true;
}

static bool open_processes(job *j)
{
    const double **rows = malloc(2 * (size_t)j->t.contexts * sizeof *rows);
    for (int32_t c = 0; rows && c < j->t.contexts; c++) {
        rows[c] = j->t.p + (int64_t)c * j->t.V;
        rows[j->t.contexts + c] = j->t.q + (int64_t)c * j->t.V;
    }
    if (rows)
        j->ep =
            st_ep_new(j->t.contexts, NULL, j->t.contexts, j->t.V, rows, rows + j->t.contexts);
    free(rows);
    j->leaf = calloc((size_t)j->t.leaves, sizeof *j->leaf);
    j->two = calloc((size_t)j->t.V * (size_t)j->t.V, sizeof *j->two);
    if (j->ep && j->leaf && j->two && neighbours_open(&j->before, j->t.V, j->t.p, j->t.second))
        return true;
    result_set(j->e.r, STATE_ERROR, "the suite is short of memory");
    return false;
}

static void figures(job *j, const st_table *worst)
{
    const check_context *x = j->e.x;
    check_result *r = j->e.r;
    const st_tv tv = st_tv_observed(j->first, j->t.p, j->t.V, 0.01);
    r->compared = j->n;
    r->log_e = j->log_e;
    result_figure(r, "n", (double)j->n);
    result_figure(r, "log_e", j->log_e);
    result_figure(r, "tv", tv.tv);
    result_figure(r, "tv_lo", tv.lo);
    result_figure(r, "tv_hi", tv.hi);
    /* Half of the case's weight has six views, each of which averages 20 kappas. */
    const st_reach tv90 =
        st_row_tv90((double)j->n, j->t.p, j->t.V, x->log_e_fail + log(12 * 20));
    result_figure(r, "tv_power", fmin(1, tv90.along));
    result_figure(r, "tv_power_any", fmin(1, tv90.any));
    result_figure(r, "contexts", j->t.contexts);
    result_figure(r, "tables", TABLES);
    result_figure(r, "x2", worst->x2);
    result_figure(r, "df", worst->df);
    result_figure(r, "log_p", worst->log_p);
}

static st_table table_of(const job *j, int i)
{
    const tree *t = &j->t;
    return i == ALL   ? st_chi2_table(j->leaf, t->leaf, t->leaves, ST_MIN_EXPECTED)
           : i == TWO ? st_chi2_table(j->two, t->two, t->V * t->V, ST_MIN_EXPECTED)
                      : neighbours_table(&j->before, i - NEIGHBOURS);
}

static void judge(job *j)
{
    static const char *const name[TABLES] = {"all tokens", "first two tokens",
                                             "first tokens of neighbours",
                                             "second token and the next request's first"};
    check_result *r = j->e.r;
    const check_context *x = j->e.x;
    const int32_t T = x->tables_total > 0 ? x->tables_total : 1;
    st_table worst = table_of(j, ALL);
    int of = ALL;
    for (int i = TWO; i < TABLES; i++) {
        const st_table t = table_of(j, i);
        if (isnan(worst.log_p) || t.log_p >= worst.log_p) continue;
        worst = t;
        of = i;
    }
    figures(j, &worst);
    r->log_p = worst.log_p;
    if (isnan(worst.log_p))
        result_set(r, STATE_ERROR, "a chi-square table could not be computed");
    else if (j->log_e >= x->log_e_fail && j->most >= 0)
        result_set(
            r, STATE_FAIL,
            "not the target's law: ln E = %.4g >= %.4g after %lld streams of %d tokens; "
            "most in the first token given the %s token of the request %d before: requests "
            "depend on one another, or the first token's law is wrong (LAY-08, STAT-02)",
            j->log_e, x->log_e_fail, (long long)j->n, (int)j->t.k,
            j->most == NEIGHBOUR_SECOND ? "second" : "first",
            j->most == NEIGHBOUR_SECOND ? 1 : j->most + 1);
    else if (j->log_e >= x->log_e_fail)
        result_set(r, STATE_FAIL,
                   "not the target's law: ln E = %.4g >= %.4g after %lld streams of %d tokens; "
                   "most in %s: X2 = %.4g on %d cells (LAY-08, STAT-02)",
                   j->log_e, x->log_e_fail, (long long)j->n, (int)j->t.k, name[of], worst.x2,
                   worst.cells);
    else if (st_chi2_fails(worst.log_p, T))
        result_set(
            r, STATE_FAIL,
            "not the target's law: %s: X2 = %.6g on %d cells, ln p = %.4g < ln(1e-8/%d), "
            "n = %lld (LAY-08, STAT-01)",
            name[of], worst.x2, worst.cells, worst.log_p, (int)T, (long long)j->n);
    else
        result_set(r, STATE_PASS,
                   "%lld streams of %d tokens, ln E = %.3g (line %.3g); worst of %d tables %s: "
                   "X2 = %.4g on %d cells, ln p = %.3g",
                   (long long)j->n, (int)j->t.k, j->log_e, x->log_e_fail, TABLES, name[of],
                   worst.x2, worst.cells, worst.log_p);
}

/* ---- What is told of a FAIL (STAT-08). ------------------------------------------- */

enum { WORST = 2 };
typedef struct {
    double excess, expected;
    int64_t seen;
    int32_t depth, path[MOST_TOKENS]; /* the tokens before, and the token */
} odd_one;

typedef struct {
    const job *j;
    bool drafts; /* from q */
    law_random g;
    st_pool sum;
    odd_one worst[WORST]; /* the worst first */
    int32_t path[MOST_TOKENS];
    bool ok;
} telling;

static void compare(telling *w, int32_t depth, const double *p, const int32_t *count, double n)
{
    for (int32_t x = 0; x < w->j->t.V; x++) {
        const double excess = law_excess(count[x], n, p[x]);
        odd_one odd = {.excess = excess, .expected = n * p[x], .seen = count[x], .depth = depth};
        memcpy(odd.path, w->path, sizeof odd.path);
        odd.path[depth] = x;
        for (int i = 0; i < WORST; i++)
            if (fabs(odd.excess) > fabs(w->worst[i].excess)) {
                const odd_one next = w->worst[i];
                w->worst[i] = odd;
                odd = next;
            }
    }
}

/* Counts the tokens behind context c, which follow `depth` tokens, and all that come later. Returns how often it was
 * reached. */
static int64_t tell_context(telling *w, int32_t c, int32_t depth, const double *before, law_steps steps)
{
    const tree *t = &w->j->t;
    const double *p = t->p + (int64_t)c * t->V, *q = t->q + (int64_t)c * t->V;
    int32_t count[MOST_V] = {0};
    int64_t n = 0;
    double overlap = 0;
    for (int32_t x = 0; x < t->V; x++) overlap += fmin(p[x], q[x]);
    law_steps next = steps;
    law_steps_next(&next, overlap);
    for (int32_t x = 0; x < t->V; x++) {
        const int32_t to = t->next[(int64_t)c * t->V + x];
        if (to < 0) continue;
        w->path[depth] = x;
        count[x] = (int32_t)(depth + 1 == t->k ? w->j->leaf[to] : tell_context(w, to, depth + 1, p, next));
        n += count[x];
    }
    const double bonus = steps.at[steps.gamma];
    const st_pool_row row = {.V = t->V,
                             .p = p,
                             .q = q,
                             .before = before,
                             .place = w->drafts ? law_place_of(steps.gamma, depth) : ST_PLAIN,
                             .drafted = w->drafts ? 1 - bonus : 0,
                             .bonus = w->drafts ? bonus : 0};
    w->ok = w->ok && law_add_row(&w->sum, &row, count, &w->g);
    compare(w, depth, p, count, (double)n);
    return n;
}

static void describe(const odd_one *odd, char *text, size_t size)
{
    char path[12 * MOST_TOKENS] = "";
    size_t used = 0;
    for (int32_t i = 0; i < odd->depth; i++)
        used += (size_t)snprintf(path + used, sizeof path - used, " %d", (int)odd->path[i]);
    snprintf(text, size, "token %d%s%s: expected %.5g, seen %lld", (int)odd->path[odd->depth],
             odd->depth ? " behind" : " at first", path, odd->expected, (long long)odd->seen);
}

static void tell(const job *j)
{
    char text[WORST][160];
    check_result *r = j->e.r;
    const size_t used = strlen(r->detail);
    telling w = {.j = j, .drafts = j->c->gamma > 0 && !j->q.method, .ok = true};
    law_steps steps;
    if (r->state != STATE_FAIL) return;
    law_seed(&w.g, check_seed(j->e.x, j->c, 3));
    law_steps_begin(&steps, j->c->gamma);
    tell_context(&w, 0, 0, NULL, steps);
    for (int i = 0; i < WORST; i++) describe(&w.worst[i], text[i], sizeof text[i]);
    snprintf(r->detail + used, sizeof r->detail - used, "; worst: %s; %s", text[0], text[1]);
    if (w.ok) law_name_cause(&w.sum, j->log_e, r);
}

/* The tokens of a request, and the first one given the requests before, share the weight. */
static void look(job *j)
{
    int most;
    const double log_e[] = {st_ep_log_e(j->ep), neighbours_log_e(&j->before, &most)};
    j->log_e = st_log_mean(log_e, NULL, 2);
    j->most = log_e[1] > log_e[0] ? most : -1;
}

static void sample(job *j)
{
    const check_context *x = j->e.x;
    while (j->n < j->c->n && !(j->log_e >= x->log_e_fail)) {
        if (!advance(j, law_checkpoint(j->n, j->c->n, x->level))) return;
        look(j);
    }
    judge(j);
    tell(j);
}

/* The tree of the first prompt, from the planned one on, whose cuts are clear. */
static bool prepare(job *j)
{
    const iut_sampling *s = &j->of.sampling;
    uint64_t rng = check_seed(j->e.x, j->c, 0);
    if (j->c->V > MOST_V || j->q.k > MOST_TOKENS) {
        result_set(j->e.r, STATE_ERROR, "the cell is beyond what this check was made for");
        return false;
    }
    const int32_t first = j->of.prompt, most = s->top_k ? s->top_k : j->c->V;
    for (int32_t i = first; i < first + LM_PROMPTS; i++) {
        engine_make_prompt(&j->e, i, &rng, &j->prompt);
        if (!tree_open(&j->t, j->c->V, j->q.k, most))
            result_set(j->e.r, STATE_ERROR, "the suite is short of memory");
        else if (grow(&j->t, &j->e, &j->prompt, s))
            return true;
        if (!j->t.too_close) return false;
        tree_close(&j->t);
    }
    result_set(j->e.r, STATE_ERROR,
               "every prompt has a cut of a filter that is too close to call");
    return false;
}

static engine_request request_of(const cell *of, uint64_t seed)
{
    const without *by = &of->by;
    engine_request q = {.gamma = of->gamma,
                        .k = by->method ? by->k : of->gamma + 2,
                        .eos = -1,
                        .sampling = of->sampling,
                        .seed = seed,
                        .method = by->method,
                        .itself = by->itself};
    memcpy(q.sizes, by->sizes, sizeof q.sizes);
    return q;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    j->c = c;
    j->of = cell_of(c, x);
    j->call = FEW_REQUESTS;
    j->q = request_of(&j->of, check_seed(x, c, 1));
    if (engine_open(&j->e, x, r, j->of.pair) && (!j->of.head || engine_draw_head(&j->e, j->of.head)) && prepare(j) &&
        strict(j) && open_processes(j))
        sample(j);
    tree_close(&j->t);
    st_ep_free(j->ep);
    neighbours_close(&j->before);
    free(j->leaf);
    free(j->two);
    free(j);
}

const check check_engine_law = {
    .name = "engine.law",
    .clauses =
        "LAY-08 LAW-01 LAW-02 LAW-03 LAW-05 RNG-07 STOP-03 STOP-04 LAY-01 STAT-01 STAT-02 STAT-04 "
        "CLM-09 CLM-12 CLM-14 CLM-19 VOC-01 VOC-02 VOC-03 DIST-15 DIST-16 "
        "JAC-07 ONEH-01 ONEH-02 ONEH-03 ONEH-04 ONEH-05 LAH-14 LAH-28 LKP-07 OUR-22",
    .summary = "an engine's first gamma+2 sampled tokens have the target's joint law",
    .plan = plan,
    .draw = draw_some,
    .claimed = claimed,
    .run = run,
};
