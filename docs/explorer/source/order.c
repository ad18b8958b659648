/* Lists numbers of a format in ascending order. */
#include "input.h"
#include "write_value.h"

enum { MOST_VALUES = 2000 };

/* Returns the position (see any_at_place) of the first number from x on, upward or
 * downward; a position outside the format's range if no such number exists. */
static int64_t place_from(int format, const struct exact *x, int upward)
{
    const int64_t greatest = (int64_t)any_maximum(format);
    const int64_t least = any_sign_mask(format) ? -greatest : 0;
    struct exact last;
    any_exact(&last, format, any_at_place(format, greatest));
    if (x->value_class == TF_INFINITY) {
        return x->negative ? (upward ? least : least - 1) : (upward ? greatest + 1 : greatest);
    }
    if (exact_compare(x, &last) > 0) {
        return upward ? greatest + 1 : greatest;
    }
    any_exact(&last, format, any_at_place(format, least));
    if (exact_compare(x, &last) < 0) {
        return upward ? least : least - 1;
    }
    /* Only e8m0 has no zero to round to, and values below its smallest number returned
     * above. */
    unsigned flags;
    const uint64_t code = any_encode(format, x, upward ? TF_TOWARD_POSITIVE : TF_TOWARD_NEGATIVE,
                                     TF_OVERFLOW_IEEE, 0, &flags);
    return any_place(format, code);
}

EXPORTED(between) int32_t page_between(int format, int32_t most, int32_t n);

int32_t page_between(int format, int32_t most, int32_t n)
{
    struct exact low, high;
    const char *at = input_text;
    const char *why = input_value(&at, &n, &low);
    why = why ? why : input_value(&at, &n, &high);
    if (why) {
        return json_failure(why);
    }
    if (low.value_class == TF_NAN || high.value_class == TF_NAN) {
        return json_failure("NaN is no end of an interval");
    }
    const int64_t first = place_from(format, &low, 1);
    const int64_t last = place_from(format, &high, 0);
    /* float64 has more numbers than int64_t counts. */
    const uint64_t count = last < first ? 0 : (uint64_t)last - (uint64_t)first + 1;
    most = most < 0 ? 0 : most < MOST_VALUES ? most : MOST_VALUES;
    json_begin();
    json_open('{');
    json_key("count");
    json_begin_text();
    json_put_natural(count);
    json_end_text();
    json_key("values");
    json_open('[');
    for (int64_t place = first; count <= (uint64_t)most && place <= last; place++) {
        write_place(format, any_at_place(format, place));
    }
    json_close(']');
    json_close('}');
    return json_end();
}

static void write_binade(int format, int power, int64_t count, int subnormal)
{
    const struct tf_format f = any_format(format);
    json_open('{');
    json_integer_of("power", power);
    json_key("numbers");
    json_begin_text();
    json_put_integer(count);
    json_end_text();
    json_boolean_of("subnormal", subnormal);
    write_units_of("ulp", 0, 1, (subnormal ? power + 1 : power) - f.mantissa_bits);
    json_close('}');
}

EXPORTED(binades) int32_t page_binades(int format);

int32_t page_binades(int format)
{
    const struct tf_format f = any_format(format);
    const int64_t full = INT64_C(1) << f.mantissa_bits;
    const int64_t maximum = (int64_t)any_maximum(format);
    const int only = f.specials == TF_EXPONENT_ONLY;
    json_begin();
    json_open('[');
    if (f.mantissa_bits > 0) {
        write_binade(format, -f.bias, full - 1, 1);
    }
    for (int64_t first = only ? 0 : full; first <= maximum; first += full) {
        const int64_t left = maximum - first + 1;
        write_binade(format, (int)(first >> f.mantissa_bits) - f.bias,
                     left < full ? left : full, 0);
    }
    json_close(']');
    return json_end();
}
