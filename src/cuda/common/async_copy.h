/* Copies to shared memory that run while threads compute, and reads from it in the layout
 * of mma.sync. PTX ISA 9.7.9.25.3 (cp.async) and 9.7.14.5.15 (ldmatrix). */
#ifndef TF32DTYPE_CUDA_COMMON_ASYNC_COPY_H
#define TF32DTYPE_CUDA_COMMON_ASYNC_COPY_H

#include "cuda/common/common.h"

#ifdef SIMT /* the simulator's simt.h and simt_mma.h compute these */

typedef uintptr_t shared_address;

inline shared_address shared_of(const void *x) { return (shared_address)x; }
inline void copy_async(shared_address to, const void *from, int size)
{
    simt_copy_async((void *)to, from, size, 16);
}
inline void commit_copies() { simt_commit_group(); }
template <int PENDING> inline void await_copies() { simt_wait_group(PENDING); }
inline void load_matrices(uint32_t *r, shared_address row)
{
    simt_load_matrices(r, (const void *)row, false);
}
inline void load_transposed(uint32_t *r, shared_address row)
{
    simt_load_matrices(r, (const void *)row, true); /* mutant: ldmatrix does not transpose */
}
inline uint32_t load_word(shared_address x) { return *(const uint32_t *)x; }

#else

typedef uint32_t shared_address;

inline shared_address shared_of(const void *x)
{
    return (shared_address)__cvta_generic_to_shared(x);
}

/* Begins to copy 16 bytes, of which the first `size` are read and the others are zero. */
inline void copy_async(shared_address to, const void *from, int size)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(size)
                 : "memory");
}

/* Makes a group of this thread's copies that are in no group yet. */
inline void commit_copies() { asm volatile("cp.async.commit_group;" : : : "memory"); }

/* Waits until all but the last PENDING groups of this thread have arrived. */
template <int PENDING> inline void await_copies()
{
    asm volatile("cp.async.wait_group %0;" : : "n"(PENDING) : "memory");
}

/* Loads four matrices of 8 rows of 16 bytes. Lanes 8 i to 8 i + 7 give the rows of matrix
 * i. A lane gets word lane % 4 of row lane / 4 of each. */
inline void load_matrices(uint32_t *r, shared_address row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

/* As load_matrices(), of matrices of 8 x 8 16-bit elements, each transposed. */
inline void load_transposed(uint32_t *r, shared_address row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(row)
                 : "memory");
}

inline uint32_t load_word(shared_address x)
{
    uint32_t r;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(r) : "r"(x) : "memory");
    return r;
}

#endif
#endif
