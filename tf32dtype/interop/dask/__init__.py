"""Compute with arrays of formats and of blocks that exceed memory, with dask.

You do not need this module for plain dask arrays of this package's formats. Once a
program has imported `dask.array` and `tf32dtype`, their sums, means and matrix products
are as accurate as NumPy's. Without tf32dtype, dask rounds each chunk. This module has
matrix products in a chosen precision, a precision for all workers of a cluster, and
arrays of blocks.
"""

import typing as _typing
from importlib import import_module as _import_module

from ..._base.requirements import need as _need

_need("td.interop.dask", "dask", "dask.array")

from .answers import install as _install  # noqa: E402
from .products import matmul, tensordot  # noqa: E402

_install()
del _install, _need

if _typing.TYPE_CHECKING:
    from .blocks import BlockArray, from_blocks, quantize
    from .precision import WorkersPrecision, matmul_precision

__all__ = [
    "BlockArray",
    "WorkersPrecision",
    "from_blocks",
    "matmul",
    "matmul_precision",
    "quantize",
    "tensordot",
]

#: The names that are imported on first use: distributed takes longer than dask.
_LATER = {
    "BlockArray": "blocks",
    "from_blocks": "blocks",
    "quantize": "blocks",
    "WorkersPrecision": "precision",
    "matmul_precision": "precision",
}


def __dir__() -> list[str]:
    return __all__


if not _typing.TYPE_CHECKING:  # type checkers use the imports above

    def __getattr__(name: str) -> object:
        if name in _LATER:
            return getattr(_import_module(f"{__name__}.{_LATER[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
