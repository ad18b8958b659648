"""Every line of code and every fact in README and docs is run."""

import re
import shlex

import numpy as np
import pytest

import tf32dtype as td
from tests.support.documents import (
    DOCUMENTS,
    NUMPY,
    README,
    blocks,
    check_block,
    outcome,
    run,
    table,
)
from tf32dtype._cli.main import main
from tf32dtype._text import number, power_of_two


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_code(path):
    if path.name == "blocks_training.md":
        pytest.skip("test_torch.py runs it")
    names = {}
    for block in blocks(path, "python"):
        if "tf32dtype.cuda" not in block:  # tests/cuda/test_docs.py runs these
            check_block(block, names)


def test_the_readme_claims_results():
    assert sum(block.count("# -> ") for block in blocks(README, "python")) >= 8


def commands():
    """The lines of all documents but for the demo, which test_demo.py runs."""
    lines = [x for path in DOCUMENTS for x in "".join(blocks(path, "sh")).splitlines()]
    commands = [line for line in lines if line.startswith("tf32dtype")]
    return [line for line in commands if "demo" not in line]


@pytest.mark.parametrize("line", commands())
def test_commands(line, capsys):
    rng = np.random.default_rng(0)
    np.save("A.npy", rng.standard_normal((20, 30)))
    np.save("B.npy", rng.standard_normal((30, 10)))
    np.save("weights.npy", rng.standard_normal((30, 40)))
    np.savez("weights.npz", layer1=rng.standard_normal((30, 40)), layer2=np.ones(3))
    assert main(shlex.split(line, comments=True)[1:]) == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_table_of_formats():
    rows = table(README, "format")
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


def test_the_readme_shows_a_part_of_that_list():
    known = [
        [code, gives, instead] for code, gives, _, instead in table(NUMPY, "NumPy")
    ]
    assert all(row in known for row in table(README, "NumPy"))
    assert len(known) <= 20
    assert "docs/numpy.md" in README.read_text()


def test_links_lead_somewhere():
    for path in DOCUMENTS:
        for target in re.findall(r"\]\((?!http)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name}: {target}"
