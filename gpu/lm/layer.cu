/* layer.cu - see layer.h.
 *
 * None of this is much work beside the products: what counts is how often a thread waits for
 * memory, one access after the other. Rows are few, so where elements are independent a thread
 * has one or four of them, and all loads are under way at once.
 *
 * A norm needs its row as a whole. A block of up to 1,024 threads has it, 8 elements a thread
 * in registers, of 8,192 at a time, loaded before anything is stored: what is stored might be
 * what a later load reads, so no load passes a store. The chunks of dot(x, x), whose chains are
 * independent (ARI-05), are walked side by side by a thread each, out of shared memory where
 * chunk j begins at 132 j, so that the threads' 16 bytes lie in different banks. The lanes of a
 * warp tell each other the chunk sums and add groups of them, and every thread adds the groups,
 * all in their order, by itself. */
#include "gpu/lm/layer.h"

#include "gpu/device/block.cuh"
#include "gpu/lm/cache_at.h"
#include "ref/num/exp_core.h"
#include "ref/num/widen.h"

namespace
{

using namespace ag;

enum {
    THREADS = 256,
    WARPS = 4,                                  /* heads of a block */
    MOST_THREADS = 1024,                        /* of a norm, */
    OWN = 2,                                    /* each with so many times four elements, */
    CHUNKS = 4 * OWN * MOST_THREADS / AS_CHUNK, /* and these in shared memory, */
    APART = AS_CHUNK + 4                        /* so many floats from one to the next */
};

/* ---- Rows in and out. ------------------------------------------------------------------- */

struct embedding_rows {
    ag_matrix m;
    const int32_t *token, *sequence;
    float *x;
    int64_t step;
};

__global__ void embed(embedding_rows j)
{
    take_turn();
    const int32_t row = static_cast<int32_t>(blockIdx.x), token = j.token[row];
    const bool there = j.sequence[row] >= 0;
    const int32_t apart = j.m.in_rows ? 1 : AS_PANEL;
    const int64_t start = static_cast<int64_t>(token / apart) * j.m.K * apart + token % apart;
    const int32_t k = static_cast<int32_t>(blockIdx.y) * THREADS + thread();
    if (k >= j.m.K) return;
    const int64_t i = start + static_cast<int64_t>(k) * apart;
    float x = 0.0f;
    if (there && j.m.storage == AS_F32)
        x = static_cast<const float *>(j.m.panel)[i];
    else if (there && j.m.storage == AS_F16)
        x = as_widen_f16(static_cast<const uint16_t *>(j.m.panel)[i]);
    else if (there)
        x = as_widen_bf16(static_cast<const uint16_t *>(j.m.panel)[i]);
    j.x[row * j.step + k] = x;
}

__global__ void gather(const float *from, int64_t from_step, const int32_t *index, int32_t n,
                       float *to, int64_t to_step)
{
    take_turn();
    const int32_t k = static_cast<int32_t>(blockIdx.y) * THREADS + thread();
    if (k < n) to[blockIdx.x * to_step + k] = from[index[blockIdx.x] * from_step + k];
}

/* ---- RMSNorm. --------------------------------------------------------------------------- */

/* ARI-05 for dot(x, x), of which x, in shared memory, is a chunk, aligned to 16 bytes. */
__device__ float square_chunk(const float *x, int32_t length)
{
    enum { AHEAD = 8 };
    float c = 0.0f;
    int32_t k = 0;
    UNROLL_BY(1)
    for (; k + 4 * AHEAD <= length; k += 4 * AHEAD) {
        float4 v[AHEAD];
        UNROLL
        for (int a = 0; a < AHEAD; a++) v[a] = four(x + k + 4 * a);
        UNROLL
        for (int a = 0; a < 4 * AHEAD; a++) {
            const float one = part(v[a / 4], a % 4);
            c = __fmaf_rn(one, one, c);
        }
    }
    UNROLL_BY(1)
    for (; k < length; k++) c = __fmaf_rn(x[k], x[k], c);
    return c;
}

/* r of ARI-09. */
__device__ float inverse_root(float ss, int32_t n, float eps)
{
    const float mean = __fdiv_rn(ss, static_cast<float>(n));
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}

/* A block's row. */
struct normed {
    float *x, *out;
    const float *y, *gain; /* y may be NULL */
    int32_t n;
};

/* What is done with V, one element or four: the latter where n is a multiple of 4. */
__device__ __forceinline__ float sum_of(float a, float b)
{
    return __fadd_rn(a, b);
}
__device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b)
{
    return float4{sum_of(a.x, b.x), sum_of(a.y, b.y), sum_of(a.z, b.z), sum_of(a.w, b.w)};
}
/* ARI-09. */
__device__ __forceinline__ float norm_of(float x, float r, float gain)
{
    return __fmul_rn(__fmul_rn(x, r), gain);
}
__device__ __forceinline__ float4 norm_of(const float4 &x, float r, const float4 &g)
{
    return float4{norm_of(x.x, r, g.x), norm_of(x.y, r, g.y), norm_of(x.z, r, g.z),
                  norm_of(x.w, r, g.w)};
}

/* A thread's part of a piece of the row. */
template <class V> struct owned {
    enum { WIDTH = sizeof(V) / sizeof(float), PIECE = OWN * WIDTH * MOST_THREADS };
    V x[OWN], gain[OWN];
    /* Where in a piece V number i stands. */
    static __device__ int32_t at(int i) { return WIDTH * (i * threads() + thread()); }
};

/* V number `at` of n elements; 0 where there is none. */
template <class V> __device__ __forceinline__ V load(const float *p, int32_t at, int32_t n)
{
    V v = {};
    if (at < n) v = *reinterpret_cast<const V *>(p + at);
    return v;
}

template <class V>
__device__ __forceinline__ void store(float *p, int32_t at, int32_t n, const V &v)
{
    if (at < n) *reinterpret_cast<V *>(p + at) = v;
}

/* Elements and gains of the piece that begins at `first`. */
template <class V>
__device__ __forceinline__ owned<V> load_piece(const normed &w, int32_t first)
{
    owned<V> v;
    UNROLL
    for (int i = 0; i < OWN; i++) {
        v.x[i] = load<V>(w.x, first + v.at(i), w.n);
        v.gain[i] = load<V>(w.gain, first + v.at(i), w.n);
    }
    return v;
}

/* ARI-21. */
template <class V>
__device__ __forceinline__ void add_piece(const normed &w, int32_t first, owned<V> &v)
{
    V y[OWN];
    UNROLL
    for (int i = 0; i < OWN; i++) y[i] = load<V>(w.y, first + v.at(i), w.n);
    UNROLL
    for (int i = 0; i < OWN; i++) {
        v.x[i] = sum_of(v.x[i], y[i]);
        store(w.x, first + v.at(i), w.n, v.x[i]);
    }
}

/* ARI-06: the sum of the group that chunk number `chunk` of a piece is in, from its lane's c
 * and those of the lanes beside it. */
__device__ float sum_group(float c, int32_t chunk, int32_t chunks)
{
    const int32_t first = chunk / AS_GROUP * AS_GROUP;
    float g = 0.0f;
    UNROLL
    for (int i = 0; i < AS_GROUP; i++) {
        const float next = __fadd_rn(g, __shfl_sync(FULL, c, (first + i) % LANES));
        g = first + i < chunks ? next : g;
    }
    return g;
}

/* The groups of the `here` elements of a piece, of which a thread has v, added to ss. Behind
 * it all threads have had their last look at `piece`. */
template <class V>
__device__ float add_squares(const owned<V> &v, int32_t here, float *piece, float *sum,
                             float ss)
{
    UNROLL
    for (int i = 0; i < OWN; i++)
        store(piece + v.at(i) / AS_CHUNK * (APART - AS_CHUNK), v.at(i), here, v.x[i]);
    __syncthreads();
    const int32_t chunks = (here + AS_CHUNK - 1) / AS_CHUNK, c = thread();
    if (warp() * LANES < chunks) { /* whole warps */
        const int32_t length = least(here - c * AS_CHUNK, AS_CHUNK);
        const float own = length > 0 ? square_chunk(piece + c * APART, length) : 0.0f;
        const float g = sum_group(own, c, chunks);
        if (c % AS_GROUP == 0 && c < chunks) sum[c / AS_GROUP] = g;
    }
    __syncthreads();
    for (int32_t g = 0; g * AS_GROUP < chunks; g++) ss = __fadd_rn(ss, sum[g]);
    return ss;
}

template <class V>
__device__ __forceinline__ void write_piece(const normed &w, int32_t first, const owned<V> &v,
                                            float r)
{
    UNROLL
    for (int i = 0; i < OWN; i++)
        store(w.out, first + v.at(i), w.n, norm_of(v.x[i], r, v.gain[i]));
}

/* One block a row. The last piece, which is all of most rows, is still in registers when the
 * root is known; a thread reads again what it wrote itself of those before. */
template <class V> __global__ void __launch_bounds__(MOST_THREADS) add_norm(ag_norm j)
{
    take_turn();
    enum { PIECE = owned<V>::PIECE };
    static_assert(PIECE % (AS_CHUNK * AS_GROUP) == 0, "whole groups");
    SHARED(float, piece);                /* [CHUNKS][APART] */
    float *sum = piece + CHUNKS * APART; /* [CHUNKS / AS_GROUP] */
    const normed w = {j.x + blockIdx.x * j.x_step, j.out + blockIdx.x * j.out_step,
                      j.y ? j.y + blockIdx.x * j.y_step : nullptr, j.gain, j.n};
    owned<V> v;
    int32_t first = 0;
    float ss = 0.0f;
    for (;; first += PIECE) {
        v = load_piece<V>(w, first);
        if (w.y) add_piece(w, first, v);
        ss = add_squares(v, least(w.n - first, PIECE), piece, sum, ss);
        if (w.n - first <= PIECE) break;
    }
    const float r = inverse_root(ss, w.n, j.eps);
    for (;; first -= PIECE) {
        write_piece(w, first, v, r);
        if (first == 0) return;
        v = load_piece<V>(w, first - PIECE);
    }
}

template <class V> void launch_norm(const ag_device *d, const ag_norm &j)
{
    const unsigned most = MOST_THREADS;
    const unsigned wanted = blocks_for(j.n, owned<V>::WIDTH * LANES) * LANES; /* a V each */
    LAUNCH(add_norm<V>, static_cast<unsigned>(j.rows), wanted < most ? wanted : most,
           CHUNKS * (APART * sizeof(float)) + CHUNKS / AS_GROUP * sizeof(float), d, j);
}

/* ---- Queries, keys, values. ------------------------------------------------------------- */

/* RMSNorm of a head [d] in shared memory by a warp; d is at most one group of chunks. */
__device__ void norm_head(float *x, int32_t d, const float *gain, float eps)
{
    const int32_t left = d - lane() * AS_CHUNK;
    const float c =
        left > 0 ? square_chunk(x + lane() * AS_CHUNK, least(left, AS_CHUNK)) : 0.0f;
    float g = 0.0f;
    for (int32_t i = 0; i * AS_CHUNK < d; i++) g = __fadd_rn(g, __shfl_sync(FULL, c, i));
    const float r = inverse_root(__fadd_rn(0.0f, g), d, eps);
    __syncwarp(); /* everyone has read x */
    for (int32_t i = lane(); i < d; i += LANES) x[i] = __fmul_rn(__fmul_rn(x[i], r), gain[i]);
    __syncwarp();
}

/* ARI-13, from shared memory to its place. */
__device__ void rotate_head(const float *x, int32_t d, const float *cosine, const float *sine,
                            float *to)
{
    for (int32_t i = lane(); i < d / 2; i += LANES) {
        const float a = x[i], b = x[i + d / 2], c = cosine[i], s = sine[i];
        to[i] = __fmaf_rn(a, c, -__fmul_rn(b, s));
        to[i + d / 2] = __fmaf_rn(b, c, __fmul_rn(a, s));
    }
}

/* A warp takes one head of one row: a query's, a key's or a value's. */
__global__ void __launch_bounds__(WARPS * 32) turn_heads(ag_cache c, ag_rows r, ag_heads j)
{
    take_turn();
    SHARED(float, shared); /* [WARPS][wide] */
    const int32_t d = c.d, part = static_cast<int32_t>(blockIdx.x) * WARPS + warp();
    const int32_t row = static_cast<int32_t>(blockIdx.y), at = j.first + row;
    const int32_t position = r.position[at], key = part - j.heads, value = key - c.kv_heads;
    if (value >= c.kv_heads || position < 0) return;
    float *head = j.y + row * j.step + static_cast<int64_t>(part) * d;
    float *x = shared + warp() * c.wide;
    const float *bias = j.bias ? j.bias + static_cast<int64_t>(part) * d : nullptr;
    for (int32_t i = lane(); i < d; i += LANES)
        x[i] = bias ? __fadd_rn(head[i], bias[i]) : head[i];
    __syncwarp();
    if (value >= 0) {
        float *to = ag_waiting_at(c, j.layer, 1, r.sequence[at], at, value);
        for (int32_t i = lane(); i < d; i += LANES) to[i] = x[i];
        return;
    }
    const float *gain = key < 0 ? j.q_norm : j.k_norm;
    if (gain) norm_head(x, d, gain, j.eps);
    float *to = key < 0 ? head : ag_waiting_at(c, j.layer, 0, r.sequence[at], at, key);
    const int64_t angle = static_cast<int64_t>(position) * (d / 2);
    rotate_head(x, d, j.cosine + angle, j.sine + angle, to);
}

/* ---- The MLP. --------------------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
    silu(const float *y, int64_t y_step, int32_t n, float *out, int64_t out_step)
{
    take_turn();
    const int32_t i = static_cast<int32_t>(blockIdx.x) * THREADS + thread();
    if (i >= n) return;
    const float g = y[blockIdx.y * y_step + i], up = y[blockIdx.y * y_step + n + i];
    const float a = __fdiv_rn(g, __fadd_rn(1.0f, as_exp_core(-g)));
    out[blockIdx.y * out_step + i] = __fmul_rn(a, up);
}

} // namespace

/* ---- What layer.h promises. ------------------------------------------------------------- */

extern "C" as_status ag_embed(const ag_device *d, const ag_matrix *embedding, const ag_rows *r,
                              int32_t first, int32_t n, float *x, int64_t step, as_error *e)
{
    const embedding_rows j = {*embedding, r->token + first, r->sequence + first, x, step};
    const dim3 grid(static_cast<unsigned>(n), blocks_for(embedding->K, THREADS));
    LAUNCH(embed, grid, THREADS, 0, d, j);
    return ag_launched("embed", e);
}

extern "C" as_status ag_add_norm(const ag_device *d, const ag_norm *j, as_error *e)
{
    if (j->n % 4 == 0)
        launch_norm<float4>(d, *j);
    else
        launch_norm<float>(d, *j);
    return ag_launched("add_norm", e);
}

extern "C" as_status ag_turn_heads(const ag_device *d, const ag_cache *c, const ag_rows *r,
                                   const ag_heads *j, as_error *e)
{
    const dim3 grid(blocks_for(j->heads + 2 * c->kv_heads, WARPS),
                    static_cast<unsigned>(j->rows));
    LAUNCH(turn_heads, grid, WARPS * LANES,
           WARPS * static_cast<size_t>(c->wide) * sizeof(float), d, *c, *r, *j);
    return ag_launched("turn_heads", e);
}

extern "C" as_status ag_silu(const ag_device *d, const float *y, int64_t y_step, int32_t rows,
                             int32_t n, float *out, int64_t out_step, as_error *e)
{
    const dim3 grid(blocks_for(n, THREADS), static_cast<unsigned>(rows));
    LAUNCH(silu, grid, THREADS, 0, d, y, y_step, n, out, out_step);
    return ag_launched("silu", e);
}

extern "C" as_status ag_gather(const ag_device *d, const float *from, int64_t from_step,
                               const int32_t *index, int32_t rows, int32_t n, float *to,
                               int64_t to_step, as_error *e)
{
    const dim3 grid(static_cast<unsigned>(rows), blocks_for(n, THREADS));
    LAUNCH(gather, grid, THREADS, 0, d, from, from_step, index, n, to, to_step);
    return ag_launched("gather", e);
}
