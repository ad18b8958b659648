"""`tf32dtype convert`: its numbers, its choices, and resuming interrupted runs."""

import json
import os
import signal
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.command_line import complaint
from tf32dtype._cli.main import main
from tf32dtype._files.convert import convert, losses, targets

pytestmark = pytest.mark.once

RNG = np.random.default_rng(11)
W = RNG.standard_normal((64, 96)).astype(np.float32) * 0.02
TENSORS = {
    "layer.0.weight": W,
    "layer.0.bias": W[0],
    "layer.1.weight": W.astype(td.bfloat16),
    "ids": np.arange(6).reshape(2, 3),
    "scales": np.ones((2, 2), td.float8_e8m0fnu),
    "half": W.astype(td.fp8_e5m2),
}

#: Accept every loss, in tests that are not about the loss.
ANY = "--min-db=-inf"


@pytest.fixture
def checkpoint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    td.safetensors.save("in.safetensors", TENSORS, metadata={"format": "pt", "a": "b"})
    return "in.safetensors"


def report(capsys, *argv, code=0):
    """Return the report, and the messages on standard error."""
    assert main(["convert", *argv, "--json"]) == code
    out, err = capsys.readouterr()
    return json.loads(out), err


def same(a, b):
    """Compare all bits."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# -- numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [*td.formats, "float16", "float32", "float64"])
def test_numbers_are_those_of_astype(name, checkpoint, capsys):
    argv = [checkpoint, "out.safetensors", "--to", name, ANY]
    found, _ = report(capsys, *argv)
    out = td.safetensors.load("out.safetensors")
    assert [*out] != []
    assert out.keys() == TENSORS.keys()
    dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
    wide = name in ("tf32", "bfloat16", "float16", "float32", "float64")
    converted = {x["name"] for x in found["tensors"]}
    for key, x in TENSORS.items():
        takes = x.dtype.kind == "f" and key != "scales" and x.dtype != dtype
        takes &= x.ndim > 1 or wide
        assert (key in converted) == takes
        with np.errstate(all="ignore"):
            assert same(out[key], x.astype(dtype) if takes else x)
    assert sorted(found["kept"]) == sorted(TENSORS.keys() - converted)
    with td.safetensors.open("out.safetensors") as file:
        assert file.metadata == {"format": "pt", "a": "b"}


@pytest.mark.parametrize("rounding", ["toward_zero", "to_odd", "stochastic"])
@pytest.mark.parametrize("overflow", [None, "saturate"])
def test_rounding_and_overflow_are_those_of_quantize(
    rounding, overflow, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(targets, "PIECE", 128)  # the draws do not depend on the pieces
    x = np.linspace(-500, 500, 1024, dtype=np.float32).reshape(32, 32)
    np.save("x.npy", x)
    more = ["--overflow", overflow] * (overflow is not None)
    more += ["--seed", "5"] * (rounding == "stochastic")
    argv = ["x.npy", "o.safetensors", "--to", "fp8_e4m3", "--rounding", rounding]
    argv += [ANY, *more]
    found, _ = report(capsys, *argv)
    (out,) = td.safetensors.load("o.safetensors").values()
    options = {"rounding": rounding, "overflow": overflow or "ieee"}
    if rounding == "stochastic":
        assert set(out.astype(float).ravel()) > set()
        report(capsys, *argv, "--force")
        assert same(td.safetensors.load("o.safetensors")["x"], out)
        errors = np.abs(np.nan_to_num(out.astype(float)) - np.clip(x, -448, 448))
        assert errors[np.abs(x) < 440].max() < 32
    else:
        with np.errstate(all="ignore"):
            assert same(out, td.quantize(x, "fp8_e4m3", **options))
    assert found["tensors"][0]["out_of_range"] == np.count_nonzero(np.abs(x) > 448)


@pytest.mark.parametrize("name", [*td.formats, "float16", "float32"])
def test_saturating_is_that_of_quantize(name, tmp_path, monkeypatch, capsys):
    """Compare the fast path for ties to even with td.quantize."""
    monkeypatch.chdir(tmp_path)
    form = td.formats[name] if name in td.formats else np.finfo(name)
    most = float(form.max)
    x = np.array([1, -1, np.inf, -np.inf, 0, -0.0, 0.99, 1.01, 1.06, 1.07, 2, -2, 1e9])
    x = np.append(x * most, [[0.1, -0.0]])[None]
    np.save("x.npy", x)
    argv = ["x.npy", "o.safetensors", "--to", name, "--overflow", "saturate"]
    report(capsys, *argv, "--include", "x", ANY)
    (out,) = td.safetensors.load("o.safetensors").values()
    with np.errstate(all="ignore"):
        assert same(out, td.quantize(x, name, overflow="saturate"))


def test_losses_against_numpy_by_hand(checkpoint, capsys, monkeypatch):
    monkeypatch.setattr(losses, "_AT_A_TIME", 1000)
    found, _ = report(capsys, checkpoint, "out.safetensors", "--to", "fp8_e4m3")
    (row,) = [x for x in found["tensors"] if x["name"] == "layer.0.weight"]
    truth, got = W.astype(float), W.astype(td.fp8_e4m3).astype(float)
    snr = -20 * np.log10(np.linalg.norm(got - truth) / np.linalg.norm(truth))
    assert row["snr_db"] == pytest.approx(snr, rel=1e-12)
    worst = np.max(np.abs(got - truth) / np.abs(truth))
    assert row["largest_relative_error"] == worst
    assert row["to_zero"] == np.count_nonzero(got == 0) > 0
    assert (row["from"], row["to"]) == ("float32", "float8_e4m3fn")
    assert (row["bytes_in"], row["bytes_out"]) == (4 * W.size, W.size)
    assert (row["out_of_range"], row["not_finite"]) == (0, 0)
    assert (
        found["bytes_out"]
        == sum(x["bytes_out"] for x in found["tensors"]) + 4 * W[0].size + 48 + 4
    )


def test_numbers_that_are_not_finite(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x = np.ones((4, 8), np.float32)
    bad = x.copy()
    bad[0, :3] = np.nan, np.inf, 1e9
    td.safetensors.save("in.safetensors", {"a": x, "b": bad})
    argv = "in.safetensors", "1.safetensors", "--to", "fp8_e5m2", ANY
    found, told = report(capsys, *argv)
    assert told == ""
    a, b = found["tensors"]
    assert (a["snr_db"], a["not_finite"], a["out_of_range"]) == ("inf", 0, 0)
    assert (b["snr_db"], b["not_finite"], b["out_of_range"]) == ("-inf", 2, 1)
    argv = "in.safetensors", "2.safetensors", "--to", "fp4"
    found, told = report(capsys, *argv, code=1)
    assert [x["name"] for x in found["tensors"]] == ["a"]
    assert found["not_converted"] == {"b": "1 NaN, which float4_e2m1fn does not have"}
    assert told.count("\n") == 1
    assert "b is copied unchanged: 1 NaN" in told
    assert same(td.safetensors.load("2.safetensors")["b"], bad)


# -- choices ----------------------------------------------------------------------


def test_include_and_exclude(checkpoint, capsys):
    argv = checkpoint, "out.safetensors", "--force", "--to", "fp8_e4m3"
    for more, names in (
        ([], {"layer.0.weight", "layer.1.weight", "half"}),
        (["--include", "bias$"], {"layer.0.bias"}),
        (
            ["--include", "0", "--include", "half"],
            {"layer.0.weight", "layer.0.bias", "half"},
        ),
        (["--exclude", r"layer\.\d"], {"half"}),
        (
            ["--include", "layer", "--exclude", "1", "--exclude", "bias"],
            {"layer.0.weight"},
        ),
    ):
        found, _ = report(capsys, *argv, *more)
        assert {x["name"] for x in found["tensors"]} == names


def test_other_files_become_safetensors(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    td.savez("a.npz", w=np.asfortranarray(W), b=W.astype(td.bfloat16))
    os.mkdir("folder")
    found, _ = report(capsys, "a.npz", "folder", "--to", "float16")
    assert found["outputs"] == [str(tmp_path / "folder" / "a.safetensors")]
    out = td.safetensors.load("folder")
    assert same(out["w"], W.astype(np.float16))
    assert same(out["b"], W.astype(td.bfloat16).astype(np.float16))
    with td.safetensors.open("folder") as file:
        assert file.metadata == {"format": "pt"}


def test_shards_stay_shards(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tensors = {f"l{i}": (W + i).astype(np.float32) for i in range(5)}
    os.mkdir("in")
    td.safetensors.save("in/m.safetensors", tensors, max_shard_size=50_000)
    shards = sorted(x for x in os.listdir("in") if not x.endswith("json"))
    assert len(shards) == 3
    for out in ("out/", "other/x.safetensors.index.json"):
        found, _ = report(capsys, "in", out, "--to", "bf16")
        folder = os.path.dirname(out)
        index = [x for x in os.listdir(folder) if x.endswith("json")]
        assert sorted(os.listdir(folder)) == sorted([*shards, *index])
        assert found["outputs"][-1] == str(tmp_path / folder / index[0])
        read = td.safetensors.load(os.path.join(folder, index[0]))
        assert [*read] == [*td.safetensors.load("in")]
        assert all(same(read[k], x.astype(td.bfloat16)) for k, x in tensors.items())
        with open(os.path.join(folder, index[0])) as file:
            total = json.load(file)["metadata"]["total_size"]
        assert total == 5 * W.size * 2 == found["bytes_out"]
    report(capsys, "in", "one.safetensors", "--to", "bf16")
    assert td.safetensors.load("one.safetensors").keys() == tensors.keys()


REFUSED = {
    ("o.bin", "--to", "bf16"): r"output must be a file *.safetensors, or a folder",
    ("in.safetensors", "--to", "bf16", "--force"): "output must not be the input",
    ("there.safetensors", "--to", "bf16"): "already exists; use --force to overwrite",
    ("m.safetensors.index.json", "--to", "bf16"): "input in.safetensors is; got the",
    ("o.safetensors", "--to", "bf17"): "format must be one of",
    ("o.safetensors", "--to", "fp8"): "Use fp8_e4m3 (float8_e4m3fn",
    ("o.safetensors", "--to", "bf16", "--scheme", "x"): "--scheme must be one of vllm,",
    ("o.safetensors", "--to", "bf16", "--scheme", "vllm"): "vllm cannot store bfloat16",
    ("o.safetensors", "--to", "mxfp8", "--scheme", "deepseek"): "cannot store mxfp8",
    ("o.safetensors", "--to", "mxfp8", "--tile", "1x128"): "--tile must only be given",
    ("o.safetensors", "--to", "bf16", "--scale", "amax"): "--scale must only be given",
    ("o.safetensors", "--to", "fp8_e4m3", "--tile", "4"): "--tile must be such as 128",
    (
        *("o.safetensors", "--to", "nvfp4", "--block-size", "32"),
        *("--scheme", "modelopt"),
    ): "block_size must be 16; got 32",
    ("o.safetensors", "--to", "bf16", "--include", "("): "a regular expression; got (",
    ("o.safetensors", "--to", "bf16", "--include", "gone"): "a floating-point tensor",
    ("o.safetensors", "--to", "bf16", "--seed", "1"): "--seed must only be given with",
    (
        *("o.safetensors", "--to", "bf16", "--rounding", "stochastic"),
        *("--seed", "-1"),
    ): "--seed must be 0 or more; got -1",
    (
        "o.safetensors",
        "--to",
        "mxfp4",
        "--scale",
        "published",
    ): "only for the tcfp formats",
    (
        "o.safetensors",
        "--to",
        "bf16",
        "--tile",
        "4x4",
    ): "--to bf16: format of tiles must be one of",
    ("o.safetensors", "--to", "float64", "--overflow", "saturate"): "float64",
}


@pytest.mark.parametrize("argv", REFUSED, ids=" ".join)
def test_refusals_leave_all_as_it_was(argv, checkpoint, capsys, tmp_path):
    (tmp_path / "there.safetensors").write_bytes(b"mine")
    before = {x.name: x.read_bytes() for x in tmp_path.iterdir()}
    assert REFUSED[argv] in complaint(capsys, "convert", checkpoint, *argv)
    assert {x.name: x.read_bytes() for x in tmp_path.iterdir()} == before


def test_force_replaces(checkpoint, capsys, tmp_path):
    out = tmp_path / "there.safetensors"
    out.write_bytes(b"mine")
    out.chmod(0o640)
    link = tmp_path / "link.safetensors"
    link.symlink_to(out)
    report(capsys, checkpoint, str(link), "--to", "bf16", "--force")
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o640
    assert td.safetensors.load(out).keys() == TENSORS.keys()


def test_a_work_file_of_others_is_left(checkpoint, capsys, tmp_path):
    (tmp_path / "o.safetensors.part").write_bytes(b"half a download")
    argv = "convert", checkpoint, "o.safetensors", "--to", "bf16", "--force"
    assert "already exists and is not a work file" in complaint(capsys, *argv)
    assert (tmp_path / "o.safetensors.part").read_bytes() == b"half a download"
    assert len(os.listdir()) == 2


def test_what_safetensors_does_not_have_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", w=W, z=np.ones((2, 2), complex))
    said = complaint(capsys, "convert", "a.npz", "o.safetensors", "--to", "bf16")
    assert "tensor 'z'" in said
    assert "complex128" in said
    assert os.listdir() == ["a.npz"]


# -- interrupted runs -------------------------------------------------------------

LARGE = {f"l{i}": (W + i).astype(np.float32) for i in range(8)}


def run(program, *argv):
    """Run the command in a new process, after some lines of Python."""
    lines = [
        "import os, signal, sys",
        "from tf32dtype._files.convert import convert, journal, output",
        "from tf32dtype._cli.main import main",
        program,
        "sys.exit(main(sys.argv[1:]))",
    ]
    return forks.python("-c", "\n".join(lines), "convert", *argv)


#: Code that ends a run before the fifth tensor is written.
END = """
convert._SYNC = 1
write, count = convert._write, 0
def ends(item, *rest):
    global count
    count += 1
    if count == 5:
        {}
    return write(item, *rest)
convert._write = ends
"""


@pytest.fixture
def large(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    td.safetensors.save("in.safetensors", LARGE)
    argv = "in.safetensors", "out.safetensors", "--to", "fp8_e4m3"
    return argv


def check_done():
    out = td.safetensors.load("out.safetensors")
    assert all(same(out[k], x.astype(td.fp8_e4m3)) for k, x in LARGE.items())
    assert sorted(os.listdir()) == ["in.safetensors", "out.safetensors"]


#: A shell may have told the process to ignore SIGINT.
INTERRUPT = (
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "os.kill(os.getpid(), signal.SIGINT)"
)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        (INTERRUPT, 130),
        ("raise OSError(28, 'No space left on device')", 1),
    ],
)
def test_a_run_that_ends_early_is_gone_on_with(end, code, large, capsys, monkeypatch):
    done = run(END.format(end), *large)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert ("stopped; run the same command again" in done.stderr) == (code == 130)
    assert not os.path.exists("out.safetensors")
    written = []
    write = convert._write

    def noted(item, *rest):
        written.append(item.tensor.name)
        return write(item, *rest)

    monkeypatch.setattr(convert, "_write", noted)
    found, told = report(capsys, *large)
    assert "resuming after 4 finished tensors" in told
    assert written == [*LARGE][4:]
    assert [x["name"] for x in found["tensors"]] == [*LARGE]
    assert len({x["snr_db"] for x in found["tensors"]}) == 8
    check_done()


@pytest.mark.parametrize("change", ["options", "input", "journal", "work file"])
def test_a_change_begins_anew(change, large, capsys):
    assert run(END.format("os.kill(os.getpid(), 9)"), *large).returncode == -9
    if change == "options":
        large = *large, "--overflow", "saturate"
        words = "starting over: the earlier run had --overflow None"
    elif change == "input":
        td.safetensors.save("in.safetensors", LARGE)
        words = "starting over: the input has changed"
    elif change == "journal":
        with open("out.safetensors.part.journal", "r+b") as file:
            file.seek(-9, os.SEEK_END)
            file.write(b"x")
        words = "starting over: the journal is damaged"
    else:
        os.truncate("out.safetensors.part", 100)
        words = "starting over: the work files are missing"
    _, told = report(capsys, *large)
    assert words in told
    check_done()


def test_a_line_of_the_journal_that_is_cut_off_counts_for_nothing(large, capsys):
    assert run(END.format("os.kill(os.getpid(), 9)"), *large).returncode == -9
    name = "out.safetensors.part.journal"
    os.truncate(name, os.path.getsize(name) - 9)
    _, told = report(capsys, *large)
    assert "resuming after 3 finished tensors" in told
    check_done()


def test_a_run_that_ends_between_names_is_gone_on_with(tmp_path, monkeypatch, capsys):
    """Resume a run of several shards after some shards have got their final names."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("in")
    td.safetensors.save("in/m.safetensors", LARGE, max_shard_size=50_000)
    end = (
        "finish = output.Part.finish\n"
        "def once(part):\n    finish(part)\n    os.kill(os.getpid(), 9)\n"
        "output.Part.finish = once"
    )
    argv = "in", "out/", "--to", "fp8_e4m3"
    assert run(end, *argv).returncode == -9
    there = os.listdir("out")
    assert len(there) == 5
    assert not any(name.endswith("json") for name in there)
    found, _ = report(capsys, *argv)
    assert len(found["tensors"]) == 8
    assert len(os.listdir("out")) == 5
    out = td.safetensors.load("out")
    assert all(same(out[k], x.astype(td.fp8_e4m3)) for k, x in LARGE.items())


def test_an_input_that_changes_meanwhile(large, capsys):
    change = END.format("os.utime('in.safetensors')")
    done = run(change, *large)
    assert done.returncode == 2
    assert "in.safetensors must not change while convert reads" in done.stderr
    assert not os.path.exists("out.safetensors")
    report(capsys, *large)
    check_done()


def test_two_at_a_time(large, capsys):
    other = END.format(
        "import subprocess; print(subprocess.run([sys.executable, '-m',"
        "'tf32dtype', *sys.argv[1:]], capture_output=True, text=True)"
        ".stderr)"
    )
    done = run(other, *large)
    assert done.returncode == 0
    assert "another convert is writing" in done.stdout
    check_done()


@pytest.mark.parametrize("out", ["out.safetensors", "out/"])
def test_a_disk_that_is_too_small(out, large, capsys):
    """Report a full disk before any work that would be lost."""
    if out == "out/":
        os.unlink("in.safetensors")
        td.safetensors.save("in.safetensors", LARGE, max_shard_size=100_000)
        os.mkdir(out)
    before = {*os.listdir(), *os.listdir(os.path.dirname(out) or ".")}
    source = "in.safetensors" + ".index.json" * (out == "out/")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9000, 9000))"
    done = run(limit, source, out, *large[2:])
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "cannot be written: File too large. Make room: " in done.stderr
    assert "bytes are needed; nothing is kept" in done.stderr
    assert {*os.listdir(), *os.listdir(os.path.dirname(out) or ".")} == before
    _, told = report(capsys, source, out, *large[2:])
    assert told == ""


@pytest.mark.parametrize("part", ["format", "scale_format", "codes"])
def test_a_weight_that_cannot_be_read_ends_it_before_it_begins(
    part, checkpoint, capsys, tmp_path
):
    """An unknown format, an unknown number of a scale format, nonzero padding."""
    weight = td.blocks.quantize(W[:, :95], "mxfp4")
    if part == "format":
        weight = td.blocks.quantize_tiles(W, "fp8_e4m3")
    td.safetensors.save(checkpoint, {"w": weight, "a": W})
    path = tmp_path / checkpoint
    data = path.read_bytes().replace(b"float8_e4m3fn", b"float8/e4m3fn")
    if part != "format":
        length = int.from_bytes(data[:8], "little")
        end = json.loads(data[8 : 8 + length])[f"w.{part}"]["data_offsets"][1]
        at = 8 + length + end
        data = data[: at - 1] + b"\xff" + data[at:]
    path.write_bytes(data)
    argv = checkpoint, "o.safetensors", "--to", "bf16"
    said = complaint(capsys, "convert", *argv)
    assert "use --exclude 'w' to keep the tensor" in said
    assert os.listdir() == [checkpoint]
    report(capsys, *argv, "--exclude", "w$")


@pytest.mark.sampled(2)
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/self/status")
@pytest.mark.parametrize("to", ["fp8_e4m3", "float64"])
def test_one_tensor_is_in_memory_at_a_time(to, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.ones((1 << 11, 1 << 11), np.float32)  # 16 MiB
    td.safetensors.save("in.safetensors", {f"l{i}": x for i in range(4)})
    td.safetensors.save("small.safetensors", {"l": x[:2]})
    use = (
        f"import atexit\n{forks.MEMORY}"
        "main(['convert', 'small.safetensors', 's.safetensors', '--to', 'bf16'])\n"
        "before = use()\n"
        "atexit.register(lambda: print(use() - before, file=sys.stderr))"
    )
    done = run(use, "in.safetensors", "out.safetensors", "--to", to)
    assert done.returncode == 0
    assert int(done.stderr.splitlines()[-1]) < 3 * 16 << 10


def test_folders_are_named_by_any_path(tmp_path, monkeypatch):
    source = tmp_path / "model.safetensors"
    td.safetensors.save(source, {"w": W, "v": W}, max_shard_size=W.nbytes)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for out in ("./a", "../b"):
        index = "../model.safetensors.index.json"
        assert main(["convert", index, out, "--to", "bf16"]) == 0
        assert td.safetensors.load(out)["w"].dtype == td.bfloat16


def test_headers_with_blanks_are_known(tmp_path, capsys):
    header = b'{ "w" : {"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    assert main(["inspect", str(path)]) == 0
    path.write_bytes((1 << 40).to_bytes(8, "little") + header)
    assert main(["inspect", str(path)]) == 2
    assert "bytes; got 1099511627776" in capsys.readouterr().err
