"""mypy and pyright find the errors in `wrong/` by line, and no error in `right/`.

basedpyright is pyright with its own node. Its standard mode is pyright's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.once

HERE = Path(__file__).parent
#: A file, and a line in it.
Place = tuple[str, int]


def run(*command: str, folder: Path) -> str:
    """Return the output of a module of this Python, which imports the checkout rather
    than an installed package."""
    tools = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr or done.stdout
    return done.stdout


def mypy(folder: Path) -> Iterator[Place]:
    options = ["--strict", "--config-file=", f"--cache-dir={folder}", "--output=json"]
    files = [str(HERE / "right"), str(HERE / "wrong")]
    for line in run("mypy", *options, *files, folder=ROOT).splitlines():
        found = json.loads(line)
        if found["severity"] == "error":
            yield place(found["file"], found["line"])


def pyright(folder: Path) -> Iterator[Place]:
    settings = {
        "typeCheckingMode": "standard",
        "include": [str(HERE / "right"), str(HERE / "wrong")],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    text = run("basedpyright", "--outputjson", "-p", str(folder), folder=folder)
    for found in json.loads(text)["generalDiagnostics"]:
        if found["severity"] == "error":
            yield place(found["file"], found["range"]["start"]["line"] + 1)


def place(file: str, line: int) -> Place:
    return str(Path(ROOT, file).relative_to(HERE)), line


def marked() -> set[Place]:
    """Return the lines of the files that are marked as errors."""
    return {
        (str(file.relative_to(HERE)), number)
        for file in HERE.glob("*/*.py")
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if "# error" in line
    }


@pytest.fixture(scope="module", params=[mypy, pyright])
def errors(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> set[Place]:
    pytest.importorskip("mypy" if request.param is mypy else "basedpyright")
    return set(request.param(tmp_path_factory.mktemp("checked")))


def test_wrong_lines_are_found(errors: set[Place]) -> None:
    assert len(marked()) > 50
    assert sorted(marked() - errors) == []


def test_nothing_else_is_found(errors: set[Place]) -> None:
    assert sorted(errors - marked()) == []


#: Classes that derive from a class of another library, which is not installed or has no
#: types, and functions that return them.
OTHERS = (
    "tf32dtype.cuda.",
    "tf32dtype.interop.arrow",
    "tf32dtype.interop.torch.hook.",
    "tf32dtype.interop.torch.layer_report.recording.",
    "tf32dtype.interop.torch.layers.",
    "tf32dtype.interop.torch.plan.apply.",
    "tf32dtype.interop.torch.plan.items.",
    "tf32dtype.interop.torch.plan.trials.",
    "tf32dtype.interop.torch.precision.warn_unreached",
    "tf32dtype.interop.torch.Embedding",
    "tf32dtype.interop.torch.LayerNorm",
    "tf32dtype.interop.torch.Linear",
    "tf32dtype.interop.zarr.",
)


def test_all_that_is_exported_has_a_type(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    options = ["--verifytypes", "tf32dtype", "--ignoreexternal", "--outputjson"]
    found: Any = json.loads(run("basedpyright", *options, folder=tmp_path))
    exported = [x for x in found["typeCompleteness"]["symbols"] if x["isExported"]]
    names = {x["name"] for x in exported}
    assert {"tf32dtype.tf32", "tf32dtype.blocks.quantize"} <= names
    unknown = [x["name"] for x in exported if not x["isTypeKnown"]]
    assert [x for x in unknown if not x.startswith(OTHERS)] == []
