#include "blas/blas_call.h"

int tf_blas_compute(const struct tf_precision *precision,
                    const struct tf_blas_product *product)
{
    (void)precision, (void)product;
    return -1;
}

void tf_blas_line(const struct tf_blas_matrix *x, char type, int axis, ptrdiff_t index,
                  double *out, double *imaginary)
{
    (void)x, (void)type, (void)axis, (void)index, (void)out, (void)imaginary;
}
