/* Products in BLAS's shape. */
#include "matmul/blas_api.h"

#include <string.h>

#include "formats/casts.h"

static int transposes(char trans) { return strchr("TtCc", trans) != NULL; }

static struct tf_matrix columns_from(const void *data, int kind, ptrdiff_t ld,
                                     int trans)
{
    const ptrdiff_t size = (ptrdiff_t)tf_kind_size(kind);
    const struct tf_matrix x = {(char *)data, {size, ld * size}, 0, kind};
    return trans ? tf_transposed(x) : x;
}

int tf_blas_gemm(const struct tf_precision *precision, struct tf_kinds kinds, char transa,
            char transb, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, float alpha,
            const void *a, ptrdiff_t lda, const void *b, ptrdiff_t ldb, float beta,
            void *c, ptrdiff_t ldc)
{
    enum { TRANSA = 1, TRANSB, M, N, K, LDA = 8, LDB = 10, LDC = 13 };
    const ptrdiff_t rows_of_a = transposes(transa) ? k : m;
    const ptrdiff_t rows_of_b = transposes(transb) ? n : k;
    const struct {
        int wrong, argument;
    } checks[] = {
        {!transa || !strchr("NnTtCc", transa), TRANSA},
        {!transb || !strchr("NnTtCc", transb), TRANSB},
        {m < 0, M},
        {n < 0, N},
        {k < 0, K},
        {lda < 1 || lda < rows_of_a, LDA},
        {ldb < 1 || ldb < rows_of_b, LDB},
        {ldc < 1 || ldc < m, LDC},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].wrong) {
            return checks[i].argument;
        }
    }
    if (m == 0 || n == 0 || ((alpha == 0 || k == 0) && beta == 1)) {
        return 0;
    }
    return tf_gemm_strided(precision, columns_from(a, kinds.a, lda, transposes(transa)),
                       columns_from(b, kinds.b, ldb, transposes(transb)),
                       columns_from(c, kinds.c, ldc, 0), m, n, k, 1, alpha, beta);
}
