"""`td.explain_matmul`: the kernels that a product uses, and the reason."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code


def ones(*shape: int, dtype: Any = td.bfloat16) -> Any:
    return np.ones(shape, dtype)


#: Operands and options, by the expected `way`.
WAYS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "nothing": (ones(0, 8), ones(8, 3), {}),
    "short dot products": (ones(200), ones(200), {}),
    "small matrices": (ones(16, 16), ones(16, 16), {}),
    "matrix unit": (
        ones(32, 32, dtype=np.float32),
        ones(32, 32, dtype=np.float32),
        {"precision": "tf32", "device": "A100"},
    ),
    "zeros": (ones(4, 0), ones(0, 3), {}),
    "dot product": (ones(5000), ones(5000), {}),
    "dot product of copies": (
        ones(5000, dtype=np.float32),
        ones(5000, dtype=np.float32),
        {"precision": "tf32"},
    ),
    "GEMV along k": (ones(300, 300), ones(300), {}),
    "GEMV across k": (ones(300), ones(300, 300), {}),
    "macro-kernel": (ones(300, 300), ones(300, 300), {}),
    "NumPy": (ones(3, 3, dtype=float), ones(3, 3, dtype=float), {}),
}


#: The baseline has no kernels that read lines without a copy.
AT_BASELINE = {
    "dot product": "dot product of copies",
    "GEMV along k": "GEMV across k",
}


@pytest.mark.parametrize("way", WAYS)
def test_ways(way: str) -> None:
    a, b, options = WAYS[way]
    plan = td.explain_matmul(a, b, **options)
    if td.isa() == "baseline":
        way = AT_BASELINE.get(way, way)
    assert plan.way == way
    assert str(plan).startswith(f"{way}: ")
    assert plan.reason in str(plan)
    packed = way in ("small matrices", "macro-kernel")
    assert (plan.packing is not None) == (plan.micro_tile is not None) == packed


def test_tiles_cover_the_result() -> None:
    for m, n in [(1, 9000), (300, 300), (1100, 1100), (5000, 70), (40, 3000)]:
        plan = td.explain_matmul(ones(m, 600), ones(600, n))
        assert plan.tile is not None
        rows, columns = plan.tile
        height, width = (n, m) if plan.transposed else (m, n)
        assert plan.tiles == -(-height // rows) * -(-width // columns)
        assert plan.threads <= plan.tiles


#: The most rows and columns of sums that a thread has memory for
#: (src/matmul/workspace.h). Some precisions have two sets of sums.
MOST = {"bf16": (1176, 1024), "bf16x3": (588, 1024)}
SIDES = """
import json, numpy as np, tf32dtype as td

found = {}
for precision in ("bf16", "bf16x3"):
    tiles = set()
    for side in range(2, 4000, 7):
        for m, n in ((side, 300), (300, side), (side, side)):
            a, b = np.empty((m, 4500), np.float32), np.empty((4500, n), np.float32)
            tiles.add(td.explain_matmul(a, b, precision=precision).tile)
    found[precision] = [max(side) for side in zip(*tiles)]
print(json.dumps(found))
"""


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_tiles_have_memory(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", str(threads))
    for precision, sides in json.loads(run_code(SIDES)).items():
        assert np.all(np.array(sides) <= MOST[precision]), precision


#: Two sets of sums are in use with more than 4096 k, with promoted sums, and for rows
#: that have Inf. The tiles of the first two are as high as memory allows.
ONE_THREAD = """
import json, numpy as np, tf32dtype as td

rng = np.random.default_rng(0)
a = rng.standard_normal((1176, 4200), np.float32)
b = rng.standard_normal((4200, 272), np.float32)
x, y = a[:, :256].astype(td.fp8_e4m3), b[:256].astype(td.fp8_e4m3)
infinite = a[:, :40].copy()
infinite[3, 7] = np.inf

def equal(multiply, p):
    whole = multiply(p)
    rows = np.vstack([multiply(p[i : i + 168]) for i in range(0, len(p), 168)])
    return bool(np.array_equal(whole.view(np.uint32), rows.view(np.uint32)))

print(json.dumps([
    equal(lambda p: td.matmul(p, b, precision="bf16x3"), a),
    equal(lambda p: td.tensor_core.matmul(p, y, device="H100", promote_every=128), x),
    equal(lambda p: td.matmul(p, b[:40], precision="bf16x3"), infinite),
]))
"""


def test_two_sets_of_sums_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert json.loads(run_code(ONE_THREAD)) == [True, True, True]


def test_a_stack_and_a_small_product() -> None:
    stack = td.explain_matmul(ones(2, 50, 8, 300), ones(300, 8))
    assert stack.tiles == 100
    assert td.explain_matmul(ones(2, 50, 8, 8), ones(8, 8)).way == "small matrices"


def test_what_changes_the_way() -> None:
    """Change `way` by memory order, number of components, and scope."""
    a, v = ones(300, 300), ones(300)
    assert td.explain_matmul(np.asfortranarray(a), v).way == "GEMV across k"
    assert not td.explain_matmul(v, a).transposed
    assert td.explain_matmul(a, v).transposed
    singles = ones(300, 300, dtype=np.float32)
    assert td.explain_matmul(singles, singles, precision="bf16x9").terms == 9
    assert td.explain_matmul(singles, singles).way == "NumPy"
    with td.matmul_precision("bf16"):
        assert td.explain_matmul(singles, singles).way == "macro-kernel"
        assert td.explain_matmul(singles.astype(float), singles).way == "NumPy"
    with td.matmul_precision("bf16", float64=True):
        assert td.explain_matmul(singles.astype(float), singles).way == "macro-kernel"


def test_refused() -> None:
    a = ones(3, 4)
    with pytest.raises(ValueError, match="same k"):
        td.explain_matmul(a, a)
    with pytest.raises(TypeError, match="must be float32"):
        td.explain_matmul(a, a.T, precision="bf16")
    z = ones(3, 3, dtype=np.complex64)
    with (
        td.matmul_precision("bf16", complex64=True),
        pytest.raises(TypeError, match=r"operands must be real; got complex64"),
    ):
        td.explain_matmul(z, z)
