/* Tables of the results of all pairs of items of a byte or less, and loops that look them
 * up. */
#include "ufuncs/pair_tables.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/fp_environment.h"
#include "runtime/indices.h"
#include "ufuncs/kernels.h"
#include "runtime/sizes.h"
#include "runtime/strided.h"

/* The entry of a pair a, b is at a << width | b. Formats of 8 bits have 2^16 entries, which
 * fit in L2. Narrower formats have fewer, which fit in L1. */
struct tf_pair_table {
    int width;
    struct tf_pair_line pairs; /* if TF_FEW_BITS wide: all pairs as bytes */
    uint16_t entries[];
};

enum { FLAGS = 8 /* the lowest bit of an entry's flags */ };

static _Atomic(struct tf_pair_table *) tables[TF_PAIR_OPERATIONS][TF_FORMAT_COUNT];
static atomic_long computed[TF_PAIR_OPERATIONS][TF_FORMAT_COUNT];

/* -- making --------------------------------------------------------------------- */

static struct tf_pair_table *make_table(int format, int op, tf_pairs_fn *compute)
{
    const struct tf_format f = *tf_format_rows[format];
    const size_t size = (size_t)1 << f.width;
    struct tf_pair_table *table =
        malloc(sizeof *table + size * size * sizeof table->entries[0]);
    if (!table) {
        return NULL;
    }
    table->width = f.width;
    uint8_t a[256], b[256], results[256], flags[256];
    for (size_t first = 0; first < size; first++) {
        for (size_t second = 0; second < size; second++) {
            a[second] = (uint8_t)first;
            b[second] = (uint8_t)second;
        }
        compute(format, op, a, b, results, flags, size);
        uint16_t *row = table->entries + (first << f.width);
        for (size_t second = 0; second < size; second++) {
            row[second] = (uint16_t)(results[second] | flags[second] << FLAGS);
        }
    }
    table->pairs.all_flags = 0;
    for (size_t pair = 0; f.width == TF_FEW_BITS && pair < size * size; pair++) {
        table->pairs.results[pair] = (uint8_t)table->entries[pair];
        table->pairs.flags[pair] = (uint8_t)(table->entries[pair] >> FLAGS);
        table->pairs.all_flags |= table->pairs.flags[pair];
    }
    return table;
}

/* If two threads race, both make the table, and one of them frees its copy. */
const struct tf_pair_table *tf_pair_table(int format, int op, ptrdiff_t n,
                                          tf_pairs_fn *compute)
{
    const struct tf_format *f = tf_format_rows[format];
    if (f->itemsize != 1) {
        return NULL;
    }
    struct tf_pair_table *table = atomic_load(&tables[op][format]);
    if (table) {
        return table;
    }
    const long before = atomic_fetch_add(&computed[op][format], (long)n);
    if (before + n < (1L << 2 * f->width) / 2) {
        return NULL;
    }
    const struct tf_fp saved = tf_fp_begin();
    struct tf_pair_table *made = make_table(format, op, compute);
    tf_fp_end(saved, 0);
    if (made && !atomic_compare_exchange_strong(&tables[op][format], &table, made)) {
        free(made);
        return table;
    }
    return made;
}

/* -- looking up ------------------------------------------------------------------- */

TF_INLINE uint16_t entry_of(const struct tf_pair_table *table, int width, uint8_t a,
                            uint8_t b)
{
    const unsigned mask = (1u << width) - 1;
    return table->entries[(a & mask) << width | (b & mask)];
}

/* Looks up eight results at a time: all loads come before the stores. */
TF_INLINE unsigned look_up(const struct tf_pair_table *table, int width,
                           const uint8_t *a, const uint8_t *b, uint8_t *out, size_t n)
{
    unsigned seen = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16_t found[8];
        for (size_t k = 0; k < 8; k++) {
            found[k] = entry_of(table, width, a[i + k], b[i + k]);
        }
        for (size_t k = 0; k < 8; k++) {
            seen |= found[k];
            out[i + k] = (uint8_t)found[k];
        }
    }
    for (; i < n; i++) {
        const uint16_t found = entry_of(table, width, a[i], b[i]);
        seen |= found;
        out[i] = (uint8_t)found;
    }
    return seen >> FLAGS;
}

/* Looks up one result at a time, stored before the next operands are read. */
static unsigned look_up_serially(const struct tf_pair_table *table,
                                 char *const data[3], const ptrdiff_t strides[3],
                                 ptrdiff_t n)
{
    const char *a = data[0], *b = data[1];
    char *out = data[2];
    unsigned seen = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const uint16_t found =
            entry_of(table, table->width, (uint8_t)*a, (uint8_t)*b);
        *out = (char)found;
        seen |= found;
        a += strides[0];
        b += strides[1];
        out += strides[2];
    }
    return seen >> FLAGS;
}

/* Returns the address of the item that the i-th index names. */
static inline char *item_at(char *const data[3], const ptrdiff_t strides[3],
                            ptrdiff_t size, ptrdiff_t i)
{
    return data[0] + tf_index_at(data[1], strides[1], size, i) * strides[0];
}

unsigned tf_look_up_pairs_at(const struct tf_pair_table *table, char *const data[3],
                             const ptrdiff_t strides[3], ptrdiff_t size, ptrdiff_t n)
{
    const char *operand = data[2];
    unsigned seen = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i < n - TF_INDICES_AHEAD) {
            __builtin_prefetch(item_at(data, strides, size, i + TF_INDICES_AHEAD), 1);
        }
        char *item = item_at(data, strides, size, i);
        const uint16_t found =
            entry_of(table, table->width, (uint8_t)*item, (uint8_t)*operand);
        *item = (char)found;
        seen |= found;
        operand += strides[2];
    }
    return seen >> FLAGS;
}

static struct tf_pair_line line_of(const struct tf_pair_table *table, uint8_t fixed,
                                   int first)
{
    struct tf_pair_line line = {.all_flags = 0};
    for (unsigned item = 0; item < 256; item++) {
        const uint8_t other = (uint8_t)item;
        const uint16_t found = first ? entry_of(table, table->width, fixed, other)
                                     : entry_of(table, table->width, other, fixed);
        line.results[item] = (uint8_t)found;
        line.flags[item] = (uint8_t)(found >> FLAGS);
        line.all_flags |= found >> FLAGS;
    }
    return line;
}

/* Looks up by vectors: two items of TF_FEW_BITS make one byte. */
static unsigned look_up_few_bits(const struct tf_pair_table *table, const uint8_t *a,
                                 const uint8_t *b, uint8_t *out, size_t n,
                                 unsigned raised)
{
    uint8_t pairs[TF_CHUNK];
    for (size_t i = 0; i < n; i++) {
        pairs[i] = (uint8_t)(a[i] << TF_FEW_BITS | (b[i] & ((1 << TF_FEW_BITS) - 1)));
    }
    return tf_look_up_chunk(&table->pairs, pairs, out, n, raised);
}

unsigned tf_look_up_pairs(const struct tf_pair_table *table, char *const data[3],
                          const ptrdiff_t strides[3], ptrdiff_t n, int serial)
{
    if (serial) {
        return look_up_serially(table, data, strides, n);
    }
    const int fixed = strides[0] == 0 ? 0 : strides[1] == 0 ? 1 : -1;
    if (fixed >= 0 && n >= TF_CHUNK) {
        const struct tf_pair_line line =
            line_of(table, *(const uint8_t *)data[fixed], fixed == 0);
        return tf_look_up_line(&line, data[1 - fixed], strides[1 - fixed], data[2],
                               strides[2], n);
    }
    TF_BUFFER(a_buffer);
    TF_BUFFER(b_buffer);
    TF_BUFFER(buffer);
    unsigned flags = 0;
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        char *out = data[2] + done * strides[2];
        void *target = tf_target(out, strides[2], 1, buffer);
        const uint8_t *a =
            tf_gather(data[0] + done * strides[0], strides[0], 1, count, a_buffer);
        const uint8_t *b =
            tf_gather(data[1] + done * strides[1], strides[1], 1, count, b_buffer);
        if (table->width == TF_FEW_BITS) {
            flags |= look_up_few_bits(table, a, b, target, count, flags);
        } else if (table->width == 8) {
            flags |= look_up(table, 8, a, b, target, count);
        } else {
            flags |= look_up(table, table->width, a, b, target, count);
        }
        tf_scatter(target, out, strides[2], 1, count);
    }
    return flags;
}
