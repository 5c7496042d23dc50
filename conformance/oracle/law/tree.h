/* tree.h - what a step on a tree of drafts must emit, by chapter 10 alone: the specified answer,
 * the judge of another one, and what refusals leave. Clauses TRV, SIB, REC, TGT, MAT-03, GRD-04, ONEH-07,
 * NIR, KSQ, BLK, TYP, CST, LEN, DRAW-07, RNG-09, RNG-10, LAY-02, LAY-10, LAY-23; VAR-04 to VAR-06.
 *
 * It is written from the clauses in integers of any size. V < 2^20. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_TREE_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_TREE_H

#include <stdbool.h>
#include <gmp.h>
#include "conformance/oracle/law/chain.h"

typedef enum {
    ORACLE_TREE_GREEDY,
    ORACLE_TREE_MATCH,
    ORACLE_TREE_TARGET,
    ORACLE_TREE_ONEHOT,
    ORACLE_TREE_RECURSIVE,
    ORACLE_TREE_SINGLE,
    ORACLE_TREE_KSEQ,
    ORACLE_TREE_BLOCK,
    ORACLE_TREE_TYPICAL,
    ORACLE_TREE_CONSTANT,
    ORACLE_TREE_LENIENT
} oracle_tree_rule;

/* A node, node 0 being the root. Its rows are indices of the request's rows. */
typedef struct {
    int32_t token;       /* -1: a placeholder (TRV-04); not read at the root */
    int32_t parent;      /* -1 at the root, else an earlier node */
    int32_t p;           /* the row behind the node's path; GREEDY: a row of logits */
    int32_t q;           /* the row that its token was drawn from; -1: none. Not read at the root */
    bool without;        /* its children were drawn without replacement (SIB-04) */
    double parameter[2]; /* of what happens at this node (TRV-06). TARGET: alpha and sigma of TGT-03. KSEQ: [0] is
                            KSQ-01's integer. TYPICAL, CONSTANT: [0] is theta. LENIENT: [0] is l */
} oracle_tree_node;

typedef struct {
    oracle_tree_rule rule;
    int32_t V, rows, nodes;
    const float *const *row; /* [rows][V] */
    const oracle_tree_node *node;
    const oracle_unit *u;          /* [nodes] in [0, 1): of a node's test; TARGET, MATCH: of the choice among a node's
                                      children. NULL: the uniforms of RNG-09 and RNG-10 */
    oracle_unit residual, bonus;   /* of the last token: a child was looked for in vain, or there was none */
    const float *noise;            /* [V] with u, in place of these two: a race has the last token (DRAW-07); NULL: a
                                      draw. GREEDY and MATCH have no such token */
    uint64_t seed, position;       /* u NULL: `position` is that of the root's row */
    unsigned flags;                /* ORACLE_* of chain.h; with BAD_DRAFT_ENDS an invalid id is a placeholder */
} oracle_tree_request;

/* The specified answer: 1 to depth + 1 tokens, and the nodes gone to, one fewer. 0: an error is due, and `why` names
 * it. */
int32_t oracle_tree(const oracle_tree_request *r, int32_t *token /* [nodes] */, int32_t *path /* [nodes] */, char *why,
                    size_t why_size);

/* What a judge says. OPEN: an arithmetic of its own may decide a node on the way in several ways, because its refusals
 * left little mass, or none; only hard facts are held against the answer there. */
typedef enum { TREE_EXACT, TREE_GREY, TREE_OPEN, TREE_WRONG } oracle_tree_verdict;

/* Judges an answer, `length` tokens and the nodes gone to. EXACT, GREY and WRONG as in chain.h; the nodes are a path
 * of children with the answer's tokens, and else a matter of name (TRV-03). At a node whose refusals left the shares
 * Z_1, ..., Z_k of the mass, the tolerance is tau/(Z_1 * ... * Z_k). Above 2^-8 it is too large to judge: OPEN. */
oracle_tree_verdict oracle_tree_judge(const oracle_tree_request *r, const int32_t *token, const int32_t *path,
                                      int32_t length, double tau, char *why, size_t why_size);

/* The law R/Z that is left at a node when its first `refusals` children were refused: in the chapter's integers, or
 * exact rationals of the rows normalised. Entries arrive initialised. Not for BLOCK. False: an error is due. */
bool oracle_tree_left(const oracle_tree_request *r, int32_t node, int32_t refusals, bool exact, mpq_t *share /* [V] */);

#endif
