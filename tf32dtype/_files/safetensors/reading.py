"""Read safetensors files: `open` a mapping of tensors, or `load` all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ..._base.arguments import checked_path
from ..._base.wording import brief
from ..tensor_names import NamedTensors, UnknownTensor, select
from . import sharded
from .file import File

if TYPE_CHECKING:
    from .scheme_rows import Scaled
    from .schemes import Found, Group

Path = str | os.PathLike[str]


class TensorInfo(NamedTuple):
    """The facts of a tensor, available without reading its data.

    See Also
    --------
    SafeTensors.info : Return the facts of a tensor.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.safetensors.save("a.safetensors", {"w": np.ones((2, 3), td.fp4)})
    >>> with td.safetensors.open("a.safetensors") as f:
    ...     f.info("w")
    TensorInfo(dtype=dtype(float4_e2m1fn), shape=(2, 3), nbytes=3)
    """

    #: the dtype of the array, in which elements of F4 and F6 have one byte each
    dtype: np.dtype[Any]
    #: the lengths of the axes of the array
    shape: tuple[int, ...]
    #: the number of bytes in the file, where F4 and F6 are packed
    nbytes: int


class SafeTensors(NamedTensors[NDArray[Any]]):
    """The tensors of a file, or of the files of a checkpoint, by name.

    `open` returns it. Each tensor is read on access. Close it, or use it in a `with`
    statement; arrays that it returned remain valid.

    See Also
    --------
    open : Open a file or a checkpoint.
    load : Read all tensors, or some by name.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> w = np.array([1.5, 2], td.bfloat16)
    >>> td.safetensors.save("a.safetensors", {"w": w}, metadata={"format": "np"})
    >>> with td.safetensors.open("a.safetensors") as f:
    ...     print(list(f), f.metadata, f.stored_as("w"), f["w"])
    ['w'] {'format': 'np'} BF16 [1.5 2. ]
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
        """The metadata of all files; if several have a key, the first file counts."""
        merged: dict[str, str] = {}
        for file in self._files.values():
            merged = {**file.metadata, **merged}
        return merged

    @property
    def files(self) -> list[str]:
        """The paths of all files: the index of a checkpoint, and the files in it."""
        return [*dict.fromkeys((self._path, *self._files))]

    def file_of(self, name: str) -> str:
        """Return the path of the file that contains a tensor.

        Parameters
        ----------
        name : str
            The name of the tensor.

        Returns
        -------
        str
            The path of the only file, or of one of the checkpoint's files.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        return self._place(name).path

    def info(self, name: str) -> TensorInfo:
        """Return dtype, shape and size of a tensor.

        Parameters
        ----------
        name : str
            The name of the tensor.

        Returns
        -------
        TensorInfo
            The dtype and shape of the array, and its number of bytes in the file.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        file = self._place(name)
        entry = file.entries[name]
        return TensorInfo(file.dtype(name), entry.shape, entry.end - entry.begin)

    def stored_as(self, name: str) -> str:
        """Return the name of a tensor's dtype in the file, such as "BF16".

        Parameters
        ----------
        name : str
            The name of the tensor.

        Returns
        -------
        str
            The name that the header of the file has.

        Raises
        ------
        KeyError
            For a name that the file does not have.
        """
        return self._place(name).entries[name].dtype

    def _place(self, name: str) -> File:
        if not isinstance(name, str) or name not in self._names:
            raise UnknownTensor(name, self._names, self._path)
        return self._names[name]

    def weights(self) -> dict[str, Group]:
        """Return the weights whose scales are separate tensors, by name, without data.

        Each weight has `format`, `shape`, `scheme` and `members`, the names of its
        tensors. `weight.read(tensors.__getitem__)` returns an array of blocks or tiles.

        Returns
        -------
        dict of str to Group
            The weights by their names. It is empty if no weight has scales.
        """
        return {group.name: group for group in self.found().groups}

    def found(self) -> Found:
        """Return the weights that have scales, and the tensors that may have some."""
        from .weights import find  # imported only if needed

        return find(self, [file.metadata for file in self._files.values()])

    def select(self, names: str | Iterable[str] | None) -> list[str]:
        """Return the names of tensors that the argument `names` of `load` selects.

        Parameters
        ----------
        names : str or iterable of str, optional
            As for `load`.

        Returns
        -------
        list of str
            The names of the tensors, without duplicates.

        Raises
        ------
        KeyError
            For a name or pattern that matches no tensor; the error suggests similar
            names.
        TypeError
            If a name is not a string.
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
        """Close the files; arrays that view them remain valid."""
        for file in self._files.values():
            file.close()


def open(path: Path, *, mmap: bool = True) -> SafeTensors:
    """Open a safetensors file, or a checkpoint of several files.

    Parameters
    ----------
    path : path
        A file; the index of a checkpoint of several files,
        `model.safetensors.index.json`; or a folder that contains one of these.
    mmap : bool
        As for `load`.

    Returns
    -------
    SafeTensors
        A mapping from names to arrays; close it or use it in a `with` statement. It
        reads lazily: `f[name]` is an array, and `f[name][:10]` reads only a section of
        the file. `f.info(name)` has dtype, shape and bytes; `f.metadata` has the
        strings of the file.

    Raises
    ------
    ValueError
        If a file is damaged, truncated or malicious. All headers are checked first; the
        error names the file and the tensor.
    OSError
        If a file cannot be opened.
    TypeError
        If `path` is not a path.

    See Also
    --------
    load : Read all tensors, or some by name.
    SafeTensors : The mapping that this function returns.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> td.safetensors.save("a.safetensors", {"w": np.ones((2, 3), td.bfloat16)})
    >>> with td.safetensors.open("a.safetensors") as f:
    ...     f.info("w").shape, f["w"][1]
    ((2, 3), array([1., 1., 1.], dtype=bfloat16))
    """
    return SafeTensors(checked_path(path, what="a file or folder"), mmap)


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
    """Read tensors of a safetensors file, or of a checkpoint of several files.

    Parameters
    ----------
    path : path
        As for `open`.
    mmap : bool
        True: map the file into memory. Arrays are read-only views of the file, and the
        system reads only the used pages; to write to an array, use `a.copy()`. Some
        libraries, such as PyTorch, write to read-only arrays. This changes the memory
        of the process, not the file. Tensors of F4 and F6 are read, because they must
        be unpacked. Do not shorten the file while arrays are in use: the system would
        end the program (SIGBUS). If `save` replaces the file, open arrays keep the old
        content. False: read all tensors into new arrays, which can be written.
    names : str or iterable of str, optional
        Names of tensors, or patterns as in file names: `"model.layers.0.*"`. None: all.
    blocks : bool, optional
        True: weights whose scales are separate tensors become arrays of blocks
        (`~tf32dtype.blocks.BlockArray`) or of tiles (`~tf32dtype.blocks.TileArray`).
        The result and `names` then use the name of the weight. False: codes and scales
        are returned as separate arrays. None: as False, with a warning if the file has
        such weights.

    Returns
    -------
    dict of str to ndarray, BlockArray or TileArray
        The tensors in the order of the file, with dtypes of NumPy and this package:
        BF16 becomes bfloat16, F8_E4M3 becomes float8_e4m3fn. F4 and F6 become
        float4_e2m1fn, float6_e2m3fn and float6_e3m2fn, with the logical shape and one
        byte per element. A format that `save` named in the metadata is restored.

    Raises
    ------
    KeyError
        For a name or pattern that matches no tensor; the error suggests similar names.
    ValueError, OSError
        As for `open`. With ``blocks=True``, ValueError also for a weight whose scales
        are damaged, and for codes whose scales match no known scheme or several.
    TypeError
        As for `open`, and if a name is not a string.

    Warns
    -----
    UserWarning
        If `blocks` is None, and the file has weights whose scales are separate tensors.

    See Also
    --------
    open : Read tensors one at a time.
    save : Write a file.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> arrays = {"w": np.array([1.5, 2], td.bfloat16), "step": np.int64(7)}
    >>> td.safetensors.save("a.safetensors", arrays)
    >>> td.safetensors.load("a.safetensors", names="w*")
    {'w': array([1.5, 2. ], dtype=bfloat16)}
    """
    with open(path, mmap=mmap) as tensors:
        if blocks:
            from .weights import load_with_weights

            return load_with_weights(tensors, names, sharded.find(os.fspath(path)))
        if blocks is None:
            from .weights import warn_of_codes

            warn_of_codes(tensors, sharded.find(os.fspath(path)))
        return {name: tensors[name] for name in tensors.select(names)}
