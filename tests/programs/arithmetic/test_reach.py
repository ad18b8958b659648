"""docs/reference/arithmetic.md lists unreached functions; the how-to has an example."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.arithmetic.operands import rounded, same_bits
from tests.programs.arithmetic.reach import reached
from tests.support.documents import blocks, table
from tests.support.paths import ROOT

DOCUMENT = ROOT / "docs" / "how_to" / "arithmetic.md"
REFERENCE = ROOT / "docs" / "reference" / "arithmetic.md"


def documented() -> set[str]:
    rows = table(REFERENCE, "not reached")
    return {name for row in rows for name in re.findall(r"[\w.]+", row[0])}


@pytest.mark.once
def test_functions_of_numpy() -> None:
    found = reached()
    missed = {name for name, which in found.items() if False in which}
    assert len(found) > 150
    assert missed <= documented(), missed - documented()
    always = found.keys() - missed
    assert not always & documented(), always & documented()


def test_names_exist() -> None:
    for name in documented():
        found: Any = np
        for part in name.removeprefix("np.").split("."):
            found = found if part == "ndarray" else getattr(found, part, None)
            found = getattr(np.ndarray, part, None) if found is None else found
        assert found is not None, name


def test_indexed() -> None:
    """Leave indexed loops unchanged, and round others."""
    x = np.random.default_rng(0).normal(size=9).astype("f4")
    plain, here = x.copy(), x.copy()
    np.add.at(plain, [0, 2], x[:2])
    with td.arithmetic("bf16"):
        np.add.at(here, [0, 2], x[:2])
    assert same_bits(plain, here)
    square = x.reshape(3, 3).copy()
    with td.arithmetic("bf16"):
        np.add.at(square, ([0, 1], [0, 2]), x[:2])
        np.hypot.at(here, [3], x[:1])
    changed = np.array([square[0, 0], square[1, 2], here[3]])
    assert same_bits(changed, rounded(changed, "bf16"))


def test_example(tmp_path: Path) -> None:
    code = next(x for x in blocks(DOCUMENT, "py") if x.startswith("import numpy"))
    script = tmp_path / "script.py"
    more = "from tf32dtype._programs.report import arithmetic as report\n"
    more += "sites = report.arithmetic_call_sites()\n"
    more += 'report.table("bf16", sites).print()\n'
    more += 'print(*(x.text for x in report.advise("bf16", sites)), sep="\\n")\n'
    script.write_text(code + more)
    done = subprocess.run(
        [sys.executable, "script.py"],
        capture_output=True, text=True, cwd=tmp_path, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.startswith("0.0 0.0\n"), done.stderr
    shown = next(x for x in blocks(DOCUMENT, "text") if "script.py" in x)
    # The errors of exp are those of NumPy, which differ between processors.
    for line in shown.splitlines():
        if "exp" not in line and "-----" not in line:
            assert re.sub(r"  +", " ", line) in re.sub(r"  +", " ", done.stdout)
