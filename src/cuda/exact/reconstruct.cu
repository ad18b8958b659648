/* Results of emulated precisions from their residues: an integer is divided by the scales of
 * its row and column, and rounded once to float32 (SINGLE is 1) or float64. */
#include "cuda/exact/operand.h"
#include "cuda/exact/reconstruct.h"

#if SINGLE
typedef uint32_t result_bits;
#else
typedef uint64_t result_bits;
#endif

enum { THREADS = 256 };

inline struct tf_value value_of(const magnitude &x, int exponent)
{
    struct tf_value value =
        tf_value_make(x.negative, (uint64_t)(x.leading >> 64), x.exponent + 64 + exponent);
    value.sticky = (uint64_t)x.leading != 0 || x.sticky;
    return value;
}

/* Returns the product of a row and a column one of which has Inf or NaN. */
inline struct tf_value special_product(const operand &x, const operand &y, const ITEM *p,
                                       const ITEM *q)
{
    bool positive = false, negative = false;
    for (int64_t k = 0; k < x.k; k++, p += x.step, q += y.step) {
        const double a = (double)*p, b = (double)*q, term = a * b;
        if (magnitude_of(a) < INFINITE && magnitude_of(b) < INFINITE) {
            continue;
        }
        positive |= !(term < 0); /* also NaN, which has both signs */
        negative |= !(term > 0);
    }
    return tf_value_special(!positive, positive && negative ? TF_NAN : TF_INFINITY);
}

/* Writes out (count, m, n) from residues (moduli, count, m, n), whose planes have `plane`
 * elements. of_x and of_y are facts of rows and columns. */
extern "C" __global__ void __launch_bounds__(THREADS)
    reconstruct(const operand x, const operand y, const reconstruction by,
                const uint8_t *residues, const integer_row *of_x, const integer_row *of_y,
                result_bits *out, int64_t plane)
{
    const int64_t m = x.lines, n = y.lines, matrix = blockIdx.y;
    const int64_t place = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (place >= m * n) {
        return;
    }
    const int64_t row = place / n, column = place % n, at = matrix * m * n + place;
    const int64_t x_matrix = x.count > 1 ? matrix : 0, y_matrix = y.count > 1 ? matrix : 0;
    const integer_row p = of_x[x_matrix * m + row], q = of_y[y_matrix * n + column];
    struct tf_value value;
    if (p.special || q.special) {
        value = special_product(x, y, x.data + x_matrix * x.matrix + row * x.line,
                                y.data + y_matrix * y.matrix + column * y.line);
    } else {
        const long_integer sum = integer_of_residues(residues + at, plane, by);
        value = value_of(magnitude_of(sum), -(p.scale + q.scale));
    }
    out[at] = (result_bits)(SINGLE ? tf_round_to_ieee(value, 8, 23, TF_TIES_TO_EVEN)
                                   : tf_round_to_ieee(value, 11, 52, TF_TIES_TO_EVEN));
}
