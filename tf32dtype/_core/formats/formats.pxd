# C declarations of src/formats/.

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from numpy cimport npy_intp


cdef extern from "formats/formats.h" nogil:
    enum tf_specials:
        TF_IEEE
        TF_FN
        TF_FNUZ
        TF_FINITE
        TF_EXPONENT_ONLY

    struct tf_format:
        const char *name
        uint8_t itemsize
        uint8_t width
        uint8_t shift
        uint8_t exponent_bits
        uint8_t mantissa_bits
        uint8_t is_signed
        int bias
        tf_specials specials
        char typechar

    enum:  # sizes of arrays in Cython
        TF_FORMAT_COUNT
    const tf_format *tf_format_rows[]
    uint32_t tf_magnitude_mask(tf_format)
    uint32_t tf_sign_mask(tf_format)
    uint32_t tf_infinity_magnitude(tf_format)
    uint32_t tf_maximum_magnitude(tf_format)
    uint32_t tf_nan_code(tf_format)
    int tf_least_exponent(tf_format)


cdef extern from "formats/codec.h" nogil:
    int TF_OVER
    enum tf_rounding:
        TF_STOCHASTIC
        TF_ROUNDING_COUNT
    enum tf_overflow:
        TF_OVERFLOW_SATURATE


cdef extern from "formats/scalar_ops.h" nogil:
    uint32_t tf_load_code(tf_format, const char *)
    void tf_store_code(tf_format, char *, uint32_t)
    double tf_double_from_code(tf_format, uint32_t)
    uint32_t tf_code_from_double(tf_format, double, unsigned *)


cdef extern from "formats/number_kinds.h" nogil:
    int TF_FLOAT16, TF_FLOAT32, TF_FLOAT64, TF_LONGDOUBLE, TF_BOOL
    int TF_INT8, TF_INT16, TF_INT32, TF_INT64
    int TF_UINT8, TF_UINT16, TF_UINT32, TF_UINT64
    enum:
        TF_KIND_COUNT


cdef extern from "formats/byte_tables.h" nogil:
    void tf_byte_tables_fill()


cdef extern from "formats/kernels.h" nogil:
    enum tf_predicate_op:
        TF_ISNAN, TF_ISINF, TF_ISFINITE, TF_SIGNBIT, TF_LOGICAL_NOT


cdef extern from "formats/casts.h" nogil:
    struct tf_cast:
        int source "from"
        int to
        int from_complex
        int to_complex
    void tf_cast_items(tf_cast, const char *, npy_intp, char *, npy_intp, npy_intp)
    int tf_cast_is_quiet(int, int)


cdef extern from "formats/quantize.h" nogil:
    unsigned tf_quantize(int, int, const char *, char *, npy_intp, tf_rounding,
                     tf_overflow, const uint64_t *)
    uint32_t tf_code_from_integer(tf_format, int, uint64_t, int, int, unsigned *)
