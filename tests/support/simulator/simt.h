/* Run CUDA's threads on the CPU, as far as the kernels in src/cuda use them.
 *
 * The threads of a block are fibers of one CPU thread. Each fiber runs until it ends or
 * reaches a barrier of its block or warp. The next fiber of its warp follows, in ascending
 * order, or in descending order if `descends` is set. A warp continues until all its
 * fibers wait for the block or have ended. Then the next warp runs. If a kernel lacks a
 * barrier, a thread therefore reads, in one of the two orders, memory that another thread
 * has not written yet. Shared memory is filled with 0xCB before each block. A barrier that
 * some threads miss is an error.
 *
 * A thread may also wait for a condition that other threads make true (simt_hopper.h). If
 * all threads wait, copies that have begun make progress. If there are no copies, the wait
 * is an error.
 *
 * Not modeled: races within a warp between barriers, and the order of atomics. Source of
 * the collectives: CUDA C++ Programming Guide, 10.22 and 10.6. */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <setjmp.h>
#include <string>
#include <tuple>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __grid_constant__
#define __align__(n) alignas(n)
#define __shared__ __attribute__((section("simt_shared"))) static
/* Declares shared memory of a block whose size is an argument of the launch. */
#define DYNAMIC_SHARED(type, name) type *name = (type *)simt::dynamic

struct dim3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(8) float2 {
    float x, y;
};

extern "C" char __start_simt_shared[] __attribute__((weak));
extern "C" char __stop_simt_shared[] __attribute__((weak));

namespace simt {

inline dim3 thread_index, block_index, block_extent, grid_extent;
/* Addresses of shared memory have 18 bits. A kernel's own memory begins at a multiple of
 * 128. */
constexpr size_t SHARED = 256 << 10;
inline unsigned char memory[2 * SHARED];
inline unsigned char *const window = memory + (-(uintptr_t)memory & (SHARED - 1));
inline unsigned char *const dynamic = window + 128;
inline unsigned dynamic_size;
inline uint64_t round; /* counts how often all warps had their turn */
inline const char *error; /* a fault of the kernel, or NULL */

enum Wait { RUNS, BLOCK, WARP, UNTIL, ENDED };

/* Functions that simt_hopper.h sets: for the beginning of a block, for the moment when all
 * threads wait (returns whether anything changed), and for the end of a block. */
inline std::function<void()> on_begin = [] {}, on_end = [] {};
inline std::function<bool()> on_standstill = [] { return false; };

struct Fiber {
    ucontext_t start;
    jmp_buf at;
    bool begun;
    Wait wait;
    std::function<bool()> until; /* the condition that wait == UNTIL waits for */
    dim3 index;
    uint64_t slot; /* the value that a collective exchanges */
    std::vector<std::vector<std::tuple<void *, const void *, int>>> copies; /* groups */
    std::vector<std::tuple<void *, const void *, int>> open;
    std::vector<char> stack;
};

inline std::vector<Fiber> fibers;
inline Fiber *self;
inline jmp_buf scheduler;
inline ucontext_t scheduler_context;

inline void yield(Wait wait)
{
    self->wait = wait;
    Fiber *me = self;
    if (_setjmp(me->at) == 0) {
        _longjmp(scheduler, 1);
    }
    self = me;
    thread_index = me->index;
}

inline void yield_until(std::function<bool()> condition)
{
    if (!condition()) {
        self->until = std::move(condition);
        yield(UNTIL);
    }
}

inline unsigned rank(const dim3 &i)
{
    return i.x + block_extent.x * (i.y + block_extent.y * i.z);
}
inline unsigned lane() { return rank(thread_index) % 32; }
inline Fiber *warp() { return &fibers[rank(thread_index) / 32 * 32]; }
inline unsigned warp_size()
{
    const size_t rest = fibers.size() - rank(thread_index) / 32 * 32;
    return rest < 32 ? (unsigned)rest : 32;
}

/* Returns the value that the lane `from` passes. All lanes of the warp meet twice. */
template <class T> T exchange(T x, unsigned from)
{
    static_assert(sizeof(T) <= 8, "");
    self->slot = 0;
    memcpy(&self->slot, &x, sizeof x);
    yield(WARP);
    T y = x;
    if (from < warp_size()) {
        memcpy(&y, &warp()[from].slot, sizeof y);
    }
    yield(WARP);
    return y;
}

} // namespace simt

#define threadIdx simt::thread_index
#define blockIdx simt::block_index
#define blockDim simt::block_extent
#define gridDim simt::grid_extent

/* -- barriers and collectives, of whole warps only ----------------------------------- */

inline void __syncthreads() { simt::yield(simt::BLOCK); }
inline void __syncwarp(unsigned = ~0u) { simt::yield(simt::WARP); }

template <class T> T __shfl_sync(unsigned, T x, int from)
{
    return simt::exchange(x, (unsigned)from % 32);
}
template <class T> T __shfl_xor_sync(unsigned, T x, int mask)
{
    return simt::exchange(x, simt::lane() ^ (unsigned)mask);
}
template <class T> T __shfl_down_sync(unsigned, T x, unsigned delta)
{
    return simt::exchange(x, simt::lane() + delta);
}
template <class T> T __shfl_up_sync(unsigned, T x, unsigned delta)
{
    return simt::exchange(x, simt::lane() - delta);
}
inline unsigned __ballot_sync(unsigned, int predicate)
{
    simt::self->slot = predicate != 0;
    simt::yield(simt::WARP);
    unsigned bits = 0;
    for (unsigned i = 0; i < simt::warp_size(); i++) {
        bits |= (unsigned)simt::warp()[i].slot << i;
    }
    simt::yield(simt::WARP);
    return bits;
}
inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}
inline int __syncthreads_or(int predicate)
{
    simt::self->slot = predicate != 0;
    simt::yield(simt::BLOCK);
    int found = 0;
    for (const simt::Fiber &fiber : simt::fibers) {
        found |= fiber.slot != 0;
    }
    simt::yield(simt::BLOCK);
    return found;
}

template <class T> T atomicAdd(T *at, T x)
{
    const T old = *at;
    *at = old + x;
    return old;
}
template <class T> T atomicOr(T *at, T x)
{
    const T old = *at;
    *at = old | x;
    return old;
}
template <class T> T atomicMax(T *at, T x)
{
    const T old = *at;
    *at = old > x ? old : x;
    return old;
}

/* -- functions that CUDA has built in ------------------------------------------------ */

inline unsigned __float_as_uint(float x)
{
    unsigned y;
    memcpy(&y, &x, 4);
    return y;
}
inline float __uint_as_float(unsigned x)
{
    float y;
    memcpy(&y, &x, 4);
    return y;
}
inline int __float_as_int(float x) { return (int)__float_as_uint(x); }
inline float __int_as_float(int x) { return __uint_as_float((unsigned)x); }
inline long long __double_as_longlong(double x)
{
    long long y;
    memcpy(&y, &x, 8);
    return y;
}
inline double __longlong_as_double(long long x)
{
    double y;
    memcpy(&y, &x, 8);
    return y;
}
inline float one_nan(float x) /* the only NaN that a GPU's additions return */
{
    return x == x ? x : __builtin_bit_cast(float, 0x7FFFFFFF);
}
inline float __fadd_rn(float x, float y) { return one_nan(x + y); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fmaf_rn(float x, float y, float z)
{
    return one_nan(__builtin_fmaf(x, y, z));
}
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
inline float __double2float_rn(double x) { return (float)x; }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x)
{
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
/* Selects bytes of two words by number, those of x first: CUDA Math API, integer
 * intrinsics. */
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which)
{
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned word = 0;
    for (int i = 0; i < 4; i++) {
        word |= (unsigned)(both >> (which >> 4 * i & 7) * 8 & 0xFF) << 8 * i;
    }
    return word;
}
inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((unsigned long long)x * y >> 32);
}
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
/* Rounds toward zero, NaN to 0, and saturates out of range: PTX cvt.rzi.s32.f32. */
inline int __float2int_rz(float x)
{
    return x != x            ? 0
           : x >= 2147483648.f ? 2147483647
           : x < -2147483648.f ? -2147483647 - 1
                               : (int)x;
}
/* Rounds toward zero, and every NaN to the canonical one: PTX cvt.rz.f32.f64. */
inline float __double2float_rz(double x)
{
    const float y = (float)x;
    return x != x                          ? __uint_as_float(0x7FFFFFFFu)
           : fabs((double)y) > fabs(x) ? nextafterf(y, 0)
                                           : y;
}
inline float __int2float_rn(int x) { return (float)x; }
inline float __int2float_rz(int x)
{
    const float y = (float)x;
    const double exact = x, rounded = y;
    return fabs(rounded) > fabs(exact) ? nextafterf(y, 0) : y;
}
/* Applies a function to two signed halves of a word: CUDA Math API, SIMD and DPX
 * intrinsics. */
template <class F> unsigned simt_halves(unsigned x, unsigned y, F function)
{
    const int low = function((int)(int16_t)x, (int)(int16_t)y);
    const int high = function((int)x >> 16, (int)y >> 16);
    return (unsigned)high << 16 | ((unsigned)low & 0xFFFFu);
}
inline unsigned __vmaxs2(unsigned x, unsigned y)
{
    return simt_halves(x, y, [](int p, int q) { return p > q ? p : q; });
}
inline unsigned __vmins2(unsigned x, unsigned y)
{
    return simt_halves(x, y, [](int p, int q) { return p < q ? p : q; });
}
inline unsigned __viaddmax_s16x2(unsigned x, unsigned y, unsigned z)
{
    return __vmaxs2(simt_halves(x, y, [](int p, int q) { return p + q; }), z);
}
template <class T> const T &min(const T &x, const T &y) { return y < x ? y : x; }
template <class T> const T &max(const T &x, const T &y) { return x < y ? y : x; }
template <class T> T __ldg(const T *x) { return *x; }

/* -- cp.async: copies at the wait, so that a missing wait shows ------------------------ */
/* PTX ISA 9.7.9.25. src/cuda/common/async_copy.h calls these functions. */

inline void simt_copy_async(void *to, const void *from, int size, int filled)
{
    /* copies `size` bytes, and writes zeros up to `filled` */
    if (((uintptr_t)to | (uintptr_t)from) % (uintptr_t)filled) {
        simt::error = "cp.async of an address that is not a multiple of its size";
    }
    simt::self->open.emplace_back(to, size ? from : nullptr, size << 8 | filled);
}
inline void simt_commit_group()
{
    simt::self->copies.push_back(std::move(simt::self->open));
    simt::self->open.clear();
}
inline void simt_wait_group(size_t pending)
{
    auto &groups = simt::self->copies;
    while (groups.size() > pending) {
        for (auto &[to, from, sizes] : groups.front()) {
            memset(to, 0, (size_t)(sizes & 255));
            if (from) {
                memcpy(to, from, (size_t)(sizes >> 8));
            }
        }
        groups.erase(groups.begin());
    }
}

/* -- launching ------------------------------------------------------------------------ */

namespace simt {

inline bool descends;

template <class... P, size_t... I>
void apply(void (*kernel)(P...), void **given, std::index_sequence<I...>)
{
    kernel(*(std::remove_const_t<P> *)given[I]...);
}

template <class... P> struct Call {
    inline static void (*kernel)(P...);
    inline static void **given;
    static void run() { apply(kernel, given, std::index_sequence_for<P...>{}); }
    static void fiber()
    {
        run();
        self->wait = ENDED;
        _longjmp(scheduler, 1);
    }
};

/* Runs a fiber up to its next barrier or its end. */
inline void resume(Fiber &fiber, void (*entry)())
{
    self = &fiber;
    thread_index = fiber.index;
    fiber.wait = RUNS;
    if (_setjmp(scheduler) != 0) {
        return;
    }
    if (fiber.begun) {
        _longjmp(fiber.at, 1);
    }
    fiber.begun = true;
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack.data();
    fiber.start.uc_stack.ss_size = fiber.stack.size();
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, entry, 0);
    setcontext(&fiber.start);
}

/* Runs a warp as far as it can without other warps, and sets went_on if it moved at all.
 * Returns false, with an error, if some threads of the warp miss its barrier. */
inline bool run_warp(void (*entry)(), unsigned first, unsigned last, bool &went_on)
{
    for (;; went_on = true) {
        unsigned at_warp = 0, at_rest = 0, runs = 0;
        for (unsigned i = first; i < last; i++) {
            Fiber &fiber = fibers[i];
            if (fiber.wait == UNTIL && fiber.until()) {
                fiber.wait = RUNS;
            }
            runs += fiber.wait == RUNS;
            at_warp += fiber.wait == WARP;
            at_rest += fiber.wait == BLOCK || fiber.wait == ENDED;
        }
        if (at_warp && at_rest && !runs) {
            error = "a barrier of a warp is missed by some of its threads";
            return false;
        }
        const bool meet = at_warp == last - first;
        if (!runs && !meet) {
            return true;
        }
        for (unsigned i = first; i < last; i++) {
            Fiber &fiber = fibers[descends ? last - 1 - (i - first) : i];
            if (meet || fiber.wait == RUNS) {
                resume(fiber, entry);
            }
        }
    }
}

inline void run_block(void (*entry)(), bool fibrous, void (*whole)())
{
    if (&__start_simt_shared[0]) {
        memset(__start_simt_shared, 0xCB,
               (size_t)(__stop_simt_shared - __start_simt_shared));
    }
    const unsigned count = block_extent.x * block_extent.y * block_extent.z;
    fibers.resize(count);
    for (unsigned i = 0; i < count; i++) {
        fibers[i].index = {i % block_extent.x, i / block_extent.x % block_extent.y,
                           i / (block_extent.x * block_extent.y)};
        fibers[i].begun = false;
        fibers[i].wait = RUNS;
        fibers[i].copies.clear();
        fibers[i].open.clear();
    }
    if (!fibrous) {
        for (unsigned i = 0; i < count; i++) {
            self = &fibers[descends ? count - 1 - i : i];
            thread_index = self->index;
            whole();
        }
        return;
    }
    for (Fiber &fiber : fibers) {
        fiber.stack.resize(64 << 10);
    }
    on_begin();
    for (;;) {
        bool all_ended = true, went_on = false;
        unsigned waiting = 0;
        round++;
        for (unsigned w = 0; w < count; w += 32) {
            const unsigned first = descends ? (count - 1) / 32 * 32 - w : w;
            const unsigned last = first + 32 < count ? first + 32 : count;
            if (!run_warp(entry, first, last, went_on)) {
                return;
            }
            for (unsigned i = first; i < last; i++) {
                all_ended &= fibers[i].wait == ENDED;
                waiting += fibers[i].wait == BLOCK;
            }
        }
        if (all_ended) {
            on_end();
            return;
        }
        if (waiting == count) {
            for (Fiber &fiber : fibers) {
                fiber.wait = RUNS;
            }
        } else if (!went_on && !on_standstill()) {
            error = waiting ? "__syncthreads is missed by some threads"
                            : "all threads wait for each other";
            return;
        }
    }
}

template <class... P>
const char *launch(void (*kernel)(P...), void **given, const unsigned *extents,
                   bool fibrous)
{
    error = nullptr;
    Call<P...>::kernel = kernel;
    Call<P...>::given = given;
    grid_extent = {extents[0], extents[1], extents[2]};
    block_extent = {extents[3], extents[4], extents[5]};
    descends = extents[7];
    dynamic_size = extents[6];
    for (unsigned z = 0; z < grid_extent.z && !error; z++) {
        for (unsigned y = 0; y < grid_extent.y && !error; y++) {
            for (unsigned x = 0; x < grid_extent.x && !error; x++) {
                block_index = {x, y, z};
                memset(dynamic, 0xCB, extents[6]);
                run_block(Call<P...>::fiber, fibrous, Call<P...>::run);
            }
        }
    }
    return error;
}

} // namespace simt
