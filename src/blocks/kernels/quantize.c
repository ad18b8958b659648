/* Blocks with a common scale: many of them, packed. */
#include <string.h>

#include "blocks/kernels/vector_search_cost.h"
#include "blocks/quantize_block.h"
#include "blocks/kernels.h"
#include "runtime/kernels/common.h"

/* -- codes in bytes ---------------------------------------------------------------- */

/* n codes, a multiple of 16, one after the other, the first in the lowest bits. */
TF_INLINE void put_codes(struct tf_element e, const uint16_t *codes, int n, uint8_t *out)
{
    switch (e.width) {
    case 4:
        for (int i = 0; i < n / 2; i++) {
            out[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
        }
        break;
    case 6:
        for (int i = 0; i < n / 4; i++) {
            const uint32_t four = codes[4 * i] | (uint32_t)codes[4 * i + 1] << 6 |
                                  (uint32_t)codes[4 * i + 2] << 12 |
                                  (uint32_t)codes[4 * i + 3] << 18;
            out[3 * i] = (uint8_t)four;
            out[3 * i + 1] = (uint8_t)(four >> 8);
            out[3 * i + 2] = (uint8_t)(four >> 16);
        }
        break;
    case 12:
        for (int i = 0; i < n / 2; i++) {
            const uint32_t two = codes[2 * i] | (uint32_t)codes[2 * i + 1] << 12;
            out[3 * i] = (uint8_t)two;
            out[3 * i + 1] = (uint8_t)(two >> 8);
            out[3 * i + 2] = (uint8_t)(two >> 16);
        }
        break;
    case 16:
        for (int i = 0; i < n; i++) {
            out[2 * i] = (uint8_t)codes[i];
            out[2 * i + 1] = (uint8_t)(codes[i] >> 8);
        }
        break;
    default:
        for (int i = 0; i < n; i++) {
            out[i] = (uint8_t)codes[i];
        }
    }
}

TF_INLINE void get_codes(struct tf_element e, const uint8_t *in, int n, uint16_t *codes)
{
    switch (e.width) {
    case 4:
        for (int i = 0; i < n / 2; i++) {
            codes[2 * i] = in[i] & 0xF;
            codes[2 * i + 1] = in[i] >> 4;
        }
        break;
    case 8:
        for (int i = 0; i < n; i++) {
            codes[i] = in[i];
        }
        break;
    case 16:
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)(in[2 * i] | in[2 * i + 1] << 8);
        }
        break;
    default:
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_code_at(e, in, (uint32_t)i);
        }
    }
}

TF_INLINE void put_numbers(struct tf_element e, const float *numbers, int n, int special,
                           uint8_t *out)
{
    uint16_t codes[TF_BLOCK_MOST];
    if (special) {
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_code_in_block(e, numbers[i]);
        }
    } else {
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_element_code(e, numbers[i]);
        }
    }
    put_codes(e, codes, n, out);
}

/* The number that a code is, without a product of float32's subnormals: that is slow. */
TF_INLINE float number_of_code(struct tf_element e, uint32_t code)
{
    if (e.format < 0) {
        return tf_element_value(e, code);
    }
    const struct tf_format f = *tf_format_rows[e.format];
    const uint32_t magnitude = code & tf_magnitude_mask(f);
    const uint32_t sign = (code & tf_sign_mask(f)) << (32 - f.width);
    const float small = (float)(int32_t)magnitude * tf_power_of_two(tf_least_exponent(f));
    uint32_t bits = (magnitude << tf_cut(f)) + tf_rebias(f);
    bits = magnitude >> f.mantissa_bits ? bits : tf_bits_of(small);
    if (f.specials == TF_IEEE) {
        const uint32_t infinity = tf_infinity_magnitude(f);
        bits = magnitude >= infinity ? TF_INF_BITS : bits;
        bits = magnitude > infinity ? TF_QUIET_NAN_BITS : bits;
    } else if (f.specials == TF_FN) {
        bits = magnitude == tf_magnitude_mask(f) ? TF_QUIET_NAN_BITS : bits;
    }
    return tf_float_of(bits | sign);
}

TF_INLINE void get_numbers(struct tf_element e, const uint8_t *in, int n, float *numbers)
{
    if (e.width == 8) {
        for (int i = 0; i < n; i++) {
            numbers[i] = number_of_code(e, in[i]);
        }
        return;
    }
    uint16_t codes[TF_BLOCK_MOST];
    get_codes(e, in, n, codes);
    for (int i = 0; i < n; i++) {
        numbers[i] = number_of_code(e, codes[i]);
    }
}

static void put_residual(struct tf_element lo, const float *numbers, int n, uint8_t *out)
{
    if (lo.format < 0) {
        put_numbers(tf_elements[tf_element_int4], numbers, n, 0, out);
    } else {
        put_numbers(tf_elements[tf_element_float8_e4m3fn], numbers, n, 0, out);
    }
}

static void get_residual(struct tf_element lo, const uint8_t *in, int n, float *numbers)
{
    if (lo.format < 0) {
        get_numbers(tf_elements[tf_element_int4], in, n, numbers);
    } else {
        get_numbers(tf_elements[tf_element_float8_e4m3fn], in, n, numbers);
    }
}

/* Rounds numbers to the element's grid, to nearest; those that stand for one of its
 * numbers become that. NaN stays. */
TF_INLINE void snap_to_grid(struct tf_element e, float *numbers, int n)
{
    for (int i = 0; i < n; i++) {
        const float x = numbers[i];
        numbers[i] = x == x ? tf_nearest_signed(e, x) : x;
    }
}

/* -- a block at a time ------------------------------------------------------------- */

typedef void round_fn(const struct tf_block_plan *plan, const float *x,
                      const uint64_t *draws, struct tf_block *block);

TF_INLINE void quantize(struct tf_element e, round_fn *round,
                        const struct tf_block_plan *plan, const float *x, size_t count,
                        const uint64_t *draws, uint8_t *codes, uint8_t *scales,
                        uint8_t *residuals)
{
    const int n = tf_block_size(plan), two = plan->layout.residual >= 0;
    const struct tf_element lo = tf_elements[two ? plan->layout.residual : 0];
    const size_t bytes = (size_t)(n * e.width / 8), lo_bytes = (size_t)(n * lo.width / 8);
    struct tf_block block;
    for (size_t b = 0; b < count; b++) {
        const size_t at = b * (size_t)n;
        round(plan, x + at, draws ? draws + at : 0, &block);
        put_numbers(e, block.hi, n, (int)block.special, codes + b * bytes);
        if (!two) {
            scales[b] = (uint8_t)block.code;
            continue;
        }
        scales[2 * b] = (uint8_t)block.code;
        scales[2 * b + 1] = (uint8_t)block.residual_code;
        put_residual(lo, block.lo, n, residuals + b * lo_bytes);
    }
}

/* What n numbers of a block are, as float32. */
TF_INLINE void numbers_of(const struct tf_block_plan *plan, uint32_t code,
                          uint32_t residual_code, const float *hi, const float *lo, int n,
                          int odd, float *out)
{
    const struct tf_scale s = tf_scales[plan->layout.scale];
    const int two = plan->layout.residual >= 0;
    const float scale = tf_block_scale(s, plan->layout.tensor_scale, code);
    const float residual =
        two ? tf_residual_scale(s, tf_elements[plan->layout.residual], residual_code) : 0;
    if (!odd && tf_scale_is_plain(two, scale, residual)) {
        if (two) {
            const float second = scale * residual;
            for (int i = 0; i < n; i++) {
                out[i] = tf_fma(second, lo[i], scale * hi[i]);
            }
        } else {
            for (int i = 0; i < n; i++) {
                out[i] = scale * hi[i];
            }
        }
        return;
    }
    const double second = tf_second_scale(scale, residual);
    for (int i = 0; i < n; i++) {
        out[i] = tf_block_single(two, scale, second, hi[i], two ? lo[i] : 0, odd);
    }
}

TF_INLINE void round_blocks(struct tf_element e, round_fn *round,
                            const struct tf_block_plan *plan, const float *x,
                            size_t count, const uint64_t *draws, float *out)
{
    const int n = tf_block_size(plan), two = plan->layout.residual >= 0;
    struct tf_block block;
    for (size_t b = 0; b < count; b++) {
        const size_t at = b * (size_t)n;
        round(plan, x + at, draws ? draws + at : 0, &block);
        snap_to_grid(e, block.hi, n);
        if (e.format < 0 && block.special) {
            for (int i = 0; i < n; i++) { /* integers have no NaN */
                block.hi[i] = block.hi[i] == block.hi[i] ? block.hi[i] : 0;
            }
        }
        numbers_of(plan, block.code, two ? block.residual_code : 0, block.hi, block.lo, n,
                   0, out + at);
    }
}

/* Codes of a byte and of one level at once. */
TF_INLINE void scale_codes(struct tf_element e, const uint8_t *codes, int n, float scale,
                           float *restrict out)
{
    for (int i = 0; i < n; i++) {
        out[i] = scale * number_of_code(e, codes[i]);
    }
}

TF_INLINE void dequantize(struct tf_element e, const struct tf_block_plan *plan,
                          const uint8_t *codes, const uint8_t *scales,
                          const uint8_t *residuals, size_t count, int odd, float *out)
{
    const int n = tf_block_size(plan), two = plan->layout.residual >= 0;
    const struct tf_element lo = tf_elements[two ? plan->layout.residual : 0];
    const size_t bytes = (size_t)(n * e.width / 8), lo_bytes = (size_t)(n * lo.width / 8);
    float first[TF_BLOCK_MOST], second[TF_BLOCK_MOST];
    const struct tf_scale s = tf_scales[plan->layout.scale];
    for (size_t b = 0; b < count; b++) {
        const float scale =
            two ? 0 : tf_block_scale(s, plan->layout.tensor_scale, scales[b]);
        if (e.width == 8 && !two && !odd && tf_scale_is_plain(0, scale, 0)) {
            scale_codes(e, codes + b * bytes, n, scale, out + b * (size_t)n);
            continue;
        }
        get_numbers(e, codes + b * bytes, n, first);
        if (two) {
            get_residual(lo, residuals + b * lo_bytes, n, second);
        }
        numbers_of(plan, scales[two ? 2 * b : b], two ? scales[2 * b + 1] : 0, first,
                   second, n, odd, out + b * (size_t)n);
    }
}

/* -- for each element -------------------------------------------------------------- */

#define ROW(name, ...)                                                                  \
    static __attribute__((noinline)) void one_##name(                                   \
        const struct tf_block_plan *plan, const float *x, const uint64_t *draws,        \
        struct tf_block *block)                                                         \
    {                                                                                   \
        tf_round_block(tf_elements[tf_element_##name], plan, x, draws, block);          \
    }                                                                                   \
    static void quantize_##name(const struct tf_block_plan *plan, const float *x,       \
                                size_t count, const uint64_t *draws, uint8_t *codes,    \
                                uint8_t *scales, uint8_t *residuals)                    \
    {                                                                                   \
        quantize(tf_elements[tf_element_##name], one_##name, plan, x, count, draws,     \
                 codes, scales, residuals);                                            \
    }                                                                                   \
    static void round_##name(const struct tf_block_plan *plan, const float *x,          \
                             size_t count, const uint64_t *draws, float *out)           \
    {                                                                                   \
        round_blocks(tf_elements[tf_element_##name], one_##name, plan, x, count, draws, \
                     out);                                                              \
    }                                                                                   \
    static void dequantize_##name(const struct tf_block_plan *plan,                     \
                                  const uint8_t *codes, const uint8_t *scales,          \
                                  const uint8_t *residuals, size_t count, int odd,      \
                                  float *out)                                           \
    {                                                                                   \
        dequantize(tf_elements[tf_element_##name], plan, codes, scales, residuals,      \
                   count, odd, out);                                                    \
    }
TF_ELEMENTS(ROW)
#undef ROW

const struct tf_block_loops TF_NAME(tf_block_loops)[TF_ELEMENT_COUNT] = {
#define ROW(name, ...) {quantize_##name, round_##name, dequantize_##name},
    TF_ELEMENTS(ROW)
#undef ROW
};
