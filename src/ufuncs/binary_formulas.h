/* Binary functions of the formats' numbers, in double, that C and CUDA lack. */
#ifndef TF32DTYPE_UFUNCS_BINARY_FORMULAS_H
#define TF32DTYPE_UFUNCS_BINARY_FORMULAS_H

#include <math.h>

/* Returns floor(x / y). The floor of the rounded quotient is right. A quotient below 2^41
 * is an integer or at least 2^-22 of its size away from each integer. In a larger quotient,
 * the floor changes none of the first 12 bits. */
static inline double tf_floor_quotient(double x, double y)
{
    if (isinf(x) && y != 0) {
        return NAN;
    }
    if (isinf(y) && (x < 0) != (y < 0) && x != 0 && x == x) {
        return -1;
    }
    return floor(x / y);
}

/* Returns the remainder with the divisor's sign, as in Python. fmod is exact. */
static inline double tf_remainder_of(double x, double y)
{
    const double r = fmod(x, y);
    if (r == 0) {
        return copysign(0.0, y);
    }
    return (y < 0) != (r < 0) && r == r ? r + y : r;
}

/* Returns x**y, or if that is out of double's range, a number out of range of every format.
 * It rounds and raises overflow or underflow as the power would. */
static inline double tf_power_of(double x, double y)
{
    const double r = pow(x, y);
    if (x != 0 && isfinite(x) && isfinite(y)) {
        if (r == 0) {
            return copysign(0x1p-1000, r);
        }
        if (isinf(r)) {
            return copysign(0x1p1000, r);
        }
    }
    return r;
}

/* Returns log(exp(x) + exp(y)) by NumPy's formula. */
static inline double tf_logaddexp_of(double x, double y)
{
    if (x == y) {
        return x + 0x1.62e42fefa39efp-1; /* log 2; also for infinities of one sign */
    }
    const double d = x - y;
    return d > 0 ? x + log1p(exp(-d)) : d <= 0 ? y + log1p(exp(d)) : d;
}

static inline double tf_logaddexp2_of(double x, double y)
{
    if (x == y) {
        return x + 1;
    }
    const double d = x - y;
    const double log2_e = 0x1.71547652b82fep+0;
    return d > 0    ? x + log2_e * log1p(exp2(-d))
           : d <= 0 ? y + log2_e * log1p(exp2(d))
                    : d;
}

#endif
