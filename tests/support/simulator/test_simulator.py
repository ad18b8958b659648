"""Tests of simt.h: threads, barriers and collectives, and faults that it reports."""

import shutil

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
if not shutil.which("g++"):
    pytest.skip("needs g++", allow_module_level=True)

from tests.support.simulator import backend
from tests.support.simulator.backend import LINE, Host, KernelError, numpy_view
from tf32dtype._base import nvrtc
from tf32dtype.cuda._runtime.backend import Kernel

TEXT = """
#include "cuda/common/common.h"
struct pair { int32_t first; double second; };
extern "C" __global__ void __launch_bounds__(64) sums(const float *x, float *out)
{
    __shared__ float parts[64];
    DYNAMIC_SHARED(float, more);
    const int i = threadIdx.x;
    parts[i] = x[blockIdx.x * 64 + i];
    more[i] = 1;
    __syncthreads(); /* mutant: the first barrier */
    float sum = 0;
    for (int k = 0; k < 64; k++) {
        sum += parts[(i + k) % 64] * more[k];
    }
    __syncthreads();
    parts[63 - i] = sum;
    __syncthreads(); /* mutant: the last barrier */
    out[blockIdx.x * 64 + i] = parts[i];
}
extern "C" __global__ void lanes(int32_t *out)
{
    const int i = threadIdx.x;
    int x = i * i;
    for (int mask = 16; mask; mask >>= 1) {
        x += __shfl_xor_sync(~0u, x, mask);
    }
    out[i] = x + (__ballot_sync(~0u, i % 32 == 3) == 8u ? 1000000 : 0);
}
extern "C" __global__ void values(pair p, uint8_t byte, double *out)
{
    out[threadIdx.x] = p.first + p.second * byte;
}
extern "C" __global__ void missed(float *out)
{
    if (threadIdx.x < 40) {
        __syncthreads();
    }
    out[threadIdx.x] = 1;
}
extern "C" __global__ void missed_in_a_warp(float *out)
{
    if (threadIdx.x % 2) {
        __syncwarp();
    }
    out[threadIdx.x] = 1;
}
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    (tmp_path / "sample.cu").write_text(TEXT)
    monkeypatch.setattr(nvrtc, "FOLDERS", [*nvrtc.FOLDERS, tmp_path])
    monkeypatch.setattr(backend, "CACHE", tmp_path / "cache")
    cupy.cuda.set_allocator(backend.allocate)
    nvrtc.sources.cache_clear()
    backend._anchors.cache_clear()
    return Host()


@pytest.mark.parametrize("descends", [False, True])
def test_blocks(host, descends):
    host.descends = descends
    x = np.arange(128, dtype=np.float32)
    out = cupy.empty(128, np.float32)
    host.launch(Kernel("sample.cu", "sums"), (2,), (64,), host.put(x), out, shared=256)
    want = np.repeat(x.reshape(2, 64).sum(1), 64)
    np.testing.assert_array_equal(numpy_view(out), want)


@pytest.mark.parametrize("which", ["first", "last"])
def test_a_missing_barrier_is_seen(host, which):
    host.put_fault(f"the {which} barrier", LINE, "")
    wrong = []
    for descends in (False, True):
        host.descends = descends
        out = cupy.empty(64, np.float32)
        x = host.put(np.arange(64, dtype=np.float32))
        host.launch(Kernel("sample.cu", "sums"), (1,), (64,), x, out, shared=256)
        wrong.append(not (numpy_view(out) == 2016).all())
    assert any(wrong)


def test_faults_without_a_place(host, tmp_path):
    with pytest.raises(AssertionError, match="no line has the anchor of 'nothing'"):
        host.put_fault("nothing", LINE, "")
    host.put_fault("the last barrier", "__syncwarp", "")
    with pytest.raises(AssertionError, match="the last barrier: '__syncthreads"):
        host.launch(Kernel("sample.cu", "lanes"), (1,), (64,), cupy.empty(64, np.int32))
    (tmp_path / "again.h").write_text("int x; /* mutant: one; the last barrier */\n")
    backend._anchors.cache_clear()
    with pytest.raises(AssertionError, match=r"in again\.h and in sample\.cu"):
        host.put_fault("one", LINE, "")


def test_warps(host):
    out = cupy.empty(64, np.int32)
    host.launch(Kernel("sample.cu", "lanes"), (1,), (64,), out)
    want = np.repeat((np.arange(64) ** 2).reshape(2, 32).sum(1), 32) + 1000000
    np.testing.assert_array_equal(numpy_view(out), want)


def test_arguments_by_value(host):
    out = cupy.empty(3, np.float64)
    pair = np.array((2, 0.5), np.dtype([("a", "i4"), ("b", "f8")], align=True))
    host.launch(Kernel("sample.cu", "values"), (1,), (3,), pair, np.uint8(10), out)
    np.testing.assert_array_equal(numpy_view(out), [7, 7, 7])
    with pytest.raises(TypeError, match="a known width; got 3"):
        host.launch(Kernel("sample.cu", "values"), (1,), (3,), pair, 3, out)


@pytest.mark.parametrize("name", ["missed", "missed_in_a_warp"])
def test_a_barrier_that_some_threads_miss(host, name):
    out = cupy.empty(64, np.float32)
    with pytest.raises(KernelError, match="missed"):
        host.launch(Kernel("sample.cu", name), (1,), (64,), out)
