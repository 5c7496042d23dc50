/* forecasts.h - the tables of `assay plan` that come from numbers alone. Each adds itself to the list. Numbers are in
 * the ranges of conformance/theory. */
#ifndef ASSAY_CONFORMANCE_CLI_PLAN_FORECASTS_H
#define ASSAY_CONFORMANCE_CLI_PLAN_FORECASTS_H

#include <stddef.h>

#include "conformance/cli/plan/table.h"
#include "ref/draft/shape.h"

/* THY-07 to THY-11, and THY-13 for b candidates, for gamma 0 to `most`, at most FORECAST_GAMMA. */
typedef struct {
    double alpha, c, c_ops;
    double row;   /* forwards of one row that each further row of the target costs */
    int32_t most;
    int32_t b; /* 1: a chain alone */
} forecast_chain;
enum { FORECAST_GAMMA = 256 };
void forecast_add_chain(table_list *list, const forecast_chain *c);

/* THY-01 to THY-06 at one place, for 1 to `siblings` siblings. */
typedef struct {
    const double *p, *q; /* [V] */
    int32_t V, siblings;
} forecast_place;
void forecast_add_place(table_list *list, const forecast_place *p);

/* THY-14, THY-15: one size, if W > 0; else for each N the best of at most `rows` rows, and S by rows up to there. */
typedef struct {
    double alpha, f;
    int32_t W, N, G;
    int64_t rows;
} forecast_lookahead;
void forecast_add_lookahead(table_list *list, const forecast_lookahead *l);

/* THY-16: a shape, beside the chain and Sequoia's tree of as many drafts, if as_sequoia makes one so large. False, and
 * why: memory ran out. */
typedef struct {
    const as_shape *shape;
    const double *rate; /* [ranks] */
    int32_t ranks;
} forecast_tree;
bool forecast_add_tree(table_list *list, const forecast_tree *t, char *why, size_t why_size);

/* THY-17, THY-18. speed 0: not known. */
typedef struct {
    double parameters, width, bandwidth, speed;
} forecast_machine;
void forecast_add_machine(table_list *list, const forecast_machine *m);

#endif
