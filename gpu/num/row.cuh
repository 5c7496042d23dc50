/* row.cuh - what a block of threads does with a row of the vocabulary: its maximum, its sums, a
 * draw. Every kernel over rows is made of these functions, so that each rule has one text.
 *
 * All sums are integers (DIST-07): threads may add in any order, and no bit depends on how many
 * threads or blocks a row is given. Two shapes of work use the same functions. Where there are
 * rows enough, a block has a row for itself. Where there are few, a row is shared among blocks
 * by stretches; each leaves its maximum or its sums in device memory, and the last one to
 * arrive finishes alone with what all have left.
 *
 * A stretch is what one warp adds up: 128 entries, or as many more as it takes for 1,024
 * stretches to cover the row. Loads are of 4 bytes, 128 bytes a warp: a row of an odd number of
 * entries is not aligned to more.
 *
 * Every function whose name begins with block_ is called by all threads of the block, whose
 * number is a multiple of 32, and gives all of them the same answer. It ends at a barrier, or
 * has used nothing of the room, so that the room may be used again at once. */
#ifndef ASSAY_GPU_NUM_ROW_CUH
#define ASSAY_GPU_NUM_ROW_CUH

#include "gpu/device/arrival.cuh"
#include "gpu/device/block.cuh"
#include "gpu/num/rows.h"
#include "ref/num/fixed.h"
#include "ref/num/order.h"
#include "ref/num/uniform.h"

namespace ag
{

enum { STRETCHES = 1024, AHEAD = 8 /* loads in flight */ };

/* Shared memory of a block. The sums of stretches stand behind it. */
struct room {
    u64 warp[LANES];
    u64 word;
    int32_t id;
    uint32_t last;
    __device__ u64 *part() { return reinterpret_cast<u64 *>(this + 1); }
};

/* How rows of V entries are worked on: the same for all rows of a launch. */
struct layout {
    int32_t V, length, stretches; /* entries of a stretch; stretches of a row */
};

/* ---- Reductions. ------------------------------------------------------------------------- */

template <class Op> __device__ u64 block_reduce(room &r, u64 v, Op op)
{
    return block_reduce(r.warp, v, op);
}

/* The least i < n for which the predicate holds, or n. */
template <class P> __device__ int32_t block_first(room &r, int32_t n, const P &holds)
{
    int32_t i = thread();
    while (i < n && !holds(i)) i += threads();
    const u64 behind = static_cast<u64>(n - least(i, n)); /* greater is earlier */
    return n - static_cast<int32_t>(block_reduce(r, behind, greater{}));
}

/* The first of n entries at which the sum of the weights in their order exceeds `target`, which
 * is below the sum of all; *before is the sum of those in front of it. */
template <class W>
__device__ int32_t block_find(room &r, int32_t n, const W &weight, u64 target, u64 *before)
{
    u64 running = 0;
    *before = 0;
    if (n == 1) return 0;
    for (int32_t first = 0; first < n; first += threads()) {
        const int32_t i = first + thread();
        const u64 own = i < n ? weight(i) : 0;
        const u64 in_warp = warp_running(own);
        if (lane() == LANES - 1) r.warp[warp()] = in_warp;
        __syncthreads();
        const u64 of_warps = warp_running(lane() < warps() ? r.warp[lane()] : 0);
        const u64 with_own = __shfl_sync(FULL, of_warps, warp());
        const u64 all = running + __shfl_sync(FULL, of_warps, LANES - 1);
        const u64 sum = running + with_own - r.warp[warp()] + in_warp;
        if (sum > target && sum - own <= target) {
            r.id = i;
            r.word = sum - own;
        }
        __syncthreads();
        running = all;
        if (running > target) break;
    }
    const int32_t id = r.id;
    *before = r.word;
    __syncthreads();
    return id;
}

/* ---- Passes over a row. ------------------------------------------------------------------ */

/* f(i, x[i]) for each entry from begin to end, AHEAD of a thread's loaded before the first is
 * used. */
template <class F>
__device__ __forceinline__ void each_entry(const float *x, int32_t begin, int32_t end, F f)
{
    const int32_t step = threads();
    int32_t i = begin + thread();
    for (; i + (AHEAD - 1) * step < end; i += AHEAD * step) {
        float v[AHEAD];
        UNROLL
        for (int a = 0; a < AHEAD; a++) v[a] = x[i + a * step];
        UNROLL
        for (int a = 0; a < AHEAD; a++) f(i + a * step, v[a]);
    }
    for (; i < end; i += step) f(i, x[i]);
}

/* The same for two rows, half as many entries of each. */
template <class F>
__device__ __forceinline__ void each_pair(const float *x, const float *y, int32_t begin,
                                          int32_t end, F f)
{
    enum { N = AHEAD / 2 };
    const int32_t step = threads();
    int32_t i = begin + thread();
    for (; i + (N - 1) * step < end; i += N * step) {
        float v[N], w[N];
        UNROLL
        for (int a = 0; a < N; a++) v[a] = x[i + a * step], w[a] = y[i + a * step];
        UNROLL
        for (int a = 0; a < N; a++) f(i + a * step, v[a], w[a]);
    }
    for (; i < end; i += step) f(i, x[i], y[i]);
}

/* Some stretches of a row. */
struct share {
    int32_t first, end;
};

/* Part number `part` of `parts`, of at most 2^10 each. */
inline __device__ share share_of(const layout &l, int32_t part, int32_t parts)
{
    return {l.stretches * part / parts, l.stretches * (part + 1) / parts};
}

/* ---- Ranking (DIST-08) and argmax (GRD-02). ---------------------------------------------- */

/* Grows with the logit; equal logits, -0 and +0 too, have equal ranks. */
inline __device__ uint32_t rank_of(float logit)
{
    return static_cast<uint32_t>(as_order(logit + 0.0f)) ^ 0x80000000u;
}

enum : uint32_t {
    RANK_MASKED = static_cast<uint32_t>(AS_ORDER_NEG_INF) ^ 0x80000000u,
    RANK_INFINITE = static_cast<uint32_t>(AS_ORDER_POS_INF) ^ 0x80000000u,
    RANK_NAN = 0xffffffffu
};

/* A word that is greatest for the greatest logit and, of equal ones, for the lowest id; a NaN
 * of either sign exceeds all, so that the greatest word of a row tells what is wrong with it.
 */
inline __device__ u64 place_of(float logit, int32_t id)
{
    const uint32_t rank = logit != logit ? RANK_NAN : rank_of(logit);
    return static_cast<u64>(rank) << 32 | (0xffffffffu - static_cast<uint32_t>(id));
}

/* What the greatest word of a row says. */
struct top {
    ag_row_state state;
    int32_t id;
};

inline __device__ top top_of(u64 word)
{
    const uint32_t rank = static_cast<uint32_t>(word >> 32);
    const int32_t id = static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(word));
    if (rank == RANK_NAN) return {AG_ROW_NAN, -1};
    if (rank == RANK_INFINITE) return {AG_ROW_INFINITE, -1};
    if (rank == RANK_MASKED) return {AG_ROW_MASKED, -1};
    return {AG_ROW_GOOD, id};
}

/* The greatest word of a share of a row. */
inline __device__ u64 block_top(room &r, const layout &l, share s, const float *logits)
{
    u64 best = 0;
    each_entry(logits, s.first * l.length, least(s.end * l.length, l.V),
               [&](int32_t i, float x) { best = greater{}(best, place_of(x, i)); });
    return block_reduce(r, best, greater{});
}

/* Whether the states, which may be NULL, say that a row is bad. */
inline __device__ bool is_bad(const int32_t *state, int64_t row)
{
    return state && state[row] != AG_ROW_GOOD;
}

/* ---- Laws: what a draw gives an id. ------------------------------------------------------ */

/* ACC-01. u has 29 bits and q 24, so the binary64 product is exact. */
inline __device__ bool accepts(float p, float q, double u)
{
    return u * static_cast<double>(q) < static_cast<double>(p);
}

/* RES-01. */
inline __device__ float excess(float p, float q)
{
    const float d = __fsub_rn(p, q);
    return d > 0.0f ? d : 0.0f;
}

/* A row or, with a q, the residual. One law and not two, so that a kernel that draws from
 * either has the code once: what exceeds 0 of a probability is the probability. */
struct law_of {
    const float *p, *q; /* q may be NULL */
    __device__ u64 operator()(int32_t i) const
    {
        return as_weight(excess(p[i], q ? q[i] : 0.0f));
    }
};

/* What is left of a row without n tokens (ONEH-04). */
struct law_without {
    const float *p;
    const int32_t *token;
    int32_t n;
    __device__ u64 operator()(int32_t i) const
    {
        for (int32_t k = 0; k < n; k++)
            if (token[k] == i) return 0;
        return as_weight(p[i]);
    }
};

/* The sums of the stretches of a share, to sum[stretch]. No barrier. */
template <class L>
__device__ void sum_stretches(const layout &l, share s, const L &law, u64 *sum)
{
    for (int32_t t = s.first + warp(); t < s.end; t += warps()) {
        const int32_t end = least((t + 1) * l.length, l.V);
        u64 v = 0;
        UNROLL_BY(4)
        for (int32_t i = t * l.length + lane(); i < end; i += LANES) v += law(i);
        v = warp_reduce(v, add{});
        if (lane() == 0) sum[t] = v;
    }
}

/* The sum of all stretches in the room. */
inline __device__ u64 block_total(room &r, const layout &l)
{
    u64 v = 0;
    if (l.stretches == 1) {
        v = r.part()[0];
        __syncthreads();
        return v;
    }
    for (int32_t t = thread(); t < l.stretches; t += threads()) v += r.part()[t];
    return block_reduce(r, v, add{});
}

/* The first id at which the cumulative weight exceeds `target`, which is below the total, the
 * sums of the stretches of the law being in the room. */
template <class L>
__device__ int32_t block_place(room &r, const layout &l, const L &law, u64 target)
{
    const u64 *part = r.part();
    u64 before, unused;
    const int32_t t = block_find(
        r, l.stretches, [=](int32_t i) { return part[i]; }, target, &before);
    const int32_t first = t * l.length;
    return first + block_find(
                       r, least(l.length, l.V - first),
                       [&](int32_t i) { return law(first + i); }, target - before, &unused);
}

/* Fills the room with the sums of a law that this block adds up alone. */
template <class L> __device__ void block_sum_row(room &r, const layout &l, const L &law)
{
    sum_stretches(l, share{0, l.stretches}, law, r.part());
    __syncthreads();
}

/* DRAW-02 from the law whose sums are in the room; -1 iff its total is 0. */
template <class L>
__device__ int32_t block_draw_summed(room &r, const layout &l, const L &law, uint64_t U)
{
    const u64 W = block_total(r, l);
    return W == 0 ? -1 : block_place(r, l, law, as_target(U, W));
}

/* The same and, if it is a residual without mass, from its p: RES-02 and RES-03. */
inline __device__ int32_t block_draw_summed(room &r, const layout &l, law_of w, uint64_t U)
{
    u64 W = block_total(r, l);
    if (W == 0 && w.q) {
        w.q = nullptr;
        block_sum_row(r, l, w);
        W = block_total(r, l);
    }
    return W == 0 ? -1 : block_place(r, l, w, as_target(U, W));
}

/* Alone. */
inline __device__ int32_t block_draw(room &r, const layout &l, const law_of &w, uint64_t U)
{
    block_sum_row(r, l, w);
    return block_draw_summed(r, l, w, U);
}

/* ---- Rows that blocks share. ------------------------------------------------------------- */

/* Words of scratch that a row has: for what its blocks found, one word a block or a stretch,
 * and for what serving it takes (rows.cu). */
enum { BINS = 1 << 11, KNOWN = 8, ROW_WORDS = STRETCHES + BINS + KNOWN };

/* Where the blocks of a case leave what they found about its rows, each in its slot. NULL: a
 * block has the case for itself, and looks at a row when it is asked for it. */
struct found {
    u64 *word;
    __device__ u64 *of(int32_t slot) const
    {
        return word + static_cast<int64_t>(slot) * ROW_WORDS;
    }
};

/* The cases of a launch: the blocks of a case stand one after the other, those of its first
 * slot first. */
struct meeting {
    u64 *word; /* [cases][slots][ROW_WORDS], or NULL: one block a case */
    uint32_t *arrived;
    int32_t slots, parts; /* blocks of a case: the product */
    __device__ int32_t own_case() const
    {
        return static_cast<int32_t>(blockIdx.x / static_cast<unsigned>(slots * parts));
    }
    __device__ int32_t own_slot() const
    {
        return static_cast<int32_t>(blockIdx.x / static_cast<unsigned>(parts)) % slots;
    }
    __device__ int32_t own_part() const
    {
        return static_cast<int32_t>(blockIdx.x % static_cast<unsigned>(parts));
    }
    __device__ found of(int32_t i) const
    {
        return found{word ? word + static_cast<int64_t>(i) * slots * ROW_WORDS : nullptr};
    }
    /* Whether this block is the one that goes on with its case. */
    __device__ bool block_goes_on(room &r) const
    {
        return !word || block_arrives_last(arrived + own_case(),
                                           static_cast<uint32_t>(slots * parts), &r.last);
    }
};

/* Leaves the greatest word of this block's part of the row in `slot` for block_top_of. */
inline __device__ void block_leave_top(room &r, const layout &l, const meeting &m, int32_t slot,
                                       const float *logits)
{
    const u64 best = block_top(r, l, share_of(l, m.own_part(), m.parts), logits);
    if (thread() == 0) m.of(m.own_case()).of(slot)[m.own_part()] = best;
}

/* Leaves the sums of this block's part of the row in `slot` for block_sums_of. No barrier. */
template <class L>
__device__ void leave_sums(const layout &l, const meeting &m, int32_t slot, const L &law)
{
    sum_stretches(l, share_of(l, m.own_part(), m.parts), law, m.of(m.own_case()).of(slot));
}

/* The greatest word of a row, from what was left or from the row. */
inline __device__ u64 block_top_of(room &r, const layout &l, const meeting &m, int32_t slot,
                                   const float *logits)
{
    const found f = m.of(m.own_case());
    if (!f.word) return block_top(r, l, share{0, l.stretches}, logits);
    u64 best = 0;
    for (int32_t b = thread(); b < m.parts; b += threads())
        best = greater{}(best, __ldcg(f.of(slot) + b));
    return block_reduce(r, best, greater{});
}

/* The greatest words of rows in slots `first` to first + n - 1, of which n is at most the
 * stretches of a row, to the room: a warp takes a slot, so that all are read at once. */
inline __device__ void block_tops_of(room &r, const meeting &m, int32_t first, int32_t n)
{
    const found f = m.of(m.own_case());
    for (int32_t i = warp(); i < n; i += warps()) {
        u64 best = 0;
        for (int32_t b = lane(); b < m.parts; b += LANES)
            best = greater{}(best, __ldcg(f.of(first + i) + b));
        best = warp_reduce(best, greater{});
        if (lane() == 0) r.part()[i] = best;
    }
    __syncthreads();
}

/* Fills the room with the sums of a row, from what leave_sums left or from the row. */
template <class L>
__device__ void block_sums_of(room &r, const layout &l, const meeting &m, int32_t slot,
                              const L &law)
{
    const found f = m.of(m.own_case());
    if (!f.word) {
        block_sum_row(r, l, law);
        return;
    }
    for (int32_t t = thread(); t < l.stretches; t += threads())
        r.part()[t] = __ldcg(f.of(slot) + t);
    __syncthreads();
}

/* ---- Uniforms. --------------------------------------------------------------------------- */

/* DRAW-01. u is a multiple of 2^-53 below 1, so the product is exact and below 2^64. */
inline __device__ uint64_t word_of_unit(double u)
{
    return static_cast<uint64_t>(u * 0x1p64);
}

inline __device__ uint64_t seed_of(const ag_seeds &s, int32_t i)
{
    return s.seed ? s.seed[i] : s.first + static_cast<uint64_t>(i);
}

inline __device__ uint64_t position_of(const ag_seeds &s, int32_t i)
{
    return s.ahead + (s.position ? s.position[i] : 0);
}

inline __device__ uint64_t random_word(uint64_t seed, uint64_t position, as_purpose purpose,
                                       uint32_t index)
{
    return as_word64(as_random(seed, position, purpose, index));
}

/* ---- The host's part. -------------------------------------------------------------------- */

/* A launch: its layout and meeting, its blocks and threads, and its shared memory before what
 * a kernel adds. */
struct launch {
    layout l;
    meeting m;
    unsigned blocks, threads;
    size_t shared;
};

/* Plans a launch over `cases` of `slots` rows of V each. The rows are shared when there are
 * fewer cases than processors and the scratch, which may be NULL, has room: among so many
 * blocks that all together give each processor two, as long as each has a stretch for each of
 * its warps. A shared row's blocks have 8 warps, a case's own block up to 16; small rows have
 * no more warps than stretches. It decides speed and no bit. */
as_status plan_launch(const ag_device *d, int32_t cases, int32_t slots, int32_t V,
                      const ag_scratch *s, launch *to, as_error *e);

} // namespace ag

#endif
