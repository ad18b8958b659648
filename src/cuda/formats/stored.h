/* Numbers of every kind as unsigned words in memory. A kind is one of `enum
 * tf_number_kind`, or a format's index. */
#ifndef TF32DTYPE_CUDA_FORMATS_STORED_H
#define TF32DTYPE_CUDA_FORMATS_STORED_H

#include "formats/number_kinds.h"
#include "cuda/formats/numbers.h"

template <int kind> __forceinline__ struct tf_format tf_row_of(void)
{
    switch (kind) {
#define ROW(name, ...) case tf_##name##_index: return tf_##name;
        TF_FORMATS(ROW)
#undef ROW
    case TF_FLOAT32: return tf_binary32;
    default: return tf_float16;
    }
}

constexpr int tf_itemsize(int kind)
{
    switch (kind) {
#define ROW(name, itemsize, ...) case tf_##name##_index: return itemsize;
        TF_FORMATS(ROW)
#undef ROW
    case TF_BOOL:
    case TF_INT8:
    case TF_UINT8: return 1;
    case TF_FLOAT16:
    case TF_INT16:
    case TF_UINT16: return 2;
    case TF_FLOAT32:
    case TF_INT32:
    case TF_UINT32: return 4;
    default: return 8;
    }
}

template <int itemsize> struct tf_word_of_size;
template <> struct tf_word_of_size<1> { typedef uint8_t type; };
template <> struct tf_word_of_size<2> { typedef uint16_t type; };
template <> struct tf_word_of_size<4> { typedef uint32_t type; };
template <> struct tf_word_of_size<8> { typedef uint64_t type; };
template <int kind> using tf_word = typename tf_word_of_size<tf_itemsize(kind)>::type;

/* -- word -> float32 bits ----------------------------------------------------- */

/* Returns an integer as a double, rounded to odd. From 2^53 on, bits 0 to 10 are or-ed
 * into bit 11, so that a double holds the result. */
__forceinline__ double tf_folded(uint64_t x)
{
    return (double)(x >> 53 ? (x | ((x & 0x7FF) + 0x7FF)) & ~UINT64_C(0x7FF) : x);
}

/* Returns as a double a number that float32 may not hold. An integer that a double cannot
 * hold is rounded to odd. */
template <int kind> __forceinline__ double tf_double_of(tf_word<kind> item)
{
    if constexpr (kind == TF_FLOAT64) {
        return __longlong_as_double((int64_t)item);
    } else if constexpr (kind == TF_INT32) {
        return (double)(int32_t)item;
    } else if constexpr (kind == TF_UINT32) {
        return (double)item;
    } else if constexpr (kind == TF_UINT64) {
        return tf_folded(item);
    } else {
        const int negative = (int64_t)item < 0;
        const double magnitude = tf_folded(negative ? 0 - item : item);
        return negative ? -magnitude : magnitude;
    }
}

/* Returns bits of the float32 nearest to a number that float32 may not hold. */
template <int kind> __forceinline__ uint32_t tf_nearest_single(tf_word<kind> item)
{
    if constexpr (kind == TF_FLOAT64) {
        const float nearest = (float)__longlong_as_double((int64_t)item);
        const uint32_t sign = (uint32_t)(item >> 63) << 31;
        const uint32_t bits = tf_bits_of(nearest);
        return tf_single_is_nan(bits) ? TF_QUIET_NAN_BITS | sign : bits;
    } else if constexpr (kind == TF_INT32) {
        return tf_bits_of((float)(int32_t)item);
    } else if constexpr (kind == TF_INT64) {
        return tf_bits_of((float)(int64_t)item);
    } else {
        return tf_bits_of((float)item);
    }
}

/* Returns float32 bits of a number. If float32 cannot hold it, it is rounded to nearest,
 * or else to odd, for a second rounding. */
template <int kind, bool nearest> __forceinline__ uint32_t tf_single(tf_word<kind> item)
{
    if constexpr (kind <= TF_FLOAT16) {
        return tf_single_of_item(tf_row_of<kind>(), item);
    } else if constexpr (kind == TF_FLOAT32) {
        return item;
    } else if constexpr (kind == TF_BOOL) {
        return item != 0 ? UINT32_C(0x3F800000) : 0;
    } else if constexpr (kind == TF_INT8) {
        return tf_bits_of((float)(int8_t)item);
    } else if constexpr (kind == TF_INT16) {
        return tf_bits_of((float)(int16_t)item);
    } else if constexpr (kind == TF_UINT8 || kind == TF_UINT16) {
        return tf_bits_of((float)item);
    } else if constexpr (nearest) {
        return tf_nearest_single<kind>(item);
    } else {
        return tf_narrowed(tf_double_of<kind>(item));
    }
}

/* Returns the exact value of a number, for tf_encode. */
template <int kind> __forceinline__ struct tf_value tf_exactly(tf_word<kind> item)
{
    if constexpr (kind == TF_FLOAT64) {
        return tf_value_from_double_bits(item);
    } else if constexpr (kind == TF_INT32 || kind == TF_INT64) {
        const int64_t x = kind == TF_INT32 ? (int32_t)item : (int64_t)item;
        return tf_value_make(x < 0, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, 0);
    } else if constexpr (kind == TF_UINT32 || kind == TF_UINT64) {
        return tf_value_make(0, item, 0);
    } else {
        return tf_value_from_ieee(tf_single<kind, true>(item), 8, 23);
    }
}

/* -- float32 bits -> word ----------------------------------------------------- */

/* Returns x truncated toward zero if it is between `low` and `high`, else the minimum (0
 * if unsigned). `low` and `high` are out of range, or become the minimum either way. */
template <class Integer>
__forceinline__ Integer tf_truncated(float x, float low, float high, Integer minimum)
{
    return x > low && x < high ? (Integer)x : minimum;
}

/* Returns the nearest number of a kind, ties to even; for bool, whether it is not 0. */
template <int kind> __forceinline__ tf_word<kind> tf_stored(uint32_t bits)
{
    typedef tf_word<kind> word;
    const float x = tf_float_of(bits);
    if constexpr (kind <= TF_FLOAT16) {
        const struct tf_format f = tf_row_of<kind>();
        return (word)(tf_code_of_single(f, bits) << f.shift);
    } else if constexpr (kind == TF_FLOAT32) {
        return bits;
    } else if constexpr (kind == TF_FLOAT64) {
        const uint64_t nan = (uint64_t)(bits >> 31) << 63 | UINT64_C(0x7FF8) << 48;
        return tf_single_is_nan(bits) ? nan : (uint64_t)__double_as_longlong(x);
    } else if constexpr (kind == TF_BOOL) {
        return bits << 1 != 0;
    } else if constexpr (kind == TF_INT8) {
        return (word)tf_truncated<int32_t>(x, -129.f, 128.f, -128);
    } else if constexpr (kind == TF_INT16) {
        return (word)tf_truncated<int32_t>(x, -32769.f, 32768.f, -32768);
    } else if constexpr (kind == TF_INT32) {
        return (word)tf_truncated<int32_t>(x, -0x1p31f, 0x1p31f, INT32_MIN);
    } else if constexpr (kind == TF_INT64) {
        return (word)tf_truncated<int64_t>(x, -0x1p63f, 0x1p63f, INT64_MIN);
    } else if constexpr (kind == TF_UINT8) {
        return (word)tf_truncated<uint32_t>(x, -1.f, 0x1p8f, 0);
    } else if constexpr (kind == TF_UINT16) {
        return (word)tf_truncated<uint32_t>(x, -1.f, 0x1p16f, 0);
    } else if constexpr (kind == TF_UINT32) {
        return tf_truncated<uint32_t>(x, -1.f, 0x1p32f, 0);
    } else {
        return tf_truncated<uint64_t>(x, -1.f, 0x1p64f, 0);
    }
}

#endif
