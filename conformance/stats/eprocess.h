/* eprocess.h - the e-process on counts: evidence against "every draw at context c has law p_c",
 * valid at any sample size and under any peeking, for any vocabulary, without pooling.
 * Clause STAT-02; docs/statistics.md, "E-process". FAIL iff E >= 1/alpha at a
 * checkpoint (Ville).
 *
 * A context is whatever fixes the law of a draw: a panel state, or a node of a trie of prefixes
 * whose node set was fixed before sampling. Contexts share the rows of their laws, and share
 * the mixture parameter kappa. A draw may be counted at one context only. */
#ifndef ASSAY_STATS_EPROCESS_H
#define ASSAY_STATS_EPROCESS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct st_ep st_ep;

/* The views; the e-value is the plain mean of those that exist (RATIO and BOTH need q). */
enum { ST_RAW, ST_TOP, ST_RATIO, ST_RANK, ST_BOTH, ST_LEARNED, ST_VIEWS };

/* contexts >= 1 laws over tokens 0..K-1; context c draws from p[row[c]], the draft law there is
 * q[row[c]] (it only orders the tokens: any q gives a valid e-value). row NULL: context c has
 * row c. Rows are copied and normalised. NULL: no memory, or a row that st_row_error rejects.
 */
st_ep *st_ep_new(int contexts, const int32_t *row /* [contexts] or NULL */, int rows, int K,
                 const double *const *p /* [rows][K] */,
                 const double *const *q /* [rows][K] or NULL */);
void st_ep_free(st_ep *ep);

/* Counts `count` >= 0 draws of `token` at `context`. False, and nothing is counted, when an
 * argument is out of range, the token is impossible there (p = 0: proof of a fault, which the
 * caller reports as such), or memory ran out. */
bool st_ep_add(st_ep *ep, int context, int32_t token, int64_t count);

/* A checkpoint: ln E over all that was counted. Between two checkpoints only the counts matter,
 * so any order and any partition of the work gives the same bits as long as contexts and tokens
 * are added in the same order. When n has doubled since the learned bins were made, they are
 * made anew, for the draws that follow: call this at checkpoints that depend on n alone. */
double st_ep_log_e(st_ep *ep);

/* ln E of each view at the last checkpoint; NAN for a view that does not exist. */
void st_ep_views(const st_ep *ep, double log_e[ST_VIEWS]);
#endif
