/* Reductions, the second of two passes: partial results to results.
 *
 *   OP  a type of partials.h
 *   TO  the results' kind
 */
#include "cuda/ufuncs/ending.h"
#include "cuda/ufuncs/tree.h"

/* The partial results of one output, of [p.count][p.outputs]. */
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
    tf_reduce<1, 1, true, 1>(
        p,
        [&](int64_t output) { return partial_results{partials + output, p.outputs}; },
        [&](int64_t output, OP::value x) {
            out[output] =
                ended<OP, TO>(x, how, divisors ? divisors[output] : how.divisor);
        });
}
