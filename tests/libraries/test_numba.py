"""Conversions for numba: the bits of our casts in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

numba = pytest.importorskip("numba")

import tf32dtype as td  # noqa: E402
from tests.reference.codec_arrays import all_items, item_type, values  # noqa: E402
from tests.reference.formats import Format  # noqa: E402
from tests.support.bits import ALL, array, name  # noqa: E402
from tests.support.interpreters import run_code  # noqa: E402
from tf32dtype.interop.numba import from_float32, to_float32  # noqa: E402

pytestmark = pytest.mark.once


def hard_float32() -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return all float32 with 11 mantissa bits (numbers and midpoints of every format),
    with their neighbors, the smallest, the largest and random numbers."""
    near = np.arange(0, 1 << 32, 1 << 12)[:, None] + [-1, 0, 1]
    small = np.array([0, 1, 2, 3, 5, *(1 << np.arange(24))])
    ends = np.concatenate([small, 0x7F800000 + small - 2, 0x80000000 + small])
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 1 << 17)
    words = np.concatenate([near.reshape(-1), ends, drawn]) & 0xFFFFFFFF
    return words.astype(np.uint32).view(np.float32)


HARD = hard_float32()


@pytest.mark.parametrize("f", ALL, ids=name)
def test_every_code_as_float32(f: Format) -> None:
    codes = all_items(f)
    found = to_float32(f.name)(codes)
    assert found.dtype == np.float32
    want = array(f, codes).astype(np.float32)
    np.testing.assert_array_equal(found.view(np.uint32), want.view(np.uint32))
    np.testing.assert_array_equal(found, values(f, codes).astype(np.float32))


@pytest.mark.parametrize("f", ALL, ids=name)
def test_hard_numbers_as_codes(f: Format) -> None:
    found = from_float32(f.name)(HARD)
    assert found.dtype == item_type(f)
    with np.errstate(all="ignore"):
        want = HARD.astype(array(f, all_items(f)[:1]).dtype)
    wrong = np.flatnonzero(found != want.view(found.dtype))
    assert not wrong.size, [(float(HARD[i]), hex(found[i])) for i in wrong[:5]]


@pytest.mark.parametrize("f", ALL, ids=name)
def test_bits_beside_the_code_are_ignored(f: Format) -> None:
    codes = all_items(f)
    dirt = (1 << f.item_bits) - 1 ^ int(np.bitwise_or.reduce(codes))
    clean = to_float32(f.name)(codes)
    dirty = to_float32(f.name)((codes | dirt).astype(codes.dtype))
    np.testing.assert_array_equal(dirty.view(np.uint32), clean.view(np.uint32))


def test_no_warning_and_names_of_all_kinds() -> None:
    with np.errstate(all="raise"):
        from_float32("float8_e4m3fn")(HARD)
        to_float32("float8_e4m3fn")(np.arange(256, dtype=np.uint8))
    assert to_float32("bf16") is to_float32(td.bfloat16)
    assert from_float32(np.dtype(td.bfloat16)) is from_float32("bfloat16")
    with pytest.raises(ValueError, match=r"format must be .*; got 'float7'"):
        to_float32("float7")


def test_only_what_is_exact_is_taken() -> None:
    # float64 would be rounded twice, first to float32.
    for x in (np.ones(2), 1.5, np.ones(2, np.int64)):
        with pytest.raises(TypeError):
            from_float32("bfloat16")(x)
    for codes in (np.ones(2, np.uint32), np.ones(2, np.int16), np.ones(2, td.bfloat16)):
        with pytest.raises(TypeError):
            to_float32("bfloat16")(codes)


def test_within_compiled_functions() -> None:
    decode, encode = to_float32("bfloat16"), from_float32("bfloat16")

    @numba.njit
    def halve(codes):  # type: ignore[no-untyped-def]
        for i in range(codes.size):
            codes[i] = encode(decode(codes[i]) * np.float32(0.5))

    @numba.njit(parallel=True)
    def dot(x, y):  # type: ignore[no-untyped-def]
        total = 0.0
        for i in numba.prange(x.size):
            total += decode(x[i]) * decode(y[i])
        return total

    @numba.njit
    def exp(codes):  # type: ignore[no-untyped-def]
        return encode(np.exp(decode(codes)))

    a = np.array([1, 3, -5], td.bfloat16)
    assert dot(a.view(np.uint16), a.view(np.uint16)) == 35
    want = np.exp(a.astype(np.float32)).astype(td.bfloat16)
    assert exp(a.view(np.uint16)).view(td.bfloat16).tolist() == want.tolist()
    halve(a.view(np.uint16))
    assert a.tolist() == [0.5, 1.5, -2.5]


def test_without_numba() -> None:
    code = """import sys; sys.modules["numba"] = None
import tf32dtype as td
try: td.interop.numba
except AttributeError as error: print(error)
try: import tf32dtype.interop.numba
except ImportError as error: print(error)"""
    assert run_code(code).count("pip install 'numba>=") == 2
