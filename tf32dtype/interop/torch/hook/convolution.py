"""Convolutions as matrix products of windows, which are columns of a matrix (im2col).

Each group is one matrix of a stack. The sums run over k in this order:

- Forward: the first operand has a row for each output position, images first; k is the
  channel, then the position in the kernel. The second operand is the weights.
- Gradient of the input, and transposed convolutions: the same, with the mirrored
  kernel; k is the output channel, then the position in the mirrored kernel. With a
  stride, there are zeros between the positions of the first operand.
- Gradient of the weights: the first operand has a row for each output channel; k is the
  image, then the output position. The second operand is the windows of the input.

Windows of more than `LIMIT` bytes are multiplied in parts. Each part of an operand has
a line with the largest magnitude of all parts, so that scales do not depend on parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .operand_format import TILE
from .operations import Multiplier, aten, finished, operation

if TYPE_CHECKING:
    from .mode import ProductMode

#: Bytes of windows, in float32, that are multiplied at once.
LIMIT = 1 << 26


class Geometry(NamedTuple):
    """How a kernel moves over the positions of an image: a number for each axis."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def reach(self, axis: int) -> int:
        """Return how many positions the kernel's last one is behind its first one."""
        return self.dilation[axis] * (self.kernel[axis] - 1)

    def ends(self, size: Sequence[int], outputs: Sequence[int]) -> list[int]:
        """Return how many zeros are behind an image with this many outputs."""
        return [
            (outputs[i] - 1) * self.stride[i] + self.reach(i) + 1 - before - size[i]
            for i, before in enumerate(self.padding)
        ]

    def outputs(self, size: Sequence[int]) -> tuple[int, ...]:
        """Return the output positions of an image of a size."""
        return tuple(
            (n + 2 * self.padding[i] - self.reach(i) - 1) // self.stride[i] + 1
            for i, n in enumerate(size)
        )

    def mirrored(self) -> Geometry:
        """Return the geometry that leads from outputs with zeros between to inputs."""
        ones = (1,) * len(self.kernel)
        before = tuple(self.reach(i) - p for i, p in enumerate(self.padding))
        return self._replace(stride=ones, padding=before)


def _geometry(
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Geometry:
    kernel = tuple(weight.shape[2:])
    steps, before, apart = (
        _all_axes(x, len(kernel)) for x in (stride, padding, dilation)
    )
    return Geometry(kernel, steps, before, apart, groups)


def _all_axes(numbers: Sequence[int], axes: int) -> tuple[int, ...]:
    return tuple(numbers) * (axes if len(numbers) == 1 else 1)


@operation(aten.convolution.default)
def _convolution(
    mode: ProductMode,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    multiplier = mode.multiplier(x, weight, "activations", "weights")
    way = _geometry(weight, stride, padding, dilation, groups)
    if transposed:
        more = _all_axes(output_padding, len(way.kernel))
        size = [
            (n - 1) * way.stride[i] - 2 * way.padding[i] + way.reach(i) + 1 + more[i]
            for i, n in enumerate(x.shape[2:])
        ]
        sums = _convolved_back(multiplier, x, weight, way, size)
    else:
        columns = _columns_of(weight, groups)
        sums = _convolved(multiplier, x, columns, way, way.outputs(x.shape[2:]))
    if bias is not None:
        bias = bias.reshape(-1, *[1] * len(way.kernel))
    result = finished(sums, x.dtype, bias)
    return result.contiguous(memory_format=_memory_format(x, weight))


@operation(aten._convolution.default)
def _convolution_with_flags(mode: ProductMode, *args: Any) -> Tensor:
    result: Tensor = _convolution(mode, *args[:9])
    return result


@operation(aten.convolution_backward.default)
def _convolution_backward(
    mode: ProductMode,
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    way = _geometry(weight, stride, padding, dilation, groups)
    wanted_x, wanted_weight, wanted_bias = output_mask
    of_x = of_weight = of_bias = None
    if wanted_x:
        multiplier = mode.multiplier(gradient, weight, "gradients", "weights")
        if transposed:
            columns, size = _columns_of(weight, groups), x.shape[2:]
            sums = _convolved(multiplier, gradient, columns, way, size)
        else:
            sums = _convolved_back(multiplier, gradient, weight, way, x.shape[2:])
        of_x = sums.to(x.dtype).contiguous(memory_format=_memory_format(x, weight))
    if wanted_weight:
        if transposed:
            multiplier = mode.multiplier(x, gradient, "activations", "gradients")
            sums = _correlated(multiplier, x, gradient, way)
        else:
            multiplier = mode.multiplier(gradient, x, "gradients", "activations")
            sums = _correlated(multiplier, gradient, x, way)
        of_weight = sums.reshape(weight.shape).to(weight.dtype)
        of_weight = of_weight.contiguous(memory_format=_memory_format(x, weight))
    if wanted_bias:
        of_bias = gradient.sum([0, *range(2, gradient.ndim)])
    return of_x, of_weight, of_bias


def _memory_format(x: Tensor, weight: Tensor) -> torch.memory_format:
    """Return the order of axes in memory that PyTorch gives a result."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.ndim)
    for one in (x, weight):
        if last is not None and one.is_contiguous(memory_format=last):
            return torch.contiguous_format if one.is_contiguous() else last
    return torch.contiguous_format


def _columns_of(weight: Tensor, groups: int) -> Tensor:
    """Return a column for each output channel: (groups, k, channels of a group)."""
    return weight.reshape(groups, weight.shape[0] // groups, -1).mT


def _convolved(
    multiplier: Multiplier,
    x: Tensor,
    columns: Tensor,
    way: Geometry,
    outputs: Sequence[int],
) -> Tensor:
    """Return sums of windows of `x` times columns: (images, channels, *outputs)."""
    windows = _windows(x, way, outputs)
    channels = columns.shape[-1]
    sums = [
        multiplier.product(part.mT, columns)[:, :count]
        for part, count in _row_parts(multiplier, windows, len(outputs))
    ]
    whole = torch.cat(sums, 1) if len(sums) > 1 else sums[0]
    shaped = whole.reshape(way.groups, len(x), *outputs, channels)
    last = shaped.ndim - 1
    order = shaped.permute(1, 0, last, *range(2, last))
    return order.reshape(len(x), way.groups * channels, *outputs)


def _convolved_back(
    multiplier: Multiplier,
    x: Tensor,
    weight: Tensor,
    way: Geometry,
    outputs: Sequence[int],
) -> Tensor:
    """Return the sums of a transposed convolution: (images, channels, *outputs)."""
    spread = x
    if any(s > 1 for s in way.stride):
        sizes = [(n - 1) * s + 1 for n, s in zip(x.shape[2:], way.stride, strict=True)]
        spread = x.new_zeros(*x.shape[:2], *sizes)
        spread[(..., *(slice(None, None, s) for s in way.stride))] = x
    mirrored = weight.flip(*range(2, weight.ndim))
    by_group = mirrored.reshape(way.groups, -1, *weight.shape[1:])
    columns = by_group.transpose(1, 2).reshape(way.groups, weight.shape[1], -1).mT
    return _convolved(multiplier, spread, columns, way.mirrored(), outputs)


def _correlated(
    multiplier: Multiplier, left: Tensor, x: Tensor, way: Geometry
) -> Tensor:
    """Return the sums over images and outputs: (groups, channels of `left`, k)."""
    outputs = left.shape[2:]
    channels = left.shape[1] // way.groups
    by_group = left.reshape(len(left), way.groups, channels, prod(outputs))
    rows = by_group.permute(1, 2, 0, 3).flatten(2)
    windows = _windows(x, way, outputs)
    sums = [
        multiplier.product(rows, part.mT)[..., :count]
        for part, count in _column_parts(multiplier, windows, len(outputs))
    ]
    return torch.cat(sums, -1) if len(sums) > 1 else sums[0]


def _windows(x: Tensor, way: Geometry, outputs: Sequence[int]) -> Tensor:
    """Return a view: (groups, channels of a group, *kernel, images, *outputs)."""
    pads: list[int] = []
    for before, after in zip(way.padding, way.ends(x.shape[2:], outputs), strict=True):
        pads = [before, after, *pads]
    padded = torch.nn.functional.pad(x, pads) if any(pads) else x
    padded = padded.contiguous()
    image, channel, *steps = padded.stride()
    each = x.shape[1] // way.groups
    return padded.as_strided(
        (way.groups, each, *way.kernel, len(x), *outputs),
        (
            each * channel,
            channel,
            *(step * d for step, d in zip(steps, way.dilation, strict=True)),
            image,
            *(step * s for step, s in zip(steps, way.stride, strict=True)),
        ),
    )


def _row_parts(
    multiplier: Multiplier, windows: Tensor, axes: int
) -> Iterator[tuple[Tensor, int]]:
    """Give the windows of positions, (groups, k, positions), and how many these are.

    If it is a part of all positions, as many follow as fill tiles, with zeros, and one
    with the largest magnitude of all.
    """
    groups, k = len(windows), prod(windows.shape[1 : 2 + axes])
    images, outer, *inner = windows.shape[2 + axes :]
    lines, positions = images * outer, prod(inner)
    bytes_of_line = 4 * groups * k * positions
    if lines * bytes_of_line <= LIMIT or not multiplier.takes_parts:
        yield windows.reshape(groups, k, lines * positions), lines * positions
        return
    whole = TILE // gcd(TILE, positions)
    step = max(1, LIMIT // bytes_of_line // whole) * whole
    largest = _largest(windows, axes)
    for start in range(0, lines, step):
        stop, at = min(lines, start + step), 0
        part = windows.new_zeros(groups, k, step * positions + 1)
        part[:, 0, -1] = largest
        while start < stop:
            image, line = divmod(start, outer)
            count = min(outer - line, stop - start)
            piece = windows.select(2 + axes, image).narrow(2 + axes, line, count)
            end = at + count * positions
            part[:, :, at:end] = piece.reshape(groups, k, -1)
            start, at = start + count, end
        yield part, at


def _column_parts(
    multiplier: Multiplier, windows: Tensor, axes: int
) -> Iterator[tuple[Tensor, int]]:
    """Give the windows of some k, (groups, k, positions), and how many k these are.

    If it is a part of all k, as many follow as fill tiles, with zeros, and one with
    the largest magnitude of all.
    """
    groups, shape = len(windows), windows.shape[1 : 2 + axes]
    k, positions = prod(shape), prod(windows.shape[2 + axes :])
    step = max(1, LIMIT // (4 * groups * max(1, positions)) // TILE) * TILE
    if k <= step or not multiplier.takes_parts:
        yield windows.reshape(groups, k, positions), k
        return
    largest = _largest(windows, axes)
    for start in range(0, k, step):
        stop = min(k, start + step)
        part = windows.new_zeros(groups, step + 1, positions)
        part[:, -1, 0] = largest
        for i in range(start, stop):
            one = windows[(slice(None), *np.unravel_index(i, shape))]
            part[:, i - start] = one.reshape(groups, positions)
        yield part, stop - start


def _largest(windows: Tensor, axes: int) -> Tensor:
    """Return the largest finite magnitude of each group."""
    found = windows.new_zeros(len(windows))
    for at in np.ndindex(*windows.shape[2 : 2 + axes]):
        one = windows[(slice(None), slice(None), *at)].flatten(1)
        finite = torch.where(one.isfinite(), one.abs(), 0)
        found = torch.maximum(found, finite.amax(1))
    return found
