"""`tf32dtype inspect FILE`: its counts against NumPy's, its options, its errors."""

import os
import re
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.command_line import complaint, on_a_terminal, plain, report
from tf32dtype._base import text

pytestmark = pytest.mark.once

DTYPES = [form.dtype for form in td.formats.values()]
DTYPES += [np.dtype(x) for x in ("f2", "f4", "f8", ">f4", ">f2", "i1", "u8", "?")]


def any_numbers(dtype, size):
    """Return every kind of number that a dtype has, in any order."""
    rng = np.random.default_rng(3)
    if dtype == np.bool_:
        return rng.integers(0, 2, size).astype(np.bool_)
    codes = rng.integers(0, 256, size * dtype.itemsize, dtype=np.uint8)
    numbers = codes.view(dtype)
    if dtype.name != "float8_e8m0fnu":
        numbers[:: size // 7] = 0
    if dtype.kind == "f":
        tiny = np.finfo(dtype.newbyteorder("=")).smallest_subnormal
        numbers[1 :: size // 5] = tiny
    return numbers


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_counts_are_numpys(dtype, tmp_path, capsys):
    numbers = any_numbers(dtype, 70_007)
    path = tmp_path / "a.npz"
    td.savez(path, a=numbers.reshape(7, 1, -1))
    (found,) = report(capsys, "inspect", str(path))["tensors"]
    assert found["name"] == "a"
    assert found["shape"] == [7, 1, 10_001]
    assert found["bytes"] == numbers.nbytes
    with np.errstate(all="ignore"):
        values = numbers.astype(np.float64)
    finite = values[np.isfinite(values)]
    assert found["values"] == values.size
    assert (found["min"], found["max"]) == (finite.min(), finite.max())
    assert found["zeros"] == np.count_nonzero(values == 0)
    assert found["nans"] == np.count_nonzero(np.isnan(values))
    assert found["infinities"] == np.count_nonzero(np.isinf(values))
    native = dtype.newbyteorder("=") if dtype.isbuiltin != 2 else dtype
    normal = np.finfo(native).smallest_normal if dtype.kind == "f" else 0
    subnormal = (finite != 0) & (np.abs(finite) < float(normal))
    assert found["subnormals"] == np.count_nonzero(subnormal)
    assert dtype.kind != "f" or "e8m0" in dtype.name or found["subnormals"] > 0
    exponents = np.floor(np.log2(np.abs(finite[(finite != 0) & ~subnormal])))
    exact = np.frexp(finite[finite != 0])[1] - 1
    assert exact.max() == exponents.max()
    first, counts = found["exponents"]["first"], found["exponents"]["counts"]
    assert first == exact.min()
    assert counts == np.bincount(exact - first).tolist()
    assert counts[-1] > 0


def test_pieces_change_nothing(tmp_path, capsys):
    """Read an odd number of bytes, several pieces, and Fortran's order."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1031, 1033)).astype(np.float32)
    for name in ("fp8_e4m3", "bf16", "tf32", "float64"):
        dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
        a = np.asfortranarray(x.astype(dtype))
        td.save(tmp_path / "a.npy", a)
        (found,) = report(capsys, "inspect", str(tmp_path / "a.npy"))["tensors"]
        assert found["name"] == "a"
        values = a.astype(np.float64)
        assert found["min"] == values.min()
        assert found["zeros"] == np.count_nonzero(values == 0)
        nonzero = values[values != 0]
        assert sum(found["exponents"]["counts"]) == nonzero.size
        exact = np.frexp(nonzero.reshape(-1))[1] - 1
        assert found["exponents"]["counts"] == np.bincount(exact - exact.min()).tolist()


def test_blocks_are_the_numbers_they_stand_for(tmp_path, capsys):
    x = np.random.default_rng(1).standard_normal((5, 70)).astype(np.float32)
    for axis in (0, 1):
        blocks = td.blocks.quantize(x, "nvfp4", axis=axis)
        td.savez(tmp_path / "a.npz", w=blocks, v=td.blocks.quantize(x[0], "tcfp8"))
        w, v = report(capsys, "inspect", str(tmp_path / "a.npz"))["tensors"]
        values = blocks.dequantize()
        assert (w["format"], v["format"]) == ("nvfp4", "tcfp8")
        assert w["shape"] == [5, 70]
        assert (w["values"], w["max"]) == (350, float(values.max()))
        assert w["zeros"] == np.count_nonzero(values == 0)
        assert w["scales"]["max"] == float(blocks.block_scales.max())
        assert w["scales"]["shape"] == [*blocks.block_scales.shape]
        assert v["values"] == 70


def test_what_is_not_numbers_is_listed(tmp_path, capsys):
    np.savez(tmp_path / "a.npz", words=["a", "bc"], z=np.zeros(2, complex))
    words, z = report(capsys, "inspect", str(tmp_path / "a.npz"))["tensors"]
    assert words == {"name": "words", "format": "str64", "shape": [2], "bytes": 16}
    assert "zeros" not in z
    td.safetensors.save(tmp_path / "b.safetensors", {"none": np.zeros((0, 3))})
    (none,) = report(capsys, "inspect", str(tmp_path / "b.safetensors"))["tensors"]
    assert (none["min"], none["exponents"]["counts"]) == (None, [])


def test_the_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(text, "_encodes", lambda letters: False)
    path = str(tmp_path / "m.safetensors")
    few = np.ones(100_000, np.float16)
    few[:3] = [0, np.inf, np.nan]
    td.safetensors.save(
        path,
        {
            "layer.0.w": np.full((3, 4), -0.0, td.bfloat16),
            "layer.0.b": few,
            "other": np.array([1, 2, 2, 4], np.float32),
        },
    )
    title, _, rule, *rows = plain(capsys, "inspect", path).splitlines()
    assert "safetensors" in title
    assert "3 tensors" in title
    assert set(rule) == {"-", " "}
    found = {row.split()[0]: row.split() for row in rows}
    assert found["layer.0.w"][1:] == ("bfloat16 3 x 4 24 B 0 0 100% 0 0 0 -".split())
    assert found["layer.0.b"][5:] == ("0 1 <0.01% 0 <0.01% <0.01% 2^0 @ 2^0".split())
    assert found["other"][-3:] == ["2^0", "+@+", "2^2"]
    for pattern, count in (("layer.0.b", 1), ("layer.*", 2), ("*", 3)):
        lines = plain(capsys, "inspect", path, "--tensor", pattern).splitlines()
        assert len(lines) == 3 + count


def test_bars():
    assert text.bars([]) == ""
    assert text.bars([0, 7, 0, 7]) in (" █ █", " @ @")
    assert len(text.bars([1] * 24)) == 24
    assert len(text.bars([1] * 25)) == 13


def test_a_number_is_no_file_and_a_file_no_number(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "1", np.ones(3))
    os.rename("1.npy", "1")
    assert "0x3F800000" in plain(capsys, "inspect", "1")
    assert "npy" in plain(capsys, "inspect", "./1")
    assert "--tensor must only be given with a file" in complaint(
        capsys, "inspect", "1", "--tensor", "a"
    )
    said = complaint(capsys, "inspect", "./1", "--format", "bf16")
    assert "--format must only be given with numbers; got the file ./1" in said
    assert "is not an existing file" in complaint(capsys, "inspect", "gone.npy")


FOREIGN = {
    "empty": (b"", "is empty"),
    "pickle": (b"\x80\x04K\x01.", "must be a file of tensors; got a pickle; pickle"),
    "text": (b"1,2,3\n", r"got text, '1,2,3\n'"),
    "gzip": (b"\x1f\x8b" + bytes(99), "gzip -d"),
    "cut.npy": (b"\x93NUMPY\x01\x00\x05", "not have a valid header"),
    "cut.safetensors": (
        b"\x0f" + bytes(7) + b'{"a":',
        "is not a valid safetensors file",
    ),
    "GGUF": (b"GGUF\x03" + bytes(9), "is not a valid GGUF file"),
    "folder": (None, "must be a folder of"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_has_no_tensors(name, tmp_path, capsys):
    raw, words = FOREIGN[name]
    path = tmp_path / name
    path.mkdir() if raw is None else path.write_bytes(raw)
    for command in (["inspect"], ["compare"], ["convert", "--to", "bf16"]):
        out = [str(tmp_path / "o.safetensors")] * (command[0] == "convert")
        said = complaint(capsys, command[0], str(path), *out, *command[1:])
        assert words in said
        assert str(path) in said
    assert os.listdir(tmp_path) == [name]


def test_a_tensor_that_is_damaged_is_named(tmp_path, capsys):
    path = tmp_path / "a.safetensors"
    tensors = {
        "bad_packed": np.zeros((2, 16), np.uint8),
        "bad_scale": np.ones((2, 2), td.fp8_e4m3),
        "bad_global_scale": np.zeros(1, np.float32),
        "good": np.ones(3),
    }
    td.safetensors.save(path, tensors)
    found = {x["name"]: x for x in report(capsys, "inspect", str(path))["tensors"]}
    assert found["good"]["values"] == 3
    assert found["bad"]["shape"] == [2, 32]
    words = f"{path}: weight 'bad': tensor scale must be positive and finite; got 0.0"
    assert words in found["bad"]["error"]
    assert words in plain(capsys, "inspect", str(path))
    assert words in complaint(capsys, "compare", f"{path}:bad")
    out = str(tmp_path / "o.safetensors")
    assert words in complaint(capsys, "convert", str(path), out, "--to", "bf16")
    said = complaint(capsys, "inspect", str(path), "--tensor", "gone")
    assert "'gone' is not a tensor of" in said


def test_shards_are_one_file(tmp_path, capsys):
    tensors = {f"l{i}": np.full((64, 64), i, np.float32) for i in range(4)}
    td.safetensors.save(tmp_path / "m.safetensors", tensors, max_shard_size=32768)
    assert len(os.listdir(tmp_path)) == 3
    for path in (tmp_path, tmp_path / "m.safetensors.index.json"):
        found = report(capsys, "inspect", str(path))["tensors"]
        assert [x["max"] for x in found] == [0, 1, 2, 3]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status")
def test_little_is_in_memory(tmp_path):
    """Use little memory for a mapped file of 96 MiB with one tensor."""
    path = tmp_path / "a.safetensors"
    td.safetensors.save(path, {"a": np.ones((24, 1 << 20), td.bfloat16)})
    program = (
        f"import sys; from tf32dtype._cli.main import main\n{forks.MEMORY}"
        "main(['inspect', '1', '--json']); before = use()\n"
        "main(['inspect', sys.argv[1], '--json'])\n"
        "print(use() - before, file=sys.stderr)"
    )
    done = forks.python("-c", program, path)
    assert done.returncode == 0, done.stderr
    assert int(done.stderr) < 40 << 10


def test_names_are_cut_where_they_are_long():
    name = "model.layers.10.self_attn.q_proj.weight"
    assert text.shortened(name, 39) == name
    assert text.shortened(name, 38) == "m.layers.10.self_attn.q_proj.weight"
    assert text.shortened(name, 22) == "m.l.10.s.q_proj.weight"
    assert text.shortened(name, 3) == "m.l.10.s.q.weight"
    assert text.shortened("src/app/train.py:30", 16) == "s/a/train.py:30"
    assert text.shortened("weight", 3) == "weight"


def test_tables_fit_narrow_terminals(tmp_path):
    pytest.importorskip("rich")
    path = str(tmp_path / "m.safetensors")
    rng = np.random.default_rng(0)
    names = [f"model.layers.{i}.self_attn.q_proj.weight" for i in (1, 10)]
    td.safetensors.save(path, {x: rng.standard_normal((64, 64)) for x in names})
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", on_a_terminal(48, "inspect", path))
    lines = drawn.splitlines()
    assert max(map(len, lines)) <= 48
    assert "\u2026" not in drawn  # rich would truncate with an ellipsis
    assert "m.l.1.s.q_proj.weight" in drawn
    assert "m.l.10.s.q_proj.weight" in drawn
    assert any(line.rstrip().endswith(" 2^1") for line in lines)


def test_a_tensor_is_named_as_elsewhere(tmp_path, capsys):
    """Name a tensor by FILE:NAME; accept file and tensor names with a colon."""
    path = tmp_path / "a:b.safetensors"
    td.safetensors.save(path, {"w": np.ones(3, np.float32), "v:x": np.zeros(2)})
    for name in ("w", "v:x"):
        by_colon = report(capsys, "inspect", f"{path}:{name}")
        assert by_colon == report(capsys, "inspect", str(path), "--tensor", name)
        assert [x["name"] for x in by_colon["tensors"]] == [name]
    both = report(capsys, "inspect", f"{path}:w", "--tensor", "v*")
    assert {x["name"] for x in both["tensors"]} == {"w", "v:x"}
    assert "'u' is not a tensor of" in complaint(capsys, "inspect", f"{path}:u")
    said = complaint(capsys, "inspect", str(path), str(path))
    assert "must be the only argument" in said
    assert "must be the only argument" in complaint(capsys, "inspect", "1.5", str(path))
    assert "is not an existing file" in complaint(
        capsys, "inspect", f"{tmp_path}/gone.npy:w"
    )
