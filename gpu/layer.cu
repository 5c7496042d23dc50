/* layer.cu - see layer.h.
 *
 * None of this is much work beside the products: what counts is that a row, which a norm needs
 * as a whole, does not wait long for one thread. So the chunks of dot(x, x), whose chains are
 * independent (ARI-05), are walked side by side by a thread each, out of shared memory where
 * chunk j begins at 129 j, so that the threads read different banks; then every thread adds the
 * chunk sums, in their order, by itself. */
#include "gpu/layer.h"

#include "gpu/cache_at.h"
#include "gpu/cuda.h"
#include "ref/num/exp_core.h"
#include "ref/num/widen.h"

namespace
{

enum {
    THREADS = 256,        /* of a block at most */
    PIECE = 8 * AS_GROUP, /* chunks of a row in shared memory at a time: whole groups */
    APART = AS_CHUNK + 1, /* floats from a chunk to the next there */
    WARPS = 4             /* heads of a block */
};

cudaStream_t stream_of(const ag_device *d)
{
    return static_cast<cudaStream_t>(d->stream);
}

__device__ int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

__device__ __forceinline__ int32_t threads()
{
    return static_cast<int32_t>(blockDim.x);
}

/* ---- Rows in and out. ------------------------------------------------------------------- */

struct lookup {
    ag_matrix m;
    const int32_t *token, *sequence;
    float *x;
    int64_t step;
};

__global__ void embed(lookup j)
{
    const int32_t row = static_cast<int32_t>(blockIdx.x), token = j.token[row];
    const bool there = j.sequence[row] >= 0;
    const int64_t start =
        static_cast<int64_t>(token / AS_PANEL) * j.m.K * AS_PANEL + token % AS_PANEL;
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < j.m.K; k += threads()) {
        const int64_t i = start + static_cast<int64_t>(k) * AS_PANEL;
        float x = 0.0f;
        if (there && j.m.storage == AS_F32)
            x = static_cast<const float *>(j.m.panel)[i];
        else if (there && j.m.storage == AS_F16)
            x = as_widen_f16(static_cast<const uint16_t *>(j.m.panel)[i]);
        else if (there)
            x = as_widen_bf16(static_cast<const uint16_t *>(j.m.panel)[i]);
        j.x[row * j.step + k] = x;
    }
}

__global__ void gather(const float *from, int64_t from_step, const int32_t *index, int32_t n,
                       float *to, int64_t to_step)
{
    const float *row = from + index[blockIdx.x] * from_step;
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < n; k += threads())
        to[blockIdx.x * to_step + k] = row[k];
}

/* ---- RMSNorm. --------------------------------------------------------------------------- */

/* ARI-05 for dot(x, x). */
__device__ float square_chunk(const float *x, int32_t length)
{
    float c = 0.0f;
    UNROLL
    for (int32_t k = 0; k < length; k++) c = __fmaf_rn(x[k], x[k], c);
    return c;
}

/* r of ARI-09. */
__device__ float inverse_root(float ss, int32_t n, float eps)
{
    const float mean = __fdiv_rn(ss, static_cast<float>(n));
    return __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, eps)));
}

/* One block a row, with a thread for each chunk of a piece at least. Thread t owns elements t,
 * t + threads(), ...; from the second pass over them on it reads what it wrote itself. */
__global__ void __launch_bounds__(THREADS) add_norm(ag_norm j)
{
    SHARED(float, piece);               /* [PIECE][APART] */
    float *sum = piece + PIECE * APART; /* [PIECE] */
    const int32_t t = static_cast<int32_t>(threadIdx.x);
    float *x = j.x + blockIdx.x * j.x_step, *out = j.out + blockIdx.x * j.out_step;
    const float *y = j.y ? j.y + blockIdx.x * j.y_step : nullptr;
    float ss = 0.0f;
    for (int32_t first = 0; first < j.n; first += PIECE * AS_CHUNK) {
        const int32_t here = least(j.n - first, PIECE * AS_CHUNK);
        for (int32_t i = t; i < here; i += threads()) {
            float v = x[first + i];
            if (y) x[first + i] = v = __fadd_rn(v, y[first + i]);
            piece[i + i / AS_CHUNK] = v;
        }
        __syncthreads();
        const int32_t chunks = (here + AS_CHUNK - 1) / AS_CHUNK;
        if (t < chunks)
            sum[t] = square_chunk(piece + t * APART, least(here - t * AS_CHUNK, AS_CHUNK));
        __syncthreads();
        for (int32_t c = 0; c < chunks; c += AS_GROUP) {
            float g = 0.0f;
            for (int32_t i = c; i < least(c + AS_GROUP, chunks); i++) g = __fadd_rn(g, sum[i]);
            ss = __fadd_rn(ss, g);
        }
    }
    const float r = inverse_root(ss, j.n, j.eps);
    for (int32_t i = t; i < j.n; i += threads())
        out[i] = __fmul_rn(__fmul_rn(x[i], r), j.gain[i]);
}

/* ---- Queries, keys, values. ------------------------------------------------------------- */

/* RMSNorm of a head [d] in shared memory by a warp; d is at most one group of chunks. */
__device__ void norm_head(float *x, int32_t d, const float *gain, float eps)
{
    const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
    const int32_t left = d - lane * AS_CHUNK;
    const float c = left > 0 ? square_chunk(x + lane * AS_CHUNK, least(left, AS_CHUNK)) : 0.0f;
    float g = 0.0f;
    for (int32_t i = 0; i * AS_CHUNK < d; i++) g = __fadd_rn(g, __shfl_sync(0xffffffffu, c, i));
    const float r = inverse_root(__fadd_rn(0.0f, g), d, eps);
    __syncwarp(); /* everyone has read x */
    for (int32_t i = lane; i < d; i += 32) x[i] = __fmul_rn(__fmul_rn(x[i], r), gain[i]);
    __syncwarp();
}

/* ARI-13, from shared memory to its place. */
__device__ void rotate_head(const float *x, int32_t d, const float *cosine, const float *sine,
                            float *to)
{
    for (int32_t i = static_cast<int32_t>(threadIdx.x % 32); i < d / 2; i += 32) {
        const float a = x[i], b = x[i + d / 2], c = cosine[i], s = sine[i];
        to[i] = __fmaf_rn(a, c, -__fmul_rn(b, s));
        to[i + d / 2] = __fmaf_rn(b, c, __fmul_rn(a, s));
    }
}

/* A warp takes one head of one row: a query's, a key's or a value's. */
__global__ void __launch_bounds__(WARPS * 32) turn_heads(ag_cache c, ag_rows r, ag_heads j)
{
    SHARED(float, shared); /* [WARPS][d] */
    const int32_t warp = static_cast<int32_t>(threadIdx.x / 32), d = c.d;
    const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
    const int32_t part = static_cast<int32_t>(blockIdx.x) * WARPS + warp;
    const int32_t row = static_cast<int32_t>(blockIdx.y), at = j.first + row;
    const int32_t position = r.position[at], key = part - j.heads, value = key - c.kv_heads;
    if (value >= c.kv_heads || position < 0) return;
    float *head = j.y + row * j.step + static_cast<int64_t>(part) * d, *x = shared + warp * d;
    const float *bias = j.bias ? j.bias + static_cast<int64_t>(part) * d : nullptr;
    for (int32_t i = lane; i < d; i += 32) x[i] = bias ? __fadd_rn(head[i], bias[i]) : head[i];
    __syncwarp();
    if (value >= 0) {
        float *to = ag_waiting_at(c, j.layer, 1, r.sequence[at], at, value);
        for (int32_t i = lane; i < d; i += 32) to[i] = x[i];
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
    const int32_t i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
    const float g = y[blockIdx.y * y_step + i], up = y[blockIdx.y * y_step + n + i];
    const float a = __fdiv_rn(g, __fadd_rn(1.0f, as_exp_core(-g)));
    out[blockIdx.y * out_step + i] = __fmul_rn(a, up);
}

unsigned blocks_of(int32_t n, int32_t size)
{
    return static_cast<unsigned>((n + size - 1) / size);
}

/* For n elements of a row, whole warps. */
unsigned threads_for(int32_t n)
{
    return n < THREADS ? 32 * blocks_of(n, 32) : static_cast<unsigned>(THREADS);
}

} // namespace

/* ---- What layer.h promises. ------------------------------------------------------------- */

extern "C" as_status ag_embed(const ag_device *d, const ag_matrix *embedding, const ag_rows *r,
                              int32_t first, int32_t n, float *x, int64_t step, as_error *e)
{
    const lookup j = {*embedding, r->token + first, r->sequence + first, x, step};
    LAUNCH(embed, static_cast<unsigned>(n), threads_for(j.m.K), 0, stream_of(d), j);
    return ag_launched("embed", e);
}

extern "C" as_status ag_add_norm(const ag_device *d, const ag_norm *j, as_error *e)
{
    LAUNCH(add_norm, static_cast<unsigned>(j->rows), threads_for(j->n),
           PIECE * (APART + 1) * sizeof(float), stream_of(d), *j);
    return ag_launched("add_norm", e);
}

extern "C" as_status ag_turn_heads(const ag_device *d, const ag_cache *c, const ag_rows *r,
                                   const ag_heads *j, as_error *e)
{
    const dim3 grid(blocks_of(j->heads + 2 * c->kv_heads, WARPS),
                    static_cast<unsigned>(j->rows));
    LAUNCH(turn_heads, grid, WARPS * 32, WARPS * static_cast<size_t>(c->d) * sizeof(float),
           stream_of(d), *c, *r, *j);
    return ag_launched("turn_heads", e);
}

extern "C" as_status ag_silu(const ag_device *d, const float *y, int64_t y_step, int32_t rows,
                             int32_t n, float *out, int64_t out_step, as_error *e)
{
    const unsigned threads = threads_for(n);
    const dim3 grid(blocks_of(n, static_cast<int32_t>(threads)), static_cast<unsigned>(rows));
    LAUNCH(silu, grid, threads, 0, stream_of(d), y, y_step, n, out, out_step);
    return ag_launched("silu", e);
}

extern "C" as_status ag_gather(const ag_device *d, const float *from, int64_t from_step,
                               const int32_t *index, int32_t rows, int32_t n, float *to,
                               int64_t to_step, as_error *e)
{
    LAUNCH(gather, static_cast<unsigned>(rows), threads_for(n), 0, stream_of(d), from,
           from_step, index, n, to, to_step);
    return ag_launched("gather", e);
}
