/* C = A B as a device's tensor core computes it, on any GPU: the model of
 * tensor_core/mma_model.h, for a few elements of C per thread.
 *
 * As in tensor_core/kernels/plain/mma.c, products of operands are exact in float32. A
 * power of two scales them to the unit of their MMA group's sum, and a conversion to
 * integers that truncates toward zero aligns them. The exponent of a product is a sum of
 * two 16-bit numbers, two columns per word. If this does not hold (see complete()), the
 * thread calls the integer function for the groups in doubt.
 *
 * Options of the compilation give the formats of A and B, and the fields of the model.
 */
#include "cuda/matmul/tile_loader.h"
#include "tensor_core/mma_model.h"

enum {
    ROWS = 64,
    COLUMNS = 64,
    HIGH = 4, /* rows of C per thread */
    WIDE = 4,
    PAIRS = WIDE / 2,
    ACROSS = COLUMNS / WIDE,
    THREADS = ROWS / HIGH * ACROSS,
    STAGE = 32, /* k in shared memory: one or more MMA groups of any model */
    FITS = 16,  /* products whose sum fits 32 bits, at 25 fraction bits */
    BIAS = 127,
    NO_EXPONENT = -8000, /* of zero */
    SPECIAL = 16000,     /* of Inf and NaN; twice that does not overflow */
    LOWEST = MODEL_FRACTION + 2, /* mutant: a product below it */
    HIGHEST = 2 * BIAS - 2, /* mutant: a product beyond the range */
    LEAST_SUM = MODEL_ZERO_C > MODEL_FLOOR ? MODEL_ZERO_C : MODEL_FLOOR,
    LOW = MODEL_HALF && LEAST_SUM > TF_NO_EXPONENT ? LEAST_SUM + BIAS : -32768,
    ALL_FIT = (4ll * MODEL_GROUP + 2) << MODEL_FRACTION <= INT32_MAX
};
static_assert(STAGE % MODEL_INSTRUCTION == 0 && MODEL_INSTRUCTION % MODEL_GROUP == 0, "");
static_assert(!MODEL_EMULATED || 2 * MODEL_GROUP == STAGE, "");

#define MODEL                                                                  \
    {MODEL_GROUP,    MODEL_INSTRUCTION, MODEL_FRACTION,  MODEL_KEPT,           \
     MODEL_HALF,     MODEL_LEAST_A,     MODEL_LEAST_B,   MODEL_EMULATED,       \
     MODEL_CUT_FIRST, MODEL_FLOOR,      MODEL_ZERO_C,    MODEL_ZERO_PRODUCTS,  \
     MODEL_NEGATIVE_ZERO}

typedef tf_carrier<ROWS, STAGE, THREADS> carrier_a;
typedef tf_carrier<COLUMNS, STAGE, THREADS> carrier_b;
enum { LDA = carrier_a::LD, LDB = carrier_b::LD };

/* The numbers in shared memory, one k after the other. */
struct tiles {
    float a[STAGE * LDA], b[STAGE * LDB];
    uint32_t a_exponents[STAGE * LDA]; /* twice in a word, biased */
    uint16_t b_exponents[STAGE * LDB];
    float exchanged[HIGH * WIDE][THREADS]; /* each thread has a column of its own */
};

/* Returns the exponent of x, at least `least`, or a mark of zero, Inf or NaN. Sums of two
 * show whether one is a mark, because no such sum is near an ordinary one. */
inline int exponent_of(float x, int least)
{
    const uint32_t bits = __float_as_uint(x);
    const int field = (int)(bits >> 23 & 0xFF);
    const int e = max(field - BIAS, least); /* mutant: subnormal operands as normal ones */
    const int of_zero = MODEL_ZERO_PRODUCTS ? (int)TF_LEAST_SINGLE : (int)NO_EXPONENT;
    return bits << 1 == 0 ? of_zero : field == 255 ? (int)SPECIAL : e;
}

/* Returns the index of k in a stage. The first two of each four k of an emulated
 * instruction are in the first group. */
inline int place_of(int k)
{
    return MODEL_EMULATED ? k % 4 / 2 * MODEL_GROUP + k / 4 * 2 + k % 2 : k;
}

/* -- an MMA group -------------------------------------------------------------------- */

inline uint32_t twice(int x) { return ((uint32_t)x & 0xFFFFu) * 0x10001u; }

/* Returns the exponents of two accumulators, biased. */
inline uint32_t exponents_of(float left, float right)
{
    const uint32_t fields = __float_as_uint(left) >> 23 & 0xFFu |
                            __float_as_uint(right) >> 7 & 0xFF0000u;
    if (!MODEL_HALF) {
        return fields;
    }
    /* At least float16's smallest exponent, but for zero. */
    const uint32_t least = (fields & 0xFFFFu ? TF_LEAST_HALF + BIAS : 0) |
                           (fields >> 16 ? (TF_LEAST_HALF + BIAS) << 16 : 0);
    return __vmaxs2(fields, least);
}

/* Returns the largest exponents of two elements' groups, biased, each limited to F - 125
 * to 125, where float32 is exact (see "groups in float32" of mma_model.h). `doubt` gets
 * bits where they were outside. This holds for all products and accumulators. */
inline uint32_t complete(uint32_t greatest, float left, float right, uint32_t &doubt)
{
    uint32_t e = __vmaxs2(greatest, exponents_of(left, right));
    if (LOW > -32768) { /* the floor of a float32 accumulator is out of range */
        e = __vmaxs2(e, twice(LOW));
    }
    const uint32_t within = __vmins2(__vmaxs2(e, twice(LOWEST)), twice(HIGHEST));
    doubt |= within ^ e;
    return within;
}

/* Returns a sum as float32, truncated toward zero. For float16 accumulators it is rounded
 * to odd, so that a second rounding to fewer bits is as if single. */
inline float toward_zero(int32_t sum)
{
    const float x = __int2float_rz(sum);
    const bool odd = MODEL_HALF && __float2int_rz(x) != sum;
    return odd ? __uint_as_float(__float_as_uint(x) | 1) : x;
}

/* Returns the nearest float16, ties to even. */
inline float to_half(float x)
{
    return tf_float_of(
        tf_single_of_item(tf_float16, tf_code_of_single(tf_float16, tf_bits_of(x))));
}

/* Returns the result of a group from its sum. */
inline float result_of(int32_t sum, float scale)
{
    /* 2^(largest exponent - fraction) is the inverse of the scale. */
    const float unit = __uint_as_float((2u * BIAS << 23) - __float_as_uint(scale));
    const float x = __fmul_rn(toward_zero(sum), unit);
    const int bits = !MODEL_HALF ? MODEL_KEPT : MODEL_CUT_FIRST ? MODEL_CUT_FIRST : 23;
    const float cut =
        __uint_as_float(__float_as_uint(x) & ~((1u << (23 - bits)) - 1));
    return !MODEL_HALF           ? cut
           : MODEL_NEGATIVE_ZERO ? to_half(cut)
                                 : __fadd_rn(to_half(cut), 0.0f);
}

/* Reasons for doubt in results. */
enum { OUT_OF_RANGE = 1, WRAPPED = 2 };

/* Finds the largest exponents of a group's products, two columns per word. */
inline void find_greatest(const struct tiles &tiles, int first, int y, int x,
                          uint32_t greatest[HIGH][PAIRS])
{
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < PAIRS; s++) {
            greatest[r][s] = twice(-32768);
        }
    }
#pragma unroll 4
    for (int i = 0; i < MODEL_GROUP; i++) {
        const uint4 of_a =
            *(const uint4 *)(tiles.a_exponents + (first + i) * LDA + y * HIGH);
        const uint2 of_b =
            /* mutant: a column of another thread */
            *(const uint2 *)(tiles.b_exponents + (first + i) * LDB + x * WIDE);
        const uint32_t e[HIGH] = {of_a.x, of_a.y, of_a.z, of_a.w};
#pragma unroll
        for (int r = 0; r < HIGH; r++) {
            greatest[r][0] = __viaddmax_s16x2(e[r], of_b.x, greatest[r][0]);
            /* mutant: swapped exponents */
            greatest[r][1] = __viaddmax_s16x2(e[r], of_b.y, greatest[r][1]);
        }
    }
}

/* Adds `count` products to the totals, each truncated toward zero to its total's unit. */
inline void add_products(const struct tiles &tiles, int first, int count, int y, int x,
                         const float scale[HIGH][WIDE], uint32_t total[HIGH][WIDE])
{
#pragma unroll 4
    for (int i = 0; i < count; i++) {
        float p[HIGH], q[WIDE];
        tf_load_lines<ROWS, HIGH>(p, tiles.a + (first + i) * LDA + y * HIGH);
        tf_load_lines<COLUMNS, WIDE>(q, tiles.b + (first + i) * LDB + x * WIDE);
#pragma unroll
        for (int r = 0; r < HIGH; r++) {
#pragma unroll
            for (int s = 0; s < WIDE; s++) {
                const float product = __fmul_rn(p[r], q[s]);
                total[r][s] +=
                    (uint32_t)__float2int_rz(__fmul_rn(product, scale[r][s]));
            }
        }
    }
}

/* Adds a group's products, from k `first` on, to the accumulators. Returns reasons for
 * doubt. */
inline int add_group(const struct tiles &tiles, int first, int y, int x,
                          float c[HIGH][WIDE])
{
    uint32_t greatest[HIGH][PAIRS], doubt = 0, wrapped = 0;
    float scale[HIGH][WIDE];
    uint32_t total[HIGH][WIDE], before[HIGH][WIDE];

    find_greatest(tiles, first, y, x, greatest);
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < WIDE; s += 2) {
            const uint32_t e =
                complete(greatest[r][s / 2], c[r][s], c[r][s + 1], doubt);
            /* 2^(fraction - largest exponent); neither half borrows from the other. */
            const uint32_t both = twice(MODEL_FRACTION + 2 * BIAS) - e;
            scale[r][s] = __uint_as_float(both << 23);
            scale[r][s + 1] = __uint_as_float(both << 7 & TF_INF_BITS);
        }
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            total[r][s] = (uint32_t)__float2int_rz(__fmul_rn(c[r][s], scale[r][s]));
        }
    }
    const int together = ALL_FIT ? MODEL_GROUP : FITS;
#pragma unroll 1
    for (int begin = 0; begin < MODEL_GROUP; begin += together) {
#pragma unroll
        for (int r = 0; r < HIGH && !ALL_FIT; r++) {
#pragma unroll
            for (int s = 0; s < WIDE; s++) {
                before[r][s] = total[r][s];
                total[r][s] = 0;
            }
        }
        add_products(tiles, first + begin, together, y, x, scale, total);
#pragma unroll
        for (int r = 0; r < HIGH && !ALL_FIT; r++) {
#pragma unroll
            for (int s = 0; s < WIDE; s++) {
                const uint32_t sum = before[r][s] + total[r][s];
                wrapped |= (sum ^ before[r][s]) & (sum ^ total[r][s]);
                total[r][s] = sum;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            c[r][s] = result_of((int32_t)total[r][s], scale[r][s]);
        }
    }
    return (doubt ? OUT_OF_RANGE : 0) | (wrapped >> 31 ? WRAPPED : 0);
}

/* -- results in doubt ---------------------------------------------------------------- */

/* Returns one element's result, computed by integers, or `fast` if that is right. If all
 * products are zero, the exponent seems too low, but the sum is right. An accumulator
 * that was NaN remains NaN, and Inf remains Inf if no operand is Inf or NaN. */
inline float redo_one(const struct tiles &tiles, int first, int count, int row,
                      int column, float c, float fast, bool surely)
{
    const struct tf_mma_model model = MODEL;
    int greatest = -32768;
    uint32_t out = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const int of_a = (int16_t)tiles.a_exponents[(first + i) * LDA + row];
        const int of_b = (int16_t)tiles.b_exponents[(first + i) * LDB + column];
        greatest = max(greatest, of_a + of_b);
    }
    complete(twice(greatest), c, c, out);
    if (c != c) {
        return __uint_as_float(tf_mma_nan(MODEL_HALF));
    }
    if (!surely && (out == 0 || (greatest < NO_EXPONENT / 2 && c == 0))) {
        return fast;
    }
    if (__float_as_uint(c) << 1 == 0xFF000000u && greatest < SPECIAL / 2) {
        return c;
    }
    return __uint_as_float(tf_mma_dot(
        &model, (const uint32_t *)tiles.a + first * LDA + row, LDA,
        (const uint32_t *)tiles.b + first * LDB + column, LDB, count,
        __float_as_uint(c), 0, 0));
}

/* Computes all elements of a thread again. They are in shared memory, in the thread's own
 * column, because a loop cannot index registers. */
inline void redo_with_integers(struct tiles &tiles, int first, int count, int y, int x,
                               const float given[HIGH][WIDE], float c[HIGH][WIDE],
                               bool surely)
{
    float(*mine)[THREADS] = tiles.exchanged;
    const int thread = (int)threadIdx.x;
    /* A result replaces the accumulator that it was computed from. */
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++) {
        mine[i][thread] = given[i / WIDE][i % WIDE];
    }
    const float none = __uint_as_float(0xFFFFFFFFu); /* no new result */
#pragma unroll 1
    for (int i = 0; i < HIGH * WIDE; i++) {
        mine[i][thread] = redo_one(tiles, first, count, y * HIGH + i / WIDE,
                                   /* mutant: one accumulator redone as another */
                                   x * WIDE + i % WIDE, mine[i][thread], none, surely);
    }
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++) {
        const float found = mine[i][thread];
        c[i / WIDE][i % WIDE] =
            __float_as_uint(found) == 0xFFFFFFFFu ? c[i / WIDE][i % WIDE] : found;
    }
}

inline void add_group_exactly(const struct tf_task &task, struct tiles &tiles, int first,
                              int count, int y, int x, float c[HIGH][WIDE])
{
    float given[HIGH][WIDE];
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++) {
        given[i / WIDE][i % WIDE] = c[i / WIDE][i % WIDE];
    }
    const int doubts = add_group(tiles, first, y, x, c);
    /* mutant: nothing redone */
    if (doubts | task.exactly) { /* it is unknown which sums wrapped */
        const bool surely = doubts & WRAPPED || task.exactly;
        redo_with_integers(tiles, first, count, y, x, given, c, surely);
    }
}

/* -- chains -------------------------------------------------------------------------- */

/* Adds the MMA groups of a stage, which has `depth` k. */
inline void add_stage(const struct tf_task &task, struct tiles &tiles, int depth, int y,
                      int x, float c[HIGH][WIDE])
{
    if (!MODEL_EMULATED) {
        const int instructions = tf_ceil_div(depth, MODEL_INSTRUCTION);
        const int filled = instructions * MODEL_INSTRUCTION;
#pragma unroll 1
        /* mutant: groups of instructions not filled */
        for (int k = 0; k < filled; k += MODEL_GROUP) {
            const int count = max(0, min((int)MODEL_GROUP, depth - k));
            add_group_exactly(task, tiles, k, count, y, x, c);
        }
        return;
    }
    float sum[HIGH][WIDE] = {};
#pragma unroll 1
    for (int part = 0; part < 2; part++) {
        const int count = depth / 4 * 2 + max(0, min(2, depth % 4 - 2 * part));
        add_group_exactly(task, tiles, part * MODEL_GROUP, count, y, x, sum);
    }
#pragma unroll
    for (int r = 0; r < HIGH; r++) {
#pragma unroll
        for (int s = 0; s < WIDE; s++) {
            const float total = __fadd_rn(c[r][s], sum[r][s]);
            c[r][s] = MODEL_HALF ? to_half(total) : total;
        }
    }
}

inline float load(const char *p)
{
    return MODEL_HALF ? tf_operand_number(tf_float16, tf_load_item(tf_float16, p))
                      : *(const float *)p;
}

inline void store(char *p, float x)
{
    const bool nan = x != x;
    if (MODEL_HALF) { /* exact */
        *(uint16_t *)p =
            (uint16_t)(nan ? 0x7FFFu : tf_code_of_single(tf_float16, __float_as_uint(x)));
    } else {
        *(uint32_t *)p = nan ? tf_mma_nan(0) : __float_as_uint(x);
    }
}

/* Loads a thread's elements of C through shared memory, so that no registers hold their
 * addresses from beginning to end. */
inline void load_sums(const struct tf_task &task, const char *c, struct tiles &tiles,
                      int high, int wide, float sum[HIGH][WIDE])
{
    const int thread = (int)threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < HIGH * WIDE; i++) {
        const int r = i / WIDE, s = i % WIDE;
        const bool there = r < high && s < wide;
        tiles.exchanged[i][thread] =
            there ? load(c + r * task.c[1] + s * task.c[2]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++) {
        sum[i / WIDE][i % WIDE] = tiles.exchanged[i][thread];
    }
}

inline void store_sums(const struct tf_task &task, char *c, struct tiles &tiles, int high,
                       int wide, const float sum[HIGH][WIDE])
{
    const int thread = (int)threadIdx.x;
#pragma unroll
    for (int i = 0; i < HIGH * WIDE; i++) {
        tiles.exchanged[i][thread] = sum[i / WIDE][i % WIDE];
    }
#pragma unroll 1
    for (int i = 0; i < HIGH * WIDE; i++) {
        const int r = i / WIDE, s = i % WIDE;
        if (r < high && s < wide) {
            store(c + r * task.c[1] + s * task.c[2], tiles.exchanged[i][thread]);
        }
    }
}

/* Two blocks of threads hide each other's latency, if there are enough registers. */
enum { RESIDENT = ALL_FIT && !MODEL_HALF && !MODEL_EMULATED ? 2 : 1 };

extern "C" __global__ void __launch_bounds__(256, RESIDENT)
    model(struct tf_task task, const char *a, const char *b, char *c)
{
    DYNAMIC_SHARED(struct tiles, shared);
    struct tiles &tiles = *shared;
    const int first_row = (int)blockIdx.x * ROWS, first_column = (int)blockIdx.y * COLUMNS;
    const int y = (int)threadIdx.x / ACROSS, x = (int)threadIdx.x % ACROSS;
    const int high = task.m - first_row - y * HIGH;
    const int wide = task.n - first_column - x * WIDE;
    carrier_a of_a;
    carrier_b of_b;
    float sum[HIGH][WIDE] = {};

    of_a.begin(a + blockIdx.z * task.a[0], task.a, task.a_across, first_row, task.m);
    of_b.begin(b + blockIdx.z * task.b[0], task.b, task.b_across, first_column, task.n);
    c += blockIdx.z * task.c[0] + (int64_t)(first_row + y * HIGH) * task.c[1] +
         (int64_t)(first_column + x * WIDE) * task.c[2];
    if (task.continues) {
        load_sums(task, c, tiles, high, wide, sum);
    }
    of_a.fetch(A_FORMAT, task.k);
    of_b.fetch(B_FORMAT, task.k);
#pragma unroll 1
    for (int k = 0; k < task.k; k += STAGE) { /* mutant: the last k left out */
        const int depth = task.k - k; /* from this stage on */
        /* mutant: no barrier before a stage is written */
        __syncthreads();              /* all threads have read the former stage */
        of_a.put_each(A_FORMAT, depth, 0, [&](int at, int line, float p) {
            tiles.a[place_of(at) * LDA + line] = p;
            tiles.a_exponents[place_of(at) * LDA + line] =
                twice(exponent_of(p, MODEL_LEAST_A) + BIAS);
        });
        of_b.put_each(B_FORMAT, depth, 0, [&](int at, int line, float q) {
            tiles.b[place_of(at) * LDB + line] = q;
            tiles.b_exponents[place_of(at) * LDB + line] =
                (uint16_t)exponent_of(q, MODEL_LEAST_B);
        });
        __syncthreads(); /* mutant: no barrier behind it */
        if (depth > STAGE) { /* the next stage arrives while this one is multiplied */
            of_a.fetch(A_FORMAT, depth - STAGE);
            of_b.fetch(B_FORMAT, depth - STAGE);
        }
        add_stage(task, tiles, min((int)STAGE, depth), y, x, sum);
    }
    store_sums(task, c, tiles, high, wide, sum);
}
