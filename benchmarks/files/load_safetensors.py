"""Time loading safetensors files, and the safetensors library in the same run.

    python benchmarks/files/load_safetensors.py [--quick] [--json FILE]

* Milliseconds to open a checkpoint of 10 GB, 300 bfloat16 tensors, and to load one of
  0.5 GB, 16 tensors. The files are sparse, so that the disk is not measured. `load`
  maps a file; the library's `load_file` reads all of it, as `load(mmap=False)` does.
* The speed of the cast of a mapped bfloat16 tensor to float32, relative to a copy that
  reads and writes as many bytes. Programs usually cast first.
* The speed of unpacking tensors of F4 and F6, in values per second.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from common import machine, medians, memcpy, pin, restart_as_usual

WIDTH = 4096  # of a layer: WIDTH x WIDTH bfloat16 values, 34 MB
SOME, MANY = 16, 300  # layers
COUNT = 1 << 24  # values that are cast


def sparse(path: Path, layers: int) -> None:
    """Write a checkpoint of zeros that takes no room on the disk."""
    from tf32dtype._files.safetensors import header

    names = [f"model.layers.{i}.weight" for i in range(layers)]
    head, offsets = header.write([(name, "BF16", (WIDTH, WIDTH)) for name in names])
    path.write_bytes(head)
    with open(path, "r+b") as file:
        file.truncate(max(offsets.values()) + 2 * WIDTH * WIDTH)


def opened(path: Path) -> dict[str, Callable[[], Any]]:
    """Return calls that open a file and list its tensors without reading them."""
    import safetensors

    import tf32dtype as td

    def theirs() -> Any:
        with safetensors.safe_open(path, "np") as file:
            return list(file.keys())

    def ours_lazily() -> Any:
        with td.safetensors.open(path) as file:
            return list(file)

    return {
        "td.safetensors.load": lambda: td.safetensors.load(path),
        "td.safetensors.open": ours_lazily,
        "safetensors.safe_open": theirs,
    }


def loaded(path: Path) -> dict[str, Callable[[], Any]]:
    """Return calls that make arrays of all tensors."""
    from safetensors.numpy import load_file

    import tf32dtype as td

    return {
        "td.safetensors.load": lambda: td.safetensors.load(path),
        "td.safetensors.load(mmap=False)": lambda: td.safetensors.load(
            path, mmap=False
        ),
        "safetensors.numpy.load_file": lambda: load_file(path),
    }


def casts(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return calls that cast a mapped bfloat16 tensor and unpack F4 and F6 tensors.

    The cast writes into an existing float32 array; unpacking makes one byte per value.
    """
    import numpy as np

    import tf32dtype as td

    path = folder / "weights.safetensors"
    numbers = np.random.default_rng(0).standard_normal(COUNT, np.float32)
    packed = [form for form in td.formats.values() if form.bits < 8]
    forms = [td.formats["bfloat16"], *packed]
    tensors = {form.name: numbers.astype(form.dtype) for form in forms}
    td.safetensors.save(path, tensors)
    mapped = td.safetensors.load(path, names="bfloat16")["bfloat16"]
    target = np.zeros(COUNT, np.float32)

    def unpack(name: str) -> Callable[[], Any]:
        return lambda: td.safetensors.load(path, names=name)

    return {
        "memcpy": memcpy(3 * COUNT),  # reads and writes 3 bytes per value
        "bfloat16 to float32": lambda: np.copyto(target, mapped),
        **{form.name: unpack(form.name) for form in packed},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="repeat less often")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    arguments = parser.parse_args()
    restart_as_usual()
    core = pin()
    repeats, budget = (5, 2.0) if arguments.quick else (51, 15.0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sparse(folder / "many", MANY)
        sparse(folder / "some", SOME)
        sizes = [(folder / name).stat().st_size / 1e9 for name in ("many", "some")]
        times = {
            f"open {sizes[0]:.1f} GB": medians(
                opened(folder / "many"), repeats, budget
            ),
            f"load {sizes[1]:.1f} GB": medians(
                loaded(folder / "some"), repeats, budget
            ),
        }
        cast = medians(casts(folder), repeats, budget)
    import safetensors

    memory = cast.pop("memcpy")
    report: dict[str, Any] = {
        "machine": {**machine(), "safetensors": safetensors.__version__},
        "core": core,
        "ms": {
            what: {k: 1e3 * s for k, s in who.items()} for what, who in times.items()
        },
        "of memcpy": {"bfloat16 to float32": memory / cast.pop("bfloat16 to float32")},
        "unpacked, 1e9 values a second": {k: COUNT / s / 1e9 for k, s in cast.items()},
    }
    for what, who in report["ms"].items():
        for name, figure in who.items():
            print(f"{what:15} {name:34} {figure:9.3f} ms")
    for unit in ("of memcpy", "unpacked, 1e9 values a second"):
        for name, figure in report[unit].items():
            print(f"{name:50} {figure:9.3f} {unit}")
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
