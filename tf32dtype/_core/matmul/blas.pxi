# BLAS's gemm, which a BLAS plug-in is to stand on, with alpha, beta and leading
# dimensions that NumPy's products lack.

cdef char *items_of(array, npy_intp rows, npy_intp columns, npy_intp ld) except NULL:
    """The items of a contiguous array that holds such a matrix, column by column."""
    cdef cnp.ndarray items = array
    if not array.flags.c_contiguous:
        raise ValueError("a matrix is a contiguous array")
    if min(rows, columns) > 0 and (columns - 1) * ld + rows > cnp.PyArray_SIZE(items):
        raise ValueError(f"{rows} x {columns} with ld = {ld}: array is too small")
    return cnp.PyArray_BYTES(items)


def gemm(bytes transa, bytes transb, npy_intp m, npy_intp n, npy_intp k, float alpha, a,
         npy_intp lda, b, npy_intp ldb, float beta, c, npy_intp ldc,
         str format="float32", int rounding=0, int scaling=0, int parts=1,
         int split_orders=1, bint saturates=False):
    """tf_blas_gemm of src/matmul/blas_api.h on contiguous arrays; its result."""
    cdef tf_precision precision
    cdef tf_kinds kinds
    cdef int status
    memset(&precision, 0, sizeof(precision))
    precision.format = (TF_FLOAT32 if format == "float32" else
                        TF_FLOAT16 if format == "float16" else names.index(format))
    precision.rounding = rounding
    precision.scaling = scaling
    precision.parts = parts
    precision.split_orders = split_orders
    precision.saturates = saturates
    kinds.a, kinds.b, kinds.c = real_kind(a), real_kind(b), real_kind(c)
    cdef char trans_a = transa[0], trans_b = transb[0]
    cdef bint a_across = transa in b"TtCc", b_across = transb in b"TtCc"
    cdef char *a_items = items_of(a, k if a_across else m, m if a_across else k, lda)
    cdef char *b_items = items_of(b, n if b_across else k, k if b_across else n, ldb)
    cdef char *c_items = items_of(c, m, n, ldc)
    with nogil:
        status = tf_blas_gemm(&precision, kinds, trans_a, trans_b, m, n, k, alpha, a_items,
                         lda, b_items, ldb, beta, c_items, ldc)
    if status < 0:
        raise_failure()
    return status
