"""Plans of models: formats for each layer, and the file that holds them.

Layers have names as in PyTorch's `named_modules`. In a name, ``*`` matches any
characters. The first name that matches a layer counts, else the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from .._base import toml
from .._base.toml import refuse, take
from .._base.wording import brief

VERSION = 1
#: The name in a plan for no precision: the layer's products are left as they are.
NONE = "none"
#: The keys of a planned layer that name formats, with "precision" for all of them.
FORMATS = (
    "precision",
    "weights",
    "activations",
    "gradients",
    "kv_cache",
    "probabilities",
)
#: A fact about how a plan was found.
Fact = str | float | bool


@dataclass(frozen=True)
class PlannedLayer:
    """A layer, or a pattern of names of layers, and its formats.

    The formats are the arguments of
    `tf32dtype.interop.torch.matmul_precision` with these names. A layer without formats
    is left as it is.
    """

    name: str
    precision: str | None = None
    weights: str | None = None
    activations: str | None = None
    gradients: str | None = None
    kv_cache: str | None = None
    probabilities: str | None = None

    @property
    def formats(self) -> dict[str, str]:
        """The formats that are given."""
        pairs = {name: getattr(self, name) for name in FORMATS}
        return {name: given for name, given in pairs.items() if given is not None}

    def format_of(self, role: str) -> str:
        """Return the format of "weights" or "activations"; "f32": unrounded."""
        return getattr(self, role) or self.precision or "f32"

    def matches(self, layer: str) -> bool:
        """Return whether this is about a layer."""
        return is_named(layer, self.name)


@dataclass(frozen=True)
class LayerPlan:
    """The contents of a plan file."""

    layers: tuple[PlannedLayer, ...] = ()
    #: the formats of all other layers
    default: PlannedLayer = PlannedLayer("*")
    device: str | None = None
    instruction: str | None = None
    #: whether the search that found it has ended
    final: bool = True
    #: how it was found, only for the reader
    found: Mapping[str, Fact] = field(default_factory=dict)

    def find(self, layer: str) -> PlannedLayer:
        """Return the formats of a layer."""
        return next((x for x in self.layers if x.matches(layer)), self.default)


def read_layer_plan(path: str) -> LayerPlan:
    """Read a plan.

    Raises
    ------
    ValueError
        If the file does not exist or is not a plan of layers. Names of formats are not
        checked.
    """
    return toml.read(path, _plan)


def _plan(found: dict[str, Any]) -> LayerPlan:
    toml.check_version(found, VERSION)
    tables = toml.take_tables(found, "layer")
    default = take(found, "default", dict, {})
    device, instruction = (
        take(found, name, str, "") or None for name in ("device", "instruction")
    )
    final = take(found, "final", bool, True)
    facts = take(found, "found", dict, {})
    refuse(found, "a plan of layers")
    check_facts(facts)
    layers = [_named(one) for one in tables]
    others = _layer(default, "*")
    return LayerPlan(tuple(layers), others, device, instruction, final, facts)


def check_facts(facts: Mapping[str, Any]) -> None:
    """Raise a ValueError for facts that are not strings, numbers or booleans."""
    for name, value in facts.items():
        if not isinstance(value, str | float | int):
            raise ValueError(
                f"found.{name} must be a string, number or boolean; got {brief(value)}"
            )


def _named(found: dict[str, Any]) -> PlannedLayer:
    name = take(found, "name", str, None)
    if not any(key in found for key in FORMATS):
        raise ValueError(f"layer {brief(name)} must have a precision; got none")
    return _layer(found, name)


def _layer(found: dict[str, Any], name: str) -> PlannedLayer:
    formats = {key: take(found, key, str, "") for key in FORMATS if key in found}
    refuse(found, "a layer")
    if formats.get("precision") == NONE:
        del formats["precision"]
        if formats:
            raise ValueError(
                f"layer {brief(name)} must have no other formats with precision"
                f" {NONE!r}; got {', '.join(formats)}"
            )
    return PlannedLayer(name, **formats)


def layer_plan_text(plan: LayerPlan) -> str:
    """Return the TOML text of a plan's file."""
    whole = {"device": plan.device, "instruction": plan.instruction}
    first: dict[str, Any] = {"version": VERSION, "final": plan.final}
    first |= {name: value for name, value in whole.items() if value is not None}
    tables = [toml.table("", first)]
    tables.append(toml.table("[default]\n", _entries(plan.default)))
    if plan.found:
        tables.append(toml.table("[found]\n", plan.found))
    for layer in plan.layers:
        entries = {"name": layer.name, **_entries(layer)}
        tables.append(toml.table("[[layer]]\n", entries))
    return "\n".join(tables)


def _entries(layer: PlannedLayer) -> dict[str, str]:
    return layer.formats or {"precision": NONE}


def is_named(layer: str, name: str) -> bool:
    """Return whether a name, or a pattern of names, is that of a layer."""
    return layer == name or fnmatchcase(layer, name)
