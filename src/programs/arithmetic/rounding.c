/* Rounds float32 and float64 to a format and converts back, by the kernels of casts. */
#include "programs/arithmetic/rounding.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "formats/casts.h"
#include "formats/kernels.h"
#include "runtime/asserts.h"

/* Rounds float32 values; values that came from float64 were rounded to odd before. */
static unsigned round_singles(int format, const float *in, float *out, size_t n)
{
    _Alignas(64) uint32_t items[TF_ROUNDED_AT_ONCE];
    const struct tf_conversions *conversions = &tf_isa->formats->conversions[format];
    const struct tf_flag_hints hints = conversions->from_float32(in, items, n);
    const unsigned flags = tf_rounding_flags(format, hints, in, items, n, 0);
    conversions->to_float32(items, out, n);
    return flags;
}

static unsigned round_doubles_to_float32(const double *in, double *out, size_t n)
{
    unsigned over = 0, under = 0;
    for (size_t i = 0; i < n; i++) {
        const double x = in[i], rounded = (double)(float)x;
        over |= isfinite(x) && !isfinite(rounded);
        under |= fabs(x) < 0x1p-126 && x != rounded;
        out[i] = rounded;
    }
    return (over ? TF_OVER : 0) | (under ? TF_UNDER : 0);
}

unsigned tf_round_numbers(int format, char type, const void *in, void *out, size_t n)
{
    TF_ASSERT(n <= TF_ROUNDED_AT_ONCE);
    if (type == 'f') {
        if (format != TF_FLOAT32) {
            return round_singles(format, in, out, n);
        }
        memmove(out, in, n * sizeof(float));
        return 0;
    }
    if (format == TF_FLOAT32) {
        return round_doubles_to_float32(in, out, n);
    }
    _Alignas(64) float narrow[TF_ROUNDED_AT_ONCE];
    tf_isa->formats->narrow(in, narrow, n);
    const unsigned flags = round_singles(format, narrow, narrow, n);
    tf_isa->formats->widen(narrow, out, n);
    return flags;
}
