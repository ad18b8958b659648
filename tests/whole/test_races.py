"""Threads that call for the first time what other threads also call.

A call must not write to data that loops of other threads read. The bits are seldom
wrong after such a write. `tools/sanitize thread` runs these tests, and all others with
"threads" in the name, and finds the write itself.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code
from tf32dtype import _core

TYPES = [f.type for f in td.formats.values()]
THREADS = 4


def together(works: list[Callable[[], Any]]) -> list[Any]:
    """Run functions in a thread each, begin at once, and return the results."""
    results: list[Any] = [None] * len(works)
    start = threading.Barrier(len(works))

    def run(number: int) -> None:
        start.wait()
        results[number] = works[number]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.fixture(autouse=True)
def quick_switches() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


# NumPy releases the interpreter's lock for loops of about 500 elements or more.
@np.errstate(all="ignore")
def loops(scalar_type: Any, other_type: Any) -> bytes:
    """Return the bits of all kinds of loops, long enough to run without the lock."""
    x = np.linspace(-3, 3, 2400).astype(scalar_type)
    y = x[::-1].copy()
    a, b = x[:900].reshape(30, 30), y[:900].astype(other_type).reshape(30, 30)
    results = [
        x + y,
        x - y,
        x.sum(),
        x.reshape(40, 60).sum(0),
        np.cumsum(x),
        np.maximum(x, y),
        x.max(),
        np.arctan2(x, y),
        np.exp(x),
        np.sqrt(x),
        x < y,
        np.isnan(x),
        np.ldexp(x, np.int32(1)),
        np.ldexp(x, np.int64(1)),
        np.clip(x, y, x),
        *np.modf(x),
        *np.divmod(x, y),
        np.sort(x),
        np.argsort(x, kind="stable"),
        x.astype(other_type),
        x.astype(np.float64).astype(scalar_type),
        x.astype(np.complex64),
        x.astype(np.int8),
        x[::-2].copy(),
        a @ a,
        a @ b,
        np.matmul(a, b, dtype=np.float32),
        np.vecdot(a, b),
        np.matvec(a, b[0]),
        np.vecmat(a[0], b),
        np.multiply(np.arange(2400, dtype="m8[s]"), y),
        td.quantize(np.linspace(-9, 9, 2400), scalar_type),
    ]
    return b"".join(np.asarray(result).tobytes() for result in results)


def test_races_of_loops() -> None:
    pairs = [(TYPES[i % 13], TYPES[(3 * i + 1) % 13]) for i in range(6)]
    works = [lambda pair=pair: loops(*pair) for pair in pairs for _ in range(2)]
    assert together(works) == [loops(*pair) for pair in pairs for _ in range(2)]


def test_races_of_what_is_made_when_first_asked_for() -> None:
    """Make tables and loops of products for the first time, in a new interpreter."""
    run_code(
        "import sys, threading\n"
        "import numpy as np, tf32dtype as td\n"
        "sys.setswitchinterval(1e-5)\n"
        "x = np.linspace(-3, 3, 70000).astype(td.bfloat16)\n"
        "a = x[:900].reshape(30, 30)\n"
        "def work():\n"
        "    start.wait()\n"
        "    with np.errstate(all='ignore'):\n"
        "        for f in (np.exp, np.tanh, np.log1p):\n"
        "            for _ in range(3): f(x)\n"
        "        for f in td.formats.values():\n"
        "            np.matmul(a, a.astype(f.type)), np.vecdot(a.astype(f.type), a)\n"
        "            np.exp(x[:600].astype(f.type))\n"
        "start = threading.Barrier(4)\n"
        "threads = [threading.Thread(target=work) for _ in range(4)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
    )


def test_races_of_precisions() -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(40, 40)).astype(np.float32)
    names = ["tf32", "bf16x9", "fp8_e4m3", "bf16"]
    wanted = [td.matmul(a, a, precision=name).tobytes() for name in names]

    def work(name: str) -> bytes:
        for _ in range(10):
            with td.matmul_precision(name):
                result = a @ a
            a @ a
        return result.tobytes()

    assert together([lambda name=name: work(name) for name in names]) == wanted


def test_races_of_blocks_and_devices() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=(32, 64)).astype(np.float32)

    def work() -> bytes:
        blocks = td.blocks.quantize(a, "mxfp4")
        product = td.tensor_core.matmul(
            a.astype(np.float16), a.T.astype(np.float16), device="A100"
        )
        return blocks.dequantize().tobytes() + product.tobytes()

    assert together([work] * THREADS) == [work()] * THREADS


def test_races_for_memory() -> None:
    """Take, return and free workspaces in several threads at once."""
    a = np.ones((64, 64), td.bfloat16)

    def work() -> float:
        for _ in range(20):
            result = a @ a
            td.free_buffers()
        return float(result[0, 0])

    assert together([work] * THREADS) == [64.0] * THREADS


def test_races_of_everything(tmp_path: Path) -> None:
    """Run everything in all threads, each with another begin."""
    a = np.random.default_rng(3).normal(size=(24, 24)).astype(np.float32)
    path = tmp_path / "tensors.safetensors"
    td.safetensors.save(path, {"a": a.astype(td.bfloat16), "b": a})
    opened = td.safetensors.open(path)

    def scope() -> Any:
        with td.matmul_precision("bf16", blas=_core.blas_available()):
            return np.dot(a, a) + np.einsum("ij,jk", a, a, optimize=True)

    def process() -> Any:
        with td.matmul_precision("tf32"):  # overrides that of the process
            td.set_matmul_precision("bf16")
            found = a @ a
            td.set_matmul_precision(None)
        return found

    def arrays() -> Any:
        made = np.array(a.tolist(), td.float8_e4m3fn)
        return made[0, 0] + made[0, 1], made == 1.5, made.astype(td.tf32), made.mean()

    works: list[Callable[[], Any]] = [
        arrays,
        scope,
        process,
        lambda: td.blocks.quantize(a, "nvfp4").dequantize(),
        lambda: td.tensor_core.matmul(
            a.astype(np.float16), a.astype(np.float16), device="H100"
        ),
        lambda: (opened["a"], td.safetensors.load(path)["b"]),
        lambda: (np.dtype("tf32").type(1.5), np.finfo(td.bfloat16).max),
        lambda: td.quantize(a, td.float6_e2m3fn, rounding="toward_zero"),
        td.free_buffers,
    ]

    def bits(work: Callable[[], Any]) -> bytes:
        found = work()
        parts = found if isinstance(found, tuple) else (found,)
        return b"".join(
            np.asarray(part).tobytes() for part in parts if part is not None
        )

    def run(first: int) -> list[bytes]:
        order = [(first + i) % len(works) for i in range(len(works))]
        found = {i: bits(works[i]) for _ in range(3) for i in order}
        return [found[i] for i in range(len(works))]

    wanted = run(0)
    rounds = together([lambda first=first: run(first) for first in range(THREADS)])
    assert rounds == [wanted] * THREADS


def test_races_of_the_process_precision() -> None:
    a = np.random.default_rng(4).normal(size=(8, 8)).astype(np.float32)
    names = ["bf16", "tf32", "bf16x3", "f32"]
    possible = {td.matmul(a, a, precision=name).tobytes() for name in names}

    def switch() -> set[bytes]:
        for name in names * 50:
            td.set_matmul_precision(name)
        return set()

    def multiply() -> set[bytes]:
        return {(a @ a).tobytes() for _ in range(400)}

    td.set_matmul_precision("bf16")
    try:
        assert set().union(*together([switch, multiply, multiply])) <= possible
    finally:
        td.set_matmul_precision(None)


def test_races_of_counts() -> None:
    """Count every call."""

    def calls() -> int:
        return sum(n for _, name, n, _ in _core.named_counts() if name == "races")

    def work() -> None:
        for _ in range(500):
            function()
            _core.count_call("races")

    function = _core.counted(lambda: None, "races")
    before = calls()
    together([work] * THREADS)
    assert calls() == before + 2 * 500 * THREADS


def test_races_of_names() -> None:
    """Set names in several threads: those of the last call remain."""
    ml_dtypes = pytest.importorskip("ml_dtypes")

    def work(owner: Any) -> None:
        for _ in range(20):
            td.names(owner)

    before = td.names()
    try:
        together([lambda o=o: work(o) for o in ("tf32dtype", "ml_dtypes")] * 2)
        types = {"tf32dtype": td, "ml_dtypes": ml_dtypes}[td.names()]
        for name in ("bfloat16", "float8_e5m2", "float8_e4m3fn"):
            assert np.dtype(name).type is getattr(types, name)
    finally:
        td.names(before)


@pytest.mark.skipif(not _core.blas_available(), reason="loops stay NumPy's here")
def test_races_of_figures() -> None:
    """Read figures while threads add to them."""
    x = np.linspace(0, 1, 2000, dtype=np.float32)

    def work() -> int:
        for _ in range(20):
            x + x
        return sum(site["results"] for site in td.arithmetic.call_sites())

    with td.arithmetic("bf16", watch=True):
        together([work] * THREADS)
    assert work() == THREADS * 20 * x.size


@pytest.mark.parametrize("name", ["tf32dtype.blocks", "decimal"])
def test_races_with_an_import(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Use a module that another thread is importing, which is still empty."""
    x = np.ones(3, td.bfloat16)
    monkeypatch.setitem(sys.modules, name, ModuleType(name))
    td.save(tmp_path / "x.npy", x)
    assert (td.load(tmp_path / "x.npy") == x).all()
    assert np.isnan(td.bfloat16(None))
