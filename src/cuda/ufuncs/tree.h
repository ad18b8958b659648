/* Reduces many elements to one partial result, for many outputs, by blocks of threads.
 *
 * OP is a type of partials.h. A thread reads vectors of consecutive numbers, four vectors
 * together so that their loads overlap, and has a result for each place in the vector.
 * Along, a vector has elements of one output, and the results of its places are combined
 * at the end. Across, each place is another output. Lane l of an output's lanes takes
 * vector l, and then every vector as many further on as there are lanes. The results of
 * lanes are combined in a tree; across, a thread first adds some of them. So the order of
 * a sum depends only on the numbers of lanes and of chunks, which the host derives from
 * shapes and strides. The grid has no effect.
 */
#ifndef TF32DTYPE_CUDA_UFUNCS_TREE_H
#define TF32DTYPE_CUDA_UFUNCS_TREE_H

#include "cuda/ufuncs/partials.h"

enum { LOG_THREADS = 8, THREADS = 1 << LOG_THREADS };

/* As in tf32dtype/cuda/_functions/reductions.py. */
struct plan {
    int64_t outputs;
    int64_t count;  /* elements reduced to an output */
    int64_t chunk;  /* elements per block of threads; a grid row has a chunk */
    int32_t log;    /* 2^log threads, its lanes, share an output */
    int32_t padding;
};
static_assert(sizeof(plan) == 32 && TF_OFFSETOF(plan, log) == 24, "as in reductions.py");

/* Returns x of the lane of a warp that is `distance` lanes further on. */
template <class T> __forceinline__ T tf_lane_after(T x, int distance)
{
    uint32_t words[sizeof(T) / 4];
    memcpy(words, &x, sizeof(T));
#pragma unroll
    for (int i = 0; i < (int)sizeof(T) / 4; i++) {
        words[i] = __shfl_down_sync(~0u, words[i], (unsigned)distance);
    }
    memcpy(&x, words, sizeof(T));
    return x;
}

/* Combines the results of lanes that are neighboring threads; the first lane gets the
 * result of all. Warps combine theirs in shared memory, then lanes of a warp by
 * shuffles. */
__forceinline__ OP::value tf_meet(OP::value result, int log)
{
    __shared__ OP::value parts[THREADS];
    const int thread = (int)threadIdx.x;
    if (log > 5) {
        parts[thread] = result;
        __syncthreads();
#pragma unroll 1
        for (int width = 1 << log; width > 64; width /= 2) {
            if ((thread & ((1 << log) - 1)) < width / 2) {
                result = OP::both(result, parts[thread + width / 2]);
                parts[thread] = result;
            }
            __syncthreads();
        }
        if ((thread & ((1 << log) - 1)) < 32) {
            result = OP::both(result, parts[thread + 32]);
        }
    }
#pragma unroll 1
    for (int distance = 1 << (log < 5 ? log : 5); distance /= 2;) {
        result = OP::both(result, tf_lane_after(result, distance));
    }
    return result;
}

/* Reduces outputs by blocks of threads. `open` returns a view of outputs from a first one
 * on. The view's `add` takes `ahead` times four vectors, the first at an index, each next
 * one `step` indices further on. `store` keeps an output's result. `kept` is the number of
 * results per thread: one per place or, along, if the order does not matter, one for all.
 * Across, neighboring threads have neighboring outputs; along, neighboring elements. */
template <int vector, int kept, bool across, int ahead, class Open, class Store>
__forceinline__ void tf_reduce(const plan &p, Open open, Store store)
{
    constexpr int places = across ? vector : 1, length = across ? 1 : vector;
    const int thread = (int)threadIdx.x;
    const int lanes = 1 << p.log, columns = THREADS >> p.log;
    const int lane = across ? thread / columns : thread & (lanes - 1);
    const int column = across ? thread & (columns - 1) : thread >> p.log;
    const int step = lanes * length;
    const int64_t start = (int64_t)blockIdx.y * p.chunk;
    const int64_t end = start + p.chunk < p.count ? start + p.chunk : p.count;

#pragma unroll 1
    for (uint32_t block = blockIdx.x;; block += gridDim.x) {
        const int64_t group = (int64_t)block * columns * places;
        if (group >= p.outputs) {
            break;
        }
        const int64_t output = group + column * places;
        OP::value results[kept];
#pragma unroll
        for (int i = 0; i < kept; i++) {
            results[i] = OP::none();
        }
        if (output < p.outputs) {
            const auto elements = open(output);
#pragma unroll 1
            for (int64_t first = start + lane * length; first < end;
                 first += 4 * ahead * step) {
                elements.add(results, first, step, end);
            }
        }
        if constexpr (across) {
            /* The width puts neighboring columns of two places in different banks. */
            __shared__ OP::value parts[places][THREADS + 8];
            static_assert(sizeof parts <= 48 << 10 && (places & (places - 1)) == 0, "");
#pragma unroll
            for (int i = 0; i < places; i++) {
                parts[i][thread] = results[i];
            }
            __syncthreads();
            /* `share` threads combine an output, each as many of its lanes. Computed only
             * now, these numbers take no registers while elements are read. */
            const int log_columns = LOG_THREADS - computed_here(p.log);
            const int outputs = places << log_columns;
            const int share = outputs < THREADS ? THREADS / outputs : 1;
            const int each = (THREADS >> log_columns) / share, own = (1 << log_columns) - 1;
            const int64_t first_output = (int64_t)computed_here((int)block) * outputs;
            const auto keep = [&](int at, OP::value x) {
                const int place = (at >> log_columns) % places;
                const int64_t to = first_output + (at & own) * places + place;
                if (to < p.outputs) {
                    store(to, x);
                }
            };
            OP::value met;
#pragma unroll 1
            for (int at = thread; at < outputs * share; at += THREADS) {
                const int place = (at >> log_columns) % places, first = at / outputs * each;
                const OP::value *x = &parts[place][(first << log_columns) + (at & own)];
                met = *x;
#pragma unroll 1
                for (int i = 1; i < each; i++) {
                    x += 1 << log_columns;
                    met = OP::both(met, *x);
                }
                if (share == 1) {
                    keep(at, met);
                }
            }
            if (share > 1) { /* combine the threads' results for an output in a tree */
                __syncthreads();
                parts[0][thread] = met;
                __syncthreads();
#pragma unroll 1
                for (int width = THREADS / 2; width >= outputs; width /= 2) {
                    if (thread < width) {
                        met = OP::both(met, parts[0][thread + width]);
                        parts[0][thread] = met;
                    }
                    __syncthreads();
                }
                if (thread < outputs) {
                    keep(thread, met);
                }
            }
        } else {
#pragma unroll
            for (int i = kept - 1; i > 0; i--) {
                results[i / 2] = OP::both(results[i / 2], results[i]);
            }
            const OP::value result = tf_meet(results[0], p.log);
            if (lane == 0 && output < p.outputs) {
                store(output, result);
            }
        }
        if (across || p.log > 5) {
            __syncthreads();
        }
    }
}

#endif
