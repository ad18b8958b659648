"""src/cuda/matmul/transpose.cu: operands across k, copied to lines along k."""

# ruff: noqa: F811

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import on_gpu, on_host
from tests.support.sass import ARCHITECTURES, check
from tests.support.simulator.backend import LINE
from tf32dtype.cuda._matmul import operand_lines
from tf32dtype.cuda._matmul.operand_lines import lines_along_k
from tf32dtype.cuda._runtime.backend import Kernel

TRANSPOSE = Kernel("cuda/matmul/transpose.cu", "transpose")
DTYPES = np.uint8, np.uint32
#: (s, lines, k), and the lines and k of the copy
SHAPES = [
    ((1, 1, 1), (1, 4)),
    ((1, 128, 128), (128, 128)),
    ((2, 300, 70), (304, 80)),
    ((3, 5, 260), (16, 272)),
    ((1, 131, 33), (131, 36)),
]


def operands(shape, dtype):
    """Yield matrices whose elements of one k are adjacent, in several layouts."""
    s, rows, k = shape
    x = np.random.default_rng(1).integers(1, 256, (s, k, rows + 5), dtype)
    yield on_gpu(x[..., :rows].copy()).swapaxes(1, 2)  # the layout of a row-major b
    yield on_gpu(x)[..., 1 : rows + 1].swapaxes(1, 2)  # at an odd address
    yield on_gpu(x)[:, ::-1, rows:0:-1].swapaxes(1, 2)
    wide = np.random.default_rng(2).integers(1, 256, (s, k, 2 * rows), dtype)
    yield on_gpu(wide)[..., ::2].swapaxes(1, 2)
    yield cupy.broadcast_to(on_gpu(x)[:1, :, :rows].swapaxes(1, 2), shape)


def is_right(shape, wanted, dtype=np.uint8):
    for x in operands(shape, dtype):
        made = lines_along_k(x, *wanted)
        found, source = on_host(made), on_host(x)
        one = source[:1] if x.strides[0] == 0 else source
        expected = np.zeros((len(one), *wanted), dtype)
        expected[:, : shape[1], : shape[2]] = one
        if not np.array_equal(found, expected):
            return False
    return True


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "wanted"), SHAPES)
def test_lines(backend, shape, wanted, dtype):
    assert is_right(shape, wanted, dtype)


def test_one_launch(backend):
    """A row-major b needs one kernel, and an operand along k needs CuPy's copy."""
    x = on_gpu(np.zeros((1, 40, 30), np.uint8))
    if backend is HOST:
        backend.counts.clear()
        lines_along_k(x.swapaxes(1, 2), 32, 48)
        assert backend.counts == {"launch": 1}
        lines_along_k(x, 48, 32)
        assert backend.counts["launch"] == 1
        assert backend.counts["call"] == 2


FAULTS = {
    "no barrier before reading": (LINE, ""),
    "no barrier before the next tile": (LINE, ""),
    "bytes in another order": ("0x5410", "0x1054"),
    "k that is not there": ("if (k < of.k && line + i", "if (line + i"),
    "words of other lines": ("return aligned && of.line == 1 &&", "return aligned &&"),
    "a short tile as a whole one": ("k + SIDE <= of.k", "k < of.k"),
    "a warp's words": ("tile[i * WARPS + warp][lane]", "tile[i * WARPS][lane]"),
    "another matrix": ("x + matrix * of.matrix", "x"),
    "another matrix of words": ("x + matrix * of.matrix", "x"),
    "words that are not there": (" && k0 + warp + k < of.k", ""),
    "no barrier before the next tile of words": (LINE, ""),
    "no barrier before reading words": (LINE, ""),
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_faults(backend, monkeypatch, fault):
    if backend is not HOST:
        pytest.skip("faults are for the host")
    if fault is not None:
        HOST.put_fault(fault, *FAULTS[fault])
    monkeypatch.setattr(operand_lines, "MOST", 1)  # a block has several tiles
    right = []
    for HOST.descends in (False, True):
        right += [is_right(*shapes, dtype) for shapes in SHAPES for dtype in DTYPES]
    assert all(right) == (fault is None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_sass(arch):
    """The kernel turns four lines at a time, by permutations of bytes, or words."""
    found = check(TRANSPOSE, arch, ("PRMT", "STS", "LDS", "STG.E"))
    assert any(x.startswith("LDG.E") and "U8" not in x for x in found)
