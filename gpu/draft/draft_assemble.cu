/* draft_assemble.cu - from the trees of the sequences to the rows of one forward (draft.h).
 *
 * One block, a warp for each sequence up to 8: it adds up the trees' rows in the order of the
 * sequences, and then a warp copies a tree at a time. A batch has some hundreds of rows, a few
 * loads a thread; what it saves is the evaluation of the room that trees do not use. */
#include "gpu/draft/draft_step.h"

namespace
{

enum : unsigned { MOST_WARPS = 8 };

/* The sum of the values of the threads before this one; *total that of all. Ends with a
 * barrier. */
__device__ int32_t sum_before(int32_t value, int32_t *shared, int32_t *total)
{
    int32_t sum = value, before = 0, all = 0;
    for (int by = 1; by < 32; by *= 2) {
        const int32_t other = __shfl_up_sync(FULL, sum, by);
        if (lane() >= by) sum += other;
    }
    if (lane() == 31) shared[thread() / 32] = sum;
    __syncthreads();
    for (int32_t w = 0; w < threads() / 32; w++) {
        if (w < thread() / 32) before += shared[w];
        all += shared[w];
    }
    __syncthreads();
    *total = all;
    return before + sum - value;
}

/* The rows of a tree, and the row of each slot; of slots without one, the root. By a warp. */
__device__ __forceinline__ void copy_tree(const ag_batch &b, int32_t q)
{
    const ag_tree t = b.tree[q];
    const int32_t offset = b.offset[q], number = b.number[q];
    const int32_t *token = piece(b.token, q, b.R), *parent = piece(b.parent, q, b.R);
    for (int32_t r = lane(); r < t.rows; r += 32) {
        b.row_token[offset + r] = token[r];
        b.row_parent[offset + r] = parent[r] < 0 ? -1 : offset + parent[r];
        b.row_of[offset + r] = number;
    }
    const int32_t used = 1 + t.rows - t.wanted, root = t.rows > 0 ? offset : 0;
    for (int32_t k = lane(); k < b.wants; k += 32)
        piece(b.want, q, b.wants)[k] =
            t.rows > 0 && k > 0 && k < used ? offset + t.wanted + k - 1 : root;
}

__global__ void __launch_bounds__(32 * MOST_WARPS) assemble(const ag_batch b)
{
    take_turn();
    SHARED(int32_t, shared);
    int32_t rows = 0;
    for (int32_t base = 0; base < b.B; base += threads()) {
        const int32_t q = base + thread();
        int32_t total;
        const int32_t before = sum_before(q < b.B ? b.tree[q].rows : 0, shared, &total);
        if (q < b.B) b.offset[q] = rows + before;
        rows += total;
    }
    __syncthreads();
    for (int32_t q = thread() / 32; q < b.B; q += threads() / 32) copy_tree(b, q);
    for (int32_t r = rows + thread(); r < b.B * b.R; r += threads()) {
        b.row_token[r] = 0;
        b.row_parent[r] = b.row_of[r] = -1;
    }
}

} // namespace

extern "C" void ag_assemble_rows(const ag_drafter *d)
{
    const unsigned warps = blocks_of(d) < MOST_WARPS ? blocks_of(d) : MOST_WARPS;
    LAUNCH(assemble, 1, 32 * warps, warps * sizeof(int32_t), d->device, d->batch);
}
