/* faulty.cu - kernels that each break rules of gpu/check_code.py, so that the rules are seen to
 * hold: all of them must be reported, by name. Nothing runs this code. */
#include "gpu/device/cuda.h"

extern "C" {

/* local: an array indexed by data. */
__global__ void attend_in_local_memory(const int *at, int n, int *to)
{
    take_turn();
    int count[64];
    for (int i = 0; i < 64; i++) count[i] = at[i];
    int sum = 0;
    for (int i = 0; i < n; i++) sum += count[at[i]]++;
    *to = sum;
}

/* large. */
#define TIMES10(text) text text text text text text text text text text
__global__ void attend_unrolled(unsigned *at)
{
    take_turn();
    unsigned x = *at;
    UNROLL
    for (int i = 0; i < 5; i++) {
        TIMES10(TIMES10(TIMES10(asm volatile("mad.lo.u32 %0, %0, %0, 3;" : "+r"(x));)))
    }
    *at = x;
}

/* turn: it does not wait for its turn. */
__global__ void goes_on(const float *x, float *y)
{
    release_next();
    *y = *x;
}

/* early: it reads first. */
__global__ void reads_and_waits(const float *x, float *y)
{
    const float v = *x;
    take_turn();
    *y = v;
}

/* early, too: it might be shared memory. */
__global__ void reads_what_it_waits_for(const float *x, int shared, float *y)
{
    SHARED(float, s);
    const float v = *(shared ? s : x);
    take_turn();
    *y = v;
}

/* constant. */
__global__ void asks_for_a_constant(const float *x, float *y)
{
    take_turn();
    *y = __ldg(x);
}

/* fence. */
__global__ void counts_behind_a_fence(unsigned *counter, float *y)
{
    take_turn();
    y[threadIdx.x] = 1.0f;
    __threadfence();
    atomicAdd(counter, 1u);
}

/* leave: all that was written arrives before the block may leave. */
__global__ void leaves_in_order(float *y)
{
    take_turn();
    SHARED(float, s);
    s[threadIdx.x] = 1.0f;
    cluster_sync();
    y[threadIdx.x] = *cluster_at(s, 1);
    cluster_sync();
}

/* leave: the block that is read may have left. */
__global__ void reads_what_may_have_left(float *y)
{
    take_turn();
    SHARED(float, s);
    s[threadIdx.x] = 1.0f;
    cluster_end();
    y[threadIdx.x] = *cluster_at(s, 1);
}

/* narrow: weights by 4 bytes. */
__global__ void product_of_narrow_loads(const float *w, float *y)
{
    take_turn();
    y[threadIdx.x] = __ldcs(w + threadIdx.x);
}

/* wide: weights through the caches. */
__global__ void product_through_caches(const float4 *w, float4 *y)
{
    take_turn();
    y[threadIdx.x] = w[threadIdx.x];
}

/* flush, and fast: it is an approximation that the PTX names. */
__global__ void flushes(const float *x, float *y)
{
    take_turn();
    asm("add.rn.ftz.f32 %0, %1, %2;" : "=f"(y[0]) : "f"(x[0]), "f"(x[1]));
}

/* fast. */
__global__ void approximates(const float *x, float *y)
{
    take_turn();
    *y = __sinf(*x);
}

/* contracted: as if the compiler had made one operation of two. */
__global__ void probe_contracted(const float *x, float *y)
{
    take_turn();
    *y = __fmaf_rn(x[0], x[1], x[2]);
}

/* loose. */
__global__ void leaves_rounding_open(const float *x, float *y)
{
    take_turn();
    float product;
    asm("mul.f32 %0, %1, %2;" : "=f"(product) : "f"(x[0]), "f"(x[1]));
    asm("add.f32 %0, %1, %2;" : "=f"(*y) : "f"(product), "f"(x[2]));
}

/* tensor. */
__global__ void multiplies_on_tensor_cores(const unsigned *a, float *c)
{
    take_turn();
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]));
}
}
