"""tf32dtype.cuda.blocks: the bytes and bits of tf32dtype.blocks, on a GPU."""

# ruff: noqa: F811

from __future__ import annotations

import pickle

import numpy as np
import pytest

import tf32dtype as td
from tests.cuda import block_cases as cases
from tests.cuda.block_cases import NAMES, both
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import on_gpu, on_host
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE
from tf32dtype.blocks.formats import scale_formats
from tf32dtype.cuda import blocks as gpu
from tf32dtype.cuda._runtime.backend import Kernel

RULES = ("amax", "floor", "even", "nf", "mse", "published")


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def assert_bits(got, expected, where=""):
    """Fail unless all bits are equal, except those of NaN."""
    got = on_host(got) if isinstance(got, cupy.ndarray) else got
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), where
    item = f"u{got.dtype.itemsize}"
    same = got.view(item) == np.ascontiguousarray(expected).view(item)
    with np.errstate(all="ignore"):
        nan = np.isnan(got.astype(np.float64)) & np.isnan(expected.astype(np.float64))
    assert (same | nan).all(), (where, np.argwhere(~(same | nan))[:4])


def assert_same(mine, cpu, where=""):
    """Fail unless the layouts and the bytes are equal."""
    found = mine.get()
    assert found._layout == cpu._layout, where
    for name in ("scales", "codes", "residuals"):
        x, y = getattr(found, name), getattr(cpu, name)
        assert (x is None) == (y is None)
        if x is not None:
            assert np.array_equal(x, y), (where, name, np.argwhere(x != y)[:4])
    assert found == cpu


# -- quantize --------------------------------------------------------------------------


def rules_of(name):
    row = td.blocks.formats[name]
    return [x for x in RULES if x != "published" or row.name.startswith("tcfp")]


@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "tcfp16", "mxfp4", "nvfp4"])
def test_rules(backend, name):
    rng = np.random.default_rng(1)
    x, edge = cases.numbers(rng, (6, 200)), cases.extreme(rng, (6, 96))
    for rule in rules_of(name):
        for values in (x, edge):
            cpu, mine = both(values, name, scale=rule)
            assert_same(mine, cpu, (name, rule))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_all_rules(backend, name):
    rng = np.random.default_rng(2)
    for rule in rules_of(name):
        for scale_format in (None, *scale_formats):
            if rule == "published" and scale_format is not None:
                continue
            for size in (16, 32, 64, 128):
                x = (
                    cases.extreme(rng, (9, 200))
                    if size > 32
                    else cases.numbers(rng, (9, 200))
                )
                cpu, mine = both(
                    x, name, scale=rule, scale_format=scale_format, block_size=size
                )
                assert_same(mine, cpu, (name, rule, scale_format, size))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tcfp12", {"block_size": 16, "scale_format": "float8_e8m0fnu"}),
        ("tcfp16", {"block_size": 128, "scale_format": "ue4m3"}),
        ("tcfp8", {"rounding": "toward_zero"}),
        ("tcfp16", {"rounding": "to_odd", "scale": "amax"}),
        ("nvfp4", {"scale": "mse", "scale_format": "ue5m3", "block_size": 64}),
    ],
)
def test_options(backend, name, options):
    x = cases.numbers(np.random.default_rng(3), (5, 150))
    cpu, mine = both(x, name, **options)
    assert_same(mine, cpu)
    assert repr(mine) == f"cuda.blocks.{cpu!r}"


def test_stochastic(backend):
    x = cases.numbers(np.random.default_rng(4), (3, 40, 2))
    made = [
        quantize(
            values, "tcfp8", 1, rounding="stochastic", rng=np.random.default_rng(5)
        )
        for quantize, values in ((td.blocks.quantize, x), (gpu.quantize, on_gpu(x)))
    ]
    assert_same(made[1], made[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes(backend, axis):
    x = cases.numbers(np.random.default_rng(6), (5, 40, 3))
    cpu, mine = both(x, "tcfp8", axis, scale="amax")
    assert_same(mine, cpu)
    reverse = gpu.quantize(on_gpu(x)[::-1, :, ::2], "tcfp8", axis, scale="amax")
    assert_same(
        reverse, td.blocks.quantize(x[::-1, :, ::2], "tcfp8", axis, scale="amax")
    )


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, np.int8, np.int64, np.uint32, bool, td.bfloat16]
)
def test_dtypes(backend, dtype):
    """A number that is not a float32 value is first rounded to odd."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 64)) * 100
    if dtype == np.float64:  # a tie of E4M3 but for the last bits
        x[:, ::2] = 17 + rng.choice([-1, 0, 1], (4, 32)) * 2.0**-40
        x[:, 1] = 2.0**60
    elif dtype == np.int64:
        x = rng.integers(-(2**62), 2**62, (4, 64))
        x[1] = (1 << 60) + (1 << 56) + rng.integers(-1, 2, 64)
    elif dtype == np.uint32:
        x = np.abs(x) * 2**20
    values = x.astype(dtype)
    for options in ({}, {"scale": "floor", "scale_format": "float8_e8m0fnu"}):
        cpu, mine = both(values, "tcfp8", **options)
        assert_same(mine, cpu, dtype)


@pytest.mark.parametrize("shape", [(0, 32), (3, 0), (2, 0, 5), (1,), (70000, 1)])
def test_shapes(backend, shape):
    x = np.ones(shape, np.float32)
    cpu, mine = both(x, "mxfp8_e4m3")
    assert_same(mine, cpu)
    assert_bits(mine.dequantize(), cpu.dequantize())


# -- numbers that are not finite -------------------------------------------------------


def odd_ones(shape=(3, 70)):
    x = cases.numbers(np.random.default_rng(8), shape)
    x[0, 3], x[1, 40], x[2, 69], x[2, 5] = np.inf, np.nan, -np.inf, -np.nan
    x[1, :32] = 0
    x[1, 7] = np.inf
    return x


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp4"])
def test_poison(backend, name):
    cpu, mine = both(odd_ones(), name)
    assert_same(mine, cpu)
    assert_bits(mine.dequantize(), cpu.dequantize())
    if backend is HOST:
        assert backend.counts["get"] == 2  # the tests' own


def test_saturate(backend):
    cpu, mine = both(odd_ones(), "tcfp8", overflow="saturate")
    assert_same(mine, cpu)
    assert_bits(mine.dequantize(), cpu.dequantize())
    x = np.where(np.isnan(odd_ones()), 1, odd_ones()).astype(np.float32)
    for name in ("nvfp4", "int12", "tcfp12", "mxint8"):
        cpu, mine = both(x, name, overflow="saturate")
        assert_same(mine, cpu, name)


def raised(call, *arguments, **keywords):
    with pytest.raises((ValueError, TypeError)) as error:
        call(*arguments, **keywords)
    return type(error.value), str(error.value)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tcfp16", {}),
        ("nvfp4", {}),
        ("int8", {"overflow": "saturate"}),
        ("mxfp4", {"scale_format": "ue4m3"}),
        ("tcfp8", {"scale": "other"}),
        ("tcfp8", {"block_size": 48}),
        ("tcfp8", {"axis": 2}),
        ("tcfp8", {"rounding": "stochastic"}),
        ("nothing", {}),
    ],
)
def test_errors(backend, name, options):
    """Errors are those of the CPU, word by word."""
    x = odd_ones()
    wanted = raised(td.blocks.quantize, x, name, **options)
    assert raised(gpu.quantize, on_gpu(x), name, **options) == wanted


def test_errors_of_operands(backend):
    with pytest.raises(
        TypeError, match=r"must be an array on a GPU; got numpy\.ndarray"
    ):
        gpu.quantize(np.ones(32, np.float32), "tcfp8")
    with pytest.raises(TypeError, match="real numbers; got complex64"):
        gpu.quantize(on_gpu(np.ones(32, np.complex64)), "tcfp8")
    with pytest.raises(TypeError, match="must be an array of blocks"):
        gpu.asarray(np.ones(3))
    with pytest.raises(TypeError, match="cannot create a BlockArray"):
        gpu.BlockArray()
    mine = gpu.quantize(on_gpu(np.ones(32, np.float32)), "tcfp8")
    with pytest.raises(TypeError, match=r"get\(\)"):
        np.asarray(mine)
    with pytest.raises(TypeError, match="dequantize"):
        np.add(mine, 1)


# -- arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_parts(backend, name):
    x = cases.extreme(np.random.default_rng(9), (4, 3, 70))
    cpu = td.blocks.quantize(x, name, 1 if name == "tcfp12" else -1, scale="amax")
    mine = gpu.asarray(cpu)
    assert_same(mine, cpu)
    assert mine.nbytes == cpu.nbytes
    assert_bits(mine.block_scales, cpu.block_scales)
    assert_bits(mine.elements, cpu.elements)
    if cpu.residuals is None:
        assert mine.residuals is mine.residual_elements is None
    else:
        assert_bits(mine.residuals, cpu.residuals)
        assert_bits(mine.residual_elements, cpu.residual_elements)
    for dtype in (np.float32, np.float64, np.float16, td.bfloat16, td.float8_e4m3fn):
        assert_bits(mine.dequantize(dtype), cpu.dequantize(dtype), (name, dtype))
    again = pickle.loads(pickle.dumps(mine))
    assert again == mine
    assert again is not mine
    assert mine.tobytes() == cpu.tobytes()


def test_lines(backend):
    """Index along other axes than the blocks', and permute axes."""
    x = cases.numbers(np.random.default_rng(10), (5, 40, 6))
    cpu, mine = both(x, "tcfp16", 1, scale="amax")
    keys = (
        2, slice(1, 4), (slice(None), slice(None), slice(None, None, -2)),
        (Ellipsis, 3), ([4, 0, 2],), (slice(3, 3),), (slice(None, None, 2),),
    )  # fmt: skip
    for key in keys:
        assert_same(mine[key], cpu[key], key)
        assert_bits(mine[key].dequantize(), cpu[key].dequantize(), key)
    assert_same(mine.T, cpu.T)
    assert_same(mine.mT, cpu.mT)
    assert_bits(mine.T.dequantize(), cpu.T.dequantize())
    assert mine[0].mT.buffer is mine[0].buffer or len(mine[0]) == 40
    assert mine != mine[::-1]
    assert mine != 3
    assert [y.shape for y in mine] == [(40, 6)] * 5
    with pytest.raises(IndexError, match="block axis"):
        mine[:, 3]


def test_dequantize_into(backend):
    x = cases.numbers(np.random.default_rng(11), (8, 70))
    cpu, mine = both(x, "tcfp12", scale="amax")
    for dtype in (np.float32, np.float16, td.bfloat16):
        wide = on_gpu(np.zeros((8, 140), dtype))
        for out in (wide[:, ::2], on_gpu(np.zeros((8, 70), dtype))):
            assert mine.dequantize(dtype, out) is out
            assert_bits(out, cpu.dequantize(dtype))
    back = on_gpu(np.zeros((70, 8), np.float32))
    assert_bits(mine.T.dequantize(out=back), cpu.T.dequantize())
    with pytest.raises(TypeError, match="out must be an array of float64; got float32"):
        mine.dequantize(np.float64, back)
    with pytest.raises(ValueError, match="out must have shape"):
        mine.dequantize(out=back)
    with pytest.raises(TypeError, match="got int32"):
        mine.dequantize(np.int32)


# -- faults ----------------------------------------------------------------------------

FAULTS = {
    "draws of another number": ("draws[at + i]", "draws[at]"),
    "a short block not filled up": (
        "numbers[i] = i < left ? x[i] : 0;",
        "numbers[i] = x[i < left ? i : 0];",
    ),
    "bits of a code lost": (
        "bits |= (uint64_t)code_of",
        "bits = (uint64_t)code_of",
    ),
    "codes at an odd place": ("(bits >> 16 * i)", "(bits >> 16 * (i & 1))"),
    "a poisoned block": ("poisoned ? 0xFF", "special ? 0xFE"),
    "half a block has no say": (
        "return most_of_block(tf_greatest_magnitude(x, n));",
        "const uint32_t y = tf_greatest_magnitude(x, n);"
        " return max(y, __shfl_xor_sync(~0u, y, 1));",
    ),
    "a zero's sign": (
        "tf_with_sign(tf_magnitude_of(tf_to_odd(q, x, s)), x)",
        "tf_to_odd(q, x, s)",
    ),
    "costs of another block": ("x = room->x + block * BLOCK_SIZE;", "x = room->x;"),
    "remainders of another block": (
        "*y = room->y + block * BLOCK_SIZE;",
        "*y = room->y;",
    ),
    "a window of another block": ("of_lane(from, block * LANES)", "of_lane(from, 0)"),
    "costs read early": (LINE, ""),
    "a scale of another block": ("of_lane(scale, block * LANES)", "of_lane(scale, 0)"),
    "scales are of the block before": ("scales[2 * b + 1] =", "scales[2 * b] ="),
    "the least number of blocks": (
        "least = most && ~most > least",
        "least = ~most > least",
    ),
    "NaN counts as the greatest": ("if (magnitude < infinite) {", "if (magnitude) {"),
    "to nearest first": ("&& !TO_ODD>(item)", "&& true>(item)"),
    "to nearest before another format": (
        "const bool is_plain = !of.odd &&",
        "const bool is_plain =",
    ),
    "an integer's sign": ("return (code ^ sign) - sign;", "return code;"),
    "another block's scale": ("scales[TWO ? 2 * block : block]", "scales[block]"),
}


def beside_a_tie():
    """Return numbers whose nearest float32 is a tie of bfloat16, although they are not
    ties."""
    tie = 1 + 2.0**-8
    for hi in range(3, 999, 2):
        scale = np.float32(tie / hi)
        exact = float(scale) * hi
        if exact > tie == float(np.float32(exact)):
            break
    return td.blocks.BlockArray.from_codes(
        "int16", np.full(32, hi, np.int16), np.array([0x38], np.uint8), shape=(32,),
        scale_format="ue4m3", tensor_scale=float(scale),
    )  # fmt: skip


def test_one_rounding(backend):
    found = gpu.asarray(beside_a_tie()).dequantize(td.bfloat16)
    assert (on_host(found).astype(np.float32) == 1 + 2.0**-7).all()


def is_right(backend):
    """Return whether all of these results are the CPU's."""
    rng = np.random.default_rng(12)
    x = cases.numbers(rng, (6, 90))
    odd = np.where(rng.random(x.shape) < 0.01, np.nan, x).astype(np.float32)
    wide = 17 + rng.choice([-1, 0, 1], (4, 64)) * 2.0**-40
    wide[:, 0] = 448
    even = rng.standard_normal((4, 64)).astype(np.float32)
    even[1, :32] = 0
    stochastic = {"rounding": "stochastic", "scale": "amax"}
    right = []
    for values, name, options in (
        (x, "tcfp8", {}), (x, "tcfp12", {"scale": "amax"}), (x, "tcfp8", stochastic),
        (odd, "tcfp16", {"overflow": "saturate", "scale_format": "ue5m3"}),
        (wide, "mxfp8_e4m3", {}), (x, "mxfp6_e2m3", {}), (odd, "mxfp8_e4m3", {}),
        (x, "int12", {"scale": "amax"}), (even, "tcfp8", {}),
        (x[5:], "tcfp16", {"scale": "amax", "scale_format": "ue3m5"}),
    ):  # fmt: skip
        rngs = [
            np.random.default_rng(1) if options is stochastic else None for _ in "ab"
        ]
        cpu = td.blocks.quantize(values, name, rng=rngs[0], **options)
        mine = gpu.quantize(on_gpu(values), name, rng=rngs[1], **options)
        right.append(mine.get() == cpu)
        mine = gpu.asarray(cpu)
        for dtype in (np.float32, td.float8_e4m3fn):
            found, wanted = on_host(mine.dequantize(dtype)), cpu.dequantize(dtype)
            right.append(found.tobytes() == wanted.tobytes())
        right.append(on_host(mine.elements).tobytes() == cpu.elements.tobytes())
    once = on_host(gpu.asarray(beside_a_tie()).dequantize(td.bfloat16))
    return all(right) and bool((once.astype(np.float32) > 1.005).all())


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_faults(backend, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS[fault])
    right = []
    for HOST.descends in (False, True):
        right.append(is_right(backend))
    assert all(right) == (fault is None)


# -- machine code ----------------------------------------------------------------------


def decoder(name):
    row = td.blocks.formats[name]
    residual = f"tf_element_{row.residual}" if row.residual else "-1"
    options = f"-DHI=tf_element_{row.element}", f"-DLO={residual}"
    return Kernel("cuda/blocks/decode.cu", "block_decode_single", options)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", NAMES)
def test_sass_of_decode(arch, name):
    check(decoder(name), arch)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sass(arch):
    check(Kernel("cuda/blocks/bounds.cu", "block_bounds"), arch)
    check(decoder("tcfp16"), arch)
    to_odd = "-DFROM=TF_FLOAT64", "-DTO=TF_FLOAT32", "-DTO_ODD=1"
    check(Kernel("cuda/formats/cast.cu", "cast", to_odd), arch)


def quantizer(name, size, searches):
    row = td.blocks.formats[name]
    residual = f"tf_element_{row.residual}" if row.residual else "-1"
    options = (
        f"-DHI=tf_element_{row.element}",
        f"-DRESIDUAL={residual}",
        f"-DBLOCK_SIZE={size}",
        f"-DSEARCHES={searches}",
    )
    return Kernel("cuda/blocks/quantize.cu", "block_quantize", options)


#: A division flushes only in these instructions, after it has scaled its operands.
STEPS = "FSETP.GTU.FTZ", "FSETP.NEU.FTZ", "FADD.FTZ"


@pytest.mark.parametrize("searches", [0, 1])
def test_sass_of_quantize(searches):
    check(quantizer("tcfp16", 32, searches), "sm_90a", ("FFMA", "SHFL"), STEPS)


@pytest.mark.exhaustive
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("searches", [0, 1])
@pytest.mark.parametrize("size", [16, 128])
@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "nvfp4", "int16"])
def test_sass_of_all_quantize(arch, searches, size, name):
    check(quantizer(name, size, searches), arch, ("FFMA", "SHFL"), STEPS)


@pytest.mark.parametrize("name", ["mxfp8_e4m3", "mxfp4", "tcfp8", "nvfp4"])
def test_numbers_beyond_float32(backend, name):
    """Numbers above float32's range become Inf, or saturate to its largest number."""
    x = np.array([1.0, 0.5, 1e300, -1] * 16)
    limit = np.nextafter(2.0**128 - 2.0**103, 0)
    for values, options in (
        (x, {"overflow": "saturate"}),
        (np.where(x == 1e300, -(2.0**128), x), {"overflow": "saturate"}),
        (np.where(x == 1e300, limit, x), {}),
    ):
        cpu, mine = both(values, name, **options)
        assert_same(mine, cpu)
    if td.blocks.formats[name].poisons:
        cpu, mine = both(x, name)
        assert_same(mine, cpu)
        assert np.isnan(cpu.dequantize()).all()
        return
    with pytest.raises(ValueError, match=r"range of float32; got 1e\+300 at x\[2\]"):
        gpu.quantize(on_gpu(x), name)
