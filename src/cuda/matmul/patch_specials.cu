/* What a product of parts leaves to do. */
#include "cuda/common/common.h"
#include "runtime/bit_masks.h"

/* A matrix stack; strides count numbers. */
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

/* A row of A times a column of B in the order of "f32". */
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
        total = first ? total + sum : sum; /* fault: the last sum alone */
        if (total != total) { /* for good: all of C may be so */ /* fault: Inf is for good */
            return __uint_as_float(TF_QUIET_NAN_BITS);
        }
    }
    return total;
}

/* Sums that are no numbers are computed anew from the whole operands: a row or a column
 * has an Inf or a NaN, which made NaN of all of its sums; or the sum, or that of a split
 * order, is beyond the range. */
extern "C" __global__ void patch(struct matrices a, struct matrices b, float *sums,
                                 int64_t count, int64_t m, int64_t n, int64_t k,
                                 int saturates)
{
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const int64_t top = (int64_t)blockIdx.y * blockDim.y + threadIdx.y;
#pragma unroll 1
    for (int64_t matrix = blockIdx.z; matrix < count; matrix += gridDim.z) {
#pragma unroll 1
        for (int64_t row = top; row < m; row += (int64_t)gridDim.y * blockDim.y) {
            const float *x = a.data + matrix * a.matrix + row * a.row;
            float *sum = sums + (matrix * m + row) * n;
#pragma unroll 1
            for (int64_t j = first; j < n; j += (int64_t)gridDim.x * blockDim.x) {
                /* fault: Inf alone */
                if ((__float_as_uint(sum[j]) & TF_INF_BITS) == TF_INF_BITS) {
                    const float *y = b.data + matrix * b.matrix + j * b.column;
                    /* fault: a column for a row */
                    sum[j] = whole_product(x, a.column, y, b.row, k, saturates);
                }
            }
        }
    }
}
