/* What happens to sums on their way to C: scales, alpha, beta, and one rounding. */
#include "matmul/epilogue.h"

#include <math.h>

#include "formats/casts.h"
#include "matmul/pack.h"
#include "runtime/strided.h"

/* Whether some NaN is negative, as x86 makes them: rounding keeps a sign. */
static int has_negative_nan(const float *sums, size_t n)
{
    const int32_t infinity = tf_total_order(TF_NEGATIVE_INF_BITS);
    int32_t least, greatest;
    tf_isa->formats->bounds(sums, n, INT32_MAX, &least, &greatest);
    return least < infinity;
}

int tf_store_sums(int kind, float *sums, char *out, ptrdiff_t stride, size_t n,
                  unsigned *flags)
{
    TF_BUFFER(buffer);
    const int rounds = kind <= TF_FLOAT16;
    const struct tf_conversions *conversions =
        &tf_isa->formats->conversions[rounds ? kind : tf_bfloat16_index];
    const size_t itemsize = tf_kind_size(kind);
    void *items = kind == TF_FLOAT32 ? sums : tf_target(out, stride, itemsize, buffer);
    const struct tf_flag_hints suspects =
        rounds ? conversions->from_float32(sums, items, n) : conversions->suspect(sums, n);
    const int again = rounds && suspects.nan && has_negative_nan(sums, n);
    const int special =
        suspects.beyond == TF_NOT_FINITE && tf_isa->formats->canonical_nans(sums, n);
    if (kind == TF_FLOAT64) {
        tf_isa->formats->widen(sums, items, n);
    } else if (rounds) {
        if (again) {
            conversions->from_float32(sums, items, n);
        }
        if (tf_may_raise(kind, suspects) & ~*flags) {
            *flags |= conversions->flags(sums, items, n);
        }
    }
    tf_scatter(items, out, stride, itemsize, n);
    return special;
}

static void times(float *sums, size_t n, float factor)
{
    for (size_t j = 0; j < n; j++) {
        sums[j] *= factor;
    }
}

void tf_apply_epilogue(const struct tf_epilogue *update, float *sums, size_t i, size_t n,
                    int kind, const char *c, ptrdiff_t stride)
{
    float buffer[TF_CHUNK];
    for (int side = 0; side < 2 && update->row_scales; side++) {
        if (side == update->columns_first) {
            times(sums, n, update->row_scales[i]);
        } else {
            for (size_t j = 0; j < n; j++) {
                sums[j] *= update->column_scales[j];
            }
        }
    }
    if (update->alpha != 1) {
        times(sums, n, update->alpha);
    }
    if (update->beta != 0) {
        const float *old = tf_load_floats(kind, c, stride, n, buffer);
        for (size_t j = 0; j < n; j++) {
            sums[j] = fmaf(update->beta, old[j], sums[j]);
        }
    }
}
