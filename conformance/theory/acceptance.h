/* acceptance.h - with what probability a draft at one place is accepted. Clauses THY-01 to THY-06.
 *
 * p is the target's row, q the row that the draft is drawn from: [V] probabilities, V >= 1, each row from 0 to 1 with
 * sum 1. The functions trust their rows (theory_row checks one), and return NaN for another argument out of range. */
#ifndef ASSAY_CONFORMANCE_THEORY_ACCEPTANCE_H
#define ASSAY_CONFORMANCE_THEORY_ACCEPTANCE_H

#include <stdbool.h>
#include <stdint.h>

/* Are all entries from 0 to 1, and is their sum within 1e-6 of 1? */
bool theory_row(const double *p /* [V] */, int32_t V);

/* beta, the sum of min(p, q). Source: Leviathan et al. 2023, theorem 3.5. THY-01 */
double theory_overlap(const double *p, const double *q, int32_t V);

/* D_LK, the sum of |p - M| with M = (p + q)/2: 0 to 1. Source: the same, definition 3.2. THY-01 */
double theory_divergence(const double *p, const double *q, int32_t V);

/* alpha(l), the sum of min(p/l, q), with lenience l above 0 and at most 1. Source: the same, appendix A.5. THY-03 */
double theory_lenient(const double *p, const double *q, int32_t V, double l);

/* Of non-iterative rejection: the least q/p over p > 0. Source: the same, appendix A.2. THY-04 */
double theory_single(const double *p, const double *q, int32_t V);

/* Of fixed candidates, ids from 0 to V-1: the sum of p over the distinct ones. Source: Fu et al. 2024, algorithm 4.
 * THY-05 */
double theory_onehot(const double *p, int32_t V, const int32_t *candidate /* [n] */, int32_t n);

/* That one of K >= 1 siblings is accepted by K-SEQ with factor rho, 1 to K. Source: Sun et al. 2023 (SpecTr). THY-06 */
double theory_kseq(const double *p, const double *q, int32_t V, int32_t K, double rho);

/* rho*, the least factor that THY-06 allows, within 1e-12. */
double theory_kseq_factor(const double *p, const double *q, int32_t V, int32_t K);

#endif
