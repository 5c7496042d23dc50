/* engine_ties.h - a token at temperature 0 that is not plain decoding's: is it a near-tie? By the folder's logits
 * (CLM-08), or, where the engine's weights are its own, by what plain decoding itself gives there (CLM-15).
 *
 * Functions that return false have decided the case: the result says how. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_TIES_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_TIES_H

#include "conformance/checks/engine/engine_rows.h"

typedef struct {
    int32_t count;       /* near-ties */
    uint32_t asked;      /* bits of the requests that were compared */
    uint32_t open;       /* of them, those with a difference that nothing explains (CLM-15) */
    char text[200];      /* the first near-tie */
    char unexplained[200]; /* the first of the others */
} engine_ties;

/* Token `at` of request i, 0..31, is `got` and not plain[at]. True: it is noted. */
bool engine_tie(engine *e, engine_ties *ties, const char *what, int32_t i, const engine_prompt *prompt,
                const int32_t *plain, int32_t at, int32_t got);

/* Request i was compared. */
static inline void engine_ties_asked(engine_ties *ties, int32_t i)
{
    ties->asked |= 1u << i;
}

/* The end of a case: FAIL or INCONCLUSIVE by CLM-15, else ACCEPTABLE if there are near-ties, else nothing. */
void engine_ties_conclude(const engine *e, const engine_ties *ties);

/* The first tokens of plain decoding, up to a -1, are the model's: the lowest of the largest
 * logits under CANONICAL, else one within reach of it (LAY-07). Of weights of its own nothing is asked. */
bool engine_plain_is_right(const engine *e, int32_t i, const engine_prompt *prompt, const int32_t *plain,
                           int32_t tokens);

#endif
