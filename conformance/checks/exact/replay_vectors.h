/* replay_vectors.h - one group of vectors put to an implementation; for replay.vectors, and for
 * the tests that flip what a vector expects and must see it noticed. */
#ifndef ASSAY_CONFORMANCE_CHECKS_EXACT_REPLAY_VECTORS_H
#define ASSAY_CONFORMANCE_CHECKS_EXACT_REPLAY_VECTORS_H

#include "conformance/checks/frame/check.h"
#include "vectors/read/vectors.h"

/* The answer that declarations make right, expected or of an alternative; NULL: they leave it open. */
const vector_answer *replay_due(const iut_claims *claims, const vector_test *t);

/* The state is PASS, FAIL, or NOT_CLAIMED where the declarations judge none of its tests. */
void replay_group(const check_context *x, const vector_group *g, check_result *r);

#endif
