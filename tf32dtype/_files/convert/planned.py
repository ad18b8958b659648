"""Convert each weight of a checkpoint to the format that a plan has for its layer.

Weights with scales are stored as compressed-tensors, whose readers are vllm and
transformers. FP8 weights have the scales of the products that a plan describes, except
for magnitudes below 2**-117 in a whole row: the scales of products are then limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._base.errors import UserError
from ..._base.text import printable
from ..._base.wording import did_you_mean, joined
from ..._matmul.precisions import find_precision
from ...blocks.formats import formats as block_formats
from ...blocks.tiles import Tile
from ..layer_plans import LayerPlan, PlannedLayer
from ..model_parts import layer_of, part_of
from ..readers import Tensor, TensorFile
from .options import Options
from .plan import Choice, Item, is_floating
from .quantization_config import activations_of, mixed_config, quantization_config
from .targets import Scaled, Target, find

SCHEME = "compressed-tensors"
#: The tiles of an FP8 weight by the name of its scales in a product, whose second
#: operand is the transposed weight.
_TILES: dict[str, Tile] = {
    "row": (1, None),
    "tensor": (None, None),
    "block": (1, 128),
    "tile": (128, 128),
}
#: The formats of activations that readers do not round.
_WIDE = ("f32", "bf16", "f16")
#: The parts of a model that a pattern does not choose, since they are not multiplied.
_NOT_MULTIPLIED = ("embedding", "norm")
#: Names that an error lists.
_MOST = 5


@dataclass(frozen=True)
class Planned:
    """A plan of layers as targets of weights.

    Attributes
    ----------
    weights_only : bool
        Whether the formats of activations are left out.
    """

    plan: LayerPlan
    weights_only: bool = False

    def choose(self, source: TensorFile, options: Options) -> Choice:
        """Choose the weights of the layers, with their targets.

        Raises
        ------
        UserError
            For layers that compressed-tensors cannot store; for a checkpoint that has
            scales already, or no layer of the plan.
        """
        _, exclude = options.patterns()
        chosen: dict[str, Target] = {}
        left_out: dict[str, str] = {}
        refused: dict[str, list[str]] = {}
        layers: dict[str, None] = {}
        for planned in (*self.plan.layers, self.plan.default):
            if why := self._not_stored(planned):
                refused.setdefault(why, []).append(planned.name)
        for tensor in source.values():
            if tensor.group is not None:
                raise UserError(
                    f"--plan must have an input without scales; {tensor.name} has some"
                )
            name = tensor.name
            layer = _split(name)[0]
            layers[layer] = None
            if not is_floating(tensor) or len(tensor.shape) < 2:
                continue
            if any(pattern.search(name) for pattern in exclude):
                continue
            planned = self.plan.find(layer)
            part = part_of(name)
            if not planned.formats:
                continue
            if part in _NOT_MULTIPLIED and planned.name != layer:
                left_out[name] = part
                continue
            try:
                target = self._target(tensor, planned)
            except ValueError as error:
                refused.setdefault(str(error), []).append(layer or name)
                continue
            if target is not None and target.label != tensor.label:
                chosen[name] = target
        if refused:
            raise UserError(
                "the plan cannot be stored as compressed-tensors: "
                + ". ".join(f"{brief_list(x)}: {why}" for why, x in refused.items())
            )
        absent = tuple(self._absent(layers))
        if not chosen:
            raise UserError(_nothing(source, absent, layers))
        return Choice(chosen, left_out, absent)

    def _target(self, tensor: Tensor, planned: PlannedLayer) -> Target | None:
        """Return the target of a weight; None: it stays as it is.

        Raises
        ------
        ValueError
            If compressed-tensors cannot store it, or cannot round its activations.
        """
        weights, inputs = (planned.format_of(x) for x in ("weights", "activations"))
        target = _weight_target(weights)
        stores = isinstance(target, Scaled)
        if not self.weights_only:
            self._inputs(inputs, stores, weights)
        if isinstance(target, Scaled):
            parameter = _split(tensor.name)[1]
            if parameter != "weight":
                raise ValueError(
                    f"{weights} weights must be the parameter weight of a linear layer;"
                    f" got {parameter}"
                )
            if len(tensor.shape) != 2:
                raise ValueError(
                    f"{weights} weights must be matrices; got shape {tensor.shape}"
                )
            try:
                target.outlines(tensor.name, tensor.shape)
            except ValueError as error:
                raise ValueError(str(error).rpartition(": ")[2]) from None
        return target

    def _not_stored(self, planned: PlannedLayer) -> str:
        """Return why formats of other operands cannot be stored; "" if they can."""
        inputs = planned.format_of("activations")
        for role in ("gradients", "kv_cache", "probabilities"):
            given = getattr(planned, role)
            if self.weights_only or given is None or _parsed(given) == _parsed(inputs):
                continue
            return (
                f"{role} must have the format of activations, {inputs}; got {given}."
                " Use --weights-only to leave them out"
            )
        return ""

    def _inputs(self, text: str, stores: bool, weights: str) -> Any:
        """Return the arguments of activations; None: they are not rounded."""
        name, scale = _parsed(text)
        if name in _WIDE or (self.weights_only and stores):
            return None
        if not stores:
            raise ValueError(
                f"{text} activations must have weights with scales; got {weights}. Use"
                " --weights-only to leave activations out"
            )
        found = activations_of(name, scale)
        if found is None:
            why = "must have a calibrated scale" if name == "nvfp4" else "do not exist"
            raise ValueError(
                f"{text} activations {why} in compressed-tensors. Use --weights-only to"
                " leave activations out"
            )
        return found

    def _absent(self, layers: Mapping[str, None]) -> Iterator[str]:
        """Yield the names of the plan that no layer of the input has."""
        for planned in self.plan.layers:
            if planned.formats and not any(map(planned.matches, layers)):
                yield planned.name

    def config(self, items: Sequence[Item]) -> dict[str, Any] | None:
        """Return the `quantization_config` of the output; None: it needs none."""
        groups: dict[str, tuple[Scaled, Any, list[str]]] = {}
        ignored = []
        for item in items:
            name = item.tensor.name
            layer = _split(name)[0]
            if isinstance(item.target, Scaled):
                planned = self.plan.find(layer)
                weights, inputs = map(planned.format_of, ("weights", "activations"))
                arguments = self._inputs(inputs, True, weights)
                key = f"{item.target.label} {item.target.tile} {arguments}"
                groups.setdefault(key, (item.target, arguments, []))[2].append(layer)
            elif len(item.tensor.shape) >= 2:
                ignored.append(layer_of(name))
        return mixed_config([*groups.values()], ignored)


def _parsed(text: str) -> tuple[str, str]:
    """Return the short name of a format, and what shares a scale; "" if not said."""
    name, colon, scale = text.partition(":")
    found: str
    if name in block_formats:
        found, has_scale = block_formats[name].name, False
    else:
        found = find_precision(name).short
        has_scale = found.startswith("fp8")
    if colon and not (has_scale and scale in _TILES):
        names = joined([f"{found}:{x}" for x in _TILES] if has_scale else [found])
        raise ValueError(f"format must be {names}; got {text}")
    return found, (scale or "tensor") if has_scale else ""


def _weight_target(text: str) -> Target | None:
    """Return the target of weights in a format; None: they stay as they are.

    Raises
    ------
    ValueError
        If compressed-tensors cannot store them.
    """
    name, scale = _parsed(text)
    if name == "f32":
        return None
    if name in _WIDE:
        return find(Options(name))
    if name not in block_formats and not scale:
        raise ValueError(f"{text} is a precision of products, which no weight has")
    try:
        if name in block_formats:
            target = find(Options(name, SCHEME))
        else:
            target = find(Options(name, SCHEME, tile=_TILES[scale]))
    except UserError as error:
        raise ValueError(f"{text}: {str(error).rpartition(': ')[2]}") from None
    assert isinstance(target, Scaled)
    if quantization_config(target, ()) is None:
        raise ValueError(f"{text}: the scheme does not have this format")
    return target


def _split(name: str) -> tuple[str, str]:
    """Return the layer and the parameter of a tensor."""
    layer, _, parameter = name.rpartition(".")
    return layer, parameter


def brief_list(names: Sequence[str]) -> str:
    """Return some names, and how many more there are."""
    more = len(names) - _MOST
    shown = ", ".join(map(printable, names[:_MOST]))
    return f"{shown} and {more} more" if more > 0 else shown


def _nothing(
    source: TensorFile, absent: Sequence[str], layers: Mapping[str, None]
) -> str:
    text = f"{source.paths[0]} must have a weight that the plan gives another format"
    if not absent:
        return text
    fix = did_you_mean(absent[0], filter(None, layers))
    return f"{text}; it has none of {brief_list(absent)}" + (f". {fix}" if fix else "")
