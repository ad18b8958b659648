# Promotion of two DTypes to a common one, and casts that keep all values.

from tf32dtype._core.formats.formats cimport *

cdef PyArray_DTypeMeta *dtype_of(object builtin):
    """Return the class of a builtin dtype."""
    cls = type(np.dtype(builtin))  # NumPy keeps it alive
    return <PyArray_DTypeMeta *><PyObject *>cls


# NumPy's dtypes: the kind of their numbers, and whether they are complex.
cdef struct builtin:
    PyArray_DTypeMeta *dtype
    int kind
    bint is_complex

cdef builtin builtins[32]
cdef int builtin_count = 0


def _register_builtins():
    global builtin_count
    integers = {1: (TF_INT8, TF_UINT8), 2: (TF_INT16, TF_UINT16),
                4: (TF_INT32, TF_UINT32), 8: (TF_INT64, TF_UINT64)}
    floats = {"e": TF_FLOAT16, "f": TF_FLOAT32, "d": TF_FLOAT64, "g": TF_LONGDOUBLE,
              "F": TF_FLOAT32, "D": TF_FLOAT64, "G": TF_LONGDOUBLE}
    for char in "fdegFDG?bBhHiIlLqQ":  # the most common dtypes are found first
        dtype = np.dtype(char)
        if char == "?":
            kind = TF_BOOL
        elif dtype.kind in "iu":
            kind = integers[dtype.itemsize][dtype.kind == "u"]
        else:
            kind = floats[char]
        builtins[builtin_count].dtype = dtype_of(char)
        builtins[builtin_count].kind = kind
        builtins[builtin_count].is_complex = dtype.kind == "c"
        builtin_count += 1


_register_builtins()

# DType classes of the same formats in ml_dtypes, by index. They are set when the
# program has imported ml_dtypes (formats/twins.pxi).
cdef PyArray_DTypeMeta *twins[TF_FORMAT_COUNT]


cdef builtin *find_builtin(const PyArray_DTypeMeta *dtype) noexcept:
    cdef int i
    for i in range(builtin_count):
        if builtins[i].dtype == dtype:
            return &builtins[i]
    return NULL


cdef int twin_format(const PyArray_DTypeMeta *dtype) noexcept:
    cdef int i
    for i in range(TF_FORMAT_COUNT):
        if twins[i] != NULL and twins[i] == dtype:
            return i
    return -1


# For two kinds of floats up to TF_FLOAT64, return the first kind that represents every
# number of both. Candidates are the two kinds, and then the other entries of `ladder`.
cdef int common_float(int a, int b):
    cdef int ladder[7]
    ladder[0] = a
    ladder[1] = b
    ladder[2] = names.index("float8_e4m3fn")
    ladder[3] = names.index("bfloat16")
    ladder[4] = TF_FLOAT16
    ladder[5] = TF_FLOAT32
    ladder[6] = TF_FLOAT64
    for kind in ladder:
        if holds(kind, a) and holds(kind, b):
            return kind
    return TF_FLOAT64


cdef enum:
    SOURCES = TF_KIND_COUNT + 3  # the complex ones come last

# A table, because `common_float` is slow Python code and there are few results.
cdef int common_floats[SOURCES][SOURCES]


def _fill_common_floats():
    for a in range(TF_FLOAT64 + 1):
        for b in range(TF_FLOAT64 + 1):
            common_floats[a][b] = common_float(a, b)


_fill_common_floats()

cdef PyArray_DTypeMeta *float_dtypes[3]
float_dtypes[0] = dtype_of("e")
float_dtypes[1] = dtype_of("f")
float_dtypes[2] = dtype_of("d")
cdef PyArray_DTypeMeta *complex64_dtype = dtype_of("F")
cdef PyArray_DTypeMeta *text_dtypes[2]
text_dtypes[0] = dtype_of("U")
text_dtypes[1] = dtype_of("S")


cdef PyArray_DTypeMeta *dtype_of_float(int kind) noexcept:
    if kind < TF_FORMAT_COUNT:
        return &tf_dtypes[kind]
    return float_dtypes[kind - TF_FLOAT16]


cdef int common_with_byte(int format, int kind) noexcept:
    """Return the common type of a format and int8 or uint8.

    It is the format if it represents all these integers. Otherwise it is the common
    type of the format and float16, to which NumPy promotes float16 and such
    integers."""
    cdef tf_format f = tf_format_rows[format][0]
    if f.is_signed and f.mantissa_bits + 1 >= (8 if kind == TF_UINT8 else 7):
        return format
    return common_floats[format][TF_FLOAT16]


# Return NULL if NumPy, or the other DType, has to decide.
cdef PyArray_DTypeMeta *common_dtype(int format, PyArray_DTypeMeta *other) noexcept:
    cdef int other_format = tf_format_of_dtype(other)
    cdef builtin *known
    if other_format >= 0:
        return dtype_of_float(common_floats[format][other_format])
    if other == &PyArray_PyLongDType or other == &PyArray_PyFloatDType:
        return &tf_dtypes[format]
    if other == &PyArray_PyComplexDType:
        return complex64_dtype
    other_format = twin_format(other)
    if other_format == format:
        return &tf_dtypes[format]
    if other_format >= 0:
        return dtype_of_float(common_floats[format][other_format])
    if other == text_dtypes[0] or other == text_dtypes[1]:
        return other
    known = find_builtin(other)
    if known == NULL:
        return NULL
    if known.is_complex or known.kind == TF_LONGDOUBLE:
        return other
    if known.kind == TF_BOOL:
        return &tf_dtypes[format]
    if known.kind <= TF_FLOAT64:
        return dtype_of_float(common_floats[format][known.kind])
    if known.kind == TF_INT8 or known.kind == TF_UINT8:
        return dtype_of_float(common_with_byte(format, known.kind))
    if known.kind == TF_INT16 or known.kind == TF_UINT16:
        return float_dtypes[1]
    return float_dtypes[2]


cdef PyObject *dtype_common(PyArray_DTypeMeta *cls, PyArray_DTypeMeta *other) except? NULL:
    cdef int format = tf_format_of_dtype(cls)
    cdef int other_format = tf_format_of_dtype(other)
    cdef PyArray_DTypeMeta *result
    # Between two formats, the one that is listed first decides. NumPy lets one dtype
    # decide about several others, as float16 does about int16 and uint16. So the order
    # of operands does not matter, although promotion is not associative.
    if other_format >= 0 and other_format < format:
        incref(<PyObject *>NotImplemented)
        return <PyObject *>NotImplemented
    result = common_dtype(format, other)
    if result == NULL:
        incref(<PyObject *>NotImplemented)
        return <PyObject *>NotImplemented
    incref(<PyObject *>result)
    return <PyObject *>result
