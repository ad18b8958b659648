"""Metadata that describe weights with scales: of this package and of torchao."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from ..._formats.codes import bits
from ...blocks import layout
from ...blocks.array import BlockArray
from ...blocks.formats import POWERS, ScaleFormat, checked_block_size
from ...blocks.formats import formats as block_formats
from ...blocks.tiles import TileArray, checked_element, grid, scale_dtype
from .dtypes import kind_of
from .scheme_evidence import MARKERS_KEY, Evidence, Form, Metadata, parsed
from .scheme_rows import Arrays, Facts, Member, Row, Scaled, native
from .scheme_table import TORCHAO

OWN = "tf32dtype"
#: The key of a JSON object with the facts of each weight by its name.
OWN_KEY = "tf32dtype.blocks"
#: The key of a JSON list of the names of torchao's tensors; each also has its own key.
_TORCHAO_KEY = "tensor_names"

#: The scale formats in the order of their numbers in files.
_SCALE_FORMATS: tuple[ScaleFormat, ...] = get_args(ScaleFormat)


@dataclass(frozen=True)
class OwnRow(Row):
    """A row for any array of blocks or tiles, stored as in memory.

    Blocks are stored as the codes, scales and residuals of `BlockArray`, the number of
    the scale format and the tensor scale. Tiles are stored as codes of one byte each,
    and scales.
    """

    def refusal(self, facts: Facts) -> str | None:
        if facts.offsets:
            return f"the scheme does not have {facts.offsets.replace('_', ' ')}"
        return None

    def members(self, name: str, facts: Facts) -> dict[str, Member]:
        return {
            part: Member(f"{name}.{part}", (form,))
            for part, form in self._forms(facts).items()
        }

    def _forms(self, facts: Facts) -> dict[str, Form]:
        if facts.tile is not None:
            kind = kind_of(scale_dtype(facts.scale_format))
            assert kind is not None  # KINDS has all scale dtypes
            scales = (kind.name, grid(facts.shape, facts.sizes))
            return {"codes": ("U8", facts.shape), "scales": scales}
        shapes = _plan(facts, POWERS, 1.0).shapes
        names = ["codes", "scales", "residuals"][: len(shapes)]
        return {
            **{part: ("U8", shape) for part, shape in zip(names, shapes, strict=True)},
            "scale_format": ("U8", (1,)),
            "tensor_scale": ("F32", (1,)),
        }

    def read(self, facts: Facts, arrays: Arrays) -> Scaled:
        if facts.tile is not None:
            codes, scales = arrays["codes"], arrays["scales"]
            element = checked_element(facts.format)
            if element.is_integer:
                codes = codes.view(element.dtype)
            return TileArray.from_codes(element, codes, scales, facts.tile)
        number = int(arrays["scale_format"][0])
        if number >= len(_SCALE_FORMATS):
            raise ValueError(
                f"scale_format must be less than {len(_SCALE_FORMATS)}; got {number}"
            )
        size = facts.block_size
        return BlockArray.from_codes(
            block_formats[facts.format],
            arrays["codes"],
            arrays["scales"],
            arrays.get("residuals"),
            shape=facts.shape,
            axis=facts.axis,
            block_size=None if size is None else checked_block_size(size),
            scale_format=_SCALE_FORMATS[number],
            tensor_scale=float(arrays["tensor_scale"][0]),
        )

    def write(self, array: Scaled) -> dict[str, NDArray[Any]]:
        if isinstance(array, TileArray):
            is_integer = array.elements.dtype.kind in "iu"
            codes = array.elements if is_integer else bits(array.elements)
            return {"codes": codes.view(np.uint8), "scales": native(array.scales)}
        found: dict[str, NDArray[Any]] = {"codes": array.codes, "scales": array.scales}
        if array.residuals is not None:
            found["residuals"] = array.residuals
        number = _SCALE_FORMATS.index(array.scale_format)
        found["scale_format"] = np.array([number], np.uint8)
        found["tensor_scale"] = np.array([array.tensor_scale], np.float32)
        return found


_OWN_ROW = OwnRow(OWN, "{name}.codes", "{name}.scales")
OWN_ROWS: tuple[Row, ...] = (_OWN_ROW,)


def _plan(facts: Facts, scale_format: str, tensor_scale: float) -> layout.Layout:
    return layout.make(
        facts.format,
        facts.shape,
        facts.axis,
        facts.block_size,
        scale_format,
        tensor_scale,
    )


# -- what is said ---------------------------------------------------------------


def said(evidence: Evidence) -> Iterator[tuple[str, Row, Facts]]:
    """Yield weights that metadata describe; the facts are not checked yet."""
    metadata = evidence.metadata
    for name, given in _object(metadata.get(OWN_KEY)).items():
        facts = _own_facts(given)
        if facts is not None:
            yield name, _OWN_ROW, facts
    names = parsed(metadata.get(_TORCHAO_KEY))
    for name in names if isinstance(names, list) else ():
        if not isinstance(name, str):
            continue
        given = _object(metadata.get(name))
        for row in TORCHAO:
            for facts in row.infer(name, evidence):
                if _agrees(given, _torchao_object(facts)):
                    yield name, row, facts


def described(metadata: Metadata, names: Set[str]) -> list[str]:
    """Return the names of weights that this package's metadata describes.

    The description may be wrong, but a tensor of the name exists.
    """
    return [
        name
        for name in _object(metadata.get(OWN_KEY))
        if {f"{name}.codes", f"{name}.scales"} & names
    ]


def what_is_said(name: str, row: Row, facts: Facts) -> dict[str, str]:
    """Return the metadata of one weight."""
    if row.scheme == OWN:
        return {OWN_KEY: json.dumps({name: _own_object(facts)})}
    if row.scheme == "torchao":
        return _torchao_entry(name, _torchao_object(facts))
    return {}


def plain(name: str, scheme: str) -> dict[str, str]:
    """Return the metadata of a tensor without scales."""
    return _torchao_entry(name, {"_type": "Tensor"}) if scheme == "torchao" else {}


def _torchao_entry(name: str, what: Mapping[str, Any]) -> dict[str, str]:
    return {name: json.dumps(what), _TORCHAO_KEY: json.dumps([name])}


def join(several: Iterable[Metadata]) -> dict[str, str]:
    """Join the metadata of several tensors to the metadata of one file."""
    joined: dict[str, str] = {}
    own: dict[str, Any] = {}
    marked: dict[str, Any] = {}
    names: list[str] = []
    for metadata in several:
        joined |= metadata
        own |= _object(metadata.get(OWN_KEY))
        layers = _object(metadata.get(MARKERS_KEY)).get("layers")
        marked |= layers if isinstance(layers, dict) else {}
        more = parsed(metadata.get(_TORCHAO_KEY))
        names += more if isinstance(more, list) else []
    if own:
        joined[OWN_KEY] = json.dumps(own)
    if marked:
        of_last = _object(joined[MARKERS_KEY])
        joined[MARKERS_KEY] = json.dumps({**of_last, "layers": marked})
    if names:
        joined[_TORCHAO_KEY] = json.dumps([*dict.fromkeys(map(str, names))])
    return joined


# -- this package's -------------------------------------------------------------


def _own_object(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {"format": facts.format, "shape": facts.shape}
    if facts.tile is None:
        plan = _plan(facts, POWERS, 1.0)
        return {**found, "axis": plan.axis, "block_size": plan.block_size}
    return {**found, "tile": facts.sizes, "scale_format": facts.scale_format}


def _own_facts(given: object) -> Facts | None:
    """Return the facts in metadata, or None if they are not valid."""
    if not isinstance(given, dict) or not {"format", "shape"} <= given.keys():
        return None
    try:
        shape = layout.checked_shape(given["shape"])
        if "tile" in given:
            facts = Facts(
                str(given["format"]),
                shape,
                tile=(given["tile"][0], given["tile"][1]),
                scale_format=str(given.get("scale_format")),
            )
        else:
            facts = Facts(
                str(given["format"]), shape, given.get("axis", -1), given["block_size"]
            )
        _OWN_ROW.members("", facts)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        return None
    return facts


# -- torchao's ------------------------------------------------------------------

#: The names of element formats in torchao.
_TORCHAO_ELEMENTS = {
    "mxfp8_e4m3": "float8_e4m3fn",
    "mxfp8_e5m2": "float8_e5m2",
    "mxfp4": "float4_e2m1fn_x2",
}
_PLAIN = "NoSwizzle"
#: The dtype of dequantized tensors, in which most models compute.
_DTYPE = {"_type": "torch.dtype", "_data": "bfloat16"}


def _torchao_object(facts: Facts) -> dict[str, Any]:
    parts = ["qdata", "scale"]
    if facts.tile is not None:
        data: dict[str, Any] = {
            "block_size": [1] * (len(facts.shape) - 2) + list(facts.sizes),
            "mm_config": None,
            "act_quant_kwargs": None,
            "kernel_preference": {"_type": "KernelPreference", "_data": "AUTO"},
            "dtype": _DTYPE,
        }
        which = "Float8Tensor"
    elif facts.format == "nvfp4":
        which = "NVFP4Tensor"
        parts = ["per_tensor_scale", *parts]
        data = {
            "is_swizzled_scales": False,
            "use_triton_kernel": False,
            "act_quant_kwargs": None,
            "block_size": 16,
            "orig_dtype": _DTYPE,
        }
    else:
        which = "MXTensor"
        element = _TORCHAO_ELEMENTS[facts.format]
        data = {
            "elem_dtype": {"_type": "torch.dtype", "_data": element},
            "block_size": 32,
            "orig_dtype": _DTYPE,
            "kernel_preference": {"_type": "KernelPreference", "_data": "EMULATED"},
            "act_quant_kwargs": None,
            "is_swizzled_scales": False,
        }
    return {"_type": which, "_data": data, "_tensor_data_names": parts}


def _agrees(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether an object of torchao is as expected, without swizzled scales."""
    data = given.get("_data")
    if not isinstance(data, dict) or given.get("_type") != wanted["_type"]:
        return False
    later = data.get("swizzle_type")  # the key of versions after 0.18
    plain = later is None or (isinstance(later, dict) and later.get("_type") == _PLAIN)
    same = ("block_size", "elem_dtype")
    return (
        plain
        and not data.get("is_swizzled_scales")
        and all(data.get(key) == wanted["_data"].get(key) for key in same)
    )


def _object(text: str | None) -> dict[str, Any]:
    found = parsed(text)
    return found if isinstance(found, dict) else {}
