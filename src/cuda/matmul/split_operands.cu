/* Splits both operands into PARTS parts of PART_BITS bits: 8 for bfloat16, 11 for tf32.
 * See src/matmul/operand_split.h. */
#include "cuda/matmul/operands.h"
#include "matmul/operand_split.h"

#if PART_BITS == 8
typedef uint16_t stored;
typedef uint32_t stored_pair;
#else
typedef uint32_t stored;
typedef uint64_t stored_pair;
#endif

/* Returns one part of each of two numbers, as tf_split_round does, the first in the low
 * half, and leaves the numbers' remainders in `rest`. The simulator lacks the
 * instruction, which test_parts_are_those_of_the_cpu compares with it on a GPU. */
inline stored_pair split_pair(float (&rest)[2])
{
    stored_pair both = 0;
#if PART_BITS == 8 && !defined SIMT /* to nearest, and the largest number instead of Inf */
    asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(rest[1]), "f"(rest[0]));
    const uint32_t bits[2] = {both << 16, both & 0xFFFF0000u};
#else
    const uint32_t bits[2] = {tf_split_round(__float_as_uint(rest[0]), PART_BITS),
                              tf_split_round(__float_as_uint(rest[1]), PART_BITS)};
#endif
#pragma unroll
    for (int j = 0; j < 2; j++) {
#if PART_BITS != 8 || defined SIMT
        const stored item = (stored)(bits[j] >> (32 - 8 * sizeof(stored)));
        both |= (stored_pair)item << 8 * sizeof(stored) * j;
#endif
        rest[j] = tf_split_rest(rest[j], __uint_as_float(bits[j]), PART_BITS);
    }
    return both;
}

/* Writes each line as its parts, one after the other, of `padded` k each, an even number.
 * The largest part is first or, for the second operand, last. Inf becomes NaN, or the
 * largest number if `saturates`. A block of threads has one tile. */
extern "C" __global__ void __launch_bounds__(SIDE * HEIGHT)
    split(const struct strided_operand a, const struct strided_operand b, stored *of_a,
          stored *of_b, int64_t padded, int saturates)
{
    __align__(8) __shared__ tile_row numbers[SIDE];
    const int64_t tiles = tiles_of(a, padded);
    const bool is_b = blockIdx.x >= tiles;
    const struct strided_operand x = is_b ? b : a;
    const struct line_tile t = tile_at(x, padded, blockIdx.x - (is_b ? tiles : 0));
    read_tile(x, t, numbers);
    const int64_t k = t.k + 2 * threadIdx.x;
    /* mutant: lines of other matrices */
    const int64_t line = t.matrix * x.lines + t.line + threadIdx.y;
    /* mutant: parts in one order */
    const int64_t first = is_b ? (PARTS - 1) * padded : 0, step = is_b ? -padded : padded;
    stored *place = (is_b ? of_b : of_a) + line * PARTS * padded + first + k;
#pragma unroll
    for (int i = 0; i < SIDE / HEIGHT; i++, place += HEIGHT * PARTS * padded) {
        const int r = (int)threadIdx.y + i * HEIGHT;
        if (t.line + r >= x.lines || k >= padded) { /* mutant: too few lines */
            continue;
        }
        const float2 pair = *(const float2 *)&numbers[r][2 * threadIdx.x];
        float rest[2] = {pair.x, pair.y};
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t magnitude = __float_as_uint(rest[j]) & TF_MAGNITUDE_BITS;
            /* mutant: saturated always */
            if (magnitude == TF_INF_BITS && !saturates) {
                rest[j] = __uint_as_float(TF_QUIET_NAN_BITS);
            }
        }
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            *(stored_pair *)(place + part * step) = split_pair(rest);
        }
    }
}
