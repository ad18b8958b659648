/* Chains of float64 fused multiply-adds: a micro-tile of C from panels of A and B. */
#include "runtime/kernels/common.h"
#include "runtime/kernels/intrinsics.h"
#include "tensor_core/kernels.h"

#if defined(__AVX512F__)
typedef __m512d vector;
#define BROADCAST(x) _mm512_set1_pd(x)
#define LOAD(p)      _mm512_loadu_pd(p)
#define STORE(p, x)  _mm512_storeu_pd(p, x)
#define PLUS(x, y)   _mm512_add_pd(x, y)
#define FMA(x, y, z) _mm512_fmadd_pd(x, y, z)
enum { WIDTH = 8, ACROSS = 2, ROWS = 12, BEATS_BLAS = 1 };
#elif defined(__FMA__)
typedef __m256d vector;
#define BROADCAST(x) _mm256_set1_pd(x)
#define LOAD(p)      _mm256_loadu_pd(p)
#define STORE(p, x)  _mm256_storeu_pd(p, x)
#define PLUS(x, y)   _mm256_add_pd(x, y)
#define FMA(x, y, z) _mm256_fmadd_pd(x, y, z)
enum { WIDTH = 4, ACROSS = 2, ROWS = 6, BEATS_BLAS = 1 };
#elif defined(__aarch64__)
typedef float64x2_t vector;
#define BROADCAST(x) vdupq_n_f64(x)
#define LOAD(p)      vld1q_f64(p)
#define STORE(p, x)  vst1q_f64(p, x)
#define PLUS(x, y)   vaddq_f64(x, y)
#define FMA(x, y, z) vfmaq_f64(z, x, y)
enum { WIDTH = 2, ACROSS = 4, ROWS = 6, BEATS_BLAS = 0 };
#else /* calls fma of the C library */
typedef double vector;
#define BROADCAST(x) (x)
#define LOAD(p)      (*(p))
#define STORE(p, x)  (*(p) = (x))
#define PLUS(x, y)   ((x) + (y))
#define FMA(x, y, z) __builtin_fma(x, y, z)
enum { WIDTH = 1, ACROSS = 2, ROWS = 6, BEATS_BLAS = 0 };
#endif

enum { COLUMNS = WIDTH * ACROSS };

_Static_assert(TF_FMA_MC % ROWS == 0 && TF_FMA_NC % COLUMNS == 0, "whole micro-tiles");

/* Adds products to a micro-tile of C. `rows` is a constant in each inlined copy. */
TF_INLINE void multiply(const double *a, const double *b, size_t depth, double *c,
                        size_t ldc, enum tf_chain_start start, int rows)
{
    vector sums[ROWS][ACROSS];
    UNROLLED for (int i = 0; i < rows; i++) {
        UNROLLED for (int v = 0; v < ACROSS; v++) {
            const double *place = c + (size_t)i * ldc + v * WIDTH;
            sums[i][v] = start == TF_CHAIN_CONTINUES ? LOAD(place) : BROADCAST(0);
        }
    }
    for (size_t k = 0; k < depth; k++, a += ROWS, b += COLUMNS) {
        UNROLLED for (int i = 0; i < rows; i++) {
            const vector factor = BROADCAST(a[i]);
            UNROLLED for (int v = 0; v < ACROSS; v++) {
                sums[i][v] = FMA(factor, LOAD(b + v * WIDTH), sums[i][v]);
            }
        }
    }
    UNROLLED for (int i = 0; i < rows; i++) {
        UNROLLED for (int v = 0; v < ACROSS; v++) {
            double *place = c + (size_t)i * ldc + v * WIDTH;
            STORE(place, start == TF_CHAIN_IS_ADDED ? PLUS(LOAD(place), sums[i][v])
                                                    : sums[i][v]);
        }
    }
}

/* Chooses a micro-tile of all, half or a sixth of the rows, so that the last rows of a
 * matrix cost about as much as their number. */
static void chains(const double *a, const double *b, size_t depth, size_t rows, double *c,
                   size_t ldc, enum tf_chain_start start)
{
    if (rows > ROWS / 2) {
        multiply(a, b, depth, c, ldc, start, ROWS);
    } else if (rows > ROWS / 6) {
        multiply(a, b, depth, c, ldc, start, ROWS / 2);
    } else {
        multiply(a, b, depth, c, ldc, start, ROWS / 6);
    }
}

TF_INLINE double number_at(const char *item, int is_float)
{
    float narrow;
    double wide;
    if (is_float) {
        memcpy(&narrow, item, sizeof narrow);
        return narrow;
    }
    memcpy(&wide, item, sizeof wide);
    return wide;
}

/* Packs lines along k into panels of `width` lines, k after k, with zeros for missing
 * lines. Elements need no alignment. The last two arguments are constants in each inlined
 * copy. */
TF_INLINE void pack(const char *lines, ptrdiff_t stride, ptrdiff_t along, size_t count,
                    size_t depth, double *out, size_t width, int is_float)
{
    const ptrdiff_t size = is_float ? sizeof(float) : sizeof(double);
    for (size_t line = 0; line < count; line += width) {
        const char *from = lines + (ptrdiff_t)line * stride;
        const size_t here = count - line < width ? count - line : width;
        for (size_t k = 0; k < depth; k++, from += along, out += width) {
            if (here == width && stride == size) { /* both are constants */
                for (size_t i = 0; i < width; i++) {
                    out[i] = number_at(from + (ptrdiff_t)i * size, is_float);
                }
                continue;
            }
            if (here < width) {
                memset(out, 0, width * sizeof *out);
            }
            for (size_t i = 0; i < here; i++) {
                out[i] = number_at(from + (ptrdiff_t)i * stride, is_float);
            }
        }
    }
}

static void pack_rows(const char *lines, ptrdiff_t stride, ptrdiff_t along, size_t count,
                      size_t depth, double *out, int is_float)
{
    if (is_float) {
        pack(lines, stride, along, count, depth, out, ROWS, 1);
    } else {
        pack(lines, stride, along, count, depth, out, ROWS, 0);
    }
}

static void pack_columns(const char *lines, ptrdiff_t stride, ptrdiff_t along,
                         size_t count, size_t depth, double *out, int is_float)
{
    if (is_float) {
        pack(lines, stride, along, count, depth, out, COLUMNS, 1);
    } else {
        pack(lines, stride, along, count, depth, out, COLUMNS, 0);
    }
}

const struct tf_fma_kernels TF_PLAIN_NAME(tf_fma_kernels) = {
    .rows = ROWS,
    .columns = COLUMNS,
    .beats_blas = BEATS_BLAS,
    .chains = chains,
    .pack_rows = pack_rows,
    .pack_columns = pack_columns,
};
