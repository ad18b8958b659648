"""A script: calls of BLAS while allocations of tf32dtype fail.

Its arguments are the preloaded library of failing_allocations.c, and "small" or the
precision of large calls. In small calls, each single allocation fails, and then with
all later ones. In large calls, whose scratch exceeds the reserve, all fail.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import tf32dtype as td
from tests.programs.blas.calls import FORMS, PRECISIONS, Call, draw, spec_of
from tests.programs.blas.test_arguments import ROUTINES, strided
from tf32dtype import _core

KINDS = {"gemm3m": "cz", "symv": "sd", "herk": "cz", "her2k": "cz"} | dict.fromkeys(
    ("hemm", "hemv"), "cz"
)


def own_memory() -> tuple[int, int]:
    """Return the range of addresses of tf32dtype's code."""
    found = [
        [int(x, 16) for x in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "/_core/_core." in line
    ]
    return min(x for x, _ in found), max(x for _, x in found)


class Trials:
    def __init__(self, path: str) -> None:
        self.refuser = ctypes.CDLL(path)
        self.range = [ctypes.c_size_t(x) for x in own_memory()]
        self.tried = 0

    def compute(self, compute: Callable[[], Any], calls: int, once: bool) -> int:
        """Compute, and return the number of refused allocations."""
        td.free_buffers()
        self.refuser.arm(*self.range, ctypes.c_long(calls), ctypes.c_long(once))
        try:
            compute()
        finally:
            refused = int(self.refuser.disarm())
        self.tried += refused > 0
        return refused


def small_calls() -> Iterator[tuple[str, Call]]:
    for routine, _, fill, _ in ROUTINES:
        for kind in KINDS.get(routine, "sdcz"):
            form = FORMS[3] if fill is strided else FORMS[0]
            call = Call(routine, kind, form)
            fill(call)
            yield f"{kind}{routine}", call


def try_small(trials: Trials) -> None:
    for precision in PRECISIONS:
        for name, call in small_calls():
            try_call(trials, precision, name, call)


def try_call(trials: Trials, precision: dict[str, Any], name: str, call: Call) -> None:
    made, spec = call.made(), spec_of(**precision)
    arrays = [x for x in call.words if isinstance(x, np.ndarray)]
    given = [x.copy() for x in arrays]

    def compute() -> None:
        for x, y in zip(arrays, given, strict=True):
            x[...] = y
        assert made.compute(spec)[0] == 0, name

    compute()
    want = [x.tobytes() for x in arrays]
    for once in (True, False):
        for calls in count():
            refused = trials.compute(compute, calls, once)
            assert [x.tobytes() for x in arrays] == want, (name, precision)
            if not refused:
                break


def try_flags(trials: Trials, name: str, call: Call) -> None:
    """Raise no other flag in the reserve for NaN in a matrix with one scale."""
    libm, invalid = ctypes.CDLL("libm.so.6"), 1  # of x86-64 and AArch64
    made, spec = call.made(), spec_of(precision="fp8_e4m3")
    arrays = [x for x in call.words if isinstance(x, np.ndarray) and x.size > 1]
    for x in arrays:
        x.flat[::3] = np.nan
    given = [x.copy() for x in arrays]
    raised = []

    def compute() -> None:
        for x, y in zip(arrays, given, strict=True):
            x[...] = y
        libm.feclearexcept(invalid)
        assert made.compute(spec)[0] == 0, name
        raised.append(libm.fetestexcept(invalid))

    compute()
    trials.compute(compute, 0, False)
    assert raised[0] == raised[1], name


def large_calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    import scipy.linalg.blas as blas

    rng = np.random.default_rng(1)

    def matrix(kind: str, rows: int, columns: int) -> Any:
        return np.asfortranarray(draw(rng, kind, rows, columns))

    n, k = 1500, 4
    a, b = matrix("z", n, k), matrix("z", n, k)
    c, few = matrix("z", n, n), matrix("z", k, n)
    yield "zgemm", lambda: blas.zgemm(1j, a, b, 2, c, trans_b=2)
    yield "zhemm", lambda: blas.zhemm(1j, c, few, 2, few, side=1)
    yield "zher2k", lambda: blas.zher2k(1 + 1j, a, b, 2, c, lower=1)
    yield "zsyrk", lambda: blas.zsyrk(1j, a, 2, c)
    yield "ztrmm", lambda: blas.ztrmm(1j, c, a)
    yield "ztrmm", lambda: blas.ztrmm(1, c, few, side=1, lower=1, trans_a=2, diag=1)
    special = a.copy(order="F")
    special[rng.random(a.shape) < 0.01] = np.inf
    yield "ztrmm of Inf", lambda: blas.ztrmm(1, c, special)
    yield "ztrmv", lambda: blas.ztrmv(c, a[:, 0])
    # The copy of `wide` fills the reserve, in which then only sums without NaN fit.
    triangle, wide = matrix("z", 300, 300), matrix("z", 300, 7828)
    wide[150, ::3] = np.inf
    yield "ztrmm of Inf in a full reserve", lambda: blas.ztrmm(1, triangle, wide)


def try_large(trials: Trials, precision: Any) -> None:
    with td.matmul_precision(precision, float64=True, complex64=True, blas=True):
        for name, compute in large_calls():
            found = [compute().tobytes()]
            refused = trials.compute(
                lambda call=compute, found=found: found.append(call().tobytes()),
                0,
                False,
            )
            assert refused, name
            assert found[0] == found[1], (name, precision)


if __name__ == "__main__":
    with td.matmul_precision("bf16", blas=True):  # this holds the reserve
        trials = Trials(sys.argv[1])
        if sys.argv[2] == "small":
            try_small(trials)
            for name, call in small_calls():
                try_flags(trials, name, call)
        else:
            try_large(trials, sys.argv[2])
    assert not _core.blas_lost()
    print(trials.tried)
