/* law_drawn.h - law cases whose calls change in shape: requests of a call, drafts, tokens and ends
 * come from lists that are shuffled before the first sample (STAT-10). Vocabulary and panel are one
 * case's own. Judged by the e-process alone: such a case has no tables. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_DRAWN_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_DRAWN_H

#include "conformance/checks/law/law.h"

typedef enum {
    LAW_SHAPES,    /* batches of 1 to 4096, 0 to 33 drafts, streams of any length, ends */
    LAW_LONG,      /* few requests with hundreds of tokens */
    LAW_NEIGHBOURS, /* short streams from one state: is a request independent of those before? */
    LAW_COLD       /* the same of a process that has just been started, again and again */
} law_shape;

/* Is it a drawn case? Cases of fixed shape have tables. */
static inline bool law_is_drawn(const check_case *c)
{
    return c->tables == 0;
}

/* What the claims allow of a vocabulary and of gamma. */
int32_t law_vocab_within(const client *tested, const int32_t *list, int32_t count, uint64_t *rng);

/* Fills what every drawn law case has. n: streams. */
void law_drawn_plan(check_case *c, int32_t V, double acceptance, int32_t gamma, int64_t n);

/* Draws the cases of law.verify, law.stream or law.draw. */
void law_drawn_shapes(check_plan *plan, check_draw *d, const check *owner, law_op op);

void law_drawn_case(const check_case *c, const check_context *x, law_op op, law_shape shape,
                    panel_variant variant, check_result *r);

#endif
