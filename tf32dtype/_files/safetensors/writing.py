"""Write safetensors files: `save` stores arrays of NumPy dtypes and formats."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._base.arguments import checked_path
from ..._base.whole_files import replacing
from ..._base.wording import brief
from ..._formats import bit_packing
from ..._formats.codes import code_chunks, little_endian_chunks
from ..._formats.table import formats, own_array
from ..file_kinds import check_name
from . import header, sharded
from .dtypes import Kind, carrier_of, stored_kind
from .file import FORMATS_KEY
from .header import Spec

if TYPE_CHECKING:
    from .scheme_rows import Scaled

Path = str | os.PathLike[str]

_CHUNK_BYTES = 1 << 24
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


#: The names of schemes, repeated from schemes.py, which plain arrays do not need.
Scheme = Literal[
    "tf32dtype",
    "vllm",
    "compressed-tensors",
    "modelopt",
    "quark",
    "gpt-oss",
    "deepseek",
    "deepseek-inference",
    "minimax",
    "comfyui",
    "scaled-fp8",
    "mlx",
    "torchao",
]


class Layout(NamedTuple):
    """A header and the kinds of the tensors whose data follow it, in this order."""

    header: bytes
    kinds: dict[str, Kind]
    #: the position of the data of each tensor, in bytes from the start of the file
    offsets: dict[str, int]


def save(
    path: Path,
    tensors: Mapping[str, ArrayLike | Scaled],
    *,
    metadata: Mapping[str, str] | None = None,
    max_shard_size: int | str | None = None,
    scheme: Scheme = "tf32dtype",
) -> None:
    """Write arrays to a safetensors file.

    Parameters
    ----------
    path : path
        The path of the file, used unchanged. An existing file is replaced as a whole,
        or stays as it is if an error occurs. Programs that have mapped the existing
        file keep its old content.
    tensors : mapping of str to array_like, BlockArray or TileArray
        Arrays of any layout and byte order, of NumPy's dtypes and the formats of this
        package, also as dtypes of `ml_dtypes`. Values of float4_e2m1fn and the float6
        formats are packed, the first in the lowest bits. The codes are stored as U8 if
        packed values would not fill whole bytes, or if safetensors has no dtype for the
        format. Arrays of tf32 are stored as F32, and other readers see float32. The
        metadata then keep the name of the format, and `load` restores it. Unused bits
        are written as zeros.
    metadata : mapping of str to str, optional
        Strings to store in the file. The key "tf32dtype.formats" is reserved for this
        package, and a value that you give for it is ignored.
    max_shard_size : int or str, optional
        The largest size of the tensors in one file: a number of bytes, or a string such
        as "5GB". If the tensors take more, path `model.safetensors` becomes
        `model-00001-of-00002.safetensors` and so on, in the order of `tensors`, with
        the index `model.safetensors.index.json`.
    scheme : str, optional
        The names and layout of the tensors that store arrays of blocks and tiles.
        "tf32dtype" stores all such arrays, except those with zero points or biases, and
        restores them bit for bit. "vllm" (or "compressed-tensors"), "modelopt",
        "quark", "gpt-oss", "deepseek", "deepseek-inference", "minimax", "comfyui",
        "scaled-fp8" (ComfyUI's older one), "mlx" and "torchao" store the arrays that
        readers of such files support. `load` with ``blocks=True`` reads all schemes.

    Raises
    ------
    TypeError
        For dtypes that a file cannot store: complex128, longdouble, objects, strings,
        times, structured dtypes. For masked arrays. For names and metadata that are not
        strings. If `tensors` is not a mapping.
    ValueError
        For a name that a tensor cannot have. For a header of more than 100 MB. For an
        array of blocks or tiles that the scheme cannot store. For an unknown scheme, or
        another `max_shard_size`. For a path that names another kind of file, such as
        `a.npy`. Errors are raised before anything is written.
    OSError
        If a file cannot be written.

    See Also
    --------
    load : Read the file.
    tf32dtype.save : Write one array to a `.npy` file.
    tf32dtype.hdf5.save : Write arrays to an HDF5 file.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> w = np.array([1, 2, 3], td.float8_e4m3fn)
    >>> td.safetensors.save("a.safetensors", {"w": w}, metadata={"format": "np"})
    >>> td.safetensors.load("a.safetensors")["w"]
    array([1., 2., 3.], dtype='float8_e4m3fn')
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"tensors must be a mapping of names to arrays; got {brief(tensors)}"
        )
    plain, metadata = _taken_apart(tensors, metadata, scheme)
    arrays = {name: _array(name, given) for name, given in plain.items()}
    types = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    path = checked_path(path)
    check_name(path, "td.safetensors.save", ".safetensors")
    sizes = {name: _kind(name, *facts).size(facts[1]) for name, facts in types.items()}
    files = _files(path, sizes, max_shard_size)
    layouts = {
        file: lay_out({name: types[name] for name in names}, metadata)
        for file, names in files.items()
    }
    with ExitStack() as stack:  # the index, entered first, is renamed last
        if len(files) > 1:
            index = stack.enter_context(replacing(sharded.index_path(path)))
            index.write(_index(files, sizes))
        for file, layout in layouts.items():
            stream = stack.enter_context(replacing(file))
            stream.write(layout.header)
            for name, kind in layout.kinds.items():
                write_data(stream, arrays[name], kind)


def _taken_apart(
    tensors: Mapping[str, Any], metadata: Mapping[str, str] | None, scheme: str
) -> tuple[Mapping[str, ArrayLike], Mapping[str, str] | None]:
    if scheme == "tf32dtype" and "tf32dtype.blocks" not in sys.modules:
        return tensors, metadata  # without this module, no array of blocks exists
    from .weights import taken_apart

    return taken_apart(tensors, metadata, scheme)


# -- before anything is written ---------------------------------------------


def lay_out(
    tensors: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]],
    metadata: Mapping[str, str] | None = None,
) -> Layout:
    """Return the header and kinds of a file with arrays of these dtypes and shapes.

    With this function and `write_data` you can write a file without having all tensors
    in memory at once.

    Raises
    ------
    TypeError, ValueError
        As for `save`.
    """
    kinds = {name: _kind(name, *facts) for name, facts in tensors.items()}
    carried = {
        name: formats[dtype].name
        for name, (dtype, _) in tensors.items()
        if dtype in formats and kinds[name] == carrier_of(formats[dtype])
    }
    texts = None if metadata is None else header.checked_metadata(metadata)
    if texts is not None:
        texts.pop(FORMATS_KEY, None)  # from another file, for other tensors
    if carried:
        texts = {**(texts or {}), FORMATS_KEY: json.dumps(carried)}
    specs = [
        Spec(name, kinds[name].name, shape) for name, (_, shape) in tensors.items()
    ]
    head, offsets = header.write(specs, texts)
    return Layout(head, {name: kinds[name] for name in offsets}, offsets)


def _kind(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Kind:
    try:
        return stored_kind(dtype, shape)
    except TypeError as error:
        raise TypeError(f"tensor {brief(name)}: {error}") from None


def _array(name: str, given: ArrayLike) -> NDArray[Any]:
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(
            f"tensor {brief(name)} must not have a mask; got a masked array a. Write "
            "a.data and a.mask as two tensors"
        )
    return own_array(given)


def _files(
    path: str, sizes: dict[str, int], most: int | str | None
) -> dict[str, list[str]]:
    """Return the paths of the files to write, each with the names of its tensors."""
    shards = [list(sizes)] if most is None else sharded.split(sizes, _bytes(most))
    if len(shards) < 2:
        return {path: list(sizes)}
    return {
        sharded.shard_path(path, number, len(shards)): shard
        for number, shard in enumerate(shards, 1)
    }


def _bytes(most: int | str) -> int:
    if isinstance(most, str):
        text = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]B)?", most.strip(), re.I)
        size = int(float(text[1]) * _UNITS[(text[2] or "").upper()]) if text else 0
    else:
        is_integer = isinstance(most, int | np.integer) and not isinstance(most, bool)
        size = most if is_integer else 0
    if size <= 0:
        raise ValueError(
            "max_shard_size must be a positive number of bytes, or a string such as "
            f"'5GB'; got {brief(most)}"
        )
    return int(size)


def _index(files: dict[str, list[str]], sizes: dict[str, int]) -> bytes:
    places = {name: os.path.basename(file) for file in files for name in files[file]}
    return sharded.index_of(places, sum(sizes.values()))


# -- data -------------------------------------------------------------------


def write_data(stream: IO[bytes], array: NDArray[Any], kind: Kind) -> None:
    """Write the data of an array in the form that a kind of tensor has in a file."""
    chunks = _chunks(array)
    for chunk in _packed(chunks, kind.bits) if kind.is_packed else chunks:
        stream.write(chunk.data)


def _chunks(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    if array.dtype in formats:
        return code_chunks(array, _CHUNK_BYTES)
    if array.dtype == np.bool_:
        array = array.view(np.uint8) != 0  # every nonzero byte becomes 1
    return little_endian_chunks(array, _CHUNK_BYTES)


def _packed(chunks: Iterator[NDArray[Any]], width: int) -> Iterator[NDArray[np.uint8]]:
    rest = np.empty(0, np.uint8)
    for chunk in chunks:
        codes = np.concatenate((rest, chunk))
        whole = codes.size // 8 * 8  # 8 codes of any width fill whole bytes
        yield bit_packing.pack(codes[:whole], width)
        rest = codes[whole:]
    yield bit_packing.pack(rest, width)
