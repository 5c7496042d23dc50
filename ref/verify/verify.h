/* verify.h - acceptance rules: pure functions from rows, drafts and uniforms to the tokens that
 * a step emits. One file a rule: greedy.c, chain.c, match.c, onehot.c; walk.c has what they
 * share on a tree of candidates. Clauses ACC, RES, BON, GRD, MAT, ONEH and LAH-18 to LAH-21.
 *
 * A chain of drafts: position i of a step has the target's row p[i] and, for i < n, a draft
 * token draft[i] and the row q[i] that it was drawn from. Row n serves the token after a full
 * acceptance. Rows are as as_check_row (served.h) has them; the rules do not scan them. A draft
 * of -1 at place i ends the list: nothing after it is examined, and i takes the part of n (ACC-07).
 * So place i emits what a full acceptance of i drafts emits, from row i with the bonus uniform.
 *
 * Every rule of a chain writes the emitted tokens to out and returns how many, 1 to n + 1: the
 * accepted drafts and one more token (BON-02). It returns 0 and writes nothing when
 * as_check_drafts refuses the drafts (ACC-08). No entry of out beyond the returned count is
 * touched. */
#ifndef ASSAY_REF_VERIFY_VERIFY_H
#define ASSAY_REF_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ref/lm/tree.h"
#include "ref/status.h"

typedef enum {
    AS_RULE_GREEDY, /* T = 0: argmax of the logits; the sampling is not used */
    AS_RULE_CHAIN,  /* token-wise speculative sampling of one chain with laws */
    AS_RULE_MATCH,  /* draw first, keep the drafts that agree */
    AS_RULE_ONEHOT, /* test fixed candidates one by one against the row */
    /* Of nodes.h, at their neutral parameters. */
    AS_RULE_TARGET,    /* one coin against the running sum of p */
    AS_RULE_RECURSIVE, /* siblings with laws, each against what the refusals left of p */
    AS_RULE_SINGLE,    /* independent siblings, each against all of p */
    AS_RULE_KSEQ,      /* independent siblings against p over their number */
    AS_RULES
} as_rule;
enum {
    AS_EVERY_RULE = (1 << AS_RULES) - 1,
    AS_RULES_WITHOUT_LAWS = 1 << AS_RULE_GREEDY | 1 << AS_RULE_MATCH | 1 << AS_RULE_ONEHOT,
    AS_RULES_OF_ANY_TREE = AS_RULES_WITHOUT_LAWS | 1 << AS_RULE_TARGET /* TDR-04 */
};

/* "greedy", "chain", ...; NULL: unknown. */
const char *as_rule_name(as_rule rule);

/* Sets *rule to the rule of that name; false: there is none. */
bool as_rule_named(const char *name, as_rule *rule);

/* AS_BAD_INPUT if a draft before the first -1 is below -1 or is V or more, or n < 0. */
as_status as_check_drafts(const int32_t *draft /* [n] */, int32_t n, int32_t V, as_error *e);

/* How many drafts count: n, or the place of the first -1. -1 if as_check_drafts would
 * refuse. */
int32_t as_draft_length(const int32_t *draft /* [n] */, int32_t n, int32_t V);

/* ---- Chain: speculative sampling of one drafted chain. ------------------------------ */

typedef struct {
    const double *accept; /* [n] u_i in [0, 1), multiples of 2^-29 */
    uint64_t residual;    /* U of the correction after a rejection */
    uint64_t bonus;       /* U of the token after the last accepted draft */
    const float *noise;   /* [V] in place of these two: the last token comes by a race (DRAW-07); NULL: by a draw */
} as_chain_uniforms;

/* Draft i is accepted iff u_i * q_i(draft_i) < p_i(draft_i), strictly: a draft with p = 0 never
 * is, one with q = 0 < p always. The first rejected one is replaced by a draw from the
 * residual. The last token is -1 if the row it is drawn from has no mass. */
int32_t as_verify_chain(const float *const *p /* [n+1][V] */,
                        const float *const *q /* [n][V] */, const int32_t *draft /* [n] */,
                        int32_t n, int32_t V, const as_chain_uniforms *u,
                        int32_t *out /* [n+1] */);

/* The same with the uniforms of a sequence (RNG-06); `position` is that of the token which row
 * 0 serves. */
int32_t as_verify_chain_seeded(const float *const *p /* [n+1][V] */,
                               const float *const *q /* [n][V] */,
                               const int32_t *draft /* [n] */, int32_t n, int32_t V,
                               uint64_t seed, uint64_t position, int32_t *out /* [n+1] */);

/* ---- Match: draw as plain decoding would, keep the drafts that happen to agree. */

/* y_i is drawn from p_i with U_i and emitted; position i + 1 follows iff y_i = draft_i. Under
 * the uniforms of plain decoding this gives plain decoding's very tokens. -1 as for the
 * chain. */
int32_t as_verify_match(const float *const *p /* [n+1][V] */, const int32_t *draft /* [n] */,
                        int32_t n, int32_t V, const uint64_t *U /* [n+1] */,
                        int32_t *out /* [n+1] */);

int32_t as_verify_match_seeded(const float *const *p /* [n+1][V] */,
                               const int32_t *draft /* [n] */, int32_t n, int32_t V,
                               uint64_t seed, uint64_t position, int32_t *out /* [n+1] */);

/* ---- Greedy: the match rule on argmaxima. ---------------------------------------- */

/* y_i = as_argmax(logits_i); position i + 1 follows iff y_i = draft_i. Also returns 0 when a
 * row that it examines has no argmax (as_check_logits says why); out is then undefined. */
int32_t as_verify_greedy(const float *const *logits /* [n+1][V] */,
                         const int32_t *draft /* [n] */, int32_t n, int32_t V,
                         int32_t *out /* [n+1] */);

/* ---- One-hot: fixed candidates, tested one by one. -------------------------------- */

typedef struct {
    const uint64_t *accept; /* [n] U of the test of each candidate token */
    uint64_t residual;      /* U of the draw after n > 0 rejections */
    uint64_t draw;          /* U of the draw when n = 0 */
} as_onehot_uniforms;

/* The token that follows at one level: the first of the n distinct tokens in option that the
 * running mass of p lets pass, or else a draw from what they leave of p. rest is scratch. -1 if
 * p has no mass and n = 0. */
int32_t as_onehot(const float *p /* [V] */, int32_t V, const int32_t *option /* [n] */,
                  int32_t n, const as_onehot_uniforms *u, float *rest /* [V] */);

/* The same with the uniforms of the token at `position` of a sequence. */
int32_t as_onehot_seeded(const float *p /* [V] */, int32_t V, const int32_t *option /* [n] */,
                         int32_t n, uint64_t seed, uint64_t position, float *rest /* [V] */);

/* ---- Candidates: a walk from the root of a tree. ----------------------------------- */

/* What a step does with the rows of its tree. Drafts are rows that a rule may accept; the rows
 * before them serve whoever made the tree. */
typedef struct {
    int32_t wanted; /* the root and the rows from this one on have their logits evaluated */
    int32_t drafts; /* the rows from this one on may be accepted; at least `wanted` */
    bool all;       /* so may the rows before them, which then rank behind the drafts */
    int32_t most;   /* rows that the step accepts at most, at least 1 */
    bool bonus;     /* one token more is emitted after `most` accepted rows */
    bool whole;     /* a step that accepts fewer rows than the tree has drafts emits nothing (JAC-12) */
    bool without;   /* siblings with laws were drawn without replacement, from one row (SIB-04) */
    int32_t asked;  /* of the rows before the drafts, the last `asked` have answers for `observe` */
    bool drawn;     /* above T = 0 these are drawn (LAH-14), not argmaxima */
    int32_t index;  /* of the uniform of the first answer that is drawn */
    /* [rows] until the next step: the rank that answers for a row (LAH-31). NULL: every rank. */
    const int32_t *owner;
} as_plan;

/* Every row below the root is a wanted draft, without limit, with a bonus. */
static inline as_plan as_plan_drafts(void)
{
    return (as_plan){1, 1, false, INT32_MAX, true, false, false, 0, false, 0, NULL};
}

/* Sets *token, 0 or more, that follows `row`, `depth` rows having been accepted: an argmax, a
 * draw, or one of the n distinct tokens that the candidates have there, in the order of their
 * first appearance. -1, where the row is another rank's (LAH-34), ends the walk. A status other
 * than AS_OK, with the reason in e, ends the walk. */
typedef as_status as_choose(void *data, int32_t row, int32_t depth,
                            const int32_t *option /* [n] */, int32_t n, int32_t *token,
                            as_error *e);

/* What a walk gives. The arrays are the caller's, of as many entries as the tree has rows. */
typedef struct {
    int32_t *run; /* [length] the tokens chosen */
    int32_t length;
    int32_t *path; /* [accepted + 1] the root and the rows accepted, downwards */
    int32_t accepted;
    int32_t *option; /* scratch */
} as_walk;

/* Chooses a token after the root, and goes on below it as long as a draft row that continues
 * the tokens so far has the token just chosen. The path is that of the first such row in the
 * order of the drafts. Returns the status of a choice that failed; the walk is then
 * undefined. */
as_status as_walk_tree(const as_tree *t, const as_plan *plan, as_choose *choose, void *data,
                       as_walk *w, as_error *e);

#endif
