/* Fills the tables of the one-byte formats: values, predicates and order of all items. */
#include "formats/byte_tables.h"

#include <math.h>

#include "formats/fast_codec.h"
#include "formats/scalar_ops.h"
#include "runtime/asserts.h"

struct tf_byte_table tf_byte_tables[TF_FORMAT_COUNT];

static struct tf_byte_as_bf16 as_bf16(struct tf_format f, int with_inf)
{
    enum { BIAS = 127, BITS = 7, EXPONENT_OF_INF = 255, WORD = 16 };
    const int up = 8 - f.width, largest = (1 << f.exponent_bits) - 1; /* exponent */
    const int has_great_nan = f.specials == TF_IEEE || f.specials == TF_FN;
    const int excess = with_inf ? EXPONENT_OF_INF - largest - (BIAS - f.bias) : 0;
    const struct tf_byte_as_bf16 found = {
        .is_possible = f.is_signed,
        .up = up,
        .magnitude = (uint8_t)(tf_magnitude_mask(f) << up),
        .factor = (uint8_t)(f.is_signed ? 1 << f.exponent_bits : 0),
        .special = (uint8_t)(has_great_nan ? (tf_maximum_magnitude(f) + 1) << up : 0xFF),
        .has_infinity = f.specials == TF_IEEE,
        .sign_is_nan = f.specials == TF_FNUZ,
        .offset = (uint16_t)((BIAS - f.bias + excess) << BITS),
        .least = ldexpf(1, 1 - f.bias + excess),
        .scale = ldexpf(1, -excess),
        .mantissa_bits = f.mantissa_bits,
        .product = ldexpf(1, BIAS - WORD - 2 * (f.bias + f.mantissa_bits)),
    };
    return found;
}

static struct tf_byte_order order_of(struct tf_format f)
{
    const int has_infinity = f.specials == TF_IEEE, is_fnuz = f.specials == TF_FNUZ;
    const uint32_t largest = tf_maximum_magnitude(f) + (uint32_t)has_infinity;
    const int has_large_nan = !is_fnuz && f.specials != TF_FINITE;
    const struct tf_byte_order found = {
        .magnitude = (uint8_t)tf_magnitude_mask(f),
        .sign = (uint8_t)tf_sign_mask(f),
        .first_special =
            (uint8_t)(has_large_nan ? largest + 1 - (uint32_t)has_infinity : 255),
        .first_nan = (uint8_t)(has_large_nan ? largest + 1 : 255),
        .sign_is_nan = is_fnuz ? 255 : 0,
        .negative_zero = (uint8_t)largest,
        .zero = (uint8_t)(f.is_signed ? largest + !is_fnuz : 0),
        .nan = (uint8_t)tf_nan_code(f),
    };
    return found;
}

/* Lists all items in ascending order of their numbers, then NaN, negative ones first. */
static void fill_sequence(struct tf_format f, struct tf_byte_table *table)
{
    const uint32_t sign = tf_sign_mask(f), codes = UINT32_C(1) << f.width;
    int count = 0;
    for (int nan = 0; nan < 2; nan++) {
        for (uint32_t i = 0; i < codes; i++) {
            const uint32_t code = i < sign ? 2 * sign - 1 - i : i - sign;
            if (tf_is_nan(f, code) != nan) {
                continue;
            }
            for (uint32_t item = code; item < 256; item += codes) {
                table->sequence[count++] = (uint8_t)item;
            }
        }
        table->number_count = nan ? table->number_count : count;
    }
    TF_ASSERT(count == 256);
}

static int is_nan(const struct tf_byte_table *table, int item)
{
    return tf_rank_of_byte(table->order, (uint8_t)item) == TF_RANK_OF_NAN;
}

/* Sets `halved` if items i and i + 128 differ only in the bit `sign` of `high`. The sign
 * of NaN is not compared. */
static void fill_halved(struct tf_byte_table *table)
{
    enum { HALF = 128, ONE = 1 };
    table->sign = table->high[ONE] ^ table->high[ONE + HALF];
    table->halved = (table->sign & 0x7F) == 0;
    for (int i = 0; i < HALF; i++) {
        const int other = i + HALF;
        const int nan = is_nan(table, i);
        table->halved &=
            is_nan(table, other) == nan &&
            table->low[i] == table->low[other] &&
            (nan || (table->high[i] ^ table->high[other]) == table->sign);
    }
}

static void fill_integers(struct tf_format f, struct tf_byte_table *table)
{
    const float unit = ldexpf(1, tf_least_exponent(f));
    const float greatest = tf_float_of(table->bits[tf_maximum_magnitude(f)]);
    table->has_integers =
        f.specials == TF_FINITE && f.width <= 6 && greatest / unit <= INT8_MAX;
    for (int code = 0; table->has_integers && code < 64; code++) {
        table->integers[code] = (int8_t)(tf_float_of(table->bits[code]) / unit);
    }
}

void tf_byte_tables_fill(void)
{
    for (int format = 0; format < TF_FORMAT_COUNT; format++) {
        const struct tf_format f = *tf_format_rows[format];
        struct tf_byte_table *table = &tf_byte_tables[format];
        if (f.itemsize != 1) {
            continue;
        }
        table->as_bf16[0] = as_bf16(f, 0);
        table->as_bf16[1] = as_bf16(f, f.specials == TF_IEEE);
        table->order = order_of(f);
        fill_sequence(f, table);
        for (uint32_t item = 0; item < 256; item++) {
            const char byte = (char)(unsigned char)item;
            tf_set_value(table, item, (float)tf_double_from_code(f, tf_load_code(f, &byte)));
        }
        fill_halved(table);
        fill_integers(f, table);
    }
}
