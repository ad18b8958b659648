/* Binary operations, one row each: the enumerator, NumPy's name, the result of x and y, and
 * three properties. These are whether the result is exact and raises nothing, whether NumPy
 * may reorder the elements of a reduction, and the result of an empty reduction (NAN: an
 * error).
 *
 * The first list is computed in float32 if that is wide enough for the format (see
 * kernels/elementwise.c), and in float64 for tf32. The second list is computed only in
 * float64. The third list, whose results are all exact, is computed only in float32.
 * Formulas are in binary_formulas.h and runtime/kernels/common.h. */
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

/* If the operand that is not checked is NaN, TF_GREATER_OF and TF_LESSER_OF return x. */
#define TF_BINARY_IN_FLOAT32(ROW)                                              \
    ROW(HEAVISIDE, heaviside, x != x ? x : x == 0 ? y : (x > 0), 1, 0, NAN)    \
    ROW(MAXIMUM, maximum, y != y ? y : TF_GREATER_OF(x, y), 1, 1, NAN)         \
    ROW(MINIMUM, minimum, y != y ? y : TF_LESSER_OF(x, y), 1, 1, NAN)          \
    ROW(FMAX, fmax, x != x ? y : TF_GREATER_OF(x, y), 1, 1, NAN)               \
    ROW(FMIN, fmin, x != x ? y : TF_LESSER_OF(x, y), 1, 1, NAN)

#define TF_BINARY_OPS(ROW)                                                     \
    TF_BINARY_IN_BOTH(ROW) TF_BINARY_IN_FLOAT64(ROW) TF_BINARY_IN_FLOAT32(ROW)

/* TF_ADD, TF_SUBTRACT, ...: the index of an operation in every table. */
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
