/* A dot product as the chained instructions of src/tensor_core/mma_model.h compute it. */
#include "dot_operands.h"
#include "mma_steps.h"

static struct tf_mma_model model;

/* Reads the members of the model from list 2, in their order; returns the accumulator. */
static uint64_t read_model(void)
{
    const uint64_t *words = input_list[2];
    int32_t *const members[] = {
        &model.depth,       &model.instruction_depth, &model.fraction,
        &model.kept,        &model.half,              &model.least_a,
        &model.least_b,     &model.emulated,          &model.cut_first,
        &model.floor,       &model.zero_c,            &model.zero_products,
        &model.negative_zero};
    const int count = sizeof members / sizeof members[0];
    for (int i = 0; i < count; i++) {
        *members[i] = (int32_t)words[i];
    }
    return words[count];
}

EXPORTED(no_exponent) int32_t page_no_exponent(void);

int32_t page_no_exponent(void) { return TF_NO_EXPONENT; }

EXPORTED(dot) int32_t page_dot(int a, int b, int32_t n, int32_t promote_every);

int32_t page_dot(int a, int b, int32_t n, int32_t promote_every)
{
    const uint64_t start = read_model();
    const char *why = read_operands(a, b, n);
    if (!any_is_code(accumulator_format(model.half), start)) {
        why = "the accumulator's code has more bits than its format";
    }
    if (why) {
        return json_failure(why);
    }
    const struct chain how = {model.half, model.emulated, 1, 0};
    const int promotes = promote_every > 0;
    const int32_t every = promotes ? promote_every : n;
    uint32_t c = accumulator_bits(model.half, start);
    json_begin();
    json_open('{');
    json_key("steps");
    json_open('[');
    for (int32_t k = 0; k < n; k += every) {
        const int32_t here = n - k < every ? n - k : every;
        trace.first = k;
        const uint32_t sum = tf_mma_accumulate(&model, operands.a + k, 1, operands.b + k, 1,
                                               here, promotes ? 0 : c, &trace);
        c = promotes ? tf_mma_add_sum(sum, c, model.half, 1, &trace) : sum;
        write_trace(&how);
    }
    json_close(']');
    const int format = accumulator_format(model.half);
    const uint64_t result = n ? accumulator_code(model.half, c) : start;
    write_value_of("result", format, result);
    struct exact sum, one;
    any_exact(&sum, format, start);
    exact_set(&one, 0, 1, 0);
    for (int32_t k = 0; k < n; k++) {
        add_product(&sum, k, &one);
    }
    write_dot_error(&sum, format, result);
    json_close('}');
    return json_end();
}
