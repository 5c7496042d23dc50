/* draft_lookup.cu - prompt lookup (draft.h). The twin of ref/draft/prompt_lookup.c. Clauses
 * LKP-01 to LKP-05.
 *
 * The reference tries lengths downwards, and for each the places upwards. Here every place is
 * looked at once, all in parallel: with `like` the number of tokens before it, up to `longest`,
 * that equal the last of the history, the place matches at every length up to `like`, and the
 * greatest of these that LKP-02 or LKP-03 allows is all that counts, since the search prefers
 * greater lengths. The winner is the greatest length, then the lowest place: the maximum of a
 * 64-bit word, which no order of threads changes.
 *
 * A place reads one token unless it matches, side by side with its neighbours: a history of
 * 8,192 tokens is eight loads a thread, from the L2 cache. */
#include "gpu/draft/draft_step.h"

namespace
{

enum { THREADS = 512 };

/* How many tokens before s equal the last of the L tokens, `longest` at most. */
__device__ __forceinline__ int32_t likeness(const int32_t *history, int32_t L, int32_t longest,
                                            int32_t s)
{
    const int32_t most = least(longest, s);
    int32_t n = 0;
    while (n < most && history[s - 1 - n] == history[L - 1 - n]) n++;
    return n;
}

/* The greatest length at which the drafts may start at s: LKP-02 asks s < L - l; 0: none. */
__device__ __forceinline__ int32_t usable(const as_lookup &o, int32_t L, int32_t s,
                                          int32_t like)
{
    if (o.partial) return like;
    if (o.drafts > L - s) return 0;
    return least(like, L - s - 1);
}

/* LKP-01: where the drafts start; L if there is no such place. */
__device__ int32_t search(const as_lookup &o, const int32_t *history, int32_t L, u64 *shared)
{
    u64 best = 0;
    for (int32_t s = 1 + thread(); s < L; s += threads()) {
        const int32_t l = usable(o, L, s, likeness(history, L, o.longest, s));
        const u64 word =
            static_cast<u64>(static_cast<uint32_t>(l)) << 32 | static_cast<uint32_t>(L - s);
        if (l > 0) best = greater{}(best, word);
    }
    best = block_reduce(shared, best, greater{});
    return best ? L - static_cast<int32_t>(static_cast<uint32_t>(best)) : L;
}

/* LKP-04: the first end of sequence among the n tokens, or n. Every warp finds the same. */
__device__ int32_t before_eos(const int32_t *token, int32_t n, const int32_t *eos,
                              int32_t eoses)
{
    for (int32_t at = 0; at < n; at += 32) {
        const int32_t i = at + lane();
        const uint32_t ends = __ballot_sync(FULL, i < n && is_eos(eos, eoses, token[i]));
        if (ends) return at + __ffs(static_cast<int>(ends)) - 1;
    }
    return n;
}

__global__ void __launch_bounds__(THREADS) lookup_propose(const ag_drafter d)
{
    take_turn();
    SHARED(u64, shared); /* [LANES] */
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence &s = d.batch.sequence[q];
    if (!alive(s)) return lay_nothing(d.batch, q);
    const int32_t *history = piece(d.batch.history, q, d.batch.H);
    const int32_t *drafts = history + search(d.lookup, history, s.n, shared);
    int32_t n = least(d.lookup.drafts, static_cast<int32_t>(history + s.n - drafts));
    if (d.lookup.cut_at_eos)
        n = before_eos(drafts, n, piece(d.batch.eos, q, d.batch.E), s.eoses);
    n = least(n, chain_limit(d.batch, s)); /* LKP-05 */
    lay_chain(d.batch, q, s, n, 0, [&](int32_t i) { return drafts[i]; });
}

} // namespace

extern "C" void ag_lookup_propose(const ag_drafter *d)
{
    LAUNCH(lookup_propose, blocks_of(d), THREADS, LANES * sizeof(u64), d->device, *d);
}
