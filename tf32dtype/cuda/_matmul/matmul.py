"""Multiply matrices on a GPU, by the algorithm of the current mode for the dtypes.

No floating-point errors are reported: a GPU has no flags for them.
"""

from __future__ import annotations

from typing import Any, Unpack

import cupy
import numpy as np
from numpy.typing import DTypeLike

from ..._base.matrices import (
    as_matrices,
    check_cast,
    check_shape,
    unwrapped,
)
from ..._base.options import refuse_unknown, shows
from ..._base.wording import brief, one_of
from ..._exact.rounding import Target, number_dtype, result_dtype
from ..._formats.quantize import Rounding
from ..._formats.table import find_dtype
from ..._integer_products.products import result_dtypes
from ..._integer_products.schemes import Scheme
from ..._matmul.matmul import check_operands
from ..._matmul.precisions import (
    EXACT,
    PrecisionName,
    RoundingOptions,
    Settings,
    whole_name,
)
from ..._matmul.precisions import check as check_precision
from ..._programs.context import current_settings
from ...tensor_core.device import DeviceName
from ...tensor_core.models import Instruction
from .._arrays import casts
from .._arrays.ndarray import allocate, as_own, ndarray, wrap
from .._runtime import backend
from .._runtime.backend import Shape
from .._runtime.storage import plain
from . import wgmma
from .crossover import Strategy
from .mode import Mode, ModeName, choose_mode, current_mode
from .product_plan import applies_exactly, plan_product
from .stacks import like, places
from .tile_options import FLOAT32, Matrices

# -- arguments -------------------------------------------------------------------------


@shows(RoundingOptions, Settings)
def matmul(
    a: Any,
    b: Any,
    *,
    mode: ModeName | None = None,
    device: DeviceName | None = None,
    instruction: Instruction | None = None,
    precision: PrecisionName | None = None,
    strategy: Strategy = "performant",
    dtype: DTypeLike | None = None,
    out: Any = None,
    **options: Unpack[RoundingOptions],
) -> Any:
    """Multiply matrices on a GPU.

    Parameters
    ----------
    a, b : cupy.ndarray
        Arrays of this package's class, or plain CuPy arrays. Their shapes are those
        that `numpy.matmul` accepts: (..., m, k) and (..., k, n), whose other axes
        broadcast. A vector of length k is a row as `a`, or a column as `b`.
    mode : {"chain", "model", "native"}, optional
        How to multiply formats. "chain" gives the bits of the CPU. "model" gives those
        of the tensor cores of `device`, as `tf32dtype.tensor_core.matmul` does.
        "native" uses this GPU's tensor cores. The default is the mode of the enclosing
        `matmul_mode` scope, or "chain" outside any scope.
    device, instruction : str, optional
        For mode "model", as in `tf32dtype.tensor_core.matmul`. For mode "native",
        `instruction` may be "mma.sync" or, on compute capability 9.0, "wgmma". These
        are kernels whose bits mode "model" predicts. The default is cuBLAS.
    precision : str, optional
        How to multiply float32 operands, as in `tf32dtype.matmul`. They are rounded or
        split, and multiplied on this GPU's tensor cores. "exact" rounds the exact sums
        once, for operands of any floating-point dtype. "crt2" to "crt20" multiply
        integers on units of compute capability 9.0, for float32 and float64. The
        default is the precision of the enclosing `tf32dtype.matmul_precision` scope, or
        CuPy's own product outside any scope.
    strategy : {"performant", "eager"}
        When to emulate products of float32, or of float64 for "exact": "performant"
        (default) if this is known to be faster on this device, "eager" always.
    dtype : dtype, optional
        Dtype to which the float32 sums are rounded once, ties to even. float32 sums are
        not rounded. In mode "model", float16 is the dtype of the accumulators.
    out : cupy.ndarray, optional
        An array of the result's shape to write into. It may overlap the operands.
    rounding, scale, special_values
        Options of the precision, as in `tf32dtype.matmul`.

    Returns
    -------
    cupy.ndarray
        Array of shape (..., m, n), without the axis that a vector lacks; `out` if
        given. Its dtype is `dtype`. By default it is the dtype that the operands
        promote to in mode "chain", and float32 in the other modes.

    Raises
    ------
    TypeError
        If an operand is not a CuPy array, if the mode or precision does not support the
        dtypes, or if the result cannot be cast to the dtype of `out`.
    ValueError
        If shapes do not match, a name is unknown, arguments exclude each other, or the
        device has no model for the formats.

    See Also
    --------
    matmul_mode : Set the mode of all products in a scope.
    tf32dtype.matmul : Multiply arrays on the CPU.
    tf32dtype.tensor_core.matmul : Model a device's tensor cores on the CPU.

    Examples
    --------
    >>> import tf32dtype as td, tf32dtype.cuda as tfc
    >>> x = tfc.asarray([[1, 2], [3, 4]], td.bfloat16)
    >>> tfc.matmul(x, x, mode="model", device="A100")
    array([[ 7., 10.],
           [15., 22.]], dtype=float32)
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
                f"{given} must be given with mode='model' (the bits of that device) or"
                " mode='native' (the tensor cores of this GPU)"
            )
        chosen = current_mode()
    else:
        chosen = choose_mode(mode, device, instruction)
    refuse_unknown("matmul", options, RoundingOptions)
    asked, settings = Settings(precision, **options), None
    if precision is not None:
        if mode is not None:
            raise ValueError(
                "precision (for float32) and mode (for formats) must not both be given;"
                f" got precision={precision!r}, mode={brief(mode)}"
            )
        settings = asked
        if whole_name(precision) == EXACT:
            named = None if dtype is None else find_dtype(dtype)
            dtype = result_dtype(a.dtype, b.dtype, named, out)
            a, b = (x if x.dtype.kind == "c" else _as_numbers(x) for x in (a, b))
        elif (scheme := Scheme.of(precision)) is not None:
            result_dtypes(scheme, a.dtype, b.dtype, None)
        else:
            check_operands(a.dtype, b.dtype, precision, {})
    elif mode is None:
        settings = current_settings()
    check_precision(*asked)
    if strategy not in ("performant", "eager"):
        raise ValueError(one_of("strategy", strategy, ("performant", "eager")))
    x, y, _, shape = as_matrices(a, b)
    return product(
        x, y, dtype, out, shape=shape, mode=chosen, settings=settings, strategy=strategy
    )


def _as_numbers(x: Any) -> Any:
    """Return real numbers as float32 or float64."""
    return casts.cast(x, number_dtype(x.dtype), copy=False)


def _operand(x: Any, name: str) -> Any:
    if isinstance(x, cupy.ndarray):
        return as_own(x)
    raise TypeError(
        f"{name} must be an array on a GPU; got"
        f" {type(x).__module__}.{type(x).__name__}. Use tf32dtype.cuda.asarray"
    )


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
    """Multiply stacks of matrices: (..., m, k) times (..., k, n).

    Parameters
    ----------
    a, b : cupy.ndarray
        Stacks of matrices, whose axes before the last two broadcast.
    dtype, out
        As in `matmul`.
    shape : tuple of int, optional
        Shape of the result (default: (..., m, n)).
    mode, settings, strategy : optional
        How to multiply (default: the current mode, without a precision).

    Returns
    -------
    cupy.ndarray
        Array of this shape; `out` if given.
    """
    wanted = None if dtype is None else find_dtype(dtype)
    if applies_exactly(settings, a.dtype, b.dtype):
        wanted = result_dtype(a.dtype, b.dtype, wanted, out)
        if "c" in (a.dtype.kind, b.dtype.kind):
            return _complex_product(a, b, wanted, out, shape, settings, strategy)
    machine = backend.current()
    device = machine.architecture(), machine.processors(), machine.name(), wgmma.ENABLED
    plan = plan_product(
        Matrices.of(a), Matrices.of(b), shape, wanted, mode or current_mode(), settings,
        strategy, device,
    )  # fmt: skip
    if out is not None:
        out = as_target(out, plan.dtype, plan.shape)
    x = a if plan.cast_a is None else casts.cast(a, plan.cast_a)
    y = b if plan.cast_b is None else casts.cast(b, plan.cast_b)
    if plan.write is None:
        result = machine.call("matmul", plain(x), plain(y))
        result = result if result.shape == plan.shape else result.reshape(plan.shape)
    else:
        # Write to `out` directly if nothing is rounded and no operand is overwritten.
        # Only addresses tell whether arrays overlap.
        direct = (
            out is not None
            and out.dtype == plan.sums == plan.dtype
            and out.flags.c_contiguous
            and out.shape == plan.shape
            and not any(cupy.may_share_memory(out, i) for i in (a, b))
        )
        result = out if direct else allocate(plan.shape, plan.sums, plan.strides)
        x, y, z = plan.a.view(x.data), plan.b.view(y.data), plan.c.view(result.data)
        for of_x, of_y, of_z in places(plan.others, 3):
            plan.write(x.at(of_x), y.at(of_y), z.at(of_z))
        if direct:
            return out
    result = cast(result, plan.dtype, plan.rounding)
    if out is not None:
        copy_into(result, out)
        return out
    if plan.dtype == FLOAT32 and any(
        type(i) is ndarray and i.dtype == FLOAT32 for i in (a, b)
    ):
        return wrap(result, FLOAT32)
    return result


def _complex_product(
    a: Any,
    b: Any,
    dtype: np.dtype[Any],
    out: Any,
    shape: Shape | None,
    settings: Settings,
    strategy: Strategy,
) -> Any:
    """Compute the real and the imaginary parts of a correctly rounded product."""
    part = Target.of(dtype, settings.rounding).work
    call, common = backend.current().call, np.result_type(a.dtype, b.dtype)
    a, b = (x if x.dtype == common else casts.cast(x, common) for x in (a, b))
    # The real part is [ar, -ai] @ [br; bi], and the imaginary part [ar, ai] @ [bi; br].
    real, imag = (
        product(
            call("concatenate", (a.real, sign), axis=-1),
            call("concatenate", rows, axis=-2),
            part, shape=shape, settings=settings, strategy=strategy,
        )
        for sign, rows in (
            (call("negative", a.imag), (b.real, b.imag)),
            (a.imag, (b.imag, b.real)),
        )
    )  # fmt: skip
    result = casts.empty(real.shape, dtype)
    call("copyto", result.real, real)
    call("copyto", result.imag, imag)
    if out is None:
        return result
    out = as_target(out, dtype, result.shape)
    copy_into(result, out)
    return out


def cast(x: Any, dtype: np.dtype[Any], rounding: Rounding = "ties_to_even") -> Any:
    """Cast an array to a dtype; return the same array if it has the dtype."""
    return x if x.dtype == dtype else casts.cast(x, dtype, rounding=rounding)


def as_target(out: Any, made: np.dtype[Any], shape: Shape) -> Any:
    """Return `out` as an array; raise an error if a result cannot be written to it."""
    out = unwrapped(out)
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out must be a CuPy array; got {type(out).__name__}")
    try:
        fits = np.broadcast_shapes(out.shape, shape) == out.shape
    except ValueError:
        fits = False
    check_shape(out.shape[out.ndim - len(shape) :] if fits else out.shape, shape)
    check_cast(made, out.dtype)
    return out


def copy_into(x: Any, out: Any) -> None:
    """Broadcast an array, and copy it to an array of any strides and dtype."""
    if x.dtype == out.dtype:
        x = cupy.broadcast_to(plain(x), out.shape)
        backend.current().call("copyto", plain(out), x)
        return
    casts.cast_into(like(cupy.broadcast_to(plain(x), out.shape), x.dtype), out)
