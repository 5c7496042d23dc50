/* attention.cu - see attention.h.
 *
 * Two kernels. The first computes m, l and o of ARI-17 for every row, query head and chunk of
 * 64 positions that the row sees; the second combines the chunks of a row and head (ARI-18).
 *
 * A chunk that the prefix fills is a page, the same for all rows of its sequence: one block
 * takes a run of rows with all query heads of the KV head, up to 32 queries at a time, so that
 * what is loaded serves them all; blocks of one page are neighbours in the grid, so that what
 * they share comes from the cache. A thread owns 4 positions x 4 queries for the scores, whose
 * chains of fma run over d, then 4 dimensions x 4 queries for the values, whose chains run over
 * the positions: either loads 16 bytes of keys or values and 16 of shared memory for 16 fma.
 * AHEAD loads of a thread are under way at a time, and all threads ask for the whole page
 * first.
 *
 * Up to FEW queries, one row of a model with up to as many query heads for a KV head, would so
 * keep few threads busy, each with many loads one after the other. A thread then owns one
 * position, or one dimension, x 4 queries, and has FAR loads of 4 bytes under way: for d = 128
 * it waits four times for keys and twice for values. The combination has its loads in the same
 * way. What lies beyond the end is loaded as the last is, and takes no part: a loop over the
 * rest would wait for each load by itself.
 *
 * Behind the pages every row has a path of its own (cache.h: seat, end): one block takes one
 * row, and a thread one position, wherever its key lies. Which block computes a chunk, with
 * which others, changes no order: the chains are those of one row alone. */
#include "gpu/lm/attention.h"

#include <cmath>
#include "gpu/device/block.cuh"
#include "gpu/lm/cache_at.h"
#include "ref/num/exp_core.h"

namespace
{

using namespace ag;

enum {
    THREADS = 128,
    WARPS = THREADS / LANES,
    QUERIES = 32, /* at a time */
    FEW = 8,
    APART = QUERIES + 4, /* floats from a position to the next: other banks, 16 bytes aligned */
    QUADS = AS_POSITIONS / 4,
    AHEAD = 8,
    FAR = 32,
    LINE = 32 /* floats of a prefetch */
};

struct job {
    ag_cache c;
    ag_rows r;
    ag_attention a;
    int32_t group; /* query heads of a KV head */
    int32_t tails; /* most rows of a run */
};

/* What the threads of a block share. */
struct block {
    const float **value; /* [64] where the value of each position lies */
    float *most;         /* [WARPS][QUERIES] greatest scores of parts of the positions */
    float *m;            /* [QUERIES] and of all */
    float *e;            /* [64][APART] scores, then their exponentials */
    float *query;        /* [d][APART] */
};

__device__ block block_of(unsigned char *shared)
{
    float *most = reinterpret_cast<float *>(shared + AS_POSITIONS * sizeof(float *));
    float *m = most + WARPS * QUERIES, *e = m + QUERIES;
    return block{reinterpret_cast<const float **>(shared), most, m, e,
                 e + AS_POSITIONS * APART};
}

size_t shared_bytes(int32_t d)
{
    return AS_POSITIONS * sizeof(float *) +
           ((WARPS + 1) * QUERIES + (AS_POSITIONS + static_cast<size_t>(d)) * APART) *
               sizeof(float);
}

/* Up to 32 queries of a block: number i is query head (first + i) % group of the KV head, in
 * row (first + i) / group from `row` on. */
struct batch {
    int32_t row, head, first, queries;
};

__device__ int32_t row_of(const job &j, const batch &b, int32_t i)
{
    return b.row + (b.first + i) / j.group;
}

__device__ int32_t head_of(const job &j, const batch &b, int32_t i)
{
    return b.head * j.group + (b.first + i) % j.group;
}

/* Where the sums of query i in chunk c stand. */
__device__ int64_t sums_at(const job &j, const batch &b, int32_t i, int32_t c)
{
    const int64_t row = row_of(j, b, i), head = head_of(j, b, i);
    return (row * j.a.heads + head) * j.a.chunks + c;
}

__device__ void load_queries(const job &j, const batch &b, const block &s)
{
    const int32_t d = j.c.d;
    for (int32_t n = warp(); n < b.queries; n += WARPS) {
        const float *q = j.a.q + row_of(j, b, n) * j.a.q_step + head_of(j, b, n) * d;
        UNROLL_BY(4)
        for (int32_t k = lane(); k < d; k += LANES) s.query[k * APART + n] = q[k];
    }
}

/* ---- Four fma chains of four queries each. ---------------------------------------------- */

struct chains {
    float4 of[4]; /* one for each of four positions or dimensions; its parts are queries */
};

__device__ __forceinline__ void step(float4 &c, const float4 &x, float y)
{
    c.x = __fmaf_rn(x.x, y, c.x);
    c.y = __fmaf_rn(x.y, y, c.y);
    c.z = __fmaf_rn(x.z, y, c.z);
    c.w = __fmaf_rn(x.w, y, c.w);
}

__device__ __forceinline__ void step(chains &c, const float4 &x, const float4 &y)
{
    step(c.of[0], x, y.x);
    step(c.of[1], x, y.y);
    step(c.of[2], x, y.z);
    step(c.of[3], x, y.w);
}

/* The terms of four chains from k on, COUNT of them or, where not ALL are below n, those that
 * are: `y(k)` is one number for the four, `x(k)` where theirs lie, in shared memory. */
template <int COUNT, bool ALL, class X, class Y>
__device__ __forceinline__ void far_steps(float4 &c, int32_t k, int32_t n, X x, Y y)
{
    float v[COUNT];
    UNROLL
    for (int a = 0; a < COUNT; a++) v[a] = y(ALL ? k + a : least(k + a, n - 1));
    UNROLL
    for (int a = 0; a < COUNT; a++) {
        float4 next = c;
        step(next, four(x(ALL ? k + a : least(k + a, n - 1))), v[a]);
        c = ALL || k + a < n ? next : c;
    }
}

/* All n terms. */
template <class X, class Y> __device__ __forceinline__ float4 far_chains(int32_t n, X x, Y y)
{
    float4 c = {};
    int32_t k = 0;
    UNROLL_BY(1)
    for (; k + FAR <= n; k += FAR) far_steps<FAR, true>(c, k, n, x, y);
    UNROLL_BY(1)
    for (; k < n; k += FAR / 2) far_steps<FAR / 2, false>(c, k, n, x, y);
    return c;
}

__device__ float4 scaled(const float4 &c, float scale)
{
    return float4{__fmul_rn(c.x, scale), __fmul_rn(c.y, scale), __fmul_rn(c.z, scale),
                  __fmul_rn(c.w, scale)};
}

/* Four floats of the cache: what is said so is loaded as what lies in device memory, wherever
 * the pointer came from. */
__device__ __forceinline__ float4 far_four(const float *p)
{
    return __ldca(reinterpret_cast<const float4 *>(p));
}

/* ---- Scores (ARI-14). ------------------------------------------------------------------- */

/* Of the 64 positions of a page; key is [d][64]. */
__device__ void page_scores(const job &j, const batch &b, const block &s, const float *key)
{
    const int32_t quad = thread() % QUADS, first = thread() / QUADS * 4, d = j.c.d;
    if (first >= b.queries) return;
    const float *query = s.query + first;
    chains c = {};
    int32_t k = 0;
    key += quad * 4;
    for (; k + AHEAD <= d; k += AHEAD) {
        float4 four_keys[AHEAD];
        UNROLL
        for (int a = 0; a < AHEAD; a++) four_keys[a] = far_four(key + (k + a) * AS_POSITIONS);
        UNROLL
        for (int a = 0; a < AHEAD; a++) step(c, four(query + (k + a) * APART), four_keys[a]);
    }
    for (; k < d; k++) step(c, four(query + k * APART), far_four(key + k * AS_POSITIONS));
    UNROLL
    for (int i = 0; i < 4; i++)
        *reinterpret_cast<float4 *>(s.e + (quad * 4 + i) * APART + first) =
            scaled(c.of[i], j.a.scale);
}

/* Of one position, the thread's own, whose key lies `apart` floats an element. */
__device__ void own_scores(const job &j, const batch &b, const block &s, const float *key,
                           int32_t apart)
{
    enum { TOGETHER = THREADS / AS_POSITIONS };
    const int32_t place = thread() % AS_POSITIONS;
    for (int32_t g = thread() / AS_POSITIONS * 4; g < b.queries; g += TOGETHER * 4) {
        const float *query = s.query + g;
        const float4 c = far_chains(
            j.c.d, [=](int32_t k) { return query + k * APART; },
            [=](int32_t k) { return __ldca(key + k * apart); });
        *reinterpret_cast<float4 *>(s.e + place * APART + g) = scaled(c, j.a.scale);
    }
}

/* ---- Sums (ARI-17). --------------------------------------------------------------------- */

/* m, and the exponentials in place of the scores, of the first n positions. */
__device__ void exponentials(const batch &b, const block &s, int32_t n)
{
    const int32_t query = lane();
    float greatest = -INFINITY;
    for (int32_t p = warp(); query < b.queries && p < n; p += WARPS) {
        const float score = s.e[p * APART + query];
        greatest = score > greatest ? score : greatest;
    }
    s.most[warp() * QUERIES + query] = greatest;
    __syncthreads();
    for (int32_t i = thread(); i < n * b.queries; i += THREADS) {
        const int32_t q = i % b.queries;
        float m = s.most[q], *e = s.e + i / b.queries * APART + q;
        for (int32_t w = 1; w < WARPS; w++) {
            const float other = s.most[w * QUERIES + q];
            m = other > m ? other : m;
        }
        *e = as_exp_core(__fsub_rn(*e, m));
        if (i < b.queries) s.m[q] = m;
    }
    __syncthreads();
}

/* m and l of each query, a thread each. */
__device__ void write_sums(const job &j, const batch &b, const block &s, int32_t c, int32_t n)
{
    const int32_t q = thread();
    if (q >= b.queries) return;
    float l = 0.0f;
    UNROLL_BY(16)
    for (int32_t p = 0; p < n; p++) l = __fadd_rn(l, s.e[p * APART + q]);
    j.a.m[sums_at(j, b, q, c)] = s.m[q];
    j.a.l[sums_at(j, b, q, c)] = l;
}

/* o, from where s.value says that the values lie. */
__device__ void write_own(const job &j, const batch &b, const block &s, int32_t c, int32_t n)
{
    const int32_t d = j.c.d, items = (b.queries + 3) / 4 * d;
    for (int32_t item = thread(); item < items; item += THREADS) {
        const int32_t i = item % d, first = item / d * 4;
        const float *e = s.e + first;
        const float4 sum = far_chains(
            n, [=](int32_t p) { return e + p * APART; },
            [&](int32_t p) { return __ldca(s.value[p] + i); });
        UNROLL
        for (int q = 0; q < 4; q++)
            if (first + q < b.queries)
                j.a.o[sums_at(j, b, first + q, c) * j.c.wide + i] = part(sum, q);
    }
}

/* o of a page; value is [64][wide]. */
__device__ void write_page(const job &j, const batch &b, const block &s, int32_t c,
                           const float *value)
{
    const int32_t wide = j.c.wide, quads = wide / 4, items = (b.queries + 3) / 4 * quads;
    for (int32_t item = thread(); item < items; item += THREADS) {
        const int32_t i = item % quads * 4, first = item / quads * 4;
        const float *e = s.e + first, *v = value + i;
        chains sum = {};
        UNROLL_BY(1)
        for (int32_t p = 0; p < AS_POSITIONS; p += AHEAD, e += AHEAD * APART) {
            float4 four_values[AHEAD];
            UNROLL
            for (int a = 0; a < AHEAD; a++) four_values[a] = far_four(v + (p + a) * wide);
            UNROLL
            for (int a = 0; a < AHEAD; a++) step(sum, four(e + a * APART), four_values[a]);
        }
        UNROLL
        for (int q = 0; q < 4; q++) {
            if (first + q >= b.queries) continue;
            *reinterpret_cast<float4 *>(j.a.o + sums_at(j, b, first + q, c) * wide + i) =
                float4{part(sum.of[0], q), part(sum.of[1], q), part(sum.of[2], q),
                       part(sum.of[3], q)};
        }
    }
}

/* ---- Chunks. ---------------------------------------------------------------------------- */

/* The first n positions of chunk c. Thread and position p share the key of p, whose elements
 * lie `apart`; where its value lies s.value says. */
struct seen {
    int32_t c, n;
    const float *key;
    int32_t apart;
    const float *page; /* keys [d][64] and values [64][wide] of all 64, or NULL */
};

/* For `queries` of the KV head, from row `row` of the tile on. */
__device__ __forceinline__ void see(const job &j, const block &s, int32_t row, int32_t head,
                                    int32_t queries, const seen &x)
{
    for (int32_t first = 0; first < queries; first += QUERIES) {
        const batch b = {row, head, first, least(queries - first, QUERIES)};
        const bool many = x.page && b.queries > FEW;
        load_queries(j, b, s);
        __syncthreads();
        if (many)
            page_scores(j, b, s, x.page);
        else if (thread() % AS_POSITIONS < x.n)
            own_scores(j, b, s, x.key, x.apart);
        __syncthreads();
        exponentials(b, s, x.n);
        write_sums(j, b, s, x.c, x.n);
        if (many)
            write_page(j, b, s, x.c, x.page + AS_POSITIONS * j.c.d);
        else
            write_own(j, b, s, x.c, x.n);
        __syncthreads();
    }
}

/* Position p of a page. */
__device__ void find_in_page(const job &j, const block &s, const float *page, int32_t p,
                             seen &x)
{
    x.key = page + p;
    x.apart = AS_POSITIONS;
    if (thread() < AS_POSITIONS) s.value[p] = page + AS_POSITIONS * j.c.d + p * j.c.wide;
}

/* Page c of a sequence; n = 0 where there is none. */
__device__ seen find_page(const job &j, const block &s, int32_t sequence, int32_t head,
                          int32_t c)
{
    seen x = {c, 0, nullptr, 0, nullptr};
    if (c >= j.c.length[sequence] / AS_POSITIONS) return x;
    x.n = AS_POSITIONS;
    x.page = ag_chunk_at(j.c, ag_page_of(j.c, sequence, c), j.a.layer, head);
    for (int32_t i = thread() * LINE; i < AS_POSITIONS * (j.c.d + j.c.wide);
         i += THREADS * LINE)
        prefetch(x.page + i);
    find_in_page(j, s, x.page, thread() % AS_POSITIONS, x);
    return x;
}

/* The chunk in which row `at` of the forward stands, up to it. */
__device__ seen find_path(const job &j, const block &s, int32_t sequence, int32_t head,
                          int32_t at)
{
    const int32_t p = thread() % AS_POSITIONS, position = j.r.position[at];
    seen x = {position / AS_POSITIONS, position % AS_POSITIONS + 1, nullptr, 1, nullptr};
    if (p >= x.n) return x;
    const int32_t seat = j.r.seat[static_cast<int64_t>(at) * AS_POSITIONS + p];
    if (seat >= 0) {
        x.key = ag_waiting_at(j.c, j.a.layer, 0, sequence, seat, head);
        if (thread() < AS_POSITIONS)
            s.value[p] = ag_waiting_at(j.c, j.a.layer, 1, sequence, seat, head);
    } else {
        const int32_t page = ag_page_of(j.c, sequence, x.c);
        find_in_page(j, s, ag_chunk_at(j.c, page, j.a.layer, head), p, x);
    }
    return x;
}

/* Page z - tails for all rows of a run or, before those, what row z of it sees behind the
 * pages, the last chunk first. */
__device__ void see_run(const job &j, const block &s, const ag_run &run, int32_t head,
                        int32_t z)
{
    const bool is_page = z >= j.tails;
    const int32_t row = is_page ? run.first : run.first + z;
    if (!is_page && z >= run.rows) return;
    const int32_t sequence = j.r.sequence[j.a.first + row];
    for (int32_t at = j.a.first + row; at >= 0; at = is_page ? -1 : j.r.end[at]) {
        const seen x = is_page ? find_page(j, s, sequence, head, z - j.tails)
                               : find_path(j, s, sequence, head, at);
        see(j, s, row, head, x.n == 0 ? 0 : is_page ? run.rows * j.group : j.group, x);
    }
}

/* Block x is a run and KV head, z a row of the run or, behind those, a page. */
__global__ void __launch_bounds__(THREADS, 4) attend(job j)
{
    take_turn();
    SHARED(unsigned char, shared);
    const block s = block_of(shared);
    const int32_t head = static_cast<int32_t>(blockIdx.x) / j.a.run_bound;
    const int32_t runs = *j.a.runs;
    for (int32_t i = static_cast<int32_t>(blockIdx.x) % j.a.run_bound; i < runs;
         i += j.a.run_bound)
        see_run(j, s, j.a.run[i], head, static_cast<int32_t>(blockIdx.z));
}

/* ---- The combination (ARI-18). ---------------------------------------------------------- */

/* The greatest m of the chunks, in every thread. `shared` is [THREADS]. */
__device__ float greatest_of(const float *m, int32_t chunks, float *shared)
{
    float greatest = -INFINITY;
    UNROLL_BY(8)
    for (int32_t c = thread(); c < chunks; c += threads())
        greatest = m[c] > greatest ? m[c] : greatest;
    UNROLL
    for (int bits = LANES / 2; bits > 0; bits /= 2) {
        const float other = __shfl_xor_sync(FULL, greatest, bits);
        greatest = other > greatest ? other : greatest;
    }
    if (lane() == 0) shared[warp()] = greatest;
    __syncthreads();
    for (int32_t w = 0; w < warps(); w++)
        greatest = shared[w] > greatest ? shared[w] : greatest;
    __syncthreads();
    return greatest;
}

/* The terms of COUNT chunks in their order or, where they are not ALL, of the first n: their
 * weights and sums l in shared memory, and o on the device, `apart` from one to the next. */
template <int COUNT, bool ALL>
__device__ __forceinline__ void add_chunks(const float *weight, const float *l, const float *o,
                                           int32_t apart, int32_t n, float &L, float &O)
{
    float v[COUNT];
    UNROLL
    for (int a = 0; a < COUNT; a++) v[a] = o[(ALL ? a : least(a, n - 1)) * apart];
    UNROLL
    for (int a = 0; a < COUNT; a += 4) {
        const float4 four_weights = four(weight + a), four_l = four(l + a);
        UNROLL
        for (int i = 0; i < 4; i++) {
            const float w = part(four_weights, i);
            const float next_L = __fmaf_rn(w, part(four_l, i), L);
            const float next_O = __fmaf_rn(w, v[a + i], O);
            L = ALL || a + i < n ? next_L : L;
            O = ALL || a + i < n ? next_O : O;
        }
    }
}

/* A block has one row and head, and as many dimensions as threads; a thread beyond the last
 * dimension goes with it, and writes nothing. The weights of as many chunks are computed at a
 * time, a thread each; L every thread adds by itself. */
__global__ void __launch_bounds__(THREADS, 6) combine(job j)
{
    take_turn();
    SHARED(float, shared); /* [2][threads()]: weights and sums l */
    float *const l = shared + threads();
    const int64_t row = blockIdx.x / static_cast<unsigned>(j.a.heads);
    const int32_t head = static_cast<int32_t>(blockIdx.x) % j.a.heads;
    const int32_t i = static_cast<int32_t>(blockIdx.y) * threads() + thread();
    const int32_t position = j.r.position[j.a.first + row];
    const int64_t at = (row * j.a.heads + head) * j.a.chunks;
    const float *o = j.a.o + at * j.c.wide + least(i, j.c.d - 1);
    const int32_t chunks = position < 0 ? 0 : position / AS_POSITIONS + 1;
    const float M = greatest_of(j.a.m + at, chunks, shared);
    float L = 0.0f, O = 0.0f;
    for (int32_t first = 0; first < chunks; first += threads()) {
        const int32_t here = least(chunks - first, threads());
        if (thread() < here) {
            shared[thread()] = as_exp_core(__fsub_rn(j.a.m[at + first + thread()], M));
            l[thread()] = j.a.l[at + first + thread()];
        }
        __syncthreads();
        int32_t c = 0;
        UNROLL_BY(1)
        for (; c + FAR <= here; c += FAR, o += FAR * j.c.wide)
            add_chunks<FAR, true>(shared + c, l + c, o, j.c.wide, FAR, L, O);
        UNROLL_BY(1)
        for (; c < here; c += FAR / 2, o += FAR / 2 * j.c.wide)
            add_chunks<FAR / 2, false>(shared + c, l + c, o, j.c.wide, here - c, L, O);
        __syncthreads();
    }
    if (i < j.c.d)
        j.a.out[row * j.a.out_step + head * j.c.d + i] = position < 0 ? 0.0f : __fdiv_rn(O, L);
}

as_status launch_attend(const ag_device *d, const job &j, as_error *e)
{
    const size_t bytes = shared_bytes(j.c.d);
    const as_status s = allow_shared<attend>(d, bytes, "attend", e);
    if (s != AS_OK) return s;
    const dim3 grid(static_cast<unsigned>(j.a.run_bound * j.c.kv_heads), 1,
                    static_cast<unsigned>(j.tails + j.a.chunks));
    LAUNCH(attend, grid, THREADS, bytes, d, j);
    return ag_launched("attend", e);
}

as_status launch_combine(const ag_device *d, const job &j, as_error *e)
{
    const unsigned wanted = blocks_for(j.c.d, LANES) * LANES, most = THREADS;
    const unsigned width = wanted < most ? wanted : most;
    const dim3 grid(static_cast<unsigned>(j.a.rows * j.a.heads),
                    blocks_for(j.c.d, static_cast<int32_t>(width)));
    LAUNCH(combine, grid, width, 2 * width * sizeof(float), d, j);
    return ag_launched("combine", e);
}

} // namespace

/* ---- What attention.h promises. --------------------------------------------------------- */

extern "C" int32_t ag_run_rows(const ag_cache *c, int32_t heads)
{
    const int32_t group = heads / c->kv_heads;
    return group < QUERIES ? QUERIES / group : 1;
}

extern "C" as_status ag_attention_fits(const ag_device *d, const ag_cache *c, as_error *e)
{
    const size_t bytes = shared_bytes(c->d);
    if (bytes <= d->shared) return AS_OK;
    return as_fail(e, AS_LIMIT,
                   "GPU: heads of %d need %zu bytes of shared memory; a block of this device "
                   "has %zu",
                   c->d, bytes, d->shared);
}

extern "C" as_status ag_attend(const ag_device *d, const ag_cache *c, const ag_rows *r,
                               const ag_attention *a, as_error *e)
{
    const int32_t most = ag_run_rows(c, a->heads);
    const job j = {*c, *r, *a, a->heads / c->kv_heads, most < a->rows ? most : a->rows};
    const as_status s = launch_attend(d, j, e);
    return s == AS_OK ? launch_combine(d, j, e) : s;
}
