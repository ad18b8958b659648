"""Matrix products against NumPy's of float32, and peers.

    python benchmarks/matmul.py [--quick] [--runs 3] [--json FILE]

"x as fast" is the time of NumPy's float32 product of the same shape over that of ours.
One thread is pinned to a core; two are not. NumPy's OpenBLAS may choose kernels that
are not the best for the processor: the same rows with OPENBLAS_CORETYPE=SkylakeX say
what is left of the ratios then. Each setting runs in processes of its own. "Of peak" is
the share of what the core's multiply-adds could do (peak.c), a torch or jax that is
installed runs on one thread as well.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import peak
from common import (
    Functions,
    data,
    medians,
    peer_type,
    pin,
    torch_tensor,
    with_torch,
)
from promises import (
    Case,
    Row,
    blocks,
    measure_rows,
    run_children,
)

FASTER = "x as fast"


def products(
    names: list[str],
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]],
    peers: bool = True,
) -> Iterator[Case]:
    """a @ b into an output made beforehand."""
    import tf32dtype as td

    for name in names:
        dtype = np.dtype(td.formats[name].type)
        for first, second in shapes:
            for kind in ("normal", "octaves"):
                yield product(name, dtype, kind, first, second, peers)


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
    """bfloat16 products of the other libraries that are installed."""
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


def against_torch(sizes: list[int]) -> Iterator[Case]:
    """The same with torch in NumPy's place, if it is installed."""
    for case in products(["bfloat16"], square(*sizes)):
        if "torch" in case.functions:
            functions = {
                "ours": case.functions["ours"],
                "reference": case.functions["torch"],
            }
            yield Case(case.name, case.data, functions)


def emulated(precision: str, n: int) -> Iterator[Case]:
    """Products of float32 numbers that are split into parts."""
    import tf32dtype as td

    for kind in ("normal", "octaves"):
        a, b = data(kind, 2 * n * n, np.dtype(np.float32)).reshape(2, n, n)
        out, out32 = np.empty_like(a), np.empty_like(a)
        functions: Functions = {
            "ours": partial(td.matmul, a, b, precision=precision, out=out),
            "reference": partial(np.matmul, a, b, out=out32),
        }
        yield Case(f"{precision} {n} x {n} x {n}", kind, functions)


def square(*sizes: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    return [((n, n), (n, n)) for n in sizes]


NARROW = ["bfloat16", "float8_e4m3fn"]
VECTOR = [((4096, 4096), (4096, 1)), ((1, 4096), (4096, 4096))]
BATCH = [((256, 64, 64), (256, 64, 64))]
EMULATED = [
    ("bf16x9", 0.33, 0.42),
    ("bf16x6", 0.48, 0.62),
    ("bf16x3", 0.95, 1.2),
    ("tf32x3", 0.5, 0.58),
]


def one_thread(sizes: list[int]) -> list[Row]:
    text = ", ".join(str(n) for n in sizes)
    large = sizes[len(sizes) // 2]
    return [
        Row(f"bf16, fp8 @ {text}", FASTER, 3.4, 3.9,
            lambda: products(NARROW, square(*sizes))),
        Row(f"tf32 @ {text}", FASTER, 1.7, 1.95,
            lambda: products(["tf32"], square(*sizes))),
        Row("bf16 @ 64", FASTER, 1.5, 2.5, lambda: products(["bfloat16"], square(64))),
        Row("bf16 @ 128", FASTER, 2.5, 3, lambda: products(["bfloat16"], square(128))),
        Row("bf16 matrix and vector, 4096", FASTER, 1.5, 2.5,
            lambda: products(["bfloat16"], VECTOR)),
        Row("fp8 matrix and vector, 4096", FASTER, 2.5, 4.5,
            lambda: products(["float8_e4m3fn"], VECTOR)),
        Row("256 times bf16 @ 64", FASTER, 3, 3.5,
            lambda: products(["bfloat16"], BATCH)),
        Row(f"bf16 @ {text} over torch", "x as fast as torch", 0.9, 1.05,
            lambda: against_torch(sizes)),
        *[Row(f"{precision} @ {large}", FASTER, must, aim,
              partial(emulated, precision, large))
          for precision, must, aim in EMULATED],
    ]  # fmt: skip


def two_threads(sizes: list[int]) -> list[Row]:
    """Without peers, whose threads would stay on the cores while others run."""
    n = sizes[-1]
    return [
        Row(f"bf16 @ {n}, two threads", FASTER, 3.2, 3.6,
            lambda: products(["bfloat16"], square(n), False)),
        Row(f"tf32 @ {n}, two threads", FASTER, 1.65, 1.8,
            lambda: products(["tf32"], square(n), False)),
    ]  # fmt: skip


def lesser(sizes: list[int]) -> list[Row]:
    return [
        Row("bf16, tf32 @ 1024, x86-64-v3", FASTER, 0.95, 1,
            lambda: products(["bfloat16", "tf32"], square(1024), False)),
    ]  # fmt: skip


ONE_THREAD_OF_JAX = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
SETTINGS: list[tuple[list[str], dict[str, str]]] = [
    (["one"], {"OMP_NUM_THREADS": "1", **ONE_THREAD_OF_JAX}),
    (["two"], {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}),
    (["lesser"], {"OMP_NUM_THREADS": "1", "TF32DTYPE_ISA": "x86-64-v3"}),
    (["one"], {"OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "SkylakeX"}),
]
ROWS = {"one": one_thread, "two": two_threads, "lesser": lesser}


def child(setting: str, quick: bool) -> list[dict[str, Any]]:
    if setting != "two":
        pin()
    sizes, repeats, budget = [256, 1024, 2048], 15, 2.0
    if quick:
        sizes, repeats, budget = [256], 5, 0.2
    timing = blocks if setting == "two" else medians
    peaks = peak.measure() if setting == "one" else {}
    return measure_rows(ROWS[setting](sizes), repeats, budget, timing, peaks)


def main() -> int:
    return run_children(__doc__, "256, few repeats", __file__, SETTINGS, child)


if __name__ == "__main__":
    sys.exit(main())
