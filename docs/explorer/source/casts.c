/* Rounds a value to a format: once, by all roundings, and through several formats. */
#include "input.h"
#include "write_value.h"

/* Reads a value from the whole input. Returns why it is not one, or 0. */
static const char *whole_text(int32_t n, struct exact *x)
{
    const char *at = input_text;
    return input_value(&at, &n, x);
}

EXPORTED(round)
int32_t page_round(int format, int rounding, int overflow, uint64_t draw, int32_t n);

int32_t page_round(int format, int rounding, int overflow, uint64_t draw, int32_t n)
{
    struct exact x;
    unsigned flags;
    const char *why = whole_text(n, &x);
    if (why) {
        return json_failure(why);
    }
    const uint64_t code = any_encode(format, &x, (enum tf_rounding)rounding,
                                     (enum tf_overflow)overflow, draw, &flags);
    json_begin();
    json_open('{');
    write_rounded_members(format, code, flags, &x);
    json_close('}');
    return json_end();
}

enum { CHANCE_DIGITS = 40, LONGEST_CHAIN = 16 };

/* -- all roundings ------------------------------------------------------------------- */

/* Writes the probability that a number rounds away from zero: the fraction of its magnitude
 * in units in the last place. */
static void exact_chance(struct exact *chance, int format, const struct exact *x)
{
    const struct tf_value value = exact_to_value(x);
    const int unit = any_last_place(format, value);
    struct exact whole;
    exact_set(&whole, 0, tf_in_units_of(value, unit).kept, 0);
    exact_copy(chance, x);
    chance->negative = 0;
    chance->exponent -= unit;
    exact_subtract(chance, chance, &whole);
}

static void write_stochastic(int format, const struct exact *x, enum tf_overflow overflow)
{
    struct exact chance;
    unsigned down_flags, up_flags;
    const uint64_t down =
        any_encode(format, x, TF_STOCHASTIC, overflow, UINT64_MAX, &down_flags);
    const uint64_t up = any_encode(format, x, TF_STOCHASTIC, overflow, 0, &up_flags);
    if (down == up) {
        exact_set(&chance, 0, 0, 0);
    } else {
        exact_chance(&chance, format, x);
    }
    json_key("stochastic");
    json_open('{');
    write_rounded_of("down", format, down, down_flags, x);
    write_rounded_of("up", format, up, up_flags, x);
    write_number_of("probability", &chance);
    write_short_of("chance", &chance, CHANCE_DIGITS);
    json_close('}');
}

EXPORTED(all_roundings)
int32_t page_all_roundings(int format, int overflow, int32_t n);

int32_t page_all_roundings(int format, int overflow, int32_t n)
{
    struct exact x;
    const char *why = whole_text(n, &x);
    if (why) {
        return json_failure(why);
    }
    json_begin();
    json_open('{');
    write_exact_of("exact", &x);
    json_key("rows");
    json_open('[');
    for (int rounding = 0; rounding < TF_STOCHASTIC; rounding++) {
        unsigned flags;
        const uint64_t code = any_encode(format, &x, (enum tf_rounding)rounding,
                                         (enum tf_overflow)overflow, 0, &flags);
        json_open('{');
        json_integer_of("rounding", rounding);
        write_rounded_members(format, code, flags, &x);
        json_close('}');
    }
    json_close(']');
    write_stochastic(format, &x, (enum tf_overflow)overflow);
    json_close('}');
    return json_end();
}

/* -- from format to format ----------------------------------------------------------- */

EXPORTED(cast)
int32_t page_cast(int from, uint64_t code, int to, int rounding, int overflow,
                  uint64_t draw);

int32_t page_cast(int from, uint64_t code, int to, int rounding, int overflow,
                  uint64_t draw)
{
    if (!any_is_code(from, code)) {
        return json_failure("the code has more bits than the format");
    }
    struct exact x, there, back;
    unsigned flags, back_flags;
    any_exact(&x, from, code);
    const uint64_t result = any_encode(to, &x, (enum tf_rounding)rounding,
                                       (enum tf_overflow)overflow, draw, &flags);
    any_exact(&there, to, result);
    const uint64_t again = any_encode(from, &there, (enum tf_rounding)rounding,
                                      (enum tf_overflow)overflow, draw, &back_flags);
    any_exact(&back, from, again);
    json_begin();
    json_open('{');
    write_rounded_members(to, result, flags, &x);
    write_value_of("back", from, again);
    json_boolean_of("same", exact_equal(&back, &x) && (x.value_class == TF_NAN ||
                                                       back.negative == x.negative));
    json_close('}');
    return json_end();
}

EXPORTED(chain) int32_t page_chain(int32_t count, int rounding, int overflow, int32_t n);

int32_t page_chain(int32_t count, int rounding, int overflow, int32_t n)
{
    struct exact x, step, before;
    unsigned flags;
    const char *why = whole_text(n, &x);
    if (why || count < 1 || count > LONGEST_CHAIN) {
        return json_failure(why ? why : "a chain has 1 to 16 formats");
    }
    json_begin();
    json_open('{');
    write_exact_of("exact", &x);
    json_key("steps");
    json_open('[');
    exact_copy(&step, &x);
    uint64_t code = 0;
    const int last = (int)input_list[0][count - 1];
    for (int32_t i = 0; i < count; i++) {
        const int format = (int)input_list[0][i];
        code = any_encode(format, &step, (enum tf_rounding)rounding,
                          (enum tf_overflow)overflow, 0, &flags);
        exact_copy(&before, &step);
        any_exact(&step, format, code);
        json_open('{');
        write_rounded_members(format, code, flags, &before);
        json_close('}');
    }
    json_close(']');
    const uint64_t direct = any_encode(last, &x, (enum tf_rounding)rounding,
                                       (enum tf_overflow)overflow, 0, &flags);
    write_rounded_of("direct", last, direct, flags, &x);
    json_boolean_of("differs", direct != code);
    json_close('}');
    return json_end();
}
