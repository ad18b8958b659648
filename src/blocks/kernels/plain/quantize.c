/* Quantize, round and dequantize many packed blocks with a common scale. */
#include <string.h>

#include "blocks/cpu_hooks.h"
#include "blocks/dequantize.h"
#include "blocks/kernels.h"
#include "blocks/kernels/code_bytes.h"
#include "blocks/kernels/vector_search_cost.h"
#include "runtime/kernels/common.h"

/* Rounds numbers to the nearest of the element's grid. This completes quotients that only
 * stand for a number of the grid. NaN stays. */
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

/* Writes n numbers of a block as float32. */
TF_INLINE void numbers_of_block(const struct tf_block_plan *plan, uint32_t code,
                                uint32_t residual_code, const float *hi,
                                const float *lo, int n, int odd, float *out)
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
        numbers_of_block(plan, block.code, two ? block.residual_code : 0, block.hi,
                         block.lo, n, 0, out + at);
    }
}

/* Dequantizes 8-bit codes of one level in one step. */
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
        numbers_of_block(plan, scales[two ? 2 * b : b], two ? scales[2 * b + 1] : 0,
                         first, second, n, odd, out + b * (size_t)n);
    }
}

/* -- for each element -------------------------------------------------------------- */

/* finite_NAME, the largest function, is compiled once per element. */
#define ROW(name, ...)                                                                  \
    static __attribute__((noinline)) void finite_##name(                                \
        struct tf_element e, const struct tf_block_plan *plan, const float *x, float a, \
        const uint64_t *draws, struct tf_block *block)                                  \
    {                                                                                   \
        (void)e;                                                                        \
        tf_round_finite(tf_elements[tf_element_##name], plan, x, a, draws, block);      \
    }                                                                                   \
    static __attribute__((noinline)) void one_##name(                                   \
        const struct tf_block_plan *plan, const float *x, const uint64_t *draws,        \
        struct tf_block *block)                                                         \
    {                                                                                   \
        tf_round_block_by(finite_##name, tf_elements[tf_element_##name], plan, x,       \
                          draws, block);                                                \
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

const struct tf_block_loops TF_PLAIN_NAME(tf_block_loops)[TF_ELEMENT_COUNT] = {
#define ROW(name, ...) {quantize_##name, round_##name, dequantize_##name},
    TF_ELEMENTS(ROW)
#undef ROW
};
