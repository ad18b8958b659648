"""What a GPU returned: recorded, kept in files, and held against the models."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import bulk, settle, tiles
from .builder import Probes
from .probes import GROUPS, probes
from .units import Bits, Unit, decode, encode, units

GROUP_NAMES = list(GROUPS)


class Recording(NamedTuple):
    """What one unit returned, in codes."""

    unit: Unit
    probes: Probes
    d: Bits
    #: which probes have one result wherever they stand
    agrees: np.ndarray
    chains: tiles.Chains
    chain: Bits
    #: for wgmma, results with scale-d 0
    scaled: Bits | None = None
    #: digests of bulk results
    bulk: NDArray[np.uint64] | None = None

    def result(self, device: str | None) -> settle.Result:
        """The results, beside the model of a device."""
        d = settle.recorded(self.unit, self.d)
        return settle.Result(self.unit, self.unit.model(device), self.probes, d)


def record(run: tiles.Run, unit: Unit, asked: Probes | None = None) -> Recording:
    """Run a unit's probes by `run` (see `tiles.Run`)."""
    asked = probes(unit) if asked is None else asked
    x = tiles.words(unit, asked)
    d = tiles.alone(run, unit, x)
    agrees = (tiles.everywhere(run, unit, x) == d[:, None, None]).all((1, 2))
    agrees &= tiles.beside(run, unit, x) == d
    chosen = tiles.chains(asked)
    chain = tiles.chained(run, unit, x, chosen)
    wgmma = unit.instruction == "wgmma"
    scaled = tiles.alone(run, unit, x, scale_d=False) if wgmma else None
    return Recording(unit, asked, d, agrees, chosen, chain, scaled)


# -- files -----------------------------------------------------------------------------


def set_name(unit: Unit) -> str:
    """The name of a unit's probes, which units of equal formats share."""
    return f"{unit.a.ptx}.{unit.b.ptx}.{unit.accumulator.ptx}.k{unit.k}"


def to_arrays(recording: Recording) -> dict[str, np.ndarray]:
    """What golden.npz has of a unit."""
    unit, asked, name = recording.unit, recording.probes, set_name(recording.unit)
    narrow = unit.accumulator.dtype
    numbers = {group: i for i, group in enumerate(GROUP_NAMES)}
    arrays = {
        f"{name}/a": encode(unit.a, asked.a),
        f"{name}/b": encode(unit.b, asked.b),
        f"{name}/c": encode(unit.accumulator, asked.c),
        f"{name}/group": np.array([numbers[g] for g in asked.group.tolist()], np.uint8),
        f"{name}/start": np.array(recording.chains.start, np.uint16),
        f"{name}/length": np.array(recording.chains.length, np.uint8),
        f"{unit.name}/d": recording.d.astype(narrow),
        f"{unit.name}/agrees": np.packbits(recording.agrees),
        f"{unit.name}/chain": recording.chain.astype(narrow),
    }
    if recording.scaled is not None:
        arrays[f"{unit.name}/scaled"] = recording.scaled.astype(narrow)
    if recording.bulk is not None:
        arrays[f"{unit.name}/bulk"] = recording.bulk
    return arrays


def from_arrays(unit: Unit, arrays: Any, groups: list[str]) -> Recording:
    """A unit's recording out of golden.npz."""
    name = set_name(unit)
    a, b, c = (
        decode(f, arrays[f"{name}/{key}"])
        for f, key in ((unit.a, "a"), (unit.b, "b"), (unit.accumulator, "c"))
    )
    asked = Probes(a, b, c, np.array(groups)[arrays[f"{name}/group"]])
    start, length = (arrays[f"{name}/{key}"].tolist() for key in ("start", "length"))
    at = np.flatnonzero(asked.group == "rand")
    d, chain = (
        arrays[f"{unit.name}/{key}"].astype(np.uint32) for key in ("d", "chain")
    )
    agrees = np.unpackbits(arrays[f"{unit.name}/agrees"], count=len(d)).astype(bool)
    scaled, digests = f"{unit.name}/scaled", f"{unit.name}/bulk"
    return Recording(
        unit,
        asked,
        d,
        agrees,
        tiles.Chains(int(at[0]), len(at), start, length),
        chain,
        arrays[scaled].astype(np.uint32) if scaled in arrays else None,
        arrays.get(digests),
    )


def read(folder: Path) -> tuple[dict[str, Any], list[Recording]]:
    """What a golden run wrote: meta.json and the recordings."""
    meta = json.loads((folder / "meta.json").read_text())
    have = {unit.name: unit for unit in units(tuple(meta["capability"]))}
    with np.load(folder / "golden.npz") as arrays:
        return meta, [
            from_arrays(have[name], arrays, meta["groups"]) for name in meta["units"]
        ]


# -- results against models ------------------------------------------------------------


def evaluator() -> settle.Evaluator | None:
    """The models' own evaluator, where this build has it."""
    from .. import _core

    return getattr(_core, "tensor_blocks", None)


def differences(
    recording: Recording, device: str | None, evaluate: settle.Evaluator
) -> dict[str, Any] | None:
    """Where results are not the model's: by group how many, and the first one in hex.

    Chains are groups "chain of N", scale-d 0 is "scaled"; of bulk results the first
    chunk is looked at, as a digest. None without a model.
    """
    result = recording.result(device)
    unit, model, asked = recording.unit, result.model, recording.probes
    if model is None:
        return None
    run = settle.prepared(evaluate)
    wanted = run(model, asked.a, asked.b, asked.c)
    found: dict[str, Any] = {}

    def note(group: str, a: Bits, b: Bits, c: Bits, got: Bits, want: Bits) -> None:
        wrong = np.flatnonzero(got != want)
        if not len(wrong):
            return
        i = wrong[0]
        products = {
            int(k): [f"{a[i, k]:08x}", f"{b[i, k]:08x}"]
            for k in np.flatnonzero(a[i] | b[i])
        }
        found[group] = {
            "wrong": len(wrong), "of": len(got), "products": products,
            "c": f"{c[i]:08x}", "gpu": f"{got[i]:08x}", "model": f"{want[i]:08x}",
        }  # fmt: skip

    for group in dict.fromkeys(asked.group.tolist()):
        at = asked.group == group
        note(group, *(x[at] for x in (*asked[:3], result.d, wanted)))
    if recording.scaled is not None:
        zero = np.zeros_like(asked.c)
        got = settle.recorded(unit, recording.scaled)
        note("scaled", asked.a, asked.b, zero, got, run(model, asked.a, asked.b, zero))
    got = settle.recorded(unit, recording.chain)
    for i in range(len(got)):
        a, b, c = tiles.unchained(asked, recording.chains, i)
        note(
            f"chain of {recording.chains.length[i]}",
            a,
            b,
            c,
            got[i : i + 1],
            run(model, a, b, c),
        )
    if recording.bulk is not None:
        d = settle.raw(unit, run(model, *bulk.chunk(unit, 0)))
        digests = f"{recording.bulk[0]:016x}", f"{bulk.digest(d):016x}"
        if digests[0] != digests[1]:
            found["bulk"] = {
                "wrong": 1, "of": 1, "products": {}, "c": "...",
                "gpu": digests[0], "model": digests[1],
            }  # fmt: skip
    return found


def judge(
    recordings: Iterable[Recording],
    device: str | None,
    evaluate: settle.Evaluator | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What differs and is said of contested points: for each unit, then for all."""
    if evaluate is None:
        return {}, {}
    each: dict[str, Any] = {}
    said = []
    for recording in recordings:
        result = recording.result(device)
        points = settle.settle_unit(result, evaluate)
        said.append((result.model, points))
        each[recording.unit.name] = {
            "differences": differences(recording, device, evaluate),
            "points": points,
        }
    return each, settle.merge(said)
