/* Reductions, the first of two passes: chunks of the reduced elements to partial results;
 * or the only pass, where there is one chunk.
 *
 *   OP        a type of partials.h
 *   FROM      the elements' kind
 *   ELEMENTS  what is made of them, of enum tf_elements
 *   VECTOR    how many neighbors a thread reads at once: 1 of any strides, and a mask
 *   ACROSS    whether these belong to neighboring outputs
 *   SQUARES   if given: sums of squares of differences from means or, without them, of
 *             the elements, in float64
 *   TO        of the only pass: the results' kind
 */
#include "cuda/common/strides.h"
#include "cuda/ufuncs/ending.h"
#include "cuda/ufuncs/packed.h"
#include "cuda/ufuncs/tree.h"
#include "cuda/common/vectors.h"

typedef tf_word<FROM> source;
typedef tf_packed<source, VECTOR> items;

typedef tf_reading<OP, FROM> reading;
#ifdef SQUARES
typedef double part;
enum { PACKED = 0 };
#else
typedef reading::part part;
enum { PACKED = reading::PACKED && !(ELEMENTS & TF_SKIP_NANS) && VECTOR > 1 };
#endif
/* Results of a thread: of each place, or of all. */
enum { RESULTS = PACKED && !ACROSS && reading::TOGETHER ? 1 : VECTOR };

#ifdef TO
typedef tf_word<TO> result;
#else
typedef OP::value result;
#endif

/* So many times four vectors are under way together: what there are registers for. What is
 * added in which order does not depend on it. */
#if defined SIMT || (defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900)
enum { READ_AHEAD = ACROSS && PACKED && sizeof(source) == 1 ? 2 : 1 };
#else
enum { READ_AHEAD = 1 };
#endif

/* From an output's first element on: of one output, or ACROSS of a few neighbors. */
struct elements {
    const tf_walk<2> &walk; /* the array and the mask, along the reduced axes */
    const source *in;
    const uint8_t *mask; /* NULL: all count */
    const double *means; /* NULL: zeros */
    int outputs;         /* from the first one on */

    __forceinline__ part part_of(source item, int place, int which) const
    {
#ifdef SQUARES
        const uint32_t bits = tf_single<FROM, true>(item);
        if ((ELEMENTS & TF_SKIP_NANS) && tf_single_is_nan(bits)) {
            return 0.0;
        }
        const double mean = means ? means[ACROSS ? place : 0] : 0;
        const double deviation = tf_float_of(bits) - mean;
        return deviation * deviation;
#else
        return reading::part_of(item, which, ELEMENTS);
#endif
    }

    /* Elements that there are of a vector. */
    __forceinline__ int length(int64_t index, int64_t end) const
    {
        const int64_t left = index < end ? end - index : 0;
        if (ACROSS) {
            return left ? outputs : 0;
        }
        return left < VECTOR ? (int)left : VECTOR;
    }

    /* READ_AHEAD times four vectors, which all are under way before they are added. */
    __forceinline__ void add(OP::value (&results)[RESULTS], int64_t first, int step,
                             int64_t end) const
    {
        items rows[READ_AHEAD][4];
        const bool all = VECTOR > 1 && whole<READ_AHEAD>(rows, first, step, end);
#pragma unroll
        for (int group = 0; group < READ_AHEAD; group++, first += 4 * step) {
            bool is_whole = all;
            if (READ_AHEAD > 1 && !all) { /* not so many are left */
                is_whole = whole<1>(&rows[group], first, step, end);
            }
            if (!is_whole || !add_whole(results, rows[group], first, step)) {
                add_some(results, first, step, end);
            }
        }
    }

    __forceinline__ void add_some(OP::value (&results)[RESULTS], int64_t first, int step,
                                  int64_t end) const
    {
        const source *at[4];
        int lengths[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int64_t index = first + (int64_t)k * step;
            lengths[k] = length(index, end);
            if (VECTOR == 1 && lengths[k]) {
                const tf_offsets<2> offsets = tf_offsets_at(walk, index);
                at[k] = &tf_at<source>(in, offsets.of[0]);
                lengths[k] = !mask || tf_at<uint8_t>(mask, offsets.of[1]);
            } else {
                at[k] = &tf_at<source>(in, index * walk.strides[0][0]);
            }
        }
        four(results, first, step, [&](int k, int i) {
            return i < lengths[k] ? part_of(at[k][i], i, k) : OP::no_part<FROM>();
        });
    }

    /* So many times four vectors that are aligned and whole; false if they are not. */
    template <int GROUPS>
    __forceinline__ bool whole(items (*rows)[4], int64_t first, int step, int64_t end) const
    {
        const int64_t hop = step * walk.strides[0][0];
        const source *at = &tf_at<source>(in, first * walk.strides[0][0]);
        const uintptr_t all = (uintptr_t)at | (uintptr_t)hop;
        const bool aligned = all % (VECTOR * sizeof(source)) == 0;
        const int64_t last = first + (4 * GROUPS - 1) * step + (ACROSS ? 0 : VECTOR - 1);
        if (!aligned || last >= end || (ACROSS && outputs < VECTOR)) {
            return false;
        }
#pragma unroll
        for (int k = 0; k < 4 * GROUPS; k++) {
            rows[k / 4][k % 4].load(&tf_at<source>(at, k * hop));
        }
        return true;
    }

    /* False if they have to be read one by one. */
    __forceinline__ bool add_whole(OP::value (&results)[RESULTS], const items (&rows)[4],
                                   int64_t first, int step) const
    {
        if (PACKED) {
            return reading::add(results, rows);
        }
        four(results, first, step,
             [&](int k, int i) { return part_of(rows[k].item(i), i, k); });
        return true;
    }

    /* `element` makes a part of a vector's place. */
    template <class Element>
    __forceinline__ void four(OP::value (&results)[RESULTS], int64_t first, int step,
                              Element element) const
    {
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            const part all = OP::joined(OP::joined(element(0, i), element(1, i)),
                                        OP::joined(element(2, i), element(3, i)));
            OP::value &result = results[i % RESULTS];
            result = OP::after(result, OP::whole(all, first + (ACROSS ? 0 : i), step));
        }
    }
};

/* Blocks that a multiprocessor has registers for. */
constexpr int tf_blocks(void)
{
#ifdef SQUARES
    return 2;
#else
    if (RESULTS == 1) {
        return VECTOR > 1 ? 4 : 3;
    }
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900 /* what is packed takes more there */
    const bool few = !PACKED && RESULTS * sizeof(OP::value) <= 64;
#else
    const bool few = RESULTS * sizeof(OP::value) <= 64;
#endif
    return few ? 3 : 2;
#endif
}

/* Partial results, [chunks][outputs]. Told nothing, the assembler saves registers for
 * more blocks on a multiprocessor, and spills. */
extern "C" __global__ void __launch_bounds__(256, tf_blocks())
    reduce(const plan p, const tf_walk<2> kept, const tf_walk<2> reduced,
           result *results, const source *in, const uint8_t *mask, const double *means,
           const ending how, const int64_t *divisors)
{
    tf_reduce<VECTOR, RESULTS, ACROSS, READ_AHEAD>(
        p,
        [&](int64_t output) {
            const tf_offsets<2> at = tf_offsets_at(kept, output);
            const int64_t left = p.outputs - output;
            return elements{reduced, &tf_at<source>(in, at.of[0]),
                            mask ? &tf_at<uint8_t>(mask, at.of[1]) : mask,
                            means ? means + output : means,
                            left < VECTOR ? (int)left : VECTOR};
        },
        [&](int64_t output, OP::value x) {
#ifdef TO
            results[output] = ended<OP, TO>(reading::finished(x), how,
                                            divisors ? divisors[output] : how.divisor);
#else
            results[blockIdx.y * p.outputs + output] = reading::finished(x);
#endif
        });
}
