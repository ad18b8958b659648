"""The options of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..._base.arguments import checked_number, checked_strings
from ..._base.errors import UserError
from ..._base.wording import one_of
from ..._formats.aliases import FormatName, NumPyName
from ..._measures import units
from ..._measures.ways import Way, all_names, on_unit, select
from ..arithmetic import format_name
from .collect import CollectorOptions
from .regions import find_region

TARGET_DB = 40.0
#: A row of the report is a line, or a line with one of its constant operands.
BY = ("operand", "line")


@dataclass(frozen=True)
class ReportOptions:
    """The products to watch, the ways to measure, and the target of the verdicts."""

    ways: tuple[Way, ...]
    #: the names that the user gave
    named: tuple[str, ...] = ()
    target_db: float = TARGET_DB
    #: measure all samples, of all rows and columns
    exact: bool = False
    #: format that NumPy's arithmetic is rounded to while it is watched, and its
    #: products, if there is a precision of that name; whether float64 is rounded, too
    arithmetic: FormatName | NumPyName | None = None
    float64: bool = False
    collector: CollectorOptions = field(default_factory=CollectorOptions)


def options(
    *,
    precision: str | Iterable[str] | None = None,
    device: str | Iterable[str] | None = None,
    target_db: float = TARGET_DB,
    exact: bool = False,
    dots: bool = False,
    lapack: bool = False,
    stop_at: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
    excepted: str | Iterable[str] = (),
    arithmetic: str | None = None,
    float64: bool = False,
    by: str = "operand",
) -> ReportOptions:
    """Return the options for the keywords of `td.report`, which documents them.

    Raises
    ------
    UserError
        For an unknown precision, device, file, function or row; for a target that is
        not a positive and finite number of dB.
    TypeError
        For a target that is not a number, and for names that are not strings.
    """
    target = checked_number(target_db, "target_db")
    if not 0 < target < float("inf"):
        raise UserError(f"target_db must be more than 0 and finite; got {target:g}")
    if by not in BY:
        raise UserError(one_of("by", by, BY))
    named = () if precision is None else select(_words(precision, "precision"))
    return ReportOptions(
        _ways(precision, _devices(device)),
        tuple(dict.fromkeys(way.name for way in named)),
        target,
        exact,
        arithmetic_format(arithmetic),
        float64,
        CollectorOptions(
            dots=dots,
            lapack=lapack,
            exact=exact,
            stop_at=_words(stop_at, "stop_at"),
            only=tuple(map(find_region, _list(only, "only"))),
            excepted=tuple(map(find_region, _list(excepted, "excepted"))),
            by_operand=by == "operand",
        ),
    )


def _ways(
    precision: str | Iterable[str] | None, devices: Sequence[str]
) -> tuple[Way, ...]:
    """Return the ways to multiply that a report compares.

    These are float32, to which others are compared, the named ones (default: all), and
    the same on devices.
    """
    if precision is None:
        names = all_names()
    elif not (named := _words(precision, "precision")):
        raise UserError("precision must name at least one precision; got none")
    else:
        names = ["f32", *named]
    ways = {way.name: way for way in select(names)}
    chosen = list(ways.values())
    for name, unit in zip(devices, units.find(devices), strict=True):
        label = unit.device + (f":{unit.instruction}" if ":" in name else "")
        found = on_unit(chosen, unit, label)
        if not found:
            raise UserError(
                f"device must support one of the precisions {', '.join(ways)}; got"
                f" {unit.name}"
            )
        ways |= {way.name: way for way in found}
    return tuple(ways.values())


def _words(names: str | Iterable[str] | None, argument: str) -> tuple[str, ...]:
    """Return names separated by commas or blanks, in one string or in several."""
    return tuple(
        word
        for text in _list(names, argument)
        for word in text.replace(",", " ").split()
    )


def _devices(names: str | Iterable[str] | None) -> list[str]:
    """Return names separated by commas, in one or several strings; blanks are kept."""
    named = [
        name.strip() for text in _list(names, "device") for name in text.split(",")
    ]
    return [name for name in named if name]


def _list(names: str | Iterable[str] | None, argument: str) -> tuple[str, ...]:
    return () if names is None else checked_strings(names, argument)


def arithmetic_format(name: str | None) -> FormatName | NumPyName | None:
    """Return the full name of a format that NumPy can compute in.

    Raises
    ------
    UserError
        If there is none of that name.
    """
    try:
        return None if name is None else format_name(name, "arithmetic")
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
