/* engine_ties.h - a token at temperature 0 that is not plain decoding's: is it a near-tie? By the folder's logits
 * (CLM-08), or, where the engine's weights are its own or penalties are at work, by what plain decoding itself gives
 * there (CLM-15, LAY-22).
 *
 * Functions that return false have decided the case: the result says how. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_TIES_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_TIES_H

#include "conformance/checks/engine/engine_rows.h"

typedef struct {
    int32_t count;        /* near-ties */
    int32_t asked, open;  /* prompts before the present ones; of them those with what nothing explains (CLM-15) */
    uint32_t asked_now, open_now; /* the same of the present prompts, as bits */
    bool coarse;          /* an open one is of penalties in a half format, or where the arithmetic is not said (LAY-22) */
    char text[200];        /* the first near-tie */
    char unexplained[440]; /* of each open prompt the first such difference, while there is room */
} engine_ties;

/* A prompt by some decoding that should give its plain tokens. */
typedef struct {
    const char *what;     /* was asked for */
    bool warm;            /* above temperature 0, where `greedy_identical` promises nothing */
    int32_t i;            /* of the present prompts, 0..31 */
    const engine_prompt *prompt;
    const int32_t *plain; /* its tokens by plain decoding */
    const iut_processors *processors; /* of the request; NULL: none were asked for */
    const float *due, *logprob; /* of the plain tokens and of the others, as each decoding tells them; NULL: not told */
} engine_beside;

/* By how much log-probabilities may differ that honest engines of this arithmetic tell of one token (LAY-21). */
double engine_logprob_reach(const iut_claims *claims);

/* The n tokens of the other decoding. True: they are the plain ones, or their first difference is noted; behind it
 * stands another stream. */
bool engine_ties_compare(engine *e, engine_ties *ties, const engine_beside *b, const int32_t *tokens, int32_t n);

/* From here on the prompts are others. */
void engine_ties_next(engine_ties *ties);

/* Have prompts what nothing explains, but fewer than are FAIL? Further ones may decide, once. */
bool engine_ties_undecided(const engine_ties *ties);

/* The end of a case: FAIL or INCONCLUSIVE by CLM-15, else ACCEPTABLE if there are near-ties, else nothing. */
void engine_ties_conclude(const engine *e, const engine_ties *ties);

/* The first tokens of plain decoding, up to a -1, are the model's: the lowest of the largest
 * logits under CANONICAL, else one within reach of it (LAY-07). Of weights of its own nothing is asked. */
bool engine_plain_is_right(const engine *e, int32_t i, const engine_prompt *prompt, const int32_t *plain,
                           int32_t tokens);

#endif
