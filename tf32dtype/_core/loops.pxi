# Ufunc loops: thin adapters between NumPy and the functions in src.
#
# A loop finds its format and operation in its auxiliary data.

cdef struct loop_data:
    NpyAuxData base
    int format
    int op
    tf_partials *partials   # of reductions
    bint is_reduction
    bint into_float32


cdef int unary_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    if tf_unary(loop.format, loop.op, data, strides, dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int out_of_memory() noexcept with gil:
    try:
        raise MemoryError()
    except MemoryError as error:
        PyErr_SetObject(MemoryError, error)
    return -1


cdef extern from "Python.h":
    void PyErr_SetObject(object, object)


cdef int binary_loop(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef tf_binary_op op = <tf_binary_op>loop.op
    if (data[0] == data[2] and strides[0] == 0 and strides[2] == 0
            and (op == TF_MAXIMUM or op == TF_MINIMUM or op == TF_FMAX
                 or op == TF_FMIN)):
        tf_reduce_extreme(loop.format, op, data, strides[1], dimensions[0])
    else:
        tf_binary(loop.format, op, data, strides, dimensions[0])
    return 0


cdef int sum_loop(PyArrayMethod_Context *context, items_t data,
                  const npy_intp *dimensions, const npy_intp *strides,
                  NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    if loop.partials == NULL and data[0] == data[2] and strides[0] == strides[2]:
        loop.partials = tf_partials_new(loop.is_reduction)
        if loop.partials == NULL:
            return out_of_memory()
    if tf_reduce(loop.format, <tf_reduction>loop.op, loop.partials, data, strides,
                 dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int compare_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_compare(loop.format, <tf_compare_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int predicate_loop(PyArrayMethod_Context *context, items_t data,
                        const npy_intp *dimensions, const npy_intp *strides,
                        NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_predicate(loop.format, <tf_predicate_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int other_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_other(loop.format, <tf_other_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int divmod_loop(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    tf_divmod((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


cdef int clip_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides,
                   NpyAuxData *auxiliary) noexcept nogil:
    tf_clip((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


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
as_they_are.parts = as_they_are.bands = 1


cdef int product_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef const npy_intp *core = strides + 3
    cdef npy_intp m = 1, n = 1, k
    cdef tf_matrix a, b, c
    memset(&a, 0, sizeof(a))
    memset(&b, 0, sizeof(b))
    memset(&c, 0, sizeof(c))
    if loop.op == MATMUL:
        m, k, n = dimensions[1], dimensions[2], dimensions[3]
        a.strides[0], a.strides[1] = core[0], core[1]
        b.strides[0], b.strides[1] = core[2], core[3]
        c.strides[0], c.strides[1] = core[4], core[5]
    elif loop.op == VECDOT:
        k = dimensions[1]
        a.strides[1], b.strides[0] = core[0], core[1]
    elif loop.op == MATVEC:
        m, k = dimensions[1], dimensions[2]
        a.strides[0], a.strides[1] = core[0], core[1]
        b.strides[0] = core[2]
        c.strides[0] = core[3]
    else:
        k, n = dimensions[1], dimensions[2]
        a.strides[1] = core[0]
        b.strides[0], b.strides[1] = core[1], core[2]
        c.strides[1] = core[3]
    a.data, b.data, c.data = data[0], data[1], data[2]
    a.step, b.step, c.step = strides[0], strides[1], strides[2]
    a.kind = b.kind = loop.format
    c.kind = TF_FLOAT32 if loop.into_float32 else loop.format
    if tf_matmul(&as_they_are, a, b, c, m, n, k, dimensions[0]) < 0:
        return out_of_memory()
    return 0
