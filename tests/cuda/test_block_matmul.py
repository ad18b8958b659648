"""Products of tf32dtype.cuda.blocks: the bits of the definition, on a GPU."""

# ruff: noqa: F811

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.block_cases import both
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import on_gpu, on_host
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE
from tf32dtype.blocks.formats import scale_formats
from tf32dtype.cuda import blocks as gpu
from tf32dtype.cuda._matmul import wgmma
from tf32dtype.cuda._matmul.native import device_of
from tf32dtype.cuda._matmul.tile_options import Matrices
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda.blocks import native, products
from tf32dtype.cuda.blocks.operands import lines_of


@pytest.fixture(autouse=True)
def mma_sync(monkeypatch):
    """Use mma.sync for products, as test_wgmma.py tests wgmma."""
    monkeypatch.setattr(wgmma, "ENABLED", False)


@pytest.fixture(autouse=True)
def quiet():
    arch = HOST.arch
    with np.errstate(all="ignore"):
        yield
    HOST.arch = arch


def assert_bits(got, expected, where=""):
    """Fail unless all bits are equal, except those of NaN."""
    got = on_host(got) if isinstance(got, cupy.ndarray) else got
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), where
    item = f"u{got.dtype.itemsize}"
    same = got.view(item) == np.ascontiguousarray(expected).view(item)
    nan = np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    assert (same | nan).all(), (where, np.argwhere(~(same | nan))[:4])


def operands(rng, m, k, n, a, b, **options):
    """Return operands on the CPU and on the backend. A dtype requests plain numbers."""
    x, y = cases.numbers(rng, (m, k)), cases.numbers(rng, (n, k)).T
    found = []
    for values, what, axis in ((x, a, 1), (y, b, 0)):
        if isinstance(what, str):
            found.append(both(values, what, axis, scale="amax", **options))
        else:
            values = np.clip(values, -100, 100).astype(what)
            found.append((values, on_gpu(values)))
    (a, p), (b, q) = found
    return a, b, p, q


# -- in the documented order -----------------------------------------------------------

PAIRS = [
    ("tcfp16", "tcfp16"), ("tcfp12", "tcfp8"), ("mxfp6_e3m2", "mxfp4"),
    ("int12", "int16"), ("mxint8", "mxfp8_e5m2"), ("tcfp12", np.float32),
    (td.bfloat16, "tcfp16"),
]  # fmt: skip


def name(pair):
    return "-".join(x if isinstance(x, str) else np.dtype(x).name for x in pair)


@pytest.mark.parametrize("pair", PAIRS, ids=name)
def test_pairs(backend, pair):
    rng = np.random.default_rng(1)
    for m, k, n in ((5, 70, 67), (66, 32, 3), (1, 1, 1)):
        a, b, p, q = operands(rng, m, k, n, *pair)
        assert_bits(gpu.matmul(p, q), cases.product(a, b), (m, k, n))


@pytest.mark.parametrize("tile", [products.LARGE, products.SMALL])
def test_tiles(backend, tile, monkeypatch):
    """Products need more than one tile of each kernel and many blocks, in any thread
    order."""
    monkeypatch.setattr(products, "LARGE", tile)
    monkeypatch.setattr(products, "SMALL", tile)
    rng = np.random.default_rng(2)
    m, n = tile.rows + 3, tile.columns + 2
    for size in (16, 64):
        a, b, p, q = operands(rng, m, 150, n, "tcfp16", "tcfp16", block_size=size)
        wanted = cases.product(a, b)
        for descends in (False, True):
            if backend is HOST:
                HOST.descends = descends
            assert_bits(gpu.matmul(p, q), wanted, size)


@pytest.mark.parametrize("terms", [1, 3, 4, None])
def test_terms(backend, terms):
    rng = np.random.default_rng(3)
    for pair in (("tcfp16", "tcfp16"), ("tcfp16", "tcfp12")):
        a, b, p, q = operands(rng, 20, 100, 30, *pair)
        assert_bits(gpu.matmul(p, q, terms=terms), cases.product(a, b, terms))


@pytest.mark.parametrize("scale_format", list(scale_formats))
def test_scale_formats(backend, scale_format):
    rng = np.random.default_rng(4)
    a, b, p, q = operands(rng, 9, 96, 7, "tcfp16", "tcfp16", scale_format=scale_format)
    assert_bits(gpu.matmul(p, q), cases.product(a, b))


def test_special(backend):
    """NaN scales and elements, and numbers that are not finite."""
    rng = np.random.default_rng(5)
    x, y = cases.numbers(rng, (6, 64)), cases.numbers(rng, (64, 5))
    x[1, 3], y[40, 2] = np.nan, np.inf
    a, p = both(x, "mxfp8_e4m3")
    b, q = both(y, "mxfp8_e5m2", 0)
    wanted = cases.product(a, b)
    assert np.isnan(wanted[1]).all()
    assert np.isnan(wanted[:, 2]).all()
    got = on_host(gpu.matmul(p, q))
    assert_bits(got, wanted)
    assert set(got.view(np.uint32)[np.isnan(got)]) == {0x7FC00000}
    assert_bits(gpu.matmul(p, on_gpu(y)), cases.product(a, y))


def test_stacks(backend):
    """Axes before the last two broadcast. Vectors and numbers of any strides are right,
    too."""
    rng = np.random.default_rng(6)
    x = cases.numbers(rng, (3, 1, 4, 64))
    y = np.ascontiguousarray(cases.numbers(rng, (2, 5, 64)).swapaxes(-1, -2))
    a, p = both(x, "tcfp16", scale="amax")
    b, q = both(y, "tcfp16", -2, scale="amax")
    wanted = np.array(
        [[cases.product(a[i, 0], b[j]) for j in range(2)] for i in range(3)]
    )
    assert_bits(p @ q, wanted)
    dense = on_gpu(y)[:, :, ::-1]
    wanted = np.array(
        [[cases.product(a[i, 0], y[j, :, ::-1]) for j in range(2)] for i in range(3)]
    )
    assert_bits(p @ dense, wanted)
    u, v = both(x[0, 0, 0], "tcfp8", scale="amax")
    column = np.ascontiguousarray(y[0, :, :1])
    assert_bits(v @ on_gpu(column[:, 0]), cases.product(u_row(u), column)[0, 0])


def u_row(x):
    """Return a vector of blocks as a row."""
    return td.blocks.BlockArray._of(
        td.blocks.layout.Layout(
            x._layout.row, (1, *x.shape), 1, x.block_size, x.scale_format,
            float(x.tensor_scale),
        ),
        x.buffer,
    )  # fmt: skip


def test_ways(backend):
    """@, np.matmul and blocks.matmul take any array of CuPy on either side."""
    rng = np.random.default_rng(7)
    a, b, p, q = operands(rng, 6, 64, 5, "tcfp8", "tcfp8")
    wanted = cases.product(a, b)
    for got in (p @ q, np.matmul(p, q), gpu.matmul(p, q)):
        assert_bits(got, wanted)
    for dtype in (np.float32, np.float16, td.bfloat16, np.int8, bool):
        y = (rng.standard_normal((64, 5)) * 10).astype(dtype)
        wanted = cases.product(a, y)
        assert_bits(p @ on_gpu(y), wanted, dtype)
        assert_bits(np.matmul(p, on_gpu(y)), wanted, dtype)
        left = cases.product(y.T, b)
        assert_bits(on_gpu(y).T @ q, left, dtype)
    ours = tfc.asarray(np.ones((4, 64), np.float32))
    assert_bits(ours @ q, cases.product(np.ones((4, 64), np.float32), b))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, td.bfloat16])
def test_dtypes_and_out(backend, dtype):
    rng = np.random.default_rng(8)
    a, b, p, q = operands(rng, 6, 64, 5, "tcfp8", "tcfp8")
    wanted = cases.product(a, b).astype(dtype)
    assert_bits(gpu.matmul(p, q, dtype=dtype), wanted)
    out = on_gpu(np.zeros((6, 10), dtype))[:, ::2]
    assert gpu.matmul(p, q, dtype=dtype, out=out) is out
    assert_bits(out, wanted)
    single = on_gpu(np.full((6, 5), np.nan, np.float32))
    assert np.matmul(p, q, out=single) is single
    assert_bits(single, cases.product(a, b))
    dense = on_gpu(np.arange(36, dtype=np.float32).reshape(6, 6) / 8)
    before = on_host(dense)
    x = td.blocks.quantize(before.T, "tcfp8", 0)
    assert_bits(gpu.matmul(dense, gpu.asarray(x), out=dense), cases.product(before, x))


def test_empty(backend):
    for m, k, n in ((0, 32, 4), (3, 0, 4), (3, 32, 0)):
        p = blocks_of(m, k, name="mxfp4")
        q = blocks_of(k, n, name="mxfp4", axis=0)
        assert_bits(p @ q, np.zeros((m, n), np.float32))


def blocks_of(*shape, name="tcfp8", axis=-1, **options):
    return gpu.quantize(on_gpu(np.ones(shape, np.float32)), name, axis, **options)


def test_errors(backend):
    a, b = blocks_of(4, 64), blocks_of(64, 4, axis=0)
    numbers = on_gpu(np.ones((64, 4)))
    for call, error, message in (
        (lambda: a @ a, ValueError, "b must .*; got blocks along axis 1"),
        (lambda: b @ b, ValueError, "a must .*; got blocks along axis 0"),
        (lambda: a @ blocks_of(32, 4, axis=0), ValueError, "got k = 64 and k = 32"),
        (lambda: a @ blocks_of(64, 4, axis=0, block_size=16), ValueError,
         "block size; got 32 and 16"),
        (lambda: a @ numbers, TypeError, "b must .*; got float64"),
        (lambda: a @ on_gpu(np.ones((64, 4), np.int32)), TypeError, "int32"),
        (lambda: a @ np.ones((64, 4), np.float32), TypeError, r"got numpy\.ndarray"),
        (lambda: a @ td.blocks.quantize(np.ones((64, 4)), "tcfp8", 0), TypeError,
         "must be an array on a GPU"),
        (lambda: gpu.matmul(numbers, numbers), TypeError, "a must .*; got float64"),
        (lambda: gpu.matmul(on_gpu(np.ones((4, 4), np.float32)),
                            on_gpu(np.ones((4, 4), np.float32))), TypeError, "a or b"),
        (lambda: gpu.matmul(a, b, terms=2), ValueError, "terms must .*; got 2"),
        (lambda: gpu.matmul(a, b, dtype=np.int32), TypeError, "got int32"),
        (lambda: gpu.matmul(a, b, out=on_gpu(np.ones((4, 5), np.float32))), ValueError,
         "out must have"),
        (lambda: blocks_of(3, 4, 64) @ blocks_of(2, 64, 4, axis=1), ValueError,
         "must broadcast"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()
    with (
        tfc.matmul_mode("model", device="H100"),
        pytest.raises(ValueError, match="model"),
    ):
        a @ b


@pytest.mark.parametrize("pair", PAIRS, ids=name)
def test_of_the_cpu(backend, pair):
    """Bits are those of the CPU's own products, also for stacks and each `terms`."""
    a, b, p, q = operands(np.random.default_rng(14), 40, 200, 30, *pair)
    for terms in (1, 3, None):
        wanted = td.blocks.matmul(a, b, terms=terms)
        assert_bits(gpu.matmul(p, q, terms=terms), wanted, terms)


# -- by tensor cores -------------------------------------------------------------------


def on_tensor_cores(backend, a, b, terms=None):
    device = device_of(backend.architecture())

    def chain(p, q):
        e5m2 = [x.format == "mxfp8_e5m2" for x in (a, b)]
        dtypes = [td.float8_e5m2 if x else td.float8_e4m3fn for x in e5m2]
        p, q = p.astype(dtypes[0]), q.astype(dtypes[1])
        return td.tensor_core.matmul(p, q.T, device=device, instruction="mma.sync")

    return cases.product(a, b, terms, chain)


NATIVE = [
    ("tcfp16", "tcfp16", 3, 32), ("tcfp16", "tcfp16", None, 32),
    ("tcfp8", "tcfp16", None, 32), ("mxfp8_e4m3", "mxfp8_e5m2", None, 32),
    ("tcfp16", "tcfp16", 3, 64), ("tcfp16", "tcfp8", 1, 128),
    ("tcfp12", "mxfp6_e3m2", None, 32), ("mxfp4", "mxfp6_e2m3", None, 64),
    ("tcfp16", "tcfp16", 4, 64), ("tcfp16", "tcfp16", 4, 128),
]  # fmt: skip


ON = [("sm_90a", *x) for x in NATIVE]
ON += [(arch, *x) for arch in ("sm_89", "sm_120a") for x in NATIVE]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("arch", "a", "b", "terms", "size"), ON)
def test_native(backend, arch, a, b, terms, size):
    if backend is HOST:
        HOST.arch = arch
    elif backend.architecture() != arch:
        pytest.skip("another GPU")
    rng = np.random.default_rng(9)
    for m, k, n in ((65, 300, 70), (3, 33, 5)):
        x, y, p, q = operands(rng, m, k, n, a, b, block_size=size)
        wanted = on_tensor_cores(backend, x, y, terms)
        with tfc.matmul_mode("native"):
            assert_bits(gpu.matmul(p, q, terms=terms), wanted, (m, k, n))
        if k > 64 and terms == 3:  # the tensor core truncates, the other mode does not
            assert not np.array_equal(on_host(gpu.matmul(p, q, terms=terms)), wanted)


@pytest.mark.parametrize("tile", [native.LARGE, native.SMALL])
def test_native_tiles(backend, tile):
    rng = np.random.default_rng(10)
    a, b, p, q = operands(rng, 130, 260, 129, "tcfp16", "tcfp16")
    wanted = on_tensor_cores(backend, a, b, 3)
    left, right = products._operand(p, "a", -1), products._operand(q, "b", -2)
    levels = products._levels(left, right, 3)
    for descends in (False, True):
        if backend is HOST:
            HOST.descends = descends
        out = cupy.empty((1, 130, 129), np.float32)
        stacks = [
            x._replace(**{f: getattr(x, f)[None] for f in ("hi", "lo", "scales")})
            for x in (left, right)
        ]
        write = native.plan(*map(lines_of, stacks), Matrices.of(out), levels, tile)
        write(*stacks[0].arrays, *stacks[1].arrays, out)
        assert_bits(out[0], wanted)


def test_native_stacks(backend):
    """Bytes of residuals may begin anywhere, and matrices may repeat."""
    rng = np.random.default_rng(11)
    a, p = both(cases.numbers(rng, (3, 5, 64)), "tcfp16", scale="amax")
    b, q = both(cases.numbers(rng, (4, 64)).T, "tcfp16", 0, scale="amax")
    assert p.residuals.data.ptr % 16
    with tfc.matmul_mode("native"):
        got = p @ q
    wanted = np.array([on_tensor_cores(backend, a[i], b) for i in range(3)])
    assert_bits(got, wanted)


def test_native_stacks_whose_axes_do_not_merge(backend):
    """The matrices of a stack are then not contiguous in the result."""
    rng = np.random.default_rng(12)
    a, p = both(cases.numbers(rng, (5, 1, 9, 64)), "tcfp16", scale="amax")
    b, q = both(cases.numbers(rng, (1, 2, 64, 7)), "tcfp16", -2, scale="amax")
    with tfc.matmul_mode("native"):
        got = on_host(p @ q)
    for i, j in np.ndindex(5, 2):
        wanted = on_tensor_cores(backend, a[i, 0], b[0, j])
        np.testing.assert_array_equal(got[i, j].view("u4"), wanted.view("u4"))


def test_native_errors(backend):
    a, b = blocks_of(4, 64), blocks_of(64, 4, axis=0)
    with tfc.matmul_mode("native"):
        for x, y, message in (
            (blocks_of(4, 64, name="int12"), b, "a must .*; got int12"),
            (a, blocks_of(64, 4, name="mxint8", axis=0), "b must .*; got mxint8"),
            (a, on_gpu(np.ones((64, 4), np.float32)), "b must .* array of numbers"),
            (blocks_of(4, 64, block_size=16), blocks_of(64, 4, axis=0, block_size=16),
             "block size of a must be at least 32.*; got 16"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=message):
                x @ y
        if backend is HOST:
            HOST.arch = "sm_80"
            with pytest.raises(ValueError, match="sm_80 do not support FP8"):
                a @ b


# -- faults ----------------------------------------------------------------------------

#: edits of the kernels, each of which `is_right` should detect
FAULTS = {
    "terms are in another order": (
        "of_a.fetch(task.a, at, levels & 1",
        "of_a.fetch(task.a, at, 0",
    ),
    "scales of hi for all terms": ("of + (levels & 1) * ROWS", "of + 0 * ROWS"),
    "scales of the block before": (
        "scales + (at.k >> shift) % 2 * SCALES",
        "scales + ((at.k >> shift) + 1) % 2 * SCALES",
    ),
    "scales rounded once less": (
        "__fmaf_rn(__fmul_rn(p[r], q[s]), sum[r][s], total[r][s])",
        "__fmaf_rn(p[r], __fmul_rn(q[s], sum[r][s]), total[r][s])",
    ),
    "chains go on": (LINE, ""),
    "no barrier between tiles": (LINE, ""),
    "no barrier before the first tile": (LINE, ""),
    "lines beyond the matrix count": (
        "is_there = first + line < all && k < DEPTH;",
        "is_there = first + line < all - 1 && k < DEPTH;",
    ),
    "scales of residuals are not relative": ("__fmul_rn(s, r)", "r"),
    "lines are of another matrix": ("i / pitch % blocks", "i / pitch % (blocks - 1)"),
}


def is_right(backend):
    right = True
    for shape in ((70, 70, 66), (3, 33, 5)):
        rng = np.random.default_rng(12)
        a, b, p, q = operands(rng, *shape, "tcfp16", "tcfp16", scale_format="ue4m3")
        wanted = cases.product(a, b)
        for HOST.descends in (False, True):
            got = on_host(gpu.matmul(p, q))
            right = right and bool((got.view("u4") == wanted.view("u4")).all())
    return right


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_faults(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS[fault])
    assert is_right(backend) == (fault is None)


FAULTS_OF_NATIVE = {
    "the other level's scales": ("turn.b_level * COLUMNS", "0 * COLUMNS"),
    "chains go on, in native blocks": (
        "now.begins ? zero : d[i][j]",
        "turn == 0 ? zero : d[i][j]",
    ),
    "scales read while their stage is filled": (
        "if (now.ends) {",
        "if (turn == 0) {",
    ),
    "no barrier between slices": (LINE, ""),
    "scales of rows swapped, in native blocks": (
        "p[i * 2 + r / 2]",
        "p[i * 2 + 1 - r / 2]",
    ),
    "scales of columns swapped, in native blocks": (
        "q[j * 2 + r % 2]",
        "q[j * 2 + 1 - r % 2]",
    ),
    "the other level's codes, in native blocks": (
        "reads + next.a_level * Left::BYTES",
        "reads + 0 * Left::BYTES",
    ),
    "scales of another block, in native blocks": (
        "a_scales += is_there ? side_a.block : 0;",
        "a_scales += side_a.level;",
    ),
    "a wait of one group less, in native blocks": (
        "await_copies<STAGES - 2>();",
        "await_copies<STAGES - 1>();",
    ),
}


def is_right_on_tensor_cores(backend, size):
    right = True
    for shape in ((34, 330, 70), (5, 40, 3)):
        rng = np.random.default_rng(13)
        a, b, p, q = operands(rng, *shape, "tcfp16", "tcfp16", block_size=size)
        wanted = on_tensor_cores(backend, a, b, 3)
        for HOST.descends in (False, True):
            with tfc.matmul_mode("native"):
                got = on_host(gpu.matmul(p, q, terms=3))
            right = right and bool((got.view("u4") == wanted.view("u4")).all())
    return right


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fault", [None, *FAULTS_OF_NATIVE])
def test_faults_of_native(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    size = 64 if fault == "chains go on, in native blocks" else 32
    if fault is not None:
        HOST.put_fault(fault, *FAULTS_OF_NATIVE[fault])
    assert is_right_on_tensor_cores(backend, size) == (fault is None)


# -- machine code ----------------------------------------------------------------------


def chain_kernel(a, b):
    options = []
    for side, of in (("A", a), ("B", b)):
        row = td.blocks.formats[of] if of else None
        for level, element in (
            ("HI", row and row.element), ("LO", row and row.residual),
        ):  # fmt: skip
            value = f"tf_element_{element}" if element else "-1"
            options.append(f"-D{side}_{level}={value}")
    return Kernel("cuda/blocks/fma_matmul.cu", "block_chain_large", tuple(options))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sass(arch):
    found = check(chain_kernel("tcfp16", "tcfp16"), arch, needs=("FFMA", "LDS.128"))
    assert found["FFMA"] >= 2 * (64 * 16) // 2
    check(Kernel("cuda/blocks/scales.cu", "block_scales"), arch)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", list(td.blocks.formats))
def test_sass_of_all(arch, name):
    check(chain_kernel(name, name), arch)
    check(chain_kernel(None, name), arch)
    check(chain_kernel(name, None), arch)


def native_kernel(levels, block, tile):
    names = ("float8_e4m3fn", "float8_e4m3fn")
    options = native.options(names, block, levels, tile)
    return Kernel("cuda/blocks/native_matmul.cu", "block_native", options)


WITH_FP8 = [x for x in ARCHITECTURES if x not in ("sm_80", "sm_86")]
THREE = [(0, 0), (0, 1), (1, 0)]
FOUR = [*THREE, (1, 1)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", WITH_FP8)
def test_sass_of_native(arch):
    tile = native.LARGE
    found = check(native_kernel(THREE, 32, tile), arch, needs=("LDSM", "LDGSTS"))
    products = sum(n for x, n in found.items() if x.startswith(("HMMA", "QMMA")))
    turns = tile.slice // 32 * 3
    each = tile.warp_rows // 16 * tile.warp_columns // 8
    assert products in (turns * each, 2 * turns * each)
    assert found["FFMA"] >= 4 * turns * each  # one for each number and term of a block


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", WITH_FP8)
def test_sass_of_all_native(arch):
    for levels in ([(0, 0)], [(0, 0), (0, 1)], THREE, FOUR):
        for tile in (native.LARGE, native.SMALL):
            check(native_kernel(levels, 32, tile), arch)
        for block in (64, 128):
            tile = native.LONG_OF_FOUR if levels is FOUR else native.LONG
            check(native_kernel(levels, block, tile), arch)


def test_shared_memory_suffices():
    """Limits come from the CUDA C++ Programming Guide's table of compute capabilities,
    in KiB."""
    most = {"sm_89": 99, "sm_90a": 227, "sm_100a": 227, "sm_120a": 99}
    for arch, room in most.items():
        for block in (32, 64, 128):
            for levels in (FOUR, THREE, [(0, 0)]):
                for m in (64, 4096):
                    shape = 1, m, m
                    tile = native.choose_tile(
                        arch, HOST.processors(), shape, block, levels
                    )
                    assert native.shared(tile, block, levels) <= room << 10
    assert max(tile.shared for tile in (products.LARGE, products.SMALL)) <= 48 << 10
