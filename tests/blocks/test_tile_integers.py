"""Tiles of integers, with zero points and biases."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype.blocks import TileArray

pytestmark = pytest.mark.once

RNG = np.random.default_rng(3)
RANGES = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255)}


def nearest(x: Fraction, bits: int = 24) -> float:
    """Round to `bits` bits, ties to even, by integers, within the normal range."""
    if x == 0:
        return 0.0
    exponent = 0
    while abs(x) >= 1 << bits:
        x, exponent = x / 2, exponent + 1
    while abs(x) < 1 << bits - 1:
        x, exponent = x * 2, exponent - 1
    return float(round(x)) * 2.0**exponent


def made(format: str, **offsets: Any) -> TileArray:
    low, high = RANGES[format]
    dtype = np.uint8 if low == 0 else np.int8
    codes = RNG.integers(low, high + 1, (6, 20)).astype(dtype)
    scales = RNG.normal(0, 1, (3, 5)).astype(np.float32)
    if "zero_points" in offsets:
        offsets["zero_points"] = RNG.integers(low, high + 1, (3, 5)).astype(dtype)
    if "biases" in offsets:
        size = 2.0 ** RNG.integers(-60, 3, (3, 5))
        offsets["biases"] = (RNG.normal(0, 1, (3, 5)) * size).astype(np.float32)
    return TileArray.from_codes(format, codes, scales, (2, 4), **offsets)


def exact(array: TileArray, i: int, j: int) -> Fraction:
    at = (i // 2, j // 4)
    element = Fraction(int(array.elements[i, j]))
    if array.zero_points is not None:
        element -= int(array.zero_points[at])
    value = element * Fraction(float(array.scales[at]))
    return value + (
        Fraction(float(array.biases[at])) if array.biases is not None else 0
    )


@pytest.mark.parametrize("offsets", [{}, {"zero_points": 1}, {"biases": 1}])
@pytest.mark.parametrize("format", RANGES)
def test_values_are_rounded_once(format: str, offsets: dict[str, Any]) -> None:
    array = made(format, **offsets)
    single, narrow = array.dequantize(), array.dequantize("bf16")
    for i, j in np.ndindex(6, 20):
        want = exact(array, i, j)
        assert single[i, j] == nearest(want)
        assert float(narrow[i, j]) == nearest(want, 8)


@pytest.mark.parametrize("format", RANGES)
def test_lists_of_integers_are_elements(format: str) -> None:
    made = TileArray.from_codes(
        format, [RANGES[format]], np.ones((1, 1), np.float32), zero_points=[[3]]
    )
    assert made.elements.dtype == (np.int8 if RANGES[format][0] else np.uint8)
    assert made.elements.tolist() == [[*RANGES[format]]]
    assert made.zero_points.tolist() == [[3]]  # type: ignore[union-attr]


def test_a_tie_that_a_bias_breaks() -> None:
    """Break a tie of float32 by a bias too small to change the sum in float64."""
    scales, codes = np.float32([[2**23 + 1]]), np.uint8([[2]])
    for bias, want in [(2.0**-60, 2**24 + 2), (-(2.0**-60), 2**24 + 2)]:
        array = TileArray.from_codes(
            "uint8", codes, scales, (1, 1), biases=np.float32([[bias]])
        )
        assert array.dequantize()[0, 0] == want
    scales = np.float32([[2.0**24 + 2]])
    codes = np.uint8([[1]])
    for bias, want in [(1 + 2.0**-23, 2**24 + 4), (1 - 2.0**-24, 2**24 + 2)]:
        array = TileArray.from_codes(
            "uint8", codes, scales, (1, 1), biases=np.float32([[bias]])
        )
        assert array.dequantize()[0, 0] == want


@pytest.mark.parametrize("offsets", [{}, {"zero_points": 1}, {"biases": 1}])
@pytest.mark.parametrize("format", RANGES)
def test_as_an_object(format: str, offsets: dict[str, Any]) -> None:
    array = made(format, **offsets)
    values = array.dequantize()
    assert (array.format, array.tile) == (format, (2, 4))
    assert np.array_equal(array.T.dequantize(), values.T)
    assert np.array_equal(array[2:, :8].dequantize(), values[2:, :8])
    assert array == pickle.loads(pickle.dumps(array))
    assert array != made(format, **offsets)
    assert ("zero points" in repr(array)) == ("zero_points" in offsets)
    x = RNG.normal(size=(20, 3)).astype(np.float32)
    assert np.array_equal(array @ x, values @ x)
    parts = [array.elements, array.scales, array.zero_points, array.biases]
    assert array.nbytes == sum(x.nbytes for x in parts if x is not None)
    assert not any(x.flags.writeable for x in parts if x is not None)


def test_what_is_refused(tmp_path: Any) -> None:
    codes, scales = np.zeros((2, 4), np.uint8), np.ones((1, 1), np.float32)
    make = TileArray.from_codes
    with pytest.raises(ValueError, match="codes must be uint4 values from 0 to 15"):
        make("uint4", codes + np.uint8(16), scales)
    with pytest.raises(ValueError, match="zero_points must be uint4 values"):
        make("uint4", codes, scales, zero_points=np.uint8([[16]]))
    with pytest.raises(ValueError, match=r"not both, must only be given for integer"):
        make("uint4", codes, scales, zero_points=np.uint8([[1]]), biases=scales)
    with pytest.raises(ValueError, match="must only be given for integer elements"):
        make("fp8_e4m3", codes, scales, biases=scales)
    with pytest.raises(TypeError, match="zero_points must be an array of uint8"):
        make("uint4", codes, scales, zero_points=np.int8([[1]]))
    with pytest.raises(ValueError, match="biases must have the shape of scales"):
        make("uint4", codes, scales, biases=np.ones((1, 2), np.float32))
    array = make("uint4", codes, scales, biases=scales)
    with pytest.raises(ValueError, match="with biases cannot be stored"):
        td.save(tmp_path / "a.npy", array)
    assert [*tmp_path.iterdir()] == []
    with pytest.raises(ValueError, match=r"'tf32dtype' cannot store .* have biases"):
        td.safetensors.save(tmp_path / "a.safetensors", {"a": array})
    with pytest.raises((TypeError, ValueError)):
        td.tensor_core.matmul(array, array.T, device="H100")


@pytest.mark.parametrize("format", RANGES)
def test_quantized(format: str) -> None:
    x = (RNG.normal(size=(5, 70)) + 0.7).astype(np.float32)
    array = td.blocks.quantize_tiles(x, format, (2, 32))
    low, high = RANGES[format]
    for i, j in np.ndindex(3, 3):
        part = x[2 * i : 2 * i + 2, 32 * j : 32 * j + 32]
        least = min(0.0, float(part.min())) if low == 0 else 0.0
        most = max(0.0, float(part.max())) if low == 0 else float(abs(part).max())
        wide = Fraction(float(np.float32(most) - np.float32(least)))
        scale = nearest(wide / high)
        assert array.scales[i, j] == scale
        zero = 0
        if low == 0:
            zero = min(round(Fraction(-least) / Fraction(scale)), high)
            assert array.zero_points is not None
            assert array.zero_points[i, j] == zero
        for r, c in np.ndindex(*part.shape):
            quotient = Fraction(float(part[r, c])) / Fraction(scale)
            want = min(max(round(quotient + zero), -high if low else 0), high)
            assert array.elements[2 * i + r, 32 * j + c] == want
    zeros = td.blocks.quantize_tiles(np.zeros((2, 4)), format, (1, 4))
    assert not zeros.dequantize().any()


def test_recode_loses_no_zero_point() -> None:
    codes, scales = np.int8([[-8, 7, 0, 3]]), np.ones((1, 1), np.float32)
    array = TileArray.from_codes("int4", codes, scales, (1, 4))
    again = td.blocks.recode(td.blocks.recode(array, "int8"), "int4")
    assert again.format == "int4"
    assert np.array_equal(again.dequantize(), codes)
    assert np.array_equal(td.blocks.recode(array, "fp8_e4m3").dequantize(), codes)
    with_zeros = TileArray.from_codes(
        "int4", codes, scales, (1, 4), zero_points=np.int8([[3]])
    )
    unsigned = TileArray.from_codes("uint4", codes.view(np.uint8) & 15, scales, (1, 4))
    for a, format in [(with_zeros, "int8"), (unsigned, "int8"), (array, "uint8")]:
        with pytest.raises(ValueError, match="a must have elements with a sign"):
            td.blocks.recode(a, format)
