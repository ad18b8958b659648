/* The formats: one row of facts each. Everything else in the project derives from these
 * rows. A new format needs a row, and its name in tf32dtype/__init__.py.
 *
 * Freestanding: no library, no floating point, so that C and CUDA compile it.
 *
 * A *code* is a format's bits, right-aligned in a uint32_t, `width` bits wide. In memory
 * a code takes `itemsize` bytes, shifted left by `shift` (13 for tf32, which has
 * float32's layout; 0 elsewhere). Item bits outside the code are ignored when read and
 * zero when written.
 */
#ifndef TF32DTYPE_FORMATS_FORMATS_H
#define TF32DTYPE_FORMATS_FORMATS_H

#include <stdint.h>

/* Which codes are not finite numbers. */
enum tf_specials {
    TF_IEEE,   /* exponent all ones: Inf (mantissa 0) and NaN              */
    TF_FN,     /* no Inf; NaN has exponent and mantissa all ones, any sign  */
    TF_FNUZ,   /* no Inf, no -0; the code of -0 is the only NaN             */
    TF_FINITE, /* neither Inf nor NaN                                       */
    TF_EXPONENT_ONLY  /* only powers of two: no zero, no sign; all ones is NaN */
};

struct tf_format {
    const char *name;
    uint8_t itemsize;      /* bytes of an element in memory */
    uint8_t width;         /* bits of the code: sign + exponent + mantissa */
    uint8_t shift;         /* unused low bits of the item */
    uint8_t exponent_bits;
    uint8_t mantissa_bits; /* stored; the significand has one more */
    uint8_t is_signed;
    int16_t bias;
    enum tf_specials specials;
    char typechar;         /* NumPy's dtype.char; NumPy and ml_dtypes do not use it */
};

/* Sources of the facts:
 *   - IEEE 754-2019 (the IEEE rule)
 *   - NVIDIA A100 white paper (tf32)
 *   - OCP 8-bit Floating Point Specification 1.0 (e5m2, e4m3fn)
 *   - OCP Microscaling Formats 1.0 (fp6, fp4, e8m0)
 *   - Noune et al., arXiv:2206.02915 (fnuz)
 *   - Sun et al., NeurIPS 2019 (e4m3 with bias 11)
 *
 *      name                itemsize width shift  e  m sign bias  specials  char
 */
#define TF_FORMATS(ROW)                                                        \
    ROW(tf32,                4,  19, 13,  8, 10, 1, 127, TF_IEEE,   'r')       \
    ROW(bfloat16,            2,  16,  0,  8,  7, 1, 127, TF_IEEE,   'J')       \
    ROW(float8_e5m2,         1,   8,  0,  5,  2, 1,  15, TF_IEEE,   'K')       \
    ROW(float8_e4m3fn,       1,   8,  0,  4,  3, 1,   7, TF_FN,     'R')       \
    ROW(float8_e4m3,         1,   8,  0,  4,  3, 1,   7, TF_IEEE,   'X')       \
    ROW(float8_e3m4,         1,   8,  0,  3,  4, 1,   3, TF_IEEE,   'Y')       \
    ROW(float8_e5m2fnuz,     1,   8,  0,  5,  2, 1,  16, TF_FNUZ,   'Z')       \
    ROW(float8_e4m3fnuz,     1,   8,  0,  4,  3, 1,   8, TF_FNUZ,   'j')       \
    ROW(float8_e4m3b11fnuz,  1,   8,  0,  4,  3, 1,  11, TF_FNUZ,   'k')       \
    ROW(float8_e8m0fnu,      1,   8,  0,  8,  0, 0, 127, TF_EXPONENT_ONLY, 'w')       \
    ROW(float6_e2m3fn,       1,   6,  0,  2,  3, 1,   1, TF_FINITE, 'x')       \
    ROW(float6_e3m2fn,       1,   6,  0,  3,  2, 1,   3, TF_FINITE, 'y')       \
    ROW(float4_e2m1fn,       1,   4,  0,  2,  1, 1,   1, TF_FINITE, 'z')

#define ROW(name, itemsize, width, shift, e, m, sign, bias, specials, ch)      \
    static const struct tf_format tf_##name = {                                \
        #name, itemsize, width, shift, e, m, sign, bias, specials, ch};
TF_FORMATS(ROW)
#undef ROW

/* float16 and float32 as formats, without dtypes in this project. Casts and matrix
 * products use float16, and explicit rounding uses both. */
static const struct tf_format tf_float16 = {
    "float16", 2, 16, 0, 5, 10, 1, 15, TF_IEEE, 'e'};
static const struct tf_format tf_binary32 = {
    "float32", 4, 32, 0, 8, 23, 1, 127, TF_IEEE, 'f'};

/* tf_tf32_index, tf_bfloat16_index, ...: a format's index in every table. */
enum {
#define ROW(name, ...) tf_##name##_index,
    TF_FORMATS(ROW)
#undef ROW
    TF_FORMAT_COUNT
};

/* The rows of the formats by index. */
static const struct tf_format *const tf_format_rows[TF_FORMAT_COUNT] = {
#define ROW(name, ...) &tf_##name,
    TF_FORMATS(ROW)
#undef ROW
};

/* -- facts that follow from a row ------------------------------------------ */

/* Returns the mask of a code's exponent and mantissa bits, which are its magnitude. */
static inline uint32_t tf_magnitude_mask(struct tf_format f)
{
    return (UINT32_C(1) << (f.exponent_bits + f.mantissa_bits)) - 1;
}

static inline uint32_t tf_sign_mask(struct tf_format f)
{
    return f.is_signed ? tf_magnitude_mask(f) + 1 : 0;
}

/* Returns a mask of an item's used bits. Bits above the item's width are set, too. */
static inline uint32_t tf_used_bits(struct tf_format f) { return UINT32_MAX << f.shift; }

static inline uint32_t tf_infinity_magnitude(struct tf_format f)
{
    return ((UINT32_C(1) << f.exponent_bits) - 1) << f.mantissa_bits;
}

/* Returns the magnitude of the largest finite number. */
static inline uint32_t tf_maximum_magnitude(struct tf_format f)
{
    switch (f.specials) {
    case TF_IEEE: return tf_infinity_magnitude(f) - 1;
    case TF_FN:
    case TF_EXPONENT_ONLY: return tf_magnitude_mask(f) - 1;
    case TF_FNUZ:
    case TF_FINITE: break;
    }
    return tf_magnitude_mask(f);
}

/* Returns the canonical quiet NaN, positive where NaN has a sign; 0 if there is none. */
static inline uint32_t tf_nan_code(struct tf_format f)
{
    switch (f.specials) {
    case TF_IEEE:
        return tf_infinity_magnitude(f) | UINT32_C(1) << (f.mantissa_bits - 1);
    case TF_FN:
    case TF_EXPONENT_ONLY: return tf_magnitude_mask(f);
    case TF_FNUZ: return tf_magnitude_mask(f) + 1;
    case TF_FINITE: break;
    }
    return 0;
}

/* Returns the magnitude that numbers above the range become: Inf, NaN or the largest one.
 * Not for fnuz, where NaN is -0's code and has no such magnitude. */
static inline uint32_t tf_overflow_magnitude(struct tf_format f)
{
    switch (f.specials) {
    case TF_IEEE: return tf_infinity_magnitude(f);
    case TF_FN:
    case TF_EXPONENT_ONLY: return tf_magnitude_mask(f);
    case TF_FNUZ:
    case TF_FINITE: break;
    }
    return tf_maximum_magnitude(f);
}

static inline int tf_is_nan(struct tf_format f, uint32_t code)
{
    const uint32_t magnitude = code & tf_magnitude_mask(f);
    switch (f.specials) {
    case TF_IEEE: return magnitude > tf_infinity_magnitude(f);
    case TF_FN:
    case TF_EXPONENT_ONLY: return magnitude == tf_magnitude_mask(f);
    case TF_FNUZ: return code == tf_nan_code(f);
    case TF_FINITE: break;
    }
    return 0;
}

/* Returns 1 for 0 and -0. TF_FNUZ has no -0, and TF_EXPONENT_ONLY has neither. */
static inline int tf_is_zero(struct tf_format f, uint32_t code)
{
    return f.specials != TF_EXPONENT_ONLY && !(code & tf_magnitude_mask(f)) &&
           (f.specials != TF_FNUZ || !(code & tf_sign_mask(f)));
}

/* Returns the exponent of the smallest subnormal number, which is the spacing near zero.
 * Every finite value is an integer times two to this power. */
static inline int tf_least_exponent(struct tf_format f)
{
    return (f.specials == TF_EXPONENT_ONLY ? 0 : 1) - f.bias - f.mantissa_bits;
}

#endif
