#include "dot_operands.h"

#include "formats/fast_codec.h"
#include "write_value.h"

struct dot_operands operands;

uint32_t operand_bits(int format, uint64_t code)
{
    const struct tf_format f = any_format(format);
    return format == ANY_FLOAT32 ? (uint32_t)code
                                 : tf_single_of_item(f, (uint32_t)code << f.shift);
}

const char *read_operands(int a, int b, int32_t n)
{
    operands.n = n;
    for (int32_t k = 0; k < n; k++) {
        if (!any_is_code(a, input_list[0][k]) || !any_is_code(b, input_list[1][k])) {
            return "a code has more bits than its format";
        }
        operands.a[k] = operand_bits(a, input_list[0][k]);
        operands.b[k] = operand_bits(b, input_list[1][k]);
        operands.ks[k] = k;
    }
    return 0;
}

void add_product(struct exact *sum, int32_t k, const struct exact *factor)
{
    struct exact x, y;
    any_exact(&x, ANY_FLOAT32, operands.a[k]);
    any_exact(&y, ANY_FLOAT32, operands.b[k]);
    if (!exact_is_finite(sum)) {
        return;
    }
    if (!exact_is_finite(&x) || !exact_is_finite(&y) || !exact_is_finite(factor)) {
        exact_set_special(sum, 0, TF_NAN);
        return;
    }
    exact_multiply(&x, &x, &y);
    exact_multiply(&x, &x, factor);
    exact_add(sum, sum, &x);
}

void write_dot_error(const struct exact *sum, int format, uint64_t result)
{
    struct exact error;
    any_exact(&error, format, result);
    write_exact_of("exact", sum);
    if (exact_is_finite(sum) && exact_is_finite(&error)) {
        exact_subtract(&error, &error, sum);
        write_exact_of("error", &error);
    } else {
        json_null_of("error");
    }
}
