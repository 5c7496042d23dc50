/* draw.c - see draw.h. */
#include "conformance/checks/frame/draw.h"

#include "conformance/checks/frame/probe.h"

/* The least of `most` and a declared limit, where 0 declares none. */
static int32_t within(int32_t most, int32_t limit)
{
    return limit > 0 && limit < most ? limit : most;
}

int32_t draw_vocab(check_draw *d, int32_t most)
{
    static const int32_t V[] = {2,     3,     4,     5,     7,     9,     13,    15,     17,     31,    33,  61,
                                63,    65,    67,    97,    127,   129,   251,   255,    257,    509,   511, 513,
                                1001,  1021,  1023,  1025,  2047,  2049,  4093,  4097,   8191,   8193,  16381,
                                16385, 32003, 32767, 32769, 50257, 65537, 100003, 128257, 131073, 151665};
    const int32_t limit = within(most, client_claims(d->iut)->max_vocab);
    int32_t n = 0;
    while (n < (int32_t)(sizeof V / sizeof *V) && V[n] <= limit) n++;
    return n ? V[probe_below(&d->rng, n)] : limit;
}

int32_t draw_gamma(check_draw *d, int32_t least, int32_t most)
{
    enum { USUAL = 17, LONG = 33 };
    const int32_t limit = within(most, client_claims(d->iut)->max_gamma);
    if (limit >= LONG && probe_below(&d->rng, 8) == 0) return LONG;
    const int32_t end = limit < USUAL ? limit : USUAL;
    return end <= least ? end : least + probe_below(&d->rng, end - least + 1);
}

check_case *draw_rows(check_plan *plan, check_draw *d, const check *owner, const char *name,
                      int32_t most, int32_t gamma_most, int64_t n)
{
    enum { LARGE = 2048, LEAST = 32 };
    const int32_t V = draw_vocab(d, most), gamma = gamma_most ? draw_gamma(d, 1, gamma_most) : 0;
    check_case *c = gamma_most
                        ? draw_case(plan, d, owner, "%s-V%d-g%d", name, (int)V, (int)gamma)
                        : draw_case(plan, d, owner, "%s-V%d", name, (int)V);
    c->V = V;
    c->gamma = gamma;
    c->n = V > LARGE ? n * LARGE / V : n;
    if (c->n < LEAST) c->n = n < LEAST ? n : LEAST;
    c->cost = cost_of_rows(c->n * (gamma + 1), V);
    return c;
}

int32_t draw_batch(uint64_t *rng, int32_t most)
{
    static const int32_t n[] = {1, 2, 3, 5, 17, 33, 65, 257, 4097};
    const int32_t size = n[probe_below(rng, (int32_t)(sizeof n / sizeof *n))];
    return size < most ? size : most;
}
