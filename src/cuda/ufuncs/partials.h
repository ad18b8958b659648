/* Partial results of reductions, one type per operation. `value` is the partial result of
 * an element, or of two others: `both` is associative, except for the rounding of
 * doubles. At the end, `number` or `index` gives the result. `after` is `both` for
 * elements that follow in the order of indices.
 *
 * `part` is the result of up to four elements, which is cheaper. `part_of` makes it from
 * an element of a kind, `joined` adds the next part, and `whole` returns it as a value. */
#ifndef TF32DTYPE_CUDA_UFUNCS_PARTIALS_H
#define TF32DTYPE_CUDA_UFUNCS_PARTIALS_H

#include "cuda/formats/stored.h"

/* Treatment of elements; tf32dtype/cuda/_functions/reductions.py has the same values. */
enum tf_elements {
    TF_SKIP_NANS = 1,   /* ignore NaN */
    TF_EQUAL_ZEROS = 2, /* -0 is +0: the first of them is wanted */
    TF_COUNT_ZEROS = 4, /* count zeros instead of other numbers */
    TF_COUNT_NUMBERS = 8 /* count numbers that are not NaN */
};

/* Returns whether float32 holds every sum of 2^log numbers of a kind. They are multiples
 * of the smallest subnormal number, and below 2^(mantissa bits + 1 + largest exponent
 * field - 1) times it, so that `log` more bits are enough. */
constexpr bool tf_sums_are_exact(int kind, int log)
{
    switch (kind) {
#define ROW(name, itemsize, width, shift, exponent, mantissa, is_signed, ...)            \
    case tf_##name##_index:                                                              \
        return is_signed && mantissa + (1 << exponent) - 1 + log <= 24;
        TF_FORMATS(ROW)
#undef ROW
    default: return false;
    }
}

template <bool exact> struct tf_sum_part {
    typedef double type;
};
template <> struct tf_sum_part<true> {
    typedef float type;
};

/* Sums in float64, of numbers of up to 24 bits each. */
struct sums {
    typedef double value;
    template <int kind>
    using part = typename tf_sum_part<tf_sums_are_exact(kind, 2)>::type;

    static value none(void) { return -0.0; }
    static value of_double(double x) { return x; }
    template <int kind>
    static part<kind> part_of(uint32_t bits, int, int elements)
    {
        const int skipped = (elements & TF_SKIP_NANS) && tf_single_is_nan(bits);
        return skipped ? 0 : (part<kind>)tf_float_of(bits);
    }
    template <int kind> static part<kind> no_part(void) { return -0.0f; }
    template <class T> static T joined(T a, T b) { return a + b; }
    template <class T> static value whole(T x, int64_t, int64_t) { return (double)x; }
    static value element(uint32_t bits, int64_t, int elements)
    {
        return part_of<TF_FLOAT32>(bits, 0, elements);
    }
    static value both(value a, value b) { return a + b; }
    static value after(value a, value b) { return a + b; }
    template <int kind> static double number(value x) { return x; }
};

/* Products with a separate exponent, so that no partial product leaves the range. */
struct products {
    struct value {
        double significand; /* in [1, 2), unless it is 0, Inf or NaN */
        int64_t exponent;
    };

    static value none(void) { return {1.0, 0}; }
    static value normalized(double significand, int64_t exponent)
    {
        uint64_t bits = (uint64_t)__double_as_longlong(significand);
        const int field = (int)(bits >> 52 & 0x7FF);
        if (field != 0 && field != 0x7FF) {
            exponent += field - 1023;
            bits = (bits & ~(UINT64_C(0x7FF) << 52)) | UINT64_C(1023) << 52;
        }
        return {__longlong_as_double((int64_t)bits), exponent};
    }
    static value of_double(double x) { return normalized(x, 0); }
    /* A part is a product of four float32 numbers: between 2^-596 and 2^512. */
    template <int kind> using part = double;
    template <int kind> static double part_of(uint32_t bits, int, int elements)
    {
        const int skipped = (elements & TF_SKIP_NANS) && tf_single_is_nan(bits);
        return skipped ? 1.0 : (double)tf_float_of(bits);
    }
    template <int kind> static double no_part(void) { return 1.0; }
    static double joined(double a, double b) { return a * b; }
    static value whole(double x, int64_t, int64_t) { return normalized(x, 0); }
    static value element(uint32_t bits, int64_t, int elements)
    {
        return normalized(part_of<TF_FLOAT32>(bits, 0, elements), 0);
    }
    static value both(value a, value b)
    {
        return normalized(a.significand * b.significand, a.exponent + b.exponent);
    }
    static value after(value a, value b) { return both(a, b); }
    /* Returns the product as a double. Exponents are limited to +-2000 for float64, and
     * to +-1000 for other kinds, where those overflow and underflow alike. float64 still
     * holds 2^-1000: it must not become zero for e8m0, which has none. */
    template <int kind> static double number(value x)
    {
        const int most = kind == TF_FLOAT64 ? 2000 : 1000;
        const int64_t e = x.exponent;
        const int bound = e > most ? most : e < -most ? -most : (int)e;
        const int half = bound / 2, rest = bound - half;
        return x.significand * __longlong_as_double((int64_t)(half + 1023) << 52) *
               __longlong_as_double((int64_t)(rest + 1023) << 52);
    }
};

/* The rank of a number in float32's order, and the first index with that rank. -0 is
 * below +0. NaN is at the end where it wins. */
template <bool most> struct extremes {
    struct value {
        int64_t index; /* -1: none */
        int32_t order;
    };
    struct one_of_four {
        int32_t which; /* -1: none */
        int32_t order;
    };
    template <int kind> using part = one_of_four;

    static value none(void) { return {-1, most ? INT32_MIN : INT32_MAX}; }
    template <int kind> static one_of_four no_part(void) { return {-1, none().order}; }
    template <int kind>
    static one_of_four part_of(uint32_t bits, int which, int elements)
    {
        const int nan = tf_single_is_nan(bits);
        if (nan && (elements & TF_SKIP_NANS)) {
            return no_part<kind>();
        }
        if ((elements & TF_EQUAL_ZEROS) && bits << 1 == 0) {
            bits = 0;
        }
        const int32_t prevails = most ? INT32_MAX : INT32_MIN;
        return {which, nan ? prevails : tf_total_order(bits)};
    }
    static int better(int32_t a, int32_t b) { return most ? b > a : b < a; }
    static one_of_four joined(one_of_four a, one_of_four b)
    {
        return better(a.order, b.order) ? b : a;
    }
    static value whole(one_of_four x, int64_t first, int64_t step)
    {
        return {x.which < 0 ? -1 : first + x.which * step, x.order};
    }
    static value element(uint32_t bits, int64_t index, int elements)
    {
        return whole(part_of<TF_FLOAT32>(bits, 0, elements), index, 0);
    }
    static value after(value a, value b) { return better(a.order, b.order) ? b : a; }
    static value of_double(double x) { return element(tf_bits_of((float)x), 0, 0); }
    static value both(value a, value b)
    {
        const int earlier = b.order == a.order && b.index >= 0 &&
                            (a.index < 0 || b.index < a.index);
        return better(a.order, b.order) || earlier ? b : a;
    }
    static int64_t index(value x) { return x.index; }
    /* The ranks at both ends of the order are NaN. */
    template <int kind> static double number(value x)
    {
        return tf_float_of((uint32_t)tf_total_order((uint32_t)x.order));
    }
};
typedef extremes<true> greatest;
typedef extremes<false> least;

/* Both ends of the order of float32's bits, one of which gives the result. NaN is farther
 * out than the infinity of its sign, so that comparisons of integers find every NaN. */
template <bool most> struct ends {
    struct value {
        int32_t low;
        int32_t high;
    };
    template <int kind> using part = value;

    static value none(void) { return {INT32_MAX, INT32_MIN}; }
    template <int kind> static value no_part(void) { return none(); }
    static value of_order(int32_t order) { return {order, order}; }
    static value of_double(double x)
    {
        return of_order(tf_total_order(tf_bits_of((float)x)));
    }
    template <int kind> static value part_of(uint32_t bits, int, int elements)
    {
        const int skipped = (elements & TF_SKIP_NANS) && tf_single_is_nan(bits);
        return skipped ? none() : of_order(tf_total_order(bits));
    }
    static value both(value a, value b)
    {
        return {min(a.low, b.low), max(a.high, b.high)};
    }
    static value joined(value a, value b) { return both(a, b); }
    static value after(value a, value b) { return both(a, b); }
    static value whole(value x, int64_t, int64_t) { return x; }
    template <int kind> static double number(value x)
    {
        const int32_t infinity = (int32_t)TF_INF_BITS;
        const int nan = x.high > infinity || x.low < ~infinity || x.low > x.high;
        const int32_t order = nan ? INT32_MAX : most ? x.high : x.low;
        return tf_float_of((uint32_t)tf_total_order((uint32_t)order));
    }
};
typedef ends<true> highest;
typedef ends<false> lowest;

struct counts {
    typedef int64_t value;

    static value none(void) { return 0; }
    static value of_double(double x) { return (int64_t)x; }
    template <int kind> using part = int;
    template <int kind> static int no_part(void) { return 0; }
    template <int kind> static int part_of(uint32_t bits, int, int elements)
    {
        const int zero = bits << 1 == 0, nan = tf_single_is_nan(bits);
        return elements & TF_COUNT_NUMBERS ? !nan
               : elements & TF_COUNT_ZEROS ? zero
                                           : !zero;
    }
    static int joined(int a, int b) { return a + b; }
    static value whole(int x, int64_t, int64_t) { return x; }
    static value both(value a, value b) { return a + b; }
    static value after(value a, value b) { return a + b; }
    static int64_t index(value x) { return x; }
    template <int kind> static double number(value x) { return (double)x; }
};

#endif
