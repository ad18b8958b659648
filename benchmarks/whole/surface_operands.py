"""Make operands of calls in a layout, a size and named data, of any type."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from common import data, peer_type

MEBI = 1 << 20
NUMBER = 1.5  # the value of the operand in layouts with a Python number
SINGLE = "float32"
FEW, MANY = 1 << 15, 2 * MEBI + (1 << 15)  # elements drawn for small and large arrays


@dataclass(frozen=True)
class Variant:
    """The layout, the number of elements and the data of a call's operands."""

    layout: str = "contiguous"
    size: int = MEBI
    data: str = "normal"  # see numbers()

    @property
    def name(self) -> str:
        unit, letters = (MEBI, "Mi") if self.size >= MEBI else (1 << 10, "Ki")
        size = f"{self.size // unit}{letters}" if self.size >= unit else str(self.size)
        return f"{self.layout}, {size}, {self.data}"


# Map elements into a domain in which a function is not NaN. Random codes are not
# mapped.
DOMAINS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "all": lambda x: x,
    "positive": np.abs,
    "from 1": lambda x: 1 + np.abs(x),
    "to 1": lambda x: x / (1 + np.abs(x)),
}


def _formats() -> Any:
    import tf32dtype as td

    return td.formats


@lru_cache(maxsize=256)
def numbers(name: str, kind: str, domain: str, count: int) -> np.ndarray:
    """Return elements of a format or NumPy type, of a kind of data or "specials".

    "specials" are N(0, 1) in all domains. A third of them is replaced by 0, one in 64
    by Inf, and one in 64 by NaN.
    """
    formats = _formats()
    ours = name in formats
    dtype = np.dtype(formats[name].type if ours else name)
    if kind == "codes" and ours:
        return data(kind, count, dtype)
    if kind == "codes" and dtype.kind in "iu":
        raw = np.random.default_rng(3).bytes(count * dtype.itemsize)
        return np.frombuffer(raw, dtype).copy()
    single = data("binades" if kind == "binades" else "normal", count, np.dtype("f4"))
    if kind == "specials" and dtype.kind not in "iu":
        single, domain = with_specials(single), "all"
    if dtype.kind == "b":
        return single > 0
    if name == "float8_e8m0fnu" or dtype.kind == "u":
        single = np.abs(single)
    if dtype.kind in "iu":
        single = np.clip(single * 30, -100, 100)
    return DOMAINS[domain](single).astype(dtype)


def with_specials(single: np.ndarray) -> np.ndarray:
    drawn = np.random.default_rng(7).integers(0, 192, single.size)
    found = np.where(drawn < 64, np.float32(0), single)
    found[drawn >= 186] = np.inf
    found[drawn >= 189] = np.nan
    return found


@lru_cache(maxsize=1)
def random_bits(count: int) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 2, count, np.int8).view(bool)


@lru_cache(maxsize=1)
def random_places(count: int) -> np.ndarray:
    return np.random.default_rng(6).integers(0, count, count)


class Operands:
    """Arrays of one type for a variant, by the names that surface_calls.py uses.

    `x` and `y` have the variant's layout; `matrix` and `cube` have the same number of
    elements in C order. With `theirs`, the type is ml_dtypes' of the same name. If the
    data are random codes, float32 has the values of the codes of the format `beside`.
    """

    def __init__(
        self, name: str, variant: Variant, theirs: bool = False, beside: str = ""
    ) -> None:
        self.name, self.variant, self.theirs = name, variant, theirs
        self.beside = beside if variant.data == "codes" else ""
        self.size = variant.size

    @cached_property
    def dtype(self) -> np.dtype:
        return self.flat(1).dtype

    def flat(
        self, count: int | None = None, which: int = 0, domain: str = "all"
    ) -> np.ndarray:
        """Return contiguous elements for the operand with the number `which`."""
        count = self.size if count is None else count
        stored = FEW if 2 * count <= FEW else MANY
        drawn = self.beside or self.name
        source = numbers(drawn, self.variant.data, domain, stored)
        start = 4099 * which
        if start + count > source.size:
            found = np.resize(source[start:], count)
        else:
            found = source[start : start + count].copy()
        if self.beside:
            return found.astype(self.name)
        if self.theirs and self.name in _formats():
            peer = peer_type(self.name)
            if peer is None:
                raise TypeError(f"ml_dtypes has no {self.name}")
            return found.view(peer)
        return found

    def array(self, which: int = 0, domain: str = "all") -> np.ndarray:
        """Return an operand in the layout of the variant."""
        layout = self.variant.layout
        if layout in ("strided", f"operand {which} strided"):
            return self.flat(2 * self.size, which, domain)[::2]
        flat = self.flat(None, which, domain)
        if layout == "reversed":
            return flat[::-1]
        if layout == "transposed":
            return flat.reshape(self.rows, -1).T
        if layout in ("row", "column"):
            if which == 0:
                return flat.reshape(self.rows, -1)
            side = self.size // self.rows
            return flat[:side] if layout == "row" else flat[: self.rows, None]
        if layout == "unaligned":
            buffer = np.empty(flat.nbytes + 1, np.uint8)[1:]
            buffer[:] = flat.view(np.uint8)
            return buffer.view(flat.dtype)
        if layout == f"operand {which} 0-d":
            return flat[:1].reshape(())
        if layout == f"operand {which} constant":
            return np.broadcast_to(flat[:1], flat.shape)
        return flat

    def operands(self, domains: tuple[str, ...]) -> list[Any]:
        """Return one operand per domain, one a Python number if the layout has it."""
        found: list[Any] = []
        for which, domain in enumerate(domains):
            number = self.variant.layout == f"operand {which} a Python number"
            found.append(NUMBER if number else self.array(which, domain))
        return found

    def results(self, ufunc: np.ufunc, operands: list[Any]) -> tuple[np.ndarray, ...]:
        """Return the outputs for a call of the ufunc."""
        few = [x if np.isscalar(x) else x[(slice(1),) * x.ndim] for x in operands]
        samples = ufunc(*few)
        samples = samples if isinstance(samples, tuple) else (samples,)
        shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
        if self.variant.layout == "output strided":
            return tuple(np.empty(2 * self.size, s.dtype)[::2] for s in samples)
        return tuple(np.empty(shape, sample.dtype) for sample in samples)

    @property
    def rows(self) -> int:
        """The rows of `matrix`: a power of two near the root of the size."""
        return 1 << (self.size.bit_length() // 2)

    @cached_property
    def x(self) -> np.ndarray:
        return self.array(0)

    @cached_property
    def y(self) -> np.ndarray:
        return self.array(1)

    @cached_property
    def matrix(self) -> np.ndarray:
        return self.flat().reshape(self.rows, -1)

    @cached_property
    def cube(self) -> np.ndarray:
        side = 1 << (self.size.bit_length() // 3)
        return self.flat().reshape(side, side, -1)

    def square(self, n: int, which: int = 0) -> np.ndarray:
        return self.flat(n * n, which).reshape(n, n)

    @cached_property
    def sorted(self) -> np.ndarray:
        return np.sort(self.flat())

    @cached_property
    def mask(self) -> np.ndarray:
        """Random booleans of the shape of `x`."""
        return random_bits(self.x.size).reshape(self.x.shape)

    @cached_property
    def indices(self) -> np.ndarray:
        """Random indices into `x`, as many as it has elements."""
        return random_places(self.x.size)

    @cached_property
    def one(self) -> Any:
        """A scalar of the type."""
        return self.flat(1, 2)[0]
