"""Compute on tensor cores through the package: bits to arrays and back, with checks."""

from __future__ import annotations

from typing import Any

import numpy as np

import tf32dtype as td
from tests.reference import matrix_units as reference
from tests.tensor_core.cases import Array, Cases, exact, lists


def dtype(name: str) -> np.dtype[Any]:
    numpys = name in ("float16", "float32")
    return np.dtype(getattr(np if numpys else td, name))


def operand(name: str, bits: Array) -> Array:
    """Return an array of a format from float32 bits; tf32 keeps its 13 ignored bits."""
    if name in ("tf32", "float32"):
        return np.array(bits, order="C").view(dtype(name))
    with np.errstate(invalid="ignore"):  # a signaling NaN becomes a quiet one
        return bits.view(np.float32).astype(dtype(name))


def accumulator(name: str, bits: Array) -> Array:
    """Return float32 numbers from their bits, or the float16 numbers of the same
    values."""
    return operand(name, bits)


def bits(result: Any) -> Array:
    """Return float32 bits; the inverse of `accumulator`."""
    result = np.asarray(result)
    assert result.dtype in (np.float32, np.float16), result.dtype
    return result.astype(np.float32).view(np.uint32)


def matmul(model: Any, a: Array, b: Array, c: Array | None, **keywords: Any) -> Array:
    """Return the bits of the package's product of arrays that are given as bits."""
    result = td.tensor_core.matmul(
        operand(model.a, a),
        operand(model.b, b),
        None if c is None else accumulator(model.accumulator, c),
        device=model.device,
        instruction=model.instruction,
        accumulator=np.dtype(model.accumulator).type,
        **keywords,
    )
    assert result.dtype == model.accumulator
    return bits(result)


def diagonals(model: Any, cases: Cases, size: int) -> Array:
    """Compute each case on the diagonal of a product of `size` rows and columns."""
    count, k = cases.a.shape
    a, b, c = cases.take(np.arange(count + -count % size) % count)
    got = matmul(
        model,
        a.reshape(-1, size, k),
        b.reshape(-1, size, k).swapaxes(1, 2),
        np.repeat(c.reshape(-1, size, 1), size, axis=2),
    )
    return np.diagonal(got, axis1=1, axis2=2).ravel()[:count]


def blocks(model: Any, cases: Cases) -> Array:
    """Compute cases by the integer C code, with which tests compare the fast loops."""
    a, b = exact(model.a, cases.a), exact(model.b, cases.b)
    return np.asarray(td._core.mma_accumulate(model, a, b, cases.c))


def truth(model: Any, cases: Cases, **keywords: Any) -> Array:
    return np.array(reference.dots(model, *lists(cases), **keywords), np.uint32)


def floats(items: Array) -> Array:
    return np.asarray(items, np.uint32).view(np.float32)


def assert_results(name: str, cases: Cases, got: Array, want: Array) -> None:
    """Fail unless all bits are equal, and show the first cases that differ."""
    assert got.shape == want.shape
    wrong = np.flatnonzero(got != want)
    lines = [f"{name}: {len(wrong)} of {len(want)} differ"]
    for i in wrong[:4]:
        a, b = floats(cases.a[i]), floats(cases.b[i])
        there = np.flatnonzero((cases.a[i] | cases.b[i]) != 0)
        terms = ", ".join(f"{k}: {a[k]!s} * {b[k]!s}" for k in there[:8])
        lines.append(
            f"  k = {len(a)}, c = {cases.c[i]:#010x} = {floats(cases.c)[i]}; {terms}:"
            f" got {got[i]:#010x} = {floats(got)[i]},"
            f" want {want[i]:#010x} = {floats(want)[i]}"
        )
    assert not wrong.size, "\n".join(lines)
