/* chain_gmp.h - the questions of chain.h answered straight from the clauses, in integers of any
 * size: a binary32 is N * 2^-149, a uniform m * 2^-e, and every rounding is written out. A
 * hundred times slower than chain.c, with which it shares nothing but the types of its inputs;
 * the source of the golden vectors. Arguments and results as in chain.h. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_CHAIN_GMP_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_CHAIN_GMP_H

#include "conformance/oracle/law/chain.h"

int32_t oracle_gmp_draw(const float *w /* [V] */, int32_t V, oracle_unit u);

/* RES-01; returns 1 when the integer total is 0 (RES-03). */
int oracle_gmp_residual(const float *p, const float *q, int32_t V, float *r /* [V] */);

int32_t oracle_gmp_chain(const float *const *p, const float *const *q, const int32_t *draft,
                         int32_t n, int32_t V, const oracle_uniforms *u, unsigned flags,
                         int32_t *out);

int32_t oracle_gmp_match(const float *const *p, const int32_t *draft, int32_t n, int32_t V,
                         const double *u, unsigned flags, int32_t *out);

#endif
