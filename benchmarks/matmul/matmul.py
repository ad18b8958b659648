"""Time matrix products relative to NumPy's float32 product and to other libraries.

    python benchmarks/matmul/matmul.py [--quick] [--runs 3] [--json FILE]

Tables have our time over that of NumPy's float32 product of the same shape. The JSON
has the inverse, under "x as fast". NumPy's BLAS chooses its kernels for the processor,
and the report names them. Only our x86-64-v3 kernels are compared with OpenBLAS'
Haswell kernels, which use the same instruction set. One thread is pinned to a core; two
threads are not. Each setting runs in its own processes. Peaks are the most operations
that the core's multiply-adds can reach (peak.c). If torch or jax is installed, it is
timed on one thread, too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import peak
from common import (
    HASWELL,
    Functions,
    data,
    medians,
    peer_type,
    pin,
    torch_tensor,
    with_torch,
)
from measuring import (
    Case,
    Row,
    blocks,
    measure_rows,
    run_children,
    threads,
)

FASTER = "x as fast"


def dtype_of(name: str) -> np.dtype:
    import tf32dtype as td

    return np.dtype(td.formats[name].type)


def products(
    names: list[str],
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]],
    peers: bool = True,
) -> Iterator[Case]:
    """Yield a @ b into an existing output."""
    for name in names:
        for first, second in shapes:
            for kind in ("normal", "binades"):
                yield product(name, dtype_of(name), kind, first, second, peers)


def with_vector(name: str, n: int, order: str) -> Iterator[Case]:
    """Yield a matrix in C or Fortran order times a vector, and a vector times it."""
    dtype, single = dtype_of(name), np.dtype(np.float32)
    for kind in ("normal", "binades"):
        m, m32 = (
            np.asarray(data(x, n * n, y).reshape(n, n), order=order)
            for x, y in ((kind, dtype), ("normal", single))
        )
        v, v32 = data(kind, n, dtype), data("normal", n, single)
        out, out32 = np.empty_like(v), np.empty_like(v32)
        for shape, x, x32 in (
            (f"{n} x {n} x 1", (m, v), (m32, v32)),
            (f"1 x {n} x {n}", (v, m), (v32, m32)),
        ):
            functions: Functions = {
                "ours": partial(np.matmul, *x, out=out),
                "reference": partial(np.matmul, *x32, out=out32),
            }
            yield Case(f"{name} {shape} {order}", kind, functions)


def dots(names: list[str], sizes: list[int]) -> Iterator[Case]:
    """Yield dot products of two vectors."""
    for name in names:
        for n in sizes:
            x, y = data("normal", 2 * n, dtype_of(name)).reshape(2, n)
            x32, y32 = data("normal", 2 * n, np.dtype(np.float32)).reshape(2, n)
            functions: Functions = {
                "ours": partial(np.dot, x, y),
                "reference": partial(np.dot, x32, y32),
            }
            yield Case(f"{name} {n}", "normal", functions)


def product(
    name: str,
    dtype: np.dtype,
    kind: str,
    first: tuple[int, ...],
    second: tuple[int, ...],
    peers: bool,
) -> Case:
    single = np.dtype(np.float32)

    def operands(kind: str, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        x, y = (int(np.prod(shape)) for shape in (first, second))
        both = data(kind, x + y, dtype)
        return both[:x].reshape(first), both[x:].reshape(second)

    a, b = operands(kind, dtype)
    a32, b32 = operands("normal", single)
    out32 = np.matmul(a32, b32)
    out = np.empty(out32.shape, dtype)
    functions: Functions = {
        "ours": partial(np.matmul, a, b, out=out),
        "reference": partial(np.matmul, a32, b32, out=out32),
    }
    peer = peer_type(name)
    if peer is not None and a.size <= 1 << 18:
        functions["ml_dtypes"] = partial(np.matmul, a.view(peer), b.view(peer))
    if name == "bfloat16" and peers:
        functions |= peers_of(a, b)
    shape = " x ".join(str(n) for n in (*first, second[-1]))
    unit = "singles" if name == "tf32" else "pairs"
    return Case(f"{name} {shape}", kind, functions, 2.0 * a.size * second[-1], unit)


def peers_of(a: np.ndarray, b: np.ndarray) -> Functions:
    """Return bfloat16 products by torch and jax, if they are installed."""
    functions: Functions = {}
    x, y = torch_tensor(a, "bfloat16"), torch_tensor(b, "bfloat16")
    if x is not None:
        import torch

        out = torch.matmul(x, y)
        with_torch(functions, partial(torch.matmul, x, y, out=out))
    with contextlib.suppress(ImportError):
        import jax

        multiply = jax.jit(jax.numpy.matmul)
        operands = [jax.numpy.asarray(z.view(peer_type("bfloat16"))) for z in (a, b)]
        functions["jax"] = lambda: multiply(*operands).block_until_ready()
    return functions


def against(peer: str, sizes: list[int]) -> Iterator[Case]:
    """Yield bfloat16 products against torch or jax instead of NumPy, if installed."""
    for case in products(["bfloat16"], square(*sizes)):
        if peer in case.functions:
            functions = {
                "ours": case.functions["ours"],
                "reference": case.functions[peer],
            }
            yield Case(case.name, case.data, functions)


def with_nan(n: int) -> Iterator[Case]:
    """Yield fp8 products with NaN in 1 % of A's rows, against products without NaN."""
    rng = np.random.default_rng(8)
    for name in ("float8_e4m3fn", "float8_e5m2"):
        a, b = data("normal", 2 * n * n, dtype_of(name)).reshape(2, n, n)
        nan = a.copy()
        nan[rng.permutation(n)[: max(1, n // 100)], rng.integers(0, n)] = np.nan
        functions: Functions = {
            "ours": partial(np.matmul, nan, b, out=np.empty_like(a)),
            "reference": partial(np.matmul, a, b, out=np.empty_like(a)),
        }
        yield Case(f"{name} {n}", "NaN", functions)


def against_one_thread(
    names: list[str], precisions: list[str], n: int
) -> Iterator[Case]:
    cases = [*products(names, square(n), False)]
    cases += [case for some in precisions for case in emulated(some, n)]
    for case in cases:
        ours = case.functions["ours"]
        functions = {"ours": threads(2, ours), "reference": threads(1, ours)}
        yield Case(case.name, case.data, functions)


def emulated(precision: str, n: int) -> Iterator[Case]:
    """Yield products of float32 matrices that are split into components."""
    import tf32dtype as td

    for kind in ("normal", "binades"):
        a, b = data(kind, 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
        out, out32 = np.empty_like(a), np.empty_like(a)
        functions: Functions = {
            "ours": partial(td.matmul, a, b, precision=precision, out=out),
            "reference": partial(np.matmul, a, b, out=out32),
        }
        yield Case(f"{precision} {n} x {n} x {n}", kind, functions)


def square(*sizes: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [((n, n), (n, n)) for n in sizes]


def per_multiply_add(sizes: list[int], repeats: int, budget: float) -> Row:
    """Measure the time per multiply-add of each size, relative to the fastest size."""
    row = Row(f"bf16, tf32 @ {sizes[0]} to {sizes[-1]}, per multiply-add",
              "x the time of the fastest size", 1.3, 1.1, lambda: iter(()))  # fmt: skip
    for name in ("bfloat16", "tf32"):
        cases = products([name], square(*sizes), False)
        normal = [case for case in cases if case.data == "normal"]
        calls = {case.name: case.functions["ours"] for case in normal}
        times = medians(calls, repeats, budget)
        each = {case.name: times[case.name] / case.operations for case in normal}
        for case, seconds in each.items():
            row.take(case, "normal", "ours", seconds / min(each.values()))
    return row


NARROW = ["bfloat16", "float8_e4m3fn"]
ALL = ["tf32", *NARROW]
SHORT = {"tf32": "tf32", "bfloat16": "bf16", "float8_e4m3fn": "fp8"}
ORDERS = {"C": "rows contiguous", "F": "columns contiguous"}
LENGTHS = {"256 to 4096": [256, 1024, 4096], "1 Mi": [1 << 20]}
BATCH = [((256, 64, 64), (256, 64, 64))]
SCALING = [256, 384, 512, 768, 1000, 1024, 1536, 2048, 3000, 4096]
EMULATED = [
    ("bf16x9", 0.25, 0.27),
    ("bf16x6", 0.36, 0.40),
    ("bf16x3", 0.66, 0.75),
    ("tf32x3", 0.36, 0.40),
]


def one_thread(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    large = sizes[len(sizes) // 2]
    peaks = sizes[len(sizes) // 2 :]
    return [
        Row(f"bf16, fp8 @ {text}", FASTER, 2, 2.25,
            lambda: products(NARROW, square(*sizes))),
        Row(f"tf32 @ {text}", FASTER, 1, 1.12,
            lambda: products(["tf32"], square(*sizes))),
        Row("bf16 @ 64", FASTER, 1.3, 1.6,
            lambda: products(["bfloat16"], square(64))),
        Row("bf16 @ 128", FASTER, 1.9, 2.1,
            lambda: products(["bfloat16"], square(128))),
        *[Row(f"{SHORT[name]} @ {n}", FASTER, 0.95, 1,
              partial(products, [name], square(n)))
          for name in ("tf32", "float8_e4m3fn") for n in (64, 128)],
        *[Row(f"{SHORT[name]} matrix and vector, {n}, {ORDERS[order]}", FASTER, least,
              least, partial(with_vector, name, n, order))
          for n in (512, 4096)
          for name, least in zip(ALL, (0.9, 1.7, 2.5), strict=True)
          for order in ORDERS],
        *[Row(f"{SHORT[name]} dot product, {text}", FASTER, 0.83, 1,
              partial(dots, [name], lengths))
          for name in ALL
          for text, lengths in LENGTHS.items()],
        *[Row(f"256 times {SHORT[name]} @ 64", FASTER, 0.95, 1.9,
              partial(products, [name], BATCH))
          for name in ALL],
        *[Row(f"bf16 @ {text} relative to {peer}", f"x as fast as {peer}", 1, 1.05,
              partial(against, peer, sizes))
          for peer in ("torch", "jax")],
        *[Row(f"{name} @ {', '.join(map(str, peaks))}", "of peak", 0.9, 0.95,
              partial(products, names, square(*peaks), False))
          for name, names in (("bf16, fp8", NARROW), ("tf32", ["tf32"]))],
        Row(f"fp8 @ {large}, NaN in 1 % of the rows", "x the time without NaN",
            1.15, 1.05, lambda: with_nan(large)),
        *[Row(f"{precision} @ {large}", FASTER, minimum, target,
              partial(emulated, precision, large))
          for precision, minimum, target in EMULATED],
    ]  # fmt: skip


def two_threads(sizes: list[int]) -> list[Row]:
    """Return rows without peers, whose threads would keep the cores busy."""
    n = sizes[-1]
    split = [precision for precision, *_ in EMULATED]
    return [
        Row(f"bf16 @ {n}, two threads", FASTER, 2, 2.25,
            lambda: products(["bfloat16"], square(n), False)),
        Row(f"tf32 @ {n}, two threads", FASTER, 1, 1.12,
            lambda: products(["tf32"], square(n), False)),
        Row(f"bf16, fp8, tf32 @ {n}, two threads, relative to one",
            "x as fast as one", 1.85, 1.95,
            lambda: against_one_thread([*NARROW, "tf32"], [], n)),
        Row(f"{', '.join(split)} @ {n}, two threads, relative to one",
            "x as fast as one", 1.85, 1.95, lambda: against_one_thread([], split, n)),
    ]  # fmt: skip


def lesser(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    return [
        Row(f"bf16, fp8, tf32 @ {text}, x86-64-v3, relative to Haswell kernels",
            FASTER, 0.97, 1,
            lambda: products([*NARROW, "tf32"], square(*sizes), False)),
    ]  # fmt: skip


ONE_THREAD_OF_JAX = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["one"], {"OMP_NUM_THREADS": "1", **ONE_THREAD_OF_JAX}),
    (["two"], {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}),
    (["lesser"], {"OMP_NUM_THREADS": "1", **HASWELL}),
]
ROWS: dict[str, Callable[[list[int]], list[Row]]] = {
    "one": one_thread,
    "two": two_threads,
    "lesser": lesser,
}


def child(setting: str, quick: bool) -> list[dict[str, Any]]:
    if setting != "two":
        pin()
    sizes, every, repeats, budget = [256, 1024, 2048], SCALING, 15, 2.0
    if quick:
        sizes, every, repeats, budget = [256], [256, 512], 5, 0.2
    timing = blocks if setting == "two" else medians
    peaks = peak.measure() if setting == "one" else {}
    measured = measure_rows(ROWS[setting](sizes), repeats, budget, timing, peaks)
    if setting == "one":
        measured.append(per_multiply_add(every, repeats, budget).record())
    return measured


def main() -> int:
    return run_children(__doc__, "256, few repeats", __file__, SETTINGS, child)


if __name__ == "__main__":
    sys.exit(main())
