/* trig.h - sine and cosine, correctly rounded (ARI-04). Proved over every binary32 in [0, 2^20]
 * by tests/ref/trig_exhaustive.c. */
#ifndef ASSAY_REF_NUM_TRIG_H
#define ASSAY_REF_NUM_TRIG_H

/* For 0 <= x <= 2^20; NaN for anything else. */
float as_sin(float x);
float as_cos(float x);

#endif
