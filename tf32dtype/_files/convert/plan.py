"""What is to be converted, kept, and written where: all known before the first byte."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ..._base.errors import UserError
from ..._base.text import printable
from ..._formats.table import formats
from ..model_parts import is_for_inference, part_of
from ..readers import Tensor, TensorFile, release
from ..safetensors.sharded import INDEX_SUFFIX, SUFFIX
from .options import Options
from .targets import Outlines, Scaled, Target, numbers


@dataclass(frozen=True)
class Item:
    """A tensor of the input, and what becomes of it."""

    tensor: Tensor
    #: None: it is kept as it is
    target: Target | None
    #: what it will be, by name
    outlines: Outlines
    #: the output that has it
    path: str
    #: why it is kept though it was to be converted
    why_kept: str = ""


@dataclass(frozen=True)
class Destination:
    """The files of the output."""

    #: the output file of each file of the input
    paths: dict[str, str]
    #: None: there is one file
    index: str | None
    #: the one that was named as the output; None: a file was
    folder: str | None = None

    @property
    def name(self) -> str:
        """What the journal is beside."""
        return self.index or next(iter(self.paths.values()))

    @property
    def outputs(self) -> list[str]:
        """All files, the index last."""
        files = [*dict.fromkeys(self.paths.values())]
        return files if self.index is None else [*files, self.index]


def destination(source: TensorFile, out: str) -> Destination:
    """Where the output goes.

    Parameters
    ----------
    source : TensorFile
    out : str
        A file's name, `*.safetensors`, which takes all tensors; or a folder, or the
        index in one, which takes files of the input's names.

    Raises
    ------
    UserError
        For another name, and if the output would replace the input.
    """
    if out.endswith(SUFFIX) and not os.path.isdir(out):
        files = dict.fromkeys(_files(source), os.path.realpath(out))
        found = Destination(files, None)
    else:
        found = _in_folder(source, out)
    for path in found.outputs:
        if any(_is_same(path, one) for one in source.paths):
            raise UserError(f"output must not be the input {path}; use another name")
    return found


def _in_folder(source: TensorFile, out: str) -> Destination:
    is_index = out.endswith(INDEX_SUFFIX)
    is_folder = out.endswith(os.sep) or os.path.isdir(out)
    if not (is_index or is_folder or "." not in os.path.basename(out)):
        raise UserError(
            f"output must be a file *{SUFFIX}, or a folder with a {os.sep} at its end;"
            f" got {out}"
        )
    folder = os.path.realpath(os.path.dirname(out) if is_index else out)
    first = source.paths[0]
    if not first.endswith(INDEX_SUFFIX):
        if is_index:
            raise UserError(
                f"output must be a file, as the input {first} is; got the index {out}"
            )
        name = os.path.splitext(os.path.basename(first))[0] + SUFFIX
        return Destination({"": os.path.join(folder, name)}, None, folder)
    index = os.path.join(folder, os.path.basename(out if is_index else first))
    paths = {
        path: os.path.join(folder, os.path.basename(path)) for path in _files(source)
    }
    return Destination(paths, index, folder)


def _files(source: TensorFile) -> list[str]:
    """Those of the input that tensors are in; "" if there is no more than one."""
    return [*dict.fromkeys(tensor.path for tensor in source.values())]


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


@dataclass(frozen=True)
class Choice:
    """Which tensors are to be converted."""

    #: names
    chosen: set[str]
    #: names of those that are left out by default, and the parts of a model they are
    left_out: dict[str, str]


def choose(source: TensorFile, options: Options, target: Target) -> Choice:
    """Choose the tensors that are to be converted.

    By default all floating ones for formats of 16 bits or more, and for narrower ones
    those of two axes or more: vectors are norms and biases, which recipes keep. Scales
    for inference also leave out the parts of a model that `part_of` names.

    Raises
    ------
    UserError
        If there is none, and for what is no regular expression.
    """
    include, exclude = options.patterns()
    chosen, left_out = set(), {}
    for tensor in source.values():
        name = tensor.name
        if not _is_floating(tensor) or tensor.label == target.label:
            continue
        if any(pattern.search(name) for pattern in exclude):
            continue
        if include:
            if any(pattern.search(name) for pattern in include):
                chosen.add(name)
        elif len(tensor.shape) >= (0 if target.is_wide else 2):
            part = "" if source.is_array else _part(name, target)
            if part:
                left_out[name] = part
            else:
                chosen.add(name)
    if not chosen:
        raise UserError(
            f"{source.paths[0]} must have a floating-point tensor that is not"
            f" {target.label} yet"
            + (
                f" and matches --include {' or '.join(options.include)}"
                if include
                else ""
            )
            + (
                f"; got {said_of_parts(left_out)}. Use --include to convert these"
                if left_out
                else ""
            )
        )
    return Choice(chosen, left_out)


def _part(name: str, target: Target) -> str:
    """The part of a model that a tensor is, if the target leaves parts out."""
    if not isinstance(target, Scaled):
        return ""
    if target.tile is None and not is_for_inference(target.format):
        return ""
    return part_of(name)


def said_of_parts(left_out: Mapping[str, str], most: int = 5) -> str:
    """Return names of tensors with the parts that they are, at most so many."""
    shown = [f"{printable(x)} ({part})" for x, part in [*left_out.items()][:most]]
    more = len(left_out) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _is_floating(tensor: Tensor) -> bool:
    if tensor.dtype is None:  # of blocks, or not readable: which is told
        return True
    return tensor.dtype.kind == "f" and tensor.dtype != formats["float8_e8m0fnu"].dtype


def not_convertible(
    tensors: list[Tensor], target: Target, advance: Callable[[], None]
) -> dict[str, str]:
    """Say why some of the tensors cannot be converted.

    Their scales are not understood, their shapes do not suit the scheme, or they hold
    NaN or Inf.

    Reads weights with scales, and all tensors where the format asks for it.

    Raises
    ------
    UserError
        For a tensor that cannot be read.
    """
    found = {}
    for tensor in tensors:
        if why := _why_not(tensor, target):
            found[tensor.name] = why
        advance()
    return found


def _why_not(tensor: Tensor, target: Target) -> str:
    """Why a tensor cannot be converted; empty: it can."""
    try:
        target.outlines(tensor.name, tensor.shape)
    except ValueError as error:
        return str(error)
    if tensor.doubt:
        return f"{tensor.doubt}. Use --exclude {tensor.name!r} to accept the copy"
    if tensor.group is None and not target.is_picky:
        return ""
    try:
        array = tensor.get()  # of a weight, checks its codes and scales
    except UserError as error:
        raise UserError(
            f"{error} (use --exclude {tensor.name!r} to keep the tensor unchanged)"
        ) from None
    if not target.is_picky:
        release(array)
        return ""
    nans = infinities = 0
    for piece in numbers(array):
        nans += int(np.count_nonzero(np.isnan(piece)))
        infinities += int(np.count_nonzero(np.isinf(piece)))
    release(array)
    return target.problem(nans, infinities)


def left_out(source: TensorFile, options: Options) -> dict[str, str]:
    """Excluded tensors that cannot be read, and so not kept either, and why.

    Raises
    ------
    UserError
        For such a tensor that is not excluded.
    """
    _, exclude = options.patterns()
    found = {name: x.problem for name, x in source.items() if x.problem}
    for name, problem in found.items():
        if not any(pattern.search(name) for pattern in exclude):
            raise UserError(f"{problem} (use --exclude {name!r} to omit the tensor)")
    return found


def make(
    source: TensorFile,
    target: Target,
    chosen: set[str],
    kept: Mapping[str, str],
    where: Destination,
) -> list[Item]:
    """What becomes of each tensor that can be read, in the input's order.

    Raises
    ------
    UserError
        For a tensor that cannot be kept, or be what it is to be.
    """
    items = []
    for tensor in source.values():
        if tensor.problem:
            continue
        taken = tensor.name in chosen and tensor.name not in kept
        try:
            outlines = (
                target.outlines(tensor.name, tensor.shape) if taken else _own(tensor)
            )
        except (ValueError, TypeError) as error:
            raise UserError(f"tensor {tensor.name}: {error}") from None
        items.append(
            Item(
                tensor,
                target if taken else None,
                outlines,
                where.paths[tensor.path],
                kept.get(tensor.name, ""),
            )
        )
    return items


def _own(tensor: Tensor) -> Outlines:
    """A tensor as it is in its file."""
    found = {}
    for part in tensor.parts or (tensor,):
        if part.dtype is None:
            raise ValueError(
                f"dtype must be one that safetensors files have; got {part.label}."
                " Convert the tensor, or use --exclude"
            )
        found[part.name] = (part.dtype, part.shape)
    return found
