/* walk.c - see walk.h: the walk from the root down, rows, uniforms, and arithmetic. */
#include "conformance/subjects/mutants/tree/walk.h"

#include <math.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/draw.h"
#include "conformance/subjects/mutants/chain/source.h"
#include "ref/num/fixed.h"

__extension__ typedef unsigned __int128 u128;

#define FAULTY(point) fault(w->m->fault, point)

/* ---- Arithmetic. ----------------------------------------------------------------------- */

bool walk_exact(const walk *w)
{
    return w->m->set.arithmetic == IUT_ARITH_CANONICAL;
}

double walk_rounded(const walk *w, double x)
{
    const uint8_t arithmetic = w->m->set.arithmetic;
    return arithmetic == IUT_ARITH_F32 || arithmetic == IUT_ARITH_BF16 ? (double)(float)x : x;
}

double walk_weight(const walk *w, float x)
{
    if (w->m->set.arithmetic == IUT_ARITH_BF16) return (double)rule_bf16(x);
    return walk_exact(w) ? (double)as_weight(x) : (double)x;
}

double walk_weigh(const walk *w, const float *row, double *to)
{
    double total = 0;
    for (int32_t x = 0; x < w->m->V; x++) total = walk_rounded(w, total + (to[x] = walk_weight(w, row[x])));
    return total;
}

bool walk_passes(const walk *w, uint64_t word, double a, double b, double c, double d)
{
    if (walk_exact(w)) {
        const u128 left = (u128)(word >> 35) * (uint64_t)a * (uint64_t)b, right = (u128)(uint64_t)c * (uint64_t)d << 29;
        return FAULTY(TREE_ACCEPT_LE) ? left <= right : left < right;
    }
    const double u = walk_rounded(w, (double)(word >> 11) * 0x1p-53);
    return walk_rounded(w, u * walk_rounded(w, a * b)) < walk_rounded(w, c * d);
}

double walk_share(const walk *w, double a, double b, double c)
{
    if (!walk_exact(w)) return walk_rounded(w, walk_rounded(w, a * b) / c);
    const u128 product = (u128)(uint64_t)a * (uint64_t)b, by = (u128)c, whole = product / by, left = product % by;
    const bool up = 2 * left > by || (2 * left == by && (whole & 1));
    return (double)(uint64_t)(whole + up);
}

int32_t walk_draw(const walk *w, const double *R, double Z, uint64_t word)
{
    const int32_t V = w->m->V;
    int32_t last = -1;
    double sum = 0;
    const double point = walk_exact(w) ? (double)(uint64_t)((u128)word * (uint64_t)Z >> 64)
                                       : walk_rounded(w, (double)(word >> 11) * 0x1p-53 * Z);
    for (int32_t x = 0; x < V; x++) {
        sum = walk_rounded(w, sum + R[x]);
        if (R[x] > 0) last = x;
        if (R[x] > 0 && sum > point) return x;
    }
    return last;
}

/* DRAW-07. */
static int32_t race(const walk *w, const double *R, const float *noise)
{
    int32_t best = -1;
    for (int32_t x = 0; x < w->m->V; x++) {
        if (!(R[x] > 0)) continue;
        const bool ahead = best < 0 ? true
                           : FAULTY(TREE_RACE_TIMES_NOISE)
                               ? R[x] * (double)noise[x] > R[best] * (double)noise[best]
                               : draw_ahead(R[x], noise[x], R[best], noise[best], walk_exact(w));
        if (ahead) best = x;
    }
    return best;
}

int32_t walk_last(walk *w, const double *R, double Z, uint64_t word)
{
    const iut_tree_batch *b = w->b;
    if (!b->noise) return walk_draw(w, R, Z, word);
    if (FAULTY(TREE_RACE_FROM_P)) walk_weigh(w, walk_p(w, w->at), w->next), R = w->next;
    return race(w, R, b->noise + (FAULTY(TREE_RACE_NOISE_OF_FIRST) ? 0 : (size_t)w->i) * (size_t)w->m->V);
}

/* ---- Nodes, rows, uniforms. ------------------------------------------------------------ */

int32_t walk_token(const walk *w, int32_t node)
{
    const int32_t token = w->b->token[w->from + node];
    return token < 0 && FAULTY(TREE_PADDING_IS_ZERO) ? 0 : token;
}

static int32_t parent_of(const walk *w, int32_t node)
{
    int32_t parent = w->b->parent[w->from + node];
    if (FAULTY(TREE_CLIMBS_OVER_PADDING))
        while (parent > 0 && walk_token(w, parent) < 0) parent = w->b->parent[w->from + parent];
    return parent;
}

bool walk_absent(const walk *w, int32_t node)
{
    while (node > 0 && w->b->token[w->from + node] >= 0) node = w->b->parent[w->from + node];
    return node > 0;
}

double walk_parameter(const walk *w, int32_t node, int32_t which)
{
    if (FAULTY(TREE_PARAMETERS_OF_ROOT)) node = 0;
    if (FAULTY(TREE_THRESHOLDS_SWAPPED)) which = 1 - which;
    if (w->b->parameter) return w->b->parameter[2 * (w->from + node) + which];
    return w->rule == IUT_TREE_KSEQ ? 0 : w->rule == IUT_TREE_CONSTANT ? 2 : 1;
}

static int32_t depth_of(const walk *w, int32_t node)
{
    int32_t depth = 0;
    for (; node > 0; depth++) node = w->b->parent[w->from + node];
    return depth;
}

/* The node whose row is taken for that of `node`. */
static int32_t row_of(const walk *w, int32_t node)
{
    int32_t k = 1;
    if (FAULTY(TREE_ROW_IN_6_BITS)) return node & 63;
    if (FAULTY(TREE_ROW_IN_7_BITS)) return node & 127;
    if (node == 0) return 0;
    if (FAULTY(TREE_ROW_OF_DEPTH)) {
        while (walk_absent(w, k) || depth_of(w, k) != depth_of(w, node)) k++;
        return k;
    }
    if (FAULTY(TREE_ROW_OF_SIBLING)) {
        while (walk_absent(w, k) || parent_of(w, k) != parent_of(w, node)) k++;
        return k;
    }
    return node;
}

static const float *row(walk *w, int32_t state, bool of_draft)
{
    const model *m = w->m;
    if (!w->b->samplings) return rule_row(m, of_draft ? m->q : m->p, state);
    const int32_t which = w->b->sampling_of[FAULTY(TREE_SAMPLING_OF_FIRST) ? 0 : w->i];
    static const iut_sampling plain = {1, 0, 1, 0};
    const bool other = of_draft && !FAULTY(TREE_DRAFT_SAMPLING_IS_TARGETS);
    const iut_sampling *s = &(other ? w->b->draft_sampling : w->b->sampling)[which];
    if (FAULTY(TREE_SAMPLING_IGNORED)) s = &plain;
    float *to = w->served[of_draft];
    if (served_row(m->fault, &m->filters, rule_row(m, of_draft ? m->q_logit : m->p_logit, state), m->V, s, of_draft, to))
        w->bad = true;
    return to;
}

const float *walk_p(walk *w, int32_t node)
{
    return row(w, w->b->state[w->from + row_of(w, node)], false);
}

const float *walk_q(walk *w, int32_t child)
{
    const int32_t node = FAULTY(TREE_Q_OF_FIRST) ? w->child[0] : child;
    return row(w, w->b->q_state[w->from + node], true);
}

uint64_t walk_word(const walk *w, uint32_t purpose, int32_t depth, int32_t index, int32_t node)
{
    const iut_tree_batch *b = w->b;
    const uint8_t uniforms = w->m->set.uniforms;
    if (FAULTY(TREE_LASTS_SWAPPED) && node < 0) purpose = purpose == LANE_DRAW ? LANE_RESIDUAL : LANE_DRAW;
    if (uniforms == IUT_UNIFORMS_SUPPLIED) {
        const double u = node >= 0 ? b->u[w->from + node] : b->last[2 * w->i + (purpose == LANE_DRAW)];
        return (uint64_t)(u * 0x1p53) << 11;
    }
    if (uniforms == IUT_UNIFORMS_OWN) return source_own_word(w->call, (uint32_t)w->i, purpose | (uint32_t)(node + 2) << 3);
    if (FAULTY(TREE_INDEX_IS_NODE) && node > 0) index = node;
    return source_seeded_word(b->seed + (uint32_t)w->i, b->position + (FAULTY(TREE_POSITION_OF_ROOT) ? 0 : (uint32_t)depth),
                              purpose, (uint32_t)index);
}

uint64_t walk_test(const walk *w, int32_t place)
{
    if (FAULTY(TREE_SIBLINGS_SHARE_UNIFORM)) place = 0;
    const uint64_t word = walk_word(w, LANE_ACCEPT, w->depth, place, w->child[place]);
    return FAULTY(TREE_TEST_24_BIT) ? word >> 40 << 40 : word;
}

/* ---- Children. ------------------------------------------------------------------------- */

bool walk_repeats(const walk *w, int32_t place)
{
    for (int32_t j = FAULTY(TREE_REPEAT_APART_COUNTED) && place > 0 ? place - 1 : 0; j < place; j++)
        if (walk_token(w, w->child[j]) == walk_token(w, w->child[place])) return true;
    return false;
}

int32_t walk_child_with(const walk *w, int32_t token)
{
    int32_t from = 0, to = w->n;
    for (int32_t i = 0; i < w->n && !FAULTY(TREE_CHILD_BISECTED); i++)
        if (walk_token(w, w->child[i]) == token) return i;
    while (FAULTY(TREE_CHILD_BISECTED) && from < to) {
        const int32_t middle = (from + to) / 2, found = walk_token(w, w->child[middle]);
        if (found == token) return middle;
        if (found < token)
            from = middle + 1;
        else
            to = middle;
    }
    return -1;
}

/* By what it is ordered: the larger first. */
static double rank(walk *w, int32_t place, bool by_q)
{
    const int32_t k = w->child[place];
    const float *r = by_q ? walk_q(w, k) : walk_p(w, w->at);
    return (double)r[walk_token(w, k)];
}

static void sort_children(walk *w, bool by_q)
{
    for (int32_t i = 1; i < w->n; i++) {
        for (int32_t j = i; j > 0 && rank(w, j, by_q) > rank(w, j - 1, by_q); j--) {
            const int32_t swap = w->child[j];
            w->child[j] = w->child[j - 1], w->child[j - 1] = swap;
        }
    }
}

static bool uses_q(const walk *w)
{
    return w->rule & (IUT_TREE_RECURSIVE | IUT_TREE_KSEQ | IUT_TREE_SINGLE | IUT_TREE_LENIENT | IUT_TREE_BLOCK);
}

static bool same_path(const walk *w, int32_t a, int32_t b)
{
    const int32_t *parent = w->b->parent + w->from;
    for (; a > 0 && b > 0 && a != b; a = parent[a], b = parent[b])
        if (walk_token(w, a) != walk_token(w, b)) return false;
    return a == b;
}

/* A walk that merges repeats also goes on below the others of a node's path. */
static bool is_below(const walk *w, int32_t node)
{
    const bool merges = w->m->set.manner == MANNER_TREE_MERGED && (w->rule & (IUT_TREE_MATCH | IUT_TREE_GREEDY));
    return merges ? same_path(w, parent_of(w, node), w->at) : parent_of(w, node) == w->at;
}

/* TRV-01: as they stand in the list. */
void walk_children(walk *w)
{
    w->n = 0;
    for (int32_t k = 1; k < w->nodes; k++) {
        if (!is_below(w, k)) continue;
        if (walk_token(w, k) < 0 && FAULTY(TREE_PADDING_ENDS_SIBLINGS)) break;
        if (walk_token(w, k) < 0) continue;
        if (FAULTY(TREE_LARGE_IDS_LEFT) && walk_token(w, k) > 65535) continue;
        if (FAULTY(TREE_EIGHT_SIBLINGS) && w->n == 8) break;
        if (FAULTY(TREE_MASK_OF_32) && k >= 32) break;
        if (FAULTY(TREE_MASK_OF_64) && k >= 64) break;
        w->child[w->n++] = k;
    }
    if (FAULTY(TREE_LAST_LEVEL_LEFT) && w->depth + 1 == w->b->depth) w->n = 0;
    if (FAULTY(TREE_ORDER_REVERSED) || w->m->set.manner == MANNER_TREE_OTHER)
        for (int32_t i = 0; i < w->n / 2; i++) {
            const int32_t swap = w->child[i];
            w->child[i] = w->child[w->n - 1 - i], w->child[w->n - 1 - i] = swap;
        }
    if (!uses_q(w)) return;
    if (FAULTY(TREE_ORDER_BY_Q) || FAULTY(TREE_BEST_KEPT)) sort_children(w, true);
    if (FAULTY(TREE_ORDER_BY_P)) sort_children(w, false);
    if (FAULTY(TREE_BEST_KEPT) && w->n > 1) w->n = 1;
}

/* ---- The walk. ------------------------------------------------------------------------- */

/* TRV-05. */
int32_t walk_bonus(walk *w)
{
    const model *m = w->m;
    const int32_t node = FAULTY(TREE_BONUS_OF_LAST_NODE) ? w->nodes - 1 : w->at;
    if (w->b->bonus) return w->b->bonus[w->from + (FAULTY(TREE_GIVEN_OF_ROOT) ? 0 : w->at)];
    const float *p = walk_p(w, walk_absent(w, node) ? w->at : node);
    if (FAULTY(TREE_BONUS_RAW)) {
        static const iut_sampling plain = {.temperature = 1, .top_p = 1};
        const float *logits = rule_row(m, m->p_logit, w->b->state[w->from + w->at]);
        if (served_row(m->fault, &m->filters, logits, m->V, &plain, false, w->served[0])) w->bad = true;
        p = w->served[0];
    }
    double Z = walk_weigh(w, p, w->next);
    if (FAULTY(TREE_BONUS_WITH_STALE_ROW) && w->depth < w->b->depth) {
        Z = 0;
        for (int32_t x = 0; x < m->V; x++) Z += w->next[x] = fmax(w->next[x] - w->Q[x], 0);
        if (Z == 0) Z = walk_weigh(w, p, w->next);
    }
    return walk_last(w, w->next, Z, walk_word(w, LANE_DRAW, w->depth, 0, -1));
}

/* The place of the child with the largest logit. */
static int32_t likeliest(walk *w, const float *logit)
{
    int32_t best = 0;
    for (int32_t i = 1; i < w->n; i++)
        if (logit[walk_token(w, w->child[i])] > logit[walk_token(w, w->child[best])]) best = i;
    return best;
}

/* Relaxed acceptance: the first child among the two tokens of largest logit; -1 where there is none. */
static int32_t relaxed(walk *w, const float *logit)
{
    for (int32_t i = 0; i < w->n; i++) {
        int32_t above = 0;
        for (int32_t x = 0; x < w->m->V; x++) above += logit[x] > logit[walk_token(w, w->child[i])];
        if (above < 2) return i;
    }
    return -1;
}

static int32_t greedy(walk *w, int32_t *last)
{
    const model *m = w->m;
    if (FAULTY(TREE_GREEDY_RELAXED)) {
        const int32_t place = relaxed(w, rule_row(m, m->p_logit, w->b->state[w->from + row_of(w, w->at)]));
        if (place >= 0) return place;
    }
    if (FAULTY(TREE_GREEDY_AMONG_CHILDREN) && w->n > 0)
        return likeliest(w, rule_row(m, m->p_logit, w->b->state[w->from + row_of(w, w->at)]));
    *last = rule_argmax(m, rule_row(m, m->p_logit, w->b->state[w->from + row_of(w, w->at)]), true);
    if (*last < 0) w->bad = true;
    return walk_child_with(w, *last);
}

static branch_rule *rule_of(const walk *w)
{
    switch (w->rule) {
    case IUT_TREE_TARGET: return branch_target;
    case IUT_TREE_MATCH: return branch_match;
    case IUT_TREE_GREEDY: return greedy;
    case IUT_TREE_KSEQ: return branch_kseq;
    case IUT_TREE_ONEHOT: return branch_onehot;
    case IUT_TREE_SINGLE: return branch_single;
    case IUT_TREE_CONSTANT: return branch_constant;
    case IUT_TREE_OTHER:
        return w->m->set.manner == MANNER_TREE_OTHER_ANY && !FAULTY(TREE_SIBLINGS_INDEPENDENT) ? branch_onehot
                                                                                              : branch_recursive;
    default: return branch_recursive;
    }
}

/* The node of the list with that token at the next depth, whoever its parent is. */
static int32_t anywhere(const walk *w, int32_t token, int32_t otherwise)
{
    for (int32_t k = 1; k < w->nodes; k++)
        if (!walk_absent(w, k) && walk_token(w, k) == token && depth_of(w, k) == w->depth + 1) return k;
    return otherwise;
}

/* TRV-03: any node may be named whose path has the same tokens. */
static int32_t last_equal(const walk *w, int32_t node)
{
    int32_t last = w->nodes - 1;
    while (!same_path(w, last, node)) last--;
    return last;
}

static int32_t descend(walk *w, int32_t *path, int32_t *last)
{
    branch_rule *rule = rule_of(w);
    const bool draws = w->rule == IUT_TREE_MATCH || w->rule == IUT_TREE_GREEDY;
    for (w->at = 0, w->depth = 0;; w->depth++) {
        walk_children(w);
        if (w->n == 0 && (!draws || w->b->bonus)) return *last = walk_bonus(w), w->depth;
        const int32_t next = rule(w, last);
        if (next < 0 || w->n == 0) return w->depth;
        w->at = w->child[next];
        if (FAULTY(TREE_WRONG_BRANCH)) w->at = anywhere(w, walk_token(w, w->at), w->at);
        path[w->depth] = FAULTY(TREE_PATH_OF_FIRST_SIBLING)                  ? w->child[0]
                         : w->m->set.manner == MANNER_TREE_LAST_OF_EQUAL ? last_equal(w, w->at)
                                                                         : w->at;
    }
}

int32_t walk_step(walk *w, int32_t *out, int32_t *path)
{
    int32_t last = -1, kept;
    if (!FAULTY(TREE_SCRATCH_STALE) || w->i == 0) memset(w->gone, 0, (size_t)w->m->V * sizeof *w->gone);
    w->sum = 0;
    kept = w->rule == IUT_TREE_BLOCK     ? path_block(w, path, &last)
           : w->rule == IUT_TREE_TYPICAL ? path_typical(w, path, &last)
                                         : descend(w, path, &last);
    for (int32_t k = 0; k < kept; k++) out[k] = walk_token(w, path[k]);
    out[kept] = last;
    return kept + 1;
}
