/* branches.c - see walk.h: the rules that decide a node at a time. */
#include <math.h>
#include <string.h>

#include "conformance/subjects/mutants/tree/walk.h"

__extension__ typedef unsigned __int128 u128;

#define FAULTY(point) fault(w->m->fault, point)

static uint64_t last_word(const walk *w)
{
    return walk_word(w, LANE_RESIDUAL, w->depth, 0, -1);
}

/* ---- RECURSIVE and LENIENT. ------------------------------------------------------------ */

static float less(const walk *w, float q)
{
    if (w->rule == IUT_TREE_RECURSIVE && FAULTY(TREE_LENIENCE_SOLD)) return 0.75f * q;
    return w->rule == IUT_TREE_LENIENT ? (float)walk_parameter(w, w->at, 0) * q : q;
}

static void forget(walk *w)
{
    if (FAULTY(TREE_TRIED_KEPT_ON_DESCENT) && w->depth > 0) return;
    memset(w->gone, 0, (size_t)w->m->V * sizeof *w->gone);
}

/* Q and W of the child in that place (SIB-04, LEN-01). */
static void load_q(walk *w, int32_t place)
{
    const float *q = walk_q(w, w->child[place]);
    w->W = 0;
    for (int32_t x = 0; x < w->m->V; x++) {
        w->Q[x] = w->gone[x] ? 0 : walk_weight(w, less(w, q[x]));
        if (!w->gone[x]) w->W = walk_rounded(w, w->W + walk_weight(w, q[x]));
    }
}

static bool first_passes(const walk *w, uint64_t word, float p, float q)
{
    const double u = walk_exact(w) ? (double)(word >> 35) * 0x1p-29 : walk_rounded(w, (double)(word >> 11) * 0x1p-53);
    if (q == 0 && FAULTY(TREE_Q_ZERO_REJECTED)) return false;
    if (p == 0 && q == 0 && FAULTY(TREE_ACCEPT_NAN)) return true;
    return FAULTY(TREE_ACCEPT_LE) || FAULTY(TREE_FIRST_ACCEPT_LE) ? u * (double)q <= (double)p : walk_rounded(w, u * (double)q) < (double)p;
}

static bool accepts(walk *w, int32_t place)
{
    const int32_t k = w->child[place], t = walk_token(w, k);
    const uint64_t word = walk_test(w, place);
    const float *p = walk_p(w, w->at);
    if (place == 0 || FAULTY(TREE_SIBLINGS_INDEPENDENT) || FAULTY(TREE_SIBLINGS_AGAINST_P))
        return first_passes(w, word, p[t], less(w, walk_q(w, k)[t]));
    if (w->Q[t] == 0) return w->R[t] > 0 && !FAULTY(TREE_Q_ZERO_REJECTED);
    if (FAULTY(TREE_RESIDUAL_NOT_NORMALISED))
        return (double)(word >> 11) * 0x1p-53 * w->Q[t] < ldexp(w->R[t], -w->shift);
    return walk_passes(w, word, w->Q[t], w->Z, w->R[t], w->W);
}

/* SIB-02. */
static void enlarge(walk *w)
{
    if (!walk_exact(w)) return;
    int32_t s = 0;
    while (ldexp(w->Z, s + 1) < 0x1p45) s++;
    for (int32_t x = 0; x < w->m->V; x++) w->R[x] = ldexp(w->R[x], s);
    w->Z = ldexp(w->Z, s);
    w->shift += s;
}

/* What a refusal leaves of an id: RES-01 for the first, SIB-03 for the others. */
static double left_of(const walk *w, int32_t place, const float *p, const float *q, int32_t x)
{
    if (place == 0 || FAULTY(TREE_SIBLINGS_INDEPENDENT) || FAULTY(TREE_RESIDUAL_NOT_CHAINED)) {
        const float less_of = FAULTY(TREE_LENIENT_RESIDUAL_WHOLE) ? q[x] : less(w, q[x]), r = p[x] - less_of;
        if (FAULTY(TREE_LENIENT_ABSOLUTE) && w->rule == IUT_TREE_LENIENT) return walk_weight(w, fabsf(r));
        return r > 0 ? walk_weight(w, r) : 0;
    }
    if (w->W == 0) return w->R[x];
    return fmax(walk_rounded(w, w->R[x] - walk_share(w, w->Q[x], w->Z, w->W)), 0);
}

/* False: nothing would be left (SIB-05). */
static bool refuse(walk *w, int32_t place)
{
    const int32_t V = w->m->V;
    const float *p = walk_p(w, FAULTY(TREE_RESIDUAL_OF_ROOT) ? 0 : w->at), *q = walk_q(w, w->child[place]);
    double total = 0;
    for (int32_t x = 0; x < V; x++) total = walk_rounded(w, total + (w->next[x] = left_of(w, place, p, q, x)));
    if (!(total > 0)) return false;
    memcpy(w->R, w->next, (size_t)V * sizeof *w->R);
    w->Z = total;
    enlarge(w);
    const bool without = w->b->drawn[w->from + w->at] == IUT_DRAWN_WITHOUT;
    if ((without && !FAULTY(TREE_Q_KEEPS_TRIED)) || (!without && FAULTY(TREE_Q_LOSES_TRIED)))
        w->gone[walk_token(w, w->child[place])] = true;
    return true;
}

/* The last child from `place` on that passes as a first one. */
static int32_t last_passing(walk *w, int32_t place)
{
    int32_t best = place;
    for (int32_t i = place + 1; i < w->n; i++) {
        const int32_t t = walk_token(w, w->child[i]);
        if (first_passes(w, walk_test(w, i), walk_p(w, w->at)[t], less(w, walk_q(w, w->child[i])[t]))) best = i;
    }
    return best;
}

static bool is_chain(const walk *w)
{
    int32_t k = 1;
    while (k < w->nodes && w->b->parent[w->from + k] == k - 1) k++;
    return k == w->nodes;
}

int32_t branch_recursive(walk *w, int32_t *last)
{
    forget(w);
    w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    w->shift = 0;
    for (int32_t i = 0; i < w->n; i++) {
        if (FAULTY(TREE_REPEAT_SKIPPED) && walk_repeats(w, i)) continue;
        load_q(w, i);
        if (accepts(w, i)) return FAULTY(TREE_LAST_ACCEPTED_CHILD) ? last_passing(w, i) : i;
        if (i + 1 == w->n && FAULTY(TREE_LAST_REFUSAL_FORGOTTEN)) break;
        if (i > 0 && FAULTY(TREE_LAST_FROM_FIRST_RESIDUAL)) continue;
        if (refuse(w, i)) continue;
        if (FAULTY(TREE_EMPTY_GIVES_LAST_ID)) return *last = w->m->V - 1, -1;
        if (FAULTY(TREE_EMPTY_GIVES_TRIED)) return *last = walk_token(w, w->child[i]), -1;
        break;
    }
    if (FAULTY(TREE_LAST_FROM_P) || (FAULTY(TREE_CHAIN_LAST_FROM_P) && is_chain(w)))
        w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    *last = walk_last(w, w->R, w->Z, FAULTY(TREE_LAST_BY_TEST) ? walk_test(w, w->n - 1) : last_word(w));
    return -1;
}

/* ---- TARGET. --------------------------------------------------------------------------- */

/* c * alpha < S, c = floor(u * W). */
static bool covers(const walk *w, uint64_t word, double S, double alpha)
{
    int exponent;
    if (!walk_exact(w)) return walk_rounded(w, (double)(word >> 11) * 0x1p-53 * w->Z * alpha) < S;
    const uint64_t c = (uint64_t)((u128)word * (uint64_t)w->Z >> 64);
    const double mantissa = frexp(alpha, &exponent);
    if (FAULTY(TREE_ALPHA_INVERTED)) return (double)c < S * alpha;
    if (exponent < -56) return S > 0;
    return (u128)c * (uint64_t)ldexp(mantissa, 24) < (u128)(uint64_t)S << (24 - exponent);
}

/* Typical acceptance: the first child above Medusa's threshold, or a draw from p. */
static int32_t typical_child(walk *w, int32_t *last)
{
    const float *p = walk_p(w, w->at);
    double H = 0;
    for (int32_t x = 0; x < w->m->V; x++)
        if (p[x] > 0) H -= (double)p[x] * log((double)p[x]);
    for (int32_t i = 0; i < w->n; i++)
        if ((double)p[walk_token(w, w->child[i])] > fmin(0.3, 0.09 * exp(-H))) return i;
    w->Z = walk_weigh(w, p, w->R);
    *last = walk_last(w, w->R, w->Z, last_word(w));
    return -1;
}

int32_t branch_target(walk *w, int32_t *last)
{
    if (FAULTY(TREE_TYPICAL_SOLD)) return typical_child(w, last);
    const float *p = walk_p(w, w->at);
    const double alpha = FAULTY(TREE_THRESHOLD_SOLD) ? 0.75 : walk_parameter(w, w->at, 0),
                 sigma = FAULTY(TREE_SIGMA_SOLD) ? 0.3 : walk_parameter(w, w->at, 1);
    if (!FAULTY(TREE_SCRATCH_STALE)) forget(w);
    w->Z = walk_weigh(w, p, w->R);
    if (!FAULTY(TREE_SUM_NOT_RESET)) w->sum = 0;
    for (int32_t i = 0; i < w->n; i++) {
        const int32_t t = walk_token(w, w->child[i]);
        const bool again = walk_repeats(w, i) && !FAULTY(TREE_REPEAT_COUNTED_TWICE);
        if (again) continue;
        if (FAULTY(TREE_COIN_PER_CHILD)) w->sum = 0;
        w->sum = walk_rounded(w, w->sum + w->R[t]);
        w->gone[t] = true;
        const int32_t whose = FAULTY(TREE_COIN_PER_CHILD) || FAULTY(TREE_COIN_OF_CHILD) ? w->child[i] : w->at;
        const uint64_t coin = walk_word(w, LANE_ACCEPT, w->depth, FAULTY(TREE_COIN_PER_CHILD) ? i : 0, whose);
        if (covers(w, coin, w->sum, alpha) || (sigma < 1 && (double)p[t] >= sigma)) return i;
    }
    double Z = 0;
    for (int32_t x = 0; x < w->m->V; x++) {
        if (w->gone[x] && !FAULTY(TREE_LAST_WITH_SIBLINGS)) w->R[x] = 0;
        Z = walk_rounded(w, Z + w->R[x]);
    }
    const uint64_t coin = walk_word(w, LANE_ACCEPT, w->depth, 0, w->at);
    if (!(Z > 0)) Z = walk_weigh(w, p, w->R);
    *last = walk_last(w, w->R, Z, FAULTY(TREE_COIN_REUSED) ? coin : last_word(w));
    return -1;
}

/* ---- MATCH, ONEHOT, CONSTANT. ---------------------------------------------------------- */

int32_t branch_match(walk *w, int32_t *last)
{
    const double Z = walk_weigh(w, walk_p(w, w->at), w->R);
    *last = walk_draw(w, w->R, Z, walk_word(w, LANE_DRAW, w->depth, 0, w->at));
    const int32_t place = walk_child_with(w, *last);
    if (FAULTY(TREE_MATCH_DRAWS_ANEW) && place < 0) *last = walk_draw(w, w->R, Z, last_word(w));
    return FAULTY(TREE_MATCH_FIRST_CHILD) && place > 0 ? -1 : place;
}

int32_t branch_onehot(walk *w, int32_t *last)
{
    const double whole = w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    for (int32_t i = 0, asked = 0; i < w->n; i++) {
        const int32_t t = walk_token(w, w->child[i]);
        if (walk_repeats(w, i)) continue;
        const uint64_t word = walk_word(w, LANE_ACCEPT, w->depth, asked++, w->child[i]);
        const double of = FAULTY(TREE_ONEHOT_WHOLE_ROW) ? whole : w->Z;
        const double point = walk_exact(w) ? (double)(uint64_t)((u128)word * (uint64_t)of >> 64)
                                           : walk_rounded(w, (double)(word >> 11) * 0x1p-53 * of);
        if (point < w->R[t]) return i;
        if (FAULTY(TREE_ONEHOT_KEEPS_REFUSED)) continue;
        /* Added up anew, for a difference of rounded sums may exceed the only weight that is left. */
        w->R[t] = w->Z = 0;
        for (int32_t x = 0; x < w->m->V; x++) w->Z = walk_rounded(w, w->Z + w->R[x]);
    }
    *last = walk_last(w, w->R, w->Z, last_word(w));
    return -1;
}

int32_t branch_constant(walk *w, int32_t *last)
{
    const float *p = walk_p(w, w->at), theta = (float)walk_parameter(w, w->at, 0);
    int32_t best = -1;
    for (int32_t i = 0; i < w->n; i++) {
        const float x = p[walk_token(w, w->child[i])];
        if (FAULTY(TREE_THRESHOLD_1_IS_OFF) && theta >= 1) return i;
        if (!(FAULTY(TREE_CONSTANT_ABOVE) ? x > theta : x >= theta)) continue;
        if (best < 0 || (FAULTY(TREE_CONSTANT_BEST) && x > p[walk_token(w, w->child[best])])) best = i;
    }
    if (best >= 0) return best;
    w->Z = walk_weigh(w, p, w->R);
    *last = walk_last(w, w->R, w->Z, last_word(w));
    return -1;
}

/* ---- SINGLE and KSEQ. ------------------------------------------------------------------ */

/* The id of largest P/Q, or -1 where some P has no Q. */
static int32_t steepest(const walk *w)
{
    int32_t best = -1;
    for (int32_t x = 0; x < w->m->V; x++) {
        if (w->Q[x] == 0 && w->R[x] > 0) return -1;
        if (w->Q[x] == 0) continue;
        const bool more = best >= 0 && (walk_exact(w) ? (u128)(uint64_t)w->R[x] * (uint64_t)w->Q[best] >
                                                            (u128)(uint64_t)w->R[best] * (uint64_t)w->Q[x]
                                                      : w->R[x] * w->Q[best] > w->R[best] * w->Q[x]);
        if (best < 0 || more) best = x;
    }
    return best;
}

int32_t branch_single(walk *w, int32_t *last)
{
    w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    for (int32_t i = 0; i < w->n; i++) {
        const float *p = walk_p(w, w->at), *q = walk_q(w, w->child[i]);
        const int32_t t = walk_token(w, w->child[i]);
        w->W = walk_weigh(w, q, w->Q);
        const int32_t x = steepest(w);
        if (FAULTY(TREE_SINGLE_WITHOUT_M) && first_passes(w, walk_test(w, i), p[t], q[t])) return i;
        if (FAULTY(TREE_SINGLE_WITHOUT_M) || x < 0 || w->Q[t] == 0) continue;
        if (walk_passes(w, walk_test(w, i), w->Q[t], w->R[x], w->R[t], w->Q[x])) return i;
    }
    if (FAULTY(TREE_SINGLE_RESIDUAL) && w->W > 0) {
        w->Z = 0;
        for (int32_t x = 0; x < w->m->V; x++) w->Z += w->R[x] = fmax(w->R[x] - w->Q[x], 0);
        if (w->Z == 0) w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    }
    *last = walk_last(w, w->R, w->Z, last_word(w));
    return -1;
}

/* KSQ-03. */
static void leave_kseq(walk *w, double rho)
{
    const int32_t V = w->m->V, K = FAULTY(TREE_KSEQ_G_OF_ONE) ? 1 : w->n;
    const double one = walk_exact(w) ? 0x1p16 : 1, D = walk_exact(w) ? rho * 0x1p44 : rho;
    double B = 0, Z = 0, G = walk_exact(w) ? 0x1p40 : 1;
    w->W = walk_weigh(w, walk_q(w, w->child[0]), w->Q);
    const double unit = G;
    for (int32_t x = 0; x < V; x++) w->next[x] = fmin(rho * w->Q[x], one * w->R[x]);
    u128 exact_B = 0;
    for (int32_t x = 0; x < V; x++) {
        exact_B += walk_exact(w) ? (u128)w->next[x] : 0;
        B = walk_rounded(w, B + w->next[x]);
    }
    uint64_t g = UINT64_C(1) << 40;
    for (int32_t k = 1; k < K; k++) {
        if (walk_exact(w)) {
            const u128 d = (u128)D, missing = d > exact_B ? d - exact_B : 0, product = (u128)g * missing, whole = product / d,
                       left = product % d;
            g = (UINT64_C(1) << 40) + (uint64_t)(whole + (left > d - left || (left == d - left && (whole & 1))));
        } else
            G = walk_rounded(w, unit + G * fmax(0, D - B) / D);
    }
    for (int32_t x = 0; x < V; x++) {
        double share = 0;
        if (walk_exact(w)) {
            const u128 product = (u128)w->next[x] * g, by = (u128)rho << 40, whole = product / by, left = product % by;
            share = (double)(uint64_t)(whole + (left > by - left || (left == by - left && (whole & 1))));
        } else
            share = walk_rounded(w, w->next[x] * G / rho);
        Z = walk_rounded(w, Z + (w->next[x] = fmax(walk_rounded(w, w->R[x] - share), 0)));
    }
    if (!(Z > 0)) return;
    memcpy(w->R, w->next, (size_t)V * sizeof *w->R);
    w->Z = Z;
}

/* The nodes below. */
static int32_t below(const walk *w)
{
    int32_t n = 0;
    for (int32_t k = w->at + 1; k < w->nodes; k++) {
        int32_t above = k;
        while (above > w->at) above = w->b->parent[w->from + above];
        n += above == w->at && !walk_absent(w, k);
    }
    return n;
}

/* KSQ-01: the K of the node. */
static int32_t tried(const walk *w)
{
    int32_t n = 0;
    if (FAULTY(TREE_KSEQ_COUNTS_BELOW)) return below(w);
    if (!FAULTY(TREE_KSEQ_COUNTS_PADDING)) return w->n;
    for (int32_t k = w->at + 1; k < w->nodes; k++) n += w->b->parent[w->from + k] == w->at;
    return n;
}

int32_t branch_kseq(walk *w, int32_t *last)
{
    if (w->n == 1) return branch_recursive(w, last);
    const double given = walk_parameter(w, w->at, 0), wide = given == 0 ? tried(w) * 65536.0 : given,
                 rho = FAULTY(TREE_KSEQ_RHO_IS_1) ? 65536.0 : wide, scale = walk_exact(w) ? rho : rho / 65536;
    w->Z = walk_weigh(w, walk_p(w, w->at), w->R);
    for (int32_t i = 0; i < w->n; i++) {
        const int32_t t = walk_token(w, w->child[i]);
        if (FAULTY(TREE_KSEQ_REPEAT_SKIPPED) && walk_repeats(w, i)) continue;
        w->W = walk_weigh(w, walk_q(w, w->child[i]), w->Q);
        if (walk_passes(w, walk_test(w, i), scale, w->Q[t], w->R[t], walk_exact(w) ? 65536 : 1)) return i;
    }
    if (!FAULTY(TREE_KSEQ_LAST_FROM_P)) leave_kseq(w, scale);
    *last = walk_last(w, w->R, w->Z, last_word(w));
    return -1;
}
