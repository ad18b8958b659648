"""Differences of CuPy, or a GPU, from NumPy, which replaces CuPy in other tests."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.support.cuda import HOST, backend, cupy, tfc  # noqa: F401
from tf32dtype.cuda._functions import lookup_tables
from tf32dtype.cuda._runtime import backend as backends
from tf32dtype.cuda._runtime import device as devices
from tf32dtype.cuda._runtime.backend import Kernel
from tf32dtype.cuda._runtime.device import Device
from tf32dtype.cuda._runtime.storage import raw

DTYPES = [td.bfloat16, td.tf32, td.float8_e4m3fn, np.float32]
each = pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: np.dtype(t).name)


def numbers(dtype: Any, shape: Any = (4, 6)) -> Any:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def same(x: Any, want: Any) -> None:
    got = backends.current().get(raw(x) if isinstance(x, tfc.ndarray) else x)
    assert (x.dtype, x.shape) == (want.dtype, want.shape)
    assert got.tobytes() == np.ascontiguousarray(want).tobytes()


# -- the device's side of the backend interface, without a GPU -------------------------


@pytest.fixture
def device(monkeypatch: Any, backend: Any) -> Any:  # noqa: F811
    """Return a Device that records its calls of the driver."""
    if backend is not HOST:
        pytest.skip("stands in for a GPU")
    made = Device()
    noted: list[Any] = []
    facts = {"major": 9, "minor": 0, "multiProcessorCount": 132, "name": b"H100"}
    runtime = SimpleNamespace(
        getDevice=lambda: 0,
        getDeviceProperties=lambda _: facts,
        memGetInfo=lambda: noted.append("context"),
    )
    driver = SimpleNamespace(funcSetAttribute=lambda *given: noted.append(given[-1]))

    class Function:
        ptr = 1

        def __call__(self, *given: Any) -> None:
            noted.append("launch")

    fake = SimpleNamespace(runtime=runtime, driver=driver)
    shown = SimpleNamespace(ndarray=cupy.ndarray, cuda=fake, asarray=lambda x, **_: x)
    monkeypatch.setattr(devices, "cupy", shown)
    made._functions[0, KERNEL] = Function()
    made.noted = noted  # type: ignore[attr-defined]
    return made


KERNEL = Kernel("cuda/formats/cast.cu", "cast")


def test_each_thread_has_a_context(device: Any) -> None:
    """CuPy's launches make a thread's context. Other calls of the driver make it
    themselves."""

    def launches(shared: int) -> None:
        for _ in range(2):
            device.launch(KERNEL, (1,), (1,), np.int32(1), shared=shared)

    launches(60 << 10)
    thread = threading.Thread(target=launches, args=(90 << 10,))
    thread.start()
    thread.join()
    assert device.noted == [
        "context", 60 << 10, "launch", "launch",
        "context", 90 << 10, "launch", "launch",
    ]  # fmt: skip


def test_function_that_cupy_has_not(device: Any) -> None:
    with pytest.raises(TypeError, match=r"CuPy has no spacing; use x\.get\(\)"):
        device.call("spacing", 1)


def test_tables_are_where_the_array_is(backend: Any, monkeypatch: Any) -> None:  # noqa: F811
    entered = []

    class On:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __enter__(self) -> None:
            entered.append(self.x.data.device_id)

        def __exit__(self, *error: Any) -> None:
            pass

    x = tfc.asarray([1.0, 2.0], td.bfloat16)
    monkeypatch.setattr(lookup_tables, "device_of", On)
    monkeypatch.setattr(lookup_tables, "_tables", {})
    same(np.exp2(x), np.array([2.0, 4.0], td.bfloat16))
    assert entered == [x.data.device_id]


# -- arguments that CuPy's functions do not take ---------------------------------------


@each
def test_where_of_a_number(backend: Any, dtype: Any) -> None:  # noqa: F811
    x, y = numbers(dtype), numbers(dtype)[::-1]
    for condition in (True, np.False_, np.array(True)):
        found = np.where(condition, tfc.asarray(x), tfc.asarray(y))
        same(found, np.where(condition, x, y))
    with pytest.raises(TypeError, match="condition must be on the GPU"):
        np.where(x > 1, tfc.asarray(x), tfc.asarray(y))


@each
def test_choose_from_several(backend: Any, dtype: Any) -> None:  # noqa: F811
    x, y = numbers(dtype), numbers(dtype, 6)
    index = np.arange(24).reshape(4, 6) % 3
    on_gpu = backends.current().put(index)
    found = np.choose(on_gpu, [tfc.asarray(x), tfc.asarray(y), dtype(5)])
    same(found, np.choose(index, [x, np.broadcast_to(y, (4, 6)), dtype(5)]))


@each
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take_modes(backend: Any, dtype: Any, axis: Any, mode: Any) -> None:  # noqa: F811
    x = numbers(dtype)
    indices = [1, 2, 0] if mode == "raise" else [99, -99, 3, -1]
    want = np.take(x, indices, axis, mode=mode)
    same(np.take(tfc.asarray(x), indices, axis, mode=mode), want)
    there = backends.current().put(np.array(indices))
    same(np.take(tfc.asarray(x), there, axis, mode=mode), want)


def test_take_of_an_unknown_mode(backend: Any) -> None:  # noqa: F811
    with pytest.raises(ValueError, match=r"mode must be one of .*; got 'other'"):
        np.take(tfc.asarray(numbers(td.tf32)), [0], mode="other")


@each
def test_defaults_of_numpy(backend: Any, dtype: Any) -> None:  # noqa: F811
    x = numbers(dtype)[:, ::-1]
    order = np.argsort(x)
    there = backends.current().put(order)
    same(np.take_along_axis(tfc.asarray(x), there), np.take_along_axis(x, order))
    target = tfc.asarray(x)
    np.copyto(target, 1, where=True)
    same(target, np.ones_like(x))


def test_put_checks_when_asked(backend: Any) -> None:  # noqa: F811
    x = tfc.asarray(numbers(td.bfloat16))
    with pytest.raises(IndexError):
        np.put(x, [99], 1, mode="raise")


@pytest.mark.parametrize("out", [False, True])
def test_masked_ufunc_of_float32(backend: Any, out: bool) -> None:  # noqa: F811
    x = numbers(np.float32)
    mask = x % 2 == 0
    there = backends.current().put(mask)
    a = tfc.asarray(x)
    keywords = {"out": tfc.zeros_like(a)} if out else {}
    found = np.add(a, 1, where=there, **keywords)
    assert isinstance(found, tfc.ndarray)
    assert (found.get()[mask] == (x + 1)[mask]).all()
    assert not out or not found.get()[~mask].any()
    if out:
        outs = tfc.zeros_like(a), tfc.zeros_like(a)
        np.divmod(a, 4, out=outs, where=there)
        for got, want in zip(outs, np.divmod(x, np.float32(4)), strict=True):
            assert (got.get() == np.where(mask, want, 0)).all()
        truths = backends.current().put(mask)
        assert np.less(a, 0, out=truths, where=there) is truths
        assert not backends.current().get(truths).any()


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean"])
def test_masked_reduction_of_float32(backend: Any, name: str) -> None:  # noqa: F811
    x = numbers(np.float32) / 16
    mask = x > 0.5
    there = backends.current().put(mask)
    options = {} if name == "mean" else {"initial": 1}
    found = getattr(np, name)(tfc.asarray(x), where=there, **options)
    want = getattr(np, name)(x, where=mask, **options)
    np.testing.assert_allclose(found.get(), want, rtol=1e-6)


def test_float32_to_a_format(backend: Any) -> None:  # noqa: F811
    x = numbers(np.float32)
    found = np.sum(tfc.asarray(x), dtype=td.bfloat16)
    same(found, np.asarray(np.sum(x.astype(td.bfloat16))))
    found = np.cumsum(tfc.asarray(x), 0, dtype=td.tf32)
    same(found, np.cumsum(x.astype(td.tf32), 0))


@each
def test_searchsorted_arguments(backend: Any, dtype: Any) -> None:  # noqa: F811
    if dtype is np.float32:
        pytest.skip("CuPy's own")
    x = tfc.asarray(numbers(dtype, 6)[::-1])
    with pytest.raises(ValueError, match=r"side must be .*; got 'middle'"):
        np.searchsorted(x, x, "middle")
    found = np.searchsorted(x, x[:2], sorter=[5, 4, 3, 2, 1, 0])
    assert backends.current().get(found).tolist() == [5, 4]


# -- memory that is read and written ---------------------------------------------------


@each
def test_assignment_from_itself(backend: Any, dtype: Any) -> None:  # noqa: F811
    """CuPy copies in the order of memory, and NumPy as if from a copy."""
    for key, source in [
        (slice(1, None), slice(None, -1)),
        (slice(None, -1), slice(1, None)),
        (slice(None), slice(None, None, -1)),
        ([2, 0, 1, 3], slice(None)),
    ]:
        x, y = numbers(dtype), tfc.asarray(numbers(dtype))
        x[key] = x[source].copy()
        before = y.copy() if backend is not HOST else None
        if backend is HOST:
            HOST.counts.clear()
        y[key] = y[source]
        same(y, x)
        if backend is HOST:  # a copy and an assignment
            assert HOST.counts["call"] == 2
        del before
    y = tfc.asarray(numbers(dtype))
    if backend is HOST:
        HOST.counts.clear()
        y[1:] = y[1:]
        assert HOST.counts["call"] == 1


@each
def test_copyto_from_itself(backend: Any, dtype: Any) -> None:  # noqa: F811
    x, y = numbers(dtype), tfc.asarray(numbers(dtype))
    x[1:] = x[:-1].copy()
    if backend is HOST:
        HOST.counts.clear()
    np.copyto(y[1:], y[:-1])
    same(y, x)
    if backend is HOST:
        assert HOST.counts["call"] == 2


def test_output_that_repeats(backend: Any) -> None:  # noqa: F811
    """Otherwise a kernel may write an element before it reads the element again."""
    x = tfc.asarray(np.array([7, 2], td.float8_e5m2))
    wide = cupy.broadcast_to(x, (5, 2))
    np.arctan(wide, out=wide)
    same(x, np.arctan(np.array([7, 2], td.float8_e5m2)))


# -- CuPy's methods that allocate ------------------------------------------------------


@each
@pytest.mark.parametrize("order", "CFAK")
def test_ravel_of_any_strides(backend: Any, dtype: Any, order: Any) -> None:  # noqa: F811
    x = numbers(dtype, (4, 6))
    there = tfc.asarray(x)
    for key in [np.s_[:], np.s_[:, ::2], np.s_[::2, 1:], np.s_[::2, 0], np.s_[:0, 1:]]:
        same(there[key].ravel(order), x[key].ravel(order))
        same(there[key].T.ravel(order), x[key].T.ravel(order))


@each
def test_diagonals(backend: Any, dtype: Any) -> None:  # noqa: F811
    for shape in [(3, 3), (2, 3, 4), (3, 0), (0, 2, 2)]:
        x = numbers(dtype, shape)
        a = tfc.asarray(x)
        same(np.diagonal(a).copy(), np.diagonal(x).copy())
        same(np.linalg.diagonal(a).copy(), np.linalg.diagonal(x).copy())
        if dtype is not np.float32:
            same(np.linalg.trace(a), np.asarray(np.linalg.trace(x)))


@pytest.mark.parametrize("axis", [0, -1])
def test_reduction_without_axes(backend: Any, axis: int) -> None:  # noqa: F811
    x = np.asarray(td.bfloat16(3))
    a = tfc.asarray(x)
    assert a.shape == ()
    same(np.max(a, axis=axis), np.asarray(np.max(x, axis=axis)))
    assert backends.current().get(np.argmax(a, axis=axis)) == 0
    with pytest.raises(np.exceptions.AxisError):
        np.max(a, axis=1)


def test_complex_numbers_of_cupy(backend: Any) -> None:  # noqa: F811
    x = backends.current().put(np.ones(3, complex))
    with pytest.raises(TypeError, match="real numbers"):
        tfc.asarray(x, td.tf32)


def test_count_of_float32(backend: Any) -> None:  # noqa: F811
    x = numbers(np.float32)
    found = np.count_nonzero(tfc.asarray(x), 1, keepdims=True)
    same(found, np.count_nonzero(x, 1, keepdims=True))
