"""Products by wgmma: the kernels have the bits of the model. Descriptors are right."""

# ruff: noqa: F811

from __future__ import annotations

from functools import reduce
from itertools import product as product_of

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.native_cases import model, numbers, ours
from tests.cuda.wgmma_cases import (
    E4M3,
    E5M2,
    assert_right,
    blocks_are_right,
    by_model,
    orders,
    product,
    sums_by_model,
    sums_of_parts,
    with_one_nan,
)
from tests.support.compiled import split as split_on_cpu
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import on_gpu, on_host
from tests.support.cuda_products import by_plan
from tests.support.sass import check, remarks
from tf32dtype._matmul.precisions import find_precision
from tf32dtype.cuda import blocks as gpu
from tf32dtype.cuda._matmul import split_emulation, wgmma
from tf32dtype.cuda._matmul.tile_options import Matrices
from tf32dtype.cuda._runtime import tensor_maps
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda.blocks import wgmma as of_blocks


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    before = HOST.arch
    monkeypatch.setattr(HOST, "processors", lambda: 1)  # which has all tiles
    with np.errstate(all="ignore"):
        yield
    HOST.arch = before


@pytest.fixture
def hopper(backend):
    """Return a backend that has the instruction."""
    if backend is not HOST and backend.architecture() != wgmma.ARCHITECTURE:
        pytest.skip("another GPU")
    return backend


# -- bits ------------------------------------------------------------------------------

#: More slices of k than stages, edges of tiles, and small shapes.
SHAPES = (70, 450, 130), (3, 40, 129), (1, 1, 1)
PAIRS = [
    (td.bfloat16, td.bfloat16),
    (np.float16, np.float16),
    (td.tf32, td.tf32),
    *((x, y) for x in (E4M3, E5M2) for y in (E4M3, E5M2)),
]


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_chains(hopper, first, second):
    rng = np.random.default_rng(1)
    for special in (False, True):
        for m, k, n in SHAPES:
            a = numbers(rng, (1, m, k), first, special)
            b = numbers(rng, (1, k, n), second, special)
            assert_right(hopper, a, b)


#: All split orders, some orders, orders of two components; and stretches of one
#: component.
PARTS = [
    (td.bfloat16, wgmma.Parts(3, 5, 2.0**-8, 2)),
    (td.bfloat16, wgmma.Parts(3, 3, 2.0**-8, 1 << 20)),
    (td.tf32, wgmma.Parts(2, 2, 2.0**-11, 3)),
    (td.bfloat16, wgmma.Parts(1, 1, 1.0, 1)),
    (np.float16, wgmma.Parts(2, 3, 0.5, 4)),
]


KINDS = np.isfinite, np.isinf, np.isnan


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("dtype", "parts"), PARTS)
def test_parts(hopper, dtype, parts):
    """Sums are in pieces, with more slices than stages, edges of tiles, stacks, small
    shapes."""
    rng = np.random.default_rng(2)
    for s, m, k, n, count, special in (
        (1, 70, 460, 300, 2, False), (2, 130, 200, 258, 1, False),
        (2, 3, 330, 7, 3, False), (1, 40, 330, 30, 2, True), (1, 1, 1, 1, 1, False),
    ):  # fmt: skip
        a, b = (numbers(rng, (parts.parts, s, x, k), dtype) for x in (m, n))
        if special:  # in some rows and columns
            a[0, :, ::7, 3], b[0, :, ::9, 5], b[-1, :, 4, 300] = np.inf, -np.inf, np.nan
            a[0, :, 7, 5] = b[0, :, 9, 3] = 0  # times Inf
        want = sums_by_model(a, b, parts, count)
        kinds = [f(want.view(np.float32)).any() for f in KINDS]
        assert kinds == [True, special, special]
        for _ in orders(hopper):
            got = with_one_nan(sums_of_parts(hopper, a, b, parts, count))
            np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layouts", list(product_of(("rows", "columns"), repeat=2)))
@pytest.mark.parametrize("tile", wgmma.CHAINS)
def test_layouts(hopper, tile, layouts, monkeypatch):
    """Operands are along k and across it. Elements of 2 bytes are read in place. There
    are more lines than in a box, and a box without lines."""
    monkeypatch.setattr(wgmma, "CHAINS", (tile,))
    rng = np.random.default_rng(15)
    for dtype in (td.bfloat16, np.float16, td.tf32):
        a, b = (numbers(rng, x, dtype) for x in ((1, 136, 328), (1, 328, 200)))
        HOST.counts.clear()
        assert_right(hopper, a, b, layouts=layouts)
        if hopper is HOST and dtype is not td.tf32:
            assert HOST.counts["launch"] == 2  # in either order of threads


@pytest.mark.parametrize(
    "layout",
    ["rows", "columns", "pitched", "odd", "thinned", "reversed", "repeated"],
)
def test_strides(hopper, layout):
    rng = np.random.default_rng(3)
    for m, k, n in ((17, 45, 19), (32, 16, 48), (1, 32, 1)):
        a = numbers(rng, (3, m, k), td.bfloat16)
        b = numbers(rng, (3, k, n), td.bfloat16)
        if layout == "repeated":
            a[:], b[:] = a[:1].copy(), b[:1].copy()
        assert_right(hopper, a, b, layouts=(layout, "columns"))
        assert_right(hopper, a, b, layouts=("rows", layout))


def test_strides_without_a_map(hopper):
    """The distance between matrices of a stack is not a multiple of the distance of
    lines."""
    rng = np.random.default_rng(4)
    a = numbers(rng, (6, 2, 16), td.bfloat16)
    b = numbers(rng, (2, 16, 5), td.bfloat16)
    x = ours(hopper, a, "rows").reshape(12, 16)
    bits = np.lib.stride_tricks.as_strided(
        a.view(np.uint16), (2, 4, 16), (3 * 32, 2 * 32, 2)
    )
    x = cupy.ndarray((2, 4, 16), x.dtype, x.data, (3 * 32, 2 * 32, 2))
    out = hopper.put(np.zeros((2, 4, 5), np.float32))
    y = ours(hopper, b, "columns")
    by_plan(wgmma.plan, x, y, out)
    want = model(hopper, bits.view(td.bfloat16), b, instruction="wgmma")
    np.testing.assert_array_equal(hopper.get(out).view(np.uint32), want)


def test_raster_groups(hopper):
    """There are more rows of tiles than in a raster group, stacks, paired columns."""
    rng = np.random.default_rng(5)
    a = numbers(rng, (2, 17 * 128 + 1, 8), td.bfloat16)
    b = numbers(rng, (2, 8, 132), td.bfloat16)
    want = model(hopper, a, b, instruction="wgmma")
    np.testing.assert_array_equal(product(hopper, a, b), want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [td.bfloat16, td.tf32])
def test_as_mma_sync(hopper, dtype):
    """Users can compare wgmma and mma.sync: their models are equal, except for FP8."""
    rng = np.random.default_rng(6)
    x, y = (on_gpu(numbers(rng, shape, dtype)) for shape in ((40, 300), (300, 50)))
    first, second = (
        on_host(tfc.matmul(x, y, mode="native", instruction=z))
        for z in ("wgmma", "mma.sync")
    )
    np.testing.assert_array_equal(first.view(np.uint32), second.view(np.uint32))


# -- callers of wgmma ------------------------------------------------------------------


def test_instruction(hopper):
    rng = np.random.default_rng(7)
    a, b = numbers(rng, (20, 150), E4M3), numbers(rng, (150, 30), E5M2)
    got = tfc.matmul(on_gpu(a), on_gpu(b), mode="native", instruction="wgmma")
    want = td.tensor_core.matmul(a, b, device="H100", instruction="wgmma")
    np.testing.assert_array_equal(on_host(got).view("u4"), want.view("u4"))
    for dtype in (td.bfloat16, td.tf32):
        a, b = (numbers(rng, shape, dtype) for shape in ((3, 20, 40), (40, 24)))
        got = tfc.matmul(on_gpu(a), on_gpu(b), mode="native", instruction="wgmma")
        want = td.tensor_core.matmul(a, b, device="H100", instruction="wgmma")
        np.testing.assert_array_equal(on_host(got).view("u4"), want.view("u4"))
        got = tfc.matmul(on_gpu(b.T), on_gpu(a).mT, mode="native", instruction="wgmma")
        want = td.tensor_core.matmul(
            b.T, a.swapaxes(1, 2), device="H100", instruction="wgmma"
        )
        np.testing.assert_array_equal(on_host(got).view("u4"), want.view("u4"))
    x = on_gpu(a[:, :0])
    empty = tfc.matmul(x.mT, x, mode="native", instruction="wgmma")
    assert not on_host(empty).any()


@pytest.mark.parametrize("arch", ["sm_80", "sm_100a"])
def test_other_architectures(backend, arch, monkeypatch):
    if backend is not HOST:
        pytest.skip("a GPU has one architecture")
    HOST.arch = arch
    x = on_gpu(np.ones((4, 4), td.bfloat16))
    with pytest.raises(ValueError, match=f"compute capability 9.0; got {arch}"):
        tfc.matmul(x, x, mode="native", instruction="wgmma")
    monkeypatch.setattr(wgmma, "ENABLED", True)
    assert not wgmma.leads((1, 4096, 4096))


@pytest.mark.parametrize("precision", ["bf16x9", "bf16x6", "bf16x3", "tf32x3"])
def test_split_products(hopper, precision, monkeypatch):
    """There are three launches. Sums of eight pieces are added, then their sums. cuBLAS
    computes on request, or if there are no tensor maps."""
    rng = np.random.default_rng(8)
    m, k, n = 30, 700, 20
    x, y = (rng.standard_normal(shape, np.float32) for shape in ((m, k), (k, n)))
    kernels = []
    launch = hopper.launch

    def noted(kernel, *arguments, **keywords):
        kernels.append(kernel.file.rpartition("/")[2])
        launch(kernel, *arguments, **keywords)

    def compute(**keywords):
        kernels.clear()
        out = hopper.put(np.full((1, m, n), np.nan, np.float32))
        a, b = (hopper.put(z[None]) for z in (x, y))
        by_plan(split_emulation.plan, a, b, out, precision, **keywords)
        return hopper.get(out)

    monkeypatch.setattr(hopper, "launch", noted)
    found = compute()
    assert kernels == ["split_operands.cu", "wgmma.cu", "patch_specials.cu"]
    row = find_precision(precision)
    a, b = (
        split_on_cpu(z, row.components, row.format).astype(getattr(td, row.format))[
            :, None
        ]
        for z in (x, np.ascontiguousarray(y.T))
    )
    depth = 64 if row.format == "bfloat16" else 32
    slices = -(-k // depth)
    plan = split_emulation.plan_of_parts(row, (1, m, n), k)
    assert plan is not None
    parts, count, padded = plan
    assert padded == slices * depth
    assert parts.products == {"bf16x9": 9, "bf16x6": 6}.get(precision, 3)
    assert parts.stretch * depth == {"bf16x3": 2048}.get(precision, 1024)
    assert 8 < count <= slices
    pieces = [*sums_by_model(a, b, parts, count).view(np.float32)]
    groups = [reduce(np.add, pieces[i : i + 8]) for i in range(0, count, 8)]
    want = reduce(np.add, groups)
    np.testing.assert_array_equal(found[0].view("u4"), want.view("u4"))
    others = []
    others.append(compute(chunks=split_emulation.chunks_for("sm_90a", precision, k)))
    assert "wgmma.cu" not in kernels
    monkeypatch.setattr(wgmma, "ENABLED", False)
    others.append(compute())
    assert "wgmma.cu" not in kernels
    monkeypatch.setattr(wgmma, "ENABLED", True)
    monkeypatch.setattr(hopper, "tensor_map", no_map)
    others.append(compute())
    assert "wgmma.cu" not in kernels
    for other in others:
        np.testing.assert_array_equal(other, others[0])
        np.testing.assert_allclose(other, found, rtol=0, atol=1e-4)


def test_pieces():
    """A product of few tiles has a piece for each processor. A product of enough tiles,
    or of little k, has one piece."""
    nine = wgmma.Parts(3, 5, 2.0**-8, 8)
    assert wgmma.choose_pieces((1, 1024, 1024), 16, nine) == 4
    assert wgmma.choose_pieces((1, 512, 512), 8, nine) == 8
    assert wgmma.choose_pieces((1, 8192, 8192), 128, nine) == 1
    assert wgmma.choose_pieces((1, 64, 64), 1, nine) == 1
    assert wgmma.choose_pieces((132, 64, 64), 100, nine) == 1


def test_long_products_are_left_to_cublas():
    nine, three = find_precision("bf16x9"), find_precision("bf16x3")
    plan = split_emulation.plan_of_parts
    assert plan(nine, (1, 16384, 16384), 16384) is None
    assert plan(nine, (1, 8192, 8192), 16384) is not None
    assert plan(nine, (1, 16384, 16384), 8192) is not None
    assert plan(three, (1, 16384, 16384), 16384) is not None
    assert plan(three, (1, 1, 1), 1 << 29) is not None
    assert plan(three, (1, 1, 1), 1 << 30) is None  # more than a copy's coordinates
    assert plan(nine, (1, 1, 1), 1 << 30) is None
    assert plan(nine, (100, 16, 16), 64) is not None
    assert plan(nine, (100000, 16, 16), 64) is None  # tiles that are nearly empty


def test_too_long(hopper):
    """The coordinates of copies have 32 bits."""
    x = Matrices((1, 1, 1 << 31), (0, 0, 1), np.dtype(E4M3))
    c = Matrices((1, 1, 1), (4, 4, 4), np.dtype(np.float32))
    with pytest.raises(ValueError, match=r"k must be at most .*; got 2147483648"):
        wgmma.plan(x, x.flipped, c)


def test_when_it_leads(backend, monkeypatch):
    """wgmma is the default if it exists, is enabled, and has tiles for half of the
    device."""
    if backend is not HOST:
        pytest.skip("of the host's processors")
    monkeypatch.setattr(HOST, "processors", lambda: 132)
    monkeypatch.setattr(wgmma, "ENABLED", False)
    assert not wgmma.leads((1, 8192, 8192))
    monkeypatch.setattr(wgmma, "ENABLED", True)
    assert wgmma.leads((1, 8192, 8192))
    assert wgmma.leads((66, 1, 1))
    assert not wgmma.leads((1, 1024, 1024))


def test_tile_of_chains():
    """Wide tiles are chosen unless they leave the device idle."""
    assert wgmma.choose_tile((1, 4096, 4096), 132) == wgmma.WIDE
    assert wgmma.choose_tile((1, 1024, 1024), 132) == wgmma.SQUARE


def test_no_driver(monkeypatch):
    """Without a driver, or with an old driver, an error says what is wrong."""

    def library(_):
        raise OSError("libcuda.so.1: cannot open shared object file")

    tensor_maps._encode.cache_clear()
    monkeypatch.setattr(tensor_maps.ctypes, "CDLL", library)
    with pytest.raises(
        tensor_maps.TensorMapError, match="cannot make tensor maps: libcuda"
    ):
        tensor_maps.tensor_map(1 << 20, 2, (64, 8, 1), (128, 1024), (64, 8, 1), True)
    tensor_maps._encode.cache_clear()


def test_driver_is_told(monkeypatch):
    """cuTensorMapEncodeTiled gets all arguments in their order and widths."""
    seen = []

    def encode(*given):
        seen.extend(list(x) if hasattr(x, "__len__") else x.value for x in given)
        assert given[0].value % 64 == 0
        np.ctypeslib.as_array(
            tensor_maps.ctypes.cast(
                given[0], tensor_maps.ctypes.POINTER(tensor_maps.ctypes.c_uint8)
            ),
            (128,),
        )[:] = 7
        return status

    monkeypatch.setattr(tensor_maps, "_encode", lambda: encode)
    for status in (1, 0):
        seen.clear()
        tensor_maps.tensor_map.cache_clear()
        arguments = (1 << 20, 2, (64, 8, 3), (128, 1024), (64, 4, 1), True)
        if status:
            with pytest.raises(tensor_maps.TensorMapError, match="returned 1"):
                tensor_maps.tensor_map(*arguments)
        else:
            found = tensor_maps.tensor_map(*arguments)
    assert seen[1:] == [
        1, 3, 1 << 20, [64, 8, 3], [128, 1024], [64, 4, 1], [1, 1, 1], 0, 3, 2, 0,
    ]  # fmt: skip
    assert found.shape == ()
    assert bytes(found) == b"\7" * 128


# -- arrays of blocks ------------------------------------------------------------------


BLOCKS = [
    ("tcfp16", "tcfp16", 3, 32), ("tcfp16", "tcfp16", None, 32),
    ("tcfp8", "tcfp16", None, 32), ("mxfp8_e4m3", "mxfp8_e5m2", None, 32),
    ("tcfp16", "tcfp16", 3, 64), ("tcfp16", "tcfp8", 1, 128),
    ("tcfp12", "mxfp6_e3m2", None, 32), ("mxfp4", "mxfp6_e2m3", None, 64),
]  # fmt: skip


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("first", "second", "terms", "size"), BLOCKS)
def test_blocks(hopper, first, second, terms, size):
    assert blocks_are_right(hopper, first, second, terms, size)


def no_map(*_, **__):
    raise tensor_maps.TensorMapError


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("first", "second", "terms"),
    [
        ("tcfp16", "tcfp16", 3), ("tcfp8", "tcfp16", None),
        ("mxfp8_e4m3", "mxfp8_e5m2", None), ("tcfp12", "mxfp6_e3m2", None),
        ("mxfp4", "mxfp6_e2m3", 1),
    ],
)  # fmt: skip
def test_blocks_as_mma_sync(hopper, first, second, terms, monkeypatch):
    """Blocks use float16 instructions on request, for all codes and NaN."""
    monkeypatch.setattr(wgmma, "ENABLED", True)
    monkeypatch.setattr(hopper, "processors", lambda: 2)  # a tile is enough
    monkeypatch.setattr(of_blocks.native.Plan, "__call__", no_map)
    assert blocks_are_right(hopper, first, second, terms, 32, "mma.sync", None)


def test_blocks_without_maps(hopper, monkeypatch):
    """Blocks use mma.sync, or raise an error if the caller asks for wgmma."""
    monkeypatch.setattr(wgmma, "ENABLED", True)
    monkeypatch.setattr(hopper, "tensor_map", no_map)
    x = gpu.quantize(on_gpu(np.ones((4, 64), np.float32)), "tcfp8")
    with tfc.matmul_mode("native"):
        assert (on_host(x @ x.T) == 64).all()
    with (
        tfc.matmul_mode("native", instruction="wgmma"),
        pytest.raises(tensor_maps.TensorMapError),
    ):
        x @ x.T


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp8_e5m2"])
def test_all_codes_as_halves(hopper, name, monkeypatch):
    """Each code is multiplied by 1, so that no rounding changes the product."""
    monkeypatch.setattr(wgmma, "ENABLED", True)
    codes = np.zeros((256, 32), np.uint8)
    for i in range(32):
        codes[i::32, i] = np.arange(256, dtype=np.uint8)[i::32]
    a = td.blocks.quantize(np.zeros((256, 32), np.float32), name)
    b = td.blocks.quantize(np.ones((32, 3), np.float32), name, 0)
    a.elements.view(np.uint8)[...] = codes
    p, q = gpu.asarray(a), gpu.asarray(b)
    with tfc.matmul_mode("native"):
        got = on_host(gpu.matmul(p, q))
    np.testing.assert_array_equal(got, by_model(a, b, None, "mma.sync"))


def test_stacks_of_blocks(hopper):
    """Bytes of residuals may begin anywhere, and matrices may repeat or be reversed."""
    rng = np.random.default_rng(10)
    a, p = cases.both(cases.numbers(rng, (3, 5, 64)), "tcfp16", scale="amax")
    b, q = cases.both(cases.numbers(rng, (4, 64)).T, "tcfp16", 0, scale="amax")
    with tfc.matmul_mode("native", instruction="wgmma"):
        straight, backwards = on_host(gpu.matmul(p, q, terms=3)), p[::-1, ::-1]
        back = on_host(gpu.matmul(backwards, q, terms=3))
    want = np.array([by_model(a[i], b, 3) for i in range(3)])
    np.testing.assert_array_equal(straight.view("u4"), want.view("u4"))
    np.testing.assert_array_equal(back.view("u4"), want[::-1, ::-1].view("u4"))


def test_blocks_elsewhere(backend):
    if backend is not HOST:
        pytest.skip("a GPU has one architecture")
    HOST.arch = "sm_89"
    x = gpu.quantize(on_gpu(np.ones((4, 64), np.float32)), "tcfp8")
    with (
        tfc.matmul_mode("native", instruction="wgmma"),
        pytest.raises(ValueError, match=r"9\.0; got sm_89"),
    ):
        x @ x.T


# -- machine code ----------------------------------------------------------------------


def made_well(kernel, needs, instructions, waits):
    """Check that no instruction waits unnecessarily, and none uses local memory."""
    said = remarks(kernel, wgmma.ARCHITECTURE)
    assert "C75" not in said, said
    needs = (*needs, "UTMALDG.3D", "USETMAXREG.TRY_ALLOC", "SYNCS.PHASECHK")
    found = check(kernel, wgmma.ARCHITECTURE, needs)
    assert sum(n for name, n in found.items() if "GMMA" in name) == instructions
    assert found["WARPGROUP.DEPBAR.LE"] == waits
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("precision", ["bf16x9", "bf16x6", "bf16x3", "tf32x3"])
def test_sass_of_parts(precision):
    """The four instructions of a slice's chain run together. The largest components
    have four separate instructions each, and one addition per result."""
    row = find_precision(precision)
    size, unit = (2, "16.F32.BF16") if row.format == "bfloat16" else (4, "8.F32.TF32")
    kernel = wgmma.kernel(
        (row.format,) * 2,
        size,
        wgmma.WIDE,
        True,
        True,
        row.components,
        row.split_orders,
    )
    needs = f"HGMMA.64x256x{unit}", f"HGMMA.64x64x{unit}"
    found = made_well(kernel, needs, 4 + 16, 2 + 16)
    assert found["FADD"] == 4 * 128


@pytest.mark.sampled(3)
@pytest.mark.parametrize("tile", wgmma.CHAINS)
@pytest.mark.parametrize(
    ("first", "second", "unit"),
    [
        ("bfloat16", "bfloat16", "HGMMA.64x{}x16.F32.BF16"),
        ("float16", "float16", "HGMMA.64x{}x16.F32"),
        ("tf32", "tf32", "HGMMA.64x{}x8.F32.TF32"),
        ("float8_e4m3fn", "float8_e5m2", "QGMMA.64x{}x32.F32.E4M3.E5M2"),
        ("float8_e5m2", "float8_e5m2", "QGMMA.64x{}x32.F32.E5M2.E5M2"),
    ],
)
def test_sass_of_chains(first, second, unit, tile):
    """The four instructions of a slice run together."""
    size = {"bfloat16": 2, "float16": 2, "tf32": 4}.get(first, 1)
    kernel = wgmma.kernel((first, second), size, tile)
    found = made_well(kernel, (unit.format(tile.columns),), 4, 2)
    assert found["WARPGROUP.ARRIVE"] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("a_along_k", [False, True])
@pytest.mark.parametrize("b_along_k", [False, True])
def test_sass_across(a_along_k, b_along_k):
    """Copies have 64 lines, and a slice has the same instructions."""
    names = ("bfloat16",) * 2
    kernel = wgmma.kernel(names, 2, wgmma.WIDE, a_along_k, b_along_k)
    found = made_well(kernel, (), 4, 2)
    assert found["UTMALDG.3D"] == (1 if a_along_k else 2) + (1 if b_along_k else 4)


THREE, FOUR = [(0, 0), (0, 1), (1, 0)], [(0, 0), (0, 1), (1, 0), (1, 1)]
BLOCK_KERNELS = [
    (levels, block) for block in (32, 64, 128) for levels in (THREE, FOUR, THREE[:1])
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("levels", "block"), BLOCK_KERNELS)
def test_sass_of_blocks(levels, block):
    kernel = of_blocks.kernel(("float8_e4m3fn",) * 2, block, levels)
    instructions = 4 * len(levels)
    chains = instructions * 32 // block
    needs = ("QGMMA.64x128x32.F32.E4M3.E4M3", "UTMALDG.4D")
    found = made_well(kernel, needs, instructions, chains)
    assert found["FFMA"] == found["FMUL"] == 64 * chains


@pytest.mark.sampled(1)
@pytest.mark.parametrize("levels", [THREE, FOUR, THREE[:1]])
def test_sass_of_halves(levels):
    kernel = of_blocks.kernel(("float8_e4m3fn",) * 2, 32, levels, 2)
    needs = ("HGMMA.64x128x16.F32", "UTMALDG.4D")
    made_well(kernel, needs, 4 * len(levels), 2 * len(levels))


@pytest.mark.parametrize("codes", ["e4m3", "e5m2"])
def test_sass_of_conversions(codes):
    kernel = Kernel("cuda/blocks/halves.cu", "block_halves", (f'-DCODES="{codes}"',))
    needs = (f"F2FP.F16.{codes.upper()}.UNPACK_B", "LDG.E.128", "STG.E.128")
    check(kernel, wgmma.ARCHITECTURE, needs)


def test_shared_memory_suffices():
    for tile in wgmma.CHAINS:
        assert tile.shared <= 227 << 10
        assert tile.stages >= 4
    for levels, block in BLOCK_KERNELS:
        for size in (1, 2)[: 2 if block == 32 else 1]:
            count, shared = of_blocks.stages(block, levels, size)
            assert shared <= 227 << 10
            assert count >= 2
