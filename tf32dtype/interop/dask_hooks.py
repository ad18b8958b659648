"""Make dask support the formats, once the program imports dask.

dask identifies a dtype by its `str`, which is ``|V1`` for every format of one byte.
Without these hooks, arrays would arrive in another process as raw bytes, and results of
different formats could get the same name. Sums and products of dask round the result of
each chunk; the functions of `tf32dtype.interop.dask` replace them.
"""

import pickle
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from .._base.caller import warn
from .._base.imports import when_imported
from .._formats.table import Format
from .._functions.averages import FORMATS


def register(formats: Mapping[str, Format]) -> None:
    """Register hooks that run when a program imports dask."""
    names = {type(form.dtype): form.name for form in formats.values()}

    def name_dtypes(module: ModuleType) -> None:
        for dtype, name in names.items():
            module.normalize_token.register(dtype, _named(name))

    when_imported("dask.tokenize", name_dtypes)
    when_imported("distributed.protocol.numpy", _send_dtypes)
    when_imported("dask.array", _answer)


def _named(name: str) -> Callable[[Any], tuple[str, str]]:
    return lambda dtype: ("tf32dtype", name)


def _send_dtypes(module: ModuleType) -> None:
    """Send the dtypes of formats in pickled form, as dask sends void dtypes.

    A process that receives them imports this package.
    """
    own = module.serialize_numpy_ndarray

    @wraps(own)
    def serialize_numpy_ndarray(x: Any, context: Any = None) -> Any:
        header, frames = own(x, context)
        if x.dtype in FORMATS:
            header["dtype"] = (1, pickle.dumps(x.dtype))
        return header, frames

    module.serialize_numpy_ndarray = serialize_numpy_ndarray  # type: ignore[attr-defined]
    # dask may have cached the old function for subclasses such as np.memmap.
    known = [kind for kind, x in module.dask_serialize._lookup.items() if x is own]
    for kind in known:
        module.dask_serialize.register(kind, serialize_numpy_ndarray)


def _answer(module: ModuleType) -> None:
    try:
        import_module("tf32dtype.interop.dask")
    except ImportError as error:  # the program may not need our arrays
        warn(
            "tf32dtype cannot change dask, which rounds the sum of each chunk:"
            f" {error}",
            RuntimeWarning,
        )
