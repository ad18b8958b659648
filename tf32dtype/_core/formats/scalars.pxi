# Scalar types: one per format, derived from np.floating.
#
# NumPy reads the value of a scalar right after the object's header. So scalar types
# cannot be Cython classes; PyType_FromSpecWithBases makes them.

from tf32dtype._core.formats.formats cimport *

cdef PyTypeObject *scalar_pointers[TF_FORMAT_COUNT]
scalar_types = []


cdef int format_of_type(PyTypeObject *type_) noexcept:
    cdef int i
    for i in range(TF_FORMAT_COUNT):
        if scalar_pointers[i] == type_:
            return i
    return -1


cdef int format_of_scalar(object x) except -2:
    """Return the format of a scalar of ours or of a subclass, otherwise -1."""
    cdef int format = format_of_type(Py_TYPE(x))
    if format < 0 and isinstance(x, np.floating):
        for i, scalar_type in enumerate(scalar_types):
            if isinstance(x, scalar_type):
                return i
    return format


cdef uint32_t code_of_scalar(object x, int format):
    return tf_load_code(tf_format_rows[format][0], (<tf_scalar *><PyObject *>x).item)


cdef object new_scalar(int format, const char *item):
    made = tf_scalar_alloc(scalar_pointers[format])
    memcpy((<tf_scalar *><PyObject *>made).item, item,
           tf_format_rows[format].itemsize)
    return made


cdef int format_of_class(object cls) except -1:
    for i, scalar_type in enumerate(scalar_types):
        if issubclass(cls, scalar_type):
            return i
    raise TypeError(f"{cls!r} is not a scalar type of tf32dtype")


_ONE_NUMBER = (int, float, str, bytes, np.floating, np.bool_)
#: Functions that return an array for an object of another library, or None.
viewers = []


def viewed(x):
    """Return the array that one of `viewers` makes of an object, or the object."""
    for view in viewers:
        array = view(x)
        if array is not None:
            return array
    return x


cdef object scalar_new(object cls, object args, PyObject *keywords):
    cdef int format = format_of_class(cls)
    cdef unsigned flags = 0
    cdef uint32_t code
    name = names[format]
    if keywords != NULL and len(<object>keywords):
        raise TypeError(f"{name}() takes no keyword arguments")
    if len(args) > 1:
        raise TypeError(f"{name}() takes at most 1 argument ({len(args)} given)")
    value = args[0] if args else 0.0
    if not isinstance(value, _ONE_NUMBER):  # NumPy may make an array of it
        array = np.asanyarray(viewed(value), scalar_types[format])
        if array.ndim:
            return array
        value = np.asarray(array)[()]
    code = code_from_object(format, value, &flags)
    tf_warn(flags, b"cast")
    made = tf_scalar_alloc(<PyTypeObject *>cls)
    tf_store_code(tf_format_rows[format][0], (<tf_scalar *><PyObject *>made).item,
                  code)
    return made


cdef double scalar_value(object self):
    cdef int format = format_of_scalar(self)
    return tf_double_from_code(tf_format_rows[format][0], code_of_scalar(self, format))


cdef object scalar_str(object self):
    cdef int format = format_of_scalar(self)
    return text_of(format, code_of_scalar(self, format))


cdef object scalar_repr(object self):
    """Return repr() in NumPy's style: with the type, or only digits in legacy mode."""
    text = scalar_str(self)
    legacy = np.get_printoptions()["legacy"]  # False, or a version
    if legacy and tuple(map(int, legacy.split("."))) <= (1, 25):
        return text
    return f"tf32dtype.{names[format_of_scalar(self)]}({text})"


cdef Py_hash_t scalar_hash(object self) except -1:
    return hash(scalar_value(self))


cdef object scalar_float(object self):
    return scalar_value(self)


cdef object scalar_int(object self):
    return int(scalar_value(self))


cdef int scalar_bool(object self) except -1:
    return scalar_value(self) != 0


cdef object scalar_reduce(object self, object ignored):
    cdef int format = format_of_scalar(self)
    cdef tf_format f = tf_format_rows[format][0]
    bits = int(code_of_scalar(self, format)) << f.shift
    return _scalar_from_item, (type(self), bits.to_bytes(f.itemsize, "little"))


def _scalar_from_item(cls, bytes item):
    """Unpickle a scalar from its bits, the low byte first."""
    cdef int format = format_of_class(cls)
    cdef tf_format f = tf_format_rows[format][0]
    cdef char native[4]
    if len(item) != f.itemsize:
        raise ValueError(
            f"pickled {names[format]} must have {f.itemsize} bytes; got {len(item)}")
    tf_store_code(f, native, int.from_bytes(item, "little") >> f.shift)
    return new_scalar(format, native)


cdef object scalar_is_integer(object self, object ignored):
    return scalar_value(self).is_integer()


cdef object scalar_as_integer_ratio(object self, object ignored):
    return scalar_value(self).as_integer_ratio()


cdef object scalar_hex(object self, object ignored):
    return scalar_value(self).hex()


cdef object scalar_complex(object self, object ignored):
    return complex(scalar_value(self))


cdef object scalar_round(object self, object args):
    digits = args[0] if args else None
    if digits is None:
        return round(scalar_value(self))
    return np.round(self, digits)


cdef object scalar_format(object self, object args):
    """Format as a Python float, but with the digits of str() if none are specified."""
    (specification,) = args
    if not specification:
        return str(self)
    if "." in specification or specification[-1] in "eEfFgGn%":
        return format(scalar_value(self), specification)
    return format(printed(self), specification)


cdef object scalar_trunc(object self, object ignored):
    return int(scalar_value(self))


cdef object scalar_floor(object self, object ignored):
    return scalar_value(self).__floor__()


cdef object scalar_ceil(object self, object ignored):
    return scalar_value(self).__ceil__()


cdef PyMethodDef scalar_methods[11]
scalar_methods[0] = PyMethodDef("__reduce__", <void *>scalar_reduce, METH_NOARGS, NULL)
scalar_methods[1] = PyMethodDef(
    "is_integer", <void *>scalar_is_integer, METH_NOARGS,
    "is_integer($self, /)\n--\n\nWhether the number is finite with integral value.")
scalar_methods[2] = PyMethodDef(
    "as_integer_ratio", <void *>scalar_as_integer_ratio, METH_NOARGS,
    "as_integer_ratio($self, /)\n--\n\nA pair of integers, whose ratio is exactly the number.")
scalar_methods[3] = PyMethodDef(
    "hex", <void *>scalar_hex, METH_NOARGS,
    "hex($self, /)\n--\n\nThe exact value in hexadecimal, as float.hex() writes it.")
scalar_methods[4] = PyMethodDef("__complex__", <void *>scalar_complex, METH_NOARGS, NULL)
scalar_methods[5] = PyMethodDef("__round__", <void *>scalar_round, METH_VARARGS, NULL)
scalar_methods[6] = PyMethodDef("__trunc__", <void *>scalar_trunc, METH_NOARGS, NULL)
scalar_methods[7] = PyMethodDef("__floor__", <void *>scalar_floor, METH_NOARGS, NULL)
scalar_methods[8] = PyMethodDef("__ceil__", <void *>scalar_ceil, METH_NOARGS, NULL)
scalar_methods[9] = PyMethodDef(
    "__format__", <void *>scalar_format, METH_VARARGS, NULL)
memset(&scalar_methods[10], 0, sizeof(PyMethodDef))

_type_names = []  # keeps the C strings that type objects point to


def _scalar_doc(int format):
    row = facts(format)
    return (
        f"{row['name']}(x=0.0, /)\n--\n\n"
        f"A number of {row['bits']} bits: "
        f"{'1 sign, ' if row['signed'] else ''}{row['exponent_bits']} exponent and"
        f" {row['mantissa_bits']} mantissa bits, bias {row['bias']}.\n\n"
        "Also a dtype: ``np.array(values, dtype=" + row["name"] + ")``.\n\n"
        "Parameters\n----------\n"
        "x : number or str, optional\n"
        "    Rounded to nearest, ties to even, once: a Python int of any size, a\n"
        "    Fraction, a Decimal or a string is not taken through float.\n"
    ).encode()


cdef make_scalar_type(int format):
    cdef PyType_Slot slots[18]
    cdef PyType_Spec spec
    full_name = f"tf32dtype.{names[format]}".encode()
    doc = _scalar_doc(format)
    _type_names.extend([full_name, doc])
    slots[0] = PyType_Slot(Py_tp_new, <void *>scalar_new)
    slots[1] = PyType_Slot(Py_tp_dealloc, <void *>tf_scalar_dealloc)
    slots[2] = PyType_Slot(Py_tp_repr, <void *>scalar_repr)
    slots[3] = PyType_Slot(Py_tp_str, <void *>scalar_str)
    slots[4] = PyType_Slot(Py_tp_hash, <void *>scalar_hash)
    slots[5] = PyType_Slot(Py_tp_richcompare, <void *>scalar_compare)
    slots[6] = PyType_Slot(Py_nb_float, <void *>scalar_float)
    slots[7] = PyType_Slot(Py_nb_int, <void *>scalar_int)
    slots[8] = PyType_Slot(Py_nb_bool, <void *>scalar_bool)
    slots[9] = PyType_Slot(Py_tp_methods, <void *>scalar_methods)
    slots[10] = PyType_Slot(Py_tp_doc, <void *><char *>doc)
    slots[11] = PyType_Slot(Py_nb_add, <void *>scalar_add)
    slots[12] = PyType_Slot(Py_nb_subtract, <void *>scalar_subtract)
    slots[13] = PyType_Slot(Py_nb_multiply, <void *>scalar_multiply)
    slots[14] = PyType_Slot(Py_nb_true_divide, <void *>scalar_divide)
    slots[15] = PyType_Slot(Py_nb_negative, <void *>scalar_negative)
    slots[16] = PyType_Slot(Py_nb_absolute, <void *>scalar_absolute)
    slots[17] = PyType_Slot(0, NULL)
    spec.name = full_name
    spec.basicsize = sizeof(tf_scalar)
    spec.itemsize = 0
    spec.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE
    spec.slots = slots
    return PyType_FromSpecWithBases(&spec, (np.floating,))


for _index in range(TF_FORMAT_COUNT):
    _made = make_scalar_type(_index)
    scalar_types.append(_made)
    scalar_pointers[_index] = <PyTypeObject *>_made
    globals()[names[_index]] = _made
__all__ += names
