"""What dask makes of our dtypes, mended when the program imports dask.

dask sends, and names, a dtype by its `str`, which is ``|V1`` for every format of a
byte: arrays would come to another process as raw bytes, and two results of different
formats would have one name. Its sums and products round the result of each chunk:
those of `tf32dtype.interop.dask` take their place.
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
    """Wait for dask."""
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
    """Send our dtypes as dask sends void ones, pickled.

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
    # Of subclasses too, as np.memmap, that dask has looked up before.
    known = [kind for kind, x in module.dask_serialize._lookup.items() if x is own]
    for kind in known:
        module.dask_serialize.register(kind, serialize_numpy_ndarray)


def _answer(module: ModuleType) -> None:
    try:
        import_module("tf32dtype.interop.dask")
    except ImportError as error:  # the program may do without our arrays
        warn(
            "tf32dtype cannot change dask, which rounds the sum of each chunk:"
            f" {error}",
            RuntimeWarning,
        )
