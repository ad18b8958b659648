# Arithmetic in a format: begun, ended, and what was found by line.

from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.programs.arithmetic.arithmetic cimport *
from tf32dtype._core.programs.blas.blas cimport *
from tf32dtype._core.programs.hooks cimport *
from tf32dtype._core.programs.programs cimport *

cdef bint loops_round = False    # while they are replaced
cdef bint rounds_float64 = False


cdef int _arithmetic_number(str format_name) except -1:
    """Return the number of a format, "float16" or "float32" (enum tf_number_kind)."""
    if format_name in names:
        return names.index(format_name)
    if format_name == "float16":
        return TF_FLOAT16
    if format_name == "float32":
        return TF_FLOAT32
    raise ValueError("format_name must be one of"
                     f" {', '.join([*names, 'float16', 'float32'])}; got {format_name!r}")


cdef _address_of_settings(format_name, bint watches):
    return 0 if format_name is None else <size_t>tf_arithmetic_settings(
        _arithmetic_number(format_name), watches)


cdef class ArithmeticPlan:
    """A format for each call site of ufuncs, or None: not rounded. It is kept."""

    cdef const void *plan

    def __init__(self, call_sites, otherwise, bint watches):
        formats = [*(site[2] for site in call_sites), otherwise]
        self.plan = _new_plan(
            call_sites, [_address_of_settings(name, watches) for name in formats])


def begin_arithmetic(str format_name, bint float64, bint watches, plan=None):
    """Make NumPy's ufuncs round their operands and results, in all threads.

    `format_name` is one of `names`, "float16" or "float32". With an `ArithmeticPlan` as
    `plan` it is None. With `float64`, float64 loops round, too. With `watches`,
    measurements are recorded by line, and earlier ones are deleted.

    Raises
    ------
    RuntimeError
        If ufuncs round already, or if loops cannot be replaced.
    MemoryError
        If memory cannot be allocated.
    """
    global loops_round, rounds_float64
    cdef int i
    cdef ArithmeticPlan planned = plan
    if loops_round:
        raise RuntimeError("arithmetic must not begin twice: NumPy's loops round")
    tf_followed_end()  # whose handlers ours replace
    if planned is None:
        tf_arithmetic_set(
            tf_arithmetic_settings(_arithmetic_number(format_name), watches))
    else:
        tf_arithmetic_set_plan(planned.plan, tf_plan_here)
    if rounding_loops == NULL:
        _find_loops()
    if watches and tf_ufunc_sites_begin(&tf_frames_finder) < 0:
        raise MemoryError("memory for figures by line cannot be allocated")
    take_arithmetic_counts()
    rounds_float64 = float64
    _exchange_methods(True)
    loops_round = True
    for i in range(rounding_loop_count):
        if float64 or not _is_wide(&rounding_loops[i]):
            _use_handler(&rounding_loops[i], tf_arithmetic_handler, True)
    _begin_scalars(float64, watches)


def end_arithmetic():
    """Restore what `begin_arithmetic` replaced; measurements are kept."""
    global loops_round
    cdef int i
    if not loops_round:
        raise RuntimeError("arithmetic must begin before it ends")
    for i in range(rounding_loop_count):
        if rounds_float64 or not _is_wide(&rounding_loops[i]):
            _use_handler(&rounding_loops[i], NULL, False)
    _end_scalars()
    _exchange_methods(False)
    loops_round = False


cdef tf_stub **followed_stubs = NULL


def follow_results(bint on):
    """Begin to follow the results of watched products through NumPy's ufuncs, or end.

    They are not followed while arithmetic rounds. Sums that were found before are
    forgotten when it begins.

    Raises
    ------
    RuntimeError
        If loops cannot be replaced.
    MemoryError
        If memory cannot be allocated.
    """
    global followed_stubs
    cdef size_t count = 0
    cdef int i
    if not on:
        tf_followed_end()
        return
    if rounding_loops == NULL:
        _find_loops()
    if followed_stubs == NULL:
        followed_stubs = <tf_stub **>malloc(rounding_loop_count * sizeof(tf_stub *))
    if followed_stubs == NULL:
        raise MemoryError("memory for NumPy's loops cannot be allocated")
    for i in range(0 if loops_round else rounding_loop_count):
        if tf_followed_is_for(&rounding_loops[i].facts):
            _use_handler(&rounding_loops[i], NULL, True)
            followed_stubs[count] = rounding_loops[i].stub
            count += 1
    if tf_followed_begin(&tf_frames_finder, followed_stubs, count) < 0:
        raise MemoryError("memory for sums by line cannot be allocated")


def followed_sums():
    """Return a dictionary for each sum of results of a product.

    Products are identified by their number among the call sites."""
    cdef const tf_followed_sum *found
    numbers = {}
    while tf_product_sites(<size_t>len(numbers)) != NULL:
        numbers[<size_t>tf_product_sites(<size_t>len(numbers))] = len(numbers)
    sums = []
    while True:
        found = tf_followed_sums(<size_t>len(sums))
        if found == NULL:
            return sums
        sums.append({
            "product": numbers.get(<size_t>found.product),
            "user": _frame(&found.source, 0),
            "library": _frame(&found.source, 1),
            "function": found.function.decode(),
            "calls": found.calls,
            "part": found.part,
            "whole": found.whole,
        })


def arithmetic_functions():
    """Return the ufuncs that can round, by name, with the types of their loops."""
    cdef int i
    if rounding_loops == NULL:
        _find_loops()
    found = {}
    for i in range(rounding_loop_count):
        found.setdefault(rounding_loops[i].facts.name.decode(), []).append(
            "float64" if _is_wide(&rounding_loops[i]) else "float32")
    return {name: tuple(dict.fromkeys(types)) for name, types in found.items()}


def take_arithmetic_counts():
    """Return (calls, numbers) of rounded operations by ufunc since the last call."""
    cdef int i
    cdef tf_round_counts found
    counts = {}
    for i in range(rounding_loop_count):
        found = tf_arithmetic_take_counts(&rounding_loops[i].facts)
        if found.calls:
            name = rounding_loops[i].facts.name.decode()
            calls, numbers = counts.get(name, (0, 0))
            counts[name] = calls + found.calls, numbers + found.numbers
    return counts


def arithmetic_call_sites():
    """Return a dictionary for each function, dtype and call site."""
    cdef const tf_ufunc_site *site
    cdef const tf_loop *loop
    found = []
    while True:
        site = tf_ufunc_sites(<size_t>len(found))
        if site == NULL:
            return found
        loop = <const tf_loop *>site.what
        found.append({
            "user": _frame(&site.source, 0),
            "library": _frame(&site.source, 1),
            "function": loop.name.decode(),
            "dtype": "float64" if loop.type == b"d"[0] else "float32",
            **tf_figures_of(site),
        })


def arithmetic_left_out():
    """Return how many calls were not recorded because of too many call sites."""
    return tf_ufunc_sites_left_out()
