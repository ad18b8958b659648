/* Binary functions of numbers of ours, in double: what C and CUDA have no function for. */
#ifndef TF32DTYPE_UFUNCS_BINARY_FORMULAS_H
#define TF32DTYPE_UFUNCS_BINARY_FORMULAS_H

#include <math.h>

/* The floor of the rounded quotient is right: where the quotient is below
 * 2^41, it lies at least 2^-22 of its size from an integer that it is not;
 * above, the floor changes nothing that 12 bits could tell. */
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

/* Python's: the sign of the divisor. fmod is exact, the sum rounds once. */
static inline double tf_remainder_of(double x, double y)
{
    const double r = fmod(x, y);
    if (r == 0) {
        return copysign(0.0, y);
    }
    return (y < 0) != (r < 0) && r == r ? r + y : r;
}

/* Beyond double's range: a number far beyond ours, which rounds and raises
 * overflow or underflow as the power would. */
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

/* log(exp(x) + exp(y)), as NumPy writes it. */
static inline double tf_logaddexp_of(double x, double y)
{
    if (x == y) {
        return x + 0x1.62e42fefa39efp-1; /* log 2; infinities of one sign too */
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
