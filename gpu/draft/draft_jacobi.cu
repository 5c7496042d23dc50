/* draft_jacobi.cu - Jacobi decoding (draft.h). The twin of ref/draft/jacobi.c. Clauses JAC-01
 * to JAC-06.
 *
 * The guesses of a block that begins are written straight into the tree; only the answers that
 * become the next guess are kept. */
#include "gpu/draft/draft_step.h"

namespace
{

enum { THREADS = 128 };

/* JAC-06. */
__device__ int32_t fresh(const as_jacobi &o, int32_t V, const int32_t *history,
                         const ag_sequence &s, uint64_t seed, int32_t j)
{
    switch (o.init) {
    case AS_GUESS_PAD:
        return o.pad;
    case AS_GUESS_LAST:
        return history[s.n - 1];
    case AS_GUESS_PROMPT:
        return guess_from(history, s.prompts, seed, position_of(s), AS_INIT, j);
    case AS_GUESS_VOCABULARY: /* JAC-11 */
        return guess_from(nullptr, V, seed, position_of(s), AS_INIT, j);
    default:
        return o.given[least(j, o.givens - 1)];
    }
}

/* JAC-01, JAC-05. */
__global__ void jacobi_propose(const ag_drafter d)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence &s = d.batch.sequence[q];
    if (!alive(s)) return lay_nothing(d.batch, q);
    const int32_t *history = piece(d.batch.history, q, d.batch.H);
    const int32_t *guess = piece(d.guess, q, d.batch.R);
    const bool begins = s.rest == 0;
    const int32_t n = begins ? least(d.jacobi.m - 1, chain_limit(d.batch, s)) : s.rest - 1;
    lay_chain(d.batch, q, s, n, n + 1, [&](int32_t j) {
        return begins ? fresh(d.jacobi, d.batch.V, history, s, d.batch.seed[q], j) : guess[j];
    });
}

/* JAC-03: a_{c+1} to a_{r-2}. */
__global__ void jacobi_observe(const ag_drafter d, const ag_answers w)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence s = d.batch.sequence[q];
    if (!alive(s)) return rest(d.batch, q);
    const ag_tree tree = d.batch.tree[q];
    const int32_t *answer = piece(w.answer, q, d.batch.wants);
    int32_t *guess = piece(d.guess, q, d.batch.R);
    const outcome k = cut(d.batch, w, q, s);
    const int32_t final = k.accepted + 1;
    emit(d.batch, w, q, s, k);
    bool bad = false;
    for (int32_t at = final; at < tree.rows - 1; at += threads()) {
        const int32_t i = at + thread();
        if (i >= tree.rows - 1) break;
        bad |= answer[i] < 0;
        guess[i - final] = answer[i];
    }
    bad = __syncthreads_or(bad);
    if (thread() > 0) return;
    ag_sequence next = after(s, tree, k);
    next.rest = tree.rows - final;
    next.failed |= bad;
    d.batch.sequence[q] = next;
}

} // namespace

extern "C" void ag_jacobi_propose(const ag_drafter *d)
{
    LAUNCH(jacobi_propose, blocks_of(d), THREADS, 0, d->device, *d);
}

extern "C" void ag_jacobi_observe(const ag_drafter *d, const ag_answers *w)
{
    LAUNCH(jacobi_observe, blocks_of(d), THREADS, 0, d->device, *d, *w);
}
