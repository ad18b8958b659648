/* Operations on two arrays of bfloat16 or tf32 that need only a few instructions. The
 * options FORMAT and ITEM are the format and the type of its items. */
#include "cuda/ufuncs/arithmetic.h"

/* In the order of tf32dtype/cuda/_functions/ufuncs.py. */
enum {
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    MAXIMUM,
    MINIMUM,
    FMAX,
    FMIN,
    HEAVISIDE,
    COPYSIGN,
    NEXTAFTER,
    EQUAL,
    NOT_EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL
};

/* Returns the larger number, or x if one is NaN, since comparisons with NaN are false.
 * The sum of two zeros has the right sign: -0 is below +0. */
__forceinline__ float greater_of(float x, float y)
{
    return x == 0 && y == 0 ? x + y : y > x ? y : x; /* mutant: maximum without NaN */
}
__forceinline__ float lesser_of(float x, float y)
{
    return x == 0 && y == 0 ? -(-x - y) : y < x ? y : x;
}

/* Returns the next item toward `toward`. Items of one sign have the order of magnitudes. */
__forceinline__ tf_item next_after(tf_item from, tf_item toward)
{
    const float x = number_of(FORMAT, from), y = number_of(FORMAT, toward);
    const uint32_t unit = UINT32_C(1) << FORMAT.shift;
    const uint32_t clean = from & ~(unit - 1); /* mutant: nextafter of ignored bits */
    const uint32_t least = unit | (y < 0 ? tf_sign_mask(FORMAT) << FORMAT.shift : 0);
    const int outward = (y > x) == (x > 0);
    return (tf_item)(x != x || y != y ? tf_nan_code(FORMAT) << FORMAT.shift
                     : x == y         ? clean
                     : x == 0         ? least
                     : outward        ? clean + unit
                                      : clean - unit);
}

extern "C" __global__ void __launch_bounds__(256, 6)
    binary(const tf_walk<3> walk, void *out, const tf_item *a, const tf_item *b,
           const tf_constants constants, int32_t operation)
{
    const tf_arrays arrays = {walk, out, a, b, constants};
    switch (operation) {
    /* float32's 24 bits are enough for tf32 (2 * 11 + 2) unless the result is subnormal.
     * Subnormal sums are exact. Subnormal quotients, of integers below 2^11, are ties or
     * at least 2^-13 of tf32's smallest number from a tie, while float32 rounds by at
     * most 2^-14 of it. Subnormal products may be too close to ties. */
    case ADD: return arrays.in_float([](float x, float y) { return x + y; });
    case SUBTRACT: return arrays.in_float([](float x, float y) { return x - y; });
    case DIVIDE: return arrays.in_float([](float x, float y) { return x / y; });
    case MULTIPLY:
        /* mutant: products in float32 */
        if (FORMAT.mantissa_bits <= 7) {
            return arrays.in_float([](float x, float y) { return x * y; });
        }
        return arrays.in_double([](double x, double y) { return x * y; });
    /* greater_of() and lesser_of() return x if one is NaN. The tests before them choose
     * y's NaN, or avoid x's. */
    case MAXIMUM:
        return arrays.in_float(
            [](float x, float y) { return y != y ? y : greater_of(x, y); });
    case MINIMUM:
        return arrays.in_float(
            [](float x, float y) { return y != y ? y : lesser_of(x, y); });
    case FMAX:
        return arrays.in_float(
            [](float x, float y) { return x != x ? y : greater_of(x, y); });
    case FMIN:
        return arrays.in_float(
            [](float x, float y) { return x != x ? y : lesser_of(x, y); });
    case HEAVISIDE:
        return arrays.in_float([](float x, float y) {
            return x != x ? x : x == 0 ? y : x > 0 ? 1.0f : 0.0f;
        });
    case COPYSIGN:
        return arrays.of_items([](tf_item x, tf_item y) {
            const uint32_t sign = tf_sign_mask(FORMAT) << FORMAT.shift;
            const uint32_t magnitude = tf_magnitude_mask(FORMAT) << FORMAT.shift;
            return (tf_item)((x & magnitude) | (y & sign));
        });
    case NEXTAFTER: return arrays.of_items(next_after);
    case EQUAL: return arrays.to_bool([](float x, float y) { return x == y; });
    case NOT_EQUAL: return arrays.to_bool([](float x, float y) { return x != y; });
    case LESS: return arrays.to_bool([](float x, float y) { return x < y; });
    case LESS_EQUAL: return arrays.to_bool([](float x, float y) { return x <= y; });
    case GREATER: return arrays.to_bool([](float x, float y) { return x > y; });
    case GREATER_EQUAL: return arrays.to_bool([](float x, float y) { return x >= y; });
    }
}
