/* engine_rows.h - the rows that an engine's tokens should come from: the oracle's networks over
 * one path of tokens, the target's and, where it is asked for, the draft's; and how close a
 * difference at temperature 0 is. Clauses CLM-08, LAY-08, LAY-13, LAY-14.
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
} engine_rows;

enum { ROWS_TARGET, ROWS_DRAFT };

/* Empty paths of at most `capacity` tokens. engine_rows_close() in either event. */
bool engine_rows_open(engine_rows *w, const engine *e, bool draft, int32_t capacity);
void engine_rows_close(engine_rows *w);

/* Both paths read n tokens, 0 <= token < V. */
void engine_rows_read(engine_rows *w, const int32_t *token, int32_t n);
/* One path reads a token; w->logits are those of its successor. */
void engine_rows_step(engine_rows *w, int which, int32_t token);
/* w->logits, served without roundings. */
bool engine_rows_serve(const engine_rows *w, const oracle_sampling *s, double *p /* [V] */);
/* Both paths keep their first tokens alone. */
void engine_rows_cut(engine_rows *w, int32_t keep);

/* Distances that no legal rounding moves a cut of a filter by. */
typedef struct {
    double logit, mass;
} engine_margin;
/* top-k's by 1e-3 in the logit, top-p's and min-p's by 1e-4 in probability. */
extern const engine_margin engine_fine;

/* Is there room around every cut of the filters? */
bool engine_rows_clear(const engine_rows *w, const oracle_sampling *s, engine_margin m);

/* ---- Temperature 0. -------------------------------------------------------------- */

/* How far apart two of the logits may be for the declared arithmetic to exchange them (CLM-08),
 * but for the promises of identity. */
double engine_reach(const iut_claims *claims, const engine_rows *w);

typedef struct {
    int32_t count;
    char text[200]; /* the first */
} engine_ties;

/* Token `at` of request i is `got` and not plain[at]. True: a near-tie, which is noted. */
bool engine_tie(const engine *e, engine_ties *ties, const char *what, int32_t i,
                const engine_prompt *prompt, const int32_t *plain, int32_t at, int32_t got);

/* The first tokens of plain decoding, up to a -1, are the model's: the lowest of the largest
 * logits under CANONICAL, else one within reach of it (LAY-07). */
bool engine_plain_is_right(const engine *e, int32_t i, const engine_prompt *prompt,
                           const int32_t *plain, int32_t tokens);

#endif
