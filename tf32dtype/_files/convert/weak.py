"""Find tensors with a large conversion error, and formats that avoid it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...blocks.formats import elements
from ...blocks.formats import formats as block_formats
from ..readers import Tensor, TensorFile, release
from .options import Options
from .targets import Plain, Scaled, Target, find

#: The number of tensors that are measured in other formats.
MOST = 5
#: The formats to try, the cheapest first, with their options.
_CANDIDATES: dict[str, Options] = {
    "mxfp4": Options("mxfp4"),
    "nvfp4": Options("nvfp4"),
    "mxfp6_e2m3": Options("mxfp6_e2m3"),
    "fp8_e4m3 --tile 1xall": Options("fp8_e4m3", tile=(1, None)),
    "mxfp8": Options("mxfp8"),
    "bf16": Options("bf16"),
    "float32": Options("float32"),
}


@dataclass(frozen=True)
class Weak:
    """A tensor whose SNR is below the limit."""

    name: str
    snr_db: float
    #: the share of its values that became 0
    to_zero: float
    #: the format that reaches the limit, as an argument of `--to`; empty if none does,
    #: or if the tensor was not measured
    use: str = ""
    use_db: float | None = None

    def record(self) -> dict[str, Any]:
        """Return the tensor as a dictionary for JSON."""
        found: dict[str, Any] = {"name": self.name, "snr_db": self.snr_db}
        return found | ({"use": self.use, "use_db": self.use_db} if self.use else {})


def find_weak(
    source: TensorFile,
    targets: Mapping[str, Target],
    records: Sequence[Mapping[str, Any]],
    min_db: float,
    most: int = MOST,
) -> list[Weak]:
    """Find the converted tensors whose SNR is below a limit, the worst first.

    Parameters
    ----------
    source : TensorFile
        The input. The worst tensors are read again, and measured in the formats that
        have at least the bits of the target, the cheapest first.
    targets : mapping of str to Target
        The formats that they were converted to, by their names.
    records : sequence of dict
        The `Result.records` of the conversion.
    min_db : float
        The smallest accepted SNR, in dB.
    most : int
        How many tensors are measured in other formats.

    Raises
    ------
    UserError
        If a tensor cannot be read.
    """
    found = [
        Weak(x["name"], x["snr_db"], x["to_zero"] / max(1, source[x["name"]].size))
        for x in records
        if x["snr_db"] < min_db
    ]
    found.sort(key=lambda x: x.snr_db)
    worst = [
        _with_remedy(x, source[x.name], targets[x.name], min_db) for x in found[:most]
    ]
    return worst + found[most:]


def _with_remedy(weak: Weak, tensor: Tensor, target: Target, min_db: float) -> Weak:
    array = tensor.get()
    try:
        for text, options in _CANDIDATES.items():
            other = find(options)
            if _bits(other) < _bits(target) or other.label == target.label:
                continue
            snr = _measure(other, tensor, array)
            if snr is not None and snr >= min_db:
                return Weak(weak.name, weak.snr_db, weak.to_zero, text, snr)
    finally:
        release(array)
    return weak


def _measure(target: Target, tensor: Tensor, array: Any) -> float | None:
    """Return the SNR of a tensor in a format; None if the format cannot store it."""
    try:
        target.outlines(tensor.name, tensor.shape)
        with np.errstate(all="ignore"):
            loss = target.convert(tensor.name, array, lambda *_: None, lambda: None)
    except (ValueError, TypeError, OverflowError):
        return None
    return loss.snr


def _bits(target: Target) -> int:
    """Return the bits of an element."""
    if isinstance(target, Plain):
        return target.form.bits
    assert isinstance(target, Scaled)
    if target.tile is not None:
        return 8
    row = block_formats[target.format]
    return sum(elements[x].width for x in (row.element, row.residual) if x)
