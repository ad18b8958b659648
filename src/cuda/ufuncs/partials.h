/* Partial results of reductions, an operation a type: `value` is what it keeps, made of
 * an element, or of two others (`both` is associative, but for the rounding of doubles),
 * and a number in the end, or an index. */
#ifndef TF32DTYPE_CUDA_UFUNCS_PARTIALS_H
#define TF32DTYPE_CUDA_UFUNCS_PARTIALS_H

#include "cuda/formats/stored.h"

/* What is made of an element; as in tf32dtype/cuda/_functions/reductions.py. */
enum tf_elements {
    TF_SKIP_NANS = 1,   /* as if they were not there */
    TF_EQUAL_ZEROS = 2, /* -0 is +0: which is first is asked for */
    TF_COUNT_ZEROS = 4, /* to be counted, instead of what is not zero */
    TF_COUNT_NUMBERS = 8 /* to be counted: what is not NaN */
};

/* In float64, each number of up to 24 bits. */
struct sums {
    typedef double value;

    static value none(void) { return -0.0; }
    static value of_double(double x) { return x; }
    static value element(uint32_t bits, int64_t, int elements)
    {
        const int skipped = (elements & TF_SKIP_NANS) && tf_single_is_nan(bits);
        return skipped ? 0.0 : (double)tf_float_of(bits);
    }
    static value both(value a, value b) { return a + b; }
    template <int kind> static double number(value x) { return x; }
};

/* No partial product leaves the range. */
struct products {
    struct value {
        double significand; /* in [1, 2), if it is neither 0 nor special */
        int64_t exponent;
    };

    static value none(void) { return {1.0, 0}; }
    static value normalised(double significand, int64_t exponent)
    {
        uint64_t bits = (uint64_t)__double_as_longlong(significand);
        const int field = (int)(bits >> 52 & 0x7FF);
        if (field != 0 && field != 0x7FF) {
            exponent += field - 1023;
            bits = (bits & ~(UINT64_C(0x7FF) << 52)) | UINT64_C(1023) << 52;
        }
        return {__longlong_as_double((int64_t)bits), exponent};
    }
    static value of_double(double x) { return normalised(x, 0); }
    static value element(uint32_t bits, int64_t, int elements)
    {
        const int skipped = (elements & TF_SKIP_NANS) && tf_single_is_nan(bits);
        return normalised(skipped ? 1.0 : (double)tf_float_of(bits), 0);
    }
    static value both(value a, value b)
    {
        return normalised(a.significand * b.significand, a.exponent + b.exponent);
    }
    /* To a kind: beyond 2^+-2000 float64 over- or underflows, beyond 2^+-1000 all
     * others, to which it is no zero: e8m0 has none. */
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

/* A number as its place in float32's order, in which -0 is below +0 and NaN at the end
 * where it prevails; and the first index at which it is. */
template <bool most> struct extremes {
    struct value {
        int64_t index; /* -1: none */
        int32_t order;
    };

    static value none(void) { return {-1, most ? INT32_MIN : INT32_MAX}; }
    static value element(uint32_t bits, int64_t index, int elements)
    {
        const int nan = tf_single_is_nan(bits);
        if (nan && (elements & TF_SKIP_NANS)) {
            return none();
        }
        if ((elements & TF_EQUAL_ZEROS) && bits << 1 == 0) {
            bits = 0;
        }
        const int32_t prevails = most ? INT32_MAX : INT32_MIN;
        return {index, nan ? prevails : tf_total_order(bits)};
    }
    static value of_double(double x) { return element(tf_bits_of((float)x), 0, 0); }
    static value both(value a, value b)
    {
        const int better = most ? b.order > a.order : b.order < a.order;
        const int earlier = b.order == a.order && b.index >= 0 &&
                            (a.index < 0 || b.index < a.index);
        return better || earlier ? b : a;
    }
    static int64_t index(value x) { return x.index; }
    /* What is at either end of the order is NaN. */
    template <int kind> static double number(value x)
    {
        return tf_float_of((uint32_t)tf_total_order((uint32_t)x.order));
    }
};
typedef extremes<true> greatest;
typedef extremes<false> least;

struct counts {
    typedef int64_t value;

    static value none(void) { return 0; }
    static value of_double(double x) { return (int64_t)x; }
    static value element(uint32_t bits, int64_t, int elements)
    {
        const int zero = bits << 1 == 0, nan = tf_single_is_nan(bits);
        return elements & TF_COUNT_NUMBERS ? !nan
               : elements & TF_COUNT_ZEROS ? zero
                                           : !zero;
    }
    static value both(value a, value b) { return a + b; }
    static int64_t index(value x) { return x; }
    template <int kind> static double number(value x) { return (double)x; }
};

#endif
