/* decode.h - the one loop that every method of decoding runs in: a drafter proposes a tree of
 * rows, the target evaluates it, a rule accepts a path of it and adds one token, both commit.
 * Clauses STOP-01 to STOP-08, GRD-03, MAT-02, LAW-01 to LAW-03, LAH-28 to LAH-36, TDR-04
 * to TDR-06. */
#ifndef ASSAY_REF_DECODE_H
#define ASSAY_REF_DECODE_H

#include <stdbool.h>
#include <stdint.h>
#include "ref/dist/served.h"
#include "ref/draft/draft.h"
#include "ref/lm/lm.h"
#include "ref/ranks.h"
#include "ref/status.h"
#include "ref/verify/verify.h"

typedef struct {
    as_lm *target;
    /* Of the target, open; its tokens are the beginning of the prompt, and fewer. It stays open.
     * After AS_OK it has all tokens but the last; with budget 0 it is unchanged; after an error
     * its length is not specified. NULL: a new sequence, which is closed again. */
    const int32_t *sequence;
    as_drafter *drafter; /* reset first */
    as_rule rule;
    as_sampling sampling; /* of the target */
    uint64_t seed;
    const int32_t *prompt; /* [prompts] */
    int32_t prompts;       /* at least 1 */
    const int32_t *eos;    /* [eoses] any of these is emitted and ends the stream */
    int32_t eoses;
    int32_t budget; /* tokens at most, at least 0 */
    /* After every step, the drafter having observed it. NULL: none. */
    void (*trace)(void *data, const as_step *step);
    void *trace_data;
    /* The ranks that share the rows of each step (LAH-31), each with this request, a model and a drafter
     * of its own. NULL: alone. A drafter without a digest is refused, as is a rule of whole trees. */
    as_ranks *ranks;
} as_request;

typedef struct {
    int32_t tokens;   /* emitted */
    int32_t steps;    /* forwards of the target after the prompt */
    int32_t drafted;  /* rows that a rule might have accepted */
    int32_t accepted; /* of these */
    bool ended;       /* by an end-of-sequence token */
} as_result;

/* Decodes until an end-of-sequence token or the budget. AS_PEER where ranks differ or one is silent, naming
 * rank and step; this rank must then end, too. On an error the tokens emitted so far
 * stand in out, and result counts them. AS_LIMIT, before the first step, when prompt and budget
 * need more positions than the target has. */
as_status as_decode(const as_request *r, int32_t *out /* [budget] */, as_result *result,
                    as_error *e);

#endif
