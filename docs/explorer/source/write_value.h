/* Writes exact values and numbers of formats as JSON: the objects Exact, Value and Rounded
 * of arithmetic_types.js. */
#ifndef EXPLORER_WRITE_VALUE_H
#define EXPLORER_WRITE_VALUE_H

#include "any_format.h"
#include "json.h"

void write_exact(const struct exact *x);
void write_exact_of(const char *name, const struct exact *x); /* null for Inf and NaN */
void write_text_of(const char *name, const struct exact *x); /* for arguments */
/* Writes magnitude * 2^unit, with a sign, as an Exact. */
void write_units_of(const char *name, int negative, uint64_t magnitude, int32_t unit);

void write_value(int format, uint64_t code);
void write_value_of(const char *name, int format, uint64_t code);

void write_place(int format, uint64_t code); /* a finite number, with few members */

/* Write at most `digits` digits of x, as "0.25" or "1.2e-3"; put_short within a string. */
void put_short(const struct exact *x, int digits);
void write_short_of(const char *name, const struct exact *x, int digits);
/* Writes the nearest float64 as a JSON number. */
void write_number_of(const char *name, const struct exact *x);

/* Writes the outcome of rounding x to `result`, in the words of `tf32dtype inspect`, which
 * tf32dtype/_cli/codes.py has too. `subnormal`: the result is subnormal. `beyond`: x is out
 * of the format's range. `why_nan` is the reason why a finite x became NaN, or NULL. */
void write_outcome(const struct exact *x, const struct exact *result, int subnormal,
                   int beyond, const char *why_nan);

/* Writes the members of a Rounded for x. */
void write_rounded_members(int format, uint64_t code, unsigned flags, const struct exact *x);
void write_rounded_of(const char *name, int format, uint64_t code, unsigned flags,
                      const struct exact *x);

/* Returns "inf", "-inf" or "nan". */
const char *special_name(int negative, enum tf_value_class value_class);

#endif
