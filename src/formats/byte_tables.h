/* Tables of the one-byte formats, filled once when the package is imported. They hold the
 * value and the order of all 256 items. A value is stored as float32 bits and as their
 * two upper bytes. The two lower bytes are zero, because such a format has at most 7
 * mantissa bits. */
#ifndef TF32DTYPE_FORMATS_BYTE_TABLES_H
#define TF32DTYPE_FORMATS_BYTE_TABLES_H

#include "formats/byte_order.h"
#include "formats/formats.h"
#include "formats/kernels.h"
#include "runtime/asserts.h"

/* Facts for loops that compute bfloat16 numbers of codes by integer operations. A code is
 * shifted left by `up` first, so that its sign is the highest bit. Then
 *
 *     x = (code & magnitude) * factor + offset     (the bits of the magnitude over scale)
 *     min(x, 2 x - least) * scale                  (the magnitude)
 *
 * since x has 1 + fraction instead of the fraction of a subnormal number. Codes with a
 * magnitude of at least `special` are NaN or Inf. If `sign_is_nan`, the code that has only
 * the sign bit is NaN. Sums of products of integers are in units of `product`: see
 * add_products_of_words in matmul/kernels/words.h. */
struct tf_byte_as_bf16 {
    int is_possible;
    int up;
    uint8_t magnitude, factor, special;
    int has_infinity; /* its magnitude is `special` */
    int sign_is_nan;
    int mantissa_bits;
    uint16_t offset;
    float least, scale, product;
};

struct tf_byte_table {
    uint32_t bits[256];
    uint8_t high[256];
    uint8_t low[256];
    /* Whether items i and i + 128 differ only in the bit `sign` of `high`. */
    int halved;
    uint8_t sign;
    struct tf_byte_order order; /* -0 is below +0 */
    /* Values of the codes of at most six bits, as multiples of the smallest number. Only
     * formats whose values are all finite and fit a byte have them. */
    int8_t integers[64];
    int has_integers;
    /* All items, unused bits included, in the order of their numbers; NaN come last. */
    uint8_t sequence[256];
    int number_count; /* of the items in `sequence` before NaN */
    /* With a scale of 1; and, if the format has Inf, with the offset that makes x Inf or NaN
     * where the number is. */
    struct tf_byte_as_bf16 as_bf16[2];
};

/* Stores the value of an item in `bits`, `high` and `low`. */
static inline void tf_set_value(struct tf_byte_table *table, uint32_t item, float x)
{
    const uint32_t bits = tf_bits_of(x);
    TF_ASSERT(item < 256);
    table->bits[item] = bits;
    table->high[item] = (uint8_t)(bits >> 24);
    table->low[item] = (uint8_t)(bits >> 16);
}

extern struct tf_byte_table tf_byte_tables[TF_FORMAT_COUNT];

void tf_byte_tables_fill(void);

#endif
