"""Find tensors that belong to codes, such as scales, by their names."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

from .dtypes import KINDS
from .scheme_evidence import Entries, Shape

#: Dtypes of tensors that may be codes: narrow floats, and packed integers with two axes
#: or more.
_NUMBERS = {
    name
    for name, kind in KINDS.items()
    if name.startswith("F") and kind.bits <= 8 and name != "F8_E8M0"
}
_PACKED = {"U8", "I8", "I16", "I32", "U32"}
_FLOATS = {"F32", "BF16", "F16", "F64", "F8_E8M0", "F8_E4M3", "F8_E5M2"}

#: The codes of a module, by the last part of their names.
_CODES = {"weight", "qweight", "q_weight", "codes", "trellis", "B", "w", "kernel"}
#: Their companions in the same module, by the last part of the name.
_FIELDS = re.compile(
    r"(weight_)?(scales?(_inv|_2|_weight)?|absmax|scb|q?zeros?|zero_points?|offset)"
    r"|codebooks?|s|s_channel|s_group|suh|svh|q_(scales?|scale_max|group_size)|g_idx"
    r"|biases|(pre_quant|global|deq)_scale|scale_weight|quant_map",
    re.I,
)
#: Names of companions after the name of the codes or of the weight.
_SUFFIX = re.compile(
    r"scale|scb$|absmax|zero|quant|shift|offset|amax|codebook|g_idx|bias(es)?$|_s$|^s$",
    re.I,
)
_OF_INPUTS = re.compile(r"^(input|output|act)")
#: Suffixes of the names of codes, after the name of the weight.
_OF_CODES = re.compile(r"([._](data|packed|blocks|codes|qdata|quantized))+$")
#: A name that by itself marks a companion.
_COMPANION = re.compile(
    r"(^|[._/])(scales?(_inv|_2|_weight|_max)?|[qg]?_?zeros?|zero_points?|absmax|g_idx"
    r"|scb|codebooks?|biases|amax|shift|offset|quant_map|suh|svh|s_channel|s_group|shape)$",
    re.I,
)


def may_be_codes(kind: str, shape: Shape) -> bool:
    """Return whether a tensor of this dtype may be codes."""
    return kind in _NUMBERS or (kind in _PACKED and len(shape) > 1)


def are_numbers(kind: str, shape: Shape) -> bool:
    """Return whether codes are floats in a matrix, which are valid without scales."""
    return kind in _NUMBERS and len(shape) > 1


def module_of(name: str) -> str:
    """Return the name of the module that has a tensor."""
    return name[: max(name.rfind("."), name.rfind("/"), 0)]


class Companions:
    """The companions of tensors, found by name without a search of all tensors."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._entries)

    @cached_property
    def _fields(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._entries:
            module = module_of(name)
            if _FIELDS.fullmatch(name[len(module) :].lstrip("./")):
                found.setdefault(module, []).append(name)
        return found

    def of(self, name: str, weight: str = "") -> list[str]:
        """Return the tensors that belong to codes, or to the weight of these codes.

        Parameters
        ----------
        name : str
            The tensor of codes.
        weight : str
            The name of the weight, if it is known.
        """
        module = module_of(name)
        parameter = name[len(module) :].lstrip("./")
        weight = weight or _OF_CODES.sub("", name)
        found: list[str] = []
        if parameter in _CODES:
            found += self._fields.get(module, [])
        for stem in dict.fromkeys((name, weight)):
            found += self._after(stem, self._entries[name])
        return [x for x in dict.fromkeys(found) if x not in (name, weight)]

    def near(self, name: str, weight: str = "") -> set[str]:
        """Return the companions in the codes' module, or named after the codes."""
        module = module_of(name)
        return {
            x
            for x in self.of(name, weight)
            if module_of(x) == module or x.startswith(name)
        }

    def is_companion(self, name: str) -> bool:
        """Return whether the name of a tensor marks it as a companion of codes."""
        return _COMPANION.search(name) is not None

    def _after(self, stem: str, codes: tuple[str, Shape]) -> Iterable[str]:
        names = self._sorted
        for divider in "._/":
            prefix = stem + divider
            at = bisect_left(names, prefix)
            while at < len(names) and names[at].startswith(prefix):
                rest = names[at][len(prefix) :]
                if not _OF_INPUTS.search(rest) and (
                    _SUFFIX.search(rest) or self._fits(names[at], codes[1])
                ):
                    yield names[at]
                at += 1

    def _fits(self, name: str, codes: Shape) -> bool:
        """Return whether a tensor has a shape that scales of codes may have."""
        kind, shape = self._entries[name]
        if kind not in _FLOATS or len(codes) < 2 or len(shape) != len(codes):
            return False
        return shape != codes and all(
            x and y % x == 0 for x, y in zip(shape, codes, strict=True)
        )
