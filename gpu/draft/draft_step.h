/* draft_step.h - device code that all drafters share: laying a tree, the stop rules, the state
 * after a step. The twin of ref/draft/draft.c and of emit in ref/decode.c.
 *
 * A block works on one sequence. What the whole block has to know is computed by every warp for
 * itself, from the same memory: a few loads more, and no barrier. Only thread 0 writes the
 * sequence's state, after a barrier that all its readers have passed. */
#ifndef ASSAY_GPU_DRAFT_DRAFT_STEP_H
#define ASSAY_GPU_DRAFT_DRAFT_STEP_H

#include "gpu/device/block.cuh"
#include "gpu/draft/draft.h"
#include "ref/num/fixed.h"
#include "ref/num/uniform.h"

namespace
{

using namespace ag;

/* Entry b of an array of B pieces. */
template <class T> __device__ __forceinline__ T *piece(T *array, int32_t b, int32_t size)
{
    return array + static_cast<int64_t>(b) * size;
}

__device__ __forceinline__ bool alive(const ag_sequence &s)
{
    return s.left > 0 && !s.ended && !s.failed;
}

__device__ __forceinline__ int32_t position_of(const ag_sequence &s)
{
    return s.n - s.prompts;
}

__device__ __forceinline__ bool is_eos(const int32_t *eos, int32_t eoses, int32_t token)
{
    bool found = false;
    for (int32_t i = 0; i < eoses; i++) found |= eos[i] == token;
    return found;
}

/* as_guess. */
__device__ __forceinline__ int32_t guess_from(const int32_t *list, int32_t n, uint64_t seed,
                                              int32_t position, as_purpose purpose, int32_t j)
{
    const as_words r =
        as_random(seed, static_cast<uint64_t>(position), purpose, static_cast<uint32_t>(j));
    const uint64_t i = as_target(as_word64(r), static_cast<uint64_t>(n));
    return list ? list[i] : static_cast<int32_t>(i);
}

/* ---- A tree. ----------------------------------------------------------------------------- */

/* as_chain_limit of a sequence that is alive. Positions suffice for the rest of the budget,
 * less its last token (STOP-05, which ag_drafter_start has checked), so they limit no chain. */
__device__ __forceinline__ int32_t chain_limit(const ag_batch &b, const ag_sequence &s)
{
    return least(s.left, b.R) - 1;
}

/* The slot of a wanted row. */
__device__ __forceinline__ int32_t slot_of(const ag_tree &t, int32_t row)
{
    return row > 0 ? 1 + row - t.wanted : 0;
}

/* By thread 0. */
__device__ __forceinline__ void plant(const ag_batch &b, int32_t q, const ag_tree &tree,
                                      const ag_asked &asked, int32_t position)
{
    b.tree[q] = tree;
    b.asked[q] = asked;
    b.position[q] = static_cast<uint64_t>(position);
}

/* No rows: for a sequence that is over. */
__device__ __forceinline__ void lay_nothing(const ag_batch &b, int32_t q)
{
    if (thread() == 0) plant(b, q, ag_tree{}, ag_asked{}, 0);
}

/* The root and a chain of n drafts below it, draft(0), draft(1), ..., all wanted; the drafter
 * asks for the answers of the first `asked` rows. */
template <class F>
__device__ __forceinline__ void lay_chain(const ag_batch &b, int32_t q, const ag_sequence &s,
                                          int32_t n, int32_t asked, F draft)
{
    int32_t *token = piece(b.token, q, b.R), *parent = piece(b.parent, q, b.R);
    for (int32_t r = thread(); r <= n; r += threads()) {
        token[r] = r > 0 ? draft(r - 1) : piece(b.history, q, b.H)[s.n - 1];
        parent[r] = r - 1;
    }
    if (thread() == 0)
        plant(b, q, ag_tree{n + 1, 1, 1, 0, INT32_MAX, 1}, ag_asked{0, asked, 0},
              position_of(s));
}

/* ---- What became of it. ------------------------------------------------------------------ */

/* length 0: the rule gave no token. */
struct outcome {
    int32_t length, accepted, emitted;
    bool ended;
};

/* STOP-01, STOP-02: the tokens of the run up to an end of sequence, as far as the budget goes.
 * Every warp finds the same. */
__device__ __forceinline__ outcome cut(const ag_batch &b, const ag_answers &w, int32_t q,
                                       const ag_sequence &s)
{
    const int32_t *run = piece(w.run, q, b.R), *eos = piece(b.eos, q, b.E);
    const int32_t length = w.length[q], n = least(length, s.left);
    if (length < 1) return outcome{0, 0, 0, false};
    for (int32_t at = 0; at < n; at += 32) {
        const int32_t i = at + lane();
        const uint32_t ends = __ballot_sync(FULL, i < n && is_eos(eos, s.eoses, run[i]));
        if (ends)
            return outcome{length, w.accepted[q], at + __ffs(static_cast<int>(ends)), true};
    }
    return outcome{length, w.accepted[q], n, false};
}

/* Appends what is emitted to the history, and names the rows that the model commits: the root
 * and the accepted rows whose tokens are out. The last token out is the next root, evaluated
 * with the next step, even where this one accepted its row. Who reads the history needs a
 * barrier first. */
__device__ __forceinline__ void emit(const ag_batch &b, const ag_answers &w, int32_t q,
                                     const ag_sequence &s, const outcome &k)
{
    const int32_t *run = piece(w.run, q, b.R), *rows = piece(w.path, q, b.R);
    int32_t *end = piece(b.history, q, b.H) + s.n, *path = piece(b.path, q, b.R);
    const int32_t kept = least(k.accepted + 1, k.emitted);
    for (int32_t i = thread(); i < k.emitted; i += threads()) end[i] = run[i];
    for (int32_t i = thread(); i < kept; i += threads()) path[i] = b.offset[q] + rows[i];
    if (thread() == 0) b.kept[q] = kept;
}

/* The sequence after the step; one without a token counts for nothing. The method adds its own.
 */
__device__ __forceinline__ ag_sequence after(const ag_sequence &s, const ag_tree &t,
                                             const outcome &k)
{
    ag_sequence next = s;
    next.emitted = k.emitted;
    next.failed = k.length == 0;
    if (next.failed) return next;
    next.n += k.emitted;
    next.left -= k.emitted;
    next.ended = k.ended;
    next.steps++;
    next.drafted += t.rows - (t.all ? 1 : t.drafts);
    next.accepted += k.accepted;
    return next;
}

/* A sequence that is over emits and commits nothing more. */
__device__ __forceinline__ void rest(const ag_batch &b, int32_t q)
{
    if (thread() == 0) b.sequence[q].emitted = b.kept[q] = 0;
}

/* ---- Launches. --------------------------------------------------------------------------- */

inline unsigned blocks_of(const ag_drafter *d)
{
    return static_cast<unsigned>(d->batch.B);
}

} // namespace

#endif
