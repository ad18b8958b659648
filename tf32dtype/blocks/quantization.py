"""Numbers to blocks: arguments checked, the tensor's scale found, the core called."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._base.options import refuse_unknown, shows
from .._base.wording import one_of
from .._formats.quantize import ROUNDINGS, Rounding, check_arguments
from .array import BlockArray
from .divisions import DIVISIONS, Division
from .formats import (
    POWERS,
    RULES,
    BlockFormat,
    BlockFormatLike,
    BlockSize,
    Rule,
    ScaleFormat,
    elements,
    find,
    scale_formats,
)
from .from_codes import buffer_of
from .given_scales import elements as elements_of
from .given_scales import greatest_of_tiles
from .layout import Layout, checked_axis, checked_block_size, checked_scale_format
from .lines import as_lines, checked, from_lines, to_float32
from .tiles import Tile

Overflow = Literal["raise", "saturate"]

_OVERFLOWS = get_args(Overflow)
#: Rules that need only the largest magnitude.
_RULES_OF_TILES: tuple[Rule, ...] = ("amax", "floor", "even")
_TINY = 2.0**-149  # float32's smallest number
#: Scale formats for a tensor whose row names none: the first whose range is enough.
_FINEST: tuple[ScaleFormat, ...] = ("ue3m5", "ue4m4", "ue5m3")


class Options(TypedDict, total=False):
    """The keywords of `quantize`."""

    block_size: BlockSize | None
    scale: Rule | None
    scale_format: ScaleFormat | None
    rounding: Rounding
    overflow: Overflow
    rng: np.random.Generator | None


class Settings(NamedTuple):
    """The options of `quantize`, with their defaults."""

    block_size: BlockSize | None = None
    scale: Rule | None = None
    scale_format: ScaleFormat | None = None
    rounding: Rounding = "ties_to_even"
    overflow: Overflow = "raise"
    rng: np.random.Generator | None = None


@shows(Options, Settings)
def quantize(
    x: ArrayLike,
    format: BlockFormatLike,
    axis: int = -1,
    *,
    tile: Tile | None = None,
    division: Division = "exact",
    **options: Unpack[Options],
) -> BlockArray:
    """Round numbers to codes of a few bits, with a common scale for each block.

    Parameters
    ----------
    x : array_like
        Real numbers of any builtin dtype or of one of the formats, with one axis or
        more. float64, longdouble and integers are taken as float32, rounded to odd;
        what is beyond its range counts as Inf, or saturates to its greatest number.
    format : str
        A name of `tf32dtype.blocks.formats`.
    axis : int
        Blocks are neighbors along this axis. The last block of a line may be short.
    tile : tuple of two int or None, optional
        Rows and columns of the last two axes that share a scale: ``(16, 16)`` for
        nvfp4. One length is the block size, along the block axis. The array has each
        scale once for every block, so x and its transpose have the same values. By
        default each block has its own scale.
    division : {"exact", "divide", "reciprocal"}
        How x is divided by a block's scale S. "exact": x / S is rounded to an element
        once. The others compute in float32, as kernels do, and round each step to
        nearest, ties to even: "divide": x / S; "reciprocal": x * (1 / S). If scales are
        powers of two, these give the same codes when `rounding` is to nearest. Scales
        do not depend on it.
    block_size : {16, 32, 64, 128}, optional
        The format's own by default, like the next two.
    scale : str, optional
        How a block's scale S is found from A, its greatest magnitude, and M, the
        element's greatest value: "amax" (the least with A <= M S); "floor" (OCP's: 2 to
        the difference of the exponents of A and M, and greater values are clipped;
        scales with a mantissa: the nearest to A / M); "even" (as "floor", of A rounded
        to the element's bits); "nf" (as "amax" with three standard deviations in A's
        place where the block looks normal); "mse" (the least squared error of a few
        that are tried); "published" (TCFP's as first published; tcfp formats only).
    scale_format : str, optional
        "float8_e8m0fnu" (powers of two), "ue4m3", or "ue5m3", "ue4m4", "ue3m5":
        exponent and mantissa bits of scales that one float32 a tensor multiplies. By
        default the tcfp and int formats take the finest of the last three in which the
        least block that is not zero has a normal scale, else float8_e8m0fnu; and
        float8_e8m0fnu under another rule than "mse".
    rounding : str
        Of x / S to an element, as for `tf32dtype.quantize`; of formats with a residual,
        of the residual.
    overflow : {"raise", "saturate"}
        What happens to NaN and Inf. "raise": a ValueError; but the mx formats, as OCP
        says, poison the block (its scale is NaN) where scales are float8_e8m0fnu.
        "saturate": Inf takes the greatest value of its block, and NaN stays NaN where
        the element has one (E4M3, E5M2) and is a ValueError elsewhere.
    rng : numpy.random.Generator
        For ``rounding="stochastic"``: one 64-bit draw an element, in C order.

    Returns
    -------
    BlockArray

    Raises
    ------
    ValueError
        For an unknown name or size; for NaN or Inf as above, naming the first; for
        "stochastic" without `rng` or `rng` without it; if x is a single number. For
        `tile` or `division` with a residual, or with integers and another rounding than
        ties to even; for `tile` under another rule than "amax", "floor" and "even".
    TypeError
        If `x` is not made of real numbers, or `block_size` is no integer.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> b = td.blocks.quantize(np.arange(64.0), "mxfp4")
    >>> b.nbytes, b.dequantize()[[5, 41]].tolist()
    (34, [4.0, 48.0])
    """
    refuse_unknown("quantize", options, Options)
    settings = Settings(**options)
    if division not in DIVISIONS:
        raise ValueError(one_of("division", division, DIVISIONS))
    if tile is not None or division != "exact":
        return _with_scales(x, find(format), axis, settings, tile, division)
    return _quantize(x, format, axis, settings)


def _quantize(
    x: ArrayLike, format: BlockFormatLike, axis: int, settings: Settings
) -> BlockArray:
    work = prepare(x, format, axis, settings, look_later=True)
    plan = work.layout
    buffer = np.empty(plan.size, np.uint8)
    codes, scales, residuals = plan.parts(buffer)
    lower = None if residuals is None else residuals.reshape(-1)
    parts = codes.reshape(-1), scales.reshape(-1), lower
    _core.block_quantize(*work.arguments, parts)
    if work.look_later and (scales == 0xFF).any():
        check_finite(checked(x), plan.row, settings.overflow)
    return BlockArray._of(plan, buffer)


def _with_scales(
    x: ArrayLike,
    row: BlockFormat,
    axis: int,
    settings: Settings,
    tile: Tile | None,
    division: str,
) -> BlockArray:
    """Find the scales first, and then the codes of all numbers."""
    size, rule, _ = resolved(row, settings)
    if row.levels > 1:
        raise ValueError(
            f"format must have no residuals for tile or division; got {row.name}"
        )
    source = checked(x)
    along = checked_axis(axis, source.ndim)
    overflow, rng = settings.overflow, settings.rng
    numbers = to_float32(source, overflow)
    # The draws are of the numbers: scales have none.
    of_scales = settings._replace(rounding="ties_to_even", rng=None)
    if tile is None:
        found = _quantize(source, row, along, of_scales)
        plan, scales = found._layout, found.scales
    else:
        if rule not in _RULES_OF_TILES:
            raise ValueError(one_of("scale", rule, _RULES_OF_TILES))
        finite = numbers
        if overflow == "saturate":
            check_finite(source, row, overflow)
            finite = np.where(np.isfinite(numbers), numbers, np.float32(0))
        blocks, across = greatest_of_tiles(finite, along, tile, size)
        poisons = row.poisons and settings.scale_format in (None, POWERS)
        if not poisons and not np.isfinite(blocks).all():
            check_finite(source, row, overflow)
        found = _quantize(blocks, row, -1, of_scales)
        plan = replace(found._layout, shape=source.shape, axis=along)
        every = np.repeat(found.scales, across, -2)
        scales = every[..., : plan.others[-1], :]
    draws = None
    if rng is not None:
        draws = as_lines(rng.integers(0, 2**64, source.shape, np.uint64), along)
    lines = as_lines(numbers, along)
    items = elements_of(plan, scales, lines, division, settings.rounding, draws)
    return BlockArray._of(
        plan,
        buffer_of(plan, from_lines(items, plan.shape, along), scales, None),
    )


#: Lines, layout, rule, tensor's scale, rounding, poison, draws.
Arguments = tuple[
    NDArray[np.float32],
    tuple[int, int, int, int],
    int,
    float,
    int,
    bool,
    NDArray[np.uint64] | None,
]


class Work(NamedTuple):
    """A checked call: what the core needs, and what its result is."""

    layout: Layout
    #: of `_core.block_quantize`, and the first ones of `_core.block_round`
    arguments: Arguments
    #: a block poisoned is an error
    look_later: bool


def prepare(
    x: ArrayLike,
    format: BlockFormatLike,
    axis: int,
    settings: Settings,
    look_later: bool = False,
) -> Work:
    """Check the arguments of `quantize` and choose the options that they leave open.

    With `look_later`, numbers that are not finite may be found later, by their effect
    on the scales. This saves a pass over x.
    """
    row = find(format)
    size, rule, named = resolved(row, settings)
    overflow, rng = settings.overflow, settings.rng
    source = checked(x)
    along = checked_axis(axis, source.ndim)
    lines = as_lines(to_float32(source, overflow), along)
    poisons = named == POWERS and overflow == "raise"
    look_later = look_later and poisons and not row.poisons and rng is None
    poisons = poisons and (row.poisons or look_later)
    tensor = 1.0
    if not poisons:
        amax, least, bad = _core.block_bounds(lines, size)
        if bad >= 0:
            check_finite(source, row, overflow)
        if named is None:
            named, tensor = finest(row, amax, least)
        elif named != POWERS:
            tensor = tensor_scale(row, named, amax)
    assert named is not None
    layout = Layout(row, source.shape, along, size, named, tensor)
    draws = None
    if rng is not None:
        drawn = rng.integers(0, 2**64, size=source.shape, dtype=np.uint64)
        draws = as_lines(drawn, along)
    return Work(
        layout,
        (
            lines,
            layout.core,
            RULES.index(rule),
            tensor,
            ROUNDINGS.index(settings.rounding),
            poisons,
            draws,
        ),
        look_later,
    )


# -- arguments ---------------------------------------------------------------


def resolved(
    row: BlockFormat, settings: Settings
) -> tuple[BlockSize, Rule, ScaleFormat | None]:
    """Block size, rule and scale format (None: left to the tensor); all checked."""
    size = checked_block_size(settings.block_size) or row.block_size
    rule = _rule(row, settings.scale)
    named = _scale_format(row, rule, settings.scale_format)
    check_arguments(settings.rounding, settings.overflow, _OVERFLOWS, settings.rng)
    return size, rule, named


def _rule(row: BlockFormat, scale: Rule | None) -> Rule:
    if scale is None:
        return row.scale
    if not isinstance(scale, str) or scale not in RULES:
        raise ValueError(one_of("scale", scale, RULES))
    if scale == "published" and not row.name.startswith("tcfp"):
        raise ValueError(
            f"scale='published' is valid only for the tcfp formats; got {row.name}"
        )
    return scale


def _scale_format(
    row: BlockFormat, rule: Rule, scale_format: ScaleFormat | None
) -> ScaleFormat | None:
    """None: left to the tensor."""
    named = checked_scale_format(scale_format)
    if rule == "published" and named not in (None, POWERS):
        raise ValueError(
            f"scale_format must be {POWERS!r} for scale='published'; got {named!r}"
        )
    if named is not None or row.scale_format is not None:
        return named or row.scale_format
    return None if rule == "mse" else POWERS


def check_finite(x: NDArray[Any], row: BlockFormat, overflow: Overflow) -> None:
    """Raise for the first number, in x's own order, that no code stands for."""
    wide = x if x.dtype.kind == "f" else x.astype(np.float32)
    if overflow == "raise":
        bad = ~np.isfinite(to_float32(x, overflow))
    else:
        bad = np.isnan(wide) & (not holds_nan(row))
    if bad.any():
        at = tuple(map(int, np.unravel_index(np.argmax(bad), x.shape)))
        expected = (
            "within the range of float32"
            if np.isfinite(wide[at])
            else f"finite for {row.name}"
            if overflow == "raise"
            else f"free of NaN for {row.name}, whose element {row.element} has none"
        )
        clips = overflow == "raise" and not np.isnan(wide[at])
        raise ValueError(
            f"x must be {expected}; got {wide[at]!s} at x[{', '.join(map(str, at))}]"
            + ". Use overflow='saturate' to clip" * clips
        )


def holds_nan(row: BlockFormat) -> bool:
    return elements[row.element].has_nan


# -- the tensor's scale ------------------------------------------------------


def finest(row: BlockFormat, amax: float, least: float) -> tuple[ScaleFormat, float]:
    """Return the first scale format with a normal scale for each block, and its scale.

    If scales are multiples of float32's smallest number, none can be finer.
    """
    for name in _FINEST:
        tensor = tensor_scale(row, name, amax)
        normal = row.max * tensor * 2.0 ** scale_formats[name]
        if amax == 0 or least >= normal or tensor == _TINY:
            return name, tensor
    return POWERS, 1.0


def tensor_scale(row: BlockFormat, scale_format: ScaleFormat, amax: float) -> float:
    """Return a factor of all scales with which the largest block has a scale."""
    if amax == 0:
        return 1.0
    if scale_format == "ue4m3":
        with np.errstate(all="ignore"):
            return max(float(np.float32(amax) / np.float32(448 * row.max)), _TINY)
    # Find the smallest power of two with which the scale of the largest number is one
    # binade below the top; all of this is exact in float64.
    mantissa = scale_formats[scale_format]
    top = math.ldexp((1 << mantissa + 1) - 1, (1 << 8 - mantissa) - 3)
    exponent = math.frexp(amax)[1] - math.frexp(row.max * top)[1]
    while amax > row.max * top * 2.0**exponent:
        exponent += 1
    while amax <= row.max * top * 2.0 ** (exponent - 1):
        exponent -= 1
    return 2.0 ** min(max(exponent, -149), 127)
