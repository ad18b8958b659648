"""Calls of BLAS as C and Fortran programs make them, and their expected results.

The reference is `td.matmul` of whole operands, followed by NumPy's arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tf32dtype as td
from tf32dtype import _core
from tf32dtype._matmul.precisions import Settings, resolve

Array = NDArray[Any]
View = Callable[[Array], Array]

DTYPES: dict[str, type] = {
    "s": np.float32,
    "d": np.float64,
    "c": np.complex64,
    "z": np.complex128,
}
PRECISIONS: list[dict[str, Any]] = [
    {"precision": "bf16"},
    {"precision": "tf32"},
    {"precision": "bf16x9"},
    {"precision": "fp8_e4m3"},
    {"precision": "fp8_e4m3", "scale": "row"},
    {"precision": "bf16", "device": "H100"},
    {"precision": "bf16", "device": "MI300X"},  # -operand is not -sum
]
EXACT: list[dict[str, Any]] = [
    {"precision": "exact", "blas": True},
    {"precision": "exact", "blas": True, "rounding": "toward_positive"},
    {"precision": "exact", "blas": True, "rounding": "toward_zero"},
]


class Form(NamedTuple):
    """An interface: C's or Fortran's, row-major or not, 64-bit integers or not."""

    cblas: bool
    rows: bool
    wide: bool


FORMS = [
    Form(False, False, False),
    Form(False, False, True),
    Form(True, False, False),
    Form(True, False, True),
    Form(True, True, False),
    Form(True, True, True),
]
NUMBERS = {
    "trans": dict(zip("NTCR", (111, 112, 113, 114), strict=True)),
    "uplo": {"U": 121, "L": 122},
    "diag": {"N": 131, "U": 132},
    "side": {"L": 141, "R": 142},
}
GARBAGE = 0x5EADBEEF << 32  # in the upper half of a register


def spec_of(**precision: Any) -> _core.MatmulSpec:
    spec = resolve(Settings(**precision))
    assert spec is not None
    return spec


class Stored:
    """A matrix or a vector in memory, surrounded by NaN."""

    def __init__(self, memory: Array, where: View) -> None:
        self.memory, self.where = memory, where
        self.before = memory.copy()

    def expect(self, values: Array, mask: Any = True) -> None:
        """Compare all of the memory with the expected result and the old rest."""
        wanted = self.before.copy()
        np.copyto(self.where(wanted), values, where=mask)
        if wanted.tobytes() != self.memory.tobytes():
            np.testing.assert_array_equal(self.where(self.memory), self.where(wanted))
            raise AssertionError(
                "bytes outside the result, a zero's sign or a NaN's bits differ"
            )


class Call:
    """The arguments of a call, in order."""

    def __init__(self, routine: str, kind: str, form: Form, first: str = "") -> None:
        """`first` replaces the letter of the type in the name."""
        self.kind, self.form, self.dtype = kind, form, np.dtype(DTYPES[kind])
        name = (first or kind) + routine
        self.symbol = f"cblas_{name}" if form.cblas else f"{name}_"
        if form.wide:
            self.symbol += "64_"
        self.words: list[Any] = []
        self.floating: list[float] = []
        if form.cblas and "dot" not in routine:
            self._small(102 - form.rows)

    def _small(self, number: int) -> None:
        self.words.append((number & 0xFFFFFFFF) | GARBAGE)

    def integer(self, number: int) -> None:
        if not self.form.cblas:
            self.words.append(
                np.array(number, np.int64 if self.form.wide else np.int32)
            )
        elif self.form.wide:
            self.words.append(number)
        else:
            self._small(number)

    def option(self, group: str, letter: str) -> None:
        if self.form.cblas:
            self._small(NUMBERS[group].get(letter, 7))
        else:
            self.words.append(letter.encode())

    def scalar(self, number: complex, real: bool = False) -> None:
        real |= self.kind in "sd"
        dtype = DTYPES[{"c": "s", "z": "d"}.get(self.kind, self.kind)]
        value = np.array(number.real if real else number, dtype if real else self.dtype)
        if self.form.cblas and real:
            self.floating.append(float(value))
        else:
            self.words.append(value)

    def matrix(self, x: Array) -> Stored:
        """Add a matrix with a leading dimension larger by two."""
        lines, length = x.shape if self.form.rows else x.shape[::-1]

        def where(memory: Array) -> Array:
            used = memory[:, :length]
            return used if self.form.rows else used.T

        return self._stored(x, (lines, length + 2), where, length + 2)

    def vector(self, x: Array, step: int) -> Stored:
        n = len(x)
        stop = 1 + (n - 1) * abs(step) if n else 0

        def where(memory: Array) -> Array:
            return memory[:stop][::step] if step else memory[:n]

        return self._stored(x, (max(1, n) * max(1, abs(step)),), where, step)

    def _stored(self, x: Array, shape: tuple[int, ...], where: View, ld: int) -> Stored:
        memory = np.full(shape, np.nan, self.dtype)
        where(memory)[...] = x
        self.words.append(memory)
        self.integer(ld)
        return Stored(memory, where)

    def made(self) -> _core.BlasCall:
        return _core.BlasCall(self.symbol, self.words, self.floating)

    def compute(self, precision: dict[str, Any]) -> int:
        return self.made().compute(spec_of(**precision))[0]


# -- the reference ---------------------------------------------------------------------


def op(x: Array, letter: str) -> Array:
    x = x.T if letter in "TC" else x
    return x.conj() if letter in "CR" else x


def real_sums(a: Array, b: Array, precision: dict[str, Any]) -> Array:
    with np.errstate(all="ignore"):
        x, y = a.astype(np.float32), b.astype(np.float32)
        return td.matmul(x, y, **precision)


def sums(a: Array, b: Array, precision: dict[str, Any], flips: str = "") -> Array:
    """Return A B; for complex operands, `flips` names the conjugated ones."""
    if precision["precision"] == "exact":
        return exact_sums(a, b, precision, flips)
    if a.dtype.kind != "c":
        result = real_sums(a, b, precision).astype(a.dtype)
        if a.dtype == np.float64:  # devices have their own NaN only in float32
            result[np.isnan(result)] = np.nan
        return result
    a, b = (x.conj() if name in flips else x for x, name in ((a, "a"), (b, "b")))
    with np.errstate(all="ignore"):
        rr, ii, ri, ir = (
            real_sums(x, y, precision).astype(a.real.dtype)
            for x, y in (
                (a.real, b.real),
                (a.imag, b.imag),
                (a.real, b.imag),
                (a.imag, b.real),
            )
        )
        result = np.empty(rr.shape, a.dtype)
        result.real = rr - ii
        result.imag = ri + ir
    for part in (result.real, result.imag):  # an addition's NaN is the usual one
        part[np.isnan(part)] = np.nan
    return result


def exact_sums(
    a: Array,
    b: Array,
    precision: dict[str, Any],
    flips: str = "",
    dtype: type | None = None,
) -> Array:
    if a.dtype.kind == "c":
        a, b = (x.conj() if name in flips else x for x, name in ((a, "a"), (b, "b")))
    rounding = precision.get("rounding")
    with np.errstate(all="ignore"):
        return td.matmul(a, b, precision="exact", rounding=rounding, dtype=dtype)


def fma32(x: Array, y: Array, z: Array) -> Array:
    """Return float32's FMA: the float64 sum is rounded to odd, then to float32."""
    p, z = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
    s = p + z
    back = s - p
    error = (p - (s - back)) + (z - back)
    even = (s.view(np.int64) & 1) == 0
    towards = np.nextafter(s, np.copysign(np.inf, error))
    return np.where((error != 0) & even, towards, s).astype(np.float32)


def fma64(x: float, y: float, z: float) -> float:
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact else x * y + z


def times(x: complex, y: Array) -> Array:
    """Multiply by components: NumPy fuses its complex product on some machines."""
    if y.dtype.kind != "c":
        return y.dtype.type(x.real) * y
    real, imaginary = y.real.dtype.type(x.real), y.real.dtype.type(x.imag)
    result = np.empty_like(y)
    result.real, result.imag = real * y.real, real * y.imag
    if imaginary:
        result.real -= imaginary * y.imag
        result.imag += imaginary * y.real
    return result


def updated(
    alpha: complex,
    product: Array,
    beta: complex,
    c: Array,
    more: Array | None = None,
    second: complex | None = None,
) -> Array:
    """Return alpha product (+ second more) + beta c."""
    with np.errstate(all="ignore"):
        s = times(alpha, product)
        if more is not None:
            s = s + times(alpha if second is None else second, more)
        if beta == 0:
            return s
        if c.dtype.kind == "c":
            return s + times(beta, c)
        factor = np.full_like(c, beta)
        if c.dtype == np.float32:
            return fma32(factor, c, s)
        return np.vectorize(fma64, otypes=[float])(factor, c, s)


def draw(rng: np.random.Generator, kind: str, *shape: int) -> Array:
    x = rng.standard_normal(shape)
    if kind in "cz":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(DTYPES[kind])


def half(x: Array, uplo: str, strictly: bool = False) -> Array:
    """Return a mask of a triangle."""
    mask = np.tri(len(x), k=-1 if strictly else 0, dtype=bool)
    return mask if uplo == "L" else mask.T


def only(x: Array, uplo: str, strictly: bool = False) -> Array:
    """Set the other triangle to NaN, as BLAS must not read it."""
    return np.where(half(x, uplo, strictly), x, np.nan).astype(x.dtype)


def mirrored(x: Array, uplo: str, hermitian: bool) -> Array:
    full = np.where(half(x, uplo), x, x.conj().T if hermitian else x.T)
    if hermitian:
        np.fill_diagonal(full, np.diag(x).real)
    return full.astype(x.dtype)


def triangular(x: Array, uplo: str, unit: bool) -> Array:
    full = np.where(half(x, uplo, unit), x, 0).astype(x.dtype)
    if unit:
        np.fill_diagonal(full, 1)
    return full
