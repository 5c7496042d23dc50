/* exp.h - the exponential function, correctly rounded: a mathematical statement, not a libm.
 * Clause DIST-06. */
#ifndef ASSAY_REF_NUM_EXP_H
#define ASSAY_REF_NUM_EXP_H

/* exp(x) rounded to the nearest binary32, ties to even; NaN for NaN, +0 for -inf, +inf for
 * +inf. */
float as_exp(float x);

#endif
