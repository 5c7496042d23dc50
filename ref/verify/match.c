/* match.c - the match rule (verify.h). The drafts decide only how many tokens a step emits,
 * never which: token i is a function of its row and its own uniform. Clauses MAT-01 and
 * MAT-02. */
#include "ref/verify/verify.h"

#include "ref/dist/draw.h"
#include "ref/num/uniform.h"

int32_t as_verify_match(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                        const uint64_t *U, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V);
    if (length < 0) return 0;
    for (int32_t i = 0;; i++) {
        out[i] = as_draw(p[i], V, U[i]);
        if (i == length || out[i] != draft[i]) return i + 1;
    }
}

int32_t as_verify_match_seeded(const float *const *p, const int32_t *draft, int32_t n,
                               int32_t V, uint64_t seed, uint64_t position, int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V);
    if (length < 0) return 0;
    for (int32_t i = 0;; i++) {
        const as_words r = as_random(seed, position + (uint32_t)i, AS_DRAW, 0);
        out[i] = as_draw(p[i], V, as_word64(r));
        if (i == length || out[i] != draft[i]) return i + 1;
    }
}
