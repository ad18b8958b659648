#include "mma_steps.h"

#include "dot_operands.h"
#include "formats/fast_codec.h"
#include "special_reasons.h"

/* -- codes --------------------------------------------------------------------------- */

int accumulator_format(int half) { return half ? ANY_FLOAT16 : ANY_FLOAT32; }

uint64_t accumulator_code(int half, uint32_t bits)
{
    if (!half) {
        return bits;
    }
    if (tf_mma_is_nan(bits)) {
        return (bits >> 16 & 0x8000) | 0x7C00 | (bits >> 13 & 0x3FF);
    }
    return tf_code_of_single(tf_float16, bits);
}

uint32_t accumulator_bits(int half, uint64_t code)
{
    if (half && (code & 0x7FFF) > 0x7C00) { /* NaN: keep its fraction bits */
        return (uint32_t)((code & 0x8000) << 16 | TF_INF_BITS | (code & 0x3FF) << 13);
    }
    return operand_bits(accumulator_format(half), code);
}

static void write_accumulator(int half, const char *name, int64_t bits)
{
    write_value_of(name, accumulator_format(half), accumulator_code(half, (uint32_t)bits));
}

/* -- pieces -------------------------------------------------------------------------- */

static void begin_list(const char *name)
{
    json_key(name);
    json_open('[');
}

static void write_ks(const int32_t *ks, int32_t count)
{
    begin_list("ks");
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

static void told_exact(struct exact *x, const struct tf_told *row)
{
    exact_set(x, (int)row->negative, (uint64_t)row->significand, (int32_t)row->unit);
}

/* Writes how the exact sum was rounded to the result, whose last bit is 2^last. */
static void write_sum_rounding(int nearest, const struct exact *total,
                               int64_t bits, int32_t last)
{
    struct exact result, off, half_unit;
    any_exact(&result, ANY_FLOAT32, (uint32_t)bits);
    const int finite = exact_is_finite(&result);
    int exact = 1, up = 0, tie = 0;
    if (finite) {
        exact_subtract(&off, &result, total);
        exact = exact_is_zero(&off);
        up = !exact && off.negative == total->negative;
    }
    if (!exact && nearest) {
        exact_set(&half_unit, off.negative, 1, last - 1);
        tie = exact_compare(&off, &half_unit) == 0;
    }
    json_key("rounding");
    json_open('{');
    json_text_of("how", nearest ? "to nearest" : "toward zero");
    json_boolean_of("up", up);
    json_boolean_of("tie", tie);
    json_boolean_of("overflow", !finite);
    if (exact) {
        json_null_of("off");
    } else {
        off.negative = total->negative;
        write_exact_of("off", &off);
    }
    json_close('}');
}

/* -- steps --------------------------------------------------------------------------- */

enum { ROOM = 8192 }; /* rows of a chain of INPUT_LIST_ROOM k */

static struct tf_told rows[ROOM];
struct tf_mma_trace trace = {rows, ROOM, 0, 0};

/* The rows of one step from `begin` to `end`, and the k of a group. */
static struct step {
    const struct tf_told *begin, *end;
    int32_t ks[TF_DEEPEST], count;
} step;

static const struct tf_told *find(int what, const struct tf_told *from)
{
    while (from < step.end && from->what != what) {
        from++;
    }
    return from < step.end ? from : 0;
}

/* Returns the number of k in the term that begins with the group's k number `first`. */
static int32_t term_count(const struct chain *chain, int32_t first)
{
    return step.count - first < chain->group ? step.count - first : chain->group;
}

static void write_sources(const struct chain *chain, int64_t greatest)
{
    int found = 0;
    begin_list("sources");
    for (const struct tf_told *term = step.begin; greatest > TF_NO_EXPONENT / 2; term++) {
        term = find(TF_TOLD_TERM, term);
        if (!term) {
            break;
        }
        if (term->exponent != greatest) {
            continue;
        }
        found = 1;
        const int32_t first = (int32_t)term->k * chain->group;
        json_begin_text();
        json_put(term->k < 0 ? "c" : "k ");
        if (term->k >= 0) {
            json_put_integer(step.ks[first]);
        }
        if (term->k >= 0 && term_count(chain, first) > 1) {
            json_put_character('-');
            json_put_integer(step.ks[first + term_count(chain, first) - 1]);
        }
        json_end_text();
    }
    if (!found && greatest > TF_NO_EXPONENT / 2) {
        json_text("the floor");
    }
    json_close(']');
}

static void write_term(const struct chain *chain, const struct tf_told *term, int32_t unit)
{
    const int64_t units = term->kept;
    const uint64_t magnitude = units < 0 ? 0 - (uint64_t)units : (uint64_t)units;
    const int32_t first = (int32_t)term->k * chain->group;
    struct exact exact, kept, cut;
    told_exact(&exact, term);
    exact_set(&kept, (int)term->negative, magnitude, unit);
    exact_subtract(&cut, &exact, &kept);
    json_open('{');
    write_ks(step.ks + (term->k < 0 ? 0 : first), term->k < 0 ? 0 : term_count(chain, first));
    write_exact_of("exact", &exact);
    write_exponent("exponent", (int32_t)term->exponent);
    write_exact_of("kept", &kept);
    write_units("keptUnits", units);
    if (exact_is_zero(&cut)) {
        json_null_of("cut");
    } else {
        write_exact_of("cut", &cut);
    }
    json_close('}');
}

/* Writes the terms, the sum and the rounding of a group of finite numbers. */
static void write_terms(const struct chain *chain, const struct tf_told *sum)
{
    const struct tf_told *rounded = find(TF_TOLD_ROUNDED, step.begin);
    const int none = sum->exponent <= TF_NO_EXPONENT / 2;
    const int32_t unit = none ? 0 : (int32_t)sum->unit;
    begin_list("terms");
    for (const struct tf_told *term = step.begin; (term = find(TF_TOLD_TERM, term)); term++) {
        write_term(chain, term, unit);
    }
    json_close(']');
    write_exponent("greatest", (int32_t)sum->exponent);
    write_sources(chain, sum->exponent);
    write_exponent("unit", none ? TF_NO_EXPONENT : unit);
    write_units("totalUnits", sum->kept);
    struct exact total;
    exact_set(&total, (int)sum->negative, (uint64_t)sum->significand, unit);
    write_exact_of("total", &total);
    write_sum_rounding(chain->half, &total, step.end->kept,
                       rounded ? (int32_t)rounded->exponent : 0);
}

static void write_no_terms(void)
{
    begin_list("terms");
    json_close(']');
    json_null_of("greatest");
    begin_list("sources");
    json_close(']');
    json_null_of("unit");
    json_null_of("totalUnits");
    json_null_of("total");
    json_null_of("rounding");
}

/* Writes a group. A group without k, which only completes an instruction, is written only
 * if it changes the accumulator, or if the instruction is emulated. */
static void write_group(const struct chain *chain)
{
    const struct tf_told *sum = find(TF_TOLD_SUM, step.begin), *group = step.end;
    if (step.count == 0 && !chain->emulated && group->kept == group->significand) {
        return;
    }
    json_open('{');
    json_text_of("kind", "group");
    write_ks(step.ks, step.count);
    write_accumulator(chain->half, "accumulator", group->significand);
    begin_list("special");
    if (!sum && !(chain->write_nans && chain->write_nans(step.ks, step.count))) {
        write_reasons(operands.a, operands.b, step.ks, step.count,
                      (uint32_t)group->significand);
    }
    json_close(']');
    if (sum) {
        write_terms(chain, sum);
    } else {
        write_no_terms();
    }
    write_accumulator(chain->half, "result", group->kept);
    json_close('}');
}

static void write_addition(const struct chain *chain, int32_t first, int32_t end)
{
    const struct tf_told *addition = step.end, *rounded = find(TF_TOLD_ROUNDED, step.begin);
    struct exact x, y, total;
    any_exact(&x, ANY_FLOAT32, (uint32_t)addition->significand);
    any_exact(&y, ANY_FLOAT32, (uint32_t)addition->unit);
    json_open('{');
    json_text_of("kind", "addition");
    write_ks(operands.ks + first, end - first);
    write_accumulator(chain->half, "sum", addition->significand);
    write_accumulator(chain->half, "accumulator", addition->unit);
    json_boolean_of("promotes", (int)addition->k);
    if (exact_is_finite(&x) && exact_is_finite(&y)) {
        exact_add(&total, &x, &y);
        write_sum_rounding(1, &total, addition->kept,
                           rounded ? (int32_t)rounded->exponent : 0);
    } else {
        json_null_of("rounding");
    }
    write_accumulator(chain->half, "result", addition->kept);
    json_close('}');
}

void write_trace(const struct chain *chain)
{
    const int32_t first = (int32_t)trace.first;
    int32_t summed = first, end = first; /* the sum of k from summed on is not added yet */
    step.begin = rows;
    step.count = 0;
    for (step.end = rows; step.end < rows + trace.count; step.end++) {
        if (step.end->what == TF_TOLD_K) {
            step.ks[step.count++] = (int32_t)step.end->k;
            end = step.end->k >= end ? (int32_t)step.end->k + 1 : end;
        } else if (step.end->what == TF_TOLD_GROUP) {
            write_group(chain);
        } else if (step.end->what == TF_TOLD_ADDITION) {
            write_addition(chain, step.end->k ? first : summed, end);
            summed = end;
        }
        if (step.end->what == TF_TOLD_GROUP || step.end->what == TF_TOLD_ADDITION) {
            step.begin = step.end + 1;
            step.count = 0;
        }
    }
    trace.count = 0;
}
