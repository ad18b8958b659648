# Convert arrays to DLPack capsules, and capsules to arrays. tf32dtype/interop/dlpack.py
# defines the type codes, and which of them are supported.

from cpython.pycapsule cimport (
    PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer, PyCapsule_IsValid,
    PyCapsule_SetName)

from tf32dtype._core.interop.dlpack cimport *

cdef enum:
    DLPACK_CPU = 1
    DLPACK_MOST_AXES = 64  # of NumPy

# A capsule keeps the pointer to its name.
cdef const char *DLPACK_LEGACY = "dltensor"
cdef const char *DLPACK_LEGACY_USED = "used_dltensor"
cdef const char *DLPACK_VERSIONED = "dltensor_versioned"
cdef const char *DLPACK_VERSIONED_USED = "used_dltensor_versioned"
cdef int64_t DLPACK_NOTHING = 0


# -- arrays to capsules ----------------------------------------------------------------

cdef void dlpack_let_go(void *array) noexcept nogil:
    """Release the array of a tensor, unless Python has ended already.

    The owner of the tensor may call this at any time."""
    if Py_IsInitialized():
        with gil:
            decref(<PyObject *>array)


cdef void dlpack_delete_legacy(tf_dlpack_legacy *managed) noexcept nogil:
    dlpack_let_go(managed.context)
    free(managed)


cdef void dlpack_delete_versioned(tf_dlpack_versioned *managed) noexcept nogil:
    dlpack_let_go(managed.context)
    free(managed)


cdef void dlpack_forget_legacy(object capsule) noexcept:
    cdef tf_dlpack_legacy *managed
    if PyCapsule_IsValid(capsule, DLPACK_LEGACY):  # the tensor was not taken
        managed = <tf_dlpack_legacy *>PyCapsule_GetPointer(capsule, DLPACK_LEGACY)
        managed.deleter(managed)


cdef void dlpack_forget_versioned(object capsule) noexcept:
    cdef tf_dlpack_versioned *managed
    if PyCapsule_IsValid(capsule, DLPACK_VERSIONED):
        managed = <tf_dlpack_versioned *>PyCapsule_GetPointer(capsule, DLPACK_VERSIONED)
        managed.deleter(managed)


cdef int dlpack_fill(tf_dlpack_tensor *tensor, cnp.ndarray array, int64_t *sizes,
                     int code, int bits) except -1:
    """Describe an array, with its sizes and strides in `sizes`."""
    cdef int i, ndim = cnp.PyArray_NDIM(array)
    cdef npy_intp length, step, itemsize = cnp.PyArray_ITEMSIZE(array)
    cdef bint is_empty = cnp.PyArray_SIZE(array) == 0
    cdef int64_t in_order = 1
    tensor.data = NULL if is_empty else cnp.PyArray_BYTES(array)
    tensor.device_kind = DLPACK_CPU
    tensor.device_number = 0
    tensor.ndim = ndim
    tensor.code = <uint8_t>code
    tensor.bits = <uint8_t>bits
    tensor.lanes = 1
    tensor.shape = sizes
    tensor.strides = sizes + ndim
    tensor.byte_offset = 0
    for i in range(ndim - 1, -1, -1):
        length = cnp.PyArray_DIM(array, i)
        step = cnp.PyArray_STRIDE(array, i)
        tensor.shape[i] = length
        if length > 1 and not is_empty:
            if step < 0:
                raise BufferError(
                    "strides must not be negative, because some libraries then end the"
                    f" process; got {(<object>array).strides}. Use a.copy()"
                )
            if step % itemsize:
                raise BufferError(
                    f"strides must be multiples of {itemsize} bytes for DLPack; got"
                    f" {(<object>array).strides}. Use a.copy()"
                )
            in_order = step // itemsize
        tensor.strides[i] = in_order  # some libraries read it even for 0 or 1 elements
        in_order *= max(length, 1)
    return 0


def dlpack_export(cnp.ndarray array, int code, int bits, bint is_versioned,
                  bint is_copied):
    """Return a capsule whose tensor keeps the array alive until it is deleted.

    A tensor without a version cannot be marked as read-only, or its elements as padded.
    The caller must not export such arrays without a version.
    """
    cdef size_t sizes = 2 * max(cnp.PyArray_NDIM(array), 1) * sizeof(int64_t)
    cdef tf_dlpack_legacy *legacy
    cdef tf_dlpack_versioned *versioned
    cdef void *managed = malloc(sizeof(tf_dlpack_versioned) + sizes)
    if managed == NULL:
        raise MemoryError()
    try:
        if is_versioned:
            versioned = <tf_dlpack_versioned *>managed
            versioned.major, versioned.minor = TF_DLPACK_MAJOR, TF_DLPACK_MINOR
            versioned.context = <void *><PyObject *>array
            versioned.deleter = dlpack_delete_versioned
            versioned.flags = (
                (0 if cnp.PyArray_ISWRITEABLE(array) else TF_DLPACK_READ_ONLY)
                | (TF_DLPACK_IS_COPIED if is_copied else 0)
                | (TF_DLPACK_IS_PADDED if bits < 8 else 0))
            dlpack_fill(
                &versioned.tensor, array, <int64_t *>(versioned + 1), code, bits)
            capsule = PyCapsule_New(
                managed, DLPACK_VERSIONED, dlpack_forget_versioned)
        else:
            legacy = <tf_dlpack_legacy *>managed
            legacy.context = <void *><PyObject *>array
            legacy.deleter = dlpack_delete_legacy
            dlpack_fill(&legacy.tensor, array, <int64_t *>(legacy + 1), code, bits)
            capsule = PyCapsule_New(managed, DLPACK_LEGACY, dlpack_forget_legacy)
    except BaseException:
        free(managed)
        raise
    incref(<PyObject *>array)
    return capsule


# -- capsules to arrays ----------------------------------------------------------------

cdef class DLPackOwner:
    """The owner of an array's memory: a tensor that was taken out of a capsule."""

    cdef tf_dlpack_legacy *legacy
    cdef tf_dlpack_versioned *versioned

    def __dealloc__(self):
        if self.legacy != NULL and self.legacy.deleter != NULL:
            self.legacy.deleter(self.legacy)
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)


cdef tf_dlpack_tensor *dlpack_tensor(object capsule) except NULL:
    """Return the tensor of a capsule, or raise a BufferError if it cannot be read."""
    cdef const char *name
    cdef tf_dlpack_versioned *versioned
    if PyCapsule_CheckExact(capsule):
        if PyCapsule_IsValid(capsule, DLPACK_LEGACY):
            return &(<tf_dlpack_legacy *>PyCapsule_GetPointer(
                capsule, DLPACK_LEGACY)).tensor
        if PyCapsule_IsValid(capsule, DLPACK_VERSIONED):
            versioned = <tf_dlpack_versioned *>PyCapsule_GetPointer(
                capsule, DLPACK_VERSIONED)
            if versioned.major != TF_DLPACK_MAJOR:
                raise BufferError(
                    f"version of DLPack must be {TF_DLPACK_MAJOR}.x; got"
                    f" {versioned.major}.{versioned.minor}"
                )
            return &versioned.tensor
        name = PyCapsule_GetName(capsule)
        called = "" if name == NULL else (<bytes>name).decode("ascii", "replace")
        if called.startswith("used_dltensor"):
            raise BufferError(
                "DLPack capsule must not be used twice. Get another one from its owner")
        raise BufferError(
            f"object must be a DLPack capsule; got a capsule named {called[:40]!r}")
    raise BufferError(
        f"object must be a DLPack capsule; got {type(capsule).__name__}")


def dlpack_describe(capsule):
    """Return a description of the tensor of a capsule.

    The tuple has seven items:

    - kind and number of the device
    - code, bits and lanes of the type
    - shape
    - strides in elements, or None
    - offset in bytes, or None if there is no memory
    - whether the tensor may be written to
    - whether its elements are padded

    A capsule of a version before 1.0 counts as read-only.
    """
    cdef tf_dlpack_tensor *tensor = dlpack_tensor(capsule)
    cdef uint64_t flags = TF_DLPACK_READ_ONLY
    cdef int i
    if PyCapsule_IsValid(capsule, DLPACK_VERSIONED):
        flags = (<tf_dlpack_versioned *>PyCapsule_GetPointer(
            capsule, DLPACK_VERSIONED)).flags
    if not 0 <= tensor.ndim <= DLPACK_MOST_AXES:
        raise BufferError(
            f"tensor must have 0 to {DLPACK_MOST_AXES} axes; got {tensor.ndim}"
        )
    if tensor.ndim > 0 and tensor.shape == NULL:
        raise BufferError(f"tensor of {tensor.ndim} axes must have a shape; got none")
    shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    strides = None
    if tensor.ndim > 0 and tensor.strides != NULL:
        strides = tuple([tensor.strides[i] for i in range(tensor.ndim)])
    return (
        (tensor.device_kind, tensor.device_number),
        (tensor.code, tensor.bits, tensor.lanes),
        shape,
        strides,
        None if tensor.data == NULL else tensor.byte_offset,
        not flags & TF_DLPACK_READ_ONLY,
        bool(flags & TF_DLPACK_IS_PADDED),
    )


def dlpack_take(capsule, cnp.dtype dtype, shape, strides, bint is_writeable):
    """Take a tensor out of its capsule, and return an array of its memory.

    `strides` are in bytes. The arguments must match the result of `dlpack_describe`,
    which is not checked here.
    """
    cdef tf_dlpack_tensor *tensor = dlpack_tensor(capsule)
    cdef DLPackOwner owner = DLPackOwner()
    cdef npy_intp lengths[DLPACK_MOST_AXES]
    cdef npy_intp steps[DLPACK_MOST_AXES]
    cdef char *items = <char *>&DLPACK_NOTHING  # any valid address if there is no data
    cdef int i, ndim = len(shape)
    for i in range(ndim):
        lengths[i], steps[i] = shape[i], strides[i]
    if tensor.data != NULL:
        items = tensor.data + tensor.byte_offset
    incref(<PyObject *>dtype)  # the array takes this reference
    array = PyArray_NewFromDescr(
        <PyTypeObject *><PyObject *>np.ndarray, <descr_t *><PyObject *>dtype, ndim,
        lengths, steps, items, cnp.NPY_ARRAY_WRITEABLE if is_writeable else 0, NULL)
    if PyCapsule_IsValid(capsule, DLPACK_VERSIONED):
        owner.versioned = <tf_dlpack_versioned *>PyCapsule_GetPointer(
            capsule, DLPACK_VERSIONED)
        PyCapsule_SetName(capsule, DLPACK_VERSIONED_USED)
    else:
        owner.legacy = <tf_dlpack_legacy *>PyCapsule_GetPointer(capsule, DLPACK_LEGACY)
        PyCapsule_SetName(capsule, DLPACK_LEGACY_USED)
    cnp.set_array_base(array, owner)
    return array
