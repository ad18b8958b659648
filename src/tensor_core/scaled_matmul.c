/* Products of block-scaled operands as a tensor core computes them. */
#include "tensor_core/scaled_matmul.h"

#include <stdlib.h>
#include <string.h>

#include "formats/fast_codec.h"
#include "runtime/sizes.h"
#include "runtime/stops.h"
#include "tensor_core/kernels.h"

enum { COLUMNS = 64 }; /* that a row of A is multiplied with once it is taken apart */

/* What codes of a format are, as struct tf_scaled_line has them. */
struct codes {
    int32_t significands[256], exponents[256];
    uint32_t bits[256];
};

struct workspace {
    struct codes a, b;
    struct tf_scaled_line row, columns[COLUMNS];
};

enum { NOTHING = TF_NO_EXPONENT / 4 }; /* the exponent of a zero: sums stay below all */

static void take_codes_apart(struct codes *codes, const struct tf_scaled_model *model,
                             int format, int32_t least)
{
    for (uint32_t code = 0; code < 256; code++) {
        const uint32_t bits = tf_single_of_item(*tf_format_rows[format], code);
        const int32_t fixed = model->group > 1;
        const struct tf_mma_number x = tf_mma_decode(bits, fixed ? 0 : least);
        int32_t significand = (int32_t)(x.significand >> (23 - TF_SCALED_BITS));
        if (fixed) { /* of two fraction bits more than twice the number has */
            significand = significand << (x.exponent & 7) >> (TF_SCALED_BITS - 1);
        }
        codes->bits[code] = bits;
        codes->significands[code] = bits >> 31 ? -significand : significand;
        codes->exponents[code] = significand ? x.exponent : NOTHING;
    }
}

/* k elements of a line, from the first on. */
static void take_apart(const struct tf_scaled_model *model, const struct codes *codes,
                       struct tf_scaled_lines lines, ptrdiff_t line, ptrdiff_t first,
                       size_t k, struct tf_scaled_line *out)
{
    const size_t depth = (size_t)model->depth, block = (size_t)model->block;
    const size_t group = (size_t)model->group, whole = tf_round_up(k, depth);
    const char *code = lines.codes + line * lines.line + first * lines.along;
    const char *scale = lines.scales + line * lines.scale_line +
                        first / model->block * lines.scale_along;
    memset(out->special, 0, whole / depth);
    for (size_t i = 0; i < whole; i++) {
        const uint32_t x = i < k ? (uint8_t)code[(ptrdiff_t)i * lines.along] : 0;
        out->bits[i] = codes->bits[x];
        if (group == 1) {
            out->as.single.significands[i] = codes->significands[x];
            out->as.single.exponents[i] = codes->exponents[x];
        } else {
            out->as.grouped.twice[i] = codes->significands[x];
        }
        out->special[i / depth] |= (codes->bits[x] & TF_INF_BITS) == TF_INF_BITS;
    }
    for (size_t i = 0; i < whole; i += block) {
        const ptrdiff_t at = (ptrdiff_t)(i / block);
        const uint32_t s = i < k ? (uint8_t)scale[at * lines.scale_along] : 0;
        const struct tf_mma_number number = tf_scaled_scale(model, s);
        out->scales[i / block] = (uint8_t)s;
        out->special[i / depth] |= (uint8_t)tf_scaled_is_nan(model, s);
        if (group > 1) {
            for (size_t g = i / group; g < (i + block) / group; g++) {
                out->as.grouped.exponents[g] = number.exponent;
                out->as.grouped.factors[g] = (int32_t)number.significand;
            }
            continue;
        }
        for (size_t j = i; j < i + block; j++) {
            out->as.single.exponents[j] += number.exponent;
        }
    }
}

int tf_scaled_matmul(const struct tf_scaled_model *model, struct tf_scaled_lines a,
                     struct tf_scaled_lines b, float *c, ptrdiff_t m, ptrdiff_t n,
                     ptrdiff_t k)
{
    struct workspace *work = malloc(sizeof *work);
    if (!work) {
        return -1;
    }
    struct tf_watch watch = {0};
    int stopped = 0;
    take_codes_apart(&work->a, model, a.format, model->least_a);
    take_codes_apart(&work->b, model, b.format, model->least_b);
    for (ptrdiff_t first = 0; first < k && !stopped; first += TF_SCALED_K) {
        const size_t here = tf_min_size(k - first, TF_SCALED_K);
        for (ptrdiff_t j = 0; j < n && !stopped; j += COLUMNS) {
            const size_t count = tf_min_size(n - j, COLUMNS);
            for (size_t line = 0; line < count; line++) {
                take_apart(model, &work->b, b, j + (ptrdiff_t)line, first, here,
                           &work->columns[line]);
            }
            for (ptrdiff_t i = 0; i < m && !stopped; i++) {
                stopped = tf_is_stopped(&watch, 1);
                float *sums = c + i * n + j;
                take_apart(model, &work->a, a, i, first, here, &work->row);
                tf_isa->scaled_mma->chains(model, &work->row, work->columns, count, here,
                                       sums);
            }
        }
    }
    free(work);
    return stopped ? -1 : 0;
}

void tf_promote_block(const float *block, const float *scales_a, const float *scales_b,
                      float *sums, ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        tf_isa->scaled_mma->promote(block + i * n, scales_a[i], scales_b, sums + i * n,
                                (size_t)n);
    }
}
