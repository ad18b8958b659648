/* Adds or multiplies two numbers of a format, step by step. */
#include "write_value.h"

/* Returns why Inf or NaN leaves nothing to align, and sets *result to the sum or product;
 * or returns 0. */
static const char *special_of(int multiplies, const struct exact *a, const struct exact *b,
                              struct exact *result)
{
    const int a_infinite = a->value_class == TF_INFINITY;
    const int b_infinite = b->value_class == TF_INFINITY;
    if (a->value_class == TF_NAN || b->value_class == TF_NAN) {
        exact_set_special(result, 0, TF_NAN);
        return "NaN";
    }
    if (!a_infinite && !b_infinite) {
        return 0;
    }
    const int opposite = a->negative != b->negative;
    if (multiplies ? exact_is_zero(a) || exact_is_zero(b)
                   : a_infinite && b_infinite && opposite) {
        exact_set_special(result, 0, TF_NAN);
        return multiplies ? "Inf times 0" : "Inf - Inf";
    }
    const int sign = multiplies ? opposite : a_infinite ? a->negative : b->negative;
    exact_set_special(result, sign, TF_INFINITY);
    return "Inf";
}

/* -- digits -------------------------------------------------------------------------- */

/* Writes the magnitude of x, a multiple of 2^unit, in units of 2^unit. */
static void units_of(struct big *units, const struct exact *x, int32_t unit)
{
    big_copy(units, &x->number);
    if (units->count) {
        big_shift_left(units, x->exponent - unit);
    }
}

static void put_bits(const struct big *units, int32_t from, int32_t to) /* highest first */
{
    for (int32_t place = from; place >= to; place--) {
        json_put_character(big_bit(units, place) ? '1' : '0');
    }
}

/* Writes the digits of x in units of 2^unit, with zeros before them up to `width`
 * digits. */
static void write_digits(const char *name, const struct exact *x, int32_t unit, int32_t width)
{
    struct big units;
    units_of(&units, x, unit);
    const int32_t bits = big_bits(&units);
    json_key(name);
    json_open('{');
    json_boolean_of("negative", x->negative);
    json_key("bits");
    json_begin_text();
    put_bits(&units, (bits > width ? bits : width) - 1, 0);
    json_end_text();
    write_exact_of("exact", x);
    json_close('}');
}

static int32_t bits_in(const struct exact *x, int32_t unit)
{
    return exact_is_zero(x) ? 1 : big_bits(&x->number) + x->exponent - unit;
}

static int32_t longest(int32_t a, int32_t b) { return a > b ? a : b; }

/* Returns the exponent of the last mantissa bit of a code, normal or subnormal. */
static int32_t unit_of(int format, uint64_t code)
{
    const struct tf_format f = any_format(format);
    const uint64_t exponents = (UINT64_C(1) << f.exponent_bits) - 1;
    const int32_t field = (int32_t)(code >> f.mantissa_bits & exponents);
    const int32_t first = f.specials == TF_EXPONENT_ONLY ? 0 : 1;
    return (field > first ? field : first) - f.bias - f.mantissa_bits;
}

/* -- rounding ------------------------------------------------------------------------ */

static void write_bit(const char *name, int bit)
{
    json_text_of(name, bit ? "1" : "0");
}

static void write_cut(const char *name, const struct big *units, int32_t from)
{
    json_key(name);
    json_begin_text();
    put_bits(units, from, 0);
    json_end_text();
}

/* Writes the digits of the exact result that the format keeps, down to 2^last, the guard,
 * round and sticky bits, and whether the kept digits grew. `code` is the rounded result. */
static void write_rounding(int format, const struct exact *exact, int32_t unit, int32_t last,
                           uint64_t code)
{
    struct big units, kept, below;
    struct exact cut, rounded;
    units_of(&units, exact, unit);
    const int32_t places = last > unit ? last - unit : 0;
    big_copy(&kept, &units);
    big_shift_right(&kept, places);
    big_copy(&below, &kept);
    big_shift_left(&below, places);
    big_subtract(&below, &units, &below);
    json_key("rounding");
    json_open('{');
    json_key("kept");
    json_begin_text();
    put_bits(&units, longest(big_bits(&units), places + 1) - 1, places);
    json_end_text();
    const int guard = big_bit(&below, places - 1), round = big_bit(&below, places - 2);
    const int sticky = below.count != 0 && big_trailing_zeros(&below) < places - 2;
    write_bit("guard", guard);
    write_bit("round", round);
    write_bit("sticky", sticky);
    write_cut("rest", &below, places - 1);
    /* Compare the magnitude of the rounded result with that of the kept digits. */
    any_exact(&rounded, format, code);
    exact_copy(&cut, exact);
    big_copy(&cut.number, &kept);
    cut.exponent = unit + places;
    exact_normalize(&cut);
    cut.negative = 0;
    rounded.negative = 0;
    json_boolean_of("up", !exact_is_finite(&rounded) || exact_compare(&rounded, &cut) > 0);
    json_boolean_of("tie", guard && !round && !sticky);
    json_close('}');
}

/* -- the call ------------------------------------------------------------------------ */

static void write_steps(int multiplies, int format, const struct exact *a,
                        const struct exact *b, uint64_t a_code, uint64_t b_code,
                        const struct exact *exact, uint64_t code)
{
    const int32_t a_unit = unit_of(format, a_code), b_unit = unit_of(format, b_code);
    const int32_t least = a_unit < b_unit ? a_unit : b_unit;
    const int32_t unit = multiplies ? a_unit + b_unit : least;
    const int32_t of_a = multiplies ? a_unit : least, of_b = multiplies ? b_unit : least;
    int32_t width = longest(bits_in(a, of_a), bits_in(b, of_b));
    width = multiplies ? width : longest(width, bits_in(exact, unit));
    int32_t last = unit;
    if (!exact_is_zero(exact)) {
        last = any_last_place(format, exact_to_value(exact));
    }
    json_integer_of("unit", unit);
    json_key("rows");
    json_open('{');
    write_digits("a", a, of_a, width);
    write_digits("b", b, of_b, width);
    json_close('}');
    json_key("units");
    json_open('{');
    json_integer_of("a", of_a);
    json_integer_of("b", of_b);
    json_close('}');
    write_digits("result", exact, unit, multiplies ? 1 : width);
    json_integer_of("last", last);
    write_rounding(format, exact, unit, last, code);
}

EXPORTED(operate)
int32_t page_operate(int multiplies, int format, uint64_t a_code, uint64_t b_code,
                     int rounding, int overflow);

int32_t page_operate(int multiplies, int format, uint64_t a_code, uint64_t b_code,
                     int rounding, int overflow)
{
    if (!any_is_code(format, a_code) || !any_is_code(format, b_code)) {
        return json_failure("the code has more bits than the format");
    }
    struct exact a, b, exact;
    unsigned flags;
    any_exact(&a, format, a_code);
    any_exact(&b, format, b_code);
    const char *special = special_of(multiplies, &a, &b, &exact);
    if (!special && multiplies) {
        exact_multiply(&exact, &a, &b);
    } else if (!special) {
        exact_add(&exact, &a, &b);
        /* IEEE 754, 6.3: a sum that cancels is -0 only when rounding toward -Inf. */
        if (exact_is_zero(&exact) && a.negative != b.negative) {
            exact.negative = rounding == TF_TOWARD_NEGATIVE;
        }
    }
    const uint64_t code = any_encode(format, &exact, (enum tf_rounding)rounding,
                                     (enum tf_overflow)overflow, 0, &flags);
    const int invalid = exact.value_class == TF_NAN && a.value_class != TF_NAN &&
                        b.value_class != TF_NAN;
    json_begin();
    json_open('{');
    write_value_of("a", format, a_code);
    write_value_of("b", format, b_code);
    json_text_of("special", special ? special : "");
    if (special) {
        json_null_of("unit");
        json_null_of("rows");
        json_null_of("units");
        json_null_of("result");
        json_null_of("last");
        json_null_of("rounding");
    } else {
        write_steps(multiplies, format, &a, &b, a_code, b_code, &exact, code);
    }
    write_rounded_of("rounded", format, code, invalid ? flags | TF_INVALID : flags, &exact);
    json_close('}');
    return json_end();
}
