/* tolerance.h - the e-process for the tolerance null: at every draw, whatever came before, the
 * law at row r is within total variation eps[r] of p_r. Clause STAT-03; docs/statistics.md,
 * "Tolerance null". Same use as eprocess.h. */
#ifndef ASSAY_STATS_TOLERANCE_H
#define ASSAY_STATS_TOLERANCE_H
#include <stdbool.h>
#include <stdint.h>

typedef struct st_tol st_tol;

/* eps[r] in [0, 1]. q NULL: no view in order of q/p. NULL: no memory, a row that st_row_error
 * rejects, or an eps out of range. */
st_tol *st_tol_new(int rows, int K, const double *const *p /* [rows][K] */,
                   const double *const *q /* [rows][K] or NULL */,
                   const double *eps /* [rows] */);
void st_tol_free(st_tol *t);

/* Counts draws. False (nothing counted): an argument out of range. A token with p = 0 is
 * counted in its bin: within eps it is not a proof. */
bool st_tol_add(st_tol *t, int row, int32_t token, int64_t count);

/* A checkpoint: ln E. Bets for the draws that follow are made anew when n has doubled. */
double st_tol_log_e(st_tol *t);
#endif
