# Products of BLAS calls that Python code computes: those of the precision "exact".

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.programs cimport *

# Addresses of permanent structs by the object that computes the sums. The dictionary keeps
# the objects.
cdef dict _products = {}


cdef const tf_blas_products *products_by(object exact) except NULL:
    """Return products by `exact(a, b, out)`, as in `MatmulSpec`."""
    cdef tf_blas_products *made
    if exact not in _products:
        made = <tf_blas_products *>malloc(sizeof(tf_blas_products))
        if made == NULL:
            raise MemoryError
        made.multiply, made.can_multiply = multiply_in_python, tf_modes_has_python
        made.object = <void *><PyObject *>exact
        _products[exact] = <size_t>made, exact
    return <const tf_blas_products *><size_t>_products[exact][0]


cdef object matrix_at(const void *data, const npy_intp *strides, npy_intp rows,
                      npy_intp columns, int number, int flags):
    cdef npy_intp *shape = [rows, columns]
    return cnp.PyArray_New(np.ndarray, 2, shape, number, <npy_intp *>strides,
                           <void *>data, 0, flags, None)


cdef int multiply_in_python(const tf_blas_products *products, char letter,
                            const tf_blas_matrix *a, const tf_blas_matrix *b,
                            const tf_matrix *c) noexcept with gil:
    """Compute sums for a call of BLAS (see struct tf_blas_products).

    The caller of BLAS cannot receive an exception. After Ctrl-C, Python raises
    KeyboardInterrupt as soon as it can. Other exceptions are printed.
    """
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *trace
    cdef int flags = -1, was_aside = tf_blas_is_aside()
    cdef int dtype = dtype_numbers[b"sdcz".index(letter)]
    cdef int result = dtype if dtype >= cnp.NPY_CFLOAT else (
        cnp.NPY_FLOAT if c.kind == TF_FLOAT32 else cnp.NPY_DOUBLE)
    PyErr_Fetch(&kind, &value, &trace)  # BLAS may be called while an error is set
    unraisable = None
    tf_blas_step_aside(True)
    try:
        x = matrix_at(a.data, a.strides, a.rows, a.columns, dtype, 0)
        y = matrix_at(b.data, b.strides, b.rows, b.columns, dtype, 0)
        out = matrix_at(c.data, c.strides, a.rows, b.columns, result,
                        cnp.NPY_ARRAY_WRITEABLE)
        flags = (<object><PyObject *>products.object)(
            x.conj() if a.conjugate else x, y.conj() if b.conjugate else y, out)
    except KeyboardInterrupt:
        PyErr_SetInterrupt()
    except BaseException as error:
        unraisable = error
    if unraisable is not None:
        PyErr_SetObject(type(unraisable), unraisable)
        PyErr_WriteUnraisable(None)
    tf_blas_step_aside(was_aside)
    PyErr_Restore(kind, value, trace)
    return flags
