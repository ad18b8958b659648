/* Functions of two arrays of bfloat16 or tf32, in terms of functions of numbers. The
 * options FORMAT and ITEM are the format and the type of its items. */
#ifndef TF32DTYPE_CUDA_UFUNCS_ARITHMETIC_H
#define TF32DTYPE_CUDA_UFUNCS_ARITHMETIC_H

#include "cuda/common/map.h"
#include "cuda/formats/numbers.h"

typedef ITEM tf_item;

/* Returns the item of a result, rounded once. Every NaN becomes the same NaN. */
__forceinline__ tf_item tf_item_of(int is_nan, uint32_t bits)
{
    const uint32_t code = is_nan ? tf_nan_code(FORMAT) : tf_code_of_number(FORMAT, bits);
    return (tf_item)(code << FORMAT.shift);
}
__forceinline__ tf_item tf_result(float x) { return tf_item_of(x != x, tf_bits_of(x)); }
__forceinline__ tf_item tf_result(double x) { return tf_item_of(x != x, tf_narrowed(x)); }

/* Returns the number in an item of a format with float32's exponent. NaN may be any NaN. */
__forceinline__ float operand_of(tf_item item)
{
    return tf_float_of((uint32_t)item >> FORMAT.shift << tf_cut(FORMAT));
}

/* The arrays of a call, with methods that apply a function of two numbers to them. */
struct tf_arrays {
    const tf_walk<3> &walk;
    void *out;
    const tf_item *a, *b;
    const tf_constants &constants;

    /* Applies f(item, item), which returns an item. */
    template <class F> __forceinline__ void of_items(F f) const
    {
        tf_map<16 / sizeof(tf_item), 2>(walk, (tf_item *)out, a, b, constants, f);
    }

    /* Applies f(float, float) and rounds. */
    template <class F> __forceinline__ void in_float(F f) const
    {
        of_items([=](tf_item x, tf_item y) {
            return tf_result(f(operand_of(x), operand_of(y)));
        });
    }

    /* Applies f(double, double) and rounds. */
    template <class F> __forceinline__ void in_double(F f) const
    {
        of_items([=](tf_item x, tf_item y) {
            return tf_result(f((double)operand_of(x), (double)operand_of(y)));
        });
    }

    /* Applies f(float, float), which returns true or false. */
    template <class F> __forceinline__ void to_bool(F f) const
    {
        tf_map<16 / sizeof(tf_item), 2>(
            walk, (uint8_t *)out, a, b, constants, [=](tf_item x, tf_item y) {
                return f(operand_of(x), operand_of(y)) ? 1 : 0;
            });
    }

    /* As in_double, for slow functions: one element at a time. */
    template <class F> __forceinline__ void slowly(F f) const
    {
        tf_map<1, 2>(walk, (tf_item *)out, a, b, constants, [=](tf_item x, tf_item y) {
            return tf_result(f((double)number_of(FORMAT, x), (double)number_of(FORMAT, y)));
        });
    }
};

#endif
