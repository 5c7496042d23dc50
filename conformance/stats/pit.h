/* pit.h - where a token falls in its row: the randomised probability integral transform, by which
 * draws from different rows are counted in the same cells. Clause STAT-11; docs/statistics.md,
 * "Drawn cases".
 *
 * For an order of the tokens, V = (mass of the tokens before x) + U p(x) is uniform on [0, 1) if x has
 * the law p and U is uniform and independent of x. So is the cell floor(16 V) among 16, whatever p is
 * and whatever came before. */
#ifndef ASSAY_STATS_PIT_H
#define ASSAY_STATS_PIT_H
#include <stdbool.h>
#include <stdint.h>

enum { ST_PIT_CELLS = 16 };

/* The orders: by q/p, where faults of acceptance and residual lie; by p, where those of temperature
 * and filters lie; by id, where the uniform itself and the ends of the vocabulary show. */
typedef enum { ST_BY_RATIO, ST_BY_MASS, ST_BY_ID, ST_ORDERS } st_order;

typedef struct {
    int rows, K;
    double *p;     /* [rows][K] normalised */
    double *below; /* [ST_ORDERS][rows][K] mass of the tokens before this one */
} st_pit;

/* q only orders the tokens. False: no memory, or a row that st_row_error rejects; nothing to free. */
bool st_pit_init(st_pit *t, int rows, int K, const double *const *p /* [rows][K] */,
                 const double *const *q /* [rows][K] */);
void st_pit_free(st_pit *t);

/* The cell, 0..15, of a token with p > 0. u is uniform in [0, 1). */
static inline int st_pit_cell(const st_pit *t, st_order order, int row, int32_t token, double u)
{
    const int64_t at = (int64_t)row * t->K + token;
    const double v = t->below[(int64_t)order * t->rows * t->K + at] + u * t->p[at];
    return v < 1 ? (int)(ST_PIT_CELLS * v) : ST_PIT_CELLS - 1; /* sums round */
}

/* The same where the order starts anew with another token: the transform is moved around the circle, and
 * the tokens from `first` on come first. p[first] > 0 is not needed. */
static inline int st_pit_cell_from(const st_pit *t, st_order order, int row, int32_t first,
                                   int32_t token, double u)
{
    const int64_t K = t->K, base = (int64_t)row * K;
    const double *below = t->below + ((int64_t)order * t->rows + row) * K;
    double v = below[token] + u * t->p[base + token] - below[first];
    if (v < 0) v += 1;
    return v < 1 ? (int)(ST_PIT_CELLS * v) : ST_PIT_CELLS - 1;
}

/* ln of an e-value against "every count is of a cell that is uniform among 16, whatever its context":
 * for each kappa = 1, 4, ... 4^7 the Dirichlet(kappa/16) mixtures of all contexts multiply; the mean
 * over kappa. The order of the counts does not matter. */
double st_pit_log_e(const int32_t *count /* [contexts][16] */, int64_t contexts);
/* The same of each of some bets, which have their contexts each. */
void st_pit_log_es(const int32_t *count /* [bets][contexts][16] */, int64_t bets, int64_t contexts,
                   double *log_e /* [bets] */);

/* ln of an e-value against the same, where context c of `contexts`, a divisor of 16, is that another
 * token fell into the c-th of as many equal parts: a share s of the tokens falls into the part of its
 * context, and the mean over s = 1/4, 1/16, 1/64 is taken. One uniform for two tokens shows there
 * sooner than where every dependence is learnt. */
double st_pit_log_same(const int32_t *count /* [contexts][16] */, int32_t contexts);
#endif
