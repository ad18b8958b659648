/* Reads only the sizes of a call's product, which is enough for most calls: they are only
 * counted. */
#ifndef TF32DTYPE_PROGRAMS_BLAS_BLAS_SIZES_H
#define TF32DTYPE_PROGRAMS_BLAS_BLAS_SIZES_H

#include "programs/blas/blas_call.h"

struct tf_blas_sizes {
    ptrdiff_t m, n, k;
    double multiply_adds;
};

/* Reads the sizes of gemm, gemv and dots, and returns 0. Returns -1 for other routines, and
 * if a size is not positive: the caller then needs tf_blas_take_apart. Does not check the
 * other arguments, for which the library may still refuse the call. */
static inline int tf_blas_read_sizes(const struct tf_blas_name *name,
                                     const struct tf_blas_arguments *arguments,
                                     struct tf_blas_sizes *sizes)
{
    /* The position of the first size in Fortran's interface, and the number of sizes. */
    const int first = name->routine == TF_BLAS_GEMM   ? 2
                      : name->routine == TF_BLAS_GEMV ? 1
                                                      : 0;
    const int count = name->routine == TF_BLAS_GEMM   ? 3
                      : name->routine == TF_BLAS_GEMV ? 2
                                                      : 1;
    const int is_dot = tf_blas_is_dot(name->routine);
    const int shift = name->cblas && !is_dot; /* C's interface begins with the order */
    const int64_t *words = arguments->registers; /* the first six */
    ptrdiff_t read[3] = {1, 1, 1};
    if (name->routine != TF_BLAS_GEMM && name->routine != TF_BLAS_GEMV && !is_dot) {
        return -1;
    }
    for (int i = 0; i < count; i++) {
        const int64_t word = words[first + shift + i];
        const void *at = (const void *)(uintptr_t)word;
        read[i] = name->cblas ? (name->wide ? (ptrdiff_t)word : (int32_t)word)
                  : name->wide ? (ptrdiff_t) * (const int64_t *)at
                               : *(const int32_t *)at;
        if (read[i] <= 0) {
            return -1;
        }
    }
    if (is_dot) {
        *sizes = (struct tf_blas_sizes){1, 1, read[0], 0};
    } else if (name->routine == TF_BLAS_GEMV) {
        const int64_t trans = words[shift];
        const int is_plain =
            name->cblas ? (int32_t)trans == 111 || (int32_t)trans == 114
                        : (*(const char *)(uintptr_t)trans | ' ') == 'n';
        *sizes = (struct tf_blas_sizes){read[!is_plain], 1, read[is_plain], 0};
    } else {
        *sizes = (struct tf_blas_sizes){read[0], read[1], read[2], 0};
    }
    sizes->multiply_adds = (double)sizes->m * (double)sizes->n * (double)sizes->k;
    if (tf_blas_is_complex(name->type)) {
        sizes->multiply_adds *= 4;
    }
    return 0;
}

#endif
