"""The targets of a conversion: single values, or values in blocks and tiles."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import blocks
from ..._base.errors import UserError
from ..._base.wording import brief
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
#: Dtypes and shapes of tensors by name.
Outlines = Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]
#: A function that writes the next elements of an output tensor.
Write = Callable[[str, Array], None]

PIECE = 1 << 20  # elements per step


class Target(Protocol):
    """A format and the options to convert tensors to it."""

    @property
    def label(self) -> str:
        """The format's name."""

    @property
    def is_wide(self) -> bool:
        """Whether vectors are converted too."""

    @property
    def is_picky(self) -> bool:
        """Whether `problem` may find a reason not to convert."""

    def outlines(self, name: str, shape: tuple[int, ...]) -> Outlines:
        """Return the dtypes and shapes of the output tensors of one input tensor."""

    def problem(self, nans: int, infinities: int) -> str:
        """Return why values with NaN or Inf cannot be converted, or an empty string."""

    def convert(
        self, name: str, array: Any, write: Write, advance: Callable[[], None]
    ) -> Loss:
        """Convert and write a tensor; call `advance` after each `PIECE`."""


@dataclass(frozen=True)
class Plain:
    """A target that converts each value by itself."""

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
        # The result equals that of quantize, and astype is a hundred times as fast.
        rounded = x.astype(self.form.dtype)
        if self.overflow == "saturate":
            beyond = ~np.isfinite(rounded) & (np.abs(x) > self.form.max)
            rounded[beyond] = np.copysign(self.form.max, x[beyond].astype(np.float64))
        return rounded


@dataclass(frozen=True)
class Scaled:
    """A target with a scale for each block along the last axis, or for each tile."""

    #: the block format, or the format of the elements of tiles
    format: str
    scheme: str
    #: the shape of tiles; None for blocks
    tile: Tile | None
    #: the keyword arguments of `blocks.quantize`
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
        """Return the metadata of a tensor, for `schemes.join`."""
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
    """Return a generator of one tensor, so that a resumed run has the same draws."""
    if seed is None:
        return None
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def numbers(array: Any, size: int = PIECE) -> Iterator[Array]:
    """Yield the values of an array in C order, at most `size` at a time.

    Each piece has one axis. Values of blocks are in float64, without rounding.
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


#: The name of a tensor that tries the options; it is not in the file.
_TRIAL = "module.weight"


def find(options: Options) -> Target:
    """Return the target that the options describe.

    Raises
    ------
    UserError
        For an unknown format or scheme, and for options that the format does not have.
    """
    _check_seed(options)
    target = _target(options)
    try:
        # Options that contradict each other are found before a file is written.
        target.convert(_TRIAL, np.ones((128, 128)), lambda *_: None, lambda: None)
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(target, Scaled) and brief(_TRIAL) in str(error):
            raise _not_stored(target.scheme, target.format, error) from None
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
    # DeepSeek checkpoints have tiles of 128 x 128, other schemes one scale per row.
    tile = options.tile or ((128, 128) if options.scheme == "deepseek" else (1, None))
    scheme = _scheme(options, schemes.Facts(name, (128, 128), tile=tile))
    return Scaled(name, scheme, tile, {})


def _scheme(options: Options, some: schemes.Facts) -> str:
    """Return the requested scheme, or the one that most readers know."""
    try:
        scheme = options.scheme or schemes.default_scheme(some)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    if scheme not in schemes.SCHEMES:
        raise UserError(
            f"--scheme must be one of {', '.join(schemes.SCHEMES)}; got {scheme}"
        )
    try:
        schemes.outline(_TRIAL, some, scheme)
    except (ValueError, TypeError) as error:
        raise _not_stored(scheme, some.format, error) from None
    return scheme


def _not_stored(scheme: str, format: str, error: Exception) -> UserError:
    """Return an error with the reason of another one, which names the trial tensor."""
    why = str(error).rpartition(": ")[2]
    return UserError(f"--scheme {scheme} cannot store {format}: {why}")


def _refuse(options: Options, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(options, name) != getattr(Options, name):
            raise UserError(f"--{name.replace('_', '-')} must only be given for {why}")


def _check_seed(options: Options) -> None:
    if options.seed is not None and options.rounding != "stochastic":
        raise UserError("--seed must only be given with --rounding stochastic")
    if options.seed is not None and options.seed < 0:
        raise UserError(f"--seed must be 0 or more; got {options.seed}")
