/* law_drawn.h - law cases whose calls change in shape: requests of a call, drafts, tokens and ends come
 * from lists that are shuffled before the first sample (STAT-10). Vocabulary and panel are fixed a case.
 * The e-process alone judges them. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_DRAWN_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_DRAWN_H

#include "conformance/checks/law/law.h"

typedef enum {
    LAW_SHAPES,     /* batches of 1 to 4097, 0 to 33 drafts, budgets and ends of any kind */
    LAW_LONG,       /* few requests of hundreds of tokens */
    LAW_NEIGHBOURS, /* short requests from one state, each independent of those before it */
    LAW_COLD        /* the first requests of a process, of several processes */
} law_shape;

/* The cases that law.verify, law.stream and law.draw draw. */
void law_draw_shapes(check_plan *plan, check_draw *d, const check *owner, law_op op);

/* Adds a case of one vocabulary of a list and of n streams, "NAME-V65-g7"; gamma is the largest of its
 * calls. No case where the uniforms are declared too coarse for any: NULL. */
check_case *law_draw_case(check_plan *plan, check_draw *d, const check *owner, const char *name,
                          const int32_t *V, int32_t count, int32_t gamma, int64_t n);

/* The whole of such a case. Of `rows` the variant, the sampling and the filters count; c->variant is not looked at. */
void law_drawn_case(const check_case *c, const check_context *x, law_op op, law_shape shape,
                    const panel_form *rows, check_result *r);

#endif
