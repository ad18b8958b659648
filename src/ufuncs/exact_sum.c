/* Sums and products as if exact, step by step. Each output element has a slot with its
 * float64 result so far (pages.h). The element's item is the rounding of this result. */
#include "ufuncs/exact_sum.h"

#include "formats/casts.h"
#include "formats/fast_codec.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

/* -- results out of range ----------------------------------------------------------- */

static int lacks_zero(int format)
{
    return format != TF_REDUCE_FLOAT32 &&
           tf_format_rows[format]->specials == TF_EXPONENT_ONLY;
}

int tf_sum_begins_with_nan(int format)
{
    return lacks_zero(format);
}

uint64_t tf_first_beyond(int format)
{
    double x = 0x1.FFFFFFp127; /* half an ulp above float32's largest number */
    uint32_t above_tie = 0;
    uint64_t bits;
    if (lacks_zero(format)) {
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

/* Rounds arbitrary results to items. */
static struct tf_rounded round_any(int format, const double *results, void *items,
                                   size_t n, unsigned known)
{
    float numbers[TF_CHUNK];
    struct tf_rounded rounding = {0, 0};
    if (format == TF_REDUCE_FLOAT32) {
        for (size_t i = 0; i < n; i++) {
            numbers[i] = (float)results[i];
        }
        rounding.beyond = tf_isa->formats->canonical_nans(numbers, n) ? TF_NOT_FINITE : 0;
        memcpy(items, numbers, n * sizeof(float));
        return rounding;
    }
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    tf_isa->formats->narrow(results, numbers, n);
    const struct tf_flag_hints suspects = conversions->from_float32(numbers, items, n);
    rounding.beyond = suspects.beyond;
    if (suspects.beyond == TF_NOT_FINITE && tf_isa->formats->canonical_nans(numbers, n)) {
        conversions->from_float32(numbers, items, n);
    }
    rounding.flags = tf_rounding_flags(format, suspects, numbers, items, n, known) &
                     ~(unsigned)TF_OVER;
    return rounding;
}

/* Rounds results to items. Sums of a format's numbers are multiples of its smallest number,
 * so that sums below the normal range are exact, and overflow shows in `beyond`. One pass
 * of sums is enough, unless there is a NaN. */
struct tf_rounded tf_round_results(int format, enum tf_reduction op,
                                   const double *results, void *items, size_t n,
                                   unsigned known)
{
    if (op == TF_SUM && format != TF_REDUCE_FLOAT32) {
        tf_round_fn *const round = tf_isa->formats->conversions[format].round;
        const unsigned beyond = round(results, items, n).beyond;
        if (!beyond || (beyond != TF_NOT_FINITE && !lacks_zero(format))) {
            return (struct tf_rounded){0, beyond};
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

/* Makes elements [at, at + n) of a page begin with the items in `stored`. Elements whose
 * items are still the stored ones keep their values. */
static void begin(const struct tf_partials *partials, struct tf_page *page, size_t at,
                  int format, enum tf_reduction op, const void *stored, size_t n)
{
    const size_t size = tf_summand_size(format);
    const unsigned char *kept = page->items + at * size;
    if (!memchr(page->live + at, 0, n) && !memcmp(kept, stored, n * size)) {
        return;
    }
    const int nan_is_nothing =
        partials->is_reduction && op == TF_SUM && tf_sum_begins_with_nan(format);
    float numbers[TF_CHUNK];
    tf_load_summands(format, stored, numbers, n);
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

/* Rounds elements [at, at + n) into the page's items and returns flags except overflow.
 * `results` are the values of sums, or for products the values times 2^exponent. */
static unsigned store(struct tf_partials *partials, struct tf_page *page, size_t at,
                      int format, enum tf_reduction op, const double *results, size_t n)
{
    const struct tf_rounded rounding =
        tf_round_results(format, op, results, page->items + at * tf_summand_size(format), n, 0);
    page->finite &= rounding.beyond != TF_NOT_FINITE;
    if (rounding.beyond || partials->overflowed) {
        partials->overflowed += tf_isa->ufuncs->mark_beyond(results, tf_first_beyond(format),
                                                    page->overflows + at, n);
    }
    return rounding.flags;
}

/* Does one step for output elements that are neighbors in one page. */
static unsigned reduce_row(int format, enum tf_reduction op,
                           struct tf_partials *partials, struct tf_page *page, size_t at,
                           char *out, ptrdiff_t out_stride, const char *in,
                           ptrdiff_t in_stride, size_t n)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    double before[TF_CHUNK], products[TF_CHUNK];
    const size_t size = tf_summand_size(format);
    double *values = page->values + at;
    begin(partials, page, at, format, op, tf_gather(out, out_stride, size, n, buffer),
          n);
    tf_load_summands(format, tf_gather(in, in_stride, size, n, buffer), numbers, n);
    const int was_finite = page->finite;
    if (!was_finite) {
        memcpy(before, values, n * sizeof *before);
    }
    if (op == TF_SUM) {
        tf_isa->ufuncs->add_wide(numbers, values, n);
    } else {
        tf_isa->ufuncs->times_wide(numbers, values, page->exponents + at, products, n);
    }
    unsigned flags = store(partials, page, at, format, op,
                           op == TF_SUM ? values : products, n);
    if (!page->finite &&
        tf_isa->ufuncs->makes_nan(numbers, was_finite ? NULL : before, values, n)) {
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

int tf_has_nan(const float *numbers, size_t n)
{
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        found |= isnan(numbers[i]) != 0;
    }
    return found;
}

int tf_has_infinity(const float *numbers, size_t n)
{
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        found |= (tf_bits_of(numbers[i]) & TF_MAGNITUDE_BITS) == TF_INF_BITS;
    }
    return found;
}

void tf_multiply_all(double *value, int64_t *exponent, const float *numbers, size_t n)
{
    size_t i = 0;
    tf_normalize(value, exponent);
    for (; i + TF_TOGETHER <= n; i += TF_TOGETHER) {
        for (size_t j = 0; j < TF_TOGETHER; j++) {
            *value *= numbers[i + j];
        }
        tf_normalize(value, exponent);
    }
    for (; i < n; i++) {
        *value *= numbers[i];
    }
    tf_normalize(value, exponent);
}

unsigned tf_reduce_line(int format, enum tf_reduction op, const char *in, ptrdiff_t stride,
                        ptrdiff_t n, double *value, int64_t *exponent)
{
    TF_BUFFER(buffer);
    float numbers[TF_CHUNK];
    const size_t size = tf_summand_size(format);
    unsigned flags = 0;
    int had_nan = isnan(*value);
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        tf_load_summands(format, tf_gather(in + done * stride, stride, size, count, buffer),
               numbers, count);
        if (op == TF_SUM) {
            *value += tf_isa->ufuncs->sum(numbers, count);
        } else {
            tf_multiply_all(value, exponent, numbers, count);
        }
        if (isnan(*value) && !had_nan) {
            had_nan = 1;
            flags |= tf_has_nan(numbers, count) ? 0 : TF_INVALID;
        }
    }
    return flags;
}

/* Adds or multiplies all numbers of one output element: in chunks, in one order. */
static unsigned reduce_all(int format, enum tf_reduction op,
                           struct tf_partials *partials, struct tf_page *page, size_t at,
                           char *out, const char *in, ptrdiff_t stride, ptrdiff_t n)
{
    const size_t size = tf_summand_size(format);
    char item[sizeof(float)];
    memcpy(item, out, size);
    begin(partials, page, at, format, op, item, 1);
    double value = page->values[at];
    int64_t exponent = op == TF_PROD ? page->exponents[at] : 0;
    unsigned flags = tf_reduce_line(format, op, in, stride, n, &value, &exponent);
    page->values[at] = value;
    if (op == TF_PROD) {
        page->exponents[at] = exponent;
        value = tf_product_value(value, exponent);
    }
    flags |= store(partials, page, at, format, op, &value, 1);
    memcpy(out, page->items + at * size, size);
    return flags;
}

/* -- reductions --------------------------------------------------------------------- */

int tf_reduce_into_pages(int format, enum tf_reduction op, struct tf_partials *partials,
                         char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n,
                         unsigned *flags)
{
    const ptrdiff_t itemsize = (ptrdiff_t)tf_summand_size(format);
    /* Negative strides go forward from the other end: an element has one step per call. */
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
