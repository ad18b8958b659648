"""Tensors rounded to block formats.

Gradients pass straight through: Bengio, Leonard and Courville, arXiv:1308.3432.
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
_PIECE = 1 << 19  # numbers for each thread


def quantize(
    x: Tensor,
    format: BlockFormatNamed,
    axis: int = -1,
    **options: Unpack[Options],
) -> blocks.BlockArray:
    """A tensor's numbers in a block format, packed.

    Parameters
    ----------
    x : Tensor
        float32, float64, bfloat16 or float16, on the CPU, of any shape and layout.
    format, axis, **options
        As in `tf32dtype.blocks.quantize`.

    Returns
    -------
    BlockArray
        Without a gradient. `dequantize` makes a tensor of it.

    Raises
    ------
    TypeError, ValueError
        For other tensors, and as `tf32dtype.blocks.quantize`.
    """
    return blocks.quantize(_array(x), format, axis, **options)


def dequantize(
    x: blocks.BlockArray | blocks.TileArray, dtype: torch.dtype = torch.float32
) -> Tensor:
    """The numbers of a `~tf32dtype.blocks.BlockArray`, each rounded once.

    Parameters
    ----------
    x : BlockArray
        Of `quantize`.
    dtype : torch.dtype
        float32, float64, bfloat16 or float16.

    Raises
    ------
    TypeError
        For another dtype.
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
    """Round a tensor to what a block format holds; the gradient passes unchanged.

    Parameters
    ----------
    x : Tensor
        float32, float64, bfloat16 or float16, on the CPU, of any shape and layout.
    format, axis, **options
        As in `tf32dtype.blocks.round`.

    Returns
    -------
    Tensor
        Of x's shape and dtype: the float32 numbers of `tf32dtype.blocks.round`,
        rounded to that dtype once more if it is narrower (numbers beyond its range
        become its largest).

    Raises
    ------
    TypeError, ValueError
        For other tensors, and as `tf32dtype.blocks.round`.
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
    if torch.compiler.is_compiling():  # it would make torch's calls of NumPy's
        outside: Any = torch.compiler.disable
        apply = outside(apply)
    result: Tensor = apply(x, function)
    return result


def round_tensor(
    x: Tensor, format: BlockFormatNamed, axis: int, options: Options
) -> Tensor:
    """Rounded numbers, a new tensor of x's dtype."""
    # torch widens exactly, on all its threads.
    array = _array(x.float() if x.dtype in HALVES else x)
    out = torch.empty(x.shape, dtype=torch.float32)
    blocks.round(array, format, axis, out=out.numpy(), **options)
    return narrowed(out, torch.empty_like(out, dtype=x.dtype))


def round_rows(x: Tensor, format: BlockFormatNamed, options: Options) -> Tensor:
    """The same along the last axis, where no row depends on another.

    In pieces: what is as large as the weight and new in every step costs page faults,
    more time than the rounding takes.
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
    """Write float32 numbers to `out`, and keep them within its range.

    Rounding may leave that range. If `out` has the same dtype, return the numbers
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
    """The tensor, if its numbers can be rounded."""
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
    """A tensor's memory as an array, whatever gradients it has."""
    return to_numpy(checked(x).detach())


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _names(dtypes: Iterable[torch.dtype]) -> str:
    return ", ".join(map(_name, dtypes))
