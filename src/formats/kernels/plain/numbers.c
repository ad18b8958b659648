/* NumPy's numbers <-> float32, one chunk at a time: the loads and stores of casts.c.
 *
 * A number that float32 cannot hold is rounded to odd: its last kept bit is set if any
 * bit below it was. A second rounding to a format, which has at most 11 significant bits,
 * then gives the result of a single rounding.
 */
#include <fenv.h>
#include <float.h>
#include <string.h>

#include "formats/number_kinds.h"
#include "formats/kernels/decls.h"
#include "runtime/kernels/intrinsics.h"

/* -- NumPy kinds -> float32, to odd ---------------------------------------------- */

#define LOAD(name, type, expression)                                           \
    static void load_##name(const void *items, float *out, size_t n)           \
    {                                                                          \
        const type *in = items;                                                \
        for (size_t i = 0; i < n; i++) {                                       \
            const type x = in[i];                                              \
            out[i] = (expression);                                             \
        }                                                                      \
    }

/* From 2^24 on, bits 0 to 7 are or-ed into bit 8, which leaves at least 16 and at most 24
 * significant bits. In two's complement this also rounds negative numbers to odd. */
TF_INLINE float float_from_uint32(uint32_t x)
{
    const uint32_t folded = (x | ((x & 0xFF) + 0xFF)) & ~UINT32_C(0xFF);
    return (float)(x >> 24 ? folded : x);
}

TF_INLINE float float_from_int32(int32_t x)
{
    const uint32_t bits = (uint32_t)x;
    const int32_t folded =
        (int32_t)((bits | ((bits & 0xFF) + 0xFF)) & ~UINT32_C(0xFF));
    const int is_wide = bits + (UINT32_C(1) << 24) > UINT32_C(1) << 25;
    return (float)(is_wide ? folded : x);
}

/* Returns the double that equals x, which is signed or not. SSE2 and AVX2 convert no vectors
 * of 64 bits, nor unsigned halves. */
TF_INLINE double double_of(uint64_t x, int is_signed)
{
#if defined(__AVX512DQ__) || defined(__aarch64__)
    return is_signed ? (double)(int64_t)x : (double)x;
#else
    const uint32_t upper = (uint32_t)(x >> 32), lower = (uint32_t)x;
    const double signed_upper = (double)(int32_t)upper;
    const double biased_upper = (double)(int32_t)(upper ^ TF_SIGN_BIT);
    const double biased_lower = (double)(int32_t)(lower ^ TF_SIGN_BIT);
    return (is_signed ? signed_upper : biased_upper + 0x1p31) * 0x1p32 +
           (biased_lower + 0x1p31);
#endif
}

/* From 2^53 on, bits 0 to 10 are or-ed into bit 11, so that a double holds the result. */
TF_INLINE double double_from_uint64(uint64_t x)
{
    const uint64_t folded = (x | ((x & 0x7FF) + 0x7FF)) & ~UINT64_C(0x7FF);
    return double_of(x >> 53 ? folded : x, 0);
}

TF_INLINE double double_from_int64(int64_t x)
{
    const uint64_t bits = (uint64_t)x;
    const uint64_t folded = (bits | ((bits & 0x7FF) + 0x7FF)) & ~UINT64_C(0x7FF);
    const int is_wide = bits + (UINT64_C(1) << 53) > UINT64_C(1) << 54;
    return double_of(is_wide ? folded : bits, 1);
}

LOAD(bool, uint8_t, x != 0)
LOAD(int8, int8_t, (float)x)
LOAD(int16, int16_t, (float)x)
LOAD(uint8, uint8_t, (float)x)
LOAD(uint16, uint16_t, (float)x)

/* Numbers below 2^24, as most integers are, convert exactly. */
#define LOAD_WIDE(name, type, unsigned_type, bits, load_any)                   \
    static void load_##name(const void *items, float *out, size_t n)           \
    {                                                                          \
        const type *in = items;                                                \
        unsigned_type wide = 0;                                                \
        for (size_t i = 0; i < n; i++) {                                       \
            const type x = in[i];                                              \
            wide |= (unsigned_type)(bits);                                     \
        }                                                                      \
        if (wide >> 24 == 0) {                                                 \
            for (size_t i = 0; i < n; i++) {                                   \
                out[i] = (float)(int32_t)in[i];                                \
            }                                                                  \
            return;                                                            \
        }                                                                      \
        load_any(name)                                                         \
    }
#define TO_FLOAT(name)                                                         \
    for (size_t i = 0; i < n; i++) {                                           \
        out[i] = float_from_##name(in[i]);                                     \
    }
#define BY_DOUBLE(name)                                                        \
    double numbers[TF_CHUNK];                                                  \
    for (size_t i = 0; i < n; i++) {                                           \
        numbers[i] = double_from_##name(in[i]);                                \
    }                                                                          \
    TF_NAME(tf_narrow)(numbers, out, n);
LOAD_WIDE(int32, int32_t, uint32_t, x < 0 ? ~x : x, TO_FLOAT)
LOAD_WIDE(int64, int64_t, uint64_t, x < 0 ? ~x : x, BY_DOUBLE)
LOAD_WIDE(uint32, uint32_t, uint32_t, x, TO_FLOAT)
LOAD_WIDE(uint64, uint64_t, uint64_t, x, BY_DOUBLE)

static void load_float64(const void *items, float *out, size_t n)
{
    TF_NAME(tf_narrow)(items, out, n);
}

static double double_from_long(long double x)
{
    const double nearest = (double)x;
    if (nearest == x || x != x) {
        return nearest;
    }
    uint64_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= __builtin_fabsl((long double)nearest) > __builtin_fabsl(x);
    bits |= 1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

static void load_any_longdouble(const long double *in, float *out, size_t n)
{
    double wide[TF_CHUNK];
    /* Narrowing an x87 number raises unwanted x87 flags, so they are saved and restored.
     * MXCSR's flags, raised by speculation, are cleared so that they do not become x87
     * flags. tf_fp_end() restores them. */
#if defined(__SSE2__)
    enum { FLAGS = 0x3F };
    _mm_setcsr(_mm_getcsr() & ~(unsigned)FLAGS);
#endif
    fexcept_t raised;
    fegetexceptflag(&raised, FE_ALL_EXCEPT);
    for (size_t i = 0; i < n; i++) {
        wide[i] = double_from_long(in[i]);
    }
    fesetexceptflag(&raised, FE_ALL_EXCEPT);
    TF_NAME(tf_narrow)(wide, out, n);
}

#if LDBL_MANT_DIG == 64 && __SIZEOF_LONG_DOUBLE__ == 16 && \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Reads the 80 bits of an x87 number as integers: the x87 unit would take one at a time.
 * They are a significand with its leading bit, then exponent and sign. Chunks with other
 * numbers than zero, Inf, NaN and float32's normal ones are left to
 * load_any_longdouble(). */
static void load_longdouble(const void *items, float *out, size_t n)
{
    const char *in = items;
    uint64_t unusual = 0;
    for (size_t i = 0; i < n; i++, in += sizeof(long double)) {
        uint64_t significand, top;
        memcpy(&significand, in, 8);
        memcpy(&top, in + 8, 8);
        const uint64_t cut = (UINT64_C(1) << 40) - 1;
        const uint64_t sign = top >> 15 << 31;
        const uint64_t exponent = (top & 0x7FFF) - (16383 - 127);
        /* Round to odd. The leading bit adds one to the exponent. */
        const uint64_t odd = (significand | ((significand & cut) + cut)) >> 40;
        const uint64_t number = ((exponent - 1) << 23) + odd;
        const uint64_t special = significand << 1 ? TF_QUIET_NAN_BITS : TF_INF_BITS;
        const uint64_t is_special = (top & 0x7FFF) == 0x7FFF;
        const uint64_t is_other = ((top & 0x7FFF) | significand) != 0;
        const uint64_t is_beyond = !is_special & (exponent - 1 >= 254);
        unusual |= is_other & (is_beyond | (significand >> 63 ^ 1));
        out[i] = tf_float_of(
            (uint32_t)((is_special ? special : is_other ? number : 0) | sign));
    }
    if (unusual) {
        load_any_longdouble(items, out, n);
    }
}
#else
static void load_longdouble(const void *items, float *out, size_t n)
{
    load_any_longdouble(items, out, n);
}
#endif

tf_unpack_fn *const TF_PLAIN_NAME(tf_loads)[TF_KIND_COUNT] = {
    [TF_FLOAT64] = load_float64, [TF_LONGDOUBLE] = load_longdouble,
    [TF_BOOL] = load_bool,       [TF_INT8] = load_int8,
    [TF_INT16] = load_int16,     [TF_INT32] = load_int32,
    [TF_INT64] = load_int64,     [TF_UINT8] = load_uint8,
    [TF_UINT16] = load_uint16,   [TF_UINT32] = load_uint32,
    [TF_UINT64] = load_uint64,
};

/* -- float32 -> NumPy kinds, exact but for integers -------------------------------- */

/* Truncates toward zero. NaN, and numbers out of range after that, raise invalid. The
 * lower bound of w bits is above -2^(w-1) - 1, or from -2^(w-1) on where float32 lacks
 * the former. */
#define STORE_INTEGER(name, type, in_range, out_of_range)                      \
    STORE_BY(name, type, in_range, (type)x, out_of_range)
#define STORE_BY(name, type, in_range, truncated, out_of_range)                \
    static unsigned store_##name(const float *in, void *items, size_t n)       \
    {                                                                          \
        type *out = items;                                                     \
        unsigned invalid = 0;                                                  \
        for (size_t i = 0; i < n; i++) {                                       \
            const float x = in[i];                                             \
            const int fits = (in_range);                                       \
            out[i] = fits ? (truncated) : (out_of_range);                      \
            invalid |= !fits;                                                  \
        }                                                                      \
        return invalid ? TF_INVALID : 0;                                       \
    }

/* Returns |x| below 2^64, truncated. Without AVX512DQ no instruction converts vectors. */
TF_INLINE uint64_t truncated_magnitude(float x)
{
#if defined(__AVX512DQ__)
    return (uint64_t)__builtin_fabsf(x);
#else
    const uint32_t bits = tf_bits_of(x);
    const int32_t exponent = (int32_t)(bits >> 23 & 0xFF) - 127 - 23;
    const uint32_t left = exponent > 0 ? (uint32_t)exponent & 63 : 0;
    const uint32_t down = exponent < 0 ? (uint32_t)-exponent : 0;
    const uint32_t right = down < 31 ? down : 31;
    const uint64_t significand = (bits & 0x7FFFFF) | 0x800000;
    return significand << left >> right;
#endif
}

TF_INLINE int64_t truncated_int64(float x)
{
    const uint64_t magnitude = truncated_magnitude(x), sign = -(uint64_t)(x < 0);
    return (int64_t)((magnitude ^ sign) - sign);
}

STORE_INTEGER(int8, int8_t, x > -129.0f && x < 128.0f, INT8_MIN)
STORE_INTEGER(int16, int16_t, x > -32769.0f && x < 32768.0f, INT16_MIN)
STORE_INTEGER(int32, int32_t, x >= -0x1p31f && x < 0x1p31f, INT32_MIN)
STORE_BY(int64, int64_t, x >= -0x1p63f && x < 0x1p63f, truncated_int64(x), INT64_MIN)
STORE_INTEGER(uint8, uint8_t, x > -1 && x < 0x1p8f, 0)
STORE_INTEGER(uint16, uint16_t, x > -1 && x < 0x1p16f, 0)
STORE_INTEGER(uint32, uint32_t, x > -1 && x < 0x1p32f, 0)
STORE_BY(uint64, uint64_t, x > -1 && x < 0x1p64f, truncated_magnitude(x), 0)

static unsigned store_bool(const float *in, void *items, size_t n)
{
    uint8_t *out = items;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i] != 0;
    }
    return 0;
}

static unsigned store_float32(const float *in, void *items, size_t n)
{
    memcpy(items, in, n * sizeof(float));
    return 0;
}

static unsigned store_float64(const float *in, void *items, size_t n)
{
    TF_NAME(tf_widen)(in, items, n);
    return 0;
}

static unsigned store_longdouble(const float *in, void *items, size_t n)
{
    long double *out = items;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i];
    }
    return 0;
}

tf_store_fn *const TF_PLAIN_NAME(tf_stores)[TF_KIND_COUNT] = {
    [TF_FLOAT32] = store_float32,       [TF_FLOAT64] = store_float64,
    [TF_LONGDOUBLE] = store_longdouble, [TF_BOOL] = store_bool,
    [TF_INT8] = store_int8,             [TF_INT16] = store_int16,
    [TF_INT32] = store_int32,           [TF_INT64] = store_int64,
    [TF_UINT8] = store_uint8,           [TF_UINT16] = store_uint16,
    [TF_UINT32] = store_uint32,         [TF_UINT64] = store_uint64,
};
