/* nodes_test.c - the rules on trees of drafts: chains against the rules of verify.h; the exact law of the token behind a
 * node, by bisection of the compiled function over its uniforms, for rows whose laws are known; refusals by name. Clauses
 * TRV, SIB, REC, TGT, NIR, KSQ, BLK, TYP, CST, LEN, LAW-06, LAW-07, RNG-09. */
#include <math.h>
#include <string.h>

#include "ref/dist/served.h"
#include "ref/num/uniform.h"
#include "ref/verify/nodes.h"
#include "ref/verify/verify.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { V = 4, MOST = 6 };
static const double HIGHEST = 1.0 - 0x1p-29;

typedef struct {
    as_tree_step s;
    as_node node[2 * MOST];
    double u[2 * MOST];
    float p[2 * MOST][V], q[2 * MOST][V];
    int32_t out[2 * MOST], path[2 * MOST], length;
} tree;

static void run(tree *t)
{
    as_error e;
    const as_status s = as_verify_nodes(&t->s, t->out, t->path, &t->length, &e);
    if (s != AS_OK) ck_abort_msg("%s", e.text);
}

static void start(tree *t, as_tree_rule rule, const float *p)
{
    memset(t, 0, sizeof *t);
    t->s = (as_tree_step){.rule = rule, .V = V, .nodes = 1, .node = t->node, .u = t->u};
    memcpy(t->p[0], p, sizeof t->p[0]);
    t->node[0] = (as_node){.token = -1, .parent = -1, .p = t->p[0], .parameter = {1, 1}};
    if (rule == AS_TREE_KSEQ) t->node[0].parameter[0] = 0;
}

static void add(tree *t, int32_t parent, int32_t token, const float *p, const float *q)
{
    const int32_t i = t->s.nodes++;
    memcpy(t->p[i], p, sizeof t->p[i]);
    if (q) memcpy(t->q[i], q, sizeof t->q[i]);
    t->node[i] = (as_node){token, parent, t->p[i], q ? t->q[i] : NULL, false, {1, 1}};
    if (t->s.rule == AS_TREE_KSEQ) t->node[i].parameter[0] = 0;
}

/* ---- The law behind the root, exactly. --------------------------------------------- */

/* One uniform in steps of 2^-bits, and what the step does with it: numbers that do not fall. */
typedef int32_t outcome(tree *t, double u);

/* The share of [0, 1) that has each outcome, 0 to n - 1. */
static void shares(tree *t, outcome *f, int bits, double *share, int32_t n)
{
    const uint64_t end = UINT64_C(1) << bits;
    memset(share, 0, (size_t)n * sizeof *share);
    for (uint64_t at = 0; at < end;) {
        const int32_t o = f(t, ldexp((double)at, -bits));
        uint64_t low = at, high = end;
        ck_assert(o >= 0 && o < n);
        while (high - low > 1) {
            const uint64_t middle = low + (high - low) / 2;
            if (f(t, ldexp((double)middle, -bits)) == o) low = middle;
            else high = middle;
        }
        share[o] = ldexp((double)(high - at), -bits);
        at = high;
    }
}

static int32_t trying; /* the child */

static int32_t refused(tree *t, double u)
{
    t->u[trying] = u;
    run(t);
    return !(t->length > 1 && t->path[0] == trying);
}

static int32_t last_token(tree *t, double u)
{
    t->s.residual = (uint64_t)(u * 0x1p53) << 11;
    run(t);
    return t->out[0];
}

static int32_t chosen(tree *t, double u)
{
    t->u[0] = u;
    run(t);
    return t->length > 1 ? t->path[0] - 1 : t->s.nodes - 1;
}

/* Rules that test child by child. */
static void law_of_tests(tree *t, double *law)
{
    double share[V], reach = 1;
    for (int32_t i = 1; i < t->s.nodes; i++) t->u[i] = HIGHEST;
    for (trying = 1; trying < t->s.nodes; trying++) {
        shares(t, refused, 29, share, 2);
        law[t->node[trying].token] += reach * share[0];
        reach *= share[1];
        if (reach == 0) return;
        t->u[trying] = HIGHEST;
    }
    shares(t, last_token, 53, share, V);
    for (int32_t x = 0; x < V; x++) law[x] += reach * share[x];
}

/* TARGET: one choice. */
static void law_of_choice(tree *t, double *law)
{
    double share[MOST], rest[V];
    const int32_t children = t->s.nodes - 1;
    shares(t, chosen, 53, share, children + 1);
    for (int32_t i = 0; i < children; i++) law[t->node[i + 1].token] += share[i];
    if (share[children] == 0) return;
    t->u[0] = 1.0 - 0x1p-53;
    shares(t, last_token, 53, rest, V);
    for (int32_t x = 0; x < V; x++) law[x] += share[children] * rest[x];
}

typedef struct {
    as_tree_rule rule;
    double parameter;
    bool without;
    const float *p, *q;
    int32_t children;
} root;

static void law_of(const root *r, const int32_t *token, double *law)
{
    tree t;
    memset(law, 0, V * sizeof *law);
    start(&t, r->rule, r->p);
    if (r->parameter > 0) t.node[0].parameter[0] = r->parameter;
    t.node[0].without = r->without;
    for (int32_t i = 0; i < r->children; i++) {
        add(&t, 0, token[i], r->p, r->q);
        t.node[i + 1].q = t.q[1];
    }
    if (r->rule == AS_TREE_TARGET)
        law_of_choice(&t, law);
    else
        law_of_tests(&t, law);
}

static double distance(const double *law, const float *p)
{
    double sum = 0, total = 0;
    for (int32_t x = 0; x < V; x++) total += (double)p[x];
    for (int32_t x = 0; x < V; x++) sum += fabs(law[x] - (double)p[x] / total);
    return sum / 2;
}

/* Which children a draft model's tokens become. */
typedef enum { AS_DRAWN, BY_FALLING_Q, LIKELIEST_ALONE } order;

static void average(const root *r, order how, double chance, int32_t *token, int32_t n, double *sum)
{
    double law[V];
    if (n < r->children) {
        double left = 1;
        for (int32_t i = 0; r->without && i < n; i++) left -= (double)r->q[token[i]];
        for (token[n] = 0; token[n] < V; token[n]++) {
            bool before = false;
            for (int32_t i = 0; i < n; i++) before |= token[i] == token[n];
            if (r->q[token[n]] > 0 && !(r->without && before))
                average(r, how, chance * (double)r->q[token[n]] / left, token, n + 1, sum);
        }
        return;
    }
    int32_t tried[MOST] = {0};
    root given = *r;
    for (int32_t i = 0; i < r->children; i++) tried[i] = token[i];
    for (int32_t i = 1; how != AS_DRAWN && i < n; i++)
        for (int32_t k = i; k > 0 && r->q[tried[k]] > r->q[tried[k - 1]]; k--) {
            const int32_t swap = tried[k];
            tried[k] = tried[k - 1], tried[k - 1] = swap;
        }
    if (how == LIKELIEST_ALONE) given.children = 1;
    law_of(&given, tried, law);
    for (int32_t x = 0; x < V; x++) sum[x] += chance * law[x];
}

/* Total variation between p and the law, averaged over trees drawn from q. */
static double drawn_distance(const root *r, order how)
{
    int32_t token[MOST];
    double law[V] = {0};
    average(r, how, 1, token, 0, law);
    return distance(law, r->p);
}

static const float GOLD_P[V] = {0.5f, 0.25f, 0.25f}, GOLD_Q[V] = {0.25f, 0.5f, 0.25f};

START_TEST(golden_laws)
{
    root r = {AS_TREE_RECURSIVE, 0, false, GOLD_P, GOLD_Q, 2};
    ck_assert_double_lt(drawn_distance(&r, AS_DRAWN), 0x1p-28);
    ck_assert_double_eq_tol(drawn_distance(&r, BY_FALLING_Q), 0.125, 0x1p-28);
    ck_assert_double_eq_tol(drawn_distance(&r, LIKELIEST_ALONE), 0.125, 0x1p-28);
    const float p[V] = {.5f, .3f, .15f, .05f}, q[V] = {.2f, .3f, .1f, .4f};
    double law[V];
    r.p = p, r.q = q;
    ck_assert_double_lt(drawn_distance(&r, AS_DRAWN), 1e-7);
    law_of(&r, (int32_t[]){3, 1}, law);
    ck_assert_double_eq_tol(distance(law, p), 111. / 280, 1e-6);
    r.without = true;
    ck_assert_double_lt(drawn_distance(&r, AS_DRAWN), 1e-7);
    law_of(&r, (int32_t[]){3, 1}, law);
    ck_assert_double_eq_tol(distance(law, p), 0.45, 1e-6);
}
END_TEST

/* Multiples of 2^-12; some entries 0. */
static void random_row(uint64_t *rng, float *row)
{
    int32_t left = 4096, n[V] = {0};
    for (int32_t x = 0; x < V - 1; x++) left -= n[x] = below(rng, 4) ? below(rng, left + 1) : 0;
    n[V - 1] = left;
    const int32_t shift = below(rng, V);
    for (int32_t x = 0; x < V; x++) row[(x + shift) % V] = (float)n[x] / 4096;
}

/* rho* of KSEQ or more, in steps of 2^-16. */
static double certified(const float *p, const float *q, int32_t K)
{
    for (int32_t rho = 65536; rho < K * 65536; rho += 64) {
        double beta = 0, most = 0;
        for (int32_t x = 0; x < V; x++) beta += fmin((double)q[x], (double)p[x] * 65536 / rho);
        most = beta > 0 ? (1 - pow(1 - beta, K)) / beta : K;
        if (most * 65536 <= rho - 1e-6) return rho;
    }
    return 0;
}

START_TEST(rules_for_drawn_trees_are_lossless)
{
    uint64_t rng = 18;
    float p[V], q[V];
    for (int32_t i = 0; i < 60; i++) {
        random_row(&rng, p), random_row(&rng, q);
        const int32_t K = 1 + below(&rng, 3);
        const root set[] = {{AS_TREE_RECURSIVE, 0, false, p, q, K}, {AS_TREE_RECURSIVE, 0, true, p, q, K},
                            {AS_TREE_SINGLE, 0, false, p, q, K},    {AS_TREE_KSEQ, 0, false, p, q, K},
                            {AS_TREE_LENIENT, 1, true, p, q, K},
                            {AS_TREE_KSEQ, certified(p, q, K), false, p, q, K}};
        int32_t support = 0;
        for (int32_t x = 0; x < V; x++) support += q[x] > 0;
        for (size_t k = 0; k < sizeof set / sizeof *set; k++) {
            if (set[k].without && support < K) continue;
            const double d = drawn_distance(&set[k], AS_DRAWN);
            if (d > 4 * 0x1p-29) ck_abort_msg("round %d, rule %d, %d children: %g", i, (int)set[k].rule, K, d);
        }
    }
}
END_TEST

START_TEST(rules_for_any_tree_are_lossless)
{
    uint64_t rng = 19;
    float p[V];
    double law[V];
    for (int32_t i = 0; i < 400; i++) {
        random_row(&rng, p);
        const root r = {below(&rng, 2) ? AS_TREE_TARGET : AS_TREE_ONEHOT, 0, false, p, p, 1 + below(&rng, 4)};
        const int32_t token[] = {below(&rng, V), below(&rng, V), below(&rng, V), below(&rng, V)};
        law_of(&r, token, law);
        if (distance(law, p) > 4 * 0x1p-29)
            ck_abort_msg("round %d, rule %d, %d children: %g", i, (int)r.rule, (int)r.children, distance(law, p));
    }
}
END_TEST

/* rho is up to 4,096, so rho * Q passes 2^64 (KSQ-03): what 32 refusals leave, against real numbers. */
START_TEST(many_children_leave_what_kseq_says)
{
    enum { K = 32 }; /* rho * Q is 2^64 for the first id */
    const float p[V] = {.5f, .25f, .125f, .125f}, q[V] = {.5f, .375f, .125f, 0};
    as_node node[K + 1] = {{.token = -1, .parent = -1, .p = p}};
    double u[K + 1], share[V] = {0}, left[V], total = 0, beta = 0;
    for (int32_t i = 1; i <= K; i++) node[i] = (as_node){.token = 0, .parent = 0, .p = p, .q = q}, u[i] = HIGHEST;
    as_tree_step s = {.rule = AS_TREE_KSEQ, .V = V, .nodes = K + 1, .node = node, .u = u};
    for (int32_t x = 0; x < V; x++) beta += fmin((double)q[x], (double)p[x] / K);
    for (int32_t x = 0; x < V; x++) {
        const double taken = fmin((double)q[x], (double)p[x] / K) * (1 - pow(1 - beta, K)) / beta;
        total += left[x] = fmax(0, (double)p[x] - taken);
    }
    for (uint64_t i = 0; i < 4096; i++) {
        int32_t out[2], path[1], length;
        as_error e;
        s.residual = i << 52;
        ck_assert_int_eq(as_verify_nodes(&s, out, path, &length, &e), AS_OK);
        ck_assert_int_eq(length, 1);
        share[out[0]] += 1. / 4096;
    }
    for (int32_t x = 0; x < V; x++) ck_assert_double_eq_tol(share[x], left[x] / total, 1. / 2048);
}
END_TEST

/* TRV-01, TRV-04: rows of what a placeholder makes absent need not be there. */
START_TEST(nothing_below_a_placeholder_is_looked_at)
{
    const float p[V] = {.5f, .5f};
    for (int32_t rule = 0; rule < AS_TREE_RULES; rule++) {
        const double x = rule == AS_TREE_KSEQ ? 0 : .25;
        const as_node node[] = {{-1, -1, p, NULL, false, {x, 1}}, {-1, 0, NULL, NULL, false, {x, 1}},
                                {0, 1, NULL, NULL, false, {x, 1}}, {1, 2, NULL, NULL, false, {x, 1}}};
        const double u[4] = {0};
        const as_tree_step s = {.rule = (as_tree_rule)rule, .V = V, .nodes = 4, .node = node, .u = u};
        int32_t out[4], path[3], length;
        as_error e;
        ck_assert_int_eq(as_verify_nodes(&s, out, path, &length, &e), AS_OK);
        ck_assert_int_eq(length, 1);
        ck_assert_int_eq(out[0], 0);
    }
}
END_TEST

/* TGT-03 compares p itself with sigma, whatever its weight is rounded to. */
START_TEST(a_probability_without_weight_reaches_sigma)
{
    const float p[V] = {1, 0, 0, 0x1p-48f};
    tree t;
    start(&t, AS_TREE_TARGET, p);
    add(&t, 0, 3, p, p);
    t.u[0] = HIGHEST;
    run(&t);
    ck_assert_int_eq(t.length, 1);
    t.node[0].parameter[1] = 0x1p-48;
    run(&t);
    ck_assert_int_eq(t.length, 2);
}
END_TEST

/* ---- Refusals: TRV-07, TRV-11. ----------------------------------------------------- */

static void expect(const tree *t, const char *refusal)
{
    as_error e = {.text = ""};
    const as_status s = as_check_nodes(&t->s, &e);
    if (!refusal && s != AS_OK) ck_abort_msg("refused: %s", e.text);
    if (refusal && (s != AS_BAD_INPUT || !strstr(e.text, refusal))) ck_abort_msg("not \"%s\": %s", refusal, e.text);
}

/* Two children; the parameter at its last allowed value, and beyond. */
START_TEST(parameters_out_of_range_are_refused_by_name)
{
    static const float row[V] = {0.5f, 0.25f, 0.25f, 0};
    static const struct {
        as_tree_rule rule;
        int32_t which;
        double allowed, wrong;
        const char *says;
    } list[] = {
        {AS_TREE_TARGET, 0, 1, 1 + 0x1p-23, "node 0: alpha 1"},
        {AS_TREE_TARGET, 0, 0x1p-149, 0, "node 0: alpha 0"},
        {AS_TREE_TARGET, 1, 1, 1 + 0x1p-23, "and sigma 1"},
        {AS_TREE_TARGET, 1, 0x1p-149, NAN, "and sigma nan"},
        {AS_TREE_KSEQ, 0, 131072, 131073, "node 0: rho is 131073/65536"},
        {AS_TREE_KSEQ, 0, 65536, 65535, "rho is 65535/65536"},
        {AS_TREE_KSEQ, 0, 65537, 65537.5, "rho is 65537.5/65536"},
        {AS_TREE_TYPICAL, 0, 0, -0x1p-149, "a threshold of -1.4013e-45; it must be 0 or more"},
        {AS_TREE_CONSTANT, 0, 0x1p-149, 0, "a threshold of 0; it must be above 0"},
        {AS_TREE_LENIENT, 0, 1, 1 + 0x1p-23, "a lenience of 1; it must be in (0, 1]"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        tree t;
        start(&t, list[i].rule, row);
        add(&t, 0, 1, row, row), add(&t, 0, 2, row, row);
        t.node[0].parameter[list[i].which] = list[i].allowed;
        expect(&t, NULL);
        t.node[0].parameter[list[i].which] = list[i].wrong;
        expect(&t, list[i].says);
    }
}
END_TEST

/* A sum of 2 is a total of 2^45; the largest binary32 below 1 leaves it under. */
START_TEST(rows_that_are_too_heavy_are_refused_by_name)
{
    static const float row[V] = {0.5f, 0.5f, 0, 0}, heavy[V] = {1, 0, 1, 0}, light[V] = {1, 0, 1 - 0x1p-24f, 0};
    tree t;
    start(&t, AS_TREE_RECURSIVE, row);
    add(&t, 0, 0, row, row);
    expect(&t, NULL);
    memcpy(t.p[1], light, sizeof light), memcpy(t.q[1], light, sizeof light);
    expect(&t, NULL);
    memcpy(t.q[1], heavy, sizeof heavy);
    expect(&t, "node 1: the weights of its row q add up to 2^45 or more");
    memcpy(t.p[1], heavy, sizeof heavy);
    expect(&t, "node 1: the weights of its row p add up to 2^45 or more");
}
END_TEST

/* ---- Chains: TRV-09. --------------------------------------------------------------- */

START_TEST(a_chain_is_the_rule_of_chains)
{
    uint64_t rng = 20;
    for (int32_t i = 0; i < 4000; i++) {
        static const as_tree_rule rules[] = {AS_TREE_RECURSIVE, AS_TREE_KSEQ, AS_TREE_LENIENT, AS_TREE_MATCH,
                                             AS_TREE_GREEDY, AS_TREE_ONEHOT};
        const as_tree_rule rule = rules[below(&rng, 6)];
        const int32_t n = below(&rng, MOST);
        const bool given = coin(&rng);
        const float *p[MOST + 1], *q[MOST + 1];
        int32_t draft[MOST], due[MOST + 1], length = 0;
        double u[MOST + 1];
        uint64_t U[MOST + 1];
        float row[V], law[V];
        tree t;
        random_row(&rng, row);
        start(&t, rule, row);
        for (int32_t k = 0; k < n; k++) {
            random_row(&rng, row), random_row(&rng, law);
            draft[k] = below(&rng, V + 1) - 1;
            add(&t, k, draft[k], row, law);
        }
        for (int32_t k = 0; k <= n; k++) {
            p[k] = t.p[k], q[k] = k < n ? t.q[k + 1] : NULL;
            u[k] = ldexp((double)(splitmix(&rng) >> 35), -29);
            U[k] = (uint64_t)(u[k] * 0x1p53) << 11;
            t.u[rule == AS_TREE_MATCH ? k : k + 1] = u[k];
        }
        t.s.residual = splitmix(&rng), t.s.bonus = splitmix(&rng);
        if (!given) t.s.u = NULL, t.s.seed = splitmix(&rng), t.s.position = splitmix(&rng) >> 20;
        if (rule == AS_TREE_MATCH) {
            length = given ? as_verify_match(p, draft, n, V, U, due)
                           : as_verify_match_seeded(p, draft, n, V, t.s.seed, t.s.position, due);
        } else if (rule == AS_TREE_GREEDY) {
            length = as_verify_greedy(p, draft, n, V, due);
        } else if (rule == AS_TREE_ONEHOT) {
            const int32_t counted = as_draft_length(draft, n, V);
            do {
                const int32_t k = length;
                const as_onehot_uniforms x = {&U[k], t.s.residual, t.s.bonus};
                due[length++] = given ? as_onehot(p[k], V, &draft[k], k < counted, &x, row)
                                      : as_onehot_seeded(p[k], V, &draft[k], k < counted, t.s.seed,
                                                         t.s.position + (uint64_t)k, row);
            } while (length <= counted && due[length - 1] == draft[length - 1]);
        } else {
            const as_chain_uniforms x = {u, t.s.residual, t.s.bonus, NULL};
            length = given ? as_verify_chain(p, q, draft, n, V, &x, due)
                           : as_verify_chain_seeded(p, q, draft, n, V, t.s.seed, t.s.position, due);
        }
        run(&t);
        if (t.length != length || memcmp(t.out, due, (size_t)length * sizeof *due) != 0)
            ck_abort_msg("round %d, rule %d, %d drafts: %d tokens where %d are due", i, (int)rule, n, t.length, length);
        for (int32_t k = 0; k + 1 < t.length; k++) ck_assert_int_eq(t.path[k], k + 1);
    }
}
END_TEST

/* ---- Block verification. ------------------------------------------------------------ */

/* A chain of two drafts. */
static void start_block(tree *t, const float p[3][V], const float q[2][V], int32_t first, int32_t second)
{
    start(t, AS_TREE_BLOCK, p[0]);
    add(t, 0, first, p[1], q[0]);
    add(t, 1, second, p[2], q[1]);
}

/* The chance that draft i of two stands, whatever the other does. */
static double stands(tree *t, int32_t i)
{
    uint64_t low = 0, high = UINT64_C(1) << 29;
    t->u[1] = t->u[2] = HIGHEST;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        t->u[i] = ldexp((double)middle, -29);
        run(t);
        if (t->length == i + 1) low = middle + 1;
        else high = middle;
    }
    return ldexp((double)low, -29);
}

/* The law of the last token of a step that keeps `kept` drafts. */
static void law_of_last(tree *t, int32_t kept, double *share)
{
    memset(share, 0, V * sizeof *share);
    for (t->s.residual = 0;;) {
        run(t);
        ck_assert_int_eq(t->length, kept + 1);
        const uint64_t from = t->s.residual;
        const int32_t token = t->out[kept];
        uint64_t low = from, high = UINT64_MAX;
        while (low < high) {
            t->s.residual = high - (high - low) / 2;
            run(t);
            if (t->out[kept] == token) low = t->s.residual;
            else high = t->s.residual - 1;
        }
        share[token] += ldexp((double)(low - from) + 1, -64);
        if (low == UINT64_MAX) return;
        t->s.residual = low + 1;
    }
}

/* The law of the first two tokens, with a draw from p behind a step of one. */
static void add_block(const float p[3][V], const float q[2][V], int32_t a, int32_t b, double joint[V][V])
{
    const double chance = (double)q[0][a] * (double)q[1][b];
    double share[V];
    tree t;
    if (chance == 0) return;
    start_block(&t, p, q, a, b);
    const double two = stands(&t, 2), one = two < 1 ? (1 - two) * stands(&t, 1) : 0, none = 1 - two - one;
    joint[a][b] += chance * two;
    t.u[1] = 0, t.u[2] = HIGHEST;
    if (one > 0) law_of_last(&t, 1, share);
    for (int32_t y = 0; one > 0 && y < V; y++) joint[a][y] += chance * one * share[y];
    t.u[1] = HIGHEST;
    if (none > 0) law_of_last(&t, 0, share);
    for (int32_t x = 0; none > 0 && x < V; x++)
        for (int32_t y = 0; y < V; y++) joint[x][y] += chance * none * share[x] * (double)p[1][y];
}

START_TEST(blocks_are_lossless)
{
    uint64_t rng = 21;
    for (int32_t round = 0; round < 40; round++) {
        float p[3][V], q[2][V];
        double joint[V][V] = {{0}};
        for (int32_t k = 0; k < 3; k++) random_row(&rng, p[k]);
        for (int32_t k = 0; k < 2; k++) random_row(&rng, q[k]);
        for (int32_t x = 0; x < V * V; x++) add_block(p, q, x / V, x % V, joint);
        for (int32_t x = 0; x < V * V; x++) {
            const double due = (double)p[0][x / V] * (double)p[1][x % V];
            if (fabs(joint[x / V][x % V] - due) > 4 * 0x1p-29)
                ck_abort_msg("round %d, tokens %d, %d: %g where %g is due", round, x / V, x % V, joint[x / V][x % V], due);
        }
    }
}
END_TEST

/* Sun et al. 2024, section 3: p = (1/3, 2/3) and q = (2/3, 1/3) whatever the context, two drafts. On average blocks keep
 * 11/9 of them, the token rule 10/9. */
START_TEST(blocks_keep_what_the_paper_says)
{
    const float third = 1.0f / 3, rows[2][V] = {{third, 1 - third}, {1 - third, third}};
    const float p[3][V] = {{third, 1 - third}, {third, 1 - third}, {third, 1 - third}};
    const float q[2][V] = {{1 - third, third}, {1 - third, third}};
    double blocks = 0, tokens = 0;
    for (int32_t x = 0; x < 4; x++) {
        const int32_t draft[] = {x / 2, x % 2};
        const double chance = (double)q[0][draft[0]] * (double)q[1][draft[1]];
        tree t;
        start_block(&t, p, q, draft[0], draft[1]);
        const double two = stands(&t, 2);
        blocks += chance * (2 * two + (two < 1 ? (1 - two) * stands(&t, 1) : 0));
        const double first = fmin(1, (double)rows[0][draft[0]] / (double)rows[1][draft[0]]),
                     second = fmin(1, (double)rows[0][draft[1]] / (double)rows[1][draft[1]]);
        tokens += chance * (first + first * second);
    }
    ck_assert_double_eq_tol(blocks, 11. / 9, 1e-6);
    ck_assert_double_eq_tol(tokens, 10. / 9, 1e-6);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("nodes");
    tcase_add_test(tests, golden_laws);
    tcase_add_test(tests, rules_for_drawn_trees_are_lossless);
    tcase_add_test(tests, rules_for_any_tree_are_lossless);
    tcase_add_test(tests, many_children_leave_what_kseq_says);
    tcase_add_test(tests, nothing_below_a_placeholder_is_looked_at);
    tcase_add_test(tests, a_probability_without_weight_reaches_sigma);
    tcase_add_test(tests, parameters_out_of_range_are_refused_by_name);
    tcase_add_test(tests, rows_that_are_too_heavy_are_refused_by_name);
    tcase_add_test(tests, a_chain_is_the_rule_of_chains);
    tcase_add_test(tests, blocks_are_lossless);
    tcase_add_test(tests, blocks_keep_what_the_paper_says);
    return suite_main("nodes", tests);
}
