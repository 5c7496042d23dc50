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
 * AHEAD loads are under way at a time.
 *
 * Behind the pages every row has a path of its own (cache.h: seat, end): one block takes one
 * row, and a thread one position, wherever its key lies. Which block computes a chunk, with
 * which others, changes no order: the chains are those of one row alone. */
#include "gpu/attention.h"

#include <cmath>
#include "gpu/cache_at.h"
#include "gpu/cuda.h"
#include "ref/num/exp_core.h"

namespace
{

enum {
    THREADS = 128,
    WARPS = THREADS / 32,
    QUERIES = 32,        /* at a time */
    APART = QUERIES + 4, /* floats from a position to the next: other banks, 16 bytes aligned */
    QUADS = AS_POSITIONS / 4,
    AHEAD = 8
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

__device__ int32_t thread()
{
    return static_cast<int32_t>(threadIdx.x);
}

__device__ int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

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
    for (int32_t i = thread(); i < b.queries * d; i += THREADS) {
        const int32_t n = i / d, k = i % d;
        const int64_t at = row_of(j, b, n) * j.a.q_step + head_of(j, b, n) * d;
        s.query[k * APART + n] = j.a.q[at + k];
    }
}

/* ---- Four fma chains of four queries each. ------------------------------------------------
 */

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

__device__ __forceinline__ float4 four(const float *p)
{
    return *reinterpret_cast<const float4 *>(p);
}

__device__ float4 scaled(const float4 &c, float scale)
{
    return float4{__fmul_rn(c.x, scale), __fmul_rn(c.y, scale), __fmul_rn(c.z, scale),
                  __fmul_rn(c.w, scale)};
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
        for (int a = 0; a < AHEAD; a++) four_keys[a] = four(key + (k + a) * AS_POSITIONS);
        UNROLL
        for (int a = 0; a < AHEAD; a++) step(c, four(query + (k + a) * APART), four_keys[a]);
    }
    for (; k < d; k++) step(c, four(query + k * APART), four(key + k * AS_POSITIONS));
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
    const int32_t place = thread() % AS_POSITIONS, d = j.c.d;
    for (int32_t g = thread() / AS_POSITIONS * 4; g < b.queries; g += TOGETHER * 4) {
        float4 c = {};
        int32_t k = 0;
        for (; k + AHEAD <= d; k += AHEAD) {
            float keys[AHEAD];
            UNROLL
            for (int a = 0; a < AHEAD; a++) keys[a] = key[(k + a) * apart];
            UNROLL
            for (int a = 0; a < AHEAD; a++)
                step(c, four(s.query + (k + a) * APART + g), keys[a]);
        }
        for (; k < d; k++) step(c, four(s.query + k * APART + g), key[k * apart]);
        *reinterpret_cast<float4 *>(s.e + place * APART + g) = scaled(c, j.a.scale);
    }
}

/* ---- Sums (ARI-17). --------------------------------------------------------------------- */

/* m, and the exponentials in place of the scores, of the first n positions. */
__device__ void exponentials(const batch &b, const block &s, int32_t n)
{
    const int32_t query = thread() % 32, warp = thread() / 32;
    float greatest = -INFINITY;
    for (int32_t p = warp; query < b.queries && p < n; p += WARPS) {
        const float score = s.e[p * APART + query];
        greatest = score > greatest ? score : greatest;
    }
    s.most[warp * QUERIES + query] = greatest;
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
    for (int32_t p = 0; p < n; p++) l = __fadd_rn(l, s.e[p * APART + q]);
    j.a.m[sums_at(j, b, q, c)] = s.m[q];
    j.a.l[sums_at(j, b, q, c)] = l;
}

__device__ float part(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* o: `value(p)` is where the value of position p lies. */
template <class F>
__device__ void write_values(const job &j, const batch &b, const block &s, int32_t c, int32_t n,
                             F value)
{
    const int32_t quads = j.c.wide / 4, items = (b.queries + 3) / 4 * quads;
    for (int32_t item = thread(); item < items; item += THREADS) {
        const int32_t i = item % quads * 4, first = item / quads * 4;
        const float *e = s.e + first;
        chains sum = {};
        int32_t p = 0;
        for (; p + AHEAD <= n; p += AHEAD, e += AHEAD * APART) {
            float4 four_values[AHEAD];
            UNROLL
            for (int a = 0; a < AHEAD; a++) four_values[a] = four(value(p + a) + i);
            UNROLL
            for (int a = 0; a < AHEAD; a++) step(sum, four(e + a * APART), four_values[a]);
        }
        for (; p < n; p++, e += APART) step(sum, four(e), four(value(p) + i));
        UNROLL
        for (int q = 0; q < 4; q++) {
            if (first + q >= b.queries) continue;
            *reinterpret_cast<float4 *>(j.a.o + sums_at(j, b, first + q, c) * j.c.wide + i) =
                float4{part(sum.of[0], q), part(sum.of[1], q), part(sum.of[2], q),
                       part(sum.of[3], q)};
        }
    }
}

/* ---- Chunks. ---------------------------------------------------------------------------- */

/* A page, for the rows of a run. */
__device__ void see_page(const job &j, const block &s, const ag_run &run, int32_t head,
                         int32_t c)
{
    const int32_t sequence = j.r.sequence[j.a.first + run.first];
    if (c >= j.c.length[sequence] / AS_POSITIONS) return;
    const float *key = ag_chunk_at(j.c, ag_page_of(j.c, sequence, c), j.a.layer, head);
    const float *values = key + AS_POSITIONS * j.c.d;
    const int32_t queries = run.rows * j.group, wide = j.c.wide;
    for (int32_t first = 0; first < queries; first += QUERIES) {
        const batch b = {run.first, head, first, least(queries - first, QUERIES)};
        load_queries(j, b, s);
        __syncthreads();
        page_scores(j, b, s, key);
        __syncthreads();
        exponentials(b, s, AS_POSITIONS);
        write_sums(j, b, s, c, AS_POSITIONS);
        write_values(j, b, s, c, AS_POSITIONS, [=](int32_t p) { return values + p * wide; });
        __syncthreads();
    }
}

/* The first n positions of chunk c, up to row `at` of the forward, for row `row` of the tile.
 * Thread and position p share the key of p; where its value lies all threads learn. */
__device__ void see_path(const job &j, const block &s, int32_t row, int32_t head, int32_t at,
                         int32_t c, int32_t n)
{
    const int32_t p = thread() % AS_POSITIONS, sequence = j.r.sequence[at];
    const float *key = nullptr;
    int32_t apart = 1;
    if (p < n) {
        const int32_t seat = j.r.seat[static_cast<int64_t>(at) * AS_POSITIONS + p];
        const float *value;
        if (seat >= 0) {
            key = ag_waiting_at(j.c, j.a.layer, 0, sequence, seat, head);
            value = ag_waiting_at(j.c, j.a.layer, 1, sequence, seat, head);
        } else {
            const float *chunk =
                ag_chunk_at(j.c, ag_page_of(j.c, sequence, c), j.a.layer, head);
            key = chunk + p;
            apart = AS_POSITIONS;
            value = chunk + AS_POSITIONS * j.c.d + p * j.c.wide;
        }
        if (thread() < AS_POSITIONS) s.value[p] = value;
    }
    for (int32_t first = 0; first < j.group; first += QUERIES) {
        const batch b = {row, head, first, least(j.group - first, QUERIES)};
        load_queries(j, b, s);
        __syncthreads();
        if (p < n) own_scores(j, b, s, key, apart);
        __syncthreads();
        exponentials(b, s, n);
        write_sums(j, b, s, c, n);
        write_values(j, b, s, c, n, [&](int32_t i) { return s.value[i]; });
        __syncthreads();
    }
}

/* A row's chunks behind the pages, the last one first. */
__device__ void see_tail(const job &j, const block &s, int32_t row, int32_t head)
{
    for (int32_t at = j.a.first + row; at >= 0; at = j.r.end[at]) {
        const int32_t position = j.r.position[at];
        see_path(j, s, row, head, at, position / AS_POSITIONS, position % AS_POSITIONS + 1);
    }
}

/* Block x is a run and KV head, z a row of the run or, behind those, a page. */
__global__ void __launch_bounds__(THREADS, 4) attend(job j)
{
    SHARED(unsigned char, shared);
    const block s = block_of(shared);
    const int32_t head = static_cast<int32_t>(blockIdx.x) / j.a.run_bound;
    const int32_t z = static_cast<int32_t>(blockIdx.z), runs = *j.a.runs;
    for (int32_t i = static_cast<int32_t>(blockIdx.x) % j.a.run_bound; i < runs;
         i += j.a.run_bound) {
        const ag_run run = j.a.run[i];
        if (z >= j.tails)
            see_page(j, s, run, head, z - j.tails);
        else if (z < run.rows)
            see_tail(j, s, run.first + z, head);
    }
}

/* ---- The combination (ARI-18). ---------------------------------------------------------- */

/* The greatest m of the chunks, in every thread. `shared` is [THREADS]. */
__device__ float greatest_of(const float *m, int32_t chunks, float *shared)
{
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    float greatest = -INFINITY;
    for (int32_t c = thread(); c < chunks; c += threads)
        greatest = m[c] > greatest ? m[c] : greatest;
    UNROLL
    for (int bits = 16; bits > 0; bits /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, greatest, bits);
        greatest = other > greatest ? other : greatest;
    }
    if (thread() % 32 == 0) shared[thread() / 32] = greatest;
    __syncthreads();
    for (int32_t w = 0; w < threads / 32; w++)
        greatest = shared[w] > greatest ? shared[w] : greatest;
    __syncthreads();
    return greatest;
}

/* A block has one row and head, and as many dimensions as threads. The weights of as many
 * chunks are computed at a time, a thread each; L every thread adds by itself. */
__global__ void __launch_bounds__(THREADS, 8) combine(job j)
{
    SHARED(float, shared); /* [2][blockDim]: weights and sums l */
    const int32_t threads = static_cast<int32_t>(blockDim.x);
    const int64_t row = blockIdx.x / static_cast<unsigned>(j.a.heads);
    const int32_t head = static_cast<int32_t>(blockIdx.x) % j.a.heads;
    const int32_t i = static_cast<int32_t>(blockIdx.y) * threads + thread();
    const int32_t position = j.r.position[j.a.first + row];
    const int64_t at = (row * j.a.heads + head) * j.a.chunks;
    const float *o = j.a.o + at * j.c.wide + i;
    const int32_t chunks = position < 0 ? 0 : position / AS_POSITIONS + 1;
    const float M = greatest_of(j.a.m + at, chunks, shared);
    float L = 0.0f, O = 0.0f;
    for (int32_t first = 0; first < chunks; first += threads) {
        const int32_t here = least(chunks - first, threads);
        if (thread() < here) {
            shared[thread()] = as_exp_core(__fsub_rn(j.a.m[at + first + thread()], M));
            shared[threads + thread()] = j.a.l[at + first + thread()];
        }
        __syncthreads();
        for (int32_t c = 0; c < here; c++) {
            L = __fmaf_rn(shared[c], shared[threads + c], L);
            if (i < j.c.d)
                O = __fmaf_rn(shared[c], o[static_cast<int64_t>(first + c) * j.c.wide], O);
        }
        __syncthreads();
    }
    if (i < j.c.d)
        j.a.out[row * j.a.out_step + head * j.c.d + i] = position < 0 ? 0.0f : __fdiv_rn(O, L);
}

as_status launch_attend(const ag_device *d, const job &j, as_error *e)
{
    const size_t bytes = shared_bytes(j.c.d);
    static size_t known = 48 << 10; /* what a launch may have; the device is one */
    if (bytes > known) {
        (void)cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(bytes));
        known = bytes;
    }
    const dim3 grid(static_cast<unsigned>(j.a.run_bound * j.c.kv_heads), 1,
                    static_cast<unsigned>(j.tails + j.a.chunks));
    LAUNCH(attend, grid, THREADS, bytes, static_cast<cudaStream_t>(d->stream), j);
    return ag_launched("attend", e);
}

as_status launch_combine(const ag_device *d, const job &j, as_error *e)
{
    const int32_t warps = (j.c.d + 31) / 32, width = 32 * (warps < WARPS ? warps : WARPS);
    const unsigned threads = static_cast<unsigned>(width);
    const dim3 grid(static_cast<unsigned>(j.a.rows * j.a.heads),
                    static_cast<unsigned>((j.c.d + width - 1) / width));
    LAUNCH(combine, grid, threads, 2 * threads * sizeof(float),
           static_cast<cudaStream_t>(d->stream), j);
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
