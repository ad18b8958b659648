/* Running sums and products in float64, side by side. */
#include <string.h>

#include "ufuncs/kernels/decls.h"

void TF_PLAIN_NAME(tf_add_wide)(const float *restrict in, double *restrict values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        values[i] += (double)in[i];
    }
}

/* Brings significands back to [1, 2) after each step, so that no product leaves float64's
 * range; zero, Inf and NaN stay. Out of 2^+-1000 every format over- or underflows alike. */
void TF_PLAIN_NAME(tf_times_wide)(const float *restrict in, double *restrict values,
                            int64_t *restrict exponents, double *restrict results,
                            size_t n)
{
    enum { BIAS = 1023, ALL_ONES = 0x7FF, FAR = 1000 };
    for (size_t i = 0; i < n; i++) {
        const double product = values[i] * (double)in[i];
        uint64_t bits;
        memcpy(&bits, &product, sizeof bits);
        const int64_t field = (int64_t)(bits >> 52 & ALL_ONES);
        const int scales = field != 0 && field != ALL_ONES;
        const int64_t moved = scales ? field - BIAS : 0;
        const int64_t exponent = exponents[i] + moved;
        const int64_t least = exponent > -FAR ? exponent : -FAR;
        const int64_t near = least < FAR ? least : FAR;
        const uint64_t value = bits - ((uint64_t)moved << 52);
        const uint64_t result = value + (scales ? (uint64_t)near << 52 : 0);
        memcpy(&values[i], &value, sizeof value);
        memcpy(&results[i], &result, sizeof result);
        exponents[i] = exponent;
    }
}

int TF_PLAIN_NAME(tf_mark_beyond)(const double *restrict in, uint64_t bits,
                            uint8_t *restrict marks, size_t n)
{
    const uint64_t infinity = UINT64_C(0x7FF) << 52;
    int more = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t magnitude;
        memcpy(&magnitude, &in[i], sizeof magnitude);
        magnitude &= INT64_MAX;
        const uint8_t mark = (magnitude >= bits) & (magnitude < infinity);
        more += mark - marks[i];
        marks[i] = mark;
    }
    return more;
}

int TF_PLAIN_NAME(tf_makes_nan)(const float *in, const double *before, const double *after,
                          size_t n)
{
    uint64_t found = 0;
    for (size_t i = 0; i < n; i++) {
        found |= (uint64_t)(after[i] != after[i]) & (in[i] == in[i]) &
                 (!before || before[i] == before[i]);
    }
    return found != 0;
}
