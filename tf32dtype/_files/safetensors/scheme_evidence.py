"""Evidence about weights other than names, dtypes and shapes of tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
#: The name of a dtype and a shape.
Form = tuple[str, Shape]
#: The names of dtypes and the shapes of the tensors of a file.
Entries = Mapping[str, Form]
Metadata = Mapping[str, str]

#: The tensor in which ComfyUI describes the quantization of a module, and the metadata
#: key in which ComfyUI describes all modules.
MARKER = "comfy_quant"
MARKERS_KEY = "_quantization_metadata"
#: The marker of a module without a marker, if other modules have markers.
UNMARKED = "nothing"
#: Keys of a marker that do not change the layout of a weight.
_HARMLESS = {"format", "full_precision_matrix_mult", "orig_dtype", "orig_shape"}
#: The largest sizes of a tensor that is read as evidence, and of config.json, in bytes.
_MOST_BYTES, _MOST_CONFIG = 1 << 12, 1 << 24


@dataclass(frozen=True)
class Evidence:
    """The tensors of a checkpoint without their values, and facts about them."""

    entries: Entries
    metadata: Metadata = field(default_factory=dict)
    #: a function that returns the values of a tensor
    get: Callable[[str], NDArray[Any]] | None = None
    #: the object in config.json
    config: Mapping[str, Any] = field(default_factory=dict)

    def numbers(self, name: str) -> NDArray[Any] | None:
        """Return the values of a small tensor; None if it is missing or not small."""
        kind, shape = self.entries.get(name, ("", ()))
        if self.get is None or not kind or np.prod(shape, dtype=float) > _MOST_BYTES:
            return None
        return self.get(name)

    def marker(self, module: str) -> str | None:
        """Return the format of the weight of a module in the markers of ComfyUI.

        Return None if the checkpoint has no markers. Return `UNMARKED` if it has
        markers, but none for this module.
        """
        name = f"{module}.{MARKER}" if module else MARKER
        if name in self.entries:
            numbers = self.numbers(name)
            text = b"" if numbers is None else numbers.tobytes()
            return _format_of(parsed(text.decode(errors="replace")), text)
        if module in self._marked:
            return _format_of(self._marked[module], self._marked[module])
        return UNMARKED if self._has_markers else None

    @cached_property
    def _has_markers(self) -> bool:
        return MARKERS_KEY in self.metadata or any(
            x == MARKER or x.endswith(f".{MARKER}") for x in self.entries
        )

    @cached_property
    def _marked(self) -> Mapping[str, Any]:
        return _object(_object(parsed(self.metadata.get(MARKERS_KEY))).get("layers"))

    @cached_property
    def quantization(self) -> Mapping[str, Any]:
        """The object in config.json that transformers and vllm read."""
        inner = _object(self.config.get("text_config"))
        found = self.config.get("quantization_config", inner.get("quantization_config"))
        return _object(found)

    @cached_property
    def method(self) -> str | None:
        """The `quant_method` of config.json."""
        method = self.quantization.get("quant_method")
        return method if isinstance(method, str) else None

    def mlx(self, module: str) -> Mapping[str, Any]:
        """Return the facts of a module in MLX's config.json: bits, group_size, mode."""
        given = _object(self.config.get("quantization", self.quantization))
        return {**given, **_object(given.get(module))}


def config_beside(path: str) -> Mapping[str, Any]:
    """Return the object in the config.json of a folder; empty if it is missing."""
    name = os.path.join(os.path.dirname(os.path.abspath(path)), "config.json")
    try:
        with open(name, "rb") as file:
            found = parsed(file.read(_MOST_CONFIG).decode(errors="replace"))
    except OSError:
        return {}
    return _object(found)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def parsed(text: str | None) -> Any:
    """Return the value of a JSON string; None if the string is not valid."""
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _format_of(said: object, text: object) -> str:
    """Return the format that a marker names, or the marker if it has other keys."""
    if isinstance(said, dict) and said.keys() <= _HARMLESS:
        return str(said.get("format"))
    return str(text)
