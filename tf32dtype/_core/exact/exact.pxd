# C declarations of src/exact/.

from libc.stdint cimport int64_t, uint8_t
from numpy cimport npy_intp

from tf32dtype._core.formats.formats cimport tf_rounding


cdef extern from "exact/matrix.h" nogil:
    struct tf_exact_matrix:
        const char *items
        npy_intp strides[2]
        size_t m
        size_t k
        int is_float


cdef extern from "exact/sums.h" nogil:
    struct tf_exact_results:
        void *data
        int is_float
        tf_rounding rounding
    int tf_exact_dots(const double *, const double *, size_t, const int64_t *, size_t,
                      tf_exact_results)
    int tf_exact_sums(tf_exact_matrix, tf_exact_results)


cdef extern from "exact/kernels.h" nogil:
    struct tf_row_facts:
        double norm
        double unit
        double largest
        int special
    struct tf_row_of_sums:
        size_t n
        const double *terms
        size_t count
        size_t term_step
        const double *row_bounds
        const double *column_bounds
        size_t ranks
        size_t row_step
        size_t column_step
        const double *column_ratios
        const int64_t *column_exponents


cdef extern from "exact/passes.h" nogil:
    int tf_exact_load(tf_exact_matrix, double *, tf_row_facts *)
    int tf_exact_slice(double *, void *, size_t, size_t, int, const int64_t *, double *)
    struct tf_exact_rounding:
        tf_row_of_sums first
        size_t m
        const double *row_ratios
        const int64_t *row_exponents
        tf_rounding rounding
        int is_float
        void *results
        int64_t *pairs
        size_t most
        size_t left  # atomic_size_t
    int tf_exact_round(tf_exact_rounding *)
    void tf_exact_round_tile(const void *, const double *, size_t, size_t, size_t,
                             size_t, size_t)


cdef extern from "exact/elements.h" nogil:
    struct tf_exact_side:
        tf_exact_matrix given
        tf_exact_matrix operand
        const double *norms
        const double *lost
        const int64_t *exponents
        const uint8_t *special
    struct tf_exact_elements:
        tf_exact_side x
        tf_exact_side y
        double error
        const int64_t *pairs
        size_t count
        tf_exact_results results
        size_t row
        size_t sums  # atomic_size_t
    int tf_exact_compute(tf_exact_elements *)
