/* law.c - see law.h: counting, the two gates, what is printed (STAT-01 to STAT-04). */
#include "conformance/checks/law/law.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/law/law_cause.h"
#include "conformance/checks/law/law_speed.h"
#include "conformance/stats/chi2.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/power.h"
#include "conformance/stats/tolerance.h"

/* -- What is counted --------------------------------------------------------------- */

/* Pairs are counted in a square where that is small, else listed. */
enum { SQUARE = 1024, TRIE_NODES = 1024, TRIE_CELLS = 1 << 21 };

typedef struct {
    int32_t first, second;
} pair;

typedef struct {
    const panel *a;
    int32_t k;
    int64_t n, room; /* streams counted, streams declared */
    panel_trie trie;
    int32_t *fresh;    /* [contexts][V] counts since the last look */
    int32_t *placed;   /* [k][S][V] */
    int64_t *marginal; /* [k][V] sums of it, for the tables */
    int32_t *square;   /* [k-1][V][V], V <= SQUARE */
    pair *list;        /* [k-1][room], V > SQUARE */
    st_ep *joint;      /* strict null: contexts of the trie */
    st_ep *pooled;     /* contexts are states; a wide trie has few nodes and goes without */
    st_tol *tolerant;  /* tolerance null, else NULL */
    double eps;        /* its largest tolerance; 0: strict */
    bool lost;         /* counts that a process did not take */
} tally;

static void tally_close(tally *t)
{
    panel_trie_free(&t->trie);
    free(t->fresh);
    free(t->placed);
    free(t->marginal);
    free(t->square);
    free(t->list);
    st_ep_free(t->joint);
    st_ep_free(t->pooled);
    st_tol_free(t->tolerant);
}

static bool open_counts(tally *t)
{
    size_t V = (size_t)t->a->view.V, pairs = (size_t)t->k - 1;
    int32_t nodes = TRIE_CELLS / t->a->view.V;
    nodes = nodes < 1 ? 1 : nodes > TRIE_NODES ? TRIE_NODES : nodes;
    if (!panel_trie_init(&t->trie, t->a, 0, t->k, (double)t->room, nodes)) return false;
    t->fresh = calloc((size_t)t->trie.contexts * V, sizeof *t->fresh);
    t->placed = calloc((size_t)t->k * (size_t)t->a->view.S * V, sizeof *t->placed);
    t->marginal = calloc((size_t)t->k * V, sizeof *t->marginal);
    if (t->a->view.V <= SQUARE)
        t->square = calloc(pairs * V * V + 1, sizeof *t->square);
    else
        t->list = malloc((pairs * (size_t)t->room + 1) * sizeof *t->list);
    return t->fresh && t->placed && t->marginal && (t->square || t->list);
}

/* eps[s] > 0 somewhere: the tolerance null. */
static bool open_processes(tally *t, const double *eps, bool strict)
{
    int32_t S = t->a->view.S, V = t->a->view.V;
    const double **p = malloc((size_t)S * sizeof *p), **q = malloc((size_t)S * sizeof *q);
    bool ok = p && q;
    for (int32_t s = 0; ok && s < S; s++) p[s] = panel_p(t->a, s), q[s] = panel_q(t->a, s);
    if (ok && strict) {
        t->joint = st_ep_new(t->trie.contexts, t->trie.row, S, V, p, q);
        if (V <= SQUARE) t->pooled = st_ep_new(S, NULL, S, V, p, q);
        ok = t->joint && (t->pooled || V > SQUARE);
    } else if (ok) {
        t->tolerant = st_tol_new(S, V, p, q, eps);
        ok = t->tolerant != NULL;
    }
    free(p);
    free(q);
    return ok;
}

static void tally_stream(tally *t, const int32_t *x)
{
    size_t V = (size_t)t->a->view.V, S = (size_t)t->a->view.S;
    int32_t context = 0, state = 0;
    for (int32_t i = 0; i < t->k; i++) {
        t->fresh[(size_t)context * V + (size_t)x[i]]++;
        t->placed[((size_t)i * S + (size_t)state) * V + (size_t)x[i]]++;
        state = panel_next(t->a, state, x[i]);
        context = panel_trie_step(&t->trie, context, x[i], state);
        if (i + 1 == t->k) break;
        if (t->square)
            t->square[((size_t)i * V + (size_t)x[i]) * V + (size_t)x[i + 1]]++;
        else
            t->list[(size_t)i * (size_t)t->room + (size_t)t->n] = (pair){x[i], x[i + 1]};
    }
    t->n++;
}

/* Hands the fresh counts on and looks: ln E. */
static double tally_look(tally *t)
{
    int32_t V = t->a->view.V;
    for (int32_t c = 0; c < t->trie.contexts; c++) {
        int32_t *n = t->fresh + (size_t)c * (size_t)V, state = t->trie.row[c];
        for (int32_t x = 0; x < V; x++) {
            if (n[x] == 0) continue;
            if (t->tolerant && !st_tol_add(t->tolerant, state, x, n[x])) t->lost = true;
            if (t->joint && !st_ep_add(t->joint, c, x, n[x])) t->lost = true;
            if (t->pooled && !st_ep_add(t->pooled, state, x, n[x])) t->lost = true;
        }
        memset(n, 0, (size_t)V * sizeof *n);
    }
    if (t->tolerant) return st_tol_log_e(t->tolerant);
    const double joint = st_ep_log_e(t->joint);
    if (!t->pooled) return joint;
    return st_log_mean((const double[]){joint, st_ep_log_e(t->pooled)}, NULL, 2);
}

/* What the streams that were read count at each position, whatever state it was in. */
static void sum_marginals(tally *t)
{
    const int32_t V = t->a->view.V, S = t->a->view.S;
    for (int32_t i = 0; i < t->k; i++)
        for (int32_t s = 0; s < S; s++) {
            const int32_t *n = t->placed + ((size_t)i * (size_t)S + (size_t)s) * (size_t)V;
            for (int32_t x = 0; x < V; x++) t->marginal[(size_t)i * (size_t)V + (size_t)x] += n[x];
        }
}

/* -- Tables ------------------------------------------------------------------------ */

/* The worst of the tables so far. */
typedef struct {
    st_table worst;
    char name[40];
    int32_t count;
    bool broken; /* a table could not be computed */
} tables;

static void tables_add(tables *b, st_table t, const char *format, int32_t position)
{
    b->count++;
    if (isnan(t.log_p)) b->broken = true;
    if (b->count > 1 && !(t.log_p < b->worst.log_p)) return;
    b->worst = t;
    snprintf(b->name, sizeof b->name, format, position, position + 1);
}

/* Pairs at positions i, i+1, sorted by their first token. *n of them; NULL: no memory. */
static st_pair *square_pairs(const int32_t *square, int32_t V, size_t *n)
{
    size_t cells = (size_t)V * (size_t)V, used = 0;
    for (size_t c = 0; c < cells; c++) used += square[c] > 0;
    st_pair *out = malloc((used + 1) * sizeof *out);
    *n = 0;
    for (size_t c = 0; out && c < cells; c++)
        if (square[c] > 0)
            out[(*n)++] =
                (st_pair){(int32_t)(c / (size_t)V), (int32_t)(c % (size_t)V), square[c]};
    return out;
}

/* A counting sort: count[x] is how often x came first. */
static st_pair *listed_pairs(const pair *list, size_t n, const int64_t *count, int32_t V)
{
    st_pair *out = malloc((n + 1) * sizeof *out);
    int64_t *at = malloc((size_t)V * sizeof *at), sum = 0;
    for (int32_t x = 0; out && at && x < V; x++) at[x] = sum, sum += count[x];
    for (size_t i = 0; out && at && i < n; i++)
        out[at[list[i].first]++] = (st_pair){list[i].first, list[i].second, 1};
    if (!at) free(out), out = NULL;
    free(at);
    return out;
}

/* The law of token i+1 depends on the class of token i: one group a class, the rows of its
 * layer. */
static st_table pair_table(const tally *t, int32_t i)
{
    int32_t V = t->a->view.V, C = t->a->view.C;
    size_t n = (size_t)t->n, v = (size_t)V;
    st_pair *pairs = t->square ? square_pairs(t->square + (size_t)i * v * v, V, &n)
                               : listed_pairs(t->list + (size_t)i * (size_t)t->room, n,
                                              t->marginal + (size_t)i * v, V);
    if (!pairs) return (st_table){NAN, NAN, NAN, 0};
    const double *p = panel_p(t->a, (i + 1) % t->a->form.layers * C);
    st_table table = st_chi2_pairs(pairs, n, t->a->cls, V, p, C, V, ST_MIN_EXPECTED);
    free(pairs);
    return table;
}

static void marginal_tables(const tally *t, const double *state, double *law, tables *b)
{
    for (int32_t i = 0; i < t->k; i++) {
        panel_marginal(t->a, state + i * t->a->view.S, law);
        tables_add(b,
                   st_chi2_table(t->marginal + (size_t)i * (size_t)t->a->view.V, law,
                                 t->a->view.V, ST_MIN_EXPECTED),
                   "token %d", i);
    }
}

/* The accept length has a law of its own only under the token rule and where the suite says how
 * many drafts a step has: a stream's own drafter may stop short of gamma. */
static void accept_table(const law_sampler *s, tables *b)
{
    int64_t n = 0;
    for (int32_t j = 0; j <= s->gamma; j++) n += s->accepts[j];
    if (n == 0 || s->gamma == 0) return;
    double *law = malloc(((size_t)s->gamma + 1) * sizeof *law);
    if (law) panel_accepts(s->a, 0, s->gamma, law);
    tables_add(b,
               law ? st_chi2_table(s->accepts, law, s->gamma + 1, ST_MIN_EXPECTED)
                   : (st_table){NAN, NAN, NAN, 0},
               "accept length", 0);
    free(law);
}

static void all_tables(const tally *t, const law_sampler *s, bool token_rule, tables *b)
{
    size_t S = (size_t)t->a->view.S, V = (size_t)t->a->view.V;
    double *state = malloc((size_t)t->k * S * sizeof *state), *law = malloc(V * sizeof *law);
    if (state && law) {
        panel_states(t->a, 0, t->k, state);
        marginal_tables(t, state, law, b);
    } else
        b->broken = true;
    for (int32_t i = 0; i + 1 < t->k; i++) tables_add(b, pair_table(t, i), "pair %d-%d", i);
    if (token_rule) accept_table(s, b);
    free(state);
    free(law);
}

/* -- Floors (STAT-03) -------------------------------------------------------------- */

st_arith law_arith(const iut_claims *m)
{
    switch (m->arithmetic) {
    /* Supplied uniforms are coarser than the 64 bits of canonical draws. */
    case IUT_ARITH_CANONICAL:
        return m->uniforms == IUT_UNIFORMS_SUPPLIED ? ST_F64 : ST_CANONICAL;
    case IUT_ARITH_F64:
        return ST_F64;
    case IUT_ARITH_F16:
        return ST_F16;
    case IUT_ARITH_BF16:
        return ST_BF16;
    default:
        return ST_F32;
    }
}

/* The tolerance of each state for so many draws; false: no memory. *strict: all are 0. *nats: what
 * rounding may earn in so many draws at the worst state. */
static bool floors(const law_sampler *s, double draws, double *eps, bool *strict, double *nats)
{
    const iut_claims *m = client_claims(s->x->iut);
    st_arith arith = law_arith(m);
    bool own = s->op == LAW_STREAM;
    *strict = true;
    *nats = 0;
    for (int32_t i = 0; i < s->a->view.S; i++) {
        st_floor f =
            st_floor_row(panel_p(s->a, i), panel_q(s->a, i), s->a->view.V, arith, s->bits, own);
        if (isnan(f.tv)) return false;
        eps[i] = st_floor_eps(f, draws);
        *nats = fmax(*nats, draws * f.kl);
        if (eps[i] > 0) *strict = false;
    }
    return true;
}

/* -- Judgement --------------------------------------------------------------------- */

int64_t law_samples(check_level level, int32_t V)
{
    static const int64_t small[] = {20000, 400000, 10000000}, middle[] = {10000, 200000, 10000000},
                         large[] = {2000, 50000, 1000000};
    return V <= 64 ? small[level] : V <= 1024 ? middle[level] : large[level];
}

int64_t law_checkpoint(int64_t done, int64_t n, check_level level)
{
    int64_t next = 256;
    while (next <= done) next = level == LEVEL_DEEP ? next + (next + 9) / 10 : 2 * next;
    return next < n ? next : n;
}

void law_plan(check_plan *plan, const check *owner, check_level level, const law_cell *cells,
              size_t count)
{
    static const char *const name[] = {"", "masked", "equal", "onehot-p", "onehot-q"};
    for (size_t i = 0; i < count; i++) {
        const law_cell *e = &cells[i];
        check_case *c =
            e->variant == PANEL_PLAIN
                ? plan_case(plan, owner, "V%d-a%g-g%d", e->V, e->acceptance, e->gamma)
                : plan_case(plan, owner, "V%d-%s-g%d", e->V, name[e->variant], e->gamma);
        c->V = e->V, c->gamma = e->gamma, c->acceptance = e->acceptance;
        c->variant = (int32_t)e->variant;
        c->n = law_samples(level, e->V);
        c->cost = cost_of_rows(c->n, c->V);
        c->tables = law_tables(e->gamma + 2);
        c->statistical = c->pooled = true;
    }
}

void law_grid(check_plan *plan, const check *owner, check_level level, int32_t V)
{
    static const int32_t gamma[] = {1, 2, 4};
    static const double acceptance[] = {0.3, 0.7, 0.95};
    for (int a = 0; a < 3; a++)
        for (int g = 0; g < 3; g++)
            law_plan(plan, owner, level, &(law_cell){V, acceptance[a], gamma[g], PANEL_PLAIN},
                     1);
}

panel_form law_form(const check_case *c, const check_context *x)
{
    return (panel_form){.V = c->V,
                        .acceptance = c->acceptance,
                        .seed = check_seed(x, c, 0),
                        .variant = (panel_variant)c->variant};
}

/* The observed total variation of the first tokens, in about 16 cells fixed by their law. */
static st_tv first_token_tv(const tally *t)
{
    enum { CELLS = 16 };
    const double *p = panel_p(t->a, 0);
    int32_t V = t->a->view.V, *cell = malloc((size_t)V * sizeof *cell);
    int64_t count[CELLS + 1] = {0};
    double mass[CELLS + 1] = {0};
    int cells = cell ? st_merge(p, V, 1, 1.0 / CELLS, cell) : -1;
    st_tv tv = {NAN, NAN, NAN};
    for (int32_t x = 0; cells > 0 && x < V; x++)
        if (cell[x] >= 0) count[cell[x]] += t->marginal[x], mass[cell[x]] += p[x];
    if (cells > 0) tv = st_tv_observed(count, mass, cells, 0.01);
    free(cell);
    return tv;
}

static void report(const tally *t, const check_context *x, const tables *b, double log_e,
                   check_result *r)
{
    st_tv tv = first_token_tv(t);
    /* Two processes of six views share the case's weight; each averages 20 kappas. */
    double cost = x->log_e_fail + log(12 * 20);
    r->compared = t->n;
    r->log_e = log_e;
    result_figure(r, "n", (double)t->n);
    result_figure(r, "log_e", log_e);
    result_figure(r, "tv", tv.tv);
    result_figure(r, "tv_lo", tv.lo);
    result_figure(r, "tv_hi", tv.hi);
    result_figure(r, "eps", t->eps); /* what is inside the tolerance is out of sight */
    const st_reach tv90 = st_row_tv90((double)t->n, panel_p(t->a, 0), t->a->view.V, cost);
    result_figure(r, "tv_power", fmin(1.0, t->eps + tv90.along));
    /* The tolerance null has no view but those along p and q/p. */
    result_figure(r, "tv_power_any", t->eps > 0 ? 1 : fmin(1.0, tv90.any));
    result_figure(r, "contexts", t->trie.contexts);
    if (b->count == 0) return;
    result_figure(r, "tables", b->count);
    result_figure(r, "x2", b->worst.x2);
    result_figure(r, "df", b->worst.df);
    if (t->eps == 0) result_figure(r, "log_p", b->worst.log_p);
}

/* Where the evidence is: the table that deviates most says it in a reader's words. */
static void judge_e(const tally *t, const law_sampler *s, double log_e, bool token_rule,
                    check_result *r)
{
    tables b = {.count = 0};
    all_tables(t, s, token_rule, &b);
    result_set(
        r, STATE_FAIL,
        "not the target's law: ln E = %.4g >= %.4g after %lld streams of %d tokens; most "
        "in %s: X2 = %.4g on %d cells",
        log_e, s->x->log_e_fail, (long long)t->n, t->k, b.name, b.worst.x2, b.worst.cells);
}

/* A tolerance beyond this hides gross faults. */
static const double WIDEST = 0.02;

static void judge_tables(const tables *b, const check_context *x, const tally *t, double log_e,
                         bool strict, check_result *r)
{
    int32_t T = x->tables_total > 0 ? x->tables_total : 1;
    if (b->broken) {
        result_set(r, STATE_ERROR, "a chi-square table could not be computed");
        return;
    }
    if (strict) r->log_p = b->worst.log_p;
    if (strict && st_chi2_fails(b->worst.log_p, T)) {
        result_set(
            r, STATE_FAIL,
            "not the target's law: %s: X2 = %.6g on %d cells, ln p = %.4g < ln(1e-8/%d), "
            "n = %lld",
            b->name, b->worst.x2, b->worst.cells, b->worst.log_p, T, (long long)t->n);
        return;
    }
    if (t->eps > WIDEST) {
        result_set(r, STATE_INCONCLUSIVE,
                   "the declared arithmetic and uniforms allow a total variation of %.3g: that "
                   "nothing worse is seen says little (STAT-03)",
                   t->eps);
        return;
    }
    if (strict)
        result_set(
            r, STATE_PASS,
            "%lld streams of %d tokens, ln E = %.3g (line %.3g); worst of %d tables %s: X2 = "
            "%.4g on %d cells, ln p = %.3g",
            (long long)t->n, t->k, log_e, x->log_e_fail, b->count, b->name, b->worst.x2,
            b->worst.cells, b->worst.log_p);
    else
        result_set(r, STATE_PASS,
                   "%lld streams of %d tokens, ln E = %.3g (line %.3g) against the tolerance "
                   "null, eps = %.3g, which alone gates (STAT-03)",
                   (long long)t->n, t->k, log_e, x->log_e_fail, t->eps);
}

/* Samples to the next checkpoint, counts, looks. False: `r` has the failing fact. */
static bool advance(tally *t, law_sampler *s, int32_t *tokens, int64_t until, check_result *r)
{
    int32_t chunk = t->a->view.V > SQUARE ? LAW_CHUNK / 4 : LAW_CHUNK;
    while (t->n < until) {
        int32_t n = until - t->n < chunk ? (int32_t)(until - t->n) : chunk;
        if (!law_sample(s, n, tokens, r)) return false;
        for (int32_t i = 0; i < n; i++) tally_stream(t, tokens + (size_t)i * (size_t)t->k);
    }
    return true;
}

/* Samples until the declared n, or until ln E reaches the line. False: `r` has the failing fact. */
static bool sample(tally *t, law_sampler *s, const check_case *c, int32_t *tokens,
                   double *log_e, check_result *r)
{
    const check_context *x = s->x;
    while (t->n < c->n) {
        if (!advance(t, s, tokens, law_checkpoint(t->n, c->n, x->level), r)) return false;
        *log_e = tally_look(t);
        if (t->lost) {
            result_set(r, STATE_ERROR, "counts were lost: the suite is short of memory");
            return false;
        }
        if (*log_e >= x->log_e_fail) break;
    }
    return true;
}

static void judge(tally *t, law_sampler *s, const check_case *c, bool strict, int32_t *tokens,
                  check_result *r)
{
    const check_context *x = s->x;
    bool token_rule = s->op == LAW_VERIFY && client_claims(x->iut)->rule == IUT_RULE_TOKEN;
    double log_e = 0;
    const bool whole = sample(t, s, c, tokens, &log_e, r);
    r->compared = t->n;
    const uint8_t noise = client_claims(x->iut)->uniforms;
    r->pool_own = noise != IUT_UNIFORMS_SEEDED && noise != IUT_UNIFORMS_SUPPLIED;
    if (c->pooled && !law_pool(s, t->placed, check_seed(x, c, 3), &r->pool))
        result_set(r, STATE_ERROR, "out of memory for the pool");
    if (!whole) return;
    tables b = {.count = 0};
    sum_marginals(t);
    if (log_e >= x->log_e_fail)
        judge_e(t, s, log_e, token_rule, r);
    else {
        all_tables(t, s, token_rule, &b);
        judge_tables(&b, x, t, log_e, strict, r);
    }
    report(t, x, &b, log_e, r);
    law_name_cause(&r->pool, log_e, r); /* STAT-08 */
    if (strict) law_tell_speed(s, r);
}

bool law_strict(const law_sampler *s, int64_t draws, check_result *r)
{
    bool strict = false;
    double *eps = malloc((size_t)s->a->view.S * sizeof *eps);
    if (!eps || !floors(s, (double)draws, eps, &strict, &r->nats))
        result_set(r, STATE_ERROR, "a floor of the declared arithmetic could not be computed");
    else if (!strict)
        result_set(
            r, STATE_NOT_CLAIMED,
            "uniforms of %d bits and the declared arithmetic are too coarse for %lld draws "
            "(STAT-03)",
            s->bits, (long long)draws);
    free(eps);
    return strict;
}

void law_judge(law_sampler *s, const check_case *c, check_result *r)
{
    tally t = {.a = s->a, .k = s->k, .room = c->n};
    bool strict = true;
    double *eps = malloc((size_t)s->a->view.S * sizeof *eps);
    int32_t *tokens = malloc((size_t)LAW_CHUNK * (size_t)s->k * sizeof *tokens);
    if (!eps || !tokens || !open_counts(&t))
        result_set(r, STATE_ERROR, "out of memory for the counts");
    else if (!floors(s, (double)c->n * s->k, eps, &strict, &r->nats))
        result_set(r, STATE_ERROR, "a floor of the declared arithmetic could not be computed");
    else if (!open_processes(&t, eps, strict))
        result_set(r, STATE_ERROR, "the e-processes refuse the rows, or are short of memory");
    else {
        for (int32_t i = 0; i < s->a->view.S; i++) t.eps = fmax(t.eps, eps[i]);
        if (!strict) r->nats = INFINITY;
        judge(&t, s, c, strict, tokens, r);
    }
    tally_close(&t);
    free(eps);
    free(tokens);
}

void law_case(const check_case *c, const check_context *x, const panel_form *form, law_op op,
              check_result *r)
{
    char why[200];
    law_sampler s = {0};
    panel *a = panel_make(form, why, sizeof why);
    if (!a)
        result_set(r, STATE_ERROR, "%s", why);
    else if (law_sampler_open(&s, c, x, a, op, c->gamma + 2, r))
        law_judge(&s, c, r);
    law_sampler_close(&s);
    panel_free(a);
}
