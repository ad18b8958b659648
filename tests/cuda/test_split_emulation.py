"""float32 products by tensor cores, on a GPU and without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.block_cases import chained
from tests.matmul.precision_cases import (
    KINDS,
    LARGEST,
    SPLIT,
    assert_bits,
    bits,
    drawn,
    floats,
    named,
)
from tests.support.compiled import split as split_on_cpu
from tests.support.cuda import HOST, backend, cupy  # noqa: F401
from tests.support.cuda_products import by_plan
from tests.support.sass import ARCHITECTURES, check
from tf32dtype._formats.quantize import Tf32Rounding as Rounding
from tf32dtype._matmul.precisions import PRECISIONS, find_precision
from tf32dtype.cuda._matmul import native, split_emulation
from tf32dtype.cuda._matmul.tile_options import Matrices
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.storage import raw

Array = np.ndarray[Any, Any]

ROUNDED = [
    *({"precision": "tf32", "rounding": r} for r in get_args(Rounding)),
    {"precision": "bf16"},
    {"precision": "f16"},
]
SCALED = [
    {"precision": p, "scale": s}
    for p in ("fp8_e4m3", "fp8_e5m2")
    for s in ("tensor", "row")
]
EVERY = [{"precision": "f32"}, *ROUNDED, *SCALED, *({"precision": p} for p in SPLIT)]
each = pytest.mark.parametrize("keywords", EVERY, ids=named)
each_split = pytest.mark.parametrize("precision", SPLIT)


def multiply(machine: Any, a: Any, b: Any, **keywords: Any) -> Array:
    """Return the product of two matrices, or of stacks, from NumPy or a GPU."""
    x, y = (machine.put(z) if isinstance(z, np.ndarray) else z for z in (a, b))
    flat = x.ndim == 2
    if flat:
        x, y = x[None], y[None]
    out = cupy.empty((len(x), x.shape[1], y.shape[2]), np.float32)
    before = Counter(machine.counts) if machine is HOST else None
    by_plan(split_emulation.plan, x, y, out, **keywords)
    if before is not None:
        assert machine.counts["get"] == before["get"]
        made = machine.counts["call"] - before["call"]  # NumPy's results, put back
        assert machine.counts["put"] <= before["put"] + made
        assert (
            not made
            or keywords["precision"] not in (*SPLIT, "tf32", "bf16")
            or out.size == 0
            or x.shape[2] == 0
        )
    found = machine.get(out)
    return found[0] if flat else found


def snr(result: Array, a: Array, b: Array) -> float:
    exact = a.astype(np.float64) @ b.astype(np.float64)
    noise = np.linalg.norm(result - exact)
    return float(20 * np.log10(np.linalg.norm(exact) / noise))


# -- split components ------------------------------------------------------------------


def numbers() -> Array:
    """Return every kind of float32, and numbers around each change of exponent."""
    rng = np.random.default_rng(1)
    exponents = np.arange(0, 256, dtype=np.int64) << 23
    near = (exponents[:, None] + [-65537, -256, -2, -1, 0, 1, 2, 255, 0x8000]).ravel()
    top = rng.integers(0x7F7F0000, 0x7F800000, 500)
    subnormal = np.r_[np.arange(70), rng.integers(0, 1 << 23, 500)]
    magnitudes = np.r_[near, top, subnormal, rng.integers(0, 1 << 31, 3000)]
    magnitudes = magnitudes[(magnitudes >= 0) & (magnitudes < 1 << 31)]
    return floats(np.r_[magnitudes, magnitudes | 1 << 31].astype(np.uint32))


def split(
    machine: Any, x: Array, format: str, parts: int, reversed: bool, saturates: bool
):
    """Return (parts, lines, k) numbers by the kernel, without its padding of each
    component."""
    lines, k = x.shape
    padded = -(-k // 8) * 8
    row = next(y for y in PRECISIONS if (y.format, y.components) == (format, parts))
    both = [machine.put(z) for z in (x, x[::-1])[:: -1 if reversed else 1]]
    layouts = [Matrices((1, *z.shape), (0, *z.strides), z.dtype) for z in both]
    plan = split_emulation.plan_split(*layouts, row, padded, saturates)
    made = plan(*(i.view(z.data) for i, z in zip(layouts, both, strict=True)))
    made = raw(made[reversed]).array
    found = machine.get(made).reshape(lines, parts, padded)
    assert not found[:, :, k:].any()
    stored = found.view(getattr(td, format)).astype(np.float32)
    return stored.transpose(1, 0, 2)[:: -1 if reversed else 1, :, :k]


@pytest.mark.parametrize("descends", [False, True])
@pytest.mark.parametrize(
    ("format", "parts"), [("bfloat16", 3), ("bfloat16", 2), ("tf32", 2)]
)
def test_parts_are_those_of_the_cpu(backend, format, parts, descends):  # noqa: F811
    x = numbers()
    HOST.descends = descends
    for columns, reversed in ((37, False), (len(x) // 3, True)):
        given = np.resize(x, (-(-len(x) // columns), columns))
        found = split(backend, given, format, parts, reversed, saturates=True)
        want = split_on_cpu(given, parts, format)
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(found), nan)
        np.testing.assert_array_equal(bits(found)[~nan], bits(want)[~nan])
        propagated = split(backend, given, format, parts, reversed, saturates=False)
        finite = np.broadcast_to(np.isfinite(given), found.shape)
        np.testing.assert_array_equal(bits(propagated)[finite], bits(found)[finite])
        assert np.isnan(propagated[0][~finite[0]]).all()


def test_three_parts_are_the_number(backend):  # noqa: F811
    x = numbers()
    x = x[np.isfinite(x)][None]
    parts = split(backend, x, "bfloat16", 3, False, False).astype(np.float64)
    np.testing.assert_array_equal(parts[0] + parts[1] / 256 + parts[2] / 65536, x)


@each_split
def test_steps_are_all_products_of_parts(precision):
    """Each k of each pair of components occurs once, times the factor of its split
    order."""
    mode = find_precision(precision)
    p = 8 if mode.format == "bfloat16" else 11
    for depth in (8, 64, 72, 200):
        for chunk in (24, 128, 8, 512):
            out: Counter[tuple[int, int, int]] = Counter()
            made = [*split_emulation.steps(mode, depth, chunk)]
            assert [step.leading for step in made] == [False] * (len(made) - 1) + [True]
            assert made[-1].depth == depth
            for step in made:
                assert step.beta or not out
                for key in out:
                    out[key] *= step.beta
                for r in range(step.depth):
                    i, k = divmod(step.in_a + r, depth)
                    reversed_j, same_k = divmod(step.in_b + r, depth)
                    assert k == same_k
                    out[i, mode.components - 1 - reversed_j, k] += 1
                assert step.in_a % 8 == step.in_b % 8 == step.depth % 8 == 0
                assert step.depth <= chunk or step.leading
            assert out == {
                (i, j, k): 2.0 ** (-p * (i + j))
                for i in range(mode.components)
                for j in range(mode.components)
                for k in range(depth)
                if i + j < mode.split_orders
            }


@each_split
@pytest.mark.parametrize("arch", [*ARCHITECTURES, "sm_75", "sm_999a"])
def test_chunks(precision, arch):
    """Chunks suit the kernel. Unknown devices get the chunks of devices that truncate
    most."""
    size = 2 if precision.startswith("bf16") else 4
    for k in (1, 2, 8, 9, 64, 128, 129, 1000, 16384, 10**6):
        chunks = split_emulation.chunks_for(arch, precision, k)
        assert chunks.others % 8 == 0
        assert chunks.leading in (8, 16)
        assert chunks.leading * size in (16, 32)
        assert chunks.stretch * size % native.STRETCHES == 0
        assert chunks.stretch >= 32 * chunks.leading
        if arch.startswith(("sm_75", "sm_999", "sm_8")):
            assert chunks == split_emulation.chunks_for("sm_80", precision, k)


def test_launches(backend, monkeypatch):  # noqa: F811
    """Each split order has one pass over the results, and their sum has none."""
    if backend is not HOST:
        pytest.skip("counted on the host")
    rng = np.random.default_rng(6)
    for k in (256, 4096):
        a, b = rng.random((2, k), np.float32), rng.random((k, 2), np.float32)
        # The split and the patches. Between them, one product, or all.
        for arch, gemms, launches in (("sm_80", 4, 3), ("sm_90a", 0, 3)):
            monkeypatch.setattr(HOST, "arch", arch)
            before = Counter(backend.counts)
            multiply(backend, a, b, precision="bf16x9")
            assert backend.counts["gemm"] - before["gemm"] == gemms
            assert backend.counts["launch"] - before["launch"] == launches
    steps = split_emulation.steps(
        find_precision("bf16x9"), 16384, split_emulation.OTHERS
    )
    assert len(list(steps)) == 8 + 1


# -- accuracy --------------------------------------------------------------------------

FILLS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "exp(3 normal)": lambda rng, shape: np.exp(3 * rng.standard_normal(shape)),
    "40 octaves": lambda rng, shape: (
        rng.choice([-1, 1], shape) * np.exp2(rng.uniform(-20, 20, shape))
    ),
}
LENGTHS = [64, 256, 1024, 4096, pytest.param(16384, marks=pytest.mark.exhaustive)]
#: sums of numbers that differ by many binades
WIDE = ("exp(3 normal)", "40 octaves")


def judged(
    machine: Any, kind: str, k: int, size: int, draws: int, **keywords: Any
) -> Array:
    """Return the ratio in dB and the mean error over |A| |B|, ours and a float32
    chain's."""
    rng = np.random.default_rng((k, 9))  # not those that chose the chunks
    found = []
    for _ in range(draws):
        a, b = (
            FILLS[kind](rng, shape).astype(np.float32)
            for shape in ((size, k), (k, size))
        )
        exact, whole = a.astype(np.float64) @ b, abs(a).astype(np.float64) @ abs(b)
        results = multiply(machine, a, b, **keywords), chained(a, b.T)
        found.append([[snr(x, a, b), np.mean(abs(x - exact) / whole)] for x in results])
    return np.mean(found, axis=0)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("k", LENGTHS)
@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("device", ["A100", "H100"])
def test_nine_products_are_as_good_as_float32(backend, kind, k, device, monkeypatch):  # noqa: F811
    """For wide numbers, few errors make up the power. The test compares mean errors
    there."""
    if backend is HOST:
        monkeypatch.setattr(HOST, "gemm_device", device)
        monkeypatch.setattr(HOST, "arch", {"A100": "sm_80", "H100": "sm_90a"}[device])
    (ratio, error), (float32s, its_error) = judged(
        backend, kind, k, 24, 2, precision="bf16x9"
    )
    print(kind, k, device, ratio, float32s, error / its_error)
    if device == "A100" and kind in WIDE and k < 256:
        return  # a tensor-core block truncates more than so short a sum rounds
    assert error <= its_error
    assert ratio >= float32s or kind in WIDE


#: From docs/benchmarks/accuracy.md, "Long products". For numbers of one sign, the
#: truncation of the tensor core shows. These figures are therefore NumPy's.
FIGURES = {"bf16x6": 138, "tf32x3": 133, "bf16x3": 106.5}


@pytest.mark.parametrize("k", [256, 4096])
@pytest.mark.parametrize("precision", FIGURES)
def test_the_accuracy_of_other_splits(backend, precision, k):  # noqa: F811
    (ours, _), _ = judged(backend, "normal", k, 24, 1, precision=precision)
    assert ours > FIGURES[precision]
    assert ours < 109 or precision != "bf16x3"


@pytest.mark.parametrize(
    ("keywords", "figure"),
    [
        *zip([*ROUNDED[::3], ROUNDED[4]], [70.6, 52.5, 70.6], strict=True),
        *zip(SCALED[::2], [28.5, 22.6], strict=True),
    ],
)
def test_the_accuracy_of_rounded_operands(backend, keywords, figure):  # noqa: F811
    (ours, _), _ = judged(backend, "normal", 512, 24, 1, **keywords)
    assert abs(ours - figure) < 1


# -- every bit -------------------------------------------------------------------------


@pytest.mark.parametrize("keywords", ROUNDED, ids=named)
def test_rounded_operands_are_the_devices(backend, keywords):  # noqa: F811
    """cuBLAS may sum in another order than the model, whose order the host uses."""
    if backend is not HOST:
        pytest.skip("whose order of sums is not known")
    for i, kind in enumerate(KINDS):
        for shape in ((3, 5, 2), (9, 70, 33)):
            a, b = drawn(kind, shape, i)
            with np.errstate(all="ignore"):
                want = td.matmul(a, b, **keywords, device="H100")
            assert_bits(multiply(backend, a, b, **keywords), bits(want))


@pytest.mark.parametrize("keywords", SCALED, ids=named)
def test_scales(backend, keywords):  # noqa: F811
    """The scales are those of all k. Only one product is nonzero, so that order is
    irrelevant."""
    for i, kind in enumerate([*KINDS, "sprinkled"]):
        a, b = drawn(kind, (7, 40, 9), i)
        keep = np.zeros((7, 40), bool)
        keep[:, 3] = True
        b[[k for k in range(40) if k != 3]] = 0
        with np.errstate(all="ignore"):
            a[~keep & ~np.isfinite(a)] = 1  # Inf times 0
            want = td.matmul(a, b, **keywords)
        found = multiply(backend, a, b, **keywords)
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(found), nan)
        np.testing.assert_array_equal(found[~nan], want[~nan])


@each
def test_no_k_and_nothing(backend, keywords):  # noqa: F811
    a, b = np.empty((3, 0), np.float32), np.empty((0, 2), np.float32)
    assert_bits(multiply(backend, a, b, **keywords), np.zeros((3, 2), np.uint32))
    for shape in ((0, 4, 2), (3, 4, 0), (0, 0, 0)):
        m, k, n = shape
        a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
        assert multiply(backend, a, b, **keywords).shape == (m, n)


@each
def test_layouts_and_stacks(backend, keywords):  # noqa: F811
    """Products are equal for any layout, and a repeated matrix is read once. cuBLAS's
    order of sums depends on the layout. On a GPU, sums may therefore differ."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal((3, 35, 41)).astype(np.float32)
    b = rng.standard_normal((3, 41, 34)).astype(np.float32)
    one = [multiply(backend, x, y, **keywords) for x, y in zip(a, b, strict=True)]
    want = np.stack(one)

    def equal(found: Array, want: Array) -> None:
        if backend is HOST:
            assert_bits(found, bits(want))
        else:
            np.testing.assert_allclose(found, want, rtol=0, atol=1e-4)

    def same(x: Any, y: Any, order: Any = slice(None)) -> None:
        equal(multiply(backend, x, y, **keywords), want[order])

    x, y = backend.put(a), backend.put(b)
    same(x, y)
    same(x[::-1], y[::-1], slice(None, None, -1))
    turned = [
        backend.put(z.transpose(0, 2, 1).copy()).transpose(0, 2, 1) for z in (a, b)
    ]
    same(*turned)
    spread = [backend.put(np.repeat(z, 2, axis=2))[:, :, ::2] for z in (a, b)]
    same(*spread)
    backwards = backend.put(a[:, ::-1, ::-1].copy())[:, ::-1, ::-1]
    same(backwards, y)
    first = [multiply(backend, a[0], z, **keywords) for z in b]
    found = multiply(backend, cupy.broadcast_to(x[:1], x.shape), y, **keywords)
    equal(found, np.stack(first))
    both = multiply(
        backend, cupy.broadcast_to(x[:1], x.shape), cupy.broadcast_to(y[:1], y.shape),
        **keywords,
    )  # fmt: skip
    equal(both, np.broadcast_to(want[0], want.shape))


@each_split
def test_what_cublas_is_given(backend, precision, monkeypatch):  # noqa: F811
    """Operands are contiguous along k, with rows at multiples of 16 bytes. C is not
    copied."""
    if backend is not HOST:
        pytest.skip("which looks into the backend")
    monkeypatch.setattr(HOST, "arch", "sm_80")
    gemm = backend.gemm

    def watched(a: Any, b: Any, c: Any, kind: str, alpha: float, beta: float) -> None:
        assert kind == ("tf32" if precision == "tf32x3" else "bfloat16")
        for x, close in ((a, 1), (b, 0)):
            assert x.strides[1 + close] == x.itemsize
            assert x.strides[2 - close] % 16 == 0
            assert x.data.ptr % 16 == 0
            assert x.shape[1 + close] % 8 == 0
        gemm(a, b, c, kind, alpha, beta)

    monkeypatch.setattr(backend, "gemm", watched)
    a, b = drawn("normal", (5, 77, 3), 0)
    multiply(backend, a, b, precision=precision)
    assert backend.counts["gemm"] == find_precision(precision).split_orders - 1
    chunks = split_emulation.Chunks(8, 16, 128)
    multiply(backend, a, b, precision=precision, chunks=chunks)
    assert backend.counts["gemm"] > 2 * find_precision(precision).split_orders


# -- Inf, NaN and the ends of the range ------------------------------------------------


def classes(x: Array) -> Array:
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0)).astype(int)


@each_split
def test_infinities_and_nans_are_those_of_float32(backend, precision):  # noqa: F811
    for seed, kind in enumerate(["sprinkled", "any", "sprinkled", "half"]):
        for shape in ((6, 5, 4), (13, 300, 17)):
            a, b = drawn(kind, shape, seed)
            with np.errstate(all="ignore"):
                whole = td.matmul(a, b, precision="f32")
            found = multiply(backend, a, b, precision=precision)
            special = ~np.isfinite(a).all(1)[:, None] | ~np.isfinite(b).all(0)
            assert special.any() or kind != "sprinkled"
            np.testing.assert_array_equal(bits(found)[special], bits(whole)[special])
            if kind != "any":  # whose finite sums may leave the range
                np.testing.assert_array_equal(classes(found), classes(whole))


def test_classes_are_numpys(backend):  # noqa: F811
    """All pairs of special values, with another number."""
    values = np.float32([0, -0.0, 1, -2, np.inf, -np.inf, np.nan, 1e38, 1e-45])
    a = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2)
    with np.errstate(all="ignore"):
        want = a @ a.T
    found = multiply(backend, a, a.T.copy(), precision="bf16x9")
    np.testing.assert_array_equal(classes(found), classes(want))


@each_split
def test_saturation(backend, precision):  # noqa: F811
    """Inf counts as the largest number; a NaN stays one, with the canonical bits."""
    keywords = {"precision": precision, "special_values": "saturate"}
    for seed in range(3):
        a, b = drawn("sprinkled", (6, 35, 7), seed)
        b = np.float32(2.0**-20) * np.where(np.isnan(b), np.float32("nan"), b)
        least, most = np.float32(-LARGEST), np.float32(LARGEST)
        replaced = [np.clip(x, least, most) for x in (a, b)]
        found = multiply(backend, a, b, **keywords)
        assert_bits(found, bits(multiply(backend, *replaced, precision=precision)))
        nan = np.isnan(a).any(1)[:, None] | np.isnan(b).any(0)
        np.testing.assert_array_equal(np.isnan(found), nan)
        assert (bits(found)[nan] == 0x7FC00000).all()


@each_split
def test_the_top_of_the_range(backend, precision):  # noqa: F811
    """Components, or split orders, may overflow although the product does not."""
    rng = np.random.default_rng(4)
    last = floats(0x7F7F0000 + np.r_[0, 1, 255, 65535, rng.integers(0, 65536, 40)])
    factors = np.float32(
        [1, 0.5, 1 - 2**-9, 0.998, 0.99, 0.7, -0.9985, 2.0**-110, 1.5, 2]
    )
    exact = last[:, None].astype(np.float64) * factors
    found = multiply(backend, last[:, None], factors[None], precision=precision)
    beyond = abs(exact) > LARGEST * (1 + 2.0**-26)
    assert beyond.any()
    np.testing.assert_array_equal(np.isinf(found), beyond)
    np.testing.assert_array_equal(np.sign(found), np.sign(exact))
    good = (
        2.0**-14
        if precision == "bf16x3"
        else 2.0**-20
        if precision == "tf32x3"
        else 2.0**-23
    )
    assert abs(found[~beyond] / exact[~beyond] - 1).max() < good
    # sums of one sign that end near the largest number
    for total in (0.5, 0.9, 0.999, 1.001, 1.2, 4):
        a = rng.uniform(0.5, 1, (3, 90)).astype(np.float32)
        a *= np.float32(2.0**100)
        b = rng.uniform(0.5, 1, (90, 4))
        b *= total * LARGEST / (a.astype(np.float64) @ b).mean(0)
        b = b.astype(np.float32)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        found = multiply(backend, a, -b, precision=precision)
        inside = exact < LARGEST * (1 - 2.0**-14)
        outside = exact > LARGEST * (1 + 2.0**-14)
        np.testing.assert_allclose(found[inside], -exact[inside], rtol=16 * good)
        assert np.isneginf(found[outside]).all()


@each_split
def test_subnormal_numbers(backend, precision):  # noqa: F811
    """Subnormal operands are as accurate as others, if the split has their bits.
    Subnormal results are within some units of float32's last place."""
    rng = np.random.default_rng(5)
    a = floats(rng.integers(1, 1 << 23, (17, 60)) | rng.integers(0, 2, (17, 60)) << 31)
    b = np.ldexp(rng.standard_normal((60, 18)), 100).astype(np.float32)
    least = {"bf16x9": 128, "bf16x6": 80, "bf16x3": 80, "tf32x3": 90}[precision]
    assert snr(multiply(backend, a, b, precision=precision), a, b) > least
    c = np.ldexp(rng.standard_normal((60, 18)), 2).astype(np.float32)
    if precision == "bf16x9":  # the others lack products that matter in this case
        exact = a.astype(np.float64) @ c.astype(np.float64)
        found = multiply(backend, a, c, precision=precision)
        assert (abs(found - exact) <= 32 * 2.0**-149).all()
        tiny = np.float32([[1e-45, 0, 1e-40], [-1e-42, 5, 0]])
        ones = np.float32([[1], [0], [0]])
        found = multiply(backend, tiny, ones, precision=precision)
        assert_bits(found, bits(tiny[:, :1]))


# -- rejected arguments ----------------------------------------------------------------


def test_what_is_unknown_is_refused_before_anything(backend):  # noqa: F811
    a = np.ones((2, 2), np.float32)
    for keywords, text in (
        ({"precision": "bf16x7"}, "precision must be"),
        ({"precision": "bf16", "rounding": "toward_zero"}, "toward_zero' must be"),
        ({"precision": "bf16x9", "scale": "row"}, "scale='row' must be"),
        ({"precision": "f32", "special_values": "saturate"}, "special_values='sat"),
        ({"precision": "bf16x9", "special_values": "no"}, "special_values must be"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            multiply(backend, a, a, **keywords)
    for mode in PRECISIONS:
        found = multiply(backend, a, a, precision=mode.preset)
        assert_bits(found, bits(td.matmul(a, a, precision=mode.short)))


# -- the kernels -----------------------------------------------------------------------

SHIPPED = [
    *(split_emulation.split_kernel(*x) for x in (("bfloat16", 3), ("tf32", 2))),
    Kernel("cuda/matmul/patch_specials.cu", "patch"),
    *(
        Kernel(
            "cuda/matmul/round_operands.cu",
            "narrow",
            split_emulation.narrow_options(mode.format),
        )
        for mode in PRECISIONS
        if mode.components == 1 and mode.format != "float32"
    ),
]


def each_kernel() -> Iterator[Any]:
    """Yield kernels on each architecture; slow ones in the plain tier on only one."""
    for kernel in SHIPPED:
        name = " ".join((kernel.file, *kernel.options))
        for arch in ARCHITECTURES:
            slow = kernel.file == "cuda/matmul/round_operands.cu" and arch != "sm_90a"
            marks = [pytest.mark.exhaustive] if slow else []
            yield pytest.param(kernel, arch, marks=marks, id=f"{name} {arch}")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("kernel", "arch"), [*each_kernel()])
def test_sass(kernel, arch):
    needs = {
        "cuda/matmul/patch_specials.cu": ("FFMA", "FADD"),
        "cuda/matmul/split_operands.cu": ("FMUL",),
        "cuda/matmul/round_operands.cu": ("LDS",),
    }
    # Division of float64 compares the upper halves of its operands as float32.
    halves = (
        ("FADD.FTZ", "FSETP.") if kernel.file == "cuda/matmul/round_operands.cu" else ()
    )
    check(kernel, arch, needs[kernel.file], halves)


FAULTS = {
    "the last sum alone": ("first ? total + sum : sum", "sum"),
    "a column for a row": ("b.row, k,", "b.column, k,"),
    "always the first piece": ("(group + piece) * size", "0"),
    "Inf alone": ("& TF_INF_BITS", "& 0x7FF00000u"),
    "Inf is for good": ("if (total != total)", "if (total - total != 0)"),
    "saturated always": ("&& !saturates", "&& 0"),
    "parts in one order": (
        "is_b ? (PARTS - 1) * padded : 0, step = is_b ?",
        "0, step = 0 ?",
    ),
    "too few lines": ("t.line + r >= x.lines ||", "t.line + r + 1 >= x.lines ||"),
    "lines of other matrices": ("t.matrix * x.lines + t.line", "t.line"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_seen(backend, fault):  # noqa: F811
    if backend is not HOST:
        pytest.skip("which changes kernels")
    a, b = (
        np.stack(x)
        for x in zip(*(drawn("sprinkled", (3, 300, 5), i) for i in (1, 2)), strict=True)
    )
    want = bits(multiply(backend, a, b, precision="bf16x9"))
    HOST.put_fault(fault, *FAULTS[fault])
    assert (bits(multiply(backend, a, b, precision="bf16x9")) != want).any()


FAULTS_OF_SCALES = {
    "a scale missing": ("if (i < count)", "if (i + 1 < count)"),
    "scales of another line": ("scale[own ? line : t.matrix]", "scale[t.matrix]"),
    "scales of another row": ("a[own ? in_a * m + row : in_a]", "a[in_a]"),
    "scales of another column": ("b[own ? in_b * n + j : in_b]", "b[in_b]"),
}


@pytest.mark.parametrize("fault", FAULTS_OF_SCALES)
def test_faults_of_scales_are_seen(backend, fault):  # noqa: F811
    if backend is not HOST:
        pytest.skip("which changes kernels")
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(x).astype(np.float32) for x in ((7, 40), (40, 9)))
    a *= np.float32(3) ** np.arange(7, dtype=np.float32)[:, np.newaxis]
    b *= np.float32(3) ** np.arange(9, dtype=np.float32)
    keywords = {"precision": "fp8_e4m3", "scale": "row"}
    want = bits(multiply(backend, a, b, **keywords))
    HOST.put_fault(fault, *FAULTS_OF_SCALES[fault])
    assert (bits(multiply(backend, a, b, **keywords)) != want).any()
