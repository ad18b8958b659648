# C declarations of src/exact/.

from libc.stdint cimport int64_t
from numpy cimport npy_intp

from tf32dtype._core.formats.formats cimport tf_rounding


cdef extern from "exact/sums.h" nogil:
    struct tf_exact_results:
        void *data
        int is_float
        tf_rounding rounding
    int tf_exact_dots(const double *, const double *, size_t, const int64_t *, size_t,
                      tf_exact_results)
    int tf_exact_sums(const char *, npy_intp, npy_intp, size_t, size_t, tf_exact_results)
