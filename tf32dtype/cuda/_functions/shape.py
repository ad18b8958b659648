"""Compute NumPy's functions that move elements without changing their values.

CuPy's functions do the work, on the storage of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cupy
import numpy as np

from ..._base.wording import one_of
from ..._formats.table import find_dtype
from .._arrays import casts
from .._arrays.indexing import apart, as_elements, on_host
from .._arrays.ndarray import ndarray, wrap
from .._runtime import backend
from .._runtime.storage import is_ours

FLOAT32 = np.dtype(np.float32)

#: Functions that move elements, with their parameters. A star marks parameters that
#: have elements, which are cast to the dtype that they promote to.
MOVES = {
    "append": "*arr *values axis",
    "choose": "a *choices out mode",
    "column_stack": "*tup",
    "compress": "condition *a axis out",
    "concat": "*arrays axis out",
    "concatenate": "*arrays axis out",
    "delete": "*arr obj axis",
    "diag": "*v k",
    "diagflat": "*v k",
    "dstack": "*tup",
    "extract": "condition *arr",
    "fft.fftshift": "*x axes",
    "fft.ifftshift": "*x axes",
    "hstack": "*tup",
    "pad": "*array pad_width mode",
    "repeat": "*a repeats axis",
    "resize": "*a new_shape",
    "roll": "*a shift axis",
    "select": "condlist *choicelist *default",
    "stack": "*arrays axis out",
    "take": "*a indices axis out mode",
    "take_along_axis": "*arr indices axis",
    "tile": "*A reps",
    "tril": "*m k",
    "triu": "*m k",
    "vstack": "*tup",
    "where": "condition *x *y",
}

#: Functions that write into the first parameter, to whose dtype all elements are cast.
WRITES = {
    "copyto": "*dst *src casting where",
    "fill_diagonal": "*a *val wrap",
    "place": "*arr mask *vals",
    "put": "*a ind *v mode",
    "put_along_axis": "*arr indices *values axis",
    "putmask": "*a mask *values",
}

#: Default arguments of NumPy's functions that CuPy's functions lack.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "select": {"default": 0},
    "take_along_axis": {"axis": -1},
}

#: Modes of np.pad that only move elements.
PADS = {"constant", "edge", "empty", "reflect", "symmetric", "wrap"}


def leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, tuple | list):
        for y in x:
            yield from leaves(y)
    else:
        yield x


def check_out(out: Any) -> None:
    for x in leaves((out,)):
        if x is not None and not isinstance(x, cupy.ndarray):
            raise TypeError(f"out must be an array on the GPU; got {type(x).__name__}")


def _parameters(
    name: str, spec: str, args: Any, kwargs: Any
) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments by name, and the names of those that have elements."""
    names = spec.replace("*", "").split()
    named = _DEFAULTS.get(name, {}) | dict(zip(names, args, strict=False)) | kwargs
    starred = [x[1:] for x in spec.split() if x.startswith("*")]
    return named, [x for x in starred if named.get(x) is not None]


def _as_storage(x: Any, dtype: Any) -> Any:
    if isinstance(x, tuple | list) and any(
        isinstance(y, cupy.ndarray | tuple | list) for y in x
    ):
        return type(x)(_as_storage(y, dtype) for y in x)
    return as_elements(x, dtype)


def _common(values: Any) -> Any:
    kinds = [
        x.dtype if isinstance(x, cupy.ndarray | np.ndarray | np.generic) else x
        for x in leaves(values)
    ]
    return np.result_type(*kinds)


def move(name: str, args: Any, kwargs: Any) -> Any:
    """Compute a function of `MOVES` on storage."""
    named, elements = _parameters(name, MOVES[name], args, kwargs)
    if name == "where" and len(named) == 1:
        return np.nonzero(named["condition"])
    if name == "pad":
        _check_pad(named)
    out, dtype = named.pop("out", None), named.pop("dtype", None)
    check_out(out)
    casting = named.pop("casting", "same_kind")
    common = _common([named[x] for x in elements])
    target = common if dtype is None else find_dtype(dtype)
    into = target if out is None else out.dtype
    for found in (target, into):
        if not np.can_cast(common, found, casting):
            raise TypeError(
                f"dtype must be one that {common} can be cast to with"
                f" casting={casting!r}; got {found}"
            )
    for x in elements:
        named[x] = _as_storage(named[x], target)
    if name in _ADAPTED:
        parameter, adapted = _ADAPTED[name]
        named[parameter] = adapted(named)
    result = _called(name, MOVES[name], named)
    if is_ours(target) or (target == FLOAT32 and _any_of_class(args, kwargs)):
        result = wrap(result, target)
    elif target == FLOAT32:
        result = result.view(FLOAT32)
    if out is None:
        return result
    if out.shape != result.shape:
        raise ValueError(
            f"out must have the shape of the result, {result.shape}; got {out.shape}"
        )
    casts.cast_into(result, out)
    return out


# -- arguments that CuPy's functions need in another form ------------------------------


def _check_pad(named: dict[str, Any]) -> None:
    mode = named.get("mode", "constant")
    if mode not in PADS:
        raise TypeError(
            f"mode of np.pad must be one of {', '.join(sorted(PADS))} on a GPU; got"
            f" {mode!r}"
        )
    if mode == "constant":  # pairs of numbers, which CuPy needs on the host
        given = named.get("constant_values", 0)
        named["constant_values"] = on_host(given, named["array"].dtype)
    if named.get("reflect_type", "even") != "even":
        raise TypeError("reflect_type of np.pad must be 'even' on a GPU")


def _bounded(named: dict[str, Any]) -> Any:
    """Return indices for CuPy's take, which has no mode and always wraps indices."""
    mode, indices = named.pop("mode", "raise"), named["indices"]
    if mode not in ("clip", "raise", "wrap"):
        raise ValueError(one_of("mode", mode, ("clip", "raise", "wrap")))
    if mode == "raise":
        return indices
    x, axis = named["a"], named.get("axis")
    length = x.size if axis is None or x.ndim == 0 else x.shape[axis]
    if not isinstance(indices, cupy.ndarray):
        indices = np.asarray(indices)
        return np.clip(indices, 0, length - 1) if mode == "clip" else indices % length
    call = backend.current().call
    if mode == "clip":
        return call("clip", indices, 0, length - 1)
    return call("remainder", indices, length)


def _stacked(named: dict[str, Any]) -> Any:
    """Return the choices as one array, which CuPy needs."""
    choices = named["choices"]
    if not isinstance(choices, tuple | list):
        return choices
    put = backend.current().put
    made = [x if isinstance(x, cupy.ndarray) else put(np.asarray(x)) for x in choices]
    shape = np.broadcast_shapes(*(x.shape for x in made))
    made = [cupy.broadcast_to(x, shape) for x in made]
    return backend.current().call("stack", made)


def _condition(named: dict[str, Any]) -> Any:
    return condition(named["condition"])


#: For a function, the parameter that CuPy needs in another form, and its conversion.
_ADAPTED = {
    "choose": ("choices", _stacked),
    "take": ("indices", _bounded),
    "where": ("condition", _condition),
}


def condition(x: Any) -> Any:
    """Return a condition as an array on the GPU, which CuPy needs.

    A scalar is copied to the GPU; a NumPy array raises a TypeError.
    """
    if isinstance(x, np.ndarray) and x.ndim:
        raise TypeError(
            "condition must be on the GPU; got a NumPy array. Use cupy.asarray"
        )
    return x if isinstance(x, cupy.ndarray) else backend.current().put(np.asarray(x))


def _any_of_class(*given: Any) -> bool:
    found = list(
        leaves([list(x.values()) if isinstance(x, dict) else x for x in given])
    )
    return any(isinstance(x, ndarray) and x.dtype == FLOAT32 for x in found)


def _called(name: str, spec: str, named: dict[str, Any]) -> Any:
    """Call CuPy's function, with positional arguments since its names may differ."""
    order = spec.replace("*", "").split()
    args = []
    for parameter in order[:4]:
        if parameter not in named:
            break
        args.append(named.pop(parameter))
    return backend.current().call(name, *args, **named)


def write(name: str, args: Any, kwargs: Any) -> None:
    """Compute a function of `WRITES` on storage."""
    named, elements = _parameters(name, WRITES[name], args, kwargs)
    target = named[elements[0]]
    if not isinstance(target, cupy.ndarray):
        raise TypeError(
            f"np.{name} must write to an array on the GPU; got {type(target).__name__}."
            " Use x.get() for a NumPy array"
        )
    if name == "copyto":
        casting = named.pop("casting", "same_kind")
        found = _common([named["src"]])
        if not np.can_cast(found, target.dtype, casting):
            raise TypeError(
                f"destination must have a dtype that {found} can be cast to with"
                f" casting={casting!r}; got {target.dtype}"
            )
        if named.get("where", True) is True:
            named.pop("where", None)
        else:
            named["where"] = condition(named["where"])
    for x in elements:
        named[x] = _as_storage(named[x], target.dtype)
    for x in elements[1:]:
        named[x] = apart(named[x], named[elements[0]], in_place=name == "copyto")
    if name == "put":
        # A check of the indices would wait for the GPU. Like CuPy, do not check them
        # unless the mode requires it.
        named.setdefault("mode", "wrap")
    _called(name, WRITES[name], named)
