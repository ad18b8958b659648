/* Reductions, the first of two passes, which reduces chunks of elements to partial
 * results. With one chunk, it is the only pass.
 *
 *   OP        a type of partials.h
 *   FROM      the elements' kind
 *   ELEMENTS  treatment of elements, of enum tf_elements
 *   VECTOR    neighbors that a thread reads at once; 1: any strides, and a mask
 *   ACROSS    1: the neighbors belong to neighboring outputs
 *   SQUARES   if defined: sums of squares of differences from means (without means, of the
 *             elements), in float64
 *   TO        in the only pass: the results' kind
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
/* Results per thread: one per place in the vector, or one for all. */
enum { RESULTS = PACKED && !ACROSS && reading::TOGETHER ? 1 : VECTOR };

#ifdef TO
typedef tf_word<TO> result;
#else
typedef OP::value result;
#endif

/* Groups of four vectors that are loaded at once, as registers allow. The order of
 * additions does not depend on it. */
#if defined SIMT || (defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 900)
enum { READ_AHEAD = ACROSS && PACKED && sizeof(source) == 1 ? 2 : 1 };
#else
enum { READ_AHEAD = 1 };
#endif

/* The elements of an output, or ACROSS of a few neighboring outputs, from the first on. */
struct elements {
    const tf_walk<2> &walk; /* the array and the mask, along the reduced axes */
    const source *in;
    const uint8_t *mask; /* NULL: all elements count */
    const double *means; /* NULL: zeros */
    int outputs;         /* number of outputs from the first one on */

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

    /* Returns how many elements of a vector exist. */
    __forceinline__ int length(int64_t index, int64_t end) const
    {
        const int64_t left = index < end ? end - index : 0;
        if (ACROSS) {
            return left ? outputs : 0;
        }
        return left < VECTOR ? (int)left : VECTOR;
    }

    /* Adds READ_AHEAD times four vectors, which are all loaded before they are added. */
    __forceinline__ void add(OP::value (&results)[RESULTS], int64_t first, int step,
                             int64_t end) const
    {
        items rows[READ_AHEAD][4];
        const bool all = VECTOR > 1 && whole<READ_AHEAD>(rows, first, step, end);
#pragma unroll
        for (int group = 0; group < READ_AHEAD; group++, first += 4 * step) {
            bool is_whole = all;
            if (READ_AHEAD > 1 && !all) { /* fewer are left */
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

    /* Loads GROUPS times four vectors if all are aligned and whole; else returns false. */
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

    /* Adds four vectors; returns false if they must be read one by one. */
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

    /* Adds four vectors, of which element(k, i) returns place i of vector k. */
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

/* Returns the blocks that a multiprocessor has registers for. */
constexpr int tf_blocks(void)
{
#ifdef SQUARES
    return 2;
#else
    if (RESULTS == 1) {
        return VECTOR > 1 ? 4 : 3;
    }
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ < 900 /* packed reading takes more there */
    const bool few = !PACKED && RESULTS * sizeof(OP::value) <= 64;
#else
    const bool few = RESULTS * sizeof(OP::value) <= 64;
#endif
    return few ? 3 : 2;
#endif
}

/* Writes partial results [chunks][outputs]. Without the bound of tf_blocks(), the
 * assembler saves registers for more blocks per multiprocessor, and spills. */
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
