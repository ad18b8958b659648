# C declarations: NumPy's DType API, which its own pxd lacks, and src/.

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
cimport numpy as cnp
from numpy cimport npy_intp


cdef extern from "Python.h":
    ctypedef struct PyType_Slot:
        int slot
        void *pfunc

    ctypedef struct PyType_Spec:
        const char *name
        int basicsize
        int itemsize
        unsigned int flags
        PyType_Slot *slots

    ctypedef struct PyMethodDef:
        const char *ml_name
        void *ml_meth
        int ml_flags
        const char *ml_doc

    ctypedef PyObject *(*getter)(PyObject *, void *)

    ctypedef struct PyGetSetDef:
        const char *name
        getter get
        void *set
        const char *doc
        void *closure

    ctypedef PyObject *(*newfunc)(PyTypeObject *, PyObject *, PyObject *)
    ctypedef PyObject *(*reprfunc)(PyObject *)

    void decref "Py_DECREF"(PyObject *)
    void incref "Py_INCREF"(PyObject *)
    object PyType_FromSpecWithBases(PyType_Spec *spec, object bases)
    void PyType_Modified(PyTypeObject *type)
    int Py_tp_new, Py_tp_dealloc, Py_tp_repr, Py_tp_str, Py_tp_hash
    int Py_tp_richcompare, Py_tp_methods, Py_tp_doc, Py_tp_getset
    int Py_nb_float, Py_nb_int, Py_nb_bool
    int Py_nb_add, Py_nb_subtract, Py_nb_multiply, Py_nb_true_divide
    int Py_nb_negative, Py_nb_absolute
    unsigned int Py_TPFLAGS_DEFAULT, Py_TPFLAGS_BASETYPE
    int METH_NOARGS, METH_O, METH_VARARGS


cdef extern from "numpy/ndarraytypes.h":
    ctypedef struct descr_t "PyArray_Descr"

    ctypedef struct PyArray_DTypeMeta:
        descr_t *singleton
        int type_num
        PyTypeObject *scalar_type
        uint64_t flags

    ctypedef struct NpyAuxData:
        void (*free)(NpyAuxData *)
        NpyAuxData *(*clone)(NpyAuxData *)

    ctypedef enum NPY_SORTKIND:
        NPY_SORT_DEFAULT
        NPY_SORT_STABLE
        NPY_SORT_DESCENDING


cdef extern from "numpy/dtype_api.h":
    ctypedef struct PyArrayMethodObject "struct PyArrayMethodObject_tag"

    # Pointers that Cython cannot spell.
    ctypedef char **items_t "char *const *"
    ctypedef descr_t **descrs_t "PyArray_Descr *const *"

    ctypedef struct PyArrayMethod_Context:
        PyObject *caller
        PyArrayMethodObject *method
        descrs_t descriptors
        void *parameters

    ctypedef struct PyArrayMethod_Spec:
        const char *name
        int nin
        int nout
        cnp.NPY_CASTING casting
        int flags
        PyArray_DTypeMeta **dtypes
        PyType_Slot *slots

    ctypedef struct PyUFunc_LoopSlot:
        const char *name
        PyArrayMethod_Spec *spec

    ctypedef struct PyArrayDTypeMeta_Spec:
        PyTypeObject *typeobj
        int flags
        PyArrayMethod_Spec **casts
        PyType_Slot *slots
        PyTypeObject *baseclass

    ctypedef struct PyArrayMethod_SortParameters:
        NPY_SORTKIND flags

    int NPY_METH_REQUIRES_PYAPI, NPY_METH_NO_FLOATINGPOINT_ERRORS
    int NPY_METH_SUPPORTS_UNALIGNED, NPY_METH_IS_REORDERABLE
    int NPY_METH_resolve_descriptors, NPY_METH_get_loop, NPY_METH_strided_loop
    int NPY_METH_contiguous_indexed_loop
    int NPY_METH_unaligned_strided_loop
    int NPY_METH_get_reduction_initial
    int NPY_DT_ABSTRACT
    int NPY_DT_NUMERIC
    int NPY_DT_discover_descr_from_pyobject, NPY_DT_default_descr
    int NPY_DT_common_dtype, NPY_DT_ensure_canonical
    int NPY_DT_setitem, NPY_DT_getitem, NPY_DT_get_constant
    int _NPY_DT_ARRFUNCS_OFFSET
    int NPY_DT_PyArray_ArrFuncs_compare, NPY_DT_PyArray_ArrFuncs_argmax
    int NPY_DT_PyArray_ArrFuncs_argmin, NPY_DT_PyArray_ArrFuncs_dotfunc
    int NPY_DT_PyArray_ArrFuncs_fromstr, NPY_DT_PyArray_ArrFuncs_scanfunc
    int NPY_DT_PyArray_ArrFuncs_nonzero, NPY_DT_PyArray_ArrFuncs_fill
    int NPY_CONSTANT_zero, NPY_CONSTANT_one, NPY_CONSTANT_maximum_finite
    int NPY_CONSTANT_minimum_finite, NPY_CONSTANT_inf, NPY_CONSTANT_ninf
    int NPY_CONSTANT_nan, NPY_CONSTANT_finfo_radix, NPY_CONSTANT_finfo_eps
    int NPY_CONSTANT_finfo_smallest_normal, NPY_CONSTANT_finfo_smallest_subnormal
    int NPY_CONSTANT_finfo_nmant, NPY_CONSTANT_finfo_min_exp
    int NPY_CONSTANT_finfo_max_exp, NPY_CONSTANT_finfo_decimal_digits

    PyArray_DTypeMeta PyArray_PyLongDType, PyArray_PyFloatDType
    PyArray_DTypeMeta PyArray_PyComplexDType


ctypedef int (*strided_loop)(
    PyArrayMethod_Context *, items_t, const npy_intp *, const npy_intp *,
    NpyAuxData *) noexcept nogil


cdef extern from "numpy/arrayobject.h":
    int PyArray_Pack(descr_t *descr, void *item, object value) except -1
    object PyArray_Scalar(void *data, descr_t *descr, object base)
    int PyArrayInitDTypeMeta_FromSpec(PyArray_DTypeMeta *, PyArrayDTypeMeta_Spec *) except -1
    PyArray_DTypeMeta *PyArray_PromoteDTypeSequence(npy_intp, PyArray_DTypeMeta **)


cdef extern from "numpy/arrayobject.h":
    ctypedef struct npy_string_allocator
    ctypedef struct npy_packed_static_string
    ctypedef struct npy_static_string:
        size_t size
        const char *buf

    ctypedef struct PyArray_StringDTypeObject
    npy_string_allocator *NpyString_acquire_allocator(PyArray_StringDTypeObject *)
    void NpyString_release_allocator(npy_string_allocator *)
    int NpyString_load(npy_string_allocator *, npy_packed_static_string *,
                       npy_static_string *)


cdef extern from "numpy/ufuncobject.h":
    int PyUFunc_AddLoopFromSpec(object ufunc, PyArrayMethod_Spec *) except -1
    int PyUFunc_AddLoopsFromSpecs(PyUFunc_LoopSlot *) except -1
    int PyUFunc_AddPromoter(object ufunc, object dtypes, object capsule) except -1


cdef extern from "numpy_glue.h":
    PyArray_DTypeMeta tf_dtypes[]
    PyArray_DTypeMeta tf_dtype_base
    PyArray_DTypeMeta tf_exact_dtype
    int tf_exact_dtype_ready(reprfunc) except -1
    int tf_exact_dtype_make_descr() except -1
    PyArray_DTypeMeta tf_dtype_carrier
    struct tf_legacy_functions "tf_legacy":
        void *copyswap
        void *copyswapn
        void *compare
        void *argsort
        void *argmax
        void *argmin
        void *dot
        void *nonzero
        void *fill
    const tf_legacy_functions tf_legacy[]
    int tf_format_of_dtype(const PyArray_DTypeMeta *dtype) nogil
    int tf_format_of_descr(const descr_t *descr) nogil
    int tf_dtype_base_ready() except -1
    int tf_dtype_carrier_ready(reprfunc) except -1
    int tf_dtype_ready(int, const char *, newfunc, PyMethodDef *,
                       PyGetSetDef *) except -1
    int tf_dtype_make_hybrid(int, PyTypeObject *) except -1
    object tf_scalar_alloc(PyTypeObject *)
    void tf_scalar_dealloc(PyObject *)
    void tf_reduction_begins(const void *context)
    bint tf_reduction_began(const void *context)


cdef extern from "objects.h":
    struct tf_scalar:
        char item[4]
    struct tf_object_functions "tf_objects":
        void *get_item
        void *set_item
    const tf_object_functions tf_objects[]
    int tf_objects_ready(int (*)(int, PyObject *, char *) except -1) except -1
    int tf_warn(unsigned flags, const char *where) except -1


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

    int TF_FORMAT_COUNT
    const tf_format *tf_format_rows[]
    uint32_t tf_magnitude_mask(tf_format)
    uint32_t tf_sign_mask(tf_format)
    uint32_t tf_infinity_magnitude(tf_format)
    uint32_t tf_maximum_magnitude(tf_format)
    uint32_t tf_nan_code(tf_format)
    bint tf_is_nan(tf_format, uint32_t)
    int tf_least_exponent(tf_format)


cdef extern from "formats/codec.h" nogil:
    int TF_DIVIDE, TF_OVER, TF_UNDER, TF_INVALID
    enum tf_rounding:
        TF_ROUNDING_COUNT
    enum tf_overflow:
        TF_OVERFLOW_IEEE
        TF_OVERFLOW_SATURATE


cdef extern from "formats/scalar_ops.h" nogil:
    uint32_t tf_load_code(tf_format, const char *)
    void tf_store_code(tf_format, char *, uint32_t)
    double tf_double_from_code(tf_format, uint32_t)
    uint32_t tf_code_from_double(tf_format, double, unsigned *)


cdef extern from "formats/number_kinds.h" nogil:
    int TF_FLOAT16, TF_FLOAT32, TF_FLOAT64, TF_LONGDOUBLE, TF_BOOL
    int TF_INT8, TF_INT16, TF_INT32, TF_INT64
    int TF_UINT8, TF_UINT16, TF_UINT32, TF_UINT64, TF_KIND_COUNT


cdef extern from "formats/casts.h" nogil:
    struct tf_cast:
        int source "from"
        int to
        int from_complex
        int to_complex
    void tf_cast_items(tf_cast, const char *, npy_intp, char *, npy_intp, npy_intp)
    int tf_cast_is_quiet(int, int)
    size_t tf_kind_size(int)


cdef extern from "runtime/copies.h" nogil:
    void tf_copy(size_t, char *, npy_intp, const char *, npy_intp, size_t)


cdef extern from "formats/quantize.h" nogil:
    unsigned tf_quantize(int, int, const char *, char *, npy_intp, tf_rounding,
                     tf_overflow, const uint64_t *)
    uint32_t tf_code_from_integer(tf_format, int, uint64_t, int, int, unsigned *)


cdef extern from "ufuncs/unary.h" nogil:
    const char *tf_unary_name(int)
    int tf_unary(int, int, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/parts.h" nogil:
    enum tf_code_op:
        TF_NEXTAFTER
        TF_MODF
        TF_FREXP
        TF_LDEXP
        TF_LDEXP_INT
    void tf_apply_code_op(int, tf_code_op, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/binary.h" nogil:
    enum tf_binary_op:
        TF_ADD, TF_MULTIPLY, TF_MAXIMUM, TF_MINIMUM, TF_FMAX, TF_FMIN
        TF_BINARY_COUNT
    struct tf_binary_row:
        const char *name
        uint8_t silent, reorderable
        float identity
    const tf_binary_row *tf_binary_rows
    enum tf_compare_op:
        TF_EQUAL, TF_NOT_EQUAL, TF_LESS, TF_LESS_EQUAL, TF_GREATER
        TF_GREATER_EQUAL
    enum tf_predicate_op:
        TF_ISNAN, TF_ISINF, TF_ISFINITE, TF_SIGNBIT, TF_LOGICAL_NOT
    void tf_binary(int, tf_binary_op, items_t, const npy_intp *, npy_intp)
    void tf_divmod(int, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/compare.h" nogil:
    void tf_copysign_items(int, items_t, const npy_intp *, npy_intp)
    void tf_compare(int, tf_compare_op, items_t, const npy_intp *, npy_intp)
    void tf_is_close(int, items_t, const npy_intp *, npy_intp)
    void tf_predicate(int, tf_predicate_op, items_t, const npy_intp *, npy_intp)
    void tf_clip(int, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/exact_compare.h" nogil:
    float tf_exact_from_double(double, int)
    void tf_exact_compare(int, tf_compare_op, int, items_t, const npy_intp *, npy_intp)
    void tf_exact_extreme(int, tf_binary_op, int, items_t, const npy_intp *, npy_intp)
    void tf_exact_nextafter(int, items_t, const npy_intp *, npy_intp)
    void tf_exact_clip(int, int, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/reduce.h" nogil:
    enum tf_reduction:
        TF_SUM, TF_PROD
    struct tf_partials
    tf_partials *tf_partials_new(int)
    void tf_partials_free(tf_partials *)
    int tf_sum_begins_with_nan(int)
    int TF_REDUCE_FLOAT32
    int tf_reduce(int, tf_reduction, tf_partials *, items_t, const npy_intp *,
                  npy_intp)
    int tf_sum_rows(int, const char *, char *, npy_intp, npy_intp, npy_intp, unsigned *)


cdef extern from "ufuncs/moments.h" nogil:
    struct tf_summed:
        int format
        const char *items
        const uint8_t *mask
        npy_intp stride, repeats, outer, n, inner
        int without_nans
    struct tf_sums:
        double *sums
        double *squares
        int64_t *exponents
        double *counts
        int32_t *greatest
        int32_t *least
    enum tf_statistic:
        TF_TOTAL, TF_MEAN, TF_VARIANCE, TF_DEVIATION, TF_NORM, TF_PRODUCT
    void tf_add_lines(const tf_summed *, tf_statistic, tf_sums)
    int tf_statistics(const tf_summed *, tf_statistic, double, tf_sums, void *, unsigned *)
    int tf_weighted_mean(const tf_summed *, const char *, npy_intp, void *, unsigned *)


cdef extern from "ufuncs/minmax.h" nogil:
    void tf_reduce_extreme(int, tf_binary_op, items_t, npy_intp, npy_intp)
    void tf_accumulate_extreme(int, tf_binary_op, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/segments.h" nogil:
    struct tf_segments:
        const char *items
        npy_intp stride, size
        const npy_intp *starts
        npy_intp count
    int tf_reduce_segments(int, tf_reduction, const tf_segments *, char *, unsigned *)
    void tf_extreme_segments(int, tf_binary_op, const tf_segments *, char *)


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
    uint32_t tf_mma_accumulate(const tf_mma_model *, const uint32_t *, int64_t,
                             const uint32_t *, int64_t, int64_t, uint32_t)


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
                                   const uint32_t *, int64_t, int64_t, uint32_t)


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


cdef extern from "matmul/matrix.h" nogil:
    struct tf_matrix:
        char *data
        npy_intp strides[2]
        npy_intp step
        int kind


cdef extern from "matmul/matmul.h" nogil:
    struct tf_tile_path:
        pass
    enum tf_scaling:
        TF_UNSCALED
        TF_SCALED_MATRIX
        TF_SCALED_LINES
    struct tf_precision:
        int format
        int rounding
        int scaling
        int parts
        int split_orders
        int saturates
        const tf_tile_path *path
        int promote
        int continues
        int silent
    int tf_matmul(const tf_precision *, tf_matrix, tf_matrix, tf_matrix, npy_intp,
                  npy_intp, npy_intp, npy_intp)
    void tf_split(const float *, npy_intp, int, int, float *)
    void tf_matmul_prepare()


cdef extern from "matmul/precisions.h" nogil:
    struct tf_precision_row:
        const char *preset
        const char *name
        int format
        int parts
        int split_orders
    const tf_precision_row tf_precisions[]


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


# What NumPy's ufuncs are made of; cnp names less of it.
cdef extern from *:
    ctypedef struct ufunc_object "PyUFuncObject":
        int nin
        int nout
        int nargs
        int ntypes
        cnp.PyUFuncGenericFunction *functions
        void **data
        const char *name
        const char *types


cdef extern from "programs/blas/blas_call.h":
    enum tf_blas_routine:
        TF_BLAS_GEMM
        TF_BLAS_GEMV
        TF_BLAS_DOT
        TF_BLAS_ROUTINES
    struct tf_blas_name:
        int routine
        char type
        int cblas
        int wide
        int sub
        int wider
    struct tf_blas_arguments:
        const int64_t *registers
        int in_registers
        const int64_t *stack
        const double *floating
        char *returned
    struct tf_blas_matrix:
        npy_intp rows
        npy_intp columns
    struct tf_blas_product:
        char type
        npy_intp m
        npy_intp n
        npy_intp k
        tf_blas_matrix a
        tf_blas_matrix b
    ctypedef int (*tf_blas_each_fn)(void *, const tf_blas_product *) noexcept
    int tf_blas_read_name(const char *, tf_blas_name *)
    const char *tf_blas_routine_name(int)
    double tf_blas_multiply_adds(const tf_blas_product *)
    int tf_blas_take_apart(const tf_blas_name *, const tf_blas_arguments *,
                           tf_blas_each_fn, void *)
    int tf_blas_compute(const tf_precision *, const tf_blas_product *)

cdef extern from "programs/blas/interrupts.h" nogil:
    void tf_interrupts_count(int (*)() noexcept nogil)
    void tf_blas_begin_stops(int)
    void tf_blas_end_stops()
    void tf_blas_line(const tf_blas_matrix *, char, int, npy_intp, double *, double *)


cdef extern from "programs/blas/counts.h" nogil:
    enum tf_blas_fate:
        TF_OBEYED
        TF_FATES
    enum:
        TF_BLAS_TYPES
        TF_LOOP_CALL
    struct tf_blas_count_t "tf_blas_count":
        uint64_t calls
        uint64_t multiply_adds
    struct tf_blas_counts:
        tf_blas_count_t of[1][1][1]
    struct tf_named_count_t "tf_named_count":
        char name[56]
        int kind
        int is_ready
        uint64_t calls
        uint64_t nanoseconds
    int tf_counts_prepare()
    int tf_counts_share(char *, size_t)
    void tf_blas_count(int, char, int, double)
    void tf_blas_total(tf_blas_counts *)
    tf_named_count_t *tf_named_count(int, const char *)
    void tf_named_call(tf_named_count_t *, uint64_t)
    const tf_named_count_t *tf_named_counts(int)


cdef extern from "programs/blas/engine.h" nogil:
    struct tf_blas_mode:
        tf_device device
        int float64
        int complex64
        int dots
        int lapack
        npy_intp min_size
        const void *plan
        int outer
    int tf_blas_is_watched()
    void tf_blas_set_outer_mode(const tf_blas_mode *)
    tf_blas_fate tf_blas_fate_of_obeying(const tf_blas_mode *)
    int tf_blas_is_available()
    int tf_blas_begin()
    void tf_blas_end()
    uint64_t tf_blas_lost()
    int tf_blas_enter_lapack()
    tf_blas_fate tf_blas_fate_of(const tf_blas_mode **, void *, char, npy_intp,
                                 npy_intp, npy_intp)
    const tf_blas_mode *tf_blas_mode_here(const tf_blas_mode *, void *)
    void *tf_blas_counting(void *, int, const char *, int)


cdef extern from "programs/blas/product_sites.h" nogil:
    struct tf_source:
        const char *file[2]
        const char *function[2]
        int line[2]
    struct tf_source_finder:
        pass
    struct tf_sample:
        tf_sample *next
        npy_intp m
        npy_intp n
        npy_intp k
        npy_intp rows
        npy_intp columns
        double *a
        double *b
        double *imaginary_a
        double *imaginary_b
    enum:
        TF_SHAPES
    struct tf_shape:
        npy_intp m
        npy_intp n
        npy_intp k
        uint64_t calls
    struct tf_product_site:
        tf_source source
        const char *object
        char type
        int routine
        uint64_t calls
        uint64_t multiply_adds
        uint64_t timed
        double seconds
        tf_shape shapes[1]
    struct tf_product_sites_wanted:
        npy_intp lines
        int whole
        size_t bytes
        int dots
        int lapack
        int (*is_inside)() noexcept nogil
    int tf_product_sites_begin(const tf_source_finder *, const tf_product_sites_wanted *)
    void tf_product_sites_end()
    const tf_product_site *tf_product_sites(size_t)
    void tf_product_site_copy(const tf_product_site *, tf_product_site *)
    tf_sample *tf_take_samples(const tf_product_site *)
    void tf_free_sample(tf_sample *)
    uint64_t tf_samples_left_out()
    uint64_t tf_calls_without_site()


cdef extern from "programs/hooks/stubs.h" nogil:
    struct tf_stub:
        void *original
        void *facts
    struct tf_call:
        pass
    void *tf_stub_new(void *, tf_stub **)
    void tf_stub_set(tf_stub *, int (*)(tf_stub *, tf_call *))


cdef extern from "programs/arithmetic/loops.h" nogil:
    enum:
        TF_LOOP_INPUTS
        TF_LOOP_OUTPUTS
        TF_LOOP_OPERANDS
    ctypedef void tf_loop_fn(char **, const npy_intp *, const npy_intp *, void *)
    struct tf_loop:
        const char *name
        int inputs
        int outputs
        char type
        char is_float[5]
        int adds
        int pairwise
        tf_loop_fn *wide
        void *wide_data
    struct tf_rounded:
        uint64_t calls
        uint64_t numbers
    void tf_arithmetic_set(int, int)
    void tf_arithmetic_count(const tf_loop *, size_t)
    tf_rounded tf_arithmetic_take_counts(tf_loop *)
    int tf_arithmetic_handler(tf_stub *, tf_call *)
    unsigned tf_arithmetic_round_all(char, void *, size_t)
    double tf_arithmetic_round(char, double, unsigned *)
    void tf_arithmetic_watch(const tf_loop *, const double *, const double *,
                             const double *, const double *, int)


cdef extern from "programs/arithmetic/figures.h" nogil:
    struct tf_figures:
        uint64_t calls
        uint64_t operands
        uint64_t rounded_operands
        uint64_t operand_overflows
        uint64_t operand_underflows
        uint64_t results
        uint64_t inexact
        uint64_t overflows
        uint64_t underflows
        uint64_t nans
        uint64_t measured
        double largest_ulps
        double sum_of_ulps
        uint64_t sums
        uint64_t zero_sums
        uint64_t canceled_sums
        int most_bits_lost


cdef extern from "programs/arithmetic/ufunc_sites.h" nogil:
    struct tf_ufunc_site:
        const void *what
        tf_source source
    int tf_ufunc_sites_begin(const tf_source_finder *)
    const tf_ufunc_site *tf_ufunc_sites(size_t)
    tf_figures tf_figures_of(const tf_ufunc_site *)
    uint64_t tf_ufunc_sites_left_out()


cdef extern from "programs/blas_modes.h":
    const tf_blas_mode tf_no_mode
    const tf_blas_mode *tf_mode_kept(const tf_blas_mode *)
    void tf_modes_prepare(const tf_blas_mode *(*)() noexcept)
    void tf_modes_take_over()
    # called with the GIL
    void tf_modes_set_process(const tf_blas_mode *)
    void tf_modes_count_scope(int)
    void tf_modes_publish()


cdef extern from "programs/where_am_i.h" nogil:
    int tf_frames_are_known()
    int tf_frames_set_folders(const char *const *, const char *const *,
                              const char *const *)
    int tf_frames_set_regions(const char *const (*)[2], const char *const (*)[2])
    int tf_frames_may_obey()
    const tf_source_finder tf_frames_finder


cdef extern from "programs/plans.h" nogil:
    struct tf_planned:
        const char *file[2]
        int line[2]
        const tf_blas_mode *mode
    struct tf_plan:
        pass
    const tf_plan *tf_plan_new(const tf_planned *, size_t, const tf_blas_mode *)
    void tf_plans_obey_regions(int)


cdef extern from "runtime/thread_pool.h" nogil:
    void tf_workers_free()
    npy_intp tf_workspaces()


cdef extern from "runtime/stops.h" nogil:
    struct tf_watch:
        pass
    void tf_stops_prepare(int (*)() noexcept nogil)
    int tf_is_stopped(tf_watch *, int)


cdef extern from "blocks/block_arrays.h" nogil:
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
        TF_RULE_COUNT
        TF_BLOCK_MOST
    const tf_element tf_elements[]
    const tf_scale tf_scales[]
    struct tf_block_format:
        int element
        int residual
        int scale
        int block
        float tensor_scale
    struct tf_block_plan:
        tf_block_format layout
    void tf_block_plan_fill(tf_block_plan *, tf_block_format, int, int, int)
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


cdef extern from "matmul/complex.h" nogil:
    struct tf_conjugates:
        int a
        int b
    int tf_matmul_complex(const tf_precision *, tf_conjugates, tf_matrix, tf_matrix,
                          tf_matrix, npy_intp, npy_intp, npy_intp, npy_intp, const void *)


cdef extern from "ufuncs/indexed.h" nogil:
    void tf_binary_at(int, tf_binary_op, items_t, const npy_intp *, npy_intp, npy_intp)


cdef extern from "ufuncs/sort.h" nogil:
    int tf_sort(int, void *, npy_intp, int, int)
    int tf_argsort(int, const void *, npy_intp *, npy_intp, int)


cdef extern from "formats/byte_tables.h" nogil:
    void tf_byte_tables_fill()


cdef extern from "runtime/cpu_dispatch.h":
    const char *tf_isa_name(int, int *built, int *runs)
    const char *tf_isa_choose(const char *)
