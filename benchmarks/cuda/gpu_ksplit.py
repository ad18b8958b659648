"""Find how many k of a split product a GPU's tensor cores may sum, by the CPU's model.

    python benchmarks/cuda/gpu_ksplit.py [--quick] [--json FILE] [--read FILE]

`tf32dtype.cuda` splits the sums of `bf16x9` and similar precisions into chunks, because
tensor cores truncate toward zero and float32 additions round to nearest. This script
runs those products, kernels included, on the CPU. A model of the device's tensor core
with one chain over all k replaces cuBLAS; a model of the instruction replaces mma.sync.
The script needs CuPy and g++, but no GPU.

For each device, precision, data and length it measures the signal-to-noise ratio over
float64 in dB, and the mean error in units of 2^-24 of |A| |B|, as means of some draws.
It compares them with NumPy's float32 product, and with a chain of fused multiply-adds
over all k, as a simple SGEMM sums. One of three numbers varies at a time: the chunk of
the products of the largest components, the chunk of the other products, and the stretch
(see `split_emulation.Chunks`). "As chosen", an H100 uses the kernel of wgmma in pieces
of k, because these results are small.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from accuracy import DATA, NUMPY, Report, columns, exact, main, snr

LENGTHS, SIZE, DRAWS = (64, 256, 1024, 4096, 16384), 48, 1
CHAIN = "one float32 chain"
#: the instructions of cuBLAS (None: the device's default) and of our kernel
UNITS = (None, "mma.sync")
#: The measured devices and their architectures. `SAME` has devices of equal models.
DEVICES = {"A100": "sm_80", "H100": "sm_90a"}
SAME = {"A100": ("L40S",), "H100": ("B200", "RTX Blackwell")}
VARIED: dict[str, dict[str, tuple[int, ...]]] = {
    "bf16x9": {"leading": (8, 16, 32), "others": (2048,), "stretch": (128, 1024)},
    "bf16x6": {},
    "bf16x3": {},
    "tf32x3": {"leading": (16,)},
}
DATA = {
    **DATA,
    "40 binades": lambda rng, shape: (
        rng.choice([-1, 1], shape) * np.exp2(rng.uniform(-20, 20, shape))
    ),
}


def models_are_the_same() -> None:
    from tf32dtype.tensor_core.look_up import find_model

    def facts(device: str, dtype: str) -> list[tuple[object, ...]]:
        models = (find_model(device, x, dtype, dtype, "float32") for x in UNITS)
        return [(x.depth, x.fraction, x.kept, x.floor) for x in models]

    for device, others in SAME.items():
        for dtype in ("bfloat16", "tf32"):
            for other in others:
                assert facts(device, dtype) == facts(other, dtype), other


def chain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply by one chain of float32 fused multiply-adds per element, over all k."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        exact_product = a[:, k : k + 1].astype(np.float64) * b[k].astype(np.float64)
        total = (exact_product + total).astype(np.float32)
    return total


class Products:
    """Compute the split products of `tf32dtype.cuda` on the CPU."""

    def __init__(self) -> None:
        sys.path.append(str(Path(__file__).resolve().parents[2]))
        import cupy

        from tests.support.simulator.backend import Host, allocate
        from tf32dtype.cuda._matmul import split_emulation
        from tf32dtype.cuda._runtime import backend

        cupy.cuda.set_allocator(allocate)
        self.host = Host()
        backend.use(self.host)
        self.emulation, self.cupy = split_emulation, cupy

    def default(self, device: str, precision: str) -> Any:
        return self.emulation.chunks_for(DEVICES[device], precision, max(LENGTHS))

    def __call__(
        self, device: str, precision: str, a: np.ndarray, b: np.ndarray, chunks: Any
    ) -> np.ndarray:
        self.host.gemm_device, self.host.arch = device, DEVICES[device]
        x, y = self.host.put(a[None]), self.host.put(b[None])
        out = self.cupy.empty((1, a.shape[0], b.shape[1]), np.float32)
        self.emulation.product(x, y, out, precision, chunks=chunks)
        return self.host.get(out)[0]


def cases(products: Products, quick: bool) -> dict[str, tuple[Any, ...]]:
    """Return the device, precision and chunks of each product, by name."""
    found: dict[str, tuple[Any, ...]] = {}
    for device in DEVICES:
        for precision, varied in VARIED.items():
            chosen = products.default(device, precision)
            found[f"{device} {precision} as chosen"] = device, precision, None
            for name, values in varied.items():
                for value in values[:1] if quick else values:
                    chunks = chosen._replace(**{name: value})
                    key = f"{device} {precision} {name} {value}"
                    found[key] = device, precision, chunks
    return found


def measure(quick: bool) -> Report:
    """Measure all cases and return them for JSON."""
    models_are_the_same()
    products = Products()
    size, draws = (16, 1) if quick else (SIZE, DRAWS)
    lengths = LENGTHS[:2] if quick else LENGTHS
    chosen = {
        f"{device} {precision}": products.default(device, precision)._asdict()
        for device in DEVICES
        for precision in VARIED
    }
    report: Report = {
        "size": size, "draws": draws, "lengths": list(lengths), "same": SAME,
        "chosen": chosen, "snr": {}, "error": {},
    }  # fmt: skip
    for kind, fill in DATA.items():
        ratios: dict[str, list[float]] = {}
        errors: dict[str, list[float]] = {}
        for length in lengths:
            rng = np.random.default_rng(length)
            each: list[dict[str, tuple[float, float]]] = []
            for _ in range(draws):
                a = fill(rng, (size, length)).astype(np.float32)
                b = fill(rng, (length, size)).astype(np.float32)
                each.append(one_draw(products, cases(products, quick), a, b))
            for name in each[0]:
                pairs = np.mean([draw[name] for draw in each], axis=0)
                ratios.setdefault(name, []).append(round(float(pairs[0]), 2))
                errors.setdefault(name, []).append(round(float(pairs[1]), 4))
        report["snr"][kind], report["error"][kind] = ratios, errors
        print(f"  {kind}", file=sys.stderr, flush=True)
    return report


def one_draw(
    products: Products, which: dict[str, tuple[Any, ...]], a: np.ndarray, b: np.ndarray
) -> dict[str, tuple[float, float]]:
    reference = exact(a, b)
    magnitude = exact(abs(a), abs(b))

    def judged(result: np.ndarray) -> tuple[float, float]:
        error = np.mean(abs(result - reference) / magnitude) * 2**24
        return snr(result, reference), float(error)

    found = {NUMPY: judged(a @ b), CHAIN: judged(chain(a, b))}
    for name, (device, precision, chunks) in which.items():
        found[name] = judged(products(device, precision, a, b, chunks))
    return found


def show(report: Report) -> str:
    """Return a table of the ratios, with * after those that are below NumPy's."""
    header = (
        "",
        *(f"{kind[:7]} {k}" for kind in report["snr"] for k in report["lengths"]),
    )
    first = next(iter(report["snr"].values()))
    rows = []
    for name in first:
        row = [name]
        for ratios in report["snr"].values():
            pairs = zip(ratios[name], ratios[NUMPY], strict=True)
            row += [f"{x:.1f}{'*' if x < y else ''}" for x, y in pairs]
        rows.append(tuple(row))
    return columns(header, rows)


if __name__ == "__main__":
    sys.exit(main(__doc__, measure, show))
