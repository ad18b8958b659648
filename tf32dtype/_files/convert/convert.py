"""The conversion itself: each tensor read, converted, written and noted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
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
from .quantization_config import quantization_config
from .targets import PIECE, Scaled, Target, numbers

#: What a run loses at most that is killed: bytes written before they are noted.
_SYNC = 1 << 26

#: A bar for so many steps, by what is done: yields what advances it.
Progress = Callable[[str, int], Any]


@dataclass
class Result:
    """What a conversion came to."""

    outputs: list[str]
    bytes_in: int = 0
    bytes_out: int = 0
    #: of each converted tensor, in the input's order
    records: list[dict[str, Any]] = field(default_factory=list)
    #: names of tensors that are as they were
    kept: list[str] = field(default_factory=list)
    #: those of them that were to be converted, and why they are not
    failed: dict[str, str] = field(default_factory=dict)
    #: those of them that are left out by default, and the parts of a model they are
    left_out: dict[str, str] = field(default_factory=dict)
    #: by which readers know the scales; None: they need none
    quantization_config: dict[str, Any] | None = None
    #: of the model, next to its tensors
    files: ModelFiles = field(default_factory=ModelFiles)


def convert(
    source: TensorFile,
    out: str,
    options: Options,
    target: Target,
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
    target : Target
        What they say.
    force : bool
        Replace what is there.
    progress : callable
    tell : callable
        Takes lines for the user.

    Raises
    ------
    UserError
        For what cannot be done, before anything is written; or if the input changes
        meanwhile.
    OSError
        If a file cannot be written; what is done is kept.
    """
    where = destination(source, out)
    unreadable = left_out(source, options)
    choice = choose(source, options, target)
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
                kept = _not_convertible(source, choice.chosen, target, progress)
            items = make(source, target, choice.chosen, kept, where)
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
    result.quantization_config = config
    result.files = files
    return result


def _quantization(
    items: Sequence[Item], target: Target
) -> tuple[dict[str, Any] | None, bool]:
    """The output's `quantization_config`, and whether it is known.

    It is not known of a mix of schemes, and of a scheme without one.
    """
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
    """Files as they are now."""
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
    source: TensorFile, chosen: set[str], target: Target, progress: Progress
) -> dict[str, str]:
    tensors = [source[name] for name in source if name in chosen]
    with progress("checking", len(tensors)) as advance:
        return not_convertible(tensors, target, advance)


def _parts(
    items: Sequence[Item],
    where: Destination,
    source: TensorFile,
) -> dict[str, Part]:
    """The work files by the names of their outputs; no byte is written."""
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
    """The input's, and what belongs to the tensors of a file."""
    # What transformers asks of a file that is to be read as torch's.
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
    """Open the work files: those of an earlier run, if it did the same."""
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
        if not resumes:  # there is nothing that the next run could use
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
    """Write a tensor; what it has lost, or {} if it is kept."""
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
