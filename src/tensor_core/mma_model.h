/* One MMA group of a tensor core, and the chain of groups that an instruction is.
 *
 * This header is freestanding and integer-only. The same source compiles with gcc, clang,
 * NVRTC and nvcc. It is the reference for the fast loops (kernels/plain/mma.c).
 *
 *      products  a[0]b[0] ... a[K-1]b[K-1]   exact, significands in [0, 4)
 *      c         the accumulator
 *        |
 *      1. take the largest exponent of all terms. The exponent of a product is that of a
 *         plus that of b, and a zero has none
 *      2. truncate each term toward zero to `fraction` bits below that exponent
 *      3. add them exactly
 *      4. normalize and round the sum once: it is the next group's accumulator
 *
 * Sources: arXiv:2511.10909 and microsoft/MMA-Sim; arXiv:2512.07004 and
 * north-numerical-computing/MATLAB-tensor-core. docs/benchmarks/verification.md lists the
 * devices on which each rule was seen.
 *
 * Numbers are the bits of float32, in which all operand formats are exact. A float16
 * accumulator is the float32 of the same value.
 */
#ifndef TF32DTYPE_TENSOR_CORE_MMA_MODEL_H
#define TF32DTYPE_TENSOR_CORE_MMA_MODEL_H

#if defined(__CUDACC_RTC__) /* NVRTC has no headers */
typedef int int32_t;
typedef unsigned uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif

#include "runtime/bit_masks.h"

/* Functions that the host and the device compile. */
#if defined(__CUDACC__)
#define TF_HOST_AND_DEVICE static __host__ __device__ inline
#else
#define TF_HOST_AND_DEVICE static inline
#endif

struct tf_mma_model {
    int32_t depth;    /* products of an MMA group */
    int32_t instruction_depth; /* k of whole groups, filled up with zeros */
    int32_t fraction; /* bits kept below the largest exponent */
    int32_t kept;     /* fraction bits of the result: 23, 13 or 10 */
    int32_t half;     /* the accumulator is float16, rounded to nearest, ties to even; else
                       * float32 (or its upper bits), rounded toward zero */
    int32_t least_a, least_b; /* exponents of the operands' subnormal numbers */
    /* Whether an instruction consists of two MMA groups: see tf_mma_accumulate. */
    int32_t emulated;
    /* Rules on which sources differ. Exponents may be TF_NO_EXPONENT. */
    int32_t cut_first;     /* bits that sums keep before rounding to float16, or 0 */
    int32_t floor;         /* smallest exponent that terms are aligned to */
    int32_t zero_c;        /* exponent of an accumulator of zero */
    int32_t zero_products; /* whether a zero operand has the exponent -126 */
    int32_t negative_zero; /* whether a result truncated to zero keeps its sign */
};

enum {
    TF_NO_EXPONENT = -100000, /* of zero: below any sum of exponents */
    TF_DEEPEST = 64, /* most products of an MMA group */
    TF_LEAST_SINGLE = -126, /* exponents of subnormal numbers */
    TF_LEAST_HALF = -14
};

TF_HOST_AND_DEVICE uint32_t tf_mma_nan(int32_t half)
{
    return half ? 0x7FFFE000u : TF_MAGNITUDE_BITS; /* 0x7FFF as float16 */
}

/* -- traces ------------------------------------------------------------------------- */

/* Rows that a chain of groups records:
 *
 *      TF_TOLD_K         one per k of a group: its number, and the bits of the operands x
 *                        and y
 *      TF_TOLD_TERM      significand * 2^unit is added: `kept` units of the group's sum are
 *                        left of it. k counts the products or scaled terms of the
 *                        group, and -1 is the accumulator
 *      TF_TOLD_SUM       significand * 2^unit is the sum of the terms, `exponent` the largest
 *                        exponent of a term
 *      TF_TOLD_ROUNDED   significand * 2^unit is rounded to kept * 2^exponent, with the
 *                        same sign, before it overflows. A zero has no such row
 *      TF_TOLD_GROUP     the group's accumulator x becomes `kept` (bits of float32). The
 *                        result is Inf or NaN if there is no term
 *      TF_TOLD_ADDITION  x + y become `kept` (all three are bits of float32). k is 1 for
 *                        the addition that promotes a sum
 *      TF_TOLD_BROUGHT   significand * 2^unit is rounded downward to `kept` units of the
 *                        next sum, in a group in two stages
 */
enum {
    TF_TOLD_K,
    TF_TOLD_TERM,
    TF_TOLD_SUM,
    TF_TOLD_ROUNDED,
    TF_TOLD_GROUP,
    TF_TOLD_ADDITION,
    TF_TOLD_BROUGHT
};

struct tf_told {
    int64_t what, k, negative;
    int64_t significand, unit; /* or the bits of x and y */
    int64_t exponent, kept;
};

/* A trace of `count` rows, of which the first `room` are stored. `first` is the number of
 * the first k of the chain, or of an instruction of rounded_model.h. */
struct tf_mma_trace {
    struct tf_told *rows;
    int64_t room, count, first;
};

/* Append a row to a trace. The functions below take a trace or 0, and compilers remove the
 * calls if it is 0. */
TF_HOST_AND_DEVICE void tf_mma_tell(struct tf_mma_trace *trace, int32_t what, int64_t k,
                                    uint32_t negative, uint64_t significand, int64_t unit,
                                    int32_t exponent, int64_t kept)
{
    if (trace && trace->count++ < trace->room) {
        const struct tf_told row = {what, k,        negative, (int64_t)significand,
                                    unit, exponent, kept};
        trace->rows[trace->count - 1] = row;
    }
}

TF_HOST_AND_DEVICE void tf_mma_tell_k(struct tf_mma_trace *trace, int64_t k, uint32_t x,
                                      uint32_t y)
{
    tf_mma_tell(trace, TF_TOLD_K, k + (trace ? trace->first : 0), 0, x, y, 0, 0);
}

/* Record all n k of a group, which begin at `first`. */
TF_HOST_AND_DEVICE void tf_mma_tell_ks(struct tf_mma_trace *trace, const uint32_t *a,
                                       int64_t step_a, const uint32_t *b, int64_t step_b,
                                       int64_t first, int32_t n)
{
    for (int64_t k = first; trace && k < first + n; k++) {
        tf_mma_tell_k(trace, k, a[k * step_a], b[k * step_b]);
    }
}

/* -- one number -------------------------------------------------------------------- */

/* The number significand * 2^(exponent - 23), not normalized if subnormal in its format. */
struct tf_mma_number {
    uint32_t significand;
    int32_t exponent;
};

TF_HOST_AND_DEVICE struct tf_mma_number tf_mma_decode(uint32_t bits,
                                                      int32_t least)
{
    const int32_t field = (int32_t)(bits >> 23 & 0xFFu), normal = field != 0;
    const int32_t exponent = field - 126 - normal;
    /* The shift is exact, since all numbers of a format are multiples of its smallest one.
     * Without branches in this function and its callers, loops become vectors. */
    const int32_t below = exponent < least ? least - exponent : 0;
    const struct tf_mma_number x = {
        ((bits & TF_FRACTION_BITS) | (uint32_t)normal << 23) >> (below < 31 ? below : 31),
        exponent + below};
    return x;
}

TF_HOST_AND_DEVICE int tf_mma_is_nan(uint32_t bits)
{
    return (bits & TF_MAGNITUDE_BITS) > TF_INF_BITS;
}

TF_HOST_AND_DEVICE int tf_mma_is_infinite(uint32_t bits)
{
    return (bits & TF_MAGNITUDE_BITS) == TF_INF_BITS;
}

/* -- rounding ---------------------------------------------------------------------- */

/* Returns the position of the highest bit of x, which must not be 0. */
TF_HOST_AND_DEVICE int32_t tf_mma_top(uint64_t x)
{
#if defined(__CUDA_ARCH__)
    return 63 - __clzll((long long)x);
#else
    return 63 - __builtin_clzll(x);
#endif
}

/* Returns magnitude * 2^unit as float32, rounded to `kept` fraction bits. */
TF_HOST_AND_DEVICE uint32_t tf_mma_round(uint64_t magnitude, int32_t unit,
                                         int negative, int32_t kept, int32_t half,
                                         int32_t nearest, int32_t negative_zero,
                                         struct tf_mma_trace *trace)
{
    const uint32_t sign = negative ? TF_SIGN_BIT : 0;
    const int32_t least = half ? TF_LEAST_HALF : TF_LEAST_SINGLE;
    if (magnitude == 0) {
        return 0;
    }
    /* 1. Find the result's unit in the last place and round to multiples of it. */
    int32_t exponent = tf_mma_top(magnitude) + unit;
    const int32_t last = (exponent > least ? exponent : least) - kept;
    const int32_t cut = last - unit;
    uint64_t result = 0;
    if (cut <= 0) {
        result = magnitude << -cut;
    } else if (cut < 64) {
        const uint64_t rest = magnitude & ((1ull << cut) - 1), tie = 1ull << (cut - 1);
        result = magnitude >> cut;
        result += nearest && (rest > tie || (rest == tie && (result & 1)));
    }
    tf_mma_tell(trace, TF_TOLD_ROUNDED, 0, sign >> 31, magnitude, unit, last,
                (int64_t)result);
    if (result == 0) {
        return negative_zero ? sign : 0;
    }
    /* 2. Convert to float32, in which the subnormal numbers of float16 are normal. */
    exponent = tf_mma_top(result) + last;
    if (exponent > (half ? 15 : 127)) {
        return sign | TF_INF_BITS;
    }
    if (exponent < TF_LEAST_SINGLE) {
        return sign | (uint32_t)(result << (last + 149));
    }
    if (exponent - last > 23) { /* rounding carried into a new bit */
        return sign | (uint32_t)(exponent + 127) << 23;
    }
    const uint32_t fraction = (uint32_t)(result << (23 - (exponent - last)));
    return sign | (uint32_t)(exponent + 127) << 23 | (fraction & TF_FRACTION_BITS);
}

/* -- an MMA group ------------------------------------------------------------------ */

/* Returns the NaN or Inf that an MMA group becomes because of its operands, or 0. */
TF_HOST_AND_DEVICE uint32_t tf_mma_special(int32_t half, const uint32_t *a,
                                           int64_t step_a, const uint32_t *b,
                                           int64_t step_b, int32_t n, uint32_t c)
{
    int nan = tf_mma_is_nan(c), infinities = 0; /* bit 0: positive, bit 1: negative */
    if (tf_mma_is_infinite(c)) {
        infinities |= c >> 31 ? 2 : 1;
    }
    for (int32_t k = 0; k < n; k++) {
        const uint32_t x = a[k * step_a], y = b[k * step_b];
        const int infinite = tf_mma_is_infinite(x) || tf_mma_is_infinite(y);
        nan |= tf_mma_is_nan(x) || tf_mma_is_nan(y);
        nan |= infinite && (x << 1 == 0 || y << 1 == 0);
        infinities |= !infinite ? 0 : (x ^ y) >> 31 ? 2 : 1;
    }
    if (nan || infinities == 3) {
        return tf_mma_nan(half);
    }
    return infinities == 0 ? 0 : infinities == 1 ? TF_INF_BITS : TF_NEGATIVE_INF_BITS;
}

/* Returns a significand times 2^shift, truncated toward zero, with its sign. */
TF_HOST_AND_DEVICE int64_t tf_mma_align(uint64_t significand, int32_t shift,
                                        uint32_t negative)
{
    const int32_t right = shift < 0 ? (shift > -63 ? -shift : 63) : 0;
    const int64_t x = (int64_t)(significand << (shift < 0 ? 0 : shift) >> right);
    return negative ? -x : x;
}

/* Returns the exponent of a product. A zero operand has the exponent `of_zero`. */
TF_HOST_AND_DEVICE int32_t tf_mma_product_exponent(struct tf_mma_number x,
                                                   struct tf_mma_number y,
                                                   int32_t of_zero)
{
    return (x.significand != 0 ? x.exponent : of_zero) +
           (y.significand != 0 ? y.exponent : of_zero);
}

/* Returns c * 2^scale + up to model->depth products, rounded as an MMA group is. The n
 * elements of a and b are `step_a` and `step_b` apart, and zeros follow them. */
TF_HOST_AND_DEVICE uint32_t tf_mma_dot(const struct tf_mma_model *model,
                                            const uint32_t *a, int64_t step_a,
                                            const uint32_t *b, int64_t step_b,
                                            int32_t n, uint32_t c, int32_t scale,
                                            struct tf_mma_trace *trace)
{
    struct tf_mma_number z =
        tf_mma_decode(c, model->half ? TF_LEAST_HALF : TF_LEAST_SINGLE);
    z.exponent += scale;
    /* 1. Find the largest exponent. */
    const int32_t least_a = model->least_a, least_b = model->least_b;
    const int32_t of_zero = model->zero_products ? TF_LEAST_SINGLE : TF_NO_EXPONENT;
    const int32_t exponent_z = z.significand ? z.exponent : model->zero_c;
    int32_t greatest = exponent_z;
    uint32_t largest = c & TF_MAGNITUDE_BITS;
    greatest = greatest > model->floor ? greatest : model->floor;
    for (int32_t k = 0; k < n; k++) {
        const uint32_t p = a[k * step_a] & TF_MAGNITUDE_BITS;
        const uint32_t q = b[k * step_b] & TF_MAGNITUDE_BITS;
        const struct tf_mma_number x = tf_mma_decode(p, least_a);
        const struct tf_mma_number y = tf_mma_decode(q, least_b);
        const int32_t exponent = tf_mma_product_exponent(x, y, of_zero);
        greatest = exponent > greatest ? exponent : greatest;
        largest = p > largest ? p : largest;
        largest = q > largest ? q : largest;
    }
    if (largest >= TF_INF_BITS) {
        return tf_mma_special(model->half, a, step_a, b, step_b, n, c);
    }
    /* 2. and 3. Align and add. A product has 46 fraction bits, c 23. */
    const int32_t unit = greatest - model->fraction;
    const int32_t shift_z = z.significand ? z.exponent - 23 - unit : 0;
    int64_t sum = tf_mma_align(z.significand, shift_z, c >> 31);
    tf_mma_tell(trace, TF_TOLD_TERM, -1, c >> 31, z.significand, z.exponent - 23, exponent_z,
                sum);
    for (int32_t k = 0; k < n; k++) {
        const uint32_t p = a[k * step_a], q = b[k * step_b];
        const struct tf_mma_number x = tf_mma_decode(p, least_a);
        const struct tf_mma_number y = tf_mma_decode(q, least_b);
        const int32_t shift = x.exponent + y.exponent - 46 - unit;
        const uint64_t product = (uint64_t)x.significand * y.significand;
        /* The largest exponent is at least the product's, so no shift goes to the left. */
        const int64_t kept = tf_mma_align(product, shift < 0 ? shift : 0, (p ^ q) >> 31);
        sum += kept;
        tf_mma_tell(trace, TF_TOLD_TERM, k, (p ^ q) >> 31, product, shift + unit,
                    tf_mma_product_exponent(x, y, of_zero), kept);
    }
    /* 4. Round. */
    uint64_t magnitude = sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum;
    tf_mma_tell(trace, TF_TOLD_SUM, 0, sum < 0, magnitude, unit, greatest, sum);
    if (model->cut_first && magnitude) {
        const int32_t cut = tf_mma_top(magnitude) - model->cut_first;
        magnitude = cut > 0 ? magnitude >> cut << cut : magnitude;
    }
    return tf_mma_round(magnitude, unit, sum < 0, model->kept, model->half,
                        model->half, model->negative_zero, trace);
}

/* -- groups in float32 --------------------------------------------------------------
 *
 * The fast loops (kernels/plain/mma.c, cuda/tensor_core/mma_model.cu) add a group in
 * float32 where float32 is exact, and call tf_mma_dot otherwise. Let F be the number of
 * fraction bits and e the largest exponent of the group. Each term is multiplied by
 * 2^(F - e), and its conversion to an integer, toward zero, is the alignment.
 *
 *      e < F - 125          in doubt: a term may be subnormal in float32, and so may be
 *                           the unit of the sum, 2^(e - F)
 *      F - 125 <= e <= 125  exact. A term below 2^-126, which float32 may have rounded, is
 *                           below one unit and correctly truncated to zero. All other
 *                           terms have 24 bits or fewer. The unit is 2^-125 or more, so
 *                           sums are normal. A product is below 2^(e + 2), never Inf
 *      125 < e              in doubt: a product may be Inf
 */

/* -- chains ------------------------------------------------------------------------ */

/* Returns x + y as IEEE 754 defines it, in float32 or float16. */
TF_HOST_AND_DEVICE uint32_t tf_mma_add(uint32_t x, uint32_t y, int32_t half,
                                       struct tf_mma_trace *trace)
{
    const uint32_t special = tf_mma_special(half, &x, 0, &y, 0, 0, x);
    const uint32_t other = tf_mma_special(half, &x, 0, &y, 0, 0, y);
    if (special || other) {
        const int opposite = special && other && special != other;
        return opposite ? tf_mma_nan(half) : special ? special : other;
    }
    if ((x & y) == TF_SIGN_BIT && ((x | y) & TF_MAGNITUDE_BITS) == 0) {
        return x; /* -0 + -0 */
    }
    /* Keep 38 bits below the larger number's significand. The lost bits of the smaller
     * number set its last bit, which no rounding below can distinguish from them. */
    const struct tf_mma_number p = tf_mma_decode(x, TF_LEAST_SINGLE);
    const struct tf_mma_number q = tf_mma_decode(y, TF_LEAST_SINGLE);
    const int32_t greatest = p.exponent > q.exponent ? p.exponent : q.exponent;
    const int32_t shift_p = 38 - (greatest - p.exponent);
    const int32_t shift_q = 38 - (greatest - q.exponent);
    int64_t s = tf_mma_align(p.significand, shift_p, 0);
    int64_t t = tf_mma_align(q.significand, shift_q, 0);
    s |= shift_p < 0 && p.significand != 0;
    t |= shift_q < 0 && q.significand != 0;
    const int64_t sum = (x >> 31 ? -s : s) + (y >> 31 ? -t : t);
    return tf_mma_round(sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum,
                        greatest - 23 - 38, sum < 0, half ? 10 : 23, half, 1, 1, trace);
}

/* Adds the sum of a chain to the accumulator c and returns the result. `promotes` marks an
 * addition by the caller of the chain. */
TF_HOST_AND_DEVICE uint32_t tf_mma_add_sum(uint32_t sum, uint32_t c, int32_t half,
                                           int promotes, struct tf_mma_trace *trace)
{
    const uint32_t result = tf_mma_add(sum, c, half, trace);
    tf_mma_tell(trace, TF_TOLD_ADDITION, promotes, 0, sum, c, 0, result);
    return result;
}

/* Returns c + the products of n elements, k ascending, as instructions chain MMA groups.
 *
 * Emulated instructions (fp8 mma.sync on sm_90 and sm_100) have two float16 groups. The
 * first starts from zero with the first two of each four k, and the second adds the other
 * two. Their sum is added to the accumulator. Source: NVIDIA/cutlass issue 1986.
 */
TF_HOST_AND_DEVICE uint32_t tf_mma_accumulate(const struct tf_mma_model *model,
                                            const uint32_t *a, int64_t step_a,
                                            const uint32_t *b, int64_t step_b,
                                            int64_t n, uint32_t c,
                                            struct tf_mma_trace *trace)
{
    if (!model->emulated) {
        const int64_t filled = (n + model->instruction_depth - 1) /
                               model->instruction_depth * model->instruction_depth;
        for (int64_t k = 0; k < filled; k += model->depth) {
            const int64_t rest = n > k ? n - k : 0;
            const int32_t here = rest < model->depth ? (int32_t)rest : model->depth;
            const uint32_t before = c;
            tf_mma_tell_ks(trace, a, step_a, b, step_b, k, here);
            c = tf_mma_dot(model, a + k * step_a, step_a, b + k * step_b, step_b, here, c,
                           0, trace);
            tf_mma_tell(trace, TF_TOLD_GROUP, 0, 0, before, 0, 0, c);
        }
        return c;
    }
    for (int64_t k = 0; k < n; k += 2 * model->depth) {
        uint32_t total = 0;
        for (int64_t first = k; first < k + 4; first += 2) {
            uint32_t x[TF_DEEPEST], y[TF_DEEPEST];
            int32_t count = 0;
            for (int64_t i = first; i < k + 2 * model->depth && i < n;
                 i += count % 2 ? 1 : 3) {
                x[count] = a[i * step_a];
                y[count++] = b[i * step_b];
                tf_mma_tell_k(trace, i, a[i * step_a], b[i * step_b]);
            }
            const uint32_t before = total;
            total = tf_mma_dot(model, x, 1, y, 1, count, total, 0, trace);
            tf_mma_tell(trace, TF_TOLD_GROUP, 0, 0, before, 0, 0, total);
        }
        c = tf_mma_add_sum(total, c, model->half, 0, trace);
    }
    return c;
}

#endif
