# C declarations of src/blocks/.

from libc.stdint cimport uint8_t, uint64_t
from numpy cimport npy_intp

from tf32dtype._core.matmul.matmul cimport tf_matrix


cdef extern from "blocks/block_formats.h" nogil:
    struct tf_element:
        const char *name
        uint8_t width
    struct tf_scale:
        const char *name
        uint8_t mantissa_bits
        uint8_t kind
    enum:
        TF_ELEMENT_COUNT
        TF_SCALE_COUNT
        TF_SCALE_POWERS
        TF_E4M3 "tf_element_float8_e4m3fn"
        TF_INT4 "tf_element_int4"
    const tf_element tf_elements[]
    const tf_scale tf_scales[]


cdef extern from "blocks/block_plan.h" nogil:
    enum:
        TF_BLOCK_MOST
        TF_RULE_COUNT
    struct tf_block_format:
        int element
        int residual
        int scale
        int block
        float tensor_scale
    struct tf_block_plan:
        tf_block_format layout
    void tf_block_plan_fill(tf_block_plan *, tf_block_format, int, int, int)


cdef extern from "blocks/block_arrays.h" nogil:
    struct tf_block_lines:
        npy_intp count
        npy_intp length
    struct tf_block_codes:
        uint8_t *codes
        uint8_t *scales
        uint8_t *residuals
    struct tf_block_bounds:
        float greatest
        float least
        npy_intp special
    int tf_blocks_quantize(const tf_block_plan *, const float *, tf_block_lines,
                           const uint64_t *, tf_block_codes)
    int tf_blocks_round(const tf_block_plan *, const float *, tf_block_lines,
                        const uint64_t *, float *)
    int tf_blocks_dequantize(const tf_block_plan *, tf_block_codes, tf_block_lines,
                             int, float *)
    int tf_blocks_dequantize_double(const tf_block_plan *, tf_block_codes,
                                    tf_block_lines, double *)
    tf_block_bounds tf_blocks_bounds(const float *, tf_block_lines, int)


cdef extern from "blocks/code_tables.h" nogil:
    void tf_code_tables_fill()
    int tf_scale_values(const char *, const char *, float *)


cdef extern from "blocks/block_matmul.h" nogil:
    struct tf_block_level:
        const uint8_t *codes
        npy_intp line
        npy_intp step
        int element
    struct tf_block_operand:
        int levels
        tf_block_level level[2]
        const uint8_t *scales
        npy_intp scales_line
        npy_intp scales_step
        int scale
        float tensor_scale
        const char *numbers
        npy_intp stride
        npy_intp along
        npy_intp step
        int kind
    int tf_block_matmul(const tf_block_operand *, const tf_block_operand *, tf_matrix,
                        npy_intp, npy_intp, npy_intp, npy_intp, npy_intp, int,
                        unsigned *)
