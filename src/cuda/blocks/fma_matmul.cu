/* C = A B where A, B or both consist of blocks with scales, in the contract's order. For
 * each block of k, and each existing term of hi hi, hi lo, lo hi, lo lo, a chain of fused
 * multiply-adds of the elements' values begins at +0. Then
 *
 *     c = fma(RN32(scale of A's block * scale of B's), chain, c)
 *
 * The options A_HI, A_LO, B_HI and B_LO of the compilation are indices in tf_elements, or
 * -1. An A_HI of -1 is a matrix of float32, whose scale is 1. An A_LO of -1 is blocks
 * without residuals. Codes are decoded on their way to shared memory, DEPTH of k at a
 * time. Each term fetches its tiles again.
 */
#include "blocks/block_formats.h"
#include "cuda/matmul/tile_loader.h"

enum { DEPTH = 16, THREADS = 256 };

/* The layout of an operand. Strides are in bytes, from matrix to matrix, from line to
 * line and, of float32, along k. Scales are those of blocks/scales.cu, whose strides are
 * numbers, from matrix to matrix and from level to level.
 * tf32dtype/cuda/blocks/products.py has the same struct. */
struct tf_side {
    int64_t hi[3], lo[2], scales;
    int32_t pitch, across; /* see tf_carrier */
};

struct tf_block_task {
    struct tf_side a, b;
    int64_t c[3]; /* from matrix to matrix, row to row, column to column */
    int32_t m, n, k;
    int32_t block; /* a power of two */
    int32_t terms, levels; /* two bits per term from the lowest: lo of A, lo of B */
};
static_assert(sizeof(tf_side) == 56 && TF_OFFSETOF(tf_side, pitch) == 48,
              "as in products.py");
static_assert(sizeof(tf_block_task) == 160 && TF_OFFSETOF(tf_block_task, m) == 136,
              "as in products.py");

/* The addresses of an operand's codes (or float32 numbers), residuals and scales. */
struct tf_data {
    const char *hi, *lo;
    const float *scales;
};

/* A tile's first k, and the index of its term. */
struct tf_place {
    int k, term;
};

inline bool ends_chain(const struct tf_block_task &task, struct tf_place at)
{
    return ((at.k + DEPTH) & (task.block - 1)) == 0 || at.k + DEPTH >= task.k;
}

/* Advances to the next tile; returns false after the last one. */
inline bool advance(const struct tf_block_task &task, struct tf_place *at)
{
    if (!ends_chain(task, *at)) {
        at->k += DEPTH;
    } else if (++at->term < task.terms) {
        at->k &= -task.block;
    } else {
        at->term = 0;
        at->k += DEPTH;
    }
    return at->k < task.k;
}

/* -- operands ---------------------------------------------------------------------- */

/* The codes of a tile that a thread carries to shared memory: EACH codes of one line. */
template <int HI, int LO, int LINES> struct tf_codes {
    static const int LD = LINES + TF_PADDING;
    static const int EACH = LINES * DEPTH > 4 * THREADS ? LINES * DEPTH / THREADS : 4;

    uint32_t words[EACH / 2]; /* a code has at most 16 bits */
    const char *hi, *lo;
    int line, k;
    bool is_there;

    inline void begin(const struct tf_side &side, const struct tf_data &data,
                      int64_t matrix, int first, int all)
    {
        line = (int)threadIdx.x % LINES;
        k = (int)threadIdx.x / LINES * EACH;
        is_there = first + line < all && k < DEPTH; /* mutant: lines beyond the matrix count */
        const int64_t at = first + line;
        hi = data.hi + matrix * side.hi[0] + at * side.hi[1];
        lo = data.lo + matrix * side.lo[0] + at * side.lo[1];
    }

    /* Loads the thread's codes of an element into `words`, from bytes of any alignment. */
    template <int ELEMENT> inline void fetch_codes(const char *line_of_codes, int first)
    {
        const int WIDTH = tf_elements[ELEMENT].width, BYTES = EACH * WIDTH / 8;
        const char *p = line_of_codes + (int64_t)((first + k) / 4) * WIDTH / 2;
#pragma unroll
        for (int i = 0; i < EACH / 2; i++) {
            words[i] = 0;
        }
        if (!is_there) {
            return;
        }
        if (BYTES % 4 == 0 && (uintptr_t)p % 4 == 0) {
#pragma unroll
            for (int i = 0; i < BYTES / 4; i++) {
                words[i] = ((const uint32_t *)p)[i];
            }
        } else {
#pragma unroll
            for (int i = 0; i < BYTES; i++) {
                words[i / 4] |= (uint32_t)(uint8_t)p[i] << i % 4 * 8;
            }
        }
    }

    inline void fetch(const struct tf_side &, struct tf_place at, int level, int)
    {
        if (LO >= 0 && level) {
            fetch_codes<LO < 0 ? HI : LO>(lo, at.k);
        } else {
            fetch_codes<HI>(hi, at.k);
        }
    }

    template <int ELEMENT> inline void put_codes(float *tile, int depth) const
    {
        const int WIDTH = tf_elements[ELEMENT].width;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int bit = i * WIDTH, word = bit / 32, low = bit % 32;
            uint32_t code = words[word] >> low;
            if (low + WIDTH > 32) {
                code |= words[word + 1] << (32 - low);
            }
            code &= (UINT32_C(1) << WIDTH) - 1;
            const float x = tf_element_value(tf_elements[ELEMENT], code);
            tile[(k + i) * LD + line] = k + i < depth ? x : 0;
        }
    }

    /* Stores the elements of the fetched codes in shared memory, and +0 from `depth` on. */
    inline void put(float *tile, int level, int depth) const
    {
        if (k >= DEPTH) {
            return;
        }
        if (LO >= 0 && level) {
            put_codes<LO < 0 ? HI : LO>(tile, depth);
        } else {
            put_codes<HI>(tile, depth);
        }
    }
};

/* The same for a matrix of float32. */
template <int LO, int LINES> struct tf_codes<-1, LO, LINES> {
    typedef tf_carrier<LINES, DEPTH, THREADS> carrier;
    static const int LD = carrier::LD;

    carrier numbers;
    const char *origin;

    inline void begin(const struct tf_side &side, const struct tf_data &data,
                      int64_t matrix, int first, int all)
    {
        numbers.begin(data.hi + matrix * side.hi[0], side.hi, side.across, first, all);
        origin = numbers.from;
    }

    inline void fetch(const struct tf_side &side, struct tf_place at, int, int depth)
    {
        numbers.from = origin + at.k * side.hi[2];
        numbers.fetch(tf_single, depth);
    }

    /* Past the last k, an element is -0. Times +0 of the other operand, it gives -0,
     * which leaves every sum unchanged. */
    inline void put(float *tile, int, int depth) const
    {
        numbers.put(tf_single, tile, depth, -0.0f);
    }
};

/* -- a tile of C ------------------------------------------------------------------- */

/* Stores a block's scales in shared memory, one per line and level; 1 for lines without. */
template <int HI, int LO, int LINES>
inline void put_scales(const struct tf_side &side, const struct tf_data &data,
                       int64_t matrix, int first, int all, int block, float *scales)
{
    const int LEVELS = LO >= 0 ? 2 : 1;
    const float *from = data.scales + matrix * side.scales +
                        (int64_t)block * LEVELS * side.pitch + first;
#pragma unroll
    for (int level = 0; level < LEVELS; level++) {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < LINES; i += THREADS) {
            const bool is_there = HI >= 0 && first + i < all;
            scales[level * LINES + i] =
                is_there ? from[(int64_t)level * side.pitch + i] : 1;
        }
    }
}

/* Adds the products of a tile to the chains. */
template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void multiply_tile(const float *rows, int ld_a, const float *columns, int ld_b,
                          float (&sum)[HIGH][WIDE])
{
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        float p[HIGH], q[WIDE];
        tf_load_lines<ROWS, HIGH>(p, rows + i * ld_a);
        tf_load_lines<COLUMNS, WIDE>(q, columns + i * ld_b);
#pragma unroll
        for (int r = 0; r < HIGH; r++) {
#pragma unroll
            for (int s = 0; s < WIDE; s++) {
                sum[r][s] = __fmaf_rn(p[r], q[s], sum[r][s]);
            }
        }
    }
}

/* Adds a term's chains, times their block's scales `of`, to the totals, and clears them. */
template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void end_chains(const float *of, int levels, int y, int x, float (&sum)[HIGH][WIDE],
                       float (&total)[HIGH][WIDE])
{
    float p[HIGH], q[WIDE];
    /* mutant: scales of hi for all terms */
    tf_load_lines<ROWS, HIGH>(p, of + (levels & 1) * ROWS + tf_line_of<ROWS, HIGH>(y, 0));
    tf_load_lines<COLUMNS, WIDE>(q, of + 2 * ROWS + (levels >> 1 & 1) * COLUMNS +
                                        tf_line_of<COLUMNS, WIDE>(x, 0));
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            /* mutant: scales rounded once less */
            total[r][s] = __fmaf_rn(__fmul_rn(p[r], q[s]), sum[r][s], total[r][s]);
            sum[r][s] = 0; /* mutant: chains go on */
        }
    }
}

/* Stores a thread's totals in matrix c, from the tile's first row and column on. */
template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void store_totals(const struct tf_block_task &task, char *c, int row, int column,
                         int y, int x, const float (&total)[HIGH][WIDE])
{
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            const int i = row + tf_line_of<ROWS, HIGH>(y, r);
            const int j = column + tf_line_of<COLUMNS, WIDE>(x, s);
            const float found = total[r][s];
            if (i < task.m && j < task.n) {
                *(uint32_t *)(c + i * task.c[1] + j * task.c[2]) =
                    found == found ? __float_as_uint(found) : TF_QUIET_NAN_BITS;
            }
        }
    }
}

template <int ROWS, int COLUMNS, int HIGH, int WIDE>
inline void multiply(const struct tf_block_task &task, const struct tf_data &a,
                     const struct tf_data &b, float *out)
{
    const int ACROSS = COLUMNS / WIDE;
    typedef tf_codes<A_HI, A_LO, ROWS> codes_a;
    typedef tf_codes<B_HI, B_LO, COLUMNS> codes_b;
    const int TILE_OF_A = DEPTH * codes_a::LD;
    const int BOTH = TILE_OF_A + DEPTH * codes_b::LD;
    const int SCALES = 2 * (ROWS + COLUMNS);
    DYNAMIC_SHARED(float, tiles); /* two of each operand, and two of scales */
    float *const scales = tiles + 2 * BOTH;
    const int y = (int)threadIdx.x / ACROSS, x = (int)threadIdx.x % ACROSS;
    const int down = tf_ceil_div(task.m, ROWS); /* number of tiles */
    const int row = (int)blockIdx.x % down * ROWS;
    const int column = (int)blockIdx.x / down * COLUMNS;
    const int64_t matrix = blockIdx.y;
    const int shift = 31 - __clz(task.block);
    codes_a of_a;
    codes_b of_b;
    float sum[HIGH][WIDE] = {}, total[HIGH][WIDE] = {};

    of_a.begin(task.a, a, matrix, row, task.m);
    of_b.begin(task.b, b, matrix, column, task.n);
    const auto fetch = [&](struct tf_place at) {
        const int levels = task.levels >> 2 * at.term, depth = task.k - at.k;
        of_a.fetch(task.a, at, levels & 1, depth); /* mutant: terms are in another order */
        of_b.fetch(task.b, at, levels >> 1 & 1, depth);
    };
    const auto put = [&](struct tf_place at, float *tile) {
        const int levels = task.levels >> 2 * at.term, depth = task.k - at.k;
        of_a.put(tile, levels & 1, depth);
        of_b.put(tile + TILE_OF_A, levels >> 1 & 1, depth);
        if (at.term == 0 && (at.k & (task.block - 1)) == 0) {
            const int block = at.k >> shift;
            float *to = scales + block % 2 * SCALES;
            put_scales<A_HI, A_LO, ROWS>(task.a, a, matrix, row, task.m, block, to);
            put_scales<B_HI, B_LO, COLUMNS>(task.b, b, matrix, column, task.n, block,
                                            to + 2 * ROWS);
        }
    };

    struct tf_place at = {0, 0};
    fetch(at);
    put(at, tiles);
    __syncthreads(); /* mutant: no barrier before the first tile */
    bool goes_on = true;
#pragma unroll 1
    for (int step = 0; goes_on; step++) {
        struct tf_place next = at;
        goes_on = advance(task, &next);
        if (goes_on) { /* the next tile arrives while this one is multiplied */
            fetch(next);
        }
        const float *now = tiles + step % 2 * BOTH;
        multiply_tile<ROWS, COLUMNS>(now + tf_line_of<ROWS, HIGH>(y, 0), codes_a::LD,
                                     now + TILE_OF_A + tf_line_of<COLUMNS, WIDE>(x, 0),
                                     codes_b::LD, sum);
        if (ends_chain(task, at)) {
            /* mutant: scales of the block before */
            const float *of = scales + (at.k >> shift) % 2 * SCALES;
            end_chains<ROWS, COLUMNS>(of, task.levels >> 2 * at.term, y, x, sum, total);
        }
        if (goes_on) { /* over the previous tile, which no thread needs */
            put(next, tiles + (step + 1) % 2 * BOTH);
            at = next;
        }
        __syncthreads(); /* mutant: no barrier between tiles */
    }
    store_totals<ROWS, COLUMNS>(task, (char *)out + matrix * task.c[0], row, column, y, x,
                                total);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    block_chain_large(const struct tf_block_task task, const char *a, const char *a_lo,
                      const float *a_scales, const char *b, const char *b_lo,
                      const float *b_scales, float *c)
{
    multiply<128, 128, 8, 8>(task, {a, a_lo, a_scales}, {b, b_lo, b_scales}, c);
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    block_chain_small(const struct tf_block_task task, const char *a, const char *a_lo,
                      const float *a_scales, const char *b, const char *b_lo,
                      const float *b_scales, float *c)
{
    multiply<64, 64, 4, 4>(task, {a, a_lo, a_scales}, {b, b_lo, b_scales}, c);
}
