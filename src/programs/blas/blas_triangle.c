/* Computes sums again that became NaN because zeros of a triangular operand were multiplied
 * by Inf or NaN. */
#include "programs/blas/blas_triangle.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "formats/casts.h"
#include "formats/codec.h"
#include "runtime/reserve.h"

enum { MOST_LINES = 64 }; /* the most lines of a block */

/* A product in which one operand is triangular. Line l is row l of C if A is triangular
 * (axis 0), and column l if B is (axis 1). Position p of a line of the triangle is
 * multiplied by position p of each line of the other operand, whose number is q. */
struct triangle_product {
    const struct tf_precision *precision;
    struct tf_blas_pair of; /* the other operand is a copy, in which elements become 0 */
    struct tf_matrix c;
    ptrdiff_t lines, others, k;
    ptrdiff_t cleared; /* the positions before it (or from it on) have become 0 */
    ptrdiff_t first; /* the number of line 0 in the whole triangle */
    int axis, ends_with_zeros;
    struct tf_blas_matrix *triangle, *other;
    ptrdiff_t *nan;  /* for each q, the position of the NaN that most lines meet */
    char *line_nans; /* for each line of the triangle, whether it has a NaN */
    uint64_t *bits;  /* maps of `words` words each: see enum map */
    ptrdiff_t words;
    ptrdiff_t *doubtful; /* the list of find_doubtful */
    char *copy, *gathered, *sums;
};

static char *sum_at(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t q)
{
    return t->c.data + l * t->c.strides[t->axis] + q * t->c.strides[1 - t->axis];
}

static char *other_at(const struct triangle_product *t, ptrdiff_t p, ptrdiff_t q)
{
    return (char *)t->other->data + p * t->other->strides[t->axis] +
           q * t->other->strides[1 - t->axis];
}

/* Returns the value of a component as products use it. */
static double value_at(const struct triangle_product *t, const char *place)
{
    return t->of.products && tf_blas_part_size(t->of.type) == 8
               ? *(const double *)place
               : tf_blas_number_at(place, t->of.type);
}

static int is_nan(const char *sum, int numbers, int kind)
{
    int found = 0;
    for (int part = 0; part < numbers; part++) {
        found |= kind == TF_FLOAT32 ? isnan(((const float *)sum)[part])
                                    : isnan(((const double *)sum)[part]);
    }
    return found;
}

static int has_nan(const char *item, char type)
{
    int found = 0;
    for (int part = 0; part < tf_blas_numbers_of(type); part++) {
        found |= isnan(tf_blas_number_at(item + part * tf_blas_part_size(type), type));
    }
    return found;
}

static void find_nans(struct triangle_product *t)
{
    for (ptrdiff_t l = 0; l < t->lines; l++) {
        const char *line = t->triangle->data + l * t->triangle->strides[t->axis];
        t->line_nans[l] = 0;
        for (ptrdiff_t p = 0; p < t->k && !t->line_nans[l]; p++) {
            const char *item = line + p * t->triangle->strides[1 - t->axis];
            t->line_nans[l] = (char)has_nan(item, t->of.type);
        }
    }
    for (ptrdiff_t q = 0; q < t->others; q++) {
        t->nan[q] = t->ends_with_zeros ? PTRDIFF_MAX : -1;
    }
    for (ptrdiff_t step = 0; step < t->k; step++) {
        const ptrdiff_t p = t->ends_with_zeros ? t->k - 1 - step : step;
        for (ptrdiff_t q = 0; q < t->others; q++) {
            if (has_nan(other_at(t, p, q), t->of.type)) {
                t->nan[q] = p;
            }
        }
    }
}

/* The maps, which have a bit for each position of each line of an operand. Complex elements
 * have a map for the real components, and one for the imaginary components. */
enum map { LINE_NEGATIVE, LINE_ZERO, PLUS_INFINITY, MINUS_INFINITY, MAPS };

static uint64_t *map_of(const struct triangle_product *t, enum map map, int part,
                        ptrdiff_t line)
{
    const ptrdiff_t each = t->lines > t->others ? t->lines : t->others;
    return t->bits + ((map * 2 + part) * each + line) * t->words;
}

static void fill_maps(struct triangle_product *t)
{
    const char type = t->of.type;
    const size_t row = (size_t)t->words * sizeof *t->bits;
    for (int part = 0; part < tf_blas_numbers_of(type); part++) {
        const ptrdiff_t offset = part * tf_blas_part_size(type);
        for (ptrdiff_t l = 0; l < t->lines; l++) {
            uint64_t *negative = map_of(t, LINE_NEGATIVE, part, l);
            uint64_t *zero = map_of(t, LINE_ZERO, part, l);
            const char *line = t->triangle->data + l * t->triangle->strides[t->axis];
            memset(negative, 0, row);
            memset(zero, 0, row);
            for (ptrdiff_t p = 0; p < t->k; p++) {
                const double x =
                    value_at(t, line + p * t->triangle->strides[1 - t->axis] + offset);
                negative[p / 64] |= (uint64_t)(signbit(x) != 0) << p % 64;
                zero[p / 64] |= (uint64_t)(x == 0) << p % 64;
            }
        }
        for (ptrdiff_t q = 0; q < t->others; q++) {
            uint64_t *plus = map_of(t, PLUS_INFINITY, part, q);
            uint64_t *minus = map_of(t, MINUS_INFINITY, part, q);
            memset(plus, 0, row);
            memset(minus, 0, row);
            for (ptrdiff_t p = 0; p < t->k; p++) {
                const double x = value_at(t, other_at(t, p, q) + offset);
                plus[p / 64] |= (uint64_t)(x == INFINITY) << p % 64;
                minus[p / 64] |= (uint64_t)(x == -INFINITY) << p % 64;
            }
        }
    }
}

/* Returns whether component `left` of line l times component `right` of q gives Inf of both
 * signs, or 0 times Inf. Rounding keeps every sign, and changes Inf at most to NaN. */
static int is_mixed(const struct triangle_product *t, int left, ptrdiff_t l, int right,
                    ptrdiff_t q)
{
    const uint64_t *negative = map_of(t, LINE_NEGATIVE, left, l);
    const uint64_t *zero = map_of(t, LINE_ZERO, left, l);
    const uint64_t *plus = map_of(t, PLUS_INFINITY, right, q);
    const uint64_t *minus = map_of(t, MINUS_INFINITY, right, q);
    const ptrdiff_t own = l + t->first;
    const ptrdiff_t begin = t->ends_with_zeros ? 0 : own;
    const ptrdiff_t end = t->ends_with_zeros ? own + 1 : t->k;
    uint64_t up = 0, down = 0, none = 0;
    for (ptrdiff_t w = begin / 64; w < (end + 63) / 64; w++) {
        uint64_t met = UINT64_MAX;
        met &= w == begin / 64 ? UINT64_MAX << begin % 64 : UINT64_MAX;
        met &= w == end / 64 ? ((uint64_t)1 << end % 64) - 1 : UINT64_MAX;
        none |= (plus[w] | minus[w]) & zero[w] & met;
        up |= ((plus[w] & ~negative[w]) | (minus[w] & negative[w])) & met;
        down |= ((plus[w] & negative[w]) | (minus[w] & ~negative[w])) & met;
        if (none || (up && down)) {
            return 1;
        }
    }
    return 0;
}

/* Returns whether elements within the triangle make a sum NaN; both components of a complex
 * sum. */
static int is_surely_nan(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t q)
{
    if (t->precision->saturates) {
        return 0;
    }
    if (!tf_blas_is_complex(t->of.type)) {
        return is_mixed(t, 0, l, 0, q);
    }
    return (is_mixed(t, 0, l, 0, q) || is_mixed(t, 1, l, 1, q)) &&
           (is_mixed(t, 0, l, 1, q) || is_mixed(t, 1, l, 0, q));
}

/* Returns whether a sum is NaN although none of its operands' elements within the triangle
 * is NaN. */
static int is_nan_of_numbers(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t q)
{
    const int meets_nan =
        t->ends_with_zeros ? t->nan[q] <= l + t->first : t->nan[q] >= l + t->first;
    return !t->line_nans[l] && !meets_nan &&
           is_nan(sum_at(t, l, q), tf_blas_numbers_of(t->of.type), t->c.kind);
}

static int is_doubtful(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t q)
{
    return is_nan_of_numbers(t, l, q) && !is_surely_nan(t, l, q);
}

/* Sets the other operand to 0 at positions that only zeros of the lines from here on meet:
 * before `end`, or from `end` on. In scaled operands, only Inf and NaN become 0: finite
 * elements stay finite when they are scaled, and keep the scale. */
static void clear_to(struct triangle_product *t, ptrdiff_t end)
{
    const char type = t->of.type;
    const ptrdiff_t size = tf_blas_part_size(type), numbers = t->others * tf_blas_numbers_of(type);
    const int step = t->ends_with_zeros ? -1 : 1;
    for (ptrdiff_t p = t->cleared; p != end; p += step) {
        char *line = other_at(t, t->ends_with_zeros ? p - 1 : p, 0);
        if (t->precision->scaling == TF_UNSCALED) {
            memset(line, 0, (size_t)(numbers * size));
            continue;
        }
        for (ptrdiff_t i = 0; i < numbers; i++, line += size) {
            if (!isfinite(tf_blas_number_at(line, type))) {
                memset(line, 0, (size_t)size);
            }
        }
    }
    t->cleared = end;
}

/* Lists each q with a doubtful sum in lines l to end - 1; returns the length of the
 * list. */
static ptrdiff_t find_doubtful(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t end)
{
    ptrdiff_t count = 0;
    for (ptrdiff_t q = 0; q < t->others; q++) {
        for (ptrdiff_t i = l; i < end; i++) {
            if (is_doubtful(t, i, q)) {
                t->doubtful[count++] = q;
                break;
            }
        }
    }
    return count;
}

/* Returns the listed lines of the other operand, copied next to each other. */
static struct tf_blas_matrix gather(const struct triangle_product *t, ptrdiff_t count)
{
    const ptrdiff_t item = tf_blas_item_size(t->of.type);
    struct tf_blas_matrix few = *t->other;
    char *out = t->gathered;
    few.data = out;
    few.strides[t->axis] = count * item;
    *(t->axis ? &few.rows : &few.columns) = count;
    for (ptrdiff_t p = 0; p < t->k; p++) {
        for (ptrdiff_t j = 0; j < count; j++, out += item) {
            memcpy(out, other_at(t, p, t->doubtful[j]), (size_t)item);
        }
    }
    return few;
}

/* Computes the sums of `lines` lines with each listed q, and stores the doubtful sums.
 * Returns -1 on failure. */
static int sum_again(const struct triangle_product *t, ptrdiff_t l, ptrdiff_t lines,
                     ptrdiff_t count)
{
    const ptrdiff_t item =
        tf_blas_numbers_of(t->of.type) * (ptrdiff_t)tf_kind_size(t->c.kind);
    struct tf_blas_pair part = t->of;
    *(t->axis ? &part.a : &part.b) = gather(t, count);
    part = t->axis ? tf_blas_part_of(part, 0, count, l, lines)
                   : tf_blas_part_of(part, l, lines, 0, count);
    struct tf_matrix sums = {t->sums, {item, item}, 0, t->c.kind};
    sums.strides[t->axis] = count * item; /* the sums of a line are contiguous */
    if (tf_blas_multiply_full(t->precision, part, sums) < 0) {
        return -1;
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        for (ptrdiff_t i = 0; i < lines; i++) {
            if (is_doubtful(t, l + i, t->doubtful[j])) {
                memcpy(sum_at(t, l + i, t->doubtful[j]), t->sums + (i * count + j) * item,
                       (size_t)item);
            }
        }
    }
    return 0;
}

/* Computes the doubtful sums of lines l to end - 1 again, by smaller and smaller blocks, in
 * which fewer zeros are multiplied by elements. The lines with most elements come first, so
 * that elements that have become 0 are never needed again. Returns -1 on failure. */
static int sum_block(struct triangle_product *t, ptrdiff_t l, ptrdiff_t end)
{
    const ptrdiff_t lines = end - l, count = find_doubtful(t, l, end);
    if (!count) {
        return 0;
    }
    if (lines <= MOST_LINES) {
        clear_to(t, t->first + (t->ends_with_zeros ? end : l));
        if (sum_again(t, l, lines, count) < 0) {
            return -1;
        }
    }
    if (lines == 1) {
        return 0;
    }
    const ptrdiff_t size = lines > MOST_LINES ? MOST_LINES : lines > 8 ? 8 : 1;
    const ptrdiff_t blocks = (lines + size - 1) / size;
    for (ptrdiff_t i = 0; i < blocks; i++) {
        const ptrdiff_t begin = l + (t->ends_with_zeros ? blocks - 1 - i : i) * size;
        const ptrdiff_t stop = begin + size < end ? begin + size : end;
        if (sum_block(t, begin, stop) < 0) {
            return -1;
        }
    }
    return 0;
}

static int is_invalid(const struct triangle_product *t)
{
    for (ptrdiff_t l = 0; l < t->lines; l++) {
        for (ptrdiff_t q = 0; q < t->others; q++) {
            if (is_nan_of_numbers(t, l, q)) {
                return 1;
            }
        }
    }
    return 0;
}

static struct triangle_product product_of(const struct tf_precision *precision,
                                         struct tf_blas_pair x, struct tf_matrix c)
{
    const int axis = x.a.shape == TF_TRIANGULAR ? 0 : 1;
    struct triangle_product t = {.precision = precision, .of = x, .c = c, .axis = axis};
    t.lines = axis ? x.b.columns : x.a.rows;
    t.others = axis ? x.a.rows : x.b.columns;
    t.k = x.a.columns;
    t.words = (t.k + 63) / 64;
    t.first = axis ? x.b.first : x.a.first;
    t.ends_with_zeros = (axis ? x.b.upper : x.a.upper) == axis;
    t.cleared = t.ends_with_zeros ? t.k : 0;
    return t;
}

/* Allocates the memory to compute sums again, except that of products. Returns 0 or -1. */
static int take_rooms(struct triangle_product *t)
{
    const ptrdiff_t item = tf_blas_item_size(t->of.type);
    const struct tf_blas_matrix by_position =
        t->axis ? tf_blas_transposed(t->of.a) : t->of.b;
    t->copy = tf_blas_copy_rows(&by_position, t->of.type, 0, t->k);
    t->gathered = tf_blas_room(t->k, t->others, (size_t)item);
    t->nan = tf_blas_room(2, t->others, sizeof *t->nan);
    t->line_nans = tf_blas_room(1, t->lines, 1);
    t->sums = tf_blas_room(MOST_LINES, t->others, (size_t)item);
    t->bits = tf_blas_room(2 * MAPS * (t->lines > t->others ? t->lines : t->others),
                           t->words, sizeof *t->bits);
    return t->copy && t->gathered && t->nan && t->line_nans && t->sums && t->bits ? 0 : -1;
}

static void free_rooms(const struct triangle_product *t)
{
    tf_room_free(t->copy);
    tf_room_free(t->gathered);
    tf_room_free(t->nan);
    tf_room_free(t->line_nans);
    tf_room_free(t->sums);
    tf_room_free(t->bits);
}

/* Computes doubtful sums again. Returns -1 if memory is short or a signal stopped it;
 * otherwise whether a NaN is left that no NaN caused, which raises FE_INVALID. */
static int mend(struct triangle_product *t)
{
    const ptrdiff_t item = tf_blas_item_size(t->of.type);
    struct tf_greatest greatest = {{{0}}};
    if (t->precision->scaling == TF_SCALED_MATRIX && !t->of.greatest) {
        tf_blas_find_greatest(&t->of.a, t->of.type, greatest.of[0]);
        tf_blas_find_greatest(&t->of.b, t->of.type, greatest.of[1]);
        t->of.greatest = &greatest;
    }
    t->triangle = t->axis ? &t->of.b : &t->of.a;
    t->other = t->axis ? &t->of.a : &t->of.b;
    t->other->data = t->copy;
    t->other->strides[t->axis] = t->others * item;
    t->other->strides[1 - t->axis] = item;
    t->doubtful = t->nan + t->others;
    find_nans(t);
    fill_maps(t);
    return sum_block(t, 0, t->lines) < 0 ? -1 : is_invalid(t);
}

static int holds_nan(struct tf_blas_pair x, struct tf_matrix c)
{
    for (ptrdiff_t i = 0; i < x.a.rows; i++) {
        for (ptrdiff_t j = 0; j < x.b.columns; j++) {
            const char *sum = c.data + i * c.strides[0] + j * c.strides[1];
            if (is_nan(sum, tf_blas_numbers_of(x.type), c.kind)) {
                return 1;
            }
        }
    }
    return 0;
}

int tf_blas_multiply(const struct tf_precision *precision, struct tf_blas_pair x,
                     struct tf_matrix c)
{
    if (x.a.shape != TF_TRIANGULAR && x.b.shape != TF_TRIANGULAR) {
        return tf_blas_multiply_full(precision, x, c);
    }
    struct triangle_product t = product_of(precision, x, c);
    fexcept_t before;
    fegetexceptflag(&before, FE_INVALID);
    const int was_invalid = fetestexcept(FE_INVALID);
    /* In the reserve, allocate the memory of repeated sums even if no sum is NaN: if one
     * block fits, all blocks then fit, whatever their elements are. */
    const int early = tf_in_reserve();
    int failed = (early && take_rooms(&t) < 0) || tf_blas_multiply_full(precision, x, c) < 0;
    if (!failed && holds_nan(x, c)) {
        const int status = !early && take_rooms(&t) < 0 ? -1 : mend(&t);
        failed = status < 0;
        feclearexcept(FE_INVALID); /* zeros of the triangle may have raised it */
        if (was_invalid) {
            fesetexceptflag(&before, FE_INVALID);
        } else if (status > 0 && !precision->silent) {
            feraiseexcept(FE_INVALID);
        }
    }
    free_rooms(&t);
    return failed ? -1 : 0;
}
