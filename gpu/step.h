/* step.h - the device memory through which drafter, model and rule speak to each other during a
 * step. Nothing of it crosses to the host but what was emitted.
 *
 *   drafter   propose: ag_tree, token, parent, uniform    from ag_sequence, history
 *   model     logits of the root and of the rows from `wanted` on
 *   rule      ag_walks: run, length, path, accepted; and the rows' answers
 *   drafter   observe: history, ag_sequence, its own state
 *   model     commit of path[0 .. kept-1]
 *
 * All arrays are of B sequences, one after the other, with a fixed room for each: their
 * addresses never change, so that a step is the same launches every time. */
#ifndef ASSAY_GPU_STEP_H
#define ASSAY_GPU_STEP_H

#include <stdint.h>

/* What a sequence is in the middle of. It is alive while left > 0 and it has neither ended nor
 * failed; a sequence that is not proposes no rows. */
typedef struct {
    uint64_t seed;
    int32_t prompts;  /* tokens of the prompt */
    int32_t n;        /* tokens of the history; n - prompts is the stream position */
    int32_t left;     /* tokens that the budget still allows */
    int32_t eoses;    /* tokens that end the stream */
    int32_t warm;     /* 1: the rule samples, T > 0; 0: T = 0 */
    int32_t ended;    /* 1: by an end-of-sequence token */
    int32_t failed;   /* 1: a step gave no token, or a row no answer: bad logits */
    int32_t emitted;  /* by the last step: history[n - emitted .. n-1] */
    int32_t kept;     /* rows of the last path that the model commits (LAH-30) */
    int32_t steps;    /* as as_result (ref/decode.h) counts them, */
    int32_t drafted;  /* and these: rows that a rule might have accepted */
    int32_t accepted; /* of these */
    int32_t rest;     /* Jacobi: tokens of the block that are not final; 0: it begins */
    int32_t filled;   /* lookahead: rows of the window that exist, */
    int32_t side;     /* and which of its two places it is in */
    int32_t held;     /* chain: tokens that the draft model's cache holds */
} ag_sequence;

/* The tree of a step, as as_tree (ref/lm/tree.h) has it. */
typedef struct {
    int32_t rows; /* 0: the sequence takes no part */
    int32_t wanted, drafts, all, most, bonus;
    /* The rows whose answers the drafter asks for: their argmax, or, where `drawn`, a draw from
     * their served rows by their uniforms. */
    int32_t first, answers, drawn;
} ag_tree;

typedef struct {
    int32_t B, V;
    int32_t R;             /* rows of a sequence's share of a step, at most */
    int32_t H;             /* tokens of a history, at most */
    int32_t E;             /* end-of-sequence tokens, at most */
    int32_t positions;     /* of the model; 0: no limit */
    ag_sequence *sequence; /* [B] */
    int32_t *history;      /* [B][H] the prompt and all emitted tokens; the last is the root */
    int32_t *eos;          /* [B][E] */
    ag_tree *tree;         /* [B] */
    int32_t *token;        /* [B][R] of row r; of a chain, drafts are for others to write */
    int32_t *parent;       /* [B][R] an earlier row; -1 for row 0, the root */
    uint64_t *uniform;     /* [B][R] of rows that are drawn from, or that hold a drawn draft */
} ag_batch;

/* What the rule says of a step. */
typedef struct {
    const int32_t *run;      /* [B][R] the tokens chosen */
    const int32_t *length;   /* [B] how many; below 1: there was none, and the sequence fails */
    const int32_t *accepted; /* [B] rows accepted: length, or one less */
    const int32_t *answer;   /* [B][R] by row, where the tree asks for it; below 0: none */
} ag_walks;

#endif
