"""Find operands with which matrix products take many times as long as with N(0, 1).

    python benchmarks/matmul/product_cliffs.py [--only PATTERN] [--above 10]
                                               [--size 64] [--json FILE]

A case is a tensor core, or a BLAS routine in a precision, and a class of operands. Its
factor is its time over that of the same product with N(0, 1). Both are minima of
repeats in turns. Cases with a factor above `--above` are printed, the worst first; the
JSON has all cases. One thread runs on one core. See benchmarks/ufuncs/cliffs.py for
functions.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import least_times, machine, pin, restart_as_usual

Call = Callable[[], Any]
ORDINARY = "N(0, 1)"
#: Ranges of exponents: the smallest of a, a bound above it, and the same of b.
FINITE = {
    "40 binades": (-20, 20, -20, 20),
    "120 binades": (-60, 60, -60, 60),
    "subnormal": (-131, -126, -131, -126),
    "subnormal times large": (-131, -126, 90, 110),
    "subnormal times N(0, 1)": (-131, -126, -1, 1),
    "products near 2^-126": (-64, -62, -64, -62),
    "products near 2^-138": (-72, -66, -72, -66),
    "products near the maximum": (60, 64, 58, 62),
    "products above the maximum": (60, 70, 60, 70),
}
SPECIAL = {
    "one Inf": (np.inf, 0),
    "one NaN": (np.nan, 0),
    "1 % Inf": (np.inf, 0.01),
    "10 % Inf": (np.inf, 0.1),
    "10 % NaN": (np.nan, 0.1),
    "all Inf": (np.inf, 1),
    "all NaN": (np.nan, 1),
}


def operands(n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield the name and both matrices of each class, in float64; b has Inf and NaN."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, n, n))
    yield ORDINARY, a, b
    for name, (a_least, a_most, b_least, b_most) in FINITE.items():
        x, y = (np.sign(z) * rng.uniform(1, 2, z.shape) for z in (a, b))
        yield (
            name,
            np.ldexp(x, rng.integers(a_least, a_most, x.shape)),
            np.ldexp(y, rng.integers(b_least, b_most, y.shape)),
        )
    for name, (value, share) in SPECIAL.items():
        some = rng.random(b.shape) < share
        some.flat[n // 2] = True
        yield name, a, np.where(some, value, b)
    yield "a row of NaN", a, np.where(np.arange(n)[:, None] == 0, np.nan, b)


def units(n: int) -> Iterator[tuple[str, dict[str, Call]]]:
    """Yield the products of all classes on each tensor core, once per kind of sum."""
    import tf32dtype as td
    from tf32dtype.tensor_core.hypotheses import parameters

    seen = set()
    for model in td.tensor_core.MODELS:
        if model.accumulator == "float64" or parameters(model) in seen:
            continue
        seen.add(parameters(model))
        types = [getattr(td, f, None) or np.dtype(f) for f in (model.a, model.b)]
        if any(np.dtype(t).kind in "iu" for t in types):
            continue
        product = partial(
            td.tensor_core.matmul,
            device=model.device,
            instruction=model.instruction,
            accumulator=model.accumulator,
        )
        yield (
            model.name,
            {
                kind: partial(product, a.astype(types[0]), b.astype(types[1]))
                for kind, a, b in operands(n)
            },
        )


def routines(n: int) -> Iterator[tuple[str, dict[str, Call]]]:
    """Yield the products of all classes by SciPy's BLAS, in the current precision."""
    import scipy.linalg.blas as blas

    data = {
        kind: (np.asfortranarray(a, np.float32), np.asfortranarray(b, np.float32))
        for kind, a, b in operands(n)
    }
    for lower in (0, 1):
        yield (
            f"strmm, {('upper', 'lower')[lower]}",
            {
                k: partial(blas.strmm, 1, a, b, lower=lower)
                for k, (a, b) in data.items()
            },
        )
    yield "strmv", {k: partial(blas.strmv, a, b[:, 0]) for k, (a, b) in data.items()}
    yield "ssymm", {k: partial(blas.ssymm, 1, a, b) for k, (a, b) in data.items()}
    yield "sgemm", {k: partial(blas.sgemm, 1, a, b) for k, (a, b) in data.items()}


def cases(
    name: str, calls: dict[str, Call], wanted: Callable[[str], Any]
) -> Iterator[dict[str, Any]]:
    ordinary = calls.pop(ORDINARY)
    ordinary()
    for kind, call in calls.items():
        if wanted(f"{name}, {kind}"):
            call()
            seconds, usual = least_times([call, ordinary], 5)
            factor = round(seconds / usual, 1)
            yield {"product": name, "data": kind, "seconds": seconds, "factor": factor}


def main() -> int:
    import tf32dtype as td

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--only", default="", help="measure cases that match (default: all)"
    )
    parser.add_argument(
        "--above",
        type=float,
        default=10,
        help="print larger ratios of times (default: 10)",
    )
    parser.add_argument(
        "--size", type=int, default=64, help="use m = n = k = N (default: 64)"
    )
    parser.add_argument("--json", type=Path, help="write all cases to this file")
    options = parser.parse_args()
    wanted = re.compile(options.only).search
    restart_as_usual()
    pin()
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    found = []
    for name, calls in units(options.size):
        found += cases(name, calls, wanted)
    for precision in (None, "bf16", "bf16x9"):
        used = precision or "float32 of the library"
        with td.matmul_precision(precision, blas=precision is not None):
            for size in (options.size, 4 * options.size):
                for name, calls in routines(size):
                    found += cases(f"{name} of {size} in {used}", calls, wanted)
    found.sort(key=lambda case: -case["factor"])
    for case in found:
        if case["factor"] > options.above:
            print(f"{case['factor']:7.1f}  {case['product']}: {case['data']}")
    print(f"{len(found)} cases")
    if options.json:
        result = {"machine": machine(), "size": options.size, "cases": found}
        options.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
