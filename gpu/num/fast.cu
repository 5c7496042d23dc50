/* fast.cu - the one kernel of the fast path (fast.h): what a product is to multiply, in its
 * storage and shape. A thread has four neighbours of a row, so that even one row of thousands
 * of inputs is work for many blocks. */
#include "gpu/num/fast.h"

#include "gpu/device/block.cuh"
#include "gpu/num/narrow.h"

namespace
{

enum { THREADS = 256, EACH = 4 };

struct rounding {
    const float *x;
    void *to;
    int64_t x_step;
    int32_t R, K;
};

template <as_storage S> struct element {
    typedef uint16_t type;
    static __device__ type of(float x)
    {
        return S == AS_BF16 ? ag_narrow_bf16(x) : ag_narrow_f16(x);
    }
};
template <> struct element<AS_F32> {
    typedef float type;
    static __device__ type of(float x) { return x; }
};

template <class T> struct alignas(EACH * sizeof(T)) four {
    T v[EACH];
};

/* x_step is a multiple of 4, so four floats lie in line wherever a row has so many left. */
template <as_storage S> __global__ void narrow_rows(rounding j)
{
    take_turn();
    typedef typename element<S>::type type;
    const int32_t row = static_cast<int32_t>(blockIdx.x);
    const int32_t k =
        (static_cast<int32_t>(blockIdx.y) * THREADS + static_cast<int32_t>(threadIdx.x)) * EACH;
    if (k >= j.K) return;
    float4 x = {0.0f, 0.0f, 0.0f, 0.0f};
    const float *from = j.x + row * j.x_step + k;
    if (row < j.R && k + EACH <= j.K)
        x = *reinterpret_cast<const float4 *>(from);
    else if (row < j.R)
        x = float4{from[0], k + 1 < j.K ? from[1] : 0.0f, k + 2 < j.K ? from[2] : 0.0f, 0.0f};
    const four<type> y = {
        {element<S>::of(x.x), element<S>::of(x.y), element<S>::of(x.z), element<S>::of(x.w)}};
    type *to = static_cast<type *>(j.to) + static_cast<int64_t>(row) * j.K + k;
    if (j.K % EACH == 0) {
        *reinterpret_cast<four<type> *>(to) = y;
        return;
    }
    for (int32_t i = 0; i < EACH && k + i < j.K; i++) to[i] = y.v[i];
}

template <as_storage S>
as_status go(const ag_device *d, const rounding &j, int32_t rows, as_error *e)
{
    const dim3 grid(static_cast<unsigned>(rows),
                    static_cast<unsigned>((j.K + THREADS * EACH - 1) / (THREADS * EACH)));
    LAUNCH(narrow_rows<S>, grid, THREADS, 0, d, j);
    return ag_launched("narrow_rows", e);
}

} // namespace

extern "C" as_status ag_narrow(const ag_device *d, const float *x, int64_t x_step, int32_t R,
                               int32_t K, void *to, int32_t rows, as_storage storage,
                               as_error *e)
{
    if (R < 0 || rows < R || rows < 1 || K < 1 || x_step % EACH != 0 || x_step < K)
        return as_fail(e, AS_BAD_INPUT, "narrow: %d of %d rows, %lld floats apart", R, rows,
                       static_cast<long long>(x_step));
    const rounding j = {x, to, x_step, R, K};
    return storage == AS_F32   ? go<AS_F32>(d, j, rows, e)
           : storage == AS_F16 ? go<AS_F16>(d, j, rows, e)
                               : go<AS_BF16>(d, j, rows, e);
}
