/* trees.h - requests with trees of drafts: their shapes, calls of `verify_tree`, and the hard facts of every answer
 * (TRV-01 to TRV-05). Shared by the checks of trees. */
#ifndef ASSAY_CONFORMANCE_CHECKS_TREE_TREES_H
#define ASSAY_CONFORMANCE_CHECKS_TREE_TREES_H

#include "conformance/checks/frame/probe.h"

extern const check check_tree_law, check_tree_meta, check_tree_replay, check_tree_seeded, check_tree_requests,
    check_tree_chain, check_tree_certify, check_tree_refusals, check_tree_vectors, check_tree_format;

enum { TREE_NODES = 320, TREE_SAMPLINGS = 3 }; /* of a request, of a call at most */

/* The root first, parents before children. */
typedef struct {
    int32_t nodes, depth; /* depth: of the deepest node; the root's is 0 */
    int32_t parent[TREE_NODES], level[TREE_NODES];
} tree_shape;

/* From a text: "3-2" is three children of the root, each with two; at most TREE_NODES nodes. */
void tree_shape_of(tree_shape *s, const char *text);
/* Of `least` to `nodes` nodes, as far as `depth` levels and `children` a node have room: chains, wide ones, bushes. */
void tree_shape_draw(tree_shape *s, int32_t least, int32_t nodes, int32_t depth, int32_t children, uint64_t *rng);

/* The words of rules and of how siblings were drawn, in the order of their bits: "target", "recursive" ... */
enum { TREE_RULES = 12, TREE_DRAWN = 4 };
extern const char *const tree_rule_name[TREE_RULES], *const tree_drawn_name[TREE_DRAWN];

/* Requests of one call, and their answers. The arrays are those of iut_tree_batch, which is put together from them. */
typedef struct {
    int32_t room, node_room, depth; /* requests and nodes that fit; levels of a tree at most */
    int32_t n, nodes;
    bool supplied, given; /* uniforms; bonus tokens */
    int32_t coins;        /* IUT_COINS_*: TWO where it is claimed; 0: uniforms are not supplied */
    uint64_t race;        /* of the noise of a race, request by request (coins.h) */
    int32_t samplings;    /* 0: those of the panel */
    iut_sampling sampling[TREE_SAMPLINGS], draft_sampling[TREE_SAMPLINGS];
    uint64_t seed, position; /* of the last call */
    int32_t *first;       /* [room] number of a request's root among all nodes */
    int32_t *node_count, *token, *parent, *state, *q_state, *drawn, *rule, *sampling_of;
    double *parameter, *u, *last;
    int32_t *bonus;
    int32_t *out, *out_node, *out_len;
} trees;

/* Paths of `most` drafts, or of max_gamma if that is less. False, with an ERROR in `r`: memory is short. trees_close()
 * in either event. */
bool trees_open(trees *t, const check_context *x, int32_t room, int32_t node_room, int32_t most, check_result *r);
void trees_close(trees *t);

/* No requests. */
static inline void trees_clear(trees *t)
{
    t->n = t->nodes = 0;
}

/* The next request: its shape; tokens and q_state are -1, states 0, `drawn` that of every node with children, parameters
 * neutral, uniforms 0. Returns the number of its root. */
int32_t trees_add(trees *t, const tree_shape *s, int32_t rule, int32_t drawn);

/* One call with all requests; its answers are reset. Not for a race. */
call_result trees_call(trees *t, const check_context *x, uint64_t seed, uint64_t position);
/* The same, V being the panel's. Then the hard facts: counts, ids, paths, and nothing behind them. False: `r` says what
 * happened. */
bool trees_ask(trees *t, const check_context *x, int32_t V, uint64_t seed, uint64_t position, check_result *r);

/* Is the operation claimed with this rule, these siblings, and a tree of that size? */
bool trees_claimed(const client *tested, int32_t rule, int32_t drawn, const tree_shape *s, char *why, size_t size);

#endif
