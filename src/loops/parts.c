/* Numbers to their parts and back: modf, frexp, ldexp. */
#include <math.h>
#include <string.h>

#include "blocks.h"

enum { BIAS = 1023, FIELD = 0x7FF, FRACTION_BITS = 52 };

static void modf_(const float *in, float *part, float *whole, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float x = in[i], integer = truncf(x);
        whole[i] = integer;
        part[i] = copysignf(fabsf(x) == INFINITY ? 0 : x - integer, x);
    }
}

/* In double, where all numbers but zero are normal. Those that have no exponent are
 * left as they are, with 0. */
static void frexp_(const float *in, float *part, int32_t *exponent, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const double x = (double)in[i];
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        const int field = (int)(bits >> FRACTION_BITS & FIELD);
        const int has_none = (field == 0) | (field == FIELD);
        bits &= ~((uint64_t)FIELD << FRACTION_BITS);
        bits |= (uint64_t)(BIAS - 1) << FRACTION_BITS;
        double fraction;
        memcpy(&fraction, &bits, sizeof fraction);
        part[i] = has_none ? in[i] : (float)fraction;
        exponent[i] = has_none ? 0 : field - (BIAS - 1);
    }
}

/* Beyond +-600 every format overflows or underflows alike. */
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

/* Products in double are exact; then to odd. */
static void ldexp_(const float *in, const void *exponents, size_t size, float *out,
                   size_t n)
{
    int32_t exponent[TF_BLOCK];
    double wide[TF_BLOCK];
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

const struct tf_parts TF_NAME(tf_parts) = {modf_, frexp_, ldexp_};
