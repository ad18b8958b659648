# Loops of NumPy's products on arrays of formats: thin adapters between NumPy and src/matmul.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.matmul.matmul cimport *

# matmul (m,n),(n,p)->(m,p); vecdot (n),(n)->(); matvec (m,n),(n)->(m);
# vecmat (n),(n,p)->(p): core strides follow the three outer ones.
cdef enum product:
    MATMUL
    VECDOT
    MATVEC
    VECMAT


# Numbers of our formats are multiplied as they are.
cdef tf_precision as_they_are
memset(&as_they_are, 0, sizeof(as_they_are))
as_they_are.parts = as_they_are.split_orders = 1


cdef struct matrices:
    tf_matrix a, b, c
    npy_intp m, n, k, count


cdef matrices matrices_of(int kind, items_t data, const npy_intp *dimensions,
                          const npy_intp *strides) noexcept nogil:
    """Describe a ufunc loop's operands as matrices; vectors are rows or columns."""
    cdef const npy_intp *core = strides + 3
    cdef matrices x
    memset(&x, 0, sizeof(x))
    x.m = x.n = 1
    if kind == MATMUL:
        x.m, x.k, x.n = dimensions[1], dimensions[2], dimensions[3]
        x.a.strides[0], x.a.strides[1] = core[0], core[1]
        x.b.strides[0], x.b.strides[1] = core[2], core[3]
        x.c.strides[0], x.c.strides[1] = core[4], core[5]
    elif kind == VECDOT:
        x.k = dimensions[1]
        x.a.strides[1], x.b.strides[0] = core[0], core[1]
    elif kind == MATVEC:
        x.m, x.k = dimensions[1], dimensions[2]
        x.a.strides[0], x.a.strides[1] = core[0], core[1]
        x.b.strides[0] = core[2]
        x.c.strides[0] = core[3]
    else:
        x.k, x.n = dimensions[1], dimensions[2]
        x.a.strides[1] = core[0]
        x.b.strides[0], x.b.strides[1] = core[1], core[2]
        x.c.strides[1] = core[3]
    x.a.data, x.b.data, x.c.data = data[0], data[1], data[2]
    x.a.step, x.b.step, x.c.step = strides[0], strides[1], strides[2]
    x.count = dimensions[0]
    return x


cdef int product_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef matrices x = matrices_of(loop.op, data, dimensions, strides)
    x.a.kind, x.b.kind, x.c.kind = loop.kinds[0], loop.kinds[1], loop.kinds[2]
    if tf_matmul(&as_they_are, x.a, x.b, x.c, x.m, x.n, x.k, x.count) < 0:
        return out_of_memory()
    return 0


cdef int real_kind(array) except -1:
    cdef int is_complex = 0
    cdef int kind = kind_of_descr(<descr_t *><PyObject *>array.dtype, &is_complex)
    if is_complex or not (0 <= kind <= TF_FLOAT64):
        raise TypeError(f"cannot multiply matrices of {array.dtype}")
    return kind
