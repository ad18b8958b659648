"""Measure the host's time from a call on GPU arrays to its last launch, without a GPU.

    python benchmarks/cuda/gpu_host.py [--only WORD] [--json FILE]

All Python code of this package and CuPy's arrays run. Calls that would reach the driver
are replaced: launches, allocations (their addresses are made up), queries of the
device, and cuBLAS. The time in which CuPy packs the arguments of launches is measured
separately and added. A call's time is the median of many. The table also has its ratio
to the time of a fixed piece of Python, which is about the same on any processor. From
Python 3.12 on it has the bytecode instructions and calls, which are the same in every
run, too: tests/cuda/test_host_time.py compares them with
benchmarks/results/gpu_host.json.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import cupy
import numpy as np

import tf32dtype as td

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine, pin

RESULTS = Path(__file__).resolve().parents[1] / "results" / "gpu_host.json"
#: Limits in microseconds: of a ufunc, of a larger call, and of a bf16x9 or block
#: product.
UFUNC, LARGER, NINE = 25, 40, 90


class Case(NamedTuple):
    """A call, and its limit `most` in microseconds."""

    name: str
    most: int
    call: Callable[[], Any]


# -- in the driver's place -------------------------------------------------------------


class Launches:
    """A mock of a kernel's function, which keeps the arguments of launches."""

    ptr = 0

    def __init__(self) -> None:
        self.arguments: list[tuple[Any, ...]] = []
        self.keeps = False

    def __call__(self, grid: Any, block: Any, arguments: Any, shared: int = 0) -> None:
        if self.keeps:
            self.arguments.append(tuple(arguments))


class Module:
    """A mock of a CuPy module of kernels."""

    def __init__(self, launches: Launches) -> None:
        self.launches = launches

    def load(self, code: bytes) -> None:
        pass

    def get_function(self, name: str) -> Launches:
        return self.launches


def _place(number: int) -> Any:
    """Return a pointer to 4 GB at a made-up address, which no code reads or writes."""
    memory = cupy.cuda.UnownedMemory(number << 32, 1 << 32, None, 0)
    return cupy.cuda.MemoryPointer(memory, 0)


@contextmanager
def no_driver() -> Iterator[Launches]:
    """Replace all calls that would reach the driver; yield the mock of launches."""
    with mock.patch.object(cupy.cuda.runtime, "getDeviceCount", return_value=1):
        import tf32dtype.cuda  # noqa: F401
    from tf32dtype.cuda._functions import lookup_tables
    from tf32dtype.cuda._matmul import crossover, cublaslt
    from tf32dtype.cuda._runtime import backend, cublas, device, tensor_maps

    launches = Launches()
    # The first 64 addresses are for arrays that last. No later array may overlap them.
    lasting, passing = ([_place(i) for i in range(n, n + 64)] for n in (1, 65))
    places = itertools.chain(lasting, itertools.cycle(passing))
    facts = {"major": 9, "minor": 0, "multiProcessorCount": 132, "name": b"H100"}

    def put(self: Any, x: Any, *, lasting: bool = False) -> Any:
        return cupy.ndarray(x.shape, x.dtype)

    def find(*arguments: Any) -> int:
        ctypes.c_int.from_address(arguments[-1]).value = 1
        return 0

    replaced = [
        (cupy.cuda.runtime, "getDevice", lambda: 0),
        (cupy.cuda.runtime, "getDeviceProperties", lambda device: facts),
        (cupy.cuda.runtime, "memGetInfo", lambda: (0, 0)),
        (cupy.cuda.driver, "funcSetAttribute", lambda *_: None),
        (cupy.cuda.function, "Module", partial(Module, launches)),
        (device, "cubin", lambda *_: b""),
        (device.Device, "put", put),
        (cublas, "_library", lambda: mock_blas),
        (cublas, "_handle", lambda: 0),
        (cublaslt, "_library", lambda: mock_lt),
        (cublaslt, "_device", lambda: 0),
        (cublaslt, "_stream", lambda: 0),
        (cublaslt, "_plan", lru_cache(cublaslt.KEPT)(cublaslt._plan.__wrapped__)),
        (tensor_maps, "_encode", lambda: lambda *_: 0),
        (crossover, "read", lambda device: None),
        (lookup_tables, "_tables", {}),
    ]
    calls = {name: staticmethod(lambda *_: 0) for name in cublaslt._FUNCTIONS}
    mock_lt = type("Lt", (), calls | {HEURISTIC: staticmethod(find)})
    mock_blas = type("Blas", (), {name: staticmethod(lambda *_: 0) for name in BLAS})
    allocator = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(lambda size: next(places))
    before = backend.current()
    backend.use(device.Device())
    with ExitStack() as stack:
        for where, name, what in replaced:
            stack.enter_context(mock.patch.object(where, name, what))
        try:
            yield launches
        finally:
            backend.use(before)
            cupy.cuda.set_allocator(allocator)


BLAS = """getPointerMode getMathMode setPointerMode setMathMode gemmEx
    gemmStridedBatchedEx""".split()
#: The only function of cublasLt whose result is read.
HEURISTIC = "cublasLtMatmulAlgoGetHeuristic"


# -- what is called --------------------------------------------------------------------


def _empty(shape: tuple[int, ...], name: str) -> Any:
    import tf32dtype.cuda as tfc

    return tfc.empty(shape, np.dtype(getattr(td, name, name)))


def cases() -> list[Case]:
    """Return all calls. Arrays are 2-D, as most are."""
    import tf32dtype.cuda as tfc
    from tf32dtype.cuda import blocks
    from tf32dtype.cuda._arrays import casts

    x, y, out = (_empty((512, 768), "bfloat16") for _ in range(3))
    e, f = (_empty((512, 768), "float8_e4m3fn") for _ in range(2))
    t = _empty((768, 512), "bfloat16")
    row = _empty((768,), "bfloat16")
    single = cupy.ndarray((512, 768), np.float32)
    one, two = (cupy.ndarray((512, 512), np.float32) for _ in range(2))
    stack = _empty((4, 512, 768), "bfloat16")
    tf32 = _empty((512, 768), "tf32")
    zeros = np.zeros((512, 768), np.float32)
    p, q = (blocks.asarray(td.blocks.quantize(zeros, "tcfp16")) for _ in range(2))
    q = q.T
    stacked = np.broadcast_to(zeros[:64], (4, 64, 768))
    some = blocks.asarray(td.blocks.quantize(stacked, "tcfp16"))

    def native(product: Callable[[], Any]) -> Any:
        with tfc.matmul_mode("native"):
            return product()

    def cast(to: Any) -> Callable[[], Any]:
        return partial(casts.cast, single, np.dtype(to))

    return [
        Case("np.add(x, y)", UFUNC, lambda: np.add(x, y)),
        Case("x + y", UFUNC, lambda: x + y),
        Case("x * 2", UFUNC, lambda: x * 2),
        Case("x + row", UFUNC, lambda: x + row),
        Case("x + t.T", UFUNC, lambda: x + t.T),
        Case("np.add(x, y, out=out)", UFUNC, lambda: np.add(x, y, out=out)),
        Case("x < y", UFUNC, lambda: x < y),
        Case("np.exp(x)", UFUNC, lambda: np.exp(x)),
        Case("np.power(x, y)", UFUNC, lambda: np.power(x, y)),
        Case("e * f", UFUNC, lambda: e * f),
        Case("np.maximum(x, 0)", UFUNC, lambda: np.maximum(x, 0)),
        Case("x + e", LARGER, lambda: x + e),
        Case("x.astype(float32)", LARGER, lambda: x.astype(np.float32)),
        Case("single -> bfloat16", LARGER, cast(td.bfloat16)),
        Case("x[...] = y", LARGER, lambda: casts.cast_into(single, x)),
        Case(
            "quantize(toward_zero)",
            LARGER,
            lambda: tfc.quantize(single, "bfloat16", rounding="toward_zero"),
        ),
        Case("x.sum()", LARGER, lambda: x.sum()),
        Case("x.sum(0)", LARGER, lambda: x.sum(0)),
        Case("np.max(x, 1)", LARGER, lambda: np.max(x, 1)),
        Case("x.mean(-1)", LARGER, lambda: x.mean(-1)),
        Case("x @ t", LARGER, lambda: x @ t),
        Case("stack @ t", LARGER, lambda: stack @ t),
        Case("x @ row", LARGER, lambda: x @ row),
        Case("model", LARGER, lambda: tfc.matmul(x, t, mode="model", device="H100")),
        Case("cuBLAS", LARGER, lambda: tfc.matmul(x, t, mode="native")),
        Case(
            "mma.sync",
            LARGER,
            lambda: tfc.matmul(x, t, mode="native", instruction="mma.sync"),
        ),
        Case("cublasLt", LARGER, lambda: tfc.matmul(e, f.T, mode="native")),
        Case("blocks", NINE, lambda: blocks.matmul(p, q)),
        Case("blocks, stacks", NINE, lambda: blocks.matmul(some, q)),
        Case("blocks, mma.sync", NINE,
             lambda: native(lambda: blocks.matmul(p, q, terms=3))),
        Case("tf32 @ tf32.T", LARGER, lambda: tf32 @ tf32.T),
        Case(
            "bf16x9",
            NINE,
            lambda: tfc.matmul(one, two, precision="bf16x9", strategy="eager"),
        ),
        Case("bf16 of float32", NINE,
             lambda: tfc.matmul(one, two, precision="bf16")),
    ]  # fmt: skip


# -- measurements ----------------------------------------------------------------------


def python_work() -> int:
    """Run a fixed piece of Python: calls, tuples, attributes, a dictionary."""
    known: dict[Any, int] = {}
    for i in range(40):
        key = (i % 7, "name", (i, 2))
        known[key] = known.get(key, 0) + len(str(i).zfill(3))
    return len(known)


def medians(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each call. The calls take turns of twenty."""
    samples: dict[str, list[float]] = {name: [] for name in calls}
    clock = time.perf_counter
    for _ in range(repeats):
        for name, call in calls.items():
            for _ in range(20):
                start = clock()
                call()
                samples[name].append(clock() - start)
    return {name: statistics.median(values) for name, values in samples.items()}


class Counts(NamedTuple):
    """The bytecode instructions and calls of a call, which make up most of its time."""

    instructions: int
    calls: int


def count(call: Callable[[], Any]) -> Counts:
    """Count instructions and calls after three warming calls. It needs Python 3.12."""
    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009
    for _ in range(3):
        call()
    events = monitoring.events
    seen = {events.INSTRUCTION: 0, events.CALL: 0}
    tool = next(i for i in range(6) if monitoring.get_tool(i) is None)
    monitoring.use_tool_id(tool, "gpu_host")

    def counter(event: int) -> Callable[..., None]:
        def one_more(*_: Any) -> None:
            seen[event] += 1

        return one_more

    collecting = gc.isenabled()
    gc.disable()
    try:
        for event in seen:
            monitoring.register_callback(tool, event, counter(event))
        monitoring.set_events(tool, events.INSTRUCTION | events.CALL)
        call()
        monitoring.set_events(tool, 0)
    finally:
        monitoring.free_tool_id(tool)
        if collecting:
            gc.enable()
    return Counts(*seen.values())


class _Stream:
    ptr = 0


def packing(arguments: tuple[Any, ...]) -> Callable[[], None]:
    """Return a call of CuPy's own launch, which packs the arguments and then fails.

    Without a driver, the launch itself raises an error, which is suppressed.
    """
    function = cupy.cuda.function.Function
    launch = function.__new__(function)

    def run() -> None:
        with suppress(cupy.cuda.runtime.CUDARuntimeError):
            launch((1,), (1,), arguments, 0, _Stream)

    return run


def measure(chosen: list[Case], launches: Launches, repeats: int) -> dict[str, Any]:
    """Measure the chosen cases and return their figures for JSON."""
    given: dict[str, list[tuple[Any, ...]]] = {}
    for case in chosen:
        case.call()
        launches.keeps, launches.arguments = True, []
        case.call()
        launches.keeps = False
        given[case.name] = launches.arguments
    calls = {case.name: case.call for case in chosen}
    pack = {"": packing(())} | {
        f"{name} {i}": packing(arguments)
        for name, each in given.items()
        for i, arguments in enumerate(each)
    }
    taken = medians(calls | {"Python": python_work}, repeats)
    packed = medians(pack, repeats)
    unit = taken.pop("Python")
    found = {}
    for case in chosen:
        launched = given[case.name]
        seconds = taken[case.name] + sum(
            max(0.0, packed[f"{case.name} {i}"] - packed[""])
            for i in range(len(launched))
        )
        found[case.name] = {
            "microseconds": round(seconds * 1e6, 1),
            "most": case.most,
            "of python_work": round(seconds / unit, 2),
            "launches": len(launched),
        }
        if hasattr(sys, "monitoring"):
            found[case.name] |= count(case.call)._asdict()
    return {"python_work": round(unit * 1e6, 2), "calls": found}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default="", help="measure calls whose names contain this"
    )
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--repeats", type=int, default=101)
    options = parser.parse_args(arguments)
    pin()
    with no_driver() as launches:
        chosen = [x for x in cases() if options.only in x.name]
        found = machine() | measure(chosen, launches, options.repeats)
    print(f"a fixed piece of Python: {found['python_work']} us")
    print(f"{'call':24} {'us':>6} {'most':>5} {'ratio':>6} {'instr.':>7} {'calls':>6}")
    for name, x in found["calls"].items():
        print(
            f"{name:24} {x['microseconds']:6} {x['most']:5} {x['of python_work']:6}"
            f" {x.get('instructions', '-'):>7} {x.get('calls', '-'):>6}"
            f"{'  above' if x['microseconds'] > x['most'] else ''}"
        )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
