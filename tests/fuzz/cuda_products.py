"""Random products of GPU arrays, computed on the host, against the CPU's.

    python -m tests.fuzz.cuda_products [CALLS [SEED]]

A call is NumPy's function on our arrays, with operands of any layout and any codes. It
must have the CPU's dtype, shape and bits, or raise an error if the CPU does. The
printed seed reproduces a failure.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tf32dtype as td
from tests.support.cuda import HOST, backends, cupy
from tests.support.cuda_operands import bits, on_gpu, on_host
from tests.support.simulator.backend import allocate
from tf32dtype.cuda._matmul import matmul, numpy_products
from tf32dtype.tensor_core.look_up import devices

#: Few pairs, as each one needs the compilation of a kernel.
PAIRS = tuple(
    tuple(np.dtype(x) for x in pair)
    for pair in (
        (td.bfloat16, td.bfloat16), (td.tf32, td.tf32), (td.tf32, np.float16),
        (td.float8_e4m3fn, td.float8_e5m2), (td.float8_e8m0fnu, td.float8_e8m0fnu),
        (td.bfloat16, td.float8_e5m2),
    )
)  # fmt: skip
MODELED = tuple(np.dtype(x) for x in (td.bfloat16, td.tf32, np.float16))
LENGTHS = (0, 1, 1, 2, 3, 5, 8, 17, 33, 65)
SUMMED = (0, 1, 2, 7, 32, 64, 255, 256, 257, 511, 512, 513, 700)
STACKS = ((), (), (1,), (2,), (3, 1), (1, 2), (3, 2), (2, 1, 2))
EINSUMS = (
    "ij,jk", "ij,kj->ik", "ij,jk->ki", "ii,ij->j", "...ij,...jk->...ik", "ij,jk->",
    "ij,jk->i", "ij,kl->jl", "i...,i...->...", "ij,jk,k->i",
)  # fmt: skip


class Call(NamedTuple):
    """A function of NumPy, and its arguments."""

    name: str
    operands: tuple[Any, ...]
    keywords: dict[str, Any]


class Fuzz:
    """Draw operands and calls."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Draw numbers or any codes, transposed, thinned, reversed or broadcast."""
        r = self.random
        axes = list(range(len(shape)))
        r.shuffle(axes)
        steps = [r.choice((1, 1, 1, 2, -1, -2)) for _ in shape]
        repeated = [r.random() < 0.05 for _ in shape]
        whole = [
            1 if one else shape[axis] * abs(steps[axis])
            for axis, one in zip(axes, repeated, strict=True)
        ]
        if r.random() < 0.5:
            kind = r.choice((1.0, 2.0**60, 2.0**-60))
            with np.errstate(all="ignore"):
                x = (self.numbers.standard_normal(whole) * kind).astype(dtype)
        else:
            size = dtype.itemsize
            x = self.numbers.integers(0, 256, (*whole, size), np.uint8)
            x = x.view(f"u{size}")[..., 0]
            if dtype == np.dtype(td.tf32) and r.random() < 0.5:
                x = x & np.uint32(0xFFFFE000)
            if r.random() < 0.7:  # one NaN would fill a row
                with np.errstate(all="ignore"):
                    wrong = ~np.isfinite(x.view(dtype))
                x[wrong] = 0
            x = x.view(dtype)
        x = x.transpose(np.argsort(axes)) if shape else x
        one = [r for _, r in sorted(zip(axes, repeated, strict=True))]
        x = x[tuple(slice(None, None, 1 if o else s)
                    for o, s in zip(one, steps, strict=True))]  # fmt: skip
        return np.broadcast_to(x, shape)

    def call(self) -> Call:
        """Draw a call, which may be invalid."""
        r = self.random
        first, second = r.choice(PAIRS)
        if r.random() < 0.3:
            first, second = second, first
        a, b = r.choice(STACKS), r.choice(STACKS)
        n, m, k = r.choice(LENGTHS), r.choice(LENGTHS), r.choice(SUMMED)
        other = k if r.random() < 0.97 else k + 1
        name = r.choice(
            ("matmul", "matmul", "matmul", "vecdot", "matvec", "vecmat", "dot", "inner",
             "vdot", "tensordot", "einsum", "einsum")
        )  # fmt: skip
        keywords: dict[str, Any] = {}
        if name == "matmul" and r.random() < 0.3:
            keywords["dtype"] = np.float32
        shapes: Any = {
            "matmul": r.choice((((*a, n, k), (*b, other, m)), ((k,), (*b, other, m)))),
            "vecdot": ((*a, k), (*b, other)),
            "matvec": ((*a, n, k), (*b, other)),
            "vecmat": ((*a, k), (*b, other, m)),
            "dot": r.choice((((n, k), (other, m)), ((2, 3, k), (2, other, 4)))),
            "inner": ((n, k), (2, other)),
            "vdot": ((k,), (other,)),
            "tensordot": ((2, k, 3), (k, other, 2)),
        }
        if name == "tensordot":
            keywords["axes"] = ([1, 0], [0, 2])
            shapes[name] = (2, k, 3), (other, 4, 2)
        if name == "einsum":
            return self.einsum(first, second)
        operands = (
            self.array(first, shapes[name][0]),
            self.array(second, shapes[name][1]),
        )
        return Call(name, operands, keywords)

    def einsum(self, first: np.dtype[Any], second: np.dtype[Any]) -> Call:
        r = self.random
        subscripts = r.choice(EINSUMS)
        lengths = {letter: r.choice((0, 1, 2, 5, 33)) for letter in "ikl"}
        lengths["j"] = r.choice((1, 3, 257))
        if "ii" in subscripts:
            lengths["j"] = lengths["i"]
        terms = subscripts.partition("->")[0].split(",")
        operands = []
        for i, term in enumerate(terms):
            shape: tuple[int, ...] = ()
            for letter in term.replace("...", "."):
                shape += (2, 3) if letter == "." else (lengths[letter],)
            operands.append(self.array(second if i == 1 else first, shape))
        keywords = {"dtype": np.float32} if r.random() < 0.3 else {}
        return Call("einsum", (subscripts, *operands), keywords)

    def modeled(self) -> tuple[str, Any, Any]:
        """Draw a device, and operands that it can multiply."""
        r = self.random
        dtype = r.choice(MODELED)
        having = [
            x.name for x in devices.values() if x.name in ("A100", "H100", "L40S")
        ]
        a, b = r.choice(STACKS), r.choice(STACKS[:4])
        n, m, k = r.choice(LENGTHS), r.choice(LENGTHS), r.choice(SUMMED[:7])
        x, y = self.array(dtype, (*a, n, k)), self.array(dtype, (*b, k, m))
        return r.choice(having), x, y


def outcome(function: Callable[[], Any]) -> Any:
    """Return the result, or the exception that is raised instead."""
    try:
        with np.errstate(all="ignore"):
            return function()
    except (TypeError, ValueError) as error:
        return error


def placed(x: Any) -> Any:
    """Copy an array to the GPU with equal strides."""
    if not isinstance(x, np.ndarray):
        return x
    steps = [np.sign(s) for s in x.strides]
    order = sorted(range(x.ndim), key=lambda i: -abs(x.strides[i]))
    forward = x[tuple(slice(None, None, -1 if s < 0 else 1) for s in steps)]
    one = forward[tuple(slice(None, 1 if s == 0 else None) for s in steps)]
    there = on_gpu(np.ascontiguousarray(one.transpose(order)).reshape(
        [one.shape[i] for i in order]))  # fmt: skip
    there = there.transpose(np.argsort(order).tolist()) if x.ndim else there
    there = there[tuple(slice(None, None, -1 if s < 0 else 1) for s in steps)]
    return cupy.broadcast_to(there, x.shape)


def compare(got: Any, want: Any, label: str) -> None:
    """Check that both results are equal, or errors of the same kind."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        same = isinstance(want, Exception) and isinstance(got, type(want))
        assert same, f"{label}: {got!r}, not {want!r}"
        return
    want = np.asarray(want)
    assert got.dtype == want.dtype, f"{label}: {got.dtype}, not {want.dtype}"
    assert got.shape == want.shape, f"{label}: {got.shape}, not {want.shape}"
    wrong = (bits(on_host(got)) != bits(want)).sum()
    assert not wrong, f"{label}: {wrong} of {want.size} differ"


def check(seed: int) -> None:
    """Make and check the call of this seed."""
    fuzz = Fuzz(seed)
    if seed % 4 == 3:
        device, x, y = fuzz.modeled()
        label = f"seed {seed}: {device} {x.dtype} {x.shape} {y.shape}"
        want = outcome(lambda: td.tensor_core.matmul(x, y, device=device))
        there = placed(x), placed(y)
        got = outcome(lambda: matmul.matmul(*there, mode="model", device=device))
    else:
        name, operands, keywords = fuzz.call()
        seen = [getattr(z, "shape", z) for z in operands]
        kinds = [str(getattr(z, "dtype", "")) for z in operands]
        label = f"seed {seed}: {name} {seen} {kinds} {keywords}"
        function = td.einsum if name == "einsum" else getattr(np, name)
        more = {"optimize": False} if name == "einsum" else {}
        want = outcome(lambda: function(*operands, **keywords, **more))
        there = tuple(map(placed, operands))
        got = outcome(lambda: numpy_products.dispatch(name, there, keywords))
    compare(got, want, label)


def main(arguments: list[str]) -> None:
    calls, first = map(int, [*arguments, *("400", "0")[len(arguments) :]])
    cupy.cuda.set_allocator(allocate)
    backends.use(HOST)
    for seed in range(first, first + calls):
        check(seed)
    print(f"{calls} calls from seed {first} are the CPU's")


if __name__ == "__main__":
    main(sys.argv[1:])
