/* emu.cpp - see emu.h: fibers, their scheduler, and device memory. */
#include "gpu/emu/emu.h"

#include <link.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "gpu/emu/control.h"
#include "gpu/emu/enqueue.h"
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

enum class at { ready, turn, barrier, warp, cluster, gone };

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
    bool waited = false; /* for its turn */
};

struct warp {
    uint64_t value[32]; /* of the last operation */
    uint32_t votes;
};

struct piece {
    char *at;
    size_t bytes;
};

struct {
    std::vector<fiber> fibers;        /* [together][threads]; those beyond keep their stacks */
    size_t threads = 0, together = 1; /* threads of a block; blocks of a cluster */
    size_t rank = 0;                  /* of the block that runs */
    fiber *block = nullptr;           /* its fibers */
    std::vector<warp> warps;
    std::vector<std::vector<char>> shared; /* of each block of the cluster, */
    std::vector<std::vector<char>>
        kept;                 /* and its static one, unless it is the one that runs */
    std::vector<piece> fixed; /* where static shared memory is */
    void *scheduler = nullptr, *scheduler_fake = nullptr;
    const void *bottom = nullptr; /* of the scheduler's stack */
    size_t size = 0;
    int running = 0;
    bool any = false; /* a predicate at the last barrier */
    const std::function<void()> *body = nullptr;
    const char *kernel = "";
    uint64_t seed = 0, launches = 0, prefetched = 0;
    int processors = 4, cluster = 8;
    bool early = false; /* the block begins before its turn, and stops at it */
} emu;
std::map<void *, size_t> allocated;      /* device memory, in bytes */
constexpr size_t FREE_SHARED = 48 << 10; /* that a launch may have unasked, */
std::map<const void *, size_t> allowed;  /* and what else a kernel may */

inline __attribute__((always_inline)) void enter_fiber(int i)
{
    fiber &f = emu.block[i];
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

[[noreturn]] void fail(const char *what);

void start()
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &emu.bottom, &emu.size);
#endif
    (*emu.body)();
    fiber &f = emu.block[emu.running];
    if (!f.waited) fail("a thread leaves that did not wait for its turn (await_turn)");
    f.where = at::gone;
    leave_fiber(f);
    std::abort(); /* nobody enters a fiber that is gone */
}

/* A stack on which emu_switch jumps into start(), aligned as after a call. */
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
    f.waited = false;
    f.fake = nullptr;
}

void fail(const char *what)
{
    std::fprintf(stderr, "emulator: kernel %s, block (%u, %u, %u): %s\n", emu.kernel,
                 blockIdx.x, blockIdx.y, blockIdx.z, what);
    static const char *const name[] = {"runs",
                                       "before its turn",
                                       "at a barrier",
                                       "at a warp operation",
                                       "at a cluster's barrier",
                                       "has left"};
    for (size_t i = 0; i < emu.threads; i++) {
        const fiber &f = emu.block[i], &before = emu.block[i ? i - 1 : 0];
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

bool all_at(at where)
{
    for (size_t i = 0; i < emu.threads; i++)
        if (emu.block[i].where != where) return false;
    return true;
}

bool same_place(const fiber &a, const fiber &b)
{
    return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

/* All threads of the block stand where `first` does. */
void check_place(const fiber &first)
{
    for (size_t i = 0; i < emu.threads; i++)
        if (!same_place(emu.block[i], first)) fail("threads stand at different barriers");
}

/* All fibers stand at one and the same barrier: it opens. */
bool open_barrier()
{
    if (!all_at(at::barrier)) return false;
    check_place(emu.block[0]);
    emu.any = false;
    for (size_t i = 0; i < emu.threads; i++) {
        emu.block[i].where = at::ready;
        emu.any |= emu.block[i].predicate;
    }
    return true;
}

/* It waits at a warp operation, and is the first lane of its mask, which asks for all of them. */
bool leads(size_t i)
{
    const fiber &f = emu.block[i];
    return f.where == at::warp && (f.mask & (~f.mask + 1)) == UINT32_C(1) << i % 32;
}

/* The lanes of a mask that all stand at one operation exchange their values. */
bool open_warp(size_t w, uint32_t mask, const fiber &asks)
{
    warp to{};
    for (size_t l = 0; l < 32; l++) {
        if (!(mask >> l & 1)) continue;
        const size_t i = w * 32 + l;
        if (i >= emu.threads) fail("a warp operation names lanes that do not exist");
        const fiber &f = emu.block[i];
        if (f.where != at::warp || f.mask != mask || !same_place(f, asks)) return false;
        to.value[l] = f.value;
        to.votes |= static_cast<uint32_t>(f.predicate) << l;
    }
    emu.warps[w] = to;
    for (size_t l = 0; l < 32; l++)
        if (mask >> l & 1) emu.block[w * 32 + l].where = at::ready;
    return true;
}

bool open_warps()
{
    bool any = false;
    for (size_t i = 0; i < emu.threads; i++) {
        const fiber &f = emu.block[i];
        if (leads(i) && open_warp(i / 32, f.mask, f)) any = true;
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
            const fiber &f = emu.block[i];
            if (leads(i) && open_warp(w, f.mask, f)) any = true;
        }
        for (size_t i = w * 32; i < end; i++)
            if (emu.block[i].where == at::ready && any) enter_fiber(static_cast<int>(i));
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

/* Runs the block as far as the next barrier of its cluster, or to its end. */
void run_block(uint64_t salt)
{
    const std::vector<int> order = order_of(emu.threads, salt);
    for (;;) {
        size_t gone = 0;
        for (int i : order) {
            const fiber &f = emu.block[i];
            if (f.where == at::ready) enter_fiber(i);
            if (emu.seed % 2 == 1 && f.where == at::warp)
                run_ahead(static_cast<size_t>(i) / 32);
        }
        for (size_t i = 0; i < emu.threads; i++) gone += emu.block[i].where == at::gone;
        if (gone == emu.threads || all_at(at::cluster)) return;
        if (!open_warps() && !open_barrier())
            fail(gone ? "threads wait for others that have left"
                      : "threads wait for each other at different places");
    }
}

/* ---- Static shared memory. -----------------------------------------------------------------
 * A variable that a kernel declares __shared__ is one for all blocks. That of the block that
 * runs is in it; those of the others of a cluster are kept. */

struct module {
    uintptr_t base;
    std::string file;
};

/* The program or library that this function is in. */
module own_module()
{
    module own{};
    dl_iterate_phdr(
        [](dl_phdr_info *info, size_t, void *to) {
            const auto here = reinterpret_cast<uintptr_t>(&own_module);
            for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) &h = info->dlpi_phdr[i];
                const uintptr_t begin = info->dlpi_addr + h.p_vaddr;
                if (h.p_type != PT_LOAD || here < begin || here >= begin + h.p_memsz) continue;
                const bool program = !info->dlpi_name || !*info->dlpi_name;
                *static_cast<module *>(to) = {info->dlpi_addr,
                                              program ? "/proc/self/exe" : info->dlpi_name};
                return 1;
            }
            return 0;
        },
        &own);
    return own;
}

/* The sections of its file that hold static shared variables: .noinit, and .noinit.NAME for
 * each that a template has. */
std::vector<piece> find_static_shared()
{
    const module own = own_module();
    std::ifstream file(own.file, std::ios::binary);
    const auto read = [&](uint64_t at, void *to, uint64_t bytes) {
        file.seekg(static_cast<std::streamoff>(at));
        file.read(static_cast<char *>(to), static_cast<std::streamsize>(bytes));
    };
    ElfW(Ehdr) head{};
    read(0, &head, sizeof head);
    std::vector<ElfW(Shdr)> section(head.e_shnum);
    read(head.e_shoff, section.data(), section.size() * sizeof section[0]);
    if (!file || head.e_shstrndx >= section.size())
        fail("the sections of the program or library that holds it cannot be read");
    std::string names(section[head.e_shstrndx].sh_size, '\0');
    read(section[head.e_shstrndx].sh_offset, names.data(), names.size());
    if (!file) fail("the sections of the program or library that holds it have no names");
    std::vector<piece> found;
    for (const ElfW(Shdr) & s : section)
        if (std::string(names.c_str() + s.sh_name).rfind(".noinit", 0) == 0)
            found.push_back({reinterpret_cast<char *>(own.base + s.sh_addr), s.sh_size});
    return found;
}

/* Copies, or fills where `from` is NULL, without AddressSanitizer, which guards what is between
 * the variables of a section. */
void put(char *to, const char *from, size_t bytes)
{
    if (from)
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    else
        asm volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(0xff) : "memory");
}

void spoil_shared(size_t rank)
{
    std::fill(emu.shared[rank].begin(), emu.shared[rank].end(), static_cast<char>(0xff));
    if (rank != emu.rank)
        std::fill(emu.kept[rank].begin(), emu.kept[rank].end(), static_cast<char>(0xff));
    else
        for (const piece &p : emu.fixed) put(p.at, nullptr, p.bytes);
}

/* Keeps the static shared memory of the block that ran, and brings that of another. */
void change_static_shared(size_t to)
{
    size_t at = 0;
    for (const piece &p : emu.fixed) {
        put(emu.kept[emu.rank].data() + at, p.at, p.bytes);
        put(p.at, emu.kept[to].data() + at, p.bytes);
        at += p.bytes;
    }
}

/* Makes the block of this rank, in the cluster that begins at `first`, the one that runs. */
void enter_block(size_t rank, const uint3 &first)
{
    if (rank != emu.rank) change_static_shared(rank);
    emu.rank = rank;
    emu.block = emu.fibers.data() + rank * emu.threads;
    blockIdx = {first.x, first.y, first.z + static_cast<unsigned>(rank)};
}

/* All threads of all blocks of the cluster stand at one and the same barrier of it: it opens.
 * A device counts those that have left as present; here they are missed, since what they leave
 * in shared memory is gone. */
void open_cluster(const uint3 &first)
{
    for (size_t r = 0; r < emu.together; r++) {
        enter_block(r, first);
        if (!all_at(at::cluster))
            fail("the blocks of its cluster wait for a block that has left");
        check_place(emu.fibers[0]);
    }
    for (size_t i = 0; i < emu.together * emu.threads; i++) emu.fibers[i].where = at::ready;
}

/* Threads of a launch that has begun while others before it still run: what those will leave in
 * device memory is not there yet. */
void run_to_turn(const uint3 &first)
{
    std::vector<std::vector<char>> held;
    for (const auto &[memory, bytes] : allocated) {
        const char *const from = static_cast<char *>(memory);
        held.emplace_back(from, from + bytes);
        std::memset(memory, 0xff, bytes);
    }
    emu.early = true;
    for (size_t r = 0; r < emu.together; r++) {
        enter_block(r, first);
        for (size_t i = 0; i < emu.threads; i++) {
            enter_fiber(static_cast<int>(i));
            if (emu.block[i].where != at::turn)
                fail("a thread waits for others before it waits for its turn");
            emu.block[i].where = at::ready;
        }
    }
    emu.early = false;
    auto from = held.begin();
    for (const auto &[memory, bytes] : allocated) std::memcpy(memory, (from++)->data(), bytes);
}

/* Blocks see each other only across barriers of the cluster, so each may run up to the next one
 * before another begins. What a block that has left had in shared memory is NaN. */
void run_cluster(const uint3 &first, uint64_t salt, bool early)
{
    uint3 index{0, 0, 0};
    for (size_t i = 0; i < emu.together * emu.threads; i++) {
        if (i % emu.threads == 0) index = {0, 0, 0};
        prepare(emu.fibers[i]);
        emu.fibers[i].index = index;
        if (++index.x == blockDim.x) index.x = 0, ++index.y;
        if (index.y == blockDim.y) index.y = 0, ++index.z;
    }
    emu.rank = 0;
    for (size_t r = 0; r < emu.together; r++) spoil_shared(r);
    if (early) run_to_turn(first);
    for (uint64_t turn = 0;; turn++) {
        size_t gone = 0;
        for (int r : order_of(emu.together, salt + turn)) {
            enter_block(static_cast<size_t>(r), first);
            run_block(salt + static_cast<uint64_t>(r));
            if (!all_at(at::gone)) continue;
            spoil_shared(static_cast<size_t>(r));
            gone++;
        }
        if (gone == emu.together) return;
        open_cluster(first);
    }
}

} // namespace

/* ---- Graphs.
 * ------------------------------------------------------------------------------------- */

struct emu_graph {
    std::vector<std::function<void()>> work;
};
struct emu_exec {
    emu_graph graph;
};

static struct {
    emu_graph *graph; /* NULL: nothing is recorded */
    bool spoilt;      /* something was called that has no place in a graph */
} tape;
static cudaError_t last_error = cudaSuccess;
static std::function<void()> upload; /* that was asked for and has not read its source yet */
static long replays = -1;            /* of graphs that succeed; -1: all */

static cudaError_t answer(cudaError_t code)
{
    if (code != cudaSuccess) last_error = code;
    return code;
}

/* An upload reads its source as late as a device may: when something else is to happen. */
void emu_settle(void)
{
    const std::function<void()> late = std::move(upload);
    upload = nullptr;
    if (late) late();
}

/* Does the work, or keeps it for the replay. */
static void enqueue(const std::function<void()> &work)
{
    emu_settle();
    if (!tape.graph)
        work();
    else if (tape.spoilt)
        answer(cudaErrorStreamCaptureInvalidated);
    else
        tape.graph->work.push_back(work);
}

extern "C" void emu_enqueue(void (*call)(const void *), const void *with, size_t bytes)
{
    const auto *first = static_cast<const char *>(with);
    const std::vector<char> copy(first, first + bytes);
    enqueue([=] { call(copy.data()); });
}

/* Of what has no place in a graph: cudaSuccess where none is recorded. */
cudaError_t emu_outside_of_graphs(void)
{
    if (!tape.graph) return cudaSuccess;
    tape.spoilt = true;
    return answer(cudaErrorStreamCaptureUnsupported);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, cudaStreamCaptureMode)
{
    if (tape.graph) return answer(cudaErrorIllegalState);
    tape = {new emu_graph, false};
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status)
{
    *status = !tape.graph   ? cudaStreamCaptureStatusNone
              : tape.spoilt ? cudaStreamCaptureStatusInvalidated
                            : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *graph)
{
    *graph = nullptr;
    if (!tape.graph) return answer(cudaErrorIllegalState);
    if (tape.spoilt)
        delete tape.graph;
    else
        *graph = tape.graph;
    tape.graph = nullptr;
    return tape.spoilt ? answer(cudaErrorStreamCaptureInvalidated) : cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *ready, cudaGraph_t graph, unsigned)
{
    *ready = new emu_exec{*graph};
    return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t)
{
    return emu_outside_of_graphs();
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
    if (emu_outside_of_graphs() != cudaSuccess) return last_error;
    if (replays == 0) return answer(cudaErrorMemoryAllocation);
    if (replays > 0) replays--;
    emu_settle();
    for (const auto &work : graph->graph.work) work();
    return cudaSuccess;
}

void emu_replays(long n)
{
    replays = n;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    delete graph;
    return cudaSuccess;
}

void emu_order(uint64_t seed)
{
    emu.seed = seed;
}

void emu_processors(int n)
{
    emu.processors = n;
}

void emu_clusters(int most)
{
    emu.cluster = most;
}

uint64_t emu_launches(void)
{
    return emu.launches;
}

uint64_t emu_prefetched(void)
{
    return emu.prefetched;
}

void *emu_shared(void)
{
    return emu.shared[emu.rank].data();
}

/* The names of the kernels that run go to the end of the file that ASSAY_EMU_KERNELS names,
 * each once a process: a test can see that none was left out. */
static void remember(const char *kernel)
{
    static const char *const file = std::getenv("ASSAY_EMU_KERNELS");
    static std::set<std::string> known;
    if (!file || !known.insert(kernel).second) return;
    FILE *const to = std::fopen(file, "a");
    if (!to) fail("the file that ASSAY_EMU_KERNELS names cannot be written");
    std::fprintf(to, "%s\n", kernel);
    std::fclose(to);
}

void emu_run(const void *kernel, const char *name, dim3 grid, dim3 block, size_t shared,
             unsigned cluster, const std::function<void()> &body)
{
    if (tape.graph)
        return enqueue([=] { emu_run(kernel, name, grid, block, shared, cluster, body); });
    emu_settle();
    const size_t threads = static_cast<size_t>(block.x) * block.y * block.z;
    const size_t blocks = static_cast<size_t>(grid.x) * grid.y * grid.z;
    emu.kernel = name;
    gridDim = grid, blockDim = block;
    if (threads < 1 || threads > 1024 || blocks < 1 || grid.y > 65535 || grid.z > 65535)
        fail("the grid or the block has a size that no device takes");
    if (shared > FREE_SHARED && (!allowed.count(kernel) || shared > allowed[kernel]))
        fail("a launch with more than 48 KiB of shared memory, which nobody allowed");
    if (cluster < 1 || cluster > 8 || grid.z % cluster != 0)
        fail("clusters have 1 to 8 blocks, and the grid is made of whole ones");
    emu.threads = threads, emu.together = cluster;
    if (emu.fibers.size() < threads * cluster) emu.fibers.resize(threads * cluster);
    emu.warps.assign((threads + 31) / 32, warp{});
    if (emu.shared.size() != cluster || emu.shared[0].size() != shared)
        emu.shared = std::vector<std::vector<char>>(cluster, std::vector<char>(shared));
    if (emu.kept.empty()) emu.fixed = find_static_shared();
    if (emu.kept.size() < cluster) {
        size_t bytes = 0;
        for (const piece &p : emu.fixed) bytes += p.bytes;
        emu.kept.resize(cluster, std::vector<char>(bytes));
    }
    emu.body = &body;
    static std::set<const void *> known;
    bool early = known.insert(kernel).second || emu.launches % 256 == 0; /* the next block */
    const as_environment before = as_enter(); /* a device has no other */
    for (int b : order_of(blocks / cluster, emu.launches)) {
        const unsigned n = static_cast<unsigned>(b);
        run_cluster({n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y * cluster},
                    emu.launches * blocks + n, early);
        early = false;
    }
    as_leave(before);
    emu.launches++;
    remember(name);
}

/* ---- What fibers call.
 * ------------------------------------------------------------------------ */

static inline __attribute__((always_inline)) fiber &wait(at where, const char *file, int line)
{
    fiber &f = emu.block[emu.running];
    f.where = where, f.file = file, f.line = line;
    leave_fiber(f);
    return f;
}

void emu_await_turn(void)
{
    fiber &f = emu.block[emu.running];
    if (f.waited) fail("a thread waits for its turn again");
    f.waited = true;
    if (emu.early) wait(at::turn, "its turn", 0);
}

void emu_prefetch(const void *p, size_t bytes, size_t unit)
{
    const auto at = reinterpret_cast<uintptr_t>(p);
    const auto behind = allocated.upper_bound(const_cast<void *>(p));
    if (bytes == 0 || at % unit != 0 || bytes % unit != 0)
        fail("a prefetch of no bytes, or not of whole units");
    if (behind == allocated.begin()) fail("a prefetch of what is no device memory");
    const auto &[memory, size] = *std::prev(behind);
    if (at + bytes > reinterpret_cast<uintptr_t>(memory) + size)
        fail("a prefetch beyond the end of an allocation");
    if (bytes >= 16) emu.prefetched += bytes;
}

void emu_sync_block(const char *file, int line)
{
    wait(at::barrier, file, line);
}

void emu_sync_cluster(const char *file, int line)
{
    wait(at::cluster, file, line);
}

const void *emu_cluster_at(const void *p, unsigned rank)
{
    const std::vector<char> &own = emu.shared[emu.rank];
    const ptrdiff_t offset = static_cast<const char *>(p) - own.data();
    if (rank >= emu.together) fail("a block reads beyond its cluster");
    size_t at = 0; /* of a piece, in what is kept */
    for (const piece &s : emu.fixed) {
        const auto in = static_cast<size_t>(static_cast<const char *>(p) - s.at);
        if (in < s.bytes) return rank == emu.rank ? p : emu.kept[rank].data() + at + in;
        at += s.bytes;
    }
    if (offset < 0 || offset > static_cast<ptrdiff_t>(own.size()))
        fail("what a block maps into another is not in its shared memory");
    return emu.shared[rank].data() + offset;
}

bool emu_sync_or(bool predicate, const char *file, int line)
{
    emu.block[emu.running].predicate = predicate;
    wait(at::barrier, file, line);
    return emu.any;
}

static inline int lane(void)
{
    return emu.running % 32;
}

static inline __attribute__((always_inline)) const warp &
meet(uint32_t mask, uint64_t value, bool predicate, const char *file, int line)
{
    fiber &f = emu.block[emu.running];
    if (!(mask >> lane() & 1)) fail("a lane calls a warp operation whose mask lacks it");
    f.mask = mask, f.value = value, f.predicate = predicate;
    wait(at::warp, file, line);
    return emu.warps[static_cast<size_t>(emu.running) / 32];
}

/* The lane that a shuffle reads: a segment begins at `least` and ends before `least + width`.
 */
static int source_of(emu_way way, int by, int width)
{
    const int own = lane(), least = own & -width;
    by &= 31;
    const int from = way == EMU_INDEX  ? least | (by & (width - 1))
                     : way == EMU_UP   ? own - by
                     : way == EMU_DOWN ? own + by
                                       : own ^ by;
    const bool beyond = way == EMU_UP ? from < least : from >= least + width;
    return beyond ? own : from;
}

uint64_t emu_exchange(emu_way way, const char *file, int line, uint32_t mask, uint64_t value,
                      int by, int width)
{
    if (width < 1 || width > 32 || (width & (width - 1)) != 0)
        fail("a shuffle has a width that is no power of two up to 32");
    const int from = source_of(way, by, width);
    if (!(mask >> from & 1)) fail("a shuffle reads a lane that takes no part");
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
    if (emu_outside_of_graphs() != cudaSuccess) return last_error;
    if (posix_memalign(at, 256, bytes) != 0) return cudaErrorMemoryAllocation;
    std::memset(*at, 0xff, bytes);
    allocated[*at] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    if (at && emu_outside_of_graphs() != cudaSuccess) return last_error;
    emu_settle();
    allocated.erase(at);
    std::free(at);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    if (kind != cudaMemcpyDeviceToDevice && emu_outside_of_graphs() != cudaSuccess)
        return last_error;
    if (!bytes) return cudaSuccess;
    if (kind != cudaMemcpyHostToDevice) {
        enqueue([=] { std::memcpy(to, from, bytes); });
        return cudaSuccess;
    }
    emu_settle();
    upload = [=] { std::memcpy(to, from, bytes); };
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int byte, size_t bytes, cudaStream_t)
{
    if (bytes) enqueue([=] { std::memset(at, byte, bytes); });
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t code = last_error;
    last_error = cudaSuccess;
    return code;
}

const char *cudaGetErrorString(cudaError_t e)
{
    switch (e) {
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInsufficientDriver:
        return "insufficient driver";
    case cudaErrorNoDevice:
        return "no device";
    case cudaErrorNoKernelImageForDevice:
        return "no kernel image";
    case cudaErrorLaunchFailure:
        return "launch failure";
    case cudaErrorIllegalState:
        return "nothing is recorded, or something is already";
    case cudaErrorStreamCaptureUnsupported:
        return "not permitted while launches are recorded";
    case cudaErrorStreamCaptureInvalidated:
        return "what was recorded is spoilt by something that is not permitted then";
    default:
        return "emulator";
    }
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
    *n = t == EMU_FINE || t == EMU_OLD_DEVICE || t == EMU_BROKEN_DEVICE;
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

cudaError_t emu_allow(const void *kernel, int bytes)
{
    allowed[kernel] = static_cast<size_t>(bytes);
    return cudaSuccess;
}

cudaError_t emu_function(void)
{
    return machine.trouble == EMU_OLD_DEVICE      ? cudaErrorNoKernelImageForDevice
           : machine.trouble == EMU_BROKEN_DEVICE ? cudaErrorLaunchFailure
                                                  : cudaSuccess;
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
    if (emu_outside_of_graphs() != cudaSuccess) return last_error;
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
    p->l2CacheSize = 1 << 20;
    p->sharedMemPerBlockOptin = 227 << 10;
    return cudaSuccess;
}

int emu_largest_cluster(void)
{
    return emu.cluster;
}
