/* Ranges of operands and accumulators of the units in rounded_model.h: a power of two that
 * divides all numbers, and their largest magnitude. rounded.c chooses a loop by them. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_RANGES_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_RANGES_H

#include "runtime/sizes.h"
#include "tensor_core/kernels/rounded_sums.h"
#include "tensor_core/kernels/rounded_tile.h"

enum { BITS = 11 }; /* significant bits of operands */

/* The range of numbers, except zeros and special ones. */
struct range {
    words least_less_one, greatest; /* magnitudes */
    words last;                     /* bits that any number has */
};

TF_INLINE struct range no_range(void)
{
    return (struct range){words_of(INT32_MAX), words_of(0), words_of(0)};
}

/* Returns a vector as the unit reads it, and extends the range by its numbers. */
TF_INLINE floats read_vector(floats x, uint32_t least, words zeros, struct range *range)
{
    const words magnitude = magnitudes_of(x);
    const words small = are_less(magnitude, (int32_t)least);
    const words kept = (words)x & ~(small & zeros);
    const words counted = kept & TF_MAGNITUDE_BITS & are_less(magnitude, TF_INF_BITS);
    /* Zero less one is the largest of all words, so zeros never count as smallest. */
    range->least_less_one = lesser_words(range->least_less_one, counted - 1);
    range->greatest = ~lesser_words(~range->greatest, ~counted);
    range->last |= counted;
    return (floats)kept;
}

/* The range of all lanes. */
struct whole_range {
    uint32_t least_less_one, greatest, last;
};

static struct whole_range of_all_lanes(struct range range)
{
    struct whole_range all = {INT32_MAX, 0, 0};
    for (int i = 0; i < LANES; i++) {
        const uint32_t least = range.least_less_one[i], greatest = range.greatest[i];
        all.least_less_one = least < all.least_less_one ? least : all.least_less_one;
        all.greatest = greatest > all.greatest ? greatest : all.greatest;
        all.last |= range.last[i];
    }
    return all;
}

/* Returns a note. Its lower half is the biased exponent e of which all numbers are
 * multiples of 2^(e - 10), or 0 if products may not be exact in float32. Its upper half is
 * the biased exponent of the largest number. */
static uint32_t note_of(struct range range)
{
    const struct whole_range all = of_all_lanes(range);
    const uint32_t field = (all.least_less_one + 1) >> 23;
    const uint32_t more = all.last << 16 ? 0 : BITS - 8;
    const int exact = field && !(all.last & ((1u << (24 - BITS)) - 1));
    return (exact ? field + more : 0) | all.greatest >> 23 << 16;
}

/* Returns the bits that are cleared in numbers that are flushed. */
static uint32_t zeros_of(const struct tf_rounded_model *model)
{
    return model->flush_operands == TF_KEEP_SUBNORMAL       ? 0
           : model->flush_operands == TF_FLUSH_TO_PLUS_ZERO ? UINT32_MAX
                                                            : TF_MAGNITUDE_BITS;
}

/* Reads `count` lines of n numbers each, `step` apart, in place. Returns their note. */
__attribute__((noinline)) static uint32_t
read_block(const struct tf_rounded_model *model, int32_t least, float *x, size_t step,
           size_t count, size_t n)
{
    const uint32_t normal = (uint32_t)(least + BIAS) << 23;
    const words zeros = words_of(zeros_of(model));
    struct range range = no_range();
    for (size_t i = 0; i < count; i++) {
        float *line = x + i * step;
        size_t k = 0;
        for (; k + LANES <= n; k += LANES) {
            const floats numbers =
                read_vector(load_floats(line + k), normal, zeros, &range);
            memcpy(line + k, &numbers, sizeof numbers);
        }
        floats rest = floats_of(0);
        memcpy(&rest, line + k, (n - k) * sizeof *line);
        rest = read_vector(rest, normal, zeros, &range);
        memcpy(line + k, &rest, (n - k) * sizeof *line);
    }
    return note_of(range);
}

/* Returns whether sums are computed in float64 (rounded_doubles.c). */
static int is_in_doubles(const struct tf_rounded_model *model)
{
    return model->arithmetic == TF_FUSED && (model->depth == 2 || model->depth == 4) &&
           model->instruction_depth <= NOTED && !model->lanes && !model->to_odd &&
           !model->flush_results && !model->flush_operands;
}

/* Returns how many k a note is of: NOTED for sums in float64, else all that are read. */
static size_t noted(const struct tf_rounded_model *model, size_t depth)
{
    return is_in_doubles(model) ? NOTED : depth;
}

static void write_notes(uint32_t note, size_t k, uint32_t *notes)
{
    for (size_t i = 0; i * NOTED < k; i++) {
        notes[i] = note;
    }
}

/* Read sets of ROWS rows, or panels, in place. Write adjacent notes, one per NOTED k. */
static void read_rows(const struct tf_rounded_model *model, float *a, size_t rows,
                      size_t depth, uint32_t *notes)
{
    const size_t step = noted(model, depth);
    for (size_t i = 0; i < rows; i += ROWS) {
        for (size_t k = 0; k < depth; k += step) {
            const size_t n = tf_min_size(depth - k, step);
            const uint32_t note =
                read_block(model, model->least_a, a + i * depth + k, depth, ROWS, n);
            write_notes(note, n, notes + i * depth + k / NOTED);
        }
    }
}

static void read_columns(const struct tf_rounded_model *model, float *b, size_t columns,
                         size_t depth, uint32_t *notes)
{
    const size_t step = noted(model, depth);
    for (size_t j = 0; j < columns; j += PANEL) {
        for (size_t k = 0; k < depth; k += step) {
            const size_t n = tf_min_size(depth - k, step);
            const uint32_t note =
                read_block(model, model->least_b, b + j * depth + k * PANEL, n * PANEL, 1,
                           n * PANEL);
            write_notes(note, n, notes + j * depth / 2 + k / NOTED);
        }
    }
}

/* Returns the note of all `depth` k, from their notes. */
__attribute__((noinline)) static uint32_t note_of_all(const uint32_t *notes, size_t depth)
{
    uint32_t least = 2 * BIAS, greatest = 0; /* the note of zeros */
    for (size_t i = 0; i * NOTED < depth; i++) {
        least = (notes[i] & 0xFFFF) < least ? notes[i] & 0xFFFF : least;
        greatest = notes[i] >> 16 > greatest ? notes[i] >> 16 : greatest;
    }
    return least | greatest << 16;
}

/* A span of products or of accumulators: all are multiples of 2^unit, and less than 2^end.
 * An unknown unit is below TF_LEAST_SINGLE. */
struct span {
    int32_t unit, end;
};

/* Returns the span of products, from the notes of their factors. */
static struct span span_of_products(uint32_t a, uint32_t b)
{
    const uint32_t least_a = a & 0xFFFF, least_b = b & 0xFFFF;
    const int32_t unit = (int32_t)(least_a + least_b) - 2 * BIAS - 2 * (BITS - 1);
    return (struct span){least_a && least_b ? unit : INT32_MIN,
                         (int32_t)((a >> 16) + (b >> 16)) - 2 * BIAS + 2};
}

/* Returns the span of all numbers that are in x or y. */
static struct span widest(struct span x, struct span y)
{
    return (struct span){x.unit < y.unit ? x.unit : y.unit, x.end > y.end ? x.end : y.end};
}

/* Returns the span of finite accumulators. If one is -0, the unit counts as unknown: loops
 * that need a unit would turn -0 into 0. */
static struct span span_of_sums(const float *c, size_t ldc)
{
    struct range range = no_range();
    words minus_zeros = words_of(0);
    UNROLLED for (size_t i = 0; i < ROWS * SIDES; i++) {
        const floats sums = load_floats(c + i / SIDES * ldc + i % SIDES * LANES);
        read_vector(sums, 0, words_of(0), &range);
        minus_zeros |= (words)((words)sums == TF_SIGN_BIT);
    }
    const struct whole_range all = of_all_lanes(range);
    const int32_t unit = (int32_t)((all.least_less_one + 1) >> 23) - BIAS - 23;
    return (struct span){any(minus_zeros) ? INT32_MIN : unit,
                         (int32_t)(all.greatest >> 23) - BIAS + 1};
}

/* Returns whether products are exact: normal, finite, and multiples of 2^-126. */
static int are_exact(struct span products)
{
    return products.unit >= TF_LEAST_SINGLE && products.end <= BIAS;
}

/* Returns whether accumulators are multiples of 2^-126. */
__attribute__((noinline)) static int are_multiples(const float *c, size_t ldc)
{
    words small = words_of(0);
    UNROLLED for (size_t i = 0; i < ROWS * SIDES; i++) {
        const words x = magnitudes_of(load_floats(c + i / SIDES * ldc + i % SIDES * LANES));
        small |= are_less(x, (TF_LEAST_SINGLE + 23 + BIAS) << 23) & (words)(x != 0);
    }
    return !any(small);
}

#endif
