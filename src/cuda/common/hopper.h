/* Instructions that only sm_90a has: copies of boxes of tensors to shared memory,
 * barriers in shared memory that count their bytes, and wgmma. This is the tensor core's
 * instruction for 128 threads at a time, whose operands are in shared memory.
 *
 * PTX ISA 9: 9.7.9.27 (cp.async.bulk.tensor), 9.7.13.15 (mbarrier), 9.7.15 (wgmma) and
 * 9.7.19.5 (setmaxnreg).
 */
#ifndef TF32DTYPE_CUDA_COMMON_HOPPER_H
#define TF32DTYPE_CUDA_COMMON_HOPPER_H

#include "cuda/common/async_copy.h"

/* Returns wgmma's descriptor of a matrix in shared memory. Its lines of 128 bytes of k are
 * contiguous, and 8 of them, 1,024 bytes, begin at a multiple of 1,024. Chunks of 16 bytes
 * are permuted as copies of boxes do it: chunk c of line l is at the position of chunk c ^
 * l % 8. 9.7.15.5.1.2.2, "Matrix Descriptor Format"; CUTLASS, mma_sm90_desc.hpp:
 *
 *   bits 0 to 13    the address / 16; it goes up by 2 for a step of 32 bytes of k
 *   bits 16 to 29   no meaning with permuted chunks; CUTLASS sets 1
 *   bits 32 to 45   from 8 lines to the next 8, / 16
 *   bits 62, 63     1: chunks are permuted within 128 bytes
 */
inline uint64_t descriptor(shared_address x)
{
    /* mutant: 8 lines are 512 bytes */
    return (uint64_t)(x & 0x3FFFF) >> 4 | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62; /* mutant: chunks permuted within 64 bytes */
}

/* As descriptor(), for a matrix across k, of 2-byte elements. The elements of 64 lines at
 * one k are 128 bytes, permuted as above. Those of 8 k are 1,024 contiguous bytes. Those of
 * 64 k are one box, and the next 64 lines' box follows. CUTLASS, mma_traits_sm90_gmma.hpp,
 * make_gmma_desc<Major::MN>, B128 with T = 8 elements of 16 bytes:
 *
 *   Swizzle<3,4,3> o smem_ptr o ((T,8,m),(8,k)):((1,T,LBO),(8T,SBO))
 *
 *   bits 0 to 13    the address / 16; it goes up by 128 for a step of 16 k
 *   bits 16 to 29   LBO / 16: from 64 lines to the next 64
 *   bits 32 to 45   SBO / 16: from 8 k to the next 8
 */
inline uint64_t descriptor_across(shared_address x)
{
    /* mutant: boxes are 4096 bytes */
    return (uint64_t)(x & 0x3FFFF) >> 4 | (uint64_t)(8192 >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62; /* mutant: 8 k are 512 bytes */
}

#ifdef SIMT /* tests/support/simulator/simt_hopper.h computes these */

struct TensorMap {
    uint64_t words[16];
};

inline void barrier_init(shared_address x, int count)
{
    simt_barrier_init((void *)x, count);
}
inline void publish_barriers() { simt_publish_barriers(); }
inline void barrier_arrive(shared_address x) { simt_barrier_arrive((void *)x, 0); }
inline void barrier_expect(shared_address x, int bytes)
{
    simt_barrier_arrive((void *)x, bytes);
}
inline void barrier_await(shared_address x, uint32_t parity)
{
    simt_barrier_await((void *)x, parity);
}
inline void copy_box(shared_address to, const TensorMap *map, int x, int y, int z,
                     shared_address barrier)
{
    const int at[] = {x, y, z};
    simt_copy_box((void *)to, map->words, at, 3, (void *)barrier);
}
inline void copy_box(shared_address to, const TensorMap *map, int x, int y, int z, int w,
                     shared_address barrier)
{
    const int at[] = {x, y, z, w};
    simt_copy_box((void *)to, map->words, at, 4, (void *)barrier);
}
template <int COUNT> inline void take_registers() { simt::yield(simt::WARP); }
template <int COUNT> inline void give_registers() { simt::yield(simt::WARP); }
inline void begin_products() { simt_wgmma_fence(); }
inline void commit_products() { simt_wgmma_commit(); }
template <int PENDING> inline void await_products() { simt_wgmma_wait(PENDING); }

#else

/* The driver's CUtensorMap, which the driver makes; a parameter of a kernel. */
struct __align__(64) TensorMap {
    uint64_t words[16];
};

/* -- barriers: a phase ends when its threads and its bytes have arrived --------------- */

inline void barrier_init(shared_address x, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(x), "r"(count)
                 : "memory");
}

/* Makes new barriers visible to copies; threads need __syncthreads() as well. */
inline void publish_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

inline void barrier_arrive(shared_address x)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(x) : "memory");
}

/* Arrives, and announces that many bytes. */
inline void barrier_expect(shared_address x, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(x), "r"(bytes)
                 : "memory");
}

/* Waits until the phase of this parity has ended. Before the first phase, parity 1 has. */
inline void barrier_await(shared_address x, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(done)
                     : "r"(x), "r"(parity)
                     : "memory");
    } while (!done);
}

/* -- copies of a box at given coordinates; zeros outside the tensor ------------------ */

inline void copy_box(shared_address to, const TensorMap *map, int x, int y, int z,
                     shared_address barrier)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 :
                 : "r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
                 : "memory");
}

inline void copy_box(shared_address to, const TensorMap *map, int x, int y, int z, int w,
                     shared_address barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile"
                 ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 :
                 : "r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(w), "r"(barrier)
                 : "memory");
}

/* -- registers: sets the number of registers per thread of a warpgroup --------------- */

template <int COUNT> inline void take_registers()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(COUNT));
}

template <int COUNT> inline void give_registers()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(COUNT));
}

/* -- wgmma ----------------------------------------------------------------------------- */

/* Lets following instructions use registers that the warp has written or read before. */
inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }

/* Makes a group of the instructions that are in no group yet. */
inline void commit_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
}

/* Waits until all but the last PENDING groups are done. */
template <int PENDING> inline void await_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
}

#endif

#ifdef UNIT

#if INTEGERS /* of s32.s8.s8, which has no signs of operands */
typedef int32_t accumulator;
#define IN_REGISTER "+r"
#define SIGNS ""
#else
typedef float accumulator;
#define IN_REGISTER "+f"
#define SIGNS ", 1, 1"
#endif

/* A thread's accumulators of an instruction for all columns of the tile. */
constexpr int ACCUMULATORS = COLUMNS / 2;

/* Keeps computations of d before this point, and uses of it after. The compiler does not
 * know that the instruction runs on in between. */
template <int COUNT = ACCUMULATORS> inline void registers_are_ready(accumulator *d)
{
#ifndef SIMT
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        asm volatile("" : IN_REGISTER(d[i]) : : "memory");
    }
#endif
}

/* Lists for inline assembly, which has no arrays: names of operands, and 8 or 64 of them
 * from d[i] on. */
#define NAMES_TO_31                                                                    \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "                          \
    "%13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, "                \
    "%26, %27, %28, %29, %30, %31"
#define NAMES_TO_63                                                                    \
    NAMES_TO_31 ", %32, %33, %34, %35, %36, %37, %38, "                                \
    "%39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "                \
    "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_TO_127                                                                   \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, "                \
    "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, "                \
    "%90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "             \
    "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, "   \
    "%116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TWO(d, i) IN_REGISTER(d[i]), IN_REGISTER(d[i + 1])
#define EIGHT(d, i) TWO(d, i), TWO(d, i + 2), TWO(d, i + 4), TWO(d, i + 6)
#define SIXTY_FOUR(d, i)                                                               \
    EIGHT(d, i), EIGHT(d, i + 8), EIGHT(d, i + 16), EIGHT(d, i + 24),                  \
        EIGHT(d, i + 32), EIGHT(d, i + 40), EIGHT(d, i + 48), EIGHT(d, i + 56)

/* Begins d = a b, or d += a b if `adds`: 64 rows of a, 2 COUNT columns of b, 32 bytes of
 * k. UNIT is the rest of PTX's name after the columns, "k16.f32.bf16.bf16" for example. With
 * INTEGERS, it is "k32.s32.s8.s8".
 * TAIL follows the signs of a and b: ", 0, 1" is for b across k, which only 16-bit
 * formats can be. Warp w of the four has rows 16 w to 16 w + 15, in the layout of mma.h's
 * results: d[4 j] to d[4 j + 3] are of columns 8 j to 8 j + 7. */
template <int COUNT = ACCUMULATORS>
inline void multiply(accumulator *d, uint64_t a, uint64_t b, int adds)
{
    static_assert(COUNT == 32 || COUNT == 64 || COUNT == 128, "see the lists");
#ifdef SIMT
    const char *const unit = COUNT == 32   ? "m64n64" UNIT
                             : COUNT == 64 ? "m64n128" UNIT
                                           : "m64n256" UNIT;
    /* mutant: another instruction, by wgmma */
    simt_wgmma(unit, d, a, b, adds, !A_ALONG_K, !B_ALONG_K);
#else
    if constexpr (COUNT == 32) {
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n64" UNIT " {" NAMES_TO_31 "}, "
                     "%32, %33, p" SIGNS TAIL ";\n}"
                     : EIGHT(d, 0), EIGHT(d, 8), EIGHT(d, 16), EIGHT(d, 24)
                     : "l"(a), "l"(b), "r"(adds));
    } else if constexpr (COUNT == 64) {
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n128" UNIT " {" NAMES_TO_63 "}, "
                     "%64, %65, p" SIGNS TAIL ";\n}"
                     : SIXTY_FOUR(d, 0)
                     : "l"(a), "l"(b), "r"(adds));
    } else {
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
                     "wgmma.mma_async.sync.aligned.m64n256" UNIT " {" NAMES_TO_63
                     ", " NAMES_TO_127 "}, %128, %129, p" SIGNS TAIL ";\n}"
                     : SIXTY_FOUR(d, 0), SIXTY_FOUR(d, 64)
                     : "l"(a), "l"(b), "r"(adds));
    }
#endif
}

#endif
#endif
