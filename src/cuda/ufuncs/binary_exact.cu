/* Functions of two arrays of bfloat16 or tf32 that need double: divisions with a
 * remainder, and irrational functions, correctly rounded.
 *
 * The error of CUDA's double functions is at most 2 units of the last place (CUDA C++
 * Programming Guide, mathematical functions: pow, atan2, hypot 2; exp, exp2, log1p 1).
 * Where a result is too close to the middle of two numbers, the integers of
 * exact_binary.h decide.
 */
#include "cuda/ufuncs/arithmetic.h"
#include "ufuncs/binary_formulas.h" /* mutant: functions that err */
#include "ufuncs/exact_binary.h"

/* In the order of tf32dtype/cuda/_functions/ufuncs.py. */
enum {
    FLOOR_DIVIDE,
    REMAINDER,
    FMOD,
    POWER,
    ARCTAN2,
    HYPOT,
    LOGADDEXP,
    LOGADDEXP2
};

/* More units of double's last place than the error of any result. logaddexp has the
 * largest: the difference of its arguments, up to about 2^7, is rounded, so that its
 * exponential is off by 64 units, and its logarithm may be five times the result. */
enum { DOUBT = 512 }; /* mutant: no doubt */

/* Returns whether r is nearly the middle of two numbers of the format. */
__forceinline__ int is_doubtful(double r)
{
    const uint64_t bits = (uint64_t)__double_as_longlong(r);
    const int exponent = (int)(bits >> 52 & 0x7FF) - 1023;
    const int least = tf_least_exponent(FORMAT);
    const int unit =
        exponent - FORMAT.mantissa_bits > least ? exponent - FORMAT.mantissa_bits : least;
    /* The number of r's bits below the unit of rounding; 53 are all of r. */
    const int cut = unit - (exponent - 52);
    if (cut > 52) {
        return cut <= 54; /* else below a quarter of the smallest number */
    }
    const uint64_t half = UINT64_C(1) << (cut - 1);
    const uint64_t rest = bits & (2 * half - 1);
    return (rest > half ? rest - half : half - rest) <= DOUBT;
}

/* Returns r, or the result of an exact function if r is in doubt. */
template <class Odd>
__forceinline__ double recomputed(double x, double y, double r, bool lost, Odd odd)
{
    return isfinite(x) && isfinite(y) && isfinite(r) && (lost || is_doubtful(r))
               ? odd(x, y)
               : r;
}

/* Returns whether a sum is so small that it may have lost digits. */
__forceinline__ bool canceled(double x, double y, double r)
{
    return fabs(r) < fmin(fabs(x), fabs(y)) * 0.25;
}

extern "C" __global__ void __launch_bounds__(256)
    function(const tf_walk<3> walk, void *out, const tf_item *a, const tf_item *b,
             const tf_constants constants, int32_t operation)
{
    const tf_arrays arrays = {walk, out, a, b, constants};
    switch (operation) {
    case FLOOR_DIVIDE: return arrays.slowly(tf_floor_quotient);
    case REMAINDER: return arrays.slowly(tf_remainder_of);
    /* mutant: fmod as a remainder */
    case FMOD: return arrays.slowly([](double x, double y) { return fmod(x, y); });
    case POWER:
        return arrays.slowly([](double x, double y) {
            return recomputed(x, y, tf_power_of(x, y), false, tf_odd_power);
        });
    case ARCTAN2:
        return arrays.slowly([](double y, double x) {
            return recomputed(y, x, atan2(y, x), false, tf_odd_arctan2);
        });
    case HYPOT:
        return arrays.slowly([](double x, double y) {
            return recomputed(x, y, hypot(x, y), false, tf_odd_hypot);
        });
    case LOGADDEXP:
        return arrays.slowly([](double x, double y) {
            const double r = tf_logaddexp_of(x, y);
            return recomputed(x, y, r, canceled(x, y, r), tf_odd_logaddexp);
        });
    case LOGADDEXP2:
        return arrays.slowly([](double x, double y) {
            const double r = tf_logaddexp2_of(x, y);
            return recomputed(x, y, r, canceled(x, y, r), tf_odd_logaddexp2);
        });
    }
}
