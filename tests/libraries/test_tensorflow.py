"""Conversion of tensors of TensorFlow in both directions. CI does not install it."""

import ml_dtypes
import numpy as np
import pytest

import tf32dtype as td
from tests.support.tensor_lines import check, lines

tf = pytest.importorskip("tensorflow")

FORMATS = """
    bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz
    float8_e4m3b11fnuz float4_e2m1fn
""".split()


@pytest.mark.parametrize("row", lines("TensorFlow"), ids=lambda row: row[0])
def test_the_page(row):
    check(row, {"tf": tf})


@pytest.mark.parametrize("name", FORMATS)
def test_both_ways(name):
    a = np.array([[1, 2], [0.5, 4]], td.formats[name].dtype)
    x = tf.constant(a.view(getattr(ml_dtypes, name)))
    assert x.dtype.name == name
    assert (td.bits(x) == td.bits(a)).all()
    assert x.numpy().view(a.dtype).tobytes() == a.tobytes()
