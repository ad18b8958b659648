#include "mma_steps.h"

#include "dot_operands.h"
#include "formats/fast_codec.h"

/* -- codes --------------------------------------------------------------------------- */

int accumulator_format(int half) { return half ? ANY_FLOAT16 : ANY_FLOAT32; }

uint64_t accumulator_code(int half, uint32_t bits)
{
    if (!half) {
        return bits;
    }
    return tf_mma_is_nan(bits) ? 0x7FFF : tf_code_of_single(tf_float16, bits);
}

uint32_t accumulator_bits(int half, uint64_t code)
{
    return operand_bits(accumulator_format(half), code);
}

struct term accumulator_term(int half, uint32_t bits, int32_t zero_exponent)
{
    const struct tf_mma_number z =
        tf_mma_decode(bits, half ? TF_LEAST_HALF : TF_LEAST_SINGLE);
    const struct term term = {0, 0, (int)(bits >> 31), z.significand, z.exponent - 23,
                              z.significand ? z.exponent : zero_exponent};
    return term;
}

/* -- pieces -------------------------------------------------------------------------- */

static void write_ks(const int32_t *ks, int32_t count)
{
    json_key("ks");
    json_open('[');
    for (int32_t i = 0; i < count; i++) {
        json_integer(ks[i]);
    }
    json_close(']');
}

static void write_exponent(const char *name, int32_t exponent)
{
    json_key(name);
    if (exponent <= TF_NO_EXPONENT / 2) {
        json_null();
    } else {
        json_integer(exponent);
    }
}

static void write_units(const char *name, int64_t units)
{
    json_key(name);
    json_begin_text();
    json_put(units < 0 ? "-0x" : "0x");
    json_put_hex(units < 0 ? 0 - (uint64_t)units : (uint64_t)units, 1);
    json_end_text();
}

/* How the exact sum became the result. */
static void write_sum_rounding(const struct sum_rounding *how, const struct exact *total,
                               uint64_t code)
{
    struct exact result, off, half_unit;
    any_exact(&result, accumulator_format(how->half), code);
    json_key("rounding");
    json_open('{');
    json_text_of("how", how->nearest ? "to nearest" : "toward zero");
    if (!exact_is_finite(&result)) {
        json_boolean_of("up", 0);
        json_boolean_of("tie", 0);
        json_boolean_of("overflow", 1);
        json_null_of("off");
        json_close('}');
        return;
    }
    exact_subtract(&off, &result, total);
    const int exact = exact_is_zero(&off), up = !exact && off.negative == total->negative;
    int tie = 0;
    if (!exact) {
        const int32_t least = how->half ? TF_LEAST_HALF : TF_LEAST_SINGLE;
        const int32_t top = exact_top(total);
        exact_set(&half_unit, off.negative, 1, (top > least ? top : least) - how->kept - 1);
        tie = how->nearest && exact_compare(&off, &half_unit) == 0;
    }
    json_boolean_of("up", up);
    json_boolean_of("tie", tie);
    json_boolean_of("overflow", 0);
    off.negative = total->negative;
    if (exact) {
        json_null_of("off");
    } else {
        write_exact_of("off", &off);
    }
    json_close('}');
}

/* -- a group ------------------------------------------------------------------------- */

static void write_sources(const struct group *group, int32_t greatest)
{
    int found = 0;
    json_key("sources");
    json_open('[');
    for (int32_t i = 0; i < group->term_count && greatest > TF_NO_EXPONENT / 2; i++) {
        const struct term *term = &group->terms[i];
        if (term->exponent != greatest) {
            continue;
        }
        found = 1;
        json_begin_text();
        json_put(term->count ? "k " : "c");
        if (term->count) {
            json_put_integer(term->ks[0]);
        }
        if (term->count > 1) {
            json_put_character('-');
            json_put_integer(term->ks[term->count - 1]);
        }
        json_end_text();
    }
    if (!found && greatest > TF_NO_EXPONENT / 2) {
        json_text("the floor");
    }
    json_close(']');
}

/* Returns how often 2^unit is in it. */
static int64_t write_term(const struct term *term, int32_t unit)
{
    const int32_t shift = term->significand ? term->unit - unit : 0;
    const int64_t units = tf_mma_align(term->significand, shift, (uint32_t)term->negative);
    const uint64_t magnitude = units < 0 ? 0 - (uint64_t)units : (uint64_t)units;
    struct exact exact, kept, cut;
    exact_set(&exact, term->negative, term->significand, term->unit);
    exact_set(&kept, term->negative, magnitude, unit);
    exact_subtract(&cut, &exact, &kept);
    json_open('{');
    write_ks(term->ks, term->count);
    write_exact_of("exact", &exact);
    write_exponent("exponent", term->exponent);
    write_exact_of("kept", &kept);
    write_units("keptUnits", units);
    if (exact_is_zero(&cut)) {
        json_null_of("cut");
    } else {
        write_exact_of("cut", &cut);
    }
    json_close('}');
    return units;
}

static void begin_group(const struct group *group)
{
    json_open('{');
    json_text_of("kind", "group");
    write_ks(group->ks, group->count);
    write_value_of("accumulator", accumulator_format(group->rounding.half),
                   group->accumulator);
}

static void end_group(const struct group *group)
{
    write_value_of("result", accumulator_format(group->rounding.half), group->result);
    json_close('}');
}

void write_group(const struct group *group)
{
    int32_t greatest = group->floor;
    for (int32_t i = 0; i < group->term_count; i++) {
        const int32_t exponent = group->terms[i].exponent;
        greatest = exponent > greatest ? exponent : greatest;
    }
    const int none = greatest <= TF_NO_EXPONENT / 2;
    const int32_t unit = none ? 0 : greatest - group->fraction;
    begin_group(group);
    json_key("special");
    json_open('[');
    json_close(']');
    json_key("terms");
    json_open('[');
    int64_t sum = 0;
    for (int32_t i = 0; i < group->term_count; i++) {
        sum += write_term(&group->terms[i], unit);
    }
    json_close(']');
    write_exponent("greatest", greatest);
    write_sources(group, greatest);
    write_exponent("unit", none ? TF_NO_EXPONENT : unit);
    write_units("totalUnits", sum);
    struct exact total;
    exact_set(&total, sum < 0, sum < 0 ? 0 - (uint64_t)sum : (uint64_t)sum, unit);
    write_exact_of("total", &total);
    write_sum_rounding(&group->rounding, &total, group->result);
    end_group(group);
}

void begin_special_group(const struct group *group)
{
    begin_group(group);
    json_key("special");
    json_open('[');
}

void end_special_group(const struct group *group)
{
    json_close(']');
    json_key("terms");
    json_open('[');
    json_close(']');
    json_null_of("greatest");
    json_key("sources");
    json_open('[');
    json_close(']');
    json_null_of("unit");
    json_null_of("totalUnits");
    json_null_of("total");
    json_null_of("rounding");
    end_group(group);
}

/* -- an addition --------------------------------------------------------------------- */

void write_addition(int half, const int32_t *ks, int32_t count, uint32_t sum,
                    uint64_t accumulator, int promotes, uint64_t result)
{
    struct exact x, y, total;
    const int format = accumulator_format(half);
    const uint64_t sum_code = accumulator_code(half, sum);
    any_exact(&x, format, sum_code);
    any_exact(&y, format, accumulator);
    json_open('{');
    json_text_of("kind", "addition");
    write_ks(ks, count);
    write_value_of("sum", format, sum_code);
    write_value_of("accumulator", format, accumulator);
    json_boolean_of("promotes", promotes);
    if (exact_is_finite(&x) && exact_is_finite(&y)) {
        const struct sum_rounding how = {half, 1, half ? 10 : 23};
        exact_add(&total, &x, &y);
        write_sum_rounding(&how, &total, result);
    } else {
        json_null_of("rounding");
    }
    write_value_of("result", format, result);
    json_close('}');
}
