/* step.h - the device memory through which drafter, model and rule speak to each other during a
 * step. Nothing of it crosses to the host but what was emitted.
 *
 *   drafter   ag_propose: tree, token, parent, uniform, position   from sequence, history
 *             ag_assemble: the rows of all trees in one list, and those whose logits are wanted
 *   model     the logits of these
 *   rule      ag_answers
 *   drafter   ag_observe: history, sequence, kept, path, its own state
 *   model     commit of `kept` rows of `path`
 *
 * All arrays are of B sequences, one after the other, with a fixed room for each: their
 * addresses never change, so that a step is the same launches every time.
 *
 * A wanted row has a slot among those of its sequence: the root 0, row r >= tree.wanted slot
 * 1 + r - tree.wanted. Logits, uniforms and answers stand by slots. */
#ifndef ASSAY_GPU_DRAFT_STEP_H
#define ASSAY_GPU_DRAFT_STEP_H

#include <stdint.h>

/* What a sequence is in the middle of. It is alive while left > 0 and it has neither ended nor
 * failed; a sequence that is not proposes no rows. */
typedef struct {
    int32_t prompts;  /* tokens of the prompt */
    int32_t n;        /* tokens of the history; n - prompts is the stream position */
    int32_t left;     /* tokens that the budget still allows */
    int32_t eoses;    /* tokens that end the stream */
    int32_t warm;     /* 1: the rule samples, T > 0; 0: T = 0 */
    int32_t ended;    /* 1: by an end-of-sequence token */
    int32_t failed;   /* 1: a step gave no token, or a row no answer: bad logits */
    int32_t emitted;  /* by the last step: history[n - emitted .. n-1] */
    int32_t steps;    /* as as_result (ref/decode.h) counts them, */
    int32_t drafted;  /* and these: rows that a rule might have accepted */
    int32_t accepted; /* of these */
    int32_t rest;     /* Jacobi: tokens of the block that are not final; 0: it begins */
    int32_t filled;   /* lookahead: rows of the window that exist, */
    int32_t side;     /* and which of its two places it is in */
    int32_t held;     /* chain, tree: tokens that the draft model's cache holds */
} ag_sequence;

/* What as_tree (ref/lm/tree.h) says of one tree. rows 0: the sequence takes no part. */
typedef struct {
    int32_t rows, wanted, drafts, all, most, bonus;
} ag_tree;

/* The rows whose answers the drafter asks for, all wanted: their argmax, or, where `drawn`, a
 * draw from their served rows by the uniforms of their slots. */
typedef struct {
    int32_t first, rows, drawn;
} ag_asked;

typedef struct {
    int32_t B, V;
    int32_t R;         /* rows of a tree, at most */
    int32_t wants;     /* slots of a sequence */
    int32_t H;         /* tokens of a history, at most */
    int32_t E;         /* end-of-sequence tokens, at most */
    int32_t positions; /* of the model; 0: no limit */

    ag_sequence *sequence;
    int32_t *history;   /* [B][H] the prompt and all emitted tokens; the last is the root */
    int32_t *eos;       /* [B][E] */
    uint64_t *seed;     /* [B] */
    uint64_t *position; /* [B] of the token after the root, as of the last proposal */
    int32_t *number;    /* [B] of the sequence in the model; -1: none */

    ag_tree *tree;     /* [B] */
    ag_asked *asked;   /* [B] */
    int32_t *token;    /* [B][R] of row r; of a chain, drafts are for others to write */
    int32_t *parent;   /* [B][R] an earlier row; -1 for row 0, the root */
    uint64_t *uniform; /* [B][wants] where a row is drawn from, or, in a chain, was drawn */

    /* The forward's rows, those of sequence b from offset[b] on, parents counted likewise;
     * behind them rows of sequence -1. */
    int32_t *offset;                          /* [B] */
    int32_t *row_token, *row_parent, *row_of; /* [B R] token, parent, number */
    int32_t *want; /* [B][wants] the row of each slot; of slots without one, some row */

    int32_t *kept; /* [B] rows of the path that the model commits (LAH-30) */
    int32_t *path; /* [B][R] these, counted as the forward's */
} ag_batch;

/* What the rule says of a step; of a sequence that takes no part, nothing that is read. */
typedef struct {
    const int32_t *run;      /* [B][R] the tokens chosen */
    const int32_t *path;     /* [B][R] the root and the rows accepted, counted in the tree */
    const int32_t *length;   /* [B] of the run; below 1: none, and the sequence fails */
    const int32_t *accepted; /* [B] rows accepted: length, or one less */
    const int32_t *answer;   /* [B][wants] where the drafter asks for it; below 0: none */
} ag_answers;

#endif
