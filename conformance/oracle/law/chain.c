/* chain.c - see chain.h. Exactness rests on three facts, stated where they are used: the sign
 * of a fused multiply-add, the spacing of binary64 above 2^52, and 128-bit products. */
#include "conformance/oracle/law/chain.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/philox.h"

__extension__ typedef unsigned __int128 u128;

enum { BLOCK = 256 };

oracle_unit oracle_unit_of(double u)
{
    int exponent;
    const double fraction = frexp(u, &exponent); /* u = fraction * 2^exponent, or both 0 */
    return (oracle_unit){(uint64_t)ldexp(fraction, 53), 53 - exponent};
}

/* t*2^44 is exact in binary64 and at most 2^44. Above 2^52 the spacing of binary64 is 1, so
 * adding 2^52 rounds to an integer, ties to even, which then stands in the low bits. (A
 * conversion to integer would say the same, but keeps the sums below from being vectorised.) */
static inline uint64_t weight(float t)
{
    const double rounded = (double)t * 0x1p44 + 0x1p52, least = 0x1p52;
    uint64_t bits, least_bits;
    memcpy(&bits, &rounded, sizeof bits);
    memcpy(&least_bits, &least, sizeof least_bits);
    return bits - least_bits;
}

uint64_t oracle_weight(float t)
{
    return weight(t);
}

/* A row to draw from: w itself, or the residual of w and q: r_t = max(0, fl32(w_t - q_t)), one
 * binary32 subtraction (RES-01). */
typedef struct {
    const float *w, *q; /* q NULL: w itself */
    uint64_t total;
    bool own; /* the rows are an implementation's own: it may have a residual where these have
                 none */
} source;

static inline float residual_at(const source *s, int32_t t)
{
    const float r = s->w[t] - s->q[t];
    return r > 0 ? r : 0;
}

/* The weight of the ids in [from, to). */
static uint64_t source_sum(const source *s, int32_t from, int32_t to)
{
    uint64_t sum = 0;
    if (s->q)
        for (int32_t t = from; t < to; t++) sum += weight(residual_at(s, t));
    else
        for (int32_t t = from; t < to; t++) sum += weight(s->w[t]);
    return sum;
}

static source make_source(const float *w, const float *q, int32_t V)
{
    source s = {w, q, 0, false};
    s.total = source_sum(&s, 0, V);
    return s;
}

uint64_t oracle_total(const float *w, int32_t V)
{
    return make_source(w, NULL, V).total;
}

/* RES-02 and RES-03: the residual, or p itself when that is empty. */
static source source_correction(const float *p, const float *q, int32_t V)
{
    const source residual = make_source(p, q, V);
    return residual.total ? residual : make_source(p, NULL, V);
}

/* floor(u * W): m and W have at most 64 bits, so the product fits in 128. */
static uint64_t target_of(oracle_unit u, uint64_t W)
{
    return u.e < 128 ? (uint64_t)((u128)u.m * W >> u.e) : 0;
}

/* The first id whose cumulative weight exceeds the target: whole blocks are passed over while
 * they leave the sum at or below it. */
static int32_t source_draw(const source *s, int32_t V, oracle_unit u)
{
    const uint64_t target = target_of(u, s->total);
    uint64_t cumulative = 0;
    for (int32_t t = 0; t < V;) {
        const int32_t end = t + BLOCK < V ? t + BLOCK : V;
        const uint64_t sum = source_sum(s, t, end);
        if (cumulative + sum > target) {
            while ((cumulative += source_sum(s, t, t + 1)) <= target) t++;
            return t;
        }
        cumulative += sum;
        t = end;
    }
    return -1; /* only a total of 0 gets here: else target < total */
}

/* w*E2 > w2*E: a fused multiply-add tells what a rounded product lost, and nothing underflows.
 * The first difference is exact where the products are close, and elsewhere far larger than
 * what was lost. */
int oracle_race_beats(uint64_t w, float noise, uint64_t w2, float noise2)
{
    const double product = (double)w2 * (double)noise,
                 lost = fma((double)w2, (double)noise, -product);
    return fma((double)w, (double)noise2, -product) > lost;
}

static uint64_t source_at(const source *s, int32_t t)
{
    return source_sum(s, t, t + 1);
}

static int32_t source_race(const source *s, int32_t V, const float *noise)
{
    int32_t best = -1;
    for (int32_t t = 0; t < V; t++) {
        const uint64_t w = source_at(s, t);
        if (w > 0 &&
            (best < 0 || oracle_race_beats(w, noise[t], source_at(s, best), noise[best])))
            best = t;
    }
    return best;
}

int32_t oracle_race(const float *w, int32_t V, const float *noise)
{
    const source s = make_source(w, NULL, V);
    return source_race(&s, V, noise);
}

/* By a race, if there is noise. */
static int32_t source_last(const source *s, int32_t V, oracle_unit u, const float *noise)
{
    return noise ? source_race(s, V, noise) : source_draw(s, V, u);
}

int32_t oracle_draw(const float *w, int32_t V, oracle_unit u)
{
    const source s = make_source(w, NULL, V);
    return source_draw(&s, V, u);
}

/* The sign of fma(u, q, -p) is the sign of u*q - p, for rounding to nearest keeps signs and
 * nothing underflows that matters: with p = 0 the difference is never negative; with p > 0 a
 * small difference needs u*q near p >= 2^-149, so u >= 2^-149, and u*q - p is a multiple of
 * 2^(-149-53-149), well above the least binary64. */
int oracle_accepts(float p, float q, double u, unsigned flags)
{
    if (q == 0 && (flags & ORACLE_Q_ZERO_REJECTS)) return 0;
    return fma(u, q, -(double)p) < 0;
}

int32_t oracle_draft_count(const int32_t *draft, int32_t n, int32_t V, unsigned flags)
{
    for (int32_t i = 0; i < n; i++) {
        if (draft[i] == -1) return i;
        if (draft[i] < 0 || draft[i] >= V) return flags & ORACLE_BAD_DRAFT_ENDS ? i : -1;
    }
    return n;
}

int32_t oracle_chain(const float *const *p, const float *const *q, const int32_t *draft,
                     int32_t n, int32_t V, const oracle_uniforms *u, unsigned flags,
                     int32_t *out)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) return 0;
    for (int32_t i = 0; i < count; i++) {
        const int32_t x = draft[i];
        if (!oracle_accepts(p[i][x], q[i][x], u->accept[i], flags)) {
            const source s = source_correction(p[i], q[i], V);
            out[i] = source_last(&s, V, u->residual, u->noise);
            return i + 1;
        }
        out[i] = x;
    }
    const source s = make_source(p[count], NULL, V);
    out[count] = source_last(&s, V, u->bonus, u->noise);
    return count + 1;
}

int32_t oracle_chain_seeded(const float *const *p, const float *const *q, const int32_t *draft,
                            int32_t n, int32_t V, uint64_t seed, uint64_t position,
                            unsigned flags, int32_t *out)
{
    /* Position by position, a step of one draft: what it emits after an acceptance is dropped,
     * for the next position decides that token again with rows and uniforms of its own. */
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) return 0;
    for (int32_t i = 0; i < count; i++, position++) {
        const double accept = oracle_accept_uniform(seed, position);
        const uint64_t U = oracle_draw_uniform(seed, position, LANE_RESIDUAL);
        const oracle_uniforms u = {&accept, oracle_unit_word(U), oracle_unit_word(U), NULL};
        int32_t two[2];
        const float *const rows[2] = {p[i], p[i]};
        const int32_t emitted = oracle_chain(rows, &q[i], &draft[i], 1, V, &u, flags, two);
        out[i] = two[0];
        if (emitted == 1) return i + 1;
    }
    const uint64_t U = oracle_draw_uniform(seed, position, LANE_DRAW);
    out[count] = oracle_draw(p[count], V, oracle_unit_word(U));
    return count + 1;
}

int32_t oracle_match(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                     const double *u, unsigned flags, int32_t *out)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) return 0;
    for (int32_t i = 0;; i++) {
        out[i] = oracle_draw(p[i], V, oracle_unit_of(u[i]));
        if (i == count || out[i] != draft[i]) return i + 1;
    }
}

int32_t oracle_match_seeded(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                            uint64_t seed, uint64_t position, unsigned flags, int32_t *out)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) return 0;
    for (int32_t i = 0;; i++) {
        const uint64_t U = oracle_draw_uniform(seed, position + (uint32_t)i, LANE_DRAW);
        out[i] = oracle_draw(p[i], V, oracle_unit_word(U));
        if (i == count || out[i] != draft[i]) return i + 1;
    }
}

/* ---- Judges. --------------------------------------------------------------------- */

static judge wrong(char *why, size_t why_size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static judge wrong(char *why, size_t why_size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (why_size) vsnprintf(why, why_size, format, arguments);
    va_end(arguments);
    return JUDGE_WRONG;
}

/* Does the id have a stretch of the total? Other arithmetics than the canonical resolve less
 * than a unit of weight. */
static bool source_has(const source *s, int32_t t)
{
    return s->q && !s->own ? residual_at(s, t) > 0 : s->w[t] > 0;
}

/* Does `got` own a stretch [before, after) of the total that some u' near u points into? The
 * arithmetic on u +- tau is rounded: tau is a tolerance, not a boundary. */
static judge source_judge(const source *s, int32_t V, oracle_unit u, int32_t got, double tau,
                          int32_t place, char *why, size_t why_size)
{
    if (got < 0 || got >= V)
        return wrong(why, why_size, "position %d: %d is no id of the vocabulary", (int)place,
                     (int)got);
    const uint64_t target = target_of(u, s->total), before = source_sum(s, 0, got),
                   after = before + source_sum(s, got, got + 1);
    if (target >= before && target < after) return JUDGE_EXACT;
    const double near = ldexp((double)u.m, -u.e), W = (double)s->total;
    if (tau > 0 && source_has(s, got) && (near - tau) * W < (double)after &&
        (near + tau) * W >= (double)before)
        return JUDGE_GREY;
    return wrong(why, why_size,
                 "position %d: drew %d, which owns [%.12g, %.12g) of 1; u = %.12g points at %d",
                 (int)place, (int)got, (double)before / W, (double)after / W, near,
                 (int)source_draw(s, V, u));
}

/* The shares are those of the row as it is, for a factor of all of them changes no race. */
static double share_at(const source *s, int32_t t)
{
    return s->q ? fmax(0, (double)s->w[t] - (double)s->q[t]) : (double)s->w[t];
}

static double moved_by(const source *s, int32_t t, double tau)
{
    return tau * ((double)s->w[t] + (s->q ? (double)s->q[t] : 0));
}

static judge source_race_judge(const source *s, int32_t V, const float *noise, int32_t got,
                               double tau, int32_t place, char *why, size_t why_size)
{
    if (got < 0 || got >= V)
        return wrong(why, why_size, "position %d: %d is no id of the vocabulary", (int)place,
                     (int)got);
    const int32_t due = source_race(s, V, noise);
    if (got == due) return JUDGE_EXACT;
    const double reach = (share_at(s, got) + moved_by(s, got, tau)) / (double)noise[got];
    bool grey = tau > 0 && source_has(s, got);
    for (int32_t t = 0; grey && t < V; t++)
        grey = (share_at(s, t) - moved_by(s, t, tau)) / (double)noise[t] <= reach;
    if (grey) return JUDGE_GREY;
    return wrong(why, why_size,
                 "position %d: drew %d, whose share over noise is %.12g; %d has %.12g",
                 (int)place, (int)got, share_at(s, got) / (double)noise[got], (int)due,
                 due < 0 ? 0 : share_at(s, due) / (double)noise[due]);
}

judge oracle_draw_judge(const float *w, int32_t V, oracle_unit u, int32_t got, double tau,
                        char *why, size_t why_size)
{
    const source s = make_source(w, NULL, V);
    return source_judge(&s, V, u, got, tau, 0, why, why_size);
}

/* The decision on a draft: did it stand? Uniforms stay inside [0, 1), so that a draft with
 * p >= q, which no uniform rejects (ACC-03), and one with p = 0, which none accepts (ACC-02),
 * have no grey zone. Rows of the implementation's own may have p < q where p = q is due. */
static judge accept_judge(float p, float q, double u, unsigned flags, int stood, double tau,
                          int32_t place, char *why, size_t why_size)
{
    if (oracle_accepts(p, q, u, flags) == stood) return JUDGE_EXACT;
    const double most = flags & ORACLE_OWN_ROWS ? 1 + tau : 1 - 0x1p-53;
    const double other = stood ? fmax(u - tau, 0) : fmin(u + tau, most);
    if (tau > 0 && oracle_accepts(p, q, other, flags) == stood) return JUDGE_GREY;
    return wrong(why, why_size, "position %d: draft %s with u = %.12g, q = %.9g, p = %.9g",
                 (int)place, stood ? "accepted" : "rejected", u, (double)q, (double)p);
}

static judge last_judge(const source *s, int32_t V, oracle_unit u, const float *noise,
                        int32_t got, double tau, int32_t place, char *why, size_t why_size)
{
    return noise ? source_race_judge(s, V, noise, got, tau, place, why, why_size)
                 : source_judge(s, V, u, got, tau, place, why, why_size);
}

static judge correction_judge(const float *p, const float *q, int32_t V,
                              const oracle_uniforms *u, unsigned flags, int32_t got, double tau,
                              int32_t place, char *why, size_t why_size)
{
    if (flags & ORACLE_EMPTY_OTHER && make_source(p, q, V).total == 0 && got >= 0 && got < V &&
        p[got] > 0)
        return JUDGE_EXACT;
    source s = source_correction(p, q, V);
    if (flags & ORACLE_OWN_ROWS && tau > 0) {
        const double share =
            (double)make_source(p, q, V).total / (double)make_source(p, NULL, V).total;
        if (tau > share * 0x1p-8 && got >= 0 && got < V && p[got] > 0) return JUDGE_GREY;
        if (!u->noise) tau /= share;
        s.own = true;
    }
    return last_judge(&s, V, u->residual, u->noise, got, tau, place, why, why_size);
}

/* What any rule's answer must look like: a possible length, and drafts before the last token.
 */
static judge shape_judge(const int32_t *draft, int32_t count, const int32_t *got,
                         int32_t got_len, char *why, size_t why_size)
{
    if (count < 0) return wrong(why, why_size, "a draft is no id: an error is due");
    if (got_len < 1 || got_len > count + 1)
        return wrong(why, why_size, "%d tokens emitted; %d drafts allow 1 to %d", (int)got_len,
                     (int)count, (int)count + 1);
    for (int32_t i = 0; i + 1 < got_len; i++)
        if (got[i] != draft[i])
            return wrong(why, why_size,
                         "position %d: %d is not the draft, %d, yet more follows", (int)i,
                         (int)got[i], (int)draft[i]);
    return JUDGE_EXACT;
}

static judge worse(judge a, judge b)
{
    return a > b ? a : b;
}

judge oracle_chain_judge(const float *const *p, const float *const *q, const int32_t *draft,
                         int32_t n, int32_t V, const oracle_uniforms *u, unsigned flags,
                         const int32_t *got, int32_t got_len, double tau, char *why,
                         size_t why_size)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags), last = got_len - 1;
    judge sum = shape_judge(draft, count, got, got_len, why, why_size);
    for (int32_t i = 0; i < count && i <= last && sum != JUDGE_WRONG; i++)
        sum = worse(sum, accept_judge(p[i][draft[i]], q[i][draft[i]], u->accept[i], flags,
                                      i < last, tau, i, why, why_size));
    if (sum == JUDGE_WRONG) return sum;
    if (last < count)
        return worse(sum, correction_judge(p[last], q[last], V, u, flags, got[last], tau, last,
                                           why, why_size));
    const source s = make_source(p[last], NULL, V);
    return worse(sum,
                 last_judge(&s, V, u->bonus, u->noise, got[last], tau, last, why, why_size));
}

judge oracle_match_judge(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                         const double *u, unsigned flags, const int32_t *got, int32_t got_len,
                         double tau, char *why, size_t why_size)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags), last = got_len - 1;
    judge sum = shape_judge(draft, count, got, got_len, why, why_size);
    if (sum != JUDGE_WRONG && last < count && got[last] == draft[last])
        return wrong(why, why_size, "position %d: %d equals the draft, yet the step ends",
                     (int)last, (int)got[last]);
    for (int32_t i = 0; i <= last && sum != JUDGE_WRONG; i++) {
        const source s = make_source(p[i], NULL, V);
        sum = worse(sum,
                    source_judge(&s, V, oracle_unit_of(u[i]), got[i], tau, i, why, why_size));
    }
    return sum;
}
