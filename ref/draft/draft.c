/* draft.c - what the drafters share: see draft.h. */
#include "ref/draft/draft.h"

#include <string.h>
#include "ref/dist/draw.h"
#include "ref/num/fixed.h"

as_status as_drafter_make(const void *made, size_t size, as_drafter **drafter, as_error *e)
{
    *drafter = malloc(size);
    if (!*drafter) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    memcpy(*drafter, made, size);
    return AS_OK;
}

int32_t as_chain_limit(const as_context *c)
{
    int32_t limit = c->left - 1;
    if (limit > c->depth) limit = c->depth;
    if (limit > c->rows) limit = c->rows;
    return limit > 0 ? limit : 0;
}

as_status as_answers(const as_plan *plan, const as_context *c, const float *const *logits, int32_t V,
                     float *p, int32_t *answer, as_error *e)
{
    as_status s = AS_OK;
    for (int32_t j = 0; j < plan->asked && s == AS_OK; j++) {
        const float *row = logits[plan->drafts - plan->asked + j];
        answer[j] = -1;
        if (row && plan->drawn && c->sampling) {
            const as_words r = as_random(c->seed, c->position, AS_WINDOW, (uint32_t)(plan->index + j));
            s = as_serve(row, V, c->sampling, p, e);
            if (s == AS_OK) answer[j] = as_draw(p, V, as_word64(r));
        } else if (row) {
            s = as_argmax(row, V, &answer[j], e);
        }
    }
    return s;
}

bool as_is_eos(const int32_t *eos, int32_t eoses, int32_t token)
{
    for (int32_t i = 0; i < eoses; i++)
        if (eos[i] == token) return true;
    return false;
}

int32_t as_guess(const int32_t *list, int32_t n, uint64_t seed, uint64_t position,
                 as_purpose purpose, uint32_t j)
{
    const uint64_t i = as_target(as_word64(as_random(seed, position, purpose, j)), (uint64_t)n);
    return list ? list[i] : (int32_t)i;
}

as_status as_check_tokens(const int32_t *token, int32_t n, int32_t V, const char *what,
                          const char *about, as_error *e)
{
    for (int32_t i = 0; i < n; i++)
        if (token[i] < 0 || token[i] >= V)
            return as_refuse(e, AS_BAD_INPUT, about, "%s token %d is %d; it must be 0 to %d",
                             what, (int)i, (int)token[i], (int)V - 1);
    return AS_OK;
}
