/* Casts by one load and one store per kind, with float32 as the exchange type. A load
 * from a wider kind rounds to odd. The formats have at most 11 significant bits, and
 * float32's subnormal numbers reach at least 13 bits below those of a format. So the
 * second rounding gives the result of a single rounding of the source. */
#include "formats/casts.h"

#include <stdatomic.h>
#include <string.h>

#include "formats/byte_casts.h"
#include "formats/byte_tables.h"
#include "formats/scalar_ops.h"
#include "runtime/asserts.h"
#include "runtime/fp_environment.h"
#include "runtime/streaming.h"
#include "formats/kernels.h"
#include "runtime/strided.h"

static const uint8_t sizes[TF_KIND_COUNT] = {
#define ROW(name, itemsize, ...) [tf_##name##_index] = itemsize,
    TF_FORMATS(ROW)
#undef ROW
    [TF_FLOAT16] = 2, [TF_FLOAT32] = 4, [TF_FLOAT64] = 8,
    [TF_LONGDOUBLE] = sizeof(long double),
    [TF_BOOL] = 1,    [TF_INT8] = 1,    [TF_INT16] = 2,
    [TF_INT32] = 4,   [TF_INT64] = 8,   [TF_UINT8] = 1,
    [TF_UINT16] = 2,  [TF_UINT32] = 4,  [TF_UINT64] = 8,
};

size_t tf_kind_size(int kind)
{
    TF_ASSERT(kind >= 0 && kind < TF_KIND_COUNT);
    return sizes[kind];
}

unsigned tf_rounding_flags(int format, struct tf_flag_hints hints, const float *in,
                           const void *items, size_t n, unsigned known)
{
    const int may_underflow = hints.tiny && !(known & TF_UNDER);
    return hints.raised | (may_underflow ? tf_isa->formats->conversions[format].underflow(
                                               in, items, n)
                                         : 0);
}

/* Flags are sticky, so underflow is not looked for if earlier chunks raised it. */
static unsigned store_format(int format, const float *in, void *items, size_t n,
                             unsigned flags)
{
    TF_ASSERT(format >= 0 && format <= TF_FLOAT16);
    const struct tf_flag_hints hints =
        tf_isa->formats->conversions[format].from_float32(in, items, n);
    return tf_rounding_flags(format, hints, in, items, n, flags);
}

/* Stores n real parts, each with an imaginary part of zero. */
static void scatter_complex(const void *parts, char *out, ptrdiff_t stride, size_t size,
                            size_t n)
{
    static const char zero[sizeof(long double)];
    if (stride == 2 * (ptrdiff_t)size && size < sizeof(long double)) {
        tf_isa->copies->pair_with_zeros(size, parts, out, n);
    } else {
        tf_copy(size, out, stride, parts, (ptrdiff_t)size, n);
        tf_copy(size, out + size, stride, zero, 0, n);
    }
}

/* -- exact casts, which need no rounding ------------------------------------------- */

/* Converts items of one byte to bfloat16, which holds all their numbers. */
static void bf16_of_bytes(int format, const uint8_t *in, uint16_t *out, size_t n)
{
    if (tf_isa->formats->bf16_of_bytes) {
        tf_isa->formats->bf16_of_bytes(&tf_byte_tables[format], in, out, n);
        return;
    }
    float numbers[TF_CHUNK];
    tf_isa->formats->conversions[format].to_float32(in, numbers, n);
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint16_t)(tf_bits_of(numbers[i]) >> 16);
    }
}

/* Stores whether each number of tf32 or bfloat16 differs from zero. */
static void bools_of_words(int format, const void *in, uint8_t *out, size_t n)
{
    tf_isa->formats->predicate[TF_LOGICAL_NOT][format == tf_bfloat16_index](in, out, n);
    for (size_t i = 0; i < n; i++) {
        out[i] ^= 1;
    }
}

/* Converts n items of a kind to float32, with rounding to odd where it cannot be exact. */
static void load(int kind, const void *source, float *out, size_t n)
{
    if (kind <= TF_FLOAT16) {
        tf_isa->formats->conversions[kind].to_float32(source, out, n);
    } else {
        tf_isa->formats->loads[kind](source, out, n);
    }
}

/* Casts n items and returns 1 if the cast is exact and simple; else returns 0. */
static int cast_exactly(struct tf_cast cast, const void *source, void *target, size_t n)
{
    const int from_ours = cast.from < TF_FORMAT_COUNT;
    const int from_byte = sizes[cast.from] == 1;
    if (cast.to == TF_FLOAT32 && cast.from != TF_FLOAT32) {
        load(cast.from, source, target, n);
    } else if (cast.to == tf_tf32_index && (cast.from <= TF_FLOAT16 || from_byte)) {
        load(cast.from, source, target, n); /* a tf32 item has the layout of float32 */
    } else if (cast.to == tf_bfloat16_index && from_ours && from_byte) {
        bf16_of_bytes(cast.from, source, target, n);
    } else if (cast.to == TF_BOOL && from_ours && !from_byte) {
        bools_of_words(cast.from, source, target, n);
    } else {
        return 0;
    }
    return 1;
}

/* -- all casts -------------------------------------------------------------------- */

static unsigned cast_chunk(struct tf_cast cast, const void *source, void *target,
                           size_t n, unsigned flags)
{
    TF_ASSERT(n <= TF_CHUNK);
    TF_ASSERT((uintptr_t)source % sizes[cast.from] == 0);
    TF_ASSERT((uintptr_t)target % sizes[cast.to] == 0);
    if (cast_exactly(cast, source, target, n)) {
        return 0;
    }
    _Alignas(64) float exchange[TF_CHUNK];
    const float *numbers = source;
    if (cast.from != TF_FLOAT32) {
        load(cast.from, source, exchange, n);
        numbers = exchange;
    }
    return cast.to <= TF_FLOAT16 ? store_format(cast.to, numbers, target, n, flags)
                                 : tf_isa->formats->stores[cast.to](numbers, target, n);
}

static unsigned cast_chunks(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                            char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    const size_t in_size = sizes[cast.from], out_size = sizes[cast.to];
    const size_t in_pitch = cast.from_complex ? 2 * in_size : in_size;
    const size_t out_pitch = cast.to_complex ? 2 * out_size : out_size;
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n;) {
        const size_t count = in_pitch > out_pitch
                                 ? tf_next_chunk(in, in_pitch, n - done)
                                 : tf_next_chunk(out, out_pitch, n - done);
        tf_read_ahead(in, in_stride, in_size, count, n);
        const void *source = tf_gather(in, in_stride, in_size, count, in_buffer);
        void *target =
            cast.to_complex
                ? out_buffer
                : tf_large_target(out, out_stride, out_size, count, n, out_buffer);
        flags |= cast_chunk(cast, source, target, count, flags);
        if (cast.to_complex) {
            scatter_complex(target, out, out_stride, out_size, count);
        } else {
            tf_large_scatter(target, out, out_stride, out_size, count, n);
        }
        done += (ptrdiff_t)count;
        in += (ptrdiff_t)count * in_stride;
        out += (ptrdiff_t)count * out_stride;
    }
    tf_large_end(out_size, n);
    return flags;
}

static unsigned cast_bytes(int from, int to, const uint8_t *in, uint8_t *out, size_t n)
{
    const struct tf_cast cast = {.from = from, .to = to};
    return cast_chunk(cast, in, out, n, 0);
}

static const struct tf_pair_line *byte_cast(struct tf_cast cast, ptrdiff_t n)
{
    const int are_bytes = sizes[cast.from] == 1 && sizes[cast.to] == 1;
    return are_bytes ? tf_byte_cast(cast.from, cast.to, n, cast_bytes) : NULL;
}

/* Returns 1 if the items are real, contiguous, aligned and at most one chunk. For so few
 * items, calls take longer than the cast itself. */
static int is_one_chunk(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                        const char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    const size_t in_size = sizes[cast.from], out_size = sizes[cast.to];
    const uintptr_t beside = ((uintptr_t)in & (in_size - 1)) |
                             ((uintptr_t)out & (out_size - 1));
    return n <= TF_CHUNK && !cast.from_complex && !cast.to_complex && beside == 0 &&
           in_stride == (ptrdiff_t)in_size && out_stride == (ptrdiff_t)out_size;
}

void tf_cast_items(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                   char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_pair_line *table = byte_cast(cast, n);
    unsigned flags;
    if (table) {
        flags = tf_look_up_line(table, in, in_stride, out, out_stride, n);
    } else if (is_one_chunk(cast, in, in_stride, out, out_stride, n)) {
        flags = cast_chunk(cast, in, out, (size_t)n, 0);
    } else {
        flags = cast_chunks(cast, in, in_stride, out, out_stride, n);
    }
    tf_fp_end(saved, flags);
}

/* -- casts that raise nothing ------------------------------------------------------ */

enum { MOST_EXTREMES = 12 };

/* Stores the numbers of a format that raise something if any number does: zeros, the
 * smallest, the largest, Inf and NaN. Returns their count. */
static ptrdiff_t extremes_of_format(struct tf_format f, char *items)
{
    const uint32_t greatest = tf_magnitude_mask(f), sign = tf_sign_mask(f);
    const uint32_t magnitudes[] = {0,
                                   1,
                                   tf_maximum_magnitude(f),
                                   tf_infinity_magnitude(f),
                                   tf_nan_code(f) & greatest,
                                   greatest};
    ptrdiff_t count = 0;
    for (size_t i = 0; i < sizeof magnitudes / sizeof *magnitudes; i++) {
        tf_store_code(f, items + count++ * f.itemsize, magnitudes[i]);
        tf_store_code(f, items + count++ * f.itemsize, magnitudes[i] | sign);
    }
    return count;
}

/* As extremes_of_format, for integers of `size` bytes: 0, 1, all bits set (-1, or the
 * largest unsigned one), and both ends of the signed range. Returns their count. */
static ptrdiff_t extremes_of_integers(size_t size, void *items)
{
    const uint64_t sign = UINT64_C(1) << (8 * size - 1);
    const uint64_t found[] = {0, 1, UINT64_MAX, sign, sign - 1};
    const ptrdiff_t count = sizeof found / sizeof *found;
    for (ptrdiff_t i = 0; i < count; i++) {
        switch (size) {
        case 1: ((uint8_t *)items)[i] = (uint8_t)found[i]; break;
        case 2: ((uint16_t *)items)[i] = (uint16_t)found[i]; break;
        case 4: ((uint32_t *)items)[i] = (uint32_t)found[i]; break;
        default: ((uint64_t *)items)[i] = found[i];
        }
    }
    return count;
}

/* Returns 1 if no number raises anything in a cast. Rounding is monotone: a number between
 * two that round to the range does not overflow. All numbers are multiples of the smallest:
 * if it is exact in the target, or in its normal range, no multiple underflows. */
static int raises_nothing(struct tf_cast cast)
{
    const int to_ours = cast.to < TF_FORMAT_COUNT, ours = cast.from < TF_FORMAT_COUNT;
    _Alignas(16) char items[MOST_EXTREMES * 8], results[MOST_EXTREMES * 16];
    ptrdiff_t count;
    if (cast.from <= TF_FLOAT16) {
        count = extremes_of_format(ours ? *tf_format_rows[cast.from] : tf_float16, items);
    } else if (cast.from > TF_BOOL) {
        count = extremes_of_integers(sizes[cast.from], items);
    } else if (cast.from == TF_BOOL) {
        count = 2;
        items[0] = 0;
        items[1] = 1;
    } else {
        return 0;
    }
    if (!ours && !to_ours) {
        return 0;
    }
    const struct tf_fp saved = tf_fp_begin();
    const unsigned flags = cast_chunk(cast, items, results, (size_t)count, 0);
    tf_fp_end(saved, 0);
    return flags == 0;
}

int tf_cast_is_quiet(int from, int to)
{
    enum { UNKNOWN, QUIET, LOUD };
    static _Atomic uint8_t known[TF_KIND_COUNT][TF_KIND_COUNT];
    uint8_t found = atomic_load_explicit(&known[from][to], memory_order_relaxed);
    if (found == UNKNOWN) {
        const struct tf_cast cast = {.from = from, .to = to};
        found = raises_nothing(cast) ? QUIET : LOUD;
        atomic_store_explicit(&known[from][to], found, memory_order_relaxed);
    }
    return found == QUIET;
}
