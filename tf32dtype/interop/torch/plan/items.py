"""The layers whose formats are searched, as one run of the model shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from ...._base.wording import brief
from ..hook.layers import Place
from ..hook.mode import ProductMode
from ..hook.recording import RecordingMode
from ..layer_report.running import copied
from ..names import absent, is_one_of
from .apply import Forward
from .plan import Plan

#: Layers that are tuned together: names, or patterns of names.
Groups = Iterable[str | Iterable[str]]


@dataclass
class Layer:
    """A layer that multiplies matrices."""

    name: str
    multiply_adds: int = 0
    #: numbers in its weights; 0: it has none
    weights: int = 0
    #: the bits of an unrounded weight, or of another operand if it has no weights
    width: int = 32


@dataclass
class Item:
    """Layers that have the same formats."""

    layers: list[Layer] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the layers."""
        return [x.name for x in self.layers]

    @property
    def multiply_adds(self) -> int:
        """The multiply-adds of the run."""
        return sum(x.multiply_adds for x in self.layers)

    @property
    def weights(self) -> int:
        """The numbers in all weights."""
        return sum(x.weights for x in self.layers)

    @property
    def unrounded_bits(self) -> int:
        """The bits of all weights that are not rounded."""
        return sum(x.weights * x.width for x in self.layers)


class Recording(Forward):
    """A forward function that notes the layers, and the arguments of the first call."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__(model, Plan())
        self.layers: dict[str, Layer] = {}
        self.call: Any = None
        self._modules = dict(model.named_modules())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is None:
            self.call = copied((args, kwargs))  # a cache changes in the call
        return super().__call__(*args, **kwargs)

    def mode(self) -> ProductMode:
        return RecordingMode(self._take, self.model)

    def _take(self, a: Tensor, b: Tensor, place: Place) -> None:
        if place.is_backward:
            return
        layer = self.layers.setdefault(place.layer, Layer(place.layer))
        layer.multiply_adds += a.numel() * b.shape[-1]
        weight = {place.left: a, place.right: b}.get("weights")
        layer.width = 8 * (a if weight is None else weight).element_size()
        if weight is not None:
            own = self._modules.get(place.layer, nn.Module())
            sizes = [x.numel() for x in own.parameters(recurse=False) if x.ndim > 1]
            layer.weights = max(layer.weights, sum(sizes) or weight.numel())


def find_items(
    layers: Iterable[Layer], groups: Groups, skip: Sequence[str]
) -> list[Item]:
    """Return the items of layers, in the order of their first run.

    Raises
    ------
    ValueError
        For a name of a group that matches no layer, or a layer in two groups; if
        nothing is left.
    """
    rows = [[one] if isinstance(one, str) else [*one] for one in groups]
    found = [x for x in layers if not is_one_of(x.name, skip)]
    if not found:
        raise ValueError(
            "metric must call the model, and its layers must multiply matrices; got no"
            " layer that is not skipped. Tune the module that metric calls"
        )
    known = [layer.name for layer in found]
    for name in absent((one for row in rows for one in row), known):
        raise ValueError(
            f"groups must name layers that multiply; got {brief(name)}. They are"
            f" {', '.join(map(brief, known[:5]))}{', ...' * (len(known) > 5)}"
        )
    items: dict[Any, Item] = {}
    for layer in found:
        of = [i for i, row in enumerate(rows) if is_one_of(layer.name, row)]
        if len(of) > 1:
            raise ValueError(
                f"a layer must be in one of groups; got {brief(layer.name)} in two"
            )
        items.setdefault(of[0] if of else layer.name, Item()).layers.append(layer)
    return [*items.values()]
