"""Read and check the lines of docs/reference/tensors.md, one library at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

import tf32dtype as td
from tests.support.documents import table
from tests.support.paths import ROOT


def lines(library: str) -> list[list[str]]:
    """Return a library's rows: name, line to it, line back, memory, dtypes."""
    rows = table(ROOT / "docs" / "reference" / "tensors.md", "library")
    return [row for row in rows if row[0].split(",")[0] == library]


def check(row: list[str], names: dict[str, Any]) -> None:
    """Fail unless an array comes back unchanged, and shares memory as the row says."""
    _, there, back, memory, _ = row
    aligned = np.zeros(256, np.uint8)
    aligned = aligned[-aligned.ctypes.data % 64 :][:8]
    a = aligned.view(td.bfloat16).reshape(2, 2)
    a[:] = [[1.5, -2], [0.25, 3]]
    p = a.astype(td.fp4)
    names = {"np": np, "td": td, "a": a, "p": p} | names
    source = p if "p" in there.replace(",", "(").replace(")", "(").split("(") else a
    x = eval(there, names)
    found = eval(back, names | {"x": x})
    want = source.astype(td.fp8_e4m3) if "fp8_e4m3" in there else source
    assert type(found) is np.ndarray
    assert found.dtype == want.dtype
    assert found.shape == want.shape
    assert found.tobytes() == want.tobytes()
    assert np.shares_memory(found, source) == memory.startswith("shared")
    assert found.flags.writeable == ("read-only" not in memory)
    if source is a:
        again = eval(back, names | {"x": x})
        shares = memory.startswith("shared") or "back shared" in memory
        assert np.shares_memory(found, again) == shares
