/* rows.h - rows of the vocabulary on the device: argmax, the served distribution, draws,
 * residuals and totals, each the very bits of ref/dist. Clauses DIST-01 to DIST-13, DRAW-01 to
 * DRAW-05, RES-01 to RES-04, GRD-02.
 *
 * Rows are [V] binary32, 1 <= V <= AS_MAX_VOCAB, one behind the other. Every call works on n
 * rows that `row` [n] names, or on the first n where it is NULL; -1 names none, and leaves its
 * answers as they are. All pointers but those of as_sampling, ag_scratch and ag_seeds themselves are to
 * device memory. Calls return when the work is enqueued; nothing is allocated and nothing
 * copied to the host, so that they may stand in a graph. What is wrong with a row is told by
 * its state, on the device. */
#ifndef ASSAY_GPU_NUM_ROWS_H
#define ASSAY_GPU_NUM_ROWS_H

#include <stdint.h>
#include "gpu/device/device.h"
#include "ref/num/uniform.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "ref/dist/served.h"

/* DIST-01: what as_check_logits and as_check_row find. */
typedef enum {
    AG_ROW_GOOD,
    AG_ROW_NAN,      /* logits: a NaN */
    AG_ROW_INFINITE, /* logits: a +infinity, and no NaN */
    AG_ROW_MASKED,   /* logits: nothing but -infinity */
    AG_ROW_RANGE,    /* probabilities: an entry that is not from 0 to 1 */
    AG_ROW_EMPTY     /* probabilities: no mass */
} ag_row_state;

/* Device memory in which blocks that share a row leave what they found. One serves all calls
 * of a device, one after the other. All zeros is a scratch without room: every row is then the
 * work of one block. */
typedef struct {
    uint64_t *word;
    uint32_t *arrived; /* all 0 between calls */
    int32_t rows;      /* that it has room for */
} ag_scratch;

/* Room for calls over up to `rows` rows, those of all cases. A call over more does not share
 * rows. */
as_status ag_scratch_reserve(const ag_device *d, int32_t rows, ag_scratch *s, as_error *e);
void ag_scratch_free(ag_scratch *s);

/* The seeds and positions of n cases. Case i has seed[i] and position[i] + ahead, or, where
 * there is no such array, seed first + i and position ahead. */
typedef struct {
    const uint64_t *seed, *position; /* [n] or NULL */
    uint64_t first, ahead;
    const uint32_t *index; /* [n] of a draw by ag_draw, or NULL: 0. The rules have their own */
} ag_seeds;

/* id[i] = as_argmax of the row, -1 where state[i] says that it has none. */
as_status ag_argmax(const ag_device *d, const float *logits, const int32_t *row, int32_t n,
                    int32_t V, int32_t *id /* [n] */, int32_t *state /* [n] */,
                    const ag_scratch *s, as_error *e);

/* state[i] as as_check_row finds it. */
as_status ag_check_rows(const ag_device *d, const float *p, const int32_t *row, int32_t n,
                        int32_t V, int32_t *state /* [n] */, as_error *e);

/* Row i of p = as_serve of the row, in one launch, or, where rows are shared, in 2 or 3, and 5
 * more for each of top-k and top-p; undefined where state[i] says that it cannot be served. p
 * and the logits must not overlap. AS_BAD_INPUT for what as_check_sampling refuses. */
as_status ag_serve(const ag_device *d, const float *logits, const int32_t *row, int32_t n,
                   int32_t V, const as_sampling *sampling, float *p /* [n][V] */,
                   int32_t *state /* [n] */, const ag_scratch *s, as_error *e);

/* r = as_residual of rows of the same number in p and q; its total to W unless W is NULL. */
as_status ag_residual(const ag_device *d, const float *p, const float *q, const int32_t *row,
                      int32_t n, int32_t V, float *r /* [n][V] */, uint64_t *W /* [n] */,
                      as_error *e);

/* W[i] = the integer total of a row of p; with a q that of min(p, q): as_overlap is W * 2^-44.
 */
as_status ag_totals(const ag_device *d, const float *p, const float *q, const int32_t *row,
                    int32_t n, int32_t V, uint64_t *W /* [n] */, as_error *e);

/* token[i] = as_draw of a row of p or, with a q, as_draw_residual. The uniform is U[i], or,
 * where U is NULL, that of the case's seed, position and index for `purpose`. -1 iff there is
 * no mass. */
as_status ag_draw(const ag_device *d, const float *p, const float *q, const int32_t *row,
                  int32_t n, int32_t V, const uint64_t *U /* [n] */, const ag_seeds *seeds,
                  as_purpose purpose, int32_t *token /* [n] */, const ag_scratch *s,
                  as_error *e);

#ifdef __cplusplus
}
#endif
#endif
