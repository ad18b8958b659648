"""Tensors of PyTorch as arrays and back, sharing memory."""

import gc
import sys
import warnings

import numpy as np
import pytest

from tests.support.interpreters import python
from tests.support.tensor_lines import check, lines

torch = pytest.importorskip("torch")

import tf32dtype as td  # noqa: E402
from tf32dtype.interop import torch as tt  # noqa: E402

pytestmark = pytest.mark.once

BOTH = """
    bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu
""".split()
NUMPYS = """
    bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    complex64 complex128
""".split()
ONLY_OURS = [name for name in td.formats if name not in (*BOTH, "float4_e2m1fn")]
each = pytest.mark.parametrize("name", [*BOTH, *NUMPYS])


def array(name, shape=(4, 6)):
    codes = np.random.default_rng(3).integers(0, 256, (*shape, 16), dtype=np.uint8)
    if name == "bool":
        return codes[..., 0] > 99
    dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
    return np.ascontiguousarray(codes[..., : dtype.itemsize]).view(dtype)[..., 0]


def raw(tensor):
    """Return the bytes of a tensor by PyTorch."""
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes()


def same(a, t):
    assert tuple(t.shape) == a.shape
    assert str(t.dtype) == f"torch.{a.dtype.name}"
    assert raw(t) == a.tobytes()


@each
def test_both_ways(name):
    a = array(name)
    for part in (a, a[::2, 1:], a.T, a[1, 2:3], a[3, 4, ...], a[:0], a[..., None]):
        t = tt.from_numpy(part)
        same(part, t)
        back = tt.to_numpy(t)
        assert back.dtype == a.dtype
        assert back.shape == part.shape
        assert back.tobytes() == part.tobytes()
        assert back.flags.writeable
        if part.size:
            assert t.data_ptr() == part.ctypes.data == back.ctypes.data
            assert back.strides == part.strides


@each
def test_writing_is_seen_on_the_other_side(name):
    a = array(name)
    t = tt.from_numpy(a)
    t[0] = t[1]
    assert a[0].tobytes() == a[1].tobytes()
    a[2] = a[3]
    same(a, t)
    back = tt.to_numpy(t)
    back[3] = a[0]
    same(a, t)
    t, back = tt.from_numpy(a, copy=True), tt.to_numpy(t, copy=True)
    before = a.tobytes()
    a[:] = a[3:0:-1, :1][:1]
    assert raw(t) == back.tobytes() == before


@pytest.mark.parametrize("row", lines("PyTorch"), ids=lambda row: row[0])
def test_the_page(row):
    check(row, {"torch": torch, "tt": tt})


def test_numbers():
    for name in BOTH:
        t = torch.tensor([0.5, 1, 2, 4]).to(getattr(torch, name))
        a = tt.to_numpy(t)
        assert a.tolist() == [0.5, 1, 2, 4]
        assert a.dtype == td.formats[name].dtype


def test_memory_lives_as_long_as_either():
    a = array("bfloat16", (100, 100)).copy()
    before = sys.getrefcount(a)
    t = tt.from_numpy(a)[50:]
    assert sys.getrefcount(a) > before
    want = a[50:].tobytes()
    del a
    gc.collect()
    assert raw(t) == want
    b = tt.to_numpy(t)
    del t
    gc.collect()
    assert b.tobytes() == want


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = array("bfloat16")
    same(a, tt.from_numpy(a.view(ml_dtypes.bfloat16)))


def test_pairs_of_fp4():
    codes = np.random.default_rng(1).integers(0, 16, (3, 8), dtype=np.uint8)
    a = td.from_bits(codes, "fp4")
    t = tt.from_numpy(a, copy=True)
    assert t.dtype == torch.float4_e2m1fn_x2
    assert t.shape == (3, 4)
    in_bytes = t.view(torch.uint8).numpy()
    assert (in_bytes == codes[:, ::2] + 16 * codes[:, 1::2]).all()
    for part, want in ((t, a), (t.T, None), (t[1], a[1]), (t[:, 1:], a[:, 2:])):
        found = tt.to_numpy(part, copy=True)
        if want is None:  # pairs along the last axis of the view
            want = a.reshape(3, 4, 2).transpose(1, 0, 2).reshape(4, 6)
        assert found.dtype == a.dtype
        assert td.bits(found).tolist() == td.bits(want).tolist()
        assert td.bits(td.from_dlpack(part)).tolist() == td.bits(want).tolist()
    with pytest.raises(TypeError, match=r"from_numpy\(a, copy=True\)"):
        tt.from_numpy(a)
    with pytest.raises(TypeError, match=r"to_numpy\(x, copy=True\)"):
        tt.to_numpy(t)
    with pytest.raises(TypeError, match=r"to_numpy\(x, copy=True\)"):
        td.bits(t)
    for odd in (a[:, 1:], a[0, 0, ...]):
        with pytest.raises(ValueError, match="last axis of a must be even"):
            tt.from_numpy(odd, copy=True)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_formats_that_torch_has_not():
    for name in ONLY_OURS:
        assert not hasattr(torch, name)
        how = "view" if name == "tf32" else "astype"
        with pytest.raises(TypeError, match=rf"{name}.*a\.{how}\(np\.float32\)"):
            tt.from_numpy(np.ones(2, td.formats[name].dtype))
    with pytest.raises(TypeError, match=r"tf32dtype has; got torch\.complex32"):
        tt.to_numpy(torch.zeros(2, dtype=torch.complex32))


def refused():
    z = torch.ones(2, dtype=torch.complex64)
    return {
        "detach": torch.ones(2, dtype=torch.bfloat16, requires_grad=True),
        "detach()": torch.nn.Linear(2, 2).weight,
        "to_dense": torch.eye(2).to(torch.bfloat16).to_sparse(),
        "unbind": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "on the device meta": torch.ones(2, dtype=torch.bfloat16, device="meta"),
        "resolve_conj": z.conj(),
        "resolve_neg": z.conj().imag,
    }


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_are_more_than_memory():
    for line, t in refused().items():
        for function in (tt.to_numpy, td.bits, td.to_dlpack, td.bfloat16):
            with pytest.raises(ValueError, match=line.strip("()")):
                function(t)
        if "detach" in line:
            assert tt.to_numpy(t.detach()).shape == t.shape
        if "resolve" in line:
            found = tt.to_numpy(getattr(t, line)())
            assert np.array_equal(found, t.resolve_conj().resolve_neg().numpy())


def test_what_is_neither():
    for x in ([1.0], np.ones(2), None):
        with pytest.raises(TypeError, match=r"x must be a torch\.Tensor"):
            tt.to_numpy(x)
    for x in ([1.0], torch.ones(2), td.bfloat16(1)):
        with pytest.raises(TypeError, match="a must be an array"):
            tt.from_numpy(x)
    with pytest.raises(TypeError, match=r"a\.data and a\.mask"):
        tt.from_numpy(np.ma.array([1, 2], mask=[0, 1], dtype=td.bfloat16))
    with pytest.raises(ValueError, match="negative"):
        tt.from_numpy(array("bfloat16")[::-1])
    same(array("bfloat16")[::-1], tt.from_numpy(array("bfloat16")[::-1], copy=True))


def test_read_only_arrays_are_as_torch_has_them():
    """Get PyTorch's warning for read-only arrays once, never for copies."""
    code = """
import warnings, numpy as np, torch, tf32dtype as td
from tf32dtype.interop.torch import from_numpy
warnings.simplefilter("error")
a = np.ones(3, td.bfloat16)
a.flags.writeable = False
assert from_numpy(a, copy=True)[0] == 1
try:
    from_numpy(a)
except UserWarning as error:
    assert "not writable" in str(error)
else:
    raise SystemExit("no warning")
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tt.from_numpy(array("bfloat16"))
    assert not caught


# -- DLPack ----------------------------------------------------------------------------


@each
def test_dlpack_both_ways(name):
    a = array(name)
    for part in (a, a[::2, 1:], a.T, a[3, 4, ...], a[:0]):
        t = torch.from_dlpack(td.to_dlpack(part))
        same(part, t)
        back = td.from_dlpack(t)
        assert back.dtype == a.dtype
        assert back.tobytes() == part.tobytes()
        if part.size:
            assert t.data_ptr() == part.ctypes.data == back.ctypes.data
    old = td.from_dlpack(torch.utils.dlpack.to_dlpack(tt.from_numpy(a)))
    assert old.tobytes() == a.tobytes()
    assert not old.flags.writeable


def test_dlpack_keeps_memory():
    a = array("float8_e5m2", (100, 100))
    before = sys.getrefcount(a)
    t = torch.from_dlpack(td.to_dlpack(a))
    assert sys.getrefcount(a) == before + 1
    del t
    assert sys.getrefcount(a) == before
    t = torch.full((1000,), 3.0, dtype=torch.bfloat16)
    b = td.from_dlpack(t)
    del t
    gc.collect()
    torch.full((1000,), 7.0, dtype=torch.bfloat16)
    assert (b == 3).all()


def test_dlpack_refuses_what_ends_the_process():
    with pytest.raises(BufferError, match="strides"):
        torch.from_dlpack(td.to_dlpack(array("bfloat16")[::-1]))


def test_a_tensor_may_be_left_at_the_end():
    code = """
import numpy as np, torch, tf32dtype as td
t = torch.from_dlpack(td.to_dlpack(np.ones(3, td.bfloat16)))
torch.kept = t
import builtins; builtins.kept = td.from_dlpack(t)
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
