"""Emulated precisions, by Python's integers, with residues as GEMMul8 has them."""

from __future__ import annotations

import math
from fractions import Fraction

from . import codec
from .formats import Format

Rows = list[list[float]]


def moduli(count: int) -> list[int]:
    """Return the largest integers up to 256 that share no factor."""
    found: list[int] = []
    candidate = 256
    while len(found) < count:
        if all(math.gcd(candidate, p) == 1 for p in found):
            found.append(candidate)
        candidate -= 1
    return found


def _floor_log2(x: Fraction) -> int:
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if Fraction(2) ** exponent <= x else exponent - 1


def _top(row: list[float]) -> int:
    largest = max(map(abs, row), default=0.0)
    return _floor_log2(Fraction(largest)) if largest else 0


def _scaled(x: float, exponent: int) -> Fraction:
    return Fraction(x) * Fraction(2) ** exponent


def _bounds(row: list[float], exponent: int) -> list[int]:
    return [math.ceil(_scaled(abs(x), exponent)) for x in row]


def _half_log2(x: Fraction) -> int:
    """Return floor(log2(x) / 2)."""
    return _floor_log2(x) // 2


def _accurate(rows: Rows, columns: Rows, product: int) -> tuple[list[int], list[int]]:
    u, v = (
        [_bounds(row, 5 - _top(row)) for row in matrix] for matrix in (rows, columns)
    )
    sums = [[sum(p * q for p, q in zip(a, b, strict=True)) for b in v] for a in u]

    def scale(row: list[float], largest: int) -> int:
        change = _half_log2(Fraction(product - 1, 2 * largest)) if largest else 0
        return 5 - _top(row) + change

    first = [scale(row, max(h, default=0)) for row, h in zip(rows, sums, strict=True)]
    second = [
        scale(column, max((h[j] for h in sums), default=0))
        for j, column in enumerate(columns)
    ]
    return first, second


def _fast(row: list[float], product: int, is_double: bool) -> int:
    top = _top(row)
    squares = sum(x * x for x in _bounds(row, 16 - top)) * Fraction(4) ** (top - 16)
    if squares == 0:
        return 0
    norm = squares * Fraction(2) ** _floor_log2(squares) if is_double else squares
    return _half_log2(Fraction(product - 1) / 32 / max(norm, Fraction(4))) - top


def _crt(residues: list[int], primes: list[int]) -> int:
    """Return the number in [-P/2, P/2) that has these residues."""
    product = math.prod(primes)
    total = 0
    for residue, p in zip(residues, primes, strict=True):
        others = product // p
        total += others * pow(others, -1, p) * residue
    total %= product
    return total - product if 2 * total >= product else total


def _of_moduli(
    rows: Rows, columns: Rows, count: int, is_fast: bool, is_double: bool
) -> list[list[Fraction]]:
    primes = moduli(count)
    product = math.prod(primes)
    if is_fast:
        first = [_fast(row, product, is_double) for row in rows]
        second = [_fast(column, product, is_double) for column in columns]
    else:
        first, second = _accurate(rows, columns, product)
    a, b = (
        [[math.trunc(_scaled(x, s)) for x in row] for row, s in zip(z, e, strict=True)]
        for z, e in ((rows, first), (columns, second))
    )
    found = []
    for x, s in zip(a, first, strict=True):
        found.append([])
        for y, t in zip(b, second, strict=True):
            residues = [
                sum((p % q) * (r % q) for p, r in zip(x, y, strict=True)) % q
                for q in primes
            ]
            found[-1].append(_crt(residues, primes) * Fraction(2) ** -(s + t))
    return found


def _cut(x: int, count: int) -> list[int]:
    """Return slices of 8 bits, the first one with the sign."""
    items = (x % 256**count).to_bytes(count, "big")
    return [items[0] - 256 * (items[0] > 127), *items[1:]]


def _of_slices(rows: Rows, columns: Rows, count: int) -> list[list[Fraction]]:
    scales = [[8 * count - 2 - _top(row) for row in z] for z in (rows, columns)]
    a, b = (
        [
            [_cut(math.floor(_scaled(x, s)), count) for x in row]
            for row, s in zip(z, e, strict=True)
        ]
        for z, e in zip((rows, columns), scales, strict=True)
    )
    found = []
    for x, s in zip(a, scales[0], strict=True):
        found.append([])
        for y, t in zip(b, scales[1], strict=True):
            total = sum(
                p[i] * q[j] * 256 ** (2 * count - 2 - i - j)
                for p, q in zip(x, y, strict=True)
                for i in range(count)
                for j in range(count - i)
            )
            found[-1].append(total * Fraction(2) ** -(s + t))
    return found


def matmul(
    rows: Rows, columns: Rows, precision: str, form: Format, is_double: bool
) -> list[list[int]]:
    """Return the items of products of rows and columns of finite and other numbers.

    A row that has Inf or NaN counts as zeros, and its results are those of IEEE 754.
    """
    kind, _, rest = precision.partition("crt")
    number, _, fast = (rest or precision.removeprefix("int8x")).partition("_")
    a, b = (
        [row if all(map(math.isfinite, row)) else [0.0] * len(row) for row in z]
        for z in (rows, columns)
    )
    if kind:
        exact = _of_slices(a, b, int(number))
    else:
        exact = _of_moduli(a, b, int(number), fast == "fast", is_double)
    items = []
    for row, values in zip(rows, exact, strict=True):
        items.append([])
        for column, value in zip(columns, values, strict=True):
            special = [
                x * y
                for x, y in zip(row, column, strict=True)
                if not (math.isfinite(x) and math.isfinite(y))
            ]
            items[-1].append(_item(value, sum(special), form))
    return items


def _item(value: Fraction, special: float, form: Format) -> int:
    """Return the item of a binary fraction, or of Inf or NaN."""
    if special != 0:
        kind = "nan" if math.isnan(special) else "inf"
        exact = codec.Exact(kind == "inf" and special < 0, special=kind)
    else:
        power = value.denominator.bit_length() - 1
        exact = codec.Exact(value < 0, abs(value.numerator), -power)
    return codec.encode(form, exact, "ties_to_even")[0]
