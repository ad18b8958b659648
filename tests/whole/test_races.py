"""Threads that do for the first time what others do too.

What a call writes may not be what the loops of other threads read. The bits are seldom
wrong where it is; `tools/sanitize thread` runs these tests, and all others whose name
has "threads", so that the writing itself is seen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run_code

TYPES = [f.type for f in td.formats.values()]
THREADS = 4


def together(works: list[Callable[[], Any]]) -> list[Any]:
    """Results of functions that begin at once, on a thread each."""
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


# NumPy lets go of the interpreter's lock for loops of some 500 elements or more.
@np.errstate(all="ignore")
def loops(scalar_type: Any, other_type: Any) -> bytes:
    """The bits of all kinds of loops, each long enough to run without the lock."""
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
    """Tables of functions and loops of products, in an interpreter that has none."""
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
    """Workspaces are taken, given back and freed at once."""
    a = np.ones((64, 64), td.bfloat16)

    def work() -> float:
        for _ in range(20):
            result = a @ a
            td.free_buffers()
        return float(result[0, 0])

    assert together([work] * THREADS) == [64.0] * THREADS
