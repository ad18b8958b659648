/* N loads and N stores around one exchange type: float32, rounded to odd where
 * the source is wider. The formats have 11 significant bits at most, and
 * float32's subnormals reach 13 bits below theirs, so that rounding such a
 * number once more gives what one rounding of the source would have given. */
#include "casts.h"

#include <string.h>

#include "byte_casts.h"
#include "fpstatus.h"
#include "large.h"
#include "loops/isa.h"
#include "strided.h"

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

size_t tf_kind_size(int kind) { return sizes[kind]; }

unsigned tf_may_raise(int format, struct tf_suspects suspects)
{
    static const uint8_t beyond_raises[] = {[TF_IEEE] = TF_OVER,
                                            [TF_FN] = TF_OVER,
                                            [TF_FNUZ] = TF_OVER,
                                            [TF_FINITE] = TF_OVER | TF_INVALID,
                                            [TF_POWERS] = TF_INVALID};
    const enum tf_specials specials =
        format == TF_FLOAT16 ? TF_IEEE : tf_format_rows[format]->specials;
    const unsigned no_nan =
        suspects.nan || specials == TF_POWERS ? ~0u : ~(unsigned)TF_INVALID;
    return (suspects.beyond ? beyond_raises[specials] & no_nan : 0u) |
           (suspects.tiny ? TF_UNDER : 0u);
}

/* Flags are sticky: what one block has raised no later one needs to look for. */
static unsigned store_format(int format, const float *in, void *items, size_t n,
                             unsigned flags)
{
    const struct tf_conversions *conversions = &tf_isa->formats[format];
    const struct tf_suspects suspects = conversions->pack(in, items, n);
    const int needed = (tf_may_raise(format, suspects) & ~flags) != 0;
    return needed ? conversions->flags(in, items, n) : 0;
}

/* Real parts, each with an imaginary part of zero. */
static void scatter_complex(const void *parts, char *out, ptrdiff_t stride, size_t size,
                            size_t n)
{
    static const char zero[sizeof(long double)];
    if (stride == 2 * (ptrdiff_t)size && size < sizeof(long double)) {
        tf_isa->pair_with_zeros(size, parts, out, n);
    } else {
        tf_copy(size, out, stride, parts, (ptrdiff_t)size, n);
        tf_copy(size, out + size, stride, zero, 0, n);
    }
}

static unsigned cast_block(struct tf_cast cast, const void *source, void *target,
                           size_t n, unsigned flags)
{
    _Alignas(64) float exchange[TF_BLOCK];
    /* An exact result in float32 goes where it belongs at once. */
    float *numbers = cast.to == TF_FLOAT32 ? target : exchange;
    const float *loaded = numbers;
    if (cast.from <= TF_FLOAT16) {
        tf_isa->formats[cast.from].unpack(source, numbers, n);
    } else if (cast.from == TF_FLOAT32) {
        loaded = source;
    } else {
        tf_isa->loads[cast.from](source, numbers, n);
    }
    if (cast.to <= TF_FLOAT16) {
        return store_format(cast.to, loaded, target, n, flags);
    }
    return loaded != target ? tf_isa->stores[cast.to](loaded, target, n) : 0;
}

static unsigned cast_blocks(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
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
                                 ? tf_next_block(in, in_pitch, n - done)
                                 : tf_next_block(out, out_pitch, n - done);
        tf_read_ahead(in, in_stride, in_size, count, n);
        const void *source = tf_gather(in, in_stride, in_size, count, in_buffer);
        void *target =
            cast.to_complex
                ? out_buffer
                : tf_large_target(out, out_stride, out_size, count, n, out_buffer);
        flags |= cast_block(cast, source, target, count, flags);
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
    return cast_block(cast, in, out, n, 0);
}

static const struct tf_pair_line *byte_cast(struct tf_cast cast, ptrdiff_t n)
{
    const int are_bytes = sizes[cast.from] == 1 && sizes[cast.to] == 1;
    return are_bytes ? tf_byte_cast(cast.from, cast.to, n, cast_bytes) : NULL;
}

void tf_cast_items(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                   char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    const struct tf_pair_line *table = byte_cast(cast, n);
    tf_fp_end(saved, table ? tf_look_up_line(table, in, in_stride, out, out_stride, n)
                           : cast_blocks(cast, in, in_stride, out, out_stride, n));
}
