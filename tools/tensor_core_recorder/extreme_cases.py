"""Make probes of small and large numbers, zero, Inf, NaN; see also ordinary_cases.py.

The docstring of a function says which question its group of probes answers.
"""

from __future__ import annotations

import numpy as np

from .instructions import Format, decode
from .operand_builder import INF, ONE, SIGN, Builder, drawn

# -- small numbers ---------------------------------------------------------------------


def sub(p: Builder) -> None:
    """Probe subnormal operands, c and results: which of them are flushed?"""
    for f, other, swap in ((p.fa, p.fb, False), (p.fb, p.fa, True)):
        smallest, least = f.smallest_subnormal, f.smallest_normal
        for x in (smallest, least - smallest, least, 3 * smallest):
            for e in (0, other.largest_exponent, other.least_exponent):
                operands = (2.0**e, x) if swap else (x, 2.0**e)
                minus = (-operands[0], operands[1])
                p.add({0: operands})
                p.add({p.k - 1: minus, 0: minus})
                p.add({1: minus}, 2.0 ** (p.fc.least_exponent - 3))
    tiniest = p.fc.smallest_subnormal
    for c in (tiniest, 3 * tiniest, p.fc.smallest_normal - tiniest):
        for sign in (1, -1):
            p.add({}, sign * c)
            p.add({0: p.power(p.least)}, sign * c)
            p.add({0: p.power(p.fc.least_exponent - 1)}, sign * c)
            normal = p.power(p.fc.least_exponent)
            p.add({0: normal, 1: p.power(p.fc.least_exponent - 3)}, -c)
    bottom = p.fc.least_exponent - p.fc.mantissa_bits
    for e in range(bottom - 3, p.fc.least_exponent + 3):
        p.add({0: p.power(e)})
        p.add({0: p.product(e, -1.5, 1.5)})
        p.add({0: p.power(e), 1: p.power(e - 1), 2: p.power(e - 2)})
    for e in range(p.least, p.least + 12):
        p.add({0: p.power(e), p.k - 1: p.power(e + 1, -1)})


def subexp(p: Builder) -> None:
    """Probe subnormal times large: which exponent does a subnormal operand count as?"""
    for f, other, swap in ((p.fa, p.fb, False), (p.fb, p.fa, True)):
        x = f.smallest_subnormal
        for top in (other.largest_exponent, 0):
            y = 2.0**top
            high, low = ((y, x), (y, -x)) if swap else ((x, y), (x, -y))
            exponent = f.least_exponent + top
            for s in range(10, 30):
                p.add({0: high, 1: low, 2: p.product(exponent - s, 1.5)})
                if top:
                    p.add({0: high, 1: low}, 2.0 ** (exponent - s))


def zexp(p: Builder) -> None:
    """Probe zero times large plus a small c: does a zero product set the alignment?"""
    m = p.fc.mantissa_bits
    odd = 2 - 2.0**-m
    tops = {p.fb.largest_exponent, p.fb.largest_exponent // 2, 0}
    for top in tops:
        zeros = {0: (0.0, 2.0**top), p.k - 1: (-0.0, 2.0**top)}
        for e in range(p.fc.least_exponent, p.fc.least_exponent + 40, 3):
            p.add(zeros, 2.0**e * odd)
        for e in range(top - 50, top + 2, 4):
            p.add(zeros, -(2.0**e) * odd)
        for e in (-1, -9, -17):
            p.add({**zeros, 1: p.product(p.fc.least_exponent + e, 1.5, 1.5)})
    largest = 2.0**p.fa.largest_exponent
    for c in (p.fc.smallest_subnormal, p.fc.smallest_normal * odd):
        p.add(dict.fromkeys(range(p.k), (largest, 0.0)), c)
        p.add(dict.fromkeys(range(p.k), (largest, 0.0)), -c)


def zeroc(p: Builder) -> None:
    """Probe tiny sums with c = 0 and c = -0: does a zero c set the alignment?"""
    start = p.fc.least_exponent
    for e in range(start - 14, start + 4):
        for c in (0.0, -0.0):
            p.add({0: p.product(e, 1.25, 1.5), 1: p.product(e - 9, 1.5, 1.75)}, c)
            p.add({0: p.product(e, 1.5, 1.5), 1: p.power(e - 23, -1)}, c)


# The factors of 2**n - 1, which have at most 8 bits each.
_ONES = {
    1: (1, 1), 2: (3, 1), 3: (7, 1), 4: (15, 1), 5: (31, 1), 6: (63, 1), 7: (127, 1),
    8: (255, 1), 9: (73, 7), 10: (93, 11), 11: (89, 23), 12: (65, 63), 14: (129, 127),
    15: (217, 151),
}  # fmt: skip


def floor(p: Builder) -> None:
    """Probe tiny sums that carry: what is the smallest exponent of the alignment?

    A term of 2**q - 2**(q - n) and two terms of 2**(q - n - 1) add up to 2**q, the last
    bit of a result. From some n on, alignment truncates the two small terms.
    """
    m = p.fc.mantissa_bits
    q = p.fc.least_exponent - m
    if p.fc.storage == 32:
        for n, (x, y) in _ONES.items():
            for sign in (1, -1):
                small = p.power(q - n - 1, sign)
                most = p.product(q - n, sign * float(x), float(y))
                p.add({0: most, 1: small, 2: small})
                p.add({0: most, p.k // 2: small, p.k - 1: small})
                p.add({0: most, 1: small, 2: small}, sign * 2.0**q)
    else:  # to nearest: only a term far below breaks the tie
        for e in range(q - 30, q - 1):
            for sign in (1, -1):
                p.add({0: p.power(q - 1, sign), 1: p.power(e, sign)})
                p.add({0: p.power(q - 1, sign), 1: p.power(e, -sign)})
                p.add({0: p.product(q - 1, 1.5 * sign, 1.5), 1: p.power(e, sign)})


def negzero(p: Builder) -> None:
    """Probe negative sums that are too small for a result: which zero do they give?"""
    q = p.fc.least_exponent - p.fc.mantissa_bits
    for e in range(q - 6, q + 1):
        for sign in (1, -1):
            p.add({0: p.product(e, 1.5 * sign)})
            p.add({0: p.product(e, 1.5 * sign)}, -0.0)
            p.add({0: p.product(e, 1.0 * sign), p.k - 1: p.product(e - 2, 1.5 * sign)})


# -- large numbers, zeros, Inf and NaN -------------------------------------------------


def carry(p: Builder) -> None:
    """Probe sums of large products only: is any carry lost?"""
    one = float(np.nextafter(np.float32(2), np.float32(0)))
    for scale in (0, -3, -20):
        x = p.fa.max * 2.0 ** (scale - p.fa.largest_exponent)
        y = p.fb.max * 2.0 ** (-p.fb.largest_exponent)
        for sign in (1, -1):
            for count in (p.k, p.k - 1, p.k // 2 + 1):
                terms = dict.fromkeys(range(count), (sign * x, y))
                for c in (0.0, one, -one):
                    p.add(terms, c)
    for sign in (1, -1):
        full = dict.fromkeys(range(p.k), (sign * p.fa.max, p.fb.max))
        for c in (0.0, 1.0, -1.0):
            p.add(full, c)


def over(p: Builder) -> None:
    """Probe sums out of the accumulator's range, and such products that cancel."""
    top = p.fc.largest_exponent
    most = p.fc.max
    for sign in (1, -1):
        for below in (-1, 0, 1, 10, 11, 12, 23, 24, 25, 26):
            e = top - below
            p.add({0: p.power(e, sign)}, sign * most)
            p.add({0: p.power(e, sign), p.k - 1: p.power(e, sign)})
            p.add({0: p.power(e, sign), p.k - 1: p.power(e, sign)}, sign * 2.0**top)
        for e in (p.largest - 3, p.largest - 1, p.largest):
            high, low = p.power(e, sign), p.power(e, -sign)
            p.add({0: high})
            for c in (1.0, most):
                p.add({0: high, 1: low}, c)
                p.add({0: high, p.k - 1: low}, c)
                p.add({0: high, 1: high, 2: low, p.k - 1: low}, -c)


def sign0(p: Builder) -> None:
    """Probe zeros of both signs, and sums that cancel: what sign has an exact zero?"""
    one, minus = (1.0, 1.0), (-1.0, 1.0)
    for c in (0.0, -0.0):
        p.add({}, c)
        zeros = (-0.0, 1.0), (0.0, -1.0), (-0.0, -0.0), (-0.0, 0.0), (0.0, -0.0)
        for operands in zeros:
            p.add(dict.fromkeys(range(p.k), operands), c)
            p.add({0: operands}, c)
        p.add({0: one, 1: minus}, c)
        p.add({0: minus, p.k - 1: one}, c)
        p.add({0: one, 1: minus, 2: p.power(p.least, -1)}, c)
    p.add({0: minus}, 1.0)
    p.add({p.k - 1: one}, -1.0)
    p.add(dict.fromkeys(range(p.k), minus), float(p.k))


_PAYLOADS = (0x7FC00000, 0x7FFFE000, 0x7FA00000, 0x7F802000, 0x7FC0A000, 0x7F820000)


def _nans(f: Format) -> list[int]:
    """Return NaN of a format: all of e5m2, some of others, quiet and signaling."""
    if f.storage == 32:
        found = list(_PAYLOADS)
    else:
        codes = np.arange(1 << (f.bits - 1)) << f.shift
        bits = decode(f, codes.astype(f.unsigned))
        found = bits[np.isnan(bits.view(np.float32))].tolist()
        if len(found) >= 8:
            quiet = len(found) // 2
            found = [found[i] for i in (0, 1, 5, -2, -1, quiet)]
    return [bits | sign for bits in found for sign in (0, SIGN)]


def spec(p: Builder) -> None:
    """Probe Inf in operands and c: when is the result Inf or NaN?"""
    k = p.k

    def probe(terms: dict[int, tuple[int, int]], c: int = 0) -> None:
        a, b = [0] * k, [0] * k
        for at, (x, y) in terms.items():
            a[at], b[at] = x, y
        p.add_bits(a, b, c)

    ends = sorted({0, k // 2, k - 1})
    for c in (INF, INF | SIGN):
        probe({}, c)
        probe({0: (ONE, ONE)}, c)
        probe({k - 1: (ONE | SIGN, ONE)}, c)
    for swap in (False, True):
        if not (p.fb if swap else p.fa).has_infinity:
            continue
        for at in ends:
            for x in (INF, INF | SIGN):
                for y in (ONE, ONE | SIGN, 0, SIGN):
                    for c in (0, INF) if y else (ONE,):
                        probe({at: (y, x) if swap else (x, y)}, c)
        first = (ONE, INF) if swap else (INF, ONE)
        second = (ONE, INF | SIGN) if swap else (INF | SIGN, ONE)
        for i in sorted({1, k // 4, k // 2, k - 1}):
            probe({0: first, i: second})
            probe({0: first, i: first})


def nan(p: Builder) -> None:
    """Probe NaN with signs and payloads in operands and c: which NaN is the result?"""
    k = p.k
    other_nan = 0x7FE00000 if p.fc.storage == 16 else 0x7F923000
    for bits in _nans(p.fc):
        p.add_bits([0] * k, [0] * k, bits)
        p.add_bits([ONE] * k, [ONE] * k, bits)
    for side, f in enumerate((p.fa, p.fb)):
        for i, bits in enumerate(_nans(f)):
            at = (0, k - 1, k // 2)[i % 3]
            for other, c in ((ONE, 0), (ONE, INF), (0, 0), (ONE, other_nan)):
                operands = [[0] * k, [0] * k]
                operands[side][at], operands[1 - side][at] = bits, other
                p.add_bits(operands[0], operands[1], c)


_LOW = 0x7F800001, 0x7F801FFF, 0x7F801000, 0xFF800001, 0x7F802001, 0x1FFF, 0x1


def lowbits(p: Builder) -> None:
    """Probe tf32 operands with bits below tf32's: do the bits count, also in NaN?"""
    if p.fa.name != "tf32":
        return
    k = p.k
    low = (drawn(0x10B175, (32, 2, k)) & 0x1FFF).tolist()
    values = (drawn(0x10B176, (32, 2, k)) & 0x807FE000 | 0x3F800000).tolist()
    for x, y in zip(values, low, strict=True):
        a, b = (
            [v | w for v, w in zip(*row, strict=True)] for row in zip(x, y, strict=True)
        )
        p.add_bits(a, b, 0)
        p.add_bits(a, x[1], ONE)
    for at in (0, k - 1):
        for bits in _LOW:
            for side in (0, 1):
                for other, c in ((ONE, 0), (0, 0), (ONE | SIGN, ONE)):
                    operands = [[0] * k, [0] * k]
                    operands[side][at], operands[1 - side][at] = bits, other
                    p.add_bits(operands[0], operands[1], c)


def czero(p: Builder) -> None:
    """Probe products of zero plus c: is c truncated?"""
    m = p.fc.mantissa_bits
    least = p.fc.least_exponent
    for e in (0, -7, least, least + 12, p.fc.largest_exponent):
        for low in (2.0**-m, 2.0**-14, 2.0**-13, 2.0**-10, 1 - 2.0**-m):
            p.add({}, 2.0**e * (1 + low))
            p.add({}, -(2.0**e) * (1 + low))
            p.add({0: p.power(e - 3, -1)}, -(2.0**e) * (1 + low))


def twice(p: Builder) -> None:
    """Probe sums whose float16 result differs if they are cut to 13 bits first."""
    if p.fc.storage != 16:
        return
    count = p.k // 2  # equal terms, whose carry leaves bits to truncate
    rise = count.bit_length() - 1
    for h in (p.high - 4, 0):
        for at in {count + 1, p.k - 1}:
            for s in range(rise + 3, rise + 12):
                for sign in (1, -1):
                    equal = dict.fromkeys(range(count), p.power(h, sign))
                    half, far = p.power(h + rise - 11, sign), p.power(h - s, sign)
                    p.add({**equal, count: half, at: far})
