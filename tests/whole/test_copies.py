"""Every public object can be copied and pickled, without a change."""

from __future__ import annotations

import copy
import pickle
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tf32dtype as td

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {n}": lambda x, n=n: pickle.loads(pickle.dumps(x, n))
        for n in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}
X = np.random.default_rng(0).normal(size=(128, 128)).astype(np.float32)


def named() -> Iterator[tuple[str, Any]]:
    """Yield the names of the package and of its modules."""
    for module in (td, td.blocks, td.tensor_core, td.safetensors, td.hdf5, td.typing):
        for name in getattr(module, "__all__", dir(module)):
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType) and not name.startswith("_"):
                yield f"{module.__name__}.{name}", value


def made() -> Iterator[tuple[str, Any]]:
    """Yield results of calls of these names."""
    yield from td.formats.items()
    yield from td.blocks.formats.items()
    yield from td.tensor_core.devices.items()
    for form in td.formats.values():
        yield f"a scalar of {form.name}", form.type(1)
        yield f"a dtype of {form.name}", form.dtype
        yield f"an array of {form.name}", np.ones(3, form.dtype)
    for name in td.blocks.formats:
        yield f"blocks of {name}", td.blocks.quantize(X, name)
    yield "tiles", td.blocks.quantize_tiles(X)
    yield "error feedback", td.blocks.ErrorFeedback("mxfp8")
    yield "arithmetic", td.arithmetic("bf16", float64=True)
    yield "precision", td.matmul_precision("bf16x3", float64=True, dots=False)
    yield "precision of a device", td.matmul_precision("tf32", device="H100")
    yield "no precision", td.matmul_precision()


OBJECTS = dict([*named(), *made()])


@pytest.mark.parametrize("way", WAYS)
def test_objects(way: str) -> None:
    for name, value in OBJECTS.items():
        found = WAYS[way](value)
        assert type(found) is type(value), name
        if found is not value:
            assert repr(found) == repr(value), name


@pytest.mark.parametrize("way", WAYS)
def test_scopes_open_as_they_did(way: str) -> None:
    for scope in (
        td.matmul_precision("bf16x3"),
        td.matmul_precision("tf32", rounding="toward_zero", min_size=3),
        td.matmul_precision("tf32", device="A100"),
        td.arithmetic("fp8_e4m3"),
    ):
        again = WAYS[way](scope)
        with scope:
            wanted = X @ X + X
        with again:
            found = X @ X + X
        assert found.tobytes() == wanted.tobytes(), scope
        assert found.tobytes() != (X @ X + X).tobytes(), scope


@pytest.mark.parametrize("way", WAYS)
def test_an_open_scope(way: str) -> None:
    """Make copies of an open scope, which are not open."""
    with td.matmul_precision("bf16") as scope:
        again = WAYS[way](scope)
        with pytest.raises(RuntimeError, match="must be open in this context"):
            again.__exit__(None, None, None)
