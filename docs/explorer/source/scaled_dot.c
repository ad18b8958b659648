/* A dot product as the block-scaled instructions of src/tensor_core/scaled_mma_model.h
 * compute it. */
#include "dot_operands.h"
#include "mma_steps.h"

static struct tf_scaled_model model;
static uint8_t scales_a[INPUT_LIST_ROOM], scales_b[INPUT_LIST_ROOM]; /* of blocks */

/* Reads the members of the model from list 2, in their order; returns the accumulator. */
static uint64_t read_model(void)
{
    const uint64_t *words = input_list[2];
    int32_t *const members[] = {
        &model.depth,  &model.block,  &model.group,      &model.fraction,
        &model.powers, &model.least_a, &model.least_b,   &model.floor,
        &model.zero_c, &model.zero_terms, &model.negative_zero};
    const int count = sizeof members / sizeof members[0];
    for (int i = 0; i < count; i++) {
        *members[i] = (int32_t)words[i];
    }
    return words[count];
}

static const char *read_scales(int32_t n)
{
    const int32_t blocks = (n + model.block - 1) / model.block;
    for (int32_t block = 0; block < blocks; block++) {
        if (input_list[3][block] > 0xFF || input_list[4][block] > 0xFF) {
            return "a scale's code has 8 bits";
        }
        scales_a[block] = (uint8_t)input_list[3][block];
        scales_b[block] = (uint8_t)input_list[4][block];
    }
    return 0;
}

static int write_nan_scales(const int32_t *ks, int32_t count)
{
    int found = 0;
    for (int32_t i = 0; i < count; i += model.block) {
        const int32_t block = ks[i] / model.block;
        for (int b = 0; b < 2; b++) {
            if (!tf_scaled_is_nan(&model, (b ? scales_b : scales_a)[block])) {
                continue;
            }
            found = 1;
            json_begin_text();
            json_put(b ? "the scale of b, block " : "the scale of a, block ");
            json_put_integer(block);
            json_put(", is NaN");
            json_end_text();
        }
    }
    return found;
}

/* -- the call ------------------------------------------------------------------------ */

static void exact_scale(struct exact *x, uint32_t code)
{
    const struct tf_mma_number s = tf_scaled_scale(&model, code);
    if (tf_scaled_is_nan(&model, code)) {
        exact_set_special(x, 0, TF_NAN);
    } else {
        exact_set(x, 0, s.significand, s.exponent - TF_SCALED_BITS);
    }
}

/* Computes the scaled dot product and the accumulator, without any rounding. */
static void exact_sum(struct exact *sum, uint64_t start)
{
    struct exact factor, scale;
    any_exact(sum, ANY_FLOAT32, start);
    for (int32_t k = 0; k < operands.n; k++) {
        exact_scale(&factor, scales_a[k / model.block]);
        exact_scale(&scale, scales_b[k / model.block]);
        if (exact_is_finite(&factor) && exact_is_finite(&scale)) {
            exact_multiply(&factor, &factor, &scale);
        } else {
            exact_set_special(&factor, 0, TF_NAN);
        }
        add_product(sum, k, &factor);
    }
}

EXPORTED(scaled_dot) int32_t page_scaled_dot(int a, int b, int32_t n);

int32_t page_scaled_dot(int a, int b, int32_t n)
{
    const uint64_t start = read_model();
    const char *why = read_operands(a, b, n);
    why = why ? why : read_scales(n);
    if (!any_is_code(ANY_FLOAT32, start)) {
        why = "the accumulator's code has more bits than float32";
    }
    if (why) {
        return json_failure(why);
    }
    const struct chain how = {0, 0, model.group, write_nan_scales};
    json_begin();
    json_open('{');
    json_key("steps");
    json_open('[');
    trace.first = 0;
    const uint32_t result = tf_scaled_chain(&model, operands.a, 1, scales_a, operands.b, 1,
                                            scales_b, n, (uint32_t)start, &trace);
    write_trace(&how);
    json_close(']');
    write_value_of("result", ANY_FLOAT32, result);
    struct exact sum;
    exact_sum(&sum, start);
    write_dot_error(&sum, ANY_FLOAT32, result);
    json_close('}');
    return json_end();
}
