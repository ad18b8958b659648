/* Tiles of A and B for products: from memory of any strides, through registers, to shared
 * memory, where they are float32, one k after the other.
 *
 * A line is a row of A or a column of B. Options of the compilation give the formats of
 * the operands: -DA_FORMAT=tf_bfloat16 -DB_FORMAT=tf_float16.
 */
#ifndef TF32DTYPE_CUDA_MATMUL_TILE_LOADER_H
#define TF32DTYPE_CUDA_MATMUL_TILE_LOADER_H

#include "cuda/common/common.h"
#include "formats/fast_codec.h"

/* float32 as a format, whose numbers a product takes unchanged. */
static const struct tf_format tf_single = {
    "float32", 4, 32, 0, 8, 23, 1, 127, TF_IEEE, 'f'};

/* A product of stacks of matrices: (count, m, k) times (count, k, n). Strides are in
 * bytes: from matrix to matrix, line to line (in C: row to row), and along k (in C:
 * column to column). tf32dtype/cuda/_matmul/tile_options.py has the same struct. */
struct tf_task {
    int64_t a[3], b[3], c[3];
    int64_t part; /* bytes from the sums of one part of k to those of the next */
    int32_t m, n, k, count;
    int32_t a_across, b_across; /* 1: lines are closer in memory than k */
    int32_t parts;     /* of k, which blocks of threads share */
    int32_t rounds;    /* 1: C is in its format; 0: in float32 */
    int32_t continues; /* 1: sums begin with the numbers in C */
    int32_t exactly;   /* 1: everything is computed by integers */
};
static_assert(sizeof(tf_task) == 120 && TF_OFFSETOF(tf_task, m) == 80 &&
                  TF_OFFSETOF(tf_task, exactly) == 116,
              "as in tile_options.py");

/* Returns the number in an item. NaN may keep its payload. */
inline float tf_operand_number(struct tf_format f, uint32_t item)
{
    if (f.bias == 127 && f.specials == TF_IEEE) {
        return __uint_as_float(item >> f.shift << (32 - f.width));
    }
    if (f.bias == 127 || f.specials == TF_FNUZ || f.specials == TF_EXPONENT_ONLY) {
        return __uint_as_float(tf_single_of_item(f, item));
    }
    /* In float32's fields, the bits are the number times a power of two, which the
     * product removes. Subnormal numbers, too, which a GPU multiplies at full speed. */
    const int top = (int)(item << (32 - f.width - f.shift));
    const uint32_t fields = UINT32_C(1) << 31 | tf_magnitude_mask(f) << tf_cut(f);
    const uint32_t small = (uint32_t)(top >> (8 - f.exponent_bits)) & fields;
    const float x = __fmul_rn(__uint_as_float(small),
                              __uint_as_float((uint32_t)(254 - f.bias) << 23));
    const uint32_t special =
        f.specials == TF_FN ? tf_magnitude_mask(f) : tf_infinity_magnitude(f);
    const bool is_special =
        f.specials != TF_FINITE &&
        fabsf(x) >= __uint_as_float((special << tf_cut(f)) + tf_rebias(f));
    const uint32_t ones = f.specials == TF_FN ? TF_QUIET_NAN_BITS : TF_INF_BITS;
    return is_special ? __uint_as_float(__float_as_uint(x) | ones) : x;
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

inline void tf_load_four(float x[4], const float *p)
{
    const uint4 four = *(const uint4 *)p;
    x[0] = __uint_as_float(four.x);
    x[1] = __uint_as_float(four.y);
    x[2] = __uint_as_float(four.z);
    x[3] = __uint_as_float(four.w);
}

inline void tf_store_four(float *p, const float x[4])
{
    *(uint4 *)p = {__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]),
                   __float_as_uint(x[3])};
}

/* Loads four items into as many words as an item has bytes. */
inline void tf_load_four_items(struct tf_format f, uint32_t words[4], const char *p)
{
    if (f.itemsize == 1) {
        words[0] = *(const uint32_t *)p;
    } else if (f.itemsize == 2) {
        const uint2 two = *(const uint2 *)p;
        words[0] = two.x;
        words[1] = two.y;
    } else {
        const uint4 four = *(const uint4 *)p;
        words[0] = four.x;
        words[1] = four.y;
        words[2] = four.z;
        words[3] = four.w;
    }
}

/* Padding per k of LINES numbers, so that consecutive k begin in different banks, and
 * four lines can be read at once. */
enum { TF_PADDING = 4 };

/* The items of a tile of LINES lines and DEPTH k that one of THREADS threads carries. */
template <int LINES, int DEPTH, int THREADS> struct tf_carrier {
    static const int LD = LINES + TF_PADDING;
    static const int COUNT = tf_ceil_div(LINES * DEPTH, THREADS);

    uint32_t items[COUNT];
    const char *from;
    int64_t step, advance; /* bytes from item to item, and from tile to tile */
    int line, k, line_step, k_step;
    int lines;             /* lines of the matrix from the tile's first one on */
    bool is_idle;

    /* Neighboring threads read items that are close in memory. */
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

    /* Loads the next tile, which has `depth` k. */
    inline void fetch(struct tf_format f, int depth)
    {
        if (is_whole(depth)) {
            fetch_some<true>(f, depth);
        } else {
            fetch_some<false>(f, depth);
        }
    }

    /* Calls put(k, line, number) for each item; from `depth` on, it is `nothing`. */
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

    /* Stores the items as float32 in shared memory. */
    inline void put(struct tf_format f, float *tile, int depth, float nothing) const
    {
        put_each(f, depth, nothing,
                 [&](int at, int of, float x) { tile[at * LD + of] = x; });
    }
};

/* As tf_carrier, for a tile that is whole and whose groups of four neighbors, across
 * lines or along k, are contiguous and aligned in memory. One load has a group. */
template <int LINES, int DEPTH, int THREADS> struct tf_dense_carrier {
    static const int LD = LINES + TF_PADDING;
    static const int GROUPS = LINES * DEPTH / (4 * THREADS); /* per thread */
    static const int WIDE = LINES / 4, DEEP = DEPTH / 4;     /* groups, across or along */
    static_assert(GROUPS * 4 * THREADS == LINES * DEPTH && THREADS % WIDE == 0, "");

    uint32_t words[GROUPS][4]; /* an item's bytes are the words used */
    const char *from;
    int64_t step, advance; /* bytes from group to group, and from tile to tile */
    int place, far;        /* offset in shared memory, and from group to group */
    bool across;

    static inline bool fits(struct tf_format f, const char *data,
                            const int64_t strides[3], bool across, int first, int all)
    {
        const int64_t unit = across ? strides[1] : strides[2];
        const int64_t other = across ? strides[2] : strides[1];
        return first + LINES <= all && unit == f.itemsize &&
               (int64_t)((uintptr_t)data | (uintptr_t)other) % (4 * f.itemsize) == 0;
    }

    inline void begin(const char *data, const int64_t strides[3], bool lies_across,
                      int first, int)
    {
        const int i = (int)threadIdx.x;
        across = lies_across;
        const int line = across ? i % WIDE * 4 : i / DEEP;
        const int k = across ? i / WIDE : i % DEEP * 4;
        place = k * LD + line;
        far = across ? THREADS / WIDE * LD : THREADS / DEEP;
        from = data + (int64_t)(first + line) * strides[1] + (int64_t)k * strides[2];
        step = across ? THREADS / WIDE * strides[2] : THREADS / DEEP * strides[1];
        advance = DEPTH * strides[2];
    }

    inline void fetch(struct tf_format f, int)
    {
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            tf_load_four_items(f, words[i], from + i * step);
        }
        from += advance;
    }

    inline void put(struct tf_format f, float *tile, int, float) const
    {
        const int bits = f.itemsize * 8;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            float x[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int low = j * bits % 32;
                const uint32_t item = words[i][j * bits / 32] << (32 - bits - low);
                x[j] = tf_operand_number(f, item >> (32 - bits));
            }
            float *to = tile + place + i * far;
            if (across) {
                tf_store_four(to, x);
            } else {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    to[j * LD] = x[j];
                }
            }
        }
    }
};

/* Returns the line of a tile that is a thread's i-th of N. The lines are groups of four
 * or, unless N is a multiple of 4, consecutive. */
template <int LINES, int N> inline int tf_line_of(int thread, int i)
{
    return N % 4 ? thread * N + i : i / 4 * (LINES / (N / 4)) + thread * 4 + i % 4;
}

/* The position of a thread in a tile, with ACROSS threads per row. A warp is 4 high and 8
 * wide. Its lanes are ordered so that half of it reads at most 128 bytes of either
 * operand, each address by neighbors or next but one. Such loads of 16 bytes take two
 * cycles instead of four. */
struct tf_seat {
    int y, x;
};

template <int ACROSS> inline struct tf_seat tf_seat_of(int thread)
{
    if constexpr (ACROSS % 8) {
        return {thread / ACROSS, thread % ACROSS};
    } else {
        const int warp = thread / 32, lane = thread % 32;
        return {warp / (ACROSS / 8) * 4 + lane / 16 * 2 + lane % 2,
                warp % (ACROSS / 8) * 8 + lane / 2 % 8};
    }
}

/* Loads a thread's N numbers of one k, the first of which is at `first`. */
template <int LINES, int N> inline void tf_load_lines(float x[N], const float *first)
{
#pragma unroll
    for (int i = 0; i < N; i += N % 4 ? 1 : 4) {
        const float *p = first + tf_line_of<LINES, N>(0, i);
        if constexpr (N % 4) {
            x[i] = *p;
        } else {
            tf_load_four(x + i, p);
        }
    }
}

/* Stores a thread's N numbers of one k, the first of which goes to `first`. */
template <int LINES, int N> inline void tf_store_lines(float *first, const float x[N])
{
#pragma unroll
    for (int i = 0; i < N; i += N % 4 ? 1 : 4) {
        float *p = first + tf_line_of<LINES, N>(0, i);
        if constexpr (N % 4) {
            *p = x[i];
        } else {
            tf_store_four(p, x + i);
        }
    }
}

#endif
