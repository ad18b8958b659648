/* nextafter, and the operations that split and join numbers: modf, frexp, ldexp. */
#include <math.h>
#include <string.h>

#include "formats/scalar_ops.h"
#include "ufuncs/kernels/decls.h"

/* Returns a code as an integer in the order of the numbers, 0 for both zeros: one more or
 * one less is the next number, or Inf. */
TF_INLINE int32_t order_of(struct tf_format f, uint32_t code)
{
    const int32_t magnitude = (int32_t)(code & tf_magnitude_mask(f));
    return code & tf_sign_mask(f) ? -magnitude : magnitude;
}

/* Writes the next numbers and returns flags. A finite number may overflow to Inf. */
TF_INLINE unsigned nextafter_of(struct tf_format f, const void *from, const void *toward,
                                void *out, size_t n)
{
    const int32_t infinity = (int32_t)tf_infinity_magnitude(f);
    const uint32_t mask = tf_sign_mask(f) | tf_magnitude_mask(f), sign = tf_sign_mask(f);
    uint32_t over = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t a = tf_item_at(f, from, i) >> f.shift & mask;
        const uint32_t b = tf_item_at(f, toward, i) >> f.shift & mask;
        const int32_t x = order_of(f, a), y = order_of(f, b);
        const int32_t step = (y > x) - (y < x), next = x + step;
        const uint32_t magnitude = (uint32_t)(next < 0 ? -next : next);
        /* Zero has the sign of the number before the step. */
        const uint32_t negative = next < 0 || (next == 0 && x < 0) ? sign : 0;
        const uint32_t number = step == 0 ? a : magnitude | negative;
        const int32_t m = x < 0 ? -x : x, k = y < 0 ? -y : y;
        const int nan = (m > infinity) | (k > infinity);
        over |= (uint32_t)(!nan & (m < infinity) & (magnitude == (uint32_t)infinity));
        tf_item_put(f, out, i, (nan ? tf_nan_code(f) : number) << f.shift);
    }
    return over ? TF_OVER : 0;
}

static unsigned nextafter_words(const void *from, const void *toward, void *out, size_t n)
{
    return nextafter_of(tf_tf32, from, toward, out, n);
}

static unsigned nextafter_bf16(const void *from, const void *toward, void *out,
                               size_t n)
{
    return nextafter_of(tf_bfloat16, from, toward, out, n);
}

enum { BIAS = 1023, FRACTION_BITS = 52 };

static void modf_(const float *in, float *part, float *whole, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = in[i], integer = truncf(x);
        whole[i] = integer;
        part[i] = copysignf(fabsf(x) == INFINITY ? 0 : x - integer, x);
    }
}

/* Writes fractions and exponents. Subnormal numbers are multiplied by 2^64 first. Zero, Inf
 * and NaN stay as they are, with exponent 0. */
static void frexp_(const float *in, float *part, int32_t *exponent, size_t n)
{
    enum { HALF = 126, FRACTION = 23, SCALE = 64 };
    const int32_t fields = TF_INF_BITS, least_normal = 1 << FRACTION;
    for (size_t i = 0; i < n; i++) {
        const int32_t bits = (int32_t)tf_bits_of(in[i]);
        const int32_t magnitude = bits & INT32_MAX;
        const int32_t scaled = (int32_t)tf_bits_of(in[i] * 0x1p64f);
        const int32_t normal = magnitude < least_normal ? scaled : bits;
        const int32_t less = magnitude < least_normal ? HALF + SCALE : HALF;
        const int32_t fraction = (normal & ~fields) | HALF << FRACTION;
        const int32_t power = ((normal & fields) >> FRACTION) - less;
        const int32_t has_none = (magnitude == 0) | (magnitude >= fields);
        part[i] = tf_float_of((uint32_t)(has_none ? bits : fraction));
        exponent[i] = has_none ? 0 : power;
    }
}

/* Clamps exponents: out of +-600 every format overflows or underflows alike. */
#define BOUNDED(name, type)                                                    \
    static void name(const type *in, int32_t *out, size_t n)                   \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            const type raised = in[i] > -600 ? in[i] : -600;                   \
            out[i] = (int32_t)(raised < 600 ? raised : 600);                   \
        }                                                                      \
    }
BOUNDED(bounded_int32, int32_t)
BOUNDED(bounded_int64, int64_t)

/* Multiplies by powers of two, exactly in double, and then rounds to odd. */
static void ldexp_(const float *in, const void *exponents, size_t size, float *out,
                   size_t n)
{
    int32_t exponent[TF_CHUNK];
    double wide[TF_CHUNK];
    if (size == sizeof(int32_t)) {
        bounded_int32(exponents, exponent, n);
    } else {
        bounded_int64(exponents, exponent, n);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = (uint64_t)(exponent[i] + BIAS) << FRACTION_BITS;
        double power;
        memcpy(&power, &bits, sizeof power);
        wide[i] = (double)in[i] * power;
    }
    TF_NAME(tf_narrow)(wide, out, n);
}

const struct tf_parts TF_PLAIN_NAME(tf_parts) = {
    {nextafter_words, nextafter_bf16}, modf_, frexp_, ldexp_};
