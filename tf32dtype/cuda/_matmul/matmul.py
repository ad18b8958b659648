"""Matrix products on a GPU: what computes them, and for which operands.

There are three modes. "chain", the default, has the bits of the CPU's ``a @ b``;
"model" those of a modelled tensor core, on any GPU; "native" is this GPU's tensor
cores. No floating-point errors are reported: a GPU has no flags for them.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from functools import lru_cache, partial
from types import TracebackType
from typing import Any, NamedTuple, Self

import cupy
import numpy as np
from numpy.typing import DTypeLike

from ... import _core
from ..._formats.quantize import Tf32Rounding as Rounding
from ..._formats.table import find_dtype
from ..._matmul.context import Settings, current_settings, leave, mark_context
from ..._matmul.precisions import (
    Scale,
    SpecialValues,
    kept_for_names,
)
from ..._matmul.precisions import check as check_precision
from ..._matmul.precisions import find_precision as find_mode
from ..._wording import brief
from ...tensor_core.look_up import devices, find_device, find_instruction, find_model
from .._arrays.ndarray import allocate, as_own, lying, ndarray, wrap
from .._runtime import backend
from .._runtime.backend import KEPT, Shape, View
from .._runtime.storage import is_ours, plain
from . import fma
from .crossover import Strategy
from .stacks import like, stack_of_one, stacks

MODES = ("chain", "model", "native")
#: Of "native", besides None.
OWN = "mma.sync", "wgmma"

FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
TF32 = np.dtype(_core.scalar_types[_core.names.index("tf32")])


# -- modes -----------------------------------------------------------------------------


class Mode(NamedTuple):
    """What computes products of this package's formats."""

    name: str = "chain"
    device: str | None = None
    instruction: str | None = None


@kept_for_names
def choose_mode(mode: object, device: str | None, instruction: str | None) -> Mode:
    """What arguments of `matmul_mode` mean.

    Raises
    ------
    ValueError
        For an unknown name, or a keyword that the mode has no use for.
    """
    if mode not in MODES:
        raise ValueError(f"unknown mode {brief(mode)}; known are {', '.join(MODES)}")
    if mode == "model":
        if device is None:
            known = ", ".join(devices)
            raise ValueError(f"mode='model' needs a device; known are {known}")
        found = find_device(device)
        return Mode("model", found.name, find_instruction(found, instruction))
    if device is not None:
        raise ValueError(f"device={brief(device)} is for mode='model' alone")
    if instruction is not None and mode == "chain":
        raise ValueError(
            f"instruction={brief(instruction)} is for 'model' and 'native'"
        )
    if instruction not in (None, *OWN):
        raise ValueError(
            f"mode='native' has no instruction {brief(instruction)}; it has"
            f" {', '.join(OWN)}, and None for what cuBLAS chooses"
        )
    return Mode(str(mode), None, instruction)


class _Block(NamedTuple):
    """A block that is open, and whose it is."""

    owner: object
    mode: Mode
    opened: Token[None]


#: Those of a context, the innermost last.
_blocks: ContextVar[tuple[_Block, ...]] = ContextVar("tf32dtype_cuda_mode", default=())


def current_mode() -> Mode:
    """The mode in force here."""
    blocks = _blocks.get()
    return blocks[-1].mode if blocks else Mode()


class matmul_mode(contextlib.ContextDecorator):
    """What computes products of GPU arrays: a block, or a decorator.

    It holds for ``@``, `numpy.matmul` and all other products of arrays of this
    package's formats, and for `matmul` where that says nothing else.

    Parameters
    ----------
    mode : {"chain", "model", "native"}
        As in `matmul`.
    device, instruction : str, optional
        As in `matmul`.

    Raises
    ------
    ValueError
        For an unknown name, or a keyword that the mode has no use for.
    TypeError
        If a generator or a coroutine function is decorated, whose body would run
        outside.

    Notes
    -----
    A mode belongs to a thread and to an asyncio task, as `matmul_precision` does. One
    object may be entered many times, also while it is entered.

    Examples
    --------
    >>> with tfc.matmul_mode("model", device="A100"):  # doctest: +SKIP
    ...     x @ y
    """

    def __init__(
        self, mode: str, *, device: str | None = None, instruction: str | None = None
    ) -> None:
        self._mode = choose_mode(mode, device, instruction)

    def __enter__(self) -> Self:
        block = _Block(self, self._mode, mark_context())
        _blocks.set((*_blocks.get(), block))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        leave(_blocks, self)

    def __call__(self, function: Any) -> Any:
        later = (
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
            inspect.iscoroutinefunction,
        )
        if any(is_one(function) for is_one in later):
            raise TypeError(
                "matmul_mode cannot decorate a generator or coroutine function, whose"
                " body runs after the call: open a block in it"
            )
        return super().__call__(function)

    def __repr__(self) -> str:
        name, *where = self._mode
        named = zip(("device", "instruction"), where, strict=True)
        given = [repr(name), *(f"{key}={value!r}" for key, value in named if value)]
        return f"<matmul_mode({', '.join(given)})>"


# -- what is asked for -----------------------------------------------------------------


def matmul(
    a: Any,
    b: Any,
    *,
    mode: str | None = None,
    device: str | None = None,
    instruction: str | None = None,
    precision: str | None = None,
    rounding: Rounding = "ties_to_even",
    scale: Scale = "tensor",
    special_values: SpecialValues = "propagate",
    strategy: Strategy = "performant",
    dtype: DTypeLike | None = None,
    out: Any = None,
) -> Any:
    """Multiply matrices on a GPU.

    Parameters
    ----------
    a, b : cupy.ndarray
        Of this package's class or plain, and of the shapes that `numpy.matmul` takes:
        (..., m, k) and (..., k, n), whose other axes broadcast; a vector of length k is
        a row, or a column.
    mode : {"chain", "model", "native"}, optional
        What computes products of formats. "chain": the CPU's bits. "model": those of
        the tensor core of `device`, as `tf32dtype.tensor_core.matmul` has them.
        "native": this GPU's tensor cores. None: the mode of the enclosing
        `matmul_mode` block, else "chain".
    device, instruction : str, optional
        Of "model": as in `tf32dtype.tensor_core.matmul`. Of "native" there are
        the instructions "mma.sync" and, of compute capability 9.0, "wgmma", kernels
        whose bits "model" predicts; None: cuBLAS.
    precision : str, optional
        For float32 operands, as in `tf32dtype.matmul`: they are rounded or split, and
        multiplied on this GPU's tensor cores. None: that of the enclosing
        `tf32dtype.matmul_precision` block, else CuPy's own product.
    rounding, scale, special_values
        Of a precision, as in `tf32dtype.matmul`.
    strategy : {"performant", "eager"}
        Of a precision that emulates float32: only where it is known to be faster on
        this device, or always.
    dtype : dtype, optional
        The float32 sums are rounded to it, once, ties to even; float32: not at all. In
        mode "model" float16 is the accumulators' dtype.
    out : cupy.ndarray, optional
        An array of the result's shape to write into. It may overlap the operands.

    Returns
    -------
    cupy.ndarray
        Of shape (..., m, n), without the axis that a vector lacks. In mode "chain" of
        the dtype that the operands promote to, else float32; or of `dtype`. `out` if
        given.

    Raises
    ------
    TypeError
        For operands that are no CuPy arrays, or have no product in this mode or
        precision; for an `out` whose dtype the result is not cast to.
    ValueError
        For shapes that do not fit, unknown names, keywords out of place, and formats
        that the device has no model for.

    See Also
    --------
    matmul_mode : For all products of a block.
    """
    a, b = _operand(a, "a"), _operand(b, "b")
    if mode is None:
        if device is not None or instruction is not None:
            given = (
                f"device={brief(device)}"
                if device
                else f"instruction={brief(instruction)}"
            )
            raise ValueError(
                f"{given} is for a mode: add mode='model', the bits of that device, or"
                " mode='native', this GPU's own tensor cores"
            )
        chosen = current_mode()
    else:
        chosen = choose_mode(mode, device, instruction)
    settings = None
    if precision is not None:
        if mode is not None:
            raise ValueError(
                f"precision={precision!r} is for float32 operands, mode={brief(mode)}"
                " for formats: leave one of them out"
            )
        _check_precise(a, b, precision)
        settings = Settings(precision, rounding, scale, special_values)
    elif mode is None:
        settings = current_settings()
    check_precision(precision, rounding, scale, special_values)
    if strategy not in ("performant", "eager"):
        raise ValueError(f"strategy={brief(strategy)}: known are performant, eager")
    x, y, shape = as_matrices(a, b)
    return product(
        x, y, dtype, out, shape=shape, mode=chosen, settings=settings, strategy=strategy
    )


def _operand(x: Any, name: str) -> Any:
    if isinstance(x, cupy.ndarray):
        return as_own(x)
    raise TypeError(
        f"{name} is a {type(x).__module__}.{type(x).__name__}, not an array on a GPU:"
        " tf32dtype.cuda.asarray(...) moves it there"
    )


def _check_precise(a: Any, b: Any, precision: str) -> None:
    formats = [x.dtype.name for x in (a, b) if is_ours(x.dtype)]
    if formats:
        raise TypeError(
            f"precision={precision!r} rounds float32 operands; {formats[0]} has its own"
            " precision: leave precision= out, or cast to float32,"
            " x.astype(np.float32)"
        )
    common = np.result_type(a.dtype, b.dtype)
    if common != FLOAT32:
        raise TypeError(
            f"precision={precision!r} is for products in float32; {a.dtype} and"
            f" {b.dtype} make {common}: cast them, x.astype(np.float32)"
        )


def as_matrices(a: Any, b: Any) -> tuple[Any, Any, Shape]:
    """Two operands of matmul as matrices, and the shape of their product.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError("a and b are at least vectors, not single numbers")
    x = a[np.newaxis] if a.ndim == 1 else a
    y = b[:, np.newaxis] if b.ndim == 1 else b
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} do not fit: k is {x.shape[-1]} and"
            f" {y.shape[-2]}"
        )
    try:
        batch = _batch(x, y)
    except ValueError:
        raise ValueError(
            f"shapes {a.shape} and {b.shape} do not fit: stacks {x.shape[:-2]} and"
            f" {y.shape[:-2]} do not broadcast"
        ) from None
    rows, columns = (x.shape[-2],) * (a.ndim > 1), (y.shape[-1],) * (b.ndim > 1)
    return x, y, batch + rows + columns


# -- what computes it ------------------------------------------------------------------

#: Writes a product of (s, m, k) and (s, k, n) to (s, m, n).
Writer = Callable[[Any, Any, Any], None]


class _Way(NamedTuple):
    """How arrays of two dtypes are multiplied."""

    a: np.dtype[Any]  #: that the operands are cast to
    b: np.dtype[Any]
    write: Writer
    dtype: np.dtype[Any]  #: of what it writes
    #: whether float32 is not cast to tf32, but taken for it
    reads_tf32: bool = False
    #: whether it takes matrices beside stacks of them
    takes_matrices: bool = False
    #: and of different numbers of them
    broadcasts: bool = False


@lru_cache(maxsize=KEPT)
def _way(
    a: np.dtype[Any],
    b: np.dtype[Any],
    mode: Mode,
    settings: Settings | None,
    wanted: np.dtype[Any] | None,
    strategy: Strategy,
) -> _Way | None:
    """How arrays of two dtypes are multiplied; None: by CuPy's own function.

    Raises
    ------
    TypeError, ValueError
        If the mode does not have their formats.
    """
    common = np.result_type(a, b)
    is_plain = not (is_ours(a) or is_ours(b))
    if settings is not None and is_plain and common == FLOAT32:
        write = _emulation(settings, strategy)
        return _Way(FLOAT32, FLOAT32, write, FLOAT32, takes_matrices=True)
    if mode.name == "model":
        from . import mma_model as models

        x, y = _as_unit_reads(a, "a"), _as_unit_reads(b, "b")
        sums = "float16" if wanted == FLOAT16 else "float32"
        model = find_model(mode.device, mode.instruction, x.name, y.name, sums)
        write = partial(models.product, model=model)
        return _Way(
            x, y, write, np.dtype(sums), reads_tf32=True, takes_matrices=True,
            broadcasts=True,
        )  # fmt: skip
    if mode.name == "native":
        from . import native

        x, y = _as_unit_reads(a, "a"), _as_unit_reads(b, "b")
        product = partial(native.product, instruction=mode.instruction)
        if mode.instruction is None:
            return _Way(x, y, _in_c_order(product), FLOAT32, reads_tf32=True)
        write = _by_views(product)
        return _Way(x, y, write, FLOAT32, reads_tf32=True, takes_matrices=True)
    if not is_ours(common):
        return None
    x, y = (x if is_ours(x) or x == FLOAT16 else common for x in (a, b))
    dtype = common if wanted is None else FLOAT32
    return _Way(x, y, fma.product, dtype, takes_matrices=True, broadcasts=True)


def _as_unit_reads(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """float32 as tf32, of which a tensor core ignores the low 13 bits."""
    if dtype == FLOAT32:
        return TF32
    if is_ours(dtype) or dtype == FLOAT16:
        return dtype
    raise TypeError(
        f"{name} is {dtype}: no tensor core here multiplies that; float16, float32"
        " (as tf32) and this package's formats have one. Cast it first"
    )


def _read(x: Any, dtype: np.dtype[Any], way: _Way) -> Any:
    """An operand as a product reads it."""
    if way.reads_tf32 and x.dtype == FLOAT32:
        return x.view(TF32, ndarray)
    return cast(x, dtype)


def _emulation(settings: Settings, strategy: Strategy) -> Writer:
    """What multiplies float32 numbers in a precision."""
    if settings.device is not None:
        raise ValueError(
            f"a precision with device={settings.device!r} is for the CPU; on a GPU"
            " mode='model' computes products of formats as that device does"
        )
    from . import split_emulation

    options = {"rounding": settings.rounding, "scale": settings.scale}

    def write(a: Any, b: Any, out: Any) -> None:
        (m, n), k = out.shape[-2:], a.shape[-1]
        chosen = split_emulation.choose(settings.precision, strategy, m, n, k)
        keywords: dict[str, Any] = {}
        if chosen == find_mode(settings.precision).short:
            keywords = {**options, "special_values": settings.special_values}
        split_emulation.product(a, b, out, chosen, **keywords)

    return _in_c_order(write)


def _in_c_order(write: Writer) -> Writer:
    """The same, for results whose matrices may lie apart: see `stacks`."""

    def through(a: Any, b: Any, out: Any) -> None:
        if out.flags.c_contiguous:
            write(a, b, out)
            return
        made = cupy.empty(out.shape, out.dtype)
        write(a, b, made)
        backend.current().call("copyto", out, made)

    return through


def _by_views(write: Writer) -> Writer:
    """The same, also of matrices, for what asks for their place and layout alone."""
    of_stacks = _in_c_order(write)

    def through(a: Any, b: Any, out: Any) -> None:
        if out.ndim == 2:
            write(View.of(a), View.of(b), View.of(out))
        else:
            of_stacks(a, b, out)

    return through


def cast(x: Any, dtype: np.dtype[Any]) -> Any:
    """An array of another dtype; the same one if it has it."""
    if x.dtype == dtype:
        return x
    from .._arrays import casts

    return casts.cast(x, dtype)


# -- one product of stacks -------------------------------------------------------------


def product(
    a: Any,
    b: Any,
    dtype: DTypeLike | None = None,
    out: Any = None,
    *,
    shape: Shape | None = None,
    mode: Mode | None = None,
    settings: Settings | None = None,
    strategy: Strategy = "performant",
) -> Any:
    """The product of stacks of matrices: (..., m, k) times (..., k, n).

    Parameters
    ----------
    a, b : cupy.ndarray
        Whose axes before the last two broadcast.
    dtype, out
        As in `matmul`.
    shape : tuple of int, optional
        Of the result; None: (..., m, n).
    mode, settings, strategy : optional
        What computes it; None: the mode that is in force, and no precision.

    Returns
    -------
    cupy.ndarray
        Of the shape; `out` if given.
    """
    mode = mode or current_mode()
    wanted = None if dtype is None else find_dtype(dtype)
    if wanted is not None and not (is_ours(wanted) or wanted.kind in "fc"):
        raise TypeError(f"dtype={dtype!r}: sums in float32 are cast to floats alone")
    way = _way(a.dtype, b.dtype, mode, settings, wanted, strategy)
    matrices = (*_batch(a, b), a.shape[-2], b.shape[-1])
    shape = matrices if shape is None else shape
    made = wanted
    if made is None:
        made = np.result_type(a.dtype, b.dtype) if way is None else way.dtype
    if out is not None:
        out = as_target(out, made, shape)
    own_class = any(type(x) is ndarray and x.dtype == FLOAT32 for x in (a, b))
    if way is None:
        result = _by_cupy(a, b, made)
    else:
        # Straight into out where nothing is to be rounded or might be overwritten.
        direct = (
            out is not None
            and out.dtype == way.dtype == made
            and out.flags.c_contiguous
            and out.shape == shape
            and not any(cupy.may_share_memory(out, x) for x in (a, b))
        )
        if direct:
            result = out.reshape(matrices)
        else:
            result = allocate(matrices, way.dtype, lying(matrices, way.dtype.itemsize))
        _write(way, a, b, result)
        if direct:
            return out
        result = cast(result, made)
    if result.shape != shape:
        result = result.reshape(shape)
    if out is not None:
        copy_into(result, out)
        return out
    return wrap(result, FLOAT32) if own_class and made == FLOAT32 else result


def _write(way: _Way, a: Any, b: Any, result: Any) -> None:
    """A product into a C-contiguous array."""
    x, y = _read(a, way.a, way), _read(b, way.b, way)
    if result.size == 0:
        return
    if result.ndim == 2 and not way.takes_matrices:
        way.write(stack_of_one(x), stack_of_one(y), stack_of_one(result))
        return
    if result.ndim == 2 or (result.ndim == 3 and way.broadcasts):
        way.write(x, y, result)
        return
    batch = result.shape[:-2]
    x = cupy.broadcast_to(x, (*batch, *x.shape[-2:]))
    y = cupy.broadcast_to(y, (*batch, *y.shape[-2:]))
    for one, two, three in stacks(x, y, result):
        way.write(one, two, three)


def _batch(a: Any, b: Any) -> Shape:
    """The axes of a product before the last two."""
    if a.ndim == b.ndim == 2:
        return ()
    return np.broadcast_shapes(a.shape[:-2], b.shape[:-2])


def _by_cupy(a: Any, b: Any, dtype: np.dtype[Any]) -> Any:
    """Of dtypes that are NumPy's own."""
    if is_ours(dtype):  # float32 sums, rounded once
        return cast(_by_cupy(a, b, np.result_type(a.dtype, b.dtype)), dtype)
    x, y = plain(cast(a, dtype)), plain(cast(b, dtype))
    return backend.current().call("matmul", x, y)


def as_target(out: Any, made: np.dtype[Any], shape: Shape) -> Any:
    """What a result is written into, if it can be."""
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out is a CuPy array, not {type(out).__name__}")
    try:
        fits = np.broadcast_shapes(out.shape, shape) == out.shape
    except ValueError:
        fits = False
    if not fits or out.shape[out.ndim - len(shape) :] != shape:
        raise ValueError(f"out has shape {out.shape}, the product {shape}")
    if not np.can_cast(made, out.dtype, "same_kind"):
        raise TypeError(
            f"cannot cast the product from {made} to {out.dtype}, the dtype of out, by"
            ' casting "same_kind"'
        )
    return out


def copy_into(x: Any, out: Any) -> None:
    """An array, which broadcasts, into another of any strides and dtype."""
    if x.dtype == out.dtype:
        x = cupy.broadcast_to(plain(x), out.shape)
        backend.current().call("copyto", plain(out), x)
        return
    from .._arrays import casts

    casts.cast_into(like(cupy.broadcast_to(plain(x), out.shape), x.dtype), out)


# -- NumPy's functions -----------------------------------------------------------------


def dispatch(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What NumPy's function of a name computes of GPU arrays, in the mode in force.

    Parameters
    ----------
    name : str
        "matmul", "dot", "inner", "vdot", "vecdot", "matvec", "vecmat", "tensordot",
        "einsum" or "multi_dot"; "linalg." before it does not matter.
    args, kwargs
        As NumPy's function takes them.

    Raises
    ------
    TypeError, ValueError
        As NumPy's function does; for keywords that have no meaning here.
    """
    from . import numpy_products

    return numpy_products.FUNCTIONS[name.removeprefix("linalg.")](*args, **kwargs)
