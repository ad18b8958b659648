"""Plans: a precision for each call site in the source, and the file that holds them.

A call site has a precision of its matrix products, a format of its ufuncs, or both.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

from .. import _core
from .._base import toml
from .._base.arguments import checked_path
from .._base.caller import warn
from .._base.toml import refuse, take
from .._base.wording import brief, one_of
from .._matmul.precisions import Settings, check_types, resolve
from .operand import Operand
from .plan_lines import Line, LineError, find_line, folders
from .source_folders import set_folders

VERSION = 1
#: The name in a plan for no precision: NumPy and BLAS compute as usual.
NONE = "none"
_FLAGS = "float64", "complex64", "dots"
_SIDES = ("A", "B")
_MOST_OPERANDS = 1024
_DIGEST = re.compile("(?:[0-9a-f]{16})?")
#: keys that a line always has in the file
_SHOWN = "file", "function", "text"


@dataclass(frozen=True)
class PlannedCallSite:
    """A call site and its precision."""

    #: name of the precision of its products; None: unchanged; "": not in the plan
    precision: str | None
    #: nearest line of the user's code
    user: Line | None
    #: line of a library that computed the product, if it is not the user's line
    library: Line | None = None
    #: routines and dtypes that were seen at the call site, only for the reader
    routine: str = ""
    dtype: str = ""
    #: the format that its ufuncs round to, or NONE; None: the plan says nothing
    arithmetic: str | None = None
    #: the operand that is meant, one of several; None: all of them
    operand: Operand | None = None


@dataclass(frozen=True)
class Plan:
    """The contents of a plan file."""

    call_sites: tuple[PlannedCallSite, ...] = ()
    #: the precision of all other call sites; None: unchanged
    default: str | None = None
    float64: bool = False
    complex64: bool = False
    dots: bool = False
    #: the check that `tune` used, as names and values, only for the reader
    check: tuple[tuple[str, str | float | bool], ...] = ()
    #: the format that ufuncs round to at all other call sites; None: they do not round
    arithmetic: str | None = None

    @property
    def rounds_ufuncs(self) -> bool:
        """Whether the plan says anything of ufuncs."""
        return bool(self.arithmetic or any(x.arithmetic for x in self.call_sites))


# -- the file ----------------------------------------------------------------------


def read_plan(path: str) -> Plan:
    """Read a plan.

    Raises
    ------
    ValueError
        If the file does not exist or is not a plan.
    """
    return toml.read(path, _plan)


def _plan(found: dict[str, Any]) -> Plan:
    toml.check_version(found, VERSION)
    sites = toml.take_tables(found, "call_site")
    default = _precision(take(found, "default", str, NONE))
    arithmetic = _precision(take(found, "arithmetic", str, NONE))
    flags = {name: take(found, name, bool, False) for name in _FLAGS}
    check = tuple(take(found, "check", dict, {}).items())
    refuse(found, "a plan")
    return Plan(
        tuple(map(_call_site, sites)),
        default,
        check=check,
        arithmetic=arithmetic,
        **flags,
    )


def _call_site(found: dict[str, Any]) -> PlannedCallSite:
    user, library = (
        _line(found.pop(name)) if name in found else None
        for name in ("user", "library")
    )
    if user is None and library is None:
        raise ValueError("a call site must have user = {...} or library = {...}")
    site = PlannedCallSite(
        _precision(
            take(found, "precision", str, "" if "arithmetic" in found else None)
        ),
        user,
        library,
        take(found, "routine", str, ""),
        take(found, "dtype", str, ""),
        take(found, "arithmetic", str, "") or None,
        _operand(found.pop("operand")) if "operand" in found else None,
    )
    refuse(found, "a call site")
    return site


def _operand(found: Any) -> Operand:
    if not isinstance(found, dict):
        raise ValueError("operand must be {number = ..., of = ..., side = ..., ...}")
    number, of, rows, columns = (
        take(found, name, int, None) for name in ("number", "of", "rows", "columns")
    )
    side = take(found, "side", str, None)
    digest, name = (take(found, name, str, "") for name in ("digest", "name"))
    refuse(found, "an operand")
    if side not in _SIDES:
        raise ValueError(one_of("side", side, _SIDES))
    if not 1 <= number <= of <= _MOST_OPERANDS:
        raise ValueError(
            f"number must be from 1 to of = {of}, and of at most {_MOST_OPERANDS}; got"
            f" {number}"
        )
    if not (rows > 0 < columns and max(rows, columns) <= sys.maxsize):
        raise ValueError(f"an operand must have a shape; got {rows} x {columns}")
    if not _DIGEST.fullmatch(digest):
        raise ValueError(f"digest must be 16 hexadecimal digits; got {brief(digest)}")
    return Operand(number, of, side, rows, columns, digest, name)


def _line(found: Any) -> Line:
    if not isinstance(found, dict):
        raise ValueError("a line must be {file = ..., function = ..., text = ...}")
    file, function, text = (take(found, name, str, None) for name in _SHOWN)
    count, of = (take(found, name, int, 1) for name in ("count", "of"))
    refuse(found, "a line")
    if not 1 <= count <= of:
        raise ValueError(f"count must be from 1 to of = {of}; got {count}")
    return Line(file, function, text, count, of)


def _precision(name: str) -> str | None:
    return None if name == NONE else name


def plan_text(plan: Plan) -> str:
    """Return the TOML text of a plan's file."""
    flags = {name: getattr(plan, name) for name in _FLAGS}
    given = {"arithmetic": plan.arithmetic} if plan.arithmetic else {}
    first = {"version": VERSION, "default": plan.default or NONE, **given, **flags}
    tables = [toml.table("", first)]
    if plan.check:
        tables.append(toml.table("[check]\n", dict(plan.check)))
    for site in plan.call_sites:
        names = ("arithmetic", "user", "library", "operand", "routine", "dtype")
        seen = {name: getattr(site, name) for name in names}
        given = {name: _shown(value) for name, value in seen.items() if value}
        if site.precision != "":
            given = {"precision": site.precision or NONE, **given}
        tables.append(toml.table("[[call_site]]\n", given))
    return "\n".join(tables)


def _shown(value: Any) -> Any:
    """Return a value as TOML has it: lines and operands are tables."""
    if not isinstance(value, Line | Operand):
        return value
    shown = asdict(value)
    if isinstance(value, Line) and value.of == 1:
        shown = {k: shown[k] for k in _SHOWN}
    return shown


# -- what it means ------------------------------------------------------------------


class PlanWarning(UserWarning):
    """A call site of a plan is not found."""


@dataclass(frozen=True)
class FoundCallSite:
    """A call site's lines by number, and its precision."""

    user: tuple[str, int] | None
    library: tuple[str, int] | None
    precision: str | None
    arithmetic: str | None
    operand: Operand | None


def find_call_sites(plan: Plan, path: str) -> list[FoundCallSite]:
    """Return the call sites of a plan in the source as it is now.

    A call site that is not found, or may be one of several, gives a `PlanWarning`; the
    plan's default then holds there.
    """
    set_folders()
    where = folders(os.path.dirname(os.path.abspath(path)))
    found = []
    for site in plan.call_sites:
        try:
            user, library = (
                None if line is None else find_line(line, where)
                for line in (site.user, site.library)
            )
        except LineError as error:
            rest = f"{plan.default or NONE} is used instead"
            if site.arithmetic:
                rest = f"{plan.arithmetic or NONE} is used for its ufuncs"
            warn(f"{path}: {error}; {rest}", PlanWarning)
            continue
        where_is = user, library, site.precision, site.arithmetic, site.operand
        found.append(FoundCallSite(*where_is))
    return found


def read_here(path: str) -> Plan:
    """Read a plan that is to be used.

    Raises
    ------
    ValueError
        As `read_plan`; if the platform has no call sites.
    """
    if not (_core.blas_available() and _core.frames_are_known()):
        raise ValueError(
            "plan cannot be used on this platform. Use Linux on x86-64 or AArch64, and"
            " CPython 3.11 to 3.14"
        )
    return read_plan(path)


# -- the precisions of a plan ------------------------------------------------------


def resolve_plan(settings: Settings) -> _core.MatmulSpec:
    """Find the call sites of a plan in the source as it is now.

    Raises
    ------
    ValueError
        If the plan cannot be read, or another setting is given, or the platform has no
        call sites.
    TypeError
        As `precisions.resolve`.
    """
    check_types(settings)
    assert settings.plan is not None
    path = checked_path(settings.plan, "plan")
    others = settings._replace(plan=None, blas=False)
    for name, usual in Settings(None)._asdict().items():
        if getattr(others, name) != usual:
            raise ValueError(
                f"{name} must not be given with a plan, which sets it; got"
                f" {brief(getattr(others, name))}"
            )
    plan = read_here(path)
    sites = tuple(x for x in plan.call_sites if x.precision != "")
    try:
        for precision in {plan.default, *(site.precision for site in sites)}:
            spec = _spec(plan, precision)
            if spec is not None and spec.exact is not None:
                raise ValueError(
                    f"a plan must not name precision {precision!r}, which applies to"
                    " whole scopes"
                )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    found = find_call_sites(replace(plan, call_sites=sites), path)
    return _planned_spec(tuple(found), replace(plan, call_sites=(), check=()))


@cache  # what it returns has memory that is never given back
def _planned_spec(sites: tuple[FoundCallSite, ...], plan: Plan) -> _core.MatmulSpec:
    return _core.MatmulSpec(
        "float32",
        float64=plan.float64,
        complex64=plan.complex64,
        dots=plan.dots,
        blas=True,
        call_sites=[
            (x.user, x.library, _spec(plan, x.precision), x.operand) for x in sites
        ],
        otherwise=_spec(plan, plan.default),
    )


def _spec(plan: Plan, precision: str | None) -> _core.MatmulSpec | None:
    return resolve(
        Settings(
            precision,
            float64=plan.float64,
            complex64=plan.complex64,
            dots=plan.dots,
            blas=True,
        )
    )
