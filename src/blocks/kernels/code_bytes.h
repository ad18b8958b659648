/* Packed codes of a block in the bytes of an array: 4, 6, 8, 12 or 16 bits per code. */
#ifndef TF32DTYPE_BLOCKS_KERNELS_CODE_BYTES_H
#define TF32DTYPE_BLOCKS_KERNELS_CODE_BYTES_H

#include "blocks/block_plan.h"
#include "runtime/kernels/common.h"

/* Writes n codes, a multiple of 16, one after the other. The first has the lowest bits. */
TF_INLINE void put_codes(struct tf_element e, const uint16_t *codes, int n, uint8_t *out)
{
    switch (e.width) {
    case 4:
        for (int i = 0; i < n / 2; i++) {
            out[i] = (uint8_t)(codes[2 * i] | codes[2 * i + 1] << 4);
        }
        break;
    case 6:
        for (int i = 0; i < n / 4; i++) {
            const uint32_t four = codes[4 * i] | (uint32_t)codes[4 * i + 1] << 6 |
                                  (uint32_t)codes[4 * i + 2] << 12 |
                                  (uint32_t)codes[4 * i + 3] << 18;
            out[3 * i] = (uint8_t)four;
            out[3 * i + 1] = (uint8_t)(four >> 8);
            out[3 * i + 2] = (uint8_t)(four >> 16);
        }
        break;
    case 12:
        for (int i = 0; i < n / 2; i++) {
            const uint32_t two = codes[2 * i] | (uint32_t)codes[2 * i + 1] << 12;
            out[3 * i] = (uint8_t)two;
            out[3 * i + 1] = (uint8_t)(two >> 8);
            out[3 * i + 2] = (uint8_t)(two >> 16);
        }
        break;
    case 16:
        for (int i = 0; i < n; i++) {
            out[2 * i] = (uint8_t)codes[i];
            out[2 * i + 1] = (uint8_t)(codes[i] >> 8);
        }
        break;
    default:
        for (int i = 0; i < n; i++) {
            out[i] = (uint8_t)codes[i];
        }
    }
}

TF_INLINE void get_codes(struct tf_element e, const uint8_t *in, int n, uint16_t *codes)
{
    switch (e.width) {
    case 4:
        for (int i = 0; i < n / 2; i++) {
            codes[2 * i] = in[i] & 0xF;
            codes[2 * i + 1] = in[i] >> 4;
        }
        break;
    case 8:
        for (int i = 0; i < n; i++) {
            codes[i] = in[i];
        }
        break;
    case 16:
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)(in[2 * i] | in[2 * i + 1] << 8);
        }
        break;
    default:
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_code_at(e, in, (uint32_t)i);
        }
    }
}

TF_INLINE void put_numbers(struct tf_element e, const float *numbers, int n, int special,
                           uint8_t *out)
{
    uint16_t codes[TF_BLOCK_MOST];
    if (special) {
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_code_in_block(e, numbers[i]);
        }
    } else {
        for (int i = 0; i < n; i++) {
            codes[i] = (uint16_t)tf_element_code(e, numbers[i]);
        }
    }
    put_codes(e, codes, n, out);
}

/* Returns the number of a code, without slow products of subnormal float32 numbers. */
TF_INLINE float number_of_code(struct tf_element e, uint32_t code)
{
    if (e.format < 0) {
        return tf_element_value(e, code);
    }
    return tf_float_of(tf_single_of_item(*tf_format_rows[e.format], code));
}

TF_INLINE void get_numbers(struct tf_element e, const uint8_t *in, int n, float *numbers)
{
    if (e.width == 8) {
        for (int i = 0; i < n; i++) {
            numbers[i] = number_of_code(e, in[i]);
        }
        return;
    }
    uint16_t codes[TF_BLOCK_MOST];
    get_codes(e, in, n, codes);
    for (int i = 0; i < n; i++) {
        numbers[i] = number_of_code(e, codes[i]);
    }
}

static void put_residual(struct tf_element lo, const float *numbers, int n, uint8_t *out)
{
    if (lo.format < 0) {
        put_numbers(tf_elements[tf_element_int4], numbers, n, 0, out);
    } else {
        put_numbers(tf_elements[tf_element_float8_e4m3fn], numbers, n, 0, out);
    }
}

static void get_residual(struct tf_element lo, const uint8_t *in, int n, float *numbers)
{
    if (lo.format < 0) {
        get_numbers(tf_elements[tf_element_int4], in, n, numbers);
    } else {
        get_numbers(tf_elements[tf_element_float8_e4m3fn], in, n, numbers);
    }
}

#endif
