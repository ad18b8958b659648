#include "blas/blas_call.h"

int tf_blas_take_apart(const struct tf_blas_name *name,
                       const struct tf_blas_arguments *arguments, tf_blas_each_fn *each,
                       void *context)
{
    (void)name, (void)arguments, (void)each, (void)context;
    return -2;
}

double tf_blas_multiply_adds(const struct tf_blas_product *product)
{
    return (double)product->m * (double)product->n * (double)product->k;
}
