"""Literals of formats, precisions, devices and so on equal the tables."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

import tf32dtype as td
from tf32dtype import typing as tdt
from tf32dtype._core import precisions
from tf32dtype._files.safetensors.schemes import SCHEMES
from tf32dtype._formats import typed
from tf32dtype._formats.aliases import ALIASES, BLOCK_ALIASES, NUMPY_ALIASES
from tf32dtype._formats.quantize import ROUNDINGS
from tf32dtype._formats.table import find_dtype
from tf32dtype._integer_products.schemes import IntegerPrecision

pytestmark = pytest.mark.once

MODELS = td.tensor_core.MODELS
BLOCK_SCALED = td.tensor_core.BLOCK_SCALED
ROWS = precisions()


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (tdt.FormatName, td.formats),
        (tdt.FormatAlias, [x for names in ALIASES.values() for x in names]),
        (tdt.BlockFormatName, td.blocks.formats),
        (
            tdt.BlockFormatAlias,
            [x for names in BLOCK_ALIASES.values() for x in names],
        ),
        (
            tdt.PrecisionName,
            dict.fromkeys(
                [row[0] for row in ROWS]
                + [row[1] for row in ROWS]
                + [row[2] for row in ROWS]
                + ["exact", *get_args(IntegerPrecision)]
            ),
        ),
        (tdt.Board, td.tensor_core.devices),
        (tdt.Instruction, dict.fromkeys(m.instruction for m in MODELS)),
        (tdt.ScaleFormat, dict(td._core.block_scales)),
    ],
)
def test_names_are_the_tables_in_its_order(names: Any, table: Any) -> None:
    assert list(get_args(names)) == list(table)


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (
            tdt.NumPyName,
            [
                name
                for full in ("float16", "float32")
                for name in (full, *NUMPY_ALIASES[full])
            ],
        ),
        (
            tdt.DeviceName,
            [
                name
                for device in td.tensor_core.devices.values()
                for name in (device.name, *device.aliases)
            ],
        ),
        (tdt.DeviceInstruction, {f"{m.device}:{m.instruction}" for m in MODELS}),
        (tdt.BlockInstruction, {m.instruction for m in BLOCK_SCALED}),
        (tdt.Accumulator, {m.accumulator for m in MODELS}),
        (tdt.Scheme, SCHEMES),
    ],
)
def test_names_are_those_of_the_table(names: Any, table: Any) -> None:
    assert set(get_args(names)) == set(table)


def test_operands_of_models_are_formats() -> None:
    """Compare `Model.a` and `Model.b` of all models with their type."""
    from tf32dtype.tensor_core.models import Operand

    assert {x for m in MODELS for x in (m.a, m.b)} == set(get_args(Operand))


def test_bytes_of_codes() -> None:
    """Compare the types that `td.bits` distinguishes with the sizes of formats."""
    for kinds, size in (
        (typed.InByte, 1),
        (typed.InTwoBytes, 2),
        (typed.InFourBytes, 4),
    ):
        wanted = {x.type for x in td.formats.values() if x.itemsize == size}
        assert set(get_args(kinds) or (kinds,)) == wanted


# -- every name is taken when a program runs -------------------------------------------

X = np.ones((32, 32), np.float32)


def test_formats_are_taken() -> None:
    for name in (*get_args(tdt.FormatName), *get_args(tdt.FormatAlias)):
        assert td.quantize(X, name).dtype == td.formats[name].dtype, name


def test_floats_of_numpy_are_taken() -> None:
    for name in get_args(tdt.NumPyName):
        assert td.quantize(X, name).dtype == find_dtype(name), name


def test_precisions_are_taken() -> None:
    for name in get_args(tdt.PrecisionName):
        assert td.matmul(X, X, precision=name).dtype == np.float32, name


def test_devices_are_taken() -> None:
    for name in get_args(tdt.DeviceName):
        (first, *_) = td.tensor_core.devices[name].models
        x = td.quantize(X[:4, :4], first.a)
        assert td.tensor_core.matmul(x, x, device=name).dtype == np.float32, name


def test_devices_are_reported() -> None:
    for name in (*get_args(tdt.DeviceName), *get_args(tdt.DeviceInstruction)):
        assert isinstance(td.report(device=name), td.report), name


@pytest.mark.parametrize("rule", get_args(tdt.Rule))
def test_rules_and_sizes_are_taken(rule: Any) -> None:
    for size in get_args(tdt.BlockSize):
        made = td.blocks.quantize(X, "tcfp8", scale=rule, block_size=size)
        assert made.shape == X.shape, size


@pytest.mark.parametrize("rounding", get_args(tdt.Rounding))
def test_roundings_are_taken(rounding: Any) -> None:
    rng = np.random.default_rng(1) if rounding == "stochastic" else None
    assert td.quantize(X, td.tf32, rounding=rounding, rng=rng).shape == X.shape
    assert rounding in ROUNDINGS


@pytest.mark.parametrize("name", get_args(tdt.TileScaleFormat))
def test_scales_of_tiles_are_taken(name: Any) -> None:
    assert td.blocks.quantize_tiles(X, scale_format=name).scale_format == name
