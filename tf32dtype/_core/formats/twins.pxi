# Casts between the dtypes of ml_dtypes and ours.
#
# They are added when the program has imported both packages, in any order.

from tf32dtype._core.formats.formats cimport *

class _CarriersScalar:
    """A scalar type for the carrier's DType class, which NumPy requires."""


cdef bint twins_added = False


cdef object carrier_repr(object self):
    return "CastCarrier"


cdef int list_twin_casts(cast_list *casts) except -1:
    """List the casts between our dtypes and their twins in ml_dtypes.

    The list also has the carrier's cast to itself, which NumPy requires of a class."""
    cdef PyArray_DTypeMeta *own
    cdef int format, i
    casts.count = 0
    add_cast(casts, NULL, NULL, copy_slots, cnp.NPY_NO_CASTING)
    for format in range(TF_FORMAT_COUNT):
        own = &tf_dtypes[format]
        for i in range(TF_FORMAT_COUNT):
            if twins[i] == NULL:
                continue
            add_cast(casts, own, twins[i], number_cast_slots, cnp.NPY_SAME_KIND_CASTING)
            add_cast(casts, twins[i], own, number_cast_slots,
                     cnp.NPY_SAFE_CASTING
                     if common_floats[format][i] == format
                     else cnp.NPY_SAME_KIND_CASTING)
    return 0


def add_twins(scalars):
    """Add casts and promotion between our dtypes and those of another package.

    `scalars` has the scalar types of that package under our names. Only the first call
    in a process has an effect."""
    cdef PyArrayDTypeMeta_Spec spec
    cdef PyType_Slot slots[4]
    cdef cast_list casts
    cdef int i
    global twins_added
    if twins_added:
        return
    twins_added = True
    for i in range(TF_FORMAT_COUNT):
        scalar = scalars.get(names[i])
        if scalar is not None and np.dtype(scalar).itemsize == tf_format_rows[i].itemsize:
            twins[i] = dtype_of(scalar)
    tf_dtype_carrier_ready(<reprfunc><void *>carrier_repr)
    slots[0] = PyType_Slot(NPY_DT_ensure_canonical, <void *>dtype_canonical)
    slots[1] = PyType_Slot(NPY_DT_setitem, <void *>tf_objects[0].set_item)
    slots[2] = PyType_Slot(NPY_DT_getitem, <void *>tf_objects[0].get_item)
    slots[3] = PyType_Slot(0, NULL)
    list_twin_casts(&casts)
    memset(&spec, 0, sizeof(spec))
    spec.typeobj = <PyTypeObject *><PyObject *>_CarriersScalar
    spec.flags = NPY_DT_ABSTRACT
    spec.casts = casts.pointers
    spec.slots = slots
    PyArrayInitDTypeMeta_FromSpec(&tf_dtype_carrier, &spec)
