/* bisect.c - see bisect.h. */
#include "conformance/oracle/law/bisect.h"

#include <math.h>
#include <stdlib.h>

uint64_t oracle_count_accepts(oracle_accept_at accept, void *arg, uint32_t bits)
{
    /* The least j that rejects is in [low, high]. */
    uint64_t low = 0, high = UINT64_C(1) << bits;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (accept(arg, ldexp((double)middle, -(int)bits)))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_range(mpz_t count, uint64_t first, uint64_t last)
{
    mpz_add_ui(count, count, last - first);
    mpz_add_ui(count, count, 1);
}

/* Counts the ids of [first, last], whose ends draw `a` and `b`: one id at both ends is, by
 * monotonicity, the id of all between; else the halves tell. The range holds a power of two of
 * uniforms, so that halving ends at two of them; the depth is at most 64. */
static bool count_range(oracle_draw_at draw, void *arg, mpz_t *count, uint64_t first, int32_t a,
                        uint64_t last, int32_t b)
{
    if (a > b) return false;
    if (a == b) return add_range(count[a], first, last), true;
    if (last - first == 1) {
        add_range(count[a], first, first);
        add_range(count[b], last, last);
        return true;
    }
    const uint64_t middle = first + (last - first) / 2;
    const int32_t m = draw(arg, middle);
    if (m < a || m > b) return false;
    const int32_t n = draw(arg, middle + 1);
    if (n < a || n > b) return false;
    return count_range(draw, arg, count, first, a, middle, m) &&
           count_range(draw, arg, count, middle + 1, n, last, b);
}

bool oracle_count_draws(oracle_draw_at draw, void *arg, int32_t V, mpz_t *count)
{
    const int32_t a = draw(arg, 0), b = draw(arg, UINT64_MAX);
    for (int32_t t = 0; t < V; t++) mpz_set_ui(count[t], 0);
    if (a < 0 || b >= V) return false;
    return count_range(draw, arg, count, 0, a, UINT64_MAX, b);
}

/* A callback of one draft, from the step's callbacks of any. */
typedef struct {
    const oracle_step *step;
    int32_t draft;
} one_draft;

static bool accept_one(void *arg, double u)
{
    const one_draft *d = arg;
    return d->step->accept(d->step->arg, d->draft, u);
}

static int32_t correct_one(void *arg, uint64_t U)
{
    const one_draft *d = arg;
    return d->step->correct(d->step->arg, d->draft, U);
}

/* Adds what draft x contributes: it comes with probability `come`, stands with the share of
 * uniforms that accept it, and otherwise gives way to its correction. */
static bool add_draft(const oracle_step *step, int32_t x, mpq_srcptr come, mpz_t *count,
                      mpq_t *law)
{
    one_draft d = {step, x};
    mpq_t stand, part;
    mpq_inits(stand, part, (mpq_ptr)0);
    mpq_set_ui(stand, oracle_count_accepts(accept_one, &d, step->accept_bits), 1);
    mpq_div_2exp(stand, stand, step->accept_bits);
    mpq_mul(part, come, stand);
    mpq_add(law[x], law[x], part);
    mpq_sub(stand, come, part); /* now the probability that x comes and is rejected */
    bool fine = true;
    if (mpq_sgn(stand) > 0) {
        fine = oracle_count_draws(correct_one, &d, step->V, count);
        for (int32_t t = 0; t < step->V && fine; t++) {
            mpq_set_z(part, count[t]);
            mpq_div_2exp(part, part, 64);
            mpq_mul(part, part, stand);
            mpq_add(law[t], law[t], part);
        }
    }
    mpq_clears(stand, part, (mpq_ptr)0);
    return fine;
}

bool oracle_measure_step(const oracle_step *step, mpq_t *law)
{
    const int32_t V = step->V;
    mpz_t *drawn = malloc(2 * (size_t)V * sizeof *drawn);
    if (!drawn) return false;
    mpz_t *count = drawn + V;
    for (int32_t t = 0; t < 2 * V; t++) mpz_init(drawn[t]);
    for (int32_t t = 0; t < V; t++) mpq_set_ui(law[t], 0, 1);
    bool fine = oracle_count_draws(step->draft, step->arg, V, drawn);
    mpq_t come;
    mpq_init(come);
    for (int32_t x = 0; x < V && fine; x++) {
        if (mpz_sgn(drawn[x]) == 0) continue;
        mpq_set_z(come, drawn[x]);
        mpq_div_2exp(come, come, 64);
        fine = add_draft(step, x, come, count, law);
    }
    mpq_clear(come);
    for (int32_t t = 0; t < 2 * V; t++) mpz_clear(drawn[t]);
    free(drawn);
    return fine;
}
