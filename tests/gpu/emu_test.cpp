/* emu_test.cpp - the grid emulator finds what it says it finds (gpu/emu/emu.h), and computes
 * what a device computes: each fault below is planted in a kernel of its own. */
#include <csignal>
#include <cstring>

#include "gpu/device/cuda.h"
#include "gpu/emu/control.h"
#include "tests/ref/suite.h"

enum { THREADS = 128 };

/* ---- Kernels. ---------------------------------------------------------------------------- */

enum fault {
    NO_FAULT,
    NO_BARRIER,
    LEAVES_EARLY,
    OTHER_BARRIER,
    READS_FRESH,
    LANE_MISSING,
    LANE_OUTSIDE,
    NEVER_WAITS,
    WAITS_TWICE,
    MEETS_EARLY,
    READS_EARLY,
    WRITES_EARLY,
};

/* y[b] = the sum of THREADS numbers: partial sums in shared memory, then in the first warp. */
__global__ void sum(const float *x, float *y, fault f)
{
    SHARED(float, s);
    const int t = static_cast<int>(threadIdx.x);
    const float *mine = x + blockIdx.x * THREADS + threadIdx.x;
    const float early = f == READS_EARLY ? *mine : 0.0f;
    if (f == MEETS_EARLY) __syncthreads();
    if (f == WRITES_EARLY && t == 0) y[blockIdx.x] = 7.5f * THREADS;
    if (f != NEVER_WAITS || t != 9) take_turn();
    if (f == WAITS_TWICE) await_turn();
    if (f == WRITES_EARLY) return;
    if (f != READS_FRESH || t != 5) s[t] = f == READS_EARLY ? early : *mine;
    if (f == LEAVES_EARLY && t == 7) return;
    if (f == OTHER_BARRIER && t == 7)
        __syncthreads();
    else if (f != NO_BARRIER)
        __syncthreads();
    if (t >= 32) return;
    float v = ((s[t] + s[t + 32]) + s[t + 64]) + s[t + 96];
    if (f == LANE_MISSING && t == 9) return;
    const uint32_t mask = f == LANE_OUTSIDE ? 0x7fffffffu : 0xffffffffu;
    for (int bits = 16; bits > 0; bits /= 2) v += __shfl_xor_sync(mask, v, bits);
    if (t == 0) y[blockIdx.x] = v;
}

static float *number(size_t n)
{
    void *at;
    ck_assert_int_eq(cudaMalloc(&at, n * sizeof(float)), cudaSuccess);
    return static_cast<float *>(at);
}

/* Whether every block has its sum, in each of the first orders. */
static bool sums_are_right(fault f, uint64_t orders)
{
    enum { BLOCKS = 3 };
    float *x = number(BLOCKS * THREADS), *y = number(BLOCKS);
    bool right = true;
    for (int i = 0; i < BLOCKS * THREADS; i++) x[i] = static_cast<float>(i % 16);
    for (uint64_t order = 0; order < orders; order++) {
        emu_order(order);
        LAUNCH(sum, BLOCKS, THREADS, THREADS * sizeof(float), nullptr, x, y, f);
        for (int b = 0; b < BLOCKS; b++) right = right && y[b] == 7.5f * THREADS;
    }
    cudaFree(x);
    cudaFree(y);
    return right;
}

/* ---- Tests. ------------------------------------------------------------------------------ */

START_TEST(a_right_kernel_is_right_in_every_order)
{
    const uint64_t before = emu_launches();
    ck_assert(sums_are_right(NO_FAULT, 20));
    ck_assert_uint_eq(emu_launches() - before, 20);
}
END_TEST

START_TEST(a_missing_barrier_shows)
{
    ck_assert(sums_are_right(NO_FAULT, 4));
    ck_assert(!sums_are_right(NO_BARRIER, 4));
}
END_TEST

START_TEST(fresh_memory_is_nan)
{
    ck_assert(!sums_are_right(READS_FRESH, 1));
    float *x = number(4);
    for (int i = 0; i < 4; i++) ck_assert(x[i] != x[i]);
    cudaFree(x);
}
END_TEST

START_TEST(waiting_for_one_that_has_left_aborts)
{
    sums_are_right(LEAVES_EARLY, 1);
}
END_TEST

START_TEST(different_barriers_abort)
{
    sums_are_right(OTHER_BARRIER, 1);
}
END_TEST

START_TEST(a_warp_that_never_meets_aborts)
{
    sums_are_right(LANE_MISSING, 1);
}
END_TEST

START_TEST(a_lane_outside_its_mask_aborts)
{
    sums_are_right(LANE_OUTSIDE, 1);
}
END_TEST

START_TEST(a_thread_that_does_not_wait_for_its_turn_aborts)
{
    sums_are_right(NEVER_WAITS, 1);
}
END_TEST

START_TEST(waiting_twice_for_a_turn_aborts)
{
    sums_are_right(WAITS_TWICE, 1);
}
END_TEST

START_TEST(a_barrier_before_the_turn_aborts)
{
    sums_are_right(MEETS_EARLY, 1);
}
END_TEST

START_TEST(what_is_read_before_the_turn_is_not_there)
{
    ck_assert(!sums_are_right(READS_EARLY, 1));
}
END_TEST

START_TEST(what_is_written_before_the_turn_is_lost)
{
    ck_assert(!sums_are_right(WRITES_EARLY, 1));
}
END_TEST

/* ---- Warps. ------------------------------------------------------------------------------ */

__global__ void warps(uint32_t *to)
{
    take_turn();
    const unsigned t = threadIdx.x, lane = t % 32;
    uint32_t *my = to + t * 6;
    my[0] = __ballot_sync(0xffffffffu, t % 3 == 0);
    my[1] = __any_sync(0xffffffffu, t == 40);
    my[2] = __all_sync(0xffffffffu, t < 40);
    my[3] = __shfl_up_sync(0xffffffffu, t, 3);
    my[4] = __shfl_down_sync(0xffffffffu, t, 3);
    my[5] = 99;
    if (lane < 16) my[5] = __shfl_sync(0x0000ffffu, t, 2); /* half a warp */
}

START_TEST(warp_operations)
{
    for (uint64_t order = 0; order < 5; order++) {
        uint32_t to[64][6];
        emu_order(order);
        LAUNCH(warps, 1, 64, 0, nullptr, &to[0][0]);
        for (unsigned t = 0; t < 64; t++) {
            uint32_t thirds = 0;
            for (unsigned l = 0; l < 32; l++)
                thirds |= ((t / 32 * 32 + l) % 3 == 0 ? 1u : 0u) << l;
            const unsigned lane = t % 32;
            const uint32_t wanted[] = {thirds,
                                       t >= 32,
                                       t < 32,
                                       lane < 3 ? t : t - 3,
                                       lane > 28 ? t : t + 3,
                                       lane < 16 ? t / 32 * 32 + 2 : 99};
            ck_assert_msg(std::memcmp(to[t], wanted, sizeof wanted) == 0, "thread %u", t);
        }
    }
}
END_TEST

/* What each lane gets of the number of its lane, by the four shuffles, in segments of `width`.
 */
__global__ void segments(int *to, int by, int width)
{
    take_turn();
    const int t = static_cast<int>(threadIdx.x);
    to[t * 4] = __shfl_sync(0xffffffffu, t, by, width);
    to[t * 4 + 1] = __shfl_up_sync(0xffffffffu, t, by, width);
    to[t * 4 + 2] = __shfl_down_sync(0xffffffffu, t, by, width);
    to[t * 4 + 3] = __shfl_xor_sync(0xffffffffu, t, by, width);
}

/* As CUDA and PTX (shfl.sync) define them: written here by hand for some, and below by the
 * clamp and the mask of segments that PTX has. */
START_TEST(shuffles_in_segments)
{
    int to[32][4];
    LAUNCH(segments, 1, 32, 0, nullptr, &to[0][0], 3, 8);
    const int wanted[][5] = {{0, 3, 0, 3, 3},    {4, 3, 1, 7, 7},      {5, 3, 2, 5, 6},
                             {9, 11, 9, 12, 10}, {13, 11, 10, 13, 14}, {31, 27, 28, 31, 28}};
    for (const auto &w : wanted)
        ck_assert_msg(std::memcmp(to[w[0]], w + 1, sizeof to[0]) == 0, "lane %d", w[0]);
    LAUNCH(segments, 1, 32, 0, nullptr, &to[0][0], 9, 8); /* beyond the width */
    const int beyond[][5] = {
        {0, 1, 0, 0, 0}, {3, 1, 3, 3, 3}, {12, 9, 12, 12, 5}, {17, 17, 17, 17, 17}};
    for (const auto &w : beyond)
        ck_assert_msg(std::memcmp(to[w[0]], w + 1, sizeof to[0]) == 0, "lane %d", w[0]);
    for (int width = 1; width <= 32; width *= 2)
        for (int by : {0, 1, 3, 7, 16, 31, 32, 33, -1}) {
            emu_order(static_cast<uint64_t>(by & 7));
            LAUNCH(segments, 1, 32, 0, nullptr, &to[0][0], by, width);
            for (int lane = 0; lane < 32; lane++) {
                const int b = by & 31, segment = 32 - width, least = lane & segment,
                          most = least | (31 & ~segment);
                const int at[] = {least | (b & ~segment), lane - b, lane + b, lane ^ b};
                for (int k = 0; k < 4; k++) {
                    const bool in = k == 1 ? at[k] >= least : at[k] <= most;
                    ck_assert_msg(to[lane][k] == (in ? at[k] : lane), "%d by %d in %d: %d",
                                  lane, by, width, k);
                }
            }
        }
}
END_TEST

/* The lane of a shuffle is taken modulo 32, so that -1 is the last one. */
START_TEST(a_lane_beyond_the_warp_is_taken_modulo)
{
    int to[32][4];
    for (int by : {-1, 31, 63}) {
        LAUNCH(segments, 1, 32, 0, nullptr, &to[0][0], by, 32);
        for (const auto &lane : to) ck_assert_int_eq(lane[0], 31);
    }
}
END_TEST

START_TEST(a_width_that_is_no_power_of_two_aborts)
{
    static const int width[] = {0, 6, 64, -8};
    int to[32][4];
    LAUNCH(segments, 1, 32, 0, nullptr, &to[0][0], 1, width[_i]);
}
END_TEST

/* Half a warp: the lane that is read, modulo 8 or not, is one of the others. */
__global__ void reads_beyond_mask(int *to, int by, int width)
{
    take_turn();
    const int t = static_cast<int>(threadIdx.x);
    if (t < 16) to[t] = __shfl_down_sync(0x0000ffffu, t, by, width);
}

START_TEST(a_segment_inside_the_mask_is_read)
{
    int to[16];
    LAUNCH(reads_beyond_mask, 1, 32, 0, nullptr, to, 1, 16);
    for (int t = 0; t < 16; t++) ck_assert_int_eq(to[t], t < 15 ? t + 1 : 15);
}
END_TEST

START_TEST(a_lane_that_the_mask_lacks_aborts)
{
    int to[16];
    LAUNCH(reads_beyond_mask, 1, 32, 0, nullptr, to, 1, 32);
}
END_TEST

/* Barriers one behind the other, each with an answer of its own. */
__global__ void asks(int *to, int who)
{
    take_turn();
    const int t = static_cast<int>(threadIdx.x);
    to[t] = __syncthreads_or(t == who);
    to[t] += 2 * __syncthreads_or(false);
    to[t] += 4 * (__syncthreads_or(t == 0) != 0);
}

START_TEST(a_barrier_that_asks)
{
    for (int who = 63; who <= 64; who++) { /* the last thread; nobody */
        int to[64];
        emu_order(static_cast<uint64_t>(who));
        LAUNCH(asks, 1, 64, 0, nullptr, to, who);
        for (int answer : to) ck_assert_int_eq(answer, who < 64 ? 5 : 4);
    }
}
END_TEST

/* ---- Clusters. --------------------------------------------------------------------------- */

enum cluster_fault {
    WHOLE,
    NO_BARRIER_BEFORE,
    NO_BARRIER_BEHIND,
    ONE_LEAVES,
    OTHER_PLACE,
    BEYOND,
    NOT_SHARED
};

/* y[b] = 100 times the rank of the next block of its cluster, and the number of that cluster,
 * as that block has them in shared memory. */
__global__ void ask_neighbour(float *y, int blocks, cluster_fault f)
{
    take_turn();
    SHARED(float, own);
    const int rank = static_cast<int>(blockIdx.z) % blocks;
    const unsigned block = blockIdx.z * gridDim.x + blockIdx.x;
    const float cluster =
        static_cast<float>(block / gridDim.x / blocks * gridDim.x + blockIdx.x);
    if (threadIdx.x == 3) own[1] = 100.0f * static_cast<float>(rank) + cluster;
    __syncthreads();
    if (f == ONE_LEAVES && rank == 1) return;
    if (f == OTHER_PLACE && rank == 1)
        cluster_sync();
    else if (f != NO_BARRIER_BEFORE)
        cluster_sync();
    const int next = f == BEYOND ? rank + 1 : (rank + 1) % blocks;
    const float *there = cluster_at(f == NOT_SHARED ? y : own + 1, next);
    if (threadIdx.x == 5) y[block] = *there;
    if (f != NO_BARRIER_BEHIND) cluster_sync();
}

static bool neighbours_answer(cluster_fault f, int blocks, uint64_t orders)
{
    enum { X = 3, CLUSTERS_OF_Z = 2 };
    const int z = blocks * CLUSTERS_OF_Z;
    float *y = number(static_cast<size_t>(X * z));
    bool right = true;
    for (uint64_t order = 0; order < orders; order++) {
        std::memset(y, 0xff, static_cast<size_t>(X * z) * sizeof *y);
        emu_order(order);
        LAUNCH_CLUSTERS(static_cast<unsigned>(blocks), ask_neighbour,
                        dim3(X, 1, static_cast<unsigned>(z)), 64, 2 * sizeof(float), nullptr, y,
                        blocks, f);
        for (int i = 0; i < X * z; i++) {
            const int rank = i / X % blocks, cluster = i / X / blocks * X + i % X;
            right = right && y[i] == static_cast<float>(100 * ((rank + 1) % blocks) + cluster);
        }
    }
    cudaFree(y);
    return right;
}

START_TEST(blocks_of_a_cluster_see_each_other)
{
    for (int blocks = 1; blocks <= 8; blocks++) ck_assert(neighbours_answer(WHOLE, blocks, 12));
}
END_TEST

START_TEST(a_missing_barrier_of_a_cluster_shows)
{
    ck_assert(!neighbours_answer(NO_BARRIER_BEFORE, 2, 1));
    ck_assert(!neighbours_answer(NO_BARRIER_BEFORE, 8, 1));
}
END_TEST

START_TEST(leaving_before_others_have_read_shows)
{
    ck_assert(!neighbours_answer(NO_BARRIER_BEHIND, 2, 1));
    ck_assert(!neighbours_answer(NO_BARRIER_BEHIND, 8, 1));
}
END_TEST

START_TEST(a_cluster_that_waits_for_one_that_has_left_aborts)
{
    neighbours_answer(ONE_LEAVES, 3, 1);
}
END_TEST

START_TEST(different_barriers_of_a_cluster_abort)
{
    neighbours_answer(OTHER_PLACE, 3, 1);
}
END_TEST

START_TEST(a_rank_beyond_the_cluster_aborts)
{
    neighbours_answer(BEYOND, 3, 1);
}
END_TEST

START_TEST(what_is_not_shared_is_in_no_other_block)
{
    neighbours_answer(NOT_SHARED, 3, 1);
}
END_TEST

START_TEST(a_cluster_too_large_aborts)
{
    neighbours_answer(WHOLE, 9, 1);
}
END_TEST

START_TEST(a_part_of_a_cluster_aborts)
{
    float y[8];
    LAUNCH_CLUSTERS(2, ask_neighbour, dim3(1, 1, 3), 64, 8, nullptr, y, 2, WHOLE);
}
END_TEST

/* ---- Static shared memory. --------------------------------------------------------------- */

/* y[b] = the sum of N numbers that the block's threads put into static shared memory; thread 5
 * leaves its own out where the block is told so. */
template <int N> __global__ void static_sum(float *y, int leaves_out)
{
    __shared__ float s[N];
    take_turn();
    const int t = static_cast<int>(threadIdx.x);
    if (t != 5 || leaves_out != static_cast<int>(blockIdx.x)) s[t] = static_cast<float>(t);
    __syncthreads();
    if (t != 0) return;
    float all = 0;
    for (int i = 0; i < N; i++) all += s[i];
    y[blockIdx.x] = all;
}

/* The same memory for all that a function is called by, another one for each function. */
__device__ static int *of_function()
{
    __shared__ int two[2];
    return two;
}

__global__ void two_variables(int *to)
{
    __shared__ int two[2];
    take_turn();
    const int t = static_cast<int>(threadIdx.x);
    if (t == 7) two[0] = 70 + static_cast<int>(blockIdx.x);
    if (t == 8) of_function()[0] = 80 + static_cast<int>(blockIdx.x);
    __syncthreads();
    if (t == 9) to[blockIdx.x * 2] = two[0], to[blockIdx.x * 2 + 1] = of_function()[0];
}

START_TEST(static_shared_memory_is_the_block_s)
{
    float y[3];
    int to[3][2];
    for (uint64_t order = 0; order < 5; order++) {
        emu_order(order);
        LAUNCH(static_sum<64>, 3, 64, 0, nullptr, y, -1);
        for (float sum : y) ck_assert(sum == 63 * 32);
        LAUNCH(static_sum<128>, 3, 128, 0, nullptr, y, -1);
        for (float sum : y) ck_assert(sum == 127 * 64);
        LAUNCH(two_variables, 3, 32, 0, nullptr, &to[0][0]);
        for (int b = 0; b < 3; b++) {
            ck_assert_int_eq(to[b][0], 70 + b);
            ck_assert_int_eq(to[b][1], 80 + b);
        }
    }
}
END_TEST

/* What the blocks and launches before have left is gone. */
START_TEST(fresh_static_shared_memory_is_nan)
{
    float y[3];
    emu_order(0);
    LAUNCH(static_sum<64>, 3, 64, 0, nullptr, y, -1);
    for (int b = 0; b < 3; b++) {
        LAUNCH(static_sum<64>, 3, 64, 0, nullptr, y, b);
        for (int i = 0; i < 3; i++) ck_assert((y[i] != y[i]) == (i == b));
    }
}
END_TEST

/* As ask_neighbour, with static shared memory, which each block of a cluster has for itself.
 * The block `silent` writes nothing. */
__global__ void ask_static(float *y, int blocks, cluster_fault f, int silent)
{
    __shared__ float own[3];
    take_turn();
    const int rank = static_cast<int>(blockIdx.z) % blocks;
    if (threadIdx.x == 3 && static_cast<int>(blockIdx.z) != silent)
        own[1] = static_cast<float>(blockIdx.z);
    if (f != NO_BARRIER_BEFORE) cluster_sync();
    const int next = (rank + 1) % blocks;
    if (threadIdx.x == 5) y[blockIdx.z] = *cluster_at(own + 1, next) + 100.0f * own[1];
    if (f != NO_BARRIER_BEHIND) cluster_sync();
}

static bool static_neighbours_answer(cluster_fault f, int blocks, uint64_t orders)
{
    enum { CLUSTERS_OF_Z = 2 };
    const int z = blocks * CLUSTERS_OF_Z;
    float *y = number(static_cast<size_t>(z));
    bool right = true;
    for (uint64_t order = 0; order < orders; order++) {
        emu_order(order);
        LAUNCH_CLUSTERS(static_cast<unsigned>(blocks), ask_static,
                        dim3(1, 1, static_cast<unsigned>(z)), 64, 0, nullptr, y, blocks, f, -1);
        for (int i = 0; i < z; i++) {
            const int next = i / blocks * blocks + (i + 1) % blocks;
            right = right && y[i] == static_cast<float>(next + 100 * i);
        }
    }
    cudaFree(y);
    return right;
}

START_TEST(blocks_of_a_cluster_have_static_shared_memory_each)
{
    for (int blocks = 1; blocks <= 8; blocks++)
        ck_assert(static_neighbours_answer(WHOLE, blocks, 12));
    ck_assert(!static_neighbours_answer(NO_BARRIER_BEFORE, 2, 1));
    ck_assert(!static_neighbours_answer(NO_BARRIER_BEHIND, 2, 1));
}
END_TEST

START_TEST(fresh_static_shared_memory_of_a_cluster_is_nan)
{
    enum { BLOCKS = 3 };
    float y[BLOCKS];
    for (int silent = -1; silent < BLOCKS; silent++) {
        LAUNCH_CLUSTERS(BLOCKS, ask_static, dim3(1, 1, BLOCKS), 32, 0, nullptr, y, BLOCKS,
                        WHOLE, silent);
        for (int i = 0; i < BLOCKS; i++) {
            const bool asks = i == silent || (i + 1) % BLOCKS == silent;
            ck_assert((y[i] != y[i]) == (asks && silent >= 0));
        }
    }
}
END_TEST

/* ---- The grid. --------------------------------------------------------------------------- */

__global__ void visit(uint32_t *seen, uint32_t *turn, uint32_t *when)
{
    take_turn();
    const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned i = b * blockDim.x * blockDim.y * blockDim.z + t;
    seen[i]++;
    when[i] = atomicAdd(turn, 1u);
}

START_TEST(every_thread_runs_once)
{
    enum { ALL = 2 * 3 * 2 * 4 * 2 * 8 };
    uint32_t first[ALL], when[ALL];
    for (uint64_t order = 0; order < 4; order++) {
        uint32_t seen[ALL] = {}, turn = 0;
        emu_order(order);
        LAUNCH(visit, dim3(2, 3, 2), dim3(4, 2, 8), 0, nullptr, seen, &turn, when);
        for (uint32_t n : seen) ck_assert_uint_eq(n, 1);
        if (order == 0) {
            std::memcpy(first, when, sizeof when);
            for (uint32_t i = 0; i < ALL; i++) ck_assert_uint_eq(when[i], i);
        } else
            ck_assert(std::memcmp(first, when, sizeof when) != 0);
    }
}
END_TEST

START_TEST(a_block_too_large_aborts)
{
    uint32_t seen, turn, when;
    LAUNCH(visit, 1, 1025, 0, nullptr, &seen, &turn, &when);
}
END_TEST

/* ---- Graphs. ----------------------------------------------------------------------------- */

static cudaGraphExec_t made(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    ck_assert_int_eq(cudaStreamEndCapture(nullptr, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphInstantiateWithFlags(&ready, graph, 0), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    return ready;
}

START_TEST(a_recording_keeps_its_arguments)
{
    float *x = number(THREADS), *y = number(1), *to = y;
    fault f = NO_FAULT;
    const uint64_t before = emu_launches();
    ck_assert_int_eq(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
                     cudaSuccess);
    LAUNCH(sum, 1, THREADS, THREADS * sizeof(float), nullptr, x, to, f);
    cudaGraphExec_t graph = made();
    f = READS_FRESH, to = nullptr;
    ck_assert(y[0] != y[0]);
    ck_assert_uint_eq(emu_launches(), before);
    for (int n = 1; n <= 2; n++) {
        for (int i = 0; i < THREADS; i++) x[i] = static_cast<float>(n);
        ck_assert_int_eq(cudaGraphLaunch(graph, nullptr), cudaSuccess);
        ck_assert(y[0] == static_cast<float>(n * THREADS));
        ck_assert_uint_eq(emu_launches() - before, n);
    }
    ck_assert_int_eq(cudaGraphExecDestroy(graph), cudaSuccess);
    cudaFree(x);
    cudaFree(y);
    (void)f, (void)to;
}
END_TEST

/* One of the calls that have no place in a graph. */
static cudaError_t misplaced(int which, float *at, cudaEvent_t event)
{
    void *fresh;
    float one = 1.0f;
    switch (which) {
    case 0:
        return cudaMalloc(&fresh, 1);
    case 1:
        return cudaFree(at);
    case 2:
        return cudaMemcpyAsync(at, &one, sizeof one, cudaMemcpyHostToDevice, nullptr);
    case 3:
        return cudaMemcpyAsync(&one, at, sizeof one, cudaMemcpyDeviceToHost, nullptr);
    case 4:
        return cudaStreamSynchronize(nullptr);
    default:
        return cudaEventRecord(event, nullptr);
    }
}

START_TEST(what_a_recording_refuses)
{
    float *x = number(THREADS), *y = number(1);
    cudaEvent_t event;
    cudaGraph_t graph;
    ck_assert_int_eq(cudaEventCreate(&event), cudaSuccess);
    ck_assert_int_eq(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
                     cudaSuccess);
    ck_assert_int_eq(misplaced(_i, x, event), cudaErrorStreamCaptureUnsupported);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
    LAUNCH(sum, 1, THREADS, THREADS * sizeof(float), nullptr, x, y, NO_FAULT);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    ck_assert_int_eq(cudaStreamEndCapture(nullptr, &graph), cudaErrorStreamCaptureInvalidated);
    ck_assert_ptr_null(graph);
    ck_assert_int_eq(cudaStreamEndCapture(nullptr, &graph), cudaErrorIllegalState);
    ck_assert(y[0] != y[0]);
    ck_assert_int_eq(cudaEventDestroy(event), cudaSuccess);
    ck_assert_int_eq(cudaFree(x), cudaSuccess);
    ck_assert_int_eq(cudaFree(y), cudaSuccess);
}
END_TEST

int main()
{
    TCase *tests = tcase_create("emulator");
    tcase_add_test(tests, a_right_kernel_is_right_in_every_order);
    tcase_add_test(tests, a_missing_barrier_shows);
    tcase_add_test(tests, fresh_memory_is_nan);
    tcase_add_test_raise_signal(tests, waiting_for_one_that_has_left_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, different_barriers_abort, SIGABRT);
    tcase_add_test_raise_signal(tests, a_warp_that_never_meets_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, a_lane_outside_its_mask_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, a_thread_that_does_not_wait_for_its_turn_aborts,
                                SIGABRT);
    tcase_add_test_raise_signal(tests, waiting_twice_for_a_turn_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, a_barrier_before_the_turn_aborts, SIGABRT);
    tcase_add_test(tests, what_is_read_before_the_turn_is_not_there);
    tcase_add_test(tests, what_is_written_before_the_turn_is_lost);
    tcase_add_test(tests, warp_operations);
    tcase_add_test(tests, shuffles_in_segments);
    tcase_add_test(tests, a_lane_beyond_the_warp_is_taken_modulo);
    tcase_add_loop_test_raise_signal(tests, a_width_that_is_no_power_of_two_aborts, SIGABRT, 0,
                                     4);
    tcase_add_test(tests, a_segment_inside_the_mask_is_read);
    tcase_add_test_raise_signal(tests, a_lane_that_the_mask_lacks_aborts, SIGABRT);
    tcase_add_test(tests, a_barrier_that_asks);
    tcase_add_test(tests, blocks_of_a_cluster_see_each_other);
    tcase_add_test(tests, a_missing_barrier_of_a_cluster_shows);
    tcase_add_test(tests, leaving_before_others_have_read_shows);
    tcase_add_test_raise_signal(tests, a_cluster_that_waits_for_one_that_has_left_aborts,
                                SIGABRT);
    tcase_add_test_raise_signal(tests, different_barriers_of_a_cluster_abort, SIGABRT);
    tcase_add_test_raise_signal(tests, a_rank_beyond_the_cluster_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, what_is_not_shared_is_in_no_other_block, SIGABRT);
    tcase_add_test_raise_signal(tests, a_cluster_too_large_aborts, SIGABRT);
    tcase_add_test_raise_signal(tests, a_part_of_a_cluster_aborts, SIGABRT);
    tcase_add_test(tests, static_shared_memory_is_the_block_s);
    tcase_add_test(tests, fresh_static_shared_memory_is_nan);
    tcase_add_test(tests, blocks_of_a_cluster_have_static_shared_memory_each);
    tcase_add_test(tests, fresh_static_shared_memory_of_a_cluster_is_nan);
    tcase_add_test(tests, every_thread_runs_once);
    tcase_add_test_raise_signal(tests, a_block_too_large_aborts, SIGABRT);
    tcase_add_test(tests, a_recording_keeps_its_arguments);
    tcase_add_loop_test(tests, what_a_recording_refuses, 0, 6);
    return suite_main("gpu emulator", tests);
}
