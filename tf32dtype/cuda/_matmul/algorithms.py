"""Choose the algorithm that multiplies arrays of two dtypes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import cupy
import numpy as np

from ... import _core
from ..._matmul.precisions import RoundingOptions, Settings, find_precision
from ...tensor_core.look_up import find_model
from ...tensor_core.models import Aligned
from .._runtime import backend
from .._runtime.backend import KEPT, View
from .._runtime.storage import is_ours
from . import fma, mma_model, split_emulation, tensor_cores
from .crossover import Strategy
from .mode import Mode

FLOAT32, FLOAT16 = np.dtype(np.float32), np.dtype(np.float16)
TF32 = np.dtype(_core.scalar_types[_core.names.index("tf32")])

#: A function that writes the product of (s, m, k) and (s, k, n) to (s, m, n).
Writer = Callable[[Any, Any, Any], None]


class Algorithm(NamedTuple):
    """An algorithm that multiplies arrays of two dtypes."""

    a: np.dtype[Any]  #: dtype to which the first operand is cast
    b: np.dtype[Any]  #: dtype to which the second operand is cast
    write: Writer
    dtype: np.dtype[Any]  #: dtype of the results that `write` writes
    #: whether float32 operands are read as tf32 instead of being cast to it
    reads_tf32: bool = False
    #: whether `write` accepts single matrices in addition to stacks
    takes_matrices: bool = False
    #: whether `write` broadcasts operands with fewer matrices than the result
    broadcasts: bool = False


@lru_cache(maxsize=KEPT)
def find_algorithm(
    a: np.dtype[Any],
    b: np.dtype[Any],
    mode: Mode,
    settings: Settings | None,
    wanted: np.dtype[Any] | None,
    strategy: Strategy,
) -> Algorithm | None:
    """Return the algorithm for arrays of two dtypes; None for CuPy's own function.

    Raises
    ------
    TypeError, ValueError
        If the mode does not support these dtypes.
    """
    common = np.result_type(a, b)
    is_plain = not (is_ours(a) or is_ours(b))
    if settings is not None and is_plain and common == FLOAT32:
        write = _emulation(settings, strategy)
        return Algorithm(FLOAT32, FLOAT32, write, FLOAT32, takes_matrices=True)
    if mode.name == "model":
        x, y = _as_unit_reads(a, "a"), _as_unit_reads(b, "b")
        sums = "float16" if wanted == FLOAT16 else "float32"
        model = find_model(mode.device, mode.instruction, x.name, y.name, sums)
        if not isinstance(model, Aligned):
            raise ValueError(
                f"{model.name} is modeled only on the CPU; use"
                " tf32dtype.tensor_core.matmul with NumPy arrays"
            )
        write = partial(mma_model.product, model=model)
        return Algorithm(
            x, y, write, np.dtype(sums), reads_tf32=True, takes_matrices=True,
            broadcasts=True,
        )  # fmt: skip
    if mode.name == "native":
        x, y = _as_unit_reads(a, "a"), _as_unit_reads(b, "b")
        product = partial(tensor_cores.product, instruction=mode.instruction)
        if mode.instruction is None:
            return Algorithm(x, y, _in_c_order(product), FLOAT32, reads_tf32=True)
        write = _by_views(product)
        return Algorithm(x, y, write, FLOAT32, reads_tf32=True, takes_matrices=True)
    if not is_ours(common):
        return None
    x, y = (x if is_ours(x) or x == FLOAT16 else common for x in (a, b))
    dtype = common if wanted is None else FLOAT32
    return Algorithm(x, y, fma.product, dtype, takes_matrices=True, broadcasts=True)


def _as_unit_reads(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the dtype as a tensor core reads it: tf32 for float32.

    Tensor cores ignore the low 13 bits of float32.
    """
    if dtype == FLOAT32:
        return TF32
    if is_ours(dtype) or dtype == FLOAT16:
        return dtype
    raise TypeError(
        f"{name} must be float16, float32 (multiplied as tf32) or a format of"
        f" tf32dtype; got {dtype}. Use {name}.astype(np.float32)"
    )


def _emulation(settings: Settings, strategy: Strategy) -> Writer:
    """Return a function that multiplies float32 arrays in a precision."""
    if settings.device is not None:
        raise ValueError(
            "precision must not have a device on a GPU; got"
            f" device={settings.device!r}. Use mode='model' to multiply formats as that"
            " device does"
        )
    options: RoundingOptions = {
        "rounding": settings.rounding,
        "scale": settings.scale,
        "special_values": settings.special_values,
    }
    own = find_precision(settings.precision).short

    def write(a: Any, b: Any, out: Any) -> None:
        (m, n), k = out.shape[-2:], a.shape[-1]
        chosen = split_emulation.choose_precision(settings.precision, strategy, m, n, k)
        keywords = options if chosen == own else RoundingOptions()
        split_emulation.product(a, b, out, chosen, **keywords)

    return _in_c_order(write)


def _in_c_order(write: Writer) -> Writer:
    """Let a function for C-contiguous results write results of any strides, too."""

    def through(a: Any, b: Any, out: Any) -> None:
        if out.flags.c_contiguous:
            write(a, b, out)
            return
        made = cupy.empty(out.shape, out.dtype)
        write(a, b, made)
        backend.current().call("copyto", out, made)

    return through


def _by_views(write: Writer) -> Writer:
    """Let a function that only needs address and layout multiply matrices, too.

    A matrix is passed as a `View`. Results may have any strides if they are stacks.
    """
    of_stacks = _in_c_order(write)

    def through(a: Any, b: Any, out: Any) -> None:
        if out.ndim == 2:
            write(View.of(a), View.of(b), View.of(out))
        else:
            of_stacks(a, b, out)

    return through
