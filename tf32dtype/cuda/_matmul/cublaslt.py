"""Multiply FP8 operands by cublasLt, for which CuPy has no bindings.

cublasLt requires that both operands are contiguous along k, and that k and n are
multiples of 16. Other operands are copied, and padded with zeros. There are no scales,
and sums are float32 (without CUBLASLT_MATMUL_DESC_FAST_ACCUM). The constants are those
of cublasLt.h and library_types.h.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from typing import Any

import cupy
import numpy as np

from ..._base.nvrtc import CUBLAS, CudaError
from .._runtime.backend import KEPT, current
from .._runtime.storage import raw
from .operand_lines import lines_along_k

_TYPES = {"float8_e4m3fn": 28, "float8_e5m2": 29}  # CUDA_R_8F_E4M3, CUDA_R_8F_E5M2
_SINGLE = 0  # CUDA_R_32F
_COMPUTE = 68  # CUBLAS_COMPUTE_32F
_TRANSPOSE_A, _TRANSPOSE_B = 3, 4  # CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
_BATCH, _BATCH_STEP = 5, 6  # CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, _STRIDED_BATCH_OFFSET
_MOST_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#: CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, _B, _C and _D (default: 256).
_ALIGNMENTS = 5, 6, 7, 8
_WORKSPACE = 32 << 20  # what NVIDIA recommends on Hopper
_UNIT = 16  # sizes, and alignment in bytes

_STATUSES = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}


class Heuristic(ctypes.Structure):
    """The C type cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algo", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


_P, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_P,),
    "cublasLtMatmulDescCreate": (_P, _INT, _INT),
    "cublasLtMatmulDescSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatmulDescDestroy": (_P,),
    "cublasLtMatrixLayoutCreate": (
        _P, _INT, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int64,
    ),
    "cublasLtMatrixLayoutSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatrixLayoutDestroy": (_P,),
    "cublasLtMatmulPreferenceCreate": (_P,),
    "cublasLtMatmulPreferenceSetAttribute": (_P, _INT, _P, _SIZE),
    "cublasLtMatmulPreferenceDestroy": (_P,),
    "cublasLtMatmulAlgoGetHeuristic": (_P, _P, _P, _P, _P, _P, _P, _INT, _P, _P),
    "cublasLtMatmul": (
        _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _P, _SIZE, _P,
    ),
}  # fmt: skip


def gemm(a: Any, b: Any, out: Any, formats: tuple[str, str]) -> None:
    """Multiply stacks of FP8 matrices, a @ b, and write the results to `out`.

    Parameters
    ----------
    a, b : cupy.ndarray or View
        Codes of shapes (s, m, k) and (s, k, n) and any strides.
    out : cupy.ndarray or View
        float32 matrices (s, m, n), each of which is in C order.
    formats : tuple of str
        Formats of a and b: "float8_e4m3fn" or "float8_e5m2". At most one operand may
        have "float8_e5m2".

    Raises
    ------
    CudaError
        If cublasLt is missing or fails. The message has the status.
    """
    s, m, k = a.shape
    n = b.shape[-1]
    if s == 0 or m == 0 or n == 0:
        return
    if k == 0:
        current().call("ndarray.fill", out, 0)
        return
    # Copies depend on addresses, and the library's plan on their alignment and device.
    x = _along_k(raw(a), m)
    y = _along_k(raw(b).swapaxes(-1, -2), n + -n % _UNIT)
    wide = y.shape[1]
    target = out if n == wide and out.data.ptr % _UNIT == 0 else None
    if target is None:
        target = cupy.empty((s, m, wide), np.float32)
    _multiply(x, y, target, formats)
    if target is not out:
        current().call("copyto", out, target[..., :n])


def _along_k(x: Any, rows: int) -> Any:
    """Return (s, rows, k) contiguous along k, padded with zeros, copied if needed."""
    stacks, had, depth = x.shape
    stack, pitch, step = x.strides
    places = [x.data.ptr, pitch, stack if stacks > 1 else 0]
    if (
        step == 1
        and rows == had
        and depth % _UNIT == 0
        and pitch >= depth
        and stack >= 0
        and all(i % _UNIT == 0 for i in places)
    ):
        return x
    filled = lines_along_k(x, rows, depth + -depth % _UNIT)
    return cupy.broadcast_to(filled, (stacks, *filled.shape[1:]))


def _multiply(x: Any, y: Any, out: Any, formats: tuple[str, str]) -> None:
    # out.T = y x.T in column-major order. In this order, y is (k, n) and x is (k, m).
    s, m, k = x.shape
    device = _device()
    plan = _plan(
        device,
        formats,
        (s, m, y.shape[1], k),
        (x.strides[:2], y.strides[:2], out.strides[:2]),
        (_alignment(y), _alignment(x), _alignment(out)),
    )
    best = plan.best
    workspace = cupy.empty(max(best.workspace, 1), np.uint8)
    at = _SCALES_AT
    _call(
        "cublasLtMatmul", _handle(device), plan.operation, at, y.data.ptr, plan.y,
        x.data.ptr, plan.x, at + 4, out.data.ptr, plan.out, out.data.ptr, plan.out,
        ctypes.addressof(best), workspace.data.ptr, best.workspace, _stream(),
    )  # fmt: skip


#: The factors alpha of a product and beta of the previous contents of `out`.
_SCALES = np.array([1, 0], np.float32)
_SCALES_AT = _SCALES.ctypes.data


def _alignment(x: Any) -> int:
    """Return the alignment of all matrices of a stack: a power of two up to 256."""
    together = int(x.data.ptr) | (x.strides[0] if x.shape[0] > 1 else 0) | 256
    return together & -together


class _Plan:
    """Hold the library's descriptions of a product, without addresses of operands.

    They describe the operation and three matrices. `best` is the algorithm that the
    library chose.
    """

    def __init__(self, operation: Any, layouts: list[Any], best: Heuristic) -> None:
        self.operation = operation
        self.y, self.x, self.out = layouts
        self.best = best


@lru_cache(maxsize=KEPT)
def _plan(
    device: int,
    formats: tuple[str, str],
    shape: tuple[int, int, int, int],
    strides: tuple[tuple[int, int], ...],
    alignments: tuple[int, int, int],
) -> _Plan:
    """Plan a product of shape (s, m, n, k).

    `strides` are those of x, y and out; `alignments` those of y, x and out. The
    library's objects exist as long as the plan.
    """
    s, m, n, k = shape
    a_type, b_type = (_TYPES[name] for name in formats)
    of_x, of_y, of_out = strides
    with ExitStack() as stack:
        made = stack.enter_context
        operation = made(_made("cublasLtMatmulDesc", _COMPUTE, _SINGLE))
        _set("MatmulDesc", operation, _TRANSPOSE_A, ctypes.c_int32(1))
        _set("MatmulDesc", operation, _TRANSPOSE_B, ctypes.c_int32(0))
        layouts = []
        for (matrix, line), size, type_, rows, columns in (
            (of_y, 1, b_type, k, n),
            (of_x, 1, a_type, k, m),
            (of_out, 4, _SINGLE, n, m),
        ):
            pitch = line // size if columns > 1 else rows
            layout = made(_made("cublasLtMatrixLayout", type_, rows, columns, pitch))
            if s > 1:
                offset = ctypes.c_int64(matrix // size)
                _set("MatrixLayout", layout, _BATCH, ctypes.c_int32(s))
                _set("MatrixLayout", layout, _BATCH_STEP, offset)
            layouts.append(layout)
        best = _heuristic(device, operation, layouts, alignments)
        if best is None:
            a, b = formats
            raise CudaError(
                f"cublasLt cannot multiply {a} ({s}, {m}, {k}) by {b} ({s}, {k}, {n})"
                " on this GPU; use instruction='mma.sync'"
            )
        plan = _Plan(operation, layouts, best)
        # At exit the library may be unloaded already.
        weakref.finalize(plan, stack.pop_all().close).atexit = False
    return plan


def _heuristic(
    device: int, operation: Any, layouts: list[Any], alignments: tuple[int, int, int]
) -> Heuristic | None:
    """Return the algorithm that the library chooses; None if it has none."""
    of_y, of_x, of_out = layouts
    best, count = Heuristic(), ctypes.c_int(0)
    with _made("cublasLtMatmulPreference") as preference:
        most = ctypes.c_size_t(_WORKSPACE)
        _set("MatmulPreference", preference, _MOST_WORKSPACE, most)
        each = zip(_ALIGNMENTS, (*alignments, alignments[-1]), strict=True)
        for attribute, alignment in each:
            _set("MatmulPreference", preference, attribute, ctypes.c_uint32(alignment))
        _call(
            "cublasLtMatmulAlgoGetHeuristic", _handle(device), operation, of_y, of_x,
            of_out, of_out, preference, 1, ctypes.addressof(best),
            ctypes.addressof(count),
        )  # fmt: skip
    return None if count.value < 1 or best.state else best


# -- the library -----------------------------------------------------------------------


@cache
def _library() -> Any:
    """Return libcublasLt, after declaring the types of its functions' arguments."""
    library = _loaded()
    for name, arguments in _FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes, function.restype = arguments, _INT
    return library


def _loaded() -> Any:
    """Load the library of NVIDIA's wheel or toolkit, otherwise that of the system."""
    tried = []
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path)
    except Exception as error:  # its exceptions have no common class
        tried.append(str(error).partition("\n")[0])
    for name in (ctypes.util.find_library("cublasLt"), "libcublasLt.so.13",
                 "libcublasLt.so.12"):  # fmt: skip
        if name is not None:
            try:
                return ctypes.CDLL(name)
            except OSError as error:
                tried.append(str(error))
    raise CudaError(f"cublasLt cannot be loaded ({'; '.join(tried)}): {CUBLAS}")


def _call(name: str, *arguments: Any) -> None:
    _check(name, getattr(_library(), name)(*arguments))


def _check(name: str, status: int) -> None:
    if status:
        raise CudaError(f"{name}: {_STATUSES.get(status, f'status {status}')}")


@contextmanager
def _made(kind: str, *arguments: Any) -> Iterator[Any]:
    """Create an object of the library, and destroy it at the end of the block."""
    made = ctypes.c_void_p()
    destroy = getattr(_library(), f"{kind}Destroy")  # looked up now: used much later
    _call(f"{kind}Create", ctypes.addressof(made), *arguments)
    try:
        yield made
    finally:
        _check(f"{kind}Destroy", destroy(made))


def _set(kind: str, made: Any, attribute: int, value: Any) -> None:
    name = f"cublasLt{kind}SetAttribute"
    _call(name, made, attribute, ctypes.addressof(value), ctypes.sizeof(value))


def _device() -> int:
    return int(cupy.cuda.runtime.getDevice())


def _stream() -> int:
    return int(cupy.cuda.get_current_stream().ptr)


@cache
def _handle(device: int) -> Any:
    """Create a handle for the current device, which must be `device`."""
    handle = ctypes.c_void_p()
    _call("cublasLtCreate", ctypes.addressof(handle))
    return handle
