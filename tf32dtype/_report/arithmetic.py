"""What rounding NumPy's arithmetic to a format did, by line of source.

`tf32dtype.arithmetic(..., watch=True)` gathers the figures: see
:doc:`/how_to/arithmetic`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .. import _core
from .._formats.quantize import target_dtype
from .._formats.table import formats
from .._text import Table, number
from .._wording import page
from .advice import Advice
from .naming import at, share, some
from .places import Frame

_MOST = 4  # places that a line of advice names
_CANCELS = 0.01  # of a place's sums, from where on advice names it

#: What computes float32 numbers and is not rounded, and why.
NOT_REACHED = (
    ("Python's floats", "float(x) * 2, math.sqrt(x)"),
    ("np.add.at, ...", "one-dimensional ones have loops of their own"),
    ("products", "matmul, dot, einsum, convolve, ...: those have --precision"),
    ("np.linalg", "LAPACK"),
    ("np.fft", "its own loops"),
    ("np.random", "numbers are rounded where a ufunc reads them"),
    ("np.interp, np.bincount", "loops of their own, in float64"),
    ("casts, copies, sorts", "numbers move as they are; comparisons see them so too"),
    ("complex64, float16, ...", "float32 and with float64=True float64 are rounded"),
    ("np.nextafter, np.spacing", "they tell of float32's own grid"),
    ("other libraries' loops", "SciPy, pandas, numba, scikit-learn, ..."),
)


@dataclass(frozen=True)
class ArithmeticPlace:
    """One ufunc's results of one dtype, at one place in the source."""

    #: nearest frame of the user's code; None: no Python code below the call
    user: Frame | None
    #: innermost frame, where it is another
    library: Frame | None
    function: str
    dtype: str
    #: of inner loops
    calls: int
    operands: int
    #: operands that were not in the format
    foreign: int
    #: of these, beyond the format's range
    foreign_overflows: int
    #: of these, inexact and below the normal numbers
    foreign_underflows: int
    results: int
    #: results that are not the float64 ones of the same operands
    inexact: int
    #: beyond the format's range, where the float64 result is finite
    overflows: int
    #: inexact, and below the normal numbers
    underflows: int
    #: NaN of operands that had none
    nans: int
    #: results with an error: no overflows, no NaN
    measured: int
    #: errors in units of the format's last place
    greatest_ulps: float
    mean_ulps: float
    #: sums and differences
    sums: int
    #: that were exactly zero
    vanished: int
    #: that lost more than half of the format's bits
    canceled: int
    #: bits that one of them lost, at most
    greatest_lost: int


def arithmetic_places() -> tuple[ArithmeticPlace, ...]:
    """What the last watched scope computed, places with the most results first."""
    found = [_place(row) for row in _core.arithmetic_places()]
    return tuple(sorted(found, key=lambda place: -place.results))


def _place(row: dict[str, Any]) -> ArithmeticPlace:
    ulps = row.pop("sum_of_ulps")
    user, library = (row[name] and Frame(*row[name]) for name in ("user", "library"))
    row |= {"user": user, "library": library if library != user else None}
    return ArithmeticPlace(**row, mean_ulps=ulps / max(row["measured"], 1))


def where(place: ArithmeticPlace) -> str:
    """A place in a table, with the ufunc."""
    frame = place.user or place.library
    return f"{at(frame) if frame else 'unknown'}: {place.function}"


def table(format: str, places: Sequence[ArithmeticPlace], most: int = 30) -> Table:
    """The places with the most results: shares in percent, errors in ulps."""
    header = [
        "place", "dtype", "results", "% inexact", "% overflow", "% underflow", "NaN",
        "mean ulps", "most ulps", "% canceled", "% zero", "bits lost", "% foreign",
    ]  # fmt: skip
    rows = [
        [
            where(place),
            place.dtype,
            str(place.results),
            share(place.inexact, place.results),
            share(place.overflows, place.results),
            share(place.underflows, place.results),
            str(place.nans),
            number(place.mean_ulps),
            number(place.greatest_ulps),
            share(place.canceled, place.sums),
            share(place.vanished, place.sums),
            str(place.greatest_lost) if place.sums else "-",
            share(place.foreign, place.operands),
        ]
        for place in places[:most]
    ]
    return Table(f"NumPy's arithmetic in {format}, against float64", header, rows)


def records(format: str, places: Sequence[ArithmeticPlace]) -> dict[str, Any]:
    """All of it, for programs."""
    return {
        "format": format,
        "places": [
            asdict(place)
            | {
                name: frame and frame._asdict()
                for name, frame in (("user", place.user), ("library", place.library))
            }
            for place in places
        ],
        "left_out": _core.arithmetic_left_out(),
        "not_reached": [{"what": what, "why": why} for what, why in NOT_REACHED],
        "advice": [asdict(line) for line in advise(format, places)],
    }


def advise(format: str, places: Sequence[ArithmeticPlace]) -> tuple[Advice, ...]:
    """Which lines overflow, underflow, make NaN and cancel; what was not reached."""
    bits = _mantissa_bits(format) + 1
    if not places:
        text = (
            "No float32 number was computed by a ufunc of NumPy: nothing was rounded"
            " (float64 numbers are with --float64)."
        )
        return (Advice("unmeasured", text), _not_reached())
    ranges = (
        ("Overflow", "overflows", "results"),
        ("Underflow", "underflows", "results"),
        ("NaN", "nans", "results"),
        ("Operands overflow", "foreign_overflows", "operands"),
        ("Operands underflow", "foreign_underflows", "operands"),
    )
    lines = [_out_of_range(places, f"{x} in {format}", y, z) for x, y, z in ranges]
    lines.append(_canceled(places, bits))
    return (*(line for line in lines if line), _errors(places), _not_reached())


def _mantissa_bits(format: str) -> int:
    name = str(target_dtype(format).name)
    return {"float16": 10, "float32": 23}.get(name) or formats[name].mantissa_bits


def _out_of_range(
    places: Iterable[ArithmeticPlace], title: str, count: str, of: str
) -> Advice | None:
    """Where there are most of such; `count` and `of` are attributes of places."""
    found = [(getattr(x, count), getattr(x, of), x) for x in places]
    those = sorted((one for one in found if one[0]), key=lambda one: -one[0])
    if not those:
        return None
    names = [f"{where(x)} ({part} of {whole})" for part, whole, x in those]
    return Advice("range", f"{title}: {some(names, _MOST)}")


def _canceled(places: Iterable[ArithmeticPlace], bits: int) -> Advice | None:
    those = [x for x in places if x.canceled + x.vanished > _CANCELS * x.sums]
    if not those:
        return None
    those.sort(key=lambda x: -(x.canceled + x.vanished) / x.sums)
    text = f"Sums that lost more than half of {bits} bits, or all, by cancellation"
    names = [
        f"{where(x)} ({share(x.canceled + x.vanished, x.sums)} % of {x.sums})"
        for x in those
    ]
    return Advice("digits", f"{text}: {some(names, _MOST)}")


def _errors(places: Sequence[ArithmeticPlace]) -> Advice:
    """The greatest error: half an ulp of the rounding, and more if the ufunc's is."""
    worst = max(places, key=lambda x: x.greatest_ulps)
    return Advice(
        "digits",
        f"The greatest error of one operation: {number(worst.greatest_ulps)} ulps,"
        f" {where(worst)}. What they add up to, the program's own result tells.",
    )


def _not_reached() -> Advice:
    what = ", ".join(name for name, _ in NOT_REACHED)
    return Advice("elsewhere", f"Not rounded: {what}. See {page('Arithmetic')}.")


@dataclass(frozen=True)
class Arithmetic:
    """NumPy's arithmetic in a format, as it was watched."""

    format: str
    places: tuple[ArithmeticPlace, ...]
    advice: tuple[Advice, ...]

    @classmethod
    def last(cls, format: str) -> Arithmetic:
        """What the last watched scope did."""
        places = arithmetic_places()
        return cls(format, places, advise(format, places))

    def table(self) -> Table:
        """For the terminal and the page."""
        return table(self.format, self.places)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return records(self.format, self.places)
