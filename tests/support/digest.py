"""Print SHA-256 of results over fixed data, as JSON: equal on every instruction set.

    python -m tests.support.digest                 all formats
    python -m tests.support.digest tf32 ...        only these formats
    python -m tests.support.digest --count 3000    arrays of 3,000 numbers

For NumPy's own formats, the entries are results of matrix units.

Every entry covers the bits of the results and the floating-point flags raised. The
digest does not show whether results are right; the other tests do.
"""

import argparse
import functools
import hashlib
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tf32dtype as td

Array = np.ndarray[Any, Any]

COUNT = 12_000  # numbers in the array of a loop; the command line may change it
CASTS = ["?", *np.typecodes["AllInteger"], *"efdgFD", "U32"]
REDUCTIONS = ("add", "multiply", "maximum", "minimum", "fmax", "logical_or")
NUMPYS = ("float16", "float32", "float64")


class Digest:
    """Hash the results and flags of one entry."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.flags = 0

    def _raised(self, _: str, flags: int) -> None:
        self.flags |= flags

    def add(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Call the function and hash its results and the flags that it raises."""
        self.flags = 0
        with np.errstate(all="call", call=self._raised):
            results = function(*args, **kwargs)
        for result in results if isinstance(results, tuple) else (results,):
            result = np.asarray(result)
            self.hash.update(f"{result.dtype} {result.shape} {self.flags}".encode())
            if result.dtype.kind in "fc" and result.dtype.itemsize > 8:
                # The padding bytes of a long double have no defined value.
                result = result.astype("c16" if result.dtype.kind == "c" else "f8")
            self.hash.update(np.ascontiguousarray(result).tobytes())


def dtype_of(name: str) -> np.dtype[Any]:
    return np.dtype(name) if name in NUMPYS else td.formats[name].dtype


def codes(name: str, rng: np.random.Generator, shape: Any) -> Array:
    """Return random codes, which include every code of a narrow format."""
    if name in NUMPYS:
        items = rng.integers(0, 1 << 64, size=shape, dtype=np.uint64)
        dtype = dtype_of(name)
        items >>= np.uint64(64 - 8 * dtype.itemsize)
        return items.astype(f"u{dtype.itemsize}").view(dtype)
    form = td.formats[name]
    unused = 8 * form.itemsize - form.bits if name == "tf32" else 0
    drawn = rng.integers(0, 1 << form.bits, size=shape, dtype=np.uint32) << unused
    items = drawn.astype(f"u{form.itemsize}")
    return td.from_bits(items, form.dtype)


def moderate(name: str, rng: np.random.Generator, shape: Any) -> Array:
    """Return numbers of ordinary size, equal on every machine, as np.exp's are not."""
    return rounded(name, drawn(rng, shape))


def rounded(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(dtype_of(name))


def drawn(rng: np.random.Generator, shape: Any) -> Array:
    x = np.ldexp(1 + rng.random(shape), rng.integers(-3, 3, shape))
    return x * rng.choice([-1.0, 1.0], shape)


@functools.cache
def drawn_once(seed: int, *shape: int) -> Array:
    """Return random numbers for all formats, as drawing is slower than the test."""
    return drawn(np.random.default_rng(seed), shape)


@functools.cache
def ufuncs() -> list[np.ufunc]:
    """Return the element-wise ufuncs that take floats, by NumPy's own table."""
    found = []
    for name in sorted(dir(np)):
        ufunc = getattr(np, name)
        if not isinstance(ufunc, np.ufunc) or ufunc.__name__ != name:
            continue
        halves = "e" * ufunc.nin + "->"
        if not ufunc.signature and any(t.startswith(halves) for t in ufunc.types):
            found.append(ufunc)
    return found


def elementwise(name: str, digest: Callable[[str], Digest]) -> None:
    rng = np.random.default_rng(31)
    operands = [codes(name, rng, COUNT) for _ in range(2)]
    usual = [moderate(name, rng, COUNT) for _ in range(2)]
    for ufunc in ufuncs():
        entry = digest(ufunc.__name__)
        for pair in (operands, usual):
            given = pair[: ufunc.nin]
            entry.add(ufunc, *given)
            for piece in (slice(0, 37), slice(1, 5000, 3), slice(None, None, -2)):
                entry.add(ufunc, *(x[piece] for x in given))
    shifts = rng.integers(-200, 200, COUNT).astype(np.intc)
    digest("ldexp").add(np.ldexp, operands[0], shifts)
    digest("clip").add(np.clip, usual[0], *np.sort(usual[1][:2]))


def whole_numbers(kind: str, rng: np.random.Generator) -> Array:
    """Return integers of every magnitude, made without floats. NumPy's conversion of a
    float out of an integer type's range depends on the processor."""
    limits = np.iinfo(kind)
    drawn = rng.integers(limits.min, limits.max, COUNT, kind, endpoint=True)
    return drawn >> rng.integers(0, limits.bits, COUNT).astype(kind)


def casts(name: str, digest: Callable[[str], Digest]) -> None:
    rng = np.random.default_rng(32)
    dtype = td.formats[name].dtype
    x = codes(name, rng, COUNT)
    raw = rng.integers(0, 1 << 32, COUNT, dtype=np.uint32).view(np.float32)
    usual = np.ldexp(rng.standard_normal(COUNT), rng.integers(-140, 128, COUNT))
    for kind in CASTS:
        entry = digest(f"cast {kind}")
        entry.add(x.astype, kind)
        with np.errstate(all="ignore"):
            if kind in np.typecodes["AllInteger"]:
                near = whole_numbers(kind, rng)
            else:
                near = (usual[:500] if kind == "U32" else usual).astype(kind)
            bits = raw.astype(kind) if kind in "efdg" else near
        if near.dtype.kind != "c":
            swapped = near.astype(near.dtype.newbyteorder())
            for source in (near, bits, near[::-3], swapped):
                entry.add(source.astype, dtype)
    for other in td.formats:
        digest(f"cast {other}").add(x.astype, td.formats[other].dtype)
    for rounding in ("ties_to_away", "toward_zero", "to_odd", "stochastic"):
        draws = np.random.default_rng(33) if rounding == "stochastic" else None
        digest("quantize").add(td.quantize, usual, dtype, rounding=rounding, rng=draws)


def reductions(name: str, digest: Callable[[str], Digest]) -> None:
    rng = np.random.default_rng(34)
    x = moderate(name, rng, (37, 41, 19))
    flat = moderate(name, rng, COUNT)
    where = rng.random(x.shape) < 0.7
    for function in REDUCTIONS:
        ufunc, entry = getattr(np, function), digest(f"{function}.reduce")
        for array in (x, x[::-1, ::2], x.T, np.asfortranarray(x)):
            for axis in (0, 1, 2, (0, 2), None):
                entry.add(ufunc.reduce, array, axis=axis)
        if function != "logical_or":
            entry.add(ufunc.reduce, x, axis=1, where=where, initial=1)
        entry.add(ufunc.reduce, flat)
        entry.add(ufunc.accumulate, x, axis=0)
        entry.add(ufunc.reduceat, flat, [0, 5, 5, 700])
    for function in ("mean", "std", "cumsum", "argmax", "argsort", "sort"):
        entry = digest(function)
        entry.add(getattr(np, function), x, axis=1)
        entry.add(getattr(np, function), flat)


def products(name: str, digest: Callable[[str], Digest]) -> None:
    rng = np.random.default_rng(35)
    entry = digest("matmul")
    small = ((1, 1, 1), (3, 17, 5), (30, 90, 40), (65, 300, 33), (8, 1030, 9))
    for m, k, n in (*small, (128, 64, 96)):
        a, b = moderate(name, rng, (m, k)), moderate(name, rng, (k, n))
        entry.add(np.matmul, a, b)
        entry.add(np.matmul, a, np.ascontiguousarray(b.T).T)
        entry.add(np.matmul, a[::-1, ::2], b[::2, ::-1])
        entry.add(np.matmul, a, b, dtype=np.float32)
        digest("vecdot").add(np.vecdot, a[:, None, :], b.T)
        digest("matvec").add(np.matvec, a, b[:, 0])
        digest("vecmat").add(np.vecmat, a[0], b)
        digest("dot").add(np.dot, a[0], b[:, 0])
    special = codes(name, rng, (12, 40))
    entry.add(np.matmul, special, special.T)
    # More rows than an MC panel and more k than two KC panels. Then one subnormal
    # number, which the instruction for pairs of bfloat16 (src/matmul/bf16_dot.h) takes
    # for zero.
    shapes = (200, 2100), (2100, COUNT // 150)
    a, b = (rounded(name, drawn_once(37, *shape)) for shape in shapes)
    entry.add(np.matmul, a, b)
    a[190, 1500] = td.formats[name].smallest_subnormal
    entry.add(np.matmul, a, b)


def tensor_cores(name: str, digest: Callable[[str], Digest]) -> None:
    """Add products of a format on devices: long chains, and special values."""
    rng = np.random.default_rng(36)
    multiply = td.tensor_core.matmul
    for model in td.tensor_core.MODELS:
        if model.a != name:
            continue
        dtype = dtype_of(model.b)
        entry = digest(f"tensor_core {model.name}")
        keywords = {
            "device": model.device,
            "instruction": model.instruction,
            "accumulator": model.accumulator,
        }
        for m, k, n in ((3, 17, 5), (37, 300, COUNT // 150)):
            a = rounded(name, drawn_once(38, m, k))
            b = rounded(name, drawn_once(39, k, n)).astype(dtype)
            c = drawn_once(40, m, n).astype(model.accumulator)
            entry.add(multiply, a, b, c, **keywords)
        special = codes(name, rng, (12, 40))
        entry.add(multiply, special, codes(model.b, rng, (40, 9)), **keywords)


def digests(names: list[str]) -> dict[str, str]:
    found: dict[str, Digest] = {}
    for name in names:

        def entry(what: str, name: str = name) -> Digest:
            return found.setdefault(f"{name} {what}", Digest())

        if name not in NUMPYS:
            for part in (elementwise, casts, reductions, products):
                part(name, entry)
        tensor_cores(name, entry)
    return {key: digest.hash.hexdigest() for key, digest in found.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=[*td.formats, *NUMPYS])
    parser.add_argument("--count", type=int, default=COUNT)
    options = parser.parse_args()
    COUNT = options.count
    json.dump(
        {"isa": td.isa(), "digests": digests(options.names)}, sys.stdout, indent=1
    )
