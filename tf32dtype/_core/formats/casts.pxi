# Casts: one loop and one get_loop for all pairs of numbers and for times, and four
# for text.

from cpython.exc cimport PyErr_WarnEx

from tf32dtype._core.runtime cimport *
from tf32dtype._core.formats.formats cimport *

cdef object _ComplexWarning = np.exceptions.ComplexWarning

cdef struct cast_data:
    NpyAuxData base
    tf_cast cast

# By source and target; complex ones have the last three places. Loops read them in all
# threads at once: they are written below, when the module is imported, and never after.
cdef cast_data casts_known[SOURCES][SOURCES]


cdef void keep_data(NpyAuxData *data) noexcept:
    pass


cdef NpyAuxData *same_data(NpyAuxData *data) noexcept:
    return data


cdef int kind_of_descr(descr_t *descr, int *is_complex) noexcept:
    cdef PyArray_DTypeMeta *dtype = <PyArray_DTypeMeta *>Py_TYPE(<object><PyObject *>descr)
    cdef int format = tf_format_of_dtype(dtype)
    cdef builtin *known
    is_complex[0] = 0
    if format >= 0:
        return format
    known = find_builtin(dtype)
    if known != NULL:
        is_complex[0] = known.is_complex
        return known.kind
    if dtype == &tf_exact_dtype:
        return TF_FLOAT32  # to which casts round to odd
    return TF_INT64 if is_time(dtype) else twin_format(dtype)


cdef int cast_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides,
                   NpyAuxData *auxiliary) noexcept nogil:
    tf_cast_items((<cast_data *>auxiliary).cast, data[0], strides[0], data[1],
                  strides[1], dimensions[0])
    return 0


cdef int place_of_kind(int kind, bint is_complex) noexcept:
    return kind + TF_KIND_COUNT - TF_FLOAT32 if is_complex else kind


cdef int cast_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                       const npy_intp *strides, strided_loop *loop,
                       NpyAuxData **auxiliary, int *flags) except -1:
    cdef int from_complex, to_complex
    cdef int source = kind_of_descr(context.descriptors[0], &from_complex)
    cdef int to = kind_of_descr(context.descriptors[1], &to_complex)
    if from_complex:
        PyErr_WarnEx(
            _ComplexWarning,
            b"Casting complex values to real discards the imaginary part", 1)
    loop[0] = cast_loop
    auxiliary[0] = &casts_known[place_of_kind(source, from_complex)][
        place_of_kind(to, to_complex)].base
    # NumPy clears the flags and asks for them, which takes longer than a few items.
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS if tf_cast_is_quiet(source, to) else 0
    return 0


# Within a dtype: bytes, so that unused bits survive.

cdef enum:
    FEW_ITEMS = 8  # fewer are asked for again and again where masks choose


cdef inline int copy_items(size_t size, items_t data, npy_intp count,
                           const npy_intp *strides) noexcept nogil:
    cdef const char *source = data[0]
    cdef char *target = data[1]
    cdef npy_intp i
    if count >= FEW_ITEMS:
        tf_copy(size, target, strides[1], source, strides[0], <size_t>count)
        return 0
    for i in range(count):
        memcpy(target, source, size)
        source += strides[0]
        target += strides[1]
    return 0


cdef int copy_bytes(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    return copy_items(1, data, dimensions[0], strides)


cdef int copy_shorts(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    return copy_items(2, data, dimensions[0], strides)


cdef int copy_words(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    return copy_items(4, data, dimensions[0], strides)


cdef int copy_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                       const npy_intp *strides, strided_loop *loop,
                       NpyAuxData **auxiliary, int *flags) except -1:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    cdef int size = <int>sizeof(float)  # of exact numbers
    if format >= 0:
        size = tf_format_rows[format].itemsize
    loop[0] = copy_bytes if size == 1 else copy_shorts if size == 2 else copy_words
    auxiliary[0] = NULL
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS
    return 0


cdef tf_cast cast_of_places(int source, int to) noexcept:
    cdef tf_cast cast
    cast.from_complex = source >= TF_KIND_COUNT
    cast.source = source - (place_of_kind(0, True) if cast.from_complex else 0)
    cast.to_complex = to >= TF_KIND_COUNT
    cast.to = to - (place_of_kind(0, True) if cast.to_complex else 0)
    return cast


cdef write_casts():
    cdef cast_data *known
    cdef int source, to
    for source in range(SOURCES):
        for to in range(SOURCES):
            known = &casts_known[source][to]
            known.base.free = keep_data
            known.base.clone = same_data
            known.cast = cast_of_places(source, to)


write_casts()


cdef int copy_resolve(PyArrayMethodObject *method, PyArray_DTypeMeta **dtypes,
                      descrs_t given, descr_t **resolved,
                      npy_intp *view_offset) noexcept:
    cdef descr_t *target = given[0] if given[1] == NULL else given[1]
    incref(<PyObject *>given[0])
    incref(<PyObject *>target)
    resolved[0] = given[0]
    resolved[1] = target
    view_offset[0] = 0
    return cnp.NPY_NO_CASTING


# -- times: counts in some unit, kept as int64 --------------------------------------

cdef PyArray_DTypeMeta *time_dtypes[2]
time_dtypes[0] = dtype_of("m8")
time_dtypes[1] = dtype_of("M8")


cdef bint is_time(const PyArray_DTypeMeta *dtype) noexcept:
    return dtype == time_dtypes[0] or dtype == time_dtypes[1]


cdef int time_resolve(PyArrayMethodObject *method, PyArray_DTypeMeta **dtypes,
                      descrs_t given, descr_t **resolved,
                      npy_intp *view_offset) except -1:
    cdef int i
    for i in range(2):
        if given[i] == NULL:
            dtype = <object><PyObject *>dtypes[i].singleton
        else:
            dtype = <object><PyObject *>given[i]
            if not dtype.isnative:
                dtype = dtype.newbyteorder("=")
        incref(<PyObject *>dtype)
        resolved[i] = <descr_t *><PyObject *>dtype
    return cnp.NPY_UNSAFE_CASTING


# -- text ------------------------------------------------------------------------
# Through Python objects: NumPy's own casts between text and object do the rest.

cdef enum:
    TEXT_LENGTH = 32  # characters, as NumPy has it for float16


cdef int to_text_resolve(PyArrayMethodObject *method, PyArray_DTypeMeta **dtypes,
                         descrs_t given, descr_t **resolved,
                         npy_intp *view_offset) except -1:
    cdef bint may_cut = False
    if given[1] != NULL:
        target = <object><PyObject *>given[1]
        if not target.isnative:
            target = target.newbyteorder("=")
        if dtypes[1] != string_dtype:
            length = target.itemsize // (4 if dtypes[1] == text_dtypes[0] else 1)
            may_cut = length < TEXT_LENGTH
    elif dtypes[1] == string_dtype:
        target = np.dtype("T")
    else:
        kind = "U" if dtypes[1] == text_dtypes[0] else "S"
        target = np.dtype(f"{kind}{TEXT_LENGTH}")
    incref(<PyObject *>given[0])
    incref(<PyObject *>target)
    resolved[0] = given[0]
    resolved[1] = <descr_t *><PyObject *>target
    return cnp.NPY_SAME_KIND_CASTING if may_cut else cnp.NPY_SAFE_CASTING


cdef int from_text_resolve(PyArrayMethodObject *method, PyArray_DTypeMeta **dtypes,
                           descrs_t given, descr_t **resolved,
                           npy_intp *view_offset) except -1:
    source = <object><PyObject *>given[0]
    if not source.isnative:
        source = source.newbyteorder("=")
    incref(<PyObject *>source)
    resolved[0] = <descr_t *><PyObject *>source
    resolved[1] = dtypes[1].singleton
    incref(<PyObject *>resolved[1])
    return cnp.NPY_UNSAFE_CASTING


cdef int to_text_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) except -1 with gil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    cdef npy_intp i
    for i in range(dimensions[0]):
        text = text_of(format, tf_load_code(tf_format_rows[format][0],
                                            data[0] + i * strides[0]))
        PyArray_Pack(context.descriptors[1], data[1] + i * strides[1], text)
    return 0


cdef object text_at(descr_t *descr, char *item):
    """Return a string, or the na_object for a missing string."""
    cdef npy_string_allocator *allocator
    cdef npy_static_string string
    cdef int missing
    if <PyArray_DTypeMeta *>Py_TYPE(<object><PyObject *>descr) != string_dtype:
        return PyArray_Scalar(item, descr, None)
    allocator = NpyString_acquire_allocator(<PyArray_StringDTypeObject *>descr)
    missing = NpyString_load(allocator, <npy_packed_static_string *>item, &string)
    try:
        if missing < 0:
            raise MemoryError()
        if missing:
            return (<object><PyObject *>descr).na_object
        return string.buf[:string.size].decode("utf-8")
    finally:
        NpyString_release_allocator(allocator)


cdef PyArray_DTypeMeta *string_dtype = dtype_of("T")


cdef int from_text_loop(PyArrayMethod_Context *context, items_t data,
                        const npy_intp *dimensions, const npy_intp *strides,
                        NpyAuxData *auxiliary) except -1 with gil:
    cdef int format = tf_format_of_descr(context.descriptors[1])
    cdef unsigned flags = 0
    cdef uint32_t code
    cdef npy_intp i
    for i in range(dimensions[0]):
        text = text_at(context.descriptors[0], data[0] + i * strides[0])
        code = code_from_object(format, text, &flags)
        tf_store_code(tf_format_rows[format][0], data[1] + i * strides[1], code)
    tf_warn(flags, b"cast")
    return 0


# -- the list of casts of one format -----------------------------------------------

cdef PyType_Slot number_cast_slots[2]
number_cast_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>cast_get_loop)
number_cast_slots[1] = PyType_Slot(0, NULL)
cdef PyType_Slot time_slots[3]
time_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>cast_get_loop)
time_slots[1] = PyType_Slot(NPY_METH_resolve_descriptors, <void *>time_resolve)
time_slots[2] = PyType_Slot(0, NULL)
cdef PyType_Slot copy_slots[3]
copy_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>copy_get_loop)
copy_slots[1] = PyType_Slot(NPY_METH_resolve_descriptors, <void *>copy_resolve)
copy_slots[2] = PyType_Slot(0, NULL)
cdef PyType_Slot to_text_slots[4]
to_text_slots[0] = PyType_Slot(NPY_METH_strided_loop, <void *>to_text_loop)
to_text_slots[1] = PyType_Slot(NPY_METH_unaligned_strided_loop, <void *>to_text_loop)
to_text_slots[2] = PyType_Slot(NPY_METH_resolve_descriptors, <void *>to_text_resolve)
to_text_slots[3] = PyType_Slot(0, NULL)
cdef PyType_Slot from_text_slots[4]
from_text_slots[0] = PyType_Slot(NPY_METH_strided_loop, <void *>from_text_loop)
from_text_slots[1] = PyType_Slot(NPY_METH_unaligned_strided_loop, <void *>from_text_loop)
from_text_slots[2] = PyType_Slot(NPY_METH_resolve_descriptors, <void *>from_text_resolve)
from_text_slots[3] = PyType_Slot(0, NULL)


cdef PyArrayMethod_Spec loop_spec(const char *name, int nin, int nout, int flags,
                                  PyArray_DTypeMeta **dtypes, PyType_Slot *slots) noexcept:
    """Describe loops without casts to NumPy."""
    cdef PyArrayMethod_Spec spec
    spec.name, spec.nin, spec.nout = name, nin, nout
    spec.casting = cnp.NPY_NO_CASTING
    spec.flags = flags
    spec.dtypes, spec.slots = dtypes, slots
    return spec


cdef enum:
    MAX_CASTS = 512

# Specifications are read when a DType is initialized and not needed after it.
cdef struct cast_list:
    PyArrayMethod_Spec specs[MAX_CASTS]
    PyArray_DTypeMeta *dtypes[MAX_CASTS][2]
    PyArrayMethod_Spec *pointers[MAX_CASTS + 1]
    int count


cdef int add_cast(cast_list *casts, PyArray_DTypeMeta *source, PyArray_DTypeMeta *target,
                  PyType_Slot *slots, cnp.NPY_CASTING casting, int flags=0) except -1:
    cdef int i = casts.count
    if i == MAX_CASTS:
        raise SystemError("too many casts for one class")
    casts.dtypes[i][0] = source
    casts.dtypes[i][1] = target
    casts.specs[i] = loop_spec("tf32dtype_cast", 1, 1, flags | NPY_METH_SUPPORTS_UNALIGNED,
                               casts.dtypes[i], slots)
    casts.specs[i].casting = casting
    casts.pointers[i] = &casts.specs[i]
    casts.count = i + 1
    casts.pointers[i + 1] = NULL
    return 0


cdef int list_casts(int format, cast_list *casts) except -1:
    """List all casts from and to a format.

    Casts between two formats are listed with the later format, because NumPy must know
    both classes."""
    cdef PyArray_DTypeMeta *own = &tf_dtypes[format]
    cdef PyArray_DTypeMeta *other
    cdef builtin *known
    cdef int i
    cdef bint is_real_float
    cdef int of_text = NPY_METH_REQUIRES_PYAPI | NPY_METH_NO_FLOATINGPOINT_ERRORS
    casts.count = 0
    add_cast(casts, NULL, NULL, copy_slots, cnp.NPY_NO_CASTING)
    for i in range(format):
        other = &tf_dtypes[i]
        add_cast(casts, own, other, number_cast_slots,
                 cnp.NPY_SAFE_CASTING if common_dtype(format, other) == other
                 else cnp.NPY_SAME_KIND_CASTING)
        add_cast(casts, other, own, number_cast_slots,
                 cnp.NPY_SAFE_CASTING if common_dtype(format, other) == own
                 else cnp.NPY_SAME_KIND_CASTING)
    for i in range(builtin_count):
        known = &builtins[i]
        other = known.dtype
        is_real_float = known.kind <= TF_LONGDOUBLE and not known.is_complex
        add_cast(casts, own, other, number_cast_slots,
                 cnp.NPY_SAFE_CASTING if common_dtype(format, other) == other
                 and (is_real_float or known.is_complex)
                 else cnp.NPY_SAME_KIND_CASTING if is_real_float or known.is_complex
                 else cnp.NPY_UNSAFE_CASTING)
        add_cast(casts, other, own, number_cast_slots,
                 cnp.NPY_SAFE_CASTING if common_dtype(format, other) == own
                 else cnp.NPY_UNSAFE_CASTING if known.is_complex
                 else cnp.NPY_SAME_KIND_CASTING)
    for i in range(2):
        add_cast(casts, own, time_dtypes[i], time_slots, cnp.NPY_UNSAFE_CASTING)
        add_cast(casts, time_dtypes[i], own, time_slots, cnp.NPY_UNSAFE_CASTING)
    for char in "UST":
        # NumPy asks the resolver about the length unless this says "safe" already.
        add_cast(casts, own, dtype_of(char), to_text_slots,
                 cnp.NPY_SAFE_CASTING if char == "T" else cnp.NPY_SAME_KIND_CASTING,
                 of_text)
        add_cast(casts, dtype_of(char), own, from_text_slots, cnp.NPY_UNSAFE_CASTING,
                 of_text)
    return 0
