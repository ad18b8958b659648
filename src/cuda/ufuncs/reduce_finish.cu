/* Reductions, the second of two passes: partial results to results.
 *
 *   OP  a type of partials.h
 *   TO  the results' kind
 */
#include "cuda/formats/results.h"
#include "cuda/ufuncs/tree.h"

/* What is done to a number at last, in float64; as in reductions.py. */
struct ending {
    double initial;
    int64_t divisor;
    int64_t less;    /* what is taken off a divisor */
    int32_t begins;  /* whether there is an initial value */
    int32_t divides;
    int32_t strict;  /* divisors below 1 give NaN; else those below 0 are 0 */
    int32_t root;    /* whether the square root is taken */
    int32_t nothing; /* whether the result is that a count is zero */
    int32_t padding;
};

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

/* Partial results [p.count][p.outputs], of an output. */
struct partial_results {
    const OP::value *of;
    int64_t outputs;

    __forceinline__ void add(OP::value (&results)[1], int64_t first, int step,
                             int64_t end) const
    {
        OP::value next[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64_t index = first + k * step;
            next[k] = index < end ? of[index * outputs] : OP::none();
        }
#pragma unroll
        for (int k = 0; k < 4; k++) {
            results[0] = OP::both(results[0], next[k]);
        }
    }
};

extern "C" __global__ void __launch_bounds__(256)
    finish(const plan p, tf_word<TO> *out, const OP::value *partials, const ending how,
           const int64_t *divisors)
{
    tf_reduce<1, true>(
        p,
        [&](int64_t output) { return partial_results{partials + output, p.outputs}; },
        [&](int64_t output, OP::value x) {
            out[output] =
                ended<OP, TO>(x, how, divisors ? divisors[output] : how.divisor);
        });
}
