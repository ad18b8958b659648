"""Exchange arrays with other libraries.

`tf32dtype.interop.torch` and the other modules are imported on first use.
"""

import typing as _typing

from .lazy_modules import submodule as _submodule

if _typing.TYPE_CHECKING:
    from . import arrow, dask, gguf, numba, onnx, torch, zarr

__all__ = ["arrow", "dask", "gguf", "numba", "onnx", "torch", "zarr"]


def __dir__() -> list[str]:
    return __all__


if not _typing.TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name: str) -> object:
        return _submodule(__name__, name, __all__)
