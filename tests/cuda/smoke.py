"""Check a new GPU in the first minutes: the cheapest and most informative checks first.

    python -m tests.cuda.smoke               every check, one line per check
    python -m tests.cuda.smoke --jobs N      N checks at a time, except `speed`
    python -m tests.cuda.smoke NAME...       only these checks
    python -m tests.cuda.smoke --here NAME   one check, in this process

Each check has its own process, since an illegal address ends all use of CUDA in the
process. After a failed check, the program prints the docstring of the check, which
names likely causes. The status is the number of failed checks. With dry_run.py,
everything runs on the host without a GPU, at small sizes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import cupy
import numpy as np

import tf32dtype as td
import tf32dtype.cuda as tfc
from tests.support.cuda_products import by_plan
from tests.support.paths import BENCHMARKS
from tf32dtype.cuda import blocks
from tf32dtype.cuda._matmul import fma, native
from tf32dtype.cuda._matmul import wgmma as by_wgmma
from tf32dtype.cuda._matmul.mode import OWN
from tf32dtype.cuda._runtime import backend
from tf32dtype.cuda._runtime.storage import is_ours, raw

sys.path.insert(0, str(BENCHMARKS / "cuda"))

import gpu_clock

#: Set by dry_run.py, and inherited by the processes that it starts.
DRY = "TF32DTYPE_DRY" in os.environ
#: Set under tools that make kernels slow. Sizes are then at most 300.
SMALL = "TF32DTYPE_SMALL" in os.environ

Check = Callable[[], None]
CHECKS: dict[str, tuple[Check, int]] = {}


def check(seconds: int = 60) -> Callable[[Check], Check]:
    """Register a check, with the seconds after which it counts as hanging."""

    def enter(function: Check) -> Check:
        CHECKS[function.__name__] = function, seconds
        return function

    return enter


# -- helpers of the checks -------------------------------------------------------------


def sized(on_gpu: int, dry: int) -> int:
    if DRY:
        return dry
    return min(on_gpu, 300) if SMALL else on_gpu


def note(*said: object) -> None:
    """Print on the line of the check."""
    print(*said, end=" ")


def draw(shape: int | tuple[int, ...], dtype: object, seed: int = 0) -> np.ndarray:
    """Return numbers of seven binades. An int is the side of a square matrix."""
    shape = (shape, shape) if isinstance(shape, int) else shape
    rng = np.random.default_rng(seed)
    octaves = np.exp2(rng.integers(-3, 4, shape)).astype(np.float32)
    return (rng.standard_normal(shape, np.float32) * octaves).astype(dtype)


def pair(n: int, first: object, second: object = None) -> tuple[np.ndarray, np.ndarray]:
    return draw(n, first), draw(n, second or first, 1)


def put(x: np.ndarray) -> cupy.ndarray:
    """Put an array on the GPU. NumPy's dtypes become plain CuPy arrays."""
    ours = x.dtype not in (np.float16, np.float32)
    return tfc.asarray(x) if ours else backend.current().put(x)


def bits(x: np.ndarray | cupy.ndarray) -> np.ndarray:
    unsigned = f"u{x.dtype.itemsize}"
    if isinstance(x, cupy.ndarray):
        plain = raw(x) if is_ours(x.dtype) else x.view(cupy.ndarray)
        x = backend.current().get(plain)
    return np.ascontiguousarray(x).view(unsigned)


def equal(got: np.ndarray, want: np.ndarray, what: str) -> None:
    """Fail unless all bits are equal; each array may be on the GPU or on the host."""
    x, y = bits(got), bits(want)
    assert x.shape == y.shape, f"{what}: {x.shape} is not {y.shape}"
    wrong = np.argwhere(x != y)
    if len(wrong):
        first = tuple(map(int, wrong[0]))
        raise AssertionError(
            f"{what}: {len(wrong)} of {x.size} differ, the first at {first}:"
            f" {x[first]:#x}, not {y[first]:#x}"
        )


def close(got: cupy.ndarray, want: np.ndarray, bound: float, what: str) -> None:
    """Fail if an error exceeds `bound` times the largest magnitude, and print it."""
    error = abs(backend.current().get(got) - want).max() / abs(want).max()
    assert error < bound, f"{what}: off by {error:.1e}"
    note(what, f"{error:.1e}")


# -- checks ----------------------------------------------------------------------------


@check()
def machine() -> None:
    """No driver, no device, or a CuPy that cannot use the device. No other check can
    work."""
    here = backend.current()
    note(here.name(), here.architecture(), here.processors(), "processors")
    note("cupy", cupy.__version__, "numpy", np.__version__)
    if not DRY:
        note("nvrtc", cupy.cuda.nvrtc.getVersion())


@check()
def cast_add() -> None:
    """Compiling, loading or starting kernels fails. Ignore all other checks."""
    a = draw((100_003,), np.float32)
    g, a = tfc.asarray(a, td.bfloat16), a.astype(td.bfloat16)
    equal(g, a, "cast")
    equal(g + g * g, a + a * a, "arithmetic")
    equal(np.exp(g), np.exp(a), "table")
    equal(np.sort(g), np.sort(a), "sort")
    equal(g[1:] + g[:-1], a[1:] + a[:-1], "unaligned")
    equal(np.max(g), np.asarray(a.max()), "max")


@check()
def chain_small() -> None:
    """The kernel of "chain", without much shared memory."""
    a, b = draw((130, 600), td.bfloat16), draw((600, 77), td.bfloat16, 1)
    equal(tfc.asarray(a) @ tfc.asarray(b), a @ b, "chain")


@check()
def chain_large() -> None:
    """82 KB of shared memory, which an attribute of the function requests."""
    n = sized(2048, 130)
    a, b = pair(n, td.tf32)
    out = cupy.empty((1, n, n), np.float32)
    by_plan(fma.plan, tfc.asarray(a), tfc.asarray(b), out, fma.LARGE)
    equal(out[0], td.matmul(a, b, dtype=np.float32), "chain")


def against_model(n: int, first: object, second: object = None) -> None:
    """Compare the kernel of mma.sync with its model on the device, in all layouts."""
    a, b = (put(x) for x in pair(n, first, second))
    device = native.device_of(backend.current().architecture())
    layouts = {
        "both along k": (a, b.T),
        "b across k": (a, b),
        "a across k": (a.T, b.T),
        "both across k": (a.T, b),
    }
    for layout, (x, y) in layouts.items():
        multiply = partial(tfc.matmul, x, y, instruction="mma.sync")
        got, want = multiply(mode="native"), multiply(mode="model", device=device)
        equal(got, want, f"{np.dtype(first).name} {n}, {layout}")


@check(90)
def mma_bf16() -> None:
    """Few elements differ: the model. Whole tiles: addresses. Other elements in each
    run: a race. Use compute-sanitizer's racecheck."""
    against_model(sized(4096, 96), td.bfloat16)


@check(90)
def mma_f16() -> None:
    """The causes of mma_bf16."""
    against_model(sized(1000, 40), np.float16)


@check(90)
def mma_ragged() -> None:
    """If mma_bf16 passes: edges of tiles, or copies outside of an operand."""
    for n in (1, 7, 129, 1001):
        against_model(min(n, sized(n, 40)), td.bfloat16)


@check(90)
def mma_tf32() -> None:
    """The model of tf32 is contested: first read golden's lines of tf32. If only "both
    across k" differs: the tile with 48 KB of shared memory."""
    against_model(sized(4096, 96), td.tf32)


@check(90)
def mma_e4m3() -> None:
    """From 9.0 on, the assembler makes float16 instructions of FP8: see golden's
    opcodes."""
    against_model(sized(4096, 96), td.float8_e4m3fn)


@check(90)
def mma_e4m3_e5m2() -> None:
    """The causes of mma_e4m3."""
    against_model(sized(1024, 64), td.float8_e4m3fn, td.float8_e5m2)


@check(90)
def every_tile() -> None:
    """The stages of the named tile. The tile SMALL can replace this tile until the
    repair."""
    n = sized(1500, 70)
    a, b = (put(x[None]) for x in pair(n, td.bfloat16))
    b = b.swapaxes(1, 2)  # along k, as a is
    ordinary = (
        native.WIDE, native.WIDE_SHORT, native.SQUARE,
        native.SPARING, native.SMALL, native.SMALL_SHORT,
    )  # fmt: skip
    promoting = [native.SUMS, native.SPARING, native.SMALL_SHORT]
    arch = backend.current().architecture()
    promoting += [native.with_totals(x, arch) for x in promoting]
    for sums, tiles in (
        (native.CHAIN, ordinary),
        (native.Sums(16, 256, 0.0), promoting),
        (native.Sums(8, 256, 0.0), promoting),
    ):
        results = []
        for tile in tiles:
            results.append(cupy.empty((1, n, n), np.float32))
            by_plan(native.plan, a, b, results[-1], tile, sums)
            equal(results[-1], results[0], f"{tile} {sums}")


@check()
def cublas() -> None:
    """cuBLAS, or for FP8 cublasLt. The message has the status."""
    n = sized(512, 48)
    for dtype, bound in (
        (td.bfloat16, 2e-3),
        (td.tf32, 2e-3),
        (td.float8_e4m3fn, 1e-2),
    ):
        if DRY and dtype is td.float8_e4m3fn:
            continue  # the simulator has no FP8 GEMM
        a, b = pair(n, dtype)
        want = a.astype(np.float64) @ b.astype(np.float64)
        got = tfc.matmul(put(a), put(b), mode="native")
        close(got, want, bound, np.dtype(dtype).name)


@check(90)
def emulation() -> None:
    """dB: tf32 about 71, bf16x3 107, bf16x6, bf16x9 and tf32x3 135. If only bf16x9 and
    bf16x6 are low: the kernel of the leading split order."""
    a, b = pair(sized(2048, 64), np.float32)
    want = a[:64].astype(np.float64) @ b.astype(np.float64)
    least = {"tf32": 65, "bf16x3": 100, "bf16x6": 128, "bf16x9": 128, "tf32x3": 120}
    for precision, bound in least.items():
        c = tfc.matmul(put(a), put(b), precision=precision, strategy="eager")
        error = backend.current().get(c)[:64] - want
        ratio = 10 * np.log10((want**2).sum() / (error**2).sum())
        note(precision, f"{ratio:.0f} dB")
        assert ratio > bound, f"{precision}: {ratio:.0f} dB; {bound} are too few"


@check(90)
def exact() -> None:
    """float32, float64: the float64 product of cuBLAS, or the test of rounding. eager,
    crt10: the products of residues by wgmma, or their reconstruction."""
    n = sized(1000, 40)
    for dtype in (np.float32, np.float64):
        a, b = pair(n, np.float32)
        a, b = a.astype(dtype), (b * np.exp2(np.arange(n) % 9)).astype(dtype)
        a[:, : n // 2] = -a[:, n - n // 2 :]  # half of the terms nearly cancel
        x, y = map(backend.current().put, (a, b))
        want = td.matmul(a, b, precision="exact")
        name = np.dtype(dtype).name
        equal(tfc.matmul(x, y, precision="exact"), want, name)
        if by_wgmma.is_here():
            eager = tfc.matmul(x, y, precision="exact", strategy="eager")
            equal(eager, want, f"{name}, eager")
            want = td.matmul(a, b, precision="crt10")
            equal(tfc.matmul(x, y, precision="crt10"), want, f"{name}, crt10")


@check(90)
def block_formats() -> None:
    """Quantization, or products of blocks."""
    x, y = pair(sized(512, 64), np.float32)
    for name in ("mxfp8_e4m3", "tcfp16"):
        p, q = td.blocks.quantize(x, name), td.blocks.quantize(y, name, 0)
        a, b = blocks.quantize(put(x), name), blocks.quantize(put(y), name, 0)
        assert a.get() == p, name
        assert b.get() == q, name
        equal(a.dequantize(), p.dequantize(), f"{name}, dequantized")
        want = p @ q
        equal(a @ b, want, f"{name}, multiplied")
        with tfc.matmul_mode("native"):
            close(blocks.matmul(a, b), want, 1e-3, name)


@check()
def dlpack() -> None:
    """Memory shared with PyTorch. No other check depends on it."""
    if DRY:
        return
    import torch

    for dtype in (torch.bfloat16, torch.float32, torch.float8_e4m3fn):
        x = torch.randn(64, 64, device="cuda").to(dtype)
        g = tfc.asarray(x)
        assert g.data.ptr == x.data_ptr(), f"{dtype} was copied to us"
        y = torch.from_dlpack(g)
        assert y.dtype == dtype, f"{y.dtype} is not {dtype}"
        assert y.data_ptr() == x.data_ptr(), f"{dtype} was copied back"


@check()
def streams() -> None:
    """Kernels that do not run on the current stream, or memory freed too early."""
    if DRY:
        return
    x = draw((1 << 24,), np.float32)
    found = []
    for i in range(4):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            found.append((stream, (tfc.asarray(x, td.bfloat16) + i).astype(np.float32)))
    for i, (stream, y) in enumerate(found):
        stream.synchronize()
        equal(y, (x.astype(td.bfloat16) + i).astype(np.float32), f"stream {i}")


def without_wgmma(function: Callable[[], cupy.ndarray]) -> Callable[[], cupy.ndarray]:
    """Return the function with TF32DTYPE_CUDA_WGMMA=0, which uses mma.sync instead."""

    def call() -> cupy.ndarray:
        by_wgmma.ENABLED = False
        try:
            return function()
        finally:
            by_wgmma.ENABLED = True

    return call


@check(120)
def wgmma() -> None:
    """HANGS: the barriers of wgmma. Whole tiles: maps of tensors, descriptors. Few
    elements differ: the model, see golden's lines of wgmma. Set TF32DTYPE_CUDA_WGMMA=0
    to work without wgmma."""
    if not by_wgmma.is_here():
        return note("another GPU")
    pairs = (
        (td.bfloat16, td.bfloat16),
        (np.float16, np.float16),
        (td.tf32, td.tf32),
        (td.float8_e4m3fn, td.float8_e5m2),
    )
    for n in {sized(2048, 40), sized(1001, 40)}:
        for first, second in pairs[:1] if DRY else pairs:
            a, b = (put(x) for x in pair(n, first, second))
            multiply = partial(tfc.matmul, a, b, instruction="wgmma")
            got, want = multiply(mode="native"), multiply(mode="model", device="H100")
            equal(got, want, f"{np.dtype(first).name} {n}")
        x, y = (put(z) for z in pair(n, np.float32))
        p = blocks.quantize(x, "tcfp16", scale="amax")
        q = blocks.quantize(y, "tcfp16", 0, scale="amax")
        multiplied = tfc.matmul_mode("native")(partial(blocks.matmul, p, q, terms=3))
        equal(multiplied(), without_wgmma(multiplied)(), f"blocks as by mma.sync, {n}")
    x, y = pair(sized(300, 40), np.float32)
    p, q = td.blocks.quantize(x, "tcfp16"), td.blocks.quantize(y, "tcfp16", 0)
    with tfc.matmul_mode("native", instruction="wgmma"):
        got = blocks.matmul(blocks.asarray(p), blocks.asarray(q), terms=3)
    want = td.tensor_core.matmul(p, q, device="H100", instruction="wgmma", terms=3)
    equal(got, want, "blocks")


@check(120)
def speed() -> None:
    """Slow results do not fail. They show a fault in the checks above."""
    n, m, small = sized(8192, 32), sized(4096, 32), 64
    a, b = (put(x) for x in pair(n, td.bfloat16))
    x, y = (put(z) for z in pair(n, np.float32))
    out = cupy.empty((n, n), np.float32)
    multiply = partial(tfc.matmul, out=out)
    native_call = partial(multiply, a, b.T, mode="native", dtype=np.float32)
    emulated = partial(multiply, x, y, strategy="eager")
    modeled = partial(tfc.matmul, a[:m, :m], b[:m, :m], mode="model", device="A100")
    calls: dict[str, tuple[int, Callable[[], object]]] = {
        "cuBLAS bf16": (n, native_call),
        "mma.sync bf16": (n, partial(native_call, instruction="mma.sync")),
        "SGEMM": (n, partial(backend.current().gemm, x, y, out, "float32")),
        "bf16x9": (n, partial(emulated, precision="bf16x9")),
        "tf32x3": (n, partial(emulated, precision="tf32x3")),
        "chain": (n, partial(multiply, a, b, dtype=np.float32)),
        "model A100": (m, partial(modeled, dtype=np.float32)),
    }
    if by_wgmma.is_here():
        calls["wgmma bf16"] = n, partial(native_call, instruction="wgmma")
        p = blocks.quantize(x, "tcfp16", scale="amax")
        q = blocks.quantize(y, "tcfp16", 0, scale="amax")
        product = partial(blocks.matmul, p, q, terms=3, out=out)
        for name in OWN:
            mode = tfc.matmul_mode("native", instruction=name)
            calls[f"TCFP-16 {name}"] = n, without_wgmma(mode(product))
        same = tfc.matmul_mode("native")(product)
        calls["TCFP-16 mma.sync's bits by wgmma"] = n, same
        nine = partial(emulated, precision="bf16x9")
        calls["bf16x9 without wgmma"] = n, without_wgmma(nine)
    functions = {name: function for name, (_, function) in calls.items()}
    functions["add"] = lambda: a[:small, :small] + b[:small, :small]
    seconds = gpu_clock.Clock().medians(functions, 5, 20.0)
    for name, (side, _) in calls.items():
        note(f"\n    {name} {2 * side**3 / seconds[name] * 1e-12:.1f} TFLOP/s")
    note(f"\n    a small addition {1e6 * seconds['add']:.0f} us")


# -- running the checks ----------------------------------------------------------------


def in_a_process(name: str) -> tuple[bool, str, float]:
    """Return whether a check passes, its output, and its seconds."""
    started = time.monotonic()
    holds, said = checked_apart(name)
    return holds, said, time.monotonic() - started


def run_all(names: list[str], jobs: int) -> Iterator[tuple[bool, str, float]]:
    """Yield the results in the order of names. Checks that measure time run alone,
    after the others."""
    alone = {speed.__name__}
    with ThreadPoolExecutor(jobs) as pool:
        begun = {x: pool.submit(in_a_process, x) for x in names if x not in alone}
        for name in names:
            if name in alone:
                wait(begun.values())
            yield begun[name].result() if name in begun else in_a_process(name)


def checked_apart(name: str) -> tuple[bool, str]:
    """Return whether a check passes in its own process, and its output."""
    through = ["-m", "tests.support.simulator.dry_run"] if DRY else ["-m"]
    command = [sys.executable, *through, "tests.cuda.smoke", "--here", name]
    limit = CHECKS[name][1]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return False, f"HANGS: it was stopped after {limit} s"
    if done.returncode == 0:
        return True, done.stdout
    last = done.stderr.strip().splitlines()[-12:]
    return False, "\n    ".join([done.stdout, *last])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"run only these (all): {', '.join(CHECKS)}",
    )
    parser.add_argument("--here", action="store_true", help="run in this process")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="run N at a time (1)"
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(CHECKS):
        parser.error(f"no check is called {', '.join(unknown)}")
    chosen = options.names or [*CHECKS]
    if options.here:
        for name in chosen:
            CHECKS[name][0]()
        return 0
    failed = 0
    results = run_all(chosen, options.jobs)
    for name, (holds, said, took) in zip(chosen, results, strict=True):
        print(f"{'ok  ' if holds else 'FAIL'} {name:14} {took:5.1f} s  {said.strip()}")
        if not holds:
            failed += 1
            print(
                f"     this means: {' '.join((CHECKS[name][0].__doc__ or '').split())}"
            )
        sys.stdout.flush()
    print(f"{len(chosen) - failed} of {len(chosen)} checks hold")
    return failed


if __name__ == "__main__":
    sys.exit(main())
