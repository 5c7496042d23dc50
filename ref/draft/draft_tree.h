/* draft_tree.h - trees of drafts from a draft model. Clauses TDR-01 to TDR-06, TDR-08. */
#ifndef ASSAY_REF_DRAFT_DRAFT_TREE_H
#define ASSAY_REF_DRAFT_DRAFT_TREE_H

#include "ref/draft/draft.h"
#include "ref/draft/shape.h"

/* How the children of a node come from q, the draft model's row there (TDR-02). */
typedef enum {
    AS_SIBLINGS_IID,     /* drawn independently */
    AS_SIBLINGS_WITHOUT, /* drawn without replacement */
    AS_SIBLINGS_TOP      /* the tokens of largest q */
} as_siblings;

/* TDR-04: what a refusal calls such a tree, and bit 1 << as_rule of the rules that can verify it. */
const char *as_siblings_name(as_siblings siblings);
unsigned as_siblings_rules(as_siblings siblings);

/* A tree of that shape (copied) in every step, as far as the budget, the positions and the rows
 * of both models go. The rules are those of TDR-04. The model is the caller's and must outlive
 * the drafter, which keeps one sequence open in it. AS_BAD_INPUT of as_shape_check and
 * as_check_sampling. */
as_status as_draft_tree(as_lm *lm, const as_sampling *s, const as_shape *shape,
                        as_siblings siblings, as_drafter **d, as_error *e);

typedef struct {
    int32_t expand; /* nodes that get children on each level, and children of each */
    int32_t depth;  /* levels */
    int32_t drafts; /* kept */
} as_dynamic;

/* A tree chosen anew in each step by what the draft model says (TDR-08), of the numbers of `o`,
 * each 1 to AS_SHAPE_MOST, expand and depth at most AS_DYNAMIC_MOST. AS_BAD_INPUT, about "tree",
 * for others. Otherwise like as_draft_tree. */
as_status as_draft_dynamic(as_lm *lm, const as_sampling *s, const as_dynamic *o,
                           as_drafter **d, as_error *e);

enum { AS_DYNAMIC_MOST = 64 };

#endif
