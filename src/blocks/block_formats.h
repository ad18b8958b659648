/* Blocks of numbers with a common scale: the formats, and the values of their codes.
 *
 * A block has `size` codes of one element format and one scale. It may also have as many
 * codes of a residual, with a scale that is relative to the first:
 *
 *     x = S hi                 one level
 *     x = S hi + S R lo        two levels, lo the residual's code
 *
 * The value is rounded once. A number takes (8 + element width * size) / size bits with one
 * level, (16 + (element + residual width) * size) / size with two:
 *
 *     blocks of                        numbers    S       bits per number
 *     float8, mxint8                   32         e8m0    8.25
 *     float6                           32         e8m0    6.25
 *     float4_e2m1fn                    32         e8m0    4.25
 *     float4_e2m1fn                    16         ue4m3   4.5 (and one float32 per tensor)
 *     float8_e4m3fn with int4          32         e8m0    12.5
 *
 * Two tables describe elements and scales, one row each. A block format is a choice of them
 * (tf32dtype/blocks/formats.py has the table of block formats). Freestanding, so that C and
 * CUDA compile it. Uses float32 arithmetic with subnormal numbers.
 */
#ifndef TF32DTYPE_BLOCKS_BLOCK_FORMATS_H
#define TF32DTYPE_BLOCKS_BLOCK_FORMATS_H

#include "formats/fast_codec.h"

/* -- elements ---------------------------------------------------------------------- */

/* An element: codes of a format, or two's complement integers times 2^-fraction. */
struct tf_element {
    const char *name;
    uint8_t width;    /* bits of a code */
    int8_t format;    /* index of the format; -1: integers */
    uint8_t fraction; /* of integers */
    int32_t least, greatest;
};

/* Sources: OCP Microscaling Formats 1.0, table 1 (its int8 leaves -2 unused, as it
 * allows); int4 is the residual's. */
#define TF_ELEMENTS(ROW)                                                       \
    ROW(float8_e4m3fn, 8, tf_float8_e4m3fn_index, 0, 0, 0)                     \
    ROW(float8_e5m2,   8, tf_float8_e5m2_index,   0, 0, 0)                     \
    ROW(float6_e2m3fn, 6, tf_float6_e2m3fn_index, 0, 0, 0)                     \
    ROW(float6_e3m2fn, 6, tf_float6_e3m2fn_index, 0, 0, 0)                     \
    ROW(float4_e2m1fn, 4, tf_float4_e2m1fn_index, 0, 0, 0)                     \
    ROW(mxint8,        8, -1, 6, -127, 127)                                    \
    ROW(int4,          4, -1, 0, -8, 7)                                        \
    ROW(int8,          8, -1, 0, -127, 127)                                    \
    ROW(int12,        12, -1, 0, -2047, 2047)                                  \
    ROW(int16,        16, -1, 0, -32767, 32767)

enum {
#define ROW(name, ...) tf_element_##name,
    TF_ELEMENTS(ROW)
#undef ROW
    TF_ELEMENT_COUNT
};

static const struct tf_element tf_elements[TF_ELEMENT_COUNT] = {
#define ROW(name, ...) {#name, __VA_ARGS__},
    TF_ELEMENTS(ROW)
#undef ROW
};

/* Returns the number of a code, exactly. */
TF_INLINE float tf_element_value(struct tf_element e, uint32_t code)
{
    if (e.format >= 0) {
        return tf_float_of(tf_single_of_item(*tf_format_rows[e.format], code));
    }
    const uint32_t sign = UINT32_C(1) << (e.width - 1);
    const int32_t whole = (int32_t)((code ^ sign) - sign);
    return (float)whole * tf_float_of((uint32_t)(127 - e.fraction) << 23);
}

/* Returns the i-th of packed codes. The first code has the lowest bits: low nibble first.
 * Four codes of 6 bits, or two of 12 bits, are three bytes. */
TF_INLINE uint32_t tf_code_at(struct tf_element e, const uint8_t *codes, uint32_t i)
{
    const uint32_t bit = i * e.width, at = bit >> 3;
    uint32_t bits = codes[at];
    if ((bit & 7) + e.width > 8) {
        bits |= (uint32_t)codes[at + 1] << 8;
    }
    return bits >> (bit & 7) & ((UINT32_C(1) << e.width) - 1);
}

/* -- scales ------------------------------------------------------------------------ */

enum tf_scale_kind {
    TF_SCALE_POWERS, /* float8_e8m0fnu: 2^(code - 127), 255 is NaN */
    TF_SCALE_E4M3,   /* float8_e4m3fn without its sign, times the tensor's float32 */
    TF_SCALE_WHOLE,  /* integers times the tensor's float32. Let m be the b low bits of a
                      * code and f the other bits. The integer is m if f is 0, else
                      * (2^b + m) 2^(f - 1). All 256 are finite */
};

struct tf_scale {
    const char *name;
    uint8_t mantissa_bits;
    uint8_t kind; /* enum tf_scale_kind */
};

#define TF_SCALES(ROW)                                                         \
    ROW(float8_e8m0fnu, 0, TF_SCALE_POWERS)                                    \
    ROW(ue4m3,          3, TF_SCALE_E4M3)                                      \
    ROW(ue5m3,          3, TF_SCALE_WHOLE)                                     \
    ROW(ue4m4,          4, TF_SCALE_WHOLE)                                     \
    ROW(ue3m5,          5, TF_SCALE_WHOLE)

enum {
#define ROW(name, ...) tf_scale_##name,
    TF_SCALES(ROW)
#undef ROW
    TF_SCALE_COUNT
};

static const struct tf_scale tf_scales[TF_SCALE_COUNT] = {
#define ROW(name, ...) {#name, __VA_ARGS__},
    TF_SCALES(ROW)
#undef ROW
};

/* Returns the exact value of a scale's code, without the tensor's scale. */
TF_INLINE float tf_scale_value(struct tf_scale s, uint32_t code)
{
    if (s.kind == TF_SCALE_POWERS) {
        return tf_float_of(tf_single_of_item(tf_float8_e8m0fnu, code));
    }
    if (s.kind == TF_SCALE_E4M3) {
        return tf_float_of(tf_single_of_item(tf_float8_e4m3fn, code & 0x7F));
    }
    const uint32_t field = code >> s.mantissa_bits;
    const uint32_t mantissa = code & ((UINT32_C(1) << s.mantissa_bits) - 1);
    if (field == 0) {
        return (float)mantissa;
    }
    return (float)((UINT32_C(1) << s.mantissa_bits) + mantissa) *
           tf_float_of((field - 1 + 127) << 23);
}

/* Returns the scale S of a block: its code's value times the tensor's scale, rounded to
 * float32. It is exact if the tensor's scale is a power of two, as for all but ue4m3. */
TF_INLINE float tf_block_scale(struct tf_scale s, float tensor_scale, uint32_t code)
{
    const float value = tf_scale_value(s, code);
    return s.kind == TF_SCALE_POWERS ? value : tensor_scale * value;
}

/* Returns an exponent t such that all values of a scale are below 2^t. */
TF_INLINE int tf_scale_top(struct tf_scale s)
{
    return s.kind == TF_SCALE_POWERS ? 0
           : s.kind == TF_SCALE_E4M3 ? 9
                                     : s.mantissa_bits + (1 << (8 - s.mantissa_bits)) - 1;
}

/* Returns the scale R of a residual. It is below 4 for integers and below 1/8 for E4M3:
 * half a unit of the first code needs this, with one binade to spare. Powers of two are
 * unchanged. */
TF_INLINE float tf_residual_scale(struct tf_scale s, struct tf_element lo, uint32_t code)
{
    const float value = tf_scale_value(s, code);
    if (s.kind == TF_SCALE_POWERS) {
        return value;
    }
    const int shift = (lo.format < 0 ? 2 : -3) - tf_scale_top(s);
    return value * tf_float_of((uint32_t)(127 + shift) << 23);
}

#endif
