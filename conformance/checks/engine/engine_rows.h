/* engine_rows.h - the rows that an engine's tokens should come from: the oracle's networks over
 * one path of tokens, the target's and, where it is asked for, the draft's. Clauses CLM-08, CLM-14, LAY-08, LAY-13,
 * LAY-14.
 *
 * Functions that return false have decided the case: the result says how. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_ROWS_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_ROWS_H

#include "conformance/checks/engine/engine.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/oracle/law/served.h"

typedef struct {
    check_result *r;
    int32_t V;
    oracle_folder *folder[2]; /* target, draft */
    oracle_path *path[2];     /* the draft's is NULL unless asked for */
    float *logits;            /* [V] of the last row */
    oracle_filters filters;   /* as the engine says that it applies them (CLM-14) */
} engine_rows;

enum { ROWS_TARGET, ROWS_DRAFT };

/* Empty paths of at most `capacity` tokens. engine_rows_close() in either event. */
bool engine_rows_open(engine_rows *w, const engine *e, bool draft, int32_t capacity);
void engine_rows_close(engine_rows *w);

/* Both paths read n tokens, 0 <= token < V. */
void engine_rows_read(engine_rows *w, const int32_t *token, int32_t n);
/* One path reads a token; w->logits are those of its successor. */
void engine_rows_step(engine_rows *w, int which, int32_t token);
/* w->logits, served without roundings, as the engine says that it serves. */
bool engine_rows_serve(const engine_rows *w, const oracle_sampling *s, double *p /* [V] */);
/* Both paths keep their first tokens alone. */
void engine_rows_cut(engine_rows *w, int32_t keep);

/* Distances that no legal rounding moves a cut of a filter by. */
typedef struct {
    double logit, mass; /* of top-k's cut; of top-p's and min-p's */
    double rank;        /* of the two logits that top-p's cut stands between: closer ones may change places */
} engine_margin;
/* 1e-3 in the logit, 1e-4 in probability, 1e-4 in the logit. */
extern const engine_margin engine_fine;

/* Is there room around every cut of the filters? */
bool engine_rows_clear(const engine_rows *w, const oracle_sampling *s, engine_margin m);

/* How far apart two of the logits may be for the declared arithmetic to exchange them (CLM-08),
 * but for the promises of identity. */
double engine_reach(const iut_claims *claims, const engine_rows *w);

#endif
