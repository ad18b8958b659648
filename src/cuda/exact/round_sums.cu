/* Correctly rounded products from float64 products, in stages, as tf32dtype/_exact/stages.py
 * describes them. A block has a tile of SIDE x SIDE results:
 *
 * 1. It rounds both ends of the interval around each sum of the float64 product. Results
 *    whose ends agree are decided (Ziv, ACM TOMS 17(3), 1991).
 * 2. Undecided results are computed in twice float64's precision, with TwoProduct and TwoSum
 *    (Ogita, Rump and Oishi, SIAM J. Sci. Comput. 26(6), 2005): one result per warp if there
 *    are few, otherwise the whole tile.
 * 3. A warp computes each of the others by an exact sum.
 *
 * The option SINGLE is 1 for results in float32, and 0 for float64. With INTEGERS, stage 1 has
 * products of integers instead, as residues; only what was cut off of the operands is an
 * error. */
#include "cuda/exact/rows.h"
#include "exact/digits.h"

#if INTEGERS
#include "cuda/exact/reconstruct.h"
#endif

#if SINGLE
typedef uint32_t result_bits;
#else
typedef uint64_t result_bits;
#endif

enum {
    SIDE = 64,
    THREADS = 256,
    WARPS = THREADS / 32,
    DEPTH = 16,            /* k of a slice in shared memory */
    MANY = SIDE * SIDE / 4 /* undecided results for which the whole tile is computed */
};

/* -- rounding -------------------------------------------------------------------------- */

/* Returns (x + rest) * 2^exponent, for finite numbers. Its sticky bit stands for a remainder
 * of any size below half of the last place of x + rest, rounded to nearest. */
inline struct tf_value value_of(double x, double rest, int exponent)
{
    const double near = x + rest, part = near - x;
    const double off = (x - (near - part)) + (rest - part);
    struct tf_value value =
        tf_value_from_double_bits((uint64_t)__double_as_longlong(near + 0.0)); /* no -0 */
    value.exponent += exponent;
    value.sticky = off != 0;
    if (off != 0 && (off < 0) != (near < 0)) { /* a little less than `near` */
        value = tf_value_make(value.negative, value.significand - 1, value.exponent);
        value.sticky = 1;
    }
    return value;
}

inline result_bits rounded(struct tf_value value, enum tf_rounding rounding)
{
    return (result_bits)(SINGLE ? tf_round_to_ieee(value, 8, 23, rounding)
                                : tf_round_to_ieee(value, 11, 52, rounding));
}

/* The exact value is within `error` of sum + rest, times 2^exponent. Writes its rounding and
 * returns true if `error` decides it. */
inline bool decides(double sum, double rest, double error, int exponent,
                    enum tf_rounding rounding, result_bits *result)
{
    error *= 1 + 0x1p-40; /* for the roundings here */
    if (rounding == TF_TIES_TO_AWAY) { /* a tie is undecided */
        error += fabs(sum) * 0x1p-100;
    }
    if (error > 0) {
        error += fabs(rest) * 0x1p-52; /* the ends are rounded, too */
    }
    if (!(error < infinity())) {
        return false;
    }
#if SINGLE
    if (rounding == TF_TIES_TO_EVEN && exponent == 0 && rest == 0) { /* the usual case */
        const double above_zero = sum + 0.0;
        /* The ends are rounded to float64 first, but not to a midpoint within them. */
        const double wide = error > 0 ? error + fabs(sum) * 0x1p-50 : 0;
        const uint32_t low = __float_as_uint(__double2float_rn(above_zero - wide));
        const uint32_t high = __float_as_uint(__double2float_rn(above_zero + wide));
        *result = low;
        return low == high;
    }
#endif
    const result_bits low = rounded(value_of(sum, rest - error, exponent), rounding);
    const result_bits high = rounded(value_of(sum, rest + error, exponent), rounding);
    *result = low;
    return low == high; /* mutant: every sum is decided */
}

/* -- sums in twice float64's precision --------------------------------------------------- */

/* Adds x to a sum, and the error, together with that of x, to its rest. */
inline void add(double x, double off, double &sum, double &rest)
{
    const double before = sum, after = before + x, part = after - before;
    rest += ((before - (after - part)) + (x - part)) + off; /* mutant: errors are forgotten */
    sum = after;
}

inline void add_product(double x, double y, double &sum, double &rest)
{
    const double product = x * y;
    add(product, __fma_rn(x, y, -product), sum, rest);
}

/* Returns sum + rest, the product of two rows, in all lanes of the warp. */
inline void dot(const double *x, const double *y, int64_t k, double &sum, double &rest)
{
    sum = rest = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x % 32; i < k; i += 32) {
        add_product(x[i], y[i], sum, rest);
    }
#pragma unroll
    for (int mask = 16; mask; mask /= 2) {
        const double other = __shfl_xor_sync(~0u, sum, mask);
        const double other_rest = __shfl_xor_sync(~0u, rest, mask);
        add(other, other_rest, sum, rest);
    }
    /* Lanes add in different orders. */
    sum = __shfl_sync(~0u, sum, 0);
    rest = __shfl_sync(~0u, rest, 0);
}

/* -- exact sums -------------------------------------------------------------------------- */

enum { NOT_A_NUMBER = 1, POSITIVE = 2, NEGATIVE = 4 };

/* Returns the exact product of two rows in the first lane of the warp. */
inline struct tf_value exact_dot(const double *x, const double *y, int64_t k, int64_t *digits)
{
    const int lane = (int)threadIdx.x % 32;
    __syncwarp(); /* mutant: digits cleared while they are read */
    for (int i = lane; i < TF_EXACT_DIGITS; i += 32) {
        digits[i] = 0;
    }
    __syncwarp();
    unsigned specials = 0; /* of the terms */
#pragma unroll 1
    for (int64_t first = 0; first < k; first += TF_EXACT_ADDITIONS) {
        const int64_t left = k - first;
        const int64_t last = first + (left < TF_EXACT_ADDITIONS ? left : TF_EXACT_ADDITIONS);
#pragma unroll 1
        for (int64_t i = first + lane; i < last; i += 32) {
            const uint64_t p = (uint64_t)__double_as_longlong(x[i]);
            const uint64_t q = (uint64_t)__double_as_longlong(y[i]);
            if (!tf_is_finite_double(p) || !tf_is_finite_double(q)) {
                const double term = x[i] * y[i];
                specials |= term != term ? NOT_A_NUMBER : term > 0 ? POSITIVE : NEGATIVE;
                continue;
            }
            const struct tf_product_digits product = tf_product_digits_of(p, q);
            unsigned long long *digit = (unsigned long long *)digits + product.digit;
#pragma unroll
            for (int j = 0; j < 5; j++) {
                atomicAdd(digit + j, (unsigned long long)tf_signed_amount(product.amounts[j],
                                                                          product.negative));
            }
        }
        __syncwarp();
        if (lane == 0) {
            tf_carry_digits(digits);
        }
        __syncwarp();
    }
    const bool is_nan = __any_sync(~0u, specials & NOT_A_NUMBER);
    const bool positive = __any_sync(~0u, specials & POSITIVE);
    const bool negative = __any_sync(~0u, specials & NEGATIVE);
    if (is_nan || (positive && negative)) {
        return tf_value_special(0, TF_NAN);
    }
    if (positive || negative) {
        return tf_value_special(negative, TF_INFINITY);
    }
    return lane == 0 ? tf_value_of_digits(digits) : tf_value_make(0, 0, 0);
}

/* -- tiles ------------------------------------------------------------------------------- */

/* The rows of both operands (count, m or n, k), and their facts. */
struct operands {
    const double *x, *y;
    const row_facts *of_x, *of_y;
    int64_t x_matrix, y_matrix; /* rows from a matrix to the next; 0: they share one */
    int64_t m, n, k;
    int64_t rounding; /* enum tf_rounding */
    /* The errors of sums, relative to the norms, in the float64 product and in twice its
     * precision. */
    double error, finer_error;
};
static_assert(sizeof(operands) == 96, "as in tf32dtype/cuda/_matmul/exact.py");

/* Results of a tile that are not decided. */
struct undecided {
    int count;
    uint16_t places[SIDE * SIDE];
};

/* A tile, with the operands' rows of its matrices. */
struct tile {
    const double *x, *y; /* the first rows */
    const row_facts *of_x, *of_y;
    result_bits *out;
    int height, width;

    inline bool has(int row, int column) const { return row < height && column < width; }
};

/* Decides a result by a sum, or notes that it is undecided. */
inline void settle(const operands &all, const tile &here, undecided &left, int row, int column,
                   double sum, double rest, double error)
{
    const int exponent = here.of_x[row].exponent + here.of_y[column].exponent;
    result_bits result;
    if (decides(sum, rest, error, exponent, (enum tf_rounding)all.rounding, &result)) {
        here.out[row * all.n + column] = result;
    } else {
        left.places[atomicAdd(&left.count, 1)] = (uint16_t)(row * SIDE + column);
    }
}

typedef double slice[DEPTH][SIDE + 1];

inline void read_slice(slice to, const double *rows, int height, int64_t at, int64_t k)
{
#pragma unroll
    for (int i = (int)threadIdx.x; i < SIDE * DEPTH; i += THREADS) {
        const int row = i / DEPTH, depth = i % DEPTH;
        to[depth][row] = row < height && at + depth < k ? rows[row * k + at + depth] : 0;
    }
}

/* Computes all results of the tile in twice float64's precision. */
inline void settle_all(const operands &all, const tile &here, undecided &left, slice x, slice y)
{
    enum { EACH = 4, APART = SIDE / EACH };
    const int down = (int)threadIdx.x / APART, across = (int)threadIdx.x % APART;
    double sums[EACH][EACH] = {}, rests[EACH][EACH] = {};
#pragma unroll 1
    for (int64_t at = 0; at < all.k; at += DEPTH) {
        __syncthreads(); /* mutant: no barrier before the next slice */
        read_slice(x, here.x, here.height, at, all.k);
        read_slice(y, here.y, here.width, at, all.k);
        __syncthreads(); /* mutant: no barrier before a slice is used */
#pragma unroll 1
        for (int depth = 0; depth < DEPTH; depth++) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
#pragma unroll
                for (int j = 0; j < EACH; j++) {
                    add_product(x[depth][down + i * APART], y[depth][across + j * APART],
                                sums[i][j], rests[i][j]);
                }
            }
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        left.count = 0;
    }
    __syncthreads(); /* mutant: results are counted before the count is reset */
#pragma unroll
    for (int i = 0; i < EACH; i++) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int row = down + i * APART, column = across + j * APART;
            if (here.has(row, column)) {
                const double norms = here.of_x[row].norm * here.of_y[column].norm;
                settle(all, here, left, row, column, sums[i][j], rests[i][j],
                       norms * all.finer_error);
            }
        }
    }
    __syncthreads();
}

/* Computes the undecided results, one per warp. */
inline void settle_few(const operands &all, const tile &here, const undecided &left,
                       bool only_exactly, int64_t *digits)
{
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const enum tf_rounding rounding = (enum tf_rounding)all.rounding;
#pragma unroll 1
    for (int i = warp; i < left.count; i += WARPS) {
        const int row = left.places[i] / SIDE, column = left.places[i] % SIDE;
        const double *x = here.x + row * all.k, *y = here.y + column * all.k;
        const row_facts of_x = here.of_x[row], of_y = here.of_y[column];
        const int exponent = of_x.exponent + of_y.exponent;
        result_bits result = 0;
        bool is_decided = false;
        if (!only_exactly) {
            double sum, rest;
            dot(x, y, all.k, sum, rest);
            is_decided = decides(sum, rest, of_x.norm * of_y.norm * all.finer_error, exponent,
                                 rounding, &result);
        }
        if (!is_decided) {
            struct tf_value value = exact_dot(x, y, all.k, digits);
            value.exponent += exponent; /* mutant: exact sums of scaled rows */
            result = rounded(value, rounding);
        }
        if (lane == 0) {
            here.out[row * all.n + column] = result;
        }
    }
}

#if INTEGERS

/* Residues (moduli, count, m, n), whose planes have `plane` elements, and facts of the rows
 * of integers. */
struct source {
    const uint8_t *residues;
    const integer_row *of_x, *of_y;
    int64_t plane;
    reconstruction by;
};
static_assert(sizeof(source) == 648 && TF_OFFSETOF(source, by) == 32,
              "as in tf32dtype/cuda/_matmul/exact.py");

/* Returns at least the norm of the parts that truncation removed from a row of k numbers. */
inline double cut_norm(const integer_row &x, int exponent, int64_t k)
{
    return x.is_cut ? scaled(sqrt((double)k) * (1 + 0x1p-40), -x.scale - exponent) : 0;
}

/* Decides a result by its integer. */
inline void settle_first(const operands &all, const tile &here, undecided &left,
                         const source &from, int64_t x_row, int64_t y_row, int64_t place,
                         int row, int column)
{
    const row_facts x = here.of_x[row], y = here.of_y[column];
    const integer_row p = from.of_x[x_row + row], q = from.of_y[y_row + column];
    const magnitude whole =
        magnitude_of(integer_of_residues(from.residues + place, from.plane, from.by));
    const int exponent = whole.exponent - p.scale - q.scale - x.exponent - y.exponent;
    const uint64_t mask = ((uint64_t)1 << 53) - 1;
    const double first = (double)(int64_t)(uint64_t)(whole.leading >> 75);
    const double second = (double)(int64_t)((uint64_t)(whole.leading >> 22) & mask);
    const double sign = whole.negative ? -1 : 1;
    const double sum = scaled(sign * first, exponent + 75);
    const double rest = scaled(sign * second, exponent + 22);
    const bool has_more = whole.sticky || ((uint64_t)whole.leading & ((1 << 22) - 1)) != 0;
    const double cut = cut_norm(p, x.exponent, all.k) * y.norm +
                       x.norm * cut_norm(q, y.exponent, all.k);
    const double more = has_more ? fabs(sum) * 0x1p-104 : 0;
    const double error = x.norm * y.norm < infinity() ? cut + more : infinity();
    settle(all, here, left, row, column, sum, rest, error); /* mutant: cuts do not count */
}

#else

/* The float64 products (count, m, n). */
struct source {
    const double *sums;
};

/* Decides a result by its sum. */
inline void settle_first(const operands &all, const tile &here, undecided &left,
                         const source &from, int64_t x_row, int64_t y_row, int64_t place,
                         int row, int column)
{
    const row_facts x = here.of_x[row], y = here.of_y[column];
    const bool is_exact = x.ratio * y.ratio <= 0x1p53;
    const double error = is_exact ? 0 : x.norm * y.norm * all.error;
    settle(all, here, left, row, column, from.sums[place], 0, error);
}

#endif

/* Writes out (count, m, n). */
extern "C" __global__ void __launch_bounds__(THREADS)
    round_sums(const operands all, const source from, result_bits *out)
{
    __shared__ undecided left;
    __shared__ slice x, y;
    __shared__ int64_t digits[WARPS][TF_EXACT_DIGITS];
    const int64_t columns = tf_ceil_div(all.n, (int64_t)SIDE);
    const int64_t top = blockIdx.x / columns * SIDE, side = blockIdx.x % columns * SIDE;
    const int64_t matrix = blockIdx.y;
    const int64_t row0 = matrix * all.x_matrix + top, column0 = matrix * all.y_matrix + side;
    const int64_t first = (matrix * all.m + top) * all.n + side;
    const tile here = {all.x + row0 * all.k,
                       all.y + column0 * all.k,
                       all.of_x + row0,
                       all.of_y + column0,
                       out + first,
                       (int)(all.m - top < SIDE ? all.m - top : SIDE),
                       (int)(all.n - side < SIDE ? all.n - side : SIDE)};
    if (threadIdx.x == 0) {
        left.count = 0;
    }
    __syncthreads();
    const int column = (int)threadIdx.x % SIDE;
#pragma unroll 1
    for (int row = (int)threadIdx.x / SIDE; row < SIDE; row += THREADS / SIDE) {
        if (here.has(row, column)) {
            settle_first(all, here, left, from, row0, column0, first + row * all.n + column,
                         row, column);
        }
    }
    __syncthreads(); /* mutant: undecided results are counted early */
    const bool many = left.count > MANY;
    if (many) {
        settle_all(all, here, left, x, y);
    }
    settle_few(all, here, left, many, digits[threadIdx.x / 32]);
}
