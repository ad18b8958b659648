/* Binary operations, one row each: the enumerator, NumPy's name, the result of x and y,
 * whether it is exact and so raises nothing, whether NumPy may take the elements of a
 * reduction in any order, and what a reduction of nothing is (NAN: an error).
 *
 * The first list has those whose result is computed in float32 where that is wide enough
 * (see kernels/elementwise.c), in float64 for tf32; the others are computed in float64
 * alone, or in float32 alone, of which all results are exact. Formulas are of
 * binary_formulas.h and of runtime/kernels/common.h.
 */
#ifndef TF32DTYPE_UFUNCS_BINARY_OPS_H
#define TF32DTYPE_UFUNCS_BINARY_OPS_H

#include <stdint.h>

#define TF_BINARY_IN_BOTH(ROW)                                                 \
    ROW(ADD, add, x + y, 0, 1, 0)                                              \
    ROW(SUBTRACT, subtract, x - y, 0, 0, NAN)                                  \
    ROW(MULTIPLY, multiply, x * y, 0, 1, 1)                                    \
    ROW(TRUE_DIVIDE, divide, x / y, 0, 0, NAN)

#define TF_BINARY_IN_FLOAT64(ROW)                                              \
    ROW(FLOOR_DIVIDE, floor_divide, tf_floor_quotient(x, y), 0, 0, NAN)        \
    ROW(REMAINDER, remainder, tf_remainder_of(x, y), 0, 0, NAN)                \
    ROW(FMOD, fmod, fmod(x, y), 0, 0, NAN)                                     \
    ROW(POWER, power, tf_power_of(x, y), 0, 0, NAN)                            \
    ROW(ARCTAN2, arctan2, atan2(x, y), 0, 0, NAN)                              \
    ROW(HYPOT, hypot, hypot(x, y), 0, 1, 0)                                    \
    ROW(LOGADDEXP, logaddexp, tf_logaddexp_of(x, y), 0, 1, -INFINITY)          \
    ROW(LOGADDEXP2, logaddexp2, tf_logaddexp2_of(x, y), 0, 1, -INFINITY)

/* The other NaN is chosen, or avoided, last. */
#define TF_BINARY_IN_FLOAT32(ROW)                                              \
    ROW(HEAVISIDE, heaviside, x != x ? x : x == 0 ? y : (x > 0), 1, 0, NAN)    \
    ROW(MAXIMUM, maximum, y != y ? y : TF_GREATER_OF(x, y), 1, 1, NAN)         \
    ROW(MINIMUM, minimum, y != y ? y : TF_LESSER_OF(x, y), 1, 1, NAN)          \
    ROW(FMAX, fmax, x != x ? y : TF_GREATER_OF(x, y), 1, 1, NAN)               \
    ROW(FMIN, fmin, x != x ? y : TF_LESSER_OF(x, y), 1, 1, NAN)

#define TF_BINARY_OPS(ROW)                                                     \
    TF_BINARY_IN_BOTH(ROW) TF_BINARY_IN_FLOAT64(ROW) TF_BINARY_IN_FLOAT32(ROW)

/* TF_ADD, TF_SUBTRACT, ...: an operation's place in every table. */
enum tf_binary_op {
#define ROW(op, ...) TF_##op,
    TF_BINARY_OPS(ROW)
#undef ROW
    TF_BINARY_COUNT
};

struct tf_binary_row {
    const char *name;
    uint8_t silent, reorderable;
    float identity;
};

extern const struct tf_binary_row tf_binary_rows[TF_BINARY_COUNT];

#endif
