/* draw.c - see draw.h. */
#include "conformance/checks/frame/draw.h"

#include "conformance/checks/frame/probe.h"

/* The least of `most` and a declared limit, where 0 declares none. */
static int32_t within(int32_t most, int32_t limit)
{
    return limit > 0 && limit < most ? limit : most;
}

/* Classes of vocabularies and their size; places in check_draw.dealt, behind one a class. */
enum { CLASSES = 4, CLASS = 16, DEALT_CLASSES = CLASSES, DEALT_GAMMAS, DEALT_BATCHES, DEALT_OWN };
_Static_assert(DEALT_OWN + DRAW_SECOND < sizeof((check_draw){0}.dealt) / sizeof(uint64_t),
               "a list has no room in check_draw");

/* Deals a place below n, at most 64, that is not among `dealt`; once all are, anew. */
static int32_t deal(uint64_t *rng, uint64_t *dealt, int32_t n)
{
    const uint64_t all = UINT64_MAX >> (64 - n);
    if ((*dealt & all) == all) *dealt = 0;
    int32_t left = 0, place = 0;
    for (int32_t i = 0; i < n; i++) left += !(*dealt >> i & 1);
    for (left = probe_below(rng, left); left || *dealt >> place & 1; place++) left -= !(*dealt >> place & 1);
    *dealt |= UINT64_C(1) << place;
    return place;
}

int32_t draw_place(check_draw *d, draw_list list, int32_t n)
{
    return deal(&d->rng, &d->dealt[DEALT_OWN + (int)list], n);
}

/* In order, by size: each class as often as any other. */
static const int32_t vocabs[CLASSES][CLASS] = {
    {2, 3, 4, 5, 6, 7, 9, 10, 13, 17, 31, 33, 34, 61, 62, 63},
    {65, 66, 67, 97, 127, 129, 130, 251, 255, 257, 258, 511, 513, 1001, 1022, 1023},
    {1025, 2047, 2049, 4093, 4096, 4097, 8191, 8192, 8193, 16381, 16385, 32002, 32003, 32767, 32768, 32769},
    {50257, 50280, 65521, 65536, 65537, 100003, 128256, 128257, 131071, 131072, 131073, 151646, 151665, 151936, 256000,
     262144}};

/* How many of the class are within a limit. */
static int32_t class_size(int32_t class, int32_t limit)
{
    int32_t n = 0;
    while (n < CLASS && vocabs[class][n] <= limit) n++;
    return n;
}

int32_t draw_vocab(check_draw *d, int32_t most)
{
    const int32_t limit = within(most, client_claims(d->iut)->max_vocab);
    int32_t classes = 0;
    while (classes < CLASSES && class_size(classes, limit)) classes++;
    if (!classes) return limit;
    const int32_t class = deal(&d->rng, &d->dealt[DEALT_CLASSES], classes);
    return vocabs[class][deal(&d->rng, &d->dealt[class], class_size(class, limit))];
}

int32_t draw_gamma(check_draw *d, int32_t least, int32_t most)
{
    static const int32_t gamma[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 33};
    const int32_t limit = within(most, client_claims(d->iut)->max_gamma);
    int32_t from = 0, to = (int32_t)(sizeof gamma / sizeof *gamma);
    while (gamma[from] < least) from++;
    while (to > from && gamma[to - 1] > limit) to--;
    return to > from ? gamma[from + deal(&d->rng, &d->dealt[DEALT_GAMMAS], to - from)] : limit;
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

static const int32_t batches[] = {1, 2, 3, 5, 17, 33, 65, 257, 4097};
enum { BATCHES = sizeof batches / sizeof *batches };

int32_t draw_batch(uint64_t *rng, int32_t most)
{
    return within(batches[probe_below(rng, BATCHES)], most);
}

int32_t draw_cases(check_draw *d, int32_t most)
{
    int32_t sizes = 1;
    while (sizes < BATCHES && batches[sizes - 1] < most) sizes++;
    return within(batches[deal(&d->rng, &d->dealt[DEALT_BATCHES], sizes)], most);
}
