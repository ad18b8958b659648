"""Conversion of arrays of MLX in both directions."""

import numpy as np
import pytest

import tf32dtype as td
from tests.support.tensor_lines import check, lines

mx = pytest.importorskip("mlx.core")


@pytest.mark.parametrize("row", lines("MLX"), ids=lambda row: row[0])
def test_the_page(row):
    check(row, {"mx": mx})


def test_strides_and_lifetimes():
    a = np.arange(12).reshape(3, 4).astype(td.bfloat16)
    for part in (a, a.T, a[:, ::2], a[:0]):
        x = mx.array(td.to_dlpack(part))
        assert x.dtype == mx.bfloat16
        back = td.from_dlpack(x.T)
        del x
        assert back.shape == part.T.shape
        assert back.tobytes() == part.T.tobytes()


def test_codes_of_fp8():
    a = np.array([0.5, 448, -3], td.fp8_e4m3)
    assert mx.from_fp8(mx.array(td.bits(a)), mx.float32).tolist() == a.tolist()
