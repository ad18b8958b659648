"""Multiply matrices by cuBLAS, through CuPy's bindings."""

from __future__ import annotations

import importlib
from functools import cache, lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..._base.nvrtc import CUBLAS, CudaError
from ..._base.wording import one_of
from .backend import KEPT, Constant, current
from .strides import Layout

#: NumPy dtypes that store the elements of a kind.
DTYPES = {
    "tf32": np.dtype(np.float32),
    "bfloat16": np.dtype(np.uint16),
    "float16": np.dtype(np.float16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
#: cudaDataType and cublasComputeType_t of each kind. float32 is never computed in tf32,
#: because the compute type excludes it and `gemm` sets the handle's math mode. The
#: compute type of float64 excludes emulation by integers.
_SINGLE, _DOUBLE = 0, 1  # CUDA_R_32F, CUDA_R_64F
_KINDS = {
    "tf32": (_SINGLE, 77),  # CUBLAS_COMPUTE_32F_FAST_TF32
    "bfloat16": (14, 68),  # CUDA_R_16BF, CUBLAS_COMPUTE_32F
    "float16": (2, 68),  # CUDA_R_16F
    "float32": (_SINGLE, 68),
    "float64": (_DOUBLE, 71),  # CUBLAS_COMPUTE_64F_PEDANTIC
}
_DEFAULT = -1  # CUBLAS_GEMM_DEFAULT
_ON_HOST = 0  # CUBLAS_POINTER_MODE_HOST
_PLAIN_MATH = 0  # CUBLAS_DEFAULT_MATH
_MOST = (1 << 31) - 1


class _Matrix(NamedTuple):
    """Describe a row-major matrix for cuBLAS.

    For cuBLAS it is a column-major matrix: its transpose, or the matrix itself if
    `flipped`.
    """

    flipped: int
    leading: int


@lru_cache(maxsize=KEPT)
def _matrix(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> _Matrix | None:
    """Return how cuBLAS can read the matrices of an array; None if it cannot."""
    rows, columns = shape[-2:]
    down, right = (i // itemsize for i in strides[-2:])
    if (right == 1 or columns <= 1) and (down >= columns or rows <= 1):
        return _Matrix(0, down if rows > 1 else max(columns, 1))
    if (down == 1 or rows <= 1) and (right >= rows or columns <= 1):
        return _Matrix(1, right if columns > 1 else max(rows, 1))
    return None


def _layout(x: Any) -> Layout:
    return x.shape, x.strides, x.itemsize


def arranged(x: Any) -> Any:
    """Return a stack of matrices that cuBLAS can read: the same one, or a copy."""
    stacks, stack = x.shape[0], x.strides[0]
    if _matrix(*_layout(x)) is not None and (stacks <= 1 or stack >= 0):
        return x
    one = x[:1] if stack == 0 else x
    return cupy.broadcast_to(current().call("ascontiguousarray", one), x.shape)


@cache
def _library() -> Any:
    try:
        return importlib.import_module("cupy_backends.cuda.libs.cublas")
    except ImportError as error:
        raise CudaError(f"cuBLAS cannot be loaded ({error}). Use {CUBLAS}") from error


def _handle() -> int:
    return int(cupy.cuda.device.get_cublas_handle())


def gemm(a: Any, b: Any, c: Any, kind: str, alpha: float = 1, beta: float = 0) -> None:
    """Compute c = alpha a @ b + beta c; see `backend.Backend.gemm`.

    Raises
    ------
    ValueError
        If the kind is unknown, if cuBLAS cannot read an array without a copy, or if a
        size is 2^31 or more.
    CudaError
        If cuBLAS is missing.
    """
    if kind not in _KINDS:
        raise ValueError(one_of("kind", kind, _KINDS))
    shape = _shape_of(_layout(a), _layout(b), _layout(c))
    if shape.m == 0 or shape.n == 0 or shape.stacks == 0:
        return
    if shape.k == 0:  # cuBLAS needs valid pointers to a and b, even if it reads nothing
        if beta == 0:
            current().call("ndarray.fill", c, 0)
        else:
            current().call("multiply", c, c.dtype.type(beta), c)
        return
    # c.T = b.T a.T, in column-major order.
    library, handle = _library(), _handle()
    at = _scales(alpha, beta, DTYPES[kind] == np.float64).ptr
    mode, math = library.getPointerMode(handle), library.getMathMode(handle)
    try:
        library.setPointerMode(handle, _ON_HOST)
        library.setMathMode(handle, _PLAIN_MATH)
        _run(library, handle, shape, (a, b, c), _KINDS[kind], at)
    finally:
        library.setPointerMode(handle, mode)
        library.setMathMode(handle, math)


def _run(
    library: Any, handle: int, x: _Shape, arrays: Any, kind: tuple[int, int], at: int
) -> None:
    a, b, c = arrays
    type_, compute = kind
    of_c = _DOUBLE if type_ == _DOUBLE else _SINGLE
    beta = at + (8 if type_ == _DOUBLE else 4)
    if x.stacks == 1:
        library.gemmEx(
            handle, x.b.flipped, x.a.flipped, x.n, x.m, x.k, at, b.data.ptr, type_,
            x.b.leading, a.data.ptr, type_, x.a.leading, beta, c.data.ptr, of_c,
            x.c.leading, compute, _DEFAULT,
        )  # fmt: skip
    else:
        step_b, step_a, step_c = x.steps
        library.gemmStridedBatchedEx(
            handle, x.b.flipped, x.a.flipped, x.n, x.m, x.k, at, b.data.ptr, type_,
            x.b.leading, step_b, a.data.ptr, type_, x.a.leading, step_a, beta,
            c.data.ptr, of_c, x.c.leading, step_c, x.stacks, compute, _DEFAULT,
        )  # fmt: skip


class _Shape(NamedTuple):
    """The sizes and layouts of a product that are passed to cuBLAS."""

    m: int
    n: int
    k: int
    stacks: int
    a: _Matrix
    b: _Matrix
    c: _Matrix
    #: elements from a matrix of a stack to the next, for b, a and c
    steps: tuple[int, int, int]


@lru_cache(maxsize=KEPT)
def _shape_of(a: Layout, b: Layout, c: Layout) -> _Shape:
    """Return sizes and layouts from those of the operands and the result."""
    (m, n), k = c[0][-2:], a[0][-1]
    stacks = c[0][0] if len(c[0]) == 3 else 1
    of_a, of_b, of_c = (_matrix(*x) for x in (a, b, c))
    if of_a is None or of_b is None or of_c is None or of_c.flipped:
        raise ValueError(
            "a and b must be contiguous along one of their last two axes for cuBLAS,"
            " and c along the last; got strides of"
            f" {', '.join(str(strides) for _, strides, _ in (a, b, c))} bytes"
        )
    if max(m, n, k, stacks, of_a.leading, of_b.leading, of_c.leading) > _MOST:
        raise ValueError(
            f"sizes must be below 2^31 for cuBLAS; got {(stacks, m, k, n)}"
        )
    each = [
        strides[0] // size if len(own) == 3 else 0 for own, strides, size in (b, a, c)
    ]
    steps = each[0], each[1], each[2]
    return _Shape(m, n, k, stacks, of_a, of_b, of_c, steps)


@lru_cache(maxsize=256)
def _scales(alpha: float, beta: float, is_double: bool) -> Constant:
    """Return both factors in the host's memory."""
    return Constant(np.array([alpha, beta], np.float64 if is_double else np.float32))
