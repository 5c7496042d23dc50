/* faulty.h - chapter 1's operations with one fault each: what plausible implementations compute
 * instead. The vectors show with them which faults an answer catches; the model mutants are
 * built from them. Without a fault of its own, an operation is the oracle's. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_FAULTY_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_FAULTY_H

#include "conformance/oracle/arithmetic/transformer.h"

typedef enum {
    ORACLE_NO_FAULT,
#define FAULTY(id, name) ORACLE_FAULT_##id,
#include "conformance/oracle/arithmetic/faulty.def"
#undef FAULTY
    ORACLE_FAULTS
} oracle_fault;

/* ORACLE_NO_FAULT: no fault has the name. */
oracle_fault oracle_fault_named(const char *name);

/* A fault, and the operations of ARI-01 to ARI-04 as the fault leaves or replaces them. */
typedef struct {
    oracle_fault fault;
    oracle_ops o;
} oracle_faulty;

#define oracle_has(f, id) ((f)->fault == ORACLE_FAULT_##id)

oracle_faulty oracle_faulty_of(oracle_fault fault, const oracle_ops *right);

/* Can a product of K terms, with or without a bias, have other bits than the right one? */
bool oracle_faulty_products(const oracle_faulty *f, int32_t K, bool bias);

/* ARI-03. */
float oracle_faulty_widen_bf16(const oracle_faulty *f, uint16_t bits);
float oracle_faulty_widen_f16(const oracle_faulty *f, uint16_t bits);

/* As their namesakes of arithmetic.h. */
float oracle_faulty_dot(const oracle_faulty *f, const float *x, const float *w /* [K] */,
                        int32_t K);
void oracle_faulty_product(const oracle_faulty *f, const float *W /* [N][K] */,
                           const float *bias /* [N] */, const float *x /* [K] */, int32_t N,
                           int32_t K, float *y /* [N] */);
void oracle_faulty_norm(const oracle_faulty *f, const float *x, const float *gain, int32_t n,
                        float eps, float *y /* [n] */);
void oracle_faulty_frequencies(const oracle_faulty *f, double theta, int32_t d,
                               const oracle_llama3 *scaling, float *y /* [d/2] */);
void oracle_faulty_turn(const oracle_faulty *f, const float *frequency, int32_t pairs,
                        int32_t m, float *c, float *s /* [pairs] */);
void oracle_faulty_rotate(const oracle_faulty *f, float *head /* [d] */, int32_t d,
                          const float *c, const float *s /* [d/2] */);
float oracle_faulty_scale(const oracle_faulty *f, int32_t d);
int32_t oracle_faulty_kv_head(const oracle_faulty *f, int32_t h, int32_t heads,
                              int32_t kv_heads);
void oracle_faulty_silu(const oracle_faulty *f, const float *g, const float *u, int32_t n,
                        float *h);
void oracle_faulty_add(const oracle_faulty *f, float *x, const float *y, int32_t n);

/* A position as one row meets it. */
typedef struct {
    int32_t chunk;            /* ARI-16's: the position over 64 */
    bool seen;                /* an unseen one is there for the faults that look at it */
    const float *key, *value; /* [kv_heads][d] */
    float product, score;     /* oracle_faulty_attention's own: before and after the scale */
} oracle_entry;

/* One query head over entries whose chunks ascend. Without a fault the bits are
 * oracle_attention's. */
void oracle_faulty_attention(const oracle_faulty *f, const float *query /* [d] */, int32_t d,
                             oracle_entry *entry, int32_t n, int32_t kv_head,
                             float *out /* [d] */);

/* NET-02: the norm, unless `gain` is NULL, and the rotation of a query's or key's head. */
void oracle_faulty_head(const oracle_faulty *f, float *head /* [d] */, int32_t d,
                        const float *gain, float eps, const float *c,
                        const float *s /* [d/2] */);

/* NET-03: puts the output of head h into its place among all. */
void oracle_faulty_join(const oracle_faulty *f, const float *out /* [d] */, int32_t d,
                        int32_t h, int32_t heads, float *all /* [heads d] */);

/* NET-01: the matrix of the logits. */
const float *oracle_faulty_output(const oracle_faulty *f, const oracle_model *m);

#endif
