# Ufuncs: the lists of all operations and their loops.
#
# To add an operation, add a line to the lists at the end of this file.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.ufuncs.ufuncs cimport *

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
# One a format and operation that keeps no state. Loops read it in all threads at once:
# it is written when the loops are registered, and never after.
cdef loop_data shared_data[MAX_OPERATIONS][TF_FORMAT_COUNT]


cdef PyArray_DTypeMeta *bool_dtype = dtype_of("?")
cdef PyArray_DTypeMeta *int_dtype = dtype_of("i")


cdef extern from *:
    """
    /* Each thread has data of its own, for one call at a time: a call on few elements
     * should wait neither for an allocator nor for another thread. */
    static _Thread_local struct {
        _Alignas(16) char data[128];
        int is_taken;
    } tf_own_data __attribute__((tls_model("initial-exec")));
    """
    struct data_of_thread:
        char data[128]
        bint is_taken
    data_of_thread tf_own_data


cdef loop_data *new_data() except NULL:
    cdef loop_data *made = <loop_data *>tf_own_data.data
    if tf_own_data.is_taken or sizeof(loop_data) > sizeof(tf_own_data.data):
        made = <loop_data *>malloc(sizeof(loop_data))
        if made == NULL:
            raise MemoryError()
    else:
        tf_own_data.is_taken = True
    memset(made, 0, sizeof(loop_data))
    return made


cdef void free_data(NpyAuxData *data) noexcept:
    """Free a loop's data; NumPy calls this at the end of a call, in the same thread."""
    cdef loop_data *loop = <loop_data *>data
    if loop.partials != NULL:
        tf_partials_free(loop.partials)
    if <char *>data == tf_own_data.data:
        tf_own_data.is_taken = False
    else:
        free(loop)


cdef NpyAuxData *no_copy(NpyAuxData *data) noexcept:
    return NULL


# Operations by their ufuncs' addresses, written when the loops are registered: the
# number of a ufunc's first operation, counted from 1, in the first free place from
# where the address points to.
cdef enum:
    PLACES = 512

cdef int places[PLACES]


cdef int *place_of(PyObject *ufunc) noexcept nogil:
    cdef size_t i = (<size_t>ufunc >> 4) % PLACES
    while places[i] and operations[places[i] - 1].ufunc != ufunc:
        i = (i + 1) % PLACES
    return &places[i]


cdef int find_operation(PyArrayMethod_Context *context) except -1:
    cdef int i = place_of(context.caller)[0] - 1
    if i < 0:
        raise SystemError("a loop was asked for that tf32dtype did not register")
    if operations[i].loop == code_op_loop and operations[i].op == TF_LDEXP_INT:
        # ldexp has two loops, by the exponent's size.
        if (<PyArray_DTypeMeta *>Py_TYPE(<object><PyObject *>context.descriptors[1])
                != int_dtype):
            return i + 1
    return i


cdef int ufunc_get_loop(PyArrayMethod_Context *context, int aligned, int move,
                        const npy_intp *strides, strided_loop *loop,
                        NpyAuxData **auxiliary, int *flags) except -1:
    cdef descrs_t descriptors = context.descriptors
    cdef int format = tf_format_of_descr(descriptors[0])
    cdef bint is_product
    cdef int i = find_operation(context)
    cdef loop_data *made
    cdef int operand, ignored
    cdef bint is_reduction = tf_reduction_began(context)  # forgotten, whatever follows
    loop[0] = operations[i].loop
    is_product = operations[i].loop == product_loop
    if format < 0:
        format = TF_REDUCE_FLOAT32
    if operations[i].keeps_state or is_product:
        made = new_data()
        made.base.free = free_data
        made.base.clone = no_copy
        made.is_reduction = is_reduction
        made.strides = strides
        for operand in range(3 if is_product else 0):
            made.kinds[operand] = kind_of_descr(descriptors[operand], &ignored)
        made.format = format
        made.op = operations[i].op
    else:
        made = &shared_data[i][format]
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
    i = find_operation(context)
    if operations[i].keeps_state:
        tf_reduction_begins(context)
    if operations[i].identity < 0:
        return 0
    value = operations[i].identity
    if operations[i].identity_is_minus_infinity:
        value = -float("inf")
    if format >= 0:
        f = tf_format_rows[format][0]
        code = tf_code_from_double(f, value, &flags)
        # Without zero or Inf the first element has to do, but for sums, which know
        # how they begin.
        if (tf_double_from_code(f, code) != value and not is_empty
                and not (operations[i].keeps_state and tf_sum_begins_with_nan(format))):
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


cdef int indexed_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    """ufunc.at: NumPy passes the length of the first array behind the strides."""
    cdef operation *found = &operations[place_of(context.caller)[0] - 1]
    cdef int op = found.op
    if found.loop == sum_loop:
        op = TF_ADD if op == TF_SUM else TF_MULTIPLY
    tf_binary_at(tf_format_of_descr(context.descriptors[0]), <tf_binary_op>op, data,
                 strides, strides[3], dimensions[0])
    return 0


cdef PyType_Slot binary_slots[4]
binary_slots[0] = ufunc_slots[0]
binary_slots[1] = ufunc_slots[1]
binary_slots[2] = PyType_Slot(NPY_METH_contiguous_indexed_loop, <void *>indexed_loop)
binary_slots[3] = PyType_Slot(0, NULL)


cdef PyArray_DTypeMeta *dtype_of_letter(str letter, int format) except NULL:
    if letter == "T":
        return &tf_dtypes[format]
    return dtype_of(letter)


#: np.isclose() of two arrays of a format, with tolerances that are numbers.
is_close = cnp.PyUFunc_FromFuncAndData(
    NULL, NULL, NULL, 0, 5, 1, cnp.PyUFunc_None, "is_close", NULL, 0)


cdef add_operation(str name, int op, strided_loop loop, list signatures,
                   int flags=0, object identity=None):
    """Add the loops of one operation for all formats."""
    global operation_count
    cdef PyArrayMethod_Spec spec
    cdef PyArray_DTypeMeta *dtypes[6]
    cdef operation *entry = &operations[operation_count]
    cdef loop_data *shared
    cdef int *place
    cdef int format, i
    ufunc = is_close if name == "is_close" else getattr(umath, name, None)
    if ufunc is None:
        return
    if operation_count == MAX_OPERATIONS:
        raise SystemError("too many operations")
    entry.ufunc = <PyObject *>ufunc
    entry.op = op
    entry.loop = loop
    entry.identity_is_minus_infinity = identity == float("-inf")
    entry.identity = (-1 if identity is None
                      else 0 if entry.identity_is_minus_infinity else int(identity))
    entry.keeps_state = loop == sum_loop
    entry.flags = flags & NPY_METH_NO_FLOATINGPOINT_ERRORS
    place = place_of(entry.ufunc)
    operation_count += 1
    if place[0] == 0:
        place[0] = operation_count
    for format in range(TF_FORMAT_COUNT):
        shared = &shared_data[operation_count - 1][format]
        shared.base.free = keep_data
        shared.base.clone = same_data
        shared.format = format
        shared.op = op
    spec = loop_spec("tf32dtype_loop", ufunc.nin, ufunc.nout,
                     NPY_METH_SUPPORTS_UNALIGNED | flags, dtypes, NULL)
    for format in range(TF_FORMAT_COUNT):
        for signature in signatures:
            for i, letter in enumerate(signature):
                dtypes[i] = dtype_of_letter(letter, format)
            spec.slots = (&sum_into_float32_slots[0] if signature == "fTf"
                          else &binary_slots[0] if loop == sum_loop or loop == binary_loop
                          else &ufunc_slots[0])
            PyUFunc_AddLoopFromSpec(ufunc, &spec)


cdef add_binary(int index, int op, strided_loop loop, list signatures):
    """Add the loops for a row of src/ufuncs/binary_ops.h, if NumPy has its ufunc."""
    cdef const tf_binary_row *row = &tf_binary_rows[index]
    add_operation(row.name.decode(), op, loop, signatures,
                  (NPY_METH_NO_FLOATINGPOINT_ERRORS if row.silent else 0)
                  | (NPY_METH_IS_REORDERABLE if row.reorderable else 0),
                  row.identity if row.identity == row.identity else None)


# The loops that were added on first use, by ufunc and dtypes: products of two formats,
# and comparisons with exact numbers. There would be more of them than of all other
# loops together.
cdef set late_loops = set()
late_loops_lock = shared_lock()


cdef int add_late_loop(object ufunc, PyArrayMethod_Spec *spec) except -1:
    cdef int i
    key = (ufunc, *[<size_t>spec.dtypes[i] for i in range(spec.nin + spec.nout)])
    with late_loops_lock:
        if key not in late_loops:
            PyUFunc_AddLoopFromSpec(ufunc, spec)
            late_loops.add(key)
    return 0


# -- the lists ----------------------------------------------------------------------------------

def register_ufuncs():
    cdef int silent = NPY_METH_NO_FLOATINGPOINT_ERRORS
    cdef int op = 0

    while tf_unary_name(op) != NULL:
        add_operation(tf_unary_name(op).decode(), op, unary_loop, ["TT"])
        op += 1

    add_binary(TF_ADD, TF_SUM, sum_loop, ["TTT", "fTf"])
    add_binary(TF_MULTIPLY, TF_PROD, sum_loop, ["TTT", "fTf"])
    for op in range(<int>TF_BINARY_COUNT):
        if op != TF_ADD and op != TF_MULTIPLY:
            add_binary(op, op, binary_loop, ["TTT"])
    add_operation("copysign", 0, copysign_loop, ["TTT"], silent)
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

    add_operation("nextafter", TF_NEXTAFTER, code_op_loop, ["TTT"])
    add_operation("modf", TF_MODF, code_op_loop, ["TTT"])
    add_operation("frexp", TF_FREXP, code_op_loop, ["TTi"])
    add_operation("ldexp", TF_LDEXP_INT, code_op_loop, ["TiT"])
    add_operation("ldexp", TF_LDEXP, code_op_loop, ["TlT"])
    add_operation("divmod", 0, divmod_loop, ["TTTT"])
    add_operation("clip", 0, clip_loop, ["TTTT"], silent)

    for name, kind in (("matmul", MATMUL), ("vecdot", VECDOT), ("matvec", MATVEC),
                       ("vecmat", VECMAT)):
        add_operation(name, kind, product_loop, ["TTT", "TTf"])

    add_promoters()
    add_operation("is_close", 0, is_close_loop, ["TTdd??"], silent)
    add_time_loops()
    add_sorting()
