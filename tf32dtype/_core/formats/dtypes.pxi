# DType classes: slots, constants and registration.

from libc.math cimport ilogb
from libc.stdio cimport EOF, FILE, getc, ungetc

from tf32dtype._core.formats.formats cimport *

cdef PyObject *dtype_singleton(PyArray_DTypeMeta *cls) noexcept:
    incref(<PyObject *>cls.singleton)
    return <PyObject *>cls.singleton


cdef PyObject *dtype_discover(PyArray_DTypeMeta *cls, PyObject *value) noexcept:
    return dtype_singleton(cls)


cdef PyObject *dtype_canonical(PyObject *descr) noexcept:
    incref(descr)
    return descr


cdef int set_other_item(int format, PyObject *value, char *item) except -1:
    cdef unsigned flags = 0
    cdef uint32_t code = code_from_object(format, <object>value, &flags)
    tf_warn(flags, b"cast")
    tf_store_code(tf_format_rows[format][0], item, code)
    return 0


tf_objects_ready(set_other_item)


# -- numbers in strings (np.fromstring, np.fromfile with sep) ----------------------

cdef int dtype_fromstr(char *text, void *item, char **end,
                       descr_t *descr) noexcept with gil:
    """Read the number at the begin of a string.

    `end` tells NumPy whether there was a number, and where the next one begins. NumPy
    calls this function without the GIL."""
    cdef int format = tf_format_of_descr(descr)
    cdef unsigned flags = 0
    end[0] = text
    while text[0] in b" \t\n\r\f\v":
        text += 1
    try:
        PyOS_string_to_double(text, end, NULL)
        code = code_from_text(
            tf_format_rows[format][0], text[:end[0] - text], &flags)
    except Exception:
        end[0] = text
        return 0
    tf_store_code(tf_format_rows[format][0], <char *>item, code)
    return 0


cdef int dtype_scan(FILE *file, void *item, void *ignored, descr_t *descr) noexcept with gil:
    """Read a number from a file; return 1, or 0 if there is none, or EOF at the end."""
    cdef char text[128]
    cdef char *end
    cdef int length = 0
    cdef int c = getc(file)
    while c != EOF and c in b" \t\n\r\f\v":
        c = getc(file)
    if c == EOF:
        return EOF
    while c != EOF and length < 127 and c in b"+-.0123456789eEinftyaINFTYA":
        text[length] = <char>c
        length += 1
        c = getc(file)
    if c != EOF:
        ungetc(c, file)
    text[length] = 0
    dtype_fromstr(text, item, &end, descr)
    return end == text + length and length > 0


cdef int dtype_constant(descr_t *descr, int constant, void *data) noexcept:
    cdef int format = tf_format_of_descr(descr)
    cdef tf_format f = tf_format_rows[format][0]
    cdef uint32_t maximum = tf_maximum_magnitude(f)
    cdef uint32_t normal = 0 if f.specials == TF_EXPONENT_ONLY else 1 << f.mantissa_bits
    cdef bint is_ieee = f.specials == TF_IEEE
    cdef unsigned flags = 0
    cdef uint32_t code
    cdef npy_intp number
    # Exponents as in C's FLT_MIN_EXP and FLT_MAX_EXP.
    if constant == NPY_CONSTANT_finfo_nmant:
        number = f.mantissa_bits
    elif constant == NPY_CONSTANT_finfo_min_exp:
        number = exponent_of(tf_double_from_code(f, normal)) + 1
    elif constant == NPY_CONSTANT_finfo_max_exp:
        number = exponent_of(tf_double_from_code(f, maximum)) + 1
    elif constant == NPY_CONSTANT_finfo_decimal_digits:
        number = f.mantissa_bits * 30103 // 100000
    else:
        if constant == NPY_CONSTANT_zero:
            code = tf_code_from_double(f, 0.0, &flags)
        elif constant == NPY_CONSTANT_one:
            code = tf_code_from_double(f, 1.0, &flags)
        elif constant == NPY_CONSTANT_maximum_finite:
            code = maximum
        elif constant == NPY_CONSTANT_minimum_finite:
            code = maximum | tf_sign_mask(f) if f.is_signed else normal
        elif constant == NPY_CONSTANT_inf and is_ieee:
            code = tf_infinity_magnitude(f)
        elif constant == NPY_CONSTANT_ninf and is_ieee:
            code = tf_infinity_magnitude(f) | tf_sign_mask(f)
        elif constant == NPY_CONSTANT_nan and f.specials != TF_FINITE:
            code = tf_nan_code(f)
        elif constant == NPY_CONSTANT_finfo_radix:
            code = tf_code_from_double(f, 2.0, &flags)
        elif constant == NPY_CONSTANT_finfo_eps:
            code = tf_code_from_double(f, 2.0 ** -f.mantissa_bits, &flags)
        elif constant == NPY_CONSTANT_finfo_smallest_normal:
            code = normal
        elif constant == NPY_CONSTANT_finfo_smallest_subnormal:
            code = 0 if f.specials == TF_EXPONENT_ONLY else 1
        else:
            return 0
        tf_store_code(f, <char *>data, code)
        return 1
    memcpy(data, &number, sizeof(number))
    return 1


cdef int exponent_of(double x) noexcept:
    return ilogb(x)


cdef object dtype_new(object cls, object args, object keywords):
    return <object><PyObject *>(<PyArray_DTypeMeta *><PyObject *>cls).singleton


cdef object dtype_reduce(object self, object ignored):
    cdef int format = tf_format_of_descr(<descr_t *><PyObject *>self)
    if tf_format_rows[format].itemsize == 1:
        return np.dtype, (scalar_types[format],)
    return _dtype_in_order, (scalar_types[format], sys.byteorder)


def _dtype_in_order(cls, order):
    """Unpickle a dtype with the byte order of the pickled array."""
    return np.dtype(cls).newbyteorder(order)


cdef object dtype_newbyteorder(object self, object args):
    cdef int format = tf_format_of_descr(<descr_t *><PyObject *>self)
    unsigned = np.dtype(f"u{tf_format_rows[format].itemsize}")
    if unsigned.newbyteorder(*args).isnative:
        return self
    swapped = unsigned.newbyteorder().str
    raise ValueError(
        f"byte order of {names[format]} must be that of this machine,"
        f" {sys.byteorder}-endian; got another. Use"
        f" np.frombuffer(data, {swapped!r}).astype({unsigned.name!r})"
        f".view(td.{names[format]})"
    )


cdef PyMethodDef dtype_methods[3]
dtype_methods[0] = PyMethodDef("__reduce__", <void *>dtype_reduce, METH_NOARGS, NULL)
dtype_methods[1] = PyMethodDef(
    "newbyteorder", <void *>dtype_newbyteorder, METH_VARARGS,
    "newbyteorder(new_order='S', /)\n--\n\n"
    "The dtype itself, which has the byte order of the machine; ValueError where\n"
    "another is asked for.")
memset(&dtype_methods[2], 0, sizeof(PyMethodDef))


cdef object dtype_kind(object self, void *closure):
    return "f"


# NumPy's Python code looks at `kind` to treat NaN and fill values like those of floats.
# The C field stays 'V': with 'f', NumPy's C code would use a name such as '<f2'.
cdef PyGetSetDef dtype_getset[2]
dtype_getset[0] = PyGetSetDef("kind", <getter><void *>dtype_kind, NULL, NULL, NULL)
memset(&dtype_getset[1], 0, sizeof(PyGetSetDef))


cdef int register_dtype(int format) except -1:
    cdef PyArrayDTypeMeta_Spec spec
    cdef PyType_Slot slots[18]
    cdef cast_list casts
    cdef const tf_legacy_functions *legacy = &tf_legacy[format]
    name = f"tf32dtype.dtypes.{names[format]}".encode()
    _type_names.append(name)
    tf_dtype_ready(format, name, <newfunc><void *>dtype_new, dtype_methods, dtype_getset)
    slots[0] = PyType_Slot(NPY_DT_discover_descr_from_pyobject, <void *>dtype_discover)
    slots[1] = PyType_Slot(NPY_DT_default_descr, <void *>dtype_singleton)
    slots[2] = PyType_Slot(NPY_DT_common_dtype, <void *>dtype_common)
    slots[3] = PyType_Slot(NPY_DT_ensure_canonical, <void *>dtype_canonical)
    slots[4] = PyType_Slot(NPY_DT_setitem, <void *>tf_objects[format].set_item)
    slots[5] = PyType_Slot(NPY_DT_getitem, <void *>tf_objects[format].get_item)
    slots[6] = PyType_Slot(NPY_DT_get_constant, <void *>dtype_constant)
    slots[7] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_compare, legacy.compare)
    slots[8] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_argmax, legacy.argmax)
    slots[9] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_argmin, legacy.argmin)
    slots[10] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_dotfunc, legacy.dot)
    slots[11] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_nonzero, legacy.nonzero)
    slots[12] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_fill, legacy.fill)
    # NumPy supports these two slots, but has no names for their numbers.
    slots[13] = PyType_Slot(3 + _NPY_DT_ARRFUNCS_OFFSET, legacy.copyswapn)
    slots[14] = PyType_Slot(4 + _NPY_DT_ARRFUNCS_OFFSET, legacy.copyswap)
    slots[15] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_fromstr, <void *>dtype_fromstr)
    slots[16] = PyType_Slot(NPY_DT_PyArray_ArrFuncs_scanfunc, <void *>dtype_scan)
    slots[17] = PyType_Slot(0, NULL)
    list_casts(format, &casts)
    memset(&spec, 0, sizeof(spec))
    spec.typeobj = scalar_pointers[format]
    spec.flags = NPY_DT_NUMERIC
    spec.casts = casts.pointers
    spec.slots = slots
    PyArrayInitDTypeMeta_FromSpec(&tf_dtypes[format], &spec)
    tf_dtype_make_hybrid(format, scalar_pointers[format])
    return 0


def register_dtypes():
    tf_dtype_base_ready()
    for i in range(TF_FORMAT_COUNT):
        register_dtype(i)
        # np.vectorize looks up this letter; tf32dtype/_formats/naming.py adds names.
        np.sctypeDict.setdefault(chr(tf_format_rows[i].typechar), scalar_types[i])
        # np.asarray_chkfinite looks for NaN in dtypes of these letters.
        np.typecodes["AllFloat"] += chr(tf_format_rows[i].typechar)
