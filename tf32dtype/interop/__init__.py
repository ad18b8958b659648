"""Other libraries, each looked up when the program uses it.

`tf32dtype.interop.torch` and the others are imported when they are named.
"""

from importlib import import_module as _import_module

__all__ = ["arrow", "dask", "gguf", "numba", "onnx", "torch", "zarr"]


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    if name in __all__:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
    )
