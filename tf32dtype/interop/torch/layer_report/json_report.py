"""The report of layers as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from ...._base.text import strict_json
from ...._base.version import __version__
from .verdict import verdicts

if TYPE_CHECKING:
    from .result import LayerReport
    from .rows import GroupRow, LayerRow, ProductErrors, RangeLost

#: The version of the record; it grows if a key goes or changes its meaning.
VERSION = 1


def to_json(report: LayerReport) -> str:
    """Return the whole report in strict JSON; Inf and NaN are strings."""
    record = {
        "kind": "tf32dtype layer report",
        "version": VERSION,
        "versions": {"tf32dtype": __version__, "torch": torch.__version__},
        "model": report.model,
        "precisions": list(report.precisions),
        "device": report.device,
        "target_db": report.target_db,
        "is_partial": report.is_partial,
        "estimated_seconds": report.estimated_seconds,
        "products": [_row(row, report.target_db) for row in report.rows],
        "output_db": report.output_db,
        "groups": [_group(group) for group in report.groups],
        "failures": [
            {"group": group, "precision": precision, "error": error}
            for (group, precision), error in report.failures.items()
        ],
        "unreached": [asdict(one) for one in report.unreached],
        "verdicts": [asdict(one) for one in verdicts(report)],
    }
    return strict_json(record) + "\n"


def _row(row: LayerRow, target_db: float) -> dict[str, Any]:
    return {
        "layer": row.layer,
        "kind": row.kind,
        "operands": [row.first, row.second],
        "dtypes": list(row.dtypes),
        "is_backward": row.is_backward,
        "calls": row.calls,
        "multiply_adds": row.multiply_adds,
        "multiply_adds_share": row.share,
        "shapes": [
            {**asdict(shape), "calls": calls} for shape, calls in row.shapes.items()
        ],
        "samples": row.samples,
        "elements": row.elements,
        "outliers": list(row.outliers),
        "precisions": [
            {"precision": name, **_errors(one, target_db)}
            for name, one in row.errors.items()
        ],
    }


def _errors(one: ProductErrors, target_db: float) -> dict[str, Any]:
    return {
        "snr_db": one.snr_db,
        "keeps_target": one.keeps(target_db),
        "first_rounded_db": one.first_db,
        "second_rounded_db": one.second_db,
        "outlier_share": one.outlier_share,
        "lost": [_lost(one.first_lost), _lost(one.second_lost)],
    }


def _lost(one: RangeLost | None) -> dict[str, Any] | None:
    return None if one is None else {**asdict(one), "share": one.share}


def _group(group: GroupRow) -> dict[str, Any]:
    return {
        "name": group.name,
        "layers": list(group.layers),
        "multiply_adds_share": group.share,
        "output_db": group.output_db,
    }
