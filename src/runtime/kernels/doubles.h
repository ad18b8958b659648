/* Vectors of float64 numbers: two of them hold one vector of float32. */
#ifndef TF32DTYPE_RUNTIME_KERNELS_DOUBLES_H
#define TF32DTYPE_RUNTIME_KERNELS_DOUBLES_H

#include "runtime/kernels/simd.h"

enum { PLACES = LANES / 2 };

typedef double doubles __attribute__((vector_size(4 * LANES)));
typedef int64_t longs __attribute__((vector_size(4 * LANES)));
typedef uint64_t unsigned_longs __attribute__((vector_size(4 * LANES)));
typedef float few_floats __attribute__((vector_size(2 * LANES)));
typedef int32_t few_ints __attribute__((vector_size(2 * LANES)));

TF_INLINE longs longs_of(int64_t x) { return (longs){0} + x; }

/* Returns x in all lanes, in any rounding mode. */
TF_INLINE doubles all_lanes(double x)
{
#if defined(__SSE2__)
    return (doubles)WIDE(set1_pd)(x);
#else
    return (doubles){x, x};
#endif
}

TF_INLINE doubles load_doubles(const double *p)
{
    doubles x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Returns numbers of which only the first `left` are read. Others are zero. */
TF_INLINE doubles load_some_doubles(const double *p, size_t left)
{
    if (left >= PLACES) {
        return load_doubles(p);
    }
#if defined(__AVX512BW__)
    return (doubles)_mm512_maskz_loadu_pd((__mmask8)((1u << left) - 1), p);
#elif defined(__AVX2__)
    const longs read = (longs)((longs){0, 1, 2, 3} < longs_of((int64_t)left));
    return (doubles)_mm256_maskload_pd(p, (__m256i)read);
#else
    double some[PLACES] = {0};
    memcpy(some, p, left * sizeof *some);
    return load_doubles(some);
#endif
}

TF_INLINE doubles negative(doubles x) { return (doubles)((longs)x ^ longs_of(INT64_MIN)); }

TF_INLINE doubles magnitude_of_doubles(doubles x)
{
    return (doubles)((longs)x & longs_of(INT64_MAX));
}

TF_INLINE doubles doubles_of(few_floats x)
{
#if defined(__AVX512BW__)
    return (doubles)_mm512_cvtps_pd((__m256)x);
#elif defined(__AVX2__)
    return (doubles)_mm256_cvtps_pd((__m128)x);
#else
    return __builtin_convertvector(x, doubles);
#endif
}

TF_INLINE doubles load_wide(const float *c)
{
    few_floats given;
    memcpy(&given, c, sizeof given);
    return doubles_of(given);
}

TF_INLINE few_floats singles_of(doubles x)
{
    return __builtin_convertvector(x, few_floats);
}

/* Return half of a vector's lanes with 64 bits, from floats or from signed integers. */
TF_INLINE doubles half_of_floats(floats x, int half)
{
    few_floats part;
    memcpy(&part, (const char *)&x + half * sizeof part, sizeof part);
    return doubles_of(part);
}

TF_INLINE longs half_of_integers(words x, int half)
{
    few_ints part;
    memcpy(&part, (const char *)&x + half * sizeof part, sizeof part);
    return __builtin_convertvector(part, longs);
}

TF_INLINE doubles half_of_sums(words x, int half)
{
    few_ints part;
    memcpy(&part, (const char *)&x + half * sizeof part, sizeof part);
    return __builtin_convertvector(part, doubles);
}

TF_INLINE floats floats_of_halves(few_floats first, few_floats second)
{
    floats x;
    memcpy(&x, &first, sizeof first);
    memcpy((char *)&x + sizeof first, &second, sizeof second);
    return x;
}

/* Returns 2^n, which must be a normal number. */
TF_INLINE doubles power_of_two(longs n) { return (doubles)((n + 1023) << 52); }

/* Returns the exponent of x, which must not be zero. */
TF_INLINE longs exponent_of_double(doubles x)
{
    return (longs)((unsigned_longs)magnitude_of_doubles(x) >> 52) - 1023;
}

CHOICE_OF_INTEGERS(greater_longs, longs, >)
CHOICE_OF_INTEGERS(lesser_longs, longs, <)

/* Returns half of a vector of floats as float64. Subnormal numbers are converted as
 * integers, since direct conversions take 100 times as long on some CPUs. */
TF_INLINE doubles half_of_any_floats(floats x, int half)
{
    const words magnitude = (words)x & TF_MAGNITUDE_BITS;
    const words small = (words)((ints)magnitude < 1 << 23);
    const doubles normal = half_of_floats((floats)((words)x & ~small), half);
    const doubles tiny = half_of_sums(magnitude & small, half) * 0x1p-149;
    const longs sign = half_of_integers((words)x & small & TF_SIGN_BIT, half);
    return normal + (doubles)((longs)tiny ^ (sign & INT64_MIN));
}

/* Returns x rounded downward. Magnitudes must be below 2^51. */
TF_INLINE doubles floor_of(doubles x)
{
    const doubles much = all_lanes(0x1.8p52), near = (x + much) - much;
    return near - (doubles)((longs)(near > x) & (longs)all_lanes(1));
}

/* Returns two vectors as one of float32, rounded to nearest or toward zero (which makes -0
 * positive). Subnormal results are computed as multiples of 2^-149. */
TF_INLINE floats singles_of_any(doubles first, doubles second, int toward_zero)
{
    const doubles least = all_lanes(0x1p-126), much = all_lanes(0x1.8p52);
    const longs kept = longs_of(toward_zero ? -(INT64_C(1) << 29) : -1);
    const doubles given[2] = {first, second};
    few_floats halves[2], units[2];
    UNROLLED for (int i = 0; i < 2; i++) {
        const doubles magnitude = magnitude_of_doubles(given[i]);
        const longs small = (longs)(magnitude < least);
        const doubles count = (doubles)((longs)magnitude & small) * 0x1p149;
        halves[i] = singles_of((doubles)((longs)given[i] & kept & ~(small & INT64_MAX)));
        units[i] = singles_of(toward_zero ? floor_of(count) : count + much - much);
    }
    const words normal = (words)floats_of_halves(halves[0], halves[1]);
    const words all = normal | integers_of(floats_of_halves(units[0], units[1]));
    return (floats)(toward_zero ? all & ~(words)(all == TF_SIGN_BIT) : all);
}

#endif
