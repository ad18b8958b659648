"""Compute sums, products, extremes and counts of arrays on a GPU.

Sums, products, means, variances and norms are computed in float64, and the result is
rounded once. The order of the operations only depends on shapes and strides, so that
the bits do not depend on the device. Extremes and counts have the CPU's bits. No
floating-point error is reported: a GPU has no flags.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..._base.wording import brief, one_of
from ..._formats.table import find_dtype
from .._arrays import casts, ndarray
from .._runtime import backend, strides
from .._runtime.backend import KEPT, Constant, Kernel
from .._runtime.storage import is_ours, plain
from . import ufuncs

_THREADS = 256
#: Vectors that a lane reads before more lanes or chunks are used.
_SWEEPS = 4
#: Blocks that share a large array: several for each processor of any GPU. If a thread's
#: neighbors are outputs, half or a quarter of these blocks are used.
_BLOCKS = 1 << 11

#: `enum tf_elements` of src/cuda/ufuncs/partials.h.
_SKIP_NANS, _EQUAL_ZEROS, _COUNT_ZEROS, _COUNT_NUMBERS = 1, 2, 4, 8

_PLAN = np.dtype(
    [
        ("outputs", "i8"),
        ("count", "i8"),
        ("chunk", "i8"),
        ("log", "i4"),
        ("padding", "i4"),
    ]
)
_ENDING = np.dtype(
    [("initial", "f8"), ("divisor", "i8"), ("less", "i8"), ("begins", "i4"),
     ("divides", "i4"), ("strict", "i4"), ("root", "i4"), ("nothing", "i4"),
     ("padding", "i4")]
)  # fmt: skip

#: Bytes of `OP::value`, by the name of the operation in the kernels.
_SIZES = {
    "sums": 8, "products": 16, "greatest": 16, "least": 16, "highest": 8, "lowest": 8,
    "counts": 8,
}  # fmt: skip


class _NoValue:
    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE = _NoValue()


class _Operation(NamedTuple):
    op: str
    elements: int = 0
    ufunc: str = ""  # NumPy's name, in errors


_NUMBERS = {
    "sum": _Operation("sums", 0, "add"),
    "prod": _Operation("products", 0, "multiply"),
    "max": _Operation("highest", 0, "maximum"),
    "min": _Operation("lowest", 0, "minimum"),
    "nansum": _Operation("sums", _SKIP_NANS, "add"),
    "nanprod": _Operation("products", _SKIP_NANS, "multiply"),
    "nanmax": _Operation("highest", _SKIP_NANS, "fmax"),
    "nanmin": _Operation("lowest", _SKIP_NANS, "fmin"),
}
_INDICES = {
    "argmax": _Operation("greatest", _EQUAL_ZEROS),
    "argmin": _Operation("least", _EQUAL_ZEROS),
    "nanargmax": _Operation("greatest", _EQUAL_ZEROS | _SKIP_NANS),
    "nanargmin": _Operation("least", _EQUAL_ZEROS | _SKIP_NANS),
}
_COUNTS = {
    "any": _Operation("counts", 0),
    "all": _Operation("counts", _COUNT_ZEROS),
    "count_nonzero": _Operation("counts", 0),
}
QUOTIENTS = ("mean", "nanmean", "var", "nanvar", "std", "nanstd")
_NORM = "norm"  # the square root of the sum of squares
_SCANS = {
    "cumsum": "sums",
    "cumprod": "products",
    "maximum": "greatest",
    "minimum": "least",
}

NAMES = (*_NUMBERS, *_INDICES, *_COUNTS, *QUOTIENTS, _NORM, "ptp")


# -- arguments -------------------------------------------------------------------------


class _Axes(NamedTuple):
    """The axes that are reduced, and the result's shape."""

    reduced: tuple[int, ...]
    kept: tuple[int, ...]
    outputs: tuple[int, ...]
    elements: int
    whole: tuple[int, ...]
    shape: tuple[int, ...]


def _axes_of(shape: tuple[int, ...], axis: Any, keepdims: bool) -> _Axes:
    # As in NumPy, a 0-d array may be reduced along axis 0 or -1.
    nothing = not shape and isinstance(axis, int | np.integer) and axis in (0, -1)
    if axis is None or nothing:
        reduced = tuple(range(len(shape)))
    else:
        given = axis if isinstance(axis, tuple) else (axis,)
        reduced = np.lib.array_utils.normalize_axis_tuple(given, len(shape))
    kept = tuple(k for k in range(len(shape)) if k not in reduced)
    outputs = tuple(shape[k] for k in kept)
    whole = tuple(1 if k in reduced else length for k, length in enumerate(shape))
    elements = math.prod(shape[k] for k in reduced)
    return _Axes(
        reduced, kept, outputs, elements, whole, whole if keepdims else outputs
    )


_known_axes = lru_cache(maxsize=KEPT)(_axes_of)


def _axes(x: Any, axis: Any, keepdims: Any) -> _Axes:
    # The cache does not distinguish 1 and 1.0, but 1.0 is not a valid axis.
    if axis is None or type(axis) is int:
        return _known_axes(x.shape, axis, bool(keepdims))
    return _axes_of(x.shape, axis, bool(keepdims))


def _mask(where: Any, x: Any) -> Any:
    """Return None, or a mask of the shape of `x`."""
    if where is True or (isinstance(where, np.bool_) and where):
        return None
    if isinstance(where, bool | np.bool_):
        where = backend.current().put(np.array(bool(where)))
    if not isinstance(where, cupy.ndarray) or where.dtype != np.bool_:
        # To show the array itself, the message would have to wait for the GPU.
        given = f"{type(where).__name__} of {getattr(where, 'dtype', 'no dtype')}"
        raise TypeError(f"where must be True or a CuPy array of bool; got {given}")
    return cupy.broadcast_to(where, x.shape)


def _scalar(initial: Any, dtype: Any) -> float:
    """Return an initial value, cast to the dtype as NumPy does."""
    if isinstance(initial, cupy.ndarray):
        raise TypeError("initial must be a number on the CPU; got an array on a GPU")
    with np.errstate(all="ignore"):
        value = np.asarray(initial)
        if value.ndim:
            raise ValueError(f"initial must be one number; got {brief(initial)}")
        return float(value.astype(dtype))


def _deliver(result: Any, axes: _Axes, out: Any) -> Any:
    if result.shape != axes.shape:
        result = result.reshape(axes.shape)
    if out is None:
        return result
    casts.cast_into(result, out)
    return out


def _check_out(out: Any, axes: _Axes, name: str) -> None:
    if out is None:
        return
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out must be a CuPy array; got {type(out).__name__}")
    if out.shape != axes.shape:
        raise ValueError(
            f"out must have shape {axes.shape} for {name}; got {out.shape}"
        )


# -- the two passes --------------------------------------------------------------------


def _log2_above(n: int) -> int:
    return max(0, n - 1).bit_length()


class _Plan(NamedTuple):
    vector: int  #: neighbors in memory that a thread reads at once
    across: bool  #: whether these neighbors belong to different outputs
    log: int
    chunk: int
    chunks: int

    def argument(self, outputs: int, count: int) -> Constant:
        return Constant(np.array((outputs, count, self.chunk, self.log, 0), _PLAN))

    def grid(self, outputs: int, processors: int) -> tuple[int, int]:
        groups = -(-outputs // self.columns)
        most = strides.BLOCKS * processors
        return max(1, min(groups, most)), self.chunks

    @property
    def columns(self) -> int:
        """Return the number of outputs of a block."""
        return (_THREADS >> self.log) * (self.vector if self.across else 1)


def _planned(outputs: int, count: int, vector: int, across: bool) -> _Plan:
    """Plan how blocks and lanes share outputs and elements.

    The plan only depends on shapes and strides, not on the device.
    """
    length = 1 if across else vector
    log = min(_log2_above(-(-count // (_SWEEPS * length))), 8)
    if not across:
        # With enough outputs, each has one warp, which needs no barriers.
        log = min(log, max(5, 9 - (outputs // _BLOCKS).bit_length()))
    if across:
        # With enough outputs, the lanes of a warp have different outputs. A block with
        # vectors has 128 outputs at least, so that there are few partial results even
        # compared with one-byte elements.
        neighbors = _log2_above(-(-outputs // vector))
        log = min(log, 8 - min(neighbors, 5, 8 - vector.bit_length()))
    plan = _Plan(vector, across, log, 0, 0)
    sweep = length << log
    groups = -(-outputs // plan.columns)
    # Across outputs, a block has more work after reading, and more with long vectors.
    blocks = _BLOCKS >> (0 if not across else 2 if vector > 8 else 1)
    wanted = min(-(-count // (_SWEEPS * sweep)), -(-blocks // groups))
    chunk = -(-count // (wanted * _SWEEPS * sweep)) * _SWEEPS * sweep
    return plan._replace(chunk=chunk, chunks=-(-count // chunk))


def longest_vector(op: str, itemsize: int, squares: bool) -> int:
    """Return the largest number of elements that a thread reads at once.

    A vector has at most 16 bytes, and a thread has registers for all its results.
    """
    return min(16 // itemsize, (64 if squares else 128) // _SIZES[op])


def _neighbors(
    operation: _Operation,
    itemsize: int,
    outputs: int,
    walks: list[Any],
    masked: bool,
    squares: bool,
) -> tuple[int, bool]:
    """Return how many neighbors in memory a thread reads at once.

    The second result tells whether the neighbors belong to different outputs.
    """
    (kept, (kept_steps, *_)), (reduced, (reduced_steps, *_)) = walks
    steps = [abs(x[-1]) if x else itemsize for x in (kept_steps, reduced_steps)]
    across = bool(kept) and outputs >= 4 and steps[0] < steps[1]
    vector = longest_vector(operation.op, itemsize, squares)
    if masked:
        fits = False
    elif across:
        # A vector must not extend past the end of an axis.
        whole = len(kept) == 1 or kept[-1] % vector == 0
        one = len(reduced) <= 1
        fits = one and kept_steps[-1] == itemsize and kept[-1] >= vector and whole
    else:
        run = len(reduced) == 1 and reduced_steps[-1] == itemsize
        fits = run and reduced[-1] >= 4 * vector
    return (vector, across) if fits else (1, across and outputs >= 32)


class _Gathering(NamedTuple):
    """The first pass over arrays of one layout; the only pass if there is one chunk."""

    kernel: Kernel
    grid: tuple[int, int]
    constants: tuple[Constant, ...]
    size: int  #: bytes of the partial results
    chunks: int  #: number of partial results per output


@lru_cache(maxsize=KEPT)
def _gathering(
    operation: _Operation,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    steps: tuple[tuple[int, ...] | None, ...],
    axes: _Axes,
    to: np.dtype[Any],
    squares: bool,
    processors: int,
) -> _Gathering | None:
    """Plan how the kernel walks an array; None if it has too many axes.

    `steps` are the strides of the array and of its mask, if it has one.
    """
    ordered = bool(operation.elements & _EQUAL_ZEROS)  # indices count in C order
    each = [
        strides.collapse(
            [shape[k] for k in some],
            [[0 if x is None else x[k] for k in some] for x in steps],
            reorder=reorder,
        )
        for some, reorder in ((axes.kept, False), (axes.reduced, not ordered))
    ]
    kept, reduced = each
    if max(len(kept[0]), len(reduced[0])) > strides.AXES:
        return None
    itemsize = dtype.itemsize
    outputs = math.prod(axes.outputs)
    masked = steps[1] is not None
    neighbors = _neighbors(operation, itemsize, outputs, each, masked, squares)
    plan = _planned(outputs, axes.elements, *neighbors)
    walks = [strides.describe(*walk, (itemsize, 0)) for walk in each]
    options = (
        f"-DOP={operation.op}",
        f"-DFROM={casts.kind(dtype)}",
        f"-DELEMENTS={operation.elements}",
        f"-DVECTOR={plan.vector}",
        f"-DACROSS={plan.across:d}",
        *("-DSQUARES",) * squares,
        *(f"-DTO={casts.kind(to)}",) * (plan.chunks == 1),
    )
    return _Gathering(
        Kernel("cuda/ufuncs/reduce.cu", "reduce", options),
        plan.grid(outputs, processors),
        (plan.argument(outputs, axes.elements), *map(Constant, walks)),
        plan.chunks * outputs * _SIZES[operation.op],
        plan.chunks,
    )


def _bytes(size: int) -> Any:
    return ndarray.allocate((size,), np.dtype(np.uint8), (1,))


class _Finishing(NamedTuple):
    """The second pass, which combines partial results."""

    kernel: Kernel
    grid: tuple[int, int]
    plan: Constant


@lru_cache(maxsize=KEPT)
def _finishing(
    op: str, dtype: np.dtype[Any], outputs: int, chunks: int, processors: int
) -> _Finishing:
    log = min(_log2_above(-(-chunks // _SWEEPS)), 8)
    plan = _Plan(1, True, log, max(1, chunks), 1)
    kernel = Kernel(
        "cuda/ufuncs/reduce_finish.cu",
        "finish",
        (f"-DOP={op}", f"-DTO={casts.kind(dtype)}"),
    )
    argument = plan.argument(outputs, chunks)
    return _Finishing(kernel, plan.grid(outputs, processors), argument)


@lru_cache(maxsize=KEPT)
def _ending(start: bytes, fields: tuple[tuple[str, int], ...]) -> Constant:
    """Return the kernels' argument that describes the final operations.

    `start` has the bytes of a float64, by which 0.0 and -0.0 differ.
    """
    how = np.zeros((), _ENDING)
    how["initial"] = np.frombuffer(start)[0]
    for field, value in fields:
        how[field] = value
    return Constant(how)


def _reduce(
    operation: _Operation,
    x: Any,
    mask: Any,
    axes: _Axes,
    dtype: Any,
    *,
    squares: bool = False,
    means: Any = None,
    initial: float = 0.0,
    divisors: Any = None,
    **ending: int,
) -> Any:
    """Reduce an array in two passes, or in one pass if there is one chunk.

    The result has the given dtype and the shape of `axes`. With `squares`, the squares
    of the differences from `means` (float64), or from zero, are reduced. `ending` has
    fields of `_ENDING`, and `divisors` is an array of one divisor per output, or None.
    """
    dtype = np.dtype(dtype)
    result = casts.empty(axes.shape, dtype)
    outputs = math.prod(axes.outputs)
    if not outputs:
        return result
    machine = backend.current()
    how = _ending(struct.pack("=d", initial), tuple(ending.items()))
    partials, chunks = _bytes(0), 0
    if axes.elements:
        for _ in range(2):
            steps = x.strides, None if mask is None else mask.strides
            found = _gathering(
                operation, x.dtype, x.shape, steps, axes, dtype, squares,
                machine.processors(),
            )  # fmt: skip
            if found is not None:
                break
            x = machine.call("ascontiguousarray", plain(x))
            mask = None if mask is None else machine.call("ascontiguousarray", mask)
        assert found is not None  # an array without gaps always has few enough axes
        chunks = found.chunks
        partials = result if chunks == 1 else _bytes(found.size)
        machine.launch(
            found.kernel, found.grid, (_THREADS,), *found.constants,
            partials, x, mask, means, how, divisors,
        )  # fmt: skip
    if chunks != 1:
        last = _finishing(operation.op, dtype, outputs, chunks, machine.processors())
        machine.launch(
            last.kernel, last.grid, (_THREADS,), last.plan, result, partials, how,
            divisors,
        )  # fmt: skip
    return result


# -- functions for other modules -------------------------------------------------------


def reduce(
    name: str,
    x: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = NO_VALUE,
    where: Any = True,
    ddof: int = 0,
) -> Any:
    """Reduce an array along some of its axes.

    Parameters
    ----------
    name : str
        One of `NAMES`, which are mostly names of NumPy functions.
    x : cupy.ndarray
        Array of a format or of float32.
    axis : None, int or tuple of int
        The axes to reduce (default: all). argmax and the like take an int or None.
    dtype : dtype, optional
        Dtype of the result (default: that of `out` or `x`), except for indices and
        counts. float32 or float64 avoid the rounding to a format. With other NumPy
        dtypes, sums, products and extremes cast the elements first.
    out : cupy.ndarray, optional
        Array to write the result to. Without `dtype`, the result has its dtype.
    keepdims : bool
        Whether reduced axes stay, with length 1.
    initial : number, optional
        Value to start from, on the host. With None there is no such value, so that
        there must be elements.
    where : cupy.ndarray of bool
        Mask of the elements to include (default: True, all).
    ddof : int
        For var and std, the number that is subtracted from the number of elements.

    Returns
    -------
    cupy.ndarray
        The result; 0-d if all axes are reduced. It is never a scalar, which would have
        to wait for the GPU.

    Raises
    ------
    ValueError
        If the reduction needs elements and there are none, or if `name`, `axis` or
        `out` is invalid.
    TypeError
        If the reduction does not support an argument.

    Notes
    -----
    `nanargmax` and `nanargmin` return -1 if all elements are NaN. To raise an error as
    NumPy does, this function would have to wait for the GPU.
    """
    if name not in NAMES:
        raise ValueError(one_of("name", name, NAMES))
    axes = _axes(x, axis, keepdims)
    _check_out(out, axes, name)
    mask = _mask(where, x)
    if name == "ptp":
        return _range(x, axis, out, keepdims)
    if name in _INDICES or name in _COUNTS:
        _exact(x, x.dtype)
    if name in _INDICES:
        return _index(name, x, axes, out, (dtype, initial, mask))
    if name in _COUNTS:
        return _count(name, x, axes, out, mask, dtype, initial)
    if dtype is None and out is not None:
        dtype = out.dtype
    dtype = x.dtype if dtype is None else find_dtype(dtype)
    if name in QUOTIENTS or name == _NORM:
        if initial is not NO_VALUE:
            raise TypeError(f"initial must not be given for {name}")
        result = _mean(name, x, axes, dtype, mask, ddof)
    else:
        result = _number(name, x, axes, dtype, initial, mask)
    return _deliver(_classed(result, x), axes, out)


def _classed(result: Any, x: Any) -> Any:
    """Return a float32 result as an array of this package's class if `x` is one."""
    if result.dtype == np.float32 and isinstance(x, ndarray.ndarray):
        return ndarray.wrap(result, np.float32)
    return result


def _wide(dtype: Any) -> bool:
    """Return whether kernels write float64 results as this dtype."""
    return is_ours(dtype) or dtype in (np.float32, np.float64)


def _check_wide(name: str, dtype: Any) -> None:
    if not _wide(dtype):
        raise TypeError(
            f"dtype of {name} must be a format of tf32dtype, float32 or float64 on a"
            f" GPU; got {dtype}"
        )


def _exact(x: Any, dtype: Any) -> Any:
    """Return the elements as a reduction reads them: of a format, or float32."""
    if is_ours(dtype):
        return x if x.dtype == dtype else casts.cast(x, dtype)
    if not is_ours(x.dtype) and x.dtype != np.float32:
        raise TypeError(
            "x must be an array of a format of tf32dtype or float32 here; got"
            f" {x.dtype}. Use CuPy's own functions for other dtypes"
        )
    return x


def _number(name: str, x: Any, axes: _Axes, dtype: Any, initial: Any, mask: Any) -> Any:
    operation = _NUMBERS[name]
    if not _wide(dtype):
        return _by_numpy(name, x, axes, dtype, initial, mask)
    x = _exact(x, dtype)
    start = _start(operation, axes, dtype, initial, mask)
    if start is None and axes.elements == 1:  # as in NumPy, a NaN keeps its bits
        return casts.cast(x, dtype)
    if start is None:
        return _reduce(operation, x, mask, axes, dtype)
    return _reduce(operation, x, mask, axes, dtype, begins=True, initial=start)


def _start(
    operation: _Operation, axes: _Axes, dtype: Any, initial: Any, mask: Any
) -> float | None:
    """Return the value that a reduction starts from, or None."""
    if initial is not NO_VALUE and initial is not None:
        return _scalar(initial, dtype)
    identity = {"sums": 0.0, "products": 1.0}.get(operation.op)
    if initial is NO_VALUE and identity is not None:
        return identity
    if mask is not None:
        raise ValueError(
            f"reduction operation {operation.ufunc!r} does not have an identity, so to"
            " use a where mask one has to specify 'initial'"
        )
    if axes.elements == 0:
        raise ValueError(
            f"zero-size array to reduction operation {operation.ufunc} which has no"
            " identity"
        )
    return None


def _by_numpy(
    name: str, x: Any, axes: _Axes, dtype: Any, initial: Any, mask: Any
) -> Any:
    """Reduce in another NumPy dtype by CuPy, after casting the elements to it."""
    if initial is not NO_VALUE or mask is not None:
        raise TypeError(
            f"dtype of {name} must be a format of tf32dtype, float32 or float64 on a"
            f" GPU if initial or where is given; got {dtype}"
        )
    call = backend.current().call
    return call(name, casts.cast(x, dtype), axis=axes.reduced, dtype=dtype)


def _index(name: str, x: Any, axes: _Axes, out: Any, given: tuple[Any, ...]) -> Any:
    if given != (None, NO_VALUE, None):
        raise TypeError(f"dtype, initial and where must not be given for {name}")
    if len(axes.reduced) not in (1, x.ndim):
        raise TypeError(f"axis must be an integer or None for {name}")
    if axes.elements == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    operation = _INDICES[name]
    return _deliver(_reduce(operation, x, None, axes, np.int64), axes, out)


def _count(
    name: str, x: Any, axes: _Axes, out: Any, mask: Any, dtype: Any, initial: Any
) -> Any:
    if dtype is not None or initial is not NO_VALUE:
        raise TypeError(f"dtype and initial must not be given for {name}")
    operation = _COUNTS[name]
    kind = np.int64 if name == "count_nonzero" else np.bool_
    result = _reduce(operation, x, mask, axes, kind, nothing=name == "all")
    return _deliver(result, axes, out)


def _mean(name: str, x: Any, axes: _Axes, dtype: Any, mask: Any, ddof: int) -> Any:
    """Compute a mean, a variance, a standard deviation or a norm."""
    _check_wide(name, dtype)
    x = _exact(x, dtype)
    skips = _SKIP_NANS if name.startswith("nan") else 0
    sums = _Operation("sums", skips)
    if name == _NORM:
        return _reduce(sums, x, mask, axes, dtype, squares=True, begins=True, root=True)
    ending: dict[str, Any] = {"begins": True, "divides": True, "divisor": axes.elements}
    if skips or mask is not None:
        ending["divisors"] = _counted(x, axes, mask, skips)
    is_mean = name.endswith("mean")
    means = _reduce(sums, x, mask, axes, dtype if is_mean else np.float64, **ending)
    if is_mean:
        return means
    ending |= {"less": ddof, "strict": bool(skips), "root": name.endswith("std")}
    return _reduce(sums, x, mask, axes, dtype, squares=True, means=means, **ending)


def _counted(x: Any, axes: _Axes, mask: Any, skips: int) -> Any:
    """Return the number of elements of each output."""
    if skips:
        counts = _Operation("counts", _COUNT_NUMBERS)
        return _reduce(counts, x, mask, axes, np.int64)
    return _reduce(_Operation("counts"), mask, None, axes, np.int64)


def _range(x: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    ends = [reduce(name, x, axis, keepdims=keepdims) for name in ("max", "min")]
    return ufuncs.call(np.subtract, tuple(ends), out=out)


def accumulate(
    name: str, x: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    """Accumulate an array along an axis, rounding each result once.

    Parameters
    ----------
    name : {"cumsum", "cumprod", "maximum", "minimum"}
        The function; the last two are `accumulate` of these ufuncs.
    x : cupy.ndarray
        Array of a format or of float32.
    axis : None or int
        The axis to accumulate along; None for all elements in C order.
    dtype : dtype, optional
        Dtype of the result: a format, float32 or float64 (default: that of `out` or
        `x`).
    out : cupy.ndarray, optional
        Array to write the result to.
    """
    if name not in _SCANS:
        raise ValueError(one_of("name", name, _SCANS))
    if dtype is None and out is not None:
        dtype = out.dtype
    dtype = x.dtype if dtype is None else find_dtype(dtype)
    _check_wide(name, dtype)
    x = _exact(x, dtype)
    kind = casts.kind(x.dtype)
    given = plain(x)
    call = backend.current().call
    if axis is None:
        given = call("ascontiguousarray", given).reshape(-1)
        axis = 0
    axis = np.lib.array_utils.normalize_axis_index(axis, given.ndim)
    if out is not None and (
        not isinstance(out, cupy.ndarray) or out.shape != given.shape
    ):
        raise ValueError(
            f"out of {name} must be a CuPy array of shape {given.shape}; got"
            f" {brief(out)}"
        )
    result = casts.empty(given.shape, dtype)
    if result.size:
        _scan(_SCANS[name], given, kind, plain(result), dtype, axis)
    result = _classed(result, x)
    if out is None:
        return result
    casts.cast_into(result, out)
    return out


def _scan(op: str, x: Any, kind: str, result: Any, dtype: Any, axis: int) -> None:
    others = [k for k in range(x.ndim) if k != axis]

    def collapsed(
        x: Any,
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        steps = [[y.strides[k] for k in others] for y in (result, x)]
        return strides.collapse([x.shape[k] for k in others], steps)

    lines = collapsed(x)
    if len(lines[0]) > strides.AXES:
        x = backend.current().call("ascontiguousarray", x)
        lines = collapsed(x)
    options = f"-DOP={op}", f"-DFROM={kind}", f"-DTO={casts.kind(dtype)}"
    walk = strides.describe(*lines, (0, 0))
    most = strides.BLOCKS * backend.current().processors()
    backend.current().launch(
        Kernel("cuda/ufuncs/scan.cu", "scan", options), (min(int(walk["size"]), most),),
        (_THREADS,), walk, result, x, np.int64(x.shape[axis]),
        np.int64(result.strides[axis]), np.int64(x.strides[axis]),
    )  # fmt: skip
