#include "reduce.h"

#include <math.h>
#include <stdlib.h>

#include "binary.h"
#include "fpstatus.h"
#include "strided.h"

/* -- slots -------------------------------------------------------------------------- */

enum { PAGE = 128 };

/* A partial result is value * 2^exponent; sums leave the exponent at 0. */
struct slot {
    double value;
    int64_t exponent;
};

struct page {
    struct slot slots[PAGE];
    uint32_t written[PAGE];  /* the item last stored for a slot */
    uint8_t live[PAGE];      /* a slot counts while its item is still there */
    uint8_t overflows[PAGE]; /* the item stored was beyond the range */
};

struct tf_partials {
    const char *origin;
    struct page **pages;
    ptrdiff_t first, count; /* page numbers of `pages` */
    ptrdiff_t overflowed;   /* slots whose last result was beyond the range */
    unsigned raised;
    uint8_t is_reduction;
    uint8_t is_elementwise;
};

struct tf_partials *tf_partials_new(int is_reduction)
{
    struct tf_partials *partials = calloc(1, sizeof *partials);
    if (partials) {
        partials->is_reduction = (uint8_t)is_reduction;
    }
    return partials;
}

void tf_partials_free(struct tf_partials *partials)
{
    for (ptrdiff_t i = 0; i < partials->count; i++) {
        free(partials->pages[i]);
    }
    free(partials->pages);
    free(partials);
}

static ptrdiff_t floor_divide(ptrdiff_t a, ptrdiff_t b)
{
    return a / b - (a % b < 0);
}

static struct page *find_page(struct tf_partials *partials, ptrdiff_t number)
{
    if (partials->count == 0) {
        partials->first = number;
    }
    const ptrdiff_t end = partials->first + partials->count;
    if (number < partials->first || number >= end) {
        /* Twice the room on the side where it lacks. */
        const ptrdiff_t slack = partials->count;
        const ptrdiff_t first =
            number < partials->first ? number - slack : partials->first;
        const ptrdiff_t last = number >= end ? number + slack : end - 1;
        struct page **pages = calloc((size_t)(last - first + 1), sizeof *pages);
        if (!pages) {
            return NULL;
        }
        if (partials->count) {
            memcpy(pages + (partials->first - first), partials->pages,
                   (size_t)partials->count * sizeof *pages);
        }
        free(partials->pages);
        partials->pages = pages;
        partials->first = first;
        partials->count = last - first + 1;
    }
    struct page **place = &partials->pages[number - partials->first];
    if (!*place) {
        *place = calloc(1, sizeof **place);
    }
    return *place;
}

/* -- steps ------------------------------------------------------------------------------ */

/* The significand back to [1, 2), so that no product leaves float64's range. */
static struct slot times(struct slot slot, double x)
{
    slot.value *= x;
    uint64_t bits;
    memcpy(&bits, &slot.value, sizeof bits);
    const int field = (int)(bits >> 52 & 0x7FF);
    if (field != 0 && field != 0x7FF) {
        slot.exponent += field - 1023;
        bits = (bits & ~(UINT64_C(0x7FF) << 52)) | UINT64_C(1023) << 52;
        memcpy(&slot.value, &bits, sizeof bits);
    }
    return slot;
}

/* Beyond 2^+-1000 every format over- or underflows alike. */
static double slot_value(struct slot slot)
{
    const int64_t e = slot.exponent;
    return e == 0 ? slot.value
                  : ldexp(slot.value, e > 1000 ? 1000 : e < -1000 ? -1000 : (int)e);
}

static struct slot step(enum tf_reduction op, struct slot slot, double x)
{
    if (op == TF_PROD) {
        return times(slot, x);
    }
    slot.value += x;
    return slot;
}

static size_t size_of(int format)
{
    return format == TF_SINGLE ? sizeof(float) : tf_format_rows[format]->itemsize;
}

static void unpack(int format, const void *items, float *out, size_t n)
{
    if (format == TF_SINGLE) {
        memcpy(out, items, n * sizeof *out);
    } else {
        tf_isa->formats[format].unpack(items, out, n);
    }
}

/* Rounds results once. overflows[i] tells which lie beyond the range. */
static unsigned finish(int format, const double *results, void *items,
                       uint8_t *overflows, size_t n)
{
    float numbers[TF_BLOCK];
    unsigned flags = 0;
    memset(overflows, 0, n);
    if (format == TF_SINGLE) {
        for (size_t i = 0; i < n; i++) {
            numbers[i] = (float)results[i];
            overflows[i] = isinf(numbers[i]) && !isinf(results[i]);
        }
        tf_isa->canonical_nans(numbers, n);
        memcpy(items, numbers, n * sizeof(float));
        return 0;
    }
    const struct tf_conversions *conversions = &tf_isa->formats[format];
    tf_isa->narrow(results, numbers, n);
    const struct tf_suspects suspects = conversions->suspect(numbers, n);
    if (suspects.beyond) {
        tf_isa->canonical_nans(numbers, n);
    }
    conversions->pack(numbers, items, n);
    if (suspects.beyond || suspects.tiny) {
        const struct tf_format f = *tf_format_rows[format];
        for (size_t i = 0; i < n; i++) {
            uint64_t bits;
            unsigned raised = 0;
            memcpy(&bits, &results[i], sizeof bits);
            tf_encode(f, tf_value_from_double_bits(bits), TF_TIES_TO_EVEN,
                      TF_OVERFLOW_IEEE, 0, &raised);
            overflows[i] = (raised & TF_OVER) && !isinf(results[i]);
            flags |= raised & ~(unsigned)TF_OVER;
        }
    }
    return flags;
}

static uint32_t item_at(const void *items, size_t itemsize, size_t i)
{
    uint32_t item = 0;
    memcpy(&item, (const char *)items + i * itemsize, itemsize);
    return item;
}

int tf_sum_begins_with_nan(int format)
{
    return format != TF_SINGLE && tf_format_rows[format]->specials == TF_POWERS;
}

/* Slots [at, at + n) of a page as they stand: those live, or the stored item. */
static void read_slots(const struct tf_partials *partials, const struct page *page,
                       size_t at, int format, enum tf_reduction op, const void *items,
                       struct slot *slots, size_t n)
{
    const int nan_is_nothing =
        partials->is_reduction && op == TF_SUM && tf_sum_begins_with_nan(format);
    float stored[PAGE];
    unpack(format, items, stored, n);
    for (size_t i = 0; i < n; i++) {
        const int live = page->live[at + i] &&
                         page->written[at + i] == item_at(items, size_of(format), i);
        const int nothing = nan_is_nothing && isnan(stored[i]);
        const struct slot fresh = {nothing ? 0 : stored[i], 0};
        slots[i] = live ? page->slots[at + i] : fresh;
    }
}

/* Rounds the slots into items and remembers both. */
static unsigned write_slots(struct tf_partials *partials, struct page *page, size_t at,
                            int format, const struct slot *slots, void *items,
                            size_t n)
{
    double results[PAGE];
    uint8_t overflows[PAGE];
    for (size_t i = 0; i < n; i++) {
        results[i] = slot_value(slots[i]);
    }
    const unsigned flags = finish(format, results, items, overflows, n);
    for (size_t i = 0; i < n; i++) {
        partials->overflowed += overflows[i] - page->overflows[at + i];
        page->overflows[at + i] = overflows[i];
        page->slots[at + i] = slots[i];
        page->written[at + i] = item_at(items, size_of(format), i);
        page->live[at + i] = 1;
    }
    return flags;
}

/* -- reductions -------------------------------------------------------------------------- */

/* The whole of one output element's share: sums in blocks, in one order. */
static struct slot reduce_all(int format, enum tf_reduction op, struct slot slot,
                              const char *data, ptrdiff_t stride, ptrdiff_t n,
                              unsigned *flags)
{
    TF_BUFFER(buffer);
    float numbers[TF_BLOCK];
    const size_t itemsize = size_of(format);
    int had_nan = isnan(slot.value);
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        const void *items =
            tf_gather(data + done * stride, stride, itemsize, count, buffer);
        unpack(format, items, numbers, count);
        if (op == TF_SUM) {
            slot.value += tf_isa->sum(numbers, count);
        } else {
            for (size_t i = 0; i < count; i++) {
                slot = times(slot, numbers[i]);
            }
        }
        if (isnan(slot.value) && !had_nan) {
            had_nan = 1;
            int operand_is_nan = 0;
            for (size_t i = 0; i < count; i++) {
                operand_is_nan |= isnan(numbers[i]);
            }
            *flags |= operand_is_nan ? 0 : TF_INVALID;
        }
    }
    return slot;
}

/* One step for a run of output elements that lie side by side in one page. */
static unsigned reduce_run(int format, enum tf_reduction op,
                           struct tf_partials *partials, struct page *page, size_t at,
                           char *out, ptrdiff_t out_stride, const char *in,
                           ptrdiff_t in_stride, size_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    float numbers[PAGE];
    struct slot slots[PAGE];
    unsigned flags = 0;
    const void *items = tf_gather(in, in_stride, size_of(format), n,
                                  in_buffer);
    unpack(format, items, numbers, n);
    const void *stored = tf_gather(out, out_stride, size_of(format), n, out_buffer);
    read_slots(partials, page, at, format, op, stored, slots, n);
    for (size_t i = 0; i < n; i++) {
        const int nan = isnan(slots[i].value) || isnan(numbers[i]);
        slots[i] = step(op, slots[i], numbers[i]);
        flags |= isnan(slots[i].value) && !nan ? TF_INVALID : 0;
    }
    void *results = tf_target(out, out_stride, size_of(format), out_buffer);
    flags |= write_slots(partials, page, at, format, slots, results, n);
    tf_scatter(results, out, out_stride, size_of(format), n);
    return flags;
}

static int reduce_into_slots(int format, enum tf_reduction op,
                             struct tf_partials *partials, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t n, unsigned *flags)
{
    if (!partials->origin) {
        partials->origin = data[0];
    }
    const ptrdiff_t itemsize = (ptrdiff_t)size_of(format);
    for (ptrdiff_t done = 0; done < n;) {
        char *out = data[0] + done * strides[0];
        const char *in = data[1] + done * strides[1];
        const ptrdiff_t index = floor_divide(out - partials->origin, itemsize);
        const ptrdiff_t number = floor_divide(index, PAGE);
        const size_t at = (size_t)(index - number * PAGE);
        struct page *page = find_page(partials, number);
        if (!page) {
            return -1;
        }
        if (strides[0] == 0) {
            struct slot slot;
            TF_BUFFER(buffer);
            memcpy(buffer, out, size_of(format));
            read_slots(partials, page, at, format, op, buffer, &slot, 1);
            slot = reduce_all(format, op, slot, in, strides[1], n, flags);
            *flags |= write_slots(partials, page, at, format, &slot, buffer, 1);
            memcpy(out, buffer, size_of(format));
            return 0;
        }
        ptrdiff_t run = strides[0] == itemsize ? PAGE - (ptrdiff_t)at : 1;
        run = run < n - done ? run : n - done;
        *flags |= reduce_run(format, op, partials, page, at, out, strides[0], in,
                             strides[1], (size_t)run);
        done += run;
    }
    return 0;
}

/* A running result in float64, each step of it rounded to the output. */
static unsigned accumulate(int format, enum tf_reduction op,
                           char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    float numbers[TF_BLOCK], first;
    double results[TF_BLOCK];
    uint8_t overflows[TF_BLOCK];
    unsigned flags = 0;
    memcpy(in_buffer, data[0], size_of(format));
    unpack(format, in_buffer, &first, 1);
    struct slot slot = {first, 0};
    const char *in = data[1];
    char *out = data[2];
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
        const void *items = tf_gather(in, strides[1], size_of(format),
                                      count, in_buffer);
        unpack(format, items, numbers, count);
        for (size_t i = 0; i < count; i++) {
            const int nan = isnan(slot.value) || isnan(numbers[i]);
            slot = step(op, slot, numbers[i]);
            flags |= isnan(slot.value) && !nan ? TF_INVALID : 0;
            results[i] = slot_value(slot);
        }
        void *written = tf_target(out, strides[2], size_of(format), out_buffer);
        flags |= finish(format, results, written, overflows, count);
        for (size_t i = 0; i < count; i++) {
            flags |= overflows[i] ? TF_OVER : 0;
        }
        tf_scatter(written, out, strides[2], size_of(format), count);
        in += (ptrdiff_t)count * strides[1];
        out += (ptrdiff_t)count * strides[2];
    }
    return flags;
}

/* float32's own operation, element by element. */
static void elementwise_single(enum tf_binary_op op, char *const data[3],
                               const ptrdiff_t strides[3], ptrdiff_t n)
{
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    TF_BUFFER(out_buffer);
    const size_t size = sizeof(float);
    for (ptrdiff_t done = 0; done < n; done += TF_BLOCK) {
        const size_t count = (size_t)(n - done < TF_BLOCK ? n - done : TF_BLOCK);
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
        const int failed = reduce_into_slots(format, op, partials, data, strides, n,
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
    } else if (format == TF_SINGLE) {
        elementwise_single(elementwise, data, strides, n);
    } else {
        tf_binary(format, elementwise, data, strides, n);
    }
    return 0;
}
