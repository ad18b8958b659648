"""The result of tuning in a table, and its estimated speedup on GPUs."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from ..._base.text import Table, number
from ..report.naming import snr_text
from .peaks import PEAKS, gain
from .subjects import Tunable
from .tune import Tuned


def print_summary(tuned: Tuned, tolerance: float, stream: TextIO | None = None) -> None:
    """Print the table of call sites, and the speedups; None: standard output."""
    found = tuned.items
    others = sum(found.foreign.values()) + sum(found.nameless.values())
    total = sum(item.work for item in found.items) + others
    of_ufuncs = any(item.of_ufuncs for item in found.items)
    rows = [
        [
            item.name,
            name or "none",
            f"{100 * item.work / max(total, 1):.1f}",
            *([] if of_ufuncs else [_snr(item, name)]),
            ", ".join(sorted(item.routines)),
            ", ".join(sorted(item.multiply_adds)),
        ]
        for item, name in zip(found.items, tuned.precisions, strict=True)
    ]
    header = ["call site", "precision", "% work", "SNR dB", "routine", "dtype"]
    title = "Lowest sufficient precision of each call site"
    if of_ufuncs:
        header = ["call site", "format", "% results", "ufuncs", "dtype"]
        title = "Lowest sufficient format of each line's ufuncs"
    Table(title, header, rows).print(stream)
    if found.nameless:
        share = 100 * sum(found.nameless.values()) / max(total, 1)
        print(
            f"Unchanged: {share:.1f} % of the work, at call sites without source code",
            file=stream,
        )
    if found.foreign:
        share = 100 * sum(found.foreign.values()) / max(total, 1)
        print(
            f"Unchanged: {share:.1f} % of the work, in"
            f" {', '.join(sorted(found.foreign))}. Use --float64 or --complex64",
            file=stream,
        )
    _print_distance(tuned, tolerance, stream)
    for line in () if of_ufuncs else gains(tuned):
        print(line, file=stream)


def print_layers(tuned: Tuned, tolerance: float, stream: TextIO | None = None) -> None:
    """Print the table of the layers of a model; None: standard output."""
    found = tuned.items.items
    total = sum(item.work for item in found)
    rows = [
        [
            item.name or "outside of layers",
            name or "none",
            f"{100 * item.work / max(total, 1):.1f}",
            _snr(item, name),
        ]
        for item, name in zip(found, tuned.precisions, strict=True)
    ]
    header = ["layer", "format", "% work", "SNR dB"]
    Table("Lowest sufficient format of each layer", header, rows).print(stream)
    _print_distance(tuned, tolerance, stream)


def _print_distance(tuned: Tuned, tolerance: float, stream: TextIO | None) -> None:
    print(
        f"Difference from the unchanged program: {number(tuned.distance)} (tolerance"
        f" {number(tolerance)}); {tuned.runs} runs",
        file=stream,
    )


def _snr(item: Tunable, name: str | None) -> str:
    return snr_text(item.snr[name]) if name in item.snr else "-"


def gains(tuned: Tuned) -> list[str]:
    """Return a line for each GPU with the estimated speedup."""
    adds: Counter[tuple[str | None, str]] = Counter()
    for item, name in zip(tuned.items.items, tuned.precisions, strict=True):
        for dtype, count in item.multiply_adds.items():
            adds[name, dtype] += count
    for dtype, count in [
        *tuned.items.foreign.items(),
        *tuned.items.nameless.items(),
    ]:
        adds[None, dtype] += count
    total = sum(adds.values())
    shares = {key: count / max(total, 1) for key, count in adds.items()}
    wide = any(dtype in ("float64", "complex128") for _, dtype in adds)
    lines = []
    for gpu in PEAKS:
        words = [f"{gain(gpu, shares, 'float32'):.1f} times FP32"]
        if wide:
            words.append(f"{gain(gpu, shares, 'float64'):.1f} times FP64")
        lines.append(f"Estimated speedup on {gpu} at peak rates: {', '.join(words)}")
    return lines
