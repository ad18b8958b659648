"""td.tensor_core.matmul as a function: operands, keywords, errors, layouts, threads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import run, run_code
from tf32dtype import _core
from tf32dtype.tensor_core.device import MODELS
from tf32dtype.tensor_core.look_up import find_model
from tf32dtype.tensor_core.models import ALIGNED

Array = np.ndarray[Any, Any]
matmul = td.tensor_core.matmul

TYPES = {"float16": np.float16} | {
    name: getattr(td, name)
    for name in (
        "tf32", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float6_e3m2fn",
        "float6_e2m3fn", "float4_e2m1fn",
    )
}  # fmt: skip
RNG = np.random.default_rng(11)


def words(x: Any) -> Array:
    """Return the float32 bits of the same values."""
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(np.asarray(x).astype(np.float32)).view(np.uint32)


def one_by_one(model: Any, a: Array, b: Array, c: Array) -> Array:
    """Return the product by the integer function, element by element."""
    m, n = c.shape
    i, j = np.indices((m, n)).reshape(2, -1)
    columns = np.ascontiguousarray(words(b).T)
    found = _core.mma_accumulate(model, words(a)[i], columns[j], words(c)[i, j])
    return found.view(np.float32).reshape(m, n)


def unlike(model: Any) -> tuple[Any, ...]:
    return (model.a, model.b, model.accumulator, model.depth, model.fraction,
            model.kept, model.emulated)  # fmt: skip


DISTINCT = list({unlike(model): model for model in ALIGNED}.values())
each_model = pytest.mark.parametrize("model", DISTINCT, ids=lambda m: m.name)


def drawn(kind: str, shape: tuple[int, ...], dtype: Any) -> Array:
    x = RNG.standard_normal(shape)
    if kind == "wide":
        x = np.ldexp(x, RNG.integers(-40, 41, shape))
    elif kind == "tiny":
        x = np.ldexp(x, RNG.integers(-75, -55, shape))
    elif kind == "large":
        x = np.ldexp(x, RNG.integers(50, 62, shape))
    elif kind == "sparse":
        x *= RNG.random(shape) < 0.1
    elif kind == "special":
        x[RNG.random(shape) < 0.01] = RNG.choice([np.inf, -np.inf, np.nan])
    with np.errstate(all="ignore"):
        y = x.astype(dtype)
    if kind in ("wide", "large"):  # no Inf or NaN
        y = np.where(np.isfinite(y.astype(np.float32)), y, np.ones_like(y))
    return y


KINDS = ["normal", "wide", "tiny", "large", "sparse", "special"]


def test_instruction_set_is_the_one_asked_for():
    assert os.environ.get("TF32DTYPE_ISA") in (None, "", td.isa())


@each_model
def test_fast_form_equals_slow_one(model, compared):
    """Tiles have many rows and columns, with all reasons to compute a block by
    integers."""
    shapes = [(7, 150, 70), (7, 300, 33), (33, 64, 1), (1, 33, 130)]
    for number, kind in enumerate(KINDS):
        for m, k, n in shapes[number % 2 :: 2] if number else shapes:
            a, b = (
                drawn(kind, (m, k), TYPES[model.a]),
                drawn(kind, (k, n), TYPES[model.b]),
            )
            c = drawn(kind, (m, n), model.accumulator)
            c[RNG.random(c.shape) < 0.3] = 0
            got = matmul(
                a, b, c, device=model.device, instruction=model.instruction,
                accumulator=model.accumulator,
            )  # fmt: skip
            want = one_by_one(model, a, b, c).astype(model.accumulator)
            nan = np.isnan(want)
            np.testing.assert_array_equal(np.isnan(got), nan)
            unsigned = "u2" if model.accumulator == "float16" else "u4"
            same = got.view(unsigned) == want.view(unsigned)
            assert (same | nan).all(), (kind, m, k, n)
            assert set(got.view(unsigned)[nan]) <= {0x7FFF, 0x7FFFFFFF}
            compared(got.size)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "isa", [isa for isa in td._core.available_isas() if isa != td.isa()]
)
def test_fast_form_on_every_instruction_set(isa):
    tests = f"{__file__}::test_fast_form_equals_slow_one"
    printed = run("-m", "pytest", "-q", "-p", "no:cacheprovider", tests,
                  TF32DTYPE_ISA=isa, timeout=600)  # fmt: skip
    assert f"{len(DISTINCT)} passed" in printed


def test_every_layout_gives_the_same_bits():
    for model in DISTINCT[::3]:
        a = drawn("wide", (14, 70), TYPES[model.a])
        b = drawn("normal", (70, 26), TYPES[model.b])
        keywords = {
            "device": model.device,
            "instruction": model.instruction,
            "accumulator": model.accumulator,
        }
        want = matmul(a[::2, ::2], b[1::2, ::-1], **keywords)
        x, y = a[::2, ::2].copy(), b[1::2, ::-1].copy()
        np.testing.assert_array_equal(matmul(x, y, **keywords), want)
        np.testing.assert_array_equal(
            matmul(np.asfortranarray(x), np.asfortranarray(y), **keywords), want
        )
        out = np.empty((7, 52), want.dtype)[:, ::2]
        assert matmul(x, y, out=out, **keywords) is out
        np.testing.assert_array_equal(out, want)
        out = np.empty((26, 7), want.dtype).T
        np.testing.assert_array_equal(matmul(x, y, out=out, **keywords), want)


def test_threads_change_no_bit():
    code = """
import numpy as np, tf32dtype as td, hashlib
rng = np.random.default_rng(5)
x, y = (rng.standard_normal((300, 300)) for _ in range(2))
for device, dtype in (("A100", td.bfloat16), ("H100", td.float8_e4m3fn)):
    z = td.tensor_core.matmul(x.astype(dtype), y.astype(dtype), device=device)
    print(hashlib.sha256(z.tobytes()).hexdigest())
"""
    found = {run("-c", code, OMP_NUM_THREADS=str(n)) for n in (1, 3)}
    assert len(found) == 1


def test_stacks_broadcast_as_numpys():
    a = drawn("normal", (3, 1, 4, 9), np.float16)
    b = drawn("normal", (2, 9, 5), np.float16)
    got = matmul(a, b, device="V100")
    assert got.shape == np.matmul(a, b).shape == (3, 2, 4, 5)
    for i in range(3):
        for j in range(2):
            np.testing.assert_array_equal(
                got[i, j], matmul(a[i, 0], b[j], device="V100")
            )
    for x, y in ((a[0, 0, 0], b), (a, b[0, :, 0]), (a[0, 0, 0], b[0, :, 0])):
        got = matmul(x, y, device="V100")
        assert np.shape(got) == np.matmul(x, y).shape
        assert np.asarray(got).dtype == np.float32
    assert isinstance(got, np.float32)
    for m, k, n in ((0, 3, 2), (2, 3, 0), (2, 0, 3), (0, 0, 0)):
        got = matmul(
            np.ones((m, k), np.float16), np.ones((k, n), np.float16), device="T4"
        )
        np.testing.assert_array_equal(got, np.zeros((m, n), np.float32))
    assert matmul(np.ones((0, 2, 3), np.float16), b[0, :3], device="T4").shape == (
        0,
        2,
        5,
    )


def test_c_and_out():
    a, b = drawn("normal", (4, 8), td.bfloat16), drawn("normal", (8, 4), td.bfloat16)
    c = drawn("normal", (4, 4), np.float32)
    want = matmul(a, b, c, device="A100")
    assert not np.array_equal(want, matmul(a, b, device="A100"))
    np.testing.assert_array_equal(matmul(a, b, c[0], device="A100")[0], want[0])
    np.testing.assert_array_equal(
        matmul(a, b, 2, device="A100"), matmul(a, b, np.float32(2), device="A100")
    )
    assert matmul(a, b, c, device="A100", out=c) is c
    np.testing.assert_array_equal(c, want)
    x = np.asarray(drawn("normal", (4, 4), np.float32))
    want = matmul(x, x, x, device="A100")
    np.testing.assert_array_equal(matmul(x, x, x, device="A100", out=(x,)), want)


def test_aliases_and_case():
    a = drawn("normal", (3, 64), np.float16)
    same = [
        ["H100", "h200", "HOPPER", "sm_90", "gh200"],
        ["V100", "volta"],
        ["A100", "A2", "rtx 3090", "RTX-30", "ampere"],
        ["L40S", "ada", "RTX 4090"],
        ["B200", "gb200"],
        ["RTX Blackwell", "rtxblackwell", "RTX 5090"],
    ]
    for names in same:
        results = [matmul(a, a.T, device=name) for name in names]
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])
        assert len({td.tensor_core.devices[name].name for name in names}) == 1


def test_float32_is_tf32():
    x = np.array([[1 + 2**-11]], np.float32)
    one = np.ones((1, 1), np.float32)
    results = {
        rounding: matmul(x, one, device="A100", rounding=rounding).item()
        for rounding in (None, "toward_zero", "ties_to_even", "ties_to_away")
    }
    assert results == {
        None: 1,
        "toward_zero": 1,
        "ties_to_even": 1,
        "ties_to_away": 1 + 2**-10,
    }
    hidden = np.array([[0x7F800001]], np.uint32).view(np.float32)  # reads as Inf
    assert np.isposinf(matmul(hidden, one, device="A100")).all()
    assert np.isnan(matmul(hidden, one, device="A100", rounding="toward_zero")).all()
    same = matmul(x.astype(td.tf32), one, device="A100")
    np.testing.assert_array_equal(same, matmul(x, one.astype(td.tf32), device="A100"))


def test_what_truncation_does():
    """H100's fp8 keeps 13 bits. Even without products it truncates c (DeepSeek-V3)."""
    zero = np.zeros((1, 32), td.float8_e4m3fn)
    c = np.float32(1 + 2**-13 + 2**-14)
    assert matmul(zero, zero.T, c, device="H100") == 1 + 2**-13
    assert matmul(zero, zero.T, c, device="H100", instruction="mma.sync") == c
    assert matmul(zero, zero.T, c, device="B200") == c


def test_promotion_saves_what_truncation_loses():
    a = np.ones((1, 4096), td.float8_e4m3fn)
    b = a.T * td.float8_e4m3fn(0.40625)
    exact = 4096 * 0.40625
    plain = matmul(a, b, device="H100").item()
    promoted = matmul(a, b, device="H100", promote_every=128).item()
    assert promoted == exact
    c = np.float32(2**-20)
    tiny = matmul(a[:, :128], b[:128], c, device="H100", promote_every=128)
    assert tiny == np.float32(52) + c
    assert plain < 0.95 * exact


def test_nothing_is_reported():
    a = np.full((1, 16), 60000, np.float16)
    with np.errstate(all="raise"):
        assert np.isposinf(matmul(a, a.T, device="A100", accumulator="float16"))
        nan = np.array([[np.inf, -np.inf]], np.float16)
        got = matmul(nan, np.ones((2, 1), np.float16), device="A100")
    assert got.view(np.uint32) == 0x7FFFFFFF


def test_unknown_pairs_list_what_there_is():
    x = np.ones((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"mma\.sync -> float16: float16") as error:
        matmul(x, x, device="V100")
    assert "tf32 x tf32" in str(error.value)
    e4m3 = x.astype(td.float8_e4m3fn)
    for device in ("A100", "T4", "V100"):
        with pytest.raises(ValueError, match=f"{device} mma.sync cannot multiply"):
            matmul(e4m3, e4m3, device=device)
    half = x.astype(np.float16)
    with pytest.raises(ValueError, match="multiply float16 x tf32"):
        matmul(half, x, device="H100")
    with pytest.raises(ValueError, match="tf32 x tf32 -> float16"):
        matmul(x, x, device="H100", accumulator=np.float16)
    with pytest.raises(ValueError, match=r"device must be one of .*; got 'P100'"):
        matmul(half, half, device="P100")
    with pytest.raises(ValueError, match=r"device must be one of .*; got None"):
        matmul(half, half, device=None)
    with pytest.raises(
        ValueError,
        match=r"instruction of H100 must be 'wgmma' or 'mma\.sync'; got 'tcgen05'",
    ):
        matmul(half, half, device="H100", instruction="tcgen05")
    for odd in (["wgmma"], np.array(["wgmma"]), 5):
        with pytest.raises(TypeError, match=r"instruction must be a string or None"):
            matmul(half, half, device="H100", instruction=odd)
    with pytest.raises(ValueError, match=r"instruction of H100 must .*; got ''"):
        matmul(half, half, device="H100", instruction="")
    with pytest.raises(ValueError, match="rounding must be one of"):
        matmul(x, x, device="H100", rounding=np.array(["ties_to_even"]))
    with pytest.raises(KeyError, match="device must be one of"):
        td.tensor_core.devices["P100"]


@pytest.mark.parametrize(
    "dtype", ["f8", "i4", "u1", "?", "c8", "O", td.float6_e2m3fn, td.float8_e4m3]
)
def test_other_dtypes(dtype):
    x = np.ones((2, 2)).astype(dtype)
    half = np.ones((2, 2), np.float16)
    kind = ValueError if np.dtype(dtype).name in td.formats else TypeError
    for pair in ((x, half), (half, x)):
        with pytest.raises(kind, match=np.dtype(dtype).name.split("_")[0][:3]):
            matmul(*pair, device="H100")


def test_ml_dtypes_types_are_ours():
    ml = pytest.importorskip("ml_dtypes")
    x = RNG.standard_normal((3, 20))
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        a, b = x.astype(getattr(ml, name)), x.astype(getattr(td, name))
        np.testing.assert_array_equal(
            matmul(a, a.T, device="H100"), matmul(b, b.T, device="H100")
        )


def test_bad_arguments():
    half = np.ones((2, 32), np.float16)
    e4m3 = half.astype(td.float8_e4m3fn)

    def rejects(
        kind: type[Exception], message: str, *operands: Any, **more: Any
    ) -> None:
        with pytest.raises(kind, match=message):
            matmul(*operands, **{"device": "H100"} | more)

    rejects(ValueError, "got k = 32 and k = 2", half, half)
    rejects(ValueError, "at least one axis", np.float16(1), half)
    rejects(ValueError, "broadcast", np.ones((2, 3, 4), "e"), np.ones((3, 4, 2), "e"))
    rejects(TypeError, "c must .*; got float64", half, half.T, np.ones((2, 2)))
    rejects(ValueError, "c must broadcast", half, half.T, np.ones(3, np.float32))
    rejects(TypeError, "c must .* float16; got float32", half, half.T,
            np.ones((2, 2), "f"), accumulator="float16")  # fmt: skip
    rejects(ValueError, "accumulator must be one of", half, half.T, accumulator="i4")
    rejects(ValueError, "rounding must .*; got 'up'", half, half.T, rounding="up")
    rejects(
        ValueError,
        "rounding must be None unless",
        half,
        half.T,
        rounding="ties_to_away",
    )
    rejects(ValueError, "positive multiple of 16", half, half.T, promote_every=24)
    rejects(ValueError, "promote_every must .*; got 0", half, half.T, promote_every=0)
    rejects(TypeError, "integer", half, half.T, promote_every=1.5)
    rejects(ValueError, "accumulator is float32", e4m3, e4m3.T, promote_every=32,
            accumulator="float16")  # fmt: skip
    rejects(TypeError, "out must be an array", half, half.T, out=[1])
    rejects(TypeError, "out must .*; got float64", half, half.T, out=np.zeros((2, 2)))
    rejects(
        ValueError,
        r"out must .*; got \(2, 3\)",
        half,
        half.T,
        out=np.zeros((2, 3), "f"),
    )
    frozen = np.zeros((2, 2), np.float32)
    frozen.flags.writeable = False
    rejects(ValueError, "read-only", half, half.T, out=frozen)
    assert not frozen.any()


#: The instructions that GEMM libraries use.
FIRST = {
    "H100": "wgmma",
    "B200": "tcgen05",
    "MI100": "mfma",
    "MI250X": "mfma",
    "MI300X": "mfma",
    "AVX512_BF16": "vdpbf16ps",
    "AMX": "tdpbf16ps",
    "Arm BF16": "bfdot",
}


def test_every_model_is_found_by_what_it_is():
    for model in MODELS:
        key = model.device, model.instruction, model.a, model.b, model.accumulator
        assert find_model(*key) is model
    for device in td.tensor_core.devices.values():
        assert device.instructions[0] == FIRST.get(device.name, "mma.sync")
        assert device.models
    assert len(td.tensor_core.devices) == 13
    assert "nobody" not in td.tensor_core.devices


def test_import_is_late():
    code = "import sys, tf32dtype as td; print('tf32dtype.tensor_core' in sys.modules)"
    assert run_code(code) == "False"
    code += "; td.tensor_core.matmul; print('tf32dtype.tensor_core' in sys.modules)"
    assert run_code(code).split() == ["False", "True"]
    assert "tensor_core" in td.__all__
    assert os.path.basename(td.tensor_core.__file__) == "__init__.py"


@pytest.mark.parametrize("left", ["int8", "uint8", "int4", "uint4"])
@pytest.mark.parametrize("right", ["int8", "uint8", "int4", "uint4"])
def test_integers_are_what_the_error_says(left, right):
    """NumPy's int32 products are exact modulo 2^32, like those of integer units."""
    rng = np.random.default_rng(8)
    dtypes = []
    for name in (left, right):
        if "4" in name:
            dtypes.append(getattr(pytest.importorskip("ml_dtypes"), name))
        else:
            dtypes.append(np.dtype(name))
    ranges = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}
    x = rng.integers(*ranges[left], (3, 500)).astype(dtypes[0])
    y = rng.integers(*ranges[right], (500, 5)).astype(dtypes[1])
    words = r"Integer units are exact: use np.matmul\(a, b, dtype=np.int32\)"
    with pytest.raises(TypeError, match=rf"a must .*; got {left}\. {words}"):
        td.tensor_core.matmul(x, y, device="A100")
    got = np.matmul(x, y, dtype=np.int32)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, x.astype(np.int64) @ y.astype(np.int64))


def test_sums_of_integers_wrap():
    x = np.full((1, 200_000), 127, np.int8)
    total = 127 * 127 * 200_000
    assert np.matmul(x, x.T, dtype=np.int32)[0, 0] == total - (1 << 32) < 0 < total
