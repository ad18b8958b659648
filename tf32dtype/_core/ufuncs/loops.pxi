# Ufunc loops: thin adapters between NumPy and the functions in src.
#
# The auxiliary data of a loop has its format and operation.

from tf32dtype._core.runtime cimport *
from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.ufuncs.ufuncs cimport *

cdef struct loop_data:
    NpyAuxData base
    int format
    int op
    tf_partials *partials   # of reductions
    bint is_reduction
    const npy_intp *strides # with which NumPy asked for the loop
    int exact               # the operand that holds exact numbers
    int kinds[3]            # of products: of the operands and the result


cdef int unary_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    if tf_unary(loop.format, loop.op, data, strides, dimensions[0]) < 0:
        return out_of_memory()
    return 0


cdef int out_of_memory() noexcept with gil:
    """Set MemoryError unless an exception is set: a stopped call has one already."""
    if PyErr_Occurred() == NULL:
        PyErr_NoMemory()
    return -1


cdef int raise_failure() except -1:
    """Raise MemoryError, or the exception of a stopped call, while holding the GIL."""
    return out_of_memory()


# -- Ctrl-C ----------------------------------------------------------------------

# The only thread that runs signal handlers; in a forked child, the thread that forked.
cdef unsigned long main_thread = PyThread_get_thread_ident()
if "threading" in sys.modules:  # otherwise there is no other thread yet
    main_thread = sys.modules["threading"].main_thread().ident


def note_main_thread():
    global main_thread
    main_thread = PyThread_get_thread_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=note_main_thread)


cdef int is_interrupted() noexcept nogil:
    """Run the handlers of pending signals, and return whether one has raised."""
    return PyThread_get_thread_ident() == main_thread and handle_signals() != 0


cdef int handle_signals() noexcept with gil:
    # After one loop of a call has failed, NumPy still runs the others.
    return PyErr_Occurred() != NULL or PyErr_CheckSignals() != 0


tf_stops_prepare(is_interrupted)


cdef bint is_extreme(int op, strided_loop loop) noexcept nogil:
    return loop == binary_loop and (op == TF_MAXIMUM or op == TF_MINIMUM or op == TF_FMAX
                                    or op == TF_FMIN)


cdef int binary_loop(PyArrayMethod_Context *context, items_t data,
                     const npy_intp *dimensions, const npy_intp *strides,
                     NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    cdef tf_binary_op op = <tf_binary_op>loop.op
    cdef bint selects = is_extreme(op, binary_loop)
    if selects and data[0] == data[2] and strides[0] == 0 and strides[2] == 0:
        tf_reduce_extreme(loop.format, op, data, strides[1], dimensions[0])
    elif (selects and data[2] == data[0] + strides[0] and strides[0] == strides[2]
            and strides[0] != 0):
        tf_accumulate_extreme(loop.format, op, data, strides, dimensions[0])
    else:
        tf_binary(loop.format, op, data, strides, dimensions[0])
    return 0


cdef int sum_loop(PyArrayMethod_Context *context, items_t data,
                  const npy_intp *dimensions, const npy_intp *strides,
                  NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    # A step of a reduction and an in-place operation have the same operands. If the caller
    # gives the initial value, NumPy does not ask for it. But NumPy makes the three strides of
    # a reduction in a local array, for rows after it has asked for the loop. Other strides
    # belong to an iterator, or are those that it asked with.
    if (loop.partials == NULL and data[0] == data[2] and strides[0] == strides[2]
            and (loop.is_reduction or (tf_is_on_stack(strides)
                 and (strides[0] == 0 or strides != loop.strides)))):
        loop.partials = tf_partials_new(loop.is_reduction)
        if loop.partials == NULL:
            return out_of_memory()
    cdef int failed = tf_reduce(loop.format, <tf_reduction>loop.op, loop.partials, data,
                                strides, dimensions[0])
    return out_of_memory() if failed < 0 else 0


cdef int compare_loop(PyArrayMethod_Context *context, items_t data,
                      const npy_intp *dimensions, const npy_intp *strides,
                      NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_compare(loop.format, <tf_compare_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int is_close_loop(PyArrayMethod_Context *context, items_t data,
                       const npy_intp *dimensions, const npy_intp *strides,
                       NpyAuxData *auxiliary) noexcept nogil:
    tf_is_close((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


cdef int predicate_loop(PyArrayMethod_Context *context, items_t data,
                        const npy_intp *dimensions, const npy_intp *strides,
                        NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_predicate(loop.format, <tf_predicate_op>loop.op, data, strides, dimensions[0])
    return 0


cdef int copysign_loop(PyArrayMethod_Context *context, items_t data,
                       const npy_intp *dimensions, const npy_intp *strides,
                       NpyAuxData *auxiliary) noexcept nogil:
    tf_copysign_items((<loop_data *>auxiliary).format, data, strides, dimensions[0])
    return 0


cdef int code_op_loop(PyArrayMethod_Context *context, items_t data,
                    const npy_intp *dimensions, const npy_intp *strides,
                    NpyAuxData *auxiliary) noexcept nogil:
    cdef loop_data *loop = <loop_data *>auxiliary
    tf_apply_code_op(loop.format, <tf_code_op>loop.op, data, strides, dimensions[0])
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
