/* The kernels of one instruction set, by subject.
 *
 * Every file in src/<subject>/kernels/ is compiled once per instruction set. Each build
 * fills one `struct tf_isa`, and cpu_dispatch.c picks one when the package is imported.
 * Header src/<subject>/kernels.h defines the table of a subject. This header only declares
 * the tables' names, and so depends on no subject. All builds give the same bits. */
#ifndef TF32DTYPE_RUNTIME_KERNEL_TABLE_H
#define TF32DTYPE_RUNTIME_KERNEL_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The largest number of elements that a kernel processes in one call. Three chunks of
 * float32 take 12 KiB of L1. */
enum { TF_CHUNK = 1024 };

/* Copies of items into or out of every second position. */
struct tf_copy_kernels {
    /* Copies every second of 2 n items, of 1, 2, 4, 8 or 16 bytes. */
    void (*copy_seconds)(size_t itemsize, const char *in, char *out, size_t n);
    /* Copies n items of 4 or 8 bytes, each followed by a zero. */
    void (*pair_with_zeros)(size_t itemsize, const char *restrict in,
                            char *restrict out, size_t n);
};

struct tf_isa {
    const struct tf_copy_kernels *copies;
    const struct tf_format_kernels *formats;
    const struct tf_ufunc_kernels *ufuncs;
    const struct tf_matmul_kernels *matmul;
    const struct tf_gemv_kernels *gemv;
    const struct tf_dot *dot;
    const struct tf_int8_kernels *quads;
    const struct tf_mma_kernels *mma;
    const struct tf_scaled_mma_kernels *scaled_mma;
    const struct tf_rounded_kernels *rounded;
    const struct tf_fma_kernels *fma;
    const struct tf_exact_kernels *exact;
    const struct tf_block_kernels *blocks;
    const struct tf_arithmetic_kernels *arithmetic;
};

/* TF_NAME(name) is name_x86_64_v4 in the x86-64-v4 build. */
#define TF_JOIN2(a, b) a##_##b
#define TF_JOIN(a, b) TF_JOIN2(a, b)
#define TF_NAME(name) TF_JOIN(name, TF_ISA)
/* As TF_NAME, for kernels that gain little from AVX512-BF16, VBMI and VNNI: the build with
 * these instructions uses the kernels of x86-64-v4 (setup.py lists the files). */
#define TF_PLAIN_NAME(name) TF_JOIN(name, TF_PLAIN_ISA)

extern const struct tf_isa *tf_isa; /* the table in use */

#endif
