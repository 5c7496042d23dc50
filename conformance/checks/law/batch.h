/* batch.h - a batch of random cases that can be asked in parts and again, for the checks that
 * compare answers with answers (LAY-05). */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_BATCH_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_BATCH_H

#include "conformance/checks/law/law.h"

/* The panel of a form, loaded. NULL: `r` says why. */
panel *batch_panel(const check_context *x, const panel_form *form, check_result *r);

/* N cases, or streams; answers go to the cases' own places whatever call they came with. */
typedef struct {
    const check_context *x;
    const panel *a;
    iut_op op;
    int32_t N, gamma, k; /* k: tokens of an answer at most */
    uint64_t seed;
    bool supplied;
    int32_t coins; /* of verify, as is usual for the IUT (coins.h) */
    int32_t *len, *state, *draft; /* [N], [N][gamma+1], [N][gamma] */
    double *u;                    /* [N][gamma+2] */
    int32_t *out, *out_len;       /* [N][k], [N] */
    struct {                      /* the arrays of one call */
        int32_t *len, *state, *draft, *out, *out_len, *accepted;
        double *u;
    } call;
} batch;

/* N cases of one operation on panel `a`, answers of at most k tokens. False: no memory.
 * batch_close() in either event. */
bool batch_open(batch *b, const check_context *x, const panel *a, iut_op op, int32_t N,
                int32_t gamma, int32_t k);
void batch_close(batch *b);

/* Random cases: any state first, drafts from q; unless `whole`, all lengths and now and then a
 * -1 among the drafts. The smallest and the largest uniform are among the others. */
void batch_fill(batch *b, const law_alias *q, law_random *g, bool whole);

/* One call with the cases from .. from+count-1, in descending order if asked: seeded uniforms
 * go by place, so for them the order stays. False: `r` has why. */
bool batch_ask(batch *b, int32_t from, int32_t count, bool reverse, check_result *r);

#endif
