"""The effects of rounding NumPy's arithmetic to a format, by call site.

`tf32dtype.arithmetic(..., watch=True)` gathers the measurements: see
:doc:`/how_to/arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ... import _core
from ..._base.text import Table, number
from ..._base.wording import page
from ..._formats.quantize import target_dtype
from ..._formats.table import formats
from ..._matmul.precisions import precision_of_format
from .advice import Advice
from .call_sites import Frame, frame_of
from .naming import at, share, some
from .patterns import is_difference_of_squares

_MOST = 4  # call sites that a line of advice names
_LOST = 0.01  # of a call site's sums, from where on advice names it

_PRODUCTS = "products"
#: Computations of float32 values that are not rounded, and the reason.
NOT_REACHED = (
    ("Python's floats", "float(x) * 2, math.sqrt(x)"),
    ("np.add.at, ...", "one-dimensional arrays have separate loops"),
    (_PRODUCTS, "matmul, dot, einsum, convolve, ...: use --precision"),
    ("np.linalg", "LAPACK"),
    ("np.fft", "separate loops"),
    ("np.random", "values are rounded when a ufunc reads them"),
    ("np.interp, np.bincount", "separate loops, in float64"),
    ("casts, copies, sorts", "values are not changed; comparisons do not round either"),
    (
        "complex64, float16, ...",
        "only float32 is rounded, and float64 with float64=True",
    ),
    ("np.nextafter, np.spacing", "they describe the values of float32"),
    ("other libraries' loops", "SciPy, pandas, numba, scikit-learn, ..."),
)


@dataclass(frozen=True)
class ArithmeticCallSite:
    """One ufunc's results of one dtype, at one call site in the source."""

    #: nearest frame of the user's code; None: no Python code below the call
    user: Frame | None
    #: innermost frame, if it is another one
    library: Frame | None
    function: str
    dtype: str
    #: calls of inner loops
    calls: int
    operands: int
    #: operands that the format does not hold, which were rounded
    rounded_operands: int
    #: rounded operands above the format's range
    operand_overflows: int
    #: rounded operands below the format's normal values
    operand_underflows: int
    results: int
    #: results that differ from the float64 results of the same operands
    inexact: int
    #: results above the format's range whose float64 result is finite
    overflows: int
    #: inexact results below the format's normal values
    underflows: int
    #: NaN results of operands without NaN
    nans: int
    #: results whose error was measured: no overflows, no NaN
    measured: int
    #: errors in ulps of the format
    largest_ulps: float
    mean_ulps: float
    #: sums and differences
    sums: int
    #: sums that were exactly zero
    zero_sums: int
    #: sums that lost more than half of the format's bits
    canceled_sums: int
    #: the most bits that one sum lost
    most_bits_lost: int
    #: sums of two operands that are the larger one, though the other is not zero
    absorbed_sums: int


def arithmetic_call_sites() -> tuple[ArithmeticCallSite, ...]:
    """Return the call sites of the last watched scope, the most results first."""
    found = [_call_site(row) for row in _core.arithmetic_call_sites()]
    return tuple(
        sorted(found, key=lambda x: (-x.results, str(x.user), x.function, x.dtype))
    )


def _call_site(row: dict[str, Any]) -> ArithmeticCallSite:
    ulps = row.pop("sum_of_ulps")
    user, library = (frame_of(row[name]) for name in ("user", "library"))
    row |= {"user": user, "library": library if library != user else None}
    return ArithmeticCallSite(**row, mean_ulps=ulps / max(row["measured"], 1))


def where(site: ArithmeticCallSite) -> str:
    """Return a call site in a table, with the ufunc."""
    frame = site.user or site.library
    return f"{at(frame) if frame else 'unknown'}: {site.function}"


def table(format: str, sites: Sequence[ArithmeticCallSite], most: int = 30) -> Table:
    """Return a table of the call sites with the most results, in percent and ulps."""
    header = [
        "call site", "dtype", "results", "% inexact", "% overflow", "% underflow",
        "NaN", "mean ulps", "max ulps", "% absorbed", "% canceled",
    ]  # fmt: skip
    rows = [
        [
            where(site),
            site.dtype,
            str(site.results),
            share(site.inexact, site.results),
            share(site.overflows, site.results),
            share(site.underflows, site.results),
            str(site.nans),
            number(site.mean_ulps),
            number(site.largest_ulps),
            share(site.absorbed_sums, site.sums),
            share(site.canceled_sums + site.zero_sums, site.sums),
        ]
        for site in sites[:most]
    ]
    return Table(f"NumPy arithmetic in {format}, compared with float64", header, rows)


def records(format: str, sites: Sequence[ArithmeticCallSite]) -> dict[str, Any]:
    """Return everything for JSON."""
    return {
        "format": format,
        "call_sites": [
            asdict(site)
            | {
                name: frame and frame.record()
                for name, frame in (("user", site.user), ("library", site.library))
            }
            for site in sites
        ],
        "left_out": _core.arithmetic_left_out(),
        "not_reached": [
            {"name": name, "reason": why} for name, why in not_rounded(format)
        ],
        "advice": [asdict(line) for line in advise(format, sites)],
    }


def advise(format: str, sites: Sequence[ArithmeticCallSite]) -> tuple[Advice, ...]:
    """Name the call sites that overflow, underflow, make NaN or cancel."""
    bits = _mantissa_bits(format) + 1
    if not sites:
        text = (
            "Nothing was rounded: no NumPy ufunc computed float32 values. Use --float64"
            " to round float64 values."
        )
        return (Advice("not_measured", text), _not_reached(format))
    ranges = (
        ("Overflow", "overflows", "results"),
        ("Underflow", "underflows", "results"),
        ("NaN", "nans", "results"),
        ("Operands overflow", "operand_overflows", "operands"),
        ("Operands underflow", "operand_underflows", "operands"),
    )
    lines = [_out_of_range(sites, f"{x} in {format}", y, z) for x, y, z in ranges]
    lines += [_absorbed(sites), _canceled(sites, bits), _exp(sites), _variance(sites)]
    return (*(line for line in lines if line), _errors(sites), _not_reached(format))


def _mantissa_bits(format: str) -> int:
    name = str(target_dtype(format).name)
    return {"float16": 10, "float32": 23}.get(name) or formats[name].mantissa_bits


def _out_of_range(
    sites: Iterable[ArithmeticCallSite], title: str, count: str, of: str
) -> Advice | None:
    """Name the call sites where attribute `count` is largest; `of` is the whole."""
    found = [(getattr(x, count), getattr(x, of), x) for x in sites]
    those = sorted((one for one in found if one[0]), key=lambda one: -one[0])
    if not those:
        return None
    names = [f"{where(x)} ({part} of {whole})" for part, whole, x in those]
    return Advice("out_of_range", f"{title}: {some(names, _MOST)}")


def _absorbed(sites: Iterable[ArithmeticCallSite]) -> Advice | None:
    if not (found := _lost(sites, lambda site: site.absorbed_sums)):
        return None
    return Advice(
        "absorbed",
        f"Sums that absorb an operand, which leaves the other unchanged: {found}. Keep"
        " the sum in float32, add with compensation, or round stochastically: see"
        f" {page('how_to/arithmetic')}",
    )


def _canceled(sites: Iterable[ArithmeticCallSite], bits: int) -> Advice | None:
    if not (found := _lost(sites, lambda x: x.canceled_sums + x.zero_sums)):
        return None
    return Advice(
        "canceled_digits",
        f"Sums that lose more than half of {bits} bits by cancellation, which enlarges"
        f" earlier errors: {found}",
    )


def _exp(sites: Iterable[ArithmeticCallSite]) -> Advice | None:
    those = [where(x) for x in sites if x.function == "exp" and x.overflows]
    return _pattern(
        those, "exp overflows", "In a softmax, subtract the maximum of each row first"
    )


def _variance(sites: Iterable[ArithmeticCallSite]) -> Advice | None:
    those = [
        where(x)
        for x in sites
        if x.user
        and x.function == "subtract"
        and x.canceled_sums + x.zero_sums > _LOST * x.sums
        and is_difference_of_squares(x.user.file, x.user.line)
    ]
    return _pattern(
        those,
        "A square is subtracted where digits cancel",
        "For a variance, subtract the mean from the values first, or use np.var",
    )


def _pattern(names: Sequence[str], first: str, remedy: str) -> Advice | None:
    if not names:
        return None
    those = some(names, _MOST)
    text = f"{first}: {those}. {remedy}: see {page('how_to/arithmetic')}"
    return Advice("pattern", text)


def _lost(
    sites: Iterable[ArithmeticCallSite], count: Callable[[ArithmeticCallSite], int]
) -> str:
    """Name the call sites where the largest share of sums is lost; "" if none is."""
    those = [x for x in sites if count(x) > _LOST * x.sums]
    those.sort(key=lambda x: -count(x) / x.sums)
    names = [f"{where(x)} ({share(count(x), x.sums)} % of {x.sums})" for x in those]
    return some(names, _MOST)


def _errors(sites: Sequence[ArithmeticCallSite]) -> Advice:
    """Name the largest error: half an ulp of rounding, plus the ufunc's own error."""
    worst = max(sites, key=lambda x: x.largest_ulps)
    return Advice(
        "largest_error",
        f"Largest error of one operation: {number(worst.largest_ulps)} ulps at"
        f" {where(worst)}",
    )


def not_rounded(format: str) -> list[tuple[str, str]]:
    """Return what stays unrounded: products only if no precision has their format."""
    has_precision = precision_of_format(format) is not None
    return [row for row in NOT_REACHED if not (has_precision and row[0] == _PRODUCTS)]


def _not_reached(format: str) -> Advice:
    what = ", ".join(name for name, _ in not_rounded(format))
    return Advice(
        "not_reached", f"Not rounded: {what}. See {page('how_to/arithmetic')}"
    )


@dataclass(frozen=True)
class Arithmetic:
    """NumPy's arithmetic in a format, as it was watched."""

    format: str
    call_sites: tuple[ArithmeticCallSite, ...]
    advice: tuple[Advice, ...]

    @classmethod
    def last(cls, format: str) -> Arithmetic:
        """Return the effects of the last watched scope."""
        sites = arithmetic_call_sites()
        return cls(format, sites, advise(format, sites))

    def table(self) -> Table:
        """Return the table for the terminal and the page."""
        return table(self.format, self.call_sites)

    def record(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return records(self.format, self.call_sites)
