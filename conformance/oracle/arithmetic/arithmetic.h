/* arithmetic.h - chapter 1 carried out literally: binary32 operations by MPFR at 24 bits inside
 * binary32's range of exponents, and the chapter's sums, norms, rotations and attention in its
 * own order, one function for each group of clauses. ARI-01 to ARI-21. Slow, obviously right.
 *
 * Vectors are arrays of binary32; every function is written against a table of operations.
 * oracle_mpfr is the definition. oracle_fast has the same values (tests/oracle proves it) and
 * makes whole networks feasible. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_ARITHMETIC_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

/* The operations of ARI-01, ARI-02 and ARI-04: each rounds once, to nearest even. */
typedef struct {
    float (*fma)(float a, float b, float c); /* a*b + c */
    float (*add)(float a, float b);
    float (*sub)(float a, float b);
    float (*mul)(float a, float b);
    float (*div)(float a, float b);
    float (*root)(float a);
    float (*exp)(float a);
    float (*cos)(float a);
    float (*sin)(float a);
} oracle_ops;

extern const oracle_ops oracle_mpfr, oracle_fast;

/* The binary32 of the value stored in 16 bits (ARI-03). */
float oracle_widen_bf16(uint16_t bits);
float oracle_widen_f16(uint16_t bits);

/* ARI-05 to ARI-07. */
float oracle_dot(const oracle_ops *o, const float *x, const float *w /* [K] */, int32_t K);

/* y = W x, and + bias where it is not NULL (ARI-08). */
void oracle_product(const oracle_ops *o, const float *W /* [N][K] */,
                    const float *bias /* [N] */, const float *x /* [K] */, int32_t N, int32_t K,
                    float *y /* [N] */);

/* ARI-09. y may be x. */
void oracle_norm(const oracle_ops *o, const float *x, const float *gain, int32_t n, float eps,
                 float *y /* [n] */);

/* Llama-3's four numbers (ARI-11). */
typedef struct {
    float factor, low, high, original;
} oracle_llama3;

/* ARI-10, then ARI-11 unless `scaling` is NULL. NaN where theta^(-2i/d) stands too close to the
 * middle of two binary32 for 400 bits to tell. */
void oracle_frequencies(const oracle_ops *o, double theta, int32_t d,
                        const oracle_llama3 *scaling, float *f /* [d/2] */);

/* The frequency f by ARI-11. */
float oracle_scaled(const oracle_ops *o, float f, const oracle_llama3 *scaling);

/* Cosines and sines of position m (ARI-12). */
void oracle_turn(const oracle_ops *o, const float *f, int32_t pairs, int32_t m, float *c,
                 float *s /* [pairs] */);

/* Rotates a head in place (ARI-13). */
void oracle_rotate(const oracle_ops *o, float *head /* [d] */, int32_t d, const float *c,
                   const float *s /* [d/2] */);

/* fl32(1/sqrt(d)), rounded once (ARI-14). */
float oracle_scale(int32_t d);

/* ARI-15. */
int32_t oracle_kv_head(int32_t h, int32_t heads, int32_t kv_heads);

/* One query head over the positions 0..n-1 of its path; key[t] and value[t] are those of
 * position t, [d] each (ARI-14, ARI-16 to ARI-19). */
void oracle_attention(const oracle_ops *o, const float *query /* [d] */, int32_t d,
                      const float *const *key, const float *const *value /* [n] */, int32_t n,
                      float *out /* [d] */);

/* h_i = silu(g_i) * u_i (ARI-20). h may be g. */
void oracle_silu(const oracle_ops *o, const float *g, const float *u, int32_t n, float *h);

/* x_i = x_i + y_i (ARI-21). */
void oracle_add(const oracle_ops *o, float *x, const float *y, int32_t n);

#endif
