"""Cases at the edges of a tensor core's arithmetic, for any model.

Each family yields a few products and a c. `edges` places the products along k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from tests.tensor_core.cases import INF, NAN, Bounds, Cases, Pair, dirty, is_exact

Products = Sequence[Pair | None]  # None: no factors in the formats
Case = tuple[Products, float]  # products and c
Placed = tuple[dict[int, Pair | None], float]  # products by their k, and c
Family = Callable[[Bounds], Iterator[Case]]

SHAPES = ("one", "ones", "odd")


def minus(x: Pair | None) -> Pair | None:
    return x and (-x[0], x[1])


def times(sign: int, x: Pair | None) -> Pair | None:
    return x if sign > 0 else minus(x)


def full(m: Bounds, exponent: int) -> float:
    """Return an accumulator of all ones, or zero if none has this exponent."""
    if not m.result.least_exponent <= exponent <= m.result.bias:
        return 0.0
    least = max(exponent, m.result.normal_exponent) - m.result.mantissa_bits
    return 2.0 ** (exponent + 1) - 2.0**least


def borders(m: Bounds) -> Iterator[tuple[int, int]]:
    """Yield exponents of large terms, and how far below them small terms are. The
    distances are all distances for the first exponent, and those at the border for
    others."""
    first, *others = m.levels()
    yield from ((first, down) for down in range(1, 42))
    yield from product(others, range(m.fraction - 3, m.fraction + 4))


# -- alignment -----------------------------------------------------------------


def cut(m: Bounds) -> Iterator[Case]:
    """Yield large terms that cancel or stay, and one below with bits at the border."""
    for (level, down), sign in product(borders(m), (1, -1)):
        h, g = m.pair(level), m.pair(level, "ones")
        for shape in SHAPES:
            low = times(sign, m.pair(level - down, shape))
            if low is None:
                continue
            yield [h, minus(h), low], 0.0
            yield [g, minus(g), low], 0.0
            yield [h, low], 0.0
            yield [g, low, low, minus(low), low], 0.0
            yield [h, minus(h), low, low, low], -sign * 2.0**level


def cut_by_c(m: Bounds) -> Iterator[Case]:
    """Yield cases in which c is the large term. A product may cancel it."""
    for (level, down), sign in product(borders(m), (1, -1)):
        h = m.pair(level)
        for shape in SHAPES:
            low = times(sign, m.pair(level - down, shape))
            if low is not None:
                yield [low], 2.0**level
                yield [low], full(m, level)
                yield [minus(h), low], 2.0**level
                yield [low, minus(h)], full(m, level)
    # Narrow formats have no products far enough below c. Here c may be far above them.
    for level, sign in product(range(m.least, m.least + 8), (1, -1)):
        for down in range(m.fraction - 4, m.fraction + 4):
            for shape in SHAPES:
                low = times(sign, m.pair(level, shape))
                yield [low], 2.0 ** (level + down)
                yield [low, low, low], full(m, level + down)


def cut_c(m: Bounds) -> Iterator[Case]:
    """Yield cases in which c is the small term."""
    for (level, down), sign in product(borders(m), (1, -1)):
        h, g = m.pair(level), m.pair(level, "ones")
        for c in (full(m, level - down), 2.0 ** (level - down)):
            yield [h, minus(h)], sign * c
            yield [g, minus(g)], sign * c
            yield [h], sign * c
            yield [g, g], sign * c


def subnormal_operands(m: Bounds) -> Iterator[Case]:
    """Yield products of subnormal operands, which have the format's smallest exponent,
    whatever their leading bit."""
    for first in (True, False):
        f, g = (m.a, m.b) if first else (m.b, m.a)
        least, most = 2.0**f.least_exponent, 2.0**f.normal_exponent
        for x in (least, 2 * least, most - least, most / 2):
            if x >= most:
                continue
            largest, one = float(g.max_value), 2.0 ** max(0, g.normal_exponent)
            small = 2.0**g.least_exponent
            for y in (largest, one, small):
                p = (x, y) if first else (y, x)
                yield [p], 0.0
                yield [minus(p)], 0.0
                exponent = f.normal_exponent + int(np.frexp(y)[1]) - 1
                yield from (
                    case
                    for down in range(m.fraction - 6, m.fraction + 3)
                    for case in below_subnormal(m, p, exponent - down)
                )


def below_subnormal(m: Bounds, p: Pair, exponent: int) -> Iterator[Case]:
    """Yield a product p of a subnormal operand, and terms that its exponent may
    truncate."""
    c = full(m, exponent)
    yield [p], c
    yield [p, minus(p)], c
    yield [p, minus(p)], -c
    yield [p, minus(p), m.pair(exponent, "ones")], 0.0


# -- sums and their rounding -----------------------------------------------------


def carries(m: Bounds) -> Iterator[Case]:
    """Yield sums with as many bits as possible."""
    for level, sign in product(m.levels(), (1, -1)):
        g = times(sign, m.pair(level - 8, "ones") or m.pair(level, "ones"))
        for count in sorted({m.depth, m.length, m.depth - 1}):
            for exponent in (level - 8, level, level + 2):
                yield [g] * count, sign * full(m, exponent)
                yield [g] * count, -sign * full(m, exponent)
    largest = float(m.a.max_value), float(m.b.max_value)
    for sign in (1, -1):
        yield [times(sign, largest)] * m.length, sign * full(m, 0)


def cancellation(m: Bounds) -> Iterator[Case]:
    """Yield sums that cancel to zero, or nearly."""
    for level, shape in product(m.levels(), SHAPES):
        h = m.pair(level, shape)
        if h is None:
            continue
        for zero in (0.0, -0.0):
            yield [h, minus(h)], zero
            yield [minus(h), h], zero
            yield [h, h, minus(h), minus(h)], zero
        c = h[0] * h[1]
        for sign in (1, -1):
            yield [times(sign, h)], -sign * c
            yield [times(sign, h), times(sign, h)], -sign * 2 * c
            yield [times(sign, h)], -sign * c * (1 + 2.0**-m.result.mantissa_bits)


def ties(m: Bounds) -> Iterator[Case]:
    """Yield 1, or one of the next numbers, plus terms that make a tie or miss it."""
    kept = [10, 23] if m.result.bias == 15 else [13, 23]
    levels = sorted({0, *m.levels()})
    for level, bits, sign in product(levels, kept, (1, -1)):
        unit = level - bits
        starts = [2.0**level, 2.0**level * (1 + 2.0**-m.result.mantissa_bits)]
        starts.append(2.0**level * (1 + 3 * 2.0**-m.result.mantissa_bits))
        for c, down in product(starts, range(5)):
            half = times(sign, m.pair(unit - down))
            if half is None:
                continue
            yield [half], c
            yield [half, half, half], -c
            for more in range(1, m.fraction - bits + 3):
                for other in (1, -1):
                    low = times(other, m.pair(unit - down - more))
                    if low:
                        yield [half, low], c
                        yield [half, low], -c
    # The same ties from products, without c.
    for level, bits, sign in product(levels, kept, (1, -1)):
        for more in range(1, m.fraction - bits + 4):
            terms = m.pair(level), times(sign, m.pair(level - bits - 1))
            low = m.pair(level - bits - 1 - more)
            for other in (1, -1):
                yield [*terms, times(other, low)], 0.0
                yield [minus(terms[0]), terms[1], times(other, low)], 0.0
            yield [*terms], 0.0


def nearly_ties(m: Bounds) -> Iterator[Case]:
    """Yield c and products that make a tie with it, except for bits far below."""
    for level in sorted({0, m.least + m.fraction + 10, m.levels()[-1]}):
        for sign, other in product((1, -1), repeat=2):
            half = times(sign * other, m.pair(level - 24))
            quarter = times(sign * other, m.pair(level - 25))
            for c in (2.0**level, 2.0**level * (1 + 2.0**-m.result.mantissa_bits)):
                for down in range(25, 37):
                    low = m.pair(level - down)
                    for x in (low, minus(low)):
                        yield [half, x], sign * c
                        yield [half, quarter, x], sign * c
                        yield [half, None, None, x], sign * c


def carried_ties(m: Bounds) -> Iterator[Case]:
    """Yield sums of many equal terms, which have more bits than each term, with a tie
    and a number below the last bit of float32."""
    kept = m.result.mantissa_bits
    largest = float(m.a.max_value), float(m.b.max_value)
    copied = [(m.pair(level), m.depth // 2) for level in m.levels()]
    copied += [(largest, count) for count in (m.depth - 2, m.depth - 3)]
    for h, count in copied:
        if h is None or count < 1:
            continue
        lead = int(np.frexp(h[0] * h[1] * count)[1]) - 1
        for half, sign in product((m.pair(lead - kept - 1), None), (1, -1)):
            for down in range(1, m.fraction + 6):
                low = 2.0 ** (lead - kept - 1 - down)
                yield [h] * count + [half], sign * low
                if m.depth - count > 1:
                    by_product = times(sign, m.pair(lead - kept - 1 - down))
                    yield [h] * count + [half, by_product], 0.0


# -- the ends of the range -------------------------------------------------------


def small_results(m: Bounds) -> Iterator[Case]:
    """Yield results of either sign below the smallest normal and smallest numbers."""
    least = m.result.least_exponent
    for exponent in range(least - 8, least + m.result.mantissa_bits + 4):
        for shape, sign in product(SHAPES, (1, -1)):
            p = times(sign, m.pair(exponent, shape))
            if p is None:
                continue
            yield [p], 0.0
            yield [p], -0.0
            yield [p, p, p], 0.0
            for c in (2.0**least, -(2.0**least), 2.0**m.result.normal_exponent):
                yield [p], c
    for exponent in range(least, least + m.result.mantissa_bits + 3):
        for sign in (1, -1):
            for p in (None, (0.0, 1.0), (0.0, -1.0)):
                yield [p], sign * 2.0**exponent
                yield [p], sign * full(m, exponent)


def flushed(m: Bounds) -> Iterator[Case]:
    """Yield small negative products and sums with c, and sums that are just below the
    smallest normal number."""
    least = m.result.normal_exponent
    for exponent in (least - 20, least - 4, least - 1):
        low = minus(m.pair(exponent))
        for c in (0.0, -0.0, -(2.0**m.result.least_exponent)):
            for count in (1, 2, 2, 2, 4, 4):
                yield [low] * count, c
    if p := m.pair(least, "ones"):
        for before in (0, m.length - 1):  # in the last instruction, too
            yield [*[None] * before, minus(p)], p[0] * p[1] - 2.0 ** (least - 1)
    for exponent in range(least - 30, least - 20):
        low = minus(m.pair(exponent))
        for between in range(4):
            yield [m.pair(least), *[None] * between, low], 0.0


def floors(m: Bounds) -> Iterator[Case]:
    """Yield terms with bits that a floor of the exponent, or that of a zero c,
    truncates."""
    least = m.result.least_exponent
    for top in (least - 1, least, least + 1, least + 4, least + 15):
        h = m.pair(top)
        if h is None:
            continue
        for down, sign in product(range(1, 30), (1, -1)):
            low = times(-sign, m.pair(top - down))
            for shape in ("one", "ones"):
                more = times(-sign, m.pair(top - down, shape))
                yield [times(sign, h), more], 0.0
                yield [times(sign, h), more], -0.0
                yield [times(sign, m.pair(top + 1, "odd")), times(sign, h), more], 0.0
            yield [times(sign, h), times(sign, h), times(sign, h), low], 0.0
            yield [times(sign, h), minus(low)], 0.0


def overflow(m: Bounds) -> Iterator[Case]:
    """Yield sums, or partial sums, near and above the largest number."""
    largest = float(m.result.max_value)
    unit = m.result.bias - m.result.mantissa_bits
    for sign, down, shape in product((1, -1), range(-3, 20), SHAPES):
        p = times(sign, m.pair(unit - down, shape))
        if p is None:
            continue
        yield [p], sign * largest
        yield [minus(p)], sign * largest
        half = times(sign, m.pair(unit - 1))
        for other in (1, -1):
            yield [half, times(other, p)], sign * largest
        yield [p], sign * (largest - 2.0**unit)
    high = range(m.result.bias - 3, m.top + 1)
    for level in sorted({*high[:8], *high[-3:]}):
        for sign, shape in product((1, -1), SHAPES):
            p = times(sign, m.pair(level, shape))
            yield [p], 0.0
            yield [p, p], 0.0
            yield [p, minus(p)], 1.0
            yield [p, minus(p)], sign * largest
            yield [p, p], -sign * largest
            yield [p, minus(p), p, minus(p), p], 0.0
            yield [minus(p)], sign * largest


# -- zeros and special values ------------------------------------------------------


def zeros(m: Bounds) -> Iterator[Case]:
    least = m.result.least_exponent
    for x, y in product((0.0, -0.0), repeat=2):
        for c in (0.0, -0.0, 1.0, -1.0):
            yield [(x, y)], c
            yield [(x, y)] * m.length, c
            yield [(x, 1.0), (-1.0, y)] * (m.depth // 2), c
    for f, first in ((m.a, True), (m.b, False)):
        largest = float(f.max_value)
        for zero, size in product((0.0, -0.0), (largest, 1.0, -largest)):
            p = (size, zero) if first else (zero, size)
            for exponent in [*range(least, least + 26), *range(-40, 0)]:
                yield [p], full(m, exponent)
                yield [p], -full(m, exponent)
            for exponent in range(m.least, m.least + 30):
                yield [p, m.pair(exponent, "ones") or m.pair(exponent)], 0.0


def specials(m: Bounds) -> list[Pair]:
    """Return products that are Inf or NaN, and some others."""
    found = [(INF, 1.0), (-INF, 1.0), (1.0, INF), (-1.0, INF), (INF, -INF)]
    found += [(INF, 2.0**m.b.least_exponent), (-(2.0**m.a.least_exponent), INF)]
    found += [(INF, 0.0), (-0.0, INF), (NAN, 1.0), (1.0, NAN), (NAN, 0.0)]
    found += [(INF, NAN), (0.0, NAN), (1.0, 1.0), (0.0, 1.0)]
    return [*found, (float(m.a.max_value), float(m.b.max_value))]


def special(m: Bounds) -> Iterator[Case]:
    """Yield Inf and NaN as operands or as c, with all terms that they may meet."""
    one, zero, largest = (1.0, 1.0), (0.0, 1.0), specials(m)[-1]
    for p in specials(m):
        for c in (0.0, 1.0, INF, -INF, NAN, float(m.result.max_value)):
            yield [p], c
            yield [one, p], c
            yield [p, minus(largest)], c
            yield [zero, p, minus(one)], c
            yield [p] * m.length, c
        for q in specials(m):
            yield [p, q], 0.0


# -- the order of blocks -----------------------------------------------------------


def order(m: Bounds) -> Iterator[Placed]:
    """Yield canceling and small terms at such k that the order of blocks matters."""
    k = 2 * m.length
    places = {0, 1, 2, 3, 5, 8, m.depth // 2, m.depth - 1, m.depth, m.depth + 1}
    places |= {m.length - 1, m.length, k - 1}
    level = m.levels()[0]
    h, huge = m.pair(level), 2.0**level
    for down in (m.fraction, m.fraction + 2, 12, 16):
        low = m.pair(level - down, "odd") or m.pair(level - down)
        if low is None:
            low = m.pair(m.least)
        for i, j in product(sorted(places), repeat=2):
            if i >= k or j >= k or i == j:
                continue
            others = [place for place in range(k) if place not in (i, j)]
            for place in (others[0], others[-1]) if others else ():
                yield {i: h, j: low, place: minus(h)}, 0.0
            yield {i: minus(h), j: low}, huge
            far = 2.0 ** (m.least + m.fraction + 3)
            yield {i: low, j: low}, huge if m.top - m.least > 30 else far
            yield {i: h, j: minus(h)}, full(m, level - down)
    for p, q in product(specials(m), repeat=2):
        yield {0: p, k - 1: q}, 1.0


# -- all of them -------------------------------------------------------------------

FAMILIES: tuple[Family, ...] = (
    cut, cut_by_c, cut_c, subnormal_operands, carries, cancellation, ties, carried_ties,
    nearly_ties, small_results, flushed, floors, overflow, zeros, special,
)  # fmt: skip


def laid_out(m: Bounds, k: int, cases: list[Placed]) -> Cases:
    """Return the distinct cases of products at their k, if the formats can represent
    them."""
    places = [
        (row, place, *p)
        for row, (terms, _) in enumerate(cases)
        for place, p in terms.items()
        if p
    ]
    rows, columns, *factors = zip(*places, strict=True)
    x, y = np.array(factors)
    a, b = np.zeros((2, len(cases), k))
    a[rows, columns], b[rows, columns] = x, y
    c = np.array([c for _, c in cases])
    there = is_exact(m.result, c)
    there[np.array(rows)[~(is_exact(m.a, x) & is_exact(m.b, y))]] = False
    found = m.cases(a[there], b[there], c[there])
    first: dict[bytes, int] = {}
    for i, row in enumerate(np.c_[found]):
        first.setdefault(row.tobytes(), i)
    return found.take([*first.values()])


def edges(model: Any, most: int | None = None) -> list[Cases]:
    """Return the edges of one instruction, and of two for blocks and their order.
    Products are adjacent: first, or at the end of the first block or instruction. With
    `most` there are at most `most` cases of each, from all families."""
    # Models with the same bounds share their cases.
    return list(edges_within(Bounds.of(model), most))


@lru_cache(maxsize=4)
def edges_within(m: Bounds, most: int | None) -> tuple[Cases, Cases]:
    k = m.length
    rng = np.random.default_rng(1)
    every = [case for family in FAMILIES for case in family(m) if len(case[0]) <= k]
    draws = rng.integers(3, size=len(every)).tolist()
    cases: list[Placed] = []
    for (terms, c), draw in some(list(zip(every, draws, strict=True)), most):
        end = m.instruction_depth if len(terms) <= m.instruction_depth else k
        start = (0, max(0, m.depth - len(terms)), end - len(terms))[draw]
        cases.append((dict(enumerate(terms, start)), c))
    one, two = (
        Cases(*(x[:most] for x in (dirty(rng, m.a, a), dirty(rng, m.b, b), c)))
        for a, b, c in (
            laid_out(m, k, cases),
            laid_out(m, 2 * k, some(list(order(m)), most)),
        )
    )
    for array in (*one, *two):
        array.flags.writeable = False
    return one, two


def some(cases: list[Any], most: int | None) -> list[Any]:
    """Return 3 * `most` random cases, or all if there are fewer. Later, cases that the
    formats cannot represent and repeated cases are dropped."""
    if most is None or 3 * most >= len(cases):
        return cases
    which = np.random.default_rng(3).permutation(len(cases))[: 3 * most]
    return [cases[i] for i in which]
