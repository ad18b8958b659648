"""Time products relative to the library's own calls, or to the peak of the units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from gpu_arrays import normal, operands
from measuring import Case

#: per format, the name that our call of cuBLAS takes, and the dtype of its storage
KINDS = {
    "tf32": ("tf32", np.float32),
    "bfloat16": ("bfloat16", np.uint16),
    "float16": ("float16", np.float16),
}


def library(name: str, a: Any, b: Any, c: Any) -> None:
    """Multiply a and b into c by one call of cuBLAS, or of cublasLt for FP8."""
    import cupy

    from tf32dtype.cuda._matmul import cublaslt
    from tf32dtype.cuda._runtime import backend
    from tf32dtype.cuda._runtime.storage import is_ours, raw

    x, y = (
        raw(z) if is_ours(z.dtype) else z.view(z.dtype, cupy.ndarray) for z in (a, b)
    )
    if name in KINDS:
        kind, storage = KINDS[name]
        backend.current().gemm(x.view(storage), y.view(storage), c, kind)
    else:
        cublaslt.gemm(x[np.newaxis], y[np.newaxis], c[np.newaxis], (name, name))


def native(
    sizes: tuple[int, ...], names: tuple[str, ...], **ours: Any
) -> Iterator[Case]:
    """Yield products in `mode="native"` against the library's own call."""
    import cupy

    from tf32dtype import cuda as tfc
    from tf32dtype.cuda._matmul import wgmma

    if ours.get("instruction") == "wgmma" and not wgmma.is_here():
        return
    for n in sizes:
        for name in names:
            a, b = operands(n, name)
            out = cupy.empty((n, n), np.float32)
            call = partial(
                tfc.matmul, a, b, mode="native", dtype=np.float32, out=out, **ours
            )
            plain = partial(library, name, a, b, cupy.empty_like(out))
            yield Case(f"{name} {n}", "N(0,1)", {"ours": call, "reference": plain})


def block_products(sizes: tuple[int, ...]) -> Iterator[Case]:
    """Yield TCFP-16, three E4M3 products with scales, against one without scales."""
    import cupy

    from tf32dtype import cuda as tfc
    from tf32dtype.cuda import blocks
    from tf32dtype.cuda._matmul import wgmma

    instruction = "wgmma" if wgmma.is_here() else "mma.sync"
    for n in sizes:
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


def emulated(
    sizes: tuple[int, ...], precision: str, strategy: str = "eager", row: str = ""
) -> Iterator[Case]:
    """Yield float32 products in a precision against cuBLAS SGEMM."""
    for n in sizes:
        functions = products((n, n, n), precision, strategy)
        yield Case(f"{row or precision} {n}", "N(0,1)", functions)


def by_integers(sizes: tuple[int, ...], precision: str, row: str) -> Iterator[Case]:
    """Yield products by int8 units, which Hopper's kernel needs."""
    from tf32dtype.cuda._matmul import wgmma

    if wgmma.is_here():
        yield from emulated(sizes, precision, row=row)


def products(
    shape: tuple[int, int, int], precision: str, strategy: str = "eager"
) -> dict[str, Callable[[], Any]]:
    """Return calls of an emulated product and of SGEMM of the shape (m, n, k)."""
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
    """Return the SNR in dB of the emulated product and of SGEMM.

    The reference is the float64 product, of about 64 rows.
    """
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


#: a case's name, its call, and the work of one call in the row's unit times seconds
Rate = tuple[str, Callable[[], Any], float]


def chains(sizes: tuple[int, ...], peak: float) -> Iterator[Rate]:
    """Yield products with the CPU's bits; `peak` is the GPU's float32 rate."""
    import cupy

    from tf32dtype import cuda as tfc

    for n in sizes:
        for name in ("bfloat16", "tf32", "float8_e4m3fn"):
            a, b = normal((n, n), name), normal((n, n), name)
            out = cupy.empty((n, n), np.float32)
            call = partial(tfc.matmul, a, b, mode="chain", dtype=np.float32, out=out)
            yield f"{name} {n}", call, 2 * n**3 / peak


def modeled(sizes: tuple[int, ...], device: str) -> Iterator[Rate]:
    """Yield products of an emulated tensor core, with 10^12 multiply-adds as unit."""
    from tf32dtype import cuda as tfc

    for n in sizes:
        for name in ("bfloat16", "tf32"):
            a, b = normal((n, n), name), normal((n, n), name)
            call = partial(tfc.matmul, a, b, mode="model", device=device)
            yield f"{name} {n}", partial(call, dtype=np.float32), n**3 * 1e-12
