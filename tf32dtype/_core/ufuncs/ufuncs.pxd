# C declarations of src/ufuncs/.

from libc.stdint cimport int32_t, int64_t, uint8_t
from numpy cimport npy_intp

from tf32dtype._core.numpy_api cimport items_t
from tf32dtype._core.formats.formats cimport tf_predicate_op


cdef extern from "ufuncs/binary_ops.h" nogil:
    enum tf_binary_op:
        TF_ADD, TF_MULTIPLY, TF_MAXIMUM, TF_MINIMUM, TF_FMAX, TF_FMIN
        TF_BINARY_COUNT
    struct tf_binary_row:
        const char *name
        uint8_t silent, reorderable
        float identity
    const tf_binary_row tf_binary_rows[]


cdef extern from "ufuncs/kernels.h" nogil:
    enum tf_compare_op:
        TF_EQUAL, TF_NOT_EQUAL, TF_LESS, TF_LESS_EQUAL, TF_GREATER
        TF_GREATER_EQUAL


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
    void tf_binary(int, tf_binary_op, items_t, const npy_intp *, npy_intp)
    void tf_divmod(int, items_t, const npy_intp *, npy_intp)


cdef extern from "ufuncs/indexed.h" nogil:
    void tf_binary_at(int, tf_binary_op, items_t, const npy_intp *, npy_intp, npy_intp)


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


cdef extern from "ufuncs/pages.h" nogil:
    enum tf_reduction:
        TF_SUM, TF_PROD
    struct tf_partials
    tf_partials *tf_partials_new(int)
    void tf_partials_free(tf_partials *)


cdef extern from "ufuncs/exact_sum.h" nogil:
    int TF_REDUCE_FLOAT32
    int tf_sum_begins_with_nan(int)


cdef extern from "ufuncs/reduce.h" nogil:
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
        TF_TOTAL, TF_MEAN, TF_PRODUCT
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


cdef extern from "ufuncs/sort.h" nogil:
    int tf_sort(int, void *, npy_intp, int, int)
    int tf_argsort(int, const void *, npy_intp *, npy_intp, int)
