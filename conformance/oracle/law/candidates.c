/* candidates.c - see candidates.h. */
#include "conformance/oracle/law/candidates.h"

#include <stdlib.h>

#include "conformance/oracle/law/philox.h"

__extension__ typedef unsigned __int128 u128;

static uint64_t total(const uint64_t *w, int32_t V)
{
    uint64_t sum = 0;
    for (int32_t t = 0; t < V; t++) sum += w[t];
    return sum;
}

/* floor(U*W / 2^64) < C iff U*W / 2^64 < C, C being an integer. */
static bool seeded_lt(lane *self, uint32_t uniform, double a, double b)
{
    const oracle_seeded_lane *l = (const oracle_seeded_lane *)self;
    uint32_t w[4];
    oracle_words(l->seed, lane_position(uniform), lane_purpose(uniform), lane_index(uniform),
                 w);
    const uint64_t U = ((uint64_t)w[0] << 32) + w[1];
    return (u128)U * (uint64_t)a < (u128)(uint64_t)b << 64;
}

oracle_seeded_lane oracle_seeded(uint64_t seed)
{
    return (oracle_seeded_lane){{seeded_lt}, seed};
}

int32_t oracle_lane_pick(lane *l, uint32_t uniform, const uint64_t *w, int32_t V)
{
    const uint64_t W = total(w, V);
    uint64_t C = 0;
    for (int32_t t = 0; t < V; t++) {
        C += w[t];
        if (w[t] && l->lt(l, uniform, (double)W, (double)C)) return t;
    }
    return -1;
}

/* The candidates that begin with `run`. */
static void remaining(const oracle_lists *all, const oracle_list *run, oracle_lists *left)
{
    oracle_lists_free(left);
    for (int32_t i = 0; i < all->n; i++) {
        const oracle_list start = {run->n, 0, all->l[i].t};
        if (all->l[i].n >= run->n && oracle_alike(&start, run))
            oracle_add_copy(left, &all->l[i]);
    }
}

/* Is one of them `level` tokens long, hence whole? */
static bool whole(const oracle_lists *left, int32_t level)
{
    for (int32_t i = 0; i < left->n; i++)
        if (left->l[i].n == level) return true;
    return false;
}

/* The distinct tokens at a level, in the order of their first appearance. */
static void distinct_at(const oracle_lists *left, int32_t level, oracle_list *tokens)
{
    oracle_list_free(tokens);
    for (int32_t i = 0; i < left->n; i++) {
        bool known = left->l[i].n <= level;
        for (int32_t j = 0; !known && j < tokens->n; j++)
            known = tokens->t[j] == left->l[i].t[level];
        if (!known) oracle_push(tokens, left->l[i].t[level]);
    }
}

int32_t oracle_verify_greedy(const oracle_rows *rows, const oracle_verification *v,
                             oracle_list *run)
{
    oracle_lists left = {0};
    oracle_list tokens = {0};
    int32_t accepted = 0;
    for (;;) {
        remaining(v->candidates, run, &left);
        if (!v->bonus && accepted > 0 && whole(&left, accepted)) break;
        distinct_at(&left, accepted, &tokens);
        const int32_t a = rows->argmax(rows->arg, run);
        oracle_push(run, a);
        bool drafted = false;
        for (int32_t j = 0; j < tokens.n; j++) drafted |= tokens.t[j] == a;
        if (!drafted) break;
        accepted++;
    }
    oracle_lists_free(&left);
    oracle_list_free(&tokens);
    return accepted;
}

static uint32_t uniform_of(const oracle_verification *v, uint32_t purpose, int32_t level,
                           int32_t index)
{
    return lane_uniform(purpose, (uint32_t)(v->position + level), (uint32_t)index);
}

/* ONEH-01, ONEH-02: the token accepted, or -1, the tokens tried then having left w. */
static int32_t try_tokens(lane *l, const oracle_verification *v, int32_t level,
                          const oracle_list *tokens, uint64_t *w, int32_t V)
{
    for (int32_t j = 0; j < tokens->n; j++) {
        const int32_t t = tokens->t[j];
        if (l->lt(l, uniform_of(v, LANE_ACCEPT, level, j), (double)total(w, V), (double)w[t]))
            return t;
        w[t] = 0;
    }
    return -1;
}

int32_t oracle_verify_onehot(lane *l, const oracle_rows *rows, const oracle_verification *v,
                             oracle_list *run)
{
    uint64_t *w = oracle_take((size_t)rows->V, sizeof *w);
    oracle_lists left = {0};
    oracle_list tokens = {0};
    int32_t level = 0;
    for (;; level++) {
        remaining(v->candidates, run, &left);
        if (!v->bonus && level > 0 && whole(&left, level)) break;
        distinct_at(&left, level, &tokens);
        rows->weights(rows->arg, run, w);
        int32_t t = try_tokens(l, v, level, &tokens, w, rows->V);
        if (t >= 0) {
            oracle_push(run, t);
            continue;
        }
        const uint32_t purpose = tokens.n ? LANE_RESIDUAL : LANE_DRAW; /* ONEH-04, ONEH-05 */
        t = oracle_lane_pick(l, uniform_of(v, purpose, level, 0), w, rows->V);
        oracle_push(run, t >= 0 ? t : tokens.t[tokens.n - 1]);
        break;
    }
    oracle_lists_free(&left);
    oracle_list_free(&tokens);
    free(w);
    return level;
}

int32_t oracle_verify_match(lane *l, const oracle_rows *rows, const oracle_verification *v,
                            oracle_list *run)
{
    uint64_t *w = oracle_take((size_t)rows->V, sizeof *w);
    oracle_lists left = {0};
    int32_t level = 0;
    for (;; level++) {
        remaining(v->candidates, run, &left);
        if (level > 0 && (left.n == 0 || (!v->bonus && whole(&left, level)))) break;
        rows->weights(rows->arg, run, w);
        oracle_push(run, oracle_lane_pick(l, uniform_of(v, LANE_DRAW, level, 0), w, rows->V));
    }
    /* The last token, unless a candidate had it, was drawn and not accepted. */
    const int32_t accepted = left.n ? level : level - 1;
    oracle_lists_free(&left);
    free(w);
    return accepted;
}
