"""Run every line of code and check every fact in README and docs."""

import os
import shlex

import numpy as np
import pytest

import tf32dtype as td
from tests.support import gguf_bytes
from tests.support.documents import (
    DOCUMENTS,
    FORMATS,
    ML_DTYPES,
    NUMPY,
    README,
    RECIPES,
    blocks,
    check_block,
    outcome,
    run,
    table,
)
from tests.support.paths import ROOT
from tf32dtype._base.text import number, power_of_two
from tf32dtype._cli.main import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


#: Code that needs a library, and the tests that run it.
LIBRARIES = ("tf32dtype.cuda", ".interop.", "h5py", "import zarr")
ELSEWHERE = {"blocks_training.md": "test_torch.py", "dask.md": "test_dask_cluster.py"}


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if path not in RECIPES],
    ids=lambda path: path.name,
)
def test_code(path):
    if path.name in ELSEWHERE:
        pytest.skip(f"{ELSEWHERE[path.name]} runs it")
    names = {}
    for block in blocks(path, "python"):
        # tests/cuda/test_docs.py and tests/libraries run code that needs a library.
        if not any(word in block for word in LIBRARIES):
            check_block(block, names)


def test_the_readme_claims_results():
    assert sum(block.count("# -> ") for block in blocks(README, "python")) >= 6


def commands():
    """Return the commands of all pages, without the quick start and the demo."""
    paths = [path for path in DOCUMENTS if path.name != "quick_start.md"]
    lines = [x for path in paths for x in "".join(blocks(path, "sh")).splitlines()]
    commands = [line for line in lines if line.startswith("tf32dtype")]
    return [line for line in commands if "demo" not in line]


@pytest.mark.parametrize("line", commands())
def test_commands(line, capsys):
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((20, 30)))
    np.save("B.npy", rng.standard_normal((30, 10)))
    np.save("weights.npy", rng.standard_normal((30, 40)))
    np.savez("weights.npz", layer1=rng.standard_normal((30, 40)), layer2=np.ones(3))
    _write_checkpoints(rng.standard_normal((64, 64), np.float32))
    if " diff " in line:  # the page has converted this file
        td.safetensors.save("small.safetensors", {"lm_head": np.ones(3)})
    if " check " in line:
        a = np.ones((2, 2), np.float16)
        arrays = {"a": a, "b": a, "d": a + a, "twice": 2 * (a + a)}
        td.safetensors.save("run.safetensors", arrays)
    code = main(shlex.split(line, comments=True)[1:])
    if line.startswith(("tf32dtype diff", "tf32dtype check")):
        assert code in (0, 1)  # 0: equal or right, 1: different or wrong
    else:
        assert code == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_the_quick_start_works_with_its_own_files(capsys):
    path = ROOT / "docs/get_started/quick_start.md"
    names = {}
    for block in blocks(path, "python"):
        run(block, names)
    lines = "".join(blocks(path, "sh")).splitlines()
    codes = [main(shlex.split(line, comments=True)[1:]) for line in lines]
    assert codes == [0] * len(lines)
    assert "1 tensor converted, 1 copied" in capsys.readouterr().out


def _write_checkpoints(x):
    tensors = {"layer.0.weight": x, "layer.0.bias": x[0], "lm_head": x}
    for path in ("in.safetensors", "model.safetensors", "other.safetensors"):
        td.safetensors.save(path, tensors)
    os.mkdir("model")
    td.safetensors.save("model/model.safetensors", tensors, max_shard_size=20_000)
    os.mkdir("model-mxfp8")
    td.safetensors.save("model-mxfp8/model.safetensors", {"a": x.astype(td.fp8_e4m3)})
    with open("plan.toml", "w") as file:
        file.write("version = 1\n[[layer]]\nname = 'layer.0'\nprecision = 'mxfp8'\n")
    with open("model.gguf", "wb") as file:
        ffn = gguf_bytes.tensor(b"blk.0.ffn_up", x.shape)
        file.write(gguf_bytes.whole((ffn,), data=x.nbytes))


def test_table_of_formats():
    rows = table(FORMATS, "format")
    assert [row[0] for row in rows] == list(td.formats)
    for name, short, *facts in rows:
        form = td.formats[name]
        assert short == ", ".join(form.aliases)
        assert facts == [
            str(form.itemsize),
            f"{int(form.signed)}-{form.exponent_bits}-{form.mantissa_bits}",
            number(form.max, 5),
            power_of_two(form.smallest_normal),
            power_of_two(form.smallest_subnormal),
            power_of_two(form.eps),
            "yes" if form.has_infinity else "no",
            "yes" if form.has_nan else "no",
        ]


@pytest.mark.parametrize("row", table(NUMPY, "NumPy"), ids=lambda row: row[0])
def test_what_numpy_cannot_do(row):
    code, gives, why, instead = row
    names = {}
    for block in blocks(NUMPY, "python"):
        run(block, names)
    if "torch" in code:
        names["torch"] = pytest.importorskip("torch")
    assert why
    assert outcome(code, names) == gives
    run(instead, names)


def test_that_list_is_short():
    assert len(table(NUMPY, "NumPy")) <= 20
    assert "docs/reference/numpy.md" in README.read_text()


def test_the_readme_shows_a_part_of_the_other_list():
    known = table(ML_DTYPES, "expression")
    shown = table(README, "expression")
    assert len(shown) == 2
    assert all(row in known for row in shown)


def test_the_readme_is_a_screen():
    text = README.read_text()
    assert len(text.splitlines()) <= 115
    assert "make test" in text
    assert "make demo" in text
