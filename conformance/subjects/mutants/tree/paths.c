/* paths.c - see walk.h: the rules that look at whole paths. */
#include <math.h>

#include "conformance/subjects/mutants/tree/walk.h"

#define FAULTY(point) fault(w->m->fault, point)

/* ---- BLOCK. ---------------------------------------------------------------------------- */

/* BLK-02: c behind draft i, whose parent is `above`. */
static double factor(walk *w, double c, int32_t above, int32_t node)
{
    const int32_t t = walk_token(w, node);
    const double P = walk_weight(w, walk_p(w, above)[t]),
                 Q = walk_weight(w, FAULTY(TREE_BLOCK_Q_ONE_HOT) ? 1 : walk_q(w, node)[t]);
    if (c == 0 || P == 0) return 0;
    if (Q == 0) return 1;
    const double next = c * P / Q;
    return FAULTY(TREE_BLOCK_UNCLAMPED) ? next : fmin(next, 1);
}

/* Into next, BLK-03's max(0, c*p - q) behind `node`, whose child is `below`; returns its total. */
static double left_of(walk *w, double c, int32_t node, int32_t below)
{
    const float *p = walk_p(w, node);
    double S = 0;
    walk_weigh(w, p, w->R);
    walk_weigh(w, walk_q(w, below), w->Q);
    for (int32_t x = 0; FAULTY(TREE_BLOCK_Q_ONE_HOT) && x < w->m->V; x++)
        w->Q[x] = walk_weight(w, x == walk_token(w, below));
    for (int32_t x = 0; x < w->m->V; x++) {
        const double cp = (FAULTY(TREE_BLOCK_RESIDUAL_PLAIN) ? 1 : c) * w->R[x];
        S += w->next[x] = fmax((walk_exact(w) ? nearbyint(cp) : cp) - w->Q[x], 0);
    }
    return S;
}

static uint64_t test_word(walk *w, int32_t place)
{
    if (FAULTY(TREE_BLOCK_BY_POSITION)) return walk_word(w, LANE_ACCEPT, place, 0, w->child[place]);
    return walk_word(w, LANE_ACCEPT, 0, place + FAULTY(TREE_BLOCK_INDEX_FROM_ONE), w->child[place]);
}

/* The drafts of a chain into child. */
static void drafts(walk *w)
{
    w->n = 0;
    for (int32_t k = 1; k < w->nodes; k++)
        if (!walk_absent(w, k) && (w->n == 0 || w->b->parent[w->from + k] == w->child[w->n - 1])) w->child[w->n++] = k;
    if (FAULTY(TREE_PADDING_IS_ZERO))
        for (int32_t k = (w->n = 0) + 1; k < w->nodes; k++) w->child[w->n++] = k;
}

/* Is the last draft's child a placeholder? */
static bool is_padded(const walk *w)
{
    for (int32_t k = 1; w->n > 0 && k < w->nodes; k++)
        if (walk_token(w, k) < 0 && w->b->parent[w->from + k] == w->child[w->n - 1]) return true;
    return false;
}

static int32_t node_behind(const walk *w, int32_t kept)
{
    return kept ? w->child[kept - 1] : 0;
}

int32_t path_block(walk *w, int32_t *path, int32_t *last)
{
    double c = 1, at_kept = 1;
    int32_t kept = 0;
    w->at = 0, w->depth = 0;
    drafts(w);
    const int32_t ends = w->n + (FAULTY(TREE_BLOCK_PADDING_HAS_Q) && is_padded(w));
    for (int32_t i = 1; i <= w->n; i++) {
        c = factor(w, c, node_behind(w, i - 1), w->child[i - 1]);
        const uint64_t word = test_word(w, i - 1);
        bool stands = (double)(word >> 35) * 0x1p-29 < c;
        if (i < ends) {
            const double S = left_of(w, c, w->child[i - 1], w->child[i < w->n ? i : i - 1]),
                         N = FAULTY(TREE_BLOCK_WITHOUT_N) ? 0 : walk_exact(w) ? nearbyint((1 - c) * 0x1p44) : 1 - c;
            stands = walk_passes(w, word, S + N, 1, S, 1);
        }
        if (stands) kept = i, at_kept = c;
        if (!stands && FAULTY(TREE_BLOCK_STOPS_AT_FIRST)) break;
    }
    for (int32_t i = 0; i < kept; i++) path[i] = w->child[i];
    w->at = node_behind(w, kept);
    w->depth = kept;
    if (kept == ends) return *last = walk_bonus(w), kept;
    double Z = left_of(w, at_kept, w->at, w->child[kept < w->n ? kept : kept - 1]);
    if (!(Z > 0)) Z = walk_weigh(w, walk_p(w, w->at), w->next);
    *last = walk_last(w, w->next, Z, walk_word(w, LANE_RESIDUAL, kept, 0, -1));
    return kept;
}

/* ---- TYPICAL. -------------------------------------------------------------------------- */

/* TYP-01: its depth, or -1. */
static int32_t accepted_depth(walk *w, int32_t node)
{
    int32_t depth = 0;
    for (; node > 0; depth++) {
        const int32_t above = w->b->parent[w->from + node], t = walk_token(w, node);
        if (t < 0) return -1;
        const float p = walk_p(w, above)[t], theta = (float)walk_parameter(w, above, 0);
        const bool off = FAULTY(TREE_THRESHOLD_1_IS_OFF) && theta >= 1;
        if (!off && !(FAULTY(TREE_TYPICAL_AT_THRESHOLD) ? p >= theta : p > theta)) return -1;
        node = above;
    }
    return depth;
}

int32_t path_typical(walk *w, int32_t *path, int32_t *last)
{
    int32_t best = 0, most = 0;
    for (int32_t k = 1; k < w->nodes; k++) {
        const int32_t depth = accepted_depth(w, k);
        if (depth > most && !(FAULTY(TREE_TYPICAL_FIRST_PATH) && most > 0 && w->b->parent[w->from + k] != best))
            most = depth, best = k;
    }
    for (int32_t k = best, d = most; k > 0; k = w->b->parent[w->from + k]) path[--d] = k;
    w->at = best, w->depth = most;
    walk_children(w);
    if (w->n == 0) return *last = walk_bonus(w), most;
    double Z = walk_weigh(w, walk_p(w, best), w->R);
    if (FAULTY(TREE_TYPICAL_WITHOUT_SIBLINGS)) {
        double rest = Z;
        for (int32_t i = 0; i < w->n; i++) rest -= w->R[walk_token(w, w->child[i])] * !walk_repeats(w, i);
        if (rest > 0)
            for (int32_t i = 0; i < w->n; i++) w->R[walk_token(w, w->child[i])] = 0, Z = rest;
    }
    *last = walk_last(w, w->R, Z, walk_word(w, LANE_RESIDUAL, most, 0, -1));
    return most;
}
