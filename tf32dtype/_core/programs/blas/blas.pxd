# C declarations of src/programs/blas/.

from libc.stdint cimport int64_t, uint64_t
from numpy cimport npy_intp

from tf32dtype._core.matmul.matmul cimport tf_matrix, tf_precision
from tf32dtype._core.programs.call_sites cimport tf_source, tf_source_finder
from tf32dtype._core.tensor_core.tensor_core cimport tf_device


cdef extern from "programs/blas/blas_call.h":
    enum:
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
        const char *data
        npy_intp strides[2]
        npy_intp rows
        npy_intp columns
        int conjugate
    struct tf_blas_products:
        int (*multiply)(const tf_blas_products *, char, const tf_blas_matrix *,
                        const tf_blas_matrix *, const tf_matrix *) noexcept
        int (*can_multiply)() noexcept nogil
        void *object
    struct tf_blas_product:
        char type
        npy_intp m
        npy_intp n
        npy_intp k
        tf_blas_matrix a
        tf_blas_matrix b
        const tf_blas_products *products
    ctypedef int (*tf_blas_each_fn)(void *, const tf_blas_product *) noexcept
    int tf_blas_read_name(const char *, tf_blas_name *)
    const char *tf_blas_routine_name(int)
    double tf_blas_multiply_adds(const tf_blas_product *)
    int tf_blas_take_apart(const tf_blas_name *, const tf_blas_arguments *,
                           tf_blas_each_fn, void *)
    int tf_blas_compute(const tf_precision *, const tf_blas_product *)
    void tf_blas_line(const tf_blas_matrix *, char, int, npy_intp, double *, double *)


cdef extern from "programs/blas/interrupts.h" nogil:
    void tf_interrupts_count(int (*)() noexcept nogil)
    void tf_blas_begin_stops(int)
    void tf_blas_end_stops()


cdef extern from "programs/blas/counts.h" nogil:
    enum tf_blas_fate:
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


cdef extern from "programs/blas/operand.h" nogil:
    struct tf_operands_seen:
        const tf_blas_product *product


cdef extern from "programs/blas/engine.h" nogil:
    struct tf_blas_mode:
        tf_device device
        int float64
        int complex64
        int dots
        int lapack
        npy_intp min_size
        const tf_blas_products *products
        const void *plan
        int outer
    void tf_blas_step_aside(int)
    int tf_blas_is_aside()
    int tf_blas_is_watched()
    void tf_blas_set_outer_mode(const tf_blas_mode *)
    tf_blas_fate tf_blas_fate_of_obeying(const tf_blas_mode *)
    int tf_blas_is_available()
    int tf_blas_begin()
    void tf_blas_end()
    uint64_t tf_blas_lost()
    int tf_blas_enter_lapack()
    tf_blas_fate tf_blas_fate_of(const tf_blas_mode **, void *, const tf_operands_seen *,
                                 char, npy_intp, npy_intp, npy_intp)
    const tf_blas_mode *tf_blas_mode_here(const tf_blas_mode *, void *,
                                          const tf_operands_seen *)
    void *tf_blas_counting(void *, int, const char *, int)


cdef extern from "programs/blas/product_sites.h" nogil:
    ctypedef void (*tf_product_made_fn)(const void *, const tf_blas_product *)
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
        uint64_t digests[2]
    enum:
        TF_SHAPES
        TF_OPERAND_SHAPES
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
        int is_many[2]
    struct tf_product_operand:
        const tf_product_site *of
        int side
        npy_intp rows
        npy_intp columns
        uint64_t digest
        uint64_t number
        const char *name
        const char *data
        int has_moved
        int is_named_buffer
        uint64_t calls
        uint64_t multiply_adds
        tf_shape shapes[1]
    struct tf_product_sites_wanted:
        npy_intp lines
        int whole
        size_t bytes
        int dots
        int lapack
        int (*is_inside)() noexcept nogil
        tf_product_made_fn made
        int operands
        void (*name_operands)() noexcept nogil
    int tf_product_sites_begin(const tf_source_finder *, const tf_product_sites_wanted *)
    void tf_product_sites_end()
    const tf_product_site *tf_product_sites(size_t)
    const tf_product_operand *tf_product_operands(size_t *)
    void tf_product_name(const tf_blas_matrix *, char, const char *)
    void tf_product_site_copy(const tf_product_site *, tf_product_site *)
    tf_sample *tf_take_samples(const tf_product_site *)
    void tf_free_sample(tf_sample *)
    uint64_t tf_samples_left_out()
    uint64_t tf_calls_without_site()
