/* Reductions, the first of two passes: chunks of the reduced elements to partial results.
 *
 *   OP       a type of partials.h
 *   FROM     the elements' kind
 *   SQUARES  if given: sums of squares of differences from means or, without them, of
 *            the elements, in float64
 */
#include "cuda/formats/results.h"
#include "cuda/common/strides.h"
#include "cuda/ufuncs/tree.h"
#include "cuda/common/vectors.h"

typedef tf_word<FROM> source;
enum { VECTOR = sizeof(source) < 4 ? 16 / sizeof(source) : 4 };

/* An output's elements. */
struct elements {
    const tf_walk<2> &walk; /* the array and the mask, along the reduced axes */
    const source *in;
    const uint8_t *mask; /* NULL: all count */
    int kinds;           /* enum tf_elements */
    double mean;

    __forceinline__ OP::value value(source item, int64_t index) const
    {
        const uint32_t bits = tf_single<FROM, true>(item);
#ifdef SQUARES
        if ((kinds & TF_SKIP_NANS) && tf_single_is_nan(bits)) {
            return 0.0;
        }
        const double deviation = tf_float_of(bits) - mean;
        return deviation * deviation;
#else
        return OP::element(bits, index, kinds);
#endif
    }

    __forceinline__ OP::value one(int64_t index) const
    {
        const tf_offsets<2> at = tf_offsets_at(walk, index);
        return mask && !tf_at<uint8_t>(mask, at.of[1])
                   ? OP::none()
                   : value(tf_at<source>(in, at.of[0]), index);
    }

    /* A tree of four, then four by four: the same for aligned runs and all else. */
    __forceinline__ OP::value operator()(int64_t first, int64_t end) const
    {
        OP::value result = OP::none();
        const source *run = in + first;
        if (!mask && tf_is_run(walk, 0, sizeof(source)) && first + VECTOR <= end &&
            tf_is_aligned<source, VECTOR>(run)) {
            const tf_vector<source, VECTOR> items =
                tf_vector_at<true, source, VECTOR>(run);
#pragma unroll
            for (int i = 0; i < VECTOR; i += 4) {
                result = OP::both(result, four([&](int j) {
                                      return value(items.of[i + j], first + i + j);
                                  }));
            }
        } else {
#pragma unroll 1
            for (int64_t i = first; i < first + VECTOR; i += 4) {
                result = OP::both(result, four([&](int j) {
                                      return i + j < end ? one(i + j) : OP::none();
                                  }));
            }
        }
        return result;
    }

    template <class At> static __forceinline__ OP::value four(At at)
    {
        const OP::value a = at(0), b = at(1), c = at(2), d = at(3);
        return OP::both(OP::both(a, b), OP::both(c, d));
    }
};

/* Partial results, [chunks][outputs]. Four blocks on a multiprocessor: told nothing, the
 * assembler saves registers for more of them, and spills. */
extern "C" __global__ void __launch_bounds__(256, 4)
    reduce(const plan p, const tf_walk<2> kept, const tf_walk<2> reduced,
           OP::value *partials, const source *in, const uint8_t *mask, int kinds,
           const double *means)
{
    tf_reduce<VECTOR>(
        p,
        [&](int64_t output) {
            const tf_offsets<2> at = tf_offsets_at(kept, output);
            const double mean = means ? means[output] : 0;
            return elements{reduced, &tf_at<source>(in, at.of[0]),
                            mask ? &tf_at<uint8_t>(mask, at.of[1]) : mask, kinds, mean};
        },
        [&](int64_t output, OP::value x) {
            partials[blockIdx.y * p.outputs + output] = x;
        });
}
