"""Products as a device's tensor core computes them."""

from __future__ import annotations

import math
import operator
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NotRequired,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .. import _core
from .._base.matrices import as_matrices, as_out, check_k, stack_of
from .._base.wording import brief, one_of
from .._formats.quantize import Tf32Rounding, quantize
from .._formats.table import find_dtype, own_array
from .._formats.typed import DTypeOf, Out, Terms
from . import block_products
from .block_scaled import BlockInstruction, BlockScaled
from .device import DeviceName
from .look_up import find_device, find_model
from .models import POINTS, Accumulator, Instruction, Model

if TYPE_CHECKING:
    from ..blocks import BlockArray, TileArray

    Operand: TypeAlias = ArrayLike | BlockArray | TileArray

Array = NDArray[Any]
Float = TypeVar("Float", np.float16, np.float32, np.float64)
#: Not np.float64 itself: mypy would then take every ``x.astype(...)`` for float64.
_Double = TypeVar("_Double", bound=np.float64)

#: The most axes of an operand, so that stacks of operands broadcast.
_AXES = 32
_TYPES = dict(zip(_core.names, _core.scalar_types, strict=True))
#: Integers, which integer units multiply exactly; ml_dtypes has those of 4 bits.
_INTEGERS = ("int8", "uint8", "int4", "uint4")


class _Way(TypedDict):
    device: DeviceName
    instruction: NotRequired[Instruction | BlockInstruction | None]
    rounding: NotRequired[Tf32Rounding | None]
    promote_every: NotRequired[int | None]
    terms: NotRequired[Terms | None]


@overload
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = ...,
    *,
    accumulator: DTypeOf[Float] | Accumulator | None = ...,
    out: Out | tuple[Out],
    **way: Unpack[_Way],
) -> Out: ...
@overload
def matmul(
    a: NDArray[_Double],
    b: NDArray[_Double],
    c: ArrayLike | None = ...,
    *,
    accumulator: Literal["float64"] | None = ...,
    out: None = ...,
    **way: Unpack[_Way],
) -> NDArray[np.float64]: ...
@overload
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = ...,
    *,
    accumulator: Literal["float32"] | None = ...,
    out: None = ...,
    **way: Unpack[_Way],
) -> NDArray[np.float32]: ...
@overload
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = ...,
    *,
    accumulator: Literal["float64"],
    out: None = ...,
    **way: Unpack[_Way],
) -> NDArray[np.float64]: ...
@overload
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = ...,
    *,
    accumulator: Literal["float16"],
    out: None = ...,
    **way: Unpack[_Way],
) -> NDArray[np.float16]: ...
@overload
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = ...,
    *,
    accumulator: DTypeOf[Float],
    out: None = ...,
    **way: Unpack[_Way],
) -> NDArray[Float]: ...
def matmul(
    a: Operand,
    b: Operand,
    c: ArrayLike | None = None,
    *,
    device: DeviceName,
    instruction: Instruction | BlockInstruction | None = None,
    accumulator: DTypeLike | None = None,
    rounding: Tf32Rounding | None = None,
    promote_every: int | None = None,
    terms: Terms | None = None,
    out: Array | tuple[Array] | None = None,
) -> Any:
    """Multiply matrices as the matrix unit of a device does: a @ b + c.

    For the result of PyTorch's and cuBLAS's TF32 products, which round float32 operands
    before the unit, write ``td.matmul(a, b, precision="tf32", device=...)``.

    Parameters
    ----------
    a, b : array_like
        Operands of the shapes that `numpy.matmul` takes: (..., m, k) and (..., k, n).
        Their other axes broadcast. A vector of length k is a row as `a`, and a column
        as `b`. Their dtypes choose the format: float16, float64, `tf32`, `bfloat16`, or
        one of this package's formats of 8, 6 and 4 bits. float32 means tf32 unless the
        device multiplies float32 numbers themselves.
        Or both are `tf32dtype.blocks.BlockArray` or `tf32dtype.blocks.TileArray` with
        blocks of one size: those of `a` along the last axis, those of `b` along the
        axis before the last. See the notes.
    c : array_like, optional
        The initial values of the accumulators: an array of the accumulator's dtype that
        broadcasts to the result's shape, or a number. None means +0.
    device : str
        A name of a device, as `devices` has them. NVIDIA: "V100", "T4", "A100", "L40S",
        "H100", "B200" or "RTX Blackwell". AMD: "MI100", "MI250X" or "MI300X". CPUs:
        "AVX512_BF16", "AMX" or "Arm BF16". Aliases work, too, and case is ignored.
    instruction : str, optional
        An instruction, as `devices` has them: "mma.sync", "wgmma", "mfma" and so on.
        None means the instruction that the device's GEMM libraries use. Block-scaled
        instructions have a kind: "tcgen05.mxf8f6f4", "mma.sync.mxf4nvf4".
    accumulator : dtype, optional
        The dtype of the accumulators and of the result: float32, float16 or float64.
        None means float64 for float64 operands, else float32.
    rounding : {"ties_to_even", "ties_to_away", "toward_zero"}, optional
        How float32 operands become tf32. cuBLAS uses "ties_to_away". None passes them
        raw: the unit ignores the low 13 bits.
    promote_every : int, optional
        The k after which the accumulators are added to a second set of accumulators in
        float32, and start from zero again. The second set begins with `c`. The value
        must be a multiple of the instruction's depth. DeepGEMM uses 128 for FP8. Only
        for float32 accumulators.
    terms : {1, 3, 4}, optional
        The number of products that are added for blocks with residuals. 1: only high
        times high. 3: all except low times low. 4: all, which is the default.
    out : ndarray, optional
        An array of the result's shape and dtype to write into. It may overlap the
        operands.

    Returns
    -------
    ndarray or scalar
        The result of shape (..., m, n), without the axis that a vector lacks.

    Raises
    ------
    TypeError
        For operands of another dtype, and for `c` or `out` whose dtype is not the
        accumulator's. For 8-bit and 4-bit integers, use
        ``np.matmul(a, b, dtype=np.int32)``: integer units return the same.
    ValueError
        For shapes that do not fit, and for an unknown device. For a pair of formats
        that has no model on the device; the message lists those that have. For a
        keyword that does not apply.

    See Also
    --------
    explain : Explain how one element is computed.
    tf32dtype.matmul_precision : Give NumPy's float32 products a device's bits.

    Notes
    -----
    k ascends in groups of the model's depth. Each group is added exactly, truncated and
    rounded once, and its result starts the next group. The last instruction is filled
    up with zeros. A GEMM library that splits k among warps adds in another order. NaN
    results are 0x7FFFFFFF, in float16 0x7FFF. In float64 the bits of a NaN are not
    modeled; they are 0x7FF8000000000000. Overflow and invalid operations are not
    reported, since the unit does not report them. See :doc:`/benchmarks/verification`
    for how each model was verified, and for contested points.

    If one of the device's block-scaled instructions takes the elements and scales of
    the blocks, it multiplies them: the scales take part in the alignment. The scales of
    the tensors, if any, multiply the result afterwards, including `c`:
    ``result * (scale_a * scale_b)``, both products rounded to nearest.

    Other blocks of FP8, FP6 or FP4 elements are multiplied as in a kernel that uses
    ordinary instructions. For each block of k, and for each term in the order
    high * high, high * low, low * high, low * low, the sum of the block starts from
    zero in the tensor core. Then ``acc = fma(scale_a * scale_b, sum, acc)`` follows in
    float32, to nearest; the product of the scales is rounded first. `acc` begins with
    `c`. The columns of a's tiles and the rows of b's tiles are such blocks: DeepGEMM
    multiplies 1 x 128 tiles by 128 x 128 tiles on an H100 this way.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> x = np.array([[1, 2.0**-24, -1]], np.float32)
    >>> y = np.ones((3, 1), np.float32)
    >>> td.tensor_core.matmul(x, y, device="A100")
    array([[5.9604645e-08]], dtype=float32)
    >>> td.tensor_core.matmul(x, y, device="V100")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: V100 mma.sync cannot multiply tf32 x tf32 -> float32; ...
    """
    if block_products.is_blocks(a) or block_products.is_blocks(b):
        for name, value in (("rounding", rounding), ("promote_every", promote_every)):
            if value is not None:
                raise ValueError(
                    f"{name} must be None for arrays of blocks; got {brief(value)}"
                )
        found = block_products.resolve(a, b, device, instruction, accumulator, terms)
        return _of_blocks(found, c, out)
    if terms is not None:
        raise ValueError(
            "terms must be None unless a and b are arrays of blocks; got"
            f" {brief(terms)}"
        )
    model, x, y, promote = resolve(
        a, b, device, instruction, accumulator, rounding, promote_every
    )
    result_type = np.dtype(model.accumulator)
    left, right, batch, shape = as_matrices(x, y)
    m, k, n = left.shape[-2], left.shape[-1], right.shape[-1]
    # Chains of float64 numbers always start from the contents of the result array.
    continues = c is not None or model.accumulator == "float64"
    start = as_accumulators(c, model, shape) if continues else None
    target = _as_target(out, result_type, shape)

    result: Array = np.empty((*batch, m, n), result_type)
    if start is not None:
        result.reshape(shape)[...] = start
    stack = batch or (1,)
    operands = (
        np.broadcast_to(left, (*stack, m, k)),
        np.broadcast_to(right, (*stack, k, n)),
        result.reshape(*stack, m, n),
    )
    if model.accumulator == "float64":
        _core.fma_matmul(model, *operands)
    else:
        spec = _core.MatmulSpec(
            "float32", model=model, promote=promote, continues=continues,
            silent=True,
        )  # fmt: skip
        _core.mma_matmul(spec, *operands)
    if target is not None:
        target[...] = result.reshape(shape)
        return target
    return result.reshape(shape)[()]


def _of_blocks(request: block_products.Request, c: Any, out: Any) -> Any:
    """Return the product of arrays of blocks."""
    x, y, model, _ = request
    *batch_a, m, k = x.shape
    *batch_b, n, other = y.shape
    shapes = x.shape, (*batch_b, other, n)
    check_k(k, other, *shapes)
    batch = stack_of(tuple(batch_a), tuple(batch_b), *shapes)
    shape = batch + (m,) * (not x.is_vector) + (n,) * (not y.is_vector)
    start = None if c is None else as_accumulators(c, model, shape)
    target = _as_target(out, np.dtype(np.float32), shape)
    result = np.zeros((*batch, m, n), np.float32)
    if start is not None:
        result.reshape(shape)[...] = start
    block_products.add_product(request, result)
    if target is not None:
        target[...] = result.reshape(shape)
        return target
    return result.reshape(shape)[()]


# -- arguments -------------------------------------------------------------------------


def resolve(
    a: Any,
    b: Any,
    device: str,
    instruction: str | None,
    accumulator: DTypeLike | None,
    rounding: Tf32Rounding | None,
    promote_every: int | None,
) -> tuple[Model, Array, Array, int]:
    """Resolve the arguments of `matmul`: model, operands, and k between promotions.

    Raises
    ------
    TypeError, ValueError
        As `matmul` does.
    """
    x, y = as_operand(a, "a"), as_operand(b, "b")
    if (x.dtype == np.float64) != (y.dtype == np.float64):
        swapped = y.dtype == np.float64
        one, other, dtype = ("b", "a", x.dtype) if swapped else ("a", "b", y.dtype)
        raise TypeError(
            f"float64 must be multiplied with float64; got {one} of float64 and {other}"
            f" of {dtype}. Use {one}.astype({other}.dtype)"
        )
    left, right = (format_name(z, device) for z in (x, y))
    chosen = accumulator_name(
        accumulator, "float64" if left == "float64" else "float32"
    )
    model = find_model(device, instruction, left, right, chosen)
    if rounding is not None:
        if not isinstance(rounding, str) or rounding not in get_args(Tf32Rounding):
            raise ValueError(
                one_of("rounding", rounding, (*get_args(Tf32Rounding), None))
            )
        if "tf32" not in (left, right) or np.float32 not in (x.dtype, y.dtype):
            raise ValueError(
                "rounding must be None unless float32 operands become tf32; got"
                f" {brief(rounding)} for {x.dtype} x {y.dtype}"
            )
    promote = _promotion(promote_every, model)
    if model.a == "tf32":
        x, y = _as_tf32(x, rounding), _as_tf32(y, rounding)
    return model, x, y, promote


def as_operand(x: Any, name: str) -> Array:
    """Return an array of a dtype that has a format, in this machine's byte order."""
    if block_products.is_blocks(x):
        raise TypeError(
            f"{name} must not be an array of blocks; only tf32dtype.tensor_core.matmul"
            " takes arrays of blocks"
        )
    array: Array = plain_array(x, name)
    dtype = array.dtype
    if dtype.name in _TYPES:
        return array
    if dtype in (np.float16, np.float32, np.float64):
        return array
    if dtype.name in _INTEGERS:
        raise TypeError(
            f"{name} must be floating-point; got {dtype}. Integer units are exact: use"
            " np.matmul(a, b, dtype=np.int32) with two integer arrays"
        )
    raise TypeError(
        f"{name} must be float16, float32, float64 or one of td.formats; got {dtype}"
        + f". Use {name}.astype(np.float32)" * (dtype.kind not in "cOSUTMm")
    )


def format_name(x: Array, device: object) -> str:
    """Return the format that an operand's dtype stands for on a device."""
    if x.dtype != np.float32:
        return x.dtype.name
    has = {model.a for model in find_device(device).models}
    return "float32" if "float32" in has else "tf32"


def as_accumulators(
    c: Any, model: Model | BlockScaled, shape: tuple[int, ...]
) -> Array:
    """Return the initial values of the accumulators for a result of the shape."""
    dtype = np.dtype(model.accumulator)
    if c is None:
        return np.zeros(shape, dtype)
    if type(c) in (bool, int, float):
        with np.errstate(over="ignore"):
            try:
                start = np.asarray(c).astype(np.float64).astype(dtype)
            except (OverflowError, TypeError):
                raise ValueError(
                    f"c must be within the range of {dtype}; got an integer outside it"
                ) from None
        if math.isfinite(c) and not np.isfinite(start):
            raise ValueError(f"c must be within the range of {dtype}; got {c}")
    else:
        start = plain_array(c, "c")
    if start.dtype != dtype:
        raise TypeError(
            f"c must have the dtype of the accumulators, {dtype}; got {start.dtype}."
            f" Use np.asarray(c, np.{dtype})"
        )
    try:
        return np.broadcast_to(start, shape)
    except ValueError:
        raise ValueError(
            f"c must broadcast to shape {shape}; got shape {start.shape}"
        ) from None


def plain_array(x: Any, name: str) -> Array:
    """Return an array in this machine's byte order, without a mask."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array; use {name}.filled(0)")
    array = own_array(x)
    if array.ndim > _AXES:
        raise ValueError(f"{name} must have at most {_AXES} axes; got {array.ndim}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _as_tf32(x: Array, rounding: Tf32Rounding | None) -> Array:
    """float32 as tf32: rounded, or as the unit reads it, without the low 13 bits."""
    if x.dtype != np.float32:
        return x
    if rounding is None and not POINTS["low_bits_nan"].value:
        return x.view(_TYPES["tf32"])
    with np.errstate(all="ignore"):
        return quantize(x, _TYPES["tf32"], rounding=rounding or "toward_zero")


def accumulator_name(dtype: DTypeLike | None, default: str) -> str:
    if dtype is None:
        return default
    try:
        found = find_dtype(dtype).newbyteorder("=")
    except TypeError:
        found = None
    if found not in (np.float32, np.float16, np.float64):
        raise ValueError(
            one_of("accumulator", dtype, ("float32", "float16", "float64"))
        )
    return found.name


def _promotion(promote_every: int | None, model: Model) -> int:
    if promote_every is None:
        return 0
    try:
        every = operator.index(promote_every)
    except TypeError:
        raise TypeError(
            f"promote_every must be an integer; got {brief(promote_every)}"
        ) from None
    depth = model.instruction_depth
    if every < 1 or every % depth:
        raise ValueError(
            f"promote_every must be a positive multiple of {depth} (the K of"
            f" {model.name}); got {every}"
        )
    if model.accumulator != "float32":
        raise ValueError(
            f"promote_every must be None unless the accumulator is float32; got {every}"
        )
    return min(every, 1 << 30)  # more than any k


def _as_target(out: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array | None:
    if out is None:
        return None
    target = as_out(out, shape)
    if target.dtype.newbyteorder("=") != dtype:
        raise TypeError(
            f"out must have the dtype of the accumulators, {dtype}; got {target.dtype}"
        )
    return target
