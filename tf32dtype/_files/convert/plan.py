"""The plan of a conversion, complete before the first byte is written."""

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
    """A tensor of the input, with its target and its output file."""

    tensor: Tensor
    #: the target format; None if the tensor is kept unchanged
    target: Target | None
    #: dtypes and shapes of the tensors to be written, by name
    outlines: Outlines
    #: the path of the output file
    path: str
    #: the reason why a chosen tensor is kept unchanged
    why_kept: str = ""


@dataclass(frozen=True)
class Destination:
    """The files of the output."""

    #: the output file of each file of the input
    paths: dict[str, str]
    #: the path of the index; None if the output is a single file
    index: str | None
    #: the folder named as the output; None if a file was named
    folder: str | None = None

    @property
    def name(self) -> str:
        """The path to which the journal adds its suffix."""
        return self.index or next(iter(self.paths.values()))

    @property
    def outputs(self) -> list[str]:
        """The paths of all output files, the index last."""
        files = [*dict.fromkeys(self.paths.values())]
        return files if self.index is None else [*files, self.index]


def destination(source: TensorFile, out: str) -> Destination:
    """Return the files that the output consists of.

    Parameters
    ----------
    source : TensorFile
    out : str
        The name of a file, `*.safetensors`, for all tensors. Or a folder, or the path
        of an index in a folder: its files have the names of the input's files.

    Raises
    ------
    UserError
        For any other name, and if the output would replace the input.
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
    """Return the input files that contain tensors; "" if there is only one file."""
    return [*dict.fromkeys(tensor.path for tensor in source.values())]


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


@dataclass(frozen=True)
class Choice:
    """The tensors that are to be converted."""

    #: the targets of the tensors to be converted, by their names
    chosen: Mapping[str, Target]
    #: the names of tensors left out by default, with their parts of a model
    left_out: dict[str, str]
    #: layers that a plan names, and that have no weights in the input
    absent: tuple[str, ...] = ()


def choose(source: TensorFile, options: Options, target: Target) -> Choice:
    """Choose the tensors that are to be converted.

    By default, formats of 16 bits or more take all floating-point tensors. Narrower
    formats take those of two axes or more, because vectors are norms and biases, which
    recipes keep unchanged. Formats with scales for inference also leave out the parts
    of a model that `part_of` names.

    Raises
    ------
    UserError
        If no tensor is chosen, or a pattern is not a regular expression.
    """
    include, exclude = options.patterns()
    chosen: dict[str, Target] = {}
    left_out = {}
    for tensor in source.values():
        name = tensor.name
        if not is_floating(tensor) or tensor.label == target.label:
            continue
        if any(pattern.search(name) for pattern in exclude):
            continue
        if include:
            if any(pattern.search(name) for pattern in include):
                chosen[name] = target
        elif len(tensor.shape) >= (0 if target.is_wide else 2):
            part = "" if source.is_array else _part(name, target)
            if part:
                left_out[name] = part
            else:
                chosen[name] = target
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
    """Return the part of a model a tensor belongs to, if the target leaves it out."""
    if not isinstance(target, Scaled):
        return ""
    if target.tile is None and not is_for_inference(target.format):
        return ""
    return part_of(name)


def said_of_parts(left_out: Mapping[str, str], most: int = 5) -> str:
    """Return at most `most` names of tensors with their parts of a model."""
    shown = [f"{printable(x)} ({part})" for x, part in [*left_out.items()][:most]]
    more = len(left_out) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def is_floating(tensor: Tensor) -> bool:
    """Return whether a tensor has floating-point numbers."""
    if tensor.dtype is None:  # blocks, or an unreadable tensor, which is reported later
        return True
    return tensor.dtype.kind == "f" and tensor.dtype != formats["float8_e8m0fnu"].dtype


def not_convertible(
    tensors: Mapping[str, tuple[Tensor, Target]], advance: Callable[[], None]
) -> dict[str, str]:
    """Say why some of the tensors cannot be converted.

    Possible reasons are unknown scales, shapes that do not suit the scheme, and values
    of NaN or Inf. To find NaN and Inf, this function reads weights with scales, and all
    tensors if the format requires it.

    Raises
    ------
    UserError
        For a tensor that cannot be read.
    """
    found = {}
    for name, (tensor, target) in tensors.items():
        if why := _why_not(tensor, target):
            found[name] = why
        advance()
    return found


def _why_not(tensor: Tensor, target: Target) -> str:
    """Return why a tensor cannot be converted, or an empty string."""
    try:
        target.outlines(tensor.name, tensor.shape)
    except ValueError as error:
        return str(error)
    if tensor.doubt:
        return f"{tensor.doubt}. Use --exclude {tensor.name!r} to accept the copy"
    if tensor.group is None and not target.is_picky:
        return ""
    try:
        array = tensor.get()  # for a weight, this checks codes and scales
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
    """Return the excluded tensors that cannot be read or kept, with the reasons.

    Raises
    ------
    UserError
        For an unreadable tensor that is not excluded.
    """
    _, exclude = options.patterns()
    found = {name: x.problem for name, x in source.items() if x.problem}
    for name, problem in found.items():
        if not any(pattern.search(name) for pattern in exclude):
            raise UserError(f"{problem} (use --exclude {name!r} to omit the tensor)")
    return found


def make(
    source: TensorFile,
    chosen: Mapping[str, Target],
    kept: Mapping[str, str],
    where: Destination,
) -> list[Item]:
    """Return an item for each readable tensor, in the order of the input.

    Raises
    ------
    UserError
        For a tensor that can be neither kept nor converted.
    """
    items = []
    for tensor in source.values():
        if tensor.problem:
            continue
        target = None if tensor.name in kept else chosen.get(tensor.name)
        try:
            outlines = (
                target.outlines(tensor.name, tensor.shape) if target else _own(tensor)
            )
        except (ValueError, TypeError) as error:
            raise UserError(f"tensor {tensor.name}: {error}") from None
        items.append(
            Item(
                tensor,
                target,
                outlines,
                where.paths[tensor.path],
                kept.get(tensor.name, ""),
            )
        )
    return items


def _own(tensor: Tensor) -> Outlines:
    """Return dtype and shape of an unchanged tensor, or of its component tensors."""
    found = {}
    for part in tensor.parts or (tensor,):
        if part.dtype is None:
            raise ValueError(
                f"dtype must be one that safetensors files have; got {part.label}."
                " Convert the tensor, or use --exclude"
            )
        found[part.name] = (part.dtype, part.shape)
    return found
