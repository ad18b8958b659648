"""Reports in notebooks: the names of cells, and the output of a cell."""

from __future__ import annotations

import io
import json
import linecache
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tf32dtype as td
from tests.programs.report.samples import HERE, gaussian, run, site
from tests.programs.report.test_pages import EVIL, Page
from tf32dtype._programs.notebooks import cell_of
from tf32dtype._programs.plans import PlanWarning
from tf32dtype._programs.report.options import options
from tf32dtype._programs.report.report import Report

X = np.ones((64, 64), np.float32)


class Notebook:
    """A substitute of IPython that compiles cells under their own names."""

    def __init__(self, name: str) -> None:
        self.name, self.cells = name, dict[str, int]()
        self.names = {"np": np, "td": td, "x": X}

    def format_code_name(self, name: str) -> tuple[str, str] | None:
        return ("Cell", f"In[{self.cells[name]}]") if name in self.cells else None

    def run(self, number: int, code: str) -> None:
        name = self.name.format(number)
        self.cells[name] = number
        lines = code.splitlines(keepends=True)
        linecache.cache[name] = (len(code), None, lines, name)
        exec(compile(code, name, "exec"), self.names)


@pytest.fixture(params=["<ipython-input-{}-0123abcd>", "/tmp/ipykernel_12/34{}.py"])
def notebook(request: Any, monkeypatch: Any) -> Notebook:
    made = Notebook(request.param)
    shell = SimpleNamespace(compile=made)
    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    made.run(1, "def step(a):\n    return a @ a\n")
    made.run(
        2, "import numpy as np\n\n\nwith td.report() as r:\n    y = x @ x + step(x)\n"
    )
    return made


def test_cells_have_their_names(notebook: Notebook, tmp_path: Path) -> None:
    r: Any = notebook.names["r"]
    shown = io.StringIO()
    r.print(shown)
    r.save(tmp_path / "r.html")
    r.save(tmp_path / "r.json")
    page = (tmp_path / "r.html").read_text()
    record = (tmp_path / "r.json").read_text()
    for text in (shown.getvalue(), page, r._repr_html_(), r.advice[0].text):
        assert "In [2]:5" in text
        assert "In [1]:2 step" in text
    for text in (shown.getvalue(), page, r._repr_html_(), record):
        assert "ipykernel" not in text
        assert "ipython-input" not in text
    frames = [x["user"] for x in json.loads(record)["call_sites"]]
    assert {"file": "In [2]", "line": 5, "function": "<module>"} in frames
    assert {"file": "In [1]", "line": 2, "function": "step"} in frames
    assert "y = x @ x + step(x)" in page  # the source


def test_a_cell_that_runs_again_changes_no_report(notebook: Notebook) -> None:
    r: Any = notebook.names["r"]
    name = notebook.name.format(2)
    notebook.cells[name] = 7
    assert "In [2]:5" in r.advice[0].text
    assert cell_of(name) == 7


def test_arithmetic_in_cells(notebook: Notebook) -> None:
    notebook.run(3, "with td.report(arithmetic='bf16') as r:\n    x + x\n")
    r: Any = notebook.names["r"]
    assert "In [3]:2: add" in r._repr_html_()
    (one,) = r._report.arithmetic.record()["call_sites"]
    assert one["user"] == {"file": "In [3]", "line": 2, "function": "<module>"}


def test_a_trial_says_that_code_must_be_in_a_file(notebook: Notebook) -> None:
    code = "with td.report(trial=lambda: (x @ x).sum()) as r:\n    x @ x\n"
    notebook.run(3, code)
    r: Any = notebook.names["r"]
    assert r.advice[0].text == (
        "No trial of the program: its call sites are in a notebook. Move the code into"
        " a file"
    )


def test_a_plan_says_that_code_must_be_in_a_file(tmp_path: Path) -> None:
    line = '{file = "In [3]", function = "<module>", text = "y = x @ x"}'
    site = f'[[call_site]]\nprecision = "bf16"\nuser = {line}\n'
    path = tmp_path / "plan.toml"
    path.write_text("version = 1\n" + site)
    wanted = (
        f"{path}: a cell of a notebook must be moved into a file: In [3], <module>: 'y"
        " = x @ x'; none is used instead"
    )
    with pytest.warns(PlanWarning, match=f"^{re.escape(wanted)}$"):
        td.matmul_precision(plan=path)


@pytest.mark.parametrize(
    "module",
    [
        SimpleNamespace(),
        SimpleNamespace(get_ipython=lambda: None),
        SimpleNamespace(get_ipython=lambda: SimpleNamespace(compile=None)),
        SimpleNamespace(
            get_ipython=lambda: SimpleNamespace(
                compile=SimpleNamespace(format_code_name=lambda name: None)
            )
        ),
    ],
)
def test_without_cells(module: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert cell_of("<ipython-input-1-0>") is None
    with td.report() as r:
        X @ X
    assert r.run.call_sites[0].user is not None
    assert r.run.call_sites[0].user.cell is None


# -- the value of a cell -----------------------------------------------------------


def test_the_fragment_is_a_table_and_the_advice() -> None:
    report = Report(run(site(gaussian())), options(), f"raised ValueError: {EVIL}")
    page = Page(report.to_fragment())
    shown = io.StringIO()
    report.print(shown)
    lines = shown.getvalue().splitlines()
    assert set(page.tags) <= {*"p div table thead tbody tr th td ul li".split()}
    assert page.tags.count("table") == 1
    assert {*page.attributes} == {("style", "overflow-x: auto")}
    texts = [text for text in page.texts if text.strip()]
    cells = [word for line in lines[4:7:2] for word in re.split(r"  +", line)]
    assert texts[:3] == [*lines[:2], lines[3]]
    assert texts[3 : 3 + len(cells)] == cells
    assert texts[3 + len(cells) :] == [x.text for x in report.advice]


def test_the_fragment_of_many_call_sites() -> None:
    many = [site(gaussian(), user=HERE._replace(line=i)) for i in range(40)]
    page = Page(Report(run(*many), options(precision="bf16")).to_fragment())
    assert page.tags.count("tr") == 31
    assert "and 10 call sites with 25.0 % of the work" in page.texts


def test_the_fragment_escapes_names() -> None:
    evil = site(gaussian(), user=HERE._replace(function=EVIL))
    assert EVIL not in Report(run(evil), options(precision="bf16")).to_fragment()


def test_a_report_that_is_not_there_yet() -> None:
    r = td.report()
    assert r._repr_html_() is None
    with r:
        assert r._repr_html_() is None
    html = r._repr_html_()
    assert html is not None
    assert "No matrix multiplication was measured" in html
    assert "<table>" not in html


# -- IPython -----------------------------------------------------------------------

SHELL = """
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for cell in (
    "import numpy as np, tf32dtype as td",
    "x = np.ones((64, 64), np.float32)",
    "with td.report() as r:\\n    y = x @ x",
    "print(r.advice[0].text)",
    "print(get_ipython().display_formatter.format(r)[0]['text/html'])",
):
    shell.run_cell(cell, store_history=True).raise_error()
"""


def test_cells_of_ipython(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    done = subprocess.run(
        [sys.executable, "-c", SHELL], capture_output=True, text=True, check=True
    )
    advice, html = done.stdout.split("\n", 1)
    assert "In [3]:2" in advice
    assert "<td>In [3]:2</td>" in html


def test_ipython_is_not_imported() -> None:
    code = (
        "import sys, numpy as np, tf32dtype as td\n"
        "x = np.ones((64, 64), np.float32)\n"
        "with td.report() as r:\n    x @ x\n"
        "r._repr_html_()\n"
        "assert 'IPython' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
