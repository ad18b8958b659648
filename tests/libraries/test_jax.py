"""Arrays of JAX: conversion in both directions, and in every function."""

import gc

import ml_dtypes
import numpy as np
import pytest

import tf32dtype as td
from tests.support.every_function import CALLS, operands, plain
from tests.support.tensor_lines import check, lines

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402

NAMES = {"jax": jax, "jnp": jnp}
#: Formats of JAX, which has all but tf32, as ml_dtypes' dtypes.
FORMATS = [name for name in td.formats if hasattr(ml_dtypes, name)]
EXCHANGED = [name for name in FORMATS if td.formats[name].bits >= 8]


@pytest.mark.parametrize("row", lines("JAX"), ids=lambda row: row[0])
def test_the_page(row):
    check(row, NAMES)


def in_jax(a):
    return jnp.asarray(a.view(getattr(ml_dtypes, a.dtype.name)))


@pytest.mark.parametrize("name", EXCHANGED)
def test_dlpack(name):
    a = np.arange(1, 13).reshape(3, 4).astype(td.formats[name].dtype)
    for part in (a, a.T, a[1:2], a[0, 0, ...], a[:0]):
        x = jnp.from_dlpack(td.to_dlpack(part))
        assert x.dtype == getattr(ml_dtypes, name)
        assert np.asarray(x).tobytes() == part.tobytes()
        back = td.from_dlpack(x)
        assert back.dtype == a.dtype
        assert back.tobytes() == part.tobytes()
        assert not back.flags.writeable  # JAX's arrays are immutable
        assert np.shares_memory(back, td.from_dlpack(x)) or not part.size
        assert td.from_dlpack(x, copy=True).flags.writeable
        del x
        gc.collect()
        assert back.tobytes() == part.tobytes()


def test_what_jax_does_not_take_is_an_error():
    a = np.ones((4, 4), td.bfloat16)
    with pytest.raises(Exception, match="striding"):
        jnp.from_dlpack(td.to_dlpack(a[:, ::2]))
    with pytest.raises(TypeError):
        jnp.asarray(a)
    for name in ("float6_e2m3fn", "float4_e2m1fn"):
        with pytest.raises(jax.errors.JaxRuntimeError):
            jnp.from_dlpack(td.to_dlpack(a.astype(td.formats[name].dtype)))


@pytest.mark.parametrize("name", CALLS)
def test_every_function(name):
    for row in CALLS[name]:
        for form in [x for x in row.formats if x in FORMATS]:
            own = operands(row, form)
            with np.errstate(all="ignore"):
                want = plain(row.call(*own))
                assert plain(row.call(*map(in_jax, own))) == want
