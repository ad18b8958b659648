# Let NumPy's ufuncs round to a format, by the loops of src/programs/arithmetic/loops.h.

from tf32dtype._core.programs.hooks cimport *
from tf32dtype._core.programs.arithmetic.arithmetic cimport *

#: Ufuncs that are not replaced: they are about the spacing of float32, or about no
#: number.
about_the_grid = ("nextafter", "spacing", "_ones_like")


cdef struct rounding_loop:
    PyObject *ufunc
    int signature[5]
    cnp.PyUFuncGenericFunction ours
    bint is_placed                        # before NumPy's
    tf_stub *stub
    tf_loop facts

# The loops are made once and never freed, because another thread may be calling one.
cdef rounding_loop *rounding_loops = NULL
cdef int rounding_loop_count = 0


cdef bytes _types_of(ufunc_object *ufunc, int number):
    """Return the types of a loop's operands, one byte per operand."""
    return ufunc.types[number * ufunc.nargs:(number + 1) * ufunc.nargs]


cdef int _loop_number(ufunc_object *ufunc, bytes types):
    """Return the number of the first loop of these types, which NumPy uses, or -1."""
    cdef int number
    for number in range(ufunc.ntypes):
        if _types_of(ufunc, number) == types:
            return number
    return -1


cdef bint _rounds(ufunc_object *ufunc, bytes types, int kind):
    """Return whether a loop computes floats of a type from such floats or integers."""
    only = all(x == kind or x <= cnp.NPY_ULONGLONG for x in types)
    return only and kind in types[ufunc.nin:]


cdef bint _describe_loop(ufunc_object *ufunc, int number, int kind,
                         rounding_loop *loop) except -1:
    """Fill in the facts of a loop for the handler; False without a loop in float64.

    Raise a RuntimeError if the platform has no stubs."""
    cdef bytes types = _types_of(ufunc, number), name = ufunc.name
    cdef bytes single = bytes([cnp.NPY_FLOAT]), double = bytes([cnp.NPY_DOUBLE])
    cdef int i, wide = _loop_number(ufunc, types.replace(single, double))
    if wide < 0:
        return False
    memset(loop, 0, sizeof(rounding_loop))
    loop.ufunc = <PyObject *>ufunc
    loop.facts.name = ufunc.name
    loop.facts.inputs, loop.facts.outputs = ufunc.nin, ufunc.nout
    loop.facts.type = b"f"[0] if kind == cnp.NPY_FLOAT else b"d"[0]
    for i in range(ufunc.nargs):
        loop.signature[i] = types[i]
        loop.facts.is_float[i] = types[i] == kind
    loop.facts.adds = name in (b"add", b"subtract")
    loop.facts.pairwise = name == b"add"
    loop.facts.wide = <tf_loop_fn *><void *>ufunc.functions[wide]
    loop.facts.wide_data = ufunc.data[wide]
    loop.ours = <cnp.PyUFuncGenericFunction>tf_stub_new(
        <void *>ufunc.functions[number], &loop.stub)
    if loop.ours == NULL:
        raise RuntimeError(
            "arithmetic cannot replace NumPy's loops on this platform; use Linux on"
            " x86-64 or AArch64")
    loop.stub.facts = &loop.facts
    return True


cdef _find_loops():
    """Find the loops that round, all before the first is replaced."""
    global rounding_loops, rounding_loop_count
    cdef rounding_loop *found
    cdef int kind, number, count = 0
    cdef ufunc_object *fields
    ufuncs = {id(x): x for x in vars(umath).values() if isinstance(x, np.ufunc)}.values()
    found = <rounding_loop *>malloc(sum(x.ntypes for x in ufuncs) * sizeof(rounding_loop))
    if found == NULL:
        raise MemoryError("memory for NumPy's loops cannot be allocated")
    for ufunc in ufuncs:
        fields = <ufunc_object *><PyObject *>ufunc
        if (ufunc.signature is not None or ufunc.__name__ in about_the_grid
                or fields.nin > TF_LOOP_INPUTS or fields.nout > TF_LOOP_OUTPUTS):
            continue
        for kind in (cnp.NPY_FLOAT, cnp.NPY_DOUBLE):
            for number in range(fields.ntypes):
                types = _types_of(fields, number)
                if (_rounds(fields, types, kind) and _loop_number(fields, types) == number
                        and _describe_loop(fields, number, kind, &found[count])):
                    count += 1
    rounding_loops, rounding_loop_count = found, count


cdef _use_handler(rounding_loop *loop, tf_handler_fn handler, bint places):
    """Set the handler of a loop; NULL means to call NumPy's own loop.

    With `places`, the loop replaces NumPy's loop if it has not done so already. It is
    never removed again, because NumPy keeps loops that it has found, and a thread may
    be running one.
    """
    if places and not loop.is_placed:
        loop.is_placed = True
        # NumPy first stores its own loop at the given address. So our loop may be
        # called immediately.
        cnp.PyUFunc_ReplaceLoopBySignature(
            <object>loop.ufunc, loop.ours, loop.signature,
            <cnp.PyUFuncGenericFunction *><void *>&loop.stub.original)
    tf_stub_set(loop.stub, handler)


cdef bint _is_wide(rounding_loop *loop):
    return loop.facts.type == b"d"[0]


cdef tf_loop *_loop_of(str name, char type):
    """Return the facts of a ufunc's loop, or NULL."""
    cdef int i
    cdef tf_loop *loop
    for i in range(rounding_loop_count):
        loop = &rounding_loops[i].facts
        if loop.type == type and loop.name == name.encode():
            return loop
    return NULL
