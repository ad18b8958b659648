# C declarations of src/programs/arithmetic/.

from libc.stdint cimport uint64_t
from numpy cimport npy_intp

from tf32dtype._core.programs.blas.blas cimport tf_blas_product
from tf32dtype._core.programs.hooks cimport tf_call, tf_stub
from tf32dtype._core.programs.call_sites cimport tf_source, tf_source_finder


cdef extern from "programs/arithmetic/loops.h" nogil:
    enum:
        TF_LOOP_INPUTS
        TF_LOOP_OUTPUTS
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
    struct tf_round_counts:
        uint64_t calls
        uint64_t numbers
    const void *tf_arithmetic_settings(int, int)
    void tf_arithmetic_set(const void *)
    void tf_arithmetic_set_plan(const void *, const void *(*)(const void *) noexcept)
    int tf_arithmetic_is_here()
    void tf_arithmetic_count(const tf_loop *, size_t)
    tf_round_counts tf_arithmetic_take_counts(tf_loop *)
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
        uint64_t absorbed_sums
        int most_bits_lost


cdef extern from "programs/arithmetic/followed.h" nogil:
    struct tf_followed_sum:
        const void *product
        const char *function
        tf_source source
        uint64_t calls
        double part
        double whole
    int tf_followed_begin(const tf_source_finder *, tf_stub *const *, size_t)
    int tf_followed_is_for(const tf_loop *)
    void tf_followed_end()
    void tf_follow_result(const void *, const tf_blas_product *)
    const tf_followed_sum *tf_followed_sums(size_t)


cdef extern from "programs/arithmetic/ufunc_sites.h" nogil:
    struct tf_ufunc_site:
        const void *what
        tf_source source
    int tf_ufunc_sites_begin(const tf_source_finder *)
    const tf_ufunc_site *tf_ufunc_sites(size_t)
    tf_figures tf_figures_of(const tf_ufunc_site *)
    uint64_t tf_ufunc_sites_left_out()
