/* chunk_rule.h - the rule by which version 1 of the arithmetic has grouped or flat chunk sums,
 * once a device has measured both: groups of 8 chunks, the default, unless flat sums take less
 * time for the products of some step, and for those of none more. */
#ifndef ASSAY_GPU_BENCH_CHUNK_RULE_H
#define ASSAY_GPU_BENCH_CHUNK_RULE_H

/* What is nearer to 1 is no difference. */
#define CHUNK_MARGIN 0.02

/* n repetitions in turn: +1 where flat sums take less time by more than the margin in three of
 * four of them, -1 where they take more, else 0. */
static inline int chunk_winner(const double *grouped /* [n] */, const double *flat /* [n] */,
                               int n)
{
    int less = 0, more = 0;
    for (int i = 0; i < n; i++) {
        less += flat[i] < (1 - CHUNK_MARGIN) * grouped[i];
        more += flat[i] > (1 + CHUNK_MARGIN) * grouped[i];
    }
    return (n > 0 && 4 * less >= 3 * n) - (n > 0 && 4 * more >= 3 * n);
}

/* Of the steps that have a voice, how many flat sums win and lose, and how many were not
 * measured. */
static inline const char *chunk_decision(int won, int lost, int missing)
{
    return missing > 0 ? "undecided" : won > 0 && lost == 0 ? "flat" : "grouped";
}

#endif
