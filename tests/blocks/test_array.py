"""BlockArray as an object: indices, values, equality, and NumPy functions on it."""

import dataclasses
import operator
import pickle

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import NAMES, normal, same
from tf32dtype import blocks
from tf32dtype.blocks import BlockArray

MAX = float(np.finfo(np.float32).max)


# -- indices -----------------------------------------------------------------

ALL = slice(None)
MASK = np.array([True, False, True])
GRID = np.arange(12).reshape(3, 4) % 5 == 0
#: Indices of two axes of lengths 3 and 4.
PAIRS = [
    (0, ALL),
    (-1, 2),
    (ALL, -1),
    (slice(1, 3), ALL),
    (slice(None, None, -1), slice(None, None, -2)),
    (slice(2, 2), ALL),
    ([2, 0, 0], ALL),
    (ALL, [3, 1]),
    ([0, 2], [1, 3]),
    ([[0], [2]], [1, 3]),
    (1, [0, 3]),
    ([0, 1], 2),
    (MASK, ALL),
    (MASK.tolist(), slice(1, 3)),
    (MASK, [1, 2]),
    (MASK, 1),
    ([], ALL),
    (np.array([[0, 1], [2, 2]]), slice(0, 0)),
    (np.uint8(2), np.array(1)),
]
#: Keys of an array whose block axis is the first, the middle and the last.
SHORT = [
    (0, ...),
    (0, ()),
    (0, (ALL, GRID)),
    (0, (..., GRID)),
    (0, (..., 1)),
    (0, (ALL, 2)),
    (0, (ALL, 2, ..., [1, 1])),
    (1, 1),
    (1, [1, 0]),
    (1, MASK),
    (1, (..., 1)),
    (1, (2, ..., [1])),
    (2, 0),
    (2, GRID),
    (2, (GRID, ALL)),
    (2, (GRID, ...)),
    (2, (..., 1, ALL)),
    (2, (1, ..., ALL)),
    (2, (0, 0, ...)),
]


def check_index(name, axis, key):
    order = [0, 1]
    order.insert(axis, 2)
    b = blocks.quantize(normal((3, 4, 37)).transpose(order), name, axis, block_size=16)
    got = b[key]
    same(got.dequantize(), np.ascontiguousarray(b.dequantize()[key]))
    assert got.shape[got.axis] == 37, key
    facts = "format block_size scale_format tensor_scale".split()
    assert [getattr(got, f) for f in facts] == [getattr(b, f) for f in facts], key


@pytest.mark.parametrize("name", ["tcfp8", "tcfp12", "mxfp6_e3m2", "nvfp4", "int12"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_indices_are_those_of_the_values(name, axis):
    for pair in PAIRS:
        key = list(pair)
        key.insert(axis, ALL)
        check_index(name, axis, tuple(key))


@pytest.mark.parametrize(("axis", "key"), SHORT, ids=str)
def test_short_indices(axis, key):
    check_index("tcfp16", axis, key)


def test_parts_are_contiguous_copies():
    b = blocks.quantize(normal((4, 5, 64)), "tcfp16")
    part = b[1:3, ::-1, :]
    for array in (part.codes, part.scales, part.residuals, part.buffer):
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    assert not np.shares_memory(part.buffer, b.buffer)
    np.testing.assert_array_equal(part.codes, b.codes[1:3, ::-1])
    np.testing.assert_array_equal(part.scales, b.scales[1:3, ::-1])
    np.testing.assert_array_equal(part.residuals, b.residuals[1:3, ::-1])


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ((0, 0), "axis 1 is the block axis.*taken whole"),
        ((0, slice(0, 3)), "axis 1 is the block axis"),
        ((slice(None), slice(None, None, -1)), "axis 1 is the block axis"),
        ((slice(None), [0, 1]), "axis 1 is the block axis"),
        (np.ones((3, 40), bool), "axis 1 is the block axis"),
        ((..., 1, 2), "axis 1 is the block axis"),
        (None, "cannot be indexed with None"),
        ((0, None), "cannot be indexed with None"),
        ((..., ...), "single ellipsis"),
        (
            (0, slice(None), slice(None), 0),
            "too many indices: array must have at least 4 axes; got 3",
        ),
        (5, "index 5 is out of bounds for axis 0 with size 3"),
        ([0, -4], "out of bounds"),
        (1.5, "must be an integer, a slice"),
        ("a", "must be an integer, a slice"),
        (True, "must be an integer, a slice"),
        (np.ones(4, bool), "boolean index"),
        (([0, 1, 2], slice(None), [0, 1]), "could not be broadcast"),
    ],
    ids=str,
)
def test_indices_that_are_none(key, text):
    b = blocks.quantize(normal((3, 40, 2)), "tcfp8", 1)
    with pytest.raises(IndexError, match=text):
        b[key]


def test_the_block_axis_may_be_named_whole():
    b = blocks.quantize(normal((3, 40)), "tcfp8")
    for key in (slice(0, 40), slice(-40, None), slice(0, 99, 1), ...):
        assert b[:, key] == b
    one = blocks.quantize(normal((3, 1)), "tcfp8")
    assert one[:, ::-1] == one
    assert b[:] == b


def test_iteration():
    b = blocks.quantize(normal((3, 40)), "tcfp12")
    assert len(b) == 3
    lines = list(b)
    assert [line.shape for line in lines] == [(40,)] * 3
    for i, line in enumerate(lines):
        assert line == b[i]
    with pytest.raises(TypeError, match="block axis"):
        iter(b.T)
    assert len(b.T) == 40


@pytest.mark.parametrize("shape", [(5,), (3, 40), (2, 3, 20), (2, 3, 4, 5)])
@pytest.mark.parametrize("name", ["tcfp16", "mxfp4"])
def test_transposes(shape, name):
    for axis in range(len(shape)):
        b = blocks.quantize(normal(shape), name, axis)
        y = b.dequantize()
        same(b.T.dequantize(), np.ascontiguousarray(y.T))
        assert b == b.T.T
        if len(shape) == 1:
            with pytest.raises(ValueError, match="two axes"):
                b.mT  # noqa: B018
            continue
        same(b.mT.dequantize(), np.ascontiguousarray(y.mT))
        assert b.mT.mT == b
        if len(shape) == 2:
            assert np.shares_memory(b.T.buffer, b.buffer)


# -- values ------------------------------------------------------------------

DTYPES = [np.float32, np.float64, np.float16, *(f.type for f in td.formats.values())]


@pytest.mark.parametrize("name", NAMES)
def test_values_of_every_dtype_are_rounded_once(name):
    for dtype in DTYPES:
        check_values(name, dtype)


def check_values(name, dtype):
    x = np.ldexp(normal((3, 70)), np.random.default_rng(1).integers(-9, 9, (3, 70)))
    if dtype is td.float8_e8m0fnu:
        x = np.abs(x) + 0.1
    b = blocks.quantize(x, name)
    exact = b.dequantize(np.float64)
    with np.errstate(all="ignore"):
        got = b.dequantize(dtype)
        assert got.dtype == dtype
        same(got, exact.astype(dtype))
        same(b.T.dequantize(dtype), np.ascontiguousarray(exact.T).astype(dtype))


def test_names_of_dtypes():
    b = blocks.quantize(normal(40), "tcfp8")
    same(b.dequantize("bfloat16"), b.dequantize(td.bfloat16))
    same(b.dequantize("f8"), b.dequantize(float))
    same(b.dequantize(">f4"), b.dequantize())
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert b.dequantize(ml_dtypes.bfloat16).dtype == td.bfloat16


def test_values_are_rounded_once_and_not_by_float32():
    # 1.5 S is a little above 1 + 2^-8, a tie of bfloat16, to which float32 rounds it.
    scale = (2**25 + 2**17 + 2) // 3 * 2.0**-24
    b = BlockArray.from_codes(
        "nvfp4",
        np.array([1.5], td.float4_e2m1fn),
        np.array([1], td.float8_e4m3fn),
        shape=(1,),
        tensor_scale=scale,
    )
    assert b.dequantize(np.float64)[0] == 1.5 * scale > 1 + 2.0**-8
    assert b.dequantize()[0] == 1 + 2.0**-8
    assert float(b.dequantize(td.bfloat16)[0]) == 1 + 2.0**-7


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", td.bfloat16], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_out_of_any_strides(dtype, axis):
    b = blocks.quantize(normal((5, 40)), "tcfp12", axis)
    want = b.dequantize(dtype)
    for out in (
        np.empty((5, 40), dtype),
        np.empty((40, 5), dtype).T,
        np.empty((10, 120), dtype)[::-2, ::3],
        np.empty((5, 40), dtype)[::-1],
        np.empty(201 * np.dtype(dtype).itemsize, "u1")[1 : 1 - np.dtype(dtype).itemsize]
        .view(dtype)
        .reshape(5, 40),
    ):
        assert b.dequantize(dtype, out=out) is out
        assert out.astype(np.float64).tolist() == want.astype(np.float64).tolist()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"dtype": "i4"},
            TypeError,
            "float32, float64, float16 or one of td.formats; got int32",
        ),
        ({"dtype": "c8"}, TypeError, "got complex64"),
        ({"dtype": np.longdouble}, TypeError, "td.formats; got "),
        (
            {"out": np.empty((2, 40))},
            TypeError,
            "array of float32; got float64.*out.dtype",
        ),
        ({"out": [0.0]}, TypeError, "out must be an array; got"),
        (
            {"out": np.empty((40, 2), "f4")},
            ValueError,
            r"\(2, 40\); got \(40, 2\)",
        ),
        ({"out": np.broadcast_to(np.float32(0), (2, 40))}, ValueError, "read-only"),
    ],
)
def test_values_that_cannot_be(options, error, text):
    b = blocks.quantize(normal((2, 40)), "tcfp8")
    with pytest.raises(error, match=text):
        b.dequantize(**options)


def test_numpy_sees_the_values():
    b = blocks.quantize(normal((2, 40)), "tcfp8")
    same(np.asarray(b), b.dequantize())
    same(np.array(b, copy=True), b.dequantize())
    same(np.asarray(b, np.float64), b.dequantize(np.float64))
    same(np.asarray(b, td.bfloat16), b.dequantize(td.bfloat16))
    same(np.asarray(b, np.int32), b.dequantize().astype(np.int32))
    np.testing.assert_array_equal(np.asarray(b, "g"), b.dequantize(np.float64))
    same(np.asarray(b, "c8"), b.dequantize().astype("c8"))
    same(b.dequantize(None), b.dequantize())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(b, copy=False)


def test_integers_are_of_the_exact_values():
    # 6 S is 5 - 2^-23, which is not a float32. The nearest float32 is 5.
    scale = 13981013 * 2.0**-24
    b = BlockArray.from_codes(
        "mxfp4",
        np.array([6], td.float4_e2m1fn),
        np.array([1], np.uint8),
        shape=(1,),
        scale_format="ue4m3",
        tensor_scale=scale * 2.0**9,
    )
    assert b.dequantize()[0] == 5 > b.dequantize(np.float64)[0]
    same(np.asarray(b, np.int64), np.array([4]))


# -- what NumPy rejects ------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda b, x: b + x, "np.add"),
        (lambda b, x: x * b, None),
        (lambda b, x: np.add(x, b), "np.add"),
        (lambda b, x: np.exp(b), "np.exp"),
        (lambda b, x: np.add.reduce(b), r"np.add\.reduce"),
        (lambda b, x: np.dot(b, x), "np.dot"),
        (lambda b, x: np.inner(x, b), "np.inner"),
        (lambda b, x: np.sum(b), "np.sum"),
        (lambda b, x: np.concatenate([b, b]), "np.concatenate"),
        (lambda b, x: x == b, "np.equal"),
        (lambda b, x: np.vecdot(b, x), "np.vecdot"),
        (lambda b, x: 0.5 in b, None),
    ],
)
def test_other_functions_say_what_to_do(call, name):
    b = blocks.quantize(normal((2, 40)), "tcfp8")
    with pytest.raises(TypeError, match=name and f"{name} does not take.*dequantize"):
        call(b, normal((2, 40)))


MADE = [lambda x: blocks.quantize(x, "tcfp8"), blocks.quantize_tiles]
OF_ONE = "neg pos abs inv"
OF_TWO = "add sub mul truediv floordiv mod pow lshift rshift and_ or_ xor lt le gt ge"
IN_PLACE = "iadd isub imul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor"


@pytest.mark.parametrize("make", MADE)
def test_every_operator_says_what_to_do(make):
    x = normal((256, 256))
    b = make(x)
    calls = [(name, (b,)) for name in OF_ONE.split()]
    for other in (1, x, b, td.bf16(1), [1.0]):
        calls += [(name, (b, other)) for name in f"{OF_TWO} {IN_PLACE}".split()]
        calls += [(name, (other, b)) for name in OF_TWO.split()]
    for name, operands in calls:
        with pytest.raises(TypeError, match=r"does not take.*dequantize\(\)"):
            getattr(operator, name)(*operands)
    for operands in ((b, 2), (2, b)):
        with pytest.raises(TypeError, match=r"divmod does not take.*dequantize\(\)"):
            divmod(*operands)


@pytest.mark.parametrize("make", MADE)
def test_equality_is_of_objects(make):
    x = normal((256, 256))
    b = make(x)
    for other, is_equal in (
        (b, True),
        (make(x), True),
        (make(2 * x), False),
        (1, False),
    ):
        assert (b == other) is is_equal
        assert (b != other) is not is_equal
    with pytest.raises(TypeError, match="unhashable"):
        hash(b)


def test_a_product_in_place_is_a_new_array():
    x = normal((256, 256))
    for b in (blocks.quantize(x, "tcfp8"), blocks.quantize_tiles(x)):
        product = b
        product @= x
        same(product, b @ x)


def test_products_are_the_package_s(monkeypatch):
    calls = []

    def matmul(a, b, **options):
        calls.append((a, b, options))
        return "product"

    monkeypatch.setattr("tf32dtype.blocks.array.matmul", matmul)
    b = blocks.quantize(normal((2, 40)), "tcfp8")
    x = normal((40, 3))
    out = np.empty((2, 3))
    assert b @ x == x.T @ b == [[1]] @ b == np.matmul(b, x) == "product"
    assert np.matmul(b, x, out=out, dtype="f8") == "product"
    assert calls[0] == (b, x, {})
    assert calls[-1][2] == {"out": out, "dtype": "f8"}
    with pytest.raises(TypeError, match=r"takes only out and dtype .*; got casting"):
        np.matmul(b, x, casting="no")


# -- as a value --------------------------------------------------------------


def test_equality_is_of_bytes_and_facts():
    x = np.ones((32, 32), np.float32)
    b = blocks.quantize(x, "mxfp8_e4m3")
    assert b == blocks.quantize(x, "mxfp8_e4m3")
    assert (b == blocks.quantize(x, "mxfp8_e4m3")) is True
    assert (b != blocks.quantize(x, "mxfp8_e4m3")) is False
    assert b != blocks.quantize(-x, "mxfp8_e4m3")
    assert b != blocks.quantize(x, "mxfp8_e4m3", 0)
    assert b != blocks.quantize(x, "mxfp8_e4m3", block_size=16)
    assert b != blocks.quantize(x, "tcfp8", scale="floor")
    assert b != 1
    x[0] = np.nan
    assert blocks.quantize(x, "mxfp4") == blocks.quantize(x, "mxfp4")
    with pytest.raises(TypeError, match="unhashable"):
        hash(b)


def test_repr():
    x = np.ones((3, 64), np.float32)
    assert repr(blocks.quantize(x, "mxfp4")) == (
        "BlockArray('mxfp4', shape=(3, 64), axis=1, scale_format='float8_e8m0fnu', "
        "4.25 bits)"
    )
    assert repr(blocks.quantize(x, "nvfp4", 0, block_size=32)) == (
        "BlockArray('nvfp4', shape=(3, 64), axis=0, block_size=32, "
        "scale_format='ue4m3', tensor_scale=0.000372023816, 4.25 bits)"
    )


def test_the_bytes_are_read_only():
    b = blocks.quantize(normal((2, 40)), "tcfp16")
    for part in (b.codes, b.scales, b.residuals, b.buffer):
        with pytest.raises(ValueError, match="read-only"):
            part[...] = 0
    for again in (b, b.T, b[:1], pickle.loads(pickle.dumps(b))):
        for part in (again.codes, again.scales, again.residuals, again.buffer):
            with pytest.raises(ValueError, match="WRITEABLE"):
                part.flags.writeable = True
    with pytest.raises(AttributeError):
        b.shape = (80,)
    with pytest.raises(TypeError, match="quantize"):
        BlockArray()


def test_other_packages_see_a_lazy_module():
    import subprocess
    import sys

    code = "import sys, tf32dtype as td; print('tf32dtype.blocks' in sys.modules)"
    code += "; td.blocks.quantize; print('tf32dtype.blocks' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]
    assert "blocks" in td.__all__


def test_as_many_axes_as_numpy_has_room_for():
    x = normal((1,) * 61 + (40,))
    b = blocks.quantize(x, "tcfp12")
    assert b.elements.shape == b.T.T.dequantize().shape == x.shape
    again = BlockArray.from_codes(
        "tcfp12",
        b.elements,
        b.scales,
        b.residual_elements,
        shape=x.shape,
        scale_format=b.scale_format,
        tensor_scale=b.tensor_scale,
    )
    assert again == b
    with pytest.raises(ValueError, match=r"at most 62 axes; got 63"):
        blocks.quantize(x[None], "tcfp12")
    with pytest.raises(ValueError, match="at most 32 axes before"):
        b @ normal((40, 2))


def test_rows_are_those_of_the_table():
    x = normal(40)
    row = blocks.formats["mxfp4"]
    assert blocks.quantize(x, row) == blocks.quantize(x, "mxfp4")
    other = dataclasses.replace(row, element="float6_e2m3fn")
    with pytest.raises(ValueError, match="which differs from the row 'mxfp4'"):
        blocks.quantize(x, other)
    with pytest.raises(ValueError, match="got 'mine'"):
        blocks.quantize(x, dataclasses.replace(row, name="mine"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["mxfp8_e4m3", "tcfp16", "mxfp4"])
@pytest.mark.parametrize("length", [1 << 14, (1 << 14) + 40])
def test_large_results_are_those_of_their_parts(name, length):
    """Write large results past the caches, one cache line at a time."""
    packed = blocks.quantize(normal((272, length)), name, scale="amax")
    parts = [packed[i : i + 16].dequantize() for i in range(0, 272, 16)]
    expected = np.concatenate(parts)
    memory = np.empty(expected.size + 16, np.float32)
    for first in (0, 1, 5, 15):
        out = memory[first : first + expected.size].reshape(expected.shape)
        memory[:] = np.nan
        packed.dequantize(out=out)
        same(out, expected)
        assert np.isnan(memory[:first]).all()
        assert np.isnan(memory[first + expected.size :]).all()
