/* ledger.h - evidence of many runs of one implementation, taken together as they come. Clause STAT-13;
 * docs/statistics.md, "The ledger". */
#ifndef ASSAY_STATS_LEDGER_H
#define ASSAY_STATS_LEDGER_H
#include <stdbool.h>
#include <stddef.h>

/* What a run brings. Its e-value has a mean of at most 1 under the null, given all runs before it. */
typedef struct {
    double log_e; /* ln of it; -INFINITY and INFINITY (proof) are legal, NAN is not */
    double nats;  /* what rounding may earn in it, finite, >= 0 */
} st_run;

typedef struct {
    double log_e;  /* ln E after the last run; 0 without runs */
    double most;   /* the largest ln E after any run: not conformant iff it reaches ln(1/alpha) */
    size_t when;   /* after so many runs; 0: `most` is that of the start, before any run */
    size_t start;  /* the run, from 1 on, with which the largest share of `most` starts; 0 as above */
} st_evidence;

/* E after run t is the sum over s <= t of w_s M_s, plus what the weights w_s = 1/(s(s+1)) leave, 1/(t+1).
 * M_s is the product of the e-values of the runs s, s+1, ... It ends where the `nats` of the runs that it has
 * reach ST_STRICT_NATS. M_s does not see the `nats` of a run before it has taken it, so E is an e-process.
 * Runs stand in the order in which they were added. False: no memory. Time n^2, at most 0.1 s for 3,000 runs. */
bool st_ledger_weigh(const st_run *runs /* [n] */, size_t n, st_evidence *out);
#endif
