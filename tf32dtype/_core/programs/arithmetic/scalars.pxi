# Arithmetic of two scalars, np.float32(1) + np.float32(2), which does not use ufuncs.
# The slots of NumPy's scalar types are replaced.

from tf32dtype._core.programs.arithmetic.arithmetic cimport *

cdef extern from *:
    """
    typedef PyObject *tf_scalar_fn(int number, PyObject *a, PyObject *b);
    static tf_scalar_fn *tf_any_scalar;

    /* A slot does not know which it is: type * 11 + operation. */
    #define TF_BINARY(number)                                                        \\
        static PyObject *tf_scalar_##number(PyObject *a, PyObject *b)                \\
        {                                                                            \\
            return tf_any_scalar(number, a, b);                                      \\
        }
    #define TF_POWER(number)                                                         \\
        static PyObject *tf_scalar_##number(PyObject *a, PyObject *b, PyObject *m)   \\
        {                                                                            \\
            if (m != Py_None) {                                                      \\
                Py_RETURN_NOTIMPLEMENTED;                                            \\
            }                                                                        \\
            return tf_any_scalar(number, a, b);                                      \\
        }
    #define TF_UNARY(number)                                                         \\
        static PyObject *tf_scalar_##number(PyObject *a)                             \\
        {                                                                            \\
            return tf_any_scalar(number, a, NULL);                                   \\
        }
    TF_BINARY(0) TF_BINARY(1) TF_BINARY(2) TF_BINARY(3) TF_BINARY(4) TF_BINARY(5)
    TF_BINARY(6) TF_POWER(7) TF_UNARY(8) TF_UNARY(9) TF_UNARY(10)
    TF_BINARY(11) TF_BINARY(12) TF_BINARY(13) TF_BINARY(14) TF_BINARY(15) TF_BINARY(16)
    TF_BINARY(17) TF_POWER(18) TF_UNARY(19) TF_UNARY(20) TF_UNARY(21)
    #undef TF_BINARY
    #undef TF_POWER
    #undef TF_UNARY
    #define TF_SLOT(number) (void *)tf_scalar_##number
    static void *tf_scalar_slots[] = {
        TF_SLOT(0), TF_SLOT(1), TF_SLOT(2), TF_SLOT(3), TF_SLOT(4), TF_SLOT(5),
        TF_SLOT(6), TF_SLOT(7), TF_SLOT(8), TF_SLOT(9), TF_SLOT(10), TF_SLOT(11),
        TF_SLOT(12), TF_SLOT(13), TF_SLOT(14), TF_SLOT(15), TF_SLOT(16), TF_SLOT(17),
        TF_SLOT(18), TF_SLOT(19), TF_SLOT(20), TF_SLOT(21),
    };
    #undef TF_SLOT

    /* Where a type has the slot of an operation, in the order of scalar_operations. */
    static void **tf_slot_of(PyObject *type, int operation)
    {
        PyNumberMethods *all = ((PyTypeObject *)type)->tp_as_number;
        void *slots[] = {&all->nb_add, &all->nb_subtract, &all->nb_multiply,
                         &all->nb_true_divide, &all->nb_floor_divide,
                         &all->nb_remainder, &all->nb_divmod, &all->nb_power,
                         &all->nb_negative, &all->nb_positive, &all->nb_absolute};
        return slots[operation];
    }

    static PyObject *tf_call_slot(int operation, void *slot, PyObject *a, PyObject *b)
    {
        return operation == 7  ? ((ternaryfunc)slot)(a, b, Py_None)
               : operation < 7 ? ((binaryfunc)slot)(a, b)
                               : ((unaryfunc)slot)(a);
    }
    """
    void set_error "PyErr_SetObject"(PyObject *, PyObject *)
    enum:
        SCALAR_TYPES "2"
        SCALAR_OPERATIONS "11"
    PyObject *(*tf_any_scalar)(int, PyObject *, PyObject *) noexcept
    void *tf_scalar_slots[]
    void **tf_slot_of(object, int)
    object tf_call_slot(int, void *, PyObject *, PyObject *)

# The ufuncs that compute the same operations.
cdef tuple scalar_operations = ("add", "subtract", "multiply", "divide", "floor_divide",
                                "remainder", "divmod", "power", "negative", "positive",
                                "absolute")
cdef tuple scalar_numbers = (np.float32, np.float64)
cdef char *scalar_letters = b"fd"
cdef void *scalar_originals[22]
cdef tf_loop *scalar_loops[22]
cdef int scalars_begun = 0                # types whose slots are replaced
cdef bint scalars_are_watched = False


cdef object _scalar(int type, x, double value):
    """Return a value as a NumPy scalar if x is one, otherwise as a Python float."""
    return scalar_numbers[type](value) if isinstance(x, scalar_numbers[type]) else value


cdef object _rounded_operand(int type, x, double *given, double *value, unsigned *flags):
    """Round an operand: a NumPy scalar of the type, or a Python number."""
    given[0] = x
    if type == 0:
        given[0] = <float>given[0]
    value[0] = tf_arithmetic_round(scalar_letters[type], given[0], flags)
    cdef bint stays_nan = given[0] != given[0] and value[0] != value[0]
    # -0 equals +0, which it becomes in a format without it.
    if stays_nan or memcmp(value, given, sizeof(double)) == 0:
        return x
    return _scalar(type, x, value[0])


cdef bint _can_round(int type, x):
    return isinstance(x, scalar_numbers[:type + 1]) or x.__class__ in (float, int, bool)


cdef object _compute_scalar(int number, PyObject *first, PyObject *second):
    cdef int type = number // SCALAR_OPERATIONS, operation = number % SCALAR_OPERATIONS
    cdef int count = 1 if second == NULL else 2
    cdef double given[2]
    cdef double operands[2]
    cdef double results[2]
    cdef double wide[2]
    cdef int i
    cdef unsigned flags = 0
    cdef void *original = scalar_originals[number]
    a, b = <object>first, None if second == NULL else <object>second
    cdef bint known = _can_round(type, a) and (count == 1 or _can_round(type, b))
    if not tf_arithmetic_is_here():
        return tf_call_slot(operation, original, first, second)
    try:
        if known:
            a = _rounded_operand(type, a, &given[0], &operands[0], &flags)
        if known and count == 2:
            b = _rounded_operand(type, b, &given[1], &operands[1], &flags)
    except OverflowError:  # an int out of float64's range
        return tf_call_slot(operation, original, first, second)
    found = tf_call_slot(operation, original, <PyObject *>a, <PyObject *>b)
    many = found if isinstance(found, tuple) else (found,)
    rounded = []
    for x in many:
        if not isinstance(x, scalar_numbers[type]):
            return found
        rounded.append(scalar_numbers[type](
            tf_arithmetic_round(scalar_letters[type], x, &flags)))
    tf_arithmetic_count(scalar_loops[number], <size_t>len(rounded))
    if known and scalars_are_watched:
        truths = _true_scalars(type, operation, operands, many)
        for i in range(<int>len(truths)):
            results[i], wide[i] = rounded[i], truths[i]
        if truths:
            tf_arithmetic_watch(scalar_loops[number], results, wide, given, operands, count)
    if flags:
        report(flags, scalar_operations[operation].encode())
    return tuple(rounded) if isinstance(found, tuple) else rounded[0]


cdef object _true_scalars(int type, int operation, double *operands, many):
    """Return the results in float64, or `many` if the operation is in float64."""
    if type == 1:
        return many
    a, b = np.float64(operands[0]), np.float64(operands[1])
    try:
        with np.errstate(all="ignore"):
            found = tf_call_slot(operation, scalar_originals[SCALAR_OPERATIONS + operation],
                                 <PyObject *>a, <PyObject *>b)
    except Exception:
        return ()
    return found if isinstance(found, tuple) else (found,)


cdef PyObject *any_scalar(int number, PyObject *a, PyObject *b) noexcept:
    cdef PyObject *found = NULL
    try:
        result = _compute_scalar(number, a, b)
        found = <PyObject *>result
        incref(found)
    except BaseException as error:
        set_error(<PyObject *>Py_TYPE(error), <PyObject *>error)
    return found


cdef _begin_scalars(bint float64, bint watches):
    """Replace the slots of np.float32, and of np.float64."""
    global scalars_begun, scalars_are_watched
    cdef int type, operation, number
    for type in range(SCALAR_TYPES):
        for operation in range(SCALAR_OPERATIONS):
            number = type * SCALAR_OPERATIONS + operation
            scalar_originals[number] = tf_slot_of(scalar_numbers[type], operation)[0]
            scalar_loops[number] = _loop_of(scalar_operations[operation],
                                            scalar_letters[type])
    scalars_begun = 2 if float64 else 1
    scalars_are_watched = watches
    for number in range(scalars_begun * SCALAR_OPERATIONS):
        tf_slot_of(scalar_numbers[number // SCALAR_OPERATIONS],
                   number % SCALAR_OPERATIONS)[0] = tf_scalar_slots[number]


cdef _end_scalars():
    cdef int number
    for number in range(scalars_begun * SCALAR_OPERATIONS):
        tf_slot_of(scalar_numbers[number // SCALAR_OPERATIONS],
                   number % SCALAR_OPERATIONS)[0] = scalar_originals[number]


tf_any_scalar = any_scalar
