"""The call sites of a program whose precision is searched, from a report's JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from ..operand import Operand
from ..plan_lines import Line, folders, name_line
from ..plans import NONE, Plan, PlannedCallSite

T = TypeVar("T")


@dataclass
class Item:
    """A line of the user's, and that of a library below it; or one operand there."""

    user: Line | None
    library: Line | None
    operand: Operand | None = None
    #: whether its ufuncs are tuned, not its products
    of_ufuncs: bool = False
    #: multiply-adds by dtype; for ufuncs the number of results
    multiply_adds: dict[str, int] = field(default_factory=dict)
    routines: set[str] = field(default_factory=set)
    #: SNR in dB by precision: the smallest of its routines and dtypes
    snr: dict[str, float] = field(default_factory=dict)

    @property
    def work(self) -> int:
        """All multiply-adds."""
        return sum(self.multiply_adds.values())

    @property
    def name(self) -> str:
        """For the table."""
        lines = [line for line in (self.user, self.library) if line]
        name = " > ".join(_name(line, 44 // len(lines)) for line in lines)
        return f"{name} {self.operand}" if self.operand else name

    def take(self, record: Mapping[str, Any]) -> None:
        """Take in a call site of the report."""
        dtype, adds = record["dtype"], record["multiply_adds"]
        self.multiply_adds[dtype] = self.multiply_adds.get(dtype, 0) + adds
        self.routines.add(record["routine"])
        take_snr(self.snr, record["precisions"])

    def planned(self, precision: str | None) -> PlannedCallSite:
        """As a plan has it."""
        site = PlannedCallSite(
            precision,
            self.user,
            self.library,
            routine=", ".join(sorted(self.routines)),
            dtype=", ".join(sorted(self.multiply_adds)),
            operand=self.operand,
        )
        if self.of_ufuncs:
            return replace(site, precision="", arithmetic=precision or NONE)
        return site


def take_snr(snr: dict[str, float], precisions: Sequence[Mapping[str, Any]]) -> None:
    """Lower the SNR of each precision to that of a record of the report."""
    for one in precisions:
        name, found = one["precision"], float(one["snr_db"])
        if math.isnan(found):  # nothing was measured
            found = -math.inf
        snr[name] = min(found, snr.get(name, found))


@dataclass
class Items(Generic[T]):
    """The items to tune, the heaviest first, and call sites that cannot be tuned."""

    items: list[T] = field(default_factory=list)
    #: multiply-adds by dtype of call sites that no plan can name, and of other dtypes
    nameless: dict[str, int] = field(default_factory=dict)
    foreign: dict[str, int] = field(default_factory=dict)


def read_items(
    report: Mapping[str, Any], plan: Plan, moved: tuple[str, str]
) -> Items[Item]:
    """Return the items of a report.

    Parameters
    ----------
    report : mapping
        The report's JSON.
    plan : Plan
        The plan that chooses the dtypes to tune.
    moved : pair of str
        The folder that the program ran in, and the one that it is a copy of.
    """
    found: Items[Item] = Items()
    known: dict[tuple[Line | None, Line | None, Operand | None], Item] = {}
    where = folders()
    for record in report["call_sites"]:
        dtype, adds = record["dtype"], record["multiply_adds"]
        if not _obeys(plan, dtype):
            found.foreign[dtype] = found.foreign.get(dtype, 0) + adds
            continue
        lines = [line_of(record[name], moved, where) for name in ("user", "library")]
        lost = any(
            record[name] and line is None
            for name, line in zip(("user", "library"), lines, strict=True)
        )
        if lost or not any(lines):
            found.nameless[dtype] = found.nameless.get(dtype, 0) + adds
            continue
        of_ufuncs = record["of_ufuncs"]
        operand = record["operand"] and Operand(**record["operand"])
        # All ufuncs that NumPy's own code calls for a line of the user have one format.
        library = None if of_ufuncs and lines[0] else lines[1]
        key = lines[0], library, operand
        known.setdefault(key, Item(*key, of_ufuncs)).take(record)
    found.items = sorted(
        known.values(),
        key=lambda item: (-item.work, str(item.user), str(item.library)),
    )
    return found


def _obeys(plan: Plan, dtype: str) -> bool:
    double = dtype in ("float64", "complex128")
    is_complex = dtype.startswith("complex")
    return (plan.float64 or not double) and (plan.complex64 or not is_complex)


def line_of(
    frame: Mapping[str, Any] | None, moved: tuple[str, str], where: Sequence[str]
) -> Line | None:
    """Return a frame's line as plans name it.

    None if there is no frame, or its source cannot be read.
    """
    if frame is None:
        return None
    file = os.path.realpath(frame["file"])
    there = os.path.join(os.path.realpath(moved[0]), "")
    if file.startswith(there):
        file = os.path.join(moved[1], file[len(there) :])
    return name_line(file, frame["line"], frame["function"], where)


def _name(line: Line, most: int) -> str:
    which = f" ({line.count} of {line.of})" if line.of > 1 else ""
    text = line.text if len(line.text) <= most else line.text[: most - 3] + "..."
    return f"{os.path.basename(line.file)} {line.function}: {text}{which}"
