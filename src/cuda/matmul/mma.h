/* One instruction of a tensor core, on a warp's registers. UNIT is the rest of its PTX
 * name after "mma.sync.aligned.", such as "m16n8k16.row.col.f32.bf16.bf16.f32". It takes
 * UNIT_BYTES of k.
 *
 * PTX ISA 9.7.14.5, "Matrix Fragments for mma": in every format used here a step of k is
 * 32 bytes, or 16, the first half of the figure. A lane has word lane % 4 of row lane / 4
 * (in b: of column lane / 4) in
 *
 *      a       bytes 0 to 15   16 to 31           b       bytes 0 to 15   16 to 31
 *   rows 0 to 7     a[0]         a[2]          columns         b[0]         b[1]
 *   rows 8 to 15    a[1]         a[3]
 *
 * In d, a lane has row lane / 4 in d[0] and d[1], and the row 8 below in d[2] and d[3],
 * at columns lane % 4 * 2 and the next one.
 */
#ifndef TF32DTYPE_CUDA_MATMUL_MMA_H
#define TF32DTYPE_CUDA_MATMUL_MMA_H

#include "cuda/common/common.h"

/* d = c + a b */
inline void mma(float *d, const uint32_t *a, const uint32_t *b, const float *c)
{
#ifdef SIMT /* tests/support/simulator/simt_mma.h computes it */
    simt_mma(UNIT, d, a, b, c); /* mutant: another instruction */
#elif UNIT_BYTES == 16
    asm volatile("mma.sync.aligned." UNIT
                 " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]),
                   "f"(c[3]));
#else
    asm volatile("mma.sync.aligned." UNIT
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
                   "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#endif
}

#endif
