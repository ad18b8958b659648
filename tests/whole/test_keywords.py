"""Keywords that several calls share: shown, typed, and rejected if unknown."""

from __future__ import annotations

import inspect
import pydoc
import typing

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype._matmul import precisions
from tf32dtype._matmul.precisions import Unless
from tf32dtype.blocks import quantization

pytestmark = pytest.mark.once

X = np.ones((2, 32), np.float32)
ROUNDING = {
    "rounding": None,
    "scale": "tensor",
    "special_values": "propagate",
}
DEVICE = {"device": None, "instruction": None}
BLOCKS = {
    "block_size": None,
    "scale": None,
    "scale_format": None,
    "rounding": "ties_to_even",
    "overflow": "raise",
    "rng": None,
}
OTHERS = {
    "float64": False,
    "complex64": False,
    "blas": False,
    "dots": Unless.BLAS,
    "lapack": False,
    "min_size": 0,
    "plan": None,
}
#: The keyword-only parameters of each call, and their defaults.
CALLS = {
    "matmul_precision": (
        td.matmul_precision,
        ("bf16",),
        ROUNDING | DEVICE | OTHERS,
    ),
    "set_matmul_precision": (
        td.set_matmul_precision,
        ("bf16",),
        ROUNDING | DEVICE | OTHERS,
    ),
    "matmul": (
        td.matmul,
        (X, X.T),
        {"precision": None, "dtype": None, "out": None, "bound": False}
        | ROUNDING
        | DEVICE,
    ),
    "linalg.lu": (
        td.linalg.lu,
        (X[:, :2],),
        {"precision": None, "block": 64} | ROUNDING | DEVICE,
    ),
    "linalg.cholesky": (
        td.linalg.cholesky,
        (X[:, :2],),
        {"precision": None, "block": 64} | ROUNDING | DEVICE,
    ),
    "linalg.solve": (
        td.linalg.solve,
        (X[:, :2], X[:, 0]),
        {
            "precision": "bf16",
            "assume_a": "general",
            "refinement": "classical",
            "tolerance": None,
            "max_iterations": 1000,
            "block": 64,
        }
        | ROUNDING
        | DEVICE,
    ),
    "blocks.quantize": (
        td.blocks.quantize,
        (X, "mxfp4"),
        {"tile": None, "division": "exact"} | BLOCKS,
    ),
    "blocks.round": (td.blocks.round, (X, "mxfp4"), {"out": None} | BLOCKS),
}


@pytest.mark.parametrize(("call", "_", "keywords"), CALLS.values(), ids=CALLS)
def test_help_shows_the_keywords(call, _, keywords):
    shown = inspect.signature(call).parameters.values()
    named = {p.name: p.default for p in shown if p.kind is p.KEYWORD_ONLY}
    assert named == keywords
    assert not any(p.kind is p.VAR_KEYWORD for p in shown)
    text = pydoc.plain(pydoc.render_doc(call))
    for name, value in keywords.items():
        assert name in text
        assert value is None or repr(value) in text


@pytest.mark.parametrize(("call", "given", "_"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", ["roundin", "float32", "_"])
def test_unknown_keywords(call, given, _, name):
    wanted = rf"^{call.__name__}\(\) got an unexpected keyword argument '{name}'$"
    with pytest.raises(TypeError, match=wanted):
        call(*given, **{name: None})


def test_a_product_of_float32_has_no_float64():
    with pytest.raises(TypeError, match="unexpected keyword argument 'float64'"):
        td.matmul(X, X.T, precision="bf16", float64=True)


@pytest.mark.parametrize("module", [precisions, quantization])
def test_types_are_those_of_the_defaults(module):
    types = written(module.Settings)
    types.pop("precision", None)
    types = {name: type.removesuffix(" | Unless") for name, type in types.items()}
    assert written(module.Options) == types


def written(class_: typing.Any) -> dict[str, str]:
    """Return annotations as in the source: only type checkers import some types."""
    annotations = class_.__annotations__.items()
    return {name: annotation.__forward_arg__ for name, annotation in annotations}


def test_an_instance_is_no_class():
    shown = inspect.signature(td.matmul_precision("bf16"))
    assert list(shown.parameters) == ["function"]
