"""Block-scaled instructions: every bit against `reference.tensor_core_scaled`."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as product_of
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.tensor_core.scaled_cases import (
    DISTINCT,
    FP4,
    KINDS,
    MXF4,
    MXF8,
    MXF8_E5M2,
    NVF4,
    POWERS,
    Cases,
    as_blocks,
    assert_bits,
    cases,
    found,
    in_c,
    product,
    truth,
    words,
)
from tf32dtype.tensor_core import BLOCK_SCALED, devices

matmul = td.tensor_core.matmul
each_model = pytest.mark.parametrize("model", DISTINCT, ids=lambda m: m.name)


# -- the table -----------------------------------------------------------------


def test_the_table_has_all_rows():
    assert len(BLOCK_SCALED) == 58
    assert len({model.name for model in BLOCK_SCALED}) == 58
    assert {model.device for model in BLOCK_SCALED} == {"B200", "RTX Blackwell"}
    assert {(m.depth, m.group, m.fraction) for m in BLOCK_SCALED} == {
        (32, 1, 25),
        (64, 16, 35),
    }
    for device in devices.values():
        assert all(m.device == device.name for m in device.block_scaled)


# -- block-scaled instructions -------------------------------------------------


@pytest.mark.sampled(2)
@each_model
def test_every_bit_of_a_chain(model, compared):
    for kind in KINDS:
        for k in (1, 15, 16, 33, 64, 130):
            case = cases(model, kind, 4, k, 1)
            want = truth(model, case)
            assert_bits(in_c(model, case), want)
            compared(want.size)


@pytest.mark.exhaustive
@each_model
def test_many_more_bits(model, compared):
    for seed in range(2, 9):
        for kind in KINDS:
            case = cases(model, kind, 300, 96, seed)
            want = truth(model, case)
            assert_bits(in_c(model, case), want)
            compared(want.size)


ALTERNATIVES: tuple[dict[str, Any], ...] = (
    {"zero_terms": "never"},
    {"zero_terms": "always"},
    {"zero_c_exponent": -126},
    {"floor": None},
    {"floor": -20},
    {"negative_zero": True},
    {"fraction": 20},
)


@pytest.mark.parametrize("model", [MXF8, MXF8_E5M2, MXF4, NVF4], ids=lambda m: m.name)
@pytest.mark.parametrize("changes", ALTERNATIVES, ids=str)
def test_what_is_open_is_a_parameter(model, changes, compared):
    other = replace(model, **changes)
    for kind in ("wide", "extreme", "sparse", "zeros", "least"):
        case = cases(model, kind, 8, 70, 5)
        assert_bits(in_c(other, case), truth(other, case))
        compared(len(case.c))


@pytest.mark.sampled(4)
@each_model
def test_product_is_all_its_chains(model, compared):
    """Tiles are partial, and k is longer than a loop packs at a time."""
    shapes = (3, 40, 3), (7, 64, 37), (5, 600, 5)
    for number, kind in enumerate(KINDS):
        compared(check_product(model, kind, shapes[number % 3]))
    compared(check_product(model, "normal", (7, 280, 66)))


@pytest.mark.exhaustive
@each_model
def test_larger_product_is_all_its_chains(model, compared):
    for kind in KINDS:
        for n, k in ((3, 40), (66, 64), (5, 1100)):
            compared(check_product(model, kind, (n, k, n)))


def check_product(model: Any, kind: str, shape: tuple[int, int, int]) -> int:
    m, k, n = shape
    case = cases(model, kind, max(m, n), k, 2)
    i, j = np.indices((m, n)).reshape(2, -1)
    pairs = Cases(case.a[i], case.scales_a[i], case.b[j], case.scales_b[j], case.c[i])
    rows = Cases(case.a[:m], case.scales_a[:m], case.b[:n], case.scales_b[:n],
                 case.c[:m])  # fmt: skip
    got = product(model, rows)
    assert got.shape == (m, n)
    assert_bits(got.reshape(-1), in_c(model, pairs))
    return got.size


# -- by hand -------------------------------------------------------------------

ONE = {POWERS: 127, "ue4m3": 0x38}  # codes of 1
TOP = 0x7F800000


def single(model: Any, terms: list[tuple[float, float, int, int]], c: float) -> float:
    """Return c plus products, each in its own block, of elements and scale codes."""
    k = len(terms) * model.block_size
    a, b = np.zeros((2, 1, k), np.float32)
    s, t = np.zeros((2, 1, len(terms)), np.uint8)
    for block, (x, y, s[0, block], t[0, block]) in enumerate(terms):
        a[0, block * model.block_size], b[0, block * model.block_size] = x, y
    case = Cases(words(a), s, words(b), t, words([c]))
    (result,) = in_c(model, case)
    (whole,) = product(model, case).reshape(-1)
    assert result == whole
    return float(result.view(np.float32))


def test_scales_take_part_in_the_alignment():
    below = 1 - 2.0**-24
    for x, code, want in (
        (-1, 127 - 25, below),  # truncated
        (-1, 127 - 26, 1.0),  # cut off
        (-256, 127 - 33, below),  # the sum of all exponents counts
        (-256, 127 - 34, 1.0),
        (1, 127 - 24, 1.0),  # kept as a term, then lost by rounding
        (1, 127 - 23, 1 + 2.0**-23),
    ):
        assert single(MXF8, [(x, 1, code, 127)], 1.0) == want
        assert single(MXF8, [(x, 1, 127, code)], 1.0) == want
    for x, code, want in ((-1, 127 - 35, below), (-1, 127 - 36, 1.0)):
        assert single(MXF4, [(x, 1, code, 127)], 1.0) == want


def test_of_fp4_only_scales_have_exponents():
    # 36 has the exponent 0 of its scale: 2^-35 is kept, and 2^-36 is not.
    for code, want in ((127 - 33, 36 - 2.0**-18), (127 - 34, 36.0)):
        assert single(MXF4, [(6, 6, 127, 127), (-0.5, 0.5, code, 127)], 0.0) == want


def test_subnormal_scales_keep_their_exponent():
    for c, want in ((-(2.0**-41), 2.0**-9 - 2.0**-33), (-(2.0**-42), 2.0**-9)):
        assert single(NVF4, [(1, 1, 0x01, 0x38)], c) == want
    assert single(NVF4, [(1, 1, 0x81, 0x38)], 0.0) == 2.0**-9  # no sign
    assert single(NVF4, [(6, 6, 0x00, 0x7E)], 3.0) == 3.0
    assert single(NVF4, [(6, 6, 0x7E, 0x7E)], 0.0) == 36.0 * 448 * 448


@pytest.mark.parametrize("model", [MXF8, MXF4], ids=lambda m: m.name)
def test_ends_of_the_range(model):
    two = [(2, 2, 254, 254), (-2, 2, 254, 254)]
    assert single(model, two[:1], 0.0) == np.inf
    assert single(model, two[1:], 0.0) == -np.inf
    assert single(model, [(2, 2, 254, 100)], 0.0) == 2.0**102
    if model is MXF4:  # all in one sum: c is far below
        assert single(model, two, 7.0) == 0.0
    else:  # one after the other
        assert np.isnan(single(model, [*two[:1], (0, 1, 255, 0)], 0.0))
    least = 2.0**-149
    assert single(model, [(1, 1, 0, 0)], 0.0) == 0.0  # 2^-254
    assert single(model, [(1, 1, 0, 0)], least) == least
    assert single(model, [(1, 1, 0, 105)], 0.0) == least
    assert single(model, [(0, 2, 254, 254)], least) == least  # zero terms do not count
    assert single(model, [(1, 1, 253, 1)], 0.0) == 1.0


@pytest.mark.parametrize("model", [MXF8, MXF4, NVF4], ids=lambda m: m.name)
def test_nan_and_inf(model):
    one, nan = ONE[model.scale], 0xFF if model.scale == POWERS else 0x7F
    for s, t in ((nan, one), (one, nan)):
        for x in (0.0, 1.0):
            assert np.isnan(single(model, [(x, 1, s, t)], 1.0))
            assert np.isnan(single(model, [(x, 1, s, t)], np.inf))
    assert np.isnan(single(model, [(1, 1, one, one)], np.nan))
    for c in (np.inf, -np.inf):
        assert single(model, [(1, 1, one, one)], c) == c
    if model is NVF4:
        assert np.isnan(single(model, [(1, 1, 0xFF, one)], 1.0))


def test_infinite_elements():
    inf, one = np.inf, 127
    assert single(MXF8_E5M2, [(inf, 1, one, one)], 1.0) == inf
    assert single(MXF8_E5M2, [(inf, -1, 0, 0)], 1.0) == -inf
    assert np.isnan(single(MXF8_E5M2, [(inf, 0, one, one)], 1.0))
    assert np.isnan(single(MXF8_E5M2, [(inf, 1, one, one)], -inf))
    assert np.isnan(single(MXF8_E5M2, [(np.nan, 0, one, one)], 1.0))


# -- matmul around an instruction ----------------------------------------------


def test_scales_of_tensors_multiply_the_result(compared):
    case = cases(NVF4, "normal", 20, 64, 9)
    a = as_blocks(NVF4, "a", case.a, case.scales_a)
    b = as_blocks(NVF4, "b", case.b, case.scales_b)
    plain = matmul(a, b, device="B200")
    for s, t in ((0.3, 0.7), (1e-30, 1e-15), (1e20, 1e19), (1.0, 3.0)):
        x, y = (replace(z, tensor_scale=np.float32(f)) for z, f in ((a, s), (b, t)))
        with np.errstate(all="ignore"):
            want = plain * (np.float32(s) * np.float32(t))
        got = matmul(x, y, device="B200")
        assert_bits(got.view(np.uint32).reshape(-1), want.view(np.uint32).reshape(-1))
        compared(got.size)
    tiny = np.float32(1e-40)
    x, y = replace(a, tensor_scale=tiny), replace(b, tensor_scale=tiny)
    infinite = matmul(x, y, np.inf, device="B200")  # Inf * 0
    assert set(infinite.view(np.uint32).flat) == {0x7FFFFFFF}


@pytest.mark.parametrize("model", BLOCK_SCALED, ids=lambda m: m.name)
def test_default_instructions(model):
    case = cases(model, "normal", 5, 128, 3)
    got = product(model, case, instruction=None)
    other = "tcgen05.mxf4" if model.device == "B200" else "mma.sync.mxf4"
    if model.a == model.b == FP4 and model.scale == POWERS and model.block_size == 32:
        chosen = other  # not .mxf8f6f4, which gives other bits
    else:
        chosen = model.instruction
    assert_bits(got.reshape(-1), product(model, case, instruction=chosen).reshape(-1))


BLOCK_FORMATS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4")


@pytest.mark.parametrize("device", ["B200", "RTX Blackwell"])
@pytest.mark.parametrize(
    "formats", list(product_of(BLOCK_FORMATS, repeat=2)), ids="-".join
)
def test_arrays_of_blocks_of_any_two_formats(device, formats, compared):
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((7, 96)), rng.standard_normal((96, 5))
    a = td.blocks.quantize(x, formats[0])
    b = td.blocks.quantize(y, formats[1], axis=-2)
    kind = "mxf4" if formats == ("mxfp4", "mxfp4") else "mxf8f6f4"
    base = devices[device].instructions[0]
    names = a.elements.dtype.name, b.elements.dtype.name
    model = found(device, f"{base}.{kind}", *names, POWERS, 32)
    i, j = np.indices((7, 5)).reshape(2, -1)
    case = Cases(
        words(a.elements)[i], a.scales[i], words(b.elements.T)[j], b.scales[j],
        np.zeros(35, np.uint32),
    )  # fmt: skip
    got = matmul(a, b, device=device).view(np.uint32).reshape(-1)
    assert_bits(got, truth(model, case))
    compared(got.size)


def test_fp4_differs_between_instructions():
    case = cases(MXF4, "normal", 30, 512, 3)
    eight = product(MXF4, case, instruction="tcgen05.mxf8f6f4")
    assert (eight != product(MXF4, case)).any()
