/* N loads and N stores around one exchange type: float32, rounded to odd where
 * the source is wider. The formats have 11 significant bits at most, and
 * float32's subnormals reach 13 bits below theirs, so that rounding such a
 * number once more gives what one rounding of the source would have given. */
#include "casts.h"

#include <fenv.h>
#include <math.h>

#include "fpstatus.h"
#include "large.h"
#include "loops/isa.h"
#include "strided.h"

/* -- anything -> float32, to odd ------------------------------------------------- */

#define LOAD_SMALL(name, type)                                                 \
    static void load_##name(const void *items, float *out, size_t n)           \
    {                                                                          \
        const type *in = items;                                                \
        for (size_t i = 0; i < n; i++) {                                       \
            out[i] = (float)in[i];                                             \
        }                                                                      \
    }
/* Through float64; `expression` makes a double of x without losing that x is
 * inexact. */
#define LOAD_WIDE(name, type, expression)                                      \
    static void load_##name(const void *items, float *out, size_t n)           \
    {                                                                          \
        const type *in = items;                                                \
        double wide[TF_BLOCK];                                                 \
        for (size_t i = 0; i < n; i++) {                                       \
            const type x = in[i];                                              \
            wide[i] = (expression);                                            \
        }                                                                      \
        tf_isa->narrow(wide, out, n);                                          \
    }

/* From 2^53 on, bits 0 to 10 are or-ed into bit 11: a double holds the rest. */
static inline uint64_t fold_low_bits(uint64_t x)
{
    return x >> 53 ? (x | ((x & 0x7FF) + 0x7FF)) & ~UINT64_C(0x7FF) : x;
}

static inline double double_from_int64(int64_t x)
{
    const double magnitude =
        (double)fold_low_bits(x < 0 ? -(uint64_t)x : (uint64_t)x);
    return x < 0 ? -magnitude : magnitude;
}

static inline double double_from_long(long double x)
{
    const double nearest = (double)x;
    if (nearest == x || x != x) {
        return nearest;
    }
    uint64_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    bits -= fabsl((long double)nearest) > fabsl(x);
    bits |= 1;
    double odd;
    memcpy(&odd, &bits, sizeof odd);
    return odd;
}

static void load_bool(const void *items, float *out, size_t n)
{
    const uint8_t *in = items;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i] != 0;
    }
}
LOAD_SMALL(int8, int8_t)
LOAD_SMALL(int16, int16_t)
LOAD_SMALL(uint8, uint8_t)
LOAD_SMALL(uint16, uint16_t)
LOAD_WIDE(int32, int32_t, (double)x)
LOAD_WIDE(uint32, uint32_t, (double)x)
LOAD_WIDE(int64, int64_t, double_from_int64(x))
LOAD_WIDE(uint64, uint64_t, (double)fold_low_bits(x))
LOAD_WIDE(longdouble, long double, double_from_long(x))

static void load_float64(const void *items, float *out, size_t n)
{
    tf_isa->narrow(items, out, n);
}

static tf_unpack_fn *const loads[TF_KIND_COUNT] = {
    [TF_FLOAT64] = load_float64, [TF_LONGDOUBLE] = load_longdouble,
    [TF_BOOL] = load_bool,       [TF_INT8] = load_int8,
    [TF_INT16] = load_int16,     [TF_INT32] = load_int32,
    [TF_INT64] = load_int64,     [TF_UINT8] = load_uint8,
    [TF_UINT16] = load_uint16,   [TF_UINT32] = load_uint32,
    [TF_UINT64] = load_uint64,
};

/* -- float32 -> anything, exact but for integers ---------------------------------- */

/* Truncation toward zero; below -2^(w-1) - 1 or from 2^(w-1) on, invalid. Both
 * bounds are floats: `low` is exclusive where it is one. */
#define STORE_INTEGER(name, type, in_range, out_of_range)                      \
    static unsigned store_##name(const float *in, void *items, size_t n)       \
    {                                                                          \
        type *out = items;                                                     \
        unsigned invalid = 0;                                                  \
        for (size_t i = 0; i < n; i++) {                                       \
            const float x = in[i];                                             \
            const int fits = (in_range);                                       \
            out[i] = fits ? (type)x : (out_of_range);                          \
            invalid |= !fits;                                                  \
        }                                                                      \
        return invalid ? TF_INVALID : 0;                                       \
    }
STORE_INTEGER(int8, int8_t, x > -129.0f && x < 128.0f, INT8_MIN)
STORE_INTEGER(int16, int16_t, x > -32769.0f && x < 32768.0f, INT16_MIN)
STORE_INTEGER(int32, int32_t, x >= -0x1p31f && x < 0x1p31f, INT32_MIN)
STORE_INTEGER(int64, int64_t, x >= -0x1p63f && x < 0x1p63f, INT64_MIN)
STORE_INTEGER(uint8, uint8_t, x > -1 && x < 0x1p8f, 0)
STORE_INTEGER(uint16, uint16_t, x > -1 && x < 0x1p16f, 0)
STORE_INTEGER(uint32, uint32_t, x > -1 && x < 0x1p32f, 0)
STORE_INTEGER(uint64, uint64_t, x > -1 && x < 0x1p64f, 0)

static unsigned store_bool(const float *in, void *items, size_t n)
{
    uint8_t *out = items;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i] != 0;
    }
    return 0;
}

static unsigned store_float32(const float *in, void *items, size_t n)
{
    memcpy(items, in, n * sizeof(float));
    return 0;
}

static unsigned store_float64(const float *in, void *items, size_t n)
{
    tf_isa->widen(in, items, n);
    return 0;
}

static unsigned store_longdouble(const float *in, void *items, size_t n)
{
    long double *out = items;
    for (size_t i = 0; i < n; i++) {
        out[i] = in[i];
    }
    return 0;
}

typedef unsigned store_fn(const float *in, void *items, size_t n);

static store_fn *const stores[TF_KIND_COUNT] = {
    [TF_FLOAT32] = store_float32,       [TF_FLOAT64] = store_float64,
    [TF_LONGDOUBLE] = store_longdouble, [TF_BOOL] = store_bool,
    [TF_INT8] = store_int8,             [TF_INT16] = store_int16,
    [TF_INT32] = store_int32,           [TF_INT64] = store_int64,
    [TF_UINT8] = store_uint8,           [TF_UINT16] = store_uint16,
    [TF_UINT32] = store_uint32,         [TF_UINT64] = store_uint64,
};

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
    return (suspects.beyond ? beyond_raises[specials] : 0u) |
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

static void zero_imaginary(char *out, ptrdiff_t stride, size_t size, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        memset(out + (ptrdiff_t)i * stride + size, 0, size);
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
        loads[cast.from](source, numbers, n);
    }
    if (cast.to <= TF_FLOAT16) {
        return store_format(cast.to, loaded, target, n, flags);
    }
    return loaded != target ? stores[cast.to](loaded, target, n) : 0;
}

static unsigned cast_blocks(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                            char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    const size_t in_size = sizes[cast.from], out_size = sizes[cast.to];
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n;) {
        const size_t count = in_size > out_size ? tf_next_block(in, in_size, n - done)
                                                : tf_next_block(out, out_size, n - done);
        tf_read_ahead(in, in_stride, in_size, count, n);
        const void *source = tf_gather(in, in_stride, in_size, count, in_buffer);
        void *target = tf_large_target(out, out_stride, out_size, count, n, out_buffer);
        flags |= cast_block(cast, source, target, count, flags);
        tf_large_scatter(target, out, out_stride, out_size, count, n);
        if (cast.to_complex) {
            zero_imaginary(out, out_stride, out_size, count);
        }
        done += (ptrdiff_t)count;
        in += (ptrdiff_t)count * in_stride;
        out += (ptrdiff_t)count * out_stride;
    }
    tf_large_end(out_size, n);
    return flags;
}

void tf_cast_items(struct tf_cast cast, const char *in, ptrdiff_t in_stride,
                   char *out, ptrdiff_t out_stride, ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    if (cast.from == TF_LONGDOUBLE) {
        /* Narrowing an x87 number raises x87 flags that nobody asked for. */
        fexcept_t raised;
        fegetexceptflag(&raised, FE_ALL_EXCEPT);
        const unsigned flags = cast_blocks(cast, in, in_stride, out, out_stride, n);
        fesetexceptflag(&raised, FE_ALL_EXCEPT);
        tf_fp_end(saved, flags);
        return;
    }
    tf_fp_end(saved, cast_blocks(cast, in, in_stride, out, out_stride, n));
}
