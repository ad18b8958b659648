/* Unary functions by tables of all results. A format of 16 bits or fewer has at most 65536
 * results, tf32 2^19: they are computed once, in float64, and looked up from then on.
 * Float64 is exact enough. No result is nearer than 2^-45 to a number halfway between two
 * of a format's, unless it is that number (the tests check all inputs): no error of the C
 * library shows. Most results of bfloat16 and tf32 are computed in float32 (see
 * kernels/plain/quick.c, kernels/plain/quick_near.c). Results that this leaves open are
 * looked up, or computed one by one. */
#include "ufuncs/unary.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "formats/fast_codec.h"
#include "formats/scalar_ops.h"
#include "runtime/fp_environment.h"
#include "runtime/streaming.h"
#include "ufuncs/kernels.h"
#include "ufuncs/compare.h"
#include "runtime/strided.h"
#include "ufuncs/surely.h"

/* -- the functions: one line each ------------------------------------------------ */

/* Replaces double's 0 or Inf by a number far out of range of every format, so that the
 * rounding raises what the exact result would. */
static double within_double(double x, double r)
{
    if (!isfinite(x)) {
        return r;
    }
    return r == 0 ? 0x1p-1000 : isinf(r) ? copysign(0x1p1000, r) : r;
}

static double one_(double x)
{
    (void)x;
    return 1;
}
static double sign_(double x) { return x != x ? x : (x > 0) - (x < 0); }
static double square_(double x) { return x * x; }
static double reciprocal_(double x) { return 1 / x; }
static double degrees_(double x) { return x * (180 / 0x1.921fb54442d18p+1); }
static double radians_(double x) { return x * (0x1.921fb54442d18p+1 / 180); }
static double exp_(double x) { return within_double(x, exp(x)); }
static double exp2_(double x) { return within_double(x, exp2(x)); }
static double expm1_(double x) { return x == 0 ? x : within_double(x, expm1(x)); }
static double sinh_(double x) { return x == 0 ? x : within_double(x, sinh(x)); }
static double cosh_(double x) { return within_double(x, cosh(x)); }

/* Functions of codes, which change only the sign bit, also of NaN. */
static uint32_t same_code(struct tf_format f, uint32_t code, unsigned *flags)
{
    (void)f, (void)flags;
    return code;
}

static uint32_t negative_code(struct tf_format f, uint32_t code, unsigned *flags)
{
    if (f.specials == TF_EXPONENT_ONLY && !tf_is_nan(f, code)) {
        *flags |= TF_INVALID;
        return tf_nan_code(f);
    }
    const int signless = f.specials == TF_FNUZ && (code & tf_magnitude_mask(f)) == 0;
    return signless ? code : code ^ tf_sign_mask(f);
}

static uint32_t absolute_code(struct tf_format f, uint32_t code, unsigned *flags)
{
    (void)flags;
    return tf_copysign(f, code, 0);
}

/* A function of numbers, or else of codes. If it is transcendental for every argument but 0
 * and 1, its result is never exact, even if it is exact in double. */
static const struct function {
    const char *name;
    double (*of)(double);
    uint32_t (*of_code)(struct tf_format, uint32_t, unsigned *);
    int transcendental;
    enum tf_quick_op quick; /* in float32, of bfloat16 and tf32 */
} functions[] = {
    {"positive", NULL, same_code, 0, TF_NOT_QUICK},
    {"conjugate", NULL, same_code, 0, TF_NOT_QUICK},
    {"negative", NULL, negative_code, 0, TF_NOT_QUICK},
    {"absolute", NULL, absolute_code, 0, TF_NOT_QUICK},
    {"fabs", NULL, absolute_code, 0, TF_NOT_QUICK},
    {"_ones_like", one_, NULL, 0, TF_NOT_QUICK},
    {"sign", sign_, NULL, 0, TF_QUICK_SIGN},
    {"rint", nearbyint, NULL, 0, TF_QUICK_RINT},
    {"floor", floor, NULL, 0, TF_QUICK_FLOOR},
    {"ceil", ceil, NULL, 0, TF_QUICK_CEIL},
    {"trunc", trunc, NULL, 0, TF_QUICK_TRUNC},
    {"square", square_, NULL, 0, TF_QUICK_SQUARE},
    {"reciprocal", reciprocal_, NULL, 0, TF_QUICK_RECIPROCAL},
    {"sqrt", sqrt, NULL, 0, TF_QUICK_SQRT},
    {"cbrt", cbrt, NULL, 0, TF_QUICK_CBRT},
    {"exp", exp_, NULL, 1, TF_QUICK_EXP},
    {"exp2", exp2_, NULL, 0, TF_QUICK_EXP2},
    {"expm1", expm1_, NULL, 1, TF_QUICK_EXPM1},
    {"log", log, NULL, 1, TF_QUICK_LOG},
    {"log2", log2, NULL, 0, TF_QUICK_LOG2},
    {"log10", log10, NULL, 0, TF_QUICK_LOG10},
    {"log1p", log1p, NULL, 1, TF_QUICK_LOG1P},
    {"sin", sin, NULL, 1, TF_QUICK_SIN},
    {"cos", cos, NULL, 1, TF_QUICK_COS},
    {"tan", tan, NULL, 1, TF_QUICK_TAN},
    {"arcsin", asin, NULL, 1, TF_QUICK_ARCSIN},
    {"arccos", acos, NULL, 1, TF_QUICK_ARCCOS},
    {"arctan", atan, NULL, 1, TF_QUICK_ARCTAN},
    {"sinh", sinh_, NULL, 1, TF_QUICK_SINH},
    {"cosh", cosh_, NULL, 1, TF_QUICK_COSH},
    {"tanh", tanh, NULL, 1, TF_QUICK_TANH},
    {"arcsinh", asinh, NULL, 1, TF_QUICK_ARCSINH},
    {"arccosh", acosh, NULL, 1, TF_QUICK_ARCCOSH},
    {"arctanh", atanh, NULL, 1, TF_QUICK_ARCTANH},
    {"degrees", degrees_, NULL, 1, TF_QUICK_DEGREES},
    {"rad2deg", degrees_, NULL, 1, TF_QUICK_DEGREES},
    {"radians", radians_, NULL, 1, TF_QUICK_RADIANS},
    {"deg2rad", radians_, NULL, 1, TF_QUICK_RADIANS},
    {"spacing", NULL, tf_spacing, 0, TF_NOT_QUICK},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };
_Static_assert((int)FUNCTIONS <= (int)TF_UNARY_MAX, "room for all functions");

const char *tf_unary_name(int op) { return op < FUNCTIONS ? functions[op].name : NULL; }

/* -- one result -------------------------------------------------------------------- */

/* Returns the result for an argument so small that double rounds the result to the
 * argument. The exact result is a little larger, as of sinh, or a little smaller, as of
 * tanh. The first terms of the series decide, so a larger argument shows which. */
static double beside_argument(const struct function *function, double in)
{
    const double greater = copysign(0x1p-10, in);
    const int less = fabs(function->of(greater)) < fabs(greater);
    return less ? nextafter(in, 0) : in;
}

static uint32_t item_of_result(struct tf_format f, const struct function *function,
                               uint32_t code, unsigned *flags)
{
    if (!function->of) {
        return function->of_code(f, code, flags) << f.shift;
    }
    const int is_single = f.bias == 127 && f.itemsize > 1; /* upper bits of float32 */
    uint64_t bits;
    double in;
    if (is_single) {
        in = tf_float_of(code << tf_cut(f));
    } else {
        bits = tf_double_bits(tf_decode(f, code));
        memcpy(&in, &bits, sizeof in);
    }
    const double out = function->of(in);
    memcpy(&bits, &out, sizeof bits);
    if (is_single && tf_rounds_surely(bits & INT64_MAX, f.mantissa_bits)) {
        /* A normal number raises nothing. */
        return tf_surely_rounded(out, f.mantissa_bits) >> (tf_cut(f) - f.shift);
    }
    double snapped = tf_snapped(f, out);
    const int inexact = function->transcendental && in != 0 && isfinite(snapped);
    if (inexact && snapped == in) {
        snapped = beside_argument(function, in);
    }
    memcpy(&bits, &snapped, sizeof bits);
    struct tf_value y = tf_value_from_double_bits(bits);
    unsigned raised = 0;
    if (isnan(out)) {
        y.negative = 0;
        raised = isnan(in) ? 0 : TF_INVALID;
    } else if (isinf(out)) {
        raised = isfinite(in) ? TF_DIVIDE : 0;
    } else if (inexact && snapped != 0) {
        y.sticky = 1;
    }
    unsigned rounding = 0;
    const uint32_t result =
        tf_encode(f, y, TF_TIES_TO_EVEN, TF_OVERFLOW_IEEE, 0, &rounding);
    /* A pole or an invalid operation raises only its own flag, whatever the format has in
     * place of Inf or NaN. */
    *flags |= raised && f.specials != TF_EXPONENT_ONLY ? raised : rounding | raised;
    return result << f.shift;
}

static uint32_t code_of_item(struct tf_format f, uint32_t item)
{
    return item >> f.shift & (tf_magnitude_mask(f) | tf_sign_mask(f));
}

/* -- which results bfloat16 needs ------------------------------------------------------ */

enum { INF = TF_BF16_INF_BITS, SIGN = TF_BF16_SIGN_BIT };

/* Returns whether f(-x) = -f(x), apart from NaN. */
static int is_odd(const uint16_t *items)
{
    for (uint32_t code = 0; code <= INF; code++) {
        const int nan = (items[code] & TF_BF16_MAGNITUDE_BITS) > INF;
        if (items[code | SIGN] != (nan ? items[code] : items[code] ^ SIGN)) {
            return 0;
        }
    }
    return 1;
}

/* Returns the largest magnitude up to which f(x) = x; -1 if there is none. */
static int16_t last_identical(const uint16_t *items)
{
    int code = 0;
    while (code <= INF && items[code] == code && items[code | SIGN] == (code | SIGN)) {
        code++;
    }
    return (int16_t)(code - 1);
}

/* Returns which of 65536 results are needed, from the table of all of them.
 *
 * The table takes 128 KiB, more than L1 holds, but many functions need few KiB of it. For
 * each sign, all magnitudes up to `least` have one result, and so have all from `greatest`
 * on: an index outside is moved to the nearer of the two. Odd functions are looked up
 * without the sign, which is set afterwards. If f(x) = x up to some magnitude, no result up
 * to it is looked up. For example, exp of bfloat16:
 *
 *     code     0x0000 ... `least`   ... 1 ...     `greatest` ... 0x7F80
 *     result   1          1         looked up     Inf            Inf
 *
 * Negative numbers, whose results go from 1 down to 0, have bounds likewise. Compressed
 * indices are indices of the whole table, so that no result is stored twice. */
static struct tf_index_bounds find_index_bounds(const uint16_t *items)
{
    struct tf_index_bounds bounds = {
        .odd = is_odd(items) ? SIGN : 0,
        .identity = last_identical(items),
    };
    for (int sign = 0; sign < 2; sign++) {
        const uint16_t *half = items + (bounds.odd ? 0 : sign * SIGN);
        int16_t least = bounds.identity, greatest = INF;
        if (least <= 0) {
            least = 0;
            while (least < INF && half[least + 1] == half[0]) {
                least++;
            }
        }
        while (greatest > least && half[greatest - 1] == half[INF]) {
            greatest--;
        }
        bounds.least[sign] = least;
        bounds.greatest[sign] = greatest;
    }
    return bounds;
}

/* -- tables -------------------------------------------------------------------------- */

/* Results and their flags, by code (for a one-byte format, by item). The flags are stored
 * apart, so that only results fill the caches: flags are looked up only while the function
 * can raise some that have not been raised. */
struct table {
    unsigned all_flags;
    uint8_t *flags;
    struct tf_index_bounds bounds; /* of bfloat16 */
    _Alignas(8) unsigned char items[];
};

static _Atomic(struct table *) tables[TF_UNARY_MAX][TF_FORMAT_COUNT];
static atomic_long computed[TF_UNARY_MAX][TF_FORMAT_COUNT];

static uint32_t table_size(struct tf_format f)
{
    return f.itemsize == 1 ? 256 : UINT32_C(1) << f.width;
}

static struct table *make_table(struct tf_format f, const struct function *function)
{
    const uint32_t size = table_size(f);
    struct table *table = malloc(sizeof *table + size * (f.itemsize + 1u));
    if (!table) {
        return NULL;
    }
    memset(table, 0, sizeof *table);
    table->flags = table->items + size * f.itemsize;
    for (uint32_t i = 0; i < size; i++) {
        unsigned flags = 0;
        const uint32_t code = f.itemsize == 1 ? code_of_item(f, i) : i;
        tf_item_put(f, table->items, i, item_of_result(f, function, code, &flags));
        table->flags[i] = (uint8_t)flags;
        table->all_flags |= flags;
    }
    if (f.itemsize == 2 && function->of) {
        table->bounds = find_index_bounds((const uint16_t *)table->items);
    }
    return table;
}

/* Returns the table, made by the first caller that needs it. If two threads race, both make
 * it, and one of them frees its copy. */
static const struct table *find_table(int format, int op)
{
    struct table *table = atomic_load(&tables[op][format]);
    if (!table) {
        struct table *made = make_table(*tf_format_rows[format], &functions[op]);
        if (atomic_compare_exchange_strong(&tables[op][format], &table, made)) {
            return made;
        }
        free(made);
    }
    return table;
}

/* Returns whether a table of 2^16 or 2^19 results is worth making for n results. */
static int is_worth_a_table(int format, int op, ptrdiff_t n)
{
    const struct tf_format *f = tf_format_rows[format];
    if (f->itemsize == 1 || atomic_load(&tables[op][format])) {
        return 1;
    }
    const long before = atomic_fetch_add(&computed[op][format], (long)n);
    return before + n > (1L << f->width) / 4;
}

/* -- loops ----------------------------------------------------------------------------- */

/* Returns the flags that tf32 results may have raised, by NaN, Inf, and magnitudes up to
 * the smallest normal number. */
static unsigned may_have_raised(const uint32_t *items, size_t n)
{
    int nan = 0, infinite = 0, tiny = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t magnitude = (int32_t)(items[i] & TF_MAGNITUDE_BITS);
        nan |= magnitude > (int32_t)TF_INF_BITS;
        infinite |= magnitude == (int32_t)TF_INF_BITS;
        tiny |= magnitude <= 0x00800000;
    }
    return (nan ? TF_INVALID : 0) | (infinite ? TF_DIVIDE | TF_OVER : 0) |
           (tiny ? TF_UNDER : 0);
}

/* Replaces indices by the results at them, eight at a time, all loads before the stores.
 * `volatile` keeps gcc from loading indices as vectors, which it would take apart again for
 * the lookups: 0.25 ns per item instead of 0.40 (gcc 12, Xeon of family 6, model 207). */
static void look_up_indices(const uint16_t *found, uint16_t *indices, size_t n)
{
    const volatile uint16_t *index = indices;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const uint16_t r0 = found[index[i]], r1 = found[index[i + 1]];
        const uint16_t r2 = found[index[i + 2]], r3 = found[index[i + 3]];
        const uint16_t r4 = found[index[i + 4]], r5 = found[index[i + 5]];
        const uint16_t r6 = found[index[i + 6]], r7 = found[index[i + 7]];
        indices[i] = r0;
        indices[i + 1] = r1;
        indices[i + 2] = r2;
        indices[i + 3] = r3;
        indices[i + 4] = r4;
        indices[i + 5] = r5;
        indices[i + 6] = r6;
        indices[i + 7] = r7;
    }
    for (; i < n; i++) {
        indices[i] = found[index[i]];
    }
}

/* Returns whether results of bfloat16 may have raised a wanted flag. NaN is invalid, Inf a
 * pole or an overflow, and an underflowed result is at most the smallest normal number. */
static int may_raise(const uint16_t *results, size_t n, unsigned wanted)
{
    const uint16_t low = wanted & TF_UNDER ? 0x0081 : 0;
    const uint16_t high = wanted & (TF_DIVIDE | TF_OVER) ? INF : INF + 1;
    const uint16_t top = wanted & TF_INVALID ? INT16_MAX : INF;
    int found = 0;
    for (size_t i = 0; i < n; i++) {
        const uint16_t magnitude = results[i] & TF_BF16_MAGNITUDE_BITS;
        found |= (magnitude < low) | ((magnitude >= high) & (magnitude <= top));
    }
    return found;
}

/* Returns the wanted flags that n results raised, and perhaps others. Checks results of
 * bfloat16 with bounds first, some at a time: flags are farther away in memory. */
static unsigned look_up_flags(struct tf_format f, const struct table *table, const void *items,
                              const void *results, size_t n, unsigned wanted)
{
    enum { SOME = 32 };
    const int tell = f.itemsize == 2 && table->bounds.greatest[0];
    unsigned flags = 0;
    for (size_t i = 0; i < n; i += SOME) {
        const size_t end = n - i < SOME ? n : i + SOME;
        if (tell && !may_raise((const uint16_t *)results + i, end - i, wanted)) {
            continue;
        }
        for (size_t j = i; j < end; j++) {
            flags |= table->flags[tf_item_at(f, items, j) >> f.shift];
        }
    }
    return flags;
}

static unsigned look_up(struct tf_format f, const struct table *table,
                        const void *items, void *results, size_t n, unsigned raised)
{
    const unsigned pending = table->all_flags & ~raised;
    unsigned flags = 0, possible = 0;
    if (f.itemsize == 1) {
        tf_isa->formats->lookup(table->items, items, results, n);
        return pending ? tf_isa->formats->lookup_any(table->flags, pending, items, n) : 0;
    }
    if (f.itemsize == 2 && !table->bounds.greatest[0]) {
        const uint16_t *in = items, *found = (const uint16_t *)table->items;
        uint16_t *out = results;
        for (size_t i = 0; i < n; i++) {
            out[i] = found[in[i]];
        }
        possible = pending;
    } else if (f.itemsize == 2) {
        const uint16_t *found = (const uint16_t *)table->items;
        uint16_t index[TF_CHUNK], *out = results;
        tf_isa->ufuncs->compress_index(&table->bounds, items, index, n);
        look_up_indices(found, index, n);
        possible = tf_isa->ufuncs->expand_result(&table->bounds, items, index, out, n, pending);
    } else {
        const uint32_t *in = items, *found = (const uint32_t *)table->items;
        uint32_t *out = results;
        for (size_t i = 0; i < n; i++) {
            out[i] = found[in[i] >> f.shift];
        }
        possible = pending ? may_have_raised(results, n) : 0;
    }
    if (possible & pending) {
        flags |= look_up_flags(f, table, items, results, n, possible & pending);
    }
    return flags;
}

/* Computes some of a chunk's results one by one, or all of them if `which` is NULL. */
static unsigned compute(struct tf_format f, const struct function *function,
                        const struct table *table, const void *items, void *results,
                        const uint16_t *which, size_t count)
{
    unsigned flags = 0;
    for (size_t k = 0; k < count; k++) {
        const size_t i = which ? which[k] : k;
        const uint32_t code = code_of_item(f, tf_item_at(f, items, i));
        if (table) {
            tf_item_put(f, results, i, tf_item_at(f, table->items, code));
            flags |= table->flags[code];
        } else {
            tf_item_put(f, results, i, item_of_result(f, function, code, &flags));
        }
    }
    return flags;
}

/* Returns the sign operation of a function of codes, which needs no table; -1 for other
 * functions, and for formats without a sign. */
static int sign_change_of(int format, int op)
{
    uint32_t (*of_code)(struct tf_format, uint32_t, unsigned *) = functions[op].of_code;
    if (!tf_format_rows[format]->is_signed) {
        return -1;
    }
    return of_code == same_code       ? TF_POSITIVE
           : of_code == negative_code ? TF_NEGATIVE
           : of_code == absolute_code ? TF_ABSOLUTE
                                      : -1;
}

static tf_quick_fn *quick_function(int format, int op)
{
    const int place = format == tf_tf32_index ? 0 : format == tf_bfloat16_index ? 1 : -1;
    const enum tf_quick_op quick = functions[op].quick;
    return place < 0               ? NULL
           : quick < TF_QUICK_NEAR ? tf_isa->ufuncs->quick[quick][place]
                                   : tf_isa->ufuncs->quick_near[quick - TF_QUICK_NEAR][place];
}

enum {
    WORTH_ALL = 4, /* one lookup of a list costs as much as this many of a chunk */
    MANY_OPEN = 32 /* of this many results, one that is computed takes most time */
};

int tf_unary(int format, int op, char *const data[2], const ptrdiff_t strides[2],
             ptrdiff_t n)
{
    const int sign_change = sign_change_of(format, op);
    if (sign_change >= 0) {
        tf_change_sign(format, (enum tf_sign_op)sign_change, data, strides, n);
        return 0;
    }
    const struct tf_format f = *tf_format_rows[format];
    const struct tf_fp saved = tf_fp_begin();
    const struct table *table = atomic_load(&tables[op][format]);
    tf_quick_fn *const quick = quick_function(format, op);
    TF_BUFFER(in_buffer);
    TF_BUFFER(out_buffer);
    const char *in = data[0];
    char *out = data[1];
    unsigned flags = tf_fp_raised(saved);
    const enum tf_quick_op name = functions[op].quick;
    if (quick && (name == TF_QUICK_SQUARE || name == TF_QUICK_RECIPROCAL)) {
        tf_fp_flush_results(1); /* they are computed again */
    }
    for (ptrdiff_t done = 0; done < n;) {
        const size_t count = tf_next_chunk(out, f.itemsize, n - done);
        tf_read_ahead(in, strides[0], f.itemsize, count, n);
        const void *items = tf_gather(in, strides[0], f.itemsize, count, in_buffer);
        void *target = tf_large_target(out, strides[1], f.itemsize, count, n, out_buffer);
        if (items != in_buffer && tf_overlap(items, target, count * f.itemsize)) {
            items = memcpy(in_buffer, items, count * f.itemsize);
        }
        uint16_t which[TF_CHUNK];
        /* If one result of bfloat16 is open, look up all: to find, list and keep the open
         * ones takes longer than the others save. */
        const size_t few = f.itemsize == 2 ? 0 : count / WORTH_ALL;
        const size_t most = table ? few : count;
        const size_t open =
            quick ? quick(items, target, which, count, most, &flags) : count;
        if (open && !table) {
            /* If many are open, many of the next chunks will be, too. */
            const int rare = open <= count / MANY_OPEN;
            const ptrdiff_t wanted = rare ? (ptrdiff_t)open : n - done;
            if (is_worth_a_table(format, op, wanted)) {
                table = find_table(format, op);
                if (!table) {
                    tf_fp_end(saved, 0);
                    return -1;
                }
            }
        }
        if (table && open > few) {
            flags |= look_up(f, table, items, target, count, flags);
        } else {
            flags |= compute(f, &functions[op], table, items, target,
                             quick ? which : NULL, open);
        }
        tf_large_scatter(target, out, strides[1], f.itemsize, count, n);
        done += (ptrdiff_t)count;
        in += (ptrdiff_t)count * strides[0];
        out += (ptrdiff_t)count * strides[1];
    }
    tf_large_end(f.itemsize, n);
    tf_fp_end(saved, flags);
    return 0;
}
