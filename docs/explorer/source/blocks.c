/* Quantizes values to blocks with a common scale, by src/blocks/. */
#include "blocks/dequantize.h"
#include "blocks/plain_search_cost.h"
#include "input.h"
#include "tensor_scale.h"
#include "write_value.h"

enum { MOST_VALUES = 1024 };

/* A call: its arguments, then the tensor scale and the values. */
struct request {
    int element, residual; /* indices in tf_elements; -1: no residual */
    int scale;             /* index in tf_scales; -1: the finest that fits */
    int block, rule, rounding;
    int poisons;  /* a block with NaN or Inf is NaN */
    int saturate; /* Inf becomes the largest number */
    int32_t n;
    float tensor_scale;
    float x[MOST_VALUES + TF_BLOCK_MOST]; /* n values, then zeros */
};

static struct request request;
static struct exact given; /* the value that was read last */
static struct tf_block_plan plan;
static struct tf_block block;

/* -- input --------------------------------------------------------------------------- */

static int is_special(float x) { return (tf_bits_of(x) & TF_MAGNITUDE_BITS) >= TF_INF_BITS; }

/* Returns x as float32, rounded to odd, so that the rounding to an element is the only one.
 * Above the range of float32, returns Inf, or with `saturate` the largest number. */
static float to_single(const struct exact *x, int saturate)
{
    unsigned flags;
    uint64_t code = any_encode(ANY_FLOAT32, x, TF_TIES_TO_EVEN, TF_OVERFLOW_IEEE, 0, &flags);
    const int infinite = (code & TF_MAGNITUDE_BITS) == TF_INF_BITS;
    if (exact_is_finite(x) && (!infinite || saturate)) {
        code = any_encode(ANY_FLOAT32, x, TF_TO_ODD, TF_OVERFLOW_IEEE, 0, &flags);
    }
    return tf_float_of((uint32_t)code);
}

static int32_t refuse(int32_t at, const char *what, const char *why)
{
    json_begin();
    json_open('{');
    json_key("error");
    json_begin_text();
    if (at >= 0) {
        json_put("value ");
        json_put_integer(at);
        json_put(" is ");
        json_put(what);
        json_put(": ");
    }
    json_put(why);
    json_end_text();
    json_close('}');
    return json_end();
}

/* Reads the values, one per line. Returns 0, or the length of an answer with an error. */
static int32_t read_values(int32_t n)
{
    const char *at = input_text;
    const struct tf_element e = tf_elements[request.element];
    const int nan_held = e.format >= 0 && any_nan(e.format) != 0;
    for (int32_t i = 0; i < request.n; i++) {
        const char *why = input_value(&at, &n, &given);
        if (why) {
            return refuse(i, "no number", why);
        }
        const float x = to_single(&given, request.saturate);
        request.x[i] = x;
        if (!is_special(x) || request.poisons) {
            continue;
        }
        if (!request.saturate) {
            return exact_is_finite(&given)
                       ? refuse(i, "beyond the range of float32", "\"saturate\" clips it")
                       : refuse(i, x == x ? "infinite" : "nan",
                                "the format has no code for it (\"saturate\" clips Inf)");
        }
        if (x != x && !nan_held) {
            return refuse(i, "nan", "the element of the format has no NaN");
        }
    }
    for (int32_t i = request.n; i < request.n + TF_BLOCK_MOST; i++) {
        request.x[i] = 0;
    }
    return 0;
}

/* Returns the largest finite magnitude of n values. */
static float greatest_of(const float *x, int32_t n)
{
    float greatest = 0;
    for (int32_t i = 0; i < n; i++) {
        const float magnitude = is_special(x[i]) ? 0 : tf_magnitude_of(x[i]);
        greatest = magnitude > greatest ? magnitude : greatest;
    }
    return greatest;
}

static void find_tensor_scale(void)
{
    const float most = tf_element_greatest(tf_elements[request.element]);
    const float greatest = greatest_of(request.x, request.n);
    float least = tf_float_of(TF_INF_BITS);
    for (int32_t i = 0; i < request.n; i += request.block) {
        const float of_block = greatest_of(request.x + i, request.block);
        least = of_block > 0 && of_block < least ? of_block : least;
    }
    if (request.scale < 0) {
        const struct tensor_scale found = finest_tensor_scale(most, greatest, least);
        request.scale = found.format;
        request.tensor_scale = found.scale;
    } else {
        request.tensor_scale = tensor_scale_of(request.scale, most, greatest);
    }
}

/* -- output -------------------------------------------------------------------------- */

static void double_exact(struct exact *exact, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    any_exact(exact, ANY_FLOAT64, bits);
}

static void write_single_of(const char *name, float x)
{
    struct exact exact;
    any_exact(&exact, ANY_FLOAT32, tf_bits_of(x));
    write_exact_of(name, &exact);
}

/* Writes six digits of a double, or "" for Inf. */
static void write_double_of(const char *name, double x)
{
    struct exact exact;
    double_exact(&exact, x);
    if (exact_is_finite(&exact)) {
        write_short_of(name, &exact, 6);
    } else {
        json_text_of(name, "");
    }
}

static void write_float_text(const char *name, float x)
{
    struct exact exact;
    any_exact(&exact, ANY_FLOAT32, tf_bits_of(x));
    if (exact_is_finite(&exact)) {
        write_short_of(name, &exact, 17);
    } else {
        json_text_of(name, special_name(exact.negative, exact.value_class));
    }
}

static void write_single_number(const char *name, float x)
{
    struct exact exact;
    any_exact(&exact, ANY_FLOAT32, tf_bits_of(x));
    if (exact_is_finite(&exact)) {
        write_number_of(name, &exact);
    } else {
        json_text_of(name, special_name(exact.negative, exact.value_class));
    }
}

static void write_scale(const char *name, uint32_t code, float worth, float scale)
{
    json_key(name);
    json_open('{');
    json_integer_of("code", code);
    json_key("hex");
    json_begin_text();
    json_put("0x");
    json_put_hex(code, 2);
    json_end_text();
    write_single_of("worth", worth);
    write_single_of("scale", scale);
    json_close('}');
}

static void write_code(struct tf_element e, uint32_t code)
{
    json_integer_of("code", code);
    json_key("hex");
    json_begin_text();
    json_put("0x");
    json_put_hex(code, (e.width + 3) / 4);
    json_end_text();
    json_key("binary");
    json_begin_text();
    for (int place = e.width - 1; place >= 0; place--) {
        json_put_character(code >> place & 1 ? '1' : '0');
    }
    json_end_text();
}

/* Sums of the errors of elements: their squares, the largest magnitude, and their
 * number. */
struct errors {
    double squares, worst;
    int32_t count;
};

/* Writes the error of `value` against the given value, and adds it to `errors`. */
static void write_error(float value, struct errors *errors)
{
    struct exact error;
    any_exact(&error, ANY_FLOAT32, tf_bits_of(value));
    if (!exact_is_finite(&error) || !exact_is_finite(&given)) {
        json_null_of("error");
        errors->squares = errors->worst = tf_float_of(TF_INF_BITS);
    } else {
        unsigned flags;
        double magnitude;
        exact_subtract(&error, &error, &given);
        write_exact_of("error", &error);
        error.negative = 0;
        const uint64_t bits =
            any_encode(ANY_FLOAT64, &error, TF_TIES_TO_EVEN, TF_OVERFLOW_IEEE, 0, &flags);
        memcpy(&magnitude, &bits, sizeof magnitude);
        errors->squares += magnitude * magnitude;
        errors->worst = magnitude > errors->worst ? magnitude : errors->worst;
    }
    errors->count++;
}

static void write_errors(const struct errors *errors)
{
    write_double_of("rms", tf_square_root(errors->squares / errors->count));
    write_double_of("worst", errors->worst);
}

/* Returns whether the given value is out of range of its last level `e`, by half a spacing
 * or more. `first` is the value of the level before, `held` that of the level's code, and
 * `unit` the scale of the level. */
static int is_beyond(struct tf_element e, const struct exact *first, float held, double unit)
{
    const float greatest = tf_element_greatest(e), size = tf_magnitude_of(held);
    const int top = (int)(tf_bits_of(greatest) >> 23) - 127;
    const float spacing = tf_power_of_two(top - tf_element_mantissa(e));
    struct exact left, limit, step;
    double_exact(&step, unit);
    if (!exact_is_finite(&given) || !exact_is_finite(&step) || !(size >= greatest)) {
        return 0;
    }
    exact_subtract(&left, &given, first);
    left.negative = 0;
    any_exact(&limit, ANY_FLOAT32, tf_bits_of(size + spacing / 2));
    exact_multiply(&limit, &limit, &step);
    const int order = exact_compare(&left, &limit);
    return order > 0 || (order == 0 && !exact_is_zero(&step) && (int)(size / spacing) & 1);
}

static int is_subnormal(struct tf_element e, uint32_t code)
{
    const struct tf_format f = any_format(e.format >= 0 ? e.format : 0);
    const uint32_t field = code >> f.mantissa_bits & ((UINT32_C(1) << f.exponent_bits) - 1);
    return e.format >= 0 && field == 0 && tf_element_value(e, code) != 0;
}

/* Writes the outcome of the given value: `hi` is the value of the element, which `scale`
 * multiplies; `residual` is NULL or the value of the residual, which `unit` multiplies. */
static void write_what_became(uint32_t code, float scale, float hi, const float *residual,
                              double unit, float value)
{
    const struct tf_element e = tf_elements[request.element];
    struct exact result, first, one;
    any_exact(&result, ANY_FLOAT32, tf_bits_of(value));
    any_exact(&one, ANY_FLOAT32, tf_bits_of(scale));
    const int scaled = exact_is_finite(&one);
    int beyond = 0;
    if (scaled && residual) {
        any_exact(&first, ANY_FLOAT32, tf_bits_of(hi));
        exact_multiply(&first, &first, &one);
        beyond = is_beyond(tf_elements[request.residual], &first, *residual, unit);
    } else if (scaled) {
        exact_set(&first, 0, 0, 0);
        beyond = is_beyond(e, &first, hi, scale);
    }
    /* With two levels, a subnormal element loses no bits, because the residual has them. */
    write_outcome(&given, &result, !residual && is_subnormal(e, code), beyond,
                  scaled ? 0 : "its scale");
}

/* Writes element i of the block, which is value `at` of all. */
static void write_element(int32_t i, int32_t at, float scale, float residual_scale,
                          struct errors *errors)
{
    const int two = request.residual >= 0;
    const struct tf_element e = tf_elements[request.element];
    const struct tf_element lo = tf_elements[two ? request.residual : request.element];
    const float x = request.x[at];
    const uint32_t code = tf_code_in_block(e, block.hi[i]);
    const uint32_t residual_code = two ? tf_code_in_block(lo, block.lo[i]) : 0;
    const float hi = tf_element_value(e, code);
    const float rest = two ? tf_element_value(lo, residual_code) : 0;
    const double unit = tf_second_scale(scale, residual_scale);
    const float value = tf_block_single(two, scale, unit, hi, rest, 0);
    json_open('{');
    write_single_of("x", x);
    write_float_text("given", x);
    write_code(e, code);
    write_float_text("element", hi);
    if (two) {
        json_integer_of("residualCode", residual_code);
        write_float_text("residual", rest);
    } else {
        json_null_of("residualCode");
        json_null_of("residual");
    }
    write_float_text("value", value);
    write_single_number("number", value);
    write_single_of("exact", value);
    write_error(value, errors);
    write_what_became(code, scale, hi, two ? &rest : 0, unit, value);
    json_close('}');
}

/* Writes the block from value `first` on. Reads the values of the block again, from *at on,
 * where *n characters are left. */
static void write_block(int32_t first, const char **at, int32_t *n, struct errors *all)
{
    const struct tf_scale s = tf_scales[request.scale];
    const int two = request.residual >= 0;
    const int32_t left = request.n - first;
    const int32_t here = left < request.block ? left : request.block;
    tf_round_block(tf_elements[request.element], &plan, request.x + first, 0, &block);
    const float scale = tf_block_scale(s, request.tensor_scale, block.code);
    float residual_scale = 0;
    json_open('{');
    write_scale("scale", block.code, tf_scale_value(s, block.code), scale);
    if (two) {
        const struct tf_element lo = tf_elements[request.residual];
        residual_scale = tf_residual_scale(s, lo, block.residual_code);
        write_scale("residualScale", block.residual_code,
                    tf_scale_value(s, block.residual_code), residual_scale);
    } else {
        json_null_of("residualScale");
    }
    struct errors errors = {0, 0, 0};
    json_key("elements");
    json_open('[');
    for (int32_t i = 0; i < here; i++) {
        input_value(at, n, &given);
        write_element(i, first + i, scale, residual_scale, &errors);
    }
    json_close(']');
    write_float_text("amax", greatest_of(request.x + first, here));
    write_errors(&errors);
    json_close('}');
    all->squares += errors.squares;
    all->worst = errors.worst > all->worst ? errors.worst : all->worst;
    all->count += errors.count;
}

/* -- the call ------------------------------------------------------------------------ */

static void read_request(int32_t count)
{
    const uint64_t *words = input_list[2];
    int *const members[] = {&request.element, &request.residual, &request.scale,
                            &request.block,   &request.rule,     &request.rounding,
                            &request.poisons, &request.saturate};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        *members[i] = (int)(int64_t)words[i];
    }
    request.n = count;
    if (request.scale < 0 && request.rule != TF_RULE_MSE) {
        request.scale = tf_scale_float8_e8m0fnu;
    }
    request.poisons &= request.scale == tf_scale_float8_e8m0fnu && !request.saturate;
}

static const char *wrong_request(void)
{
    const int size = request.block;
    return request.n < 1 || request.n > MOST_VALUES ? "1 to 1024 values are needed"
           : size != 16 && size != 32 && size != 64 && size != 128
               ? "a block has 16, 32, 64 or 128 numbers"
           : request.rounding == TF_STOCHASTIC ? "stochastic rounding is not for blocks here"
           : request.rule == TF_RULE_PUBLISHED && request.scale != tf_scale_float8_e8m0fnu
               ? "the rule published has float8_e8m0fnu scales"
               : 0;
}

EXPORTED(quantize) int32_t page_quantize(int32_t count, int32_t n);

/* Quantizes `count` values, one per line of the input. List 2 has the members of the
 * request in the order of read_request. */
int32_t page_quantize(int32_t count, int32_t n)
{
    read_request(count);
    const char *why = wrong_request();
    if (why) {
        return refuse(-1, "", why);
    }
    const int32_t refused = read_values(n);
    if (refused) {
        return refused;
    }
    find_tensor_scale();
    const struct tf_block_format layout = {request.element, request.residual, request.scale,
                                           request.block, request.tensor_scale};
    tf_block_plan_fill(&plan, layout, request.rule, request.rounding, request.poisons);
    struct errors errors = {0, 0, 0};
    const char *at = input_text;
    json_begin();
    json_open('{');
    json_text_of("error", "");
    json_text_of("scaleFormat", tf_scales[request.scale].name);
    write_single_of("tensorScale", request.tensor_scale);
    json_integer_of("blockSize", request.block);
    json_key("blocks");
    json_open('[');
    for (int32_t first = 0; first < request.n; first += request.block) {
        write_block(first, &at, &n, &errors);
    }
    json_close(']');
    write_errors(&errors);
    json_close('}');
    return json_end();
}
