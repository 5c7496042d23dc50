/* verify.h - the acceptance rules on the device, each the very tokens of ref/verify: from rows,
 * drafts and uniforms in device memory to the tokens that a step emits, without the host.
 * Clauses ACC, RES, BON, GRD, MAT, ONEH, LAH-18 to LAH-21.
 *
 * Every call is one launch, over n independent cases; many cases get a block each, few share
 * their rows among blocks. The scratch (rows.h) then needs room for n rows by the chain rule,
 * for n * (gamma + 1) by greedy and match, for n * wants in walks. All pointers inside the
 * structs are to device memory. Calls return when the work is enqueued, allocate nothing, and
 * may stand in a graph.
 */
#ifndef ASSAY_GPU_VERIFY_VERIFY_H
#define ASSAY_GPU_VERIFY_VERIFY_H

#include "gpu/draft/step.h"
#include "gpu/num/rows.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "ref/verify/verify.h"

/* Why a case has no tokens: its length is then 0, and its other answers say nothing. */
typedef enum {
    AG_CASE_GOOD,
    AG_BAD_DRAFT, /* at: the place of the draft; as_check_drafts says the rest */
    AG_BAD_P,     /* at: the position, in a walk the row of the tree, whose row is bad */
    AG_BAD_Q
} ag_fault_kind;

typedef struct {
    int32_t kind, at;
} ag_fault;

/* ---- Chains of drafts. --------------------------------------------------------------- */

/* Position i of a case has row number state[i] of p and, for i < len, of q; without states,
 * case c has rows c * (gamma + 1) + i of p and c * gamma + i of q. A draft of -1 ends the
 * drafts, and rows beyond them are not looked at. */
typedef struct {
    int32_t n, gamma, V;
    const float *p;                   /* [][V] served rows; logits for the greedy rule */
    const float *q;                   /* [][V]; the chain rule alone */
    const int32_t *p_state, *q_state; /* ag_row_state of each row, or NULL: all are good. Not
                                         looked at by the greedy rule, which finds out itself */
    const int32_t *state;             /* [n][gamma+1], or NULL */
    const int32_t *len;               /* [n] drafts of the case, or NULL: gamma */
    const int32_t *draft;             /* [n][gamma] */
    const double *u;                  /* [n][gamma+2] as iut_verify_batch has them, or NULL: */
    ag_seeds seeds;                   /* of the case, and the position of its first token */
    int32_t *out;                     /* [n][gamma+1] entries beyond the length stay */
    int32_t *out_len;                 /* [n] */
    ag_fault *fault;                  /* [n] */
} ag_chains;

/* AS_RULE_GREEDY: as_verify_greedy on logits; a bad row is a fault where it is examined.
 * AS_RULE_CHAIN, AS_RULE_MATCH: as_verify_chain and as_verify_match, or those seeded; every row
 * of the drafts and the one behind them must be good. */
as_status ag_verify(const ag_device *d, as_rule rule, const ag_chains *c, const ag_scratch *s,
                    as_error *e);

/* ---- Trees of candidates. ------------------------------------------------------------- */

/* The wanted rows of a tree stand close together: the root, then the rows from `wanted` on. */
typedef struct {
    int32_t n, V;
    int32_t capacity;              /* rows of a tree at most */
    int32_t wants;                 /* wanted rows of a tree at most; few are faster */
    const ag_tree *tree;           /* [n] rows 0: no tree, its length is 0, accepted -1 */
    const int32_t *token, *parent; /* [n][capacity] */
    const float *row;              /* [n][wants][V] logits for greedy, else served rows */
    const int32_t *row_state;      /* [n][wants] of served rows, or NULL: all are good */
    ag_seeds seeds;                /* of the sequence, and the position of the next token */
    int32_t *run, *path;           /* [n][capacity] */
    int32_t *length, *accepted;    /* [n] as as_walk has them */
    ag_fault *fault;               /* [n] */
} ag_walks;

/* as_walk_tree with the argmax (greedy), the draw of purpose DRAW (match) or the one-hot rule.
 * A bad row is a fault where the walk comes to it. AS_LIMIT for a capacity beyond 3,072. */
as_status ag_walk(const ag_device *d, as_rule rule, const ag_walks *w, const ag_scratch *s,
                  as_error *e);

/* ---- Streams over a panel. ------------------------------------------------------------ */

/* A finite automaton of served rows, as iut_panel. */
typedef struct {
    int32_t V, S, C;
    const int32_t *cls;               /* [V] */
    const int32_t *next;              /* [S][C] */
    const float *p, *q;               /* [S][V] */
    const int32_t *p_state, *q_state; /* [S] ag_row_state, or NULL: all are good */
} ag_panel;

/* As iut_stream_batch: stream i has seed `seed + i`, and its first token position 0. */
typedef struct {
    int32_t n, gamma, k, eos;
    const int32_t *start; /* [n] */
    uint64_t seed;
    int32_t *out;      /* [n][k] entries beyond the length stay */
    int32_t *out_len;  /* [n] */
    int32_t *accepted; /* [n][k] accepted drafts of each step; entries beyond the steps stay */
    ag_fault *fault;   /* [n] at: the state whose row is bad */
} ag_streams;

/* Draft, verify by the rule (chain or match), loop: the whole of every stream in one launch.
 * AS_LIMIT when more than 2,048 drafts a step can be of use. */
as_status ag_stream(const ag_device *d, as_rule rule, const ag_panel *panel,
                    const ag_streams *s, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
