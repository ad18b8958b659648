/* The inside of one row times a matrix: at the speed at which the matrix is read.
 *
 * The matrix is read in the order of its memory: many whole rows at a time, or line
 * after line, since pieces of rows far apart cost twice the time. bfloat16 and what
 * fits it become slots (see product.c) on their way. Exceptions and NaN are left to the
 * caller.
 */
#include "../bytes.h"
#include "panels.h"

/* -- float32 ----------------------------------------------------------------------- */

enum { SINGLES = 8 }; /* rows read at the same time */

/* The bits of x that are in `mask`. */
TF_INLINE vector used_of(vector x, vector mask)
{
#if defined(__AVX512F__)
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_castps_si512(mask)));
#elif defined(__FMA__)
    return _mm256_and_ps(x, mask);
#else
    return tf_float_of(tf_bits_of(x) & tf_bits_of(mask));
#endif
}

/* Some rows times some numbers of x: `depth` is known where there is no end to mind. */
TF_INLINE void across_some(const float *x, const char *rows, ptrdiff_t step,
                           vector mask, size_t depth, size_t columns, float *sums,
                           int is_first)
{
    for (size_t j = 0; j < columns; j += WIDTH) {
        const char *place = rows + j * sizeof(float);
        vector total = is_first ? BROADCAST(0.0f) : LOAD(sums + j);
        UNROLLED for (size_t k = 0; k < depth; k++, place += step) {
            const vector y = used_of(LOAD((const float *)place), mask);
            total = FMA(BROADCAST(x[k]), y, total);
        }
        STORE(sums + j, total);
    }
}

static void across_singles(const float *x, const char *rows, ptrdiff_t step,
                           uint32_t used, size_t depth, size_t columns, float *sums)
{
    const vector mask = BROADCAST(tf_float_of(used));
    size_t k = 0;
    for (; k + SINGLES <= depth; k += SINGLES, rows += SINGLES * step) {
        across_some(x + k, rows, step, mask, SINGLES, columns, sums, k == 0);
    }
    if (k < depth) {
        across_some(x + k, rows, step, mask, depth - k, columns, sums, k == 0);
    }
}

#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)

/* The two bytes of 64 numbers as bfloat16. */
struct byte_pair {
    struct tf_byte_registers high, low;
};

/* -- columns side by side ---------------------------------------------------------- */

enum { TOGETHER = 4 }; /* rows read at the same time */

/* A vector of each of two rows makes two of slots, a number of either in each: which
 * leave their order within lanes of 16 bytes, until the sums are complete. */
TF_INLINE void add_halves(__m512 x, __m512i first, __m512i second, __m512 sums[2])
{
    sums[0] = tf_dot(x, (__m512)_mm512_unpacklo_epi16(second, first), sums[0]);
    sums[1] = tf_dot(x, (__m512)_mm512_unpackhi_epi16(second, first), sums[1]);
}

TF_INLINE void add_bytes(const struct byte_pair *tables, __m512 x, __m512i first,
                         __m512i second, __m512 sums[4])
{
    const __m512i high[2] = {tf_permute_bytes(tables->high, first),
                             tf_permute_bytes(tables->high, second)};
    const __m512i low[2] = {tf_permute_bytes(tables->low, first),
                            tf_permute_bytes(tables->low, second)};
    add_halves(x, _mm512_unpacklo_epi8(low[0], high[0]),
               _mm512_unpacklo_epi8(low[1], high[1]), sums);
    add_halves(x, _mm512_unpackhi_epi8(low[0], high[0]),
               _mm512_unpackhi_epi8(low[1], high[1]), sums + 2);
}

/* Sums of 16 n columns, in order, from n vectors, each with four of every 4 n. */
TF_INLINE void store_in_order(const __m512 *sums, int n, float *out)
{
    UNROLLED for (int v = 0; v < n; v++) {
        _mm_storeu_ps(out + 4 * v, _mm512_extractf32x4_ps(sums[v], 0));
        _mm_storeu_ps(out + 4 * (n + v), _mm512_extractf32x4_ps(sums[v], 1));
        _mm_storeu_ps(out + 4 * (2 * n + v), _mm512_extractf32x4_ps(sums[v], 2));
        _mm_storeu_ps(out + 4 * (3 * n + v), _mm512_extractf32x4_ps(sums[v], 3));
    }
}

/* Some rows times some numbers of x: `bytes` is known where this is called, `depth` is
 * where there is no end to mind. */
TF_INLINE void across_rows(const struct byte_pair *tables, int bytes, const float *x,
                           const char *rows, ptrdiff_t step, size_t depth,
                           size_t columns, float *sums, int is_first, int is_last,
                           struct tf_range *range)
{
    const int n = bytes ? 4 : 2; /* vectors of sums */
    __m512i least = _mm512_loadu_si512(range->least_less_one);
    for (size_t j = 0; j < columns; j += 16 * (size_t)n, rows += 64, sums += 16 * n) {
        __m512 total[4];
        UNROLLED for (int v = 0; v < n; v++) {
            total[v] = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + 16 * v);
        }
        UNROLLED for (size_t k = 0; k < depth; k += 2) {
            const __m512 slot = _mm512_set1_ps(x[k / 2]);
            const char *row = rows + (ptrdiff_t)k * step;
            __builtin_prefetch(row + TOGETHER * step, 0, 3);
            __builtin_prefetch(row + (TOGETHER + 1) * step, 0, 3);
            const __m512i first = _mm512_loadu_si512(row);
            const __m512i second = k + 1 < depth ? _mm512_loadu_si512(row + step)
                                                 : _mm512_setzero_si512();
            if (bytes) {
                add_bytes(tables, slot, first, second, total);
            } else {
                least = tf_lesser(tf_lesser(least, first), second);
                add_halves(slot, first, second, total);
            }
        }
        if (is_last) {
            store_in_order(total, n, sums);
        } else {
            UNROLLED for (int v = 0; v < n; v++) {
                _mm512_storeu_ps(sums + 16 * v, total[v]);
            }
        }
    }
    _mm512_storeu_si512(range->least_less_one, least);
}

TF_INLINE void across(const struct tf_byte_table *table, int bytes, const float *x,
                      const char *rows, ptrdiff_t step, size_t depth, size_t columns,
                      float *sums, struct tf_range *range)
{
    struct byte_pair tables;
    if (bytes) {
        tables.high = tf_load_bytes(table->high);
        tables.low = tf_load_bytes(table->low);
    }
    size_t k = 0;
    for (; k + TOGETHER < depth; k += TOGETHER, rows += TOGETHER * step) {
        across_rows(&tables, bytes, x + k / 2, rows, step, TOGETHER, columns, sums,
                    k == 0, 0, range);
    }
    across_rows(&tables, bytes, x + k / 2, rows, step, depth - k, columns, sums, k == 0,
                1, range);
}

/* -- lines along k ----------------------------------------------------------------- */

/* 16 bytes of 16 lines: lane i of vector j has those of line 4 i + j. */
TF_INLINE void load_lines(const char *const lines[TF_ROW_GROUP], size_t offset,
                          __m512i out[4])
{
    UNROLLED for (int j = 0; j < 4; j++) {
        const __m128i *line[4];
        UNROLLED for (int i = 0; i < 4; i++) {
            line[i] = (const void *)(lines[4 * i + j] + offset);
        }
        __m512i x = _mm512_castsi128_si512(_mm_loadu_si128(line[0]));
        x = _mm512_inserti32x4(x, _mm_loadu_si128(line[1]), 1);
        x = _mm512_inserti32x4(x, _mm_loadu_si128(line[2]), 2);
        out[j] = _mm512_inserti32x4(x, _mm_loadu_si128(line[3]), 3);
    }
}

/* Four slots of 16 lines, loaded like this, to the 16 lines' slots of four k, which
 * are multiplied and added one after the other. */
TF_INLINE __m512 add_slots(const float *x, const __m512i in[4], __m512 sums)
{
    const __m512i low = _mm512_unpacklo_epi32(in[0], in[1]);
    const __m512i high = _mm512_unpackhi_epi32(in[0], in[1]);
    const __m512i more_low = _mm512_unpacklo_epi32(in[2], in[3]);
    const __m512i more_high = _mm512_unpackhi_epi32(in[2], in[3]);
    const __m512i slots[4] = {
        _mm512_unpacklo_epi64(low, more_low),
        _mm512_unpackhi_epi64(low, more_low),
        _mm512_unpacklo_epi64(high, more_high),
        _mm512_unpackhi_epi64(high, more_high),
    };
    UNROLLED for (int i = 0; i < 4; i++) {
        sums = tf_dot(_mm512_loadu_ps(x + TF_ROW_GROUP * i), (__m512)slots[i], sums);
    }
    return sums;
}

TF_INLINE void along(const struct tf_byte_table *table, int bytes, const float *x,
                     const char *const lines[TF_ROW_LINES],
                     const char *const ahead[TF_ROW_GROUPS], float *sums,
                     struct tf_range *range)
{
    const size_t width = bytes ? 1 : 2;
    /* The earlier number of a slot belongs into its upper half. */
    const __m512i swapped = _mm512_broadcast_i32x4(
        _mm_setr_epi8(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14));
    struct byte_pair tables;
    if (bytes) {
        tables.high = tf_load_bytes(table->high);
        tables.low = tf_load_bytes(table->low);
    }
    __m512i least = _mm512_loadu_si512(range->least_less_one);
    __m512 total[TF_ROW_GROUPS];
    UNROLLED for (int g = 0; g < TF_ROW_GROUPS; g++) {
        total[g] = _mm512_setzero_ps();
    }
    for (size_t offset = 0; offset < TF_DEPTH * width; offset += 16) {
        UNROLLED for (int g = 0; g < TF_ROW_GROUPS; g++) {
            const float *here = x + offset / width / 2 * TF_ROW_GROUP;
            __m512i in[4];
            UNROLLED for (int i = 0; i < 4; i++) {
                __builtin_prefetch(ahead[g] + offset * TF_ROW_GROUP + 64 * i);
            }
            load_lines(lines + g * TF_ROW_GROUP, offset, in);
            if (bytes) {
                __m512i early[4], late[4];
                UNROLLED for (int i = 0; i < 4; i++) {
                    const __m512i index = _mm512_shuffle_epi8(in[i], swapped);
                    const __m512i high = tf_permute_bytes(tables.high, index);
                    const __m512i low = tf_permute_bytes(tables.low, index);
                    early[i] = _mm512_unpacklo_epi8(low, high);
                    late[i] = _mm512_unpackhi_epi8(low, high);
                }
                total[g] = add_slots(here, early, total[g]);
                total[g] = add_slots(here + 4 * TF_ROW_GROUP, late, total[g]);
            } else {
                UNROLLED for (int i = 0; i < 4; i++) {
                    least = tf_lesser(least, in[i]);
                    in[i] = _mm512_rol_epi32(in[i], 16);
                }
                total[g] = add_slots(here, in, total[g]);
            }
        }
    }
    UNROLLED for (int g = 0; g < TF_ROW_GROUPS; g++) {
        _mm512_storeu_ps(sums + g * TF_ROW_GROUP, total[g]);
    }
    _mm512_storeu_si512(range->least_less_one, least);
}

/* -- one instance a width ---------------------------------------------------------- */

#define INSTANCE(name, bytes)                                                      \
    static void across_##name(const struct tf_byte_table *table, const float *x,   \
                              const char *rows, ptrdiff_t step, size_t depth,      \
                              size_t columns, float *sums, struct tf_range *range) \
    {                                                                              \
        across(table, bytes, x, rows, step, depth, columns, sums, range);          \
    }                                                                              \
    static void along_##name(const struct tf_byte_table *table, const float *x,    \
                             const char *const lines[TF_ROW_LINES],                \
                             const char *const ahead[TF_ROW_GROUPS], float *sums,  \
                             struct tf_range *range)                               \
    {                                                                              \
        along(table, bytes, x, lines, ahead, sums, range);                         \
    }
INSTANCE(halves, 0)
INSTANCE(bytes, 1)

#endif

const struct tf_row TF_NAME(tf_row) = {
    .across_singles = across_singles,
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    .across_halves = across_halves,
    .across_bytes = across_bytes,
    .along_halves = along_halves,
    .along_bytes = along_bytes,
#endif
};
