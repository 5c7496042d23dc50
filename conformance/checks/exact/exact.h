/* exact.h - the checks that need no statistics: hard facts, replay, certificates, values,
 * identity (LAY-01 to LAY-03). In the order in which a report reads best. */
#ifndef ASSAY_CONFORMANCE_CHECKS_EXACT_EXACT_H
#define ASSAY_CONFORMANCE_CHECKS_EXACT_EXACT_H

#include "conformance/checks/frame/check.h"

extern const check check_format_verify, check_format_draw, check_format_stream;
extern const check check_replay_vectors, check_replay_random, check_replay_edges;
extern const check check_trace_methods;
extern const check check_certify_boundaries;
extern const check check_served_values, check_residual_values, check_draw_values;
extern const check check_greedy_verify, check_greedy_stream;
extern const check check_match_seeded, check_stop_rules;
extern const check check_edges_declared;
extern const check check_canonical_seeded, check_seeds_bits;
extern const check check_pool_values;

#endif
