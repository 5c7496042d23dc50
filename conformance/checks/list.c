/* Every check of the suite, in the order it runs: hard facts, replay, certificates, values,
 * conventions, metamorphic relations, laws (LAY). */
#include <stddef.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/checks/exact/exact.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/model/lm.h"
#include "conformance/checks/tree/trees.h"

/* clang-format off */
const check *const check_list[] = {
    &check_format_verify,      &check_format_draw,   &check_format_stream,
    &check_replay_vectors,     &check_replay_random, &check_replay_edges,
    &check_trace_methods,
    &check_certify_boundaries, &check_served_values, &check_residual_values,
    &check_draw_values,        &check_greedy_verify, &check_greedy_stream,
    &check_match_seeded,       &check_stop_rules,    &check_edges_declared,
    &check_canonical_seeded,   &check_seeds_bits,
    &check_meta_equal,         &check_meta_draft,    &check_meta_batch,
    &check_meta_panel,         &check_law_verify,
    &check_law_stream,         &check_law_draw,      &check_law_calls,
    &check_law_coupling,       &check_law_served,    &check_law_long,
    &check_tree_vectors,       &check_tree_replay,   &check_tree_seeded,
    &check_tree_requests,      &check_tree_chain,    &check_tree_certify,
    &check_tree_refusals,      &check_tree_format,   &check_tree_meta,
    &check_tree_law,
    &check_lm_canonical,       &check_lm_rows,       &check_lm_tree,
    &check_lm_rollback,        &check_lm_greedy,     &check_lm_random,
    &check_lm_long,            &check_engine_greedy, &check_engine_law,
    &check_engine_facts,       &check_engine_late,   &check_engine_company,
    &check_engine_top1,        &check_engine_mixed,  &check_engine_pairs,
    &check_engine_logprob,     &check_engine_processors, &check_engine_models,
    &check_engine_seeds,
    &check_pool_values,
    NULL};
/* clang-format on */
_Static_assert(sizeof check_list / sizeof *check_list <= CHECKS_MOST + 1, "raise CHECKS_MOST");
