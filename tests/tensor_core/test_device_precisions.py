"""NumPy's products with a device's bits: every bit and flag against the reference."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import tf32dtype as td
from tests.matmul.precision_cases import (
    KINDS,
    SPLIT,
    VARIANTS,
    Array,
    assert_bits,
    bits,
    drawn,
)
from tests.reference import device_precisions, matmul
from tests.support.bits import raised
from tests.support.interpreters import run
from tf32dtype import _core
from tf32dtype.tensor_core.look_up import find_model

FORMATS = {name: p.format.name for name, p in matmul.PRECISIONS.items()}

#: Devices, instructions, and the precisions of each.
UNITS = [
    ("V100", None, ["f16"]),
    ("A100", None, ["f16", "bf16", "tf32", "bf16x3", "bf16x6", "bf16x9", "tf32x3"]),
    ("L40S", None, ["fp8_e4m3", "fp8_e5m2", "tf32"]),
    ("H100", None, ["f16", "bf16", "tf32", "fp8_e4m3", "fp8_e5m2", *SPLIT]),
    ("H100", "mma.sync", ["fp8_e4m3", "bf16x9"]),
    ("B200", None, ["tf32", "fp8_e4m3", *SPLIT]),
    ("RTX Blackwell", None, ["bf16", "fp8_e5m2", "bf16x6"]),
]
CASES = [
    (device, instruction, keywords)
    for device, instruction, names in UNITS
    for keywords in VARIANTS
    if keywords["precision"] in names
]


def named(case: tuple[str, str | None, dict[str, str]]) -> str:
    device, instruction, keywords = case
    return "-".join([device, instruction or "", *keywords.values()])


def truth(
    device: str, instruction: str | None, a: Array, b: Array, keywords: dict[str, str]
) -> tuple[Array, int]:
    name = FORMATS[keywords["precision"]]
    model = find_model(device, instruction, name, name, "float32")
    rows, columns = bits(a).tolist(), bits(b.T).tolist()
    result = device_precisions.product(model, rows, columns, **keywords)
    flags = matmul.flags(rows, columns, result)
    return np.array(result, np.uint32).reshape(len(a), b.shape[1]), flags


@pytest.mark.sampled(8)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_products(case, compared):
    device, instruction, keywords = case
    multiply = partial(td.matmul, device=device, instruction=instruction, **keywords)
    for seed, kind in enumerate(KINDS):
        for shape in ((2, 37, 3), (1, 16, 2), (3, 5, 1)):
            a, b = drawn(kind, shape, seed)
            want, flags = truth(device, instruction, a, b, keywords)
            got, seen = raised(multiply, a, b)
            assert_bits(got, want)
            assert seen == flags, (kind, shape)
            compared(want.size)


def test_blocks_and_calls_agree():
    """The operator, np.dot, float64 and complex64 use the mode as without a device."""
    rng = np.random.default_rng(3)
    a = rng.standard_normal((9, 40), dtype=np.float32)
    b = rng.standard_normal((40, 7), dtype=np.float32)
    for precision, device in (("tf32", "H100"), ("bf16x9", "A100")):
        want = td.matmul(a, b, precision=precision, device=device)
        assert not np.array_equal(want, td.matmul(a, b, precision=precision))
        with td.matmul_precision(precision, device=device, float64=True):
            np.testing.assert_array_equal(a @ b, want)
            np.testing.assert_array_equal(np.dot(a, b), want)
            wide = a.astype(np.float64) @ b.astype(np.float64)
            np.testing.assert_array_equal(wide, want.astype(np.float64))
        with td.matmul_precision(precision, device=device, complex64=True):
            twice = (a + 0j).astype(np.complex64) @ (b + 1j * b).astype(np.complex64)
        np.testing.assert_array_equal(twice.real, want)
        np.testing.assert_array_equal(twice.imag, want)
    td.set_matmul_precision("tf32", device="H200")
    try:
        np.testing.assert_array_equal(
            a @ b, td.matmul(a, b, precision="tf32", device="H100")
        )
    finally:
        td.set_matmul_precision(None)


def test_one_part_is_the_unit_itself():
    rng = np.random.default_rng(4)
    a = rng.standard_normal((5, 70), dtype=np.float32)
    b = rng.standard_normal((70, 6), dtype=np.float32)
    for rounding in ("ties_to_even", "ties_to_away", "toward_zero"):
        np.testing.assert_array_equal(
            td.matmul(a, b, precision="tf32", rounding=rounding, device="A100"),
            td.tensor_core.matmul(a, b, rounding=rounding, device="A100"),
        )
    np.testing.assert_array_equal(
        td.matmul(a, b, precision="bf16", device="B200", instruction="mma.sync"),
        td.tensor_core.matmul(
            a.astype(td.bfloat16), b.astype(td.bfloat16), device="B200"
        ),
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("precision", SPLIT)
def test_where_the_unit_scales_without_rounding(precision, compared):
    """With scales_inside (scale_input_d), results are right, and rarely differ. A sum
    of positive products can grow past the smallest exponent of the fast loop. Then the
    scaled accumulator is below this exponent, and the unscaled one is not."""
    p = matmul.PRECISIONS[precision]
    name = p.format.name
    model = find_model("B200", None, name, name, "float32")
    differ = {}
    positive = np.random.default_rng(6).uniform(1, 2, (2, 5, 37)) * 2.0**-51
    for kind in (*KINDS, "positive"):
        a, b = drawn(kind, (4, 37, 5), 5) if kind in KINDS else np.float32(positive)
        a, b = (a, b) if kind in KINDS else (a[:4], b.T)
        rows, columns = bits(a).tolist(), bits(b.T).tolist()
        results = []
        for inside in (False, True):
            chosen = _core.MatmulSpec(
                name,
                parts=p.parts,
                split_orders=p.split_orders,
                model=model,
                scales_inside=inside,
            )
            out = np.zeros((1, 4, 5), np.float32)
            with np.errstate(all="ignore"):
                _core.mma_matmul(chosen, a[None], b[None], out)
            want = device_precisions.product(
                model, rows, columns, precision, scales_inside=inside
            )
            assert_bits(out[0], np.array(want, np.uint32))
            compared(out.size)
            results.append(bits(out))
        differ[kind] = np.count_nonzero(results[0] != results[1])
    assert differ["normal"] == 0
    assert sum(differ.values()) > 0


def test_what_has_no_device():
    a = np.ones((2, 2), np.float32)
    for keywords, message in (
        ({"precision": "f32", "device": "H100"}, "does not support precision 'f32'"),
        ({"precision": "tf32", "device": "V100"}, "V100 mma.sync cannot multiply"),
        ({"precision": "fp8_e4m3", "device": "A100"}, "float16, bfloat16, tf32"),
        ({"precision": "tf32", "device": "K80"}, "device must be one of .*; got 'K80'"),
        ({"precision": "tf32", "device": "A100", "instruction": "wgmma"}, "wgmma"),
        (
            {"precision": "tf32", "instruction": "wgmma"},
            "instruction must be given with device",
        ),
        ({"device": "A100"}, "device must be given with precision"),
    ):
        with pytest.raises(ValueError, match=message):
            td.matmul(a, a, **keywords)
        precision = keywords.pop("precision", None)
        with pytest.raises(ValueError, match=message):
            td.matmul_precision(precision, **keywords)
        with pytest.raises(ValueError, match=message):
            td.set_matmul_precision(precision, **keywords)
    assert "device='H100'" in repr(td.matmul_precision("tf32", device="H100"))


# -- how the vendor's library rounds before the unit ---------------------------

#: Ties of tf32, and numbers next to them.
TIES = np.float32([1024.5, 1025.5, -1024.5, 1.0 + 2.0**-11, 1 + 3 * 2.0**-12, 3e38])[
    :, None
]
LIBRARIES = {"NVIDIA": "ties_to_away", "AMD": "toward_zero"}
WITH_TF32 = {
    device.name: "AMD" if device.name.startswith("MI") else "NVIDIA"
    for device in td.tensor_core.devices.values()
    if any(model.a == "tf32" for model in device.models)
}


def tf32_ways(device: str, **options: str):
    """Yield the product of TIES and 1 by every interface."""
    one = np.float32([[1]])
    keywords = {"device": device, **options}
    yield "matmul", td.matmul(TIES, one, precision="tf32", **keywords)
    with td.matmul_precision("tf32", **keywords):
        yield "scope", TIES @ one
        yield "matmul in a scope", td.matmul(TIES, one)
    td.set_matmul_precision("tf32", **keywords)
    try:
        yield "process", TIES @ one
    finally:
        td.set_matmul_precision(None)


@pytest.mark.parametrize("device", WITH_TF32)
def test_tf32_is_rounded_as_the_library_does(device):
    for rounding in (None, "ties_to_even", "ties_to_away", "toward_zero"):
        options = {} if rounding is None else {"rounding": rounding}
        way = rounding or LIBRARIES[WITH_TF32[device]]
        want = td.quantize(TIES, td.tf32, rounding=way).astype(np.float32)
        for name, got in tf32_ways(device, **options):
            np.testing.assert_array_equal(got, want, err_msg=name)


def test_without_a_device_ties_are_even():
    want = TIES.astype(td.tf32).astype(np.float32)
    one = np.float32([[1]])
    np.testing.assert_array_equal(td.matmul(TIES, one, precision="tf32"), want)
    np.testing.assert_array_equal(
        td.matmul(TIES, one, precision="tf32", rounding=None), want
    )


def test_the_command_rounds_so(tmp_path):
    program = tmp_path / "tie.py"
    program.write_text(
        "import numpy as np\n"
        "a, b = np.full((2, 1), 1024.5, 'f4'), np.ones((1, 2), 'f4')\n"
        "print((a @ b)[0, 0])\n"
    )
    for options, want in (
        ([], "1024.0"),
        (["--device", "A100"], "1025.0"),
        (["--device", "MI300X"], "1024.0"),
        (["--device", "A100", "--rounding", "ties_to_even"], "1024.0"),
    ):
        command = ["-m", "tf32dtype", "run", "--quiet", "--precision", "tf32"]
        assert run(*command, *options, str(program)).strip() == want
