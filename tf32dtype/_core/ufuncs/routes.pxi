# Route calls of NumPy's functions to ours if an argument has a dtype of ours.
#
# A function object, of Python or of C, has a field with the C function that is called
# (vectorcall). We replace this function. So NumPy keeps the same function objects, and
# calls with other arrays work as before, without an additional frame or conversion.
# Python 3.11 ignores the field if Python code calls a Python function by its name. The
# functions that are routed here are called from C, or with **keywords. For a method of
# ndarray, the C function is in its definition, which all calls use.

from cpython.ref cimport Py_INCREF

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030C0000 /* Python 3.12 has it */
    static void PyFunction_SetVectorcall(PyFunctionObject *function,
                                         vectorcallfunc vectorcall)
    {
        function->func_version = 0; /* call sites that know it look again */
        function->vectorcall = vectorcall;
    }
    #endif

    static void tf_set_vectorcall(PyObject *function, vectorcallfunc vectorcall)
    {
        if (PyFunction_Check(function)) {
            PyFunction_SetVectorcall((PyFunctionObject *)function, vectorcall);
        } else {
            const Py_ssize_t offset = Py_TYPE(function)->tp_vectorcall_offset;
            *(vectorcallfunc *)((char *)function + offset) = vectorcall;
        }
    }

    typedef PyObject *(*tf_method)(PyObject *, PyObject *const *, Py_ssize_t,
                                   PyObject *);

    /* The place of a method's C function; or NULL, if it does not take what
     * METH_FASTCALL | METH_KEYWORDS says. */
    static tf_method *tf_method_place(PyObject *method)
    {
        if (!PyObject_TypeCheck(method, &PyMethodDescr_Type)) {
            return NULL;
        }
        PyMethodDef *definition = ((PyMethodDescrObject *)method)->d_method;
        const int convention = METH_FASTCALL | METH_KEYWORDS;
        return definition->ml_flags == convention
                   ? (tf_method *)(void *)&definition->ml_meth
                   : NULL;
    }
    """
    ctypedef PyObject *(*vectorcallfunc)(PyObject *, PyObject *const *, size_t,
                                        PyObject *) noexcept
    ctypedef PyObject *(*tf_method)(PyObject *, PyObject *const *, Py_ssize_t,
                                    PyObject *) noexcept
    void tf_set_vectorcall(PyObject *, vectorcallfunc)
    tf_method *tf_method_place(PyObject *)
    vectorcallfunc PyVectorcall_Function(PyObject *)
    size_t PyVectorcall_NARGS(size_t)
    PyObject *PyObject_CallNoArgs(PyObject *) noexcept
    PyObject *PyObject_Vectorcall(PyObject *, PyObject *const *, size_t,
                                  PyObject *) noexcept

cdef struct route:
    PyObject *function
    PyObject *handler
    vectorcallfunc own

cdef enum:
    MAX_ROUTES = 48
    MAX_DIMENSIONS = 64  # NumPy's, of lists in lists too

cdef route routes[MAX_ROUTES]
cdef int route_count = 0


cdef bint has_ours(object value, int depth=0) except -1:
    """Return whether a value is or contains an array, a scalar or a dtype of ours."""
    if cnp.PyArray_Check(value):
        return tf_format_of_descr(<descr_t *>cnp.PyArray_DESCR(value)) >= 0
    if isinstance(value, (list, tuple)):
        if depth < MAX_DIMENSIONS:
            for item in value:
                if type(item) is float or type(item) is int:  # most are
                    continue
                if has_ours(item, depth + 1):
                    return True
        return False
    if isinstance(value, type):
        return format_of_type(<PyTypeObject *>value) >= 0
    if cnp.PyArray_DescrCheck(value):
        return tf_format_of_descr(<descr_t *><PyObject *>value) >= 0
    if isinstance(value, str):  # one letter means an order, or an axis
        return len(value) > 1 and has_ours(np.sctypeDict.get(value))
    return format_of_type(Py_TYPE(value)) >= 0


cdef int have_ours(PyObject *const *args, size_t count, PyObject *keywords) except -1:
    cdef size_t i
    if keywords != NULL:
        count += len(<tuple><object>keywords)
    for i in range(count):
        if has_ours(<object>args[i]):
            return True
    return False


cdef class OwnCall:
    """A call of NumPy's function that a handler returns instead of making it.

    The call is made without a frame of this package, because NumPy's warnings show the
    line that is a fixed number of frames further out. `then`, if given, is called with
    the result."""
    cdef object function, args, keywords, then

    def __init__(self, function, args, keywords, then):
        self.function, self.args, self.keywords = function, args, keywords
        self.then = then

    def __call__(self):
        found = self.function(*self.args, **self.keywords)
        return found if self.then is None else self.then(found)


cdef class Obeying:
    """A function of NumPy that uses another function while a precision is set.

    If `product` returns NotImplemented, the function of NumPy is called."""
    cdef object own, product

    def __init__(self, own, product):
        self.own, self.product = own, product

    def __call__(self, *args, **keywords):
        result = NotImplemented
        if current_precision() is not None:
            result = self.product(*args, **keywords)
            if type(result) is OwnCall:
                result = result()
        return self.own(*args, **keywords) if result is NotImplemented else result


# noexcept: an error keeps the frames that it has.
cdef PyObject *finished(PyObject *result) noexcept:
    """Return the result of a handler, or of the `OwnCall` that it returned."""
    if result == NULL or Py_TYPE(<object>result) != <PyTypeObject *>OwnCall:
        return result
    cdef PyObject *found = PyObject_CallNoArgs(result)
    decref(result)
    return found


cdef PyObject *routed_call(PyObject *function, PyObject *const *args, size_t nargsf,
                           PyObject *keywords) noexcept:
    cdef route *found = routes
    cdef PyObject *result
    while found.function != function:
        found += 1
    if have_ours(args, PyVectorcall_NARGS(nargsf), keywords):
        result = PyObject_Vectorcall(found.handler, args, nargsf, keywords)
        if result != <PyObject *>NotImplemented:
            return finished(result)
        decref(result)
    return found.own(function, args, nargsf, keywords)


def answer(function, handler):
    """Call `handler` instead of a function of NumPy if an argument has a dtype of ours.

    It has the same arguments. If it returns NotImplemented, the function itself is
    called."""
    global route_count
    cdef route *place = routes
    while place < routes + route_count and place.function != <PyObject *>function:
        place += 1
    if place == routes + MAX_ROUTES:
        raise SystemError("too many functions are answered")
    Py_INCREF(handler)
    if place < routes + route_count:  # the package was imported again
        place.handler = <PyObject *>handler  # a thread may be calling the one before
        return
    Py_INCREF(function)
    place.function = <PyObject *>function
    place.handler = <PyObject *>handler
    place.own = PyVectorcall_Function(place.function)
    route_count += 1
    tf_set_vectorcall(place.function, routed_call)


# Methods of arrays and ufuncs. Each has a C function of its own, which gets only the
# arguments and not the method.

cdef struct method:
    tf_method own
    PyObject *handler

cdef enum:
    DOT
    PARTITION
    ARGPARTITION
    SEARCHSORTED
    REDUCEAT
    METHODS
    MOST_ARGUMENTS = 8
    FEW_LOOKS = 1024

cdef method methods[METHODS]
cdef list method_names = ["dot", "partition", "argpartition", "searchsorted",
                                "reduceat"]


cdef PyObject *routed_method(int which, PyObject *array, PyObject *const *args,
                             Py_ssize_t count, PyObject *keywords) noexcept:
    cdef PyObject *all_args[MOST_ARGUMENTS + 1]  # itself first
    cdef Py_ssize_t i, given = count
    cdef PyObject *result
    if keywords != NULL:
        given += len(<tuple><object>keywords)
    if given <= MOST_ARGUMENTS and (has_ours(<object>array)
                                    or have_ours(args, count, keywords)):
        all_args[0] = array
        for i in range(given):
            all_args[1 + i] = args[i]
        result = PyObject_Vectorcall(methods[which].handler, all_args, 1 + count,
                                     keywords)
        if result != <PyObject *>NotImplemented:
            return result
        decref(result)
    return methods[which].own(array, args, count, keywords)


cdef PyObject *routed_dot(PyObject *array, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords) noexcept:
    return routed_method(DOT, array, args, count, keywords)


cdef PyObject *routed_partition(PyObject *array, PyObject *const *args,
                                Py_ssize_t count, PyObject *keywords) noexcept:
    return routed_method(PARTITION, array, args, count, keywords)


cdef PyObject *routed_argpartition(PyObject *array, PyObject *const *args,
                                   Py_ssize_t count, PyObject *keywords) noexcept:
    return routed_method(ARGPARTITION, array, args, count, keywords)


cdef bint are_few(PyObject *array, PyObject *values) noexcept:
    """Return whether searchsorted has so few elements that NumPy's own is faster.

    NumPy finishes before our function would have converted them."""
    cdef npy_intp size = cnp.PyArray_SIZE(<cnp.ndarray>array)
    cdef npy_intp looks
    if not cnp.PyArray_Check(<object>values):
        return False
    looks = cnp.PyArray_SIZE(<cnp.ndarray>values)
    return size <= FEW_LOOKS and looks <= FEW_LOOKS and size * looks <= FEW_LOOKS


cdef PyObject *routed_searchsorted(PyObject *array, PyObject *const *args,
                                   Py_ssize_t count, PyObject *keywords) noexcept:
    if count > 0 and are_few(array, args[0]):
        return methods[SEARCHSORTED].own(array, args, count, keywords)
    return routed_method(SEARCHSORTED, array, args, count, keywords)


cdef PyObject *routed_reduceat(PyObject *ufunc, PyObject *const *args, Py_ssize_t count,
                               PyObject *keywords) noexcept:
    return routed_method(REDUCEAT, ufunc, args, count, keywords)


cdef tf_method routed_methods[METHODS]
routed_methods[DOT] = routed_dot
routed_methods[PARTITION] = routed_partition
routed_methods[ARGPARTITION] = routed_argpartition
routed_methods[SEARCHSORTED] = routed_searchsorted
routed_methods[REDUCEAT] = routed_reduceat


def answer_method(str name, handler):
    """Call `handler` instead of a method of arrays or ufuncs, as `answer` does.

    Return False if the method has another form in this version of NumPy."""
    cdef int which = method_names.index(name)
    definition = getattr(np.ufunc if which == REDUCEAT else np.ndarray, name)
    cdef tf_method *place = tf_method_place(<PyObject *>definition)
    if place == NULL:
        return False
    Py_INCREF(handler)
    methods[which].handler = <PyObject *>handler
    if methods[which].own == NULL:
        methods[which].own = place[0]
        place[0] = routed_methods[which]
    return True
