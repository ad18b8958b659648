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
    checked_block_size,
    elements,
    find,
    scale_formats,
)
from .from_codes import buffer_of
from .given_scales import elements as elements_of
from .given_scales import greatest_of_tiles
from .layout import Layout, checked_axis, checked_scale_format
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
        more. float64, longdouble and integers are first rounded to float32, to odd. A
        number that is out of float32's range counts as Inf, or becomes float32's
        largest number if `overflow` is "saturate".
    format : str
        A name of `tf32dtype.blocks.formats`.
    axis : int
        The axis along which neighbors form blocks (default: the last axis). The last
        block of a line may be short.
    tile : tuple of two int or None, optional
        The rows and columns of the last two axes that share a scale: ``(16, 16)`` for
        nvfp4. One of the two lengths must be the block size, along the block axis. The
        array stores the scale of a tile once per block, so that x and its transpose
        have the same values. By default each block has its own scale.
    division : {"exact", "divide", "reciprocal"}
        How x is divided by a block's scale S. "exact": x / S is rounded to an element
        once. "divide" computes x / S in float32, as kernels do, and "reciprocal"
        computes x * (1 / S); each step is rounded to nearest, ties to even. If scales
        are powers of two and `rounding` is to nearest, all divisions give the same
        codes. Scales do not depend on the division.
    block_size : {16, 32, 64, 128}, optional
        The number of values per block. This option and the next two default to the
        format's own.
    scale : str, optional
        The rule that finds a block's scale S from A, its largest magnitude, and M, the
        largest value of an element.

        - "amax": the smallest S with A <= M S.
        - "floor" (OCP's rule): 2 to the difference of the exponents of A and M; larger
          values are clipped. Scales with a mantissa: the S nearest to A / M.
        - "even": like "floor", with A rounded to the element's bits first.
        - "nf": like "amax", with three standard deviations instead of A if the values
          of the block look normally distributed.
        - "mse": the S with the smallest squared error among a few candidates.
        - "published": TCFP's rule as first published; only for tcfp formats.
    scale_format : str, optional
        The format of scales: "float8_e8m0fnu" (powers of two), "ue4m3", "ue5m3",
        "ue4m4" or "ue3m5". The "ue" names give the bits of exponent and mantissa; one
        float32 per tensor multiplies such scales. By default, the tcfp and int formats
        use the finest of the last three in which the smallest nonzero block has a
        normal scale, else float8_e8m0fnu. Under a rule other than "mse" they use
        float8_e8m0fnu.
    rounding : str
        The rounding of x / S to an element, as for `tf32dtype.quantize`. If the format
        has residuals, it applies to the residual.
    overflow : {"raise", "saturate"}
        The treatment of NaN and Inf. "raise" raises a ValueError. In mx formats with
        float8_e8m0fnu scales, however, the scale of the block becomes NaN, as OCP
        specifies. "saturate" gives Inf the largest value of its block. NaN stays NaN if
        the element has NaN (E4M3, E5M2), and is a ValueError otherwise.
    rng : numpy.random.Generator, optional
        The generator for ``rounding="stochastic"``: one 64-bit draw per element, in C
        order.

    Returns
    -------
    BlockArray
        The codes and scales, with the shape of `x`.

    Raises
    ------
    ValueError
        For an unknown name or size. For NaN or Inf as above; the message names the
        first one. For "stochastic" without `rng`, or `rng` without "stochastic". If x
        is a single number, or does not have the axis. For `tile` or `division` with a
        format that has residuals, or with integers and a rounding other than ties to
        even. For `tile` under a rule other than "amax", "floor" and "even".
    TypeError
        If `x` is not made of real numbers, or `axis` or `block_size` is not an integer.

    See Also
    --------
    round : Round to the same values without their codes.
    quantize_tiles : Round to tiles of rows and columns.
    matmul : Multiply arrays of blocks.
    BlockArray.from_codes : Create an array from existing codes.

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
    # Random draws are only for the numbers: scales are rounded without them.
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


#: The arguments: lines, layout, rule, tensor's scale, rounding, poison, draws.
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
    """A checked call: the layout of the result, and the arguments of the core."""

    layout: Layout
    #: arguments of `_core.block_quantize`; `_core.block_round` takes the first ones
    arguments: Arguments
    #: whether a block that becomes NaN is an error
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
    size = row.block_size
    if settings.block_size is not None:
        size = checked_block_size(settings.block_size)
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
