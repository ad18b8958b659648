/* A product of two vectors as the instructions of src/tensor_core/mma_model.h chain it. */
#include "dot_operands.h"
#include "mma_steps.h"
#include "special_reasons.h"

static struct tf_mma_model model;

/* The struct's members in their order, then the accumulator. */
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

/* The exponent that a product brings. */
static int32_t product_exponent(struct tf_mma_number x, struct tf_mma_number y)
{
    const int32_t of_zero = model.zero_products ? TF_LEAST_SINGLE : TF_NO_EXPONENT;
    return (x.significand ? x.exponent : of_zero) + (y.significand ? y.exponent : of_zero);
}

static void fill_terms(struct group *group, uint32_t c)
{
    group->terms[0] = accumulator_term(model.half, c, model.zero_c);
    group->term_count = 1 + group->count;
    for (int32_t i = 0; i < group->count; i++) {
        const uint32_t p = operands.a[group->ks[i]], q = operands.b[group->ks[i]];
        const struct tf_mma_number x = tf_mma_decode(p, model.least_a);
        const struct tf_mma_number y = tf_mma_decode(q, model.least_b);
        struct term *term = &group->terms[1 + i];
        term->count = 1;
        term->ks = &group->ks[i];
        term->negative = (int)((p ^ q) >> 31);
        term->significand = (uint64_t)x.significand * y.significand;
        term->unit = x.exponent + y.exponent - 46;
        term->exponent = product_exponent(x, y);
    }
}

/* One MMA group of some k; the accumulator and what it becomes are codes. A group without
 * k, which fills up an instruction, is a step where it changes something. */
static uint64_t group_of(const int32_t *ks, int32_t count, uint64_t accumulator)
{
    static struct group group;
    uint32_t a[TF_DEEPEST], b[TF_DEEPEST];
    for (int32_t i = 0; i < count; i++) {
        a[i] = operands.a[ks[i]];
        b[i] = operands.b[ks[i]];
    }
    const uint32_t c = accumulator_bits(model.half, accumulator);
    const uint32_t result = tf_mma_dot(&model, a, 1, b, 1, count, c, 0);
    group.ks = ks;
    group.count = count;
    group.accumulator = accumulator;
    group.result = accumulator_code(model.half, result);
    group.floor = model.floor;
    group.fraction = model.fraction;
    group.rounding.half = group.rounding.nearest = model.half;
    group.rounding.kept = model.kept;
    if (count == 0 && !model.emulated && group.result == accumulator) {
        return accumulator;
    }
    if (tf_mma_special(model.half, a, 1, b, 1, count, c)) {
        begin_special_group(&group);
        write_reasons(operands.a, operands.b, ks, count, c);
        end_special_group(&group);
    } else {
        fill_terms(&group, c);
        write_group(&group);
    }
    return group.result;
}

static uint64_t add(const int32_t *ks, int32_t count, uint64_t sum, uint64_t accumulator,
                    int promotes)
{
    const int half = model.half;
    const uint32_t s = accumulator_bits(half, sum), c = accumulator_bits(half, accumulator);
    const uint64_t result = accumulator_code(half, tf_mma_add(s, c, half));
    write_addition(half, ks, count, s, accumulator, promotes, result);
    return result;
}

/* Two groups of float16 for each instruction, of the first two of each four k and of the
 * others, and an addition. */
static uint64_t emulated_chain(int32_t first, int32_t end, uint64_t accumulator)
{
    static int32_t of_pair[2][TF_DEEPEST];
    const int32_t depth = 2 * model.depth;
    for (int32_t k = first; k < end; k += depth) {
        const int32_t here = end - k < depth ? end - k : depth;
        uint64_t total = 0;
        for (int pair = 0; pair < 2; pair++) {
            int32_t count = 0;
            for (int32_t i = 0; i < here; i++) {
                if (i % 4 / 2 == pair) {
                    of_pair[pair][count++] = k + i;
                }
            }
            total = group_of(of_pair[pair], count, total);
        }
        accumulator = add(operands.ks + k, here, total, accumulator, 0);
    }
    return accumulator;
}

static uint64_t chain(int32_t first, int32_t end, uint64_t accumulator)
{
    if (model.emulated) {
        return emulated_chain(first, end, accumulator);
    }
    const int32_t instruction = model.instruction_depth;
    const int32_t filled = (end - first + instruction - 1) / instruction * instruction;
    for (int32_t k = first; k < first + filled; k += model.depth) {
        const int32_t rest = end > k ? end - k : 0;
        const int32_t here = rest < model.depth ? rest : model.depth;
        accumulator = group_of(operands.ks + (here ? k : 0), here, accumulator);
    }
    return accumulator;
}

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
    uint64_t result = start;
    json_begin();
    json_open('{');
    json_key("steps");
    json_open('[');
    if (promote_every <= 0) {
        result = chain(0, n, start);
    }
    for (int32_t k = 0; promote_every > 0 && k < n; k += promote_every) {
        const int32_t here = n - k < promote_every ? n - k : promote_every;
        const uint64_t sum = chain(k, k + here, 0);
        result = add(operands.ks + k, here, sum, result, 1);
    }
    json_close(']');
    const int format = accumulator_format(model.half);
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
