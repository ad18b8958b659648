# The methods reduce, accumulate and reduceat of ufuncs. NumPy copies the first operand,
# or an initial value, without a loop, so that only the method can round such a result.
# The C function in the method's definition is replaced, which all calls use
# (ufuncs/routes.pxi).

from tf32dtype._core.programs.arithmetic.arithmetic cimport *

cdef extern from *:
    # An error is raised here, where routes.pxi hands it on.
    ctypedef object (*tf_raising_method "tf_method")(PyObject *, PyObject *const *,
                                                     Py_ssize_t, PyObject *)
    enum:
        ROUNDED_METHODS "3"

cdef tuple rounded_names = ("reduce", "accumulate", "reduceat")
cdef tuple rounded_arguments = (
    ("array", "axis", "dtype", "out", "keepdims", "initial", "where"),
    ("array", "axis", "dtype", "out"),
    ("array", "indices", "axis", "dtype", "out"),
)
cdef tf_raising_method rounded_originals[ROUNDED_METHODS]


cdef bint _is_numpys(x):
    """Return whether NumPy computes with x, and not its type's `__array_ufunc__`."""
    if x is None or cnp.PyArray_CheckExact(x):
        return True
    own = np.ndarray.__array_ufunc__
    return getattr(type(x), "__array_ufunc__", own) is own


cdef char _rounded_letter(PyObject *ufunc, int type_number):
    """Return the letter of the ufunc's loop for a type if the loop rounds, or 0."""
    cdef int i
    for i in range(rounding_loop_count):
        if (rounding_loops[i].ufunc == ufunc
                and rounding_loops[i].signature[0] == type_number
                and (rounds_float64 or not _is_wide(&rounding_loops[i]))):
            return rounding_loops[i].facts.type
    return 0


cdef object _rounded_result(int which, char letter, result):
    """Round the result of a method to the format; arrays are changed in place."""
    cdef unsigned flags = 0
    cdef cnp.ndarray items
    if cnp.PyArray_Check(result):
        array = np.asarray(result)
        items = np.require(array, array.dtype.newbyteorder("="), "CA")
        flags = tf_arithmetic_round_all(letter, cnp.PyArray_BYTES(items),
                                        <size_t>cnp.PyArray_SIZE(items))
        if items is not array:
            array[...] = items
    else:
        result = type(result)(tf_arithmetic_round(letter, result, &flags))
    if flags:
        report(flags, rounded_names[which].encode())
    return result


cdef object _call_method(int which, PyObject *ufunc, dict arguments):
    cdef PyObject *values[MOST_ARGUMENTS]
    cdef int i
    names = tuple(arguments)
    for i in range(<int>len(names)):
        values[i] = <PyObject *>arguments[names[i]]
    return rounded_originals[which](ufunc, values, 0, <PyObject *>names)


cdef object _method_into_out(int which, PyObject *ufunc, dict arguments, out):
    """Write the result to `out`, whose dtype may be another than the loop's."""
    cdef char letter
    given = np.asarray(arguments["array"]).dtype
    try:
        loop = (<object>ufunc).resolve_dtypes(
            (out.dtype, given, None), signature=(arguments.get("dtype"), None, None),
            casting="unsafe", reduction=True)[0]
    except TypeError:  # the original says what is wrong
        return _call_method(which, ufunc, arguments)
    letter = _rounded_letter(ufunc, loop.num)
    if letter and loop.num != out.dtype.num:  # in `out` it would be rounded twice
        found = np.asarray(
            _call_method(which, ufunc, arguments | {"dtype": loop, "out": None}))
        if found.shape == out.shape:
            out[...] = _rounded_result(which, letter, found)
            return out
    found = _call_method(which, ufunc, arguments)
    return _rounded_result(which, letter, found) if letter else found


cdef object _compute_method(int which, PyObject *ufunc, PyObject *const *args,
                            Py_ssize_t count, PyObject *names):
    cdef Py_ssize_t i
    cdef char letter = 0
    if not tf_arithmetic_is_here():
        return rounded_originals[which](ufunc, args, count, names)
    cdef tuple known = rounded_arguments[which]
    cdef tuple named = <tuple>names if names != NULL else ()
    cdef dict arguments = {}
    if count + len(named) <= len(known):  # otherwise the original raises an error
        for i in range(count):
            arguments[known[i]] = <object>args[i]
        for i in range(len(named)):
            arguments[named[i]] = <object>args[count + i]
    array, out = arguments.get("array"), arguments.get("out")
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    cdef bint is_numpys = _is_numpys(array) and _is_numpys(out)
    if is_numpys and out is not None and cnp.PyArray_Check(out):
        return _method_into_out(which, ufunc, arguments, out)
    found = rounded_originals[which](ufunc, args, count, names)
    if is_numpys and cnp.PyArray_Check(found):
        letter = _rounded_letter(ufunc, cnp.PyArray_TYPE(<cnp.ndarray>found))
    elif is_numpys and type(found) in scalar_numbers:
        letter = _rounded_letter(ufunc, found.dtype.num)
    return _rounded_result(which, letter, found) if letter else found


cdef object _rounded_reduce(PyObject *ufunc, PyObject *const *args, Py_ssize_t count,
                            PyObject *names):
    return _compute_method(0, ufunc, args, count, names)


cdef object _rounded_accumulate(PyObject *ufunc, PyObject *const *args,
                                Py_ssize_t count, PyObject *names):
    return _compute_method(1, ufunc, args, count, names)


cdef object _rounded_reduceat(PyObject *ufunc, PyObject *const *args, Py_ssize_t count,
                              PyObject *names):
    return _compute_method(2, ufunc, args, count, names)


cdef tf_raising_method rounded_replacements[ROUNDED_METHODS]
rounded_replacements[:] = [_rounded_reduce, _rounded_accumulate, _rounded_reduceat]


cdef _exchange_methods(bint ours):
    """Replace NumPy's methods by our functions, or restore them."""
    cdef tf_raising_method *place
    for i, name in enumerate(rounded_names):
        method = getattr(np.ufunc, name)
        place = <tf_raising_method *>tf_method_place(<PyObject *>method)
        if place == NULL:
            raise RuntimeError(
                f"arithmetic cannot use numpy.ufunc.{name} of NumPy {np.__version__}")
        if ours:
            rounded_originals[i] = place[0]
        place[0] = rounded_replacements[i] if ours else rounded_originals[i]
