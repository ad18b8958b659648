#include "write_value.h"

#include <string.h>

#include "decimal.h"

static struct decimal shown; /* static, because it is large for the stack */

/* -- digits -------------------------------------------------------------------------- */

/* Writes a decimal as JavaScript does: 0.000001, 1e-7, 123, but 1e21 for 1e+21. */
static void put_decimal(int negative, const struct decimal *d)
{
    enum { LEAST_POINT = -6, GREATEST_POINT = 21 };
    if (negative) {
        json_put_character('-');
    }
    if (d->count == 0) {
        json_put_character('0');
        return;
    }
    const int plain = d->point >= LEAST_POINT + 1 && d->point <= GREATEST_POINT;
    const int32_t whole = plain ? d->point : 1; /* digits before the point */
    if (whole <= 0) {
        json_put("0.");
    }
    for (int32_t i = whole; i < 0; i++) {
        json_put_character('0');
    }
    for (int32_t i = 0; i < d->count || i < whole; i++) {
        if (i == whole && i > 0) {
            json_put_character('.');
        }
        json_put_character(i < d->count ? d->digits[i] : '0');
    }
    if (!plain) {
        json_put_character('e');
        json_put_integer(d->point - 1);
    }
}

void put_short(const struct exact *x, int digits)
{
    decimal_of(&shown, x);
    decimal_round(&shown, digits);
    put_decimal(x->negative, &shown);
}

void write_short_of(const char *name, const struct exact *x, int digits)
{
    json_key(name);
    json_begin_text();
    put_short(x, digits);
    json_end_text();
}

void write_number_of(const char *name, const struct exact *x)
{
    json_key(name);
    json_begin_number();
    put_short(x, 17);
    json_end_number();
}

static void put_integer(const struct big *x)
{
    struct exact whole;
    whole.value_class = TF_NUMBER;
    whole.negative = whole.exponent = 0;
    big_copy(&whole.number, x);
    big_set(&whole.divisor, 1);
    decimal_of(&shown, &whole);
    for (int32_t i = 0; i < shown.point || i == 0; i++) {
        json_put_character(i < shown.count ? shown.digits[i] : '0');
    }
}

/* -- strings of an exact value ------------------------------------------------------- */

/* Writes a dyadic number as a hexadecimal float: 0x1.8p-4. */
static void put_hex_float(const struct exact *x)
{
    json_put(x->negative ? "-0x" : "0x");
    const int32_t bits = big_bits(&x->number);
    if (bits == 0) {
        json_put("0p+0");
        return;
    }
    json_put_character('1');
    if (bits > 1) {
        json_put_character('.');
    }
    for (int32_t place = bits - 2; place >= 0; place -= 4) {
        int digit = 0;
        for (int i = 0; i < 4; i++) {
            digit = 2 * digit + big_bit(&x->number, place - i);
        }
        json_put_character("0123456789abcdef"[digit]);
    }
    const int32_t exponent = x->exponent + bits - 1;
    json_put(exponent < 0 ? "p" : "p+");
    json_put_integer(exponent);
}

/* Writes a dyadic number as an integer times a power of two: 3 * 2^-5. */
static void put_power(const struct exact *x)
{
    if (x->negative) {
        json_put_character('-');
    }
    put_integer(&x->number);
    if (!exact_is_zero(x)) {
        json_put(" * 2^");
        json_put_integer(x->exponent);
    }
}

/* Writes a fraction n/d, for a value whose decimals do not end. */
static void put_fraction(const struct exact *x)
{
    struct big number, divisor;
    big_copy(&number, &x->number);
    big_copy(&divisor, &x->divisor);
    big_shift_left(x->exponent > 0 ? &number : &divisor,
                   x->exponent > 0 ? x->exponent : -x->exponent);
    if (x->negative) {
        json_put_character('-');
    }
    put_integer(&number);
    json_put_character('/');
    put_integer(&divisor);
}

/* Writes a string that read_number reads as x; `all` has the digits of a finite x. */
static void put_text(const struct exact *x, const struct decimal *all)
{
    if (!exact_is_finite(x)) {
        json_put(special_name(x->negative, x->value_class));
    } else if (exact_is_zero(x)) {
        json_put(x->negative ? "-0" : "0");
    } else if (exact_is_dyadic(x) && big_bits(&x->number) / 4 <= all->count) {
        put_hex_float(x); /* only if it is shorter: 1e10000 has many bits */
    } else if (all->more) {
        put_fraction(x);
    } else {
        put_decimal(x->negative, all);
    }
}

void write_text_of(const char *name, const struct exact *x)
{
    if (exact_is_finite(x)) {
        decimal_of(&shown, x);
    }
    json_key(name);
    json_begin_text();
    put_text(x, &shown);
    json_end_text();
}

void write_exact(const struct exact *x)
{
    static struct decimal all;
    const int dyadic = exact_is_dyadic(x);
    decimal_of(&all, x);
    json_open('{');
    json_key("text");
    json_begin_text();
    put_text(x, &all);
    json_end_text();
    json_key("decimal");
    json_begin_text();
    put_decimal(x->negative, &all);
    json_put(all.more ? "..." : "");
    json_end_text();
    json_boolean_of("negative", x->negative);
    json_key("power");
    json_begin_text();
    if (dyadic) {
        put_power(x);
    }
    json_end_text();
    json_key("hex");
    json_begin_text();
    if (dyadic) {
        put_hex_float(x);
    }
    json_end_text();
    json_key("number");
    json_begin_number();
    decimal_round(&all, 17);
    put_decimal(x->negative, &all);
    json_end_number();
    json_key("short");
    json_begin_text();
    json_put(all.more || all.count > 6 ? "~" : "");
    decimal_round(&all, 6);
    put_decimal(x->negative, &all);
    json_end_text();
    json_close('}');
}

void write_exact_of(const char *name, const struct exact *x)
{
    json_key(name);
    if (exact_is_finite(x)) {
        write_exact(x);
    } else {
        json_null();
    }
}

void write_units_of(const char *name, int negative, uint64_t magnitude, int32_t unit)
{
    struct exact x;
    exact_set(&x, negative, magnitude, unit);
    write_exact_of(name, &x);
}

/* -- numbers of formats -------------------------------------------------------------- */

static void write_bits_of(const char *name, uint64_t x, int count)
{
    json_key(name);
    json_begin_text();
    while (count-- > 0) {
        json_put_character(x >> count & 1 ? '1' : '0');
    }
    json_end_text();
}

const char *special_name(int negative, enum tf_value_class value_class)
{
    return value_class == TF_NAN ? "nan" : negative ? "-inf" : "inf";
}

static uint64_t exponents_of(const struct tf_format *f)
{
    return (UINT64_C(1) << f->exponent_bits) - 1;
}

static const char *kind_of(const struct tf_format *f, const struct exact *x, uint64_t field)
{
    return x->value_class == TF_NAN        ? "nan"
           : x->value_class == TF_INFINITY ? "inf"
           : exact_is_zero(x)              ? "zero"
           : field == 0 && f->specials != TF_EXPONENT_ONLY ? "subnormal"
                                                           : "normal";
}

static void write_code(const struct tf_format *f, uint64_t code)
{
    json_key("code");
    if (f->width == 64) { /* JavaScript would round a JSON number of 64 bits */
        json_begin_text();
        json_put("0x");
        json_put_hex(code, 1);
        json_end_text();
    } else {
        json_integer((int64_t)code);
    }
    json_key("hex");
    json_begin_text();
    json_put("0x");
    json_put_hex(code << f->shift, 2 * f->itemsize);
    json_end_text();
}

/* Writes the exponent, the significand, the value and the ulp of a finite number. */
static void write_parts(const struct tf_format *f, const struct exact *x, uint64_t field)
{
    const int only = f->specials == TF_EXPONENT_ONLY, zero = exact_is_zero(x);
    const int32_t power = (int32_t)(field > 0 || only ? field : 1) - f->bias;
    json_key("power");
    if (zero) {
        json_null();
    } else {
        json_integer(power);
    }
    struct exact significand;
    exact_copy(&significand, x);
    significand.negative = 0;
    significand.exponent -= zero ? 0 : power;
    write_short_of("significand", &significand, 60);
    write_exact_of("exact", x);
    write_units_of("ulp", 0, 1, power - f->mantissa_bits);
}

void write_place(int format, uint64_t code)
{
    const struct tf_format f = any_format(format);
    struct exact x;
    any_exact(&x, format, code);
    json_open('{');
    write_code(&f, code);
    json_text_of("kind", kind_of(&f, &x, code >> f.mantissa_bits & exponents_of(&f)));
    write_number_of("number", &x);
    json_close('}');
}

void write_value(int format, uint64_t code)
{
    const struct tf_format f = any_format(format);
    struct exact x;
    any_exact(&x, format, code);
    const uint64_t field = code >> f.mantissa_bits & exponents_of(&f);
    json_open('{');
    json_text_of("format", f.name);
    write_code(&f, code);
    write_bits_of("binary", code, f.width);
    write_bits_of("sign", code >> (f.width - 1), f.is_signed);
    write_bits_of("exponent", field, f.exponent_bits);
    write_bits_of("mantissa", code, f.mantissa_bits);
    json_text_of("kind", kind_of(&f, &x, field));
    json_boolean_of("negative", (code & any_sign_mask(format)) != 0);
    json_integer_of("exponentField", (int64_t)field);
    if (exact_is_finite(&x)) {
        write_short_of("text", &x, 17);
        write_number_of("number", &x);
        write_parts(&f, &x, field);
    } else {
        const char *name = special_name(x.negative, x.value_class);
        json_text_of("text", name);
        json_text_of("number", name);
        json_null_of("power");
        json_text_of("significand", "");
        json_null_of("exact");
        json_null_of("ulp");
    }
    json_close('}');
}

void write_value_of(const char *name, int format, uint64_t code)
{
    json_key(name);
    write_value(format, code);
}

/* -- outcomes of rounding ------------------------------------------------------------ */

static void write_flags(unsigned flags)
{
    json_key("flags");
    json_open('[');
    if (flags & TF_OVER) {
        json_text("overflow");
    }
    if (flags & TF_UNDER) {
        json_text("underflow");
    }
    if (flags & TF_INVALID) {
        json_text("invalid");
    }
    if (flags & ANY_INEXACT) {
        json_text("inexact");
    }
    json_close(']');
}

static void put_all(const char *first, const char *second)
{
    json_put(first);
    json_put(second);
}

static void put_outcome(const struct exact *x, const struct exact *result, int subnormal,
                        int beyond, const char *why_nan)
{
    const int finite = exact_is_finite(result), is_zero = finite && exact_is_zero(result);
    const char *became = result->value_class == TF_NAN ? "NaN" : finite ? "zero" : "infinity";
    if (!exact_is_finite(x)) {
        const int infinite = x->value_class == TF_INFINITY;
        if (infinite && finite && !is_zero) {
            json_put("saturated");
        } else if (x->value_class == result->value_class) {
            json_put(became);
        } else {
            put_all(infinite ? "infinity became " : "NaN became ", became);
        }
    } else if (result->value_class == TF_NAN && why_nan) {
        put_all("NaN: ", why_nan);
    } else if (is_zero && !exact_is_zero(x)) {
        json_put("underflow to zero");
    } else if (beyond) {
        put_all(finite ? "saturated" : "overflow to ", finite ? "" : became);
    } else {
        put_all(exact_equal(result, x) ? "exact" : "rounded", subnormal ? ", subnormal" : "");
    }
}

void write_outcome(const struct exact *x, const struct exact *result, int subnormal,
                   int beyond, const char *why_nan)
{
    json_key("outcome");
    json_begin_text();
    put_outcome(x, result, subnormal, beyond, why_nan);
    json_end_text();
}

static void write_outcome_in(int format, uint64_t code, unsigned flags,
                             const struct exact *x, const struct exact *result)
{
    const struct tf_format f = any_format(format);
    const uint64_t field = code >> f.mantissa_bits & exponents_of(&f);
    const int is_zero = exact_is_finite(x) && exact_is_zero(x);
    const int beyond = flags & TF_OVER || result->value_class == TF_NAN;
    if (f.specials == TF_EXPONENT_ONLY && flags & TF_UNDER) {
        json_text_of("outcome", "below the range");
        return;
    }
    write_outcome(x, result, kind_of(&f, result, field)[0] == 's', beyond,
                  f.specials != TF_EXPONENT_ONLY ? 0
                  : is_zero                      ? "no zero"
                  : x->negative                  ? "no sign"
                                                 : 0);
}

/* Writes the magnitude of the error in units in the last place of the format at x. */
static void write_ulps(int format, const struct exact *x, const struct exact *error)
{
    struct exact ulps;
    exact_copy(&ulps, error);
    ulps.negative = 0;
    if (!exact_is_zero(error)) {
        const int unit = exact_is_zero(x) ? tf_least_exponent(any_format(format))
                                          : any_last_place(format, exact_to_value(x));
        ulps.exponent -= unit;
    }
    write_short_of("ulps", &ulps, 6);
}

void write_rounded_members(int format, uint64_t code, unsigned flags, const struct exact *x)
{
    struct exact result, error, relative;
    any_exact(&result, format, code);
    write_value_of("value", format, code);
    write_flags(flags);
    write_outcome_in(format, code, flags, x, &result);
    if (!exact_is_finite(&result) || !exact_is_finite(x)) {
        json_null_of("error");
        json_text_of("relative", "");
        json_text_of("ulps", "");
        return;
    }
    exact_subtract(&error, &result, x);
    write_exact_of("error", &error);
    if (exact_is_zero(x)) {
        json_text_of("relative", "");
    } else {
        exact_divide(&relative, &error, x);
        relative.negative = 0;
        write_short_of("relative", &relative, 6);
    }
    write_ulps(format, x, &error);
}

void write_rounded_of(const char *name, int format, uint64_t code, unsigned flags,
                      const struct exact *x)
{
    json_key(name);
    json_open('{');
    write_rounded_members(format, code, flags, x);
    json_close('}');
}
