"""Record the results of a GPU, store them, and compare them with the models."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tf32dtype._core import mma_accumulate

from . import bulk_inputs, conclude, tiles
from .instructions import Bits, Unit, decode, encode, units
from .operand_builder import Probes
from .probes import GROUPS, probes

GROUP_NAMES = list(GROUPS)


class Recording(NamedTuple):
    """The results of one unit, in codes."""

    unit: Unit
    probes: Probes
    d: Bits
    #: whether a probe has the same result at all positions of a tile
    agrees: np.ndarray
    #: results of `tiles.chains`
    chain: Bits
    #: for wgmma, results with scale-d 0
    scaled: Bits | None
    #: digests of bulk results
    bulk: NDArray[np.uint64]

    def result(self, device: str | None) -> conclude.Result:
        """Return the results in float32's bits, with the model of a device."""
        d = decode(self.unit.accumulator, self.d)
        return conclude.Result(self.unit, self.unit.model(device), self.probes, d)


def record(gpu: Any, unit: Unit) -> Recording:
    """Run a unit's probes, chains and bulk dots on a `launch.Gpu`."""
    asked = probes(unit)
    x = tiles.words(unit, asked)
    d = tiles.alone(gpu.run, unit, x)
    agrees = (tiles.everywhere(gpu.run, unit, x) == d[:, None, None]).all((1, 2))
    agrees &= tiles.beside(gpu.run, unit, x) == d
    chain = tiles.chained(gpu.run, unit, x, tiles.chains(asked))
    wgmma = unit.instruction == "wgmma"
    scaled = tiles.alone(gpu.run, unit, x, scale_d=False) if wgmma else None
    return Recording(unit, asked, d, agrees, chain, scaled, gpu.bulk(unit))


# -- files -----------------------------------------------------------------------------


def set_name(unit: Unit) -> str:
    """Return the name of a unit's set of probes, which units of equal formats share."""
    return f"{unit.a.ptx}.{unit.b.ptx}.{unit.accumulator.ptx}.k{unit.k}"


def to_arrays(recording: Recording) -> dict[str, np.ndarray]:
    """Return the arrays of a recording in golden.npz."""
    unit, asked, name = recording.unit, recording.probes, set_name(recording.unit)
    narrow = unit.accumulator.unsigned
    numbers = {group: i for i, group in enumerate(GROUP_NAMES)}
    arrays = {
        f"{name}/a": encode(unit.a, asked.a),
        f"{name}/b": encode(unit.b, asked.b),
        f"{name}/c": encode(unit.accumulator, asked.c),
        f"{name}/group": np.array([numbers[g] for g in asked.group.tolist()], np.uint8),
        f"{unit.name}/d": recording.d.astype(narrow),
        f"{unit.name}/agrees": np.packbits(recording.agrees),
        f"{unit.name}/chain": recording.chain.astype(narrow),
        f"{unit.name}/bulk": recording.bulk,
    }
    if recording.scaled is not None:
        arrays[f"{unit.name}/scaled"] = recording.scaled.astype(narrow)
    return arrays


def from_arrays(unit: Unit, arrays: Any, groups: list[str]) -> Recording:
    """Return a unit's recording from the arrays of golden.npz."""
    name = set_name(unit)
    a, b, c = (
        decode(f, arrays[f"{name}/{key}"])
        for f, key in ((unit.a, "a"), (unit.b, "b"), (unit.accumulator, "c"))
    )
    asked = Probes(a, b, c, np.array(groups)[arrays[f"{name}/group"]])
    d, chain = (
        arrays[f"{unit.name}/{key}"].astype(np.uint32) for key in ("d", "chain")
    )
    agrees = np.unpackbits(arrays[f"{unit.name}/agrees"], count=len(d)).astype(bool)
    scaled = arrays.get(f"{unit.name}/scaled")
    if scaled is not None:
        scaled = scaled.astype(np.uint32)
    digests = arrays[f"{unit.name}/bulk"]
    return Recording(unit, asked, d, agrees, chain, scaled, digests)


def plain(x: object) -> Any:
    """Replace tuples, and keys that are not strings, because JSON has neither."""
    if isinstance(x, dict):
        return {
            "/".join(map(str, k)) if isinstance(k, tuple) else str(k): plain(v)
            for k, v in x.items()
        }
    return [plain(v) for v in x] if isinstance(x, (tuple, list)) else x


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file, which replaces `path` only when it is complete."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        yield file
    os.replace(new, path)


def write(folder: Path, arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> None:
    """Write both files with the units that are recorded so far."""
    with _replaced(folder / "golden.npz") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    with _replaced(folder / "meta.json") as file:
        file.write(f"{json.dumps(plain(meta), indent=1)}\n".encode())


def read(folder: Path) -> tuple[dict[str, Any], list[Recording]]:
    """Read meta.json and the recordings of golden.npz."""
    meta = json.loads((folder / "meta.json").read_text())
    have = {unit.name: unit for unit in units(tuple(meta["capability"]))}
    with np.load(folder / "golden.npz") as arrays:
        return meta, [
            from_arrays(have[name], arrays, meta["groups"]) for name in meta["units"]
        ]


# -- results against models ------------------------------------------------------------


def differences(recording: Recording, result: conclude.Result) -> dict[str, Any] | None:
    """Return the results that differ from the model: their count and first, by group.

    Chains are groups "chain of N", and results with scale-d 0 are the group "scaled".
    Bulk results are compared by their first `bulk_inputs.JUDGED` digests. The first
    result is in hexadecimal digits. Return None without a model.
    """
    unit, model, asked, d = result
    if model is None:
        return None
    found: dict[str, Any] = {}

    def note(group: str, a: Bits, b: Bits, c: Bits, got: Bits) -> None:
        want = mma_accumulate(model, a, b, c)
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
        note(group, asked.a[at], asked.b[at], asked.c[at], d[at])
    if recording.scaled is not None:
        got = decode(unit.accumulator, recording.scaled)
        note("scaled", asked.a, asked.b, np.zeros_like(asked.c), got)
    chain = decode(unit.accumulator, recording.chain)
    for steps in tiles.chains(asked):
        n, length = steps.shape
        a, b = (x[steps].reshape(n, -1) for x in (asked.a, asked.b))
        note(f"chain of {length}", a, b, asked.c[steps[:, 0]], chain[:n])
        chain = chain[n:]
    wrong = []
    for i, digest in enumerate(recording.bulk[: bulk_inputs.JUDGED]):
        dots = mma_accumulate(model, *bulk_inputs.chunk(unit, i))
        if bulk_inputs.digest(encode(unit.accumulator, dots)) != digest:
            wrong.append(i)
    if wrong:
        found["bulk"] = {"wrong": len(wrong), "of": bulk_inputs.JUDGED, "chunks": wrong}
    return found


def judge(
    recordings: Iterable[Recording], device: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compare recordings with the models.

    Return the differences and the contested points of each unit, and of the device.
    """
    each: dict[str, Any] = {}
    said = []
    for recording in recordings:
        result = recording.result(device)
        points = conclude.conclude_unit(result)
        said.append((result.model, points))
        each[recording.unit.name] = {
            "differences": differences(recording, result),
            "points": points,
        }
    return each, conclude.conclude(said)
