/* The kernels for products of vectors that this build's instruction set has. They have the
 * preconditions that dot.c lists. */
#ifndef TF32DTYPE_MATMUL_KERNELS_DOT_CHAINS_H
#define TF32DTYPE_MATMUL_KERNELS_DOT_CHAINS_H

#include "matmul/kernels/words.h"

enum { CHAINS = TF_DOT_CHAINS };

#if defined(__AVX512F__) && defined(__AVX512BW__)
#include "matmul/kernels/dot_avx512.h"
enum { LINES_OF_A_GROUP = CHAINS };
#define HAS_CHAINS 1
#elif (defined(__AVX2__) && defined(__FMA__)) || defined(__aarch64__)
#include "matmul/kernels/dot_lines.h"
enum { LINES_OF_A_GROUP = LANES };
#define HAS_CHAINS 1
#else
#define HAS_CHAINS 0
#endif

/* Half the groups of NEON, which has eight. */
enum { SOME_GROUPS = 4 };

/* Defines the kernel of a width: for one group of lines if `count` allows, or for some, or
 * for all. */
#define INSTANCE(name, width)                                                       \
    static void name(const struct tf_dot_operands *in, size_t depth, size_t count,  \
                     float *sums)                                                   \
    {                                                                               \
        if (count <= LINES_OF_A_GROUP) {                                            \
            chains_of(width, 1, in, depth, sums);                                   \
        } else if ((int)GROUPS > (int)SOME_GROUPS &&                                \
                   count <= (int)SOME_GROUPS * LINES_OF_A_GROUP) {                  \
            chains_of(width, SOME_GROUPS, in, depth, sums);                         \
        } else {                                                                    \
            chains_of(width, GROUPS, in, depth, sums);                              \
        }                                                                           \
    }

#endif
