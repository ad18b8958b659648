"""The conversion: read, convert and write each tensor, and note it in the journal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from ..._base.errors import UserError
from ..._base.text import counted
from ..._base.version import __version__
from ..._base.whole_files import replacing
from ..model_parts import layer_of
from ..readers import Tensor, TensorFile, release
from ..safetensors import schemes
from ..safetensors.sharded import index_of
from . import model_files
from .journal import SUFFIX as JOURNAL
from .journal import Notes
from .model_files import ModelFiles
from .options import Options
from .output import SUFFIX, Part
from .plan import (
    Destination,
    Item,
    choose,
    destination,
    left_out,
    make,
    not_convertible,
)
from .planned import Planned, brief_list
from .quantization_config import quantization_config
from .targets import PIECE, Scaled, Target, numbers

#: The bytes written between two notes in the journal: a killed run loses at most these.
_SYNC = 1 << 26

#: A progress bar, given a label and the number of steps. As a context it yields the
#: function that advances the bar.
Progress = Callable[[str, int], Any]


@dataclass
class Result:
    """The result of a conversion."""

    outputs: list[str]
    bytes_in: int = 0
    bytes_out: int = 0
    #: the record of each converted tensor, in the input's order
    records: list[dict[str, Any]] = field(default_factory=list)
    #: the names of unchanged tensors
    kept: list[str] = field(default_factory=list)
    #: the unchanged tensors that were to be converted, with the reasons
    failed: dict[str, str] = field(default_factory=dict)
    #: the unchanged tensors that are left out by default, with their parts of a model
    left_out: dict[str, str] = field(default_factory=dict)
    #: the configuration by which readers recognize the scales; None if not needed
    quantization_config: dict[str, Any] | None = None
    #: the targets of the tensors that were to be converted
    targets: Mapping[str, Target] = field(default_factory=dict)
    #: the other files of the model, next to its tensors
    files: ModelFiles = field(default_factory=ModelFiles)


def convert(
    source: TensorFile,
    out: str,
    options: Options,
    target: Target | Planned,
    *,
    force: bool,
    progress: Progress,
    tell: Callable[[str], None],
) -> Result:
    """Write the tensors of a file to safetensors files, some of them converted.

    Parameters
    ----------
    source : TensorFile
    out : str
        As for `plan.destination`.
    options : Options
    target : Target or Planned
        The target that `options` describe, or the plan with a target for each layer.
    force : bool
        Whether to replace existing files.
    progress : callable
        Makes a progress bar (see `Progress`).
    tell : callable
        Takes lines for the user.

    Raises
    ------
    UserError
        For a conversion that is not possible, before anything is written; or if the
        input changes during the conversion.
    OSError
        If a file cannot be written; finished tensors are kept.
    """
    where = destination(source, out)
    unreadable = left_out(source, options)
    if isinstance(target, Planned):
        choice = target.choose(source, options)
    else:
        choice = choose(source, options, target)
    if choice.absent:
        tell(f"{source.paths[0]} has no weights of {brief_list(choice.absent)}")
    for name, problem in unreadable.items():
        tell(f"{name} is left out: {problem}")
    sources = _identity(source.paths)
    identity = {
        "version": __version__,
        "sources": sources,
        "options": options.record(),
        "outputs": where.outputs,
    }
    os.makedirs(os.path.dirname(where.name), exist_ok=True)
    with ExitStack() as stack:
        notes = Notes(where.name + JOURNAL, identity)
        stack.callback(notes.close)
        try:
            _check_absent(where, notes, force)
            kept = notes.kept
            if kept is None:
                kept = _not_convertible(source, choice.chosen, progress)
            items = make(source, choice.chosen, kept, where)
            parts = _parts(items, where, source)
        except BaseException:
            if notes.is_new:
                notes.remove()
            raise
        for part in parts.values():
            stack.callback(part.close)
        if not (notes.is_complete and all(x.is_there() for x in parts.values())):
            _resume(notes, parts, kept, tell)
            _write_all(items, parts, notes, progress)
            if _identity(source.paths) != sources:
                notes.begin_with({})
                raise UserError(
                    f"{source.paths[0]} must not change while convert reads it; got a"
                    " changed file. Nothing is written: convert again"
                )
            notes.complete()
        for part in parts.values():
            part.finish()
        if where.index is not None:
            _write_index(where.index, parts)
        config, is_known = _quantization(items, target)
        files = ModelFiles()
        if source.kind == "safetensors":
            files = model_files.copy(
                source.paths, where.folder, config, is_known=is_known, force=force
            )
        notes.remove()
    result = _result(items, parts, notes, where)
    result.left_out = choice.left_out
    result.targets = choice.chosen
    result.quantization_config = config
    result.files = files
    return result


def _quantization(
    items: Sequence[Item], target: Target | Planned
) -> tuple[dict[str, Any] | None, bool]:
    """Return the output's `quantization_config`, and whether it is known.

    It is unknown for a mix of schemes, and for a scheme without such a key.
    """
    if isinstance(target, Planned):
        return target.config(items), True
    if any(x.target is None and x.tensor.group is not None for x in items):
        return None, False
    if not isinstance(target, Scaled):
        return None, True
    ignored = [
        layer_of(x.tensor.name)
        for x in items
        if x.target is None and len(x.tensor.shape) >= 2
    ]
    found = quantization_config(target, ignored)
    return found, found is not None


def _identity(paths: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the real path, size and time of each file, to detect changes."""
    found = []
    for path in paths:
        facts = os.stat(path)
        found.append((os.path.realpath(path), facts.st_size, facts.st_mtime_ns))
    return found


def _check_absent(where: Destination, notes: Notes, force: bool) -> None:
    there = [path for path in where.outputs if os.path.lexists(path)]
    if there and not (force or notes.is_complete):
        raise UserError(f"{there[0]} already exists; use --force to overwrite it")
    for path in where.outputs:
        work = path + SUFFIX
        if os.path.islink(work) or (notes.is_new and os.path.lexists(work)):
            raise UserError(
                f"{work} already exists and is not a work file of convert: it has no"
                " journal, or is a symbolic link. Move or remove that file"
            )


def _not_convertible(
    source: TensorFile, chosen: Mapping[str, Target], progress: Progress
) -> dict[str, str]:
    tensors = {name: (source[name], target) for name, target in chosen.items()}
    with progress("checking", len(tensors)) as advance:
        return not_convertible(tensors, advance)


def _parts(
    items: Sequence[Item],
    where: Destination,
    source: TensorFile,
) -> dict[str, Part]:
    """Return the work files by the names of their outputs; write nothing."""
    parts = {}
    for path in dict.fromkeys(where.paths.values()):
        outlines: dict[str, Any] = {}
        for item in items:
            if item.path != path:
                continue
            for name in item.outlines.keys() & outlines.keys():
                raise UserError(
                    f"output names must be different; got {name} twice. Use --exclude"
                )
            outlines.update(item.outlines)
        try:
            some = [item for item in items if item.path == path]
            parts[path] = Part(path, outlines, _metadata(source, some))
        except (ValueError, TypeError) as error:
            raise UserError(str(error)) from None
    return parts


def _metadata(source: TensorFile, items: Sequence[Item]) -> dict[str, str]:
    """Return the metadata of the input and of the tensors of an output file."""
    # transformers requires this key in a file of PyTorch tensors.
    metadata = source.metadata if source.kind == "safetensors" else {"format": "pt"}
    groups = [x.group for x in source.values() if x.group is not None]
    old = schemes.join([schemes.outline(x.name, x.facts, x.scheme)[1] for x in groups])
    several, plain = [], []
    used = set()
    for item in items:
        name, group = item.tensor.name, item.tensor.group
        if item.target is None and group is not None:
            several.append(schemes.outline(name, group.facts, group.scheme)[1])
            used.add(group.scheme)
        elif isinstance(item.target, Scaled):
            several.append(item.target.metadata(name, item.tensor.shape))
            used.add(item.target.scheme)
        else:
            plain.append(name)
    several += [schemes.plain_metadata(name, x) for name in plain for x in used]
    stale = old.keys() | (source.keys() if any(groups) else set())
    rest = {key: text for key, text in metadata.items() if key not in stale}
    return {**rest, **schemes.join(several)}


def _resume(
    notes: Notes,
    parts: dict[str, Part],
    kept: dict[str, str],
    tell: Callable[[str], None],
) -> None:
    """Open the work files; reuse those of an earlier run of the same conversion."""
    resumes = notes.kept is not None and all(x.is_whole() for x in parts.values())
    if resumes:
        tell(f"resuming after {counted(len(notes.done), 'finished tensor')}")
    else:
        if why := notes.began_anew or "the work files are missing" * (
            notes.kept is not None
        ):
            tell(f"starting over: {why}")
        notes.begin_with(kept)
    try:
        for part in parts.values():
            part.open(anew=not resumes)
    except BaseException:
        if not resumes:  # the next run could not use these files
            for part in parts.values():
                part.discard()
            notes.remove()
        raise


def _write_all(
    items: Sequence[Item],
    parts: dict[str, Part],
    notes: Notes,
    progress: Progress,
) -> None:
    ready: dict[str, dict[str, Any]] = {}
    size = 0

    def note() -> None:
        for part in parts.values():
            part.sync()
        notes.add(ready)
        ready.clear()

    try:
        with progress("converting", sum(_steps(x.tensor) for x in items)) as advance:
            for item in items:
                name = item.tensor.name
                if name in notes.done:
                    for _ in range(_steps(item.tensor)):
                        advance()
                    continue
                ready[name] = _write(item, parts[item.path], advance)
                size += item.tensor.nbytes
                if size >= _SYNC:
                    note()
                    size = 0
    finally:
        note()


def _steps(tensor: Tensor) -> int:
    return -(-tensor.size // PIECE)


def _write(item: Item, part: Part, advance: Callable[[], None]) -> dict[str, Any]:
    """Write a tensor; return the record of its loss, or {} if it is unchanged."""
    if item.target is None:
        for each in item.tensor.parts or (item.tensor,):
            array = each.get()
            for piece in numbers(array):
                part.write(each.name, piece)
                advance()
            release(array)
        return {}
    array = item.tensor.get()
    name = item.tensor.name
    try:
        loss = item.target.convert(name, array, part.write, advance)
    except ValueError as error:
        raise UserError(f"tensor {name}: {error}") from None
    release(array)
    return loss.record()


def _write_index(path: str, parts: dict[str, Part]) -> None:
    places = {
        name: os.path.basename(part.path)
        for part in parts.values()
        for name in part.sizes
    }
    with replacing(path) as file:
        total = sum(sum(part.sizes.values()) for part in parts.values())
        file.write(index_of(places, total))


def _result(
    items: Sequence[Item],
    parts: dict[str, Part],
    notes: Notes,
    where: Destination,
) -> Result:
    sizes = {name: n for part in parts.values() for name, n in part.sizes.items()}
    result = Result(where.outputs)
    for item in items:
        tensor = item.tensor
        nbytes = sum(sizes[name] for name in item.outlines)
        result.bytes_in += tensor.nbytes
        result.bytes_out += nbytes
        if item.why_kept:
            result.failed[tensor.name] = item.why_kept
        if item.target is None:
            result.kept.append(tensor.name)
            continue
        result.records.append(
            {
                "name": tensor.name,
                "from": tensor.label,
                "to": item.target.label,
                "shape": [*tensor.shape],
                "bytes_in": tensor.nbytes,
                "bytes_out": nbytes,
                **notes.done[tensor.name],
            }
        )
    return result
