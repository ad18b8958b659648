"""Elements that do not begin at a multiple of their size are rejected. A GPU cannot
read them, and an attempt ends all use of CUDA."""

# ruff: noqa: F811

from __future__ import annotations

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tf32dtype.cuda._arrays import interchange
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.device import Device


def misaligned(dtype, shape):
    """Yield arrays whose first element or whose rows are not aligned to the size."""
    itemsize = np.dtype(dtype).itemsize
    size = int(np.prod(shape)) * itemsize
    memory = cupy.ndarray((size + itemsize,), np.uint8)
    yield memory[1 : size + 1].view(dtype).reshape(shape)
    width = shape[-1] * itemsize
    rows = cupy.ndarray((*shape[:-1], width + 1), np.uint8)
    yield rows[..., :width].view(dtype)


def ours(x):
    return x.view(td.bfloat16).view(tfc.ndarray)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.exp(tfc.from_bits(x, td.bfloat16)),
        lambda x: tfc.asarray(x.view(np.float16), dtype=td.bfloat16),
        lambda x: ours(x) + 1,
        lambda x: ours(x) @ x.view(td.bfloat16).T,
        lambda x: np.concatenate([ours(x)] * 2),
        lambda x: ours(x).sum(),
        lambda x: ours(x)[::-1].copy(),
        lambda x: ours(x).get(),
        lambda x: ours(x).get(order="F"),
        lambda x: ours(x).set(np.ones(x.shape, td.bfloat16)),
        lambda x: np.add(*[ours(cupy.ndarray(x.shape, x.dtype))] * 2, out=ours(x)),
    ],
)
def test_misaligned(backend, call):
    for x in misaligned(np.uint16, (4, 6)):
        started = getattr(backend, "counts", {}).copy()
        with pytest.raises(ValueError, match="multiples of 2 bytes"):
            call(x)
        if backend is HOST:
            assert backend.counts["launch"] == started["launch"]
        call(cupy.ndarray(x.shape, x.dtype))


def test_misaligned_on_a_stream(backend, monkeypatch):
    """With a stream, or without blocking, the check comes before CuPy's own method."""

    class Refused(cupy.ndarray):
        def get(self, *_):
            pytest.fail("CuPy was asked")

        set = get

    monkeypatch.setattr(interchange, "raw", lambda x: x.view(np.uint16).view(Refused))
    for x in misaligned(np.uint16, (4, 6)):
        for call in (
            lambda x: ours(x).get(stream=cupy.cuda.Stream.null),
            lambda x: ours(x).get(blocking=False),
            lambda x: ours(x).set(
                np.ones(x.shape, td.bfloat16), stream=cupy.cuda.Stream.null
            ),
        ):
            with pytest.raises(ValueError, match="multiples of 2 bytes"):
                call(x)
            with pytest.raises(pytest.fail.Exception):
                call(cupy.ndarray(x.shape, x.dtype))


@pytest.mark.parametrize("precision", ["bf16x3", "tf32", "fp8_e4m3", "f32"])
def test_misaligned_products(backend, precision):
    y = cupy.ndarray((6, 4), np.float32)
    for x in misaligned(np.float32, (4, 6)):
        for a, b in ((x, y), (y, x)):
            with pytest.raises(ValueError, match="multiples of 4 bytes"):
                tfc.matmul(a, b, precision=precision, strategy="eager")
        with pytest.raises(ValueError, match="multiples of 4 bytes"):
            tfc.blocks.quantize(x, "mxfp8_e4m3")


def test_the_device_refuses_them(backend, monkeypatch):
    """The device rejects such arrays before it compiles or starts anything."""
    for x in misaligned(np.float32, (4, 6)):
        machine = Device()
        monkeypatch.setattr(machine, "_device", lambda: 0)
        kernel = Kernel("cuda/matmul/patch_specials.cu", "patch")
        with pytest.raises(ValueError, match="multiples of 4 bytes"):
            machine.launch(kernel, (1,), (1,), None, x)
        with pytest.raises(ValueError, match="multiples of 4 bytes"):
            machine.call("concatenate", [x, x])
        y = cupy.ndarray(x.shape, x.dtype)
        for arguments, keywords in ((([y, y],), {"out": x}), ((y,), {"where": x})):
            with pytest.raises(ValueError, match="multiples of 4 bytes"):
                machine.call("sum", *arguments, **keywords)
        with pytest.raises(ValueError, match="multiples of 4 bytes"):
            machine.get(x)
        with pytest.raises(ValueError, match="multiples of 4 bytes"):
            machine.gemm(x, x, x, "float32")
