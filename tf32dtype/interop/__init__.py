"""Other libraries, each looked up when the program uses it.

`tf32dtype.interop.torch` and the others are imported when they are named.
"""

import typing as _typing

from .lazy_modules import submodule as _submodule

if _typing.TYPE_CHECKING:
    from . import arrow, dask, gguf, numba, onnx, torch, zarr

__all__ = ["arrow", "dask", "gguf", "numba", "onnx", "torch", "zarr"]


def __dir__() -> list[str]:
    return __all__


if not _typing.TYPE_CHECKING:  # to type checkers nothing else is there

    def __getattr__(name: str) -> object:
        return _submodule(__name__, name, __all__)
