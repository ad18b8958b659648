/* The operations of binary_ops.h on chunks of float32 numbers, in float32 or float64.
 *
 * float32 is wide enough if two 8-bit significands need no more than its 24 bits (Figueroa,
 * "When is double rounding innocuous?", 1995: p' >= 2 p + 2). This has room for the sticky
 * bits of subnormal results, too. float64 serves tf32 and all other operations. */
#include <math.h>
#include <string.h>

#include "ufuncs/binary_formulas.h"
#include "runtime/sizes.h"
#include "ufuncs/kernels/decls.h"

#define BINARY(name, type, expression)                                         \
    static void name##_##type(const float *a, const float *b, type *r, size_t n) \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            const type x = a[i], y = b[i];                                     \
            r[i] = (expression);                                               \
        }                                                                      \
    }
#define IN_FLOAT32(op, name, expression, ...) BINARY(name, float, expression)
#define IN_FLOAT64(op, name, expression, ...) BINARY(name, double, expression)
#define CANONICAL(op, name, expression, ...)                                   \
    BINARY(name, float, (expression) == (expression) ? (expression) : quiet_nan())
TF_INLINE float quiet_nan(void) { return tf_float_of(TF_QUIET_NAN_BITS); }
TF_BINARY_IN_BOTH(CANONICAL)
TF_BINARY_IN_BOTH(IN_FLOAT64)
TF_BINARY_IN_FLOAT64(IN_FLOAT64)
TF_BINARY_IN_FLOAT32(IN_FLOAT32)

tf_binary_f32_fn *const TF_NAME(tf_binary_f32)[TF_BINARY_COUNT] = {
#define ROW(op, name, ...) [TF_##op] = name##_float,
    TF_BINARY_IN_BOTH(ROW) TF_BINARY_IN_FLOAT32(ROW)
#undef ROW
};

tf_binary_f64_fn *const TF_NAME(tf_binary_f64)[TF_BINARY_COUNT] = {
#define ROW(op, name, ...) [TF_##op] = name##_double,
    TF_BINARY_IN_BOTH(ROW) TF_BINARY_IN_FLOAT64(ROW)
#undef ROW
};

/* -- results that are not numbers of a format ---------------------------------- */

#define COMPARE(name, expression)                                              \
    static void name(const float *a, const float *b, uint8_t *r, size_t n)     \
    {                                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            const float x = a[i], y = b[i];                                    \
            r[i] = (expression);                                               \
        }                                                                      \
    }
COMPARE(equal, x == y)
COMPARE(not_equal, x != y)
COMPARE(less, x < y)
COMPARE(less_equal, x <= y)

tf_compare_fn *const TF_NAME(tf_compare)[TF_COMPARE_KERNELS] = {
    [TF_EQUAL] = equal,
    [TF_NOT_EQUAL] = not_equal,
    [TF_LESS] = less,
    [TF_LESS_EQUAL] = less_equal,
};

/* Computes in float64, as NumPy does. */
void TF_NAME(tf_are_near)(struct tf_nearness nearness, const float *a, const float *b,
                          uint8_t *r, size_t n)
{
    const float inf = INFINITY;
    for (size_t i = 0; i < n; i++) {
        const float x = a[i], y = b[i];
        const double bound =
            nearness.absolute + nearness.relative * __builtin_fabs((double)y);
        const int is_near = __builtin_fabs((double)x - (double)y) <= bound;
        const int are_nan = nearness.equal_nan & (x != x) & (y != y);
        r[i] = (is_near & (__builtin_fabsf(y) < inf)) | (x == y) | are_nan;
    }
}

unsigned TF_NAME(tf_exceptions)(uint32_t beyond, const float *a, const float *b,
                                const float *r, size_t n)
{
    const int32_t inf = TF_INF_BITS, nan = inf + 2; /* see tf_finish_words() */
    int32_t greatest = 0;
    uint32_t nearest = UINT32_MAX, finite = 0; /* the largest, less Inf */
    for (size_t i = 0; i < n; i++) {
        const int32_t m = (int32_t)(tf_bits_of(r[i]) & TF_MAGNITUDE_BITS);
        const int32_t p = (int32_t)(tf_bits_of(a[i]) & TF_MAGNITUDE_BITS);
        const int32_t q = (int32_t)(tf_bits_of(b[i]) & TF_MAGNITUDE_BITS);
        const int32_t greater = p > q ? p : q, least = greater > inf - 1 ? greater : inf - 1;
        const int32_t excess = (m < nan ? m : nan) - least;
        const uint32_t from_one = (uint32_t)excess ^ 1, below = (uint32_t)m - TF_INF_BITS;
        greatest = excess > greatest ? excess : greatest;
        nearest = from_one < nearest ? from_one : nearest;
        finite = below > finite ? below : finite;
    }
    return (finite >= beyond - TF_INF_BITS ? TF_OVER : 0) |
           (nearest == 0 ? TF_DIVIDE : 0) | (greatest > 1 ? TF_INVALID : 0);
}

/* -- indices of tables -------------------------------------------------------------- */

void TF_NAME(tf_compress_index)(const struct tf_index_bounds *bounds, const uint16_t *in,
                         uint16_t *index, size_t n)
{
    const int16_t code_mask = (int16_t)~bounds->odd;
    const int16_t low = bounds->least[0], high = bounds->greatest[0];
    const int16_t negative_low = (int16_t)(bounds->least[1] | INT16_MIN);
    const int16_t negative_high = (int16_t)(bounds->greatest[1] | INT16_MIN);
    for (size_t i = 0; i < n; i++) {
        /* For either sign, codes as integers ascend with their magnitudes. */
        const int16_t code = (int16_t)in[i] & code_mask;
        const int16_t raised = code > low ? code : low;
        const int16_t positive = raised < high ? raised : high;
        const int16_t lowered = code < negative_high ? code : negative_high;
        const int16_t negative = lowered > negative_low ? lowered : negative_low;
        index[i] = (uint16_t)(code < 0 ? negative : positive);
    }
}

unsigned TF_NAME(tf_expand_result)(const struct tf_index_bounds *bounds, const uint16_t *in,
                               const uint16_t *results, uint16_t *out, size_t n,
                               unsigned wanted)
{
    enum { INF = TF_BF16_INF_BITS, MAGNITUDE = TF_BF16_MAGNITUDE_BITS };
    enum { NAN_ = TF_BF16_QUIET_NAN_BITS, ONE = 0x3F80, LEAST_NORMAL = 0x0080 };
    const uint16_t odd = bounds->odd;
    const int16_t identity = bounds->identity;
    int16_t least = INT16_MAX, greatest = 0;
    for (size_t i = 0; i < n; i++) {
        const int16_t argument = (int16_t)(in[i] & MAGNITUDE);
        const uint16_t sign = (results[i] & MAGNITUDE) > INF ? 0 : in[i] & odd;
        const uint16_t result = argument <= identity ? in[i] : results[i] ^ sign;
        out[i] = argument > INF ? (uint16_t)NAN_ : result;
        const int16_t magnitude =
            argument > INF ? (int16_t)ONE : (int16_t)(result & MAGNITUDE);
        least = magnitude < least ? magnitude : least;
        greatest = magnitude > greatest ? magnitude : greatest;
    }
    int16_t infinite = (int16_t)-(greatest == INF);
    if (greatest > INF && wanted & (TF_DIVIDE | TF_OVER)) { /* NaN hides Inf from the maximum */
        for (size_t i = 0; i < n; i++) {
            infinite |= (int16_t)-((out[i] & MAGNITUDE) == INF);
        }
    }
    return wanted &
           ((greatest > INF ? TF_INVALID : 0) | (infinite ? TF_DIVIDE | TF_OVER : 0) |
            (least <= LEAST_NORMAL ? TF_UNDER : 0));
}

/* -- reductions -------------------------------------------------------------------- */

/* Partial sums side by side, enough to hide the latency of additions, and then pairs of
 * them: an order that depends only on n. */
enum { SUMS = 64, LANES = 16 };

double TF_NAME(tf_sum)(const float *in, size_t n)
{
    double lanes[SUMS];
    size_t i = 0;
    if (n < SUMS) {
        double sum = -0.0; /* the empty sum that keeps -0 */
        for (; i < n; i++) {
            sum += (double)in[i];
        }
        return sum;
    }
    for (; i < SUMS; i++) {
        lanes[i] = (double)in[i];
    }
    for (; i + SUMS <= n; i += SUMS) {
        for (int lane = 0; lane < SUMS; lane++) {
            lanes[lane] += (double)in[i + (size_t)lane];
        }
    }
    for (int lane = 0; i < n; i++, lane++) {
        lanes[lane] += (double)in[i];
    }
    for (int width = SUMS / 2; width > 0; width /= 2) {
        for (int lane = 0; lane < width; lane++) {
            lanes[lane] += lanes[lane + width];
        }
    }
    return lanes[0];
}

/* As bounds_without_nans (formats/kernels/classify.c), for items of bfloat16, which are the
 * upper halves of float32. */
TF_INLINE void bf16_order_bounds(const uint16_t *in, size_t n, uint16_t nans,
                                 int16_t *least, int16_t *greatest)
{
    int16_t low = INT16_MAX, high = INT16_MIN;
    for (size_t i = 0; i < n; i++) {
        const uint16_t order = (uint16_t)tf_bf16_order((int16_t)in[i]);
        const int16_t down = (int16_t)(order - nans), up = (int16_t)(order + nans);
        low = down < low ? down : low;
        high = up > high ? up : high;
    }
    *least = (int16_t)(low + nans);
    *greatest = (int16_t)(high - nans);
}

void TF_NAME(tf_bf16_bounds)(const uint16_t *in, size_t n, int without_nans,
                             int32_t *least, int32_t *greatest)
{
    const int16_t infinity = TF_BF16_INF_BITS;
    int16_t low, high;
    bf16_order_bounds(in, n, 0, &low, &high);
    if (without_nans && (high > infinity || low < ~infinity)) {
        bf16_order_bounds(in, n, INT16_MAX - infinity, &low, &high);
    }
    *least = tf_total_order((uint32_t)(uint16_t)tf_bf16_order(low) << 16);
    *greatest = tf_total_order((uint32_t)(uint16_t)tf_bf16_order(high) << 16);
}

/* Running bounds of RANKS ranks at a time; `next` is the largest rank plus one, for which the
 * last rank, NaN, wraps around to 0. */
enum { RANKS = 64 };

struct byte_bounds {
    uint8_t least[RANKS], greatest[RANKS], next[RANKS];
};

TF_INLINE void widen_byte_bounds(struct byte_bounds *bounds, const uint8_t *ranks)
{
    for (size_t i = 0; i < RANKS; i++) {
        const uint8_t rank = ranks[i], next = (uint8_t)(rank + 1);
        bounds->least[i] = rank < bounds->least[i] ? rank : bounds->least[i];
        bounds->greatest[i] = rank > bounds->greatest[i] ? rank : bounds->greatest[i];
        bounds->next[i] = next > bounds->next[i] ? next : bounds->next[i];
    }
}

void TF_NAME(tf_byte_bounds)(struct tf_byte_order order, const uint8_t *in, size_t n,
                             int without_nans, uint8_t *least, uint8_t *greatest)
{
    struct byte_bounds bounds;
    memset(bounds.least, UINT8_MAX, sizeof bounds.least);
    memset(bounds.greatest, 0, sizeof bounds.greatest);
    memset(bounds.next, 0, sizeof bounds.next);
    const size_t whole = n / RANKS * RANKS;
    uint8_t found[TF_CHUNK];
    for (size_t i = 0, count; i < whole; i += count) {
        count = tf_min_size(whole - i, TF_CHUNK);
        TF_NAME(tf_rank_bytes)(order, in + i, found, count);
        for (size_t j = 0; j < count; j += RANKS) {
            widen_byte_bounds(&bounds, found + j);
        }
    }
    if (whole < n) {
        uint8_t rest[RANKS]; /* copies of an item change no bound */
        memset(rest, in[whole], sizeof rest);
        memcpy(rest, in + whole, n - whole);
        TF_NAME(tf_rank_bytes)(order, rest, found, RANKS);
        widen_byte_bounds(&bounds, found);
    }
    uint8_t low = UINT8_MAX, high = 0, next = 0;
    for (int lane = 0; lane < RANKS; lane++) {
        low = bounds.least[lane] < low ? bounds.least[lane] : low;
        high = bounds.greatest[lane] > high ? bounds.greatest[lane] : high;
        next = bounds.next[lane] > next ? bounds.next[lane] : next;
    }
    *least = low;
    *greatest = without_nans ? (uint8_t)(next - 1) : high; /* NaN if all are */
}
