/* engine_pit.h - does each token of a stream have its row's law, given all that came before?
 * Clauses LAY-13, STAT-02.
 *
 * A token x of a row p becomes V = (the mass of the tokens before x in an order) + U p(x), U
 * being the suite's own: a randomised probability integral transform (stats/pit.h). Under the null
 * V is uniform in [0, 1) given everything before it, whatever the row was. So rows need not repeat:
 * one of 16 equal cells is counted. The bets are on the cells of all tokens, by their place in the
 * stream, given V some places before, and given V near the same place of a request before. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_PIT_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_PIT_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/stats/pit.h"

/* The orders: p descending, ids ascending, q/p descending. */
enum { PIT_RANK, PIT_ID, PIT_RATIO, PIT_ORDERS };
enum { PIT_ALL, PIT_PLACE, PIT_LAG, PIT_REQUEST, PIT_VIEWS };
/* Places of a stream; places and requests that a token is held against. */
enum { PIT_LENGTH = 200, PIT_LAGS = 64, PIT_REQUESTS = 8 };

typedef struct {
    int32_t V, orders;         /* PIT_RATIO needs q */
    int32_t *count[PIT_ORDERS]; /* [contexts of all bets][ST_PIT_CELLS] */
    /* [PIT_REQUESTS + 1][PIT_ORDERS] cells of the last requests; -1: not known. */
    int8_t (*cell)[PIT_ORDERS][PIT_LENGTH];
    double *log_e;             /* [bets of a view] */
    int64_t n, request;        /* tokens; the number of this request, from 1 on */
    int64_t rank[ST_PIT_CELLS]; /* tokens by the cell of PIT_RANK */
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

/* Where the evidence is. PIT_LAG: given the token `lag` places before, 1 to PIT_LAGS.
 * PIT_REQUEST: given the token `lag` places before, -PIT_LAGS to PIT_LAGS, of the request
 * `requests` before. */
typedef struct {
    int order, view, lag, requests;
    double log_e;
} pit_most;

/* A checkpoint: ln of the plain mean over orders and views. PIT_LAG and PIT_REQUEST are plain
 * means over what they are given, and have no PIT_RATIO. */
double pit_log_e(pit *t, pit_most *most);

#endif
