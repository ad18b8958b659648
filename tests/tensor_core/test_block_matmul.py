"""Products of arrays of blocks on tensor cores: block by block, and as a function."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.reference import tensor_core_scaled as reference
from tests.reference.blocks_matmul import block_scale, residual_scale
from tests.reference.codec import Exact, decode_code
from tests.reference.formats import FLOAT32
from tests.support.interpreters import run, run_code
from tests.tensor_core.scaled_cases import (
    DISTINCT,
    E4M3,
    E5M2,
    FP4,
    POWERS,
    Array,
    Blocks,
    assert_bits,
    elements,
    words,
)
from tf32dtype import _core
from tf32dtype.tensor_core import devices
from tf32dtype.tensor_core.block_products import read
from tf32dtype.tensor_core.look_up import find_model

matmul = td.tensor_core.matmul


# -- block by block ------------------------------------------------------------


def two_levels(
    rng: np.random.Generator,
    element: str,
    residual: str | None,
    scale: str,
    shape: tuple[int, int],
    block: int,
) -> tuple[Blocks, list[tuple[Array, list[list[Exact]]]]]:
    """Return lines along k as an array of blocks, and as the reference reads them."""
    lines, k = shape
    blocks = -(-k // block)
    codes = rng.integers(100, 150, (lines, blocks, 2)).astype(np.uint8)
    if scale == "ue4m3":
        codes = (codes - 70).astype(np.uint8)
    tensor = np.float32(1 if scale == POWERS else 0.7 if scale == "ue4m3" else 2.0**-30)
    exact_tensor = decode_code(FLOAT32, int(words(tensor)[0]))
    high = elements(rng, element, shape, "normal")
    levels = [
        (
            high,
            [
                [block_scale(scale, exact_tensor, int(c)) for c in line]
                for line in codes[..., 0]
            ],
        )
    ]
    lower: Any = None
    if residual is not None:
        if residual == "int4":
            lower = rng.integers(-8, 8, shape).astype(np.int8)
            low = words(lower)
        else:
            low = elements(rng, residual, shape, "normal")
            lower = low.view(np.float32).astype(getattr(td, residual))
        relative = [
            [residual_scale(scale, residual, int(c)) for c in line]
            for line in codes[..., 1]
        ]
        both = zip(levels[0][1], relative, strict=True)
        levels.append(
            (
                low,
                [
                    [reference.times(s, r) for s, r in zip(*x, strict=True)]
                    for x in both
                ],
            )
        )
    array = Blocks(
        "two levels" if residual else "one level",
        high.view(np.float32).astype(getattr(td, element)),
        codes if residual else codes[..., 0],
        1,
        block,
        scale,
        tensor,
        lower,
    )
    return array, levels


def transposed(x: Blocks) -> Blocks:
    lower = x.residual_elements
    return replace(
        x,
        elements=x.elements.T,
        axis=0,
        residual_elements=None if lower is None else lower.T,
    )


UNITS = [
    (device.name, model.instruction, model.a, model.b)
    for device in devices.values()
    for model in device.models
    if model.accumulator == "float32" and {model.a, model.b} <= {E4M3, E5M2, FP4}
]
SCALES = (POWERS, "ue4m3", "ue5m3", "ue4m4", "ue3m5")
PLAIN = [u for u in UNITS if u[2] == u[3] == E4M3]


def check_promoted(
    unit: tuple[str, str, str, str],
    residuals: tuple[str | None, str | None],
    scale: str,
    block: int,
    k: int,
    terms: int | None,
    seed: int = 1,
) -> int:
    device, instruction, *formats = unit
    rng = np.random.default_rng(seed)
    (a, x), (b, y) = (
        two_levels(rng, f, r, scale, (3, k), block)
        for f, r in zip(formats, residuals, strict=True)
    )
    c = rng.standard_normal((3, 3)).astype(np.float32)
    keywords = {"device": device, "instruction": instruction, "terms": terms}
    got = matmul(a, transposed(b), c, **keywords).view(np.uint32)
    model = find_model(device, instruction, *formats, "float32")
    want = [
        [
            reference.promoted_dot(
                model,
                [(bits[i].tolist(), s[i]) for bits, s in x],
                [(bits[j].tolist(), s[j]) for bits, s in y],
                int(words(c[i, j])[0]),
                block,
                terms or 4,
            )
            for j in range(3)
        ]
        for i in range(3)
    ]
    assert_bits(got.reshape(-1), np.array(want, np.uint32).reshape(-1))
    return got.size


@pytest.mark.parametrize("unit", PLAIN, ids=" ".join)
@pytest.mark.parametrize("terms", [None, 1, 3, 4])
def test_blocks_with_residuals(unit, terms, compared):
    for residual in (E4M3, "int4"):
        compared(check_promoted(unit, (residual, residual), "ue3m5", 32, 100, terms))


@pytest.mark.parametrize("unit", UNITS, ids=" ".join)
def test_blocks_of_one_level(unit, compared):
    # No block-scaled instruction takes these scales.
    for block, k in ((32, 64), (64, 150), (128, 128)):
        compared(check_promoted(unit, (None, None), "ue5m3", block, k, None))


@pytest.mark.parametrize("scale", SCALES)
def test_all_scales(scale, compared):
    for residuals in ((None, None), (E4M3, None), (None, E4M3), (E4M3, E4M3)):
        compared(check_promoted(PLAIN[1], residuals, scale, 32, 70, None))


def test_short_blocks_where_sums_are_short():
    check_promoted(PLAIN[0], (E4M3, E4M3), "ue4m4", 16, 40, None)


def test_promotion_is_seen():
    """The blocks hold 1 and 2^-20. One chain of e8m13 would lose the second number."""
    a = np.zeros((1, 64), np.float32)
    a[0, 0], a[0, 32] = 1, 2.0**-9
    x = Blocks("", a.astype(td.float8_e4m3fn), np.full((1, 2), 127, np.uint8), 1, 32,
               POWERS)  # fmt: skip
    x.scales[0, 1] = 127 - 11
    ones = np.ones((1, 64), td.float8_e4m3fn)
    y = transposed(replace(x, elements=ones, scales=np.full((1, 2), 127, np.uint8)))
    assert float(matmul(x, y, device="H100")[0, 0]) == 1 + 2.0**-20


def test_specials_of_promoted_blocks():
    x = Blocks("", np.ones((1, 64), td.float8_e4m3fn), np.full((1, 2), 127, np.uint8),
               1, 32, POWERS)  # fmt: skip
    y = transposed(x)
    poisoned = replace(x, scales=np.uint8([[127, 255]]))
    for a, b in ((poisoned, y), (x, transposed(poisoned))):
        assert words(matmul(a, b, device="H100")) == 0x7FFFFFFF
    great = replace(x, scales=np.uint8([[254, 254]]))
    assert float(matmul(great, y, device="H100")[0, 0]) == np.inf  # 32 * 2^127


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", [i for i in _core.available_isas() if i != td.isa()])
def test_product_on_every_instruction_set(isa):
    scaled = Path(__file__).with_name("test_scaled_mma.py")
    tests = [
        f"{scaled}::test_product_is_all_its_chains",
        f"{__file__}::test_all_scales",
    ]
    printed = run(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "exhaustive or not exhaustive",
        *tests,
        TF32DTYPE_ISA=isa,
        timeout=600,
    )
    assert f"{len(DISTINCT) + len(SCALES)} passed" in printed


# -- as a function -------------------------------------------------------------


def stack(shape: tuple[int, ...], axis: int, seed: int, **changes: Any) -> Blocks:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape).astype(td.float8_e4m3fn)
    others = shape[:axis] + shape[axis + 1 :]
    codes = rng.integers(120, 130, (*others, -(-shape[axis] // 32))).astype(np.uint8)
    return replace(Blocks("mxfp8_e4m3", x, codes, axis, 32, POWERS), **changes)


def part(x: Blocks, index: int) -> Blocks:
    return replace(
        x, elements=x.elements[index], scales=x.scales[index], axis=x.axis - 1
    )


@pytest.mark.parametrize("device", ["B200", "H100"])
def test_stacks_and_vectors(device):
    a, b = stack((2, 1, 3, 70), 3, 1), stack((4, 70, 5), 1, 2)
    whole = matmul(a, b, device=device)
    assert whole.shape == (2, 4, 3, 5)
    for i in range(2):
        for j in range(4):
            one = matmul(part(part(a, i), 0), part(b, j), device=device)
            np.testing.assert_array_equal(whole[i, j], one)
    matrix = part(part(a, 0), 0)
    row = part(matrix, 1)
    single_row = matmul(row, part(b, 2), device=device)
    np.testing.assert_array_equal(single_row, whole[0, 2, 1])
    b_lines = b.elements[2].T
    column = replace(b, elements=b_lines[3], scales=b.scales[2, 3], axis=0)
    np.testing.assert_array_equal(
        matmul(matrix, column, device=device), whole[0, 2, :, 3]
    )
    scalar = matmul(row, column, device=device)
    assert scalar == whole[0, 2, 1, 3]
    assert isinstance(scalar, np.float32)
    negative = replace(matrix, axis=-1), replace(part(b, 2), axis=-2)
    np.testing.assert_array_equal(matmul(*negative, device=device), whole[0, 2])


@pytest.mark.parametrize("device", ["B200", "H100"])
def test_accumulators_and_targets(device):
    a, b = stack((3, 64), 1, 1), stack((64, 5), 0, 2)
    zero = matmul(a, b, device=device)
    out = np.full((5, 3), 7, np.float32).T
    assert matmul(a, b, out=out, device=device) is out
    np.testing.assert_array_equal(out, zero)
    np.testing.assert_array_equal(matmul(a, b, zero * 0, device=device), zero)
    assert (matmul(a, b, 2.0**30, device=device) > 2**29).all()
    none = stack((3, 0), 1, 1), stack((0, 5), 0, 2)
    np.testing.assert_array_equal(matmul(*none, 3, device=device), np.full((3, 5), 3))
    assert matmul(stack((0, 64), 1, 1), b, device=device).shape == (0, 5)
    for wrong in (zero.astype(np.float64), zero.astype(np.float16)):
        with pytest.raises(TypeError, match=r"dtype of the accumulators, float32"):
            matmul(a, b, wrong, device=device)
        with pytest.raises(TypeError, match="dtype of the accumulators, float32"):
            matmul(a, b, out=wrong, device=device)


A, B = stack((3, 64), 1, 1), stack((64, 5), 0, 2)
A4 = replace(A, elements=A.elements.astype(td.float4_e2m1fn))
A6 = replace(A, elements=A.elements.astype(td.float6_e2m3fn), format="mxfp6_e2m3")
A8 = replace(A, elements=np.ones((3, 64), np.int8), format="mxint8")
SMALL = (
    replace(A, block_size=16, scales=np.repeat(A.scales, 2, 1)),
    replace(B, block_size=16, scales=np.repeat(B.scales, 2, 1)),
)
WHOLE = replace(A, scale_format="ue3m5")
LEVELS = replace(
    A, residual_elements=A.elements, scales=np.stack([A.scales] * 2, axis=-1)
)

VALUE_ERRORS = [
    (A, B, {"device": "V100"}, "V100 mma.sync cannot multiply float8_e4m3fn"),
    (A, B, {"device": "K80"}, "device must be one of .*; got 'K80'"),
    (
        A,
        B,
        {"instruction": "wmma"},
        "'tcgen05', 'mma.sync', 'tcgen05.mxf4',.*; got 'wmma'",
    ),
    (
        A,
        B,
        {"device": "H100", "instruction": "tcgen05.mxf4"},
        "instruction of H100 must be",
    ),
    (A, B, {"instruction": "tcgen05.mxf4"}, r"tcgen05\.mxf4 cannot multiply float8_e4"),
    (
        A,
        B,
        {"instruction": "tcgen05.mxf4"},
        "its models are float4_e2m1fn",
    ),
    (A6, B, {"instruction": "tcgen05.mxf4"}, "multiply float6_e2m3fn x float8_e4m3fn"),
    (A6, B, {"device": "H100"}, "H100 wgmma cannot multiply float6_e2m3fn"),
    (
        WHOLE,
        B,
        {"instruction": "tcgen05.mxf8f6f4"},
        "got ue3m5 and float8_e8m0fnu scales",
    ),
    (LEVELS, B, {"instruction": "tcgen05.mxf8f6f4"}, "got residuals in a"),
    (*SMALL, {"device": "H100"}, "multiple of 32 for H100 wgmma.*; got 16"),
    (
        *SMALL,
        {"device": "H100", "instruction": "mma.sync"},
        "modeled with 32 products",
    ),
    (SMALL[0], B, {}, "block size; got 16 and 32"),
    (replace(A, axis=0), B, {}, "a must .*; got blocks along axis 0 of shape .3, 64."),
    (A, replace(B, axis=1), {}, r"b must .* axis -2; .* shape .64, 5."),
    (stack((3, 96), 1, 1), B, {}, "got k = 96 and k = 64"),
    (A, B, {"terms": 2}, "terms must be one of 1, 3, 4 or None; got 2"),
    (
        A,
        B,
        {"accumulator": np.float16},
        "accumulator must be float32 for arrays of blocks",
    ),
    (A, B, {"promote_every": 128}, "promote_every must be None .*; got 128"),
    (A, B, {"rounding": "toward_zero"}, "rounding must be None .*; got 'toward_zero'"),
]


@pytest.mark.parametrize(("a", "b", "keywords", "message"), VALUE_ERRORS)
def test_value_errors(a, b, keywords, message):
    with pytest.raises(ValueError, match=message):
        matmul(a, b, **({"device": "B200"} | keywords))


def test_type_errors():
    dense = np.ones((64, 5), td.float8_e4m3fn)
    for a, b, message in (
        (A, dense, "b must be an array of blocks .*; got float8_e4m3fn"),
        (dense.T, B, "a must be an array of blocks .*; got float8_e4m3fn"),
        (A8, B, "a must .*; got mxint8, whose elements are int8"),
    ):
        with pytest.raises(TypeError, match=message):
            matmul(a, b, device="B200")
    with pytest.raises(TypeError, match=r"tensor_core\.matmul takes arrays of blocks"):
        td.tensor_core.explain(A, B, device="B200")
    with pytest.raises(TypeError, match=r"tensor_core\.matmul takes arrays of blocks"):
        td.tensor_core.identify(A, B, None, np.float32(1))


def test_what_is_for_blocks_alone():
    dense = np.ones((4, 32), td.float8_e4m3fn)
    with pytest.raises(ValueError, match=r"terms must be None .*; got 3"):
        matmul(dense, dense.T, device="H100", terms=3)
    with pytest.raises(ValueError, match=r"multiplies only block-scaled arrays"):
        matmul(dense, dense.T, device="B200", instruction="tcgen05.mxf8f6f4")


def test_blocks_are_not_imported():
    code = "import sys, tf32dtype.tensor_core; print('tf32dtype.blocks' in sys.modules)"
    assert run_code(code).strip() == "False"


# -- arrays of this package ----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "device", "instruction", "least"),
    [
        ("mxfp8_e4m3", "B200", "tcgen05.mxf8f6f4", 27.5),
        ("mxfp8_e5m2", "RTX Blackwell", "mma.sync.mxf8f6f4", 22),
        ("mxfp4", "B200", "tcgen05.mxf4", 15.5),
        ("nvfp4", "B200", "tcgen05.mxf4nvf4", 17),
        ("nvfp4", "RTX Blackwell", "mma.sync.mxf4nvf4", 17),
        ("tcfp8", "H100", "wgmma", 31),
        ("tcfp12", "H100", "wgmma", 54),
        ("tcfp16", "H100", "wgmma", 68),
        ("tcfp16", "B200", "tcgen05", 68),
    ],
)
def test_arrays_of_the_package(name, device, instruction, least):
    """Each product is near the float64 product, as far as its formats allow."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((60, 250)), rng.standard_normal((250, 70))
    a, b = td.blocks.quantize(x, name), td.blocks.quantize(y, name, axis=-2)
    got = matmul(a, b, device=device, instruction=instruction)
    want = x @ y
    snr = 10 * np.log10((want**2).sum() / ((got - want) ** 2).sum())
    assert snr >= least, snr
    for array, operand in ((a, read(a, "a", "b")), (b, read(b, "b", "a"))):
        np.testing.assert_array_equal(operand.levels[0].values, array.block_scales)
    exact = a.dequantize(np.float64) @ b.dequantize(np.float64)
    bits = 13 if device == "H100" else 20
    assert np.abs(got - exact).max() <= 2.0**-bits * np.abs(exact).max()
    np.testing.assert_array_equal(matmul(a, b, device=device), got)


@pytest.mark.parametrize("device", ["H100", "B200"])
def test_three_products_of_eight_bits(device):
    """Three products reach the accuracy of TCFP-16; one product is no better than
    TCFP-8."""
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((100, 512)), rng.standard_normal((512, 100))
    want = x @ y
    a, b = (td.blocks.quantize(z, "tcfp16", axis=i) for z, i in ((x, -1), (y, -2)))
    for terms, least in ((1, 28), (3, 63), (4, 68)):
        got = matmul(a, b, device=device, terms=terms)
        snr = 10 * np.log10((want**2).sum() / ((got - want) ** 2).sum())
        assert least <= snr < least + 3, (terms, snr)
