/* shape.h - the shape of a tree of drafts, before it has tokens. Clauses TDR-01, TDR-07.
 *
 * The nodes below the root are 1 to `drafts`; the root is 0. Parents never fall from node to
 * node, so nodes stand level by level, and the children of a node stand together. The rank of a
 * child is its place, from 0, among its siblings. */
#ifndef ASSAY_REF_DRAFT_SHAPE_H
#define ASSAY_REF_DRAFT_SHAPE_H

#include <stdint.h>
#include "ref/status.h"

enum { AS_SHAPE_MOST = 1024 }; /* drafts */

typedef struct {
    int32_t drafts;
    int32_t parent[AS_SHAPE_MOST]; /* [drafts] of node i + 1: 0 to i */
} as_shape;

/* "3-2-1": three children of the root, two of each of these, one of each of those. Or the
 * parents of the nodes 1, 2, ..., "0,0,1". AS_BAD_INPUT, about "tree", for anything else. */
as_status as_shape_read(const char *text, as_shape *shape, as_error *e);

/* AS_BAD_INPUT, about "tree", if it is not as the head of this file says. */
as_status as_shape_check(const as_shape *shape, as_error *e);

/* Levels below the root. */
int32_t as_shape_depth(const as_shape *shape);

/* Most children of a node. */
int32_t as_shape_width(const as_shape *shape);

/* Expected tokens of a step, if the child of rank k of a node that was reached is gone to with
 * chance p[k], 0 from `ranks` on: the sum over all nodes, the root among them, of the product of
 * p along the path. Source: Sequoia, proposition 3.4. */
double as_shape_tokens(const as_shape *shape, const double *p /* [ranks] */, int32_t ranks);

/* Sequoia's tree: of all shapes with `drafts` drafts, at most `depth` levels and at most `ranks`
 * children a node, the first that has the most expected tokens. drafts 0 to AS_SEQUOIA_DRAFTS,
 * depth and ranks 1 to AS_SEQUOIA_LEVELS, p in [0, 1]. AS_BAD_INPUT, about "tree" or "rates",
 * out of these ranges, or where no such shape exists. */
as_status as_sequoia(const double *p /* [ranks] */, int32_t ranks, int32_t drafts,
                     int32_t depth, as_shape *shape, as_error *e);

enum { AS_SEQUOIA_DRAFTS = 255, AS_SEQUOIA_LEVELS = 32 };

#endif
