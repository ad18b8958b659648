#include "ufuncs/reduce.h"

#include <math.h>

#include "ufuncs/binary.h"
#include "formats/fast_codec.h"
#include "runtime/fp_environment.h"
#include "ufuncs/pages.h"
#include "ufuncs/segments.h"
#include "runtime/strided.h"

/* -- formats, and float32 as one ---------------------------------------------------- */

static size_t size_of(int format)
{
    return format == TF_REDUCE_FLOAT32 ? sizeof(float) : tf_format_rows[format]->itemsize;
}

static void unpack(int format, const void *items, float *out, size_t n)
{
    if (format == TF_REDUCE_FLOAT32) {
        memcpy(out, items, n * sizeof *out);
    } else {
        tf_isa->conversions[format].to_float32(items, out, n);
    }
}

static int is_power_format(int format)
{
    return format != TF_REDUCE_FLOAT32 && tf_format_rows[format]->specials == TF_EXPONENT_ONLY;
}

int tf_sum_begins_with_nan(int format)
{
    return is_power_format(format);
}

/* float64 bits of the first magnitude that rounds beyond the range; of Inf where that is
 * no overflow but an invalid operation. */
static uint64_t beyond(int format)
{
    double x = 0x1.FFFFFFp127; /* float32's: half a unit above the greatest */
    uint32_t above_tie = 0;
    uint64_t bits;
    if (is_power_format(format)) {
        return UINT64_C(0x7FF) << 52;
    }
    if (format != TF_REDUCE_FLOAT32) {
        const uint32_t single = tf_beyond(*tf_format_rows[format]);
        above_tie = single & 1;
        x = tf_float_of(single - above_tie);
    }
    memcpy(&bits, &x, sizeof bits);
    return bits + above_tie;
}

/* -- rounding ----------------------------------------------------------------------- */

/* What comes of rounding results. */
struct rounding {
    unsigned flags;  /* but for overflow */
    unsigned beyond; /* as of struct tf_flag_hints */
};

/* Whatever the results are; what is known to be raised already need not be found. */
static struct rounding round_any(int format, const double *results, void *items,
                                 size_t n, unsigned known)
{
    float numbers[TF_CHUNK];
    struct rounding rounding = {0, 0};
    if (format == TF_REDUCE_FLOAT32) {
        for (size_t i = 0; i < n; i++) {
            numbers[i] = (float)results[i];
        }
        rounding.beyond = tf_isa->canonical_nans(numbers, n) ? TF_NOT_FINITE : 0;
        memcpy(items, numbers, n * sizeof(float));
        return rounding;
    }
    const struct tf_conversions *conversions = &tf_isa->conversions[format];
    tf_isa->narrow(results, numbers, n);
    const struct tf_flag_hints suspects = conversions->from_float32(numbers, items, n);
    rounding.beyond = suspects.beyond;
    if (suspects.beyond == TF_NOT_FINITE && tf_isa->canonical_nans(numbers, n)) {
        conversions->from_float32(numbers, items, n);
    }
    if (suspects.beyond || (suspects.tiny && !(known & TF_UNDER))) {
        rounding.flags = conversions->flags(numbers, items, n) & ~(unsigned)TF_OVER;
    }
    return rounding;
}

/* Results to items, rounded once. Sums of a format's numbers are multiples of its least,
 * so that those below the normal ones are exact, and overflow says `beyond`: one pass is
 * enough, unless there is a NaN. */
static struct rounding finish(int format, enum tf_reduction op, const double *results,
                              void *items, size_t n, unsigned known)
{
    if (op == TF_SUM && format != TF_REDUCE_FLOAT32) {
        const unsigned beyond = tf_isa->conversions[format].round(results, items, n).beyond;
        if (!beyond || (beyond != TF_NOT_FINITE && !is_power_format(format))) {
            return (struct rounding){0, beyond};
        }
    }
    return round_any(format, results, items, n, known);
}

/* -- rows of results ---------------------------------------------------------------- */

static uint32_t item_at(const void *items, size_t itemsize, size_t i)
{
    uint32_t item = 0;
    memcpy(&item, (const char *)items + i * itemsize, itemsize);
    return item;
}

/* Has elements [at, at + n) of a page begin with the items stored, but for those whose
 * items are still the ones that were stored for them. */
static void begin(const struct tf_partials *partials, struct tf_page *page, size_t at,
                  int format, enum tf_reduction op, const void *stored, size_t n)
{
    const size_t size = size_of(format);
    const unsigned char *kept = page->items + at * size;
    if (!memchr(page->live + at, 0, n) && !memcmp(kept, stored, n * size)) {
        return;
    }
    const int nan_is_nothing =
        partials->is_reduction && op == TF_SUM && tf_sum_begins_with_nan(format);
    float numbers[TF_CHUNK];
    unpack(format, stored, numbers, n);
    for (size_t i = 0; i < n; i++) {
        if (page->live[at + i] && item_at(kept, size, i) == item_at(stored, size, i)) {
            continue;
        }
        const int nothing = nan_is_nothing && isnan(numbers[i]);
        page->values[at + i] = nothing ? 0 : numbers[i];
        page->finite &= nothing || isfinite(numbers[i]);
        page->live[at + i] = 1;
        if (op == TF_PROD) {
            page->exponents[at + i] = 0;
        }
    }
}

/* Rounds elements [at, at + n) into the page's items. `results` are their values, or
 * what products are with their exponents. */
static unsigned store(struct tf_partials *partials, struct tf_page *page, size_t at,
                      int format, enum tf_reduction op, const double *results, size_t n)
{
    const struct rounding rounding =
        finish(format, op, results, page->items + at * size_of(format), n, 0);
    page->finite &= rounding.beyond != TF_NOT_FINITE;
    if (rounding.beyond || partials->overflowed) {
        partials->overflowed += tf_isa->mark_beyond(results, beyond(format),
                                                    page->overflows + at, n);
    }
    return rounding.flags;
}

/* One step for output elements that lie side by side in one page. */
static unsigned reduce_row(int format, enum tf_reduction op,
                           struct tf_partials *partials, struct tf_page *page, size_t at,
                           char *out, ptrdiff_t out_stride, const char *in,
                           ptrdiff_t in_stride, size_t n)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    double before[TF_CHUNK], products[TF_CHUNK];
    const size_t size = size_of(format);
    double *values = page->values + at;
    begin(partials, page, at, format, op, tf_gather(out, out_stride, size, n, buffer),
          n);
    unpack(format, tf_gather(in, in_stride, size, n, buffer), numbers, n);
    const int was_finite = page->finite;
    if (!was_finite) {
        memcpy(before, values, n * sizeof *before);
    }
    if (op == TF_SUM) {
        tf_isa->add_wide(numbers, values, n);
    } else {
        tf_isa->times_wide(numbers, values, page->exponents + at, products, n);
    }
    unsigned flags = store(partials, page, at, format, op,
                           op == TF_SUM ? values : products, n);
    if (!page->finite &&
        tf_isa->makes_nan(numbers, was_finite ? NULL : before, values, n)) {
        flags |= TF_INVALID;
    }
    if (out_stride == (ptrdiff_t)size) {
        memcpy(out, page->items + at * size, n * size);
    } else {
        tf_scatter(page->items + at * size, out, out_stride, size, n);
    }
    return flags;
}

/* -- one result --------------------------------------------------------------------- */

/* Beyond 2^+-1000 every format over- or underflows alike. */
static double number_of(double value, int64_t e)
{
    return e == 0 ? value
                  : ldexp(value, e > 1000 ? 1000 : e < -1000 ? -1000 : (int)e);
}

/* Some numbers of magnitudes from 2^-149 to 2^128 do not lead out of float64's range,
 * where a power of two changes no other bit. */
enum { TOGETHER = 6 };

static void multiply_all(double *value, int64_t *exponent, const float *numbers,
                         size_t n)
{
    size_t i = 0;
    tf_normalise(value, exponent);
    for (; i + TOGETHER <= n; i += TOGETHER) {
        for (size_t j = 0; j < TOGETHER; j++) {
            *value *= numbers[i + j];
        }
        tf_normalise(value, exponent);
    }
    for (; i < n; i++) {
        *value *= numbers[i];
    }
    tf_normalise(value, exponent);
}

/* The whole of one output element's share: sums in blocks, in one order. */
static unsigned reduce_all(int format, enum tf_reduction op,
                           struct tf_partials *partials, struct tf_page *page, size_t at,
                           char *out, const char *in, ptrdiff_t stride, ptrdiff_t n)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    const size_t size = size_of(format);
    unsigned flags = 0;
    memcpy(buffer, out, size);
    begin(partials, page, at, format, op, buffer, 1);
    double value = page->values[at];
    int64_t exponent = op == TF_PROD ? page->exponents[at] : 0;
    int had_nan = isnan(value);
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = (size_t)(n - done < TF_CHUNK ? n - done : TF_CHUNK);
        unpack(format, tf_gather(in + done * stride, stride, size, count, buffer),
               numbers, count);
        if (op == TF_SUM) {
            value += tf_isa->sum(numbers, count);
        } else {
            multiply_all(&value, &exponent, numbers, count);
        }
        if (isnan(value) && !had_nan) {
            had_nan = 1;
            int operand_is_nan = 0;
            for (size_t i = 0; i < count; i++) {
                operand_is_nan |= isnan(numbers[i]);
            }
            flags |= operand_is_nan ? 0 : TF_INVALID;
        }
    }
    page->values[at] = value;
    if (op == TF_PROD) {
        page->exponents[at] = exponent;
        value = number_of(value, exponent);
    }
    flags |= store(partials, page, at, format, op, &value, 1);
    memcpy(out, page->items + at * size, size);
    return flags;
}

/* -- reductions --------------------------------------------------------------------- */

static int reduce_into_pages(int format, enum tf_reduction op,
                             struct tf_partials *partials, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t n, unsigned *flags)
{
    const ptrdiff_t itemsize = (ptrdiff_t)size_of(format);
    /* Backwards is forwards from the other end: each element has one step here. */
    const ptrdiff_t last = strides[0] < 0 ? n - 1 : 0, sign = strides[0] < 0 ? -1 : 1;
    const ptrdiff_t out_stride = sign * strides[0], in_stride = sign * strides[1];
    char *out = data[0] + last * strides[0];
    const char *in = data[1] + last * strides[1];
    if (!partials->origin) {
        partials->origin = out;
        partials->page_bits = out_stride == 0         ? TF_PAGE_FEW
                              : n <= 1 << TF_PAGE_SOME ? TF_PAGE_SOME
                                                       : TF_PAGE_MOST;
    }
    const int page_bits = partials->page_bits;
    const int item_bits = itemsize == 4 ? 2 : itemsize == 2 ? 1 : 0;
    for (ptrdiff_t done = 0, run; done < n; done += run) {
        /* All sizes are powers of two; shifts of negative distances round down. */
        const ptrdiff_t distance = out - partials->origin;
        const ptrdiff_t number = distance >> page_bits >> item_bits;
        const ptrdiff_t at =
            (distance >> item_bits) & (((ptrdiff_t)1 << page_bits) - 1);
        struct tf_page *page = tf_find_page(partials, number, op);
        if (!page) {
            return -1;
        }
        if (out_stride == 0) {
            *flags |= reduce_all(format, op, partials, page, (size_t)at, out, in,
                                 in_stride, n);
            return 0;
        }
        run = out_stride == itemsize ? ((ptrdiff_t)1 << page_bits) - at : 1;
        run = run < n - done ? run : n - done;
        *flags |= reduce_row(format, op, partials, page, (size_t)at, out, out_stride,
                             in, in_stride, (size_t)run);
        out += run * out_stride;
        in += run * in_stride;
    }
    return 0;
}

/* -- accumulations ------------------------------------------------------------------ */

/* Each a sum or a product of the one before it; the last one is left. */
static void run_sum(const float *numbers, size_t n, double *value, double *results)
{
    for (size_t i = 0; i < n; i++) {
        *value += (double)numbers[i];
        results[i] = *value;
    }
}

static void run_product(const float *numbers, size_t n, double *value,
                        int64_t *exponent, double *results)
{
    double values[TF_CHUNK];
    int64_t exponents[TF_CHUNK];
    float ones[TF_CHUNK];
    for (size_t i = 0; i < n;) {
        const size_t end = n - i < TOGETHER ? n : i + TOGETHER;
        const int64_t here = *exponent;
        double product = *value;
        for (; i < end; i++) {
            product *= (double)numbers[i];
            values[i] = product;
            exponents[i] = here;
            ones[i] = 1;
        }
        *value = product;
        tf_normalise(value, exponent);
    }
    tf_isa->times_wide(ones, values, exponents, results, n);
}

/* Invalid, if the first of some results that are NaN follows from numbers. */
static unsigned becomes_nan(double before, const float *numbers, const double *results,
                            size_t n)
{
    size_t i = 0;
    if (isnan(before) || !isnan(results[n - 1])) {
        return 0;
    }
    while (!isnan(results[i])) {
        i++;
    }
    return isnan(numbers[i]) ? 0 : TF_INVALID;
}

/* A running result in float64, each step of it rounded to the output. */
static unsigned accumulate(int format, enum tf_reduction op, char *const data[3],
                           const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    float numbers[TF_CHUNK], first;
    double results[TF_CHUNK];
    uint8_t marks[TF_CHUNK];
    unsigned flags = 0;
    const size_t size = size_of(format);
    memcpy(in_buffer, data[0], size);
    unpack(format, in_buffer, &first, 1);
    double value = first;
    int64_t exponent = 0;
    const char *in = data[1];
    char *out = data[2];
    if (op == TF_PROD) {
        tf_normalise(&value, &exponent);
    }
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = (size_t)(n - done < TF_CHUNK ? n - done : TF_CHUNK);
        const double before = value;
        unpack(format, tf_gather(in, strides[1], size, count, in_buffer), numbers,
               count);
        if (op == TF_SUM) {
            run_sum(numbers, count, &value, results);
        } else {
            run_product(numbers, count, &value, &exponent, results);
        }
        flags |= becomes_nan(before, numbers, results, count);
        void *written = tf_target(out, strides[2], size, out_buffer);
        const struct rounding rounding =
            finish(format, op, results, written, count, flags);
        flags |= rounding.flags;
        if (rounding.beyond && !(flags & TF_OVER)) {
            memset(marks, 0, count);
            flags |= tf_isa->mark_beyond(results, beyond(format), marks, count)
                         ? TF_OVER
                         : 0;
        }
        tf_scatter(written, out, strides[2], size, count);
        in += (ptrdiff_t)count * strides[1];
        out += (ptrdiff_t)count * strides[2];
    }
    return flags;
}

/* -- a ufunc's call ----------------------------------------------------------------- */

/* float32's own operation, element by element. */
static void elementwise_single(enum tf_binary_op op, char *const data[3],
                               const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    TF_BUFFER(out_buffer);
    const size_t size = sizeof(float);
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = (size_t)(n - done < TF_CHUNK ? n - done : TF_CHUNK);
        const float *a =
            tf_gather(data[0] + done * strides[0], strides[0], size, count, a_buffer);
        const float *b =
            tf_gather(data[1] + done * strides[1], strides[1], size, count, b_buffer);
        char *out = data[2] + done * strides[2];
        float *r = tf_target(out, strides[2], size, out_buffer);
        tf_isa->binary_f32[op](a, b, r, count);
        tf_isa->canonical_nans(r, count);
        tf_scatter(r, out, strides[2], size, count);
    }
}

static int is_constant(const char *data, ptrdiff_t stride, size_t itemsize, ptrdiff_t n)
{
    for (ptrdiff_t i = 1; i < n; i++) {
        if (memcmp(data, data + i * stride, itemsize) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Whether a call that writes over its first operand is an in-place operation.
 * If NumPy did not ask for an initial value, a reduction's first row can only
 * hold the caller's `initial`, the same in all elements, or (with
 * initial=None) the array's first row; short rows are held in slots in any
 * case, which is right for both. */
static int is_in_place(struct tf_partials *partials, int format,
                       char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    enum { SHORT = 1 << 16 };
    if (!partials->origin && !partials->is_reduction && strides[0] != 0 && n > SHORT) {
        partials->is_elementwise =
            !is_constant(data[0], strides[0], size_of(format), n);
    }
    return partials->is_elementwise;
}

int tf_reduce(int format, enum tf_reduction op, struct tf_partials *partials,
              char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    const enum tf_binary_op elementwise = op == TF_SUM ? TF_ADD : TF_MULTIPLY;
    /* ufunc.at: one element a call, whose place may be a buffer's. */
    const int at = partials && !partials->is_reduction && n == 1 && strides[0] == 0 &&
                   strides[1] == 0;
    const int in_place = data[0] == data[2] && strides[0] == strides[2] && !at;
    const int accumulates =
        data[2] == data[0] + strides[0] && strides[0] == strides[2];
    if (in_place && !is_in_place(partials, format, data, strides, n)) {
        struct tf_fp saved = tf_fp_begin();
        unsigned flags = 0;
        const int failed = reduce_into_pages(format, op, partials, data, strides, n,
                                             &flags);
        /* Overflow is a matter of the last step alone. */
        if (partials->raised & TF_OVER) {
            tf_fp_forget(&saved, TF_OVER);
        }
        partials->raised = partials->overflowed > 0 ? TF_OVER : 0;
        tf_fp_end(saved, flags | partials->raised);
        return failed;
    }
    if (accumulates && !in_place && !at) {
        const struct tf_fp saved = tf_fp_begin();
        tf_fp_end(saved, accumulate(format, op, data, strides, n));
    } else if (format == TF_REDUCE_FLOAT32) {
        elementwise_single(elementwise, data, strides, n);
    } else {
        tf_binary(format, elementwise, data, strides, n);
    }
    return 0;
}

/* -- all rows at once --------------------------------------------------------------- */

int tf_sum_rows(int format, const char *in, char *out, ptrdiff_t outer, ptrdiff_t rows,
                ptrdiff_t columns)
{
    const ptrdiff_t size = (ptrdiff_t)size_of(format);
    const struct tf_fp saved = tf_fp_begin();
    int done = 1;
    for (ptrdiff_t i = 0; done && i < outer; i++, in += rows * columns * size) {
        for (ptrdiff_t j = 0, run; done && j < columns; j += run, out += run * size) {
            double sums[TF_CHUNK] = {0};
            float numbers[TF_CHUNK];
            run = columns - j < TF_CHUNK ? columns - j : TF_CHUNK;
            for (ptrdiff_t row = 0; row < rows; row++) {
                const char *items = in + (row * columns + j) * size;
                unpack(format, items, numbers, (size_t)run);
                tf_isa->add_wide(numbers, sums, (size_t)run);
            }
            const struct rounding rounding =
                finish(format, TF_SUM, sums, out, (size_t)run, 0);
            done = !rounding.beyond && !rounding.flags;
        }
    }
    tf_fp_end(saved, 0);
    return done;
}

/* -- segments ----------------------------------------------------------------------- */

/* As reduce_all of the first number and the others. */
static inline double reduce_numbers(enum tf_reduction op, const float *numbers, size_t n)
{
    double value = numbers[0];
    if (op == TF_SUM && n > TOGETHER) {
        return value + tf_isa->sum(numbers + 1, n - 1);
    }
    if (op == TF_SUM) { /* as tf_isa->sum adds few, without a call */
        double rest = -0.0;
        for (size_t i = 1; i < n; i++) {
            rest += numbers[i];
        }
        return value + rest;
    }
    if (n > TOGETHER) {
        int64_t exponent = 0;
        multiply_all(&value, &exponent, numbers + 1, n - 1);
        return number_of(value, exponent);
    }
    for (size_t i = 1; i < n; i++) {
        value *= numbers[i];
    }
    return value;
}

/* Of some that follow each other within a block. 0 if a result is Inf or NaN, of which
 * only the operands tell what it raises. */
static int reduce_together(int format, enum tf_reduction op,
                           const struct tf_segments *segments, ptrdiff_t first,
                           size_t count, char *out, unsigned *flags)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    double results[TF_CHUNK];
    uint8_t marks[TF_CHUNK];
    const size_t size = size_of(format);
    const ptrdiff_t start = segments->starts[first];
    const char *in = segments->items + start * segments->stride;
    const ptrdiff_t end = tf_segment_end(segments, first + (ptrdiff_t)count - 1);
    const size_t n = (size_t)(end - start);
    const char *items = tf_gather(in, segments->stride, size, n, buffer);
    unpack(format, items, numbers, n);
    int has_single = 0;
    for (size_t i = 0, at = 0, next; i < count; i++, at = next) {
        next = (size_t)(tf_segment_end(segments, first + (ptrdiff_t)i) - start);
        results[i] = reduce_numbers(op, numbers + at, next - at);
        has_single |= next - at == 1;
    }
    const struct rounding rounding = finish(format, op, results, out, count, 0);
    if (rounding.beyond == TF_NOT_FINITE) {
        return 0;
    }
    *flags |= rounding.flags;
    if (rounding.beyond) {
        memset(marks, 0, count);
        *flags |= tf_isa->mark_beyond(results, beyond(format), marks, count) ? TF_OVER : 0;
    }
    for (size_t i = 0, at = 0, next; has_single && i < count; i++, at = next) {
        next = (size_t)(tf_segment_end(segments, first + (ptrdiff_t)i) - start);
        if (next - at == 1) { /* copied as it is */
            memcpy(out + i * size, items + at * size, size);
        }
    }
    return 1;
}

int tf_reduce_segments(int format, enum tf_reduction op,
                       const struct tf_segments *segments, char *out, unsigned *flags)
{
    const ptrdiff_t size = (ptrdiff_t)size_of(format);
    const struct tf_fp saved = tf_fp_begin();
    struct tf_partials *partials = tf_partials_new(0);
    int failed = partials ? 0 : -1;
    for (ptrdiff_t i = 0; !failed && i < segments->count;) {
        const size_t together = tf_segments_together(segments, i);
        const ptrdiff_t next = i + (together ? (ptrdiff_t)together : 1);
        if (together && reduce_together(format, op, segments, i, together,
                                        out + i * size, flags)) {
            i = next;
        }
        for (; !failed && i < next; i++) {
            const char *in = segments->items + segments->starts[i] * segments->stride;
            const ptrdiff_t n = tf_segment_end(segments, i) - segments->starts[i];
            char *const data[3] = {out + i * size, (char *)in + segments->stride,
                                   out + i * size};
            const ptrdiff_t strides[3] = {0, segments->stride, 0};
            memcpy(data[0], in, (size_t)size);
            if (n > 1) {
                failed = reduce_into_pages(format, op, partials, data, strides, n - 1,
                                           flags);
            }
        }
    }
    if (partials) {
        *flags |= partials->overflowed > 0 ? TF_OVER : 0;
        tf_partials_free(partials);
    }
    tf_fp_end(saved, 0);
    return failed;
}
