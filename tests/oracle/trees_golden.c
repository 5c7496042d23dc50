/* trees_golden.c - laws of one node in rational numbers, uniforms being real (LAW-05, LAW-07): the total variations
 * that chapter 10 states, as fractions; those of a production kernel, siblings tested against unchanged p and q; and
 * those of the rules that are not lossless, on many rows, by closed forms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/list.h"
#include "tests/oracle/tree_sets.h"

static int failures;

static void fail(const char *what, const mpq_t got)
{
    if (failures++ < 20) gmp_printf("FAILED: %s: %Qd\n", what, got);
}

/* ---- Golden laws ---------------------------------------------------------------------------- */

/* What becomes of the tokens that were drawn before they are tried; or they are given, not drawn. */
typedef enum { AS_DRAWN, FALLING_Q, LIKELIEST_ALONE, REPEATS_SKIPPED, TOP_TWO, ZERO_ONE, ONE_ZERO } siblings;
/* The chapter's rule; or each child tested against p and q as they are, with max(0, p - q) at the end (a kernel). */
typedef enum { SPECIFIED, UNCHANGED } update;

typedef struct {
    const char *name;
    const float *p, *q;
    int32_t V, K;
    oracle_tree_rule rule;
    double parameter[2];
    update update;
    bool without;
    siblings siblings;
    unsigned due[2];
} golden;

static const float P1[] = {.5f, .25f, .25f}, Q1[] = {.25f, .5f, .25f};
static const float P3[] = {.125f, .375f, .5f}, Q3[] = {.625f, .25f, .125f};
/* (.5, .3, .15, .05) and (.2, .3, .1, .4) times 20/32: exact numbers normalise rows. */
static const float P2[] = {10 / 32.f, 6 / 32.f, 3 / 32.f, 1 / 32.f}, Q2[] = {4 / 32.f, 6 / 32.f, 2 / 32.f, 8 / 32.f};
/* Tokens that are given; TOP_TWO are those of Q2. */
static const int32_t given_tokens[][MOST_CHILDREN] = {[TOP_TWO] = {3, 1}, [ZERO_ONE] = {0, 1}, [ONE_ZERO] = {1, 0}};
static const float SURE[] = {1, 0}, EVEN[] = {.5f, .5f};

#define RULE ORACLE_TREE_RECURSIVE
static const golden goldens[] = {
    {"two draws, as drawn", P1, Q1, 3, 2, RULE, {0}, SPECIFIED, false, AS_DRAWN, {0, 1}},
    {"two draws, by falling q", P1, Q1, 3, 2, RULE, {0}, SPECIFIED, false, FALLING_Q, {1, 8}},
    {"two draws, the likelier kept", P1, Q1, 3, 2, RULE, {0}, SPECIFIED, false, LIKELIEST_ALONE, {1, 8}},
    {"update, independent", P2, Q2, 4, 2, RULE, {0}, SPECIFIED, false, AS_DRAWN, {0, 1}},
    {"update, without replacement", P2, Q2, 4, 2, RULE, {0}, SPECIFIED, true, AS_DRAWN, {0, 1}},
    {"update, top two, q loses the first", P2, Q2, 4, 2, RULE, {0}, SPECIFIED, true, TOP_TWO, {9, 20}},
    {"update, top two, q keeps it", P2, Q2, 4, 2, RULE, {0}, SPECIFIED, false, TOP_TWO, {111, 280}},
    {"p and q unchanged, independent", P2, Q2, 4, 2, RULE, {0}, UNCHANGED, false, AS_DRAWN, {1, 8}},
    {"p and q unchanged, without", P2, Q2, 4, 2, RULE, {0}, UNCHANGED, true, AS_DRAWN, {11, 60}},
    {"p and q unchanged, top two", P2, Q2, 4, 2, RULE, {0}, UNCHANGED, false, TOP_TWO, {13, 20}},
    {"repeats tested again", P3, Q3, 3, 2, RULE, {0}, SPECIFIED, false, AS_DRAWN, {0, 1}},
    {"repeats skipped", P3, Q3, 3, 2, RULE, {0}, SPECIFIED, false, REPEATS_SKIPPED, {5, 64}},
    /* min(q, p/l) = (1/4, 1/3, 1/4), and 1/6 falls on max(0, p - l*q) = (5, 0, 1)/16: (14, 12, 10)/36 */
    {"LENIENT at 3/4, one draw", P1, Q1, 3, 1, ORACLE_TREE_LENIENT, {.75}, SPECIFIED, false, AS_DRAWN, {1, 9}},
    /* p/l is q or more everywhere: the law is q */
    {"LENIENT at 1/2, one draw", P1, Q1, 3, 1, ORACLE_TREE_LENIENT, {.5}, SPECIFIED, false, AS_DRAWN, {1, 4}},
    {"LENIENT at 3/4, independent", P2, Q2, 4, 2, ORACLE_TREE_LENIENT, {.75}, SPECIFIED, false, AS_DRAWN, {13, 150}},
    {"LENIENT at 3/4, without", P2, Q2, 4, 2, ORACLE_TREE_LENIENT, {.75}, SPECIFIED, true, AS_DRAWN, {161, 1710}},
    /* 2/3 falls on token 0, and 1/3 on token 1 */
    {"TARGET, 3/4 and 1, two", P1, P1, 3, 2, ORACLE_TREE_TARGET, {.75, 1}, SPECIFIED, false, ZERO_ONE, {1, 4}},
    {"TARGET, 3/4 and 1, one", P1, P1, 3, 1, ORACLE_TREE_TARGET, {.75, 1}, SPECIFIED, false, ONE_ZERO, {1, 12}},
    {"TARGET, 1 and 1/4, two", P1, P1, 3, 2, ORACLE_TREE_TARGET, {1, .25}, SPECIFIED, false, ONE_ZERO, {3, 4}},
    /* the path that is kept is sure */
    {"TYPICAL at 3/16, 1 and 0", P1, P1, 3, 2, ORACLE_TREE_TYPICAL, {.1875}, SPECIFIED, false, ONE_ZERO, {3, 4}},
    {"TYPICAL at 1/4, 1 and 0", P1, P1, 3, 2, ORACLE_TREE_TYPICAL, {.25}, SPECIFIED, false, ONE_ZERO, {1, 2}},
    {"CONSTANT at 1/4, 1 and 0", P1, P1, 3, 2, ORACLE_TREE_CONSTANT, {.25}, SPECIFIED, false, ONE_ZERO, {3, 4}},
    /* m = 1/4 each, G = 5/4, and 1/16 falls on the first: (6, 5, 5)/16 */
    {"KSEQ, rho = 1, two draws", P1, Q1, 3, 2, ORACLE_TREE_KSEQ, {65536}, SPECIFIED, false, AS_DRAWN, {1, 8}},
    {"KSEQ, rho = 1, other rows", P2, Q2, 4, 2, ORACLE_TREE_KSEQ, {65536}, SPECIFIED, false, AS_DRAWN, {49, 400}},
    /* rho* is 3/2, but the ids where p < rho*q have no p */
    {"KSEQ, rho = 1, a sure p", SURE, EVEN, 2, 2, ORACLE_TREE_KSEQ, {65536}, SPECIFIED, false, AS_DRAWN, {0, 1}},
};
#undef RULE

static void share_of(mpq_t share, const float *row, int32_t V, int32_t x)
{
    mpq_t sum, one;
    mpq_inits(sum, one, (mpq_ptr)0);
    for (int32_t i = 0; i < V; i++) {
        mpq_set_d(one, (double)row[i]);
        mpq_add(sum, sum, one);
    }
    mpq_set_d(share, (double)row[x]);
    mpq_div(share, share, sum);
    mpq_clears(sum, one, (mpq_ptr)0);
}

/* TYPICAL: the child that is kept, or -1. */
static int32_t kept_of(const golden *g, const int32_t *token, int32_t n)
{
    oracle_tree_node node[MOST_NODES] = {{.token = -1, .parent = -1, .parameter = {g->parameter[0]}}};
    const float *p[MOST_NODES] = {g->p, g->p, g->p, g->p, g->p};
    const bool absent[MOST_NODES] = {false};
    for (int32_t k = 0; k < n; k++) node[k + 1] = (oracle_tree_node){.token = token[k]};
    return oracle_typical_end(node, absent, p, n + 1) - 1;
}

/* law += chance * that of the chapter's rule. */
static void add_specified(mpq_t *law, const mpq_t chance, const golden *g, const int32_t *token, int32_t n)
{
    const float *q[MOST_CHILDREN] = {g->q, g->q, g->q, g->q};
    const oracle_family f = {.rule = g->rule, .V = g->V, .p = g->p, .without = g->without, .n = n, .token = token,
                             .q = q, .kept = kept_of(g, token, n),
                             .parameter = {g->parameter[0], g->parameter[1]}};
    node_law l;
    mpq_t part;
    mpq_init(part);
    node_law_new(&l);
    node_law_of_family(&l, &f);
    for (int32_t k = 0; k < n; k++) {
        mpq_mul(part, chance, l.go[k]);
        mpq_add(law[token[k]], law[token[k]], part);
    }
    for (int32_t x = 0; x < g->V; x++) {
        mpq_mul(part, chance, l.last[x]);
        mpq_add(law[x], law[x], part);
    }
    node_law_free(&l);
    mpq_clear(part);
}

/* law += left * max(0, p - q) over its sum; nothing is left where that is 0. */
static void add_residual(mpq_t *law, const mpq_t left, const golden *g)
{
    mpq_t sum, r[MOST_VOCAB], q;
    mpq_inits(sum, q, (mpq_ptr)0);
    for (int32_t x = 0; x < g->V; x++) {
        mpq_init(r[x]);
        share_of(r[x], g->p, g->V, x);
        share_of(q, g->q, g->V, x);
        mpq_sub(r[x], r[x], q);
        if (mpq_sgn(r[x]) < 0) mpq_set_ui(r[x], 0, 1);
        mpq_add(sum, sum, r[x]);
    }
    for (int32_t x = 0; x < g->V; x++) {
        if (mpq_sgn(sum) > 0) mpq_div(r[x], r[x], sum);
        mpq_mul(r[x], r[x], left);
        mpq_add(law[x], law[x], r[x]);
        mpq_clear(r[x]);
    }
    mpq_clears(sum, q, (mpq_ptr)0);
}

/* The kernel: u*q < p for each child in turn. */
static void add_unchanged(mpq_t *law, const mpq_t chance, const golden *g, const int32_t *token, int32_t n)
{
    mpq_t left, pass, q;
    mpq_inits(left, pass, q, (mpq_ptr)0);
    mpq_set(left, chance);
    for (int32_t k = 0; k < n; k++) {
        share_of(pass, g->p, g->V, token[k]);
        share_of(q, g->q, g->V, token[k]);
        mpq_div(pass, pass, q);
        if (mpq_cmp_ui(pass, 1, 1) > 0) mpq_set_ui(pass, 1, 1);
        mpq_mul(pass, pass, left);
        mpq_add(law[token[k]], law[token[k]], pass);
        mpq_sub(left, left, pass);
    }
    add_residual(law, left, g);
    mpq_clears(left, pass, q, (mpq_ptr)0);
}

static int32_t arrange(const golden *g, int32_t *token, int32_t n)
{
    if (g->siblings == REPEATS_SKIPPED && token[0] == token[1]) return 1;
    if (g->siblings != FALLING_Q && g->siblings != LIKELIEST_ALONE) return n;
    if (g->q[token[1]] > g->q[token[0]]) {
        const int32_t first = token[0];
        token[0] = token[1], token[1] = first;
    }
    return g->siblings == FALLING_Q ? n : 1;
}

static void add_step(mpq_t *law, const mpq_t chance, const golden *g, const int32_t *drawn)
{
    int32_t token[MOST_CHILDREN];
    memcpy(token, drawn, sizeof token);
    const int32_t n = arrange(g, token, g->K);
    if (g->update == UNCHANGED)
        add_unchanged(law, chance, g, token, n);
    else
        add_specified(law, chance, g, token, n);
}

/* Every way to draw the children from i on. */
static void add_draws(mpq_t *law, const mpq_t chance, const golden *g, int32_t *token, int32_t i)
{
    float left[MOST_VOCAB];
    mpq_t with;
    if (i == MOST_CHILDREN || i == g->K) {
        add_step(law, chance, g, token);
        return;
    }
    mpq_init(with);
    memcpy(left, g->q, (size_t)g->V * sizeof *left);
    for (int32_t k = 0; k < i && g->without; k++) left[token[k]] = 0;
    for (token[i] = 0; token[i] < g->V; token[i]++) {
        share_of(with, left, g->V, token[i]);
        mpq_mul(with, with, chance);
        if (mpq_sgn(with) > 0) add_draws(law, with, g, token, i + 1);
    }
    mpq_clear(with);
}

static void law_new(mpq_t *law)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_init(law[x]);
}

static void law_free(mpq_t *law)
{
    for (int32_t x = 0; x < MOST_VOCAB; x++) mpq_clear(law[x]);
}

static void law_of_golden(mpq_t *law, const golden *g)
{
    int32_t token[MOST_CHILDREN] = {0};
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    if (g->siblings >= TOP_TWO)
        add_step(law, one, g, given_tokens[g->siblings]);
    else
        add_draws(law, one, g, token, 0);
    mpq_clear(one);
}

static void variation(mpq_t tv, mpq_t *law, const float *p, int32_t V)
{
    mpq_t own;
    mpq_init(own);
    mpq_set_ui(tv, 0, 1);
    for (int32_t x = 0; x < V; x++) {
        share_of(own, p, V, x);
        mpq_sub(own, own, law[x]);
        mpq_abs(own, own);
        mpq_add(tv, tv, own);
    }
    mpq_div_2exp(tv, tv, 1);
    mpq_clear(own);
}

static void run_goldens(void)
{
    mpq_t tv, due;
    mpq_inits(tv, due, (mpq_ptr)0);
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        const golden *g = &goldens[i];
        mpq_t law[MOST_VOCAB];
        law_new(law);
        law_of_golden(law, g);
        variation(tv, law, g->p, g->V);
        mpq_set_ui(due, g->due[0], g->due[1]);
        gmp_printf("%-36s total variation %Qd = %.3f\n", g->name, tv, mpq_get_d(tv));
        if (!mpq_equal(tv, due)) fail(g->name, tv);
        law_free(law);
    }
    mpq_set_d(tv, least_rho(SURE, EVEN, 2, 2) / 65536);
    mpq_set_ui(due, 3, 2);
    if (!mpq_equal(tv, due)) fail("rho* of a sure p", tv);
    mpq_clears(tv, due, (mpq_ptr)0);
}

/* ---- Rules that are not lossless, on many rows ---------------------------------------------- */

/* Does R fall below 0 at an id with 0 < p <= rho * q, when rho is below rho*? */
static bool has_cut(const float *p, const float *q, int32_t V, double rho)
{
    for (int32_t x = 0; x < V; x++)
        if (p[x] > 0 && (double)p[x] * 65536 <= rho * (double)q[x]) return true;
    return false;
}

/* KSQ-03: the total variation is what the trials accept too much. It is 0 from rho* on. Below rho* it is not, where an
 * id is cut. Is it above 0? */
static bool check_kseq(const float *p, const float *q, int32_t V, int32_t K, double rho, double least)
{
    const golden g = {"KSEQ", p, q, V, K, ORACLE_TREE_KSEQ, {rho}, SPECIFIED, false, AS_DRAWN, {0, 1}};
    mpq_t law[MOST_VOCAB], tv, due;
    mpq_inits(tv, due, (mpq_ptr)0);
    law_new(law);
    law_of_golden(law, &g);
    variation(tv, law, p, V);
    kseq_excess(due, p, q, V, K, rho);
    const bool lossy = mpq_sgn(tv) > 0;
    if (!mpq_equal(tv, due)) fail("KSEQ: the total variation is not what is accepted too much", tv);
    if (lossy && rho >= least) fail("KSEQ at rho* or more", tv);
    if (!lossy && rho < least && has_cut(p, q, V, rho)) fail("KSEQ below rho*", tv);
    law_free(law);
    mpq_clears(tv, due, (mpq_ptr)0);
    return lossy;
}

/* The total variation of a rule with one child, drawn from q or given. */
static void one_child(mpq_t tv, mpq_t *law, const golden *g, const int32_t *given)
{
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    for (int32_t x = 0; x < g->V; x++) mpq_set_ui(law[x], 0, 1);
    if (given)
        add_step(law, one, g, given);
    else
        law_of_golden(law, g);
    variation(tv, law, g->p, g->V);
    mpq_clear(one);
}

/* LEN-01, one draft: min(q, p/l), and what that lacks to 1 by the shares of max(0, p - l*q). So P(x) <= p(x)/l. */
static void check_lenient(const float *p, const float *q, int32_t V, double l)
{
    const golden g = {"LENIENT", p, q, V, 1, ORACLE_TREE_LENIENT, {l}, SPECIFIED, false, AS_DRAWN, {0, 1}};
    mpq_t law[MOST_VOCAB], due[MOST_VOCAB], rest[MOST_VOCAB], most, left, sum, tv;
    mpq_inits(most, left, sum, tv, (mpq_ptr)0);
    law_new(law), law_new(due), law_new(rest);
    one_child(tv, law, &g, NULL);
    mpq_set_ui(left, 1, 1);
    for (int32_t x = 0; x < V; x++) {
        mpq_set_d(due[x], (double)q[x]);
        mpq_set_d(rest[x], fmax(0, (double)p[x] - l * (double)q[x])); /* exact: few bits */
        mpq_set_d(most, (double)p[x]);
        mpq_set_d(sum, l);
        mpq_div(most, most, sum);
        if (mpq_cmp(law[x], most) > 0) fail("LENIENT: more than p/l", law[x]);
        if (mpq_cmp(most, due[x]) < 0) mpq_set(due[x], most);
        mpq_sub(left, left, due[x]);
    }
    mpq_set_ui(sum, 0, 1);
    for (int32_t x = 0; x < V; x++) mpq_add(sum, sum, rest[x]);
    for (int32_t x = 0; x < V; x++) {
        if (mpq_sgn(sum) > 0) mpq_div(rest[x], rest[x], sum);
        mpq_mul(rest[x], rest[x], left);
        mpq_add(due[x], due[x], rest[x]);
        if (!mpq_equal(law[x], due[x])) fail("LENIENT: another law", law[x]);
    }
    law_free(law), law_free(due), law_free(rest);
    mpq_clears(most, left, sum, tv, (mpq_ptr)0);
}

/* TGT-03, one child t: it is gone to with the chance min(1, p(t)/alpha), or surely if p(t) >= sigma. That, less p(t),
 * is the total variation. */
static void check_target(const float *p, int32_t V, int32_t t, double alpha, double sigma)
{
    golden g = {"TARGET", p, p, V, 1, ORACLE_TREE_TARGET, {alpha, sigma}, SPECIFIED, false, AS_DRAWN, {0, 1}};
    const int32_t given[MOST_CHILDREN] = {t};
    mpq_t law[MOST_VOCAB], tv, due, own;
    mpq_inits(tv, due, own, (mpq_ptr)0);
    law_new(law);
    one_child(tv, law, &g, given);
    mpq_set_d(own, (double)p[t]);
    mpq_set_d(due, alpha);
    mpq_div(due, own, due);
    if (mpq_cmp_ui(due, 1, 1) > 0 || (sigma < 1 && (double)p[t] >= sigma)) mpq_set_ui(due, 1, 1);
    mpq_sub(due, due, own);
    if (!mpq_equal(tv, due)) fail("TARGET with thresholds: another total variation", tv);
    law_free(law);
    mpq_clears(tv, due, own, (mpq_ptr)0);
}

/* Laws below rho*, and those of them that are lossless. */
typedef struct {
    int32_t checks, below, lossless;
} tally;

static void check_factors(const float *p, const float *q, int32_t V, tally *y)
{
    for (int32_t K = 2; K <= 3; K++) {
        const double least = least_rho(p, q, V, K), rho[] = {65536, least - 1, least};
        for (int32_t i = 0; i < 3; i++) {
            if (rho[i] < 65536) continue;
            const bool lossy = check_kseq(p, q, V, K, rho[i], least);
            y->checks++;
            y->below += rho[i] < least;
            y->lossless += rho[i] < least && !lossy;
        }
    }
}

static void run_declared(row_set *sets, int32_t n)
{
    enum { ROWS = 21 }; /* paths of at most two tokens, V = 4 */
    tally y = {0};
    for (int32_t i = 0; i < n * ROWS; i++) {
        const row_set *s = &sets[i / ROWS];
        const float *p = s->p[i % ROWS], *q = s->q[i % ROWS][0];
        check_factors(p, q, s->V, &y);
        check_lenient(p, q, s->V, .75);
        check_lenient(p, q, s->V, .125);
        for (int32_t t = 0; t < s->V; t++, y.checks += 3) {
            check_target(p, s->V, t, .75, 1);
            check_target(p, s->V, t, 1, .25);
            check_target(p, s->V, t, .5, .375);
        }
        y.checks += 2;
    }
    printf("KSEQ, LENIENT, TARGET with thresholds: %d laws; %d of KSEQ are below rho*, %d of these lossless\n",
           (int)y.checks, (int)y.below, (int)y.lossless);
}

int main(void)
{
    row_set *sets = oracle_take(SETS, sizeof *sets);
    for (int32_t i = 0; i < SETS; i++) row_set_make(&sets[i], i);
    run_goldens();
    run_declared(sets, SETS);
    free(sets);
    printf("%d failures\n", failures);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
