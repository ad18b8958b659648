# Arithmetic and comparisons of single numbers, without a ufunc.
#
# Two numbers of one format, or one and a Python float or int, are computed in float64,
# which has more than twice the bits of any format and two more: rounding again is exact
# (Figueroa, "When is double rounding innocuous?", 1995). Whatever is not finite, or has a
# flag that NumPy may warn of, goes to np.floating's own function, which calls the ufunc.

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.object cimport Py_EQ, Py_GE, Py_GT, Py_LE, Py_LT, Py_NE
from libc.math cimport fabs, isfinite

from tf32dtype._core.formats.formats cimport *

cdef extern from *:
    """
    static PyNumberMethods *tf_number_methods(PyTypeObject *type)
    {
        return type->tp_as_number;
    }
    """
    ctypedef object (*unaryfunc)(object)
    ctypedef object (*binaryfunc)(object, object)
    ctypedef struct PyNumberMethods:
        binaryfunc nb_add, nb_subtract, nb_multiply, nb_true_divide
        unaryfunc nb_negative, nb_absolute
    PyNumberMethods *tf_number_methods(PyTypeObject *)

cdef PyTypeObject *floating = <PyTypeObject *>np.floating
cdef object numpy_true = np.True_, numpy_false = np.False_
cdef PyNumberMethods *own = tf_number_methods(floating)


cdef bint is_exact_double(object x, double *value) except -1:
    """Return whether x is a Python number that float64 represents."""
    cdef int overflow = 0
    cdef long long whole
    if PyFloat_CheckExact(x):
        value[0] = PyFloat_AS_DOUBLE(x)
        return True
    if not PyLong_CheckExact(x):
        return False
    whole = PyLong_AsLongLongAndOverflow(x, &overflow)
    value[0] = <double>whole
    return not overflow and -(1LL << 53) <= whole <= 1LL << 53


cdef bint is_number_of(object x, int format, double *value) except -1:
    """Return whether x is a scalar of the format, or rounds to one without a flag."""
    cdef unsigned flags = 0
    if Py_TYPE(x) == scalar_pointers[format]:
        value[0] = tf_double_from_code(tf_format_rows[format][0],
                                       code_of_scalar(x, format))
        return True
    if not is_exact_double(x, value):
        return False
    value[0] = tf_double_from_code(
        tf_format_rows[format][0],
        tf_code_from_double(tf_format_rows[format][0], value[0], &flags))
    return flags == 0


cdef bint are_numbers(object a, object b, int *format, double *x,
                      double *y) except -1:
    format[0] = format_of_type(Py_TYPE(a))
    if format[0] < 0:
        format[0] = format_of_type(Py_TYPE(b))
    return (format[0] >= 0 and is_number_of(a, format[0], x)
            and is_number_of(b, format[0], y))


cdef object rounded_scalar(int format, double r):
    """None if it is not finite, or raises a flag."""
    cdef unsigned flags = 0
    cdef uint32_t code
    cdef char item[4]
    if not isfinite(r):
        return None
    code = tf_code_from_double(tf_format_rows[format][0], r, &flags)
    if flags:
        return None
    tf_store_code(tf_format_rows[format][0], item, code)
    return new_scalar(format, item)


cdef enum scalar_op:
    ADD
    SUBTRACT
    MULTIPLY
    DIVIDE


cdef object compute(scalar_op op, object a, object b, binaryfunc otherwise):
    cdef int format
    cdef double x, y
    result = None
    if are_numbers(a, b, &format, &x, &y) and (op != DIVIDE or y != 0):
        result = rounded_scalar(format, x + y if op == ADD else
                                x - y if op == SUBTRACT else
                                x * y if op == MULTIPLY else x / y)
    return result if result is not None else otherwise(a, b)


cdef object scalar_add(object a, object b):
    return compute(ADD, a, b, own.nb_add)


cdef object scalar_subtract(object a, object b):
    return compute(SUBTRACT, a, b, own.nb_subtract)


cdef object scalar_multiply(object a, object b):
    return compute(MULTIPLY, a, b, own.nb_multiply)


cdef object scalar_divide(object a, object b):
    return compute(DIVIDE, a, b, own.nb_true_divide)


cdef object scalar_negative(object a):
    cdef int format = format_of_type(Py_TYPE(a))
    result = rounded_scalar(format, -scalar_value(a)) if format >= 0 else None
    return result if result is not None else own.nb_negative(a)


cdef object scalar_absolute(object a):
    cdef int format = format_of_type(Py_TYPE(a))
    result = rounded_scalar(format, fabs(scalar_value(a))) if format >= 0 else None
    return result if result is not None else own.nb_absolute(a)


cdef object scalar_compare(object a, object b, int op):
    """Exact, also with Python numbers."""
    cdef int format = format_of_type(Py_TYPE(a))
    cdef double x, y
    cdef bint answer
    if format >= 0 and is_number_of(a, format, &x) and (
            is_exact_double(b, &y) or (Py_TYPE(b) == Py_TYPE(a)
                                       and is_number_of(b, format, &y))):
        if op == Py_EQ:
            answer = x == y
        elif op == Py_NE:
            answer = x != y
        elif op == Py_LT:
            answer = x < y
        elif op == Py_LE:
            answer = x <= y
        elif op == Py_GT:
            answer = x > y
        else:
            answer = x >= y
        return numpy_true if answer else numpy_false
    return floating.tp_richcompare(a, b, op)
