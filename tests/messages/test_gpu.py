"""Messages of arrays on a GPU, computed on the host where there is no GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import backend, tfc  # noqa: F401

from .shape import faults, provoke

SINGLE = np.ones((4, 64), np.float32)


def array(*shape: int, dtype: Any = td.bfloat16) -> Any:
    return tfc.asarray(np.ones(shape or (4, 4)), dtype)


def single(*shape: int) -> Any:
    return array(*shape, dtype=np.float32)


def packed(*shape: int, axis: int = -1, block_size: int = 32) -> Any:
    return tfc.blocks.quantize(
        single(*shape), "mxfp8_e4m3", axis=axis, block_size=block_size
    )


def multiply(a: Any = None, b: Any = None, **options: Any) -> object:
    a, b = (array() if x is None else x for x in (a, b))
    return tfc.matmul(a, b, **options)


def with_mode(mode: str, call: Callable[[], object], **options: Any) -> object:
    with tfc.matmul_mode(mode, **options):
        return call()


CASES: dict[str, Callable[[], object]] = {
    "asarray.no_dtype": lambda: tfc.asarray([1.5]),
    "asarray.complex": lambda: tfc.asarray([1j], td.tf32),
    "asarray.dtype": lambda: tfc.asarray([1.5], "bf17"),
    "bits": lambda: tfc.bits(SINGLE),
    "from_bits.codes": lambda: tfc.from_bits(array(2, dtype=np.float32), td.bfloat16),
    "quantize.rounding": lambda: tfc.quantize(single(), td.tf32, rounding="up"),
    "quantize.stochastic": lambda: tfc.quantize(
        single(), td.tf32, rounding="stochastic"
    ),
    "quantize.overflow": lambda: tfc.quantize(single(), td.tf32, overflow="wrap"),
    "array.casting": lambda: array().astype(np.uint8, casting="safe"),
    "array.order": lambda: array().copy("X"),
    "array.get_out": lambda: array().get(out=np.ones((4, 4), np.float32)),
    "array.get_out_shape": lambda: array().get(out=np.ones(4, td.bfloat16)),
    "array.get_order": lambda: array().get(order="X"),
    "array.set": lambda: array().set(np.ones((4, 4), np.float32)),
    "array.set_shape": lambda: array().set(np.ones(4, td.bfloat16)),
    "array.byteswap": lambda: array().byteswap(),
    "array.scatter_add": lambda: array().scatter_add(0, 1),
    "array.choose": lambda: array().choose([array()]),
    "array.flat": lambda: array().T.flat,
    "array.assigned": lambda: array().__setitem__(0, np.ones(4)),
    "numpy.mixed": lambda: np.add(array(), np.ones((4, 4), td.bfloat16)),
    "numpy.no_kernel": lambda: np.linalg.inv(array()),
    "numpy.norm": lambda: np.linalg.norm(array(), "nuc"),
    "numpy.average": lambda: np.average(array(), weights=array()),
    "numpy.searchsorted": lambda: np.searchsorted(array(4), array(4), "middle"),
    "numpy.take": lambda: np.take(array(), [0], mode="other"),
    "numpy.pad": lambda: np.pad(array(), 1, mode="mean"),
    "numpy.meshgrid": lambda: np.meshgrid(array(2), indexing="zz"),
    "numpy.diff": lambda: np.diff(array(), n=-1),
    "numpy.lexsort": lambda: np.lexsort((array(4), array(4)), axis=0),
    "numpy.copyto": lambda: np.copyto(np.ones((4, 4), td.bfloat16), array()),
    "numpy.where": lambda: np.where(np.ones((4, 4), bool), array(), array()),
    "sum.where": lambda: np.sum(array(), where=array()),
    "sum.initial": lambda: np.sum(array(), initial=array()),
    "sum.out": lambda: np.sum(array(), 0, out=array(5)),
    "cumsum.axis": lambda: np.cumulative_sum(array()),
    "add.out": lambda: np.add(array(), array(), out=np.ones((4, 4), td.bfloat16)),
    "add.where": lambda: np.add(array(), array(), where=array()),
    "matmul.k": lambda: multiply(array(4, 5), array(4, 5)),
    "matmul.stacks": lambda: multiply(array(2, 4, 4), array(3, 4, 4)),
    "matmul.numpy": lambda: multiply(np.ones((4, 4), td.bfloat16)),
    "matmul.mode": lambda: multiply(mode="fast"),
    "matmul.no_device": lambda: multiply(mode="model"),
    "matmul.device": lambda: multiply(mode="model", device="A99"),
    "matmul.device_of_chain": lambda: multiply(mode="chain", device="A100"),
    "matmul.no_mode": lambda: multiply(device="A100"),
    "matmul.instruction": lambda: multiply(mode="chain", instruction="wgmma"),
    "matmul.native": lambda: multiply(mode="native", instruction="tcgen05"),
    "matmul.precision": lambda: multiply(precision="tf32"),
    "matmul.precision_and_mode": lambda: multiply(
        single(), single(), precision="tf32", mode="native"
    ),
    "matmul.strategy": lambda: multiply(strategy="lazy"),
    "matmul.dtype": lambda: multiply(dtype=np.int32),
    "matmul.out": lambda: multiply(out=np.ones((4, 4), td.bfloat16)),
    "matmul.out_shape": lambda: multiply(out=array(4)),
    "vecdot.k": lambda: np.vecdot(array(4, 5), array(4, 6)),
    "matvec.axes": lambda: np.matvec(array(5), array(5)),
    "vdot.size": lambda: np.vdot(array(4), array(5)),
    "blocks.quantize": lambda: tfc.blocks.quantize(SINGLE, "mxfp4"),
    "blocks.scalar": lambda: tfc.blocks.quantize(single(1)[0], "mxfp4"),
    "blocks.asarray": lambda: tfc.blocks.asarray(SINGLE),
    "blocks.constructor": lambda: tfc.blocks.BlockArray(),
    "blocks.numpy": lambda: np.asarray(packed(4, 64)),
    "blocks.out": lambda: packed(4, 64).dequantize(np.float64, single(4, 64)),
    "blocks.out_shape": lambda: packed(4, 64).dequantize(out=single(4, 4)),
    "blocks.axis": lambda: packed(4, 64) @ packed(64, 64),
    "blocks.k": lambda: packed(4, 64) @ packed(32, 4, axis=0),
    "blocks.sizes": lambda: packed(4, 64) @ packed(64, 4, axis=0, block_size=16),
    "blocks.terms": lambda: tfc.blocks.matmul(
        packed(4, 64), packed(64, 4, axis=0), terms=2
    ),
    "blocks.operand": lambda: packed(4, 64) @ np.ones((64, 4), np.float32),
    "blocks.none": lambda: tfc.blocks.matmul(single(), single()),
    "blocks.model": lambda: with_mode(
        "model", lambda: packed(4, 64) @ packed(64, 4, axis=0), device="H100"
    ),
    "blocks.native": lambda: with_mode("native", lambda: packed(4, 64) @ single(64, 4)),
}


@pytest.mark.parametrize("name", CASES)
def test_messages_have_the_shape(backend: Any, name: str) -> None:  # noqa: F811
    message = provoke(CASES[name])
    assert not faults(message), message
