/* dist_test.c - served distributions against a slow implementation that sorts, draws at their
 * boundaries, residuals. Clauses DIST-01 to DIST-13, DRAW-02 to DRAW-05, RES-01, RES-03. */
#include <math.h>
#include <mpfr.h>
#include <stdbool.h>
#include <string.h>

#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"
#include "ref/num/fixed.h"
#include "tests/random.h"
#include "tests/ref/suite.h"

enum { MAX_V = 400 };
static const as_sampling plain = {1.0f, 0, 1.0f, 0.0f};

/* ---- A second implementation of chapter 3: exp by MPFR, ranking by sorting. ------ */

static const float *sort_by;

static int by_rank(const void *a, const void *b)
{
    const int i = *(const int *)a, j = *(const int *)b;
    if (sort_by[i] != sort_by[j]) return sort_by[i] > sort_by[j] ? -1 : 1;
    return i < j ? -1 : 1;
}

static uint64_t slow_weight(float t)
{
    return (uint64_t)llrint(ldexp((double)t, 44));
}

static float slow_exp(float x)
{
    mpfr_t a, r;
    mpfr_set_emin(-148);
    mpfr_set_emax(128);
    mpfr_inits2(24, a, r, (mpfr_ptr)0);
    mpfr_set_flt(a, x, MPFR_RNDN);
    mpfr_subnormalize(r, mpfr_exp(r, a, MPFR_RNDN), MPFR_RNDN);
    const float y = mpfr_get_flt(r, MPFR_RNDN);
    mpfr_clears(a, r, (mpfr_ptr)0);
    return y;
}

static void slow_serve(const float *logits, int V, const as_sampling *s, float *out)
{
    int rank[MAX_V], kept = 0;
    float e[MAX_V];
    bool keep[MAX_V] = {false};
    for (int i = 0; i < V; i++) rank[i] = i;
    sort_by = logits;
    qsort(rank, (size_t)V, sizeof rank[0], by_rank);
    for (int i = 0; i < V; i++) e[i] = slow_exp((logits[i] - logits[rank[0]]) / s->temperature);

    while (kept < V && isfinite(logits[rank[kept]]) && (!s->top_k || kept < s->top_k)) kept++;
    uint64_t W = 0, S = 0;
    for (int r = 0; r < kept; r++) W += slow_weight(e[rank[r]]);
    if (s->top_p < 1.0f) {
        const uint64_t P = (uint64_t)llrint(ldexp((double)s->top_p, 32));
        int prefix = 0;
        do S += slow_weight(e[rank[prefix++]]);
        while (((as_u128)S << 32) < (as_u128)P * W);
        kept = prefix;
    }
    for (int r = 0; r < kept; r++) keep[rank[r]] = s->min_p == 0.0f || e[rank[r]] >= s->min_p;
    W = 0;
    for (int i = 0; i < V; i++) W += keep[i] ? slow_weight(e[i]) : 0;
    for (int i = 0; i < V; i++) out[i] = keep[i] ? e[i] / ldexpf((float)W, -44) : 0.0f;
}

START_TEST(served_equals_the_slow_one)
{
    static const float top_p[] = {1.0f, 0.9f, 0.5f, 1e-12f, 0.99999994f, 0.25f};
    static const float min_p[] = {0.0f, 0.0f, 0.05f, 1.0f, 0x1p-30f};
    static const float temperature[] = {1.0f, 0.7f, 2.0f, 1e-3f, 1e30f, 1e-42f};
    uint64_t seed = _i;
    for (int round = 0; round < 300; round++) {
        float logits[MAX_V], fast[MAX_V], slow[MAX_V];
        /* Up to 64 tokens are ranked by a walk, more by histograms. */
        const int V = round % 2 ? 1 + below(&seed, 64) : 65 + below(&seed, round % 10 ? 40 : MAX_V - 64);
        for (int i = 0; i < V; i++) {
            const uint64_t r = splitmix(&seed);
            switch (r % 8) {
            case 0:
                logits[i] = -INFINITY;
                break;
            case 1:
                logits[i] = r & 256 ? -0.0f : 0.0f;
                break;
            case 2:
            case 3:
            case 4:
                logits[i] = (float)((int)(r >> 8 & 7) - 4);
                break;
            default:
                logits[i] = (float)((int)(r >> 8 & 0xfffff) - 0x80000) * 0x1p-15f;
            }
        }
        logits[below(&seed, V)] = 1.0f; /* one at least is not masked */
        const as_sampling s = {temperature[below(&seed, 6)],
                               below(&seed, 3) ? 0 : below(&seed, 50), top_p[below(&seed, 6)],
                               min_p[below(&seed, 5)]};
        as_error e;
        ck_assert_msg(as_serve(logits, V, &s, fast, &e) == AS_OK, "%s", e.text);
        slow_serve(logits, V, &s, slow);
        ck_assert_msg(memcmp(fast, slow, (size_t)V * sizeof *fast) == 0,
                      "V %d T %g k %d p %g m %g", V, (double)s.temperature, (int)s.top_k,
                      (double)s.top_p, (double)s.min_p);
    }
}
END_TEST

START_TEST(filters_by_hand)
{
    /* Four equal logits: e is 1 everywhere, so everything is exact. */
    const float equal[] = {2.0f, 2.0f, 2.0f, 2.0f};
    float p[4];
    ck_assert_int_eq(as_serve(equal, 4, &(as_sampling){1.0f, 2, 1.0f, 0.0f}, p, NULL), AS_OK);
    ck_assert_mem_eq(p, ((float[]){0.5f, 0.5f, 0.0f, 0.0f}), sizeof p);
    /* top_p exactly on a boundary needs no third token; one unit above, it does. */
    ck_assert_int_eq(as_serve(equal, 4, &(as_sampling){1.0f, 0, 0.5f, 0.0f}, p, NULL), AS_OK);
    ck_assert_mem_eq(p, ((float[]){0.5f, 0.5f, 0.0f, 0.0f}), sizeof p);
    as_serve(equal, 4, &(as_sampling){1.0f, 0, 0.5f + 0x1p-24f, 0.0f}, p, NULL);
    ck_assert(p[2] > 0.0f && p[3] == 0.0f);
    /* min_p keeps e = min_p. */
    ck_assert_int_eq(as_serve(equal, 4, &(as_sampling){1.0f, 0, 1.0f, 1.0f}, p, NULL), AS_OK);
    ck_assert_mem_eq(p, ((float[]){0.25f, 0.25f, 0.25f, 0.25f}), sizeof p);
    /* -0 and +0 tie; a mask is neither drawn nor counted among the k. */
    const float zeros[] = {-INFINITY, -0.0f, 0.0f, -0.0f};
    as_serve(zeros, 4, &(as_sampling){1.0f, 2, 1.0f, 0.0f}, p, NULL);
    ck_assert_mem_eq(p, ((float[]){0.0f, 0.5f, 0.5f, 0.0f}), sizeof p);
    /* The largest legal V, and a temperature under which x overflows to -inf. */
    float *logits = calloc(AS_MAX_VOCAB, sizeof *logits),
          *big = malloc(AS_MAX_VOCAB * sizeof *big);
    ck_assert_int_eq(as_serve(logits, AS_MAX_VOCAB, &plain, big, NULL), AS_OK);
    ck_assert(big[0] == 1.0f / (float)AS_MAX_VOCAB && big[AS_MAX_VOCAB - 1] == big[0]);
    free(logits);
    free(big);
}
END_TEST

START_TEST(temperature_zero_is_argmax)
{
    const float logits[] = {-INFINITY, -0.0f, 0.0f, -1.0f};
    float p[4];
    int32_t id;
    ck_assert_int_eq(as_serve(logits, 4, &(as_sampling){0.0f, 3, 0.5f, 0.5f}, p, NULL), AS_OK);
    ck_assert_mem_eq(p, ((float[]){0.0f, 1.0f, 0.0f, 0.0f}), sizeof p);
    ck_assert_int_eq(as_argmax(logits, 4, &id, NULL), AS_OK);
    ck_assert_int_eq(id, 1);
    const float low[] = {-3.4e38f, -3.3e38f, -3.3e38f};
    ck_assert_int_eq(as_argmax(low, 3, &id, NULL), AS_OK);
    ck_assert_int_eq(id, 1);
}
END_TEST

/* DIST-10 at its edge: the first token weighs exactly floor(P W / 2^32), which is not enough
 * because the quotient has a remainder. With top_p = 3/4 and weights 2^44 and w that is so when
 * 3 (2^44 + w) = 4 * 2^44 + 2. One binary32 cannot be that w, but several can together. */
START_TEST(top_p_needs_the_remainder)
{
    enum { MOST = 8 };
    const uint64_t one = UINT64_C(1) << 44;
    uint64_t rest = (one + 2) / 3;
    float logits[MOST] = {0.0f}, fast[MOST], slow[MOST];
    int32_t V = 1;
    for (; rest && V < MOST; V++) {
        float x = logf((float)rest) - logf((float)one) + 1e-5f;
        while (slow_weight(slow_exp(x)) > rest) x = nextafterf(x, -INFINITY);
        rest -= slow_weight(slow_exp(x));
        logits[V] = x;
    }
    ck_assert_uint_eq(rest, 0);
    const as_sampling s = {1.0f, 0, 0.75f, 0.0f};
    ck_assert_int_eq(as_serve(logits, V, &s, fast, NULL), AS_OK);
    slow_serve(logits, V, &s, slow);
    ck_assert_mem_eq(fast, slow, (size_t)V * sizeof *fast);
    ck_assert(fast[1] > 0.0f && fast[2] == 0.0f); /* the floor would keep the first alone */
}
END_TEST

START_TEST(hostile_host)
{
    const float subnormal[] = {0.0f, 0x1p-149f};
    float p[3];
    int32_t id;
    hostile_environment();
    as_argmax(subnormal, 2, &id, NULL);
    as_serve(subnormal, 2, &(as_sampling){0.0f, 0, 1.0f, 0.0f}, p, NULL);
    ck_assert(still_hostile());
    ck_assert_int_eq(id, 1);
    ck_assert(p[1] == 1.0f);
    const float third[] = {0.0f, -1.0986123f, -1.0986123f};
    float nearest[3], upward[3];
    ck_assert_int_eq(as_serve(third, 3, &plain, nearest, NULL), AS_OK);
    const float tenths[] = {0.1f, 0.3f, 0x1p-60f};
    float r[3], r_upward[3];
    const uint64_t R = as_residual(nearest, tenths, 3, r);
    hostile_environment();
    const uint64_t R_upward = as_residual(nearest, tenths, 3, r_upward);
    as_serve(third, 3, &plain, upward, NULL);
    const uint64_t W = as_residual(upward, nearest, 3, p);
    const double all = as_overlap(upward, nearest, 3);
    ck_assert(still_hostile());
    ck_assert_mem_eq(nearest, upward, sizeof upward);
    ck_assert_mem_eq(r, r_upward, sizeof r);
    ck_assert_uint_eq(R, R_upward);
    ck_assert_uint_eq(W, 0);
    ck_assert(all == as_overlap(nearest, nearest, 3));
}
END_TEST

static void refused(const float *logits, int32_t V, as_sampling s, const char *word)
{
    float p[4];
    as_error e = {.text = ""};
    ck_assert_int_eq(as_serve(logits, V, &s, p, &e), AS_BAD_INPUT);
    ck_assert_msg(strstr(e.text, word), "\"%s\" does not name %s", e.text, word);
}

START_TEST(bad_input)
{
    const float good[] = {0.0f, 1.0f}, nan[] = {0.0f, NAN}, inf[] = {INFINITY, 0.0f};
    const float minus_nan[] = {1.0f, -NAN}, masked[] = {-INFINITY, -INFINITY};
    refused(nan, 2, plain, "NaN");
    refused(minus_nan, 2, plain, "NaN");
    refused(inf, 2, plain, "+infinity");
    refused(masked, 2, plain, "masked");
    refused(masked, 2, (as_sampling){0.0f, 0, 1.0f, 0.0f}, "masked");
    refused(good, 0, plain, "vocabulary");
    refused(good, 1 << 20, plain, "vocabulary");
    static const float bad_t[] = {-1.0f, INFINITY, NAN}, bad_p[] = {0.0f, -0.5f, 1.5f, NAN};
    for (int i = 0; i < 3; i++)
        refused(good, 2, (as_sampling){bad_t[i], 0, 1, 0}, "temperature");
    for (int i = 0; i < 4; i++) refused(good, 2, (as_sampling){1, 0, bad_p[i], 0}, "top_p");
    refused(good, 2, (as_sampling){1.0f, -1, 1.0f, 0.0f}, "top_k");
    refused(good, 2, (as_sampling){1.0f, 0, 1.0f, 1.5f}, "min_p");
    refused(good, 2, (as_sampling){1.0f, 0, 1.0f, NAN}, "min_p");
    ck_assert_int_eq(as_check_row(good, 2, NULL), AS_OK);
    ck_assert_int_eq(as_check_row(nan, 2, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_check_row(inf, 2, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_check_row((float[]){0.5f, -0.5f}, 2, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_check_row((float[]){0.0f, 0x1p-60f}, 2, NULL), AS_BAD_INPUT);
}
END_TEST

START_TEST(draw_boundaries)
{
    const float w[] = {0.0f, 0.25f, 0.0f, 0.5f, 0.25f, 0.0f};
    const uint64_t quarter = UINT64_C(1) << 62;
    ck_assert_int_eq(as_draw(w, 6, 0), 1);
    ck_assert_int_eq(as_draw(w, 6, quarter - 1), 1);
    ck_assert_int_eq(as_draw(w, 6, quarter), 3);
    ck_assert_int_eq(as_draw(w, 6, 3 * quarter - 1), 3);
    ck_assert_int_eq(as_draw(w, 6, 3 * quarter), 4);
    ck_assert_int_eq(as_draw(w, 6, UINT64_MAX), 4);
    /* A row that sums to 3/8 has the same law as its multiple. */
    const float part[] = {0.125f, 0.25f};
    ck_assert_int_eq(as_draw(part, 2, UINT64_MAX / 3), 0);
    ck_assert_int_eq(as_draw(part, 2, UINT64_MAX / 3 + 1), 1);
    ck_assert_int_eq(as_draw((float[]){0.0f, 0.0f}, 2, UINT64_MAX), -1);
    ck_assert_int_eq(as_draw((float[]){0x1p-46f}, 1, 0), -1); /* weight 0 */
}
END_TEST

START_TEST(residual_and_overlap)
{
    const float p[] = {0.5f, 0.25f, 0.25f, 0.0f}, q[] = {0.25f, 0.5f, 0.125f, 0.125f};
    float r[4];
    ck_assert_uint_eq(as_residual(p, q, 4, r), UINT64_C(3) << 41);
    ck_assert_mem_eq(r, ((float[]){0.25f, 0.0f, 0.125f, 0.0f}), sizeof r);
    ck_assert(as_overlap(p, q, 4) == 0.625);
    ck_assert(as_overlap(p, p, 4) == 1.0);
    ck_assert_int_eq(as_draw_residual(p, q, 4, 0), 0);
    ck_assert_int_eq(as_draw_residual(p, q, 4, UINT64_MAX / 3 * 2), 0);
    ck_assert_int_eq(as_draw_residual(p, q, 4, UINT64_MAX / 3 * 2 + 2), 2);
    ck_assert_int_eq(as_draw_residual(p, q, 4, UINT64_MAX), 2);
    /* Empty: drawn from p, with the same uniform. */
    ck_assert_uint_eq(as_residual(p, p, 4, r), 0);
    ck_assert_int_eq(as_draw_residual(p, p, 4, UINT64_C(1) << 63), 1);
    const float half_p[] = {0.25f, 0.25f}, more_q[] = {0.5f, 0.25f};
    ck_assert_int_eq(as_draw_residual(half_p, more_q, 2, UINT64_C(1) << 63), 1); /* q says 0 */
    /* Empty as integers, although one entry differs by less than half a unit. */
    const float tiny_p[] = {0x1p-46f, 0.5f}, tiny_q[] = {0.0f, 0.5f};
    ck_assert_int_eq(as_draw_residual(tiny_p, tiny_q, 2, 0), 1);
    ck_assert_int_eq(as_draw_residual((float[]){0.0f}, (float[]){0.0f}, 1, 0), -1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("dist");
    tcase_add_loop_test(t, served_equals_the_slow_one, 0, 10);
    tcase_add_test(t, filters_by_hand);
    tcase_add_test(t, temperature_zero_is_argmax);
    tcase_add_test(t, top_p_needs_the_remainder);
    tcase_add_test(t, hostile_host);
    tcase_add_test(t, bad_input);
    tcase_add_test(t, draw_boundaries);
    tcase_add_test(t, residual_and_overlap);
    return suite_main("ref/dist", t);
}
