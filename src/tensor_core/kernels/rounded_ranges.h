/* What is known of operands and accumulators of units that round otherwise, by which
 * rounded.c chooses a loop: what all of them are multiples of, and how large they are. */
#ifndef TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_RANGES_H
#define TF32DTYPE_TENSOR_CORE_KERNELS_ROUNDED_RANGES_H

#include "runtime/sizes.h"
#include "tensor_core/kernels/rounded_sums.h"
#include "tensor_core/kernels/rounded_tile.h"

enum { BITS = 11 }; /* significant ones of operands */

/* Of numbers that are neither zero nor special. */
struct range {
    words least_less_one, greatest; /* magnitudes */
    words last;                     /* bits that 11 significant ones do not reach */
};

TF_INLINE struct range no_range(void)
{
    return (struct range){words_of(INT32_MAX), words_of(0), words_of(0)};
}

/* A vector of numbers as the unit reads it; and the range with it. */
TF_INLINE floats read_vector(floats x, uint32_t least, words zeros, struct range *range)
{
    const words magnitude = magnitudes_of(x);
    const words small = are_less(magnitude, (int32_t)least);
    const words kept = (words)x & ~(small & zeros);
    const words counted = kept & TF_MAGNITUDE_BITS & are_less(magnitude, TF_INF_BITS);
    /* Less one, zero is the greatest of all words. */
    range->least_less_one = lesser_words(range->least_less_one, counted - 1);
    range->greatest = ~lesser_words(~range->greatest, ~counted);
    range->last |= counted;
    return (floats)kept;
}

/* The same of all lanes. */
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

/* Exponents, biased, of what all numbers are multiples of, times 2^10, and of the greatest
 * one: as a note. 0 for the first where products may not be exact in float32. */
static uint32_t note_of(struct range range)
{
    const struct whole_range all = of_all_lanes(range);
    const uint32_t field = (all.least_less_one + 1) >> 23;
    const uint32_t more = all.last << 16 ? 0 : BITS - 8;
    const int exact = field && !(all.last & ((1u << (24 - BITS)) - 1));
    return (exact ? field + more : 0) | all.greatest >> 23 << 16;
}

/* What takes the place of numbers that are flushed. */
static uint32_t zeros_of(const struct tf_rounded_model *model)
{
    return model->flush_operands == TF_KEEP_SUBNORMAL       ? 0
           : model->flush_operands == TF_FLUSH_TO_PLUS_ZERO ? UINT32_MAX
                                                            : TF_MAGNITUDE_BITS;
}

/* `count` lines of n numbers each, `step` apart. */
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

/* Whether sums are float64's (rounded_doubles.c). */
static int is_in_doubles(const struct tf_rounded_model *model)
{
    return model->arithmetic == TF_FUSED && (model->depth == 2 || model->depth == 4) &&
           model->instruction_depth <= NOTED && !model->lanes && !model->to_odd &&
           !model->flush_results && !model->flush_operands;
}

/* The k that a note is of: all that are read, but for sums in float64. */
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

/* For ROWS rows, or a panel, what is known of each NOTED k: those of all k adjoin. */
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

/* Of `depth` k. */
__attribute__((noinline)) static uint32_t note_of_all(const uint32_t *notes, size_t depth)
{
    uint32_t least = 2 * BIAS, greatest = 0; /* of zeros */
    for (size_t i = 0; i * NOTED < depth; i++) {
        least = (notes[i] & 0xFFFF) < least ? notes[i] & 0xFFFF : least;
        greatest = notes[i] >> 16 > greatest ? notes[i] >> 16 : greatest;
    }
    return least | greatest << 16;
}

/* Of products, or of accumulators: all are multiples of 2^unit, and less than 2^end. Where
 * no unit is known, it is below TF_LEAST_SINGLE. */
struct span {
    int32_t unit, end;
};

/* Of the notes of their factors. */
static struct span span_of_products(uint32_t a, uint32_t b)
{
    const uint32_t least_a = a & 0xFFFF, least_b = b & 0xFFFF;
    const int32_t unit = (int32_t)(least_a + least_b) - 2 * BIAS - 2 * (BITS - 1);
    return (struct span){least_a && least_b ? unit : INT32_MIN,
                         (int32_t)((a >> 16) + (b >> 16)) - 2 * BIAS + 2};
}

/* Of all that is in either. */
static struct span widest(struct span x, struct span y)
{
    return (struct span){x.unit < y.unit ? x.unit : y.unit, x.end > y.end ? x.end : y.end};
}

/* But for what is not finite. -0 has no unit, as if it were of any: loops that have to know
 * one would make it 0. */
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

/* Whether products are exact: normal, finite, and multiples of 2^-126. */
static int are_exact(struct span products)
{
    return products.unit >= TF_LEAST_SINGLE && products.end <= BIAS;
}

/* Whether accumulators are multiples of 2^-126. */
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
