/* Products of complex64 matrices by four real ones. */
#include "matmul/complex64.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/fp_environment.h"
#include "formats/number_kinds.h"

/* The real numbers of a complex matrix, or its imaginary ones. */
static struct tf_matrix real_or_imaginary(struct tf_matrix x, int imaginary)
{
    x.data += imaginary ? sizeof(float) : 0;
    x.kind = TF_FLOAT32;
    return x;
}

/* x + y, or x - y; what this raises is as the contract has it for sums. */
static float join(float x, float y, int minus, unsigned *flags)
{
    const float sum = minus ? x - y : x + y;
    if (isnan(sum)) {
        *flags |= isnan(x) || isnan(y) ? 0 : TF_INVALID;
        return NAN;
    }
    *flags |= isinf(sum) && isfinite(x) && isfinite(y) ? TF_OVER : 0;
    return sum;
}

int tf_matmul_complex64(const struct tf_precision *precision, int conjugated,
                        struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                        ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, ptrdiff_t count)
{
    const ptrdiff_t size = m * n * count;
    if (size == 0) {
        return 0;
    }
    float *parts = malloc(4 * (size_t)size * sizeof(float));
    if (!parts) {
        return -1;
    }
    fexcept_t raised_before; /* what a failure goes back to */
    fegetexceptflag(&raised_before, FE_ALL_EXCEPT);
    /* In this order: ar br, ai bi, ar bi, ai br. */
    for (int part = 0; part < 4; part++) {
        const struct tf_matrix into = {(char *)(parts + part * size),
                                       {n * (ptrdiff_t)sizeof(float), sizeof(float)},
                                       m * n * (ptrdiff_t)sizeof(float),
                                       TF_FLOAT32};
        const int left = part & 1, right = part == 1 || part == 2;
        const struct tf_matrix x = real_or_imaginary(a, left);
        const struct tf_matrix y = real_or_imaginary(b, right);
        if (tf_matmul(precision, x, y, into, m, n, k, count) < 0) {
            fesetexceptflag(&raised_before, FE_ALL_EXCEPT);
            free(parts);
            return -1;
        }
    }
    const struct tf_fp saved = tf_fp_begin();
    const float *part = parts;
    unsigned flags = 0;
    for (ptrdiff_t l = 0; l < count; l++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            char *row = c.data + l * c.step + i * c.strides[0];
            for (ptrdiff_t j = 0; j < n; j++, part++) {
                float *out = (float *)(row + j * c.strides[1]);
                out[0] = join(part[0], part[size], !conjugated, &flags);
                out[1] = join(part[2 * size], part[3 * size], conjugated, &flags);
            }
        }
    }
    free(parts);
    tf_fp_end(saved, flags);
    return 0;
}
