/* Splits an array of float32 numbers into components: operand_split.h for each number. */
#ifndef TF32DTYPE_MATMUL_KERNELS_SPLIT_SINGLES_H
#define TF32DTYPE_MATMUL_KERNELS_SPLIT_SINGLES_H

#include <stddef.h>

#include "formats/float_bits.h"
#include "matmul/operand_split.h"

TF_INLINE float tf_part_of(float x, int p)
{
    return tf_float_of(tf_split_round(tf_bits_of(x), p));
}

TF_INLINE void tf_split_singles_of(const float *restrict in, size_t n, int p, int parts,
                                   float *restrict out, size_t distance)
{
    for (size_t i = 0; i < n; i++) {
        float rest = in[i];
        for (int part = 0; part < parts; part++) {
            const float x = tf_part_of(rest, p);
            out[(size_t)part * distance + i] = x;
            rest = tf_split_rest(rest, x, p);
        }
    }
}

/* Splits n numbers. The components i, of p significant bits each, begin at
 * out + i * distance. The usual p and number of components are constants in a copy each. */
static void tf_split_singles(const float *in, size_t n, int p, int parts, float *out,
                             size_t distance)
{
    if (p == 8 && parts == 3) {
        tf_split_singles_of(in, n, 8, 3, out, distance);
    } else if (p == 8 && parts == 2) {
        tf_split_singles_of(in, n, 8, 2, out, distance);
    } else if (p == 11 && parts == 2) {
        tf_split_singles_of(in, n, 11, 2, out, distance);
    } else {
        tf_split_singles_of(in, n, p, parts, out, distance);
    }
}

#endif
