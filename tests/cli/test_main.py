"""The command line: its help, tables, JSON, and one line per error."""

import json
import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import tf32dtype as td
from tests.support import forks
from tests.support.command_line import ALL, complaint, on_a_terminal, plain, report
from tf32dtype._base import text
from tf32dtype._cli.main import main


def test_without_a_command_the_help_names_all(capsys):
    out = plain(capsys)
    commands = ("demo", "compare", "formats", "inspect", "run", "sizes", "values")
    assert all(name in out for name in commands)


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tf32dtype {td.__version__}\n"


@pytest.mark.parametrize("argv", [["bogus"], ["inspect"], ["formats", "--bogus"]])
def test_wrong_arguments(argv, capsys):
    complaint(capsys, *argv)


def test_wrong_arguments_say_where_to_look(capsys):
    said = complaint(capsys, "compare", "A.npy", "B.npy", "--formats", "bf16", "fp8")
    assert "compare: unrecognized arguments: fp8; use tf32dtype compare --help" in said
    said = complaint(capsys, "inspect", "1", "--format", "mxfp4,bf16")
    assert "got mxfp4 and bfloat16" in said


@pytest.mark.parametrize("command", ["demo", "compare", "formats", "inspect", "sizes"])
def test_help_tells_the_rules(command, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert "--json" in capsys.readouterr().out


def test_as_a_module_into_a_closed_pipe():
    program = f"{sys.executable} -m tf32dtype formats | head -n 1"
    done = subprocess.run(program, shell=True, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.startswith("Formats")
    assert done.stderr == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has /dev/full")
def test_when_the_disk_is_full():
    errors, stderr = os.pipe()
    with open("/dev/full", "w") as full:
        process = forks.start(
            [sys.executable, "-m", "tf32dtype", "formats"],
            stdin=0,
            stdout=full.fileno(),
            stderr=stderr,
            tear_down=True,
        )
    os.close(stderr)
    with open(errors) as file:
        said = file.read()
    assert process.wait() == 1
    assert said.count("\n") == 1
    assert "No space left" in said


@pytest.mark.parametrize(("columns", "parts"), [(60, 3), (80, 2), (122, 1), (200, 1)])
def test_tables_fit_the_terminal(columns, parts, capsys):
    pytest.importorskip("rich")
    drawn = on_a_terminal(columns, "formats")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", drawn).splitlines()
    assert "\x1b[1m" in drawn
    assert sum("\u2500" in line for line in lines) == parts  # rules below headers
    assert max(map(len, lines)) <= columns
    assert lines.count("continued") == parts - 1
    assert sum(line.startswith("float8_e4m3fnuz") for line in lines) == parts
    facts = [cell for line in lines if "bfloat16" in line for cell in line.split()[1:]]
    (row,) = [x for x in plain(capsys, "formats").splitlines() if "bfloat16" in x]
    assert facts == row.split()[1:]


@pytest.mark.parametrize(("columns", "parts"), [(60, 3), (80, 2), (200, 1)])
def test_tables_fit_a_terminal_without_rich(columns, parts, capsys, monkeypatch):
    monkeypatch.setattr(text, "_has_rich", lambda: False)
    monkeypatch.setattr(text, "_is_terminal", lambda stream: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = plain(capsys, "formats").splitlines()
    assert max(map(len, lines[1:])) <= columns  # a terminal wraps the title
    assert lines.count("continued") == parts - 1
    assert sum(line.startswith("float8_e4m3fnuz") for line in lines) == parts


def test_json_on_a_terminal_is_plain():
    assert len(json.loads(on_a_terminal(80, "formats", "--json"))) == 16


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1 MiB"),
        (3 << 40, "3 TiB"),
        (1 << 55, "3.277e+04 TiB"),
    ],
)
def test_size(count, shown):
    assert text.size(count) == shown


def test_strict_json(capsys):
    text.print_json({"a": [math.inf, -math.inf, math.nan, 1.5], "b": None})
    assert json.loads(capsys.readouterr().out) == {
        "a": ["inf", "-inf", "nan", 1.5],
        "b": None,
    }


def test_formats_are_the_packages(capsys):
    records = report(capsys, "formats")
    assert [record["name"] for record in records] == ALL
    for record in records[:13]:
        form = td.formats[record["name"]]
        for fact in ("bits", "bias", "max", "min", "eps", "smallest_normal"):
            assert record[fact] == getattr(form, fact), (record["name"], fact)


@pytest.mark.parametrize("name", ALL)
def test_spacing_is_what_neighbors_show(name, capsys):
    (record,) = [r for r in report(capsys, "formats") if r["name"] == name]
    dtype = td.formats[name].dtype if name in td.formats else np.dtype(name)
    big = dtype.type(4)
    for start, interval in ((0.5, "[0.5,1)"), (1.0, "[1,2)"), (2.0, "[2,4)")):
        here = dtype.type(start)
        step = float(np.nextafter(here, big)) - float(here)
        assert record["spacing"][interval] == step


def test_formats_as_text(capsys):
    lines = plain(capsys, "formats").splitlines()
    assert len(lines) == 3 + len(ALL)
    (tf32,) = [" ".join(x.split()) for x in lines if x.startswith("tf32")]
    assert tf32 == (
        "tf32 19 1-8-10 127 3.4012e+38 2^-126 2^-136 2^-10 3 2^-11 2^-10 2^-9 yes yes"
    )
