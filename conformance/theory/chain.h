/* chain.h - what a chain of drafts is expected to give. Clauses THY-07 to THY-12.
 *
 * alpha, 0 to 1, is the mean acceptance of a draft; gamma, 0 to THEORY_MOST, the drafts of a step; c >= 0 the time of a
 * draft forward in target forwards of one row. Out of these ranges a value is NaN. Source: Leviathan et al. 2023. */
#ifndef ASSAY_CONFORMANCE_THEORY_CHAIN_H
#define ASSAY_CONFORMANCE_THEORY_CHAIN_H

#include <stdint.h>

enum { THEORY_MOST = 4096 };

/* Tokens of a step: 1 + alpha + ... + alpha^gamma. Equation 1. THY-07 */
double theory_tokens(double alpha, int32_t gamma);

/* How many times faster than plain decoding, where gamma + 1 rows cost `rows` > 0 forwards of one row: 1 in the
 * source. Theorem 3.8. THY-08 */
double theory_walltime(double alpha, int32_t gamma, double c, double rows);

/* What corollary 3.9 promises of the best gamma, (1 + alpha)/(1 + c), if alpha > c; else 1, of gamma 0. THY-09 */
double theory_promise(double alpha, double c);

/* How many times more operations than plain decoding; c_ops >= 0 is c, of operations. Theorem 3.11. THY-10 */
double theory_operations(double alpha, int32_t gamma, double c_ops);

/* The gamma from 0 to `most` with the largest theory_walltime at rows 1, the least of equals; -1 out of range. THY-11 */
int32_t theory_best_gamma(double alpha, double c, int32_t most);

/* Tokens of a step whose first i drafts are all accepted with chance s[i-1], whatever that depends on. THY-12 */
double theory_survival(const double *s /* [gamma] */, int32_t gamma);

#endif
