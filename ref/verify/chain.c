/* chain.c - speculative sampling of one chain (verify.h). The emitted token at each position
 * has law p whatever q is: a draft x survives with probability min(p(x), q(x)), and the
 * residual supplies the rest, max(0, p(x) - q(x)), up to the common factor that normalises it. */
#include "ref/verify/verify.h"

#include <stdbool.h>
#include <stddef.h>
#include "ref/dist/draw.h"
#include "ref/dist/race.h"
#include "ref/dist/residual.h"
#include "ref/num/environment.h"
#include "ref/num/uniform.h"

/* Where a step's uniforms come from: given, or else of a sequence (RNG-06). */
typedef struct {
    const as_chain_uniforms *given;
    uint64_t seed, position;
} source;

static double accept_uniform(const source *s, int32_t i)
{
    if (s->given) return s->given->accept[i];
    return as_unit29(as_random(s->seed, s->position + (uint32_t)i, AS_ACCEPT, 0));
}

static uint64_t last_uniform(const source *s, int32_t i, bool rejected)
{
    if (s->given) return rejected ? s->given->residual : s->given->bonus;
    const as_purpose purpose = rejected ? AS_RESIDUAL : AS_DRAW;
    return as_word64(as_random(s->seed, s->position + (uint32_t)i, purpose, 0));
}

/* ACC-01. u has 29 bits and q 24, so the binary64 product is exact. That the comparison is
 * strict gives ACC-02, p = 0 never passes, and ACC-03, p >= q with p > 0 always does: u < 1. */
static bool accepts(const float *p, const float *q, int32_t token, double u)
{
    return u * (double)q[token] < (double)p[token];
}

static int32_t verify(const float *const *p, const float *const *q, const int32_t *draft,
                      int32_t n, int32_t V, const source *s, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V); /* ACC-07 */
    if (length < 0) return 0;                            /* ACC-08 */
    const as_environment before = as_enter();
    int32_t i = 0;
    /* ACC-04 to ACC-06: in order, each with its own rows and uniform, up to the first rejection. */
    while (i < length && accepts(p[i], q[i], draft[i], accept_uniform(s, i))) {
        out[i] = draft[i];
        i++;
    }
    /* BON-02: one more token. RES-02, RES-03 after a rejection; else BON-01, and BON-03 if there
     * were no drafts. */
    const bool rejected = i < length;
    const float *noise = s->given ? s->given->noise : NULL;
    const uint64_t U = last_uniform(s, i, rejected);
    if (noise) /* DRAW-07 */
        out[i] = rejected ? as_race_residual(p[i], q[i], V, noise) : as_race(p[i], V, noise);
    else
        out[i] = rejected ? as_draw_residual(p[i], q[i], V, U) : as_draw(p[i], V, U);
    as_leave(before);
    return i + 1;
}

int32_t as_verify_chain(const float *const *p, const float *const *q, const int32_t *draft,
                        int32_t n, int32_t V, const as_chain_uniforms *u, int32_t *out)
{
    return verify(p, q, draft, n, V, &(source){.given = u}, out);
}

int32_t as_verify_chain_seeded(const float *const *p, const float *const *q,
                               const int32_t *draft, int32_t n, int32_t V, uint64_t seed,
                               uint64_t position, int32_t *out)
{
    return verify(p, q, draft, n, V, &(source){NULL, seed, position}, out);
}
