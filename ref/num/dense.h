/* dense.h - the arithmetic of a transformer's dense parts (spec chapter 1): matrix products
 * over packed panels, RMSNorm, rotation, attention over one chunk of positions, the MLP's
 * product.
 *
 * A weight matrix of N outputs and K inputs is packed in panels of 32 outputs,
 * panel[N/32][K][32]: one SIMD lane owns one output and walks its chain of fma in the order of
 * ARI-05 and ARI-06, while a panel streams through memory once. Outputs beyond N are zero
 * weights that are never written out. BF16 and F16 panels keep their two bytes and are widened
 * on the way (ARI-03).
 *
 * The functions that compute are compiled once per machine level (level.h); all levels
 * give the same bits. They assume the environment of environment.h. */
#ifndef ASSAY_REF_NUM_DENSE_H
#define ASSAY_REF_NUM_DENSE_H

#include <stddef.h>
#include <stdint.h>
#include "ref/num/level.h"
#include "ref/status.h"

enum { AS_PANEL = 32, AS_CHUNK = 128, AS_GROUP = 8, AS_POSITIONS = 64 };
enum { AS_MAX_SIDE = 1 << 30 }; /* of a matrix */

typedef enum { AS_F32, AS_F16, AS_BF16 } as_storage;

/* Bytes of one element. */
static inline size_t as_storage_size(as_storage s)
{
    return s == AS_F32 ? 4 : 2;
}

typedef struct {
    int32_t N, K; /* outputs, inputs; each 1 to AS_MAX_SIDE */
    as_storage storage;
    void *panel; /* [ceil(N/32)][K][32] of that storage, 64-byte aligned */
} as_matrix;

/* Packs rows [N][K] (little-endian, of the storage named, of any alignment) into a new panel
 * buffer. AS_NO_MEMORY; AS_BAD_INPUT if an element is a NaN or an infinity, naming its row and
 * column. */
as_status as_matrix_pack(as_matrix *m, const void *rows, int32_t N, int32_t K,
                         as_storage storage, as_error *e);
void as_matrix_free(as_matrix *m);

/* Row n of the matrix as binary32: what the embedding of a token is. */
void as_matrix_row(const as_matrix *m, int32_t n, float *row /* [K] */);

typedef struct {
    /* y[r][n] = dot(x[r], w[n]) for the outputs of panels first .. first + panels - 1; other
     * elements of y are not touched. x is [R][K]; y is [R][N]. (ARI-05 to ARI-08) */
    void (*product)(const as_matrix *w, int32_t first, int32_t panels, const float *x,
                    int32_t R, float *y);

    /* dot(x, x) and RMSNorm of ARI-09, for R rows of n. y may be x. */
    void (*norm)(const float *x, int32_t R, int32_t n, const float *gain /* [n] */, float eps,
                 float *y);

    /* Rotates one head in place with the cosines and sines of its position (ARI-13). */
    void (*rotate)(float *head /* [d] */, int32_t d, const float *c,
                   const float *s /* [d/2] */);

    /* One chunk of attention (ARI-14, ARI-17) for one query head: n seen positions, 1 to 64.
     * Keys are transposed, key[d][64], so that a lane owns a position; values are value[64][d].
     * Writes the greatest score m, the sum l and the weighted values o. */
    void (*attend)(const float *query /* [d] */, int32_t d, float scale,
                   const float *key /* [d][64] */, const float *value /* [64][d] */, int32_t n,
                   float *m, float *l, float *o /* [d] */);

    /* The combination of chunks, ascending (ARI-18). o is [chunks][d]. */
    void (*combine)(const float *m, const float *l, const float *o, int32_t chunks, int32_t d,
                    float *out /* [d] */);

    /* gate_i = silu(gate_i) * up_i (ARI-20); x_i = x_i + y_i (ARI-21, and biases, ARI-08). */
    void (*silu)(float *gate, const float *up, int32_t n);
    void (*add)(float *x, const float *y, int32_t n);

    /* Cosines and sines of n angles (ARI-04): trig.h. */
    void (*circle)(const float *angle, int32_t n, float *c, float *s);
} as_dense_ops;

/* fl32(1/sqrt(d)), the scale of scores (ARI-14), for the even d of heads, 2 to 1024. The
 * binary64 quotient is rounded a second time; that this is right for each of these d is proved
 * by trying them. */
float as_score_scale(int32_t d);

/* The loops of the level in force (level.h). Thread-safe. */
const as_dense_ops *as_dense(void);

/* y = w x (+ bias, which may be NULL) for R rows, on `threads` threads of the caller's choice;
 * the bits do not depend on their number. Enters the environment in every thread. */
void as_product(const as_matrix *w, const float *bias /* [N] */, const float *x /* [R][K] */,
                int32_t R, float *y /* [R][N] */, int threads);

#endif
