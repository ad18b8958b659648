"""Calls of the safetensors library, whose NumPy functions know ml_dtypes' types."""

import pytest

from tests.libraries.calls import Call, make_test

pytest.importorskip("safetensors")

LIBRARY = "safetensors"
PREPARATION = "import safetensors.numpy"
OURS = "td.safetensors.save('a.safetensors', {'a': a}); "
CALLS = [
    Call("len(safetensors.numpy.save({'a': a}))", "int", within=None),
    Call(
        "safetensors.numpy.load(safetensors.numpy.save({'a': a}))['a']",
        "KeyError",
        instead=OURS + "td.safetensors.load('a.safetensors')['a']",
        within=0,
    ),
    Call(
        "safetensors.numpy.save_file({'a': a}, 'a.safetensors'); "
        "safetensors.numpy.load_file('a.safetensors')['a']",
        "{format}",
        within=0,
        formats=("bfloat16",),
    ),
    Call(
        "safetensors.numpy.save_file({'a': a}, 'a.safetensors'); "
        "safetensors.numpy.load_file('a.safetensors')['a']",
        "AttributeError",
        instead=OURS + "td.safetensors.load('a.safetensors')['a']",
        within=0,
        formats=("float8_e4m3fn",),
    ),
]

test_calls = make_test(CALLS, PREPARATION)
