"""Compile the explorer's C and write it with the package's tables to core.js."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .data import data

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "docs" / "explorer" / "source"
CORE = ROOT / "docs" / "explorer" / "core.js"

_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
#: Freestanding: no library, and no fused or reordered floating-point operations.
FLAGS = (
    "--target=wasm32",
    "-std=c11",
    "-O2",
    "-ffreestanding",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-nostdlib",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wno-sign-conversion",
    "-Werror",
    "-Wl,--no-entry",
    # A stack that overflows ends the module instead of overwriting its data.
    "-Wl,--stack-first",
    "-Wl,-z,stack-size=4194304",
    "-Wl,--strip-all",
)


class BuildError(Exception):
    """A compiler or a linker is missing, or reported an error."""


def sources() -> list[Path]:
    """Return every C file and header of this project that the module needs."""
    found: dict[Path, None] = {}
    waiting = sorted(SOURCE.rglob("*.[ch]"))
    while waiting:
        path = waiting.pop()
        if path not in found:
            found[path] = None
            waiting += _included(path)
    return sorted(found)


def _included(path: Path) -> Iterator[Path]:
    for name in _INCLUDE.findall(path.read_text()):
        for folder in (path.parent, ROOT / "src"):
            if (folder / name).exists():
                yield folder / name
                break


def digest() -> str:
    """Return the SHA-256 of all inputs of core.js except the compiler."""
    state = hashlib.sha256(json.dumps([FLAGS, data()]).encode())
    for path in sources():
        state.update(f"\0{path.relative_to(ROOT).as_posix()}\0".encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def compiler() -> str:
    """Return the name and version of the compiler.

    Raises
    ------
    BuildError
        If clang or wasm-ld is missing.
    """
    for name in ("clang", "wasm-ld"):
        if shutil.which(name) is None:
            raise BuildError(f"{name} is missing: Debian's packages are clang and lld")
    return _run(["clang", "--version"]).partition("\n")[0].strip()


def module() -> bytes:
    """Compile the WebAssembly module and return its bytes."""
    files = sorted(str(path.relative_to(ROOT)) for path in SOURCE.glob("*.c"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "core.wasm"
        include = SOURCE.relative_to(ROOT) / "include"
        _run(["clang", *FLAGS, f"-I{include}", "-Isrc", *files, "-o", str(out)])
        return out.read_bytes()


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise BuildError(done.stderr.strip())
    return done.stdout


def text(compiler: str, wasm: bytes) -> str:
    """Return the content of core.js."""
    lines = [
        "/* Made by `make explorer` of docs/explorer/source, src/ and the package's",
        " * tables. `wasm` is a WebAssembly module in base64. */",
        "const core = {",
        f"compiler: {json.dumps(compiler)},",
        f"digest: {json.dumps(digest())},",
        "data: {",
    ]
    for name, value in data().items():
        if isinstance(value, list) and value and not isinstance(value[0], str):
            rows = ",\n".join(json.dumps(row) for row in value)
            lines.append(f"{name}: [\n{rows}],")
        else:
            lines.append(f"{name}: {json.dumps(value)},")
    encoded = base64.b64encode(wasm).decode()
    return "\n".join([*lines, "},", f'wasm: "{encoded}",', "};", ""])


def build() -> str:
    """Write core.js and return a line about it."""
    name = compiler()
    made = text(name, module())
    CORE.write_text(made)
    return f"{CORE.relative_to(ROOT)}: {len(made) / 1000:.0f} kB, by {name}"
