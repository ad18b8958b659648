"""Round tensors to block formats.

Gradients pass the rounding unchanged (straight-through estimator): Bengio, Leonard and
Courville, arXiv:1308.3432.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Unpack

import torch
from torch import Tensor

from ... import blocks
from ..._base.wording import brief
from ..._formats.aliases import BlockFormatNamed
from ..._formats.table import find_dtype
from ...blocks.quantization import Options
from .tensors import from_numpy, to_numpy

HALVES = (torch.bfloat16, torch.float16)
_FLOATS = (torch.float32, torch.float64, *HALVES)
_PIECE = 1 << 19  # elements per thread


def quantize(
    x: Tensor,
    format: BlockFormatNamed,
    axis: int = -1,
    **options: Unpack[Options],
) -> blocks.BlockArray:
    """Quantize a tensor to a packed array of blocks.

    Parameters
    ----------
    x : Tensor
        float32, float64, bfloat16 or float16, on the CPU, of any shape and layout.
    format, axis, **options
        As in `tf32dtype.blocks.quantize`.

    Returns
    -------
    BlockArray
        The array of blocks, with the shape of `x` and without a gradient. `dequantize`
        converts it to a tensor.

    Raises
    ------
    TypeError, ValueError
        As for `tf32dtype.blocks.quantize`. A TypeError also if `x` is not a tensor of
        one of these dtypes, and a ValueError if it is not on the CPU.

    See Also
    --------
    dequantize : Convert an array of blocks to a tensor.
    fake_quantize : Round a tensor, and let gradients pass.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import quantize
    >>> quantize(torch.ones(32), "mxfp4")
    BlockArray('mxfp4', shape=(32,), axis=0, scale_format='float8_e8m0fnu', 4.25 bits)
    """
    return blocks.quantize(_array(x), format, axis, **options)


def dequantize(
    x: blocks.BlockArray | blocks.TileArray, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Convert an array of blocks to a tensor; each value is rounded once.

    Parameters
    ----------
    x : BlockArray or TileArray
        An array of blocks, as `quantize` returns it, or an array of tiles.
    dtype : torch.dtype
        The dtype of the tensor: float32 (default), float64, bfloat16 or float16.

    Returns
    -------
    Tensor
        A tensor on the CPU, with the shape of `x`.

    Raises
    ------
    TypeError
        For another dtype.

    See Also
    --------
    quantize : Quantize a tensor to an array of blocks.
    tf32dtype.blocks.BlockArray.dequantize : Return the values as an array.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import dequantize, quantize
    >>> x = torch.tensor([1, 2.2, 3.4, 100])
    >>> dequantize(quantize(x, "mxfp4")).tolist()
    [0.0, 0.0, 0.0, 96.0]
    """
    if dtype not in _FLOATS:
        raise TypeError(f"dtype must be one of {_names(_FLOATS)}; got {dtype}")
    return from_numpy(x.dequantize(find_dtype(_name(dtype))))


def fake_quantize(
    x: Tensor,
    format: BlockFormatNamed,
    axis: int = -1,
    **options: Unpack[Options],
) -> Tensor:
    """Round a tensor to the values of a block format; gradients pass unchanged.

    Parameters
    ----------
    x : Tensor
        float32, float64, bfloat16 or float16, on the CPU, of any shape and layout.
    format, axis, **options
        As in `tf32dtype.blocks.round`.

    Returns
    -------
    Tensor
        A tensor with the shape and dtype of `x`. It has the float32 values of
        `tf32dtype.blocks.round`. If the dtype is narrower, they are rounded again, and
        values out of range become the largest finite number of the dtype.

    Raises
    ------
    TypeError, ValueError
        As for `tf32dtype.blocks.round`. A TypeError also if `x` is not a tensor of one
        of these dtypes, and a ValueError if it is not on the CPU.

    See Also
    --------
    tf32dtype.blocks.round : Round an array to the values of a block format.
    convert : Make the layers of a model round their weights.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop.torch import fake_quantize
    >>> x = torch.tensor([1, 2.2, 3.4, 100], requires_grad=True)
    >>> y = fake_quantize(x, "mxfp4")
    >>> y.sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([0.0, 0.0, 0.0, 96.0], [1.0, 1.0, 1.0, 1.0])
    """
    return through(x, partial(round_tensor, format=format, axis=axis, options=options))


# -- how -----------------------------------------------------------------------------


class _Straight(torch.autograd.Function):
    """A function whose derivative is taken to be 1."""

    @staticmethod
    def forward(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return function(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        return slope, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return tangent


def through(x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
    apply: Any = _Straight.apply
    if torch.compiler.is_compiling():  # it would replace NumPy calls by torch
        outside: Any = torch.compiler.disable
        apply = outside(apply)
    result: Tensor = apply(x, function)
    return result


def round_tensor(
    x: Tensor, format: BlockFormatNamed, axis: int, options: Options
) -> Tensor:
    """Return the rounded values as a new tensor with the dtype of `x`."""
    # torch converts to float32 exactly, and with all its threads.
    array = _array(x.float() if x.dtype in HALVES else x)
    out = torch.empty(x.shape, dtype=torch.float32)
    blocks.round(array, format, axis, out=out.numpy(), **options)
    return narrowed(out, torch.empty_like(out, dtype=x.dtype))


def round_rows(x: Tensor, format: BlockFormatNamed, options: Options) -> Tensor:
    """Round a tensor along the last axis, where rows are independent.

    The tensor is rounded in pieces. A new temporary array as large as the weight in
    each step would cause page faults, which take longer than the rounding.
    """
    x = x.detach()
    rows = x.reshape(-1, x.shape[-1])
    step = max(1, _PIECE * torch.get_num_threads() // x.shape[-1])
    wide = torch.empty(rows[:step].shape, dtype=torch.float32)
    result = torch.empty_like(rows)
    for start in range(0, len(rows), step):
        piece = rows[start : start + step]
        numbers = wide[: len(piece)].copy_(piece)
        blocks.round(numbers.numpy(), format, out=numbers.numpy(), **options)
        narrowed(numbers, result[start : start + step])
    return result.reshape(x.shape)


def narrowed(numbers: Tensor, out: Tensor) -> Tensor:
    """Write float32 values to `out`, and limit them to its finite range.

    Rounding may exceed this range. If `out` has the same dtype, return the values
    unchanged.
    """
    if out.dtype == numbers.dtype:
        return numbers
    out.copy_(numbers)
    if out.dtype in HALVES:
        most = torch.finfo(out.dtype).max
        out.clamp_(-most, most)
    return out


def checked(x: Tensor) -> Tensor:
    """Return the tensor; raise an error if it cannot be rounded."""
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a torch.Tensor; got {brief(x)}")
    if x.dtype not in _FLOATS:
        raise TypeError(f"dtype of x must be one of {_names(_FLOATS)}; got {x.dtype}")
    if x.device.type != "cpu":
        raise ValueError(
            f"x must be on the CPU; got a tensor on {x.device}. Use x.cpu(), or"
            " model.cpu()"
        )
    return x


def _array(x: Tensor) -> Any:
    """Return the memory of a tensor as an array, also if it requires a gradient."""
    return to_numpy(checked(x).detach())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _names(dtypes: Iterable[torch.dtype]) -> str:
    return ", ".join(map(_name, dtypes))
