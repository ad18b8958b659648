/* Tables of the one-byte formats, filled once when the package is imported: all 256
 * items, as float32 bits and as their two upper bytes (the two lower ones are zero: no
 * format of a byte has more than 7 mantissa bits), and their order. */
#ifndef TF32DTYPE_FORMATS_BYTE_TABLES_H
#define TF32DTYPE_FORMATS_BYTE_TABLES_H

#include "formats/formats.h"
#include "formats/kernels.h"
#include "runtime/asserts.h"

/* Facts for loops that compute bfloat16 numbers of codes by integer operations. A code is
 * shifted left by `up` first, so that its sign is the highest bit. Then
 *
 *     x = (code & magnitude) * factor + offset     (the bits of the magnitude)
 *     min(x, 2 x - least)                          (the magnitude)
 *
 * since x has 1 + fraction instead of the fraction of a subnormal number. Codes with a
 * magnitude of at least `special` are NaN or Inf. If `sign_is_nan`, the code that has only
 * the sign bit is NaN. */
struct tf_byte_as_bf16 {
    int is_possible;
    int up;
    uint8_t magnitude, factor, special;
    int has_infinity; /* it is `special` */
    int sign_is_nan;
    uint16_t offset;
    float least;
};

struct tf_byte_table {
    uint8_t predicates[TF_PREDICATE_COUNT][256];
    uint32_t bits[256];
    uint8_t high[256];
    uint8_t low[256];
    /* Whether the halves of either are equal but for this bit of `high`. */
    int halved;
    uint8_t sign;
    uint8_t rank[256];  /* among all numbers, -0 below +0; NaN is 255 */
    uint8_t order[256]; /* the same, but zeros are equal */
    uint8_t item[256];  /* of a rank */
    /* Codes of at most six bits, whatever is above them, as multiples of the least
     * number; are these of at most a byte, and finite? */
    int8_t integers[64];
    int has_integers;
    /* All items, unused bits included, in the order of the numbers; then those that are
     * NaN. */
    uint8_t sequence[256];
    int number_count; /* of the items that are numbers */
    uint8_t sign_code; /* only the sign bit is set; 0 if there is none */
    struct tf_byte_as_bf16 as_bf16;
};

/* What an item is worth, in `bits`, `high` and `low`. */
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
