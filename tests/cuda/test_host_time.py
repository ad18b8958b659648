"""Caches of calls on GPU arrays: complete keys, bounded sizes, and few Python steps.

benchmarks/cuda/gpu_host.py measures the Python steps. Its times depend on the machine,
but a call's counts of Python instructions and calls do not.
"""

# ruff: noqa: F811

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import pkgutil
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tests.support.cuda_operands import assert_same, on_gpu
from tests.support.cuda_products import by_plan
from tests.support.paths import GPU_BENCHMARKS
from tf32dtype.cuda._arrays import ndarray
from tf32dtype.cuda._functions import reductions
from tf32dtype.cuda._matmul import fma, native, tensor_cores
from tf32dtype.cuda._runtime.backend import Constant, Kernel, Words, int32
from tf32dtype.cuda._runtime.device import Device

BF16 = np.dtype(td.bfloat16)

#: Caches without a bound, which have few entries for any sequence of calls.
UNBOUNDED = {
    "_matmul.cublaslt._handle",  # one per device
    "_matmul.crossover.read",
    "_runtime.strides._walk_dtype",
    "_functions.ufuncs.supported",
}


@pytest.fixture
def gpu_host(monkeypatch):
    """Return the benchmark's module."""
    for folder in GPU_BENCHMARKS:
        monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "common", raising=False)
    monkeypatch.delitem(sys.modules, "gpu_host", raising=False)
    return importlib.import_module("gpu_host")


# -- Python instructions of a call -----------------------------------------------------


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs Python 3.12")
def test_calls_take_no_more_of_python(gpu_host):
    known = json.loads(gpu_host.RESULTS.read_text())["calls"]
    with gpu_host.no_driver():
        cases = gpu_host.cases()
        assert {x.name for x in cases} == set(known), "measure: gpu_host.py --json"
        counts = {x.name: gpu_host.count(x.call)._asdict() for x in cases}
    grown = {
        (name, what): (number, known[name][what])
        for name, each in counts.items()
        for what, number in each.items()
        if number > 1.5 * known[name][what]
    }
    assert not grown, "more than half again as much as benchmarks/results/gpu_host.json"


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="needs Python 3.12")
def test_a_call_that_takes_more_is_seen(gpu_host, monkeypatch):
    """A call that makes its plan each time has more instructions."""
    from tf32dtype.cuda._runtime import strides

    with gpu_host.no_driver():
        (case,) = (x for x in gpu_host.cases() if x.name == "x + y")
        before = gpu_host.count(case.call)
        monkeypatch.setattr(strides, "_plan", strides._plan.__wrapped__)
        after = gpu_host.count(case.call)
    assert after.instructions > 1.5 * before.instructions


def test_the_benchmark_runs(gpu_host, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gpu_host, "pin", lambda: 0)
    path = tmp_path / "host.json"
    gpu_host.main(["--only", "x + y", "--repeats", "1", "--json", str(path)])
    (found,) = json.loads(path.read_text())["calls"].values()
    assert found["launches"] == 1
    assert found["microseconds"] > 0
    assert "x + y" in capsys.readouterr().out


def test_what_is_kept_is_bounded():
    package = importlib.import_module("tf32dtype.cuda")
    unbounded = set()
    for info in pkgutil.walk_packages(package.__path__, "tf32dtype.cuda."):
        module = importlib.import_module(info.name)
        for name, x in vars(module).items():
            asked = getattr(x, "cache_parameters", None)
            if asked is None or x.__module__ != info.name:
                continue
            # A function without arguments has only one result.
            if asked()["maxsize"] is None and inspect.signature(x).parameters:
                unbounded.add(f"{info.name.removeprefix('tf32dtype.cuda.')}.{name}")
    assert unbounded <= UNBOUNDED


# -- arguments by value ----------------------------------------------------------------


def test_constants_are_their_bytes():
    fields = np.dtype([("a", "i8"), ("b", "f4", (3,)), ("c", "u1")])
    for value in (np.int32(-5), np.float64(0.1), np.array((7, (1, 2, 3), 9), fields)):
        constant = Constant(value)
        there = ctypes.string_at(constant.ptr, constant.value.nbytes)
        assert there == np.asarray(value).tobytes()
    given = np.arange(3)
    constant = Constant(given)
    given[:] = 7
    assert constant.value.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        constant.value[...] = 0
    words = Words(1 << 40, -1, 5)
    assert ctypes.string_at(words.ptr, 24) == words.value.tobytes()
    assert words.value.tolist() == [1 << 40, -1, 5]


class Function:
    """A replacement of CuPy's functions that records its arguments."""

    ptr = 7

    def __init__(self):
        self.calls = []

    def __call__(self, *given):
        self.calls.append(given)


@pytest.fixture
def device(monkeypatch):
    """Return a device with simulated kernels. `here` is the current device."""
    machine = Device()
    machine.here = 0
    machine.loaded = {}

    def load(key):
        function = machine._functions[key] = machine.loaded[key] = Function()
        return function

    monkeypatch.setattr(machine, "_device", lambda: machine.here)
    monkeypatch.setattr(machine, "_load", load)
    monkeypatch.setattr(machine, "_bind", lambda device: None)
    return machine


def test_what_a_launch_gives_to_cupy(device):
    kernel, struct = Kernel("a.cu", "a"), np.zeros((), [("x", "i8"), ("y", "i4")])
    given = None, int32(3), np.float32(2), struct, Words(1)
    device.launch(kernel, (5,), (256, 2), *given)
    ((grid, block, arguments, shared),) = device.loaded[0, kernel].calls
    assert (grid, block, shared) == ((5,), (256, 2), 0)
    assert arguments[:3] == [None, int32(3), np.float32(2)]
    assert isinstance(arguments[3], Constant)
    assert arguments[3].value == struct
    assert arguments[4] is given[4]
    for refused in (3, 2.0, True):
        with pytest.raises(TypeError, match="known width"):
            device.launch(kernel, (5,), (256,), refused)


def test_functions_are_those_of_the_device(device):
    kernel = Kernel("a.cu", "a")
    for device.here in (0, 1, 0, 1):
        device.launch(kernel, (1,), (1,))
    assert [len(device.loaded[i, kernel].calls) for i in (0, 1)] == [2, 2]


def test_shared_memory_is_asked_for_once(device, monkeypatch):
    asked = []
    set_attribute = lambda *given: asked.append(given)  # noqa: E731
    monkeypatch.setattr(cupy.cuda.driver, "funcSetAttribute", set_attribute)
    kernel, other = Kernel("a.cu", "a"), Kernel("a.cu", "b")
    for kibibytes in (48, 90, 64, 90, 99):
        device.launch(kernel, (1,), (1,), shared=kibibytes << 10)
    device.launch(other, (1,), (1,), shared=90 << 10)
    assert asked == [(7, 8, 90 << 10), (7, 8, 99 << 10), (7, 8, 90 << 10)]


# -- cached facts belong to the call ---------------------------------------------------


def host_only(backend):
    if backend is not HOST:
        pytest.skip("of the host's backend")


def test_numbers_that_are_equal_and_not_the_same(backend):
    x = np.array([1, -2, 0, 3], BF16)
    there = on_gpu(x)
    numbers: list[object] = [0, 0.0, -0.0, False, True, 1, 1.0, float("nan")]
    if backend is HOST:
        numbers.append(np.float32(-0.0))  # CuPy's maximum of 0 and -0 is either
    with np.errstate(all="ignore"):
        for number in numbers * 2:
            for ufunc in (np.multiply, np.copysign, np.maximum, np.less, np.equal):
                want = ufunc(x, number)
                assert_same(ufunc(there, number), want, (ufunc, number))
                assert_same(ufunc(number, there), ufunc(number, x), (ufunc, number))


def test_layouts_and_dtypes(backend):
    """Arrays that differ only in the layout or only in the dtype are used in turn."""
    whole = np.arange(-32, 32, dtype=np.float32).reshape(8, 8) / 8
    cuts = np.s_[:4, :4], np.s_[::2, ::2], np.s_[4:, :4], np.s_[:4, 3::-1]
    names = "float8_e4m3fn", "float8_e5m2", "bfloat16"
    for _ in range(2):
        for name in names:
            x = whole.astype(getattr(td, name))
            there = on_gpu(x)
            for cut in cuts:
                a, b = x[cut], there[cut]
                assert_same(np.add(b, b), a + a, (name, cut))
                assert_same(b + b.T, a + a.T, (name, cut))
                assert_same(b.sum(0), a.sum(0), (name, cut))
                assert_same(b.sum(1), a.sum(1), (name, cut))
                assert_same(b @ b, a @ a, (name, cut))
                assert_same(b.astype(np.float32), a.astype(np.float32), (name, cut))
                assert b.astype(np.float32).strides == a.astype(np.float32).strides


def test_operands_that_overlap(backend):
    """Operands overlap, while earlier operands of the same layout did not."""
    x = np.arange(40, dtype=np.float32).astype(BF16)
    apart, there = on_gpu(x.copy()), on_gpu(x)
    np.add(apart[1:], apart[:-1], out=on_gpu(x)[1:])
    np.add(there[1:], there[:-1], out=there[1:])
    np.add(x[1:], x[:-1], out=x[1:])
    assert_same(there, x)


def test_a_changed_rounding_is_seen(backend):
    x = np.array([1.003, -1.003, 3e38, 3.4e38, 1e-39], np.float32)
    there = cupy.asarray(x) if backend is not HOST else backend.put(x)
    ways = [("ties_to_even", "ieee"), ("toward_zero", "ieee"), ("to_odd", "ieee"),
            ("ties_to_even", "saturate"), ("toward_positive", "saturate")]  # fmt: skip
    with np.errstate(all="ignore"):
        for rounding, overflow in ways * 2:
            how = {"rounding": rounding, "overflow": overflow}
            for name in ("bfloat16", "float8_e5m2"):
                want = td.quantize(x, name, **how)
                assert_same(tfc.quantize(there, name, **how), want, how)


def test_a_changed_mode_is_seen(backend):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((5, 70)).astype(BF16) for _ in range(2))
    x, y = on_gpu(a), on_gpu(b)
    for _ in range(2):
        assert_same(x @ y.T, a @ b.T)
        for device in ("A100", "H100"):
            want = td.tensor_core.matmul(a, b.T, device=device)
            with tfc.matmul_mode("model", device=device):
                assert_same(x @ y.T, want, device)
            assert_same(tfc.matmul(x, y.T, mode="model", device=device), want)
        assert_same(np.matmul(x, y.T, dtype=np.float32),
                    np.matmul(a, b.T, dtype=np.float32))  # fmt: skip


def test_a_changed_precision_is_seen(backend):
    host_only(backend)
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((6, 6)).astype(np.float32) for _ in range(2))
    x, y = (ndarray.wrap(backend.put(z), np.float32) for z in (a, b))
    found = []
    for _ in range(2):
        each = {}
        for precision in ("tf32", None, "bf16", "fp8_e4m3"):
            with td.matmul_precision(precision):
                each[precision] = HOST.get(x @ y).tobytes()
        for strategy in ("eager", "performant"):
            HOST.counts.clear()
            got = tfc.matmul(x, y, precision="bf16x3", strategy=strategy)
            each[strategy] = HOST.get(got).tobytes(), HOST.counts["gemm"]
        found.append(each)
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 6


def test_initial_values_and_axes(backend):
    x = np.zeros((2, 3), BF16)
    there = on_gpu(-x)
    for start in (0.0, -0.0, 0, -0.0, 1.0):
        want = np.add.reduce(-x, axis=1, initial=start)
        assert_same(reductions.reduce("sum", there, 1, initial=start), want, start)
    for _ in range(2):
        assert reductions.reduce("sum", there, 1).shape == (2,)
        assert reductions.reduce("sum", there, 1, keepdims=True).shape == (2, 1)
        with pytest.raises(TypeError):
            reductions.reduce("sum", there, 1.0)
        with pytest.raises(np.exceptions.AxisError):
            reductions.reduce("sum", there, 2)


def test_another_device_has_another_grid(backend, monkeypatch):
    host_only(backend)
    grids = []
    launch = lambda kernel, grid, *_, **__: grids.append(grid)  # noqa: E731
    monkeypatch.setattr(HOST, "launch", launch)
    x = ndarray.empty((1 << 20,), BF16)
    y = ndarray.empty((1, 256, 256), BF16)
    out = ndarray.empty((1, 256, 256), BF16)
    for processors in (2, 132, 2):
        monkeypatch.setattr(HOST, "processors", lambda count=processors: count)
        np.add(x, x)
        by_plan(fma.plan, y, y, out)
    each = len(grids) // 3
    assert grids[:each] != grids[each : 2 * each]
    assert grids[0] == grids[-each] != grids[each]


def test_another_architecture_has_other_tiles(backend, monkeypatch):
    host_only(backend)
    found = []
    launch = lambda kernel, *_, **__: found.append(kernel)  # noqa: E731
    monkeypatch.setattr(HOST, "launch", launch)
    x = ndarray.empty((1, 512, 512), BF16)
    out = ndarray.empty((1, 512, 512), np.dtype(np.float32))
    for arch in ("sm_80", "sm_86", "sm_80"):
        monkeypatch.setattr(HOST, "arch", arch)
        by_plan(native.plan, x, x, out)
    assert found[0] == found[2] != found[1]
    monkeypatch.setattr(HOST, "arch", "sm_89")
    tensor_cores._check(("float8_e5m2",) * 2, "mma.sync")
    monkeypatch.setattr(HOST, "arch", "sm_80")
    with pytest.raises(ValueError, match="the tensor cores of sm_80"):
        tensor_cores._check(("float8_e5m2",) * 2, "mma.sync")


def test_blocks_that_are_alike_but_for_one_thing(backend):
    """The tensor's scale, formats, terms, modes and layouts change in turn, for one
    shape."""
    rng = np.random.default_rng(9)
    x, y = (rng.standard_normal((2, 40, 64)).astype(np.float32) for _ in range(2))
    how = {"scale_format": "ue4m3", "scale": "amax"}
    pairs = []
    for name, factor, options in (
        ("tcfp16", 1, how), ("tcfp16", 100, how), ("tcfp16", 1, {"scale": "amax"}),
        ("tcfp8", 1, {"scale": "amax"}),
    ):  # fmt: skip
        a = td.blocks.quantize(factor * x, name, **options)
        b = td.blocks.quantize(y.swapaxes(1, 2), name, 1, **options)
        pairs += [(a, b), (a[0], b[1]), (a[::-1], b), (a, b[:1])]
    for _ in range(2):
        for a, b in pairs:
            p, q = tfc.blocks.asarray(a), tfc.blocks.asarray(b)
            for terms in (3, None):
                want = td.blocks.matmul(a, b, terms=terms)
                assert_same(tfc.blocks.matmul(p, q, terms=terms), want, (a, terms))
        dense = y[0].T.copy()
        for z in (dense, np.asfortranarray(dense)):
            got = tfc.blocks.matmul(tfc.blocks.asarray(a), backend.put(z))
            assert_same(got, td.blocks.matmul(a, z))


def test_matrices_that_are_copied_first(backend):
    """The kernel of mma.sync takes new arrays only if operands must be copied."""
    host_only(backend)
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal((20, 40)).astype(BF16) for _ in range(2))
    x, y = on_gpu(a), on_gpu(b)
    cuts = np.s_[:16, :32], np.s_[1:, 1:], np.s_[::2, ::3], np.s_[:8, ::-1]
    how = {"mode": "native", "instruction": "mma.sync"}
    for cut in cuts:
        p, q = a[cut], b[cut].T
        want = td.tensor_core.matmul(p, q, device="H100", instruction="mma.sync")
        assert_same(tfc.matmul(x[cut], y[cut].T, **how), want, cut)
