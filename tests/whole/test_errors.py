"""Errors name the value, what is allowed and what to do, on one short line."""

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype import blocks, tensor_core
from tf32dtype._base.wording import brief

LONG = 600  # characters; the longest list of valid names takes 575

SINGLE = np.ones((3, 4), np.float32)
HALF = SINGLE.astype(np.float16)
BF16 = SINGLE.astype(td.bfloat16)
PACKED = blocks.quantize(np.ones((4, 64), np.float32), "mxfp4")
BIG = np.arange(5000.0, dtype=np.float32).reshape(50, 100)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (BIG, "an array of float32, shape (50, 100)"),
        (BIG.astype(td.bfloat16), "an array of bfloat16, shape (50, 100)"),
        (PACKED, "an array of mxfp4 blocks, shape (4, 64)"),
        ("bf17", "'bf17'"),
        (None, "None"),
        (td.bfloat16, "<class 'tf32dtype.bfloat16'>"),
        (np.dtype("f4"), "dtype('float32')"),
        ([1, 2], "[1, 2]"),
        ([1] * 5000, "[1, 1, 1, 1, 1, 1, ...]"),
        (np.float32(1.5), repr(np.float32(1.5))),
    ],
)
def test_brief(value, said):
    assert brief(value) == said


def test_brief_is_one_short_line():
    for value in ("z" * 5000, [BIG], {1: BIG}, 10**400, "a\nb" * 500, {*range(5000)}):
        assert len(brief(value)) < 300
        assert "\n" not in brief(value)


# -- values that may be long -----------------------------------------------------------

CALLS = {
    "quantize": (
        td.quantize,
        (SINGLE, "bf16"),
        ["rounding", "overflow", "rng", "out"],
    ),
    "matmul": (
        lambda *a, **k: td.matmul(*a, **{"precision": "bf16"} | k),
        (SINGLE, SINGLE.T),
        "precision rounding scale special_values device instruction out".split(),
    ),
    "tensor_core.matmul": (
        lambda *a, **k: tensor_core.matmul(*a, **{"device": "H100"} | k),
        (HALF, HALF.T),
        "device instruction accumulator c out rounding terms promote_every".split(),
    ),
    "einsum": (
        lambda *a, **k: td.einsum(*a, **{"precision": "bf16"} | k),
        ("ij,kj->ik", SINGLE, SINGLE),
        "optimize out precision rounding scale special_values device".split(),
    ),
    "from_bits": (td.from_bits, ([1], "bf16"), ["dirty"]),
    "blocks.quantize": (
        blocks.quantize,
        (SINGLE, "mxfp4"),
        "axis block_size scale scale_format rounding overflow rng".split(),
    ),
    "blocks.matmul": (blocks.matmul, (PACKED, PACKED.T), ["terms", "out"]),
    "dequantize": (PACKED.dequantize, (), ["out"]),
    "formats": (td.formats.__getitem__, ("bf16",), []),
    "blocks.formats": (blocks.formats.__getitem__, ("mxfp4",), []),
    "devices": (tensor_core.devices.__getitem__, ("H100",), []),
    "tf32": (td.tf32, ("1",), []),
}
VALUES = {
    "array": BIG,
    "bfloat16": BIG.astype(td.bfloat16),
    "blocks": PACKED,
    "list": list(range(5000)),
    "text": "z" * 5000,
}


@pytest.mark.parametrize("name", CALLS)
def test_no_error_prints_a_long_value(name):
    function, arguments, keywords = CALLS[name]
    for value in VALUES.values():
        tries = [
            ((*arguments[:i], value, *arguments[i + 1 :]), {})
            for i in range(len(arguments))
        ]
        tries += [(arguments, {keyword: value}) for keyword in keywords]
        for given, named in tries:
            try:
                function(*given, **named)
            except Exception as error:
                text = str(error)
                if text.startswith("data type 'zzz"):
                    continue  # NumPy's own
                assert len(text) < LONG, (name, named, text[:100])
                assert "\n" not in text, (name, named)


# -- products --------------------------------------------------------------------------


def products(**options):
    return lambda a=SINGLE, b=None: td.matmul(
        a, a.T if b is None else b, **{"precision": "bf16"} | options
    )


FLOAT64 = r"x\.astype\(np\.float32\), or multiply in the scope of td\.matmul_precision"
CURES = [
    (products(), SINGLE.astype(float), FLOAT64 + r"\('bf16', float64=True\)"),
    (products(), SINGLE.astype("F"), r"td\.matmul_precision\('bf16', complex64=True\)"),
    (products(), SINGLE.astype("D"), "'bf16', float64=True, complex64=True"),
    (products(), HALF, r"got float16 and float16\. Cast them, x\.astype\("),
    (products(), SINGLE.astype("i1"), r"got int8 and int8\. Cast them, x\.astype"),
    (products(), BF16, r"Omit precision=, or cast to float32, x\.astype\("),
    (
        products(precision=None, device="A100"),
        SINGLE,
        r"Use precision tf32, tf32x3, bf16, bf16x3, bf16x6, bf16x9 or f16\..*"
        r"td\.tensor_core\.matmul\(a, b, device='A100'\)",
    ),
    (products(precision=None, device="V100"), SINGLE, r"Use precision f16\. "),
    (products(instruction="wgmma"), SINGLE, r"Use device H100$"),
    (products(instruction="bogus"), SINGLE, r"Use device V100, T4, A100, L40S"),
    (
        products(precision="f32", device="T4"),
        SINGLE,
        "'T4' does not support precision 'f32'. Use f16",
    ),
    (products(device="V100"), SINGLE, "Devices that can: A100, L40S, H100, B200"),
    (
        products(scale="row"),
        SINGLE,
        "with precision fp8_e4m3 or fp8_e5m2; got precision='bf16'",
    ),
    (products(precision=None, scale="row"), SINGLE, "; got none"),
    (products(out=[1]), SINGLE, r"out must be an array; got \[1\]"),
]


@pytest.mark.parametrize(("call", "operand", "words"), CURES)
def test_a_product_that_cannot_be_names_the_cure(call, operand, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(operand)


def test_the_cures_work():
    double = SINGLE.astype(float)
    with td.matmul_precision("bf16", float64=True):
        double @ double.T
    with td.matmul_precision("bf16", complex64=True):
        double.astype("F") @ double.T.astype("F")
    for short in "tf32 tf32x3 bf16 bf16x3 bf16x6 bf16x9 f16".split():
        td.matmul(SINGLE, SINGLE.T, precision=short, device="A100")


def test_einsum_takes_numbers():
    for dtype in ("U1", "S1", "M8[s]", "m8[s]", "V2"):
        with pytest.raises(TypeError, match="operand 1 must hold numbers; got "):
            td.einsum("ij,jk->ik", SINGLE, np.zeros((4, 3), dtype))
    with pytest.raises(TypeError, match="a string such as 'ij,jk->ik'; got an array"):
        td.einsum(SINGLE)


def test_a_number_format_is_no_block_format():
    with pytest.raises(ValueError, match=r"td\.quantize\(x, 'bf16'\) to round each"):
        blocks.quantize(SINGLE, "bf16")
    with pytest.raises(TypeError, match=r"a name or a row of .*; got <class"):
        blocks.quantize(SINGLE, td.bfloat16)


@pytest.mark.parametrize(
    ("a", "b", "options", "words"),
    [
        (SINGLE, np.float32(1), {}, r"at least one axis; .* \(3, 4\) and \(\)"),
        (
            np.ones((2, 3, 4), "f2"),
            np.ones((3, 4, 3), "f2"),
            {},
            r"lengths must be equal or 1; got \(2,\) and \(3,\)",
        ),
        (
            HALF,
            HALF.T,
            {"accumulator": "float17"},
            "'float32', 'float16' or 'float64'; got 'float17'",
        ),
        (
            HALF,
            HALF.T,
            {"promote_every": "x"},
            "promote_every must be an integer; got 'x'",
        ),
        (SINGLE.astype(float), HALF.T, {}, r"Use a\.astype\(b\.dtype\)"),
        (HALF, SINGLE.T.astype(int), {}, r"Use b\.astype\(np\.float32\)"),
    ],
)
def test_a_tensor_core_names_the_cure(a, b, options, words):
    with pytest.raises((TypeError, ValueError), match=words):
        tensor_core.matmul(a, b, device="H100", **options)
