/* Products of complex matrices by four real ones. */
#include "matmul/complex.h"

#include <fenv.h>
#include <math.h>
#include <stdlib.h>

#include "formats/casts.h"
#include "runtime/fp_environment.h"

/* The real numbers of a complex matrix, or its imaginary ones. */
static struct tf_matrix real_or_imaginary(struct tf_matrix x, int imaginary)
{
    x.data += imaginary ? tf_kind_size(x.kind) : 0;
    return x;
}

/* Writes x + y; what this raises is as the contract has it for sums. In float64 a sum of
 * float32 numbers is so exact that rounding it again changes nothing. */
static void join(double x, double y, int kind, char *out, unsigned *flags)
{
    double sum = kind == TF_FLOAT32 ? (float)(x + y) : x + y;
    if (isnan(sum)) {
        *flags |= isnan(x) || isnan(y) ? 0 : TF_INVALID;
        sum = NAN;
    } else {
        *flags |= isinf(sum) && isfinite(x) && isfinite(y) ? TF_OVER : 0;
    }
    if (kind == TF_FLOAT32) {
        *(float *)out = (float)sum;
    } else {
        *(double *)out = sum;
    }
}

/* Room for four products; NULL if there is none. */
static float *make_parts(ptrdiff_t m, ptrdiff_t n, ptrdiff_t count)
{
    const size_t most = PTRDIFF_MAX / (4 * sizeof(float));
    const size_t rows = (size_t)m, columns = (size_t)n;
    if (rows > most / columns || rows * columns > most / (size_t)count) {
        return NULL;
    }
    return malloc(4 * rows * columns * (size_t)count * sizeof(float));
}

int tf_matmul_complex(const struct tf_precision *precision,
                      struct tf_conjugates conjugates, struct tf_matrix a,
                      struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                      ptrdiff_t k, ptrdiff_t count)
{
    if (m == 0 || n == 0 || count == 0) {
        return 0;
    }
    float *parts = make_parts(m, n, count);
    if (!parts) {
        return -1;
    }
    const ptrdiff_t size = m * n * count;
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
    const ptrdiff_t imaginary = (ptrdiff_t)tf_kind_size(c.kind);
    const double sign_a = conjugates.a ? -1 : 1, sign_b = conjugates.b ? -1 : 1;
    const float *part = parts;
    unsigned flags = 0;
    for (ptrdiff_t l = 0; l < count; l++) {
        for (ptrdiff_t i = 0; i < m; i++) {
            char *row = c.data + l * c.step + i * c.strides[0];
            for (ptrdiff_t j = 0; j < n; j++, part++) {
                char *out = row + j * c.strides[1];
                join(part[0], -sign_a * sign_b * part[size], c.kind, out, &flags);
                join(sign_b * part[2 * size], sign_a * part[3 * size], c.kind,
                     out + imaginary, &flags);
            }
        }
    }
    free(parts);
    tf_fp_end(saved, precision->silent ? 0 : flags);
    return 0;
}
