/* emu.cpp - see emu.h: fibers, their scheduler, and device memory. */
#include "gpu/emu/emu.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "gpu/emu/control.h"
extern "C" {
#include "ref/num/environment.h"
}

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

/* ---- Fibers. -------------------------------------------------------------------------------
 */

#ifndef __x86_64__
#error "the grid emulator switches fibers in x86-64 assembly; build without it elsewhere"
#endif

/* Saves what a call must preserve, and goes on where `to` was left: by a jump, since a return
 * there is one that the processor predicts wrongly. For the same reason the functions that call
 * it are inlined where they can be. */
extern "C" void emu_switch(void **from, void *to);
asm(R"(
    .text
    .type emu_switch, @function
emu_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    pop %rcx
    jmp *%rcx
    .size emu_switch, .-emu_switch
)");

namespace
{

enum class at { ready, barrier, warp, gone };

constexpr size_t stack_bytes = 64 << 10;

struct fiber {
    void *top = nullptr; /* where it was left */
    uint3 index{};       /* its threadIdx */
    std::unique_ptr<char[]> stack;
    void *fake = nullptr; /* AddressSanitizer's */
    at where = at::ready;
    const char *file = nullptr;
    int line = 0;
    uint32_t mask = 0; /* of a warp operation */
    uint64_t value = 0;
    bool predicate = false;
};

struct warp {
    uint64_t value[32]; /* of the last operation */
    uint32_t votes;
};

struct {
    std::vector<fiber> fibers; /* those beyond the block's threads keep their stacks */
    size_t threads = 0;
    std::vector<warp> warps;
    std::vector<char> shared;
    void *scheduler = nullptr, *scheduler_fake = nullptr;
    const void *bottom = nullptr; /* of the scheduler's stack */
    size_t size = 0;
    int running = 0;
    bool any = false; /* a predicate at the last barrier */
    const std::function<void()> *body = nullptr;
    const char *kernel = "";
    uint64_t seed = 0, launches = 0;
    int processors = 4;
} emu;

inline __attribute__((always_inline)) void enter_fiber(int i)
{
    fiber &f = emu.fibers[static_cast<size_t>(i)];
    emu.running = i;
    threadIdx = f.index;
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&emu.scheduler_fake, f.stack.get(), stack_bytes);
#endif
    emu_switch(&emu.scheduler, f.top);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(emu.scheduler_fake, nullptr, nullptr);
#endif
}

/* Back to the scheduler, which decides when to go on. */
inline __attribute__((always_inline)) void leave_fiber(fiber &f)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(f.where == at::gone ? nullptr : &f.fake, emu.bottom,
                                   emu.size);
#endif
    emu_switch(&f.top, emu.scheduler);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(f.fake, &emu.bottom, &emu.size);
#endif
}

void start()
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &emu.bottom, &emu.size);
#endif
    (*emu.body)();
    fiber &f = emu.fibers[static_cast<size_t>(emu.running)];
    f.where = at::gone;
    leave_fiber(f);
    std::abort(); /* nobody enters a fiber that is gone */
}

/* A stack on which emu_switch returns into start(), aligned as after a call. */
void prepare(fiber &f)
{
    if (!f.stack) f.stack.reset(new char[stack_bytes]);
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(f.stack.get(), stack_bytes); /* the last block's frames */
#endif
    auto end = reinterpret_cast<uintptr_t>(f.stack.get() + stack_bytes) & ~uintptr_t{15};
    auto *top = reinterpret_cast<void **>(end) - 2;
    *top = reinterpret_cast<void *>(&start);
    f.top = top - 6;
    f.where = at::ready;
    f.fake = nullptr;
}

[[noreturn]] void fail(const char *what)
{
    std::fprintf(stderr, "emulator: kernel %s, block (%u, %u, %u): %s\n", emu.kernel,
                 blockIdx.x, blockIdx.y, blockIdx.z, what);
    static const char *const name[] = {"runs", "at a barrier", "at a warp operation",
                                       "has left"};
    for (size_t i = 0; i < emu.threads; i++) {
        const fiber &f = emu.fibers[i], &before = emu.fibers[i ? i - 1 : 0];
        const bool same = f.where == before.where && f.line == before.line;
        if (i > 0 && same) continue;
        std::fprintf(stderr, "  from thread %zu on: %s%s%s:%d\n", i,
                     name[static_cast<int>(f.where)],
                     f.where == at::gone ? "; last seen " : ", ",
                     f.file ? f.file : "the kernel's begin", f.line);
    }
    std::abort();
}

/* ---- The scheduler.
 * -------------------------------------------------------------------------- */

/* All fibers stand at one and the same barrier: it opens. */
bool open_barrier()
{
    const fiber &first = emu.fibers[0];
    for (size_t i = 0; i < emu.threads; i++)
        if (emu.fibers[i].where != at::barrier) return false;
    for (size_t i = 0; i < emu.threads; i++)
        if (emu.fibers[i].line != first.line ||
            (emu.fibers[i].file != first.file &&
             std::strcmp(emu.fibers[i].file, first.file) != 0))
            fail("threads stand at different barriers");
    emu.any = false;
    for (size_t i = 0; i < emu.threads; i++) {
        emu.fibers[i].where = at::ready;
        emu.any |= emu.fibers[i].predicate;
    }
    return true;
}

/* The lanes of a mask that all stand at one operation exchange their values. */
bool open_warp(size_t w, uint32_t mask, const fiber &asks)
{
    warp to{};
    for (size_t l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        const size_t i = w * 32 + l;
        if (i >= emu.threads) fail("a warp operation names lanes that do not exist");
        const fiber &f = emu.fibers[i];
        if (f.where != at::warp || f.mask != mask || f.line != asks.line) return false;
        to.value[l] = f.value;
        to.votes |= static_cast<uint32_t>(f.predicate) << l;
    }
    emu.warps[w] = to;
    for (size_t l = 0; l < 32; l++)
        if (mask >> l & 1) emu.fibers[w * 32 + l].where = at::ready;
    return true;
}

bool open_warps()
{
    bool any = false;
    for (size_t i = 0; i < emu.threads; i++) {
        const fiber &f = emu.fibers[i];
        if (f.where == at::warp && open_warp(i / 32, f.mask, f)) any = true;
    }
    return any;
}

/* Lets a warp run on by itself, without the others, as far as its own operations carry it: what
 * it overwrites before the others have read it wants a barrier. */
void run_ahead(size_t w)
{
    const size_t end = std::min(emu.threads, (w + 1) * 32);
    for (bool any = true; any;) {
        any = false;
        for (size_t i = w * 32; i < end; i++) {
            const fiber &f = emu.fibers[i];
            if (f.where == at::warp && open_warp(w, f.mask, f)) any = true;
        }
        for (size_t i = w * 32; i < end; i++)
            if (emu.fibers[i].where == at::ready && any) enter_fiber(static_cast<int>(i));
    }
}

uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return x ^ x >> 33;
}

/* The n places in the order of the seed; `salt` tells blocks from fibers. */
std::vector<int> order_of(size_t n, uint64_t salt)
{
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    if (emu.seed == 1) std::reverse(order.begin(), order.end());
    for (size_t i = n; emu.seed > 1 && i > 1; i--)
        std::swap(order[i - 1], order[mix(emu.seed * 0x9e3779b97f4a7c15u + salt * n + i) % i]);
    return order;
}

void run_block(uint64_t salt)
{
    const std::vector<int> order = order_of(emu.threads, salt);
    uint3 index{0, 0, 0};
    for (size_t i = 0; i < emu.threads; i++) {
        prepare(emu.fibers[i]);
        emu.fibers[i].index = index;
        if (++index.x == blockDim.x) index.x = 0, ++index.y;
        if (index.y == blockDim.y) index.y = 0, ++index.z;
    }
    std::fill(emu.shared.begin(), emu.shared.end(), static_cast<char>(0xff));
    for (;;) {
        size_t gone = 0;
        for (int i : order) {
            const fiber &f = emu.fibers[static_cast<size_t>(i)];
            if (f.where == at::ready) enter_fiber(i);
            if (emu.seed % 2 == 1 && f.where == at::warp)
                run_ahead(static_cast<size_t>(i) / 32);
        }
        for (size_t i = 0; i < emu.threads; i++) gone += emu.fibers[i].where == at::gone;
        if (gone == emu.threads) return;
        if (!open_warps() && !open_barrier())
            fail(gone ? "threads wait for others that have left"
                      : "threads wait for each other at different places");
    }
}

} // namespace

void emu_order(uint64_t seed)
{
    emu.seed = seed;
}

void emu_processors(int n)
{
    emu.processors = n;
}

uint64_t emu_launches(void)
{
    return emu.launches;
}

void *emu_shared(void)
{
    return emu.shared.data();
}

void emu_run(const char *kernel, dim3 grid, dim3 block, size_t shared,
             const std::function<void()> &body)
{
    const size_t threads = static_cast<size_t>(block.x) * block.y * block.z;
    const size_t blocks = static_cast<size_t>(grid.x) * grid.y * grid.z;
    emu.kernel = kernel;
    gridDim = grid, blockDim = block;
    if (threads < 1 || threads > 1024 || blocks < 1 || grid.y > 65535 || grid.z > 65535)
        fail("the grid or the block has a size that no device takes");
    emu.threads = threads;
    if (emu.fibers.size() < threads) emu.fibers.resize(threads);
    emu.warps.assign((threads + 31) / 32, warp{});
    if (emu.shared.size() != shared) emu.shared = std::vector<char>(shared);
    emu.body = &body;
    const as_environment before = as_enter(); /* a device has no other */
    for (int b : order_of(blocks, emu.launches)) {
        const unsigned n = static_cast<unsigned>(b);
        blockIdx = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
        run_block(emu.launches * blocks + n);
    }
    as_leave(before);
    emu.launches++;
}

/* ---- What fibers call.
 * ------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) fiber &wait(at where, const char *file, int line)
{
    fiber &f = emu.fibers[static_cast<size_t>(emu.running)];
    f.where = where, f.file = file, f.line = line;
    leave_fiber(f);
    return f;
}

int emu_lane(void)
{
    return emu.running % 32;
}

void emu_sync_block(const char *file, int line)
{
    wait(at::barrier, file, line);
}

bool emu_sync_or(bool predicate, const char *file, int line)
{
    emu.fibers[static_cast<size_t>(emu.running)].predicate = predicate;
    wait(at::barrier, file, line);
    return emu.any;
}

static inline __attribute__((always_inline)) const warp &
meet(uint32_t mask, uint64_t value, bool predicate, const char *file, int line)
{
    fiber &f = emu.fibers[static_cast<size_t>(emu.running)];
    if (!(mask >> emu_lane() & 1)) fail("a lane calls a warp operation whose mask lacks it");
    f.mask = mask, f.value = value, f.predicate = predicate;
    wait(at::warp, file, line);
    return emu.warps[static_cast<size_t>(emu.running) / 32];
}

uint64_t emu_exchange(uint32_t mask, uint64_t value, int from, const char *file, int line)
{
    if (from < 0 || from > 31 || !(mask >> from & 1))
        fail("a shuffle reads a lane that takes no part");
    return meet(mask, value, false, file, line).value[from];
}

uint32_t emu_vote(uint32_t mask, bool predicate, const char *file, int line)
{
    return meet(mask, 0, predicate, file, line).votes;
}

/* ---- Device memory.
 * ---------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    if (posix_memalign(at, 256, bytes) != 0) return cudaErrorMemoryAllocation;
    std::memset(*at, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    std::free(at);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t)
{
    if (bytes) std::memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t)
{
    if (bytes) std::memset(at, byte, bytes);
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
    return e == cudaErrorMemoryAllocation         ? "out of memory"
           : e == cudaErrorInsufficientDriver     ? "insufficient driver"
           : e == cudaErrorNoDevice               ? "no device"
           : e == cudaErrorNoKernelImageForDevice ? "no kernel image"
                                                  : "emulator";
}

/* ---- What machine it is. ------------------------------------------------------------------
 */

static struct {
    emu_trouble trouble = EMU_FINE;
    size_t left = size_t{1} << 30;
} machine;

void emu_machine(emu_trouble t)
{
    machine.trouble = t;
}

void emu_memory(size_t bytes)
{
    machine.left = bytes;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    const emu_trouble t = machine.trouble;
    *n = t == EMU_FINE || t == EMU_OLD_DEVICE;
    return t == EMU_NO_DRIVER || t == EMU_OLD_DRIVER ? cudaErrorInsufficientDriver
           : t == EMU_NO_DEVICE                      ? cudaErrorNoDevice
                                                     : cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = machine.trouble == EMU_OLD_DRIVER  ? 11040
               : machine.trouble == EMU_NO_DEVICE ? 13000
                                                  : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = machine.trouble == EMU_FINE ? 0 : 13000;
    return cudaSuccess;
}

cudaError_t emu_function(void)
{
    return machine.trouble == EMU_OLD_DEVICE ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}

struct emu_event {
    std::chrono::steady_clock::time_point when;
};

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = new emu_event{};
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t)
{
    event->when = std::chrono::steady_clock::now();
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    *ms = std::chrono::duration<float, std::milli>(end->when - begin->when).count();
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all)
{
    *unused = *all = machine.left;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    *p = {};
    std::snprintf(p->name, sizeof p->name, "grid emulator");
    if (machine.trouble == EMU_OLD_DEVICE) p->major = 7, p->minor = 5;
    p->multiProcessorCount = emu.processors;
    p->sharedMemPerBlockOptin = 227 << 10;
    return cudaSuccess;
}
