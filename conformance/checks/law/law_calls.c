/* law_calls.c - law.calls: first tokens of neighbouring cases of a batch, and of the same case
 * of consecutive calls, with or without a load of the panel before each, are independent. Sees
 * uniforms shared between rows of a batch, noise that every call or every load draws anew from
 * the same state, buffers that survive a call. STAT-06, RNG-07. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_cause.h"
#include "conformance/checks/law/law_drawn.h"
#include "conformance/checks/law/law_speed.h"
#include "conformance/stats/chi2.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/power.h"

enum { BATCH = 256, MAX_V = 64 };

static const struct {
    law_op op;
    const char *name;
    int32_t V, gamma;
    bool reload;
} rows[] = {
    {LAW_VERIFY, "verify", 8, 2, false},       {LAW_VERIFY, "verify", 64, 1, false},
    {LAW_STREAM, "stream", 8, 2, false},       {LAW_STREAM, "stream", 64, 1, false},
    {LAW_DRAW, "draw", 8, 0, false},           {LAW_DRAW, "draw", 64, 0, false},
    {LAW_VERIFY, "verify-reload", 8, 2, true}, {LAW_STREAM, "stream-reload", 8, 2, true},
    {LAW_DRAW, "draw-reload", 8, 0, true},
};

/* c->n counts first tokens; c->variant is the row. */
static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {20480, 512000, 5120000};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check_case *c = plan_case(p, &check_law_calls, "%s-V%d-g%d", rows[i].name, rows[i].V,
                                  rows[i].gamma);
        c->V = rows[i].V, c->gamma = rows[i].gamma, c->acceptance = 0.3;
        c->variant = (int32_t)i;
        c->n = n[level];
        c->cost = cost_of_rows(c->n, c->V);
        c->tables = 2;
        c->statistical = true;
    }
}

/* What a drawn case asks; c->variant is the row. */
static const struct {
    law_op op;
    law_shape shape;
    const char *name;
    int32_t gamma;
} drawn[] = {
    {LAW_STREAM, LAW_NEIGHBOURS, "plain-stream", 0}, {LAW_STREAM, LAW_NEIGHBOURS, "stream", 3},
    {LAW_VERIFY, LAW_NEIGHBOURS, "verify", 3},       {LAW_DRAW, LAW_NEIGHBOURS, "draw", 0},
    {LAW_STREAM, LAW_COLD, "cold-stream", 2},        {LAW_VERIFY, LAW_COLD, "cold-verify", 2},
    {LAW_DRAW, LAW_COLD, "cold-draw", 0},
};

static void draw(check_plan *p, check_draw *d)
{
    static const int32_t V[] = {5, 7, 8, 9, 11, 13, 15, 16, 17, 31, 33};
    static const int64_t beside[] = {4000, 40000, 400000}, cold[] = {256, 512, 1024};
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        const int64_t n = drawn[i].shape == LAW_COLD ? cold[d->level] : beside[d->level];
        check_case *c = law_draw_case(p, d, &check_law_calls, drawn[i].name, V,
                                      sizeof V / sizeof *V, drawn[i].gamma, n);
        if (c) c->variant = (int32_t)i;
    }
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    const check_case within = case_within(c, subject);
    const law_op op = c->drawn ? drawn[c->variant].op : rows[c->variant].op;
    return law_claimed(&within, subject, op, why, why_size);
}

/* Joint counts of two first tokens. */
typedef struct {
    const char *what;
    int64_t count[MAX_V][MAX_V];
} joint;

/* ln E against: given the first, the second has the law p. One context a first token. */
static double joint_log_e(const joint *j, const double *p, const double *q, int32_t V)
{
    int32_t row[MAX_V] = {0};
    st_ep *e = st_ep_new(V, row, 1, V, &p, &q);
    if (!e) return NAN;
    bool counted = true;
    for (int32_t a = 0; a < V; a++)
        for (int32_t b = 0; b < V; b++) counted &= st_ep_add(e, a, b, j->count[a][b]);
    double log_e = counted ? st_ep_log_e(e) : NAN;
    st_ep_free(e);
    return log_e;
}

static st_table joint_table(const joint *j, const double *p, int32_t V)
{
    static const int32_t group[MAX_V] = {0};
    st_pair pairs[MAX_V * MAX_V];
    size_t n = 0;
    for (int32_t a = 0; a < V; a++)
        for (int32_t b = 0; b < V; b++) pairs[n++] = (st_pair){a, b, j->count[a][b]};
    return st_chi2_pairs(pairs, n, group, V, p, 1, V, ST_MIN_EXPECTED);
}

/* STAT-04, of the table: how far the pairs are from independence, in four groups of each token, and what would be seen
 * of that. */
static void tell_variation(const joint *j, const double *p, int32_t V, double line, check_result *r)
{
    enum { GROUPS = 4 };
    int64_t count[GROUPS * GROUPS] = {0};
    double first[GROUPS] = {0}, mass[GROUPS] = {0}, due[GROUPS * GROUPS], n = 0;
    int32_t group[MAX_V];
    const int groups = st_merge(p, V, 1, 1.0 / GROUPS, group);
    if (groups < 1) return; /* no memory */
    for (int32_t a = 0; a < V; a++) {
        if (group[a] < 0) continue;
        mass[group[a]] += p[a];
        for (int32_t b = 0; b < V; b++) {
            if (group[b] < 0) continue;
            count[group[a] * groups + group[b]] += j->count[a][b];
            first[group[a]] += (double)j->count[a][b];
            n += (double)j->count[a][b];
        }
    }
    for (int a = 0; a < groups; a++)
        for (int b = 0; b < groups; b++) due[a * groups + b] = first[a] / n * mass[b];
    /* Two processes of six views share the case's weight; each averages 20 kappas. Each first token is a context. */
    const double cost = line + log(12 * 20);
    const int bins = V < 16 ? V : 16;
    const st_tv tv = st_tv_observed(count, due, groups * groups, 0.01);
    result_figure(r, "tv", tv.tv);
    result_figure(r, "tv_lo", tv.lo);
    result_figure(r, "tv_hi", tv.hi);
    result_figure(r, "tv_power", fmin(1, st_view_tv90(n, V * (bins - 1) + 1, cost)));
    result_figure(r, "tv_power_any", fmin(1, st_view_tv90(n, V * (V - 1) + 1, cost)));
}

/* Both e-values and both tables are evaluated once, at the declared n. */
static void judge(const law_sampler *s, const joint *j, const check_case *c, check_result *r)
{
    const check_context *x = s->x;
    const double *p = panel_p(s->a, 0), *q = panel_q(s->a, 0);
    int32_t T = x->tables_total > 0 ? x->tables_total : 1, worse = 0;
    double log_e[2];
    st_table t[2];
    for (int i = 0; i < 2; i++) {
        log_e[i] = joint_log_e(&j[i], p, q, c->V);
        t[i] = joint_table(&j[i], p, c->V);
    }
    if (t[1].log_p < t[0].log_p) worse = 1;
    r->compared = c->n;
    r->log_e = st_log_mean(log_e, NULL, 2);
    r->log_p = t[worse].log_p;
    result_figure(r, "n", (double)c->n);
    result_figure(r, "log_e", r->log_e);
    result_figure(r, "x2", t[worse].x2);
    result_figure(r, "df", t[worse].df);
    result_figure(r, "log_p", r->log_p);
    tell_variation(&j[worse], p, c->V, x->log_e_fail, r);
    bool broken = isnan(r->log_e) || isnan(t[0].log_p) || isnan(t[1].log_p);
    bool fails = r->log_e >= x->log_e_fail || st_chi2_fails(r->log_p, T);
    result_set(r,
               broken  ? STATE_ERROR
               : fails ? STATE_FAIL
                       : STATE_PASS,
               "%s%lld first tokens, ln E = %.4g (line %.4g); worse table, %s: X2 = %.5g on %d "
               "cells, ln p = %.4g%s",
               broken  ? "a statistic could not be computed: "
               : fails ? "not independent: "
                       : "",
               (long long)c->n, r->log_e, x->log_e_fail, j[worse].what, t[worse].x2,
               t[worse].cells, r->log_p, fails ? " (STAT-06)" : "");
}

/* STAT-08: the pair of tokens that is furthest off. */
static void tell_worst_pair(const joint *j, const double *p, int32_t V, check_result *r)
{
    const size_t used = strlen(r->detail);
    double most = 0, expected = 0;
    int32_t of = 0, first = 0, second = 0;
    for (int32_t i = 0; i < 2; i++)
        for (int32_t a = 0; a < V; a++) {
            double n = 0;
            for (int32_t b = 0; b < V; b++) n += (double)j[i].count[a][b];
            for (int32_t b = 0; b < V; b++) {
                const double excess = law_excess((double)j[i].count[a][b], n, p[b]);
                if (fabs(excess) <= fabs(most)) continue;
                most = excess, expected = n * p[b], of = i, first = a, second = b;
            }
        }
    snprintf(r->detail + used, sizeof r->detail - used,
             "; worst of %s: given token %d, token %d: expected %.5g, seen %lld", j[of].what, (int)first, (int)second,
             expected, (long long)j[of].count[first][second]);
}

/* And what all first tokens say together: each is of a pair of neighbours. */
static void name_cause(const law_sampler *s, const joint *j, const check_case *c, check_result *r)
{
    int32_t count[MAX_V] = {0};
    double p[MAX_V], q[MAX_V];
    st_pool sum = {.n = 0};
    law_random g;
    if (r->state != STATE_FAIL) return;
    for (int32_t a = 0; a < c->V; a++)
        for (int32_t b = 0; b < c->V; b++)
            count[a] += (int32_t)j[0].count[a][b], count[b] += (int32_t)j[0].count[a][b];
    st_normalise(panel_p(s->a, 0), c->V, p);
    st_normalise(panel_q(s->a, 0), c->V, q);
    tell_worst_pair(j, p, c->V, r);
    const bool drafted = s->op != LAW_DRAW;
    const st_pool_row row = {.V = c->V, .p = p, .q = q, .place = drafted ? ST_DRAFTED : ST_PLAIN, .drafted = drafted};
    law_seed(&g, check_seed(s->x, c, 3));
    if (law_add_row(&sum, &row, count, &g)) law_name_cause(&sum, r->log_e, r);
}

/* Neighbours 2i, 2i+1 of a batch; the same case of calls 2c, 2c+1: every token once in each. */
static void count(const int32_t *now, const int32_t *before, int32_t k, joint *j)
{
    for (int32_t i = 0; i < BATCH; i += 2) j[0].count[now[i * k]][now[(i + 1) * k]]++;
    for (int32_t i = 0; before && i < BATCH; i++) j[1].count[before[i * k]][now[i * k]]++;
}

/* Both calls of a pair come first after their load where the panel is loaded again. */
static void sample(law_sampler *s, const check_case *c, joint *j, int32_t *tokens,
                   check_result *r)
{
    size_t size = (size_t)BATCH * (size_t)s->k;
    for (int64_t call = 0; call * BATCH < c->n; call++) {
        int32_t *now = tokens + (call % 2 ? size : 0);
        if (rows[c->variant].reload &&
            !result_call(r, s->x, "panel", client_panel(s->x->iut, &s->a->view)))
            return;
        if (!law_sample(s, BATCH, now, r)) return;
        count(now, call % 2 ? tokens : NULL, s->k, j);
    }
    judge(s, j, c, r);
    name_cause(s, j, c, r);
    /* Its bets are on every token of a stream, the others on the first. */
    if (r->nats * s->k <= ST_STRICT_NATS) law_tell_speed(s, r);
}

static void run_fixed(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    char why[200];
    law_sampler s = {0};
    /* A stream of one token needs no draft; one of gamma + 2 starts with a whole step. */
    const law_op op = rows[c->variant].op;
    int32_t k = op == LAW_STREAM ? c->gamma + 2 : 1;
    int32_t *tokens = malloc(2 * (size_t)BATCH * (size_t)k * sizeof *tokens);
    joint *j = calloc(2, sizeof *j);
    panel *a = panel_make(
        &(panel_form){.V = c->V, .acceptance = c->acceptance, .seed = check_seed(x, c, 0)}, why,
        sizeof why);
    if (j) j[0].what = "neighbours of a batch", j[1].what = "consecutive calls";
    if (!a || !tokens || !j)
        result_set(r, STATE_ERROR, "%s (STA-03)", a ? "out of memory" : why);
    else if (law_sampler_open(&s, c, x, a, op, k, r) && law_strict(&s, c->n, r))
        sample(&s, c, j, tokens, r);
    law_sampler_close(&s);
    panel_free(a);
    free(tokens);
    free(j);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    if (c->drawn)
        law_drawn_case(c, x, drawn[c->variant].op, drawn[c->variant].shape, &(panel_form){.variant = PANEL_PLAIN}, r);
    else
        run_fixed(c, x, r);
}

const check check_law_calls = {
    .name = "law.calls",
    .clauses = "STAT-06 STAT-12 RNG-07 INV-01 STAT-01 STAT-02 STAT-03 STAT-04 STAT-14 STAT-15",
    .summary = "neighbouring cases of a batch, and consecutive calls, are independent",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
