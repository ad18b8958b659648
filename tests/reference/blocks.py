"""Blocks with a common scale: from float32 to codes and back, in plain Python.

Numbers are Fractions where the definition is exact. Where it is in float32 (the search,
the remainder of the first level), numbers are floats with float32 values, and `single`
and `fma` are the only operations.
"""

from bisect import bisect_right
from ctypes import c_float
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import copysign, frexp, inf, isfinite, isinf, isnan, sqrt

from .codec import decode_code, to_fraction
from .formats import FORMATS

FLOAT32_MAX = float(2**128 - 2**104)
RULES = ("amax", "floor", "even", "nf", "mse", "published")

#: name: (bits, bits of the fraction, smallest, largest)
INTEGERS = {
    "mxint8": (8, 6, -127, 127),
    "int4": (4, 0, -8, 7),
    "int8": (8, 0, -127, 127),
    "int12": (12, 0, -2047, 2047),
    "int16": (16, 0, -32767, 32767),
}
#: name: bits of the mantissa
SCALES = {"float8_e8m0fnu": 0, "ue4m3": 3, "ue5m3": 3, "ue4m4": 4, "ue3m5": 5}


# -- float32 ---------------------------------------------------------------------------


def single(x: Fraction | float) -> float:
    """Round to the nearest float32, ties to even, and to infinity above its range."""
    if isinstance(x, Fraction):
        if x == 0:
            return 0.0
        sign, x = (-1 if x < 0 else 1), abs(x)
        top = x.numerator.bit_length() - x.denominator.bit_length()
        top -= Fraction(2) ** top > x
        unit = Fraction(2) ** max(top - 23, -149)
        rounded = round(x / unit) * unit  # to nearest, ties to even
        return sign * (inf if rounded >= 2**128 else float(rounded))
    return c_float(x).value


def fma(x: float, y: float, z: float) -> float:
    """Return x * y + z, rounded once to float32."""
    product = x * y  # exact for two float32 factors
    total = product + z
    part = total - product
    if (product - (total - part)) + (z - part) == 0:
        return single(total)
    return single(Fraction(product) + Fraction(z))


def scaled_to_odd(x: float, power: float) -> float:
    """Return x times a power of two as float32, rounded to odd."""
    exact = abs(Fraction(x) * Fraction(power))
    if Fraction(single(exact)) != exact:  # below the normal numbers
        whole = int(exact / Fraction(2) ** -149)
        exact = (whole | 1) * Fraction(2) ** -149
    return copysign(float(exact), x)


def floor_log2(x: float) -> int:
    return frexp(x)[1] - 1


# -- elements and scales ---------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    """An element format. Places are indices of its magnitudes in ascending order. The
    place is the code without the sign."""

    name: str

    @cached_property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @cached_property
    def bits(self) -> int:
        if self.is_integer:
            return INTEGERS[self.name][0]
        f = FORMATS[self.name]
        return 1 + f.exponent_bits + f.mantissa_bits

    @cached_property
    def grid(self) -> list[Fraction]:
        if self.is_integer:
            _, fraction, least, _ = INTEGERS[self.name]
            return [Fraction(i, 1 << fraction) for i in range(-least + 1)]
        f = FORMATS[self.name]
        return [to_fraction(decode_code(f, code)) for code in range(f.max_code + 1)]

    @cached_property
    def floats(self) -> list[float]:
        return [float(x) for x in self.grid]

    @cached_property
    def greatest(self) -> Fraction:
        if self.is_integer:
            _, fraction, _, greatest = INTEGERS[self.name]
            return Fraction(greatest, 1 << fraction)
        return self.grid[-1]

    @cached_property
    def significant_bits(self) -> int:
        return (
            self.bits - 1 if self.is_integer else FORMATS[self.name].mantissa_bits + 1
        )

    def top(self, negative: bool, clip: bool = False) -> int:
        """Return the place of the largest magnitude."""
        return (
            len(self.grid)
            - 1
            - (self.is_integer and self.name == "int4" and (clip or not negative))
        )

    def code(self, place: int, negative: bool) -> int:
        if self.is_integer:
            return (-place if negative else place) & ((1 << self.bits) - 1)
        return place | negative << (self.bits - 1)

    def place(self, code: int) -> tuple[int, bool]:
        sign = 1 << (self.bits - 1)
        if self.is_integer:
            value = (code ^ sign) - sign
            return abs(value), value < 0
        return code & (sign - 1), bool(code & sign)

    def value(self, code: int) -> Fraction | float:
        """Return the value of a code; NaN and Inf are floats."""
        place, negative = self.place(code)
        if self.is_integer:
            size = Fraction(place, 1 << INTEGERS[self.name][1])
            return -size if negative else size
        if place >= len(self.grid):
            x = decode_code(FORMATS[self.name], code)
            return float("nan") if x.special == "nan" else (-inf if negative else inf)
        return -self.grid[place] if negative else self.grid[place]

    def round(
        self,
        x: Fraction,
        negative: bool,
        rounding: str,
        draw: int,
        clip: bool = False,
        outward: bool = True,
    ) -> int:
        """Return the code that an exact number rounds to, saturated. `outward` says
        that larger magnitudes are farther from zero. For a residual, the whole number
        that it belongs to decides this."""
        top = self.top(negative, clip)
        size = abs(x)
        if size >= self.grid[top]:
            return self.code(top, negative)
        below = bisect_right(self.grid, size) - 1
        step = self.grid[below + 1] - self.grid[below]
        rest = (size - self.grid[below]) / step
        up = (
            rest > 0
            and {
                "ties_to_even": 2 * rest > 1 or (2 * rest == 1 and below % 2 == 1),
                "ties_to_away": 2 * rest > 1 or (2 * rest == 1 and outward),
                "toward_zero": not outward,
                "toward_positive": not negative,
                "toward_negative": negative,
                "to_odd": below % 2 == 0,
                "stochastic": draw < rest * 2**64,
            }[rounding]
        )
        return self.code(below + bool(up), negative)

    def nearest(self, x: float, clip: bool = False) -> int:
        """Return the code nearest to a float, ties to even, saturated."""
        negative = str(x)[0] == "-"
        top = self.top(negative, clip)
        size = abs(x)
        if size >= self.floats[top]:
            return self.code(top, negative)
        below = bisect_right(self.floats, size) - 1
        twice = 2 * size - self.floats[below] - self.floats[below + 1]  # exact
        return self.code(below + (twice > 0 or (twice == 0 and below % 2)), negative)

    def number(self, code: int) -> float:
        place, negative = self.place(code)
        return -self.floats[place] if negative else self.floats[place]

    def following(self, code: int, up: bool) -> int:
        """Return the code of the next number up or down, or the same at the end."""
        place, negative = self.place(code)
        signed = (-place if negative else place) + (1 if up else -1)
        if abs(signed) > self.top(signed < 0):
            return code
        return self.code(abs(signed), signed < 0)


@cache
def element(name: str) -> Element:
    return Element(name)


@cache
def scale_value(name: str, code: int) -> Fraction:
    """Return the value of a scale's code without the tensor scale; never e8m0's NaN."""
    bits = SCALES[name]
    if name == "float8_e8m0fnu":
        return Fraction(2) ** (code - 127)
    if name == "ue4m3":
        return to_fraction(decode_code(FORMATS["float8_e4m3fn"], code))
    field, mantissa = divmod(code, 1 << bits)
    return Fraction(mantissa if field == 0 else ((1 << bits) + mantissa) << (field - 1))


def tensor_scale(scale: str, greatest: float, m: Fraction) -> float:
    """Return the tensor scale for the tensor's largest finite magnitude."""
    if scale == "float8_e8m0fnu" or greatest == 0:
        return 1.0
    if scale == "ue4m3":
        return max(single(Fraction(greatest) / (448 * m)), 2.0**-149)
    bits = SCALES[scale]
    octave = ((1 << (bits + 1)) - 1) << ((1 << (8 - bits)) - 3)
    k = -149
    while k < 127 and greatest > m * Fraction(2) ** k * octave:
        k += 1
    return 2.0**k


@dataclass(frozen=True)
class Layout:
    """The parameters that all blocks of an array share."""

    hi: Element
    lo: Element | None
    scale: str
    block: int
    tensor: float
    rule: str

    @cached_property
    def powers(self) -> bool:
        return self.scale == "float8_e8m0fnu"

    @cached_property
    def mantissa(self) -> int:
        return SCALES[self.scale]

    @cached_property
    def least(self) -> int:
        return 0 if self.powers else 1

    @cached_property
    def top(self) -> int:
        return 254 if self.powers else 0x7E if self.scale == "ue4m3" else 255

    @cached_property
    def scales(self) -> list[float]:
        """Return S for each code."""
        tensor = Fraction(1 if self.powers else self.tensor)
        return [
            single(tensor * scale_value(self.scale, c)) for c in range(self.top + 1)
        ]

    @cached_property
    def residual_scales(self) -> list[float]:
        """Return R for each code, shifted below 4 for integers, and below 1/8
        otherwise."""
        assert self.lo is not None
        values = [scale_value(self.scale, c) for c in range(self.top + 1)]
        shift = Fraction(1)
        if not self.powers:
            while values[-1] * shift >= Fraction(4 if self.lo.is_integer else 1 / 8):
                shift /= 2
        return [float(x * shift) for x in values]

    @cached_property
    def clips(self) -> bool:
        return self.rule == "published"

    def least_code(self, t: float, limit: Fraction) -> int:
        for code in range(self.least, self.top):
            if Fraction(t) <= limit * Fraction(self.scales[code]):
                return code
        return self.top

    def least_residual(self, most: float, limit: Fraction, scale: float) -> int:
        for code in range(self.least, self.top):
            if Fraction(most) <= limit * Fraction(
                single(scale * self.residual_scales[code])
            ):
                return code
        return self.top


# -- scales of blocks ------------------------------------------------------------------


def deviation(x: list[float]) -> tuple[float, float]:
    total = 0.0
    for number in x:
        total += number
    mean = total / len(x)
    total = 0.0
    for number in x:
        total += (number - mean) * (number - mean)
    return mean, sqrt(total / len(x))


def rounded_to(x: float, bits: int) -> Fraction:
    unit = Fraction(2) ** (floor_log2(x) - bits + 1)
    return round(Fraction(x) / unit) * unit


def scale_code(layout: Layout, x: list[float], a: float) -> int:
    """Return the code of S by any rule but the search."""
    m = layout.hi.greatest
    if layout.rule in ("floor", "even"):
        if layout.powers:
            bits = layout.hi.significant_bits if layout.rule == "even" else 24
            top = floor_log2(float(rounded_to(a, bits))) - floor_log2(float(m))
            return min(max(top + 127, 0), 254)
        wanted = Fraction(a) / (m * Fraction(layout.tensor))
        values = [scale_value(layout.scale, c) for c in range(layout.top + 1)]
        return min(
            range(layout.top + 1), key=lambda c: (abs(values[c] - wanted), c % 2)
        )
    t = a
    if layout.rule == "nf":
        mean, sigma = deviation(x)
        if abs(mean) <= sigma / 2 and a <= 4 * sigma and sigma > 2.0**-20 * a:
            t = min(a, single(3 * sigma))
    elif layout.rule == "published":
        if layout.lo is None:
            _, sigma = deviation(x)
            t = a if sigma < 1e-6 else min(single(3 * sigma), FLOAT32_MAX)
        t = max(t, single(1e-12))
    return layout.least_code(t, m)


# -- the search ------------------------------------------------------------------------


def lanes(errors: list[float]) -> float:
    """Return the sum of squares, in 16 lanes."""
    a = [0.0] * 16
    for i, e in enumerate(errors):
        a[i % 16] = fma(e, e, a[i % 16])
    for h in (8, 4, 2, 1):
        for lane in range(h):
            a[lane] = single(a[lane] + a[lane + h])
    return a[0]


def within(scale: float, normal: float) -> float:
    return min(max(single(scale * normal), 2.0**-126), FLOAT32_MAX)


def first_level(
    hi: Element, xs: list[float], s: float
) -> tuple[list[float], list[int], list[float]]:
    """Return quotients, codes and remainders of the first level."""
    inverse = single(1 / s)
    y = [single(x * inverse) for x in xs]
    codes = [hi.nearest(value) for value in y]
    rest = [fma(-s, hi.number(c), x) for c, x in zip(codes, xs, strict=True)]
    return y, codes, rest


def search_limit(hi: Element) -> Fraction:
    wide = ("float8_e4m3fn", "float8_e5m2", "float6_e3m2fn")
    if hi.name in wide:
        return hi.greatest + (hi.grid[-1] - hi.grid[-2]) / 2
    return Fraction(5, 4) * hi.greatest


def search_scales(
    layout: Layout, xs: list[float], a: float, normal: float
) -> list[int]:
    """Return the two codes of S with the smallest error, the better code first."""
    first = layout.least_code(a, search_limit(layout.hi))
    last = min(first + (1 << layout.mantissa), layout.top)
    found = []
    for code in range(first, last + 1):
        _, _, rest = first_level(layout.hi, xs, within(layout.scales[code], normal))
        by_extreme = layout.lo is not None and layout.lo.is_integer
        cost = max(map(abs, rest)) if by_extreme else lanes(rest)
        found.append((cost, code))
    return [code for _, code in sorted(found)[:2]]


def search_residual(
    layout: Layout, xs: list[float], a: float, normal: float
) -> tuple[int, int, list[int], list[int]]:
    hi, lo = layout.hi, layout.lo
    assert lo is not None
    wide = 1 << layout.mantissa
    if lo.is_integer:
        before, after, limit = max(1, wide // 8), wide // 8, Fraction(15, 2)
    else:
        before, after, limit = 0, wide, Fraction(448)
    best: tuple[float, int, int, list[int], list[int]] | None = None
    for code in search_scales(layout, xs, a, normal):
        s = within(layout.scales[code], normal)
        y, codes, rest = first_level(hi, xs, s)
        most = max(map(abs, rest))
        if most == 0:
            if best is None or best[0] > 0:
                best = (0.0, code, 0, codes, [0] * len(xs))
            continue
        beside = [
            hi.following(c, value >= hi.number(c))
            for c, value in zip(codes, y, strict=True)
        ]
        rest_beside = [
            fma(-s, hi.number(c), x) for c, x in zip(beside, xs, strict=True)
        ]
        middle = layout.least_residual(most, limit, s)
        for j in range(
            max(middle - before, layout.least), min(middle + after, layout.top) + 1
        ):
            u = single(s * layout.residual_scales[j])
            inverse = min(single(Fraction(1) / Fraction(u)), 2.0**127)
            errors, chosen, residuals = [], [], []
            for i in range(len(xs)):
                choices = []
                for c, d in ((codes[i], rest[i]), (beside[i], rest_beside[i])):
                    low = lo.nearest(single(d * inverse))
                    choices.append((abs(fma(-u, lo.number(low), d)), c, low))
                error, c, low = min(choices, key=lambda choice: choice[0])
                errors.append(error)
                chosen.append(c)
                residuals.append(low)
            cost = lanes(errors)
            if best is None or cost < best[0]:
                best = (cost, code, j, chosen, residuals)
    assert best is not None
    return best[1:]


# -- a block ---------------------------------------------------------------------------


def quantize_block(
    layout: Layout,
    x: list[float],
    rounding: str = "ties_to_even",
    poison: bool = False,
    draws: list[int] | None = None,
) -> tuple[int, int, list[int], list[int]]:
    """Return the codes of S and R (0 without a residual), numbers and residuals."""
    n = layout.block
    assert len(x) == n
    if poison and not all(map(isfinite, x)):
        return 0xFF, 0, [0] * n, [0] * n
    finite = [number if isfinite(number) else 0.0 for number in x]
    a = max(map(abs, finite))
    if a == 0 and any(map(isinf, x)):
        a = FLOAT32_MAX
    if a == 0:
        result = (0, 0, [0] * n, [0] * n)
    else:
        result = _finite_block(layout, finite, a, rounding, draws or [0] * n)
    code, residual_code, hi, lo = result
    for i, number in enumerate(x):
        if isnan(number):
            hi[i] = 0 if layout.hi.is_integer else FORMATS[layout.hi.name].nan or 0
        elif isinf(number):
            hi[i] = layout.hi.code(layout.hi.top(number < 0), number < 0)
        if not isfinite(number):
            lo[i] = 0
    return code, residual_code, hi, lo


def _finite_block(
    layout: Layout, x: list[float], a: float, rounding: str, draws: list[int]
) -> tuple[int, int, list[int], list[int]]:
    n = layout.block
    hi, lo = layout.hi, layout.lo
    normal = 2.0 ** -max(floor_log2(a), -126)
    xs = [single(number * normal) for number in x]
    negative = [str(number)[0] == "-" for number in x]
    code, residual_code = 0, 0
    codes: list[int] = []
    residuals = [0] * n
    if layout.rule == "mse" and lo is not None:
        code, residual_code, codes, residuals = search_residual(layout, xs, a, normal)
        if rounding == "ties_to_even":
            return code, residual_code, codes, residuals
    elif layout.rule == "mse":
        code = search_scales(layout, xs, a, normal)[0]
    else:
        code = scale_code(layout, x, a)
    scale = layout.scales[code]
    if scale == 0:
        return code, 0, [0] * n, [0] * n
    if not codes:
        how = rounding if lo is None else "ties_to_even"
        codes = [
            hi.round(Fraction(x[i]) / Fraction(scale), negative[i], how, draws[i])
            for i in range(n)
        ]
    if lo is None:
        return code, 0, codes, residuals
    s = within(scale, normal)
    if rounding in ("toward_zero", "toward_positive", "toward_negative", "to_odd"):
        xs = [scaled_to_odd(number, normal) for number in x]
    rest = [fma(-s, hi.number(codes[i]), xs[i]) for i in range(n)]
    most = max(map(abs, rest))
    if layout.rule != "mse":
        residual_code = _residual_code(layout, lo, most, s)
    u = Fraction(single(s * layout.residual_scales[residual_code]))
    residuals = [
        lo.round(
            Fraction(rest[i]) / u,
            str(rest[i])[0] == "-",
            rounding,
            draws[i],
            layout.clips,
            (str(rest[i])[0] == "-") == negative[i],
        )
        if u
        else 0
        for i in range(n)
    ]
    return code, residual_code, codes, residuals


def _residual_code(layout: Layout, lo: Element, most: float, s: float) -> int:
    """Return the code of R by the rule, for the largest remainder `most` and S = s."""
    top = Fraction(lo.number(lo.top(False)))
    if layout.rule == "published":
        return layout.least_residual(max(single(most / s), single(1e-12)), top, 1.0)
    return layout.least_residual(most, top, s) if most else 0


# -- bytes and numbers -----------------------------------------------------------------


def pack(bits: int, codes: list[int]) -> bytes:
    """Pack codes one after the other, the first in the lowest bits."""
    whole = sum(code << (bits * i) for i, code in enumerate(codes))
    return whole.to_bytes(len(codes) * bits // 8, "little")


def number_of(
    layout: Layout, code: int, residual_code: int, hi: int, lo: int
) -> Fraction | float:
    """Return the exact value of a number; NaN and Inf are floats."""
    if layout.powers and code == 0xFF:
        return float("nan")
    tensor = Fraction(1 if layout.powers else layout.tensor)
    s = Fraction(single(tensor * scale_value(layout.scale, code)))
    first = layout.hi.value(hi)
    if isinstance(first, float):
        return first * (1.0 if s else float("nan")) if isinf(first) else first
    if layout.lo is None:
        return s * first
    second = s * Fraction(layout.residual_scales[residual_code])
    if second >= Fraction(2) ** -126:
        second = Fraction(single(second))
    rest = layout.lo.value(lo)
    assert isinstance(rest, Fraction)
    return s * first + second * rest
