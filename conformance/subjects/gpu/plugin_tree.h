/* plugin_tree.h - `verify_tree` of the plugin (plugin.c): the requests of a batch in one launch, or a few where they
 * are many, through the translation that the reference has, too (tree_ops.h). */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_GPU_PLUGIN_TREE_H
#define ASSAY_CONFORMANCE_SUBJECTS_GPU_PLUGIN_TREE_H

#include <stdbool.h>
#include "conformance/iut.h"
#include "gpu/num/rows.h"

/* The plugin's panel, on the device. */
typedef struct {
    const ag_device *device;
    const ag_scratch *scratch;
    int32_t V, S;
    const float *p, *q, *p_logit, *q_logit; /* [S][V] */
    const int32_t *p_state, *q_state;       /* [S] ag_row_state */
    bool seeded, greedy;                    /* as tree_ops_rows has them */
} plugin_panel;

/* Answers the batch with the very tokens and nodes of the reference. Memory is taken for the call. AS_BAD_INPUT names
 * the request and the node; AS_LIMIT: more than AG_TREE_CAPACITY nodes, an unknown rule or way of drawing. */
as_status plugin_verify_tree(const plugin_panel *x, const iut_tree_batch *b, as_error *e);

#endif
