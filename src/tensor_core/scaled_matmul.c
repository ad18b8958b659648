/* Multiplies block-scaled operands as a tensor core does. Threads compute tiles of C. */
#include "tensor_core/scaled_matmul.h"

#include <math.h>

#include "formats/fast_codec.h"
#include "matmul/tiles.h"
#include "matmul/workspace.h"
#include "runtime/asserts.h"
#include "runtime/sizes.h"
#include "tensor_core/kernels.h"

/* -- lines ------------------------------------------------------------------------- */

/* Entries of struct tf_scaled_lines_packed for each code of an element or a scale. */
struct codes {
    float singles[256];
    int16_t integers[256];
    uint8_t infinite[256]; /* or NaN */
    double factors[256];
    int32_t exponents[256];
};

static struct codes codes_of(const struct tf_scaled_model *model, int format,
                             int32_t least)
{
    struct codes codes;
    for (uint32_t code = 0; code < 256; code++) {
        const uint32_t bits = tf_single_of_item(*tf_format_rows[format], code);
        const float x = tf_float_of(bits);
        codes.singles[code] = x;
        codes.infinite[code] = (bits & TF_INF_BITS) == TF_INF_BITS;
        if (model->group == 1) {
            codes.integers[code] =
                (int16_t)(x == 0 ? TF_MMA_ZERO : tf_mma_decode(bits, least).exponent);
        } else {
            codes.integers[code] = (int16_t)(2 * x);
        }
        const struct tf_mma_number scale = tf_scaled_scale(model, code);
        codes.exponents[code] = scale.significand ? scale.exponent : TF_MMA_ZERO;
        codes.factors[code] =
            ldexp(scale.significand, scale.exponent - TF_SCALED_BITS - 1);
    }
    return codes;
}

/* Packs k elements of a line from element `first` on, and fills up the last instruction. */
static void pack_line(const struct tf_scaled_model *model, const struct codes *codes,
                      struct tf_scaled_lines lines, ptrdiff_t line, ptrdiff_t first,
                      size_t k, const struct tf_scaled_lines_packed *out, size_t to)
{
    const size_t depth = (size_t)model->depth, block = (size_t)model->block;
    const size_t term = model->group == 1 ? block : (size_t)model->group;
    const size_t width = out->width;
    const char *code = lines.codes + line * lines.line + first * lines.along;
    const char *scale = lines.scales + line * lines.scale_line +
                        first / model->block * lines.scale_along;
    const size_t elements = tf_scaled_place(width, to, 0, TF_SCALED_K);
    const size_t terms = tf_scaled_place(width, to, 0, TF_SCALED_TERMS);
    for (size_t i = 0; i < tf_round_up(k, depth); i += term) {
        const size_t at = terms + i / term * width;
        const size_t of_block = terms + i / block * width;
        uint8_t *special = &out->special[terms + i / depth * width];
        const size_t number = i / block;
        const ptrdiff_t place_of_scale = (ptrdiff_t)number * lines.scale_along;
        const uint32_t s = number * block < k ? (uint8_t)scale[place_of_scale] : 0;
        int32_t nonzero = 0, infinite = 0;
        for (size_t j = 0; j < term; j++) {
            const size_t place = elements + (i + j) * width;
            const ptrdiff_t from = (ptrdiff_t)(i + j) * lines.along;
            const uint32_t x = i + j < k ? (uint8_t)code[from] : 0;
            if (out->twice) {
                out->twice[place] = 0x10001u * (uint16_t)codes->integers[x];
            } else {
                out->integers[place] = codes->integers[x];
            }
            if (model->group > 1) {
                nonzero |= (int32_t)(codes->integers[x] != 0) << j;
                continue;
            }
            out->singles[place] = codes->singles[x];
            infinite |= codes->infinite[x];
        }
        out->exponents[at] = codes->exponents[s];
        out->factors[at] = codes->factors[s];
        out->nonzero[at] = nonzero;
        out->codes[of_block] = (uint8_t)s;
        *special = (uint8_t)((i % depth ? *special : 0) | infinite |
                             tf_scaled_is_nan(model, s));
    }
}

/* -- tiles ------------------------------------------------------------------------- */

struct product {
    const struct tf_scaled_model *model;
    struct tf_scaled_lines a, b;
    struct codes codes_a, codes_b;
    float *c;
    ptrdiff_t n, k;
};

/* Takes memory from a thread's scratch, of which *room is the rest, and returns it. */
static void *take(char **room, size_t bytes)
{
    void *found = *room;
    *room += tf_round_up(bytes, 64);
    return found;
}

static struct tf_scaled_lines_packed room_for(size_t count, size_t width, char **room)
{
    const size_t elements = count * TF_SCALED_K, terms = count * TF_SCALED_TERMS;
    const struct tf_scaled_lines_packed lines = {
        .width = width,
        .singles = take(room, elements * sizeof(float)),
        .integers = width > 1 ? take(room, elements * sizeof(int16_t)) : NULL,
        .twice = width > 1 ? NULL : take(room, elements * sizeof(uint32_t)),
        .exponents = take(room, terms * sizeof(int32_t)),
        .factors = take(room, terms * sizeof(double)),
        .nonzero = take(room, terms * sizeof(int32_t)),
        .codes = take(room, terms),
        .special = take(room, terms),
    };
    return lines;
}

/* Computes one tile of a struct product, as a tf_tile_fn. */
static unsigned multiply_tile(const void *context, struct tf_tile_place place,
                              struct tf_worker *worker)
{
    const struct tf_scaled_mma_kernels *kernels = tf_isa->scaled_mma;
    const struct product *p = context;
    const ptrdiff_t i = place.i, j = place.j;
    const size_t rows = place.rows, columns = place.columns;
    const size_t filled = tf_round_up(rows, kernels->rows), width = kernels->columns;
    char *room = worker->scratch;
    const struct tf_scaled_lines_packed a = room_for(TF_SCALED_ROWS, 1, &room);
    const struct tf_scaled_lines_packed b = room_for(width, width, &room);
    TF_ASSERT((size_t)(room - (char *)worker->scratch) <= sizeof(struct tf_workspace));
    for (ptrdiff_t first = 0; first < p->k; first += TF_SCALED_K) {
        const size_t here = tf_min_size(p->k - first, TF_SCALED_K);
        for (size_t line = 0; line < filled; line++) { /* repeats the last row */
            const ptrdiff_t from = i + (ptrdiff_t)(line < rows ? line : rows - 1);
            pack_line(p->model, &p->codes_a, p->a, from, first, here, &a, line);
        }
        for (size_t side = 0; side < columns; side += width) {
            const size_t count = tf_min_size((ptrdiff_t)(columns - side), width);
            if (tf_worker_stops(worker)) {
                return 0;
            }
            for (size_t line = 0; line < width; line++) {
                const size_t from = side + (line < count ? line : count - 1);
                pack_line(p->model, &p->codes_b, p->b, j + (ptrdiff_t)from, first, here,
                          &b, line);
            }
            kernels->chains(p->model, &a, rows, &b, count, here,
                            p->c + i * p->n + j + (ptrdiff_t)side, (size_t)p->n);
        }
    }
    return 0;
}

int tf_scaled_matmul(const struct tf_scaled_model *model, struct tf_scaled_lines a,
                     struct tf_scaled_lines b, float *c, ptrdiff_t m, ptrdiff_t n,
                     ptrdiff_t k)
{
    if (m == 0 || n == 0) {
        return 0;
    }
    const struct product p = {
        .model = model,
        .a = a,
        .b = b,
        .codes_a = codes_of(model, a.format, model->least_a),
        .codes_b = codes_of(model, b.format, model->least_b),
        .c = c,
        .n = n,
        .k = k,
    };
    const ptrdiff_t height = (ptrdiff_t)tf_isa->scaled_mma->rows;
    const ptrdiff_t width = (ptrdiff_t)tf_isa->scaled_mma->columns;
    const struct tf_tiles tiles = tf_cut_into_tiles(
        m, n, 1, (double)m * (double)n * (double)k,
        (struct tf_tile_side){TF_SCALED_ROWS, TF_SCALED_ROWS, height},
        (struct tf_tile_side){512, 2 * width, width});
    unsigned flags = 0;
    return tf_compute_tiles(&tiles, multiply_tile, &p, &flags);
}

void tf_promote_block(const float *block, const float *scales_a, const float *scales_b,
                      float *sums, ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < m; i++) {
        tf_isa->scaled_mma->promote(block + i * n, scales_a[i], scales_b, sums + i * n,
                                (size_t)n);
    }
}
