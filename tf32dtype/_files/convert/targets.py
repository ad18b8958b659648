"""What tensors are converted to: numbers by themselves, or in blocks and tiles."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import blocks
from ..._base.errors import UserError
from ..._formats.quantize import quantize
from ..._measures.format_facts import Facts, facts
from ...blocks.formats import elements
from ...blocks.formats import formats as block_formats
from ...blocks.tiles import Tile, checked_element
from ..readers import lines
from ..safetensors import schemes
from .losses import Loss
from .options import Options
from .recoded import recoded

Array = NDArray[Any]
#: Dtype and shape of tensors by name.
Outlines = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
#: Writes the next items of a tensor of the output.
Write = Callable[[str, Array], None]

PIECE = 1 << 20  # numbers at a time


class Target(Protocol):
    """A way to convert tensors."""

    @property
    def label(self) -> str:
        """The format's name."""

    @property
    def is_wide(self) -> bool:
        """Whether vectors are converted too."""

    @property
    def is_picky(self) -> bool:
        """Whether `problem` may find one."""

    def outlines(self, name: str, shape: tuple[int, ...]) -> Outlines:
        """The tensors of the output that a tensor becomes."""

    def problem(self, nans: int, infinities: int) -> str:
        """Why numbers with so many that are not finite cannot be converted; or ""."""

    def convert(
        self, name: str, array: Any, write: Write, advance: Callable[[], None]
    ) -> Loss:
        """Convert and write a tensor; `advance` is called for each `PIECE`."""


@dataclass(frozen=True)
class Plain:
    """Each number by itself."""

    form: Facts
    rounding: Any = "ties_to_even"
    overflow: Any = None
    seed: int | None = None

    @property
    def label(self) -> str:
        return self.form.name

    @property
    def is_wide(self) -> bool:
        return self.form.bits >= 16

    @property
    def is_picky(self) -> bool:
        return not self.form.has_nan

    def outlines(self, name: str, shape: tuple[int, ...]) -> Outlines:
        return {name: (self.form.dtype, shape)}

    def problem(self, nans: int, infinities: int) -> str:
        if nans and not self.form.has_nan:
            return f"{nans} NaN, which {self.label} does not have"
        return ""

    def convert(
        self, name: str, array: Any, write: Write, advance: Callable[[], None]
    ) -> Loss:
        loss = Loss()
        rng = generator(self.seed, name)
        for piece in numbers(array):
            with np.errstate(all="ignore"):
                rounded = self._round(piece, rng)
            write(name, rounded)
            loss.take(piece, rounded, self.form.max)
            advance()
        return loss

    def _round(self, x: Array, rng: np.random.Generator | None) -> Array:
        if self.rounding != "ties_to_even":
            return quantize(
                x,
                self.form.dtype,
                rounding=self.rounding,
                overflow="saturate" if self.overflow == "saturate" else "ieee",
                rng=rng,
            )
        # The same as quantize, and a hundred times as fast.
        rounded = x.astype(self.form.dtype)
        if self.overflow == "saturate":
            beyond = ~np.isfinite(rounded) & (np.abs(x) > self.form.max)
            rounded[beyond] = np.copysign(self.form.max, x[beyond].astype(np.float64))
        return rounded


@dataclass(frozen=True)
class Scaled:
    """With a scale for each block along the last axis, or for each tile."""

    #: of blocks, or of the elements of tiles
    format: str
    scheme: str
    #: None: blocks
    tile: Tile | None
    #: keywords of `blocks.quantize`
    options: Mapping[str, Any]
    seed: int | None = None

    @property
    def label(self) -> str:
        return self.format if self.tile is None else f"{self.format} tiles"

    @property
    def is_wide(self) -> bool:
        return False

    @property
    def is_picky(self) -> bool:
        return bool(self.problem(1, 0) or self.problem(0, 1))

    def outlines(self, name: str, shape: tuple[int, ...]) -> Outlines:
        return schemes.outline(name, self._facts(shape), self.scheme)[0]

    def metadata(self, name: str, shape: tuple[int, ...]) -> dict[str, str]:
        """What the output says of the tensor, for `schemes.join`."""
        return schemes.outline(name, self._facts(shape), self.scheme)[1]

    def _facts(self, shape: tuple[int, ...]) -> schemes.Facts:
        if self.tile is None:
            size = self.options.get("block_size")
            return schemes.Facts(self.format, shape, block_size=size)
        return schemes.Facts(self.format, shape, tile=self.tile)

    def problem(self, nans: int, infinities: int) -> str:
        saturates = self.options.get("overflow") == "saturate"
        if self.tile is None and saturates:
            row = block_formats[self.format]
            has_nan = elements[row.element].has_nan
            return f"{nans} NaN" if nans and not has_nan else ""
        if self.tile is None and block_formats[self.format].poisons:
            return ""
        if nans + infinities == 0:
            return ""
        return f"{nans} NaN and {infinities} Inf, which cannot have a scale"

    def convert(
        self, name: str, array: Any, write: Write, advance: Callable[[], None]
    ) -> Loss:
        x = array if isinstance(array, np.ndarray) else array.dequantize(np.float64)
        rng = generator(self.seed, name)
        exact = None
        if self.tile is None:
            row = block_formats[self.format]
            scaled: Any = blocks.quantize(x, row, rng=rng, **self.options)
        else:
            element = checked_element(self.format)
            exact = recoded(array, self.format, self.tile)
            scaled = exact
            if exact is None:
                scaled = blocks.quantize_tiles(x, element.dtype, self.tile)
        for part, data in schemes.tensors_of(name, scaled, self.scheme)[0].items():
            write(part, data)
        loss = Loss(recoded=exact is not None)
        for index in lines(scaled, PIECE):
            loss.take(x[index], scaled[index].dequantize(np.float64), np.inf)
            advance()
        return loss


def generator(seed: int | None, name: str) -> np.random.Generator | None:
    """The draws of a tensor: its own, so that what is resumed has the same."""
    if seed is None:
        return None
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def numbers(array: Any, size: int = PIECE) -> Iterator[Array]:
    """Yield the numbers of an array in C order, at most `size` at a time.

    Each piece has one axis. The numbers of blocks are in float64, which holds them
    exactly.
    """
    if isinstance(array, np.ndarray):
        flat = np.ascontiguousarray(array).reshape(-1)
        for start in range(0, flat.size, size):
            yield flat[start : start + size]
        return
    for index in lines(array, size):
        if len(index) > 1:  # not in C order
            yield from numbers(array.dequantize(np.float64), size)
            return
        yield array[index].dequantize(np.float64).reshape(-1)


def find(options: Options) -> Target:
    """What the options convert to.

    Raises
    ------
    UserError
        For an unknown format or scheme, and options that the format does not have.
    """
    _check_seed(options)
    target = _target(options)
    name, shape = "module.weight", (128, 128)
    try:
        # Found now, options that do not go together leave no file behind.
        target.convert(name, np.ones(shape), lambda *_: None, lambda: None)
    except (ValueError, TypeError, OverflowError) as error:
        raise UserError(f"--to {options.to}: {error}") from None
    return target


def _target(options: Options) -> Target:
    if options.to in block_formats:
        return _blocks(options, block_formats[options.to].name)
    form = facts(options.to)
    if options.scheme is not None or options.tile is not None:
        return _tiles(options, form.name)
    _refuse(options, ("scale", "block_size"), f"block formats; got --to {form.name}")
    if form.name == "float64":
        _refuse(
            options,
            ("rounding", "overflow"),
            "formats narrower than float64; got --to float64",
        )
    return Plain(form, options.rounding, options.overflow, options.seed)


def _blocks(options: Options, name: str) -> Scaled:
    _refuse(options, ("tile",), f"formats in tiles; got --to {name}, which has blocks")
    given = {
        "rounding": options.rounding,
        "overflow": options.overflow,
        "scale": options.scale,
        "block_size": options.block_size,
    }
    keywords = {key: value for key, value in given.items() if value is not None}
    some = schemes.Facts(name, (128, 128), block_size=options.block_size)
    scheme = _scheme(options, some)
    return Scaled(name, scheme, None, keywords, options.seed)


def _tiles(options: Options, name: str) -> Scaled:
    _refuse(
        options,
        ("rounding", "overflow", "scale", "block_size"),
        f"formats without tiles; got --to {name} in tiles",
    )
    # As its own checkpoints have them; others have a scale a row.
    tile = options.tile or ((128, 128) if options.scheme == "deepseek" else (1, None))
    scheme = _scheme(options, schemes.Facts(name, (128, 128), tile=tile))
    return Scaled(name, scheme, tile, {})


def _scheme(options: Options, some: schemes.Facts) -> str:
    """The scheme that is asked for, or the one that is best known."""
    try:
        scheme = options.scheme or schemes.default_scheme(some)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    if scheme not in schemes.SCHEMES:
        raise UserError(
            f"--scheme must be one of {', '.join(schemes.SCHEMES)}; got {scheme}"
        )
    try:
        schemes.outline("module.weight", some, scheme)
    except (ValueError, TypeError) as error:
        why = str(error).rpartition(": ")[2]
        raise UserError(
            f"--scheme {scheme} cannot store {some.format}: {why}"
        ) from None
    return scheme


def _refuse(options: Options, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(options, name) != getattr(Options, name):
            raise UserError(f"--{name.replace('_', '-')} must only be given for {why}")


def _check_seed(options: Options) -> None:
    if options.seed is not None and options.rounding != "stochastic":
        raise UserError("--seed must only be given with --rounding stochastic")
    if options.seed is not None and options.seed < 0:
        raise UserError(f"--seed must be 0 or more; got {options.seed}")
