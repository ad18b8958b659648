/* Reads strings from left to right, with a cursor. */
#include "read_number.h"

/* Limits of typed numbers. The string that write_value.c makes of a number within these
 * limits is within them too. Exponents are those of the leading digit. */
enum {
    MOST_CHARACTERS = 4000,
    MOST_HEX_DIGITS = 3900,
    MOST_EXPONENT = 10000,
    MOST_BINARY_EXPONENT = 40000,
};

#define KNOWN                                                                             \
    "write 3.14159, 1e-40, 1/3, 0x1.8p-3, inf, nan, or a code such as 0x7E or 0b0111"

struct cursor {
    const char *at, *end;
    int32_t significant; /* number of digits taken, from the first that is not 0 on */
};

static int is_space(char x) { return x == ' ' || (x >= '\t' && x <= '\r'); }

static char small(char x) { return x >= 'A' && x <= 'Z' ? (char)(x + 32) : x; }

/* Returns the value of a digit up to z (35), or 36. */
static int digit_of(char x)
{
    x = small(x);
    return x >= '0' && x <= '9' ? x - '0' : x >= 'a' && x <= 'z' ? x - 'a' + 10 : 36;
}

static char next(const struct cursor *c) { return c->at < c->end ? small(*c->at) : 0; }

/* Takes `word`, given in small letters, if it is next. Returns whether it was. */
static int take(struct cursor *c, const char *word)
{
    const char *at = c->at;
    for (; *word; word++, at++) {
        if (at == c->end || small(*at) != *word) {
            return 0;
        }
    }
    c->at = at;
    return 1;
}

static int take_sign(struct cursor *c)
{
    if (take(c, "-") || take(c, "\xE2\x88\x92")) { /* U+2212, a minus sign */
        return 1;
    }
    take(c, "+");
    return 0;
}

/* Appends digits to x, and returns their number. An underscore may be between two
 * digits. */
static int32_t take_digits(struct cursor *c, int base, struct big *x)
{
    int32_t count = 0;
    for (; c->at < c->end; c->at++) {
        if (*c->at == '_' && count > 0 && c->at + 1 < c->end && digit_of(c->at[1]) < base) {
            continue;
        }
        if (digit_of(*c->at) >= base) {
            break;
        }
        big_scale(x, (uint32_t)base, (uint32_t)digit_of(*c->at));
        c->significant += x->count > 0;
        count++;
    }
    return count;
}

static int is_far(int32_t exponent, int32_t most)
{
    return exponent > most || exponent < -most;
}

/* Takes an exponent with its sign; returns whether it has digits. Limits an exponent that
 * is far too large to a smaller one that is too large as well. */
static int take_exponent(struct cursor *c, int32_t *exponent)
{
    enum { ENOUGH = 1000000 };
    const int negative = take_sign(c);
    int32_t count = 0, value = 0;
    for (; digit_of(next(c)) < 10; c->at++, count++) {
        value = value > ENOUGH ? value : 10 * value + digit_of(*c->at);
    }
    *exponent = negative ? -value : value;
    return count > 0;
}

static struct typed failed(const char *error)
{
    const struct typed typed = {error, 0, 0, 0, 0};
    return typed;
}

static const struct typed number = {0, 0, 0, 0, 0};

/* -- kinds of numbers ---------------------------------------------------------------- */

/* Reads a code or a hexadecimal float after 0x. */
static struct typed read_hexadecimal(struct cursor *c, int has_sign, struct exact *x)
{
    big_set(&x->number, 0);
    const int32_t whole = take_digits(c, 16, &x->number);
    int32_t part = 0, exponent = 0;
    const int point = take(c, ".");
    if (point) {
        part = take_digits(c, 16, &x->number);
    }
    if (whole + part == 0) {
        return failed("no hexadecimal digits after 0x");
    }
    if (c->at == c->end && !point) {
        if (has_sign) {
            return failed("a code such as 0x7E has no sign before it, and a hexadecimal "
                          "number has an exponent, 0x7Ep+0");
        }
        if (big_bits(&x->number) > 64) {
            return failed("a code has 64 bits at most");
        }
        const struct typed code = {0, 1, 0, 0, big_low(&x->number)};
        return code;
    }
    if (!take(c, "p")) {
        return failed(c->at == c->end
                          ? "a hexadecimal number needs an exponent: 0x1.8p+0"
                          : "there is something that is no hexadecimal digit after 0x");
    }
    if (!take_exponent(c, &exponent) || c->at != c->end) {
        return failed("after p an exponent of two stands, and nothing else: 0x1.8p-3");
    }
    x->exponent = exponent - 4 * part;
    const int32_t top = x->exponent + big_bits(&x->number) - 1;
    if (x->number.count && is_far(top, MOST_BINARY_EXPONENT)) {
        return failed("it is beyond 2^40000, or below 2^-40000");
    }
    if (big_bits(&x->number) - big_trailing_zeros(&x->number) > 4 * MOST_HEX_DIGITS) {
        return failed("it has more than 3900 hexadecimal digits");
    }
    return number;
}

static struct typed read_binary(struct cursor *c)
{
    struct typed code = {0, 1, 1, 0, 0};
    for (; c->at < c->end; c->at++) {
        if (*c->at == '_') {
            continue;
        }
        if (digit_of(*c->at) > 1) {
            return failed("after 0b bits stand, 0 and 1");
        }
        code.code = code.code << 1 | (uint64_t)digit_of(*c->at);
        code.digits++;
    }
    if (code.digits == 0 || code.digits > 64) {
        return failed("after 0b 1 to 64 bits stand");
    }
    return code;
}

/* Reads a decimal, or a fraction of two integers. */
static struct typed read_decimal(struct cursor *c, struct exact *x)
{
    big_set(&x->number, 0);
    int32_t count = take_digits(c, 10, &x->number), part = 0, exponent = 0;
    if (count > 0 && take(c, "/")) {
        big_set(&x->divisor, 0);
        if (take_digits(c, 10, &x->divisor) == 0 || c->at != c->end) {
            return failed("a fraction is of two integers: 1/3");
        }
        return x->divisor.count == 0 ? failed("it divides by zero") : number;
    }
    if (take(c, ".")) {
        part = take_digits(c, 10, &x->number);
        count += part;
    }
    if (count == 0) {
        return failed(KNOWN);
    }
    if (take(c, "e") && !take_exponent(c, &exponent)) {
        return failed("after e an exponent of ten stands: 1e-40");
    }
    if (c->at != c->end) {
        return failed(*c->at == ',' ? "the decimal point is a point" : KNOWN);
    }
    exponent -= part;
    if (x->number.count && is_far(exponent + c->significant - 1, MOST_EXPONENT)) {
        return failed("it is beyond 10^10000, or below 10^-10000");
    }
    if (x->number.count == 0) {
        return number;
    }
    big_times_power(exponent < 0 ? &x->divisor : &x->number, 5,
                    exponent < 0 ? -exponent : exponent);
    x->exponent = exponent;
    return number;
}

struct typed read_number(const char *text, int32_t n, struct exact *x)
{
    struct cursor c = {text, text + n, 0};
    while (c.at < c.end && is_space(*c.at)) {
        c.at++;
    }
    while (c.at < c.end && is_space(c.end[-1])) {
        c.end--;
    }
    if (c.at == c.end) {
        return failed(KNOWN);
    }
    if (c.end - c.at > MOST_CHARACTERS) {
        return failed("it has more than 4000 characters");
    }
    const char *start = c.at;
    exact_set(x, 0, 0, 0);
    const int negative = take_sign(&c), has_sign = c.at != start;
    if (take(&c, "infinity") || take(&c, "inf")) {
        exact_set_special(x, negative, TF_INFINITY);
        return c.at == c.end ? number : failed(KNOWN);
    }
    if (take(&c, "nan")) {
        exact_set_special(x, negative, TF_NAN);
        return c.at == c.end ? number : failed(KNOWN);
    }
    if (!has_sign && take(&c, "0b")) {
        return read_binary(&c);
    }
    x->negative = negative;
    const struct typed typed =
        take(&c, "0x") ? read_hexadecimal(&c, has_sign, x) : read_decimal(&c, x);
    if (!typed.error && !typed.is_code) {
        exact_normalize(x);
    }
    return typed;
}
