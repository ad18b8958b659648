# C declarations of src/tensor_core/.

from libc.stdint cimport int32_t, int64_t, uint32_t
from numpy cimport npy_intp

from tf32dtype._core.matmul.matmul cimport tf_matrix, tf_precision, tf_tile_path


cdef extern from "tensor_core/mma_model.h" nogil:
    enum:
        TF_NO_EXPONENT
    struct tf_mma_model:
        int32_t depth
        int32_t instruction_depth
        int32_t fraction
        int32_t kept
        int32_t half
        int32_t least_a
        int32_t least_b
        int32_t emulated
        int32_t cut_first
        int32_t floor
        int32_t zero_c
        int32_t zero_products
        int32_t negative_zero
    struct tf_told:
        pass
    struct tf_mma_trace:
        tf_told *rows
        int64_t room
        int64_t count
        int64_t first
    uint32_t tf_mma_add_sum(uint32_t, uint32_t, int32_t, int, tf_mma_trace *)
    uint32_t tf_mma_accumulate(const tf_mma_model *, const uint32_t *, int64_t,
                             const uint32_t *, int64_t, int64_t, uint32_t,
                             tf_mma_trace *)


cdef extern from "tensor_core/rounded_model.h" nogil:
    enum:
        TF_FUSED
        TF_STEPWISE
        TF_TWO_STAGES
        TF_KEEP_SUBNORMAL
        TF_FLUSH_TO_PLUS_ZERO
        TF_FLUSH_TO_SIGNED_ZERO
        TF_DEEPEST_ROUNDED
    struct tf_rounded_model:
        int32_t arithmetic
        int32_t depth
        int32_t instruction_depth
        int32_t lanes
        uint32_t start
        int32_t odd_first
        int32_t to_odd
        int32_t flush_operands
        int32_t flush_results
        int32_t least_a
        int32_t least_b
    uint32_t tf_rounded_accumulate(const tf_rounded_model *, const uint32_t *, int64_t,
                                   const uint32_t *, int64_t, int64_t, uint32_t,
                                   tf_mma_trace *)


cdef extern from "tensor_core/mma_matmul.h" nogil:
    struct tf_device:
        tf_precision precision
        tf_mma_model model
        tf_rounded_model rounded
        int scales_inside
    const tf_tile_path tf_mma_path


cdef extern from "tensor_core/fma_matmul.h" nogil:
    int tf_fma_matmul(tf_matrix, tf_matrix, tf_matrix, npy_intp, npy_intp, npy_intp,
                      npy_intp, npy_intp)
    ctypedef void tf_sums_fn(const void *, const double *, size_t, size_t, size_t, size_t,
                             size_t)
    int tf_float64_matmul(tf_matrix, tf_matrix, npy_intp, npy_intp, npy_intp,
                          tf_sums_fn *, const void *)
    size_t tf_float64_depth(size_t)


cdef extern from "tensor_core/scaled_mma_model.h" nogil:
    struct tf_scaled_model:
        int32_t depth
        int32_t block
        int32_t group
        int32_t fraction
        int32_t powers
        int32_t least_a
        int32_t least_b
        int32_t floor
        int32_t zero_c
        int32_t zero_terms
        int32_t negative_zero


cdef extern from "tensor_core/scaled_matmul.h" nogil:
    struct tf_scaled_lines:
        const char *codes
        npy_intp line
        npy_intp along
        const char *scales
        npy_intp scale_line
        npy_intp scale_along
        int format
    int tf_scaled_matmul(const tf_scaled_model *, tf_scaled_lines, tf_scaled_lines,
                         float *, npy_intp, npy_intp, npy_intp)
    void tf_promote_block(const float *, const float *, const float *, float *,
                          npy_intp, npy_intp)
