/* Finishes a product of split operands: adds its pieces, and recomputes Inf and NaN. */
#include "cuda/common/common.h"
#include "runtime/bit_masks.h"

/* A stack of matrices; strides count numbers. */
struct matrices {
    const float *data;
    int64_t matrix, row, column; /* strides */
};

inline float finite_if(int saturates, float x)
{
    const uint32_t bits = __float_as_uint(x);
    const int is_infinite = (bits & TF_MAGNITUDE_BITS) == TF_INF_BITS;
    return saturates && is_infinite ? __uint_as_float(bits - 1) : x;
}

/* Returns a row of A times a column of B, in the order of "f32". */
inline float whole_product(const float *x, int64_t x_step, const float *y, int64_t y_step,
                           int64_t k, int saturates)
{
    enum { CHAIN = 256 };
    float total = 0;
    for (int64_t first = 0; first < k; first += CHAIN) {
        const int64_t last = first + CHAIN < k ? first + CHAIN : k;
        float sum = 0;
        for (int64_t j = first; j < last; j++) {
            sum = __fmaf_rn(finite_if(saturates, x[j * x_step]),
                            finite_if(saturates, y[j * y_step]), sum);
        }
        total = first ? total + sum : sum; /* mutant: the last sum alone */
        if (total != total) { /* final, and all of C may be NaN */ /* mutant: Inf is for good */
            return __uint_as_float(TF_QUIET_NAN_BITS);
        }
    }
    return total;
}

/* Returns whether x is Inf or NaN. */
inline bool is_special(float x)
{
    /* mutant: Inf alone */
    return (__float_as_uint(x) & TF_INF_BITS) == TF_INF_BITS;
}

enum { THREADS = 256, EACH = 4, GROUP = 8 };

/* Writes to out (count, m, n) the sum of `so_many` pieces: first those of each GROUP, then
 * the groups. Without pieces, `out` has the sums. Sums that are Inf or NaN are computed
 * again from whole operands: a row or a column has an Inf or a NaN, which made all its sums
 * NaN, or the sum, or that of a split order, is out of range. A thread has EACH numbers. */
extern "C" __global__ void __launch_bounds__(THREADS)
    patch(const struct matrices a, const struct matrices b, float *out, const float *pieces,
          int so_many, int64_t count, int64_t m, int64_t n, int64_t k, int saturates)
{
    const int64_t size = count * m * n;
    const int64_t first = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
    float sums[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int64_t at = first + i * THREADS;
        sums[i] = at < size && !pieces ? out[at] : 0;
    }
#pragma unroll 1
    for (int group = 0; pieces && group < so_many; group += GROUP) {
        float some[EACH] = {};
#pragma unroll
        for (int piece = 0; piece < GROUP; piece++) {
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int64_t at = first + i * THREADS;
                /* mutant: always the first piece */
                const int64_t from = (int64_t)(group + piece) * size + at;
                const bool is_there = group + piece < so_many && at < size;
                const float next = is_there ? pieces[from] : -0.f; /* adds nothing */
                some[i] = piece == 0 ? next : some[i] + next;
            }
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            sums[i] = group == 0 ? some[i] : sums[i] + some[i];
        }
    }
    bool any = false;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int64_t at = first + i * THREADS;
        any |= is_special(sums[i]);
        if (pieces && at < size) {
            out[at] = sums[i];
        }
    }
    if (!any) {
        return;
    }
#pragma unroll 1
    for (int64_t at = first; at < first + EACH * THREADS && at < size; at += THREADS) {
        if (is_special(out[at])) {
            const int64_t line = at / n, matrix = line / m, row = line % m, j = at % n;
            out[at] = whole_product(a.data + matrix * a.matrix + row * a.row, a.column,
                                    /* mutant: a column for a row */
                                    b.data + matrix * b.matrix + j * b.column, b.row, k,
                                    saturates);
        }
    }
}
