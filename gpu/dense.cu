/* dense.cu - see dense.h.
 *
 * One kernel for every number of rows. A thread owns ROWS rows x 4 or 8 outputs of one chunk of
 * 128 inputs and walks their chains of fma (ARI-05) in registers, loading 16 bytes of weights
 * at a time; 32 outputs stand side by side in a panel, so that a chunk of a panel is one
 * contiguous piece of memory. A block takes as many chunks at a time as it has threads for,
 * always whole groups of 8; it leaves the chunk sums in shared memory, where they are added in
 * their order (ARI-06). Which thread computes a chunk, and how many chunks or rows are at work,
 * changes no order: the bits are those of one row on one thread.
 *
 * When there are too few panels to fill the device, blocks share a panel by groups: each leaves
 * its groups' sums in memory, and the last one to arrive adds them all in their order. */
#include "gpu/dense.h"

#include "gpu/cuda.h"
#include "ref/num/widen.h"

/* 1 adds the chunk sums flat: another arithmetic, of which gpu/bench measures the speed. */
#ifndef AG_GROUP
#define AG_GROUP AS_GROUP
#endif

namespace
{

enum { THREADS = 256, LOAD = 16 /* bytes */ };

/* ---- Weights as they are stored. -------------------------------------------------------- */

template <as_storage S> struct stored;

template <> struct stored<AS_F32> {
    enum { COLUMNS = 4 };
    static __device__ float at(const uint4 &raw, int i)
    {
        return as_float_of(i == 0 ? raw.x : i == 1 ? raw.y : i == 2 ? raw.z : raw.w);
    }
};

template <> struct stored<AS_BF16> {
    enum { COLUMNS = 8 };
    static __device__ float at(const uint4 &raw, int i)
    {
        const uint32_t pair = i < 2 ? raw.x : i < 4 ? raw.y : i < 6 ? raw.z : raw.w;
        return as_float_of(i % 2 ? pair & 0xffff0000u : pair << 16);
    }
};

template <> struct stored<AS_F16> {
    enum { COLUMNS = 8 };
    static __device__ float at(const uint4 &raw, int i)
    {
        const uint32_t pair = i < 2 ? raw.x : i < 4 ? raw.y : i < 6 ? raw.z : raw.w;
        return as_widen_f16(static_cast<uint16_t>(i % 2 ? pair >> 16 : pair));
    }
};

/* ---- The shape of a block. -------------------------------------------------------------- */

/* ROWS rows a thread; SHARE threads side by side take different rows of the same outputs;
 * PANELS panels a block. AHEAD inputs have their weights loaded before the first is used. */
template <as_storage S, int ROWS_, int SHARE_, int PANELS_, int AHEAD_> struct shape {
    static constexpr as_storage STORAGE = S;
    enum {
        ROWS = ROWS_,
        SHARE = SHARE_,
        PANELS = PANELS_,
        AHEAD = AHEAD_,
        COLUMNS = stored<S>::COLUMNS,            /* of a thread, in each panel */
        CHAINS = ROWS * PANELS * COLUMNS,        /* of a thread, each in its register */
        LANES = AS_PANEL / COLUMNS,              /* threads side by side in a panel */
        CHUNKS = THREADS / (LANES * SHARE),      /* at a time */
        TILE = ROWS * SHARE,                     /* rows of a block */
        WIDTH = AS_PANEL * PANELS,               /* outputs of a block */
        OUTPUTS = TILE * WIDTH,                  /* both */
        OWN = (OUTPUTS + THREADS - 1) / THREADS, /* outputs whose sums a thread adds */
        SHARED = CHUNKS * OUTPUTS * 4            /* bytes */
    };
    static_assert(CHUNKS % AS_GROUP == 0, "a block takes whole groups");
};

/* What a product is of. */
struct job {
    const void *panel;
    const float *x;
    float *y;
    int64_t x_step, y_step;
    int32_t N, K, R;
    float *sum;        /* [groups][R][N], unless a block has all groups of its panel */
    uint32_t *arrived; /* [grid.y][grid.x] */
};

__device__ int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

template <class T> struct chains {
    float c[T::PANELS][T::ROWS][T::COLUMNS];
};

/* One input more for all chains of a thread: raw is its weights, x its value in each row. */
template <class T>
__device__ __forceinline__ void step(chains<T> &sums, const uint4 (&raw)[T::PANELS],
                                     const float (&x)[T::ROWS])
{
    UNROLL
    for (int p = 0; p < T::PANELS; p++) {
        UNROLL
        for (int i = 0; i < T::COLUMNS; i++) {
            const float w = stored<T::STORAGE>::at(raw[p], i);
            UNROLL
            for (int r = 0; r < T::ROWS; r++)
                sums.c[p][r][i] = __fmaf_rn(x[r], w, sums.c[p][r][i]);
        }
    }
}

__device__ __forceinline__ float part(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* ARI-05 for `length` inputs; w[p] is the thread's first weight in panel p, x its first row. */
template <class T>
__device__ __forceinline__ void walk_chunk(chains<T> &sums, const uint4 *const (&w)[T::PANELS],
                                           const float *const (&x)[T::ROWS], int32_t length)
{
    enum { STEP = T::LANES }; /* loads from one input's weights to the next's */
    int32_t k = 0;
    UNROLL_BY(1)
    for (; k + T::AHEAD <= length; k += T::AHEAD) {
        uint4 raw[T::AHEAD][T::PANELS];
        UNROLL
        for (int a = 0; a < T::AHEAD; a++) {
            UNROLL
            for (int p = 0; p < T::PANELS; p++) raw[a][p] = __ldcs(w[p] + (k + a) * STEP);
        }
        UNROLL_BY(T::AHEAD / 4) /* a bare UNROLL would unroll the loop around a single turn */
        for (int a = 0; a < T::AHEAD; a += 4) {
            float4 four[T::ROWS];
            UNROLL
            for (int r = 0; r < T::ROWS; r++)
                four[r] = __ldg(reinterpret_cast<const float4 *>(x[r] + k + a));
            UNROLL
            for (int i = 0; i < 4; i++) {
                float one[T::ROWS];
                UNROLL
                for (int r = 0; r < T::ROWS; r++) one[r] = part(four[r], i);
                step(sums, raw[a + i], one);
            }
        }
    }
    for (; k < length; k++) {
        uint4 raw[T::PANELS];
        float one[T::ROWS];
        for (int p = 0; p < T::PANELS; p++) raw[p] = __ldcs(w[p] + k * STEP);
        for (int r = 0; r < T::ROWS; r++) one[r] = __ldg(x[r] + k);
        step(sums, raw, one);
    }
}

/* The chunk of this thread, and the sums of its chains to chunk_sum [TILE][WIDTH]. Rows and
 * panels beyond the last are computed as the last, and written by nobody. */
template <class T>
__device__ void sum_chunk(const job &j, int32_t chunk, float *chunk_sum /* of the chunk */)
{
    const int lane = threadIdx.x % T::LANES, row = threadIdx.x / T::LANES % T::SHARE * T::ROWS;
    const int32_t k = chunk * AS_CHUNK, panels = (j.N + AS_PANEL - 1) / AS_PANEL;
    const int32_t first_row = static_cast<int32_t>(blockIdx.x) * T::TILE + row;
    const uint4 *w[T::PANELS];
    const float *x[T::ROWS];
    chains<T> sums = {};
    UNROLL
    for (int p = 0; p < T::PANELS; p++) {
        const int64_t panel =
            least(static_cast<int32_t>(blockIdx.y) * T::PANELS + p, panels - 1);
        w[p] = static_cast<const uint4 *>(j.panel) + (panel * j.K + k) * T::LANES + lane;
    }
    UNROLL
    for (int r = 0; r < T::ROWS; r++) x[r] = j.x + least(first_row + r, j.R - 1) * j.x_step + k;
    walk_chunk<T>(sums, w, x, least(j.K - k, AS_CHUNK));
    UNROLL
    for (int p = 0; p < T::PANELS; p++) {
        UNROLL
        for (int r = 0; r < T::ROWS; r++) {
            float *to = chunk_sum + (row + r) * T::WIDTH + p * AS_PANEL + lane * T::COLUMNS;
            UNROLL
            for (int i = 0; i < T::COLUMNS; i++) to[i] = sums.c[p][r][i];
        }
    }
}

/* Output number o of the block as a row and an output of the product; false beyond either. */
template <class T> __device__ bool place(const job &j, int o, int32_t *row, int32_t *n)
{
    *row = static_cast<int32_t>(blockIdx.x) * T::TILE + o / T::WIDTH;
    *n = static_cast<int32_t>(blockIdx.y) * T::WIDTH + o % T::WIDTH;
    return o < T::OUTPUTS && *row < j.R && *n < j.N;
}

/* The sum of a group: `chunks` chunk sums in their order (ARI-06). */
template <class T> __device__ float sum_group(const float *chunk_sum, int chunks, int o)
{
    float g = 0.0f;
    for (int c = 0; c < chunks; c++) g = __fadd_rn(g, chunk_sum[c * T::OUTPUTS + o]);
    return g;
}

__device__ int64_t sum_at(const job &j, int32_t group, int32_t row, int32_t n)
{
    return (static_cast<int64_t>(group) * j.R + row) * j.N + n;
}

/* Whether this block is the last of those that share its outputs. The counter is 0 again. */
__device__ bool arrives_last(const job &j, uint32_t *shared)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        uint32_t *counter = j.arrived + blockIdx.y * gridDim.x + blockIdx.x;
        *shared = atomicAdd(counter, 1u) == gridDim.z - 1;
        if (*shared) *counter = 0;
    }
    __syncthreads();
    __threadfence();
    return *shared != 0;
}

template <class T>
__global__ void __launch_bounds__(THREADS, T::CHAINS > 32 ? 1 : 2) product(job j)
{
    SHARED(float, chunk_sum);
    const int32_t chunks = (j.K + AS_CHUNK - 1) / AS_CHUNK;
    const int32_t groups = (chunks + AG_GROUP - 1) / AG_GROUP;
    const int32_t splits = static_cast<int32_t>(gridDim.z), part = blockIdx.z;
    const int32_t begin = groups * part / splits * AG_GROUP;
    const int32_t end = least(groups * (part + 1) / splits * AG_GROUP, chunks);
    const int mine = threadIdx.x / (T::LANES * T::SHARE);
    float total[T::OWN] = {};

    for (int32_t first = begin; first < end; first += T::CHUNKS) {
        const int32_t here = least(end - first, T::CHUNKS);
        if (mine < here) sum_chunk<T>(j, first + mine, chunk_sum + mine * T::OUTPUTS);
        __syncthreads();
        for (int32_t c = 0; c < here; c += AG_GROUP) {
            UNROLL
            for (int i = 0; i < T::OWN; i++) {
                const int o = static_cast<int>(threadIdx.x) + i * THREADS;
                int32_t row, n;
                if (!place<T>(j, o, &row, &n)) continue;
                const float g =
                    sum_group<T>(chunk_sum + c * T::OUTPUTS, least(here - c, AG_GROUP), o);
                total[i] = __fadd_rn(total[i], g);
                if (splits > 1) j.sum[sum_at(j, (first + c) / AG_GROUP, row, n)] = g;
            }
        }
        __syncthreads();
    }
    const bool last = splits == 1 || arrives_last(j, reinterpret_cast<uint32_t *>(chunk_sum));
    if (!last) return;
    UNROLL
    for (int i = 0; i < T::OWN; i++) {
        int32_t row, n;
        if (!place<T>(j, static_cast<int>(threadIdx.x) + i * THREADS, &row, &n)) continue;
        if (splits > 1) {
            total[i] = 0.0f;
            for (int32_t g = 0; g < groups; g++)
                total[i] = __fadd_rn(total[i], __ldcg(j.sum + sum_at(j, g, row, n)));
        }
        j.y[row * j.y_step + n] = total[i];
    }
}

/* ---- Choosing. --------------------------------------------------------------------------- */

/* How a product of R rows is laid out. It decides speed and no bit. */
struct plan {
    int32_t tiles, widths, splits; /* the grid */
};

template <class T> plan plan_of(const ag_device *d, int32_t N, int32_t K, int32_t R)
{
    const int32_t groups = ((K + AS_CHUNK - 1) / AS_CHUNK + AG_GROUP - 1) / AG_GROUP;
    plan p = {(R + T::TILE - 1) / T::TILE, (N + T::WIDTH - 1) / T::WIDTH, 1};
    const int64_t blocks = static_cast<int64_t>(p.tiles) * p.widths;
    const int64_t wanted = (2 * d->processors + blocks - 1) / blocks;
    p.splits = static_cast<int32_t>(wanted < groups ? wanted : groups);
    return p;
}

struct need {
    int64_t sums, counters;
};

struct call {
    const ag_device *d;
    job j;
    const ag_parts *p;
    need *ask; /* only say what is needed */
    as_error *e;
};

template <class T> as_status go(const call &c)
{
    const plan p = plan_of<T>(c.d, c.j.N, c.j.K, c.j.R);
    const int64_t groups = (c.j.K + AS_CHUNK * AG_GROUP - 1) / (AS_CHUNK * AG_GROUP);
    const need n = {p.splits > 1 ? groups * c.j.R * c.j.N : 0,
                    p.splits > 1 ? static_cast<int64_t>(p.tiles) * p.widths : 0};
    if (c.ask) {
        *c.ask = n;
        return AS_OK;
    }
    if (n.sums > c.p->sums || n.counters > c.p->counters)
        return as_fail(c.e, AS_LIMIT,
                       "product: %d rows of %d x %d, for which no room is reserved", c.j.R,
                       c.j.N, c.j.K);
    static bool known = false; /* set once for each kernel; the device is one */
    if (!known && T::SHARED > 48 << 10) {
        (void)cudaFuncSetAttribute(product<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   T::SHARED);
        known = true;
    }
    const dim3 grid(static_cast<unsigned>(p.tiles), static_cast<unsigned>(p.widths),
                    static_cast<unsigned>(p.splits));
    LAUNCH(product<T>, grid, THREADS, T::SHARED, static_cast<cudaStream_t>(c.d->stream), c.j);
    return ag_launched("product", c.e);
}

template <as_storage S> as_status choose(const call &c)
{
    enum { WIDE = S == AS_F32 ? 2 : 1 }; /* 8 outputs a thread, where many rows pay for them */
    const int32_t R = c.j.R;
    if (R == 1) return go<shape<S, 1, 1, 1, 16>>(c);
    if (R == 2) return go<shape<S, 2, 1, 1, 16>>(c);
    if (R <= 4) return go<shape<S, 4, 1, 1, 8>>(c);
    if (R <= 8) return go<shape<S, 8, 1, 1, 4>>(c);
    if (R <= 16) return go<shape<S, 8, 2, WIDE, 4>>(c);
    return go<shape<S, 8, 4, WIDE, 4>>(c);
}

as_status dispatch(const call &c, as_storage s)
{
    return s == AS_F32   ? choose<AS_F32>(c)
           : s == AS_F16 ? choose<AS_F16>(c)
                         : choose<AS_BF16>(c);
}

} // namespace

/* ---- What dense.h promises.
 * ------------------------------------------------------------------ */

extern "C" as_status ag_matrix_upload(const ag_device *d, const as_matrix *m, ag_matrix *to,
                                      as_error *e)
{
    const size_t panels = (static_cast<size_t>(m->N) + AS_PANEL - 1) / AS_PANEL;
    const size_t bytes =
        panels * AS_PANEL * static_cast<size_t>(m->K) * as_storage_size(m->storage);
    *to = ag_matrix{m->N, m->K, m->storage, nullptr, 0};
    as_status s = ag_alloc(d, &to->panel, bytes, "a weight matrix", e);
    if (s == AS_OK) s = ag_upload(d, to->panel, m->panel, bytes, e);
    return s;
}

extern "C" void ag_matrix_free(ag_matrix *m)
{
    ag_free(m->panel);
    m->panel = nullptr;
}

extern "C" as_status ag_parts_reserve(const ag_device *d, const ag_matrix *w, int32_t R,
                                      ag_parts *p, as_error *e)
{
    int64_t sums = 0, counters = 0;
    for (int32_t r = 1; r <= R; r++) {
        need n = {};
        const job j = {nullptr, nullptr, nullptr, 0, 0, w->N, w->K, r, nullptr, nullptr};
        const as_status s = dispatch(call{d, j, nullptr, &n, e}, w->storage);
        if (s != AS_OK) return s;
        sums = n.sums > sums ? n.sums : sums;
        counters = n.counters > counters ? n.counters : counters;
    }
    void *at;
    if (sums > p->sums) {
        const as_status s = ag_alloc(d, &at, static_cast<size_t>(sums) * 4, "shared sums", e);
        if (s != AS_OK) return s;
        ag_free(p->sum);
        p->sum = static_cast<float *>(at);
        p->sums = sums;
    }
    if (counters > p->counters) {
        const size_t bytes = static_cast<size_t>(counters) * sizeof *p->arrived;
        as_status s = ag_alloc(d, &at, bytes, "counters", e);
        if (s != AS_OK) return s;
        ag_free(p->arrived);
        p->arrived = static_cast<uint32_t *>(at);
        p->counters = counters;
        s = ag_fill(d, p->arrived, 0, bytes, e);
        if (s != AS_OK) return s;
    }
    return AS_OK;
}

extern "C" void ag_parts_free(ag_parts *p)
{
    ag_free(p->sum);
    ag_free(p->arrived);
    *p = ag_parts{};
}

extern "C" as_status ag_product(const ag_device *d, const ag_matrix *w, const float *x,
                                int64_t x_step, int32_t R, float *y, int64_t y_step,
                                const ag_parts *p, as_error *e)
{
    if (R < 1 || x_step % 4 != 0 || x_step < w->K || y_step < w->N)
        return as_fail(e, AS_BAD_INPUT, "product: %d rows, %lld and %lld floats apart", R,
                       static_cast<long long>(x_step), static_cast<long long>(y_step));
    if (w->in_rows) return as_fail(e, AS_BAD_INPUT, "product: the matrix is not in panels");
    const job j = {w->panel, x, y, x_step, y_step, w->N, w->K, R, p->sum, p->arrived};
    return dispatch(call{d, j, p, nullptr, e}, w->storage);
}
