/* greedy.c - the greedy rule (verify.h): what plain greedy decoding emits, several tokens a
 * step. Clause GRD-01. */
#include "ref/verify/verify.h"

#include <stddef.h>
#include "ref/dist/served.h"
#include "ref/verify/branch.h"

int32_t as_verify_greedy(const float *const *logits, const int32_t *draft, int32_t n, int32_t V,
                         int32_t *out)
{
    const int32_t length = as_draft_length(draft, n, V);
    if (length < 0) return 0;
    for (int32_t i = 0;; i++) {
        if (as_argmax(logits[i], V, &out[i], NULL) != AS_OK) return 0;
        if (i == length || out[i] != draft[i]) return i + 1;
    }
}

/* GRD-04. */
int32_t as_branch_greedy(const as_branch *b, int32_t *last)
{
    if (as_argmax(as_branch_node(b)->p, b->step->V, last, NULL) != AS_OK) *last = -1;
    return as_branch_with(b, *last);
}
