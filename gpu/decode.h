/* decode.h - the loop of decoding on the device: what as_decode (ref/decode.h) does, for
 * several requests at once, by any drafter and rule. Token for token, step for step and
 * sentence for sentence of a refusal as_decode. Clauses STOP-01 to STOP-05, GRD-03, MAT-02,
 * LAW-01 to LAW-03, LAH-28 to LAH-30, TDR-01 to TDR-06.
 *
 * Everything of a step happens on the device (gpu/draft/step.h); the host makes the launches, and
 * looks once in so many steps which sequences are over. It then takes their tokens and lets the
 * next requests take their places.
 *
 * A step is recorded as a graph. What changes from step to step lies on the device, at
 * addresses that stay. Left to the host, and so in a graph for good, are two numbers: how many
 * sequences are alive, which sets the rows of a forward, and below which position all rows
 * stand, which sets the blocks of attention; the latter is rounded up to 64, 128, 256, ... and
 * what it exceeds costs blocks that leave at once. They make a kind of step. There are at most
 * `sequences` times 1 + log2(longest / 64) kinds, about, and a batch meets few of them: alive
 * sequences become fewer only where no request is left to take a place, and the bound of a
 * batch only grows. The first step of a kind is launched, which loads its kernels; the second
 * is recorded, and it and all others are replayed, in every later batch, too.
 *
 * All is allocated when the decoder is opened, but for the memory in which the driver keeps a
 * graph, on the host and on the device, when it is recorded. Where there is none, or something
 * else forbids it, the decoder launches its steps as before, and says so (ag_decoder_graphs):
 * no step fails for want of memory. */
#ifndef ASSAY_GPU_DECODE_H
#define ASSAY_GPU_DECODE_H

#include <stdbool.h>
#include "gpu/draft/draft.h"
#include "gpu/lm/llama.h"
#include "gpu/num/rows.h"
#include "ref/decode.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ag_decoder ag_decoder;

typedef struct {
    /* Of ag_llama, the caller's; they outlive the decoder, which keeps `sequences` sequences
     * open in each. draft: for AG_CHAIN and AG_TREE, otherwise NULL. */
    as_lm *target, *draft;
    ag_drafting drafting;
    as_rule rule;
    as_sampling sampling, draft_sampling;
    int32_t sequences; /* decoded at the same time, at least 1 */
    int32_t longest;   /* tokens of a prompt and its budget, at most; at least 1 */
    int32_t eoses;     /* of a request, at most */
    int32_t rows;      /* of a sequence's share of a forward; 0: what the method can use */
    int32_t stride;    /* steps between two looks of the host, at least 1 */
    bool launched;     /* every step is launched: no graphs */
} ag_decoding;

typedef struct {
    const int32_t *prompt; /* [prompts] at least 1 */
    int32_t prompts, budget;
    const int32_t *eos; /* [eoses] any of these is emitted and ends the stream */
    int32_t eoses;
    uint64_t seed;
    int32_t *out; /* [budget] result.tokens of them are written */
    /* [budget] Of each step, result.steps of them: the tokens that the rule gave, and the rows
     * that it accepted. Or NULL. */
    int32_t *length, *accepted;
    as_result result;
    as_status status; /* of this request, with its sentence; results are then as as_decode's */
    as_error error;
} ag_generation;

/* Errors of as_decode for the method, the rule and the sampling, of ag_drafter_open, and of the
 * draft model's drafter. AS_LIMIT where a forward of all sequences, or a tree for a walk
 * (verify.h), has more rows than there is room for; AS_NO_MEMORY. */
as_status ag_decoder_open(const ag_device *device, const ag_decoding *o, ag_decoder **d,
                          as_error *e);
void ag_decoder_close(ag_decoder *d);

/* Decodes n requests. What is wrong with one of them is its own status: what as_decode refuses;
 * AS_LIMIT beyond the room of the decoder or the positions of either model; AS_BAD_INPUT for
 * logits that cannot be served. Otherwise AS_OK, unless the device fails, of which then all
 * that are unfinished tell. */
as_status ag_decode(ag_decoder *d, ag_generation *g /* [n] */, int32_t n, as_error *e);

/* What became of the steps since the decoder was opened. */
typedef struct {
    int32_t recorded;           /* graphs */
    int64_t launched, replayed; /* steps, one launch after the other and as graphs */
    bool refused;               /* a graph could not be had, no other is tried, and why: */
    as_error why;
} ag_graphs;

ag_graphs ag_decoder_graphs(const ag_decoder *d);

/* ---- The launches between those of the other parts: for decode.c alone. ----------------- */

enum { AG_PIECE = 128 }; /* rows of a prompt that one forward takes */

/* An array on the device that is to be made. */
typedef struct {
    void *at; /* a pointer, to be set */
    size_t count, size;
    const char *what;
} ag_array;

/* All on the device. A slot of a sequence is one of step.h. The chain rule takes its rows by
 * positions, those of all sequences together, since a draft model gives its own so: there
 * `place` of slot k of sequence b is k * B + b, elsewhere b * wants + k. */
typedef struct {
    const ag_device *device;
    ag_batch batch;
    int32_t chain;       /* 1: the chain rule */
    int32_t *want;       /* [places] row of the forward */
    int32_t *serve;      /* [places] the place itself, -1: nothing to serve */
    int32_t *ask;        /* [places] the place, where the drafter asks for an answer, else -1 */
    int32_t *state;      /* [places] of served rows */
    int32_t *answer;     /* [places] */
    int32_t *draft;      /* [B][R - 1] the chain rule's */
    int32_t *drafts;     /* [B] of these */
    int32_t *broken;     /* [B] 1: the draft model gave logits that cannot be served */
    int32_t *nodes, *node; /* [B], [B][R] rows and tokens of a tree as verify_tree.h has them, or
                              NULL: the rule is none of those */
    int32_t *run, *path; /* [B][R] of the rule */
    int32_t *length, *accepted; /* [B] */
    int32_t *lengths, *accepts; /* [B][H] these, of all steps */
    int32_t *piece; /* [4][AG_PIECE] token, parent, sequence, path; the path's rows */
} ag_glue;

/* Rows at .. at + n - 1 of the prompt of sequence b, which is `number` in its model. */
void ag_glue_prompt(const ag_glue *g, int32_t b, int32_t number, int32_t at, int32_t n);
/* The forward's wanted rows, which of them are served, and the chain rule's drafts. */
void ag_glue_slots(const ag_glue *g);
/* Draft i of every chain has been drawn from rows of these states: notes what is broken. */
void ag_glue_drawn(const ag_glue *g, const ag_feed *f, const int32_t *state, int32_t *drawn,
                   int32_t i);
/* Which slots the drafter asks about; no answers yet. */
void ag_glue_asks(const ag_glue *g);
/* The nodes of the trees. */
void ag_glue_nodes(const ag_glue *g);
/* What the rule said becomes answers, and stands in the log. */
void ag_glue_verdict(const ag_glue *g);

#ifdef __cplusplus
}
#endif
#endif
