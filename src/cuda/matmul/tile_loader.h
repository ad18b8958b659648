/* Tiles of A and B for products: from memory of any strides, by way of registers, to
 * shared memory, where they lie k after k, as float32.
 *
 * A line is a row of A or a column of B. The compilation says the formats of the
 * operands: -DA_FORMAT=tf_bfloat16 -DB_FORMAT=tf_float16.
 */
#ifndef TF32DTYPE_CUDA_MATMUL_TILE_LOADER_H
#define TF32DTYPE_CUDA_MATMUL_TILE_LOADER_H

#include "cuda/common/common.h"
#include "formats/fast_codec.h"

/* float32, of which a product takes all, as a format. */
static const struct tf_format tf_single = {
    "float32", 4, 32, 0, 8, 23, 1, 127, TF_IEEE, 'f'};

/* A product of stacks of matrices: (count, m, k) times (count, k, n). Strides are in
 * bytes: from matrix to matrix, line to line (of C, row to row), and along k (of C,
 * column to column). tf32dtype/cuda/_matmul/tile_options.py has the same. */
struct tf_task {
    int64_t a[3], b[3], c[3];
    int64_t part; /* bytes from one part of k's sums to those of the next one */
    int32_t m, n, k, count;
    int32_t a_across, b_across; /* lines lie closer together than what is in them */
    int32_t parts;     /* of k, which blocks of threads share */
    int32_t rounds;    /* whether C has its format, else it is float32 */
    int32_t continues; /* whether sums begin with what is in C */
    int32_t exactly;   /* whether all is computed by integers */
};
static_assert(sizeof(tf_task) == 120 && TF_OFFSETOF(tf_task, m) == 80 &&
                  TF_OFFSETOF(tf_task, exactly) == 116,
              "as in tile_options.py");

/* The number that an item is. A NaN may keep its payload. */
inline float tf_operand_number(struct tf_format f, uint32_t item)
{
    const bool is_upper_bits = f.bias == 127 && f.specials == TF_IEEE;
    return __uint_as_float(is_upper_bits ? item >> f.shift << (32 - f.width)
                                         : tf_single_of_item(f, item));
}

inline uint32_t tf_load_item(struct tf_format f, const char *p)
{
    return f.itemsize == 1   ? *(const uint8_t *)p
           : f.itemsize == 2 ? *(const uint16_t *)p
                             : *(const uint32_t *)p;
}

inline void tf_store_item(struct tf_format f, char *p, uint32_t item)
{
    if (f.itemsize == 1) {
        *(uint8_t *)p = (uint8_t)item;
    } else if (f.itemsize == 2) {
        *(uint16_t *)p = (uint16_t)item;
    } else {
        *(uint32_t *)p = item;
    }
}

/* Four numbers more than there are lines: so that rows of banks differ, and that four
 * lines can be read at once. */
enum { TF_PADDING = 4 };

/* What a thread carries of a tile of LINES lines, DEPTH deep, for THREADS threads. */
template <int LINES, int DEPTH, int THREADS> struct tf_carrier {
    static const int LD = LINES + TF_PADDING;
    static const int COUNT = tf_ceil_div(LINES * DEPTH, THREADS);

    uint32_t items[COUNT];
    const char *from;
    int64_t step, advance; /* bytes from item to item, and from tile to tile */
    int line, k, line_step, k_step;
    int lines;             /* there are of them from the tile's first one on */
    bool is_idle;

    /* Neighbouring threads read what is close together. */
    inline void begin(const char *data, const int64_t strides[3], bool across,
                      int first, int all)
    {
        const int i = (int)threadIdx.x;
        line = across ? i % LINES : i / DEPTH;
        k = across ? i / LINES : i % DEPTH;
        line_step = across ? 0 : THREADS / DEPTH;
        k_step = across ? THREADS / LINES : 0;
        is_idle = COUNT == 1 && i >= LINES * DEPTH;
        lines = all - first;
        from = data + (int64_t)(first + line) * strides[1] + (int64_t)k * strides[2];
        step = line_step * strides[1] + k_step * strides[2];
        advance = DEPTH * strides[2];
    }

    inline bool is_whole(int depth) const
    {
        return lines >= LINES && depth >= DEPTH && LINES * DEPTH >= THREADS;
    }

    template <bool WHOLE> inline void fetch_some(struct tf_format f, int depth)
    {
        const char *p = from;
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const bool there = WHOLE || (line + i * line_step < lines &&
                                         k + i * k_step < depth && !is_idle);
            items[i] = there ? tf_load_item(f, p) : 0;
            p += step;
        }
        from += advance;
    }

    /* The next tile, of which `depth` k are there. */
    inline void fetch(struct tf_format f, int depth)
    {
        if (is_whole(depth)) {
            fetch_some<true>(f, depth);
        } else {
            fetch_some<false>(f, depth);
        }
    }

    /* That, item by item, to `put(k, line, number)`; beyond its k there is `nothing`. */
    template <class Put>
    inline void put_each(struct tf_format f, int depth, float nothing, Put put) const
    {
        if (COUNT == 1 && is_idle) {
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const float x = tf_operand_number(f, items[i]);
            const int at = k + i * k_step;
            put(at, line + i * line_step, at < depth ? x : nothing);
        }
    }

    /* That into shared memory. */
    inline void put(struct tf_format f, float *tile, int depth, float nothing) const
    {
        put_each(f, depth, nothing,
                 [&](int at, int of, float x) { tile[at * LD + of] = x; });
    }
};

/* Which line of a tile a thread's i-th of N is: groups of four, or one alone. */
template <int LINES, int N> inline int tf_line_of(int thread, int i)
{
    return N % 4 ? thread * N + i : i / 4 * (LINES / (N / 4)) + thread * 4 + i % 4;
}

/* A thread's N numbers of one k; the first lies at `first`. */
template <int LINES, int N> inline void tf_load_lines(float x[N], const float *first)
{
#pragma unroll
    for (int i = 0; i < N; i += N % 4 ? 1 : 4) {
        const float *p = first + tf_line_of<LINES, N>(0, i);
        if (N % 4) {
            x[i] = *p;
            continue;
        }
        const uint4 four = *(const uint4 *)p;
        x[i] = __uint_as_float(four.x);
        x[(i + 1) % N] = __uint_as_float(four.y);
        x[(i + 2) % N] = __uint_as_float(four.z);
        x[(i + 3) % N] = __uint_as_float(four.w);
    }
}

#endif
