# C declarations of src/matmul/.

from numpy cimport npy_intp


cdef extern from "matmul/matrix.h" nogil:
    struct tf_matrix:
        char *data
        npy_intp strides[2]
        npy_intp step
        int kind


cdef extern from "matmul/matmul.h" nogil:
    struct tf_tile_path:
        pass
    enum:
        TF_SCALED_MATRIX
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
    void tf_matmul_prepare()


cdef extern from "matmul/product.h" nogil:
    enum tf_way:
        TF_SMALL_MATRICES
        TF_MACRO_KERNEL
    struct tf_kernel:
        size_t rows
        size_t columns
    struct tf_split_schedule:
        size_t count
    struct tf_packed_way:
        int packing
        tf_kernel kernel
        const tf_split_schedule *schedule
    struct tf_tiles:
        npy_intp rows
        npy_intp columns
        npy_intp vertical
        npy_intp across
        npy_intp threads
    struct tf_product:
        const tf_precision *precision
        tf_matrix a
        tf_matrix b
        tf_matrix c
        npy_intp m
        npy_intp n
        npy_intp k
        npy_intp count
        float alpha
    struct tf_plan_of_product:
        tf_product product
        int swapped
        tf_way way
        tf_packed_way fastest
        tf_tiles tiles


cdef extern from "matmul/plan.h" nogil:
    struct tf_way_text:
        const char *name
        const char *reason
    void tf_plan_product(tf_plan_of_product *)
    tf_way_text tf_text_of_way(tf_way)


cdef extern from "matmul/complex.h" nogil:
    struct tf_conjugates:
        int a
        int b
    int tf_matmul_complex(const tf_precision *, tf_conjugates, tf_matrix, tf_matrix,
                          tf_matrix, npy_intp, npy_intp, npy_intp, npy_intp, const void *)


cdef extern from "matmul/precisions.h" nogil:
    struct tf_precision_row:
        const char *preset
        const char *name
        int format
        int parts
        int split_orders
    const tf_precision_row tf_precisions[]
