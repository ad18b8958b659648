"""Other libraries, each looked up when the program uses it.

`tf32dtype.interop.torch` and the others are imported when they are named.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from .._lazy_modules import submodule as _submodule

if _TYPE_CHECKING:
    from . import arrow, dask, gguf, numba, onnx, torch, zarr

__all__ = ["arrow", "dask", "gguf", "numba", "onnx", "torch", "zarr"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    return _submodule(__name__, name, __all__)
