"""Read datasets of HDF5 files."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ..._base.requirements import need
from .tensor import Tensor, TensorFile


def read(path: str) -> TensorFile:
    """Return the datasets of all groups of a file by their paths."""
    h5py = need("reading an HDF5 file", "hdf5", "h5py")
    from ..hdf5.files import check_size, datasets_of, errors_of

    with ExitStack() as stack:
        with errors_of(path):
            file = stack.enter_context(h5py.File(path, "r"))
            found = datasets_of(file)
            check_size(found, file.id.get_filesize())
            tensors = [
                _tensor(path, name, dataset)
                for name, dataset in found.items()
                if dataset.shape is not None
            ]
        close = stack.pop_all().close
    return TensorFile("HDF5", [path], tensors, close=close)


def _tensor(path: str, name: str, dataset: Any) -> Tensor:
    from ...blocks.facts_text import from_text
    from ..hdf5 import datasets, storage
    from ..hdf5.files import check_dataset, errors_of

    def load() -> Any:
        with errors_of(f"{path}: {name}"):
            check_dataset(dataset)
            return datasets.read(dataset, ...)

    with errors_of(name):
        nbytes = dataset.size * dataset.id.get_type().get_size()
        text = storage.attribute(dataset, datasets.BLOCKS_ATTRIBUTE)
        if text is not None:
            which, shape, *_ = from_text(text)
            return Tensor(name, which, shape, nbytes, load)
        form = storage.format_of(dataset)
        dtype = dataset.dtype if form is None else form.dtype
        return Tensor(name, dtype.name, dataset.shape, nbytes, load, dtype)
