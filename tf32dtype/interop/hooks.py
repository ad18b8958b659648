"""What NumPy and other libraries are told of the formats, when they are imported."""

from collections.abc import Mapping

from .._formats.table import Format
from . import (
    dask_hooks,
    dlpack,
    finfo,
    isdtype,
    known_to_zarr,
    masked,
    numpy_testing,
    pandas,
    printing,
    scipy,
    tensors,
    text,
)


def register(formats: Mapping[str, Format]) -> None:
    """Tell those that are imported now, and the others once the program does it."""
    for told in (dlpack, finfo, isdtype, masked, printing, text, dask_hooks):
        told.register(formats)
    for waiting in (known_to_zarr, numpy_testing, pandas, scipy, tensors):
        waiting.register()
