/* draft.h - the drafters on the device: what as_drafter (ref/draft/draft.h) and the stop rules
 * of ref/decode.c do, for a batch of sequences, without the host. Token for token and state for
 * state those of ref/draft. Clauses JAC-01 to JAC-08, LAH-01 to LAH-17, LAH-23 to LAH-30,
 * POOL-01 to POOL-05, LKP-01 to LKP-05, TDR-01 to TDR-03, TDR-06, RNG-09, STOP-01, STOP-02.
 *
 * A step is ag_propose, ag_assemble, the model's forward, the rule, ag_observe, the model's
 * commit (gpu/draft/step.h). Each of the three is one launch, with the same arguments every time, and
 * so may stand in a graph. Nothing is allocated after ag_drafter_open. */
#ifndef ASSAY_GPU_DRAFT_DRAFT_H
#define ASSAY_GPU_DRAFT_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "gpu/device/device.h"
#include "gpu/draft/step.h"
#include "ref/draft/draft_tree.h"
#include "ref/draft/jacobi.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    AG_PLAIN, /* no drafts */
    AG_CHAIN, /* of a draft model, which writes the tokens (as_draft_lm) */
    AG_JACOBI,
    AG_LOOKAHEAD,
    AG_LOOKUP,
    AG_TREE /* of a given shape, by a draft model (as_draft_tree) */
} ag_method;

/* The method and its options; only those of the method are looked at. */
typedef struct {
    ag_method method;
    int32_t gamma; /* AG_CHAIN: drafts of a step, at least 0 */
    as_jacobi jacobi;
    as_lookahead lookahead;
    as_lookup lookup;
    const as_shape *shape; /* AG_TREE: copied */
    as_siblings siblings;  /* AG_TREE */
} ag_drafting;

/* What a drafter is opened for; each at least 1 where nothing else is said. */
typedef struct {
    int32_t sequences;
    int32_t V;
    int32_t longest;   /* tokens of a prompt and its budget, at most */
    int32_t eoses;     /* of a sequence, at most; at least 0 */
    int32_t positions; /* of the model; 0: no limit */
    int32_t rows;      /* of a sequence's share of a forward; 0: what the method can use */
} ag_room;

/* The n-grams of every sequence: `number` is that of a key's bucket, from 1, 0: none. A bucket
 * holds how many insertions took a slot, and G values of N - 1 tokens as ref/draft/ngram_pool.c
 * orders them. There are as many as a request can need: a step inserts W n-grams, and each
 * token of the history one, so min(V, (W + 1) * longest). A sequence has
 *     4 * V + 4 * min(V, (W + 1) * longest) * (1 + G * (N - 1))
 * bytes, whatever is inserted, and a look-up is two loads. */
typedef struct {
    int32_t capacity, size; /* buckets of a sequence; words of a bucket */
    int32_t *number;        /* [B][V] */
    int32_t *bucket;        /* [B][capacity][size] */
    int32_t *buckets;       /* [B] in use */
} ag_pool;

/* The trees of AG_TREE. A slot is a place for a node that gets children: slot j of a level is row j
 * of the level above, of `wide` for a sequence. Laws are the draft model's served rows, by which
 * children are drawn: those of all sequences on a level stand together, level by level. */
typedef struct {
    as_siblings siblings;
    int32_t levels;            /* below the root */
    int32_t *end;              /* host: [levels + 1] nodes of the shape down to a level */
    int32_t *most;             /* host: [levels + 1] children of a node above, at most */
    int32_t *child, *children; /* [nodes] of a node of the shape: the first, and how many */
    int32_t *node;             /* [B][R] the node of the shape that a row is */
    int32_t *rows;             /* [B][levels + 1] of the tree down to a level */
    int32_t *law;              /* [B][R] number of the law that drew a row; -1: the root */
    int32_t *kept;             /* [B] rows that the draft model commits */
    int32_t *path;             /* [B][levels + 1] these, counted as its last forward's */
} ag_growth;

/* The fields are device memory where they are arrays. Kernels take this by value. */
typedef struct {
    const ag_device *device;
    ag_method method;
    unsigned rules; /* bit 1 << as_rule: the rules that can verify the drafts */
    int32_t gamma;
    as_jacobi jacobi; /* their lists, too, are on the device */
    as_lookahead lookahead;
    as_lookup lookup;
    ag_batch batch;
    int32_t *given;
    int32_t *guess;  /* [B][R] Jacobi's next */
    int32_t *window; /* [B][2][N - 1][W + N]: rows R_l, their columns numbered as R_0's */
    ag_pool pool;
    ag_growth growth;
} ag_drafter;

/* AS_BAD_INPUT for what the drafter's constructor in ref/draft refuses, in its words, and for a
 * room out of range; AS_LIMIT where V times longest is beyond 32 bits; AS_NO_MEMORY. */
as_status ag_drafter_open(const ag_device *device, const ag_drafting *o, const ag_room *room,
                          ag_drafter *d, as_error *e);
void ag_drafter_close(ag_drafter *d);

typedef struct {
    const int32_t *prompt; /* [prompts] at least 1 */
    int32_t prompts, budget;
    const int32_t *eos; /* [eoses] */
    int32_t eoses;
    uint64_t seed;
    bool warm;      /* the rule samples: not greedy, and T > 0 */
    int32_t number; /* of the sequence in the model */
} ag_request;

/* Sequence b forgets everything and begins with this request; the others are not touched. The
 * model's cache is to hold the prompt without its last token; so is a draft model's. Errors as
 * as_decode has them for a request (STOP-05 included), AS_LIMIT beyond the drafter's room. */
as_status ag_drafter_start(ag_drafter *d, int32_t b, const ag_request *r, as_error *e);

/* Rows of a tree in such a room, at most. */
int32_t ag_drafting_rows(const ag_drafting *o, const ag_room *room);

/* AS_BAD_INPUT where as_decode finds that the rule is unknown, or not one for the method. */
as_status ag_drafting_check(const ag_drafting *o, int32_t V, as_rule rule, as_error *e);

/* Sequence b takes part no more. */
as_status ag_drafter_stop(ag_drafter *d, int32_t b, as_error *e);

/* d->batch.tree, token, parent and uniform of the next step of every sequence. */
as_status ag_propose(const ag_drafter *d, as_error *e);

/* The rows of all trees as one forward has them, and which are wanted. */
as_status ag_assemble(const ag_drafter *d, as_error *e);

/* What a draft model is fed with, and what comes of it; all on the device. */
typedef struct {
    const int32_t *number; /* [B] of the sequences in the draft model */
    const int32_t *drawn;  /* [B] the tokens drawn after the last feed */
    int32_t *length;       /* by number: the draft model's, as ag_llama_lengths */
    /* Sequence b has rows 2b and 2b + 1; sequence -1: there is none. */
    int32_t *row_token, *row_parent, *row_of; /* [2 B] */
    int32_t *want;     /* [B] the row whose logits the next draft is drawn from; 2b if none */
    uint64_t *uniform; /* [B] by which it is drawn */
    int32_t *kept;     /* [B] rows to commit */
    int32_t *path;     /* [B][2] these */
} ag_feed;

/* AG_CHAIN, between ag_propose and ag_assemble, for i = 0 to gamma: writes draft i - 1, which
 * was drawn since the last call, into its tree, and the rows that draft i asks of the draft
 * model: what its cache lacks of the history (i = 0), or draft i - 1. For each i below gamma
 * the draft model's forward, the draw from its served rows and its commit follow (RNG-06,
 * LAW-03). One launch. AS_BAD_INPUT for another method or an i out of range. */
as_status ag_chain_feed(const ag_drafter *d, const ag_feed *f, int32_t i, as_error *e);

/* A level of all trees, and what of it is not the drafter's; all arrays are on the device. */
typedef struct {
    int32_t level; /* from 1 */
    int32_t wide;  /* slots of a sequence */
    int32_t share; /* rows of a sequence in the draft model's forward */
    int32_t laws;  /* the number of the first slot's law */

    const int32_t *number; /* [B] of the sequences in the draft model */
    int32_t *broken;       /* [B] 1: the draft model gave logits that cannot be served */
    int32_t *row_token, *row_parent, *row_of; /* [B share] of the forward; sequence -1: there is none */
    int32_t *want;         /* [B wide] the row of each slot; of slots without one, some row */
    int32_t *serve;        /* [B wide] the slot itself, -1: it gets no children */
    const int32_t *state;  /* [B wide] of the laws; 0: good */
    const float *q;        /* [B wide][V] the laws */
    float *left;           /* [B wide][V] of these, without the siblings that may not come again */
    int32_t *count;        /* [B wide] children */
    int32_t *pick;         /* [B wide] the slot itself, -1: it has no further child */
    uint64_t *uniform;     /* [B wide] by which the child is drawn */
    const int32_t *drawn;  /* [B wide] */
} ag_level;

/* AG_TREE, between ag_propose and ag_assemble, for each level, one launch each. Slots, rows of the
 * forward and numbers of laws: wide, share and laws. */
void ag_tree_size(const ag_drafter *d, int32_t level, ag_level *l);
/* The forward's rows: on level 1 what the draft model's cache lacks of the history, one or two of each
 * sequence, which d->growth.kept and path [B][2] then commit; else the tree down to the level above. */
as_status ag_tree_rows(const ag_drafter *d, const ag_level *l, as_error *e);
/* The laws having been served: how many children each slot can have, and `left`. */
as_status ag_tree_open(const ag_drafter *d, const ag_level *l, as_error *e);
/* For k = 0 to the most children: takes the child k - 1 that was drawn, and asks for child k. */
as_status ag_tree_child(const ag_drafter *d, const ag_level *l, int32_t k, as_error *e);

/* What became of it: history, d->batch.sequence and the method's state. The trees must be those
 * of ag_propose. */
as_status ag_observe(const ag_drafter *d, const ag_answers *a, as_error *e);

/* ---- For whoever wants to look: each waits for the device. ------------------------------ */

as_status ag_drafter_sequence(const ag_drafter *d, int32_t b, ag_sequence *s, as_error *e);

/* tokens[0 ..] = history[from .. from + n - 1]. */
as_status ag_drafter_tokens(const ag_drafter *d, int32_t b, int32_t from, int32_t n,
                            int32_t *tokens, as_error *e);

/* The tree, and room [R] for its tokens and parents. */
as_status ag_drafter_tree(const ag_drafter *d, int32_t b, ag_tree *tree, int32_t *token,
                          int32_t *parent, as_error *e);

/* Row R_l of the window, as as_lookahead_row; columns 0 if there is none. `row` has room for
 * W + N tokens. */
as_status ag_drafter_window(const ag_drafter *d, int32_t b, int32_t l, int32_t *row,
                            int32_t *columns, as_error *e);

/* The values of a key, as as_pool_find; `values` has room for G of them. */
as_status ag_drafter_pool(const ag_drafter *d, int32_t b, int32_t key, int32_t *values,
                          int32_t *count, as_error *e);

/* Device memory held, in bytes. */
size_t ag_drafter_bytes(const ag_drafter *d);

/* ---- The launches, one file a method: for draft.c alone. -------------------------------- */

void ag_chain_propose(const ag_drafter *d); /* AG_PLAIN and AG_CHAIN */
void ag_chain_rows(const ag_drafter *d, const ag_feed *f, int32_t i);
void ag_chain_observe(const ag_drafter *d, const ag_answers *w); /* and AG_LOOKUP */
void ag_jacobi_propose(const ag_drafter *d);
void ag_jacobi_observe(const ag_drafter *d, const ag_answers *w);
void ag_lookup_propose(const ag_drafter *d);
void ag_tree_propose(const ag_drafter *d);
void ag_tree_observe(const ag_drafter *d, const ag_answers *w);

/* What the host knows of a shape, which is good; and what the device does, whose memory is there. */
as_status ag_growth_plan(const as_shape *shape, ag_growth *g, as_error *e);
as_status ag_growth_upload(const ag_device *device, const as_shape *shape, const ag_growth *g,
                           as_error *e);
void ag_assemble_rows(const ag_drafter *d);
void ag_lookahead_start(const ag_drafter *d, int32_t b);
void ag_lookahead_propose(const ag_drafter *d);
void ag_lookahead_observe(const ag_drafter *d, const ag_answers *w);

#ifdef __cplusplus
}
#endif
#endif
