/* Multiplies vectors where they are in memory: many short ones, or a long one. */
#include "matmul/dot.h"

#include <math.h>

#include "formats/byte_tables.h"
#include "formats/casts.h"
#include "runtime/copies.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "matmul/pack.h"
#include "matmul/int8_dot.h"
#include "matmul/specials.h"
#include "matmul/epilogue.h"

/* A short vector has only one chain, and preparing a tile would take as long as the whole
 * product. Therefore the chains of several vectors are computed TOGETHER. */
enum { TOGETHER = TF_DOT_LINES, CHAINS = TF_DOT_CHAINS, LOOKS = 64 };

/* -- lines ------------------------------------------------------------------------- */

tf_dot_fn *tf_dot_kernel_of_lines(struct tf_operand x)
{
    if (x.kind >= TF_FORMAT_COUNT || x.kind != x.format || x.parts != 1 || x.scales) {
        return NULL;
    }
    switch (tf_kind_size(x.kind)) {
    case 1: return tf_isa->dot->bytes;
    case 2: return tf_isa->dot->bf16;
    default: return tf_isa->dot->singles;
    }
}

int tf_have_integers(struct tf_operand a, struct tf_operand b)
{
    return tf_isa->quads->dot && a.kind == b.kind && tf_dot_kernel_of_lines(a) &&
           tf_dot_kernel_of_lines(b) && tf_byte_tables[a.kind].has_integers;
}

tf_dot_fn *tf_dot_kernel(struct tf_operand a, struct tf_operand b)
{
    const int alike = a.kind == b.kind && tf_dot_kernel_of_lines(b);
    return tf_have_integers(a, b) ? tf_isa->quads->dot
           : alike                ? tf_dot_kernel_of_lines(a)
                                  : NULL;
}

static struct tf_dot_operands operands_of(struct tf_operand x)
{
    const struct tf_byte_table *table = &tf_byte_tables[x.kind];
    const struct tf_dot_operands operands = {
        .table = table,
        .unit = table->has_integers ? tf_quad_unit(x, x) : 1,
        .used = tf_used_bits(*tf_format_rows[x.kind]),
    };
    return operands;
}

/* Writes where lines begin, or copies of them without gaps. Entries from `count` on are
 * those of the first line. */
static void find_lines(struct tf_operand x, size_t count, size_t depth, char *room,
                       const char *places[TF_DOT_LINES])
{
    const size_t size = tf_kind_size(x.kind);
    const int adjoin = x.along == (ptrdiff_t)size;
    for (size_t i = 0; i < TF_DOT_LINES; i++) {
        const char *line = x.data + (ptrdiff_t)i * x.stride;
        places[i] = i >= count ? places[0] : adjoin ? line : room + i * depth * size;
        if (i < count && !adjoin) {
            tf_copy(size, room + i * depth * size, (ptrdiff_t)size, line, x.along,
                    depth);
        }
    }
}

void tf_dot_of_operands(tf_dot_fn *kernel, struct tf_operand a, struct tf_operand b,
                        size_t count, size_t depth, struct tf_dot_room *room,
                        float *sums)
{
    const char *places[2][TF_DOT_LINES];
    struct tf_dot_operands in = operands_of(a);
    const int same = a.data == b.data && a.stride == b.stride && a.along == b.along;
    find_lines(a, count, depth, room->items[0], places[0]);
    if (!same) {
        find_lines(b, count, depth, room->items[1], places[1]);
    }
    in.a = places[0];
    in.b = places[!same];
    kernel(&in, depth, count, sums);
}

void tf_dot_vector(tf_dot_fn *kernel, struct tf_operand a, const float *numbers,
                   size_t count, size_t depth, struct tf_dot_room *room, float *sums)
{
    const char *places[TF_DOT_LINES];
    struct tf_dot_operands in = operands_of(a);
    find_lines(a, count, depth, room->items[0], places);
    in.a = in.b = places;
    in.numbers = numbers;
    kernel(&in, depth, count, sums);
}

/* Writes where the pieces of TF_KC numbers of a line begin. The last piece is copied if it
 * is shorter, and filled up with `filler`. */
static void find_depths(struct tf_operand x, size_t n, int32_t filler, char *room,
                        const char *places[TF_DOT_LINES])
{
    const size_t size = tf_kind_size(x.kind);
    const size_t whole = n / TF_KC, rest = n % TF_KC;
    struct tf_operand depths = x;
    depths.stride = x.along * TF_KC;
    find_lines(depths, whole, TF_KC, room, places);
    if (rest) {
        char *place = room + whole * TF_KC * size;
        for (size_t i = 0; i < TF_KC * size; i += sizeof filler) {
            memcpy(place + i, &filler, sizeof filler);
        }
        tf_copy(size, place, (ptrdiff_t)size, x.data + (ptrdiff_t)whole * depths.stride,
                x.along, rest);
        places[whole] = place;
    }
    for (size_t i = whole + (rest != 0); i < TF_DOT_LINES; i++) {
        places[i] = places[0];
    }
}

size_t tf_dot_depths(tf_dot_fn *kernel, struct tf_operand a, struct tf_operand b,
                     size_t n, struct tf_dot_room *room, float *sums)
{
    const size_t count = tf_ceil_div(n, TF_KC);
    if (count == 1) {
        tf_dot_of_operands(kernel, a, b, 1, n, room, sums);
        return 1;
    }
    const size_t size = tf_kind_size(a.kind);
    const int32_t minus_zero = size == 1   ? 0
                               : size == 2 ? (int32_t)UINT32_C(0x80008000)
                                           : INT32_MIN;
    const char *places[2][TF_DOT_LINES];
    struct tf_dot_operands in = operands_of(a);
    const int same = a.data == b.data && a.along == b.along && n % TF_KC == 0;
    find_depths(a, n, minus_zero, room->items[0], places[0]);
    if (!same) {
        find_depths(b, n, 0, room->items[1], places[1]);
    }
    in.a = places[0];
    in.b = places[!same];
    kernel(&in, TF_KC, count, sums);
    return count;
}

/* -- many short vectors ------------------------------------------------------------ */

/* Some vectors of either operand. */
struct batch {
    struct tf_operand a, b;
    size_t k, count;
    tf_dot_fn *kernel; /* multiplies vectors where they are in memory; or NULL */
};

/* Returns the length of the chain that begins at k0. */
static size_t depth_from(const struct batch *batch, size_t k0)
{
    return batch->k - k0 < TF_KC ? batch->k - k0 : TF_KC;
}

/* Writes `depth` numbers of `count` vectors from `first` on, and zeros up to TF_DOT_CHAINS
 * vectors. */
static void load_vectors(struct tf_operand x, size_t first, size_t count, size_t k0,
                         size_t depth, float *lines)
{
    tf_load_lines(tf_operand_from(x, (ptrdiff_t)first, (ptrdiff_t)k0), depth, count,
                  lines);
    memset(lines + count * depth, 0, (CHAINS - count) * depth * sizeof *lines);
}

static size_t count_from(const struct batch *batch, size_t first)
{
    return batch->count - first < CHAINS ? batch->count - first : CHAINS;
}

/* Numbers of TF_DOT_CHAINS vectors of both operands, and their transposes. */
struct numbers {
    float x[CHAINS * TF_KC], y[CHAINS * TF_KC];
    float p[CHAINS * TF_KC], q[CHAINS * TF_KC];
};

union room {
    struct tf_dot_room items;
    struct numbers numbers;
};

/* Computes the chains that begin at k0, and returns their length. */
static size_t multiply_depth(const struct batch *batch, size_t k0, union room *room,
                             float *sums)
{
    const size_t depth = depth_from(batch, k0);
    if (batch->kernel) {
        tf_dot_of_operands(batch->kernel, tf_operand_from(batch->a, 0, (ptrdiff_t)k0),
                           tf_operand_from(batch->b, 0, (ptrdiff_t)k0), batch->count,
                           depth, &room->items, sums);
        return depth;
    }
    struct numbers *n = &room->numbers;
    for (size_t i = 0; i < batch->count; i += CHAINS) {
        load_vectors(batch->a, i, count_from(batch, i), k0, depth, n->x);
        load_vectors(batch->b, i, count_from(batch, i), k0, depth, n->y);
        tf_isa->matmul->transpose(n->x, depth, CHAINS, depth, n->p, CHAINS);
        tf_isa->matmul->transpose(n->y, depth, CHAINS, depth, n->q, CHAINS);
        tf_isa->dot->lanes(n->p, n->q, depth, sums + i);
    }
    return depth;
}

static void sum_batch(const struct batch *batch, union room *room, float *sums)
{
    float part[TOGETHER];
    for (size_t k0 = 0; k0 < batch->k;) {
        const int adds = k0 != 0;
        k0 += multiply_depth(batch, k0, room, part);
        tf_add_row(part, sums, batch->count, adds);
    }
}

/* Returns the flags that Inf and NaN among the sums raise. Stops when all flags in `wanted`
 * are raised. */
static unsigned flags_of_sums(const struct batch *batch, const float *sums,
                              unsigned overflow, unsigned wanted)
{
    struct tf_watch watch = {0};
    unsigned flags = 0;
    for (size_t i = 0; i < batch->count && wanted & ~flags; i++) {
        if (!isfinite(sums[i])) {
            const ptrdiff_t line = (ptrdiff_t)i, k = (ptrdiff_t)batch->k;
            uint8_t mark =
                tf_mark_of_line(tf_operand_from(batch->a, line, 0), k, &watch, 0);
            if (!(mark & TF_HAS_NAN)) {
                mark |= tf_mark_of_line(tf_operand_from(batch->b, line, 0), k, &watch, 0);
            }
            flags |= tf_matmul_fp_flags(&mark, &mark, 1, 1, sums + i, 1, overflow);
        }
    }
    return flags;
}

int tf_short_dots(const struct tf_plan_of_product *plan)
{
    union room room;
    float sums[TOGETHER];
    const ptrdiff_t count = plan->product.count;
    struct tf_matrix c = plan->product.c;
    struct batch batch = {plan->a, plan->b, (size_t)plan->product.k, TOGETHER,
                          tf_dot_kernel(plan->a, plan->b)};
    /* The vectors of a stack are lines. */
    batch.a.stride = plan->product.a.step;
    batch.b.stride = plan->product.b.step;
    const unsigned overflow = tf_overflow_of_sums(c.kind);
    const int may_raise =
        tf_products_may_raise(batch.a) || tf_products_may_raise(batch.b);
    const struct tf_fp saved = tf_fp_begin();
    struct tf_watch watch = {0};
    unsigned flags = 0;
    int stopped = 0;
    for (ptrdiff_t done = 0, number = 0; done < count && !stopped;
         done += TOGETHER, number++) {
        batch.count = tf_min_size(TOGETHER, count - done);
        sum_batch(&batch, &room, sums);
        const int special =
            tf_store_sums(c.kind, sums, c.data, c.step, batch.count, &flags);
        const unsigned left = (overflow | TF_INVALID) & ~flags;
        if (special && left && may_raise) {
            flags |= flags_of_sums(&batch, sums, overflow, left);
        }
        batch.a = tf_operand_from(batch.a, TOGETHER, 0);
        batch.b = tf_operand_from(batch.b, TOGETHER, 0);
        c.data += TOGETHER * c.step;
        stopped = number % LOOKS == LOOKS - 1 && tf_is_stopped(&watch, 1);
    }
    tf_fp_end(saved, flags);
    return stopped ? -1 : 0;
}
