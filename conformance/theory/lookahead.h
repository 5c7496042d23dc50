/* lookahead.h - what several candidates, and lookahead decoding, should give. Clauses THY-13 to THY-15, THY-19.
 *
 * alpha, 0 to 1, is the chance that the next token of a candidate is right. Out of the ranges below a value is NaN.
 * Source: Fu et al. 2024 (arXiv 2402.02057), equations 5 to 7. */
#ifndef ASSAY_CONFORMANCE_THEORY_LOOKAHEAD_H
#define ASSAY_CONFORMANCE_THEORY_LOOKAHEAD_H

#include <stdint.h>

/* Tokens of a step with b >= 0 candidates of gamma >= 0 tokens: each is right in its first i tokens with probability
 * alpha^i, independently of the others, the longest is taken, and one token more. b = 1 is a chain. THY-13 */
double theory_batch(double alpha, int32_t gamma, int32_t b);

/* Tokens a step when one step in f >= 1 finds b candidates of N - 1 tokens, N >= 2, and the others give one token.
 * f may be infinite. THY-14 has b = W = G. */
double theory_lookahead(double alpha, double f, int32_t N, int32_t b);

/* Tokens a step when steps[b] steps find b candidates, b = 0 to most; NaN if there is no step. THY-19 */
double theory_candidates(double alpha, int32_t N, const int64_t *steps /* [most + 1] */, int32_t most);

/* Rows of a forward at most: (W + G)(N - 1), for W >= 1, N >= 2, G >= 0. THY-15, LAH-07 */
int64_t theory_lookahead_rows(int32_t W, int32_t N, int32_t G);

/* The largest W = G whose forwards have at most `rows` rows; 0: there is none. THY-15 */
int32_t theory_lookahead_fit(int64_t rows, int32_t N);

#endif
