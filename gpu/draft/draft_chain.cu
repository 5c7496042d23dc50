/* draft_chain.cu - plain decoding, and chains of a draft model (draft.h). The twin of
 * ref/draft/none.c and draft_lm.c.
 *
 * A draft model draws its tokens one after the other, so they are not known when the tree is
 * laid; how many there are is, and so are the uniforms. ag_chain_feed then gives the model one
 * row a draft. Its cache runs ahead: in the end it holds the history and all drafts but the
 * last. `held` is what of that is still right after the step, and the next step's first feed
 * begins there: one token, or two after a full acceptance. */
#include "gpu/draft/draft_step.h"

namespace
{

enum { THREADS = 64 };

__global__ void chain_propose(const ag_drafter d)
{
    take_turn();
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

/* A thread a sequence. */
__global__ void chain_rows(const ag_drafter d, const ag_feed f, int32_t i)
{
    take_turn();
    const ag_batch &b = d.batch;
    const int32_t q = static_cast<int32_t>(blockIdx.x) * THREADS + thread();
    if (q >= b.B) return;
    const ag_sequence &s = b.sequence[q];
    const int32_t drafts = b.tree[q].rows - 1; /* -1 for a sequence that is over */
    int32_t *token = piece(b.token, q, b.R);
    if (i > 0 && i <= drafts) token[i] = f.drawn[q];
    const int32_t rows = i >= drafts ? 0 : i == 0 ? s.n - s.held : 1;
    if (i == 0 && rows > 0) f.length[f.number[q]] = s.held;
    for (int32_t r = 0; r < 2; r++) {
        const int32_t at = 2 * q + r;
        const bool there = r < rows;
        f.row_of[at] = there ? f.number[q] : -1;
        f.row_parent[at] = there && r > 0 ? at - 1 : -1;
        f.row_token[at] = !there ? 0 : i > 0 ? token[i] : piece(b.history, q, b.H)[s.held + r];
        f.path[at] = at;
    }
    f.want[q] = 2 * q + (rows > 1);
    f.kept[q] = rows;
    f.uniform[q] = rows > 0 ? piece(b.uniform, q, b.wants)[i + 1] : 0;
}

/* LKP keeps nothing either. */
__global__ void chain_observe(const ag_drafter d, const ag_answers w)
{
    take_turn();
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
    LAUNCH(chain_propose, blocks_of(d), THREADS, 0, d->device, *d);
}

extern "C" void ag_chain_rows(const ag_drafter *d, const ag_feed *f, int32_t i)
{
    const unsigned blocks = (blocks_of(d) + THREADS - 1) / THREADS;
    LAUNCH(chain_rows, blocks, THREADS, 0, d->device, *d, *f, i);
}

extern "C" void ag_chain_observe(const ag_drafter *d, const ag_answers *w)
{
    LAUNCH(chain_observe, blocks_of(d), THREADS, 0, d->device, *d, *w);
}
