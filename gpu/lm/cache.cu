/* cache.cu - see cache.h. Small kernels: a thread owns a row of the forward, or a dimension of
 * one key and value. */
#include "gpu/lm/cache.h"

#include "gpu/device/block.cuh"
#include "gpu/lm/cache_at.h"

namespace
{

using namespace ag;

enum { THREADS = 128 };

/* ---- Rows. ------------------------------------------------------------------------------ */

/* TREE-02: as many positions behind the prefix as there are ancestors. Then the row's chunk is
 * filled backwards, until it or the ancestors are used up; what is left is the prefix's. */
__global__ void place_rows(ag_cache c, ag_rows r)
{
    take_turn();
    const int32_t i = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= r.rows) return;
    int32_t position = -1, row = -1;
    if (r.sequence[i] >= 0) {
        position = c.length[r.sequence[i]];
        for (row = r.parent[i]; row >= 0; row = r.parent[row]) position++;
        int32_t *seat = r.seat + static_cast<int64_t>(i) * AS_POSITIONS;
        int32_t place = position % AS_POSITIONS;
        for (row = i; place >= 0 && row >= 0; row = r.parent[row]) seat[place--] = row;
        while (place >= 0) seat[place--] = -1;
    }
    r.position[i] = position;
    r.end[i] = row;
}

/* One block of AG_TILE threads. */
__global__ void find_runs(const int32_t *sequence, int32_t rows, int32_t most, ag_run *run,
                          int32_t *runs)
{
    take_turn();
    SHARED(int32_t, starts); /* of each warp */
    const int32_t i = static_cast<int32_t>(threadIdx.x), warp = i / 32, lane = i % 32;
    const bool starts_here =
        i < rows && sequence[i] >= 0 && (i % most == 0 || sequence[i] != sequence[i - 1]);
    const uint32_t vote = __ballot_sync(0xffffffffu, starts_here);
    if (lane == 0) starts[warp] = __popc(vote);
    __syncthreads();
    int32_t at = __popc(vote & ((1u << lane) - 1)), all = 0;
    for (int32_t w = 0; w < AG_TILE / 32; w++) {
        at += w < warp ? starts[w] : 0;
        all += starts[w];
    }
    if (i == 0) *runs = all;
    if (!starts_here) return;
    int32_t n = 1;
    while (i + n < rows && (i + n) % most != 0 && sequence[i + n] == sequence[i]) n++;
    run[at] = ag_run{i, n};
}

/* ---- Commit. ---------------------------------------------------------------------------- */

/* A block copies the key and value of one row, layer and KV head. */
__global__ void copy_rows(ag_cache c, ag_paths p)
{
    take_turn();
    const int32_t heads = c.layers * c.kv_heads, path = static_cast<int32_t>(blockIdx.y);
    const int32_t i = static_cast<int32_t>(blockIdx.x) / heads;
    const int32_t layer = static_cast<int32_t>(blockIdx.x) % heads / c.kv_heads;
    const int32_t head = static_cast<int32_t>(blockIdx.x) % c.kv_heads;
    const int32_t sequence = p.sequence[path];
    if (sequence < 0 || i >= p.rows[path]) return;
    const int32_t row = p.row[static_cast<int64_t>(path) * p.most + i];
    const int32_t position = c.length[sequence] + i, place = position % AS_POSITIONS;
    const int32_t page = ag_page_of(c, sequence, position / AS_POSITIONS);
    float *key = ag_chunk_at(c, page, layer, head);
    float *value = key + AS_POSITIONS * c.d + place * c.wide;
    const float *from_key = ag_waiting_at(c, layer, 0, sequence, row, head);
    const float *from_value = ag_waiting_at(c, layer, 1, sequence, row, head);
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < c.d; k += THREADS) {
        key[k * AS_POSITIONS + place] = from_key[k];
        value[k] = from_value[k];
    }
}

/* After copy_rows, whose blocks all read the lengths. */
__global__ void lengthen(ag_cache c, ag_paths p)
{
    take_turn();
    const int32_t path = static_cast<int32_t>(blockIdx.x * blockDim.x + threadIdx.x);
    if (path >= p.paths || p.sequence[path] < 0) return;
    c.length[p.sequence[path]] += p.rows[path];
}

/* ---- Looking inside. -------------------------------------------------------------------- */

__global__ void read_position(ag_cache c, int32_t layer, int32_t page, int32_t place, float *to)
{
    take_turn();
    const int32_t head = static_cast<int32_t>(blockIdx.x);
    const float *key = ag_chunk_at(c, page, layer, head);
    const float *value = key + AS_POSITIONS * c.d + place * c.wide;
    float *to_key = to + head * c.wide, *to_value = to_key + c.kv_heads * c.wide;
    for (int32_t k = static_cast<int32_t>(threadIdx.x); k < c.d; k += THREADS) {
        to_key[k] = key[k * AS_POSITIONS + place];
        to_value[k] = value[k];
    }
}

__global__ void spoil_page(ag_cache c, int32_t page, int32_t from)
{
    take_turn();
    float *chunk = ag_chunk_at(c, page, 0, 0) +
                   static_cast<int64_t>(blockIdx.x) * AS_POSITIONS * (c.d + c.wide);
    uint32_t *bits = reinterpret_cast<uint32_t *>(chunk);
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < AS_POSITIONS * c.d; i += THREADS)
        if (i % AS_POSITIONS >= from) bits[i] = 0xffffffffu;
    bits += AS_POSITIONS * c.d;
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < AS_POSITIONS * c.wide; i += THREADS)
        if (i / c.wide >= from) bits[i] = 0xffffffffu;
}

} // namespace

/* ---- What cache.h promises. ------------------------------------------------------------- */

extern "C" int64_t ag_chunk_floats(const ag_cache *c)
{
    return static_cast<int64_t>(AS_POSITIONS) * (c->d + c->wide);
}

extern "C" int64_t ag_page_floats(const ag_cache *c)
{
    return ag_chunk_floats(c) * c->layers * c->kv_heads;
}

extern "C" int64_t ag_waiting_floats(const ag_cache *c)
{
    return static_cast<int64_t>(c->layers) * 2 * c->sequences * c->row_limit * c->kv_heads *
           c->wide;
}

extern "C" as_status ag_place_rows(const ag_device *d, const ag_cache *c, const ag_rows *r,
                                   as_error *e)
{
    LAUNCH(place_rows, blocks_for(r->rows, THREADS), THREADS, 0, d, *c, *r);
    return ag_launched("place_rows", e);
}

extern "C" as_status ag_find_runs(const ag_device *d, const int32_t *sequence, int32_t rows,
                                  int32_t most, ag_run *run, int32_t *runs, as_error *e)
{
    LAUNCH(find_runs, 1, AG_TILE, AG_TILE / 32 * sizeof(int32_t), d, sequence, rows, most, run,
           runs);
    return ag_launched("find_runs", e);
}

extern "C" as_status ag_commit_rows(const ag_device *d, const ag_cache *c, const ag_paths *p,
                                    as_error *e)
{
    const int64_t heads = static_cast<int64_t>(c->layers) * c->kv_heads;
    const dim3 grid(static_cast<unsigned>(p->most * heads), static_cast<unsigned>(p->paths));
    if (p->most < 1 || p->paths < 1) return AS_OK;
    LAUNCH(copy_rows, grid, THREADS, 0, d, *c, *p);
    const as_status s = ag_launched("copy_rows", e);
    if (s != AS_OK) return s;
    LAUNCH(lengthen, blocks_for(p->paths, THREADS), THREADS, 0, d, *c, *p);
    return ag_launched("lengthen", e);
}

extern "C" as_status ag_read_position(const ag_device *d, const ag_cache *c, int32_t layer,
                                      int32_t page, int32_t place, float *to, as_error *e)
{
    LAUNCH(read_position, static_cast<unsigned>(c->kv_heads), THREADS, 0, d, *c, layer, page,
           place, to);
    return ag_launched("read_position", e);
}

extern "C" as_status ag_spoil_page(const ag_device *d, const ag_cache *c, int32_t page,
                                   int32_t from, as_error *e)
{
    LAUNCH(spoil_page, static_cast<unsigned>(c->layers * c->kv_heads), THREADS, 0, d, *c, page,
           from);
    return ag_launched("spoil_page", e);
}
