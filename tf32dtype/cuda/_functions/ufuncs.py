"""Compute NumPy's ufuncs on GPU arrays, with the bits that they have on the CPU.

NumPy itself chooses the loop for the operands, so that promotion, casting= and the
errors about dtypes are those of NumPy. This module computes the loops of formats:

- functions of one array, and of two arrays of one-byte formats, are looked up in tables
  that the CPU made (lookup_tables.py);
- arithmetic and comparisons of bfloat16 or tf32 are computed in float32 or float64, and
  rounded once (binary.cu);
- other functions of two bfloat16 or tf32 arrays are computed in float64. If float64
  cannot decide which number is nearest, integers of 128 bits do (binary_exact.cu);
- comparisons with numbers that a format cannot represent, and bounds by such numbers,
  are computed by exact_compare.py.

For a loop of NumPy's own dtypes, the operands are cast, and CuPy's function of the same
name is called. Its bits are those of CuPy.

No floating-point warnings are given, because a GPU has no flags.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import cupy
import numpy as np

from ..._formats.table import find_dtype
from .._arrays.casts import cast
from .._arrays.ndarray import allocate, lying, ndarray, wrap
from .._runtime import backend
from .._runtime.backend import KEPT, Constant, Kernel, int32
from .._runtime.storage import STORAGE, is_ours, plain
from .._runtime.strides import elementwise
from . import exact_compare, lookup_tables

#: Functions in the order of binary.cu, and then of binary_exact.cu.
BINARY = (
    "add", "subtract", "multiply", "divide", "maximum", "minimum", "fmax", "fmin",
    "heaviside", "copysign", "nextafter",
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
FUNCTIONS = (
    "floor_divide", "remainder", "fmod",
    "power", "arctan2", "hypot", "logaddexp", "logaddexp2",
)  # fmt: skip

#: struct tf_constants of map.h
CONSTANTS = np.dtype([("given", np.uint32), ("item", np.uint32, (2,))])

#: np.clip is a function; this is the ufunc that it calls.
_clip: np.ufunc = np._core.umath.clip  # type: ignore[attr-defined]


def call(
    ufunc: np.ufunc,
    inputs: tuple[Any, ...],
    *,
    out: Any = None,
    where: Any = True,
    dtype: Any = None,
    casting: Any = "same_kind",
) -> Any:
    """Compute `ufunc(*inputs, ...)` on the GPU.

    Parameters
    ----------
    ufunc : numpy.ufunc
        An elementwise function.
    inputs : tuple
        Arrays of this package or of CuPy, and scalars of Python, NumPy or this package.
    out : array or tuple of arrays or None, optional
        Arrays to write to, of any dtype that `casting` allows. They may overlap the
        inputs.
    where : bool or array of bool
        Mask of the elements to compute. `out` keeps its elements where it is False.
    dtype : dtype, optional
        Dtype of the results and, as in NumPy, of the computation.
    casting : str
        Which casts are allowed, as in NumPy.

    Returns
    -------
    array or tuple of arrays
        Arrays of this package, or of CuPy if the dtype is NumPy's own. 0-d results are
        arrays, too.

    Raises
    ------
    TypeError
        If there is no such loop, if a cast is not allowed, or if an operand is not on
        the GPU.
    ValueError
        If shapes do not match.
    """
    if where is True and dtype is None and casting == "same_kind":
        found = planned(ufunc, inputs, out)
        if found is not None:
            return found
    if ufunc.signature is not None:
        raise TypeError(f"np.{ufunc.__name__} is not an elementwise function")
    for x in inputs:
        _check_operand(ufunc, x)
    outputs = _outputs_of(ufunc, out)
    mask = _mask_of(where)
    loop = _loop_of(
        ufunc,
        tuple([_kind_of(x) for x in inputs]),
        tuple([None if x is None else x.dtype for x in outputs]),
        None if dtype is None else find_dtype(dtype),
        casting,
    )
    shape = _shape_of(inputs, outputs, mask)

    operands = [_operand(x, k, loop) for k, x in enumerate(inputs)]
    results = _results_of(ufunc, loop, operands, shape, outputs, mask)
    given = tuple(
        _deliver(result, output, shape, mask)
        for result, output in zip(results, outputs, strict=True)
    )
    singles = any(isinstance(x, ndarray) and x.dtype == np.float32 for x in inputs)
    given = tuple(
        wrap(x, x.dtype) if singles and x.dtype == np.float32 and output is None else x
        for x, output in zip(given, outputs, strict=True)
    )
    return given if ufunc.nout > 1 else given[0]


# -- plans of calls --------------------------------------------------------------------


class _Plan(NamedTuple):
    """A plan of calls that take one kernel, for any values of the elements."""

    loop: tuple[np.dtype[Any], ...]
    #: whether an operand must be cast: it has another dtype, or is a Python number
    casts: bool
    #: index of the array, if the other operand is a number that is not rounded
    exact: int | None
    strides: tuple[int, ...]  #: strides of a result without out=
    shape: tuple[int, ...]  #: shape of the result


def planned(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any = None) -> Any:
    """Return the result of `call` without options, if one kernel computes it.

    Otherwise return None. Plans are cached, because most calls have the same dtypes,
    shapes and strides as an earlier call.
    """
    wanted = None
    if out is not None:
        if not isinstance(out, cupy.ndarray):
            return None
        wanted = out.dtype, out.shape
    plan = _plan(ufunc, tuple([_described(x) for x in inputs]), wanted)
    if plan is None:
        return None
    loop = plan.loop
    given = list(inputs)
    if plan.exact is not None:
        x = given.pop(plan.exact)
        found = exact_compare.simple(ufunc, loop, given[0])
        if found is None:
            return None
        ufunc, loop, number = found
        given = [x, number]
    elif plan.casts:
        given = [_cast(x, dtype) for x, dtype in zip(given, loop, strict=False)]
    if out is None:
        out = allocate(plan.shape, loop[-1], plan.strides)
    if len(given) == 1:
        lookup_tables.one(ufunc, loop, [out], given[0])
    else:
        _of_two(ufunc, loop, given, [out])
    return out


def _described(x: Any) -> Any:
    """Return all properties of an operand that a plan depends on.

    Return None if it is not a valid operand.
    """
    if isinstance(x, cupy.ndarray):
        return x.dtype, x.shape, x.strides
    if isinstance(x, np.generic | int | float):
        return _kind_of(x)
    return None


@lru_cache(maxsize=KEPT)
def _plan(ufunc: np.ufunc, inputs: tuple[Any, ...], out: Any) -> _Plan | None:
    """Plan a call from descriptions of operands; None if it takes several kernels.

    `inputs` are results of `_described`; `out` is the dtype and shape of out=, or None.
    """
    arrays = [x for x in inputs if isinstance(x, tuple)]
    if (
        ufunc.signature is not None
        or ufunc.nout > 1
        or not len(inputs) == ufunc.nin < 3
        or ufunc in (np.ldexp, _clip)
        or not arrays
        or any(x is None for x in inputs)
    ):
        return None
    kinds = tuple(x[0] if isinstance(x, tuple) else x for x in inputs)
    dtype = None if out is None else out[0]
    loop = _loop_of(ufunc, kinds, (dtype,), None, "same_kind")
    shape = np.broadcast_shapes(*(shape for _, shape, _ in arrays))
    if (
        not any(map(is_ours, loop))
        or loop[-1] == np.float32  # the result's class depends on the operands' classes
        or (out is not None and out != (loop[-1], shape))
    ):
        return None
    place = None
    if exact_compare.EXACT in loop:
        place = inputs.index(arrays[0])
        if len(inputs) != 2 or len(arrays) > 1 or kinds[place] != loop[place]:
            return None
    like = None
    for x, dtype in zip(inputs, loop, strict=False):
        if isinstance(x, tuple) and x[1] == shape:
            like = x[2] if x[0] == dtype else lying(shape, dtype.itemsize)
            break
    strides = lying(shape, loop[-1].itemsize, like)
    return _Plan(loop, kinds != loop[: ufunc.nin], place, strides, shape)


# -- arguments -------------------------------------------------------------------------


def _check_operand(ufunc: np.ufunc, x: Any) -> None:
    if not isinstance(x, cupy.ndarray | np.generic | int | float | complex):
        raise TypeError(
            f"operands of np.{ufunc.__name__} must be arrays on the GPU or scalars; got"
            f" {type(x).__module__}.{type(x).__name__}. Use tf32dtype.cuda.asarray(x)"
        )


def _outputs_of(ufunc: np.ufunc, out: Any) -> tuple[Any, ...]:
    if out is None:
        return (None,) * ufunc.nout
    outputs = out if isinstance(out, tuple) else (out,)
    if len(outputs) != ufunc.nout:
        raise ValueError(
            f"out must have {ufunc.nout} arrays for np.{ufunc.__name__}; got"
            f" {len(outputs)}"
        )
    for x in outputs:
        if x is not None and not isinstance(x, cupy.ndarray):
            raise TypeError(f"out must be an array on the GPU; got {type(x).__name__}")
    return outputs


def _mask_of(where: Any) -> Any:
    """Return None for where=True, otherwise a boolean array on the device, or False."""
    if isinstance(where, bool | np.bool):
        return None if where else False
    if isinstance(where, cupy.ndarray) and where.dtype == np.bool:
        return where.view(cupy.ndarray)
    kind = getattr(where, "dtype", None) or type(where).__name__
    raise TypeError(f"where must be True, False or a CuPy array of bool; got {kind}")


def _kind_of(x: Any) -> Any:
    """Return an operand's dtype, or the type of a Python number (a weak dtype)."""
    if isinstance(x, cupy.ndarray | np.generic):
        return x.dtype
    return np.dtype(np.bool) if isinstance(x, bool) else type(x)


@lru_cache(maxsize=KEPT)
def _loop_of(
    ufunc: np.ufunc,
    given: tuple[Any, ...],
    wanted: tuple[Any, ...],
    dtype: np.dtype[Any] | None,
    casting: Any,
) -> tuple[np.dtype[Any], ...]:
    """Return the dtypes of the loop that NumPy chooses, or raise NumPy's error."""
    if len(given) != ufunc.nin:
        raise TypeError(
            f"np.{ufunc.__name__} must have {ufunc.nin} inputs; got {len(given)}"
        )
    fixed: dict[str, Any] = {}
    if dtype is not None:
        fixed["signature"] = (None,) * ufunc.nin + (dtype,) * ufunc.nout
    loop = ufunc.resolve_dtypes((*given, *wanted), casting=casting, **fixed)
    for x in loop:
        if (
            x != exact_compare.EXACT
            and not is_ours(x)
            and (x.kind not in "biufc" or x.char in "gG")
        ):
            raise TypeError(
                f"np.{ufunc.__name__} of {', '.join(map(_name, given))} computes in"
                f" {x}, which a GPU does not support; use x.get()"
            )
    return loop


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _shape_of(inputs: Any, outputs: Any, mask: Any) -> tuple[int, ...]:
    arrays = [x for x in inputs if isinstance(x, cupy.ndarray)]
    arrays += [mask] if isinstance(mask, cupy.ndarray) else []
    arrays += [x for x in outputs if x is not None]
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    for x in outputs:
        if x is not None and x.shape != shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {x.shape} doesn't match"
                f" the broadcast shape {shape}"
            )
    return shape


def _operand(x: Any, k: int, loop: tuple[np.dtype[Any], ...]) -> Any:
    """Return an operand as the loop reads it."""
    if loop[k] != exact_compare.EXACT:
        return _cast(x, loop[k])
    # Bounds that are not Python numbers have the result's dtype, or cast to it exactly.
    is_bound = is_ours(loop[-1]) and isinstance(x, cupy.ndarray | np.generic)
    return _cast(x, loop[-1]) if is_bound else x


def _cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """Cast an operand to the dtype of a loop; a scalar becomes a NumPy scalar."""
    if isinstance(x, cupy.ndarray):
        return _cast_array(x, dtype)
    if isinstance(x, int | float) and not isinstance(x, np.generic):
        return _number(x, *exact_compare.apart(x), dtype)
    with np.errstate(all="ignore"):
        if isinstance(x, np.generic):
            return x.astype(dtype)
        return np.asarray(x, dtype)[()]


@lru_cache(maxsize=KEPT)
def _number(x: Any, kind: Any, sign: float, dtype: np.dtype[Any]) -> Any:
    """Return a Python number as a scalar of a dtype."""
    with np.errstate(all="ignore"):
        return np.asarray(x, dtype)[()]


def _cast_array(x: Any, dtype: np.dtype[Any]) -> Any:
    if x.dtype == dtype:
        return x
    if not is_ours(x.dtype) and not is_ours(dtype):
        return backend.current().call("ndarray.astype", x.view(cupy.ndarray), dtype)
    return cast(x, dtype)


# -- results ---------------------------------------------------------------------------


def _results_of(
    ufunc: np.ufunc,
    loop: tuple[np.dtype[Any], ...],
    operands: list[Any],
    shape: tuple[int, ...],
    outputs: tuple[Any, ...],
    mask: Any,
) -> tuple[Any, ...]:
    """Return results of the loop's dtypes, in arrays of out= where possible."""
    arrays = [x for x in operands if isinstance(x, cupy.ndarray)]
    if not arrays:  # two scalars, into out=
        with np.errstate(all="ignore"):
            fixed = {} if exact_compare.EXACT in loop else {"signature": loop}
            made = ufunc(*operands, **fixed)
        return tuple(
            _filled(x, shape) for x in (made if isinstance(made, tuple) else (made,))
        )
    if not any(is_ours(x) for x in loop):
        return _by_cupy(ufunc, loop, operands)
    # A second result is computed after the first is written.
    many = ufunc.nout > 1
    targets = [
        x
        if x is not None and mask is None and x.dtype == dtype
        and not (many and any(cupy.may_share_memory(x, y) for y in arrays))
        else _empty(shape, dtype, arrays)
        for x, dtype in zip(outputs, loop[ufunc.nin :], strict=True)
    ]  # fmt: skip
    _compute(ufunc, loop, operands, targets)
    return tuple(targets)


def _filled(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array filled with a scalar, of the scalar's dtype."""
    if not is_ours(x.dtype):
        return backend.current().call("full", shape, x, dtype=x.dtype)
    storage = x.view(STORAGE[x.dtype.itemsize])
    return wrap(backend.current().call("full", shape, storage), x.dtype)


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any], like: list[Any]) -> Any:
    """Return an uninitialized array with the memory order of an array of its shape.

    The order is that of the first array in `like` with this shape (default: C order).
    """
    strides = next((x.strides for x in like if x.shape == shape), None)
    return allocate(shape, dtype, lying(shape, dtype.itemsize, strides))


def _by_cupy(
    ufunc: np.ufunc, loop: tuple[np.dtype[Any], ...], operands: list[Any]
) -> tuple[Any, ...]:
    if not hasattr(cupy, ufunc.__name__):
        raise TypeError(f"CuPy has no {ufunc.__name__} for {loop[0]}; use x.get()")
    given = [plain(x) if isinstance(x, cupy.ndarray) else x for x in operands]
    call = backend.current().call
    made = call(ufunc.__name__, *given)
    return tuple(
        x if x.dtype == dtype else call("ndarray.astype", x, dtype)
        for x, dtype in zip(
            made if isinstance(made, tuple) else (made,), loop[ufunc.nin :], strict=True
        )
    )


def _compute(
    ufunc: np.ufunc,
    loop: tuple[np.dtype[Any], ...],
    operands: list[Any],
    targets: list[Any],
) -> None:
    """Compute a loop of one of our formats, into arrays of the loop's dtypes."""
    dtype = loop[0]
    if exact_compare.EXACT in loop:
        exact_compare.compute(ufunc, loop, operands, targets[0], _compute)
    elif ufunc.nin == 1:
        lookup_tables.one(ufunc, loop, targets, operands[0])
    elif ufunc is np.ldexp:
        _scale(targets[0], *operands)
    elif ufunc is _clip:
        x, low, high = operands
        arrays = [y for y in operands if isinstance(y, cupy.ndarray)]
        raised = _empty(targets[0].shape, dtype, arrays)
        _compute(np.maximum, (dtype,) * 3, [x, low], [raised])
        _compute(np.minimum, (dtype,) * 3, [raised, high], targets)
    elif ufunc is np.divmod and dtype.itemsize > 1:
        _compute(np.floor_divide, (dtype,) * 3, operands, targets[:1])
        _compute(np.remainder, (dtype,) * 3, operands, targets[1:])
    else:
        _of_two(ufunc, loop, operands, targets)


def _of_two(
    ufunc: np.ufunc,
    loop: tuple[np.dtype[Any], ...],
    operands: list[Any],
    targets: list[Any],
) -> None:
    """Compute a function of two arrays, or of an array and a scalar."""
    # The first array replaces a scalar in `storage`. The operands may be two scalars
    # (in clip); then the first array is a target.
    arrays = [x for x in (*operands, *targets) if isinstance(x, cupy.ndarray)]
    storage, items = [], []
    for x in operands:
        is_array = isinstance(x, cupy.ndarray)
        storage.append(x if is_array else arrays[0])
        items.append(None if is_array else int(x.view(STORAGE[x.dtype.itemsize])))
    constants = _constants(*items)
    route = _route(ufunc, loop[0])
    if route is None:
        lookup_tables.pair(ufunc, loop, targets, storage, constants)
        return
    elementwise(
        route.kernel, targets, storage, constants, route.operation,
        per_thread=route.per_thread,
    )  # fmt: skip


class _Route(NamedTuple):
    """A kernel that computes a function of two arrays, and how to start it."""

    kernel: Kernel
    operation: Constant
    per_thread: int


@lru_cache(maxsize=KEPT)
def _route(ufunc: np.ufunc, dtype: np.dtype[Any]) -> _Route | None:
    """Return the kernel that computes a function; None if tables do."""
    name = ufunc.__name__
    if dtype.itemsize == 1:
        return None
    if name in BINARY:
        kernel = Kernel("cuda/ufuncs/binary.cu", "binary", _options(dtype))
        return _Route(kernel, int32(BINARY.index(name)), 16 // dtype.itemsize)
    if name in FUNCTIONS:
        kernel = Kernel("cuda/ufuncs/binary_exact.cu", "function", _options(dtype))
        return _Route(kernel, int32(FUNCTIONS.index(name)), 1)
    raise TypeError(f"np.{name} has no GPU kernel for {dtype}; use x.get()")


@lru_cache(maxsize=KEPT)
def _constants(*items: int | None) -> Constant:
    """Return the kernels' argument for operands that are one stored element.

    None in `items` means an array.
    """
    found = np.zeros((), CONSTANTS)
    for k, item in enumerate(items):
        if item is not None:
            found["given"] |= 1 << k
            found["item"][k] = item
    return Constant(found)


def _options(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """Return the compilation options of a kernel for a format."""
    return f"-DFORMAT=tf_{dtype.name}", f"-DITEM={STORAGE[dtype.itemsize]}_t"


def _scale(out: Any, x: Any, exponents: Any) -> None:
    """Compute ldexp: multiply by powers of two, with integer exponents of any size."""
    if not isinstance(x, cupy.ndarray):
        x = _filled(x, ())
    if not isinstance(exponents, cupy.ndarray):
        exponents = _filled(exponents, ())
    exponents = _cast_array(exponents, np.dtype(np.int64))
    kernel = Kernel("cuda/ufuncs/ldexp.cu", "by_power", _options(out.dtype))
    elementwise(kernel, [out], [x, exponents])


def _deliver(result: Any, out: Any, shape: tuple[int, ...], mask: Any) -> Any:
    """Return a result, written to `out` where the mask is true."""
    if result is out:
        return out
    if out is None and mask is None:
        return result
    if out is None:
        out = _empty(shape, result.dtype, [])
    if mask is False:
        return out
    keywords = {} if mask is None else {"where": mask}
    result = _cast_array(result, out.dtype)
    backend.current().call("copyto", plain(out), plain(result), **keywords)
    return out
