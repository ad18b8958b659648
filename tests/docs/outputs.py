"""Write this version's outputs into the pages for beginners.

    python -m tests.docs.outputs [--check]

Each block of commands (`console`) runs in its own folder; the next block is the output.
On the page of errors, the block after Python code (`py`) is the message. This page also
quotes the sources, with `...` for any characters.
"""

from __future__ import annotations

import contextlib
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
from tests.support import forks
from tests.support.documents import DOCS, HOW_TO
from tests.support.paths import ROOT

ERRORS = HOW_TO / "troubleshooting.md"
START = DOCS / "get_started" / "quick_start.md"
SHOWN = re.compile(
    r"(^```(py|console)\n((?:(?!```).)*)```\n\n```text\n).*?```", re.M | re.S
)
CODE = re.compile(r"^```py\n(.*?)^```", re.M | re.S)
QUOTED = re.compile(r"^```text\n(.*?)^```", re.M | re.S)


def prepare(folder: Path) -> None:
    """Make the files that the commands of the page name."""
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
    """Return the class and message of the error or warning that code raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(code, names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"nothing was raised by {code}")


def output_of_command(line: str) -> str:
    """Return the output of a command without the path of the current folder."""
    done = forks.python("-m", *shlex.split(line), cwd=Path.cwd(), COLUMNS="88")
    printed = done.stdout + done.stderr
    lines = printed.replace(f"{Path.cwd()}/", "").splitlines()
    return "\n".join(line.rstrip() for line in lines).strip()


def rewritten(page: str) -> str:
    """Return the page with this version's outputs, made in the current folder."""
    [first, *_] = CODE.findall(page)
    names: dict[str, Any] = {}
    if "import tf32dtype" in first:
        exec(first, names)
    else:
        Path("solver.py").write_text(first)

    def output(found: re.Match[str]) -> str:
        begin, language, code = found.groups()
        shown = error_of_code(code, names) if language == "py" else None
        return f"{begin}{shown or output_of_command(code)}\n```"

    return SHOWN.sub(output, page)


def quoted_pieces(page: str) -> list[str]:
    """Return the pieces of messages that only other machines can provoke."""
    text = SHOWN.sub("", page)
    lines = [line for block in QUOTED.findall(text) for line in block.splitlines()]
    pieces = [x.strip() for line in lines for x in re.split(r"\.\.\.|\. ", line)]
    return [x.removeprefix("ImportError: ") for x in pieces if x]


def sources() -> str:
    """Return the Python code of the package and its build, with joined strings."""
    files = [ROOT / "setup.py", *(ROOT / "tf32dtype").rglob("*.py*")]
    text = "\n".join(x.read_text() for x in files if x.suffix in (".py", ".pyx"))
    return re.sub(r'"\n\s*f?"', "", text)


def main() -> int:
    changed = []
    for path in (ERRORS, START):
        page = path.read_text()
        with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
            prepare(Path(name))
            new = rewritten(page)
        if new != page:
            changed.append(str(path.relative_to(ROOT)))
            if "--check" not in sys.argv:
                path.write_text(new)
    print("changed:", ", ".join(changed) or "nothing")
    return int(bool(changed) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
