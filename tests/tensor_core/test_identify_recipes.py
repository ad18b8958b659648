"""identify: epilogues, partial sums, scales, and the orders of CPU libraries.

Each test computes results with NumPy and `tensor_core.matmul`, and finds how by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise as pairs
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.tensor_core.arrays import Array
from tf32dtype.tensor_core.cpu_units import cpu_units
from tf32dtype.tensor_core.epilogues import fma
from tf32dtype.tensor_core.splits import columns, lanes, packed

pytestmark = pytest.mark.once

f32 = np.float32
bf16 = td.bfloat16
M, K, N = 24, 256, 40


def operands(dtype: Any, seed: int, k: int = K, n: int = N) -> tuple[Array, Array]:
    rng = np.random.default_rng([41, seed])
    return (
        rng.standard_normal((M, k)).astype(dtype),
        rng.standard_normal((k, n)).astype(dtype),
    )


def others(seed: int) -> tuple[Array, Array]:
    """Return c and a bias."""
    rng = np.random.default_rng([42, seed])
    c, bias = rng.standard_normal((M, N)), rng.standard_normal(N)
    return c.astype(f32), bias.astype(f32)


def h100(a: Array, b: Array, c: Any = None) -> Array:
    return td.tensor_core.matmul(a, b, c, device="H100")


def names(found: Sequence[Any]) -> list[str]:
    return [h.name.removeprefix(h.model.name).removeprefix(", ") for h in found]


def identified(a: Array, b: Array, c: Any, d: Array, **keywords: Any) -> list[str]:
    """Return the names of hypotheses that explain results and compute them again."""
    found = td.tensor_core.identify(a, b, c, d, **keywords)
    assert found, found
    given = {k: v for k, v in keywords.items() if k not in ("unit", "one_chain")}
    for h in found[:4]:
        assert h.explains == h.compared
        again = h.matmul(a, b, c, **given)
        assert again.dtype == d.dtype
        np.testing.assert_array_equal(again.astype(float), d.astype(float))
    return names(found)


def test_fma():
    """Equal to the exact result rounded once, also where float64 rounds twice."""
    rng = np.random.default_rng(43)
    x, y, z = rng.standard_normal((3, 2000)).astype(f32)
    z[::2] = -(x * y)[::2]
    z[1::4] *= 2.0 ** rng.integers(-60, 60, 500)
    halfway = f32([1 + 2.0**-12, 1 + 2.0**-12, 2.0**-140])
    x, y = (np.append(v, halfway) for v in (x, y))
    z = np.append(z, f32([2.0**-60, -(2.0**-60), 2.0**-149]))
    exact = [
        Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
        for a, b, c in zip(x, y, z, strict=True)
    ]
    for kind in (f32, np.float64):
        found = fma(*(v.astype(kind) for v in (x, y, z)))
        for value, result in zip(exact, found, strict=True):
            neighbors = (np.nextafter(result, kind(s)) for s in (-np.inf, np.inf))
            near = abs(Fraction(float(result)) - value)
            assert all(near <= abs(Fraction(float(n)) - value) for n in neighbors)
    special = fma(f32([np.inf, np.nan, np.inf]), f32([1, 1, 0]), f32([1, 1, 1]))
    np.testing.assert_array_equal(special, f32([np.inf, np.nan, np.nan]))


# -- epilogues -------------------------------------------------------------------------

ALPHA, BETA = f32(1.7), f32(0.3)
EPILOGUES = {
    "sum * alpha + beta * c": lambda s, c, bias: ALPHA * s + BETA * c,
    "fma(sum, alpha, beta * c)": lambda s, c, bias: fma(s, ALPHA, BETA * c),
    "fma(beta, c, sum * alpha)": lambda s, c, bias: fma(BETA, c, ALPHA * s),
    "sum * alpha + beta * c + bias": lambda s, c, bias: ALPHA * s + BETA * c + bias,
    "sum * alpha + bias + beta * c": lambda s, c, bias: ALPHA * s + bias + BETA * c,
    "fma(sum, alpha, bias)": lambda s, c, bias: fma(s, ALPHA, bias),
    "sum * alpha + bias": lambda s, c, bias: ALPHA * s + bias,
}


@pytest.mark.parametrize("formula", EPILOGUES)
def test_epilogues(formula):
    a, b = operands(bf16, 1)
    c, bias = others(1)
    given: dict[str, Any] = {"alpha": 1.7}
    if "beta" in formula:
        given["beta"] = 0.3
    if "bias" in formula:
        given["bias"] = bias
    used = c if "beta" in formula else None
    d = EPILOGUES[formula](h100(a, b), c, bias).astype(f32)
    assert identified(a, b, used, d, unit="H100", **given) == [formula] * 2


def test_c_in_the_accumulators_or_in_the_epilogue():
    a, b = operands(bf16, 2)
    c, bias = others(2)
    kept = {"unit": "H100", "bias": bias}
    begun = h100(a, b, BETA * c) + bias
    assert identified(a, b, c, begun, beta=0.3, **kept) == ["sum + bias"] * 2
    added = h100(a, b) + BETA * c + bias
    assert identified(a, b, c, added, beta=0.3, **kept) == ["sum + beta * c + bias"] * 2
    unused = np.full_like(c, np.nan)
    assert identified(a, b, unused, h100(a, b), beta=0, unit="H100") == [""] * 2


@pytest.mark.parametrize(
    ("formula", "compute"),
    {
        "sum + bias": lambda s, bias: s + bias,
        "round(sum) + bias": lambda s, bias: s.astype(bf16).astype(f32) + bias,
        "round(sum * alpha) + bias": lambda s, bias: (
            (ALPHA * s).astype(bf16).astype(f32) + bias
        ),
        "round(sum) * alpha + bias": lambda s, bias: (
            ALPHA * s.astype(bf16).astype(f32) + bias
        ),
    }.items(),
)
def test_one_or_two_roundings(formula, compute):
    a, b = operands(bf16, 3, n=800)
    bias = np.random.default_rng(3).standard_normal(800).astype(f32)
    alpha = 1.7 if "alpha" in formula else 1
    d = compute(h100(a, b), bias).astype(bf16)
    found = identified(
        a, b, None, d, bias=bias, alpha=alpha, unit="H100", one_chain=True
    )
    assert found[:2] == [f"{formula}, rounded to bfloat16"] * 2
    # Few bits do not distinguish a fused multiply-add.
    assert all("fma" in name for name in found[2:])


def test_a_bias_of_any_shape():
    a, b = operands(np.float16, 4)
    a = np.stack([a, -a])
    bias = np.random.default_rng(4).standard_normal((2, M, 1)).astype(np.float16)
    d = td.tensor_core.matmul(a, b, device="V100") + bias.astype(f32)
    assert identified(a, b, None, d, bias=bias, unit="V100") == ["sum + bias"]
    row = td.tensor_core.matmul(a[0, 0], b, device="V100") + f32(0.1)
    assert identified(a[0, 0], b, None, row, bias=f32(0.1), unit="V100", one_chain=True)


# -- partial sums ----------------------------------------------------------------------


def parts(a: Array, b: Array, count: int) -> list[Array]:
    ks = np.array_split(np.arange(a.shape[1]), count)
    return [h100(a[:, k], b[k]) for k in ks]


def pairwise(terms: list[Array], narrow: Any) -> Array:
    while len(terms) > 1:
        terms = [narrow(x + y) for x, y in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


@pytest.mark.parametrize("order", ["ascending", "descending", "pairwise"])
@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("dtype", [bf16, np.float16])
def test_partial_sums(order, stored, each, dtype):
    a, b = operands(np.float16, 5, n=600)

    def narrow(x: Array) -> Array:
        return x.astype(dtype).astype(f32)

    sums = parts(a, b, 4)
    if stored:
        sums = [narrow(x) for x in sums]
    after = narrow if each else np.asarray
    if order == "pairwise":
        total = pairwise(sums, after)
    else:
        total = np.zeros_like(sums[0])
        for x in sums if order == "ascending" else sums[::-1]:
            total = after(total + x)
    d = total.astype(dtype)
    found = td.tensor_core.identify(a, b, None, d, unit="H100", instruction="wgmma")
    name = np.dtype(dtype).name
    (true,) = [
        h
        for h in found
        if h.parts == (64,) * 4
        and h.order == order
        and not h.chained
        and h.turn is None
        and (h.partials, h.running)
        == (name if stored else None, name if each else None)
    ]
    words = [f"parts rounded to {name}"] * stored
    words += [f"rounded to {name} after each addition"] * each
    assert true.how == ", ".join(
        ["4 parts of 64 k", f"added {order}", *words, f"rounded to {name}"]
    )
    again = true.matmul(a, b)
    np.testing.assert_array_equal(again.astype(f32), d.astype(f32))


# -- scales ----------------------------------------------------------------------------

SCALED = {
    "part * (scale_a * scale_b) + acc": lambda p, x, y, acc: acc + p * (x * y),
    "fma(part, scale_a * scale_b, acc)": lambda p, x, y, acc: fma(p, x * y, acc),
    "part * scale_a * scale_b + acc": lambda p, x, y, acc: acc + p * x * y,
    "part * scale_b * scale_a + acc": lambda p, x, y, acc: acc + p * y * x,
}


def scales(seed: int, m: int, n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng([44, seed])
    x, y = rng.uniform(0.5, 2, (m, 3)), rng.uniform(0.5, 2, (3, n))
    return x.astype(f32), y.astype(f32)


@pytest.mark.parametrize("formula", SCALED)
@pytest.mark.parametrize("shape", ["blocks", "columns", "one scale_a"])
def test_scales_of_blocks(formula, shape):
    a, b = operands(td.float8_e4m3fn, 6, k=320, n=200)
    x, y = scales(6, 1 if shape == "one scale_a" else M, 200)
    if shape == "blocks":
        y = y[:, :2]
        wide = y[:, np.arange(200) // 128]
    else:
        wide = y
    acc = np.zeros((M, 200), f32)
    for i, k in enumerate((slice(0, 128), slice(128, 256), slice(256, 320))):
        part = h100(a[:, k], b[k])
        acc = SCALED[formula](part, x[:, i : i + 1], wide[i : i + 1], acc)
    found = identified(a, b, None, acc, scale_a=x, scale_b=y)
    how = f"3 parts of 2 * 128 + 64 k, added ascending, each as {formula}"
    assert found == [how]
    rounded = acc.astype(bf16)
    assert f"{how}, rounded to bfloat16" in identified(
        a, b, None, rounded, scale_a=x, scale_b=y, unit="H100"
    )


@pytest.mark.parametrize(
    ("formula", "compute"),
    {
        "sum * (scale_a * scale_b)": lambda s, x, y: s * (x * y),
        "sum * scale_a * scale_b": lambda s, x, y: s * x * y,
        "sum * scale_b * scale_a": lambda s, x, y: s * y * x,
    }.items(),
)
@pytest.mark.parametrize("per_tensor", [False, True])
def test_scales_of_rows(formula, compute, per_tensor):
    a, b = operands(td.float8_e4m3fn, 7, n=N)
    x, y = scales(7, M, N)
    x, y = (f32(1.3), f32(0.7)) if per_tensor else (x[:, :1], y[:1])
    d = compute(h100(a, b), x, y)
    found = identified(a, b, None, d, scale_a=x, scale_b=y, unit="H100")
    assert formula in found
    bias = np.linspace(-1, 1, N, dtype=f32)
    found = identified(
        a, b, None, d + bias, scale_a=x, scale_b=y, unit="H100", bias=bias
    )
    assert f"{formula} + bias" in found


def test_one_scale():
    a, b = operands(td.float8_e4m3fn, 8)
    x, _ = scales(8, M, 1)
    d = h100(a, b) * x[:, :1]
    found = identified(a, b, None, d, scale_a=x[:, :1], unit="H100", one_chain=True)
    assert found == ["sum * scale_a"]


def test_scales_of_blocks_and_c():
    a, b = operands(td.float8_e4m3fn, 9, k=256)
    x, y = (v[:, :2] if i == 0 else v[:2] for i, v in enumerate(scales(9, M, N)))
    c, _ = others(9)
    acc = BETA * c
    for i in range(2):
        k = slice(128 * i, 128 * i + 128)
        acc = acc + h100(a[:, k], b[k]) * (x[:, i : i + 1] * y[i : i + 1])
    found = identified(a, b, c, acc, scale_a=x, scale_b=y, beta=0.3)
    assert found == [
        "2 parts of 128 k, added ascending, each as part * (scale_a * scale_b) + acc"
    ]


# -- CPU libraries ---------------------------------------------------------------------


def chain(a: Array, b: Array, ks: Any, fused: bool = True, start: Any = None) -> Array:
    """Return chains of operations in the dtype of the operands."""
    total = np.zeros((len(a), b.shape[1]), a.dtype) if start is None else start
    for k in ks:
        x, y = a[:, k, np.newaxis], b[np.newaxis, k]
        total = fma(x, y, total) if fused else total + x * y
    return total


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_chains(dtype):
    a, b = operands(dtype, 10, k=150)
    name = np.dtype(dtype).name
    unit: Any = name
    for fused, how in ((True, "fused multiply-add"), (False, "multiply, then add")):
        d = chain(a, b, range(150), fused)
        found = td.tensor_core.identify(a, b, None, d, unit=unit)
        assert [h.name for h in found] == [f"{name}, {how}: {name} -> {name}"]
        np.testing.assert_array_equal(found[0].matmul(a, b), d)
        text = str(found)
        assert f"    {name}, {how}: {name} -> {name}" in text.splitlines()
        assert "MI100" not in text
        assert "A100" not in text
    c = np.random.default_rng(10).standard_normal((M, N)).astype(dtype)
    d = chain(a, b, range(150), start=c)
    assert identified(a, b, c, d, unit=unit) == [""]
    even = chain(a, b, [*range(0, 144, 2), *range(144, 150)])
    d = even + chain(a, b, range(1, 144, 2))
    found = td.tensor_core.identify(a, b, None, d, unit=unit)
    assert [h.model.instruction for h in found] == [
        "fused multiply-add, even and odd k"
    ]


@pytest.mark.parametrize("dtype", [np.float16, bf16, td.tf32])
def test_narrow_operands(dtype):
    """Products of these numbers are exact, so that fused operations are the same."""
    a, b = operands(dtype, 11)
    d = chain(a.astype(f32), b.astype(f32), range(K))
    found = td.tensor_core.identify(a, b, None, d, unit="float32")
    units = {h.model.instruction for h in found}
    assert units == {"fused multiply-add", "multiply, then add"}
    narrow = d.astype(bf16)
    assert td.tensor_core.identify(a, b, None, narrow, unit="float32")


@pytest.mark.parametrize(
    "lengths",
    [
        (104, 104, 92),
        (128, 96, 76),
        (64,) * 4 + (44,),
        (8,) * 37 + (4,),
        (16,) * 18 + (8, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("alpha", [1, 1.7])
def test_blocks_of_k(lengths, alpha):
    """The blocks that a library packs are added to C one after the other."""
    a, b = operands(np.float32, 12, k=300)
    ends = np.cumsum([0, *lengths])
    for fused in (True, False):
        total = np.zeros((M, N), f32)
        for first, last in pairs(ends):
            part = chain(a, b, range(first, last))
            total = fma(part, f32(alpha), total) if fused else total + f32(alpha) * part
        found = td.tensor_core.identify(a, b, None, total, unit="float32", alpha=alpha)
        assert lengths in {h.parts for h in found}
        (true,) = [h for h in found if h.parts == lengths]
        np.testing.assert_array_equal(true.matmul(a, b, alpha=alpha), total)
        if alpha != 1:
            assert true.promotion is not None
            formula = "fma(part, alpha, acc)" if fused else "part * alpha + acc"
            assert f"each as {formula}" in true.name


def test_packed():
    """OpenBLAS divides k into whole blocks, then two halves."""
    assert packed(1000, 320, 16).lengths == (320, 320, 192, 168)
    assert packed(1024, 320, 16).lengths == (320, 320, 192, 192)
    assert packed(1024, 512, 16).lengths == (512, 512)
    assert packed(1000, 448, 16).lengths == (448, 288, 264)
    assert packed(300, 320, 16).lengths == (300,)
    assert columns(101, 8).lengths == (8,) * 12 + (4, 1)
    assert columns(64, 8).lengths == (8,) * 8
    assert [len(k) for k in lanes(101, 32, rest=True).indices()] == [3] * 32 + [5]
    assert lanes(101, 32, rest=True).indices()[-1].tolist() == [96, 97, 98, 99, 100]
    assert lanes(101, 32, rest=False).indices()[4].tolist() == [4, 36, 68, 100]


def fold(terms: Array, order: str) -> Array:
    """Add the lanes along the first axis."""
    while len(terms) > 1:
        half = len(terms) // 2
        if order == "ascending":
            terms = np.stack([terms[0] + terms[1], *terms[2:]])
        elif order == "pairwise" or (order == "halves, pairwise" and len(terms) == 4):
            terms = terms[::2] + terms[1::2]
        else:
            terms = terms[:half] + terms[half:]
    return terms[0]


LANES = [
    (8, 1, "ascending", "ascending", False, "8 lanes ascending"),
    (16, 1, "ascending", "halves", False, "16 lanes by halves"),
    (8, 4, "pairwise", "pairwise", False, "4 vectors pairwise, then 8 lanes pairwise"),
    (4, 4, "ascending", "halves", False, "4 vectors ascending, then 4 lanes by halves"),
    (8, 2, "halves", "halves, pairwise", False,
     "2 vectors ascending, then 8 lanes by halves, the last 4 pairwise"),
    (16, 4, "ascending", "halves, pairwise", True,
     "halves of each 16-lane vector, then 4 vectors ascending, then 8 lanes by"
     " halves, the last 4 pairwise"),
]  # fmt: skip


@pytest.mark.parametrize(("width", "vectors", "over", "order", "halved", "how"), LANES)
@pytest.mark.parametrize("k", [256, 301])
def test_lanes(width, vectors, over, order, halved, how, k):
    a, b = operands(np.float32, 13, k=k)
    count = width * vectors
    for rest in (False, True):
        whole = k - k % count if rest else k
        sums = np.stack([chain(a, b, range(i, whole, count)) for i in range(count)])
        sums = sums.reshape(vectors, width, M, N)
        if halved:
            sums = sums[:, : width // 2] + sums[:, width // 2 :]
        d = fold(fold(sums, over), order)
        more = ""
        if rest and k > whole:
            d = d + chain(a, b, range(whole, k))
            more = f", then {k - whole} k more" if k - whole > 1 else ""
        assert how + more in identified(a, b, None, d, unit="float32")


def test_of_numpy():
    """NumPy multiplies tiles of whole vectors in an order that is found."""
    for dtype in (np.float32, np.float64):
        rng = np.random.default_rng(14)
        a, b = rng.standard_normal((2, 64, 64)).astype(dtype)
        unit: Any = np.dtype(dtype).name
        found = td.tensor_core.identify(a, b, None, a @ b, unit=unit)
        nearest = found or found.nearest
        assert nearest[0].explains > 0.5 * nearest[0].compared


def test_units_differ_in_names_only_where_they_should():
    units = cpu_units("float32", "bfloat16", "float16")
    assert units[0].name == "float32, fused multiply-add: bfloat16 x float16 -> float32"
    assert len({unit.name for unit in units}) == len(units) == 3


# -- arguments -------------------------------------------------------------------------


def test_errors():
    a, b = operands(np.float16, 15)
    d = h100(a, b)

    def call(**keywords: Any) -> object:
        return td.tensor_core.identify(a, b, None, d, **keywords)

    with pytest.raises(TypeError, match="alpha must be a number; got 'x'"):
        call(alpha="x")
    with pytest.raises(ValueError, match="beta must be finite; got inf"):
        call(beta=np.inf)
    with pytest.raises(ValueError, match=r"bias must broadcast to shape \(24, 40\)"):
        call(bias=np.ones(3, f32))
    with pytest.raises(TypeError, match="bias must be real numbers; got complex128"):
        call(bias=1j)
    with pytest.raises(ValueError, match=r"scale_a must be a number, or have shape"):
        call(scale_a=np.ones((M, 3), f32))
    with pytest.raises(ValueError, match="scale_b must be a number or have two axes"):
        call(scale_b=np.ones(2, f32))
    with pytest.raises(ValueError, match="scale_a must broadcast to a stack"):
        call(scale_a=np.ones((3, M, 1), f32))
    with pytest.raises(ValueError, match=r"of the unit's sums, float64, or .* float32"):
        call(unit="float64")
    with pytest.raises(
        ValueError, match=r"d must have .*float32, float16.*; got float64"
    ):
        td.tensor_core.identify(a, b, None, d.astype(float), unit="V100")
    with pytest.raises(ValueError, match="into float64; got float16 x float16"):
        td.tensor_core.identify(a, b, None, d.astype(float))


# -- large products --------------------------------------------------------------------


def test_a_sample_of_a_large_product():
    """Hypotheses that explain a sample are tried on all; the nearest are not."""
    rng = np.random.default_rng(16)
    a, b = rng.standard_normal((2, 320, 320)).astype(bf16)
    d = h100(a, b)
    found = td.tensor_core.identify(a, b, None, d)
    assert found[0].how == "one chain"
    assert found[0].compared == d.size
    assert all(0 < h.compared < d.size for h in found.nearest)
    d[7, 300] += 1
    found = td.tensor_core.identify(a, b, None, d)
    assert not found
    assert (found.nearest[0].explains, found.nearest[0].compared) == (
        d.size - 1,
        d.size,
    )
    stack = rng.standard_normal((300, 8, 32)).astype(bf16)
    d = h100(stack, b[:32])
    assert td.tensor_core.identify(stack, b[:32], None, d)[0].compared == d.size
