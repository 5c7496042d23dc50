/* claims.h - the claims of an IUT as `args` of a reply, and what makes them coherent. Clauses
 * CLM-04, CLM-05 and FRM-03.
 *
 * In `args`: name, version, device (strings), the other fields of iut_claims as integers under
 * their own names, and `ops`, the names of the claimed operations with a blank between. */
#ifndef ASSAY_CONFORMANCE_WIRE_CLAIMS_H
#define ASSAY_CONFORMANCE_WIRE_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>

#include "conformance/wire/operations.h"

/* A new object, or NULL if memory runs out or a text is not UTF-8. */
json_t *claims_encode(const iut_claims *claims, unsigned ops);

/* Reads `args` of a reply. The three strings belong to `args`. Refuses what claims_check
 * refuses, and an unknown name or type of a field. */
bool claims_decode(const json_t *args, iut_claims *claims, unsigned *ops, char *why,
                   size_t why_size);

/* CLM-04: known values, no negative limit (0 says that none is known), strings present, and
 * canonical arithmetic only with uniforms of 29 bits or more, greedy methods among the methods. */
bool claims_check(const iut_claims *claims, char *why, size_t why_size);

/* CLM-05: model, forward, commit and truncate go together, and what reads or poisons the cache
 * goes with them. */
bool claims_check_ops(unsigned ops, char *why, size_t why_size);

#endif
