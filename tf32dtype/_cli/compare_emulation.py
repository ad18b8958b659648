"""`tf32dtype compare --precision exact,crt10,int8x7`: against the exact product."""

from __future__ import annotations

from typing import Any

from .._base.text import Table, number
from .._base.wording import joined
from .._measures.emulation import Emulation, Result


def record(found: Emulation) -> dict[str, Any]:
    """Return a record for JSON."""
    products = {
        "dtype": found.dtype.name,
        "products": [_record(result) for result in [*found.native, *found.results]],
    }
    if not found.has_emulated:
        return products
    return products | {
        "as_accurate_as_float32": _names(found.accurate_as(found.native[0])),
        "correctly_rounded": _names(found.correct()),
        "as_accurate_as_float64": _names(found.accurate_as(found.native[1])),
        "row_span": found.needed.row_span,
        "column_span": found.needed.column_span,
        "moduli_without_truncation": found.needed.moduli,
    }


def _record(result: Result) -> dict[str, Any]:
    return {
        "precision": result.name,
        "correctly_rounded": result.correct,
        "largest_ulps": result.ulps,
        "largest_error": result.error,
    }


def _names(results: list[Result]) -> list[str]:
    return [result.name for result in results]


def table(found: Emulation) -> Table:
    """Return the results as text."""
    return Table(
        f"Error of A @ B ({found.dtype.name}), relative to the exact product",
        ("precision", "rounded correctly", "max ulps", "max error"),
        [
            [
                result.name,
                _percent(result.correct),
                _ulps(result.ulps),
                number(result.error),
            ]
            for result in [*found.native, *found.results]
        ],
    )


def _percent(share: float) -> str:
    """Return a share in percent; 100 only if no element is missing."""
    if share == 1:
        return "100 %"
    return f"{min(100 * share, 99.9999):.6g} %"


def _ulps(ulps: int | None) -> str:
    if ulps is None:
        return "-"
    return str(ulps) if ulps < 10**6 else number(ulps)


def conclusions(found: Emulation) -> list[str]:
    """Return which of the emulated precisions suffice, and what truncates numbers."""
    needed = found.needed
    enough = (
        f"no number is truncated from crt{needed.moduli} on"
        if needed.moduli
        else "all emulated precisions up to crt20 truncate numbers"
    )
    float32, float64 = (_listed(found.accurate_as(native)) for native in found.native)
    correct = f"All {found.dtype.name} results rounded correctly"
    return [
        f"As accurate as NumPy's float32: {float32}",
        f"{correct}: {_listed(found.correct())}",
        f"As accurate as NumPy's float64: {float64}",
        f"Exponents span {needed.row_span} in a row of A, {needed.column_span} in a"
        f" column of B: {enough}",
    ]


def _listed(results: list[Result]) -> str:
    return joined(_names(results)) if results else "none of these"
