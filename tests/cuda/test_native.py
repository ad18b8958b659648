"""Products by mma.sync: the kernel has the bits of its model."""

# ruff: noqa: F811

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda.native_cases import has, model, numbers, ours, product
from tests.support.cuda import HOST, backend  # noqa: F401
from tests.support.cuda_products import by_plan
from tests.support.sass import ARCHITECTURES, check
from tf32dtype.cuda._matmul import native, tensor_cores
from tf32dtype.cuda._matmul.matmul import matmul

FP8 = (td.float8_e4m3fn, td.float8_e5m2)
PAIRS = [(x, x) for x in (td.tf32, td.bfloat16, np.float16)] + [
    (x, y) for x in FP8 for y in FP8
]
NAMES = ["-".join(np.dtype(x).name for x in pair) for pair in PAIRS]


@pytest.fixture(autouse=True)
def _same_architecture():
    arch = HOST.arch
    yield
    HOST.arch = arch


# -- bits ------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", PAIRS, ids=NAMES)
@pytest.mark.parametrize("special", [False, True])
def test_formats(backend, pair, special):
    if not has(backend, pair):
        pytest.skip("not on this GPU")
    rng = np.random.default_rng(1)
    for m, k, n in ((64, 64, 64), (1, 1, 1), (3, 200, 70), (65, 33, 2), (5, 0, 4)):
        a = numbers(rng, (1, m, k), pair[0], special)
        b = numbers(rng, (1, k, n), pair[1], special)
        got = product(backend, ours(backend, a, "rows"), ours(backend, b, "columns"))
        np.testing.assert_array_equal(got, model(backend, a, b))


BOTH = pytest.mark.exhaustive  # other tests have each of them


@pytest.mark.parametrize("dtype", [td.tf32, td.bfloat16])
@pytest.mark.parametrize(
    ("of_a", "of_b"),
    [
        ("rows", "rows"),
        ("columns", "columns"),
        pytest.param("rows", "columns", marks=BOTH),
        pytest.param("columns", "rows", marks=BOTH),
    ],
)
def test_layouts(backend, dtype, of_a, of_b):
    rng = np.random.default_rng(2)
    # The kernel reads all of these in place, as lines are whole chunks.
    for m, k, n in ((72, 136, 80), (64, 64, 128), (8, 24, 16)):
        a, b = numbers(rng, (2, m, k), dtype), numbers(rng, (2, k, n), dtype)
        x, y = ours(backend, a, of_a), ours(backend, b, of_b)
        for descends in (False, True):
            HOST.descends = descends
            np.testing.assert_array_equal(product(backend, x, y), model(backend, a, b))
    if backend is HOST:
        assert "call" not in HOST.counts


@pytest.mark.parametrize("dtype", [td.tf32, td.bfloat16, td.float8_e5m2])
@pytest.mark.parametrize(
    "layout", ["rows", "columns", "pitched", "odd", "thinned", "reversed", "repeated"]
)
def test_strides(backend, dtype, layout):
    if not has(backend, (dtype, dtype)):
        pytest.skip("not on this GPU")
    rng = np.random.default_rng(3)
    for m, k, n in ((17, 45, 19), (32, 16, 48)):
        a, b = numbers(rng, (3, m, k), dtype), numbers(rng, (3, k, n), dtype)
        if layout == "repeated":
            a[:], b[:] = a[:1].copy(), b[:1].copy()
        want = model(backend, a, b)
        other = ours(backend, b, "columns")
        np.testing.assert_array_equal(
            product(backend, ours(backend, a, layout), other), want
        )
        other = ours(backend, a, "rows")
        np.testing.assert_array_equal(
            product(backend, other, ours(backend, b, layout)), want
        )
    if backend is HOST:
        # Only this test's reading of the result waits for the device.
        assert HOST.counts["get"] == 4


def test_float32_is_tf32(backend):
    rng = np.random.default_rng(4)
    bits = rng.integers(0, 1 << 32, (1, 20, 40), np.uint32)
    a, b = bits.view(np.float32), numbers(rng, (1, 40, 8), td.tf32)
    x, y = ours(backend, a, "rows"), ours(backend, b, "rows")
    got = backend.get(matmul(x, y, mode="native", instruction="mma.sync"))
    np.testing.assert_array_equal(got.view(np.uint32), model(backend, a, b))


TILES = {
    "wide": native.WIDE,
    "wide, short slices": native.WIDE_SHORT,
    "square": native.SQUARE,
    "emulated": native.SPARING,
}


@pytest.mark.parametrize("name", TILES)
def test_tiles(backend, name):
    """All tiles give the same bits, and raster groups cover the whole result."""
    rng = np.random.default_rng(5)
    for m, k, n in ((130, 72, 258), (8, 330, 8)):
        a, b = (numbers(rng, x, td.bfloat16) for x in ((1, m, k), (1, k, n)))
        x, y = ours(backend, a, "rows"), ours(backend, b, "columns")
        got = product(backend, x, y, TILES[name])
        np.testing.assert_array_equal(got, model(backend, a, b))


def test_raster_groups(backend):
    """There are more rows of tiles than in a raster group, and the last group is
    smaller."""
    rng = np.random.default_rng(6)
    a, b = numbers(rng, (2, 2200, 8), td.tf32), numbers(rng, (2, 8, 72), td.tf32)
    x, y = ours(backend, a, "rows"), ours(backend, b, "columns")
    got = product(backend, x, y, native.SMALL)
    np.testing.assert_array_equal(got, model(backend, a, b))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_architectures(backend, arch):
    """The bits follow the GPU's own model."""
    if backend is not HOST:
        pytest.skip("a GPU has one")
    HOST.arch = arch
    rng = np.random.default_rng(7)
    for pair in PAIRS:
        if has(HOST, pair):
            a = numbers(rng, (1, 30, 100), pair[0])
            b = numbers(rng, (1, 100, 30), pair[1])
            x, y = ours(HOST, a, "rows"), ours(HOST, b, "columns")
            got = product(HOST, x, y, native.SMALL)
            np.testing.assert_array_equal(got, model(HOST, a, b))


# -- sums of chains --------------------------------------------------------------------


def summed(backend, a, b, sums, tile=None, layouts=("rows", "columns"), c=None):
    if c is None:
        rng = np.random.default_rng(a.shape[2])
        c = rng.standard_normal((len(a), a.shape[1], b.shape[2])).astype(np.float32)
    if not sums.beta:
        given = np.full_like(c, np.nan)  # which would show
    x, y = ours(backend, a, layouts[0]), ours(backend, b, layouts[1])
    got = product(backend, x, y, tile, sums, c if sums.beta else given)
    np.testing.assert_array_equal(got, model(backend, a, b, sums, c))


def chains(dtype):
    """Return the k of the chains that a format has."""
    whole = 32 // np.dtype(dtype).itemsize
    return [whole, 2 * whole, *[8] * (whole == 16)]


@pytest.mark.parametrize(
    "dtype",
    [
        td.tf32,
        td.bfloat16,
        pytest.param(np.float16, marks=pytest.mark.exhaustive),
        pytest.param(FP8[0], marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.parametrize("special", [False, True])
def test_sums(backend, dtype, special):
    """Shapes are ragged, and k need not be a multiple of chains or stretches."""
    if not has(backend, (dtype, dtype)):
        pytest.skip("not on this GPU")
    rng = np.random.default_rng(11)
    for promote in chains(dtype):
        for m, k, n in (
            (64, 256, 64),
            (1, 1, 1),
            (3, 400, 70),
            (65, 133, 2),
            (5, 0, 4),
        ):
            a = numbers(rng, (1, m, k), dtype, special)
            b = numbers(rng, (1, k, n), dtype, special)
            for stretch, beta in ((0, 0), (128, 0), (128, 2.0**-8)):
                sums = native.Sums(promote, stretch, beta)
                for tile in (native.SMALL, native.SMALL._replace(totals=True)):
                    summed(backend, a, b, sums, tile)


@pytest.mark.parametrize("dtype", [td.tf32, td.bfloat16])
def test_sums_of_stacks_and_layouts(backend, dtype):
    rng = np.random.default_rng(12)
    a, b = numbers(rng, (3, 40, 264), dtype), numbers(rng, (3, 264, 72), dtype)
    sums = native.Sums(chains(dtype)[0], 128, 2.0**-11)
    for layouts in (("rows", "rows"), ("columns", "columns"), ("odd", "reversed")):
        summed(backend, a, b, sums, layouts=layouts)
    a[:] = a[:1].copy()
    summed(backend, a, b, sums, layouts=("repeated", "columns"))


def test_sums_of_wide_tiles(backend):
    """All tiles give the same bits."""
    rng = np.random.default_rng(13)
    for m, k, n in ((130, 200, 258), (128, 136, 384)):
        a, b = (numbers(rng, x, td.bfloat16) for x in ((1, m, k), (1, k, n)))
        sums = native.Sums(16, 64, 0.25)
        for tile in (native.SUMS, native.SPARING):
            here = native.with_totals(tile, backend.architecture())
            for each in {tile, here}:
                summed(backend, a, b, sums, each, ("rows", "columns"))


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sums_of_architectures(backend, arch):
    if backend is not HOST:
        pytest.skip("a GPU has one")
    HOST.arch = arch
    rng = np.random.default_rng(14)
    for dtype in (td.tf32, td.bfloat16):
        a, b = numbers(rng, (1, 30, 300), dtype), numbers(rng, (1, 300, 30), dtype)
        for promote in chains(dtype):
            summed(HOST, a, b, native.Sums(promote, 256, 2.0**-8), native.SMALL)


# -- errors ----------------------------------------------------------------------------


def refuse(arch, a, b, match, instruction="mma.sync"):
    HOST.arch = arch
    x, y = (ours(HOST, np.zeros((1, 4, 4), i), "rows") for i in (a, b))
    out = HOST.put(np.ones((1, 4, 4), np.float32))
    with pytest.raises(ValueError, match=match):
        by_plan(tensor_cores.plan, x, y, out, instruction)
    assert (HOST.get(out) == 1).all()


def test_refused(backend):
    if backend is not HOST:
        pytest.skip("a GPU has one architecture")
    e4m3, e5m2 = FP8
    refuse("sm_86", e4m3, e4m3, r"sm_86 cannot .* tf32, bfloat16, float16, each")
    refuse("sm_90a", td.float8_e4m3fnuz, e4m3, "e4m3fnuz by .*e4m3fn x float8_e5m2")
    refuse("sm_90a", td.bfloat16, td.tf32, "bfloat16 by tf32")
    refuse("sm_90a", td.bfloat16, e4m3, "bfloat16 by float8_e4m3fn", None)
    refuse("sm_75", td.tf32, td.tf32, "sm_75 .* no format of tf32dtype")
    refuse(
        "sm_90a", td.tf32, td.tf32, "'mma.sync' or 'wgmma' .*; got 'tcgen05'", "tcgen05"
    )
    refuse("sm_89", td.tf32, td.tf32, "'wgmma' needs .* 9.0.*sm_89", "wgmma")
    refuse("sm_90a", e5m2, e5m2, "cublasLt cannot multiply float8_e5m2", None)
    assert "launch" not in HOST.counts


def test_devices():
    known = {arch: native.device_of(arch) for arch in ARCHITECTURES}
    assert list(known.values()) == [
        "A100", "A100", "L40S", "H100", "B200", "RTX Blackwell",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"sm_61 are not modeled; .* are sm_70"):
        native.device_of("sm_61")


def test_choice():
    """Wide tiles are chosen if they fill the GPU, and small tiles otherwise."""

    def chosen(s: int, m: int, n: int, *how: int) -> native.Tile:
        return native.choose_tile(HOST.arch, 132, (s, m, n), *how)

    assert chosen(1, 4096, 4096, 2, True, False) == native.WIDE
    assert chosen(1, 4096, 4096, 4, False, False) == native.SQUARE
    assert chosen(1, 4096, 4096, 1, True, True) == native.SPARING
    assert chosen(1, 512, 512, 2, True, False) == native.SMALL
    sums, small = (x._replace(totals=True) for x in (native.SUMS, native.SMALL_SHORT))
    assert chosen(1, 8192, 8192, 2, True, True, 16) == sums
    assert chosen(1, 512, 512, 2, True, True, 16) == small
    HOST.arch = "sm_80"
    shorter = sums._replace(stages=3)
    assert chosen(1, 8192, 8192, 2, True, True, 16) == shorter
    HOST.arch = "sm_89"
    assert chosen(1, 8192, 8192, 2, True, True, 16) == native.SUMS
    assert chosen(1, 8192, 8192, 1, True, True) == native.WIDE_SHORT


# -- machine code ----------------------------------------------------------------------


def compiled(arch, pair, a_along_k, b_along_k, tile, promote=0):
    names = tuple(np.dtype(x).name for x in pair)
    size = np.dtype(pair[0]).itemsize
    made = native.kernel(names, size, a_along_k, b_along_k, tile, promote)
    fp8 = size == 1 and arch in ("sm_89", "sm_120a")
    needs = ["QMMA.16832.F32" if fp8 else "HMMA", "LDGSTS"]
    needs += ["LDSM.16.M88.4"] * (a_along_k or b_along_k)
    needs += ["LDSM.16.MT88.4"] * (size == 2 and not (a_along_k and b_along_k))
    return check(made, arch, tuple(needs))


WIDEST = [
    (arch, pair, a, b)
    for arch in ARCHITECTURES
    for pair in PAIRS
    if np.dtype(pair[0]).itemsize > 1 or arch not in ("sm_80", "sm_86")
    for a, b in ((True, True), (True, False), (False, True), (False, False))
    if np.dtype(pair[0]).itemsize > 1 or (a and b)
]


def samples(arch, pair, a, b):
    size = np.dtype(pair[0]).itemsize
    return native.tiles(arch, size, a, b)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sass(arch):
    pair = PAIRS[3] if arch in ("sm_89", "sm_100a", "sm_120a") else PAIRS[1]
    along = np.dtype(pair[0]).itemsize == 1
    compiled(arch, pair, True, along, samples(arch, pair, True, along)[0])


#: pairs that `emulation` takes, with the chains for short sums
SUMMED = [
    (arch, pair, promote)
    for arch in ARCHITECTURES
    for pair, promote in ((PAIRS[1], 8), (PAIRS[1], 16), (PAIRS[0], 8))
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("arch", "pair", "promote"), SUMMED)
def test_sass_of_sums(arch, pair, promote):
    """Each result of an instruction needs one addition and no move. The first
    instruction of a chain adds to a zero register."""
    size = np.dtype(pair[0]).itemsize
    for tile in native.tiles(arch, size, True, True, promote):
        found = compiled(arch, pair, True, True, tile, promote)
        instructions = sum(n for name, n in found.items() if name.startswith("HMMA"))
        halves = 2 if promote * size == 16 else 1
        of_warp = tile.warp_rows // 16 * tile.warp_columns // 8
        assert instructions == of_warp * tile.slice // 32 * halves
        assert found["FADD"] == 4 * instructions


@pytest.mark.exhaustive
@pytest.mark.parametrize(("arch", "pair", "a", "b"), WIDEST)
def test_sass_of_all(arch, pair, a, b):
    for tile in samples(arch, pair, a, b):
        compiled(arch, pair, a, b, tile)


def test_shared_memory_suffices():
    """Limits come from the CUDA C++ Programming Guide's table of compute capabilities,
    in KiB per multiprocessor. Each block reserves one KiB."""
    most = {80: 164, 86: 100, 89: 100, 90: 228, 100: 228, 120: 100}
    taken = {(arch, tile) for arch, *x in WIDEST for tile in samples(arch, *x)}
    for arch, pair, promote in SUMMED:
        size = np.dtype(pair[0]).itemsize
        taken |= {(arch, x) for x in native.tiles(arch, size, True, True, promote)}
    for arch, tile in taken:
        here = (tile.shared + 1024) * tile.resident
        assert here <= most[native.number(arch)] << 10, (arch, tile)
        assert tile.threads <= 256
