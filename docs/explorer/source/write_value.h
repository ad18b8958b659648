/* Exact values and numbers of formats as JSON: the objects Exact, Value and Rounded of
 * arithmetic_types.js. */
#ifndef EXPLORER_WRITE_VALUE_H
#define EXPLORER_WRITE_VALUE_H

#include "any_format.h"
#include "json.h"

void write_exact(const struct exact *x);
void write_exact_of(const char *name, const struct exact *x); /* null of Inf and NaN */
void write_text_of(const char *name, const struct exact *x); /* that stands for x in calls */
/* magnitude * 2^unit, with a sign */
void write_units_of(const char *name, int negative, uint64_t magnitude, int32_t unit);

void write_value(int format, uint64_t code);
void write_value_of(const char *name, int format, uint64_t code);

void write_place(int format, uint64_t code); /* of a finite number, for a line of many */

/* "0.25", "1.2e-3": so many digits. Also as part of a text. */
void put_short(const struct exact *x, int digits);
void write_short_of(const char *name, const struct exact *x, int digits);
/* The nearest float64 as a number of JSON. */
void write_number_of(const char *name, const struct exact *x);

/* What became of x, in the words of `tf32dtype inspect` (tf32dtype/_cli/codes.py has them
 * too): whether it is subnormal, whether x is too large for what holds it, and why a finite
 * number that is not is NaN (0: it is none). */
void write_outcome(const struct exact *x, const struct exact *result, int subnormal,
                   int beyond, const char *why_nan);

/* The members of a Rounded: what x has become. */
void write_rounded_members(int format, uint64_t code, unsigned flags, const struct exact *x);
void write_rounded_of(const char *name, int format, uint64_t code, unsigned flags,
                      const struct exact *x);

/* An Inf or a NaN as "inf", "-inf", "nan". */
const char *special_name(int negative, enum tf_value_class value_class);

#endif
