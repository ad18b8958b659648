/* Plans matrix products, and computes each in the way of its plan. */
#include "matmul/matmul.h"

#include <string.h>

#include "matmul/bf16_dot.h"
#include "matmul/dot.h"
#include "matmul/operand_scales.h"
#include "matmul/plan.h"
#include "matmul/small.h"
#include "matmul/tile.h"
#include "runtime/fp_environment.h"
#include "runtime/reserve.h"
#include "runtime/thread_pool.h"

void tf_matmul_prepare(void)
{
    tf_probe_bf16_dot();
    tf_workers_prepare(sizeof(struct tf_workspace));
}

/* Finds the scales of the lines of an operand in matrix `number` of a stack. Copies those
 * of the first matrix if the stack repeats it. */
static void scale_operand(const struct tf_product *product, struct tf_operand x,
                          ptrdiff_t step, ptrdiff_t lines, float greatest,
                          ptrdiff_t number, float *scales, struct tf_watch *watch)
{
    const int own = product->precision->scaling == TF_SCALED_LINES;
    if (number > 0 && step == 0) {
        const float *first = scales - number * (product->m + product->n);
        memcpy(scales, first, (size_t)lines * sizeof *scales);
        return;
    }
    x.data += number * step;
    tf_find_scales(x, lines, product->k, own, greatest, scales, watch);
}

/* Finds a scale for each row of A and column of B, matrix by matrix, in plan->scales. This
 * memory is smaller than the operands by a factor of k. Returns -1 if memory is short or
 * the call was stopped. */
static int scale_operands(struct tf_plan_of_product *plan)
{
    const struct tf_product *product = &plan->product;
    const ptrdiff_t m = product->m, n = product->n;
    if (product->precision->scaling == TF_UNSCALED || product->alpha == 0) {
        return 0;
    }
    plan->scales =
        tf_room((size_t)product->count * (size_t)(m + n) * sizeof *plan->scales);
    if (!plan->scales) {
        return -1;
    }
    struct tf_watch watch = {0};
    float *rows = plan->scales;
    for (ptrdiff_t number = 0; number < product->count; number++, rows += m + n) {
        scale_operand(product, plan->a, product->a.step, m,
                      product->greatest[plan->swapped], number, rows, &watch);
        scale_operand(product, plan->b, product->b.step, n,
                      product->greatest[!plan->swapped], number, rows + m, &watch);
        if (tf_is_stopped(&watch, 1)) {
            return -1;
        }
    }
    return 0;
}

static int multiply_tiles(struct tf_plan_of_product *plan)
{
    const struct tf_fp saved = tf_fp_begin();
    unsigned flags = 0;
    const int failed = scale_operands(plan) ||
                       tf_compute_tiles(&plan->tiles, tf_multiply_tile, plan, &flags);
    tf_room_free(plan->scales);
    tf_fp_end(saved, flags);
    return failed ? -1 : 0;
}

static int multiply(struct tf_plan_of_product *plan)
{
    tf_plan_product(plan);
    switch (plan->way) {
    case TF_NOTHING: return 0;
    case TF_SHORT_DOTS: return tf_short_dots(plan);
    case TF_SMALL_MATRICES: tf_multiply_small(plan); return 0;
    default: return multiply_tiles(plan);
    }
}

int tf_gemm_strided(const struct tf_precision *precision, struct tf_matrix a,
                    struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
                    ptrdiff_t k, ptrdiff_t count, float alpha, float beta)
{
    struct tf_plan_of_product plan;
    plan.product = (struct tf_product){precision, a,     b,     c,    m,  n,
                                       k,         count, alpha, beta, {0}};
    return multiply(&plan);
}

int tf_matmul_part(const struct tf_precision *precision, const float greatest[2],
                   struct tf_matrix a, struct tf_matrix b, struct tf_matrix c,
                   ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    struct tf_plan_of_product plan;
    plan.product = (struct tf_product){
        precision, a, b, c, m, n, k, 1, 1, 0, {greatest[0], greatest[1]}};
    return multiply(&plan);
}

int tf_matmul(const struct tf_precision *precision, struct tf_matrix a,
              struct tf_matrix b, struct tf_matrix c, ptrdiff_t m, ptrdiff_t n,
              ptrdiff_t k, ptrdiff_t count)
{
    struct tf_plan_of_product plan;
    plan.product = (struct tf_product){precision, a, b, c, m, n, k, count, 1, 0, {0}};
    return multiply(&plan);
}
