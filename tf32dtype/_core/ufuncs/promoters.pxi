# Promotion in ufuncs: choose the loop for dtypes that have no loop of their own.

from tf32dtype._core.formats.formats cimport *

cdef PyArray_DTypeMeta *long_dtype = dtype_of("l")
cdef PyArray_DTypeMeta *double_dtype = dtype_of("d")


cdef bint has_exact_product(PyArray_DTypeMeta *dtype) noexcept:
    return tf_format_of_dtype(dtype) >= 0 or dtype == float_dtypes[0]


cdef bint has_mixed_product(PyArray_DTypeMeta **given,
                            PyArray_DTypeMeta *common) noexcept:
    """Return whether two different dtypes are multiplied without a cast."""
    return (given[0] != given[1] and has_exact_product(given[0])
            and has_exact_product(given[1]) and tf_format_of_dtype(common) >= 0)


cdef int add_mixed_product(object ufunc, PyArray_DTypeMeta **given,
                           PyArray_DTypeMeta *common) except -1:
    """Add loops that multiply arrays of two dtypes without a cast."""
    cdef PyArray_DTypeMeta *dtypes[3]
    cdef PyArrayMethod_Spec spec = loop_spec(
        "tf32dtype_product", 2, 1, NPY_METH_SUPPORTS_UNALIGNED, dtypes, ufunc_slots)
    cdef int i
    dtypes[0], dtypes[1] = given[0], given[1]
    for i in range(2):
        dtypes[2] = common if i == 0 else float_dtypes[1]
        add_late_loop(ufunc, &spec)
    return 0


def prepare_product(a, b, common):
    """Make np.matmul of two dtypes work without casts, even with dtype=np.float32.

    `common` is the dtype that they promote to."""
    cdef PyArray_DTypeMeta *given[2]
    given[0] = <PyArray_DTypeMeta *>Py_TYPE(a)
    given[1] = <PyArray_DTypeMeta *>Py_TYPE(b)
    cdef PyArray_DTypeMeta *promoted = <PyArray_DTypeMeta *>Py_TYPE(common)
    if has_mixed_product(given, promoted):
        add_mixed_product(umath.matmul, given, promoted)


cdef int promote(PyObject *ufunc, PyArray_DTypeMeta **given, PyArray_DTypeMeta **signature,
                 PyArray_DTypeMeta **promoted) except -1:
    """Promote all inputs to their common dtype, or to dtype= if it is given."""
    cdef int nin = (<object>ufunc).nin
    cdef int nargs = (<object>ufunc).nargs
    cdef int i
    cdef int count = 0
    cdef PyArray_DTypeMeta *common
    cdef PyArray_DTypeMeta *inputs[3]
    cdef PyArray_DTypeMeta *out = signature[nin]
    cdef bint is_product = (<object>ufunc).signature is not None
    cdef bint mixed
    for i in range(nin):
        if given[i] == NULL:  # the result of a reduction
            continue
        inputs[count] = given[i]
        count += 1
    common = PyArray_PromoteDTypeSequence(count, inputs)
    if common == NULL:
        return -1
    if common == text_dtypes[0] or common == text_dtypes[1]:
        decref(<PyObject *>common)
        raise np.exceptions.DTypePromotionError(
            "cannot combine strings with a dtype of tf32dtype")
    # A product of two formats of ours also has a loop with a float32 result.
    if out != NULL and out != bool_dtype and not (
            is_product and out == float_dtypes[1]
            and tf_format_of_dtype(common) >= 0):
        decref(<PyObject *>common)
        common = out
        incref(<PyObject *>common)
    mixed = is_product and out == NULL and has_mixed_product(given, common)
    if mixed:
        try:
            add_mixed_product(<object>ufunc, given, common)
        except BaseException:
            decref(<PyObject *>common)
            raise
    for i in range(nin):
        promoted[i] = given[i] if mixed else common
        incref(<PyObject *>promoted[i])
    for i in range(nin, nargs):
        promoted[i] = signature[i]
        if is_product and signature[i] == NULL:
            promoted[i] = common  # not the loop with a float32 result
        if promoted[i] != NULL:
            incref(<PyObject *>promoted[i])
    decref(<PyObject *>common)
    return 0


cdef int refuse_formats(PyObject *ufunc, PyArray_DTypeMeta **given,
                        PyArray_DTypeMeta **signature,
                        PyArray_DTypeMeta **promoted) except -1:
    """Raise a TypeError for a ufunc that has only loops for integers and objects.

    Otherwise NumPy would use the loop for objects, after a call with an out= of objects
    even without one. That loop calls operators of scalars, which call the ufunc
    again."""
    cdef int i
    promote(ufunc, given, signature, promoted)
    if tf_format_of_dtype(promoted[0]) < 0:
        return 0
    name = names[tf_format_of_dtype(promoted[0])]
    for i in range((<object>ufunc).nargs):
        if promoted[i] != NULL:
            decref(<PyObject *>promoted[i])
            promoted[i] = NULL
    raise TypeError(
        f"operands of ufunc {(<object>ufunc).__name__!r} must be integers; got {name}")


cdef bint is_integer(PyArray_DTypeMeta *dtype) noexcept:
    cdef builtin *known = find_builtin(dtype)
    return dtype == &PyArray_PyLongDType or (
        known != NULL and not known.is_complex
        and TF_BOOL <= known.kind <= TF_UINT64)


cdef int promote_ldexp(PyObject *ufunc, PyArray_DTypeMeta **given,
                       PyArray_DTypeMeta **signature,
                       PyArray_DTypeMeta **promoted) except -1:
    """Promote the exponent of ldexp to int64."""
    if given[0] == NULL or not is_integer(given[1]):  # NULL: a reduction's result
        raise TypeError("exponent of ufunc 'ldexp' must be an integer")
    promoted[0] = given[0]
    promoted[1] = long_dtype
    promoted[2] = signature[2]
    incref(<PyObject *>promoted[0])
    incref(<PyObject *>promoted[1])
    if promoted[2] != NULL:
        incref(<PyObject *>promoted[2])
    return 0


cdef int promote_to_double(PyObject *ufunc, PyArray_DTypeMeta **given,
                           PyArray_DTypeMeta **signature,
                           PyArray_DTypeMeta **promoted) noexcept:
    """Promote for float_power, which computes in float64 or a wider dtype."""
    cdef PyArray_DTypeMeta *inputs[3]
    cdef PyArray_DTypeMeta *common
    cdef int i, count = 1
    inputs[0] = double_dtype
    for i in range(2):
        if given[i] != NULL and tf_format_of_dtype(given[i]) < 0:
            inputs[count] = given[i]
            count += 1
    common = PyArray_PromoteDTypeSequence(count, inputs)
    if common == NULL:
        return -1
    for i in range(3):
        promoted[i] = common
        incref(<PyObject *>common)
    decref(<PyObject *>common)
    return 0


# Ufuncs that have a loop for objects and none for floats.
cdef tuple INTEGER_UFUNCS = (
    "invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
    "bitwise_count", "gcd", "lcm")


def add_promoters():
    """Add promoters to all ufuncs.

    NumPy compares the patterns in their order, and uses the first one that is better
    than those before it. So the most specific pattern of a ufunc is first. `base`
    stands for any dtype of ours, None for any dtype."""
    base = <object><PyObject *>&tf_dtype_base
    plain = PyCapsule_New(<void *>promote, "numpy._ufunc_promoter", NULL)
    exact = PyCapsule_New(<void *>promote_exact, "numpy._ufunc_promoter", NULL)
    ldexp = PyCapsule_New(<void *>promote_ldexp, "numpy._ufunc_promoter", NULL)
    double = PyCapsule_New(<void *>promote_to_double, "numpy._ufunc_promoter", NULL)
    refuse = PyCapsule_New(<void *>refuse_formats, "numpy._ufunc_promoter", NULL)
    by_inputs = {
        1: [(base,)],
        2: [(base, base), (base, None), (None, base)],
        3: [(base, base, base), (base, base, None), (base, None, base),
            (None, base, base), (base, None, None), (None, base, None),
            (None, None, base)],
    }
    done = set()
    for i in range(operation_count):
        ufunc = <object>operations[i].ufunc
        if ufunc in done:
            continue
        done.add(ufunc)
        outputs = (None,) * ufunc.nout
        if ufunc is umath.ldexp:
            PyUFunc_AddPromoter(ufunc, (base, None, None), ldexp)
            continue
        general = exact if ufunc in comparisons or ufunc in bounds else plain
        for pattern in by_inputs[ufunc.nin]:
            PyUFunc_AddPromoter(ufunc, (*pattern, *outputs), general)
        if ufunc.nin == 1:  # np.sqrt(integers, dtype=bfloat16)
            PyUFunc_AddPromoter(ufunc, (None, base, *outputs[1:]), plain)
    for pattern in by_inputs[2]:
        PyUFunc_AddPromoter(umath.float_power, (*pattern, None), double)
    for name in INTEGER_UFUNCS:
        ufunc = getattr(umath, name)
        for pattern in by_inputs[ufunc.nin]:
            PyUFunc_AddPromoter(ufunc, (*pattern, None), refuse)
