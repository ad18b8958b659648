/* Digests of operands from sampled elements. */
#include "programs/blas/operand.h"

#include <string.h>

#include "programs/call_sites/call_sites.h"

enum { SAMPLED = 16 }; /* a power of two */

static uint64_t bits_at(const char *item, int wide)
{
    uint64_t bits;
    const double number = wide ? *(const double *)item : *(const float *)item;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* The elements are spread over rows and over columns. */
static uint64_t digest_of(const struct tf_blas_matrix *x, char type, int is_transposed)
{
    const int wide = type == 'd' || type == 'z';
    const ptrdiff_t short_side = is_transposed ? x->columns : x->rows;
    const ptrdiff_t long_side = is_transposed ? x->rows : x->columns;
    const ptrdiff_t down = x->strides[is_transposed], across = x->strides[!is_transposed];
    uint64_t digest = tf_site_key((uint64_t)short_side, (uint64_t)long_side);
    for (ptrdiff_t t = 0; t < SAMPLED; t++) {
        const ptrdiff_t i = short_side * (2 * t + 1) / (2 * SAMPLED);
        const ptrdiff_t at = (5 * t + 3) % SAMPLED;
        const ptrdiff_t j = long_side * (2 * at + 1) / (2 * SAMPLED);
        const char *item = x->data + i * down + j * across;
        digest = tf_site_key(digest, bits_at(item, wide));
        if (tf_blas_is_complex(type)) {
            digest = tf_site_key(digest, bits_at(item + (wide ? 8 : 4), wide));
        }
    }
    return digest;
}

uint64_t tf_operand_digest(const struct tf_blas_matrix *x, char type)
{
    if (x->shape != TF_FULL || x->rows < 2 || x->columns < 2) {
        return 0;
    }
    uint64_t digest = digest_of(x, type, x->rows > x->columns);
    if (x->rows == x->columns) {
        digest += digest_of(x, type, 1);
    }
    return digest | 1;
}

struct tf_operands tf_operands_of(const struct tf_blas_product *product)
{
    const struct tf_blas_matrix *a = &product->a, *b = &product->b;
    struct tf_operands found = {
        {tf_operand_digest(a, product->type), tf_operand_digest(b, product->type)}, {a, b}};
    if (!found.digests[0]) {
        found = (struct tf_operands){{found.digests[1], 0}, {b, a}};
    }
    return found;
}
