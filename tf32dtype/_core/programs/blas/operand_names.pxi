# Names of matrices that a program's variables lead to. Only reads: no code of the program runs,
# since no attribute is asked for and garbage is not collected meanwhile.

from cpython.dict cimport PyDict_Check, PyDict_Next
from cpython.list cimport PyList_Check
from cpython.module cimport PyModule_Check, PyModule_GetDict
from cpython.tuple cimport PyTuple_Check

from types import BuiltinFunctionType, FunctionType, MemberDescriptorType

from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.programs cimport *

cdef enum:
    MOST_ITEMS = 1 << 14  # that are looked at
    MOST_OF_ROOT = 1 << 13  # of one variable
    MOST_OF_ONE = 1024  # of one container
    DEEPEST = 6

cdef tuple left_out_kinds = (bool, int, float, complex, str, bytes, type(None), np.generic,
                             type, FunctionType, BuiltinFunctionType)


cdef void name_operands() noexcept nogil:
    """Name the operands of products, for `struct tf_product_sites_wanted`."""
    with gil:
        name_with_gil()


cdef void name_with_gil() noexcept:
    cdef PyObject *kind
    cdef PyObject *value
    cdef PyObject *trace
    PyErr_Fetch(&kind, &value, &trace)
    cdef int collects = PyGC_Disable()
    try:
        OperandNames().name_variables()
    except BaseException:  # memory is short
        pass
    if collects:
        PyGC_Enable()
    PyErr_Restore(kind, value, trace)


cdef class OperandNames:
    """One search: containers that it has seen and that it still has to look into."""

    cdef set seen
    cdef list waiting  # (container, name, depth)
    cdef Py_ssize_t left, left_of_root

    cdef name_variables(self):
        cdef list arrays = []
        cdef PyObject *found = tf_frames_variables()
        if found == NULL:
            raise MemoryError
        variables = <object>found
        decref(found)
        self.seen = set()
        self.left = MOST_ITEMS
        for name, value in variables:
            if cnp.PyArray_Check(value):
                arrays.append((value, name))  # an element of a container has a better name
            else:
                self.name_below(value, name)
        for value, name in arrays:
            name_array(value, name)

    cdef name_below(self, root, str name):
        """The nearest ones first."""
        cdef Py_ssize_t at = 0
        self.waiting = []
        self.left_of_root = MOST_OF_ROOT
        self.take(root, name, 0)
        while at < len(self.waiting) and self.left > 0 and self.left_of_root > 0:
            container, container_name, depth = self.waiting[at]
            self.look_into(container, container_name, depth)
            at += 1

    cdef take(self, value, str name, int depth):
        self.left -= 1
        self.left_of_root -= 1
        if cnp.PyArray_Check(value):
            name_array(value, name)
        elif (depth < DEEPEST and not issubclass(type(value), left_out_kinds)
                and id(value) not in self.seen):
            self.seen.add(id(value))
            self.waiting.append((value, name, depth))

    cdef look_into(self, container, str name, int depth):
        cdef PyObject *found
        cdef Py_ssize_t i
        if PyDict_Check(container):
            self.take_items(container, name if depth else "", depth)
        elif PyList_Check(container) or PyTuple_Check(container):
            for i in range(min(PySequence_Fast_GET_SIZE(container), MOST_OF_ONE)):
                if self.left_of_root <= 0:
                    return
                self.take(<object>PySequence_Fast_GET_ITEM(container, i), f"{name}[{i}]",
                          depth + 1)
        elif PyModule_Check(container):
            variables = <object>PyModule_GetDict(container)
            file = (<dict>variables).get("__file__")
            if type(file) is str and tf_frames_is_users((<str>file).encode()):
                self.take_items(variables, name, depth)
        else:
            found = PyObject_GenericGetDict(container, NULL)
            if found == NULL:
                PyErr_Clear()
            else:
                self.take_items(<object>found, "" if name == "self" else name, depth)
                decref(found)
            self.take_slots(container, "" if name == "self" else name, depth)

    cdef take_items(self, items, str name, int depth):
        cdef PyObject *key
        cdef PyObject *value
        cdef Py_ssize_t at = 0, count = 0
        if not PyDict_Check(items):
            return
        while count < MOST_OF_ONE and self.left_of_root > 0 and PyDict_Next(items, &at, &key,
                                                                            &value):
            count += 1
            if type(<object>key) is str:
                label = f"{name}.{<object>key}" if name else <object>key
            elif type(<object>key) is int:
                label = f"{name}[{<object>key}]"
            else:
                continue
            self.take(<object>value, label, depth + 1)

    cdef take_slots(self, container, str name, int depth):
        kind = type(container)
        if type(kind) is not type:
            return
        slots = kind.__dict__.get("__slots__")
        for slot in slots if type(slots) is tuple else ():
            member = kind.__dict__.get(slot)
            if type(member) is MemberDescriptorType:
                try:
                    self.take(member.__get__(container), f"{name}.{slot}" if name else slot,
                              depth + 1)
                except AttributeError:
                    pass


def name_tensor(array, str name):
    """Give a tensor of a file its name in reports, if calls of BLAS are watched."""
    if tf_blas_is_watched() and cnp.PyArray_Check(array):
        name_array(array, name)


cdef name_array(array, str name):
    """Also the matrices of a stack."""
    cdef cnp.ndarray x = array
    cdef tf_blas_matrix matrix
    cdef npy_intp i, count = 1
    cdef int first = cnp.PyArray_NDIM(x) - 2
    cdef int number = cnp.PyArray_TYPE(x)
    cdef char letter
    if number not in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE, cnp.NPY_CFLOAT, cnp.NPY_CDOUBLE):
        return
    if first not in (0, 1) or not cnp.PyArray_ISNOTSWAPPED(x):
        return
    letter = (b"s" if number == cnp.NPY_FLOAT else b"d" if number == cnp.NPY_DOUBLE
              else b"c" if number == cnp.NPY_CFLOAT else b"z")[0]
    memset(&matrix, 0, sizeof(matrix))
    matrix.rows, matrix.columns = x.shape[first], x.shape[first + 1]
    matrix.strides[0], matrix.strides[1] = x.strides[first], x.strides[first + 1]
    if first:
        count = min(x.shape[0], MOST_OF_ONE)
    for i in range(count):
        matrix.data = <const char *>cnp.PyArray_DATA(x) + (i * x.strides[0] if first else 0)
        label = f"{name}[{i}]" if first else name
        tf_product_name(&matrix, letter, label.encode("utf-8", "replace"))
