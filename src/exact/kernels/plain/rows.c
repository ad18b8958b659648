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

TF_INLINE struct lanes no_numbers(void)
{
    return (struct lanes){all_lanes(0), (longs)all_lanes((double)INFINITY), longs_of(0)};
}

TF_INLINE void add_numbers(struct lanes *lanes, doubles x)
{
    const doubles magnitude = magnitude_of_doubles(x);
    lanes->squares += magnitude * magnitude;
    lanes->lowest = lesser_longs(lanes->lowest, (longs)lowest_bits(magnitude));
    lanes->largest = greater_longs(lanes->largest, (longs)magnitude);
}

/* Returns the facts of a row, given the bits of its lowest and its largest number. */
static struct tf_row_facts facts_of(double squares, int64_t lowest, int64_t largest, size_t k)
{
    struct tf_row_facts facts = {.norm = norm_of(squares, k)};
    memcpy(&facts.unit, &lowest, sizeof lowest);
    memcpy(&facts.largest, &largest, sizeof largest);
    facts.special = !isfinite(facts.largest);
    return facts;
}

/* Returns PLACES numbers that are `apart` bytes apart, of which `count` are read. Others
 * are zero. */
TF_INLINE doubles numbers_at(const char *items, ptrdiff_t apart, size_t count, int is_float)
{
    if (count == PLACES && apart == (ptrdiff_t)(is_float ? sizeof(float) : sizeof(double))) {
        few_floats narrow;
        doubles wide;
        if (is_float) {
            memcpy(&narrow, items, sizeof narrow);
            return doubles_of(narrow);
        }
        memcpy(&wide, items, sizeof wide);
        return wide;
    }
    double some[PLACES] = {0};
    for (size_t i = 0; i < count; i++, items += apart) {
        float narrow;
        if (is_float) {
            memcpy(&narrow, items, sizeof narrow);
            some[i] = narrow;
        } else {
            memcpy(&some[i], items, sizeof some[i]);
        }
    }
    return load_doubles(some);
}

/* Returns the facts of a row whose numbers adjoin. */
TF_INLINE struct tf_row_facts facts_along(const char *items, size_t k)
{
    const ptrdiff_t size = sizeof(double);
    struct lanes lanes[2] = {no_numbers(), no_numbers()};
    size_t i = 0;
    for (; i + 2 * PLACES <= k; i += 2 * PLACES) {
        UNROLLED for (int v = 0; v < 2; v++) {
            const char *from = items + (ptrdiff_t)(i + (size_t)v * PLACES) * size;
            add_numbers(&lanes[v], numbers_at(from, size, PLACES, 0));
        }
    }
    for (; i < k; i += PLACES) {
        const size_t count = k - i < PLACES ? k - i : PLACES;
        add_numbers(&lanes[0],
                    numbers_at(items + (ptrdiff_t)i * size, size, count, 0));
    }
    const longs lowest = lesser_longs(lanes[0].lowest, lanes[1].lowest);
    const longs largest = greater_longs(lanes[0].largest, lanes[1].largest);
    int64_t least = lowest[0], most = largest[0];
    for (int lane = 1; lane < PLACES; lane++) {
        least = lowest[lane] < least ? lowest[lane] : least;
        most = largest[lane] > most ? largest[lane] : most;
    }
    return facts_of(sum_of(lanes[0].squares + lanes[1].squares), least, most, k);
}

/* Writes the facts of up to 2 PLACES rows, each of which has a lane. */
TF_INLINE void facts_across(const char *items, ptrdiff_t step, ptrdiff_t along, size_t rows,
                            size_t k, struct tf_row_facts *facts, int is_float)
{
    const size_t counts[2] = {rows < PLACES ? rows : PLACES, rows < PLACES ? 0 : rows - PLACES};
    struct lanes lanes[2] = {no_numbers(), no_numbers()};
    for (size_t i = 0; i < k; i++, items += along) {
        UNROLLED for (int v = 0; v < 2; v++) {
            add_numbers(&lanes[v],
                        numbers_at(items + v * PLACES * step, step, counts[v], is_float));
        }
    }
    for (size_t row = 0; row < rows; row++) {
        const struct lanes *own = &lanes[row / PLACES];
        const size_t lane = row % PLACES;
        facts[row] =
            facts_of(own->squares[lane], own->lowest[lane], own->largest[lane], k);
    }
}

/* -- float32 --------------------------------------------------------------------------- */

/* As struct lanes, for float32. */
struct float_lanes {
    doubles squares[2];
    words lowest, largest;
};

TF_INLINE struct float_lanes no_floats(void)
{
    return (struct float_lanes){.lowest = (words){0} + 0x7F800000U};
}

/* As lowest_bits and add_numbers. */
TF_INLINE void add_floats(struct float_lanes *lanes, floats x)
{
    const words bits = (words)x & 0x7FFFFFFFU;
    const words is_power = (words)((bits & 0x7FFFFFU) == 0), is_zero = (words)(bits == 0);
    const floats without = (floats)(bits & (bits - 1) & ~is_power);
    const words lowest = (words)((floats)bits - without) | (is_zero & 0x7F800000U);
    UNROLLED for (int half = 0; half < 2; half++) {
        const doubles wide = half_of_floats(x, half);
        lanes->squares[half] += wide * wide;
    }
    lanes->lowest = lesser_words(lanes->lowest, lowest);
    lanes->largest = greater_words(lanes->largest, bits);
}

static struct tf_row_facts facts_of_floats(double squares, uint32_t lowest, uint32_t largest,
                                           size_t k)
{
    float least, most;
    memcpy(&least, &lowest, sizeof least);
    memcpy(&most, &largest, sizeof most);
    return (struct tf_row_facts){norm_of(squares, k), least, most, !isfinite(most)};
}

TF_INLINE floats some_floats(const char *items, size_t count)
{
    floats x = {0};
    if (count == LANES) {
        memcpy(&x, items, sizeof x);
    } else {
        memcpy(&x, items, count * sizeof(float));
    }
    return x;
}

static struct tf_row_facts facts_along_floats(const char *items, size_t k)
{
    struct float_lanes lanes = no_floats();
    size_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        add_floats(&lanes, some_floats(items + i * sizeof(float), LANES));
    }
    if (i < k) {
        add_floats(&lanes, some_floats(items + i * sizeof(float), k - i));
    }
    uint32_t lowest = lanes.lowest[0], largest = lanes.largest[0];
    for (int lane = 1; lane < LANES; lane++) {
        lowest = lanes.lowest[lane] < lowest ? lanes.lowest[lane] : lowest;
        largest = lanes.largest[lane] > largest ? lanes.largest[lane] : largest;
    }
    return facts_of_floats(sum_of(lanes.squares[0] + lanes.squares[1]), lowest, largest, k);
}

/* Writes the facts of LANES rows that are one number apart. */
static void facts_across_floats(const char *items, ptrdiff_t along, size_t k,
                                struct tf_row_facts *facts)
{
    struct float_lanes lanes = no_floats();
    for (size_t i = 0; i < k; i++, items += along) {
        add_floats(&lanes, some_floats(items, LANES));
    }
    for (size_t row = 0; row < LANES; row++) {
        facts[row] = facts_of_floats(lanes.squares[row / PLACES][row % PLACES],
                                     lanes.lowest[row], lanes.largest[row], k);
    }
}

/* -- both ------------------------------------------------------------------------------ */

/* `is_float` is a constant in each inlined copy. */
TF_INLINE void facts_of_rows(const char *items, ptrdiff_t step, ptrdiff_t along, size_t rows,
                             size_t k, struct tf_row_facts *facts, int is_float)
{
    const ptrdiff_t size = is_float ? sizeof(float) : sizeof(double);
    if (along == size) {
        for (size_t i = 0; i < rows; i++) {
            const char *from = items + (ptrdiff_t)i * step;
            facts[i] = is_float ? facts_along_floats(from, k) : facts_along(from, k);
        }
        return;
    }
    size_t i = 0;
    for (; i + 2 * PLACES <= rows && step == size; i += 2 * PLACES) { /* constants */
        const char *from = items + (ptrdiff_t)i * size;
        if (is_float) {
            facts_across_floats(from, along, k, facts + i);
        } else {
            facts_across(from, size, along, 2 * PLACES, k, facts + i, 0);
        }
    }
    for (; i < rows; i += 2 * PLACES) {
        const size_t count = rows - i < 2 * PLACES ? rows - i : 2 * PLACES;
        facts_across(items + (ptrdiff_t)i * step, step, along, count, k, facts + i,
                     is_float);
    }
}

void TF_PLAIN_NAME(tf_facts_of_rows)(const char *items, ptrdiff_t step, ptrdiff_t along,
                                     size_t rows, size_t k, struct tf_row_facts *facts,
                                     int is_float)
{
    if (is_float) {
        facts_of_rows(items, step, along, rows, k, facts, 1);
    } else {
        facts_of_rows(items, step, along, rows, k, facts, 0);
    }
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
TF_INLINE void slice_row(double *rest, void *slice, size_t k, int exponent, int is_float,
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
        if (is_float) {
            const few_floats narrow = singles_of(cut);
            memcpy((float *)slice + i, &narrow, sizeof narrow);
        } else {
            memcpy((double *)slice + i, &cut, sizeof cut);
        }
        memcpy(rest + i, &left, sizeof left);
    }
    double some = 0, few = 0;
    for (; i < k; i++) {
        const double cut = (rest[i] + much[0]) - much[0], left = rest[i] - cut;
        some += cut * cut;
        few += left * left;
        if (is_float) {
            ((float *)slice)[i] = (float)cut;
        } else {
            ((double *)slice)[i] = cut;
        }
        rest[i] = left;
    }
    norms[0] = norm_of(sum_of(squares) + some, k);
    norms[1] = norm_of(sum_of(lost) + few, k);
}

void TF_PLAIN_NAME(tf_slice_row)(double *rest, void *slice, size_t k, int exponent,
                                 int is_float, double *norms)
{
    if (is_float) {
        slice_row(rest, slice, k, exponent, 1, norms);
    } else {
        slice_row(rest, slice, k, exponent, 0, norms);
    }
}
