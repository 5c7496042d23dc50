/* engine_pit.h - does each token of a stream have its row's law, given all that came before?
 * Clauses LAY-13, STAT-02.
 *
 * A token x of a row p becomes V = (the mass of the tokens before x in an order) + U p(x), U
 * being the suite's own: a randomised probability integral transform. Under the null V is
 * uniform in [0, 1) given everything before it, whatever the row was. So rows need not repeat:
 * one of 16 equal cells is counted. E-processes (eprocess.h) bet on the cells: of all tokens,
 * by their place in the stream, given V some tokens before, and given V at the same place of
 * the request before. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_PIT_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_PIT_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/stats/eprocess.h"

/* The orders: p descending, ids ascending, q/p descending. */
enum { PIT_RANK, PIT_ID, PIT_RATIO, PIT_ORDERS };
enum { PIT_ALL, PIT_PLACE, PIT_LAG, PIT_BEFORE, PIT_VIEWS };
enum { PIT_CELLS = 16, PIT_LAGS = 64, PIT_LENGTH = 200 };

/* Cells by context; what came since the last look. */
typedef struct {
    int32_t contexts, cells;
    int64_t (*count)[PIT_CELLS];
    st_ep *ep;
} pit_bets;

typedef struct {
    int32_t V, orders;            /* PIT_RATIO needs q */
    pit_bets *bets[PIT_ORDERS];   /* [PIT_BETS] each */
    int8_t (*now)[PIT_LENGTH];    /* [PIT_ORDERS] cells of this stream; -1: not known */
    int8_t (*before)[PIT_LENGTH]; /* [PIT_ORDERS] of the request before */
    int64_t n, rank[PIT_CELLS];   /* tokens; of these by the cell of PIT_RANK */
} pit;

/* False: no memory; `t` may be closed in any case. */
bool pit_open(pit *t, int32_t V, bool has_q);
void pit_close(pit *t);

/* The next request begins. */
void pit_begin(pit *t);
/* Its token at that place, 0 to PIT_LENGTH-1, is x, of the row p; q, of the same tokens, is
 * used if there is one. u in [0, 1). Places without a token are not bet on. */
void pit_add(pit *t, int32_t place, const double *p /* [V] */, const double *q /* [V] */,
             int32_t x, double u);

/* Where the evidence is. */
typedef struct {
    int order, view, lag; /* lag: of PIT_LAG, 1 to PIT_LAGS */
    double log_e;
} pit_most;

/* A checkpoint: ln of the plain mean over orders and views; PIT_LAG is the plain mean over the
 * lags, and has no PIT_RATIO, nor has PIT_BEFORE. NAN: memory ran out. */
double pit_log_e(pit *t, pit_most *most);

#endif
