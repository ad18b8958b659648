/* Many elements to one partial result, for many outputs, by blocks.
 *
 * OP is a type of partials.h. Lane l of an output's lanes takes a vector of consecutive
 * elements, then those as many vectors further on as there are lanes. Lanes meet in a
 * tree. So the order of a sum follows from the number of lanes and of chunks, which the
 * host derives from shapes and strides alone; the grid does not matter.
 */
#ifndef TF32DTYPE_CUDA_UFUNCS_TREE_H
#define TF32DTYPE_CUDA_UFUNCS_TREE_H

#include "cuda/ufuncs/partials.h"

enum { LOG_THREADS = 8, THREADS = 1 << LOG_THREADS };

/* As in tf32dtype/cuda/_functions/reductions.py. */
struct plan {
    int64_t outputs;
    int64_t count;  /* elements reduced to an output */
    int64_t chunk;  /* of these, a block's; a grid row a chunk */
    int32_t log;    /* 2^log threads, its lanes, share an output */
    int32_t across; /* neighbouring threads have neighbouring outputs, not elements */
};

/* `part` makes a partial result of a vector of elements from index `first` on, of an
 * output; `store` keeps an output's. */
template <int vector, class Part, class Store>
__forceinline__ void tf_reduce(const plan &p, Part part, Store store)
{
    __shared__ OP::value parts[THREADS];
    const int thread = (int)threadIdx.x;
    const int lanes = 1 << p.log, columns = THREADS >> p.log;
    const int log = p.across ? LOG_THREADS - p.log : p.log;
    const int high = thread >> log, low = thread & ((1 << log) - 1);
    const int lane = p.across ? high : low, column = p.across ? low : high;
    const int stride = p.across ? columns : 1;
    const int64_t start = (int64_t)blockIdx.y * p.chunk;
    const int64_t end = start + p.chunk < p.count ? start + p.chunk : p.count;

#pragma unroll 1
    for (int64_t group = blockIdx.x; group * columns < p.outputs; group += gridDim.x) {
        const int64_t output = group * columns + column;
        OP::value result = OP::none();
        if (output < p.outputs) {
            const auto elements = part(output);
#pragma unroll 1
            for (int64_t first = start + lane * vector; first < end;
                 first += lanes * vector) {
                result = OP::both(result, elements(first, end));
            }
        }
        parts[thread] = result;
        __syncthreads();
#pragma unroll 1
        for (int width = lanes / 2; width > 0; width /= 2) {
            if (lane < width) {
                parts[thread] =
                    OP::both(parts[thread], parts[thread + width * stride]);
            }
            __syncthreads();
        }
        if (lane == 0 && output < p.outputs) {
            store(output, parts[thread]);
        }
        __syncthreads();
    }
}

#endif
