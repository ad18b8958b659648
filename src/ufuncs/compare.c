/* Comparisons, minimum and maximum item by item, signs and predicates: loops over strided
 * arrays that call the kernels for the size of an item. */
#include "ufuncs/compare.h"

#include "formats/byte_tables.h"
#include "runtime/fp_environment.h"
#include "runtime/sizes.h"
#include "formats/items.h"

/* Chooses from a struct tf_by_size or a struct tf_clip_by_size. */
#define BY_SIZE(functions, itemsize)                                           \
    ((itemsize) == 1   ? (functions).bytes                                     \
     : (itemsize) == 2 ? (functions).bf16                                      \
                       : (functions).words)

/* Applies a kernel to the items of two operands, `chunk` at a time. If both are one array,
 * its items are gathered once. Results have the size of items, or are bools. */
static void map_items(int format, int op, const struct tf_by_size *kernels,
                      char *const data[3], const ptrdiff_t strides[3], int are_bools,
                      ptrdiff_t chunk, ptrdiff_t n)
{
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const size_t out_size = are_bools ? 1 : itemsize;
    const int is_one = data[0] == data[1] && strides[0] == strides[1];
    tf_items_fn *kernel = BY_SIZE(*kernels, itemsize);
    TF_BUFFER(buffer);
    struct loop_operand a, b;
    operand_begin(&a, data[0], strides[0], chunk > 1);
    operand_begin(&b, data[1], strides[1], 1);
    char *out = data[2];
    for (ptrdiff_t done = 0; done < n; done += chunk) {
        const size_t count = tf_min_size(n - done, chunk);
        const void *x = operand_items(&a, itemsize, count);
        const void *y = is_one ? x : operand_items(&b, itemsize, count);
        void *target =
            operand_target(out, strides[2], out_size, x, y, itemsize, count, buffer);
        kernel(op, &tf_byte_tables[format], x, y, target, count);
        tf_scatter(target, out, strides[2], out_size, count);
        out += (ptrdiff_t)count * strides[2];
    }
}

/* Applies a kernel that may raise flags wrongly. Reductions and accumulations take one item
 * at a time, as it may be the previous result. */
static void apply(int format, int op, const struct tf_by_size *kernels,
                  char *const data[3], const ptrdiff_t strides[3], int are_bools,
                  ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    map_items(format, op, kernels, data, strides, are_bools,
              tf_is_serial(data, strides) ? 1 : TF_CHUNK, n);
    tf_fp_end(saved, 0);
}

/* -- the larger or the smaller ---------------------------------------------------- */

void tf_extreme(int format, enum tf_binary_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n)
{
    apply(format, op, &tf_isa->ufuncs->extreme[op], data, strides, 0, n);
}

void tf_clip(int format, char *const data[4], const ptrdiff_t strides[4], ptrdiff_t n)
{
    const size_t itemsize = tf_format_rows[format]->itemsize;
    tf_clip_fn *clip = BY_SIZE(*tf_isa->ufuncs->clip, itemsize);
    const struct tf_fp saved = tf_fp_begin();
    TF_BUFFER(buffer);
    struct loop_operand x, low, high;
    operand_begin(&x, data[0], strides[0], 1);
    operand_begin(&low, data[1], strides[1], 1);
    operand_begin(&high, data[2], strides[2], 1);
    char *out = data[3];
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const void *items = operand_items(&x, itemsize, count);
        const void *from = operand_items(&low, itemsize, count);
        const void *to = operand_items(&high, itemsize, count);
        void *target = operand_target(out, strides[3], itemsize, items, from, itemsize,
                                      count, buffer);
        target = tf_overlap(to, target, count * itemsize) ? buffer : target;
        clip(&tf_byte_tables[format], items, from, to, target, count);
        tf_scatter(target, out, strides[3], itemsize, count);
        out += (ptrdiff_t)count * strides[3];
    }
    tf_fp_end(saved, 0);
}

/* -- signs ------------------------------------------------------------------------ */

void tf_copysign_items(int format, char *const data[3], const ptrdiff_t strides[3],
                       ptrdiff_t n)
{
    apply(format, TF_COPYSIGN, tf_isa->ufuncs->sign, data, strides, 0, n);
}

void tf_change_sign(int format, enum tf_sign_op op, char *const data[2],
                    const ptrdiff_t strides[2], ptrdiff_t n)
{
    char *const twice[3] = {data[0], data[0], data[1]};
    const ptrdiff_t steps[3] = {strides[0], strides[0], strides[1]};
    map_items(format, op, tf_isa->ufuncs->sign, twice, steps, 0, TF_CHUNK, n);
}

/* -- comparisons ------------------------------------------------------------------ */

const enum tf_compare_op tf_mirrored[TF_COMPARE_COUNT] = {
    [TF_EQUAL] = TF_EQUAL,     [TF_NOT_EQUAL] = TF_NOT_EQUAL,
    [TF_LESS] = TF_GREATER,    [TF_LESS_EQUAL] = TF_GREATER_EQUAL,
    [TF_GREATER] = TF_LESS,    [TF_GREATER_EQUAL] = TF_LESS_EQUAL,
};

/* A comparison that kernels have: a > b is b < a. */
struct comparison {
    enum tf_compare_op op;
    int swapped; /* whether the operands are */
    char *data[3];
    ptrdiff_t strides[3];
};

static struct comparison comparison_of(enum tf_compare_op op, char *const data[3],
                                       const ptrdiff_t strides[3])
{
    const int swapped = op >= TF_COMPARE_KERNELS;
    return (struct comparison){
        .op = swapped ? tf_mirrored[op] : op,
        .swapped = swapped,
        .data = {data[swapped], data[!swapped], data[2]},
        .strides = {strides[swapped], strides[!swapped], strides[2]},
    };
}

void tf_compare(int format, enum tf_compare_op op, char *const data[3],
                const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct comparison call = comparison_of(op, data, strides);
    apply(format, call.op, &tf_isa->ufuncs->compare_items[call.op], call.data,
          call.strides, 1, n);
}

/* A test of two operands' numbers: a comparison, or nearness within a tolerance. */
struct test {
    tf_compare_fn *compare; /* NULL: test nearness */
    struct tf_nearness nearness;
};

static void test_numbers(const struct test *test, int a_kind, int b_kind,
                         char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct tf_fp saved = tf_fp_begin();
    TF_BUFFER(buffer);
    struct loop_operand a, b;
    operand_begin(&a, data[0], strides[0], 1);
    operand_begin(&b, data[1], strides[1], 1);
    char *out = data[2];
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const float *x = operand_next(&a, a_kind, count);
        const float *y = operand_next(&b, b_kind, count);
        void *target = tf_target(out, strides[2], 1, buffer);
        if (test->compare) {
            test->compare(x, y, target, count);
        } else {
            tf_isa->ufuncs->are_near(test->nearness, x, y, target, count);
        }
        tf_scatter(target, out, strides[2], 1, count);
        out += (ptrdiff_t)count * strides[2];
    }
    tf_fp_end(saved, 0);
}

void tf_compare_kinds(int a_kind, int b_kind, enum tf_compare_op op,
                      char *const data[3], const ptrdiff_t strides[3], ptrdiff_t n)
{
    const struct comparison call = comparison_of(op, data, strides);
    const struct test test = {.compare = tf_isa->ufuncs->compare[call.op]};
    test_numbers(&test, call.swapped ? b_kind : a_kind, call.swapped ? a_kind : b_kind,
                 call.data, call.strides, n);
}

void tf_is_close(int format, char *const data[6], const ptrdiff_t strides[6],
                 ptrdiff_t n)
{
    struct test test = {.nearness.equal_nan = *data[4] != 0};
    memcpy(&test.nearness.relative, data[2], sizeof test.nearness.relative);
    memcpy(&test.nearness.absolute, data[3], sizeof test.nearness.absolute);
    char *const pair[3] = {data[0], data[1], data[5]};
    const ptrdiff_t steps[3] = {strides[0], strides[1], strides[5]};
    test_numbers(&test, format, format, pair, steps, n);
}

void tf_predicate(int format, enum tf_predicate_op op, char *const data[2],
                  const ptrdiff_t strides[2], ptrdiff_t n)
{
    const size_t itemsize = tf_format_rows[format]->itemsize;
    const struct tf_byte_table *table = &tf_byte_tables[format];
    tf_predicate_fn *predicate = tf_isa->formats->predicate[op][itemsize == 4 ? 0 : 1];
    TF_BUFFER(buffer);
    struct loop_operand a;
    operand_begin(&a, data[0], strides[0], 1);
    char *out = data[1];
    for (ptrdiff_t done = 0; done < n; done += TF_CHUNK) {
        const size_t count = tf_min_size(n - done, TF_CHUNK);
        const void *x = operand_items(&a, itemsize, count);
        void *target =
            operand_target(out, strides[1], 1, x, x, itemsize, count, buffer);
        if (itemsize == 1) {
            tf_isa->formats->byte_predicate(op, table->order, x, target, count);
        } else {
            predicate(x, target, count);
        }
        tf_scatter(target, out, strides[1], 1, count);
        out += (ptrdiff_t)count * strides[1];
    }
}
