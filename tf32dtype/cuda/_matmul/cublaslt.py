"""Products of fp8 operands by cublasLt, which CuPy does not bind. Untested on a GPU.

cublasLt wants both operands contiguous along k, and k and n in multiples of 16: what is
not so is copied, and filled with zeros. There are no scales, and sums are float32 (not
CUBLASLT_MATMUL_DESC_FAST_ACCUM). Constants are of cublasLt.h and library_types.h.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import cupy
import numpy as np

from ..._nvrtc import CUBLAS, CudaError
from .._runtime.backend import current
from .byte_lines import bytes_along_k

_TYPES = {"float8_e4m3fn": 28, "float8_e5m2": 29}  # CUDA_R_8F_E4M3, CUDA_R_8F_E5M2
_SINGLE = 0  # CUDA_R_32F
_COMPUTE = 68  # CUBLAS_COMPUTE_32F
_TRANSPOSE_A, _TRANSPOSE_B = 3, 4  # CUBLASLT_MATMUL_DESC_TRANSA, _TRANSB
_BATCH, _BATCH_STEP = 5, 6  # CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, _STRIDED_BATCH_OFFSET
_MOST_WORKSPACE = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#: CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, _B, _C and _D; 256 unless they are set
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
    """cublasLtMatmulHeuristicResult_t."""

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
    """Multiply stacks of fp8 matrices, a @ b into out.

    Parameters
    ----------
    a, b : cupy.ndarray
        (s, m, k) and (s, k, n) of uint8, of any strides.
    out : cupy.ndarray
        (s, m, n), float32, C order.
    formats : tuple of str
        Of a and b: "float8_e4m3fn" or "float8_e5m2", of which one at most.

    Raises
    ------
    CudaError
        If cublasLt is missing or fails; it names the status.
    """
    s, m, k = a.shape
    n = b.shape[-1]
    if s == 0 or m == 0 or n == 0:
        return
    if k == 0:
        current().call("ndarray.fill", out, 0)
        return
    x = _along_k(a, m)
    y = _along_k(b.swapaxes(-1, -2), n + -n % _UNIT)
    wide = y.shape[1]
    target = out if n == wide and out.data.ptr % _UNIT == 0 else None
    if target is None:
        target = cupy.empty((s, m, wide), np.float32)
    _multiply(x, y, target, formats)
    if target is not out:
        current().call("copyto", out, target[..., :n])


def _along_k(x: Any, rows: int) -> Any:
    """(s, rows, k) contiguous along k, filled up with zeros; copied only if needed."""
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
    filled = bytes_along_k(x, rows, depth + -depth % _UNIT)
    return cupy.broadcast_to(filled, (stacks, *filled.shape[1:]))


def _multiply(x: Any, y: Any, out: Any, formats: tuple[str, str]) -> None:
    # out.T = y x.T in column-major order: y and x as they lie are (k, n) and (k, m).
    s, m, k = x.shape
    n = y.shape[1]
    a_type, b_type = (_TYPES[name] for name in formats)
    device = _device()
    with ExitStack() as stack:
        made = stack.enter_context
        operation = made(_made("cublasLtMatmulDesc", _COMPUTE, _SINGLE))
        _set("MatmulDesc", operation, _TRANSPOSE_A, ctypes.c_int32(1))
        _set("MatmulDesc", operation, _TRANSPOSE_B, ctypes.c_int32(0))
        layouts = []
        for array, type_, rows, columns in (
            (y, b_type, k, n), (x, a_type, k, m), (out, _SINGLE, n, m),
        ):  # fmt: skip
            size = array.itemsize
            pitch = array.strides[1] // size if array.shape[1] > 1 else rows
            layout = made(_made("cublasLtMatrixLayout", type_, rows, columns, pitch))
            if s > 1:
                offset = ctypes.c_int64(array.strides[0] // size)
                _set("MatrixLayout", layout, _BATCH, ctypes.c_int32(s))
                _set("MatrixLayout", layout, _BATCH_STEP, offset)
            layouts.append(layout)
        of_y, of_x, of_out = layouts
        strides = x.strides[:2], y.strides[:2]
        alignments = tuple(_alignment(array) for array in (y, x, out, out))
        key = device, formats, s, m, n, k, strides, alignments
        if key not in _chosen:
            _chosen[key] = _heuristic(device, operation, (of_y, of_x, of_out), key)
        best = _chosen[key]
        workspace = cupy.empty(max(best.workspace, 1), np.uint8)
        scales = np.array([1, 0], np.float32)
        at = scales.ctypes.data
        _call(
            "cublasLtMatmul", _handle(device), operation, at, y.data.ptr, of_y,
            x.data.ptr, of_x, at + 4, out.data.ptr, of_out, out.data.ptr, of_out,
            ctypes.addressof(best), workspace.data.ptr, best.workspace, _stream(),
        )  # fmt: skip


def _alignment(x: Any) -> int:
    """Of all matrices of a stack: a power of two, 256 bytes at most."""
    together = int(x.data.ptr) | (x.strides[0] if len(x) > 1 else 0) | 256
    return together & -together


#: What cublasLt chose before, for a device, formats, shapes, strides and alignments.
_chosen: dict[Any, Heuristic] = {}


def _heuristic(device: int, operation: Any, layouts: Any, key: Any) -> Heuristic:
    of_y, of_x, of_out = layouts
    best, count = Heuristic(), ctypes.c_int(0)
    with _made("cublasLtMatmulPreference") as preference:
        most = ctypes.c_size_t(_WORKSPACE)
        _set("MatmulPreference", preference, _MOST_WORKSPACE, most)
        for attribute, alignment in zip(_ALIGNMENTS, key[-1], strict=True):
            _set("MatmulPreference", preference, attribute, ctypes.c_uint32(alignment))
        _call(
            "cublasLtMatmulAlgoGetHeuristic", _handle(device), operation, of_y, of_x,
            of_out, of_out, preference, 1, ctypes.addressof(best),
            ctypes.addressof(count),
        )  # fmt: skip
    if count.value < 1 or best.state:
        _, (a, b), s, m, n, k, *_ = key
        raise CudaError(
            f"cublasLt has no way to multiply {a} ({s}, {m}, {k}) by {b} ({s}, {k},"
            f" {n}) on this GPU: instruction='mma.sync' does"
        )
    return best


# -- the library -----------------------------------------------------------------------


@cache
def _library() -> Any:
    """libcublasLt: NVIDIA's wheel or toolkit as CuPy finds it, else the system's."""
    tried = []
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
        return ctypes.CDLL(pathfinder.load_nvidia_dynamic_lib("cublasLt").abs_path)
    except Exception as error:  # what it raises is not one class
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
    function = getattr(_library(), name)
    function.argtypes, function.restype = _FUNCTIONS[name], _INT
    status = function(*arguments)
    if status:
        raise CudaError(f"{name}: {_STATUSES.get(status, f'status {status}')}")


@contextmanager
def _made(kind: str, *arguments: Any) -> Iterator[Any]:
    """One of the library's objects, for as long as the block."""
    made = ctypes.c_void_p()
    _call(f"{kind}Create", ctypes.addressof(made), *arguments)
    try:
        yield made
    finally:
        _call(f"{kind}Destroy", made)


def _set(kind: str, made: Any, attribute: int, value: Any) -> None:
    name = f"cublasLt{kind}SetAttribute"
    _call(name, made, attribute, ctypes.addressof(value), ctypes.sizeof(value))


def _device() -> int:
    return int(cupy.cuda.runtime.getDevice())


def _stream() -> int:
    return int(cupy.cuda.get_current_stream().ptr)


@cache
def _handle(device: int) -> Any:
    """Of the current device, which it is made for."""
    handle = ctypes.c_void_p()
    _call("cublasLtCreate", ctypes.addressof(handle))
    return handle
