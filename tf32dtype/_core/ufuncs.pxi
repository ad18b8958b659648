# Ufunc loops: thin adapters between NumPy and the functions in src.
#
# A loop finds its format and operation in its auxiliary data. Adding an
# operation is adding a line to the lists below.

cdef struct loop_data:
    NpyAuxData base
    int format
    int op
    tf_partials *partials   # of reductions
    bint is_reduction
    bint into_float32


# -- adapters ----------------------------------------------------------------------

cdef int unary_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    if tf_unary(loop.format, loop.op, data, strides, dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int out_of_memory() noexcept with gil:
    try:
        raise MemoryError()
    except MemoryError as error:
        PyErr_SetObject(MemoryError, error)
    return -1


cdef extern from "Python.h":
    void PyErr_SetObject(object, object)


cdef int binary_loop(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef tf_binary_op op = <tf_binary_op>loop.op
    if (data[0] == data[2] and strides[0] == 0 and strides[2] == 0
            and (op == TF_MAXIMUM or op == TF_MINIMUM or op == TF_FMAX
                 or op == TF_FMIN)):
        tf_reduce_extreme(loop.format, op, data, strides[1], dimensions[0])
    else:
        tf_binary(loop.format, op, data, strides, dimensions[0])
    return 0


cdef int sum_loop(PyArrayMethod_Context *context, items_t data,
                  const npy_intp *dimensions, const npy_intp *strides,
                  NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    if loop.partials == NULL and data[0] == data[2] and strides[0] == strides[2]:
        loop.partials = tf_partials_new(loop.is_reduction)
        if loop.partials == NULL:
            return out_of_memory()
    if tf_reduce(loop.format, <tf_reduction>loop.op, loop.partials, data, strides,
                 dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int compare_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_compare(loop.format, <tf_compare_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int predicate_loop(PyArrayMethod_Context *context, items_t data,
                        const npy_intp *dimensions, const npy_intp *strides,
                        NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_predicate(loop.format, <tf_predicate_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int other_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_other(loop.format, <tf_other_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int divmod_loop(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    tf_divmod((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


cdef int clip_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides,
                   NpyAuxData *auxiliary) noexcept nogil:
    tf_clip((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


# matmul (m,n),(n,p)->(m,p); vecdot (n),(n)->(); matvec (m,n),(n)->(m);
# vecmat (n),(n,p)->(p): core strides follow the three outer ones.
cdef enum product:
    MATMUL
    VECDOT
    MATVEC
    VECMAT


cdef int product_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef const npy_intp *core = strides + 3
    cdef npy_intp m = 1, n = 1, k, i
    cdef tf_matrix a, b, c
    memset(&a, 0, sizeof(a))
    memset(&b, 0, sizeof(b))
    memset(&c, 0, sizeof(c))
    if loop.op == MATMUL:
        m, k, n = dimensions[1], dimensions[2], dimensions[3]
        a.strides[0], a.strides[1] = core[0], core[1]
        b.strides[0], b.strides[1] = core[2], core[3]
        c.strides[0], c.strides[1] = core[4], core[5]
    elif loop.op == VECDOT:
        k = dimensions[1]
        a.strides[1], b.strides[0] = core[0], core[1]
    elif loop.op == MATVEC:
        m, k = dimensions[1], dimensions[2]
        a.strides[0], a.strides[1] = core[0], core[1]
        b.strides[0] = core[2]
        c.strides[0] = core[3]
    else:
        k, n = dimensions[1], dimensions[2]
        a.strides[1] = core[0]
        b.strides[0], b.strides[1] = core[1], core[2]
        c.strides[1] = core[3]
    for i in range(dimensions[0]):
        a.data = data[0] + i * strides[0]
        b.data = data[1] + i * strides[1]
        c.data = data[2] + i * strides[2]
        if tf_matmul(loop.format, loop.into_float32, a, b, c, m, n, k) < 0:
            return out_of_memory()
    return 0


# -- which loop for which ufunc --------------------------------------------------------

# Signatures: T is the format, ? bool, i int32, l int64, f float32.
cdef struct operation:
    PyObject *ufunc
    int op
    strided_loop loop
    int identity            # -1: none; 0 or 1
    bint identity_is_minus_infinity
    bint keeps_state        # its data belongs to one call
    int flags               # NPY_METH_NO_FLOATINGPOINT_ERRORS or 0

cdef enum:
    MAX_OPERATIONS = 160

cdef operation operations[MAX_OPERATIONS]
cdef int operation_count = 0
# One a format and operation that keeps no state.
cdef loop_data shared_data[MAX_OPERATIONS][TF_MAX_FORMATS]


cdef PyArray_DTypeMeta *bool_dtype = dtype_of("?")
cdef PyArray_DTypeMeta *int_dtype = dtype_of("i")


cdef void free_data(NpyAuxData *data) noexcept:
    cdef loop_data *loop = <loop_data *>data
    if loop.partials != NULL:
        tf_partials_free(loop.partials)
    free(loop)


cdef NpyAuxData *no_copy(NpyAuxData *data) noexcept:
    return NULL


cdef int find_operation(PyArrayMethod_Context *context) except -1:
    cdef int i
    cdef bint is_int
    for i in range(operation_count):
        if operations[i].ufunc == context.caller:
            if operations[i].loop == other_loop and operations[i].op == TF_LDEXP_INT:
                # ldexp has two loops, by the exponent's size.
                is_int = (<PyArray_DTypeMeta *>Py_TYPE(
                    <object><PyObject *>context.descriptors[1])) == int_dtype
                return i if is_int else i + 1
            return i
    raise SystemError("a loop was asked for that tf32dtype did not register")


cdef int ufunc_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                        const npy_intp *strides, strided_loop *loop,
                        NpyAuxData **auxiliary, int *flags) except -1:
    cdef descrs_t descriptors = context.descriptors
    cdef int format = tf_format_of_descr(descriptors[0])
    cdef bint into_float32 = False
    cdef int i = find_operation(context)
    cdef loop_data *made
    loop[0] = operations[i].loop
    if operations[i].loop == product_loop:
        into_float32 = tf_format_of_descr(descriptors[2]) < 0
    if format < 0:
        format = TF_SINGLE
    if operations[i].keeps_state or into_float32:
        made = <loop_data *>calloc(1, sizeof(loop_data))
        if made == NULL:
            raise MemoryError()
        made.base.free = free_data
        made.base.clone = no_copy
        made.is_reduction = tf_reduction_began(context)
    else:
        made = &shared_data[i][format]
        made.base.free = keep_data
        made.base.clone = same_data
    made.format = format
    made.op = operations[i].op
    made.into_float32 = into_float32
    auxiliary[0] = &made.base
    flags[0] = operations[i].flags
    return 0


cdef int ufunc_reduction_initial(PyArrayMethod_Context *context, cnp.npy_bool is_empty,
                                 void *initial) except -1:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    cdef tf_format f
    cdef int i
    cdef unsigned flags = 0
    cdef uint32_t code
    cdef double value
    cdef float single
    tf_reduction_begins(context)
    i = find_operation(context)
    if operations[i].identity < 0:
        return 0
    value = operations[i].identity
    if operations[i].identity_is_minus_infinity:
        value = -float("inf")
    if format >= 0:
        f = tf_format_rows[format][0]
        code = tf_code_from_double(f, value, &flags)
        # e8m0 has no zero, e4m3fn no Inf: then the first element has to do.
        if tf_double_from_code(f, code) != value and not is_empty:
            return 0
        tf_store_code(f, <char *>initial, code)
    else:
        single = <float>value
        memcpy(initial, &single, sizeof(single))
    return 1


cdef int sum_into_float32_resolve(PyArrayMethodObject *method,
                                  PyArray_DTypeMeta **dtypes, descrs_t given,
                                  descr_t **resolved, npy_intp *view_offset) noexcept:
    """(float32, T) -> float32, for sum(dtype=np.float32) and cumsum: NumPy casts T,
    since an accumulation must have one dtype, and the loop sums in float64."""
    cdef int i
    for i in range(3):
        resolved[i] = float_dtypes[1].singleton
        incref(<PyObject *>resolved[i])
    return cnp.NPY_SAFE_CASTING


cdef PyType_Slot sum_into_float32_slots[4]
sum_into_float32_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>ufunc_get_loop)
sum_into_float32_slots[1] = PyType_Slot(
    NPY_METH_get_reduction_initial, <void *>ufunc_reduction_initial)
sum_into_float32_slots[2] = PyType_Slot(
    NPY_METH_resolve_descriptors, <void *>sum_into_float32_resolve)
sum_into_float32_slots[3] = PyType_Slot(0, NULL)
cdef PyType_Slot ufunc_slots[3]
ufunc_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>ufunc_get_loop)
ufunc_slots[1] = PyType_Slot(
    NPY_METH_get_reduction_initial, <void *>ufunc_reduction_initial)
ufunc_slots[2] = PyType_Slot(0, NULL)


cdef PyArray_DTypeMeta *dtype_of_letter(str letter, int format) except NULL:
    if letter == "T":
        return &tf_dtypes[format]
    return dtype_of(letter)


cdef add_operation(str name, int op, strided_loop loop, list signatures,
                   int flags=0, object identity=None):
    """Loops of one operation for all formats."""
    global operation_count
    cdef PyArrayMethod_Spec spec
    cdef PyArray_DTypeMeta *dtypes[4]
    cdef operation *entry = &operations[operation_count]
    cdef int format, i
    ufunc = getattr(umath, name, None)
    if ufunc is None:
        return
    if operation_count == MAX_OPERATIONS:
        raise SystemError("too many operations")
    entry.ufunc = <PyObject *>ufunc
    entry.op = op
    entry.loop = loop
    entry.identity_is_minus_infinity = identity == float("-inf")
    entry.identity = (-1 if identity is None
                      else 0 if entry.identity_is_minus_infinity else identity)
    entry.keeps_state = loop == sum_loop
    entry.flags = flags & NPY_METH_NO_FLOATINGPOINT_ERRORS
    operation_count += 1
    spec.name = "tf32dtype_loop"
    spec.nin = ufunc.nin
    spec.nout = ufunc.nout
    spec.casting = cnp.NPY_NO_CASTING
    spec.flags = NPY_METH_SUPPORTS_UNALIGNED | flags
    spec.dtypes = dtypes
    for format in range(TF_FORMAT_COUNT):
        for signature in signatures:
            for i, letter in enumerate(signature):
                dtypes[i] = dtype_of_letter(letter, format)
            spec.slots = (&sum_into_float32_slots[0] if signature == "fTf"
                          else &ufunc_slots[0])
            PyUFunc_AddLoopFromSpec(ufunc, &spec)


# -- promotion ---------------------------------------------------------------------------

cdef PyArray_DTypeMeta *long_dtype = dtype_of("l")
cdef PyArray_DTypeMeta *double_dtype = dtype_of("d")


cdef int powers_format = names.index("float8_e8m0fnu")
comparisons = {umath.equal, umath.not_equal, umath.less, umath.less_equal,
               umath.greater, umath.greater_equal}


cdef bint is_python_number(PyArray_DTypeMeta *dtype) noexcept:
    return dtype == &PyArray_PyLongDType or dtype == &PyArray_PyFloatDType


cdef int promote(PyObject *ufunc, PyArray_DTypeMeta **given, PyArray_DTypeMeta **signature,
                 PyArray_DTypeMeta **promoted) noexcept:
    """All inputs to what they have in common, or to the dtype= asked for."""
    cdef int nin = (<object>ufunc).nin
    cdef int nargs = (<object>ufunc).nargs
    cdef int i
    cdef int count = 0
    cdef PyArray_DTypeMeta *common
    cdef PyArray_DTypeMeta *inputs[3]
    cdef PyArray_DTypeMeta *out = signature[nin]
    cdef bint is_product = (<object>ufunc).signature is not None
    cdef bint is_ours, has_number = False
    cdef bint lacks_zero = False
    # Ours first: NumPy lets the first decide, and for a dtype with a type number
    # that it did not give itself, a Python number decides for float16.
    for i in range(2 * nin):
        is_ours = tf_format_of_dtype(given[i % nin]) >= 0
        if given[i % nin] != NULL and is_ours == (i < nin):
            inputs[count] = given[i % nin]
            count += 1
    for i in range(nin):
        if given[i] == NULL:  # the result of a reduction
            continue
        has_number |= is_python_number(given[i])
        lacks_zero |= tf_format_of_dtype(given[i]) == powers_format
    common = PyArray_PromoteDTypeSequence(count, inputs)
    if common == NULL:
        return -1
    # e8m0 has no zero and no sign: compare it with 0 as float32.
    if out == NULL and has_number and lacks_zero and <object>ufunc in comparisons:
        decref(<PyObject *>common)
        common = float_dtypes[1]
        incref(<PyObject *>common)
    # A product of two formats of ours has a loop into float32.
    if out != NULL and out != bool_dtype and not (
            is_product and out == float_dtypes[1]
            and tf_format_of_dtype(common) >= 0):
        decref(<PyObject *>common)
        common = out
        incref(<PyObject *>common)
    for i in range(nin):
        promoted[i] = common
        incref(<PyObject *>common)
    for i in range(nin, nargs):
        promoted[i] = signature[i]
        if is_product and signature[i] == NULL:
            promoted[i] = common  # not its loop into float32
        if promoted[i] != NULL:
            incref(<PyObject *>promoted[i])
    decref(<PyObject *>common)
    return 0


cdef int promote_ldexp(PyObject *ufunc, PyArray_DTypeMeta **given,
                       PyArray_DTypeMeta **signature,
                       PyArray_DTypeMeta **promoted) noexcept:
    """The exponent becomes an int64."""
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
    """float_power, which works in float64 or wider, for float16 too."""
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


def add_promoters():
    """NumPy compares the patterns in their order and takes the first that is
    better than those before it: so the most specific of each ufunc comes first.
    `base` is any dtype of ours, None is anything."""
    base = <object><PyObject *>&tf_dtype_base
    plain = PyCapsule_New(<void *>promote, "numpy._ufunc_promoter", NULL)
    ldexp = PyCapsule_New(<void *>promote_ldexp, "numpy._ufunc_promoter", NULL)
    double = PyCapsule_New(<void *>promote_to_double, "numpy._ufunc_promoter", NULL)
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
        for pattern in by_inputs[ufunc.nin]:
            PyUFunc_AddPromoter(ufunc, (*pattern, *outputs), plain)
        if ufunc.nin == 1:  # np.sqrt(integers, dtype=bfloat16)
            PyUFunc_AddPromoter(ufunc, (None, base, *outputs[1:]), plain)
    for pattern in by_inputs[2]:
        PyUFunc_AddPromoter(umath.float_power, (*pattern, None), double)


# -- sorting ---------------------------------------------------------------------------------

cdef int sort_loop(PyArrayMethod_Context *context, items_t data,
                   const npy_intp *dimensions, const npy_intp *strides,
                   NpyAuxData *auxiliary) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    if tf_sort(tf_format_rows[format], data[0], dimensions[0], 0) < 0:
        return out_of_memory()
    return 0


cdef int stable_sort_loop(PyArrayMethod_Context *context, items_t data,
                          const npy_intp *dimensions, const npy_intp *strides,
                          NpyAuxData *auxiliary) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    if tf_sort(tf_format_rows[format], data[0], dimensions[0], 1) < 0:
        return out_of_memory()
    return 0


cdef int argsort_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef int format = tf_format_of_descr(context.descriptors[0])
    if tf_argsort(tf_format_rows[format], data[0], <npy_intp *>data[1],
                  dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int sort_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                       const npy_intp *strides, strided_loop *loop,
                       NpyAuxData **auxiliary, int *flags) noexcept:
    cdef PyArrayMethod_SortParameters *parameters = (
        <PyArrayMethod_SortParameters *>context.parameters)
    loop[0] = stable_sort_loop if parameters.flags & NPY_SORT_STABLE else sort_loop
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS
    return 0


cdef int argsort_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                          const npy_intp *strides, strided_loop *loop,
                          NpyAuxData **auxiliary, int *flags) noexcept:
    loop[0] = argsort_loop
    flags[0] = NPY_METH_NO_FLOATINGPOINT_ERRORS
    return 0


cdef add_sorting():
    cdef PyType_Slot sort_slots[2]
    cdef PyType_Slot argsort_slots[2]
    cdef PyArrayMethod_Spec specs[2]
    cdef PyUFunc_LoopSlot loops[3]
    cdef PyArray_DTypeMeta *dtypes[2]
    sort_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>sort_get_loop)
    sort_slots[1] = PyType_Slot(0, NULL)
    argsort_slots[0] = PyType_Slot(NPY_METH_get_loop, <void *>argsort_get_loop)
    argsort_slots[1] = PyType_Slot(0, NULL)
    for format in range(TF_FORMAT_COUNT):
        dtypes[0] = &tf_dtypes[format]
        dtypes[1] = &tf_dtypes[format]
        for i in range(2):
            specs[i].name = "tf32dtype_sort"
            specs[i].nin = 1
            specs[i].nout = 1
            specs[i].casting = cnp.NPY_NO_CASTING
            specs[i].flags = NPY_METH_NO_FLOATINGPOINT_ERRORS
            specs[i].dtypes = dtypes
        specs[0].slots = sort_slots
        specs[1].slots = argsort_slots
        loops[0].name, loops[0].spec = "sort", &specs[0]
        loops[1].name, loops[1].spec = "argsort", &specs[1]
        loops[2].name, loops[2].spec = NULL, NULL
        PyUFunc_AddLoopsFromSpecs(loops)


# -- the lists ----------------------------------------------------------------------------------

def register_ufuncs():
    cdef int silent = NPY_METH_NO_FLOATINGPOINT_ERRORS
    cdef int reorderable = NPY_METH_IS_REORDERABLE
    cdef int op = 0

    while tf_unary_name(op) != NULL:
        add_operation(tf_unary_name(op).decode(), op, unary_loop, ["TT"])
        op += 1

    add_operation("add", TF_SUM, sum_loop, ["TTT", "fTf"], reorderable, 0)
    add_operation("multiply", TF_PROD, sum_loop, ["TTT", "fTf"], reorderable, 1)
    add_operation("subtract", TF_SUBTRACT, binary_loop, ["TTT"])
    add_operation("divide", TF_TRUE_DIVIDE, binary_loop, ["TTT"])
    add_operation("floor_divide", TF_FLOOR_DIVIDE, binary_loop, ["TTT"])
    add_operation("remainder", TF_REMAINDER, binary_loop, ["TTT"])
    add_operation("fmod", TF_FMOD, binary_loop, ["TTT"])
    add_operation("power", TF_POWER, binary_loop, ["TTT"])
    add_operation("arctan2", TF_ARCTAN2, binary_loop, ["TTT"])
    add_operation("hypot", TF_HYPOT, binary_loop, ["TTT"], reorderable, 0)
    add_operation("logaddexp", TF_LOGADDEXP, binary_loop, ["TTT"], reorderable,
                  float("-inf"))
    add_operation("logaddexp2", TF_LOGADDEXP2, binary_loop, ["TTT"], reorderable,
                  float("-inf"))
    add_operation("heaviside", TF_HEAVISIDE, binary_loop, ["TTT"], silent)
    add_operation("copysign", TF_COPYSIGN_CODES, other_loop, ["TTT"], silent)
    add_operation("maximum", TF_MAXIMUM, binary_loop, ["TTT"], silent | reorderable)
    add_operation("minimum", TF_MINIMUM, binary_loop, ["TTT"], silent | reorderable)
    add_operation("fmax", TF_FMAX, binary_loop, ["TTT"], silent | reorderable)
    add_operation("fmin", TF_FMIN, binary_loop, ["TTT"], silent | reorderable)

    add_operation("equal", TF_EQUAL, compare_loop, ["TT?"], silent)
    add_operation("not_equal", TF_NOT_EQUAL, compare_loop, ["TT?"], silent)
    add_operation("less", TF_LESS, compare_loop, ["TT?"], silent)
    add_operation("less_equal", TF_LESS_EQUAL, compare_loop, ["TT?"], silent)
    add_operation("greater", TF_GREATER, compare_loop, ["TT?"], silent)
    add_operation("greater_equal", TF_GREATER_EQUAL, compare_loop, ["TT?"], silent)
    add_operation("isnan", TF_ISNAN, predicate_loop, ["T?"], silent)
    add_operation("isinf", TF_ISINF, predicate_loop, ["T?"], silent)
    add_operation("isfinite", TF_ISFINITE, predicate_loop, ["T?"], silent)
    add_operation("signbit", TF_SIGNBIT, predicate_loop, ["T?"], silent)
    add_operation("logical_not", TF_LOGICAL_NOT, predicate_loop, ["T?"], silent)

    add_operation("nextafter", TF_NEXTAFTER, other_loop, ["TTT"])
    add_operation("modf", TF_MODF, other_loop, ["TTT"])
    add_operation("frexp", TF_FREXP, other_loop, ["TTi"])
    add_operation("ldexp", TF_LDEXP_INT, other_loop, ["TiT"])
    add_operation("ldexp", TF_LDEXP, other_loop, ["TlT"])
    add_operation("divmod", 0, divmod_loop, ["TTTT"])
    add_operation("clip", 0, clip_loop, ["TTTT"], silent)

    for name, kind in (("matmul", MATMUL), ("vecdot", VECDOT), ("matvec", MATVEC),
                       ("vecmat", VECMAT)):
        add_operation(name, kind, product_loop, ["TTT", "TTf"])

    add_promoters()
    add_sorting()
