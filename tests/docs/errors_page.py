"""Write the messages of docs/how_to/troubleshooting.md: those that its code provokes.

    python -m tests.docs.errors_page [--check]

A block of Python (`py`) or of commands (`console`) runs in a folder of its own, and the
block of text after it is the message. Other blocks of text, where `...` stands for
anything, quote the sources.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import tf32dtype as td
from tests.support.documents import HOW_TO
from tests.support.paths import ROOT
from tf32dtype._cli.main import main as command_line

PAGE = HOW_TO / "troubleshooting.md"
PROVOKED = re.compile(
    r"(^```(py|console)\n((?:(?!```).)*)```\n\n```text\n).*?```", re.M | re.S
)
CODE = re.compile(r"^```py\n(.*?)^```", re.M | re.S)
QUOTED = re.compile(r"(?<!```\n\n)^```text\n(.*?)^```", re.M | re.S)


def prepare(folder: Path) -> None:
    """Make the files that the page's commands name."""
    x = np.ones((64, 64), np.float32)
    for name in ("in.safetensors", "out.safetensors"):
        td.safetensors.save(folder / name, {"layer.0.weight": x})
    whole = (folder / "in.safetensors").read_bytes()
    (folder / "cut.safetensors").write_bytes(whole[:60])
    with zipfile.ZipFile(folder / "model.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"")
    np.save(folder / "A.npy", np.ones((20, 30)))
    np.save(folder / "B.npy", np.ones((20, 30)))
    (folder / "solver.py").write_text("print('energy 1.0')\n")


def error_of_code(code: str, names: dict[str, Any]) -> str:
    """The class and message of the error or warning that code raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"nothing was raised by {code}")


def error_of_command(line: str) -> str:
    """The text that a command prints to standard error."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.suppress(SystemExit):
        command_line(shlex.split(line)[1:])
    return printed.getvalue().strip()


def rewritten(page: str, folder: Path) -> str:
    """The page with the messages of this version; `folder` is the current one."""
    first = CODE.search(page)
    assert first is not None
    names: dict[str, Any] = {}
    exec(first[1], names)

    def message(found: re.Match[str]) -> str:
        begin, language, code = found.groups()
        if language == "py":
            said = error_of_code(code, names)
        else:
            said = error_of_command(code).replace(f"{folder.resolve()}/", "")
        return f"{begin}{said}\n```"

    return PROVOKED.sub(message, page)


def quoted_pieces(page: str) -> list[str]:
    """The pieces of messages that need other machines to be provoked."""
    text = PROVOKED.sub("", page)
    lines = [line for block in QUOTED.findall(text) for line in block.splitlines()]
    pieces = [x.strip() for line in lines for x in re.split(r"\.\.\.|\. ", line)]
    return [x.removeprefix("ImportError: ") for x in pieces if x]


def sources() -> str:
    """The Python of the package and of its build, with strings in one piece."""
    files = [ROOT / "setup.py", *(ROOT / "tf32dtype").rglob("*.py*")]
    text = "\n".join(x.read_text() for x in files if x.suffix in (".py", ".pyx"))
    return re.sub(r'"\n\s*f?"', "", text)


def main() -> int:
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        prepare(Path(name))
        new = rewritten(page, Path(name))
    if "--check" not in sys.argv:
        PAGE.write_text(new)
    elif new != page:
        print(f"other messages: {os.path.relpath(PAGE)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
