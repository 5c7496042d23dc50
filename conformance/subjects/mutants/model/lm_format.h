/* lm_format.h - what real engines compute with in the place of binary32: numbers of 16 bits, and quantised weights. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_FORMAT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_FORMAT_H

#include <stdint.h>

typedef enum {
    FORMAT_F32,
    FORMAT_BF16, /* weights, and the result of every operation */
    FORMAT_F16,
    FORMAT_Q8, /* weights alone: blocks of 32 with a scale, 255 levels each */
    FORMAT_Q4  /* 15 levels each */
} lm_format;

/* Weights of N rows of K become what the format stores of them. */
void lm_format_weights(lm_format f, float *w /* [N][K] */, int32_t N, int32_t K);
/* Results become what the format stores of them. */
void lm_format_results(lm_format f, float *x /* [n] */, int64_t n);

#endif
