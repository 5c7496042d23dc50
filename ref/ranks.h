/* ranks.h - the processes that share the rows of a step (LAH-31), as a decoding sees them: they can
 * tell each other a list of numbers, and that is all. Rank r of count is one of them. */
#ifndef ASSAY_REF_RANKS_H
#define ASSAY_REF_RANKS_H

#include <stdint.h>
#include "ref/status.h"

typedef struct as_ranks as_ranks;
struct as_ranks {
    int32_t rank, count; /* 0 to count - 1; at least 1 */

    /* Every rank gives n numbers and gets those of all, in the order of the ranks. All of them call it
     * with one n, the same number of times. AS_PEER, naming the rank and the step, for one that does not
     * answer within a time that the implementation states; the others must not be called on again. */
    as_status (*gather)(as_ranks *, int32_t step, const int32_t *mine /* [n] */, int32_t n,
                        int32_t *all /* [count][n] */, as_error *);
};

#endif
