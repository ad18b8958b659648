"""Call sites by operand: a line that multiplies by many constant matrices."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tf32dtype as td
from tests.support import forks
from tf32dtype import _core
from tf32dtype._programs.report.operands import constant_operands

if not (_core.blas_available() and _core.frames_are_known()):
    pytest.skip("needs Linux and known frames", allow_module_level=True)
pytestmark = pytest.mark.once

Array = NDArray[Any]
LAYERS, WIDE, BATCH = 36, 24, 10
#: The report looks for the names of the 36 layers, which needs the GIL.
needs_gil = pytest.mark.skipif(
    not getattr(sys, "_is_gil_enabled", lambda: True)(),
    reason="names are looked for under the GIL",
)


def linear(x: Array, w: Array, b: float = 0.5) -> Array:
    return x @ w + b


def matrices(count: int = LAYERS, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((count, WIDE, WIDE)) / WIDE**0.5).astype(np.float32)


def forward(weights: Iterable[Array], seed: int = 1) -> Array:
    x = np.random.default_rng(seed).standard_normal((BATCH, WIDE)).astype(np.float32)
    for w in weights:
        x = np.maximum(linear(x, w), 0)
    return x


def rows(run: Callable[[], Any], **options: Any) -> list[Any]:
    """Return the rows' operands in order of first use; None for one row per line."""
    with td.report(precision="bf16", **options) as r:
        run()
    found = [one.call_site for one in r.call_sites]
    assert len({(site.user, site.routine) for site in found}) == 1
    assert all(site.samples for site in found)
    operands = [site.operand for site in found]
    if operands == [None]:
        return operands
    assert (
        sum(site.calls for site in found) == r.run.multiply_adds // found[0].calls or 1
    )
    return sorted(operands, key=lambda operand: operand.number)  # type: ignore[union-attr]


class Layer:
    def __init__(self, weight: Array) -> None:
        self.weight = weight


class Slotted:
    __slots__ = ("weight",)

    def __init__(self, weight: Array) -> None:
        self.weight = weight


class Model:
    def __init__(self, kind: Any = Layer) -> None:
        self.layers = [kind(w) for w in matrices()]

    def run(self) -> None:
        forward(layer.weight for layer in self.layers)


def in_dict() -> None:
    parameters = {f"layers.{i}.weight": w for i, w in enumerate(matrices())}
    forward(parameters.values())


def in_list() -> None:
    weights = [*matrices()]
    forward(weights)


def in_stack() -> None:
    weights = matrices()
    forward(weights)


def in_objects() -> None:
    Model().run()


def in_slots() -> None:
    model = Model(Slotted)
    model.run()


MODULE = type(sys)("tests_weights")


def in_module() -> None:
    MODULE.__file__ = __file__
    MODULE.weights = {"layers": [{"w": w} for w in matrices(seed=9)]}  # type: ignore[attr-defined]
    module = MODULE
    forward(one["w"] for one in module.weights["layers"])  # type: ignore[attr-defined]


@needs_gil
@pytest.mark.parametrize(
    ("run", "third"),
    [
        (in_dict, "layers.2.weight"),
        (in_list, "weights[2]"),
        (in_stack, "weights[2]"),
        (in_objects, "layers[2].weight"),
        (in_slots, "model.layers[2].weight"),
        (in_module, "MODULE.weights.layers[2].w"),
    ],
)
def test_each_layer_is_a_row(run: Callable[[], None], third: str) -> None:
    found = rows(run)
    assert [one.number for one in found] == [*range(1, LAYERS + 1)]
    assert {(one.of, one.rows, one.columns) for one in found} == {(LAYERS, WIDE, WIDE)}
    assert found[2].name == third
    assert len({one.name for one in found}) == LAYERS
    assert len({one.digest for one in found}) == LAYERS
    assert str(found[2]) == f"[3 of {LAYERS}: {third}, {WIDE} x {WIDE}]"


def test_the_figures_of_a_row_are_those_of_its_products() -> None:
    weights = [*matrices(3)]
    weights[1] *= np.float32(2.0**-140)
    with td.report(precision="bf16") as r:
        for seed in range(5):
            forward(weights, seed)
    small = [x for x in r.call_sites if "f32" in x.verdict.ranges or x.verdict.ranges]
    assert [x.call_site.operand.number for x in small] == [2]  # type: ignore[union-attr]
    assert [x.call_site.calls for x in r.call_sites] == [5, 5, 5]
    work = BATCH * WIDE * WIDE
    assert [x.call_site.multiply_adds for x in r.call_sites] == [5 * work] * 3
    shapes = [x.call_site.shapes for x in r.call_sites]
    assert shapes == [{(BATCH, WIDE, WIDE): 5}] * 3
    text = r._report.to_html()
    assert "[2 of 3: weights[1], 24 x 24]" in text
    assert '"name": "weights[1]"' in r._report.to_json()


@needs_gil
def test_rows_by_line() -> None:
    weights = [*matrices()]
    with td.report(precision="bf16"):  # forget operands of an earlier report
        forward(weights)
    for one in weights[:3]:  # fill the table of lines in another order
        with td.report(precision="bf16", by="line") as r:
            one @ one
    with td.report(precision="bf16", by="line") as r:
        forward(weights)
    (one,) = r.call_sites
    assert one.call_site.operand is None
    assert one.call_site.calls == LAYERS
    assert len(one.call_site.samples) == 6  # the 1st, 2nd, 4th, ... 32nd call
    with pytest.raises(ValueError, match="by must be 'operand' or 'line'; got 'row'"):
        td.report(by="row")  # type: ignore[arg-type]


@needs_gil
def test_the_same_weight_twice() -> None:
    first, second = matrices(2)
    weights = [first, second, first, first.copy()]
    found = rows(lambda: forward(weights))
    assert [one.of for one in found] == [2, 2]
    assert [one.name for one in found] == ["weights[0]", "weights[1]"]


def test_one_weight_is_one_row() -> None:
    weights = [matrices(1)[0]] * 5
    assert rows(lambda: forward(weights)) == [None]


@needs_gil
def test_a_copy_in_another_layout_is_the_same() -> None:
    weights = [*matrices(4)]
    found = rows(lambda: forward(w.T.copy().T for w in [*weights, *weights]))
    assert [one.name for one in found] == [f"weights[{i}]" for i in range(4)]


def test_tensors_of_a_file(tmp_path: Path) -> None:
    """Name weights of a file that no variable had before the line runs."""
    path = tmp_path / "net.safetensors"
    td.safetensors.save(
        path, {f"layers.{i}.weight": w for i, w in enumerate(matrices())}
    )

    def run() -> None:
        with td.safetensors.open(path) as file:
            forward(file[f"layers.{i}.weight"].T for i in range(LAYERS))

    found = rows(run)
    assert [one.name for one in found] == [f"layers.{i}.weight" for i in range(LAYERS)]


# -- one row -------------------------------------------------------------------------


def k_means(steps: int, history: list[Array] | None = None) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 8)).astype(np.float32)
    c = x[:5].copy()
    for _ in range(steps):
        far = (c * c).sum(1) - 2 * linear(x, c.T, 0)
        near = far.argmin(1)
        c = np.stack([x[near == j].mean(0) for j in range(5)])
        if history is not None:
            history.append(c)


@pytest.mark.parametrize("steps", [1, 2, 3, 20])
def test_iterates_are_one_row(steps: int) -> None:
    assert rows(lambda: k_means(steps)) == [None]
    assert rows(lambda: k_means(steps, [])) == [None]


def test_a_repeated_computation_is_one_row() -> None:
    assert rows(lambda: [k_means(6) for _ in range(3)]) == [None]


def test_weights_in_training_are_one_row() -> None:
    def train() -> None:
        rng = np.random.default_rng(0)
        weights = [*matrices(3)]
        for _ in range(8):
            x = rng.standard_normal((BATCH, WIDE)).astype(np.float32)
            for w in weights:
                x = linear(x, w)
                w -= np.float32(0.01)

    assert rows(train) == [None]


@pytest.mark.parametrize("kind", ["slices", "stack", "list"])
@pytest.mark.parametrize("rate", [0, 0.01])
def test_batches_are_one_row(kind: str, rate: float) -> None:
    def train() -> None:
        x = np.random.default_rng(0).standard_normal((60, WIDE)).astype(np.float32)
        (w,) = matrices(1)
        batches: Any = x.reshape(-1, BATCH, WIDE)
        if kind == "list":
            batches = [batch.copy() for batch in batches]
        elif kind == "slices":
            x, batches = batches.reshape(-1, WIDE), None
        for _ in range(3):
            for i in range(6):
                one = batches[i] if batches is not None else x[i * BATCH :][:BATCH]
                linear(one, w)
                w -= np.float32(rate)

    assert rows(train) == [None]


def test_more_operands_than_are_told_apart() -> None:
    many = matrices(1100)
    assert rows(lambda: forward(many)) == [None]


# -- without names -------------------------------------------------------------------


class Hidden:
    """Weights without a name."""

    def __init__(self, weights: list[Array]) -> None:
        self.next = iter(weights * 4).__next__


def test_buffers_without_names() -> None:
    hidden = Hidden([w.copy() for w in matrices(4)])

    def run() -> None:
        for seed in range(4):
            forward((hidden.next() for _ in range(4)), seed)

    found = rows(run)
    assert [one.of for one in found] == [4] * 4
    assert str(found[1]) == f"[2 of 4: {WIDE} x {WIDE}]"


def operand(number: int, calls: int, **others: Any) -> dict[str, Any]:
    usual = {"name": "", "address": 1000 * number, "rows": 4, "columns": 4}
    flags = {"has_moved": False, "is_named_buffer": False}
    return {"calls": calls, **usual, **flags, **others}


def test_the_side_is_chosen() -> None:
    named = [operand(i, 1, name=f"w{i}") for i in range(3)]
    again = [operand(i, 2) for i in range(3)]
    once = [operand(i, 1) for i in range(3)]
    trained = [operand(i, 1, address=5, is_named_buffer=not i) for i in range(3)]
    for sides, expected in (
        ([named, named[:2]], named[:2]),
        ([once, named], named),
        ([None, named], named),
        ([named[:1], once], None),
        ([named, named[:1]], None),
        ([named, trained], None),
        ([trained, named], None),
        ([once, once], None),
        ([again, once], again),
        ([again, again], None),
        ([again, named], named),
        ([None, again], again),
        ([None, [operand(i, 2, has_moved=i == 1) for i in range(3)]], None),
        ([None, [operand(i, 2, address=64 * i) for i in range(3)]], None),
        ([None, [operand(i, 2) for i in range(300)]], None),
        ([None, None], None),
    ):
        assert constant_operands(sides, "float32") == expected


# -- other callers -------------------------------------------------------------------


@needs_gil
def test_threads() -> None:
    weights = [*matrices(12)]
    begin = threading.Barrier(6)

    def work(seed: int) -> None:
        begin.wait()
        for _ in range(20):
            forward(weights, seed)

    with td.report(precision="bf16") as r, ThreadPoolExecutor(6) as pool:
        [*pool.map(work, range(6))]
    found = [one.call_site for one in r.call_sites]
    assert [site.calls for site in found] == [120] * 12
    names = {site.operand.name for site in found}  # type: ignore[union-attr]
    assert names == {f"weights[{i}]" for i in range(12)}


@needs_gil
def test_nothing_of_the_program_runs() -> None:
    class Loud(dict[str, Any]):
        def __getattribute__(self, name: str) -> Any:
            raise AssertionError(name)

        def __iter__(self) -> Iterator[str]:
            raise AssertionError

        def __len__(self) -> int:
            raise AssertionError

    class Property:
        @property
        def weight(self) -> Array:
            raise AssertionError

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    class Sequence_(list[Any]):
        def __getitem__(self, i: Any) -> Any:
            raise AssertionError

        def __len__(self) -> int:
            raise AssertionError

    loud = [Loud(weight=matrices(1)[0]), Property(), Sequence_([1])]
    parts = matrices(2, 5)
    found = rows(lambda: (forward(parts), loud)[0])
    assert [one.name for one in found] == ["parts[0]", "parts[1]"]


def test_references_are_given_back() -> None:
    weights = [*matrices(3)]
    before = [sys.getrefcount(w) for w in weights]
    rows(lambda: forward(weights))
    assert [sys.getrefcount(w) for w in weights] == before


# -- the command ---------------------------------------------------------------------

PROGRAM = """
import numpy as np
rng = np.random.default_rng(0)
names = [f"layers.{i}.weight" for i in range(4)]
weights = {name: rng.standard_normal((8, 8)).astype("f") for name in names}
def linear(x, w):
    return x @ w
x = np.ones((4, 8), "f")
for w in weights.values():
    x = linear(x, w)
np.save("out.npy", x)
"""


@needs_gil
def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(PROGRAM)
    words = ["-m", "tf32dtype", "report", "--precision", "bf16,bf16x3"]
    done = forks.python(*words, "net.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "net.py:7 linear [3 of 4: layers.2.weight, 8 x 8]" in done.stdout
    assert "with these 4 call sites in" in done.stdout
    by_line = forks.python(*words, "--by", "line", "net.py", cwd=tmp_path)
    assert "[" not in by_line.stdout.split("Target")[0]
    assert "with this call site in" in by_line.stdout
