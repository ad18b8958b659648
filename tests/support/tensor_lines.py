"""The lines of docs/reference/tensors.md, library by library."""

from __future__ import annotations

from typing import Any

import numpy as np

import tf32dtype as td
from tests.support.documents import table
from tests.support.paths import ROOT


def lines(library: str) -> list[list[str]]:
    """The rows of a library: its name, the lines there and back, what of the memory."""
    rows = table(ROOT / "docs" / "reference" / "tensors.md", "library")
    return [row for row in rows if row[0].split(",")[0] == library]


def check(row: list[str], names: dict[str, Any]) -> None:
    """Fail unless an array comes back as it was, in memory as the row says."""
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
