"""Check existing codes and scales, given as packed bytes or as one code per item."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._base.wording import brief
from .._formats import bit_packing
from .._formats.codes import bits, from_bits
from .._formats.table import find, own_array
from .formats import POWERS, Element
from .layout import Layout
from .lines import as_lines
from .scale_layouts import padded_shape, swizzle_scales, unswizzle_scales


def buffer_of(
    plan: Layout, codes: ArrayLike, scales: ArrayLike, residuals: ArrayLike | None
) -> NDArray[np.uint8]:
    """Return the buffer of a layout, of its parts as a caller has them."""
    if (residuals is None) != (plan.residual is None):
        raise ValueError(
            f"residuals must {'not ' * (plan.residual is None)}be given for"
            f" {plan.row.name}"
        )
    parts = [
        _packed(plan, own_array(codes), plan.element, plan.shapes[0], "codes"),
        _scales(plan, own_array(scales)),
    ]
    if plan.residual is not None:
        lower = own_array(residuals)
        shape = plan.shapes[2]
        parts.append(_packed(plan, lower, plan.residual, shape, "residuals"))
    buffer = np.concatenate([part.reshape(-1) for part in parts])
    check_buffer(plan, buffer)
    return buffer


def check_buffer(plan: Layout, buffer: NDArray[np.uint8]) -> None:
    """Raise if these bytes are not all of an array of this layout."""
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8:
        raise TypeError(f"buffer must be an array of uint8; got {brief(buffer)}")
    if buffer.shape != (plan.size,):
        raise ValueError(
            f"buffer must hold {plan.size} bytes along one axis for {plan.row.name} of"
            f" shape {plan.shape} in blocks of {plan.block_size}; got shape"
            f" {buffer.shape}"
        )
    codes, scales, residuals = plan.parts(buffer)
    _check_padding(plan, codes, plan.element)
    if residuals is not None and plan.residual is not None:
        _check_padding(plan, residuals, plan.residual)
    first = scales if residuals is None else scales[..., 0]
    if plan.scale_format == "ue4m3" and (scales > 0x7F).any():
        code = int(scales[scales > 0x7F].flat[0])
        raise ValueError(f"scales must be ue4m3 codes from 0 to 0x7f; got 0x{code:02x}")
    beyond = np.isinf(block_scales(plan)[first])
    if beyond.any():
        raise ValueError(
            "scales times tensor_scale must be within the range of float32; got"
            f" 0x{int(first[beyond].flat[0]):02x} and {plan.tensor_scale!r}"
        )


def block_scales(plan: Layout) -> NDArray[np.float32]:
    """Return the scale S of each of the 256 codes, the tensor's included."""
    with np.errstate(all="ignore"):
        return np.float32(plan.tensor_scale) * _core.scale_values(plan.scale_format)


def items_of(codes: NDArray[np.unsignedinteger[Any]], element: Element) -> NDArray[Any]:
    """Unpacked codes as elements: numbers of a format, or signed integers."""
    if not element.is_integer:
        return from_bits(np.ascontiguousarray(codes), element.dtype)
    unused = 8 * element.dtype.itemsize - element.width
    return (
        codes.astype(f"u{element.dtype.itemsize}").view(element.dtype)
        << unused
        >> unused
    )


def _packed(
    plan: Layout,
    codes: NDArray[Any],
    element: Element,
    shape: tuple[int, ...],
    name: str,
) -> NDArray[np.uint8]:
    """Packed codes of that shape, from packed ones or from elements."""
    if codes.dtype == np.uint8:
        *grid, blocks, size = shape
        if codes.shape not in (shape, (*grid, blocks * size)):
            raise ValueError(
                f"packed {name} must have shape {shape}, or that with the last two axes"
                f" merged; got {codes.shape}"
            )
        return np.ascontiguousarray(codes).reshape(shape)
    if codes.dtype != element.dtype:
        raise TypeError(
            f"{name} must be an array of uint8 (packed) or {element.dtype} (unpacked);"
            f" got {codes.dtype}"
        )
    if codes.shape != plan.shape:
        raise ValueError(
            f"{name} must have the shape of the array, {plan.shape}; got {codes.shape}"
        )
    lines = as_lines(codes, plan.axis)
    if element.is_integer:
        most = 1 << element.width - 1
        outside = (lines < -most) | (lines >= most)
        if outside.any():
            value = int(lines[outside].flat[0])
            raise ValueError(
                f"{name} must be {element.name} values from {-most} to {most - 1}; got"
                f" {value}"
            )
        item = lines.view(f"u{lines.dtype.itemsize}")
        mask = item.dtype.type((1 << element.width) - 1)
        raw = item & mask
    else:
        raw = bits(lines)
    padded = np.zeros((plan.lines, plan.blocks * plan.block_size), raw.dtype)
    padded[:, : plan.length] = raw
    return bit_packing.pack(padded, element.width).reshape(shape)


def _scales(plan: Layout, scales: NDArray[Any]) -> NDArray[np.uint8]:
    twins = {POWERS: POWERS, "ue4m3": "float8_e4m3fn"}
    if scales.dtype != np.uint8:
        twin = twins.get(plan.scale_format)
        if twin is None or scales.dtype != find(twin).dtype:
            also = f" or {twin}" if twin else ""
            raise TypeError(
                f"scales must be uint8{also} for scale_format {plan.scale_format!r};"
                f" got {scales.dtype}"
            )
        scales = scales.view(np.uint8)
    if scales.shape != plan.shapes[1]:
        scales = _of_tiles(plan, scales)
    return np.ascontiguousarray(scales)


def _of_tiles(plan: Layout, scales: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Scales in tiles of 128 x 4, if their zeros show that they are padded so."""
    shape = plan.shapes[1]
    problem = f"scales must have shape {shape}; got {scales.shape}"
    if (
        plan.row.levels > 1
        or len(shape) < 2
        or scales.shape != padded_shape(shape, "128x4")
    ):
        raise ValueError(problem)
    found = unswizzle_scales(scales, shape)
    *_, rows, columns = shape
    is_padded = not (scales[..., rows:, :].any() or scales[..., columns:].any())
    if is_padded or not np.array_equal(swizzle_scales(found), scales):
        raise ValueError(
            f"{problem}, which may be padded. Use scales[..., :{rows}, :{columns}], or"
            f" td.blocks.unswizzle_scales(scales, {shape}) for tiles of 128 x 4"
        )
    return found


def _check_padding(plan: Layout, packed: NDArray[np.uint8], element: Element) -> None:
    used = plan.length % plan.block_size
    if used == 0:
        return
    last = bit_packing.unpack(np.ascontiguousarray(packed[..., -1, :]), element.width)
    if last[..., used:].any():
        raise ValueError(
            f"unused codes of the last block must be 0: the block has {used} values, so"
            f" its other {plan.block_size - used} codes are padding"
        )
