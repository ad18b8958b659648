"""The collector: watches matrix multiplications between `start` and `stop`."""

from __future__ import annotations

import math
import platform
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import _core
from ..._base.errors import UserError
from ..._base.version import __version__
from ..operand import Operand
from ..source_folders import set_folders
from .call_sites import CallSite, LaterSum, Run, Sample, frame_of
from .not_reached import Counts, not_reached, watch_loops, watch_strided_loops
from .operands import constant_operands
from .regions import Region

#: Rows and columns of a multiplication that are kept.
LINES = 8
#: The memory for samples in bytes; the memory if everything is kept.
ROOM = 1 << 30
ROOM_FOR_ALL = 4 << 30


@dataclass(frozen=True)
class CollectorOptions:
    """The options of a collector: which products it watches, and how it finds lines."""

    #: dots and norms too
    dots: bool = False
    #: matrix multiplications inside LAPACK too
    lapack: bool = False
    #: keep all rows, columns and multiplications: no sampling
    exact: bool = False
    #: packages whose frames count as the user's code: their call sites are shown
    stop_at: tuple[str, ...] = ()
    #: watch only these regions; empty: watch all
    only: tuple[Region, ...] = ()
    #: regions to exclude
    excepted: tuple[Region, ...] = ()
    #: tell the constant operands of a line apart
    by_operand: bool = True


class Collector:
    """Watches matrix multiplications. One collector runs at a time.

    Parameters
    ----------
    options : CollectorOptions
        The products to watch.
    argv : tuple of str
        The program and its arguments; empty for a `with` block.
    """

    _at_work = False

    def __init__(self, options: CollectorOptions, argv: tuple[str, ...] = ()) -> None:
        self.options = options
        self.argv = argv
        self._began = 0.0
        self._counts = Counts()

    def start(self) -> None:
        """Begin to watch.

        Raises
        ------
        UserError
            If products cannot be watched here, or a collector is at work.
        """
        if not _core.blas_available():
            raise UserError(
                "reports are not available on this system; use Linux (x86-64, AArch64)"
            )
        if Collector._at_work:
            raise UserError("a second report cannot begin while another one runs")
        options = self.options
        try:
            set_folders(options.stop_at)
        except ValueError as error:
            raise UserError(str(error)) from None
        watch_loops()
        watch_strided_loops()
        self._counts = Counts()
        regions = bool(options.only or options.excepted)
        with ExitStack() as begun:
            if regions:
                begun.callback(_core.set_regions, [], [], obey=False)
                pairs = [_pairs(x) for x in (options.only, options.excepted)]
                _core.set_regions(*pairs, obey=False)
            _core.blas_begin(options.lapack)
            begun.callback(_core.blas_end)
            _core.watch_call_sites(
                LINES,
                whole=options.exact,
                bytes=ROOM_FOR_ALL if options.exact else ROOM,
                dots=options.dots,
                lapack=options.lapack,
                regions=regions,
                operands=options.by_operand,
            )
            _core.follow_results(True)
            begun.pop_all()  # `stop` ends everything that has begun
        Collector._at_work = True
        self._began = time.perf_counter()

    def stop(self) -> Run:
        """Stop watching, in any thread, and return the run."""
        seconds = time.perf_counter() - self._began
        _core.follow_results(False)
        _core.stop_watching()
        _core.blas_end()
        if self.options.only or self.options.excepted:
            _core.set_regions([], [], obey=False)
        Collector._at_work = False
        sums: dict[int, list[LaterSum]] = {}
        for row in _core.followed_sums():
            sums.setdefault(row["product"], []).append(_later_sum(row))
        found = [
            site
            for number, row in enumerate(_core.blas_call_sites())
            for site in _call_sites(number, row, sums.get(number, ()))
        ]
        return Run(
            argv=self.argv,
            seconds=seconds,
            call_sites=tuple(found),
            not_reached=tuple(not_reached(self._counts, self.options.lapack)),
            python=platform.python_version(),
            numpy=np.__version__,
            tf32dtype=__version__,
            left_out=_core.samples_left_out(),
            without_call_site=_core.calls_without_call_site(),
        )


def _pairs(regions: tuple[Region, ...]) -> list[tuple[str, str]]:
    return [(region.file, region.function or "") for region in regions]


def _later_sum(row: dict[str, Any]) -> LaterSum:
    frame = frame_of(row["user"]) or frame_of(row["library"])
    part, whole = row["part"], row["whole"]
    bits = math.inf
    if part <= whole:
        bits = 0.0
    elif whole:
        bits = math.log2(part / whole) / 2
    return LaterSum(row["function"], frame, bits)


def _call_sites(
    number: int, row: dict[str, Any], sums: Iterable[LaterSum]
) -> Iterator[CallSite]:
    """Yield a call site of the engine; if it has constant operands, one for each."""
    samples = [
        (Sample(a, b, m, n, k, len(a) == m and b.shape[1] == n), digests)
        for (m, n, k), a, b, digests in _core.take_samples(number)
    ]
    row["later_sums"] = tuple(sorted(sums, key=lambda one: -one.bits))
    operands = constant_operands(row["operands"], row["dtype"])
    if operands is None:
        yield _call_site(row, row, row["seconds"], [sample for sample, _ in samples])
        return
    for one in operands:
        seconds = row["seconds"] * one["multiply_adds"] / max(row["multiply_adds"], 1)
        own = [sample for sample, digests in samples if one["digest"] in digests]
        names = ("number", "side", "rows", "columns", "name")
        operand = Operand(
            of=len(operands),
            digest=f"{one['digest']:016x}",
            **{name: one[name] for name in names},
        )
        yield _call_site(row, one, seconds, own, operand)


def _call_site(
    row: dict[str, Any],
    counts: dict[str, Any],
    seconds: float,
    samples: Sequence[Sample],
    operand: Operand | None = None,
) -> CallSite:
    user, innermost = (frame_of(row[name]) for name in ("user", "library"))
    shapes = sorted(counts["shapes"].items(), key=lambda item: -item[1])
    return CallSite(
        user=user,
        library=innermost if innermost != user else None,
        caller=row["object"],
        routine=row["routine"],
        dtype=row["dtype"],
        calls=counts["calls"],
        multiply_adds=counts["multiply_adds"],
        seconds=seconds,
        shapes=dict(shapes),
        samples=tuple(samples),
        later_sums=row["later_sums"],
        operand=operand,
    )
