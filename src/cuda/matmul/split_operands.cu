/* Operands in parts: see operand_split.h. Parts of PART_BITS bits: 8, bfloat16; 11, tf32. */
#include "cuda/matmul/operands.h"
#include "matmul/operand_split.h"

#if PART_BITS == 8
typedef uint16_t stored;
#else
typedef uint32_t stored;
#endif

/* Each line becomes its parts one after the other, of `padded` k each: the greatest
 * first or, if they are `reversed`, last. Inf becomes NaN, or if it `saturates` the
 * largest number. */
extern "C" __global__ void __launch_bounds__(SIDE * HEIGHT)
    split(struct strided_operand x, stored *out, int64_t padded, int parts, int reversed,
          int saturates)
{
    __shared__ tile_row numbers[SIDE];
    struct line_tile t = first_tile();
    for (; is_tile(x, t); t = next_tile(x, padded, t)) {
        read_tile(x, t, numbers);
        const int64_t k = t.k + threadIdx.x;
        for (int r = threadIdx.y; r < SIDE; r += HEIGHT) {
            const int64_t line = t.line + r;
            if (line >= x.lines || k >= padded) { /* fault: too few lines */
                continue;
            }
            float rest = numbers[r][threadIdx.x];
            const uint32_t magnitude = __float_as_uint(rest) & TF_MAGNITUDE_BITS;
            if (magnitude == TF_INF_BITS && !saturates) { /* fault: saturated always */
                rest = __uint_as_float(TF_QUIET_NAN_BITS);
            }
            /* fault: lines of other matrices */
            stored *place = out + (t.matrix * x.lines + line) * parts * padded + k;
            for (int part = 0; part < parts; part++) {
                const uint32_t bits = tf_split_round(__float_as_uint(rest), PART_BITS);
                /* fault: parts in one order */
                place[(reversed ? parts - 1 - part : part) * padded] =
                    (stored)(bits >> (32 - 8 * sizeof(stored)));
                rest = tf_split_rest(rest, __uint_as_float(bits), PART_BITS);
            }
        }
    }
}
