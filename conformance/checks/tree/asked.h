/* asked.h - drawn requests with trees, and the judgement of their answers by the oracle. Shared by the exact checks of
 * trees (LAY-02, LAY-10). */
#ifndef ASSAY_CONFORMANCE_CHECKS_TREE_ASKED_H
#define ASSAY_CONFORMANCE_CHECKS_TREE_ASKED_H

#include "conformance/checks/exact/replay.h"
#include "conformance/checks/tree/trees.h"
#include "conformance/oracle/law/tree.h"

enum { ASKED_STATES = 12, ASKED_DEPTH = 6, ASKED_ROOM = 64 };

/* Of a request, of a node at most; what the IUT declares limits them further. */
typedef struct {
    int32_t nodes, children;
} asked_sizes;
static const asked_sizes ASKED_USUAL = {128, 12};

/* The rows of each state under one sampling. */
typedef struct {
    const float *p[ASKED_STATES], *q[ASKED_STATES], *logit[ASKED_STATES];
} asked_rows;

/* probe_general() with q = p in each fourth state, so that a refusal may leave nothing (SIB-05). In another fourth the two
 * largest of p are equal; if the IUT does not declare the first of equal logits, they never are. The draft has ids of its
 * own where the IUT takes such panels. */
probe *asked_probe(const client *tested, int32_t S, int32_t V, probe_shape shape, uint64_t *rng);

void asked_rows_of(asked_rows *to, const probe *m);

/* The next request: a chain, a bush or a wide tree; siblings of each node in a way that the IUT claims, repeats, placeholders, tokens
 * from q and from anywhere, uniforms up to their ends, and parameters that are not neutral.
 * In one of 16 nodes may have 40 children, most of which are refused; where nodes may have many anyway, in half of them.
 * In one of 16 the children are all that p has, with coins near 1. Of the rule OTHER tokens are as they are said to be
 * drawn. */
void asked_add(trees *t, const probe *m, const check_context *x, int32_t rule, asked_sizes most, uint64_t *rng);

/* Moves one supplied uniform of the request that was added last to a multiple of 2^-24 at which the answer that is due
 * changes, if there is one; for arithmetic that decides there. rows: the panel's. False: `r` says that memory is short. */
bool asked_sharpen(trees *t, const check_context *x, int32_t V, const asked_rows *rows, uint64_t *rng, check_result *r);

/* Behind the request that was added last, the same on both sides of each boundary of each of its uniforms, a step of
 * 2^-bits apart, the others being random; as far as there is room. Adds to *boundaries. False: `r` says that memory is
 * short. */
bool asked_certify(trees *t, const check_context *x, int32_t V, const asked_rows *rows, int32_t bits, uint64_t *rng,
                   int64_t *boundaries, check_result *r);

/* How the next call has its last tokens, where the IUT claims more than one way: coins, and bonus drawn or given. */
void asked_ways(trees *t, const client *tested, int32_t V, uint64_t *rng);

/* One of the ways in which siblings may have come, by tree_drawn. */
int32_t asked_drawing(const client *tested, uint64_t *rng);

/* One of the rules that are claimed, OTHER apart; 0: there is none. */
int32_t asked_rule(const client *tested, uint64_t *rng);

/* Judges the answers of a call. rows: one of each sampling of the call, or the panel's. False: `r` says what is wrong. */
bool asked_judge(trees *t, const check_context *x, int32_t V, const asked_rows *rows, replay_tally *tally,
                 check_result *r);

/* What the judge says of one answer. A bonus that was given is taken as drawn; another one in its place is a FAIL in
 * `r`. */
oracle_tree_verdict asked_verdict(trees *t, int32_t i, const check_context *x, int32_t V, const asked_rows *rows,
                                  check_result *r);

/* What is due, as oracle_tree() has it. 0: `r` says that memory is short, or that the oracle refuses the request. */
int32_t asked_due(const trees *t, int32_t i, const check_context *x, int32_t V, const asked_rows *rows,
                  int32_t *token /* [TREE_NODES] */, int32_t *node /* [TREE_NODES] */, check_result *r);

/* Are answers determined: the operation, an arithmetic with a tau, CDF by id, uniforms from that source, V
 * within the limit? uniforms 0: under GREEDY, which takes none and rounds nothing. */
bool asked_claimed(const client *tested, int32_t V, int32_t uniforms, char *why, size_t size);

#endif
