/* Describes the formats, parses typed input, and describes codes and their neighbors. */
#include "input.h"
#include "read_number.h"
#include "write_value.h"

/* -- the table ----------------------------------------------------------------------- */

static void write_facts(int index)
{
    const struct tf_format f = any_format(index);
    const int only = f.specials == TF_EXPONENT_ONLY;
    const uint64_t normal = only ? 0 : UINT64_C(1) << f.mantissa_bits;
    json_open('{');
    json_text_of("name", f.name);
    json_boolean_of("ours", index < TF_FORMAT_COUNT);
    json_integer_of("bits", f.width);
    json_integer_of("storageBits", 8 * f.itemsize);
    json_integer_of("unusedLowBits", f.shift);
    json_integer_of("exponentBits", f.exponent_bits);
    json_integer_of("mantissaBits", f.mantissa_bits);
    json_integer_of("bias", f.bias);
    json_boolean_of("signed", f.is_signed);
    json_boolean_of("infinity", any_has_infinity(index));
    json_boolean_of("nan", any_nan(index) != 0);
    json_boolean_of("zero", !only);
    json_boolean_of("negativeZero", any_has_negative_zero(index));
    json_boolean_of("subnormals", f.mantissa_bits > 0);
    write_value_of("max", index, any_maximum(index));
    write_value_of("min", index, only ? 0 : any_maximum(index) | any_sign_mask(index));
    write_value_of("smallestNormal", index, normal);
    write_value_of("smallest", index, only ? 0 : 1);
    write_units_of("eps", 0, 1, -f.mantissa_bits);
    json_close('}');
}

EXPORTED(formats) int32_t page_formats(void);

int32_t page_formats(void)
{
    json_begin();
    json_open('[');
    for (int index = 0; index < ANY_COUNT; index++) {
        write_facts(index);
    }
    json_close(']');
    return json_end();
}

/* -- typed input --------------------------------------------------------------------- */

/* Writes a typed code to *code. Returns 0, or why it is not a code of this format. */
static const char *code_of_typed(int format, struct typed typed, uint64_t *code)
{
    const struct tf_format f = any_format(format);
    *code = typed.code;
    if (typed.binary) {
        return typed.digits > f.width ? "it has more bits than a code of the format" : 0;
    }
    /* The item as it is stored in memory; unused low bits are ignored. */
    const int width = f.width + f.shift;
    if (width < 64 && typed.code >> width) {
        return "it has more bits than an item of the format";
    }
    *code = typed.code >> f.shift;
    return 0;
}

static int32_t nothing_typed(const char *why)
{
    json_begin();
    json_open('{');
    json_text_of("error", why);
    json_boolean_of("isCode", 0);
    json_text_of("text", "");
    json_null_of("exact");
    json_null_of("rounded");
    json_close('}');
    return json_end();
}

EXPORTED(parse)
int32_t page_parse(int format, int rounding, int overflow, int32_t n);

int32_t page_parse(int format, int rounding, int overflow, int32_t n)
{
    struct exact x;
    unsigned flags = 0;
    uint64_t code;
    const struct typed typed = read_number(input_text, n, &x);
    if (typed.error) {
        return nothing_typed(typed.error);
    }
    if (typed.is_code) {
        const char *why = code_of_typed(format, typed, &code);
        if (why) {
            return nothing_typed(why);
        }
        any_exact(&x, format, code);
    } else {
        code = any_encode(format, &x, (enum tf_rounding)rounding,
                          (enum tf_overflow)overflow, 0, &flags);
    }
    json_begin();
    json_open('{');
    json_text_of("error", "");
    json_boolean_of("isCode", typed.is_code);
    write_text_of("text", &x);
    write_exact_of("exact", &x);
    write_rounded_of("rounded", format, code, flags, &x);
    json_close('}');
    return json_end();
}

/* -- codes --------------------------------------------------------------------------- */

static const char not_a_code[] = "the code has more bits than the format";

EXPORTED(describe) int32_t page_describe(int format, uint64_t code);

int32_t page_describe(int format, uint64_t code)
{
    if (!any_is_code(format, code)) {
        return json_failure(not_a_code);
    }
    json_begin();
    write_value(format, code);
    return json_end();
}

/* Advances the position of a finite number by `step`, 1 or -1 (see any_at_place). Returns
 * whether the next number exists. */
static int next_place(int format, int64_t *place, int step)
{
    const int64_t greatest = (int64_t)any_maximum(format);
    const int64_t least = any_sign_mask(format) ? -greatest : 0;
    *place += step;
    return *place >= least && *place <= greatest;
}

static void write_neighbor(const char *name, const char *gap_name, int format,
                            uint64_t code, int step)
{
    struct exact x, beside, gap;
    any_exact(&x, format, code);
    int64_t place = exact_is_finite(&x) ? any_place(format, code) : 0;
    if (!exact_is_finite(&x) || !next_place(format, &place, step)) {
        json_null_of(name);
        json_null_of(gap_name);
        return;
    }
    const uint64_t other = any_at_place(format, place);
    any_exact(&beside, format, other);
    exact_subtract(&gap, &beside, &x);
    gap.negative = 0;
    write_value_of(name, format, other);
    write_exact_of(gap_name, &gap);
}

EXPORTED(neighbors) int32_t page_neighbors(int format, uint64_t code);

int32_t page_neighbors(int format, uint64_t code)
{
    if (!any_is_code(format, code)) {
        return json_failure(not_a_code);
    }
    json_begin();
    json_open('{');
    write_neighbor("below", "gapBelow", format, code, -1);
    write_neighbor("above", "gapAbove", format, code, 1);
    json_close('}');
    return json_end();
}
