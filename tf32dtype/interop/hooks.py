"""Make NumPy and other libraries support the formats, once they are imported."""

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
    """Register the formats with imported libraries, and with others on their import."""
    for told in (dlpack, finfo, isdtype, masked, printing, text, dask_hooks):
        told.register(formats)
    for waiting in (known_to_zarr, numpy_testing, pandas, scipy, tensors):
        waiting.register()
