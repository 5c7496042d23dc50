/* decode_tree.h - steps whose drafts are trees of a draft model, for decode.c alone: the
 * launches of a level, the rules of verify_tree.h, and what the draft model commits. Clauses
 * TDR-01 to TDR-06.
 *
 * A level is a forward of the draft model over the tree so far, as in ref/draft/draft_tree.c,
 * then a draw for each child that a node has in the shape. All of it depends on the device
 * alone, and stands in the step's graph. */
#ifndef ASSAY_GPU_DECODE_TREE_H
#define ASSAY_GPU_DECODE_TREE_H

#include "gpu/decode.h"
#include "gpu/verify/verify_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `sampling`, `draft`, `number` and `broken` as the decoder has them. */
typedef struct {
    const ag_device *device;
    const ag_drafter *drafter;
    as_lm *draft;
    as_sampling sampling; /* of the draft model */
    as_rule rule;
    const int32_t *number; /* [B] on the device, of the sequences in the draft model */
    int32_t *broken;       /* [B] */
    /* Made by the list below. */
    ag_level level;              /* of its arrays the room for any level, q that of all laws */
    float *logits, *q, *left;    /* [slots][V], [laws][V], [slots][V] */
    int32_t *state, *drawn;      /* [laws], [slots] */
    int32_t *argmax_state;       /* [slots] */
    uint64_t *q_total, *p_total; /* [laws], [places] */
    int32_t *without;            /* [B][R] */
    int32_t *verified;           /* [B] as_tree_rule */
    uint64_t *work;              /* [B][2][V] */
    ag_tree_fault *fault;        /* [B] */
} ag_tree_decoding;

/* Whether the rule is one of verify_tree.h in a decoding: it looks at the tree as a whole. */
bool ag_rule_of_nodes(as_rule rule);

/* Rows of the draft model's largest forward, for all sequences. */
int64_t ag_tree_model_rows(const ag_drafter *d);

enum { AG_TREE_ARRAYS = 20 };
/* Every array of t; none has entries where the drafter makes no trees. */
void ag_tree_arrays(ag_tree_decoding *t, ag_array *a /* [AG_TREE_ARRAYS] */);
/* They are there, all zeros. */
as_status ag_tree_ready(ag_tree_decoding *t, as_error *e);

/* What a step's launches share: rows of the draft model stand below position `positions`,
 * `alive` sequences have some. */
typedef struct {
    int32_t alive, positions;
    const ag_scratch *scratch;
} ag_tree_bounds;

/* All levels, between ag_propose and ag_assemble. */
as_status ag_tree_grow(const ag_tree_decoding *t, const ag_tree_bounds *b, as_error *e);
/* A rule of nodes, from the served rows of all places, for glue's run, path and length. */
as_status ag_tree_verify(const ag_tree_decoding *t, const float *p, const ag_glue *g,
                         as_error *e);
/* The draft model's cache follows, after ag_observe. */
as_status ag_tree_follow(const ag_tree_decoding *t, as_error *e);

#ifdef __cplusplus
}
#endif
#endif
