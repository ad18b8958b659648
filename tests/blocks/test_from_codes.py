"""Arrays of blocks from codes, files and pickles, and rejected codes."""

import copy
import io
import pickle
import re

import numpy as np
import pytest

import tf32dtype as td
from tests.blocks.arrays import FACTS, NAMES, normal, same
from tf32dtype import blocks
from tf32dtype.blocks import BlockArray

# -- copies ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(40,), (3, 20), (0,), (2, 0), (0, 7), (2, 3, 33)])
def test_copies(name, shape):
    for axis in (0, -1):
        b = blocks.quantize(normal(shape), name, axis)
        others = [copy.copy(b), copy.deepcopy(b)]
        others += [pickle.loads(pickle.dumps(b, p)) for p in range(6)]
        stream = io.BytesIO()
        td.save(stream, b)
        stream.seek(0)
        others.append(td.load(stream))
        for other in others:
            assert type(other) is BlockArray
            assert other == b
            assert [getattr(other, f) for f in FACTS] == [getattr(b, f) for f in FACTS]
            same(other.buffer, b.buffer)
            same(other.dequantize(), b.dequantize())
            assert not other.buffer.flags.writeable


# -- codes that exist --------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_from_codes(name, axis):
    b = blocks.quantize(normal((3, 35, 4)), name, axis)
    facts = {f: getattr(b, f) for f in FACTS[1:]}
    two = b.residuals is not None
    packed = b.codes, b.scales, b.residuals
    flat = [None if p is None else p.reshape(*p.shape[:-2], -1) for p in packed]
    items = b.elements, b.scales, b.residual_elements
    assert BlockArray.from_codes(name, *packed, **facts) == b
    assert BlockArray.from_codes(name, *items, **facts) == b
    if not two:
        assert BlockArray.from_codes(name, flat[0], b.scales, **facts) == b
    with pytest.raises(ValueError, match=r"residuals must"):
        BlockArray.from_codes(
            name, b.codes, b.scales, None if two else b.codes, **facts
        )


def test_checkpoints():
    rng = np.random.default_rng(2)
    codes, scales = (
        rng.integers(0, 256, (5, 4, 16), "u1"),
        rng.integers(0, 255, (5, 4), "u1"),
    )
    b = BlockArray.from_codes("mxfp4", codes, scales, shape=(5, 128))
    assert b.axis == 1
    same(b.codes, codes)
    codes[...] = 0  # n has a copy
    assert b.codes.any()
    worth = scales.view(td.float8_e8m0fnu)
    assert BlockArray.from_codes("mxfp4", b.codes, worth, shape=(5, 128)) == b
    small = td.from_bits(scales & 0x7F, td.float8_e4m3fn)
    n = BlockArray.from_codes(
        "nvfp4", b.codes.reshape(5, 64), small[:, [0, 1, 2, 3] * 2], shape=(5, 128),
        tensor_scale=np.float32(0.1),
    )  # fmt: skip
    assert n.scales.shape == (5, 8)
    assert n.tensor_scale == np.float32(0.1)


def wrapped(**changes):
    arguments = {
        "format": "nvfp4",
        "codes": np.zeros((2, 3, 8), np.uint8),
        "scales": np.zeros((2, 3), np.uint8),
        "shape": (2, 33),
        **changes,
    }
    return BlockArray.from_codes(**arguments)


FULL = np.zeros((2, 3, 8), np.uint8)
FULL[0, 2, 0] = 0x10


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        ({"format": "fp4"}, ValueError, "format must be one of .*; got 'fp4'"),
        ({"format": "tcfp8"}, ValueError, "scale_format must be given.*'float8_e8"),
        (
            {"codes": np.zeros((2, 24, 1), "u1")},
            ValueError,
            r"packed codes must .*; got \(2, 24, 1\)",
        ),
        (
            {"codes": np.zeros((2, 3, 8), "i1")},
            TypeError,
            r"uint8 \(packed\) .*; got int8",
        ),
        (
            {"codes": np.zeros((2, 32), td.float4_e2m1fn)},
            ValueError,
            r"; got \(2, 32\)",
        ),
        ({"codes": np.zeros((2, 33), td.float6_e2m3fn)}, TypeError, "float4_e2m1fn"),
        ({"codes": FULL}, ValueError, "has 1 values, so its other 15 codes"),
        ({"scales": np.zeros((3, 2), "u1")}, ValueError, r"\(2, 3\); got \(3, 2\)"),
        ({"scales": np.zeros((2, 3), "f4")}, TypeError, "uint8 or float8_e4m3fn"),
        (
            {"scales": np.full((2, 3), 0x80, "u1")},
            ValueError,
            "ue4m3 codes .*; got 0x80",
        ),
        ({"shape": ()}, ValueError, "at least one axis"),
        ({"shape": (2, -33)}, ValueError, "no negative length"),
        ({"shape": 66}, TypeError, "tuple of integers"),
        ({"shape": (2, 33.0)}, TypeError, "tuple of integers"),
        ({"shape": (2**40, 2**40)}, ValueError, "fit in memory"),
        ({"axis": 2}, ValueError, "axis must be .*; got 2"),
        ({"block_size": 17}, ValueError, "block_size must be .*; got 17"),
        ({"block_size": 32}, ValueError, "codes must have shape"),
        ({"scale_format": "ue8m0"}, ValueError, "scale_format must be .*; got 'ue8m0'"),
        (
            {"tensor_scale": 0.0},
            ValueError,
            r"a positive float32 value; got 0\.0",
        ),
        ({"tensor_scale": -1.0}, ValueError, "must be a positive float32"),
        ({"tensor_scale": np.nan}, ValueError, "must be a positive float32"),
        ({"tensor_scale": np.inf}, ValueError, "must be a positive float32"),
        ({"tensor_scale": 0.1}, ValueError, "must be a positive float32"),
        ({"tensor_scale": "1x"}, TypeError, "must be a number"),
        (
            {"tensor_scale": 2.0**121, "scales": np.full((2, 3), 0x70, "u1")},
            ValueError,
            r"range of float32; got 0x70 and 2\.65",
        ),
        ({"tensor_scale": 3.0, "scale_format": "ue3m5"}, ValueError, "power of two"),
        (
            {"tensor_scale": 2.0, "scale_format": "float8_e8m0fnu"},
            ValueError,
            "tensor_scale must be 1 for",
        ),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, dict) else "",
)
def test_codes_that_are_none(changes, error, text):
    assert wrapped().shape == (2, 33)
    with pytest.raises(error, match=text):
        wrapped(**changes)


def test_padding_of_residuals_is_zero_too():
    b = blocks.quantize(normal(33), "tcfp12", scale="amax")
    residuals = b.residuals.copy()
    residuals[1, 15] = 0x10
    with pytest.raises(ValueError, match="has 1 values, so its other 31 codes"):
        BlockArray.from_codes(
            "tcfp12",
            b.codes,
            b.scales,
            residuals,
            shape=(33,),
            scale_format="float8_e8m0fnu",
        )


def test_integers_have_ranges():
    scales = np.zeros((1,), np.uint8)
    for name, value in (("int12", 2048), ("int12", -2049)):
        with pytest.raises(
            ValueError, match=rf"int12 values from -2048 to 2047; got {value}"
        ):
            BlockArray.from_codes(
                name,
                np.int16([value]),
                scales,
                shape=(1,),
                scale_format="float8_e8m0fnu",
            )


# -- files -------------------------------------------------------------------


def test_archives_and_paths(tmp_path):
    b = blocks.quantize(normal((3, 40)), "tcfp12")
    n = blocks.quantize(normal((40, 3)), "nvfp4", 0)
    td.save(tmp_path / "b.npy", b)
    assert td.load(tmp_path / "b.npy") == b
    td.savez(tmp_path / "a.npz", b, n=n, x=normal(3))
    with td.load(tmp_path / "a.npz") as archive:
        assert archive["arr_0"] == b
        assert archive["n"] == n
        same(archive["x"], normal(3))
    plain = np.load(tmp_path / "b.npy")
    same(plain, b.buffer)


def test_memory_map(tmp_path):
    b = blocks.quantize(normal((3, 40)), "tcfp12")
    td.save(tmp_path / "b.npy", b)
    mapped = td.load(tmp_path / "b.npy", mmap_mode="r")
    assert mapped == b
    same(mapped[1:].dequantize(), b.dequantize()[1:])


def test_the_header_is_the_documented_one():
    stream = io.BytesIO()
    td.save(stream, blocks.quantize(np.ones(64), "mxfp4"))
    raw = stream.getvalue()
    assert raw[10:].startswith(
        b"{'descr': '|u1', 'fortran_order': False, 'shape': (34,), }"
        b" # tf32dtype blocks: {'format': 'mxfp4', 'shape': (64,), 'axis': 0, "
        b"'block_size': 32, 'scale_format': 'float8_e8m0fnu', 'tensor_scale': 1.0} "
    )
    assert len(raw) % 64 == 34


def test_tensor_scales_survive_to_the_bit():
    for seed in range(20):
        b = blocks.quantize(normal(40, seed), "nvfp4")
        stream = io.BytesIO()
        td.save(stream, b)
        stream.seek(0)
        assert td.load(stream).tensor_scale == b.tensor_scale


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("'mxfp4'", "'mxfp5'", "format must be one of .*; got 'mxfp5'"),
        ("'mxfp4'", "['xfp4]", "dictionary of format"),
        ("'mxfp4'", "[1,2,3]", "format must be a name"),
        ("'mxfp4'", "'tcfp8'", "must hold 66 bytes .* got shape .34"),
        ("'format'", "'former'", "dictionary of format"),
        ("(64,)", "(65,)", "must hold 51 bytes"),
        ("(64,)", "(-4,)", "no negative length"),
        ("(64,)", "6 * 4", "dictionary of format"),
        ("'axis': 0", "'axis': 1", "axis must be .*; got 1"),
        ("'block_size': 32", "'block_size': 33", "block_size must be .*; got 33"),
        ("'block_size': 32", "'block_size': []", r"block_size must be .*; got \[\]"),
        (
            "float8_e8m0fnu",
            "float8_e8m0fmu",
            "scale_format must be .*; got 'float8_e8m0fmu'",
        ),
        ("1.0}", "2.0}", "tensor_scale must be 1 for"),
        ("1.0}", "'a'}", "must be a number"),
        ("1.0}", "f()}", "dictionary of format"),
        ("'|u1'", "'|i1'", "array of uint8"),
        ("(34,)", "(2,17)", "must hold 34 bytes"),
    ],
)
def test_files_that_are_none(old, new, text):
    stream = io.BytesIO()
    td.save(stream, blocks.quantize(np.ones(64), "mxfp4"))
    raw = stream.getvalue()
    assert raw.count(old.encode()) == 1
    raw = raw.replace(old.encode(), new.encode())
    size = int.from_bytes(raw[8:10], "little") + len(new) - len(old)
    raw = raw[:8] + size.to_bytes(2, "little") + raw[10:]
    with pytest.raises(ValueError, match=text):
        td.load(io.BytesIO(raw))


def test_pickles_are_checked_too():
    b = blocks.quantize(np.ones(64), "mxfp4")
    call, (facts, buffer) = b.__reduce__()
    with pytest.raises(ValueError, match=re.escape("must hold 34 bytes")):
        call(facts, buffer[1:])
    with pytest.raises(TypeError, match="uint8"):
        call(facts, buffer.view("i1"))
    with pytest.raises(ValueError, match="block format must be one of"):
        call(("mxfp5", *facts[1:]), buffer)
