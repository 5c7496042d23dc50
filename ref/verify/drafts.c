/* drafts.c - what the rules of verify.h share: the length of a list of drafts. */
#include "ref/verify/verify.h"

int32_t as_draft_length(const int32_t *draft, int32_t n, int32_t V)
{
    int32_t i = 0;
    while (i < n && draft[i] != -1) {
        if (draft[i] < 0 || draft[i] >= V) return -1;
        i++;
    }
    return n < 0 ? -1 : i;
}

as_status as_check_drafts(const int32_t *draft, int32_t n, int32_t V, as_error *e)
{
    if (n < 0) return as_fail(e, AS_BAD_INPUT, "drafts: their number, %d, is negative", (int)n);
    if (as_draft_length(draft, n, V) >= 0) return AS_OK;
    int32_t i = 0; /* the list is refused, so an offending id stops this before n */
    while (draft[i] >= 0 && draft[i] < V) i++;
    return as_fail(e, AS_BAD_INPUT,
                   "drafts: id %d at place %d; it must be 0 to %d, or -1 to end "
                   "the list",
                   (int)draft[i], (int)i, (int)V - 1);
}
