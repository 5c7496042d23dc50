/* law_views.h - the law of every token given its state, looked at by where the token stood: in its
 * stream, in its call, among the requests of its case, and behind which tokens. For streams whose
 * calls change in shape; e-processes alone, evaluated once (STAT-10, STAT-11).
 *
 * The token counts at a cell of its row (pit.h), so that all states are counted together. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_VIEWS_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_VIEWS_H

#include "conformance/checks/law/law.h"
#include "conformance/stats/power.h"

typedef struct law_views law_views;

/* Where a stream stood. */
typedef struct {
    int32_t n, i;    /* requests of its call, and which of them it was */
    int32_t gamma;   /* of its call */
    int32_t eos;     /* of its call; -1: none */
    int64_t request; /* of its case, from 0 on */
} law_place;

enum { LAW_LAGS = 64 };

/* For streams of at most k tokens. The seed is that of the uniforms within a token's mass. NULL: no
 * memory, or bad rows. */
law_views *law_views_new(const panel *a, int32_t k, uint64_t seed);
void law_views_free(law_views *v);

/* Counts a whole stream from a state; its tokens are possible ones. The number of tokens was fixed
 * before, or follows from the tokens: no token is left out for what came after it. */
void law_views_add(law_views *v, const law_place *place, int32_t start,
                   const int32_t *token /* [k] */, int32_t k);

/* ln of the mean of the e-values of all views. *most: the name of the view whose e-value is the
 * largest. NAN: no memory. */
double law_views_log_e(law_views *v, const char **most);
/* The total variation between the cells by q/p of all tokens and equal ones (STAT-04). */
st_tv law_views_tv(const law_views *v);

#endif
