"""Make probes of ordinary numbers: kept bits, rounding, and the k that add at once.

Each function adds the probes of the group of its name. Its docstring says which
question they answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .instructions import Bits, Format, decode
from .operand_builder import SIGN, Builder, Pair, assemble, drawn, mix

# -- bits kept, exponents and rounding -------------------------------------------------


def align(p: Builder) -> None:
    """Probe a term s binades below two that cancel: how many of its bits are kept?"""
    h, last = p.high, p.k - 1
    high, low = p.power(h), p.power(h, -1)
    for sign in (1, -1):
        for s in range(1, 40):
            small = p.power(h - s, sign)
            p.add({0: high, 1: low, 2: small})
            p.add({0: low, 1: high}, sign * 2.0 ** (h - s))
            if (sign > 0) == s % 2:
                p.add({last: high, last - 1: low, last - 2: small})
                p.add({0: low, 1: small}, 2.0**h)
    # For formats too narrow for such terms: many small terms add up to c's last bit.
    for exponent in range(p.least, p.least + 6):
        for s in range(20, 29):
            count = 1 << max(s - 23, 0)
            if count <= p.k:
                p.add(
                    dict.fromkeys(range(count), p.power(exponent)),
                    2.0 ** (exponent + s),
                )


def alignr(p: Builder) -> None:
    """Probe a term of several bits below two that cancel: how is it truncated?"""
    h = p.high
    high, low = p.power(h), p.power(h, -1)
    for s in range(9, 29):
        for sign in (1.0, -1.0):
            p.add({0: high, 1: low, 2: p.product(h - s, sign * 1.5, 1.5)})
            c = sign * 2.0 ** (h - s) * (2 - 2.0**-p.fc.mantissa_bits)
            p.add({0: high, 1: low}, c)
        odd = 1.0 if s % 2 else -1.0
        p.add({0: high, 1: low, 2: p.product(h - s, odd * 1.25, 1.75)})
        p.add({0: low, 1: p.product(h - s, -odd * 1.5, 1.5)}, 2.0**h)


def tie(p: Builder) -> None:
    """Probe a tie and a term far below: how are results rounded, after which bits?"""
    h = p.high
    for m in {p.fc.mantissa_bits, 13}:
        for s in range(m + 2, 40):
            for sign in (1, -1):
                for base in (1.0, 1.5) if sign > 0 else (1.0,):
                    half, far = p.power(h - m - 1, sign), p.power(h - s)
                    p.add({0: p.product(h, sign * base), 1: half, 2: far})


def final(p: Builder) -> None:
    """Probe sums of two and three terms: the rounding and the width of results."""
    h = p.high
    for s in range(8, 29):
        for sign in (1, -1):
            high, small = p.power(h, sign), p.power(h - s)
            p.add({0: high, 1: small})
            p.add({0: high}, -(2.0 ** (h - s)))
            p.add({0: small}, sign * 2.0**h * (1 + 2.0**-p.fc.mantissa_bits))
        p.add({0: high, 1: small, 2: p.power(h - s - 1)})
        p.add({0: high, 1: small, 2: p.power(h - s - 2, -1)})


def pnorm(p: Builder) -> None:
    """Probe products of 2 and more: is their exponent the sum of the operands'?"""
    h = p.high
    high, low = p.product(h, 1.5, 1.5), p.product(h, -1.5, 1.5)
    for s in range(9, 29):
        for sign in (1, -1):
            p.add({0: high, 1: low, 2: p.power(h - s, sign)})
            p.add({0: high, 1: low}, sign * 2.0 ** (h - s))
        p.add({0: high, 1: p.power(h - s)}, -2.25 * 2.0**h)


# -- which k are added together --------------------------------------------------------


def group(p: Builder) -> None:
    """Probe a pair that cancels and a small term at all k: which k add at once?"""
    quarters = sorted({1, p.k // 4, p.k // 2, p.k - 1})
    h, tiny = p.high, _tiny(p)
    for i in range(1, p.k):
        for at in quarters:
            if at not in (0, i):
                p.add({0: p.power(h), i: p.power(h, -1), at: tiny})
    for i in range(1, p.k - 1):
        p.add({i - 1: p.power(h), i + 1: p.power(h, -1), i: tiny})
    for i in range(p.k // 2):  # two halves of c's last bit: lost if added one by one
        for j in {i + 1, p.k // 2 + i, p.k - 1 - i} - {i}:
            small = p.power(p.least)
            p.add({i: small, j: small}, 2.0 ** (p.least + p.fc.mantissa_bits + 1))


def order(p: Builder) -> None:
    """Probe c, a product that cancels it, a small term: in which order add blocks?"""
    h, tiny = p.high, _tiny(p)
    for i in range(p.k):
        for at in sorted({0, p.k // 2, p.k - 1}):
            if at != i:
                p.add({i: p.power(h, -1), at: tiny}, 2.0**h)
    for i in range(1, p.k):
        p.add({0: p.power(h, -1), i: p.power(h)}, 2.0 ** (h - 26))
        p.add({i: tiny, i - 1: tiny}, 2.0**h)


def _tiny(p: Builder) -> Pair | None:
    """Return a product so small that a sum with the high products loses it."""
    for s in (30, 27, 26, 16, 15):
        found = p.power(p.high - s)
        if found is not None:
            return found
    return p.power(p.least)


def perm(p: Builder) -> None:
    """Probe the same terms in many orders, within blocks and across them."""
    step = max(1, 40 // p.k)
    x = [(1.0, 1.5, 1.25, 1.0)[i % 4] * (-1.0) ** (i // 2) for i in range(p.k)]
    terms = [
        p.product(max(p.high - i * step, p.least + 3), x[i], 1.5) for i in range(p.k)
    ]
    for turn in range(64):
        places = np.argsort(drawn(0x9E37 + turn, p.k), kind="stable").tolist()
        c = 0.0 if turn % 2 else 2.0 ** (p.high - 5) * 1.5
        p.add(dict(zip(places, terms, strict=True)), c)


# -- random ones -----------------------------------------------------------------------


def rand(p: Builder) -> None:
    """Draw probes near 0, wide, of any code, canceling; fewer if formats differ."""
    count = 50 if p.fa == p.fb else 25
    for kind in range(4):
        a = _draw(p.fa, kind, 11 + kind, (count, p.k))
        b = _draw(p.fb, kind, 21 + kind, (count, p.k))
        if kind == 3:  # most products of the second half cancel those of the first
            half = p.k // 2
            keep = drawn(31, (count, half)) % 4 != 0
            a[:, half:] = np.where(keep, a[:, :half] ^ np.uint32(SIGN), a[:, half:])
            b[:, half:] = np.where(keep, b[:, :half], b[:, half:])
        c = _draw(p.fc, min(kind, 1), 41 + kind, (count,))
        c = np.where(drawn(51 + kind, count) % 6 == 0, np.uint32(0), c)
        for row in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
            p.add_bits(*row)


def _draw(f: Format, kind: int, seed: int, shape: Sequence[int]) -> Bits:
    """Draw numbers of a format with exponents near 0, within 40 binades, or any."""
    r = drawn(seed, shape)
    reach = (2, 20, 1 << 10, 6)[kind]
    low, high = max(f.bias - reach, 0), min(f.bias + reach, f.top_field)
    return decode(f, assemble(f, r, low + mix(r) % np.uint32(high - low + 1)))
