/* Unary functions of bfloat16 and tf32 by float32 numbers that are near the exact results
 * (see functions.h), in one pass. Each function has a domain, in which its results are
 * normal numbers or zero, and raise nothing. Results of other arguments are left open.
 *
 *  bfloat16  Rounding gives the exact result's rounding: among 2^16 arguments, none has an
 *            exact result so near a number halfway between two. The tests compare them all,
 *            on every instruction set.
 *  tf32      The same holds unless a number halfway between two is within the margin: such
 *            results are left open, too. */
#include <math.h>

#include "formats/fast_codec.h"
#include "ufuncs/kernels/decls.h"
#include "ufuncs/kernels/functions.h"

enum { MARGIN = 2 }; /* ulps; results are off by less than MARGIN + 1 */
enum { TOGETHER = 256 }; /* results of tf32 that are checked together */

/* Numbers from -lowest to `greatest` of magnitudes from `least` on, and with `zero` 0. */
struct domain {
    float least, greatest, lowest;
    int zero;
};

/* -- arguments ------------------------------------------------------------------------ */

/* Returns the upper bits of float32 that an item is, without unused bits. cut_of returns
 * how many lower bits are missing. */
TF_INLINE uint32_t bits_at(int itemsize, const void *items, size_t i)
{
    const uint32_t code_bits = -(UINT32_C(1) << tf_cut(tf_tf32));
    return itemsize == 4 ? ((const uint32_t *)items)[i] & code_bits
                         : ((const uint16_t *)items)[i];
}

TF_INLINE int cut_of(int itemsize) { return itemsize == 4 ? 0 : 16; }

TF_INLINE int is_nan(int itemsize, uint32_t bits)
{
    const int cut = cut_of(itemsize);
    return (bits & TF_MAGNITUDE_BITS >> cut) > TF_INF_BITS >> cut;
}

TF_INLINE int is_outside(struct domain domain, int itemsize, uint32_t bits)
{
    const int cut = cut_of(itemsize);
    const uint32_t magnitude = bits & TF_MAGNITUDE_BITS >> cut;
    const uint32_t zero = (uint32_t)domain.zero;
    const uint32_t greatest = tf_bits_of(domain.greatest) >> cut;
    const uint32_t lowest = tf_bits_of(domain.lowest) >> cut;
    const uint32_t least = tf_bits_of(domain.least) >> cut;
    return (magnitude > (magnitude == bits ? greatest : lowest)) |
           (magnitude - zero < least - zero);
}

/* Marks functions that are called once per chunk and do not depend on the unary function: a
 * copy for each would be half of the code. */
#define ONCE static __attribute__((noinline))

/* Returns whether no item is outside the domain, by bounds of the items. */
ONCE int are_inside(struct domain domain, int itemsize, const void *items, size_t n)
{
    const int cut = cut_of(itemsize);
    const uint32_t zero = (uint32_t)domain.zero;
    const uint32_t greatest = tf_bits_of(domain.greatest) >> cut;
    const uint32_t lowest = tf_bits_of(-domain.lowest) >> cut;
    const uint32_t least = tf_bits_of(domain.least) >> cut;
    if (itemsize == 2) {
        int16_t most = 0;
        uint16_t under = 0, magnitudes = UINT16_MAX;
        for (size_t i = 0; i < n; i++) {
            const uint16_t bits = (uint16_t)bits_at(2, items, i);
            const uint16_t magnitude = (uint16_t)((bits & INT16_MAX) - zero);
            most = (int16_t)bits > most ? (int16_t)bits : most;
            under = bits > under ? bits : under;
            magnitudes = magnitude < magnitudes ? magnitude : magnitudes;
        }
        return (most <= (int32_t)greatest) & (under <= lowest) &
               (magnitudes >= least - zero);
    }
    int32_t most = 0;
    uint32_t under = 0, magnitudes = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bits_at(4, items, i);
        const uint32_t magnitude = (bits & TF_MAGNITUDE_BITS) - zero;
        most = (int32_t)bits > most ? (int32_t)bits : most;
        under = bits > under ? bits : under;
        magnitudes = magnitude < magnitudes ? magnitude : magnitudes;
    }
    return (most <= (int32_t)greatest) & (under <= lowest) & (magnitudes >= least - zero);
}

/* Marks items outside the domain, except NaN, and returns how many. Keeps the other items,
 * with the smallest argument in place of those outside. If `most` is 0, does nothing and
 * returns n. */
ONCE size_t leave_out(struct domain domain, int itemsize, const void *items, void *kept,
                      uint8_t *open, size_t n, size_t most)
{
    if (most == 0) {
        return n;
    }
    const uint32_t least = tf_bits_of(domain.least) >> cut_of(itemsize);
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t bits = bits_at(itemsize, items, i);
        const int outside = is_outside(domain, itemsize, bits);
        open[i] = (uint8_t)(outside & !is_nan(itemsize, bits));
        count += open[i];
        if (itemsize == 4) {
            ((uint32_t *)kept)[i] = outside ? least : bits;
        } else {
            ((uint16_t *)kept)[i] = (uint16_t)(outside ? least : bits);
        }
    }
    return count;
}

/* -- results -------------------------------------------------------------------------- */

/* Rounds to bfloat16 in the upper half: no result is halfway between two numbers. */
TF_INLINE uint32_t upper_bf16(float r) { return tf_bits_of(r) + 0x7FFF; }

/* Processes two items per word, without instructions that reorder items. */
TF_INLINE void of_bf16(float (*of)(float), const uint16_t *restrict items,
                       uint16_t *restrict results, size_t n)
{
    const uint32_t upper = TF_UPPER_HALF;
    for (size_t i = 0; i + 2 <= n; i += 2) {
        uint32_t two;
        memcpy(&two, items + i, sizeof two);
        const uint32_t first = upper_bf16(of(tf_float_of(two << 16)));
        const uint32_t second = upper_bf16(of(tf_float_of(two & upper)));
        two = first >> 16 | (second & upper);
        memcpy(results + i, &two, sizeof two);
    }
    if (n % 2) {
        const float last = tf_float_of((uint32_t)items[n - 1] << 16);
        results[n - 1] = (uint16_t)(upper_bf16(of(last)) >> 16);
    }
}

/* Returns the distance in ulps of float32 from result plus margin down to the next tie, a
 * number halfway between two of tf32's. It is at most twice the margin if the tie is within
 * the margin of the result, else more. */
TF_INLINE uint32_t distance(uint32_t above)
{
    return above & ((UINT32_C(1) << tf_cut(tf_tf32)) - 1);
}

/* Lists and counts the results within the margin of a tie, and those that `outside` marks,
 * if given. All are computed before any is checked: a branch on a result just computed
 * would delay the next ones. */
TF_INLINE size_t of_words(float (*of)(float), const uint32_t *restrict items,
                          uint32_t *restrict results, const uint8_t *outside,
                          uint16_t *which, size_t n)
{
    const uint32_t code_bits = -(UINT32_C(1) << tf_cut(tf_tf32));
    const uint32_t half = UINT32_C(1) << (tf_cut(tf_tf32) - 1);
    uint32_t above[TF_CHUNK], least[TF_CHUNK / TOGETHER];
    for (size_t start = 0, end; start < n; start = end) {
        uint32_t found = UINT32_MAX;
        end = n - start < TOGETHER ? n : start + TOGETHER;
        for (size_t i = start; i < end; i++) {
            const uint32_t r = tf_bits_of(of(tf_float_of(items[i] & code_bits)));
            above[i] = r + (half + MARGIN);
            found = distance(above[i]) < found ? distance(above[i]) : found;
            results[i] = above[i] & code_bits;
        }
        least[start / TOGETHER] = found;
    }
    size_t count = 0;
    for (size_t start = 0, end; start < n; start = end) {
        uint8_t open[TOGETHER + 8];
        end = n - start < TOGETHER ? n : start + TOGETHER;
        if (!outside && least[start / TOGETHER] > 2 * MARGIN) {
            continue;
        }
        for (size_t i = start; i < end; i++) {
            open[i - start] = distance(above[i]) <= 2 * MARGIN;
        }
        for (size_t i = start; outside && i < end; i++) {
            open[i - start] |= outside[i];
        }
        count += tf_list_marked(open, end - start, start, which + count);
    }
    return count;
}

/* Writes NaN where an item is NaN. */
ONCE void keep_nans(int itemsize, const void *items, void *results, size_t n)
{
    const struct tf_format f = itemsize == 4 ? tf_tf32 : tf_bfloat16;
    const uint32_t nan = tf_nan_code(f) << f.shift;
    for (size_t i = 0; i < n; i++) {
        const int is = is_nan(itemsize, bits_at(itemsize, items, i));
        if (itemsize == 4) {
            ((uint32_t *)results)[i] = is ? nan : ((uint32_t *)results)[i];
        } else {
            ((uint16_t *)results)[i] = is ? (uint16_t)nan : ((uint16_t *)results)[i];
        }
    }
}

/* Returns how many results are left open, and lists their indices in `which`. Each branch
 * has `of` only once: it is inlined, and most of this library's code. */
TF_INLINE size_t apply(float (*of)(float), struct domain domain, int itemsize,
                       const void *items, void *results, uint16_t *which, size_t n,
                       size_t most)
{
    _Alignas(64) uint32_t kept[TF_CHUNK];
    uint8_t outside[TF_CHUNK + 8];
    const int inside = are_inside(domain, itemsize, items, n);
    if (!inside && leave_out(domain, itemsize, items, kept, outside, n, most) > most) {
        return n;
    }
    const void *const taken = inside ? items : kept;
    size_t open = 0;
    if (itemsize == 4) {
        open = of_words(of, taken, results, inside ? NULL : outside, which, n);
    } else {
        of_bf16(of, taken, results, n);
    }
    if (!inside) {
        open += itemsize == 4 ? 0 : tf_list_marked(outside, n, 0, which);
        keep_nans(itemsize, items, results, n);
    }
    return open;
}

/* -- the functions -------------------------------------------------------------------- */

#define FUNCTION(name, expression, ...)                                        \
    TF_INLINE float name(float x) { return expression; }                       \
    static size_t name##_tf32(const void *items, void *results, uint16_t *which, \
                              size_t n, size_t most, unsigned *flags)          \
    {                                                                          \
        (void)flags;                                                           \
        const struct domain domain = {__VA_ARGS__};                            \
        return apply(name, domain, 4, items, results, which, n, most);         \
    }                                                                          \
    static size_t name##_bfloat16(const void *items, void *results,            \
                                  uint16_t *which, size_t n, size_t most,      \
                                  unsigned *flags)                             \
    {                                                                          \
        (void)flags;                                                           \
        const struct domain domain = {__VA_ARGS__};                            \
        return apply(name, domain, 2, items, results, which, n, most);         \
    }
/* Smaller arguments may have subnormal squares, which take a hundred times as long. */
FUNCTION(exp_, exp_near(x), 0x1p-50f, 87, 87, 1)
FUNCTION(exp2_, exp2_near(x), 0x1p-50f, 125, 125, 1)
FUNCTION(expm1_, expm1_near(x), 0x1p-50f, 87, INFINITY, 1)
FUNCTION(log_, log_near(x), 0x1p-126f, 0x1.ffcp+127f, 0, 0)
FUNCTION(log2_, log2_near(x), 0x1p-126f, 0x1.ffcp+127f, 0, 0)
FUNCTION(log10_, log10_near(x), 0x1p-126f, 0x1.ffcp+127f, 0, 0)
FUNCTION(log1p_, log1p_near(x), 0x1p-50f, 0x1.ffcp+127f, 0x1.ffcp-1f, 1)
FUNCTION(sin_, sine_near(x, 0), 0x1p-50f, 0x1.ffcp+12f, 0x1.ffcp+12f, 1)
FUNCTION(cos_, sine_near(x, 1), 0x1p-50f, 0x1.ffcp+12f, 0x1.ffcp+12f, 1)
FUNCTION(tan_, tan_near(x), 0x1p-50f, 0x1.ffcp+12f, 0x1.ffcp+12f, 1)
FUNCTION(arcsin, arcsin_near(x), 0x1p-50f, 1, 1, 1)
FUNCTION(arccos, arccos_near(x), 0x1p-50f, 1, 1, 1)
FUNCTION(arctan, arctan_near(x), 0x1p-50f, INFINITY, INFINITY, 1)
FUNCTION(sinh_, sinh_near(x), 0x1p-50f, 87, 87, 1)
FUNCTION(cosh_, cosh_near(x), 0x1p-50f, 85, 85, 1)
FUNCTION(tanh_, tanh_near(x), 0x1p-50f, INFINITY, INFINITY, 1)
FUNCTION(arcsinh, arcsinh_near(x), 0x1p-50f, 0x1p+126f, 0x1p+126f, 1)
FUNCTION(arccosh, arccosh_near(x), 1, 0x1p+126f, 0, 0)
FUNCTION(arctanh, arctanh_near(x), 0x1p-50f, 0x1.ffcp-1f, 0x1.ffcp-1f, 1)
FUNCTION(cbrt_, cbrt_near(x), 0x1p-126f, 0x1.ffcp+127f, 0x1.ffcp+127f, 1)
FUNCTION(degrees, x * 0x1.ca5dc2p+5f, 0x1p-126f, 0x1p+122f, 0x1p+122f, 1)
FUNCTION(radians, x * 0x1.1df46ap-6f, 0x1p-120f, 0x1.ffcp+127f, 0x1.ffcp+127f, 1)

#define BOTH(op, name) [op - TF_QUICK_NEAR] = {name##_tf32, name##_bfloat16}
tf_quick_fn *const TF_PLAIN_NAME(tf_quick_near)[TF_QUICK_COUNT - TF_QUICK_NEAR][2] = {
    BOTH(TF_QUICK_EXP, exp_),        BOTH(TF_QUICK_EXP2, exp2_),
    BOTH(TF_QUICK_EXPM1, expm1_),    BOTH(TF_QUICK_LOG, log_),
    BOTH(TF_QUICK_LOG2, log2_),      BOTH(TF_QUICK_LOG10, log10_),
    BOTH(TF_QUICK_LOG1P, log1p_),    BOTH(TF_QUICK_SIN, sin_),
    BOTH(TF_QUICK_COS, cos_),        BOTH(TF_QUICK_TAN, tan_),
    BOTH(TF_QUICK_ARCSIN, arcsin),   BOTH(TF_QUICK_ARCCOS, arccos),
    BOTH(TF_QUICK_ARCTAN, arctan),   BOTH(TF_QUICK_SINH, sinh_),
    BOTH(TF_QUICK_COSH, cosh_),      BOTH(TF_QUICK_TANH, tanh_),
    BOTH(TF_QUICK_ARCSINH, arcsinh), BOTH(TF_QUICK_ARCCOSH, arccosh),
    BOTH(TF_QUICK_ARCTANH, arctanh), BOTH(TF_QUICK_CBRT, cbrt_),
    BOTH(TF_QUICK_DEGREES, degrees), BOTH(TF_QUICK_RADIANS, radians),
};
