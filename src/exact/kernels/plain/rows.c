/* Rows of float64 numbers: their conversion, their facts, and their slices. */
#include <math.h>

#include "exact/kernels/plain/decls.h"
#include "runtime/kernels/doubles.h"

/* Returns at least the square root of a computed sum of k squares. Its relative error is
 * below k units of 2^-53, and twice as much covers this formula's own roundings. */
static double norm_of(double squares, size_t k)
{
    return sqrt(squares) * (1 + (double)(k + 8) * 0x1p-52);
}

static double sum_of(doubles x)
{
    double sum = 0;
    for (int i = 0; i < PLACES; i++) {
        sum += x[i];
    }
    return sum;
}

/* Returns the last 1 of each significand, with its weight, or Inf for 0. Removing the last
 * 1 of the bits of a power of two changes its exponent, so that those count whole. */
TF_INLINE doubles lowest_bits(doubles magnitude)
{
    const longs bits = (longs)magnitude;
    const longs others = bits & (bits - 1);
    const longs is_power = (longs)((bits & ((INT64_C(1) << 52) - 1)) == 0);
    const longs is_zero = (longs)(bits == 0);
    const doubles without = (doubles)(others & ~is_power);
    const longs infinity = longs_of(INT64_C(0x7FF) << 52);
    return (doubles)((longs)(magnitude - without) | (is_zero & infinity));
}

/* The facts of several numbers in each lane. */
struct lanes {
    doubles squares;
    longs lowest, largest; /* bits of numbers, which have the order of the numbers */
};

TF_INLINE void add_numbers(struct lanes *lanes, doubles x)
{
    const doubles magnitude = magnitude_of_doubles(x);
    lanes->squares += magnitude * magnitude;
    lanes->lowest = lesser_longs(lanes->lowest, (longs)lowest_bits(magnitude));
    lanes->largest = greater_longs(lanes->largest, (longs)magnitude);
}

struct tf_row_facts TF_PLAIN_NAME(tf_row_facts_of)(const double *x, size_t k)
{
    const struct lanes none = {all_lanes(0), (longs)all_lanes((double)INFINITY), longs_of(0)};
    struct lanes lanes[2] = {none, none};
    size_t i = 0;
    for (; i + 2 * PLACES <= k; i += 2 * PLACES) {
        UNROLLED for (int v = 0; v < 2; v++) {
            add_numbers(&lanes[v], load_doubles(x + i + v * PLACES));
        }
    }
    for (; i < k; i += PLACES) {
        double few[PLACES] = {0};
        memcpy(few, x + i, (k - i < PLACES ? k - i : PLACES) * sizeof *few);
        add_numbers(&lanes[0], load_doubles(few));
    }
    const doubles lowest = (doubles)lesser_longs(lanes[0].lowest, lanes[1].lowest);
    const doubles largest = (doubles)greater_longs(lanes[0].largest, lanes[1].largest);
    struct tf_row_facts facts = {0, (double)INFINITY, 0, 0};
    for (int lane = 0; lane < PLACES; lane++) {
        facts.special |= !isfinite(largest[lane]);
        facts.largest = largest[lane] > facts.largest ? largest[lane] : facts.largest;
        facts.unit = lowest[lane] < facts.unit ? lowest[lane] : facts.unit;
    }
    facts.norm = norm_of(sum_of(lanes[0].squares + lanes[1].squares), k);
    return facts;
}

/* -- conversion ---------------------------------------------------------------------- */

enum { ACROSS = 16, ALONG = 64 };

/* Converts up to ACROSS rows whose numbers are `along` bytes apart, by blocks that stay in
 * the cache. Neighbors in a column are read together. */
TF_INLINE void load(const char *items, ptrdiff_t step, ptrdiff_t along, size_t rows, size_t k,
                    double *out, int is_float)
{
    double block[ACROSS][ALONG];
    for (size_t at = 0; at < k; at += ALONG) {
        const size_t depth = k - at < ALONG ? k - at : ALONG;
        for (size_t i = 0; i < depth; i++) {
            const char *item = items + (ptrdiff_t)(at + i) * along;
            for (size_t row = 0; row < rows; row++, item += step) {
                float narrow;
                if (is_float) {
                    memcpy(&narrow, item, sizeof narrow);
                    block[row][i] = narrow;
                } else {
                    memcpy(&block[row][i], item, sizeof(double));
                }
            }
        }
        for (size_t row = 0; row < rows; row++) {
            memcpy(out + row * k + at, block[row], depth * sizeof(double));
        }
    }
}

static void load_line(const char *items, size_t k, double *out, int is_float)
{
    if (!is_float) {
        memcpy(out, items, k * sizeof *out);
        return;
    }
    for (size_t i = 0; i < k; i++, items += sizeof(float)) {
        float narrow;
        memcpy(&narrow, items, sizeof narrow);
        out[i] = narrow;
    }
}

void TF_PLAIN_NAME(tf_load_rows)(const char *items, ptrdiff_t step, ptrdiff_t along,
                                 size_t rows, size_t k, double *out, int is_float)
{
    if (along == (ptrdiff_t)(is_float ? sizeof(float) : sizeof(double))) {
        for (size_t i = 0; i < rows; i++) {
            load_line(items + (ptrdiff_t)i * step, k, out + i * k, is_float);
        }
        return;
    }
    for (size_t i = 0; i < rows; i += ACROSS) {
        const char *first = items + (ptrdiff_t)i * step;
        if (rows - i >= ACROSS) { /* the number of rows is a constant */
            if (is_float) {
                load(first, step, along, ACROSS, k, out + i * k, 1);
            } else {
                load(first, step, along, ACROSS, k, out + i * k, 0);
            }
        } else {
            load(first, step, along, rows - i, k, out + i * k, is_float);
        }
    }
}

/* -- slices -------------------------------------------------------------------------- */

/* A number plus 1.5 * 2^(exponent + 52) is rounded to a multiple of 2^exponent. */
void TF_PLAIN_NAME(tf_slice_row)(double *rest, double *slice, size_t k, int exponent,
                                 double *norms)
{
    const doubles much = all_lanes(ldexp(0x1.8p52, exponent));
    doubles squares = all_lanes(0), lost = all_lanes(0);
    size_t i = 0;
    for (; i + PLACES <= k; i += PLACES) {
        const doubles x = load_doubles(rest + i);
        const doubles cut = (x + much) - much, left = x - cut;
        squares += cut * cut;
        lost += left * left;
        memcpy(slice + i, &cut, sizeof cut);
        memcpy(rest + i, &left, sizeof left);
    }
    double some = 0, few = 0;
    for (; i < k; i++) {
        const double cut = (rest[i] + much[0]) - much[0], left = rest[i] - cut;
        some += cut * cut;
        few += left * left;
        slice[i] = cut;
        rest[i] = left;
    }
    norms[0] = norm_of(sum_of(squares) + some, k);
    norms[1] = norm_of(sum_of(lost) + few, k);
}
