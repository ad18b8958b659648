/* Runs loops of src/ on two lengths of an array, and makes the system call MARK before and
 * after each run. Prints one line for each three calls. The difference between the counts
 * of both runs, divided by LENGTH, is the number of instructions per element. */
#define _DEFAULT_SOURCE /* syscall */

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "blocks/block_arrays.h"
#include "formats/byte_tables.h"
#include "formats/casts.h"
#include "mark.h"
#include "matmul/matmul.h"
#include "runtime/cpu_dispatch.h"
#include "ufuncs/binary.h"
#include "ufuncs/compare.h"
#include "ufuncs/minmax.h"
#include "ufuncs/parts.h"
#include "ufuncs/reduce.h"
#include "ufuncs/sort.h"
#include "ufuncs/unary.h"

enum { LENGTH = 8 * TF_CHUNK, MOST = 2 * LENGTH, OPERANDS = 3, ROWS = 48, DEPTHS = 32 };

/* A loop from items of `kind` to items of `to`. The operation is an index of the table that
 * its function has. */
struct loop {
    void (*run)(const struct loop *loop, ptrdiff_t n);
    int op, kind, to;
    ptrdiff_t size, out_size;
};

static _Alignas(64) char operands[OPERANDS][MOST * 8], results[2][MOST * 8];

/* -- numbers ------------------------------------------------------------------------- */

static float numbers[OPERANDS][MOST];

/* Draws sums of 12 uniform numbers, which are nearly of the normal distribution N(0, 1). */
static void draw_numbers(void)
{
    uint64_t state = 1;
    for (int i = 0; i < OPERANDS * MOST; i++) {
        float sum = -6;
        for (int j = 0; j < 12; j++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            sum += (float)(state >> 40) * 0x1p-24f;
        }
        numbers[i / MOST][i % MOST] = sum;
    }
}

/* Functions whose arguments are not normal, but their magnitudes times a factor, plus an
 * offset: in the function's domain. */
static const struct domain {
    const char *function;
    float factor, offset;
} domains[] = {
    {"sqrt", 1, 0x1p-10f},  {"log", 1, 0x1p-10f},   {"log2", 1, 0x1p-10f},
    {"log10", 1, 0x1p-10f}, {"log1p", 1, 0x1p-10f}, {"power", 1, 0x1p-10f},
    {"arccosh", 1, 1},      {"arcsin", 0.125f, 0},  {"arccos", 0.125f, 0},
    {"arctanh", 0.125f, 0},
};

static float argument(const char *function, int kind, float x)
{
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
        if (strcmp(function, domains[i].function) == 0) {
            return fabsf(x) * domains[i].factor + domains[i].offset;
        }
    }
    const int is_unsigned = kind == tf_float8_e8m0fnu_index || kind >= TF_UINT8;
    const float scaled = kind > TF_FLOAT32 ? 32 * x : x; /* integers other than 0, too */
    return is_unsigned ? fabsf(scaled) : scaled;
}

static void cast(int from, const void *in, int to, void *out)
{
    const struct tf_cast cast = {.from = from, .to = to};
    tf_cast_items(cast, in, (ptrdiff_t)tf_kind_size(from), out,
                  (ptrdiff_t)tf_kind_size(to), MOST);
}

/* Writes the operands of a function as items of a kind. */
static void fill(const char *function, int kind)
{
    static float x[MOST];
    static uint16_t bf16[MOST];
    for (int k = 0; k < OPERANDS; k++) {
        for (int i = 0; i < MOST; i++) {
            x[i] = argument(function, kind, numbers[k][i]);
        }
        if (kind < TF_FORMAT_COUNT) {
            cast(TF_FLOAT32, x, kind, operands[k]);
        } else { /* a cast has a format on one side */
            cast(TF_FLOAT32, x, tf_bfloat16_index, bf16);
            cast(tf_bfloat16_index, bf16, kind, operands[k]);
        }
    }
}

/* -- the loops ----------------------------------------------------------------------- */

static void run_cast(const struct loop *x, ptrdiff_t n)
{
    const struct tf_cast cast = {.from = x->kind, .to = x->to};
    tf_cast_items(cast, operands[0], x->size, results[0], x->out_size, n);
}

static void run_unary(const struct loop *x, ptrdiff_t n)
{
    char *const data[2] = {operands[0], results[0]};
    const ptrdiff_t strides[2] = {x->size, x->size};
    tf_unary(x->kind, x->op, data, strides, n);
}

static void run_binary(const struct loop *x, ptrdiff_t n)
{
    char *const data[3] = {operands[0], operands[1], results[0]};
    const ptrdiff_t size = x->size, strides[3] = {size, size, size};
    tf_binary(x->kind, (enum tf_binary_op)x->op, data, strides, n);
}

static void run_compare(const struct loop *x, ptrdiff_t n)
{
    char *const data[3] = {operands[0], operands[1], results[0]};
    const ptrdiff_t size = x->size, strides[3] = {size, size, 1};
    tf_compare(x->kind, (enum tf_compare_op)x->op, data, strides, n);
}

static void run_predicate(const struct loop *x, ptrdiff_t n)
{
    char *const data[2] = {operands[0], results[0]};
    const ptrdiff_t strides[2] = {x->size, 1};
    tf_predicate(x->kind, (enum tf_predicate_op)x->op, data, strides, n);
}

static void run_clip(const struct loop *x, ptrdiff_t n)
{
    char *const data[4] = {operands[0], operands[1], operands[2], results[0]};
    const ptrdiff_t size = x->size, strides[4] = {size, size, size, size};
    tf_clip(x->kind, data, strides, n);
}

static void run_code_op(const struct loop *x, ptrdiff_t n)
{
    char *const second = x->op == TF_NEXTAFTER ? operands[1] : results[0];
    char *const data[3] = {operands[0], second, results[1]};
    const ptrdiff_t size = x->size;
    const ptrdiff_t strides[3] = {size, size, x->op == TF_FREXP ? 4 : size};
    tf_apply_code_op(x->kind, (enum tf_code_op)x->op, data, strides, n);
}

static void run_reduction(const struct loop *x, ptrdiff_t n)
{
    char *const data[3] = {results[0], operands[0], results[0]};
    const ptrdiff_t strides[3] = {0, x->size, 0};
    struct tf_partials *partials = tf_partials_new(1);
    memset(results[0], 0, (size_t)x->size);
    tf_reduce(x->kind, (enum tf_reduction)x->op, partials, data, strides, n);
    tf_partials_free(partials);
}

static void run_largest(const struct loop *x, ptrdiff_t n)
{
    char *const data[3] = {results[0], operands[0], results[0]};
    memcpy(results[0], operands[0], (size_t)x->size);
    tf_reduce_extreme(x->kind, TF_MAXIMUM, data, x->size, n);
}

static void run_argmax(const struct loop *x, ptrdiff_t n)
{
    tf_arg_extreme(x->kind, 1, operands[0], n);
}

/* Sorts nothing, in place of NumPy's sort of integers, so that only our steps count. */
static int leave_unsorted(void *integers, ptrdiff_t count, void *array)
{
    (void)integers, (void)count, (void)array;
    return 0;
}

static void run_sort(const struct loop *x, ptrdiff_t n)
{
    tf_sort(x->kind, operands[0], n, 0, 0);
}

static void run_argsort(const struct loop *x, ptrdiff_t n)
{
    tf_argsort(x->kind, operands[0], (ptrdiff_t *)results[0], n, 0);
}

/* Multiplies `rows` lines of k numbers by as many columns. */
static void multiply(const struct loop *x, ptrdiff_t rows, ptrdiff_t k)
{
    const struct tf_precision as_they_are = {.format = TF_FLOAT32, .parts = 1,
                                             .split_orders = 1};
    const ptrdiff_t size = x->size;
    const struct tf_matrix a = {operands[0], {k * size, size}, 0, x->kind};
    const struct tf_matrix b = {operands[1], {size, k * size}, 0, x->kind};
    const struct tf_matrix c = {results[0], {rows * size, size}, 0, x->kind};
    tf_matmul(&as_they_are, a, b, c, rows, rows, k, 1);
}

static void run_dot(const struct loop *x, ptrdiff_t n) { multiply(x, 1, n); }

/* Multiplies ROWS x ROWS / DEPTHS numbers per element of n. */
static void run_matmul(const struct loop *x, ptrdiff_t n) { multiply(x, ROWS, n / DEPTHS); }

static struct tf_block_plan plan;

static void run_quantize(const struct loop *x, ptrdiff_t n)
{
    const struct tf_block_codes codes = {(uint8_t *)results[0], (uint8_t *)results[1], NULL};
    (void)x;
    tf_blocks_quantize(&plan, numbers[0], (struct tf_block_lines){1, n}, NULL, codes);
}

static void run_dequantize(const struct loop *x, ptrdiff_t n)
{
    const struct tf_block_codes codes = {(uint8_t *)results[0], (uint8_t *)results[1], NULL};
    (void)x;
    tf_blocks_dequantize(&plan, codes, (struct tf_block_lines){1, n}, 0,
                         (float *)(void *)operands[2]);
}

/* -- all loops ------------------------------------------------------------------------- */

/* Runs a loop until its tables are made, and then once for each count. `work` is the number
 * of results, or of multiply-adds, per element. */
static void measure(struct loop loop, const char *type, const char *name, int work)
{
    enum { WARM = 6 };
    loop.size = (ptrdiff_t)tf_kind_size(loop.kind);
    loop.out_size = (ptrdiff_t)tf_kind_size(loop.to);
    fill(name, loop.kind);
    for (int i = 0; i < WARM; i++) {
        loop.run(&loop, MOST);
    }
    syscall(MARK);
    loop.run(&loop, LENGTH);
    syscall(MARK);
    loop.run(&loop, MOST);
    syscall(MARK);
    printf("%s\t%s\t%d\n", type, name, LENGTH * work);
}

static const char *kind_name(int kind)
{
    static const char *const names[] = {
        "float16", "float32", "float64", "longdouble", "bool",   "int8",  "int16",
        "int32",   "int64",   "uint8",   "uint16",     "uint32", "uint64"};
    return kind < TF_FORMAT_COUNT ? tf_format_rows[kind]->name
                                  : names[kind - TF_FORMAT_COUNT];
}

static void measure_cast(int from, int to)
{
    char type[64];
    snprintf(type, sizeof type, "%s to %s", kind_name(from), kind_name(to));
    measure((struct loop){.run = run_cast, .kind = from, .to = to}, type, "cast", 1);
}

/* Leaves out long double, whose format depends on the processor. */
static void measure_casts(void)
{
    static const int targets[] = {tf_tf32_index, tf_bfloat16_index,
                                  tf_float8_e4m3fn_index};
    for (int kind = 0; kind < TF_FORMAT_COUNT; kind++) {
        measure_cast(TF_FLOAT32, kind);
        measure_cast(kind, TF_FLOAT32);
        for (int i = 0; i < 3; i++) {
            if (targets[i] != kind) {
                measure_cast(kind, targets[i]);
            }
        }
    }
    for (int kind = TF_FLOAT16; kind < TF_KIND_COUNT; kind++) {
        if (kind != TF_FLOAT32 && kind != TF_LONGDOUBLE) {
            measure_cast(kind, tf_bfloat16_index);
            measure_cast(tf_bfloat16_index, kind);
        }
    }
}

static void measure_function(void (*run)(const struct loop *, ptrdiff_t), int op, int kind,
                             const char *name)
{
    measure((struct loop){.run = run, .op = op, .kind = kind, .to = kind}, kind_name(kind),
            name, 1);
}

/* Unary functions of bytes have one loop, except changes of the sign. */
static void measure_functions(int kind)
{
    static const char *const compare[] = {"equal", "not_equal", "less", "less_equal"};
    static const char *const predicates[] = {"isnan", "isinf", "isfinite", "signbit",
                                             "logical_not"};
    const int is_byte = tf_format_rows[kind]->itemsize == 1;
    for (int op = 0; tf_unary_name(op); op++) {
        const char *const name = tf_unary_name(op);
        if (!is_byte || !strcmp(name, "negative") || !strcmp(name, "exp")) {
            measure_function(run_unary, op, kind, name);
        }
    }
    for (int op = 0; op < TF_BINARY_COUNT; op++) {
        measure_function(run_binary, op, kind, tf_binary_rows[op].name);
    }
    for (int op = 0; op < TF_COMPARE_KERNELS; op++) {
        measure_function(run_compare, op, kind, compare[op]);
    }
    for (int op = 0; op < TF_PREDICATE_COUNT; op++) {
        measure_function(run_predicate, op, kind, predicates[op]);
    }
    measure_function(run_clip, 0, kind, "clip");
    measure_function(run_code_op, TF_NEXTAFTER, kind, "nextafter");
    measure_function(run_code_op, TF_FREXP, kind, "frexp");
    measure_function(run_reduction, TF_SUM, kind, "sum");
    measure_function(run_reduction, TF_PROD, kind, "prod");
    measure_function(run_largest, 0, kind, "max");
    measure_function(run_argmax, 0, kind, "argmax");
    measure_function(run_sort, 0, kind, "sort");
    measure_function(run_argsort, 0, kind, "argsort");
    measure_function(run_dot, 0, kind, "dot");
    measure((struct loop){.run = run_matmul, .kind = kind, .to = kind}, kind_name(kind),
            "matmul", ROWS * ROWS / DEPTHS);
}

static void measure_blocks(const char *type, int element, int scale, int block)
{
    const struct tf_block_format layout = {element, -1, scale, block, 1};
    tf_block_plan_fill(&plan, layout, TF_RULE_FLOOR, TF_TIES_TO_EVEN, 1);
    const struct loop quantize = {.run = run_quantize}, dequantize = {.run = run_dequantize};
    measure(quantize, type, "quantize", 1);
    measure(dequantize, type, "dequantize", 1);
}

int main(int argc, char **argv)
{
    static const int formats[] = {tf_tf32_index,          tf_bfloat16_index,
                                  tf_float8_e4m3fn_index, tf_float8_e5m2_index,
                                  tf_float8_e8m0fnu_index, tf_float6_e2m3fn_index,
                                  tf_float4_e2m1fn_index};
    if (argc != 2 || !tf_isa_choose(argv[1])) {
        fputs("give the name of an instruction set that this build has\n", stderr);
        return 1;
    }
    tf_byte_tables_fill();
    tf_matmul_prepare();
    tf_sort_integers_by(leave_unsorted, leave_unsorted, leave_unsorted);
    draw_numbers();
    measure_casts();
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        measure_functions(formats[i]);
    }
    measure_blocks("mxfp8_e4m3", tf_element_float8_e4m3fn, tf_scale_float8_e8m0fnu, 32);
    measure_blocks("mxfp6_e2m3", tf_element_float6_e2m3fn, tf_scale_float8_e8m0fnu, 32);
    measure_blocks("mxfp4", tf_element_float4_e2m1fn, tf_scale_float8_e8m0fnu, 32);
    measure_blocks("nvfp4", tf_element_float4_e2m1fn, tf_scale_ue4m3, 16);
    return 0;
}
