/* neighbours.h - is a request independent of the requests before it? Clauses LAY-08,
 * STAT-01, STAT-02, STAT-06.
 *
 * The requests have one prompt and are numbered in the order in which they were asked for,
 * whatever calls they came in. Under the null the first token of a request has the law p given
 * everything that came before. So one token of an earlier request can be the context of bets
 * on every request: that neighbouring pairs overlap does no harm. In each context one e-process
 * learns any law; another bets that some requests repeat the context's token, and so needs
 * fewer of them. A chi-square table needs independent pairs: its pairs are the requests 2i and
 * 2i+1. */
#ifndef ASSAY_STATS_NEIGHBOURS_H
#define ASSAY_STATS_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/stats/chi2.h"
#include "conformance/stats/eprocess.h"

/* The contexts: the first token of the request 1 .. 8 places before, and the second token of
 * the request before. */
enum { NEIGHBOUR_LAGS = 8, NEIGHBOUR_SECOND = NEIGHBOUR_LAGS, NEIGHBOUR_CONTEXTS };
/* The tables: the first tokens of both; the second token of one and the first of the next. */
enum { NEIGHBOUR_FIRSTS, NEIGHBOUR_SLIDING, NEIGHBOUR_TABLES };

typedef struct {
    int32_t V;
    int64_t n;                         /* requests */
    int32_t first[NEIGHBOUR_LAGS];     /* of request m at m mod 8 */
    int32_t second;                    /* of the request before */
    st_ep *given[NEIGHBOUR_CONTEXTS];  /* the first token, given that context */
    int64_t *same[NEIGHBOUR_CONTEXTS]; /* [V] first tokens that repeat the context's */
    int64_t other[NEIGHBOUR_CONTEXTS]; /* first tokens that do not */
    double *p;                         /* [V] the law of the first token */
    double *law[NEIGHBOUR_TABLES];     /* [V*V] by token V + token of the next */
    int64_t *count[NEIGHBOUR_TABLES];  /* [V*V] */
} neighbours;

/* The laws of the first token and of the second. False: no memory, or a bad row; `t` may be
 * closed in any case. */
bool neighbours_open(neighbours *t, int32_t V, const double *first /* [V] */,
                     const double *second /* [V] */);
void neighbours_close(neighbours *t);

/* The next request begins with these tokens. False: the first one has probability 0, an id is
 * out of range, or memory ran out. */
bool neighbours_add(neighbours *t, int32_t first, int32_t second);

/* A checkpoint: ln of the plain mean of the e-values of all contexts; that of a context is the
 * plain mean of both its e-processes. *most: the context whose e-value is the largest. */
double neighbours_log_e(neighbours *t, int *most);

st_table neighbours_table(const neighbours *t, int table);

#endif
