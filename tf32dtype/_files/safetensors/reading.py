"""Reading: `open`, a mapping of a checkpoint's tensors, and `load`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ..._base.wording import brief
from ..tensor_names import NamedTensors, UnknownTensor, select
from . import sharded
from .file import File

if TYPE_CHECKING:
    from .scheme_rows import Scaled
    from .schemes import Found, Group

Path = str | os.PathLike[str]


class TensorInfo(NamedTuple):
    """What a tensor is, told without its data."""

    #: of the array, where items of F4 and F6 have a byte each
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    #: bytes in the file, where they are packed
    nbytes: int


class SafeTensors(NamedTensors[NDArray[Any]]):
    """The tensors of a file, or of the files of a checkpoint, by name.

    Returned by `open`. Each is read when it is asked for. Close it, or use it in a
    `with` statement; arrays that it returned remain valid.
    """

    def __init__(self, path: str, mmap: bool) -> None:
        self._path = sharded.find(path)
        self._mmap = mmap
        self._files: dict[str, File] = {}
        self._names: dict[str, File] = {}
        try:
            self._open_files()
        except BaseException:
            self.close()
            raise

    def _open_files(self) -> None:
        if not sharded.is_index(self._path):
            file = self._file(self._path)
            self._names = dict.fromkeys(file.entries, file)
            return
        for name, path in sharded.read(self._path).items():
            file = self._file(path)
            if name not in file.entries:
                raise ValueError(
                    f"{path} does not have tensor {brief(name)}, which {self._path} "
                    "places in that file"
                )
            self._names[name] = file

    def _file(self, path: str) -> File:
        if path not in self._files:
            try:
                self._files[path] = File(path, self._mmap)
            except FileNotFoundError:
                if path == self._path:
                    raise
                raise FileNotFoundError(
                    f"{path} does not exist, but {self._path} names that file"
                ) from None
        return self._files[path]

    @property
    def metadata(self) -> dict[str, str]:
        """What the files say of themselves; of one key, what the first file says."""
        merged: dict[str, str] = {}
        for file in self._files.values():
            merged = {**file.metadata, **merged}
        return merged

    @property
    def files(self) -> list[str]:
        """Paths of all files: the index of a checkpoint, and what it names."""
        return [*dict.fromkeys((self._path, *self._files))]

    def file_of(self, name: str) -> str:
        """Path of the file that a tensor is in.

        Parameters
        ----------
        name : str
            The tensor's.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        return self._place(name).path

    def info(self, name: str) -> TensorInfo:
        """Dtype, shape and bytes of a tensor.

        Parameters
        ----------
        name : str
            The tensor's.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        file = self._place(name)
        entry = file.entries[name]
        return TensorInfo(file.dtype(name), entry.shape, entry.end - entry.begin)

    def stored_as(self, name: str) -> str:
        """The tensor's dtype by the name that the file has for it: "BF16".

        Parameters
        ----------
        name : str
            The tensor's.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        return self._place(name).entries[name].dtype

    def _place(self, name: str) -> File:
        if name not in self._names:
            raise UnknownTensor(name, self._names, self._path)
        return self._names[name]

    def weights(self) -> dict[str, Group]:
        """The weights that have scales in tensors of their own, by name, without data.

        Each has `format`, `shape`, `scheme` and `members`, the names of its tensors;
        `weight.read(tensors.__getitem__)` is an array of blocks or tiles.
        """
        return {group.name: group for group in self.found().groups}

    def found(self) -> Found:
        """The weights that have scales, and the tensors that may have some."""
        from .weights import find  # who asks for none need not pay for it

        return find(self, [file.metadata for file in self._files.values()])

    def select(self, names: str | Iterable[str] | None) -> list[str]:
        """Names of tensors, as the keyword of `load` chooses them.

        Parameters
        ----------
        names : str or iterable of str, optional
            As there.
        """
        return select(names, self._names, self._path)

    def __getitem__(self, name: str) -> NDArray[Any]:
        file = self._place(name)
        if file.closed:
            raise ValueError(f"{self._path} is closed and cannot be read")
        return file.array(name)

    def __repr__(self) -> str:
        return f"<{len(self)} tensors of {self._path}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return SafeTensors, (self._path, self._mmap)

    def close(self) -> None:
        """Close the files. Arrays that view them keep what they need."""
        for file in self._files.values():
            file.close()


def open(path: Path, *, mmap: bool = True) -> SafeTensors:
    """The tensors of a safetensors file, or of a checkpoint of several, by name.

    Parameters
    ----------
    path : path
        A file; the index of a checkpoint of several files,
        `model.safetensors.index.json`; or a folder that has one of these.
    mmap : bool
        As for `load`.

    Returns
    -------
    SafeTensors
        A mapping, read lazily, to be used in a `with` statement or closed: `f[name]` is
        an array, `f[name][:10]` reads a part of the file; `f.info(name)` has dtype,
        shape and bytes; `f.metadata` the texts of the file.

    Raises
    ------
    ValueError
        If a file is damaged, cut short or hostile. All headers are checked first: the
        error names file and tensor.
    OSError
        If a file cannot be opened.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.safetensors.save("a.safetensors", {"w": np.ones((2, 3), td.bfloat16)})
    >>> with td.safetensors.open("a.safetensors") as f:
    ...     f.info("w").shape, f["w"][1]
    ((2, 3), array([1, 1, 1], dtype=bfloat16))
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file or folder; got {brief(path)}")
    return SafeTensors(os.fspath(path), mmap)


@overload
def load(
    path: Path,
    *,
    mmap: bool = ...,
    names: str | Iterable[str] | None = ...,
    blocks: Literal[False] | None = ...,
) -> dict[str, NDArray[Any]]: ...
@overload
def load(
    path: Path,
    *,
    mmap: bool = ...,
    names: str | Iterable[str] | None = ...,
    blocks: bool,
) -> dict[str, NDArray[Any] | Scaled]: ...
def load(
    path: Path,
    *,
    mmap: bool = True,
    names: str | Iterable[str] | None = None,
    blocks: bool | None = None,
) -> Mapping[str, NDArray[Any] | Scaled]:
    """Read tensors of a safetensors file, or of a checkpoint of several.

    Parameters
    ----------
    path : path
        As for `open`.
    mmap : bool
        Map the file into memory: arrays are read-only views of it, of which the system
        reads what is used (`a.copy()` can be written). A library that writes to them
        all the same, as PyTorch does, writes to memory of this process, not to the
        file. Tensors of F4 and F6 are unpacked, and so are read. The file must not be
        shortened while arrays are in use: the system would end the program (SIGBUS); a
        file that `save` replaces stays as it was for those who have it open. False:
        read all into arrays of their own, which can be written.
    names : str or iterable of str, optional
        Names of tensors, or patterns as in file names: `"model.layers.0.*"`.
    blocks : bool, optional
        True: weights that have scales in tensors of their own become arrays of blocks
        (`~tf32dtype.blocks.BlockArray`) or of tiles (`~tf32dtype.blocks.TileArray`),
        under the weight's name, by which `names` chooses them too. False: their codes
        and scales are arrays like others. If nothing is said, they are too, and a
        warning tells that there are some.

    Returns
    -------
    dict of str to ndarray, BlockArray or TileArray
        In the order of the file. Of NumPy's dtypes and this package's: BF16 as
        bfloat16, F8_E4M3 as float8_e4m3fn; F4 and F6 as float4_e2m1fn, float6_e2m3fn
        and float6_e3m2fn of the logical shape, an item a byte. Where `save` named a
        format in the metadata, that one.

    Raises
    ------
    KeyError
        For a name that is no tensor's, and a pattern of none; it offers those near.
    ValueError, OSError
        As `open`. With ``blocks=True`` ValueError also for a weight whose scales are
        damaged, and for codes whose scales are those of no known scheme or fit several.
    """
    with open(path, mmap=mmap) as tensors:
        if blocks:
            from .weights import load_with_weights

            return load_with_weights(tensors, names, sharded.find(os.fspath(path)))
        if blocks is None:
            from .weights import warn_of_codes

            warn_of_codes(tensors, sharded.find(os.fspath(path)))
        return {name: tensors[name] for name in tensors.select(names)}
