/* rules.h - the acceptance rules and the stream of the mutants, as lane programs: every uniform
 * is asked nothing but lane->lt. Answered with numbers (source.h) they are the implementation;
 * run by the enumerator they give a fault's exact law. Written from spec/04 and spec/05. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_RULES_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_CHAIN_RULES_H

#include "conformance/subjects/mutants/chain/served.h"
#include "conformance/iut.h"
#include "conformance/oracle/law/lane.h"
#include "conformance/subjects/mutants/faults/fault.h"

enum { RULES_MAX_GAMMA = 64 };

/* A panel as the rules see it. Rows are probabilities whatever the implementation started from;
 * the four that are normally two are separate because faults tell them apart. */
typedef struct {
    fault_point fault;
    setting set;
    served_filters filters;
    int32_t V, S, C;
    int32_t *cls, *next; /* [V], [S][C] */
    float *p;            /* [S][V] target rows of verified positions */
    float *bonus;        /* [S][V] target rows of the token after the last draft: p itself */
    float *q;            /* [S][V] draft rows that are tested and subtracted */
    float *drafted;      /* [S][V] draft rows that drafts are drawn from: q itself */
    float *p_logit, *q_logit; /* [S][V] */
    float *scratch;           /* [V] the residual in work */
    iut_sampling target, draft;
    bool row_bad; /* set when a rule had to look at a logit row without an argmax */
} model;

/* One case: rows by state, drafts, and the place of its first draft in the stream. */
typedef struct {
    model *m;
    lane *l;
    const int32_t *state; /* [n+1] */
    const int32_t *draft; /* [n] a -1 ends them (ACC-07) */
    int32_t n;
    int32_t at;
    int32_t round; /* number of the step in its stream */
    const float *noise; /* [V] of a race for the last token; NULL: a draw */
} step;

/* Runs the rule that the setting declares. Writes at most n+2 tokens to out and returns how
 * many (a correct rule: 1 to n+1). *accepted is the number of drafts that stand. */
int32_t rule_step(const step *s, int32_t *out /* [n+2] */, int32_t *accepted);

/* GRD-01, from the logits; uses no uniform. */
int32_t rule_greedy(const step *s, int32_t *out /* [n+2] */, int32_t *accepted);

/* One token from a row (DRAW-02), with the uniform named id. */
int32_t rule_draw(const model *m, lane *l, uint32_t id, const float *w /* [V] */);

/* r = max(0, p - q), RES-01. */
void rule_residual(const model *m, const float *p /* [V] */, const float *q /* [V] */,
                   float *r /* [V] */);

/* One stream of k tokens (STOP clauses). Writes at most k tokens and returns the count that the
 * implementation would report. accepted[k] may be NULL. */
int32_t rule_stream(model *m, lane *l, int32_t start, int32_t gamma, int32_t k, int32_t eos,
                    int32_t *out /* [k] */, int32_t *accepted /* [k] */);

/* The row of a state. */
const float *rule_row(const model *m, const float *rows /* [S][V] */, int32_t state);

/* GRD-02: the id of the largest logit. -1: no argmax (DIST-01). */
int32_t rule_argmax(const model *m, const float *logits /* [V] */, bool speculative);

/* Rounded to bfloat16, ties to even; x is finite. */
float rule_bf16(float x);

#endif
