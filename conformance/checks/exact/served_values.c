/* served.values - the rows that an implementation serves from logits against the oracle's
 * (DIST).
 *
 * Canonical claims are compared bit by bit, ties across every cut included. For other arithmetic a value may be off by
 * (4 + |x|) ulps of the format, x being the scaled logit (an error of the exponent is an error of the value times |x|).
 * It may also be off by what a sequential sum of V terms loses in binary64 or binary32, in which half formats are taken
 * to sum, and by what logits lose that are divided by T before the largest is taken away. binary16 is granted its
 * smallest value, 2^-24, too. The support must be the same but for values below that, and rows with a token next to a
 * cut are left out: there rounding decides. Where top-p cuts among equal logits it does not, unless a prefix's share is
 * next to top_p: how many of them stay is judged, and not which. All of them may stay, too: sorting programs keep the
 * first or the last of a tie, others the whole of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/exact/served_values.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/served.h"

typedef struct {
    const char *name;
    iut_sampling target;
} setting;

static const setting settings[] = {
    {"plain", {1.0f, 0, 1.0f, 0.0f}},       {"cold", {0.7f, 0, 1.0f, 0.0f}},
    {"hot", {1.3f, 0, 1.0f, 0.0f}},         {"icy", {0.02f, 0, 1.0f, 0.0f}},
    {"greedy", {0.0f, 2, 0.5f, 0.5f}},      {"top-1", {1.0f, 1, 1.0f, 0.0f}},
    {"top-2", {1.0f, 2, 1.0f, 0.0f}},       {"top-50", {1.0f, 50, 1.0f, 0.0f}},
    {"top-p-0.5", {1.0f, 0, 0.5f, 0.0f}},   {"top-p-0.9", {1.0f, 0, 0.9f, 0.0f}},
    {"min-p-0.05", {1.0f, 0, 1.0f, 0.05f}}, {"min-p-1", {1.0f, 0, 1.0f, 1.0f}},
    {"mixed", {0.7f, 40, 0.9f, 0.05f}},     {"mixed-hot", {1.5f, 5, 0.8f, 0.1f}},
};
enum { SETTINGS = sizeof settings / sizeof *settings, EQUAL = 7, KINDS, DRAWN_KINDS };
static const iut_sampling of_draft = {0.9f, 0, 0.95f, 0.0f};

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 17, 1001, 32000};
    for (int32_t v = 0; v < 4; v++)
        for (int32_t i = 0; i < SETTINGS; i++) {
            if (V[v] == 32000 && (level == LEVEL_SMOKE || i % 12 != 0)) continue;
            check_case *c =
                plan_case(p, &check_served_values, "%s-V%d", settings[i].name, (int)V[v]);
            c->V = V[v];
            c->cost = cost_of_rows(2000, c->V);
            c->variant = i;
        }
}

static const float temperatures[] = {0.05f, 0.3f, 0.7f, 1.0f, 1.7f, 3.0f};
static const float top_ps[] = {1.0f, 0.5f, 0.9f, 0.99f}, min_ps[] = {0.0f, 0.02f, 0.3f};
enum { TEMPERATURES = sizeof temperatures / sizeof *temperatures };

/* Half of the draws have no cut but top-k, the lengths of which programs treat apart among them. */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {3, 12, 100};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t V = draw_vocab(d, d->level == LEVEL_SMOKE ? 4097 : 1 << 17);
        const int32_t k[] = {0, 1, 1023, 1024, 1025, 2049, V - 1, V, 1 + probe_below(&d->rng, V)};
        const int32_t top_k = k[probe_below(&d->rng, 9)], T = probe_below(&d->rng, TEMPERATURES);
        const bool alone = probe_below(&d->rng, 2) != 0;
        const int32_t top_p = alone ? 0 : probe_below(&d->rng, 4), min_p = alone ? 0 : probe_below(&d->rng, 3);
        check_case *c = draw_case(p, d, &check_served_values, "T%g-k%d-p%g-m%g-V%d", (double)temperatures[T],
                                  (int)top_k, (double)top_ps[top_p], (double)min_ps[min_p], (int)V);
        c->served.V = V;
        c->served.top_k = top_k;
        c->served.temperature = T;
        c->served.top_p = top_p;
        c->served.min_p = min_p;
        c->cost = cost_of_rows(2 * DRAWN_KINDS * 10, V);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!check_has(tested, OP_SERVED, why, size)) return false;
    if (client_claims(tested)->arithmetic == 0)
        snprintf(why, size, "arithmetic is not said");
    else
        return replay_fits(c, tested, why, size);
    return false;
}

/* -- Roundings ----------------------------------------------------------------------- */

/* Unit roundoff granted to an arithmetic, and what a value of it may be off relatively. DIST-05
 * rounds x to binary32, so finer arithmetic differs from the specified value by as much. */
static double roundoff(uint8_t arithmetic)
{
    switch (arithmetic) {
    case IUT_ARITH_CANONICAL:
    case IUT_ARITH_F64:
        return 0x1p-23;
    case IUT_ARITH_F32:
        return 0x1p-22;
    case IUT_ARITH_F16:
        return 0x1p-10;
    default:
        return 0x1p-7;
    }
}

/* What a term of a sum may lose. */
static double sum_roundoff(uint8_t arithmetic)
{
    return arithmetic == IUT_ARITH_F64 ? 0x1p-53 : 0x1p-24;
}

/* What roundings may move the share of a prefix of n tokens by, with x the scaled logit of its last one. Equal
 * weights, up to 2^8 of them and a power of two, have exact shares in every format: top_p alone is rounded. */
static double share_error(uint8_t arithmetic, int32_t n, bool equal, double x)
{
    enum { EXACT = 1 << 8 };
    const double unit = roundoff(arithmetic);
    if (equal && n <= EXACT && (n & (n - 1)) == 0) return unit / 2;
    return 2 * (unit * (4.0 + fabs(x)) + n * sum_roundoff(arithmetic));
}

/* Of equal tokens as many as there can be, so that top-p cuts among them and no rounding moves that; 2 or 1: none. */
static int32_t equal_count(uint8_t arithmetic, int32_t V, const iut_sampling *s)
{
    enum { MOST = 512 };
    const double p = (double)s->top_p;
    int32_t n = V < MOST ? V : MOST;
    if (s->top_k > 0 && s->top_k < n) n = s->top_k;
    for (; n > 2; n--) {
        const double kept = ceil(n * p), error = share_error(arithmetic, n, true, 0);
        if (kept < n && kept / n - p > error && p - (kept - 1) / n > error) break;
    }
    return n;
}

/* -- Rows -------------------------------------------------------------------------- */

/* A few tokens that share most of the mass in steps of 0.3, the others far below: cuts of top-p
 * fall between tokens of visible mass at any V. */
static void head_and_tail(float *logit, int32_t V, uint64_t *rng)
{
    const int32_t head = V < 30 ? V : 30, first = probe_below(rng, V);
    for (int32_t t = 0; t < V; t++)
        logit[t] = -16.0f - (float)(probe_next(rng) >> 52) * 0x1p-10f;
    for (int32_t i = 0; i < head;
         i++) /* steps of 7: all places distinct at every V of the plan */
        logit[(first + 7 * i) % V] = 3.0f - 0.3f * (float)i;
}

/* top_k tokens stand clear of all others: whatever the arithmetic, top-k keeps these. */
static void gap_after(float *logit, int32_t V, int32_t top_k, uint64_t *rng)
{
    int32_t left = top_k; /* of the tokens to come, so many are above the gap */
    for (int32_t t = 0; t < V; t++) {
        const bool above = probe_below(rng, V - t) < left;
        left -= above;
        logit[t] = (above ? 0.0f : -4.0f) + (float)(probe_next(rng) >> 52) * 0x1p-12f;
    }
}

/* n tokens are equal, all others masked. */
static void equal_logits(float *logit, int32_t V, int32_t n, uint64_t *rng)
{
    for (int32_t t = 0; t < V; t++) {
        const bool one = probe_below(rng, V - t) < n;
        n -= one;
        logit[t] = one ? 1.5f : -INFINITY;
    }
}

static void fill(float *logit, int32_t V, int32_t kind, uint64_t *rng)
{
    static const float extremes[] = {88.0f, -15.9f, -0.0f, -2e38f, 87.5f, 0.0f};
    if (kind == 1 || kind == 3) head_and_tail(logit, V, rng);
    for (int32_t t = 0; t < V; t++) {
        const float wide = (float)((int32_t)(probe_next(rng) >> 48) - 32768) * 0x1p-12f;
        const int32_t few = probe_below(rng, 9) - 4;
        if (kind == 0) logit[t] = wide; /* spread over [-8, 8) */
        if (kind == 2)
            logit[t] = few ? (float)few : t % 2 ? 0.0f : -0.0f;          /* ties, both zeros */
        if (kind == 3 && t % 2 && logit[t] < 2.0f) logit[t] = -INFINITY; /* masks */
        if (kind == 4) logit[t] = 1.5f;                                  /* all equal */
        if (kind == 5) logit[t] = extremes[probe_below(rng, 6)]; /* to subnormal values */
        if (kind == 6)
            logit[t] = few > 0 ? (float)-few : t % 2 ? 0.0f : -0.0f; /* cuts among zeros */
    }
}

/* -- Judgement --------------------------------------------------------------------- */

/* What is granted absolutely: below it a format has no values, or few bits. */
static double smallest(uint8_t arithmetic)
{
    return arithmetic == IUT_ARITH_F16 ? 0x1p-24 : 1e-30;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Logits so close may be told apart otherwise, or not at all, once they are probabilities. */
static double rank_reach(uint8_t arithmetic, double at, double margin)
{
    return fmax(margin, 4 * roundoff(arithmetic) * (1 + fabs(at)));
}

/* Is every logit within the reach of roundings of this one equal to it? */
static bool stands_alone(uint8_t arithmetic, const double *below, int32_t n, double at, double margin)
{
    const double reach = rank_reach(arithmetic, at, margin);
    for (int32_t i = 0; i < n; i++)
        if (below[i] != at && fabs(below[i] - at) <= reach) return false;
    return true;
}

/* Is every cut of the row clear of its tokens, so that no legal rounding moves it? */
/* *tie: top-p cuts among equal logits. */
static bool clear_cuts(uint8_t arithmetic, const float *logit, int32_t V, const iut_sampling *s,
                       const oracle_filters *how, double *below, bool *tie)
{
    const double margin = 1e-3;
    const oracle_sampling o = {s->temperature, s->top_k, s->top_p, s->min_p};
    int32_t n = 0;
    *tie = false;
    for (int32_t t = 0; t < V; t++)
        if (logit[t] > -INFINITY) below[n++] = (double)logit[t];
    qsort(below, (size_t)n, sizeof *below, descending);
    if (s->temperature == 0.0f) return n == 1 || below[0] > below[1];
    for (int32_t i = n - 1; i >= 0; i--) below[i] -= below[0];
    const oracle_cuts c = oracle_cut(below, n, &o, how);
    const double share = fmax(margin, 4 * roundoff(arithmetic)); /* a half format rounds these, and their sums */
    if (!(c.top_k > margin && c.min_p_log >= share)) return false;
    if (c.top_p_gap > 0)
        return c.top_p >= share &&
               c.top_p_gap > rank_reach(arithmetic, c.top_p_at, margin);
    *tie = true;
    const double x = fabs(c.top_p_at) / fmin(1, (double)s->temperature);
    return c.top_p > share_error(arithmetic, n, below[n - 1] == 0, x) &&
           stands_alone(arithmetic, below, n, c.top_p_at, margin);
}

double served_bound(const iut_claims *claims, int32_t V, double want, double x)
{
    const double unit = roundoff(claims->arithmetic);
    return (unit * (4.0 + fabs(x)) + V * sum_roundoff(claims->arithmetic)) * want + smallest(claims->arithmetic);
}

static const double UNDERFLOW = -87; /* e^x is below 2^-125 */

/* The bound of a token whose logit, and the largest, were divided by T before one was taken from the other. */
static double bound_of(const iut_claims *claims, int32_t V, double want, double x, double scaled)
{
    return served_bound(claims, V, want, x) + roundoff(claims->arithmetic) / 2 * scaled * want;
}

/* scaled: (|l| + |largest l|) / T. */
static bool near_enough(const iut_claims *claims, int32_t V, double got, double want, double x, double scaled)
{
    /* Where e^x has no normal number, a wider arithmetic may have left one of its least. What is masked has 0. */
    const bool underflows = x < UNDERFLOW && x > -INFINITY;
    if (want == 0.0) return got == 0.0 || (underflows && got > 0.0 && got <= smallest(claims->arithmetic));
    return got >= 0.0 && (got > 0.0 || want < smallest(claims->arithmetic)) &&
           fabs(got - want) <= bound_of(claims, V, want, x, scaled);
}

int32_t served_differs(const iut_claims *claims, const float *logit, int32_t V,
                       const iut_sampling *s, const float *want, const float *got,
                       double *worst)
{
    const double T = (double)s->temperature;
    float top = logit[0];
    for (int32_t t = 1; t < V; t++) top = fmaxf(top, logit[t]);
    for (int32_t t = 0; t < V; t++) {
        if (claims->arithmetic == IUT_ARITH_CANONICAL) {
            if (memcmp(&got[t], &want[t], sizeof *got) != 0) return t;
            continue;
        }
        const double w = (double)want[t];
        const double x = T > 0.0 ? ((double)logit[t] - (double)top) / T : 0.0;
        const double scaled = T > 0.0 && w > 0.0 ? (fabs((double)logit[t]) + fabs((double)top)) / T : 0.0;
        if (!near_enough(claims, V, (double)got[t], w, x, scaled)) return t;
        if (w > 0.0) *worst = fmax(*worst, fabs((double)got[t] - w) / bound_of(claims, V, w, x, scaled));
    }
    return -1;
}

/* Does l - max leave the range of binary32? DIST-05 rounds it to -infinity there, a wider
 * arithmetic does not. */
static bool overflows(const float *logit, int32_t V)
{
    float least = INFINITY, most = -INFINITY;
    for (int32_t t = 0; t < V; t++) {
        if (logit[t] > -INFINITY && logit[t] < least) least = logit[t];
        if (logit[t] > most) most = logit[t];
    }
    return isinf(least - most);
}

/* *tie: which tokens of a tie stay is the implementation's affair. */
static bool is_judged(const client *tested, const float *logit, int32_t V, const iut_sampling *s, double *scratch,
                      bool *tie)
{
    const oracle_filters how = check_filters(tested);
    const uint8_t arithmetic = client_claims(tested)->arithmetic;
    *tie = false;
    if (arithmetic == IUT_ARITH_CANONICAL) return true;
    return !overflows(logit, V) && clear_cuts(arithmetic, logit, V, s, &how, scratch, tie);
}

bool served_judged(const client *tested, const float *logit, int32_t V, const iut_sampling *s, double *scratch)
{
    bool tie;
    return is_judged(tested, logit, V, s, scratch, &tie) && !tie;
}

/* Where top-p cuts a tie: what is wanted goes to the tokens that `got` keeps, if these are as many, or all. */
static void follow_choice(const float *logit, int32_t V, const float *got, float *want)
{
    float least = INFINITY;
    double value = 0;
    int32_t due = 0, kept = 0, all = 0;
    for (int32_t t = 0; t < V; t++)
        if (want[t] > 0 && logit[t] < least) least = logit[t], value = (double)want[t];
    for (int32_t t = 0; t < V; t++)
        if (logit[t] == least) all++, due += want[t] > 0, kept += got[t] > 0;
    if (kept != due && kept != all) return;
    const double total = 1 + (kept - due) * value;
    for (int32_t t = 0; t < V; t++)
        want[t] = (float)((logit[t] != least ? (double)want[t] : got[t] > 0 ? value : 0) / total);
}

typedef struct {
    const check_context *x;
    float *want;     /* [V] */
    double *scratch; /* [V] */
    oracle_filters how;
    double worst;          /* error over what is granted */
    int32_t left_out;
} comparison;

static void compare_row(comparison *k, const probe *m, int32_t state, bool draft,
                        const float *got, check_result *r)
{
    const float *logit = (draft ? m->q_logit : m->p_logit) + (int64_t)state * m->V;
    const iut_claims *claims = client_claims(k->x->iut);
    const iut_sampling *s = draft ? &m->view.draft : &m->view.target;
    const oracle_sampling o = {s->temperature, s->top_k, s->top_p, s->min_p};
    bool tie;
    if (!is_judged(k->x->iut, logit, m->V, s, k->scratch, &tie)) {
        k->left_out++;
        return;
    }
    if (oracle_serve(logit, m->V, &o, &k->how, k->want, NULL, 0) != ORACLE_OK) {
        result_set(r, STATE_ERROR, "the oracle refused row %d of the suite", (int)state);
        return;
    }
    r->compared++;
    if (tie) follow_choice(logit, m->V, got, k->want);
    const int32_t t = served_differs(claims, logit, m->V, s, k->want, got, &k->worst);
    if (t >= 0)
        result_set(r, STATE_FAIL,
                   "%s row %d, token %d, logit %.9g: expected %.9g (%a), got %.9g (%a); T %g, "
                   "top_k %d, top_p %g, min_p %g",
                   draft ? "draft" : "target", (int)state, (int)t, (double)logit[t],
                   (double)k->want[t], (double)k->want[t], (double)got[t], (double)got[t],
                   (double)s->temperature, (int)s->top_k, (double)s->top_p, (double)s->min_p);
}

static void compare_all(comparison *k, const probe *m, float *got, check_result *r)
{
    int32_t state[DRAWN_KINDS]; /* not in order: a row belongs to its state, not to its place */
    for (int32_t i = 0; i < m->S; i++) state[i] = (5 * i + 2) % m->S;
    for (int32_t draft = 0; draft < 2 && r->state == STATE_PASS; draft++) {
        memset(got, 0xff, (size_t)m->S * (size_t)m->V * sizeof *got); /* NaN */
        if (!result_call(r, k->x, "served", client_served(k->x->iut, m->S, state, draft, got)))
            return;
        for (int32_t i = 0; i < m->S && r->state == STATE_PASS; i++)
            compare_row(k, m, state[i], draft != 0, got + (int64_t)i * m->V, r);
    }
}

static iut_sampling sampling_of(const check_case *c)
{
    return (iut_sampling){.temperature = temperatures[c->served.temperature],
                          .top_k = c->served.top_k,
                          .top_p = top_ps[c->served.top_p],
                          .min_p = min_ps[c->served.min_p]};
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const size_t row = (size_t)c->V * sizeof(float);
    const int32_t kinds = c->drawn ? DRAWN_KINDS : KINDS;
    probe *m = probe_open(kinds, c->V);
    float *got = malloc((size_t)kinds * row);
    comparison k = {.x = x,
                    .want = malloc(row),
                    .scratch = malloc((size_t)c->V * sizeof(double)),
                    .how = check_filters(x->iut)};
    if (!m || !got || !k.want || !k.scratch)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else {
        const uint8_t arithmetic = client_claims(x->iut)->arithmetic;
        m->view.target = c->drawn ? sampling_of(c) : settings[c->variant].target;
        m->view.draft = c->drawn ? (iut_sampling){m->view.target.temperature, 0, 1.0f, 0.0f} : of_draft;
        for (int32_t s = 0; s < kinds; s++) {
            float *const p = m->p_logit + (int64_t)s * c->V, *const q = m->q_logit + (int64_t)s * c->V;
            fill(p, c->V, s, &rng);
            fill(q, c->V, s, &rng);
            if (s == EQUAL) {
                equal_logits(p, c->V, equal_count(arithmetic, c->V, &m->view.target), &rng);
                equal_logits(q, c->V, equal_count(arithmetic, c->V, &m->view.draft), &rng);
            }
            if (s == KINDS) gap_after(p, c->V, c->served.top_k, &rng);
            probe_one_hot(probe_p(m, s), c->V, 0); /* not looked at */
            probe_one_hot(probe_q(m, s), c->V, 0);
        }
        if (probe_load(m, x, r)) compare_all(&k, m, got, r);
    }
    result_figure(r, "worst_of_bound", k.worst);
    result_figure(r, "left_out", k.left_out);
    if (r->state == STATE_PASS && r->compared == 0 && k.left_out > 0)
        result_set(r, STATE_NOT_CLAIMED, "each of %d rows has a token next to a cut, which its arithmetic may take or not",
                   (int)k.left_out);
    result_set(r, STATE_PASS, "%lld rows as specified; %d left out for a token next to a cut",
               (long long)r->compared, (int)k.left_out);
    free(got);
    free(k.want);
    free(k.scratch);
    probe_close(m);
}

const check check_served_values = {
    .name = "served.values",
    .clauses =
        "DIST-02 DIST-04 DIST-05 DIST-06 DIST-07 DIST-08 DIST-09 DIST-10 DIST-11 DIST-12 "
        "DIST-13 DIST-15 DIST-16 CLM-14",
    .summary = "served rows at every temperature and filter against exact values",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
