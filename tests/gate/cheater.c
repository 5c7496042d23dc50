/* cheater.c - the example plugin with uniforms of its own, right where a suite usually looks and wrong elsewhere. The
 * options name where:
 *
 *     honest  right everywhere: the look-alike
 *     later   wrong from the 41st call of a process on
 *     sizes   right at the vocabularies of the fixed cases, wrong at others
 *     small   right in calls of 64 cases or more, wrong in smaller ones
 *
 * Wrong is: the correction comes from p. */
#include "conformance/iut.h"

const iut_api *example_entry(void);
#define iut_entry example_entry
#include "conformance/adapters/c/example_plugin.c"
#undef iut_entry

typedef enum { HONEST, LATER, SIZES, SMALL, CHEATS } cheat;
static const char *const names[CHEATS] = {"honest", "later", "sizes", "small"};

enum { RIGHT_CALLS = 40, LARGE = 64 };

/* A process has one instance. */
static struct {
    cheat cheat;
    int32_t calls;
    uint64_t random;
} self = {.random = 1};

static iut_status own_claims(iut *x, iut_claims *c)
{
    const iut_status s = claims(x, c);
    c->name = "cheater";
    c->uniforms = IUT_UNIFORMS_OWN;
    return s;
}

static int is_a_usual_size(int32_t V)
{
    static const int32_t usual[] = {2, 3, 4, 5, 6, 8, 17, 64, 1000, 1001, 1024, 2048, 32000};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i] == V) return 1;
    return 0;
}

static int cheats_now(const iut *x, int32_t n)
{
    self.calls++;
    return self.cheat == LATER   ? self.calls > RIGHT_CALLS
           : self.cheat == SIZES ? !is_a_usual_size(x->V)
           : self.cheat == SMALL ? n < LARGE
                                 : 0;
}

/* Corrections are drawn again, from p. */
static void correct_from_p(iut *x, iut_verify_batch *b)
{
    const ptrdiff_t width = b->gamma + 1;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t drafts = count_drafts(x, b->draft + i * (ptrdiff_t)b->gamma, b->len[i]);
        const int32_t accepted = b->out_len[i] - 1;
        if (accepted >= drafts) continue; /* that was the bonus */
        const float *p = row(x, x->p, b->state[i * width + accepted]);
        b->out[i * width + accepted] = draw_from(p, x->V, uniform(&self.random));
    }
}

static iut_status own_verify(iut *x, iut_verify_batch *b)
{
    const size_t count = (size_t)b->n * ((size_t)b->gamma + 2);
    double *u = malloc((count + 1) * sizeof *u);
    if (!u) return IUT_NO_MEMORY;
    for (size_t i = 0; i < count; i++) u[i] = (double)uniform(&self.random);
    iut_verify_batch with = *b;
    with.u = u;
    const iut_status s = verify(x, &with);
    free(u);
    if (cheats_now(x, b->n) && s == IUT_OK) correct_from_p(x, b);
    return s;
}

static iut *cheat_create(const char *options, char *error, size_t size)
{
    while (self.cheat < CHEATS && strcmp(options, names[self.cheat]) != 0) self.cheat++;
    if (self.cheat < CHEATS) return create("", error, size);
    snprintf(error, size, "cheater: the options are honest, later, sizes or small");
    return NULL;
}

const iut_api *iut_entry(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = cheat_create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = own_claims,
                                .panel = panel,
                                .verify = own_verify};
    return &api;
}
