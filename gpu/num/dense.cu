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
 * When there are too few panels to fill the device, up to 8 blocks share a panel by groups, and
 * the sums of all groups are added in their order: where the device has clusters, by the blocks
 * of one, out of each other's shared memory; elsewhere in device memory, by the last block to
 * arrive. The one costs a barrier of the cluster before that and one before leaving; the other
 * a fence, a count and a read that each go to the second cache and back, one after the other,
 * at the end of a product that may take no longer than a few of those. Neither lets a block
 * wait for one that might not be running.
 *
 * What the shapes are chosen by. docs/measurements-h100.md has what a device says of it: with few
 * rows it holds; with 8 rows of 2-byte weights, and from 32 rows on, too few warps are ready.
 *
 * Bytes in flight. A load from memory takes about 0.7 us under load, so 3.0 TB/s (H100) want 16
 * KiB in flight on each of 132 multiprocessors, 4.3 TB/s (H200) 23 KiB, and about twice that
 * here, where a thread uses up what it has loaded before it loads again. A block of 256 threads
 * has 64 KiB in flight with 1 or 2 rows, 32 with 3 or 4, 16 with 5 to 8, 32 with more (16 of
 * 2-byte weights); there are two blocks where a thread has at most 32 chains. Short of
 * registers, the compiler adds before all loads are made, and keeps fewer in flight: in its
 * code for sm_90, 7 or more of 16, 5 or more of 8. But threads without a chunk load nothing: a
 * product of 2048 x 2048 has work for 62 threads a multiprocessor, 16 KiB with 1 row and 4 with
 * 8. So where a multiprocessor has one block at most, a thread also asks for weights `far`
 * inputs ahead, which takes no register. With more blocks that would only fill the second cache
 * with what is not used soon.
 *
 * Before its turn. A step is a chain of launches, each of which needs what the one before left,
 * and most of which are short: norms, attention, and what a product takes to begin and to end.
 * The memory would have nothing to do meanwhile. So a product of up to 32 rows that may overlap
 * the launches before it asks for its first weights while it waits, `early` inputs of the
 * chunks with which the blocks begin that find a place at once: as many as fill a quarter of
 * the second cache, which at 3 TB/s is 4 us. It lets the launches behind it begin only when its
 * own turn has come, so that no more than one product waits with weights in the cache.
 *
 * Few rows wait for memory: one block on each of three quarters of the multiprocessors suffices
 * (2048 outputs: 64 panels, split in two; 4096: 128 panels, not split), and rounds of blocks
 * that are not full cost little (14336: 448 blocks, 128256: 4008, for 264 places), since far
 * fewer than all use up the bandwidth.
 *
 * Many rows wait for arithmetic: there, idle multiprocessors count, so the split is the one
 * with the shortest rounds (32 rows, 64 outputs a block: 4096 outputs split in two are 128
 * blocks for 132 places; 14336 in four, 896 blocks, are 7 rounds of one group instead of 2 of
 * four; but with 16 rows a block takes two groups at once, and 14336 outputs are not split),
 * and blocks are narrower where even that leaves many idle. */
#include "gpu/num/dense.h"

#include "gpu/device/arrival.cuh"
#include "gpu/device/block.cuh"
#include "ref/num/widen.h"

namespace
{

using ag::least;
using ag::part;

enum {
    THREADS = 256,
    SHARERS = 8, /* blocks that share an output, at most: what any cluster may have */
    FAR = 16     /* inputs ahead of a load */
};

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
        RESIDENT = CHAINS > 32 ? 1 : 2,          /* blocks that a multiprocessor has room for */
        SHARED = CHUNKS * OUTPUTS * 4            /* bytes, without sums of groups */
    };
    static_assert(CHUNKS % AS_GROUP == 0, "a block takes whole groups");
};

/* What a product is of. */
struct job {
    const void *panel;
    const float *x;
    float *y;
    int64_t y_step;
    int32_t x_step, N, K, R;
    int32_t far;   /* inputs from a load to the weights asked for with it; 0: nothing is */
    int32_t early; /* inputs of a block's first chunks that are asked for before its turn, */
    int32_t first; /* by so many blocks */
    /* Of blocks that share their outputs through device memory; NULL where they are a cluster,
     * or where a block has all groups of its panel. */
    float *sum;        /* [groups][R][N] */
    uint32_t *arrived; /* [grid.y][grid.x] */
};

__device__ __host__ int32_t parts_of(int32_t n, int32_t size)
{
    return (n + size - 1) / size;
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

/* Asks for the weights of the inputs from k to `end`, 128 bytes a lane. */
template <class T>
__device__ __forceinline__ void ask(const uint4 *const (&w)[T::PANELS], int32_t k, int32_t end)
{
    enum { LINE = 8 / T::LANES }; /* inputs in 128 bytes */
    for (k += static_cast<int32_t>(threadIdx.x) % T::LANES * LINE; k < end; k += 8) {
        UNROLL
        for (int p = 0; p < T::PANELS; p++) prefetch(w[p] + k * T::LANES);
    }
}

/* ARI-05 for `length` inputs; w[p] is the thread's first weight in panel p, x its first row. */
template <class T>
__device__ __forceinline__ void walk_chunk(chains<T> &sums, const uint4 *const (&w)[T::PANELS],
                                           const float *x, const int32_t (&at)[T::ROWS],
                                           int32_t length, int32_t far)
{
    enum { STEP = T::LANES }; /* loads from one input's weights to the next's */
    int32_t k = 0;
    if (far > 0) ask<T>(w, T::AHEAD, least(far, length));
    UNROLL_BY(1)
    for (; k + T::AHEAD <= length; k += T::AHEAD) {
        if (far > 0) ask<T>(w, k + far, least(k + far + T::AHEAD, length));
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
                four[r] = __ldca(reinterpret_cast<const float4 *>(x + (at[r] + k + a)));
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
        for (int r = 0; r < T::ROWS; r++) one[r] = __ldca(x + (at[r] + k));
        step(sums, raw, one);
    }
}

/* The first weight of a chunk in panel number p of the block. Panels beyond the last are the
 * last. */
template <class T> __device__ const uint4 *weights_of(const job &j, int32_t chunk, int p)
{
    const int32_t panels = parts_of(j.N, AS_PANEL);
    const int64_t panel = least(static_cast<int32_t>(blockIdx.y) * T::PANELS + p, panels - 1);
    return static_cast<const uint4 *>(j.panel) + (panel * j.K + chunk * AS_CHUNK) * T::LANES;
}

/* Asks for the weights of the first `early` inputs of `here` chunks; each warp for some. There
 * is one tile of rows. */
template <class T>
__device__ __forceinline__ void ask_early(const job &j, int32_t begin, int32_t here)
{
    enum { WARPS = THREADS / ag::LANES, BYTES = T::LANES * sizeof(uint4) };
    const auto number = static_cast<int32_t>(blockIdx.z * gridDim.y + blockIdx.y);
    if (j.early == 0 || number >= j.first || ag::lane() != 0) return;
    for (int32_t c = begin + ag::warp(); c < begin + here; c += WARPS) {
        const int32_t inputs = least(j.K - c * AS_CHUNK, j.early);
        UNROLL
        for (int p = 0; p < T::PANELS; p++)
            prefetch(weights_of<T>(j, c, p), static_cast<uint32_t>(inputs) * BYTES);
    }
}

/* The chunk of this thread, and the sums of its chains to chunk_sum [TILE][WIDTH]. Rows and
 * panels beyond the last are computed as the last, and written by nobody. */
template <class T>
__device__ void sum_chunk(const job &j, int32_t chunk, float *chunk_sum /* of the chunk */)
{
    const int lane = threadIdx.x % T::LANES, row = threadIdx.x / T::LANES % T::SHARE * T::ROWS;
    const int32_t k = chunk * AS_CHUNK;
    const int32_t first_row = static_cast<int32_t>(blockIdx.x) * T::TILE + row;
    const uint4 *w[T::PANELS];
    int32_t x[T::ROWS];
    chains<T> sums = {};
    UNROLL
    for (int p = 0; p < T::PANELS; p++) w[p] = weights_of<T>(j, chunk, p) + lane;
    UNROLL
    for (int r = 0; r < T::ROWS; r++) x[r] = least(first_row + r, j.R - 1) * j.x_step + k;
    walk_chunk<T>(sums, w, j.x, x, least(j.K - k, AS_CHUNK), j.far);
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

/* Adds the groups that all blocks left in device memory; the last of the blocks does. */
template <class T> __device__ void add_left(const job &j, int32_t groups)
{
    for (int o = threadIdx.x; o < T::OUTPUTS; o += THREADS) {
        int32_t row, n;
        if (!place<T>(j, o, &row, &n)) continue;
        float t = 0.0f;
        UNROLL_BY(4)
        for (int32_t g = 0; g < groups; g++)
            t = __fadd_rn(t, __ldcg(j.sum + sum_at(j, g, row, n)));
        j.y[row * j.y_step + n] = t;
    }
}

/* Adds the groups that the blocks of the cluster have in their shared memory, `share` groups
 * each. Each block does so for some of the outputs. */
template <class T>
__device__ void add_clustered(const job &j, const float *group_sum, int32_t groups,
                              int32_t share)
{
    const int splits = static_cast<int>(gridDim.z), part = static_cast<int>(blockIdx.z);
    for (int o = part * THREADS + static_cast<int>(threadIdx.x); o < T::OUTPUTS;
         o += splits * THREADS) {
        int32_t row, n;
        if (!place<T>(j, o, &row, &n)) continue;
        float t = 0.0f;
        int32_t rank = 0, at = 0;
        UNROLL_BY(4)
        for (int32_t g = 0; g < groups; g++) {
            t = __fadd_rn(t, cluster_at(group_sum, rank)[at * T::OUTPUTS + o]);
            if (++at == share) at = 0, rank++;
        }
        j.y[row * j.y_step + n] = t;
    }
}

template <class T> __global__ void __launch_bounds__(THREADS, T::RESIDENT) product(job j)
{
    SHARED(float, chunk_sum);
    float *group_sum = chunk_sum + T::CHUNKS * T::OUTPUTS; /* [share][OUTPUTS], in a cluster */
    const int32_t chunks = parts_of(j.K, AS_CHUNK), groups = parts_of(chunks, AS_GROUP);
    const int32_t splits = static_cast<int32_t>(gridDim.z), share = parts_of(groups, splits);
    const int32_t begin = static_cast<int32_t>(blockIdx.z) * share * AS_GROUP;
    const int32_t end = least(begin + share * AS_GROUP, chunks);
    const int mine = threadIdx.x / (T::LANES * T::SHARE);
    float total[T::OWN] = {};

    if constexpr (HOPPER != 0) ask_early<T>(j, begin, least(end - begin, T::CHUNKS));
    await_turn();
    release_next();
    for (int32_t first = begin; first < end; first += T::CHUNKS) {
        const int32_t here = least(end - first, T::CHUNKS);
        if (mine < here) sum_chunk<T>(j, first + mine, chunk_sum + mine * T::OUTPUTS);
        __syncthreads();
        for (int32_t c = 0; c < here; c += AS_GROUP) {
            UNROLL
            for (int i = 0; i < T::OWN; i++) {
                const int o = static_cast<int>(threadIdx.x) + i * THREADS;
                int32_t row, n;
                if (!place<T>(j, o, &row, &n)) continue;
                const float g =
                    sum_group<T>(chunk_sum + c * T::OUTPUTS, least(here - c, AS_GROUP), o);
                total[i] = __fadd_rn(total[i], g);
                if (j.sum)
                    j.sum[sum_at(j, (first + c) / AS_GROUP, row, n)] = g;
                else if (splits > 1)
                    group_sum[(first - begin + c) / AS_GROUP * T::OUTPUTS + o] = g;
            }
        }
        __syncthreads();
    }
    if (j.sum) {
        uint32_t *counter = j.arrived + blockIdx.y * gridDim.x + blockIdx.x;
        if (ag::block_arrives_last(counter, gridDim.z, reinterpret_cast<uint32_t *>(chunk_sum)))
            add_left<T>(j, groups);
    } else if (splits > 1) {
        cluster_sync();
        add_clustered<T>(j, group_sum, groups, share);
        cluster_end();
    } else {
        UNROLL
        for (int i = 0; i < T::OWN; i++) {
            int32_t row, n;
            if (place<T>(j, static_cast<int>(threadIdx.x) + i * THREADS, &row, &n))
                j.y[row * j.y_step + n] = total[i];
        }
    }
}

/* ---- Choosing. --------------------------------------------------------------------------- */

/* Among how many blocks the groups of an output are split: as many as finish first, if a
 * multiprocessor runs RESIDENT blocks at a time; but more only for a sixteenth less. Where one
 * runs, a block takes CHUNKS chunks in the time of one: on an H100 a round of blocks with work
 * for 32 of 256 threads took as long as one with work for 128. A product of few rows waits for
 * memory, whichever multiprocessors ask for it: all its groups take the same time, and it is
 * split no further once three quarters of the multiprocessors ask. */
template <class T> int32_t splits_of(const ag_device *d, int64_t blocks, int32_t groups)
{
    const int32_t processors = d->processors;
    const int64_t slots = static_cast<int64_t>(processors) * T::RESIDENT;
    int64_t least_time = 0;
    int32_t best = 1;
    for (int32_t s = 1; s <= groups && s <= SHARERS; s++) {
        const int32_t share = parts_of(groups, s);
        if (parts_of(groups, share) < s) continue; /* some would have none */
        if (d->sharers > 0) {
            if (s <= d->sharers) best = s;
            continue;
        }
        const int32_t turns = T::RESIDENT > 1 ? share : parts_of(share * AS_GROUP, T::CHUNKS);
        const int64_t time = (blocks * s + slots - 1) / slots * turns;
        if (s == 1 || time * 16 <= least_time * 15) least_time = time, best = s;
        if (T::RESIDENT > 1 && blocks * s * 4 >= processors * INT64_C(3)) break;
    }
    return best;
}

/* How a product of R rows is laid out. It decides speed and no bit. */
struct plan {
    int32_t tiles, widths, splits; /* the grid */
    int32_t groups;
    bool clustered;
    size_t shared;
};

template <class T> plan plan_of(const ag_device *d, int32_t N, int32_t K, int32_t R)
{
    plan p = {parts_of(R, T::TILE), parts_of(N, T::WIDTH), 1, 0, false, T::SHARED};
    p.groups = parts_of(parts_of(K, AS_CHUNK), AS_GROUP);
    p.splits = splits_of<T>(d, static_cast<int64_t>(p.tiles) * p.widths, p.groups);
    const size_t left = static_cast<size_t>(parts_of(p.groups, p.splits)) * T::OUTPUTS * 4;
    p.clustered = p.splits > 1 && p.splits <= d->cluster && p.shared + left <= d->shared;
    if (p.clustered) p.shared += left;
    return p;
}

/* Which blocks ask for weights before their turn, and for how many inputs of their first
 * chunks: those that may run at once, and so that they fill a quarter of the cache. */
template <class T> void plan_early(const ag_device *d, const plan &p, job *j)
{
    const int32_t blocks = p.widths * p.splits;
    j->early = 0, j->first = least(blocks, d->processors * T::RESIDENT);
    if (d->overlap != AG_EARLY || p.tiles > 1) return;
    const int32_t share = parts_of(p.groups, p.splits) * AS_GROUP; /* chunks of a block */
    const int32_t chunks = least(least(share, parts_of(j->K, AS_CHUNK)), T::CHUNKS);
    const int64_t bytes = T::PANELS * T::LANES * static_cast<int64_t>(sizeof(uint4));
    const int64_t inputs = j->first * chunks * bytes; /* one of each */
    const int64_t room = static_cast<int64_t>(d->cache / 4) / inputs;
    j->early = room < AS_CHUNK ? static_cast<int32_t>(room) : AS_CHUNK;
}

/* What a product takes, and what is said of it. */
struct need {
    int64_t sums, counters;
    ag_product_layout layout;
};

struct call {
    const ag_device *d;
    job j;
    const ag_parts *p;
    need *ask; /* only say what is needed, and make the kernel ready */
    as_error *e;
};

template <class T> as_status go(const call &c)
{
    const plan p = plan_of<T>(c.d, c.j.N, c.j.K, c.j.R);
    const int64_t own = static_cast<int64_t>(p.tiles) * p.widths;
    const bool left = p.splits > 1 && !p.clustered; /* in device memory */
    const need n = {left ? static_cast<int64_t>(p.groups) * c.j.R * c.j.N : 0,
                    left ? own : 0,
                    {own * p.splits, p.splits, p.clustered}};
    if (c.ask) *c.ask = n;
    const as_status s = allow_shared<product<T>>(c.d, c.d->shared, "product", c.e);
    if (c.ask || s != AS_OK) return s;
    if (n.sums > c.p->sums || n.counters > c.p->counters)
        return as_fail(c.e, AS_LIMIT,
                       "product: %d rows of %d x %d, for which no room is reserved", c.j.R,
                       c.j.N, c.j.K);
    job j = c.j;
    j.far = T::RESIDENT == 1 || own * p.splits <= c.d->processors ? FAR : 0;
    plan_early<T>(c.d, p, &j);
    if (!left) j.sum = nullptr;
    const dim3 grid(static_cast<unsigned>(p.tiles), static_cast<unsigned>(p.widths),
                    static_cast<unsigned>(p.splits));
    if (p.clustered)
        LAUNCH_CLUSTERS(grid.z, product<T>, grid, THREADS, p.shared, c.d, j);
    else
        LAUNCH(product<T>, grid, THREADS, p.shared, c.d, j);
    return ag_launched("product", c.e);
}

/* Whether such blocks leave more than a quarter of the device idle, however they are split. */
template <class T> bool idles(const call &c)
{
    const plan p = plan_of<T>(c.d, c.j.N, c.j.K, c.j.R);
    const int64_t most = p.groups < SHARERS ? p.groups : SHARERS;
    return most * p.tiles * p.widths * 4 < c.d->processors * INT64_C(3);
}

template <as_storage S> as_status choose(const call &c)
{
    enum { WIDE = S == AS_F32 ? 2 : 1 }; /* 8 outputs a thread, where many rows pay for them */
    using half = shape<S, 8, 2, WIDE, 4>;
    using full = shape<S, 8, 4, WIDE, 4>;
    const int32_t R = c.j.R;
    if (R == 1) return go<shape<S, 1, 1, 1, 16>>(c);
    if (R == 2) return go<shape<S, 2, 1, 1, 16>>(c);
    if (R <= 4) return go<shape<S, 4, 1, 1, 8>>(c);
    if (R <= 8) return go<shape<S, 8, 1, 1, 4>>(c);
    if (R <= 16) return idles<half>(c) ? go<shape<S, 8, 2, 1, 4>>(c) : go<half>(c);
    return idles<full>(c) ? go<shape<S, 8, 4, 1, 4>>(c) : go<full>(c);
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

/* What a product of R rows takes. */
static as_status need_of(const ag_device *d, const ag_matrix *w, int32_t R, need *n,
                         as_error *e)
{
    job j = {};
    j.N = w->N, j.K = w->K, j.R = R;
    return dispatch(call{d, j, nullptr, n, e}, w->storage);
}

extern "C" as_status ag_product_layout_of(const ag_device *d, const ag_matrix *w, int32_t R,
                                          ag_product_layout *to, as_error *e)
{
    need n = {};
    const as_status s = need_of(d, w, R, &n, e);
    *to = n.layout;
    return s;
}

extern "C" as_status ag_parts_reserve(const ag_device *d, const ag_matrix *w, int32_t R,
                                      ag_parts *p, as_error *e)
{
    int64_t sums = 0, counters = 0;
    for (int32_t r = 1; r <= R; r++) {
        need n = {};
        const as_status s = need_of(d, w, r, &n, e);
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
    if (x_step > INT32_MAX / R)
        return as_fail(e, AS_LIMIT,
                       "product: %d rows, %lld floats apart, are 2^31 floats or more", R,
                       static_cast<long long>(x_step));
    if (w->in_rows) return as_fail(e, AS_BAD_INPUT, "product: the matrix is not in panels");
    if (reinterpret_cast<uintptr_t>(x) % 16 != 0)
        return as_fail(e, AS_BAD_INPUT, "product: its rows begin at %p, not a multiple of 16",
                       static_cast<const void *>(x));
    job j = {};
    j.panel = w->panel, j.x = x, j.y = y;
    j.x_step = static_cast<int32_t>(x_step), j.y_step = y_step;
    j.N = w->N, j.K = w->K, j.R = R;
    j.sum = p->sum, j.arrived = p->arrived;
    return dispatch(call{d, j, p, nullptr, e}, w->storage);
}
