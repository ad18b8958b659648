"""Record the results of a GPU's tensor cores, and compare the models with them.

    pip install -e '.[cuda]' nvidia-cuda-nvdisasm       # in the checkout
    python -m tools.tensor_core_recorder --out DIR

runs every instruction of the GPU (instructions.py) on probes that distinguish the
claims of different sources (probes.py). It writes the raw bits to DIR/golden.npz.
DIR/meta.json has versions, machine instructions, and the conclusion for each contested
point. This takes about two minutes and less than 1 MB. Without a GPU,

    python -m tools.tensor_core_recorder --replay DIR

compares recorded results with the models again. golden.npz has, for each UNIT,

    UNIT/d             results of the probes of its SET, in the accumulator's bits
    UNIT/agrees        a bit of each probe: all positions in a tile have its result
    UNIT/scaled        wgmma: results with scale-d 0
    UNIT/chain         results of chains of probes, see tiles.py
    UNIT/bulk          digests, see bulk_inputs.py
    SET/a SET/b SET/c  codes of the probes
    SET/group          the probes' groups, as indices into the list `groups`
    CVT/y CVT/digest   conversions of `boundaries`, digests of all float32
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tf32dtype._base.nvrtc import CudaError
from tf32dtype._base.version import __version__

from . import bulk_inputs, conclude
from .instructions import Unit, device_of, units
from .launch import Gpu
from .recordings import (
    GROUP_NAMES,
    Recording,
    judge,
    read,
    record,
    to_arrays,
    write,
)

# -- recording -------------------------------------------------------------------------


def run_all(
    gpu: Any,
    chosen: list[Unit],
    say: Callable[[str], None],
    save: Callable[[dict[str, np.ndarray], dict[str, Any]], None],
) -> tuple[list[Recording], dict[str, np.ndarray], dict[str, Any]]:
    """Return all recordings, their arrays, and facts about the run, including errors.

    A unit that breaks the GPU's context makes all later units fail, and a unit that
    hangs ends the run. Therefore wgmma runs last, and `save` is called after each unit.
    """
    recordings: list[Recording] = []
    arrays: dict[str, np.ndarray] = {"boundaries": bulk_inputs.boundaries()}
    conversions: dict[str, Any] = {}
    about: dict[str, Any] = {}
    errors: dict[str, str] = {}
    facts = {"units": about, "conversions": conversions, "errors": errors}

    def attempt(name: str, work: Callable[[], None]) -> None:
        started = time.perf_counter()
        try:
            work()
            say(f"{name}: {time.perf_counter() - started:.1f} s")
        except Exception as error:  # CuPy's errors have no common class
            errors[name] = f"{type(error).__name__}: {error}"
            say(f"{name}: {type(error).__name__}")
        save(arrays, facts)

    def run_conversion(conversion: bulk_inputs.Conversion) -> None:
        y = gpu.convert(conversion, arrays["boundaries"])
        digest = gpu.convert_all(conversion)
        conversions[conversion.name] = {
            "ptx": conversion.ptx,
            "opcodes": gpu.opcodes(
                "cuda/recorder/record_inputs.cu", conversion.options
            ),
        }
        arrays[f"{conversion.name}/y"] = y
        arrays[f"{conversion.name}/digest"] = digest

    def run_unit(unit: Unit) -> None:
        recording = record(gpu, unit)
        found = gpu.opcodes("cuda/recorder/record_mma.cu", unit.options)
        expected = None
        if found is not None:
            wanted = unit.opcodes(gpu.capability)
            expected = all(
                any(x.startswith(prefix) for x in found) for prefix in wanted
            )
        about[unit.name] = {
            "ptx": unit.ptx,
            "probes": len(recording.d),
            "places agree": int(recording.agrees.sum()),
            "opcodes": found,
            "as expected": expected,
        }
        arrays.update(to_arrays(recording))
        recordings.append(recording)

    for conversion in bulk_inputs.conversions(gpu.capability):
        attempt(conversion.name, partial(run_conversion, conversion))
    for unit in chosen:
        attempt(unit.name, partial(run_unit, unit))
    return recordings, arrays, facts


# -- reporting -------------------------------------------------------------------------


_SEEN = {None: "-", True: "expected", False: "OTHER"}


def table(about: dict[str, Any], each: dict[str, Any]) -> str:
    """Return a line for each unit, and for each group that differs from the model."""
    lines = [f"{'unit':30} {'probes':>6} {'places':>7} {'opcodes':>8}  model"]
    for name, facts in about.items():
        differ = each.get(name, {}).get("differences")
        against = "-" if differ is None else "equal"
        if differ:
            against = f"{sum(d['wrong'] for d in differ.values())} differ"
        places = "agree" if facts["places agree"] == facts["probes"] else "DIFFER"
        seen = _SEEN[facts["as expected"]]
        lines.append(f"{name:30} {facts['probes']:6} {places:>7} {seen:>8}  {against}")
        for group, d in (differ or {}).items():
            lines.append(f"    {group}: {d['wrong']} of {d['of']}{_first(d)}")
    return "\n".join(lines)


def _first(d: dict[str, Any]) -> str:
    """Return the first dot of a group that differs; digests do not have any."""
    if "products" not in d:
        return ""
    terms = " ".join(f"{k}:{x}*{y}" for k, (x, y) in list(d["products"].items())[:4])
    return f", first {terms} + {d['c']} -> {d['gpu']}, model {d['model']}"


def points_table(points: dict[str, Any]) -> str:
    """Return a line for each contested point."""
    width = max(map(len, points))
    return "\n".join(f"{name:{width}}  {value}" for name, value in points.items())


def findings(about: dict[str, Any], each: dict[str, Any]) -> dict[str, list[str]]:
    """Return the units that have a finding, by its kind.

    Results differ from the model's, machine instructions are not the expected ones, or
    results depend on the position in a tile.
    """
    return {
        "differs": [name for name, found in each.items() if found.get("differences")],
        "opcodes other": [
            name for name, facts in about.items() if facts["as expected"] is False
        ],
        "places differ": [
            n for n, facts in about.items() if facts["places agree"] != facts["probes"]
        ],
    }


def verdict(found: dict[str, list[str]], points: dict[str, Any]) -> str:
    """Return the summary: a line of the points that are settled, and the findings."""
    undecided = conclude.UNDECIDED, conclude.UNEXPLAINED
    settled = [
        f"{name} = {value}" for name, value in points.items() if value not in undecided
    ]
    return "\n".join(
        f"{title}: {', '.join(names) or 'none'}"
        for title, names in {"settled": settled, **found}.items()
    )


# -- the command -----------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return 0 if all units were recorded and there is no finding."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.tensor_core_recorder", description=__doc__.splitlines()[0]
    )
    where = parser.add_mutually_exclusive_group(required=True)
    folder: dict[str, Any] = {"type": Path, "metavar": "DIR"}
    where.add_argument("--out", help="record results in this folder", **folder)
    where.add_argument(
        "--replay",
        help="compare the results recorded in this folder with the models",
        **folder,
    )
    parser.add_argument(
        "--unit", metavar="TEXT", help="use only units whose names contain TEXT"
    )
    options = parser.parse_args(arguments)
    try:
        if options.replay is not None:
            return _replay(options.replay)
        return _record(Gpu(), options.out, options.unit or "")
    except (CudaError, OSError) as error:
        print(f"tensor_core_recorder: {error}", file=sys.stderr)
        return 1


def _replay(folder: Path) -> int:
    meta, recordings = read(folder)
    device = device_of(tuple(meta["capability"]))
    return _report(meta["units"], *judge(recordings, device))


def _report(about: dict[str, Any], each: dict[str, Any], points: dict[str, Any]) -> int:
    """Print the tables and the summary; return 1 if there are findings."""
    found = findings(about, each)
    print(table(about, each))
    print(points_table(points))
    print(verdict(found, points))
    return int(any(found.values()))


def _record(gpu: Any, folder: Path, text: str) -> int:
    started = time.perf_counter()
    chosen = [unit for unit in units(gpu.capability) if text in unit.name]
    if not chosen:
        names = [unit.name for unit in units(gpu.capability)] or ["no tensor cores"]
        which = f"{gpu.name} ({gpu.architecture})"
        has = ", ".join(names)
        raise CudaError(f"{which}: no unit has the name {text!r}; it has {has}")
    folder.mkdir(parents=True, exist_ok=True)
    device = device_of(gpu.capability)
    meta = gpu.facts() | {
        "tf32dtype": __version__,
        "device": device,
        "groups": GROUP_NAMES,
        "seed": bulk_inputs.SEED,
    }
    nothing: dict[str, Any] = {"models": {}, "points": {}}

    def save(
        arrays: dict[str, np.ndarray],
        facts: dict[str, Any],
        judged: dict[str, Any] = nothing,
    ) -> None:
        seconds = round(time.perf_counter() - started, 1)
        write(folder, arrays, meta | facts | judged | {"seconds": seconds})

    recordings, arrays, facts = run_all(gpu, chosen, partial(print, flush=True), save)
    each, points = judge(recordings, device)
    save(arrays, facts, {"models": each, "points": points})
    path = folder / "golden.npz"
    print(f"{path}: {path.stat().st_size} bytes, {time.perf_counter() - started:.0f} s")
    status = _report(facts["units"], each, points)
    for name, error in facts["errors"].items():
        print(f"tensor_core_recorder: {name}: {error}", file=sys.stderr)
    return 1 if facts["errors"] else status
