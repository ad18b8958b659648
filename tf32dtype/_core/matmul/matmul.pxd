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
