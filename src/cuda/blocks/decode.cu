/* Decodes blocks to float32 or float64, and unpacks codes to one item each.
 *
 *   HI, LO   the elements of both levels, by index in tf_elements; LO -1: one level
 *
 * A thread has EACH neighboring elements of a line, which are in one block. The grid's y
 * are lines, and its x elements. Codes and scales are stored as by tf_blocks_quantize. */
#include "blocks/dequantize.h"
#include "cuda/common/common.h"

enum { EACH = 4 };

struct tf_code_rows {
    int64_t lines, length;
    int32_t block; /* a power of two */
    int32_t scale; /* index in tf_scales */
    float tensor_scale;
    int32_t odd; /* 1: round to odd instead of nearest */
};

/* Calls f(line, k, index of the block, index in the block) for EACH elements at a time. */
template <class F> inline void for_each_four(const struct tf_code_rows &of, F f)
{
    const int64_t blocks = tf_ceil_div(of.length, of.block);
    const int shift = 31 - __clz(of.block);
    const int64_t down = (int64_t)gridDim.y * blockDim.y;
    const int64_t across = (int64_t)gridDim.x * blockDim.x * EACH;
#pragma unroll 1
    for (int64_t line = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; line < of.lines;
         line += down) {
#pragma unroll 1
        for (int64_t k = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * EACH;
             k < of.length; k += across) {
            f(line, k, line * blocks + (k >> shift), (uint32_t)k & (of.block - 1));
        }
    }
}

/* Stores EACH items of a line up to its end, by one access if `out` is aligned. */
template <class T>
inline void put_items(const struct tf_code_rows &of, T *out, int64_t line, int64_t k,
                      const T *items)
{
    struct alignas(sizeof(T) * EACH) four {
        T of[EACH];
    };
    T *to = out + line * of.length + k;
    if (k + EACH <= of.length && (uintptr_t)to % sizeof(four) == 0) {
        *(four *)to = {items[0], items[1], items[2], items[3]};
        return;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (k + i < of.length) {
            to[i] = items[i];
        }
    }
}

template <class T>
inline void decode(const uint8_t *codes, const uint8_t *scales, const uint8_t *residuals,
                   T *out, const struct tf_code_rows &of)
{
    const int TWO = LO >= 0;
    const struct tf_element e = tf_elements[HI], r = tf_elements[TWO ? LO : HI];
    for_each_four(of, [&](int64_t line, int64_t k, int64_t block, uint32_t at) {
        const struct tf_scale s = tf_scales[of.scale];
        const uint8_t *p = codes + block * (of.block * e.width / 8);
        const uint8_t *q = residuals + block * (of.block * r.width / 8);
        const float scale =
            /* mutant: another block's scale */
            tf_block_scale(s, of.tensor_scale, scales[TWO ? 2 * block : block]);
        const float residual = TWO ? tf_residual_scale(s, r, scales[2 * block + 1]) : 0;
        const double second = tf_second_scale(scale, residual);
        /* mutant: to nearest before another format */
        const bool is_plain = !of.odd && tf_scale_is_plain(TWO, scale, residual);
        T items[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const float hi = tf_element_value(e, tf_code_at(e, p, at + i));
            const float lo = TWO ? tf_element_value(r, tf_code_at(r, q, at + i)) : 0;
            if (sizeof(T) == 8) {
                items[i] = (T)tf_block_number(TWO, scale, second, hi, lo, 0);
            } else if (is_plain) {
                items[i] = TWO ? (T)tf_fma(scale * residual, lo, scale * hi)
                               : (T)(scale * hi);
            } else {
                items[i] = (T)tf_block_single(TWO, scale, second, hi, lo, of.odd);
            }
            items[i] =
                items[i] == items[i] ? items[i] : (T)__uint_as_float(TF_QUIET_NAN_BITS);
        }
        put_items(of, out, line, k, items);
    });
}

extern "C" __global__ void __launch_bounds__(256)
    block_decode_single(const uint8_t *codes, const uint8_t *scales,
                        const uint8_t *residuals, float *out, const struct tf_code_rows of)
{
    decode(codes, scales, residuals, out, of);
}

extern "C" __global__ void __launch_bounds__(256)
    block_decode_double(const uint8_t *codes, const uint8_t *scales,
                        const uint8_t *residuals, double *out, const struct tf_code_rows of)
{
    decode(codes, scales, residuals, out, of);
}

/* Unpacks codes of HI to items of one or two bytes, each item(element, code). */
template <class T, class Item>
inline void unpack(const uint8_t *codes, T *out, const struct tf_code_rows &of, Item item)
{
    const struct tf_element e = tf_elements[HI];
    for_each_four(of, [&](int64_t line, int64_t k, int64_t block, uint32_t at) {
        const uint8_t *p = codes + block * (of.block * e.width / 8);
        const auto one = [&](uint32_t i) { return (T)item(e, tf_code_at(e, p, at + i)); };
        const T items[EACH] = {one(0), one(1), one(2), one(3)};
        put_items(of, out, line, k, items);
    });
}

/* Returns a code as an item. An integer's sign is extended to all upper bits. */
inline uint32_t item_of_code(struct tf_element e, uint32_t code)
{
    const uint32_t sign = e.format < 0 ? UINT32_C(1) << (e.width - 1) : 0;
    return (code ^ sign) - sign; /* mutant: an integer's sign */
}

extern "C" __global__ void __launch_bounds__(256)
    block_unpack_bytes(const uint8_t *codes, uint8_t *out, const struct tf_code_rows of)
{
    unpack(codes, out, of, item_of_code);
}

extern "C" __global__ void __launch_bounds__(256)
    block_unpack_words(const uint8_t *codes, uint16_t *out, const struct tf_code_rows of)
{
    unpack(codes, out, of, item_of_code);
}

/* Returns the E4M3 code of the same number. E4M3 has all numbers of 4 and of 6 bits. */
inline uint32_t e4m3_of_code(struct tf_element e, uint32_t code)
{
    return tf_code_of_single(tf_float8_e4m3fn, tf_bits_of(tf_element_value(e, code)));
}

extern "C" __global__ void __launch_bounds__(256)
    block_as_e4m3(const uint8_t *codes, uint8_t *out, const struct tf_code_rows of)
{
    unpack(codes, out, of, e4m3_of_code);
}
