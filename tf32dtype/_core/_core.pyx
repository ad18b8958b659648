# cython: freethreading_compatible=True
# cython: subinterpreters_compatible=no
"""Connect the C code to NumPy: scalar types, dtypes, casts and ufuncs.

The .pxi files are included and not imported, because they make one module. It registers
everything at its first import. The DType classes are C objects, and each file uses
functions of the others.

The .pxd files declare C functions, one file per subject of src/. Each .pxi file
cimports the subjects that it uses. This file cimports the APIs of Python and NumPy, and
the glue, for all of them.
"""

import os
import sys
from _thread import RLock  # threading takes longer to import
from contextvars import ContextVar
from time import perf_counter

from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject, PyTypeObject, Py_TYPE
from cpython.pycapsule cimport PyCapsule_New
from cpython.sequence cimport PySequence_Check
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
cimport cython
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy, memset
cimport numpy as cnp
from numpy cimport npy_intp

from tf32dtype._core.python_api cimport *
from tf32dtype._core.numpy_api cimport *
from tf32dtype._core.glue cimport *
from tf32dtype._core.runtime cimport *
from tf32dtype._core.formats.formats cimport *
from tf32dtype._core.matmul.matmul cimport *
from tf32dtype._core.blocks.blocks cimport *

import numpy as np
from numpy._core import umath

cnp.import_array()
cnp.import_umath()

__all__ = [
    "add_twins", "answer", "answer_method", "arithmetic_functions",
    "arithmetic_left_out", "arithmetic_call_sites", "ArithmeticPlan", "available_isas",
    "begin_arithmetic",
    "bits_of", "blas_available", "blas_begin", "blas_counts", "blas_end", "blas_lost", "blas_call_sites",
    "BlasCall", "block_bounds", "block_dequantize", "block_elements", "block_matmul",
    "block_plan", "block_quantize", "block_round", "block_scales",
    "calls_without_call_site", "count_call", "count_loops", "count_nonzero", "count_scope",
    "counted", "current_precision", "dlpack_describe", "dlpack_export", "dlpack_take",
    "dot", "dot_operands", "end_arithmetic", "exact_dots", "exact_elements", "exact_facts", "exact_load", "exact_number",
    "exact_round", "exact_slice", "exact_sums", "facts", "float64_depth", "float64_matmul", "fma_matmul",
    "follow_results", "followed_sums", "format_convolve", "format_correlate", "format_dot", "format_inner", "format_vdot",
    "frames_are_known",
    "free_buffers", "from_bits_of", "inner", "instruction_sets", "is_close", "isa",
    "matmul", "MatmulSpec", "mma_accumulate", "mma_matmul", "mma_trace", "name_tensor", "named_counts", "names",
    "plan_of_product",
    "Obeying", "OwnCall", "precision_variable",
    "precisions", "PrecisionScope", "prepare_product", "printed", "promote_block",
    "publish_precision", "quantize_items", "reduce_segments", "replace_loops", "report",
    "samples_left_out", "scalar_types", "scale_values",
    "scaled_mma_matmul", "set_default_precision", "set_outer_precision", "set_regions",
    "set_source_folders", "share_counts", "shared_lock", "statistic", "stop_watching", "sum_over_rows",
    "take_arithmetic_counts", "take_samples", "use_loops", "vdot", "viewed", "viewers", "watch_call_sites", "weighted_mean",
    "workspaces",
]


_shared_locks = []  # in the order they were made
_taken_by_fork = []


def shared_lock():
    """Return a re-entrant lock that is never locked at the start of a forked child.

    A thread that holds such a lock may only acquire locks that were made before it."""
    lock = RLock()
    _shared_locks.append(lock)
    return lock


def _before_fork():
    global _taken_by_fork
    while True:
        taken = _shared_locks[:]
        for lock in reversed(taken):
            lock.acquire()
        if len(taken) == len(_shared_locks):
            break
        # Another thread has made a new lock in the meantime. It may hold that lock and
        # wait for these locks.
        _release(taken)
    _taken_by_fork = taken


def _after_fork():
    _release(_taken_by_fork)


def _release(locks):
    for lock in locks:
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork,
                        after_in_child=_after_fork)


def instruction_sets():
    """Return all instruction sets, the best last, as (name, is built, runs) tuples.

    The bools tell whether this build has the instruction set and this CPU runs it."""
    cdef int built = 0, runs = 0
    found = []
    cdef const char *name = tf_isa_name(0, &built, &runs)
    while name != NULL:
        found.append((name.decode(), bool(built), bool(runs)))
        name = tf_isa_name(<int>len(found), &built, &runs)
    return found


def available_isas():
    """Return the instruction sets that this build has and this CPU runs, best last."""
    return [name for name, built, runs in instruction_sets() if built and runs]


def _choose_isa():
    wanted = os.environ.get("TF32DTYPE_ISA", "")
    cdef const char *chosen = tf_isa_choose(wanted.encode())
    if chosen == NULL:
        raise ImportError(
            f"TF32DTYPE_ISA must be one of {', '.join(available_isas())}, which this"
            f" build has and this CPU runs; got {wanted!r}"
        )
    return chosen.decode()


_isa = _choose_isa()
tf_byte_tables_fill()
tf_code_tables_fill()
tf_matmul_prepare()


def isa():
    """Return the instruction set in use; TF32DTYPE_ISA in the environment sets it.

    Returns
    -------
    str
        One of the instruction sets of this build, such as "baseline" or "x86-64-v3".

    See Also
    --------
    show_config : Show all instruction sets of this build and of the CPU.

    Examples
    --------
    >>> import tf32dtype as td
    >>> td.isa() in td.show_config(mode="dicts")["instruction_sets"]["built"]
    True
    """
    return _isa


include "formats/facts.pxi"
include "formats/conversion.pxi"
include "formats/arithmetic.pxi"
include "formats/scalars.pxi"
include "formats/promotion.pxi"
include "formats/casts.pxi"
include "formats/dtypes.pxi"
include "formats/twins.pxi"
include "ufuncs/loops.pxi"
include "matmul/loops.pxi"
include "matmul/matmul.pxi"
include "exact/exact.pxi"
include "tensor_core/mma.pxi"
include "blocks/quantize.pxi"
include "tensor_core/scaled_mma.pxi"
include "ufuncs/ufuncs.pxi"
include "ufuncs/exact_compare.pxi"
include "ufuncs/promoters.pxi"
include "ufuncs/datetimes.pxi"
include "ufuncs/routes.pxi"
include "matmul/dots.pxi"
include "matmul/correlations.pxi"
include "ufuncs/row_sums.pxi"
include "ufuncs/segments.pxi"
include "ufuncs/statistics.pxi"
include "ufuncs/sorting.pxi"
include "formats/arrays.pxi"
include "programs/blas/products.pxi"
include "programs/blas/calls.pxi"
include "programs/blas/operand_names.pxi"
include "programs/blas/engine.pxi"
include "programs/arithmetic/loops.pxi"
include "programs/arithmetic/scalars.pxi"
include "programs/arithmetic/methods.pxi"
include "programs/arithmetic/arithmetic.pxi"
include "blocks/matmul.pxi"
include "interop/dlpack.pxi"

register_dtypes()
exact_number = register_exact_dtype()
register_ufuncs()
