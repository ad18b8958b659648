/* Explicit rounding by codec.h, one element at a time, in any mode. */
#include "formats/quantize.h"

#include <float.h>
#include <math.h>

#include "formats/casts.h"
#include "formats/scalar_ops.h"

static struct tf_value value_from_integer(int negative, uint64_t magnitude)
{
    return tf_value_make(negative && magnitude != 0, magnitude, 0);
}

/* Returns the value of a long double, which has 53, 64 or 113 significant bits. The value
 * has 64 of them; `sticky` is set if any lower bit is. */
static struct tf_value value_from_longdouble(long double x)
{
    const int negative = signbit(x) != 0;
    if (isnan(x)) {
        return tf_value_special(negative, TF_NAN);
    }
    if (isinf(x)) {
        return tf_value_special(negative, TF_INFINITY);
    }
    int exponent;
    const long double scaled = ldexpl(frexpl(fabsl(x), &exponent), 64);
    const uint64_t significand = (uint64_t)scaled;
    struct tf_value value = tf_value_make(negative, significand, exponent - 64);
    value.sticky = (long double)significand != scaled;
    return value;
}

static struct tf_value value_at(int kind, const char *item)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        long double ld;
    } x;
    memcpy(&x, item, tf_kind_size(kind));
    switch (kind) {
    case TF_FLOAT16: return tf_value_from_ieee(x.u16, 5, 10);
    case TF_FLOAT32: return tf_value_from_ieee(x.u32, 8, 23);
    case TF_FLOAT64: return tf_value_from_ieee(x.u64, 11, 52);
    case TF_LONGDOUBLE: return value_from_longdouble(x.ld);
    case TF_BOOL: return value_from_integer(0, x.u8 != 0);
    case TF_UINT8: return value_from_integer(0, x.u8);
    case TF_UINT16: return value_from_integer(0, x.u16);
    case TF_UINT32: return value_from_integer(0, x.u32);
    case TF_UINT64: return value_from_integer(0, x.u64);
    default: break;
    }
    if (kind < TF_FORMAT_COUNT) {
        const struct tf_format f = *tf_format_rows[kind];
        return tf_decode(f, tf_load_code(f, item));
    }
    const int64_t i = kind == TF_INT8    ? x.i8
                      : kind == TF_INT16 ? x.i16
                      : kind == TF_INT32 ? x.i32
                                         : x.i64;
    return value_from_integer(i < 0, i < 0 ? -(uint64_t)i : (uint64_t)i);
}

static struct tf_format row_of(int kind)
{
    return kind < TF_FORMAT_COUNT ? *tf_format_rows[kind]
           : kind == TF_FLOAT16   ? tf_float16
                                  : tf_binary32;
}

unsigned tf_quantize(int from, int to, const char *in, char *out, ptrdiff_t n,
                     enum tf_rounding rounding, enum tf_overflow overflow,
                     const uint64_t *draws)
{
    const struct tf_format f = row_of(to);
    const size_t in_size = tf_kind_size(from);
    unsigned flags = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint32_t code =
            tf_encode(f, value_at(from, in + (size_t)i * in_size), rounding, overflow,
                      draws ? draws[i] : 0, &flags);
        tf_store_code(f, out + (size_t)i * f.itemsize, code);
    }
    return flags;
}

uint32_t tf_code_from_integer(struct tf_format f, int negative, uint64_t significand,
                              int exponent, int sticky, unsigned *flags)
{
    struct tf_value x = tf_value_make(negative, significand, exponent);
    x.sticky = (uint8_t)sticky;
    return tf_encode(f, x, TF_TIES_TO_EVEN, TF_OVERFLOW_IEEE, 0, flags);
}
