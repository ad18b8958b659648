"""DLPack's capsules, written and read by ctypes from the standard's structs."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from typing import ClassVar

import numpy as np
import pytest

import tf32dtype as td
from tests.support.interpreters import python

pytestmark = pytest.mark.once

#: Code and bits, from dlpack.h 1.3.
CODES = {
    td.bfloat16: (4, 16),
    td.float8_e3m4: (7, 8),
    td.float8_e4m3: (8, 8),
    td.float8_e4m3b11fnuz: (9, 8),
    td.float8_e4m3fn: (10, 8),
    td.float8_e4m3fnuz: (11, 8),
    td.float8_e5m2: (12, 8),
    td.float8_e5m2fnuz: (13, 8),
    td.float8_e8m0fnu: (14, 8),
    td.float6_e2m3fn: (15, 6),
    td.float6_e3m2fn: (16, 6),
    td.float4_e2m1fn: (17, 4),
    np.bool_: (6, 8),
    np.int8: (0, 8),
    np.int64: (0, 64),
    np.uint8: (1, 8),
    np.uint16: (1, 16),
    np.uint32: (1, 32),
    np.float16: (2, 16),
    np.float32: (2, 32),
    np.float64: (2, 64),
    np.complex64: (5, 64),
    np.complex128: (5, 128),
}
READ_ONLY, IS_COPIED, IS_PADDED = 1, 2, 4
NEW = {"max_version": (1, 0)}
each_type = pytest.mark.parametrize("kind", CODES, ids=lambda kind: kind.__name__)


class Tensor(ctypes.Structure):
    """The DLTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Legacy(ctypes.Structure):
    """The DLManagedTensor of dlpack.h."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Versioned(ctypes.Structure):
    """The DLManagedTensorVersioned of dlpack.h."""

    _fields_ = (
        ("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p),
        ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor),
    )  # fmt: skip


KINDS = {b"dltensor": Legacy, b"dltensor_versioned": Versioned}
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
_set_name = ctypes.pythonapi.PyCapsule_SetName
_set_name.argtypes = [ctypes.py_object, ctypes.c_char_p]
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def managed(capsule):
    name = _get_name(capsule)
    return KINDS[name].from_address(_get_pointer(capsule, name))


USED = b"used_by_a_test"


def take(capsule):
    """Take the tensor of a capsule as a consumer, which must then call the deleter."""
    found = managed(capsule)
    _set_name(capsule, USED)
    return found


def delete(found):
    found.deleter(ctypes.addressof(found))


class Foreign:
    """A tensor of another library, over bytes, which counts calls of its deleter."""

    kept: ClassVar[list[Foreign]] = []  # a deleter is not freed while it runs

    def __init__(
        self,
        data,
        code,
        bits,
        shape,
        strides=None,
        *,
        lanes=1,
        flags=0,
        offset=0,
        version=(1, 3),
        device=(1, 0),
        ndim=None,
        name=b"dltensor_versioned",
    ):
        self.deleted = 0
        self.name = name
        self.data = ctypes.create_string_buffer(bytes(data), max(len(data), 1))
        self.sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        self.steps = (ctypes.c_int64 * max(len(shape), 1))(*(strides or ()))
        self.device = device
        self.struct = KINDS[name]()
        tensor = self.struct.tensor
        tensor.data = ctypes.addressof(self.data) if data else None
        tensor.device[:] = device
        tensor.ndim = len(shape) if ndim is None else ndim
        tensor.code, tensor.bits, tensor.lanes = code, bits, lanes
        tensor.shape = self.sizes
        if strides is not None:
            tensor.strides = self.steps
        tensor.byte_offset = offset
        if name == b"dltensor_versioned":
            self.struct.version[:] = version
            self.struct.flags = flags
        self.struct.deleter = DELETER(self.delete)
        self.kept.append(self)

    def delete(self, address):
        assert address == ctypes.addressof(self.struct)
        self.deleted += 1

    def capsule(self):
        return _new_capsule(ctypes.addressof(self.struct), self.name, None)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        self.keywords = keywords
        return self.capsule()


def numbers(kind, shape=(2, 3)):
    count = int(np.prod(shape))
    return (np.arange(count) % 5 + 1).astype(kind).reshape(shape)


def same(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


# -- exported --------------------------------------------------------------------------


@pytest.mark.parametrize("keywords", [{}, NEW, {"max_version": (2, 0)}], ids=repr)
@each_type
def test_capsules(kind, keywords):
    for a in (
        numbers(kind),
        numbers(kind, (4, 3, 2))[::2, :, 1],
        numbers(kind, (3, 4)).T,
        numbers(kind, ()),
        numbers(kind, (2, 0, 3)),
        numbers(kind, (1, 1, 2))[:, :0],
        np.lib.stride_tricks.as_strided(numbers(kind), (2, 3), (0, 0)),
    ):
        code, bits = CODES[kind]
        exported = td.to_dlpack(a)
        assert exported.__dlpack_device__() == (1, 0)
        if bits < 8 and not keywords:
            with pytest.raises(BufferError, match=r"before 1\.0.*as unpacked"):
                exported.__dlpack__(**keywords)
            continue
        capsule = exported.__dlpack__(**keywords)
        found = managed(capsule)
        if keywords:
            assert tuple(found.version) == (1, 3)
            assert found.flags == (IS_PADDED if bits < 8 else 0)
        tensor = found.tensor
        assert tuple(tensor.device) == (1, 0)
        assert (tensor.code, tensor.bits, tensor.lanes) == (code, bits, 1)
        assert tensor.ndim == a.ndim
        assert tensor.byte_offset == 0
        assert tensor.data == (a.ctypes.data if a.size else None)
        assert tuple(tensor.shape[: a.ndim]) == a.shape
        for i in range(a.ndim):
            if a.shape[i] > 1 and a.size:
                assert tensor.strides[i] * a.itemsize == a.strides[i]
            else:  # in order, whatever stride NumPy has for this axis
                assert tensor.strides[i] > 0
        del exported
        same(td.from_dlpack(capsule), a)


def test_strides_of_short_axes_are_in_order():
    for shape, part, want in (
        ((2, 0, 3), np.s_[:], [3, 3, 1]),
        ((4, 3, 2), np.s_[:1, ::2], [8, 4, 1]),
        ((4, 6), np.s_[::2, :1], [12, 1]),
    ):
        a = np.zeros(shape, td.bfloat16)[part]
        found = managed(td.to_dlpack(a).__dlpack__(**NEW))
        assert found.tensor.strides[: a.ndim] == want


@each_type
def test_round_trip_shares_memory(kind):
    a = numbers(kind)
    b = td.from_dlpack(td.to_dlpack(a))
    same(a, b)
    assert type(b) is np.ndarray
    assert b.flags.writeable
    assert b.flags.aligned
    assert not b.flags.owndata
    b[0] = b[1]
    same(a, b)
    assert (a[0] == a[1]).all()


def test_every_code():
    for kind, (_, bits) in CODES.items():
        if issubclass(kind, td.bfloat16) or bits < 16:
            codes = np.arange(2**bits, dtype=f"u{np.dtype(kind).itemsize}")
            if kind.__module__ == "tf32dtype":
                same(
                    td.from_dlpack(td.to_dlpack(codes.view(kind))).view(codes.dtype),
                    codes,
                )


def test_numpy_takes_its_own_types():
    for kind in CODES:
        if kind.__module__ == "numpy":
            a = numbers(kind, (3, 4))[:, ::3]
            b = np.from_dlpack(td.to_dlpack(a))
            same(a, b)
            assert np.shares_memory(a, b)
            same(np.from_dlpack(td.to_dlpack(a), copy=True), a)


@pytest.mark.skipif(
    not hasattr(np.dtypes, "register_dlpack_dtype"), reason="new in NumPy 2.5"
)
def test_new_numpy_takes_whole_bytes():
    for kind, (_, bits) in CODES.items():
        if bits >= 8:
            same(np.from_dlpack(td.to_dlpack(numbers(kind))), numbers(kind))
        else:
            with pytest.raises(BufferError):
                np.from_dlpack(td.to_dlpack(numbers(kind)))


def test_copies():
    a = numbers(td.bfloat16, (4, 6))
    exported = td.to_dlpack(a[:, ::-2])
    with pytest.raises(
        BufferError, match=r"strides must not .*; got \(12, -4\).*a\.copy\(\)"
    ):
        exported.__dlpack__(**NEW)
    for keywords in ({}, NEW):
        capsule = exported.__dlpack__(copy=True, **keywords)
        if keywords:
            assert managed(capsule).flags == IS_COPIED
        b = td.from_dlpack(capsule)
        same(b, a[:, ::-2])
        assert not np.shares_memory(a, b)
    assert td.to_dlpack(a).__dlpack__(copy=False, stream=None, dl_device=(1, 0))


def test_read_only_arrays():
    a = numbers(td.float8_e5m2)
    a.flags.writeable = False
    assert managed(td.to_dlpack(a).__dlpack__(**NEW)).flags == READ_ONLY
    b = td.from_dlpack(td.to_dlpack(a))
    same(a, b)
    assert not b.flags.writeable
    with pytest.raises(BufferError, match=r"read-only; use a\.copy\(\)"):
        td.to_dlpack(a).__dlpack__()
    b = td.from_dlpack(td.to_dlpack(a).__dlpack__(copy=True, **NEW))
    assert b.flags.writeable
    broadcast = np.broadcast_to(td.bfloat16(2), (3, 4))
    b = td.from_dlpack(td.to_dlpack(broadcast))
    same(b, broadcast)
    assert b.strides == (0, 0)


def test_what_cannot_be_exported():
    record = np.zeros(3, [("a", "u1"), ("b", td.bfloat16)])
    with pytest.raises(BufferError, match=r"td\.to_dlpack\(a\.view\(np\.float32\)\)"):
        td.to_dlpack(numbers(td.tf32))
    same(np.from_dlpack(td.to_dlpack(numbers("f4"))), numbers("f4"))
    for a, said in (
        (record, "DLPack has; got"),
        (np.zeros(2, object), "DLPack has; got object"),
        (np.zeros(2, "M8[s]"), "DLPack has; got datetime64"),
        (np.zeros(2, np.longdouble), "DLPack has; got (float128|longdouble)"),
        (np.zeros(2, ">f4"), "native byte order"),
    ):
        with pytest.raises(BufferError, match=said):
            td.to_dlpack(a)
    masked = np.ma.array([1, 2], mask=[0, 1], dtype=td.bfloat16)
    for function in (td.to_dlpack, td.from_dlpack):
        with pytest.raises(TypeError, match="must not have a mask"):
            function(masked)
    with pytest.raises(BufferError, match=r"multiples of 2 bytes .*; got \(3,\)"):
        td.to_dlpack(record["b"]).__dlpack__(**NEW)
    exported = td.to_dlpack(numbers("f4"))
    with pytest.raises(BufferError, match=r"stream must be None .*got 1"):
        exported.__dlpack__(stream=1)
    with pytest.raises(BufferError, match=r"dl_device must be .*got \(2, 0\)"):
        exported.__dlpack__(dl_device=(2, 0))
    assert repr(exported) == "<DLPack of an array of float32, shape (2, 3)>"


def test_lists_and_scalars_are_exported():
    same(td.from_dlpack(td.to_dlpack(td.bfloat16(2))), np.array(2, td.bfloat16))
    same(td.from_dlpack(td.to_dlpack([1.5, 2])), np.array([1.5, 2]))


# -- lifetimes -------------------------------------------------------------------------


@pytest.mark.parametrize("keywords", [{}, NEW], ids=repr)
def test_an_unused_capsule_lets_the_array_go(keywords):
    a = numbers(td.bfloat16)
    before = sys.getrefcount(a)
    exported = td.to_dlpack(a)
    capsules = [exported.__dlpack__(**keywords) for _ in range(5)]
    assert sys.getrefcount(a) == before + 6
    with pytest.raises(ValueError, match="resize"):
        a.resize((3, 3))
    del exported, capsules
    assert sys.getrefcount(a) == before


@pytest.mark.parametrize("keywords", [{}, NEW], ids=repr)
def test_a_used_capsule_does_not(keywords):
    a = numbers(td.bfloat16)
    before = sys.getrefcount(a)
    capsule = td.to_dlpack(a).__dlpack__(**keywords)
    found = take(capsule)
    del capsule
    assert sys.getrefcount(a) == before + 1
    delete(found)  # ctypes releases the GIL during the call
    assert sys.getrefcount(a) == before
    found = [take(td.to_dlpack(a).__dlpack__(**keywords)) for _ in range(50)]
    threads = [threading.Thread(target=delete, args=(one,)) for one in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.getrefcount(a) == before


def test_the_array_lives_as_long_as_what_was_made_of_it():
    a = numbers(td.bfloat16, (100, 100))
    before = sys.getrefcount(a)
    b = td.from_dlpack(td.to_dlpack(a))
    corner = b[50:, 50:]
    del b
    gc.collect()
    assert sys.getrefcount(a) == before + 1
    want = a[50:, 50:].copy()
    del a
    gc.collect()
    same(corner.copy(), want)
    assert not corner.flags.owndata


def test_a_capsule_is_used_once():
    a = numbers(td.bfloat16)
    for keywords in ({}, NEW):
        capsule = td.to_dlpack(a).__dlpack__(**keywords)
        td.from_dlpack(capsule)
        for copy in (None, True):
            with pytest.raises(BufferError, match="must not be used twice"):
                td.from_dlpack(capsule, copy=copy)


@pytest.mark.parametrize("name", KINDS, ids=bytes.decode)
def test_the_deleter_is_called_once(name):
    foreign = Foreign(range(6), 1, 8, (2, 3), name=name)
    a = td.from_dlpack(foreign)
    assert foreign.keywords == {"max_version": (1, 3)}
    view = a[1:]
    del a
    assert foreign.deleted == 0
    assert view.tolist() == [[3, 4, 5]]
    del view
    assert foreign.deleted == 1
    foreign = Foreign(range(6), 1, 8, (2, 3), name=name)
    b = td.from_dlpack(foreign, copy=True)
    assert foreign.deleted == 1
    assert b.flags.owndata
    assert b.flags.writeable
    foreign = Foreign(range(6), 1, 8, (2, 3), name=name)
    foreign.struct.deleter = DELETER()  # NULL: nothing to delete
    assert td.from_dlpack(foreign).size == 6


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_child_has_its_own():
    code = """
import os, numpy as np, tf32dtype as td
a = np.arange(6, dtype=np.float32).astype(td.bfloat16)
b = td.from_dlpack(td.to_dlpack(a))
unused = td.to_dlpack(a).__dlpack__()
child = os.fork()
b[0] = 1 if child else 2
assert a[0] == b[0]
del b, unused
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert a[0] == 1
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


# -- imported --------------------------------------------------------------------------


@each_type
def test_foreign_tensors(kind):
    code, bits = CODES[kind]
    a = numbers(kind, (4, 3))
    size = a.itemsize
    for name in KINDS:
        if bits < 8 and name == b"dltensor":
            continue
        for strides, offset, want in (
            (None, 0, a),
            ((3, 1), 0, a),
            ((1, 4), 0, a.reshape(3, 4).T),
            ((-3, 1), 9 * size, a[::-1]),
            ((0, 1), 3 * size, np.broadcast_to(a[1], (4, 3))),
        ):
            flags = IS_PADDED if bits < 8 else 0
            foreign = Foreign(
                a.tobytes(), code, bits, (4, 3), strides,
                offset=offset, flags=flags, name=name,
            )  # fmt: skip
            found = td.from_dlpack(foreign)
            same(found, want)
            # A tensor older than DLPack 1.0 does not say whether it is writable.
            assert found.flags.writeable == (name != b"dltensor")


def test_read_only_tensors():
    foreign = Foreign(range(4), 4, 16, (2,), flags=READ_ONLY)
    assert not td.from_dlpack(foreign).flags.writeable
    foreign = Foreign(range(4), 4, 16, (2,), flags=READ_ONLY)
    assert td.from_dlpack(foreign, copy=True).flags.writeable


def test_odd_addresses():
    foreign = Foreign(range(9), 4, 16, (2, 2), offset=1)
    found = td.from_dlpack(foreign)
    address = ctypes.addressof(foreign.data) + 1
    assert found.ctypes.data == address
    assert found.flags.aligned == (address % 2 == 0)
    assert td.bits(found).tolist() == [[0x0201, 0x0403], [0x0605, 0x0807]]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_no_items(shape):
    for code, bits, lanes in ((4, 16, 1), (17, 4, 1), (17, 4, 2), (15, 6, 1)):
        foreign = Foreign(b"", code, bits, shape, lanes=lanes)
        found = td.from_dlpack(foreign)
        assert found.shape == (*shape[:-1], shape[-1] * lanes)
        del found
        assert foreign.deleted == 1


def packed(codes, bits):
    """Pack codes, the first in the lowest bits, by one large integer."""
    whole = sum(int(code) << bits * i for i, code in enumerate(codes))
    return whole.to_bytes(-(-len(codes) * bits // 8), "little")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 64])
@pytest.mark.parametrize("kind", [k for k, (_, bits) in CODES.items() if bits < 8])
def test_packed_numbers(kind, count):
    code, bits = CODES[kind]
    codes = np.random.default_rng(count).integers(0, 2**bits, count, dtype=np.uint8)
    data = b"\xff" + packed(codes, bits)
    foreign = Foreign(data, code, bits, (count,), offset=1)
    found = td.from_dlpack(foreign)
    assert found.dtype == kind
    assert found.flags.writeable
    assert foreign.deleted == 1
    assert td.bits(found).tolist() == codes.tolist()
    if count == 64:
        found = td.from_dlpack(Foreign(data, code, bits, (4, 16), offset=1))
        assert td.bits(found).tolist() == codes.reshape(4, 16).tolist()
        foreign = Foreign(data, code, bits, (4, 16), (1, 4))
        with pytest.raises(BufferError, match=r"packed.*contiguous"):
            td.from_dlpack(foreign)
    with pytest.raises(BufferError, match="copy must not be False for packed"):
        td.from_dlpack(Foreign(data, code, bits, (count,)), copy=False)


def test_pairs():
    data = bytes(range(16))
    for shape, strides, offset, wanted in (
        ((2, 3), (4, 1), 1, [[1, 2, 3], [5, 6, 7]]),
        ((3,), (-1,), 5, [5, 4, 3]),
        ((), None, 9, [9]),
    ):
        found = td.from_dlpack(
            Foreign(data, 17, 4, shape, strides, lanes=2, offset=offset)
        )
        wanted = np.array(wanted, np.uint8)
        codes = np.stack([wanted & 15, wanted >> 4], -1).reshape(*wanted.shape[:-1], -1)
        assert td.bits(found).tolist() == codes.tolist()


# -- protocols -------------------------------------------------------------------------


def test_arrays_themselves():
    for kind in (*CODES, td.tf32):
        a = numbers(kind)[:, ::-1]
        for copy in (None, False, True):
            found = td.from_dlpack(a, copy=copy)
            same(found, a)
            assert found is not a
            assert np.shares_memory(found, a) == (copy is not True)
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = td.from_dlpack(np.ones(2, ml_dtypes.bfloat16))
    assert found.dtype == np.dtype(td.bfloat16)


def test_producers_of_before_1_0():
    class Old(Foreign):
        def __dlpack__(self, stream=None):
            return self.capsule()

    for copy in (None, True, False):
        old = Old(range(4), 4, 16, (2,), name=b"dltensor")
        assert td.bits(td.from_dlpack(old, copy=copy)).tolist() == [0x0100, 0x0302]
    with pytest.raises(TypeError, match="unexpected keyword"):
        td.from_dlpack(old, device="cpu")


def test_keywords():
    foreign = Foreign(range(4), 4, 16, (2,))
    td.from_dlpack(foreign, copy=False)
    assert foreign.keywords == {"max_version": (1, 3), "copy": False}
    foreign = Foreign(range(4), 4, 16, (2,), device=(2, 0))
    foreign.struct.tensor.device[:] = 1, 0  # as if it had been copied
    td.from_dlpack(foreign, device="cpu")
    assert foreign.keywords == {"max_version": (1, 3), "dl_device": (1, 0)}
    with pytest.raises(ValueError, match=r"device must be .*got 'cuda'"):
        td.from_dlpack(foreign, device="cuda")


@pytest.mark.parametrize("device", [2, 8, 10])
def test_memory_of_devices(device):
    foreign = Foreign(range(4), 4, 16, (2,), device=(device, 0))
    with pytest.raises(BufferError, match=r"device=\"cpu\"") as told:
        td.from_dlpack(foreign)
    is_ours = device != 8  # CuPy has no arrays for Metal
    assert ("tf32dtype.cuda.asarray" in str(told.value)) == is_ours
    assert not hasattr(foreign, "keywords")  # the capsule was not requested
    capsule = foreign.capsule()
    with pytest.raises(BufferError, match="memory of the CPU; got a"):
        td.from_dlpack(capsule)
    assert _get_name(capsule) == foreign.name
    for host in (3, 11, 13):  # devices that share memory with the CPU
        found = td.from_dlpack(Foreign(range(4), 4, 16, (2,), device=(host, 0)))
        assert found.size == 2


# -- invalid tensors -------------------------------------------------------------------


def test_no_capsules():
    for x in (3, [1.0], "a", None):
        with pytest.raises(TypeError, match="must have __dlpack__"):
            td.from_dlpack(x)

    class Odd:
        def __dlpack__(self, **_):
            return 5

    with pytest.raises(BufferError, match="must be a DLPack capsule; got int"):
        td.from_dlpack(Odd())
    struct = ctypes.create_string_buffer(200)
    for name in (b"tensor", b"dltensor_versione", b"", b"\xff\xfe" * 1000, None):
        capsule = _new_capsule(ctypes.addressof(struct), name, None)
        with pytest.raises(BufferError, match="must be a DLPack capsule") as caught:
            td.from_dlpack(capsule)
        assert len(str(caught.value)) < 100
    capsule = _new_capsule(ctypes.addressof(struct), b"used_dltensor", None)
    with pytest.raises(BufferError, match="must not be used twice"):
        td.from_dlpack(capsule)


HUGE = 2**62
BAD = [
    ({"version": (2, 0)}, r"DLPack must be .*; got 2\.0"),
    ({"version": (0, 5)}, r"DLPack must be .*; got 0\.5"),
    ({"ndim": 65}, "axes; got 65"),
    ({"ndim": 2**31 - 1}, "axes; got 2147483647"),
    ({"ndim": -1}, "axes; got -1"),
    ({"lanes": 2}, "2 lanes"),
    ({"lanes": 0}, "0 lanes"),
    ({"code": 17, "bits": 4, "lanes": 3}, "3 lanes"),
    ({"code": 17, "bits": 8}, "type 17 with 8 bits"),
    ({"code": 15, "bits": 8}, "type 15 with 8 bits"),
    ({"code": 4, "bits": 32}, "type 4 with 32 bits"),
    ({"code": 0, "bits": 4}, "type 0 with 4 bits"),
    ({"code": 2, "bits": 128}, "type 2 with 128 bits"),
    ({"code": 3, "bits": 64}, "type 3 with 64 bits"),
    ({"code": 255, "bits": 255}, "type 255"),
    ({"shape": (2, -3)}, r"shape .* got \(2, -3\)"),
    ({"shape": (HUGE, 2)}, "must fit in memory"),
    ({"shape": (HUGE, HUGE), "strides": (0, 0)}, "must fit in memory"),
    ({"shape": (2, 2), "strides": (HUGE, HUGE)}, "must fit in memory"),
    ({"shape": (2, 2), "strides": (-HUGE, 1)}, "must fit in memory"),
    ({"shape": (2, 2), "strides": (-(2**63), 1)}, "must fit in memory"),
    ({"offset": 2**64 - 1}, "must fit in memory"),
    ({"code": 17, "bits": 4, "shape": (HUGE, HUGE)}, "must fit in memory"),
    ({"code": 17, "bits": 4, "lanes": 2, "shape": (HUGE, 2)}, "must fit in memory"),
    ({"data": b""}, "x must have memory"),
    ({"data": b"", "code": 17, "bits": 4}, "x must have memory"),
    ({"data": b"", "shape": ()}, "x must have memory"),
]


@pytest.mark.parametrize(("changes", "said"), BAD, ids=lambda x: str(x)[:40])
def test_bad_tensors(changes, said):
    given = {"data": range(16), "code": 4, "bits": 16, "shape": (2, 2)}
    foreign = Foreign(**given | changes)
    capsule = foreign.capsule()
    with pytest.raises(BufferError, match=said):
        td.from_dlpack(capsule)
    assert _get_name(capsule) == foreign.name  # its owner still frees it
    assert foreign.deleted == 0


def test_a_shape_that_is_missing():
    foreign = Foreign(range(16), 4, 16, (2, 2))
    foreign.struct.tensor.shape = ctypes.POINTER(ctypes.c_int64)()
    with pytest.raises(BufferError, match="must have a shape"):
        td.from_dlpack(foreign)


def test_an_error_is_kept_while_a_deleter_runs():
    a = numbers(td.bfloat16)
    before = sys.getrefcount(a)
    with pytest.raises(ZeroDivisionError):
        [td.from_dlpack(td.to_dlpack(a)), td.to_dlpack(a).__dlpack__(), 1 // 0]
    gc.collect()
    assert sys.getrefcount(a) == before


@pytest.mark.parametrize("answer", [None, 5, (), ("x", 0), (1, 2, 3)])
def test_devices_that_are_none(answer):
    class Tensor:
        def __dlpack_device__(self):
            return answer

        def __dlpack__(self, **wishes):
            raise AssertionError("it is not asked")

    with pytest.raises(BufferError, match="device of x must be"):
        td.from_dlpack(Tensor())
