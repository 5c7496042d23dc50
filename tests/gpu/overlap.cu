/* overlap.cu - see overlap.h. */
#include "tests/gpu/overlap.h"

#include "gpu/device/block.cuh"

namespace
{

using ag::thread;

enum { THREADS = 256, TIMES = 8 };

__device__ uint32_t word_of(uint32_t round, uint32_t i)
{
    return (round * OVERLAP_WORDS + i) * 0x9e3779b9u;
}

__global__ void write_words(uint32_t *x, uint32_t round)
{
    take_turn();
    for (int32_t i = thread(); i < OVERLAP_WORDS; i += THREADS)
        x[i] = word_of(round, static_cast<uint32_t>(i));
}

__device__ uint32_t differs(uint32_t found, uint32_t round, int32_t i)
{
    return found != word_of(round, static_cast<uint32_t>(i));
}

/* It reads more than once, so that blocks of the launch behind the next wait meanwhile. */
__global__ void read_words(const uint32_t *x, uint32_t round, uint32_t *wrong)
{
    take_turn();
    uint32_t plain = 0, four = 0;
    UNROLL_BY(1)
    for (int32_t time = 0; time < TIMES; time++) {
        for (int32_t i = thread(); i < OVERLAP_WORDS; i += THREADS)
            plain += differs(x[i], round, i);
        for (int32_t i = thread() * 4; i < OVERLAP_WORDS; i += THREADS * 4) {
            const uint4 v = __ldca(reinterpret_cast<const uint4 *>(x + i));
            four += differs(v.x, round, i) + differs(v.y, round, i + 1) +
                    differs(v.z, round, i + 2) + differs(v.w, round, i + 3);
        }
        __syncthreads();
    }
    if (plain > 0) atomicAdd(wrong, plain);
    if (four > 0) atomicAdd(wrong + 1, four);
}

__global__ void rest(uint32_t /* a launch has an argument */)
{
    take_turn();
}

} // namespace

extern "C" as_status overlap_write(const ag_device *d, uint32_t *x, uint32_t round, as_error *e)
{
    LAUNCH(write_words, 1, THREADS, 0, d, x, round);
    return ag_launched("write_words", e);
}

extern "C" as_status overlap_read(const ag_device *d, const uint32_t *x, uint32_t round,
                                  uint32_t *wrong, as_error *e)
{
    LAUNCH(read_words, static_cast<unsigned>(2 * d->processors), THREADS, 0, d, x, round,
           wrong);
    return ag_launched("read_words", e);
}

extern "C" as_status overlap_rest(const ag_device *d, as_error *e)
{
    LAUNCH(rest, 1, THREADS, 0, d, 0u);
    return ag_launched("rest", e);
}
