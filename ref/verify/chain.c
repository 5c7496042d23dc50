/* chain.c - speculative sampling of one chain (verify.h). The emitted token at each position
 * has law p whatever q is: a draft x survives with probability min(p(x), q(x)), and the
 * residual supplies the rest, max(0, p(x) - q(x)), up to the common factor that normalises it.
 * Clauses ACC-01 to ACC-08, RES-02, RES-03, BON-01 to BON-03. */
#include "ref/verify/verify.h"

#include <stdbool.h>
#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/num/environment.h"
#include "ref/num/uniform.h"

/* ACC-01. u has 29 bits and q 24, so the binary64 product is exact. */
static bool accepts(const float *p, const float *q, int32_t token, double u)
{
    return u * (double)q[token] < (double)p[token];
}

int32_t as_verify_chain(const float *const *p, const float *const *q, const int32_t *draft,
                        int32_t n, int32_t V, const as_chain_uniforms *u, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V);
    if (length < 0) return 0;
    const as_environment before = as_enter();
    int32_t i = 0;
    for (; i < length && accepts(p[i], q[i], draft[i], u->accept[i]); i++) out[i] = draft[i];
    out[i] =
        i < length ? as_draw_residual(p[i], q[i], V, u->residual) : as_draw(p[i], V, u->bonus);
    as_leave(before);
    return i + 1;
}

int32_t as_verify_chain_seeded(const float *const *p, const float *const *q,
                               const int32_t *draft, int32_t n, int32_t V, uint64_t seed,
                               uint64_t position, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V);
    if (length < 0) return 0;
    const as_environment before = as_enter();
    int32_t i = 0;
    for (; i < length; i++) {
        const double u = as_unit29(as_random(seed, position + (uint32_t)i, AS_ACCEPT, 0));
        if (!accepts(p[i], q[i], draft[i], u)) break;
        out[i] = draft[i];
    }
    const as_purpose purpose = i < length ? AS_RESIDUAL : AS_DRAW;
    const uint64_t U = as_word64(as_random(seed, position + (uint32_t)i, purpose, 0));
    out[i] = i < length ? as_draw_residual(p[i], q[i], V, U) : as_draw(p[i], V, U);
    as_leave(before);
    return i + 1;
}
