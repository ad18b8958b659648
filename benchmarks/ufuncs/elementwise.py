"""Time casts, ufuncs, reductions and sorts relative to memcpy, float32 and peers.

    python benchmarks/ufuncs/elementwise.py [--quick] [--isas] [--runs 3] [--json FILE]

Each row has a minimum and a target, and quotes its slowest operation and data of all
runs. Casts are compared with a copy that reads half of the bytes that they read and
write, and writes as many. Tables have our time over the copy's; the JSON has the
inverse, under "of memcpy". "x" is the operation's time over NumPy's float32 time of the
same length; unary functions are compared with float32 `exp`. Outputs are allocated
before. Every run is its own process on one core. ml_dtypes and torch (one thread) are
measured in the same turns, if they are installed and have the operation.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import (
    MEGABYTE,
    Functions,
    data,
    memcpy,
    peer_type,
    pin,
    torch_tensor,
    with_torch,
)
from measuring import (
    Case,
    Row,
    command_line,
    measure_rows,
    print_child,
    run_settings,
)

UNARY = ("exp", "log", "sin", "tanh")
BASELINES = ("baseline", "x86-64-v3")


# -- cases -------------------------------------------------------------------------


def casts(pairs: list[tuple[str, str]], size: int) -> Iterator[Case]:
    """Yield casts whose wider side has `size` bytes."""
    import tf32dtype as td

    def dtype(name: str, theirs: bool = False) -> Any:
        if name not in td.formats:
            return np.dtype(name)
        found = peer_type(name) if theirs else td.formats[name].type
        return np.dtype(found) if found else None

    def copy(source: np.ndarray, target: np.ndarray) -> Callable[[], None]:
        return partial(np.copyto, target, source, casting="unsafe")

    for source, target in pairs:
        wide = max(dtype(source).itemsize, dtype(target).itemsize)
        count = size // wide
        for kind in ("normal", "binades"):
            x = data(kind, count, dtype(source))
            y = np.empty(count, dtype(target))
            functions: Functions = {
                "ours": copy(x, y),
                "reference": memcpy((x.nbytes + y.nbytes) // 2),
            }
            peers = dtype(source, True), dtype(target, True)
            if all(peer is not None for peer in peers):
                functions["ml_dtypes"] = copy(x.view(peers[0]), y.view(peers[1]))
            a, b = torch_tensor(x, source), torch_tensor(y, target)
            if a is not None and b is not None:
                with_torch(functions, partial(b.copy_, a))
            yield Case(f"{source} -> {target}", kind, functions)


def unary(names: list[str], size: int) -> Iterator[Case]:
    """Yield exp, log, sin and tanh of the formats against exp of float32."""
    import tf32dtype as td

    count = size // 4
    out32 = np.empty(count, np.float32)
    for name in names:
        dtype = td.formats[name].dtype
        out, peer = np.empty(count, dtype), peer_type(name)
        for kind in ("normal", "binades", "codes"):
            x = data(kind, count, dtype)
            x32 = data("normal" if kind == "codes" else kind, count, np.dtype("f4"))
            for op in UNARY:
                ufunc = getattr(np, op)
                functions: Functions = {
                    "ours": partial(ufunc, x, out=out),
                    "reference": partial(np.exp, x32, out=out32),
                }
                if peer is not None:
                    theirs = partial(ufunc, x.view(peer), out=out.view(peer))
                    functions["ml_dtypes"] = theirs
                a, b = torch_tensor(x, name), torch_tensor(out, name)
                if a is not None:
                    import torch

                    with_torch(functions, partial(getattr(torch, op), a, out=b))
                yield Case(f"{name} {op}", kind, functions)


def binary(size: int) -> Iterator[Case]:
    """Yield add, multiply, less and maximum of bfloat16 against float32."""
    import tf32dtype as td

    count = size // 4
    peer = peer_type("bfloat16")
    single = np.dtype(np.float32)
    for kind in ("normal", "binades"):
        x, y = (data(kind, count, np.dtype(td.bfloat16))[::step] for step in (1, -1))
        x32, y32 = (data(kind, count, single)[::step] for step in (1, -1))
        y, y32 = y.copy(), y32.copy()
        for op in ("add", "multiply", "less", "maximum"):
            ufunc = getattr(np, op)
            out = np.empty(count, bool if op == "less" else td.bfloat16)
            out32 = np.empty(count, bool if op == "less" else single)
            functions: Functions = {
                "ours": partial(ufunc, x, y, out=out),
                "reference": partial(ufunc, x32, y32, out=out32),
            }
            if peer is not None:
                target = out if op == "less" else out.view(peer)
                pair = x.view(peer), y.view(peer)
                functions["ml_dtypes"] = partial(ufunc, *pair, out=target)
            a, b = torch_tensor(x, "bfloat16"), torch_tensor(y, "bfloat16")
            if a is not None:
                import torch

                c = torch.from_numpy(out) if op == "less" else torch.empty_like(a)
                name = {"multiply": "mul", "less": "lt"}.get(op, op)
                with_torch(functions, partial(getattr(torch, name), a, b, out=c))
            yield Case(f"bfloat16 {op}", kind, functions)


def reductions(size: int) -> Iterator[Case]:
    import tf32dtype as td

    count, peer = size // 4, peer_type("bfloat16")
    for kind in ("normal", "binades"):
        x = data(kind, count, np.dtype(td.bfloat16))
        x32 = data(kind, count, np.dtype(np.float32))
        for op in ("sum", "max"):
            function = getattr(np, op)
            functions: Functions = {
                "ours": partial(function, x),
                "reference": partial(function, x32),
            }
            if peer is not None:
                functions["ml_dtypes"] = partial(function, x.view(peer))
            a = torch_tensor(x, "bfloat16")
            if a is not None:
                with_torch(functions, getattr(a, op))
            yield Case(f"bfloat16 {op}", kind, functions)


def sorts(names: list[str], size: int) -> Iterator[Case]:
    """Yield sorts; each library sorts a copy that it makes."""
    import tf32dtype as td

    count = size // 4
    for name in names:
        peer = peer_type(name)
        for kind in ("normal", "binades", "codes"):
            x = data(kind, count, td.formats[name].dtype)
            x32 = data("normal" if kind == "codes" else kind, count, np.dtype("f4"))
            functions: Functions = {
                "ours": partial(np.sort, x),
                "reference": partial(np.sort, x32),
            }
            if peer is not None and kind != "codes":  # ml_dtypes leaves NaN unsorted
                functions["ml_dtypes"] = partial(np.sort, x.view(peer))
            a = torch_tensor(x, name)
            if a is not None:
                with_torch(functions, a.sort)
            yield Case(f"{name} sort", kind, functions)


def calls() -> Iterator[Case]:
    """Yield calls on four elements, which cost little more than the call itself."""
    import tf32dtype as td

    x32 = np.ones(4, np.float32)
    out32 = np.empty_like(x32)
    for name in ("bfloat16", "tf32", "float8_e4m3fn"):
        x = np.ones(4, td.formats[name].dtype)
        out, peer = np.empty_like(x), peer_type(name)
        for op in ("add", "multiply", "less"):
            ufunc = getattr(np, op)
            target = np.empty(4, bool) if op == "less" else out
            target32 = np.empty(4, bool) if op == "less" else out32
            functions: Functions = {
                "ours": partial(ufunc, x, x, out=target),
                "reference": partial(ufunc, x32, x32, out=target32),
            }
            if peer is not None:
                t = target if op == "less" else target.view(peer)
                theirs = x.view(peer)
                functions["ml_dtypes"] = partial(ufunc, theirs, theirs, out=t)
            yield Case(f"{name} {op}", "ones", functions)


def import_milliseconds(repeats: int) -> dict[str, float]:
    """Return the median milliseconds of an import in addition to `import numpy`.

    Every import is a process of its own; the packages take turns.
    """
    statements = {"numpy": "numpy", "ours": "numpy, tf32dtype"}
    if peer_type("bfloat16") is not None:
        statements["ml_dtypes"] = "numpy, ml_dtypes"
    samples: dict[str, list[float]] = {name: [] for name in statements}
    code = "from time import perf_counter as t; a = t(); import {}; print(t() - a)"
    for _ in range(repeats):
        for name, modules in statements.items():
            command = [sys.executable, "-c", code.format(modules)]
            out = subprocess.run(command, capture_output=True, text=True, check=True)
            samples[name].append(1000 * float(out.stdout))
    middle = {name: statistics.median(times) for name, times in samples.items()}
    return {name: middle[name] - middle["numpy"] for name in middle if name != "numpy"}


# -- rows --------------------------------------------------------------------------

PACKED = ("bfloat16", "tf32", "float8_e4m3fn")
BOTH_WAYS = [("float32", n) for n in PACKED] + [(n, "float32") for n in PACKED]


def rows(large: int) -> list[Row]:
    """Yield the rows; `large` is the size of the wider array in bytes."""
    name = f"{large // MEGABYTE} MB"
    small = MEGABYTE
    small_casts = [p for p in BOTH_WAYS if "float8_e4m3fn" not in p]
    to8, from8 = ("float32", "float8_e4m3fn"), ("float8_e4m3fn", "float32")
    narrow = ["bfloat16", "float8_e4m3fn"]
    memory = "of memcpy"
    return [
        Row(f"float32 <-> bf16, tf32, e4m3fn, {name}", memory, 0.9, 0.97,
            lambda: casts(BOTH_WAYS, large)),
        Row("float32 <-> bf16, tf32, 1 MB", memory, 0.7, 0.9,
            lambda: casts(small_casts, small)),
        Row("float32 -> e4m3fn, 1 MB", memory, 0.3, 0.36, lambda: casts([to8], small)),
        Row("e4m3fn -> float32, 1 MB", memory, 0.5, 0.68,
            lambda: casts([from8], small)),
        Row(f"float64 -> bf16, {name}", memory, 0.6, 0.87,
            lambda: casts([("float64", "bfloat16")], large)),
        Row(f"bf16 add, multiply, less, maximum, {name}", "x", 0.8, 0.55,
            lambda: binary(large)),
        Row(f"bf16, e4m3fn exp, log, sin, tanh, {name}", "x", 0.8, 0.55,
            lambda: unary(narrow, large)),
        Row("bf16, e4m3fn exp, log, sin, tanh, 1 MB", "x", 0.8, 0.55,
            lambda: unary(narrow, small)),
        Row(f"tf32 exp, log, sin, tanh, {name}", "x", 4, 2,
            lambda: unary(["tf32"], large)),
        Row("tf32 exp, log, sin, tanh, 1 MB", "x", 4, 2,
            lambda: unary(["tf32"], small)),
        Row(f"bf16 sum, max, {name}", "x", 1.2, 0.6, lambda: reductions(large)),
        Row("bf16 sum, max, 1 MB", "x", 1.2, 0.6, lambda: reductions(small)),
        Row("bf16 sort, 4 MB", "x", 0.6, 0.3,
            lambda: sorts(["bfloat16"], 4 * MEGABYTE)),
        Row("e4m3fn sort, 4 MB", "x", 0.3, 0.15,
            lambda: sorts(["float8_e4m3fn"], 4 * MEGABYTE)),
        Row("ufunc call, 4 elements", "x", 1.5, 1.1, calls),
    ]  # fmt: skip


IMPORT = Row("import, without the time of import numpy", "ms", 20, 5, lambda: iter(()))


def measure(large: int, repeats: int, budget: float) -> list[dict[str, Any]]:
    """Run every row once in this process."""
    results = measure_rows(rows(large), repeats, budget)
    for who, extra in import_milliseconds(max(repeats, 11)).items():
        IMPORT.take("import", "", who, extra)
    return [*results, IMPORT.record()]


# -- all runs ----------------------------------------------------------------------


def main() -> int:
    parser = command_line(__doc__, "4 MB arrays, few repeats")
    parser.add_argument("--isas", action="store_true", help=f"measure {BASELINES}, too")
    options = parser.parse_args()
    if options.child:
        pin()
        large, repeats, budget = 64 * MEGABYTE, 25, 1.5
        if options.quick:
            large, repeats, budget = 4 * MEGABYTE, 7, 0.2
        print_child(measure(large, repeats, budget))
        return 0
    isas = ("", *(BASELINES if options.isas else ()))
    variables = [{"TF32DTYPE_ISA": isa, "OMP_NUM_THREADS": "1"} for isa in isas]
    return run_settings(__file__, options, [([], some) for some in variables])


if __name__ == "__main__":
    sys.exit(main())
