/* The last steps of reductions: from the partial result of all elements to a result. */
#ifndef TF32DTYPE_CUDA_UFUNCS_ENDING_H
#define TF32DTYPE_CUDA_UFUNCS_ENDING_H

#include "cuda/formats/results.h"
#include "cuda/ufuncs/partials.h"

/* Operations on the final number, in float64; reductions.py has the same struct. */
struct ending {
    double initial;
    int64_t divisor;
    int64_t less;    /* subtracted from the divisor */
    int32_t begins;  /* 1: there is an initial value */
    int32_t divides;
    int32_t strict;  /* 1: divisors below 1 give NaN; 0: those below 0 become 0 */
    int32_t root;    /* 1: the square root is the result */
    int32_t nothing; /* 1: the result is whether a count is zero */
    int32_t padding;
};
static_assert(sizeof(ending) == 48 && TF_OFFSETOF(ending, begins) == 24 &&
                  TF_OFFSETOF(ending, nothing) == 40,
              "as in reductions.py");

__forceinline__ double quotient(double number, int64_t divisor, const ending &how)
{
    divisor -= how.less;
    if (how.strict && divisor <= 0) {
        return __longlong_as_double(INT64_C(0x7FF8) << 48);
    }
    return number / (double)(divisor > 0 ? divisor : 0);
}

template <class Op, int kind>
__forceinline__ tf_word<kind> ended(typename Op::value x, const ending &how,
                                    int64_t divisor)
{
    if (how.begins) {
        x = Op::both(Op::of_double(how.initial), x);
    }
    if constexpr (kind == TF_BOOL) {
        return (Op::template number<kind>(x) == 0) == (how.nothing != 0);
    } else if constexpr (kind == TF_INT64) {
        return (uint64_t)Op::index(x);
    } else {
        double number = Op::template number<kind>(x);
        if (how.divides) {
            number = quotient(number, divisor, how);
        }
        return tf_result<kind>(how.root ? sqrt(number) : number);
    }
}

#endif
