"""Arrays of blocks as the operands that PyTorch's products of blocks take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._base.requirements import need
from .formats import POWERS
from .layout import Layout
from .scale_layouts import swizzle_scales

if TYPE_CHECKING:
    import torch

#: Element, scale format and block size: PyTorch's dtypes of codes and of scales.
_DTYPES = {
    ("float8_e4m3fn", POWERS, 32): ("float8_e4m3fn", POWERS),
    ("float8_e5m2", POWERS, 32): ("float8_e5m2", POWERS),
    ("float4_e2m1fn", POWERS, 32): ("float4_e2m1fn_x2", POWERS),
    ("float4_e2m1fn", "ue4m3", 16): ("float4_e2m1fn_x2", "float8_e4m3fn"),
}
#: A row of operands takes a multiple of 16 bytes.
_MULTIPLE = 32


class TorchOperand(NamedTuple):
    """The codes and scales of an array as the tensors that `torch._scaled_mm` takes.

    `BlockArray.to_torch_scaled_mm` returns it, and has an example.

    Parameters
    ----------
    data : torch.Tensor
        The codes: row-major if blocks are along rows, else column-major.
    scale : torch.Tensor
        The scales in tiles of 128 x 4.
    tensor_scale : torch.Tensor or None
        A float32 of no axes that multiplies all scales of nvfp4; None for other
        formats.

    See Also
    --------
    BlockArray.to_torch_scaled_mm : Return the operand of an array.
    swizzle_scales : Reorder scales to the layout of `scale`.
    """

    data: torch.Tensor
    scale: torch.Tensor
    tensor_scale: torch.Tensor | None


def operand(
    plan: Layout, codes: NDArray[np.uint8], scales: NDArray[np.uint8]
) -> TorchOperand:
    """Copy an array's parts to tensors."""
    kind = plan.row.element, plan.scale_format, int(plan.block_size)
    if kind not in _DTYPES or plan.row.levels > 1:
        raise ValueError(
            "format must be mxfp8, mxfp4 in blocks of 32 or nvfp4 in blocks of 16 for"
            f" torch._scaled_mm, with their own scales; got {plan.row.name} in blocks"
            f" of {plan.block_size} with scales of {plan.scale_format}"
        )
    if len(plan.shape) != 2 or plan.length % _MULTIPLE:
        raise ValueError(
            "shape must be that of a matrix for torch._scaled_mm, with a block axis"
            f" that is a multiple of {_MULTIPLE}; got {plan.shape}, axis {plan.axis}"
        )
    torch: Any = need("to_torch_scaled_mm", "torch", "torch")
    of_codes, of_scales = (getattr(torch, name) for name in _DTYPES[kind])
    width = plan.length * plan.element.width // 8
    packed = codes.reshape(plan.lines, width).copy()
    data = torch.from_numpy(packed).view(of_codes)
    return TorchOperand(
        data if plan.axis == 1 else data.T,
        torch.from_numpy(swizzle_scales(scales)).view(of_scales),
        torch.tensor(plan.tensor_scale) if plan.has_tensor_scale else None,
    )
