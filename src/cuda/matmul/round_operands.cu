/* Rounds operands to FORMAT, and stores the numbers in the format STORED. */
#include "cuda/formats/numbers.h"
#include "cuda/matmul/operands.h"

/* Returns the float32 nearest to x / y. float64 is safe: a quotient of two float32 is a
 * tie, or farther from one than float64 rounds. Steps of float32's division flush. */
inline float quotient(float x, float y) { return (float)((double)x / (double)y); }

/* Returns the divisor of numbers before rounding: see docs/reference/precision.md. */
inline float scale_of(uint32_t greatest)
{
    const struct tf_format f = FORMAT;
    const uint64_t maximum = tf_double_bits(tf_decode(f, tf_maximum_magnitude(f)));
    const float scale = quotient(__uint_as_float(greatest),
                                 (float)__longlong_as_double((int64_t)maximum));
    return greatest == 0 ? 1 : scale < 0x1p-126f ? 0x1p-126f : scale;
}

/* Finds the largest finite magnitudes, as bits, of lines or, unless `own`, of matrices.
 * They begin at zero. A block of threads has one tile, also in the kernels below. */
extern "C" __global__ void __launch_bounds__(SIDE * HEIGHT)
    greatest(struct strided_operand x, uint32_t *found, int own)
{
    __shared__ tile_row numbers[SIDE];
    const struct line_tile t = tile_at(x, x.k, blockIdx.x);
    read_tile(x, t, numbers);
    for (int r = threadIdx.y; r < SIDE; r += HEIGHT) {
        uint32_t greatest = 0;
#pragma unroll
        for (int c = 0; c < DEEP; c += SIDE) {
            const uint32_t bits =
                __float_as_uint(numbers[r][threadIdx.x + c]) & TF_MAGNITUDE_BITS;
            greatest = bits >= TF_INF_BITS ? greatest : max(greatest, bits);
        }
        for (int distance = SIDE / 2; distance; distance /= 2) {
            greatest = max(greatest, __shfl_xor_sync(~0u, greatest, distance));
        }
        if (threadIdx.x == 0 && t.line + r < x.lines) {
            atomicMax(found + (own ? t.matrix * x.lines + t.line + r : t.matrix), greatest);
        }
    }
}

/* Replaces magnitudes found by `greatest` by scales, once instead of per number. */
extern "C" __global__ void __launch_bounds__(SIDE * HEIGHT)
    scales(uint32_t *found, int64_t count)
{
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) { /* mutant: a scale missing */
        found[i] = __float_as_uint(scale_of(found[i]));
    }
}

#if STORED_BITS == 16
typedef uint16_t stored;
#else
typedef uint32_t stored;
#endif

inline uint32_t rounded_item(struct tf_format f, float x, int rounding)
{
    unsigned flags = 0;
    const uint64_t bits = (uint64_t)__double_as_longlong((double)x);
    return tf_encode(f, tf_value_from_double_bits(bits), (enum tf_rounding)rounding,
                     TF_OVERFLOW_IEEE, 0, &flags)
           << f.shift;
}

/* Rounds lines of `padded` k each, divided by their scales unless `scale` is NULL. */
extern "C" __global__ void __launch_bounds__(SIDE * HEIGHT)
    narrow(struct strided_operand x, stored *out, int64_t padded, int rounding,
           const float *scale, int own)
{
    __shared__ tile_row numbers[SIDE];
    const struct line_tile t = tile_at(x, padded, blockIdx.x);
    read_tile(x, t, numbers);
    for (int r = threadIdx.y; r < SIDE; r += HEIGHT) {
        const int64_t line = t.matrix * x.lines + t.line + r;
#pragma unroll
        for (int c = threadIdx.x; c < DEEP; c += SIDE) {
            if (t.line + r >= x.lines || t.k + c >= padded) {
                continue;
            }
            float number = numbers[r][c];
            if (scale) {
                /* mutant: scales of another line */
                number = quotient(number, scale[own ? line : t.matrix]);
            }
            const uint32_t item = rounded_item(FORMAT, number, rounding);
            out[line * padded + t.k + c] =
                (stored)rounded_item(STORED, number_of(FORMAT, item), TF_TIES_TO_EVEN);
        }
    }
}

/* Multiplies sums by the scales that divided their operands, A's first. `a_step` is 0 if
 * A has the same matrix for all, else 1; so is `b_step` for B. */
extern "C" __global__ void rescale(float *sums, const float *a, const float *b,
                                   int64_t count, int64_t m, int64_t n, int a_step,
                                   int b_step, int own)
{
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t top = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
    for (int64_t matrix = blockIdx.z; matrix < count; matrix += gridDim.z) {
        const int64_t in_a = matrix * a_step, in_b = matrix * b_step;
        for (int64_t row = top; row < m; row += (int64_t)gridDim.y * blockDim.y) {
            /* mutant: scales of another row */
            const float of_row = a[own ? in_a * m + row : in_a];
            float *sum = sums + (matrix * m + row) * n;
#pragma unroll 1
            for (int64_t j = first; j < n; j += (int64_t)gridDim.x * blockDim.x) {
                /* mutant: scales of another column */
                sum[j] = sum[j] * of_row * b[own ? in_b * n + j : in_b];
            }
        }
    }
}
