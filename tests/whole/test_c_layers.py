"""Includes in src/ follow the layers, and go in no circle.

    runtime <- formats <- {ufuncs, matmul} <- {tensor_core, blocks}

src/cuda is left out: its files include one another as NVRTC finds them.
"""

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

SRC = Path(__file__).resolve().parents[2] / "src"
LAYERS = {
    "runtime": 0,
    "formats": 1,
    "ufuncs": 2,
    "matmul": 2,
    "tensor_core": 3,
    "blocks": 3,
}


def includes() -> dict[str, list[str]]:
    """Return what each of our C files includes of ours, as it is written there."""
    found = {}
    for subject in LAYERS:
        for path in sorted((SRC / subject).rglob("*.[ch]")):
            names = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)
            found[path.relative_to(SRC).as_posix()] = names
    return found


def test_includes_are_written_from_src() -> None:
    wrong = [
        f"{file} includes {name}"
        for file, names in includes().items()
        for name in names
        if ".." in name or "/" not in name or not (SRC / name).is_file()
    ]
    assert not wrong


def test_includes_follow_the_layers() -> None:
    wrong = []
    for file, names in includes().items():
        here = file.split("/")[0]
        for name in names:
            there = name.split("/")[0]
            if here != there and LAYERS.get(there, 9) >= LAYERS[here]:
                wrong.append(f"{file} includes {name}")
    assert not wrong


def test_includes_go_in_no_circle() -> None:
    left = includes()
    while leaves := [
        file for file, names in left.items() if not set(names) & set(left)
    ]:
        for file in leaves:
            del left[file]
    assert not left, f"these include one another, or what does: {sorted(left)}"
