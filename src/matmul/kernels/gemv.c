/* Kernels of GEMV, one row times a matrix, as fast as the matrix can be read from memory.
 *
 * The matrix has a row for each k. Kernels read it in the order of memory, 8 rows at a
 * time; dot.c is for matrices whose lines run along k. The caller handles exceptions and
 * NaN.
 *
 * Preconditions of all kernels in this file:
 *
 * - in->x: `depth` adjoining floats.
 * - in->rows: row k begins at rows + k * step, in bytes; `step` has any sign. `columns`
 *   items of a row adjoin. No alignment, except multiples of 4 bytes for `rows` and `step`
 *   of float32.
 * - depth: >= 1. Callers pass at most 256 (TF_KC), by contract.
 * - columns: a multiple of TF_GEMV_COLUMNS (64), or of 16 for float32.
 * - sums: `columns` floats, which are overwritten, also with intermediate values, and which
 *   do not overlap the operands. */
#include "matmul/kernels/words.h"

enum { TOGETHER = 8 }; /* rows read at the same time */

/* -- float32 ----------------------------------------------------------------------- */

/* Returns the bits of x that are set in `mask`. */
TF_INLINE vector used_of(vector x, vector mask)
{
#if defined(__AVX512F__)
    return _mm512_castsi512_ps(
        _mm512_and_si512(_mm512_castps_si512(x), _mm512_castps_si512(mask)));
#elif defined(__FMA__)
    return _mm256_and_ps(x, mask);
#elif defined(__aarch64__)
    return (vector)((uint32x4_t)x & (uint32x4_t)mask);
#else
    return tf_float_of(tf_bits_of(x) & tf_bits_of(mask));
#endif
}

/* Adds `depth` rows, each times its number of x, to the sums, which start with zero if
 * `is_first`. `depth` is a constant except at the end. */
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

/* Also needs in->used: UINT32_MAX for float32, the bits of the format for tf32. */
static void across_singles(const struct tf_gemv_operands *in, size_t depth,
                           size_t columns, float *sums)
{
    const vector mask = BROADCAST(tf_float_of(in->used));
    size_t k = 0;
    for (; k + TOGETHER <= depth; k += TOGETHER) {
        across_some(in->x + k, in->rows + (ptrdiff_t)k * in->step, in->step, mask,
                    TOGETHER, columns, sums, k == 0);
    }
    if (k < depth) {
        across_some(in->x + k, in->rows + (ptrdiff_t)k * in->step, in->step, mask,
                    depth - k, columns, sums, k == 0);
    }
}

/* -- shorter items ----------------------------------------------------------------- */

#if defined(__AVX2__) && defined(__FMA__) /* also with AVX-512 */

/* Interleaves the elements of two vectors. */
#if defined(__AVX512F__)
TF_INLINE void interleave(__m512 even, __m512 odd, __m512 out[2])
{
    const __m512i first =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    out[0] = _mm512_permutex2var_ps(even, first, odd);
    out[1] = _mm512_permutex2var_ps(even, second, odd);
}
#else
TF_INLINE void interleave(__m256 even, __m256 odd, __m256 out[2])
{
    const __m256 low = _mm256_unpacklo_ps(even, odd), high = _mm256_unpackhi_ps(even, odd);
    out[0] = _mm256_permute2f128_ps(low, high, 0x20);
    out[1] = _mm256_permute2f128_ps(low, high, 0x31);
}
#endif

/* Stores sums in the order of columns. sums[i] has those of item i of each word. */
TF_INLINE void store_in_order(enum width width, const vector *sums, float *out)
{
    vector x[MOST], y[MOST];
    if (width == BF16) {
        interleave(sums[0], sums[1], x);
    } else {
        interleave(sums[0], sums[2], y);
        interleave(sums[1], sums[3], y + 2);
        interleave(y[0], y[2], x);
        interleave(y[1], y[3], x + 2);
    }
    UNROLLED for (int i = 0; i < MOST / size_of(width); i++) {
        STORE(out + WIDTH * i, x[i]);
    }
}

#endif

#if defined(__AVX512F__) && defined(__AVX512BW__)

/* Adds `depth` rows, each times its number of x, to the sums, which start with zero if
 * `is_first`. Until `is_last`, sums are in the order of store_in_order's input. `depth` is
 * a constant except at the end. */
TF_INLINE void across_rows(enum width width, const struct reading *reading,
                           const float *x, const char *rows, ptrdiff_t step,
                           size_t depth, size_t columns, float *sums, int is_first,
                           int is_last)
{
    const int n = MOST / size_of(width); /* vectors of sums */
    for (size_t j = 0; j < columns; j += 16 * (size_t)n, rows += 64, sums += 16 * n) {
        __m512 total[MOST];
        UNROLLED for (int v = 0; v < n; v++) {
            total[v] = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(sums + 16 * v);
        }
        UNROLLED for (size_t k = 0; k < depth; k++) {
            __m512 numbers[MOST];
            const __m512i items = _mm512_loadu_si512(rows + (ptrdiff_t)k * step);
            numbers_of_words(width, reading, items, numbers);
            UNROLLED for (int v = 0; v < n; v++) {
                total[v] = _mm512_fmadd_ps(numbers[v], _mm512_set1_ps(x[k]), total[v]);
            }
        }
        if (is_last) {
            store_in_order(width, total, sums);
        } else {
            UNROLLED for (int v = 0; v < n; v++) {
                _mm512_storeu_ps(sums + 16 * v, total[v]);
            }
        }
    }
}

TF_INLINE void across(enum width width, const struct tf_gemv_operands *in,
                      size_t depth, size_t columns, float *sums)
{
    const struct reading reading = begin_reading(width, in->table, in->used);
    const char *rows = in->rows;
    size_t k = 0;
    for (; k + TOGETHER < depth; k += TOGETHER, rows += TOGETHER * in->step) {
        across_rows(width, &reading, in->x + k, rows, in->step, TOGETHER, columns, sums,
                    k == 0, 0);
    }
    if (k + TOGETHER == depth) {
        across_rows(width, &reading, in->x + k, rows, in->step, TOGETHER, columns, sums,
                    k == 0, 1);
    } else {
        across_rows(width, &reading, in->x + k, rows, in->step, depth - k, columns, sums,
                    k == 0, 1);
    }
}

static void across_bf16(const struct tf_gemv_operands *in, size_t depth,
                        size_t columns, float *sums)
{
    across(BF16, in, depth, columns, sums);
}

#if defined(__AVX512VBMI__)
/* Also needs in->table, that of the format. */
static void across_bytes(const struct tf_gemv_operands *in, size_t depth,
                         size_t columns, float *sums)
{
    if (in->table->halved) {
        across(HALVED, in, depth, columns, sums);
    } else {
        across(BYTES, in, depth, columns, sums);
    }
}
#endif

#elif defined(__AVX2__) && defined(__FMA__)

enum { STEP = 32, LANES = 8 }; /* bytes of a row, and sums, in a vector */

/* Adds STEP bytes of `depth` rows, each times its number of x, to the sums. FINITE items are
 * of a format without Inf: where one is NaN, its sum becomes NaN. */
TF_INLINE void across_step(enum width width, const struct tf_gemv_operands *in,
                           const struct reading *reading, size_t k, const char *rows,
                           size_t depth, float *sums, int is_last)
{
    const int n = MOST / size_of(width); /* vectors of sums */
    __m256 total[MOST];
    struct seen seen = seen_nothing();
    UNROLLED for (int v = 0; v < n; v++) {
        total[v] = k == 0 ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + LANES * v);
    }
    UNROLLED for (size_t i = 0; i < depth; i++) {
        __m256 numbers[MOST];
        const __m256i items =
            _mm256_loadu_si256((const void *)(rows + (ptrdiff_t)i * in->step));
        numbers_of_words(width, reading, items, &seen, numbers);
        const __m256 factor = _mm256_broadcast_ss(in->x + k + i);
        UNROLLED for (int v = 0; v < n; v++) {
            total[v] = _mm256_fmadd_ps(numbers[v], factor, total[v]);
        }
    }
    const __m256i specials = seen_specials(reading, seen);
    if (width == FINITE && !_mm256_testz_si256(specials, specials)) {
        UNROLLED for (int v = 0; v < n; v++) {
            const __m256i is_nan =
                _mm256_srai_epi32(_mm256_slli_epi32(specials, 24 - 8 * v), 31);
            total[v] = _mm256_or_ps(total[v], _mm256_castsi256_ps(is_nan));
        }
    }
    if (is_last) {
        store_in_order(width, total, sums);
        return;
    }
    UNROLLED for (int v = 0; v < n; v++) {
        _mm256_storeu_ps(sums + LANES * v, total[v]);
    }
}

TF_INLINE void across(enum width width, const struct tf_gemv_operands *in, size_t depth,
                      size_t columns, float *sums)
{
    const struct reading reading = begin_reading(width, in->table, in->used);
    for (size_t k = 0, count; k < depth; k += count) {
        count = depth - k < TOGETHER ? depth - k : TOGETHER;
        const char *rows = in->rows + (ptrdiff_t)k * in->step;
        const int is_last = k + count == depth;
        float *out = sums;
        for (size_t j = 0; j < columns * (size_t)size_of(width); j += STEP) {
            if (count == TOGETHER) {
                across_step(width, in, &reading, k, rows + j, TOGETHER, out, is_last);
            } else {
                across_step(width, in, &reading, k, rows + j, count, out, is_last);
            }
            out += STEP / size_of(width);
        }
    }
}

static void across_bf16(const struct tf_gemv_operands *in, size_t depth, size_t columns,
                        float *sums)
{
    across(BF16, in, depth, columns, sums);
}

/* Also needs in->table, that of the format. */
static void across_bytes(const struct tf_gemv_operands *in, size_t depth, size_t columns,
                         float *sums)
{
    const struct tf_byte_as_bf16 facts = in->table->as_bf16[0];
    if (!facts.is_possible) {
        across(BYTES, in, depth, columns, sums);
    } else if (facts.has_infinity) {
        across(WITH_INF, in, depth, columns, sums);
    } else {
        across(FINITE, in, depth, columns, sums);
    }
}

#endif

const struct tf_gemv_kernels TF_NAME(tf_gemv_kernels) = {
    .across_singles = across_singles,
#if defined(__AVX512F__) && defined(__AVX512BW__)
    .across_bf16 = across_bf16,
#elif defined(__AVX2__) && defined(__FMA__)
    .across_bf16 = across_bf16,
    .across_bytes = across_bytes,
#endif
#if defined(__AVX512VBMI__)
    .across_bytes = across_bytes,
#endif
};
const struct tf_gemv_kernels TF_NAME(tf_gemv_of_singles) = {
    .across_singles = across_singles,
};
