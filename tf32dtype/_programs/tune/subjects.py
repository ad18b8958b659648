"""Subjects of a search: products of call sites, their ufuncs, or layers of a model.

A subject knows the report that finds its items, the plan that gives each item a
precision, and the command that runs the program in a plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..._files.layer_plans import LayerPlan, PlannedLayer, layer_plan_text
from ..plan_lines import find_file, folders
from ..plans import Plan, plan_text
from .items import Items, read_items, take_snr

Fact = str | float | bool


class Tunable(Protocol):
    """An item of a program whose precision is searched."""

    #: SNR in dB by precision
    snr: dict[str, float]

    @property
    def work(self) -> int:
        """Multiply-adds, or results of ufuncs."""
        ...

    @property
    def name(self) -> str:
        """The name in tables."""
        ...


class Subject(Protocol):
    """The products, ufuncs or layers that are tuned."""

    @property
    def verb(self) -> str:
        """Words for an error: the program must do this."""
        ...

    @property
    def precisions(self) -> tuple[str, ...]:
        """The names of the precisions or formats to try; the cheapest first."""
        ...

    def report_words(self) -> list[str]:
        """Return the words of `tf32dtype` that find the items, without --json."""
        ...

    def kept(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        """Return what the journal keeps of the report's JSON."""
        ...

    def read(self, record: dict[str, Any], folder: str) -> Items[Any]:
        """Return the items of a record of the journal.

        Parameters
        ----------
        record : dict
            The folder that the program ran in, and what `kept` returned.
        folder : str
            The folder that it is a copy of.
        """
        ...

    def files(self, items: Items[Any]) -> list[str]:
        """Return the files that the items are in, without the program's own."""
        ...

    def text(
        self,
        items: Items[Any],
        precisions: Sequence[str | None],
        found: Mapping[str, Fact] | None = None,
    ) -> str:
        """Return the text of a plan's file; `found` says how it was found."""
        ...

    def run_words(self) -> list[str]:
        """Return the words of `tf32dtype` that run the program in a plan."""
        ...

    def __str__(self) -> str:
        """Return words that tell subjects apart."""
        ...


@dataclass(frozen=True)
class CallSites:
    """The products of call sites, or their ufuncs."""

    precisions: tuple[str, ...]
    #: the products that precisions apply to, as a plan without call sites
    reach: Plan = field(default_factory=Plan)
    of_ufuncs: bool = False

    @property
    def verb(self) -> str:
        return "call ufuncs" if self.of_ufuncs else "make matrix multiplications"

    def report_words(self) -> list[str]:
        words = ["report", "--no-trial"]
        if self.of_ufuncs:  # rounded to float32, float32 numbers stay what they are
            words += ["--arithmetic", "float32"]
            return words + ["--float64"] * self.reach.float64
        words += ["--precision", ",".join(self.precisions)]
        return words + ["--dots"] * self.reach.dots

    def kept(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return _ufuncs(report) if self.of_ufuncs else _products(report)

    def read(self, record: dict[str, Any], folder: str) -> Items[Any]:
        return read_items(record, self.reach, (record["folder"], folder))

    def files(self, items: Items[Any]) -> list[str]:
        where = folders()
        lines = [x for item in items.items for x in (item.user, item.library) if x]
        return sorted(filter(None, {find_file(line.file, where) for line in lines}))

    def text(
        self,
        items: Items[Any],
        precisions: Sequence[str | None],
        found: Mapping[str, Fact] | None = None,
    ) -> str:
        sites = tuple(
            item.planned(name)
            for item, name in zip(items.items, precisions, strict=True)
        )
        check = tuple((found or {}).items())
        return plan_text(replace(self.reach, call_sites=sites, check=check))

    def run_words(self) -> list[str]:
        return ["run"]

    def __str__(self) -> str:
        return f"{self.precisions} {self.of_ufuncs} {plan_text(self.reach)}"


@dataclass
class Layer:
    """A layer of a PyTorch model."""

    name: str
    work: int = 0
    snr: dict[str, float] = field(default_factory=dict)

    def take(self, row: Mapping[str, Any]) -> None:
        """Take in a product of the report."""
        self.work += row["multiply_adds"]
        take_snr(self.snr, row["precisions"])


@dataclass(frozen=True)
class Layers:
    """The layers of the PyTorch models that a program runs."""

    precisions: tuple[str, ...]
    device: str | None = None
    verb = "multiply matrices by PyTorch"

    def report_words(self) -> list[str]:
        words = ["report", "--torch", "--precision", ",".join(self.precisions)]
        return words + (["--device", self.device] if self.device else [])

    def kept(self, report: dict[str, Any]) -> list[dict[str, Any]]:
        return [_kept(row, "layer", "multiply_adds") for row in report["products"]]

    def read(self, record: dict[str, Any], folder: str) -> Items[Any]:
        known: dict[str, Layer] = {}
        for row in record["call_sites"]:
            name = row["layer"]
            known.setdefault(name, Layer(name)).take(row)
        return Items(sorted(known.values(), key=lambda x: (-x.work, x.name)))

    def files(self, items: Items[Any]) -> list[str]:
        return []

    def text(
        self,
        items: Items[Any],
        precisions: Sequence[str | None],
        found: Mapping[str, Fact] | None = None,
    ) -> str:
        layers = tuple(
            PlannedLayer(item.name, name)
            for item, name in zip(items.items, precisions, strict=True)
        )
        facts = dict(found or {})
        final = bool(facts.pop("final", True))
        return layer_plan_text(
            LayerPlan(layers, device=self.device, final=final, found=facts)
        )

    def run_words(self) -> list[str]:
        return ["run", "--torch"]

    def __str__(self) -> str:
        return f"layers {self.precisions} {self.device}"


def _ufuncs(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the journal keeps of a report's ufuncs."""
    return [
        {name: site[name] for name in ("user", "library", "dtype")}
        | {
            "of_ufuncs": True,
            "operand": None,
            "routine": site["function"],
            "multiply_adds": site["results"],
            "precisions": [],
        }
        for site in report["arithmetic"]["call_sites"]
    ]


def _products(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the journal keeps of a report's products."""
    names = ("user", "library", "operand", "dtype", "routine", "multiply_adds")
    sites = report["call_sites"]
    return [_kept(site, *names) | {"of_ufuncs": False} for site in sites]


def _kept(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return some entries of a row of the report, and its SNR in each precision."""
    precisions = [
        {name: one[name] for name in ("precision", "snr_db")}
        for one in row["precisions"]
    ]
    return {name: row[name] for name in names} | {"precisions": precisions}
