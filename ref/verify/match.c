/* match.c - the match rule (verify.h). The drafts decide only how many tokens a step emits,
 * never which: token i is a function of its row and its own uniform. */
#include "ref/verify/verify.h"

#include <stddef.h>
#include "ref/dist/draw.h"
#include "ref/num/uniform.h"
#include "ref/verify/branch.h"

/* MAT-01. The uniforms are given, or else those of a sequence, which are plain decoding's
 * (RNG-06): then the tokens are plain decoding's, too (MAT-02). */
static int32_t verify(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                      const uint64_t *given, uint64_t seed, uint64_t position, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V); /* ACC-07 */
    if (length < 0) return 0;                            /* ACC-08 */
    for (int32_t i = 0;; i++) {
        const uint64_t U =
            given ? given[i]
                  : as_word64(as_random(seed, position + (uint32_t)i, AS_DRAW, 0));
        out[i] = as_draw(p[i], V, U);
        if (i == length || out[i] != draft[i]) return i + 1;
    }
}

int32_t as_verify_match(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                        const uint64_t *U, int32_t *out)
{
    return verify(p, draft, n, V, U, 0, 0, out);
}

int32_t as_verify_match_seeded(const float *const *p, const int32_t *draft, int32_t n,
                               int32_t V, uint64_t seed, uint64_t position, int32_t *out)
{
    return verify(p, draft, n, V, NULL, seed, position, out);
}

/* MAT-03. */
int32_t as_branch_match(const as_branch *b, int32_t *last)
{
    *last = as_draw(as_branch_node(b)->p, b->step->V, as_branch_choice(b, AS_DRAW));
    return as_branch_with(b, *last);
}
