/* seeds.bits - do two seeds that differ in one high bit have answers of their own (CLM-29)? All cases of a call are the
 * same but for their seeds. If a call with another bit set has the same answers, one by one, that bit does not count,
 * or chance has put independent answers into the same order. The latter is as rare as seeds.h says, whatever the law.
 *
 * Of `verify` the decision on a draft, the correction and the bonus token are looked at apart: each may have a seed
 * that was cut. So they are of `verify_tree`: trees of one draft, by the first of its rules that draws and takes no
 * parameters. */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/seeds.h"

enum { VERIFY, DRAW, STREAM, TREE, KINDS };
enum { BARE = 64, DRAFTS = 128, CASES = BARE + DRAFTS, K = 4 };
static const iut_op ops[KINDS] = {OP_VERIFY, OP_DRAW, OP_STREAM, OP_VERIFY_TREE};

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {8, 64};
    (void)level;
    for (int32_t i = 0; i < 2 * KINDS; i++) {
        check_case *c = plan_case(p, &check_seeds_bits, "%s-V%d", iut_op_name(ops[i / 2]), (int)V[i % 2]);
        c->V = V[i % 2];
        c->gamma = i / 2 != DRAW;
        c->variant = i / 2;
        c->n = CASES;
        c->cost = cost_of_rows(c->n, c->V);
    }
}

/* The lowest of the claimed bits. */
static int32_t first_of(int32_t claimed)
{
    return claimed & -claimed;
}

static int32_t rule_of(const client *tested)
{
    return first_of(client_claims(tested)->tree_rules &
                    (IUT_TREE_RECURSIVE | IUT_TREE_MATCH | IUT_TREE_ONEHOT | IUT_TREE_SINGLE | IUT_TREE_BLOCK));
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (c->variant == TREE && !rule_of(tested))
        return (void)snprintf(why, size, "tree_rules has no rule that is asked for"), false;
    if (c->variant == TREE && !client_claims(tested)->tree_drawn)
        return (void)snprintf(why, size, "tree_drawn is not declared"), false;
    if (c->variant == TREE && client_claims(tested)->tree_bonus == IUT_BONUS_GIVEN)
        return (void)snprintf(why, size, "tree_bonus has no token that is drawn"), false;
    return check_has(tested, ops[c->variant], why, size) && seeds_claimed(tested, why, size) &&
           replay_fits_whole(c, tested, why, size);
}

/* One state: each token has p = 1/V, and the first half have q = 2/V. A draft of these is accepted with chance 1/2 by
 * the token rule, and with 1/V if q does not count. */
static probe *rows(int32_t V)
{
    probe *m = probe_open(1, V);
    for (int32_t t = 0; m && t < V; t++) {
        probe_p(m, 0)[t] = 1.0f / (float)V;
        probe_q(m, 0)[t] = 2 * t < V ? 2.0f / (float)V : 0;
    }
    return m;
}

typedef struct {
    int32_t length[CASES], token[CASES * K]; /* K tokens a case, -1 behind them */
} answers;

static bool ask_verify(const check_context *x, const probe *m, uint64_t seed, answers *a, check_result *r)
{
    steps s;
    bool ok = steps_open(&s, 1, CASES, r);
    for (int32_t i = 0; ok && i < CASES; i++) {
        steps_add(&s, i >= BARE);
        if (i >= BARE) *steps_draft(&s, i) = 0;
    }
    ok = ok && steps_verify(&s, x, m->V, seed, 0, r);
    for (int32_t i = 0; ok && i < CASES; i++) {
        a->length[i] = s.out_len[i];
        memcpy(a->token + i * K, steps_out(&s, i), 2 * sizeof *a->token);
    }
    steps_close(&s);
    return ok;
}

static bool ask_draw(const check_context *x, uint64_t seed, answers *a, check_result *r)
{
    const int32_t state[CASES] = {0};
    int32_t token[CASES];
    memset(token, 0xff, sizeof token);
    iut_draw_batch b = {sizeof b, CASES, state, NULL, seed, 0, token};
    if (!result_call(r, x, "draw", client_draw(x->iut, &b))) return false;
    for (int32_t i = 0; i < CASES; i++) a->token[i * K] = token[i];
    return true;
}

static bool ask_stream(const check_context *x, uint64_t seed, answers *a, check_result *r)
{
    const int32_t start[CASES] = {0};
    int32_t accepted[CASES * K];
    memset(accepted, 0xff, sizeof accepted);
    iut_stream_batch b = {sizeof b, CASES, 1, K, -1, start, seed, a->token, a->length, accepted};
    return result_call(r, x, "stream", client_stream(x->iut, &b));
}

/* Roots alone, and roots with one draft. */
static bool ask_tree(const check_context *x, uint64_t seed, answers *a, check_result *r)
{
    enum { NODES = CASES + DRAFTS };
    static const int32_t zero[NODES];
    static const double neutral[2 * NODES];
    const iut_claims *claims = client_claims(x->iut);
    int32_t count[CASES], rule[CASES], token[NODES], parent[NODES], q_state[NODES], drawn[NODES], out[2 * CASES],
        node[2 * CASES];
    for (int32_t i = 0, at = 0; i < CASES; i++) {
        count[i] = 1 + (i >= BARE), rule[i] = rule_of(x->iut);
        token[at] = parent[at] = q_state[at] = -1, drawn[at] = 0;
        if (count[i] == 2) {
            drawn[at++] = first_of(claims->tree_drawn);
            token[at] = parent[at] = q_state[at] = drawn[at] = 0;
        }
        at++;
    }
    memset(out, 0xff, sizeof out);
    memset(node, 0xff, sizeof node);
    iut_tree_batch b = {.size = sizeof b,
                        .n = CASES,
                        .nodes = NODES,
                        .depth = 1,
                        .node_count = count,
                        .token = token,
                        .parent = parent,
                        .state = zero,
                        .q_state = q_state,
                        .drawn = drawn,
                        .parameter = neutral,
                        .rule = rule,
                        .seed = seed,
                        .out = out,
                        .out_node = node,
                        .out_len = a->length};
    if (!result_call(r, x, "verify_tree", client_verify_tree(x->iut, &b))) return false;
    for (int32_t i = 0; i < CASES; i++) memcpy(a->token + i * K, out + 2 * i, 2 * sizeof *out);
    return true;
}

static bool ask(const check_case *c, const check_context *x, const probe *m, uint64_t seed, answers *a, check_result *r)
{
    memset(a, 0xff, sizeof *a);
    return c->variant == VERIFY   ? ask_verify(x, m, seed, a, r)
           : c->variant == DRAW ? ask_draw(x, seed, a, r)
           : c->variant == TREE ? ask_tree(x, seed, a, r)
                                : ask_stream(x, seed, a, r);
}

/* The n answers of one kind that both calls have. */
typedef struct {
    const char *what;
    int32_t n, width, a[CASES * K], b[CASES * K];
} kind;

static void take(kind *k, const int32_t *a, const int32_t *b)
{
    memcpy(k->a + k->n * k->width, a, (size_t)k->width * sizeof *a);
    memcpy(k->b + k->n * k->width, b, (size_t)k->width * sizeof *b);
    k->n++;
}

/* log10 of the chance, 1 if they differ; FAIL if it is too small to be one. */
static double judge(const kind *k, const check_context *x, uint64_t seed, int32_t bit, check_result *r)
{
    const double log10_chance = seeds_log10(k->a, k->b, k->width, k->n);
    r->compared += k->n;
    if (log10_chance <= SEEDS_LINE)
        result_set(r, STATE_FAIL,
                   "seeds %llu and on, and the same with bit %d changed, have the same %s in all of %d cases, though "
                   "seed_bits is %d; of independent ones the chance is 10^%.0f (CLM-29)",
                   (unsigned long long)seed, (int)bit, k->what, (int)k->n, (int)client_claims(x->iut)->seed_bits,
                   log10_chance);
    return log10_chance;
}

/* False: the case is decided. */
static bool compare(const check_case *c, const check_context *x, const answers *a, const answers *b, uint64_t seed,
                    int32_t bit, check_result *r)
{
    const int32_t bare = c->variant == VERIFY || c->variant == TREE ? BARE : CASES;
    kind tokens = {.what = "tokens", .width = c->variant == STREAM ? K : 1},
         decisions = {.what = "decisions", .width = 1}, corrections = {.what = "corrections", .width = 1},
         bonuses = {.what = "bonus tokens", .width = 1};
    for (int32_t i = 0; i < bare; i++) take(&tokens, a->token + i * K, b->token + i * K);
    for (int32_t i = bare; i < CASES; i++) {
        take(&decisions, a->length + i, b->length + i);
        if (a->length[i] != b->length[i]) continue;
        if (a->length[i] == 1) take(&corrections, a->token + i * K, b->token + i * K);
        if (a->length[i] == 2) take(&bonuses, a->token + i * K + 1, b->token + i * K + 1);
    }
    const double alike = judge(&tokens, x, seed, bit, r);
    judge(&decisions, x, seed, bit, r), judge(&corrections, x, seed, bit, r), judge(&bonuses, x, seed, bit, r);
    if (alike > SEEDS_LINE && alike <= 0)
        result_set(r, STATE_INCONCLUSIVE, "the cases of a call have too few answers to tell seeds by");
    return r->state == STATE_PASS;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const uint64_t seed = seeds_start(check_seed(x, c, 1));
    int32_t bit[SEEDS_MOST];
    const int32_t bits = seeds_bits(x->iut, x->level > LEVEL_SMOKE ? SEEDS_MOST : 3, &rng, bit);
    answers a, b;
    probe *m = rows(c->V);
    bool going = probe_serve(m, x, r) && ask(c, x, m, seed, &a, r);
    for (int32_t i = 0; going && i < bits; i++)
        going = ask(c, x, m, seed ^ UINT64_C(1) << bit[i], &b, r) && compare(c, x, &a, &b, seed, bit[i], r);
    result_set(r, STATE_PASS, "%d high bits: with any of them changed the answers are others", (int)bits);
    probe_close(m);
}

const check check_seeds_bits = {
    .name = "seeds.bits",
    .clauses = "CLM-29 RNG-07 LAY-05",
    .summary = "seeds that differ in one of their claimed bits have answers of their own",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
