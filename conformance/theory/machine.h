/* machine.h - what weights and rows cost on a machine. Clauses THY-17 and THY-18.
 *
 * All arguments are above 0 and finite, else a value is NaN. Source: arithmetic intensity, from its definition. */
#ifndef ASSAY_CONFORMANCE_THEORY_MACHINE_H
#define ASSAY_CONFORMANCE_THEORY_MACHINE_H

/* Operations a byte of a forward of `rows` rows; `width` is the bytes of a weight. THY-17 */
double theory_intensity(double rows, double width);

/* Seconds to read the weights once; `bandwidth` in bytes a second. THY-17 */
double theory_stream(double parameters, double width, double bandwidth);

/* Rows whose arithmetic takes no longer than reading the weights; `speed` in operations a second. THY-18 */
double theory_free_rows(double speed, double width, double bandwidth);

#endif
