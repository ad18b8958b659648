/* Computes digests of operands from sampled elements. */
#include "programs/blas/operand.h"

#include <string.h>

#include "programs/call_sites/call_sites.h"

enum { SAMPLED = 16 }; /* a power of two */

static uint64_t bits_at(const char *item, int wide)
{
    uint64_t bits;
    const double number = wide ? *(const double *)item : *(const float *)item;
    memcpy(&bits, &number, sizeof bits);
    bits *= UINT64_C(0xBF58476D1CE4E5B9);
    return bits ^ bits >> 32;
}

static uint64_t number_at(const char *item, char type)
{
    const int wide = type == 'd' || type == 'z';
    const uint64_t bits = bits_at(item, wide);
    return tf_blas_is_complex(type) ? bits + 3 * bits_at(item + (wide ? 8 : 4), wide) : bits;
}

/* Samples elements that are spread over rows and over columns; in a square matrix, pairs of
 * elements (i, j) and (j, i). */
uint64_t tf_operand_digest(const struct tf_blas_matrix *x, char type)
{
    if (x->shape != TF_FULL || x->rows < 2 || x->columns < 2) {
        return 0;
    }
    const int turned = x->rows > x->columns, is_square = x->rows == x->columns;
    const ptrdiff_t less = turned ? x->columns : x->rows, more = turned ? x->rows : x->columns;
    const ptrdiff_t down = x->strides[turned], across = x->strides[!turned];
    uint64_t sum = 0, weight = UINT64_C(0x9E3779B97F4A7C15);
    for (ptrdiff_t t = 0; t < SAMPLED; t++) {
        const ptrdiff_t i = less * (2 * t + 1) / (2 * SAMPLED);
        const ptrdiff_t at = (5 * t + 3) % SAMPLED;
        const ptrdiff_t j = more * (2 * at + 1) / (2 * SAMPLED);
        uint64_t number = number_at(x->data + i * down + j * across, type);
        if (is_square) {
            number += number_at(x->data + j * down + i * across, type);
        }
        sum += number * weight;
        weight += UINT64_C(0x3C6EF372FE94F82A); /* even: weights stay odd */
    }
    return tf_site_key(sum, tf_site_key((uint64_t)less, (uint64_t)more));
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

static int copy_product(void *context, const struct tf_blas_product *product)
{
    *(struct tf_blas_product *)context = *product;
    return 1;
}

struct tf_operands tf_operands_seen(const struct tf_operands_seen *seen,
                                    struct tf_blas_product *product)
{
    memset(product, 0, sizeof *product);
    if (seen->product) {
        *product = *seen->product;
    } else {
        tf_blas_take_apart(seen->name, seen->arguments, copy_product, product);
    }
    return tf_operands_of(product);
}
