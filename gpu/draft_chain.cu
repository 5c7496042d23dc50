/* draft_chain.cu - plain decoding, and chains of a draft model (draft.h). The twin of
 * ref/draft/none.c and draft_lm.c.
 *
 * A draft model draws its tokens one after the other, so they are not known when the tree is
 * laid; how many there are is, and so are the uniforms. Whoever runs the model writes draft i
 * to token[i + 1], before ag_gather, drawn by uniform[i + 1] from its served
 * row (RNG-06, LAW-03). The cache of the draft model then holds the history and all drafts but
 * the last; `held` is what of it is still right after the step, and what the next step feeds
 * begins there: one token, or two after a full acceptance. */
#include "gpu/draft_step.h"

namespace
{

enum { THREADS = 64 };

__global__ void chain_propose(const ag_drafter d)
{
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence &s = d.batch.sequence[q];
    if (!alive(s)) return lay_nothing(d.batch, q);
    const int32_t gamma = d.method == AG_CHAIN ? d.gamma : 0;
    const int32_t n = least(gamma, chain_limit(d.batch, s));
    uint64_t *uniform = piece(d.batch.uniform, q, d.batch.wants);
    const uint64_t seed = d.batch.seed[q], at = static_cast<uint64_t>(position_of(s));
    for (int32_t i = thread(); i < n; i += threads())
        uniform[i + 1] = as_word64(as_random(seed, at + static_cast<uint32_t>(i), AS_DRAFT, 0));
    lay_chain(d.batch, q, s, n, 0, [](int32_t) { return 0; });
}

/* Prompt lookup keeps nothing either. */
__global__ void chain_observe(const ag_drafter d, const ag_answers w)
{
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence s = d.batch.sequence[q];
    if (!alive(s)) return rest(d.batch, q);
    const ag_tree tree = d.batch.tree[q];
    const outcome k = cut(d.batch, w, q, s);
    emit(d.batch, w, q, s, k);
    __syncthreads();
    if (thread() > 0) return;
    ag_sequence next = after(s, tree, k);
    const int32_t fed = tree.rows > 1 ? s.n + tree.rows - 2 : s.held;
    next.held = least(fed, s.n + k.emitted - 1);
    d.batch.sequence[q] = next;
}

} // namespace

extern "C" void ag_chain_propose(const ag_drafter *d)
{
    LAUNCH(chain_propose, blocks_of(d), THREADS, 0, stream_of(d), *d);
}

extern "C" void ag_chain_observe(const ag_drafter *d, const ag_answers *w)
{
    LAUNCH(chain_observe, blocks_of(d), THREADS, 0, stream_of(d), *d, *w);
}
