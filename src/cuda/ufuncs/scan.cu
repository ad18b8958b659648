/* Running sums, products and extremes: every prefix of a line, rounded once.
 *
 *   OP    a type of partials.h
 *   FROM  the elements' kind
 *   TO    the results' kind
 *
 * A block takes a line, tile by tile. The order of a sum depends only on the length.
 */
#include "cuda/ufuncs/partials.h"
#include "cuda/formats/results.h"
#include "cuda/common/strides.h"

enum { THREADS = 256, EACH = 4, TILE = THREADS * EACH };

extern "C" __global__ void __launch_bounds__(256)
    scan(const tf_walk<2> lines, tf_word<TO> *out, const tf_word<FROM> *in,
         int64_t count, int64_t out_stride, int64_t in_stride)
{
    __shared__ OP::value totals[2][THREADS];
    const int thread = (int)threadIdx.x;
#pragma unroll 1
    for (int64_t line = blockIdx.x; line < lines.size; line += gridDim.x) {
        const tf_offsets<2> at = tf_offsets_at(lines, line);
        OP::value before = OP::none();
#pragma unroll 1
        for (int64_t tile = 0; tile < count; tile += TILE) {
            /* 1. Combine each thread's own elements. */
            const int64_t first = tile + thread * EACH;
            OP::value own[EACH];
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                own[i] = OP::none();
                if (first + i < count) {
                    const tf_word<FROM> item = tf_at<tf_word<FROM>>(
                        in, at.of[1] + (first + i) * in_stride);
                    own[i] = OP::element(tf_single<FROM, true>(item), first + i, 0);
                }
                own[i] = i ? OP::both(own[i - 1], own[i]) : own[i];
            }
            /* 2. Combine the totals of all threads up to each (Kogge and Stone, 1973). */
            int now = 0;
            totals[now][thread] = own[EACH - 1];
            __syncthreads(); /* mutant: the first barrier of a scan */
#pragma unroll 1
            for (int step = 1; step < THREADS; step *= 2) {
                const OP::value mine = totals[now][thread];
                totals[1 - now][thread] =
                    thread >= step ? OP::both(totals[now][thread - step], mine) : mine;
                now = 1 - now;
                __syncthreads(); /* mutant: the second barrier of a scan */
            }
            /* 3. Combine both with the total before the tile. */
            const OP::value lower = thread ? totals[now][thread - 1] : OP::none();
            const OP::value start = OP::both(before, lower);
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                if (first + i < count) {
                    tf_at<tf_word<TO>>(out, at.of[0] + (first + i) * out_stride) =
                        tf_result<TO>(OP::number<TO>(OP::both(start, own[i])));
                }
            }
            before = OP::both(before, totals[now][THREADS - 1]);
            __syncthreads(); /* mutant: the third barrier of a scan */
        }
    }
}
