"""What is promised of a GPU: each row's cases, what runs in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from promises import Case, Row

import tf32dtype as td

FORMATS = ("bfloat16", "tf32", "float8_e4m3fn", "float8_e5m2")
#: formats by the name that cuBLAS' product has here, and the type of their storage
KINDS = {"tf32": ("tf32", np.float32), "bfloat16": ("bfloat16", np.uint16)}


class Sizes(NamedTuple):
    """How large the cases are."""

    elements: int
    native: tuple[int, ...]
    emulated: tuple[int, ...]
    modelled: tuple[int, ...]
    grid: tuple[int, ...]  # of the crossover: m = n, and k
    energy: tuple[int, ...]


FULL = Sizes(
    1 << 28, (4096, 8192), (4096, 8192, 16384), (4096,),
    grid=tuple(2**i for i in range(6, 15)), energy=(1024, 2048, 4096, 8192, 16384),
)  # fmt: skip
QUICK = Sizes(1 << 24, (1024,), (2048,), (1024,), grid=(64, 512), energy=(1024,))


def normal(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """N(0, 1) on the device."""
    from tf32dtype import cuda as tfc
    from tf32dtype.cuda._runtime import backend

    count = int(np.prod(shape))
    block = np.random.default_rng(2024).standard_normal(min(count, 1 << 22), np.float32)
    machine = backend.current()
    x = machine.call("resize", machine.put(block), shape)
    return tfc.asarray(x, dtype=dtype)


def casts(sizes: Sizes) -> Iterator[Case]:
    """Against a device copy that reads and writes as many bytes together."""
    import cupy

    from tf32dtype.cuda._arrays import casts
    from tf32dtype.cuda._runtime import backend

    for name in FORMATS:
        dtype = np.dtype(getattr(td, name))
        single = normal((sizes.elements,))
        ours = casts.cast(single, dtype)
        half = sizes.elements * (4 + dtype.itemsize) // 2
        source, target = (cupy.empty(half, np.uint8) for _ in range(2))
        copy = partial(backend.current().call, "copyto", target, source)
        for label, x, y in (
            (f"float32 -> {name}", single, ours),
            (f"{name} -> float32", ours, single.copy()),
        ):
            functions: dict[str, Callable[[], Any]] = {
                "ours": partial(casts.cast_into, x, y),
                "reference": copy,
            }
            yield Case(label, "N(0,1)", functions)


def operands(n: int, name: str) -> tuple[Any, Any]:
    """Two matrices; FP8 lies along k in both, the one layout that cublasLt takes."""
    dtype = getattr(td, name)
    a, b = normal((n, n), dtype), normal((n, n), dtype)
    return a, b if name in KINDS else b.T


def native(sizes: Sizes) -> Iterator[Case]:
    """`mode="native"` against the library's own call into the same memory."""
    import cupy

    from tf32dtype import cuda as tfc

    for n in sizes.native:
        for name in ("tf32", "bfloat16", "float8_e4m3fn"):
            a, b = operands(n, name)
            out = cupy.empty((n, n), np.float32)
            ours = partial(tfc.matmul, a, b, mode="native", dtype=np.float32, out=out)
            plain = partial(library, name, a, b, cupy.empty_like(out))
            yield Case(f"{name} {n}", "N(0,1)", {"ours": ours, "reference": plain})


def library(name: str, a: Any, b: Any, c: Any) -> None:
    """One call of cuBLAS, or of cublasLt, and nothing else."""
    from tf32dtype.cuda._matmul import cublaslt
    from tf32dtype.cuda._runtime import backend
    from tf32dtype.cuda._runtime.storage import raw

    if name in KINDS:
        kind, storage = KINDS[name]
        x, y = (raw(z).view(storage) for z in (a, b))
        backend.current().gemm(x, y, c, kind)
    else:
        x, y = (raw(z)[np.newaxis] for z in (a, b))
        cublaslt.gemm(x, y, c[np.newaxis], (name, name))


def own(sizes: Sizes) -> Iterator[Case]:
    """The kernel of `instruction="mma.sync"` against cuBLAS."""
    import cupy

    from tf32dtype import cuda as tfc

    for n in sizes.native:
        for name in ("tf32", "bfloat16"):
            a, b = operands(n, name)
            out = cupy.empty((n, n), np.float32)
            ours = partial(
                tfc.matmul, a, b, mode="native", instruction="mma.sync",
                dtype=np.float32, out=out,
            )  # fmt: skip
            plain = partial(library, name, a, b, cupy.empty_like(out))
            yield Case(f"{name} {n}", "N(0,1)", {"ours": ours, "reference": plain})


def block_casts(sizes: Sizes) -> Iterator[Case]:
    """Arrays of blocks against a device copy of the numbers. No search: "amax"."""
    import cupy

    from tf32dtype.cuda import blocks
    from tf32dtype.cuda._runtime import backend

    x = normal((sizes.elements // 256, 256))
    target = cupy.empty(x.shape, np.float32)
    source = x.view(np.float32, cupy.ndarray)
    copy = partial(backend.current().call, "copyto", target, source)
    for name in ("mxfp8_e4m3", "tcfp16"):
        made = blocks.quantize(x, name, scale="amax")
        back = partial(made.dequantize, out=cupy.empty(x.shape, np.float32))
        ours = partial(blocks.quantize, x, name, scale="amax")
        for label, call in ((f"to {name}", ours), (f"from {name}", back)):
            yield Case(label, "N(0,1)", {"ours": call, "reference": copy})


def block_products(sizes: Sizes) -> Iterator[Case]:
    """Three products of E4M3 with scales, against the library's one without."""
    import cupy

    from tf32dtype import cuda as tfc
    from tf32dtype.cuda import blocks
    from tf32dtype.cuda._matmul import wgmma

    instruction = "wgmma" if wgmma.is_here() else "mma.sync"
    for n in sizes.native:
        x, y = (normal((n, n)) for _ in range(2))
        a, b = blocks.quantize(x, "tcfp16"), blocks.quantize(y, "tcfp16", 0)
        out = cupy.empty((n, n), np.float32)

        @tfc.matmul_mode("native", instruction=instruction)
        def ours(a: Any = a, b: Any = b, out: Any = out) -> Any:
            return blocks.matmul(a, b, terms=3, out=out)

        name = "float8_e4m3fn"
        p, q = operands(n, name)
        plain = partial(library, name, p, q, cupy.empty_like(out))
        case = f"tcfp16 {n} by {instruction}"
        yield Case(case, "N(0,1)", {"ours": ours, "reference": plain})


def emulated(sizes: Sizes) -> Iterator[Case]:
    """bf16x9 against cuBLAS SGEMM."""
    for n in sizes.emulated:
        yield Case(f"bf16x9 {n}", "N(0,1)", products((n, n, n), "bf16x9"))


def products(
    shape: tuple[int, int, int], precision: str, strategy: str = "eager"
) -> dict[str, Callable[[], Any]]:
    """An emulated product of m, n, k, and SGEMM beside it."""
    import cupy

    from tf32dtype import cuda as tfc
    from tf32dtype.cuda._runtime import backend

    m, n, k = shape
    a, b = normal((m, k)), normal((k, n))
    out, other = (cupy.empty((m, n), np.float32) for _ in range(2))
    x, y = (z.view(np.float32, cupy.ndarray) for z in (a, b))
    return {
        "ours": partial(
            tfc.matmul, a, b, precision=precision, strategy=strategy, out=out
        ),
        "reference": partial(backend.current().gemm, x, y, other, "float32"),
    }


def snr(n: int, precision: str) -> dict[str, float]:
    """dB of 64 rows of a product over float64: the emulated one, and SGEMM."""
    import cupy

    from tf32dtype import cuda as tfc
    from tf32dtype.cuda._runtime import backend

    machine = backend.current()
    a, b = normal((n, n)), normal((n, n))
    x, y = (z.view(np.float32, cupy.ndarray) for z in (a, b))
    plain = cupy.empty((n, n), np.float32)
    machine.gemm(x, y, plain, "float32")
    ours = tfc.matmul(a, b, precision=precision, strategy="eager")
    rows = slice(0, n, max(1, n // 64))
    wide = [machine.call("ndarray.astype", z, np.float64) for z in (x[rows], y)]
    exact = machine.get(machine.call("matmul", *wide))
    found = {}
    for name, result in (("ours", ours), ("SGEMM", plain)):
        error = machine.get(result.view(np.float32, cupy.ndarray))[rows] - exact
        found[name] = float(10 * np.log10((exact**2).sum() / (error**2).sum()))
    return found


def rows(sizes: Sizes) -> list[Row]:
    """All promises that are ratios."""
    return [
        Row("casts", "of a copy", 0.8, 0.95, partial(casts, sizes)),
        Row("native products", "of cuBLAS", 0.95, 0.98, partial(native, sizes)),
        Row("own mma.sync kernel", "of cuBLAS", 0.5, 0.7, partial(own, sizes)),
        Row("bf16x9", "of SGEMM", 1.2, 1.5, partial(emulated, sizes)),
        Row("blocks", "of a copy", 0.25, 0.4, partial(block_casts, sizes)),
        # Three products, a third of one's speed at best, and the scales of blocks in
        # float32, which alone take as long as six at the peak. By wgmma on Hopper,
        # whose mma.sync makes FP8 of float16, at a twelfth of the speed and less.
        # `must` is more than was counted: 742 TFLOP/s a term (gpu_bounds.json) are
        # 0.19 of the 1,300 that are expected of cublasLt.
        Row("TCFP-16", "of FP8", 1 / 4.5, 1 / 3.3, partial(block_products, sizes)),
    ]


def modelled_row() -> Row:
    """The promise that is no ratio: `modelled` measures it."""
    return Row("A100 emulated", "TMAC/s", 1, 3, lambda: iter(()))


def modelled(
    row: Row,
    sizes: Sizes,
    clock: Callable[..., dict[str, float]],
    repeats: int,
    budget: float,
) -> None:
    """Multiply-adds a second of an emulated A100, by 10^12, into a row."""
    from tf32dtype import cuda as tfc

    for n in sizes.modelled:
        for name in ("bfloat16", "tf32"):
            a, b = operands(n, name)
            call = partial(
                tfc.matmul, a, b, mode="model", device="A100", dtype=np.float32
            )
            seconds = clock({"ours": call}, repeats, budget)["ours"]
            row.take(f"{name} {n}", "N(0,1)", "ours", n**3 / seconds * 1e-12)
