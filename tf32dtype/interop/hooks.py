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
    pandas,
    printing,
    scipy,
    tensors,
)


def register(formats: Mapping[str, Format]) -> None:
    """Tell those that are imported now, and the others once the program does it."""
    for told in (dlpack, finfo, isdtype, masked, printing, dask_hooks, pandas, scipy):
        told.register(formats)
    known_to_zarr.register()
    tensors.register()
