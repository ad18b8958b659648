/* The inside of one row times a matrix: at the speed at which the matrix is read.
 *
 * The matrix is read in the order of its memory, many whole rows at a time; lines along
 * k are for dot.c. bfloat16 and what fits it become slots (see product.c) on their way.
 * Exceptions and NaN are left to the caller.
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

/* -- one instance a width ---------------------------------------------------------- */

#define INSTANCE(name, bytes)                                                      \
    static void across_##name(const struct tf_byte_table *table, const float *x,   \
                              const char *rows, ptrdiff_t step, size_t depth,      \
                              size_t columns, float *sums, struct tf_range *range) \
    {                                                                              \
        across(table, bytes, x, rows, step, depth, columns, sums, range);          \
    }
INSTANCE(halves, 0)
INSTANCE(bytes, 1)

#endif

const struct tf_row TF_NAME(tf_row) = {
    .across_singles = across_singles,
#if defined(__AVX512BF16__) && defined(__AVX512VBMI__)
    .across_halves = across_halves,
    .across_bytes = across_bytes,
#endif
};
