"""Watch the products of a model while it runs, and measure samples of them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from torch import Tensor, nn

from ...._base.arguments import checked_strings
from ...._programs.context import matmul_precision
from ....tensor_core.device import DeviceName
from ..hook.layers import Place
from ..hook.mode import INNER, as_array
from ..hook.recipe import make_recipe
from ..hook.recording import RecordingMode
from .measuring import Array, Gathered
from .rows import LayerRow, ProductShape, Unreached
from .sampling import band_of, samples

#: The calls of a product that are all measured; of later ones, those are whose number
#: is a power of two.
_ALL = 4
#: Shapes and outliers that a row keeps.
_MOST = 6
#: Packages whose lines are not those of a model.
_OURS = ("tf32dtype", "torch")
_OF_MODELS = ("torch.nn",)


@dataclass
class _Product:
    """A product of a layer: those calls that have one key."""

    place: Place
    gathered: dict[str, Gathered]
    calls: int = 0
    multiply_adds: int = 0
    shapes: Counter[ProductShape] = field(default_factory=Counter)
    dtypes: tuple[str, str] = ("", "")
    samples: int = 0
    elements: int = 0
    outliers: Counter[int] = field(default_factory=Counter)
    #: whether the rows of the first operand have been probabilities in each sample
    has_probabilities: bool = True

    @property
    def is_measured(self) -> bool:
        """Whether the call that was counted last is one to measure."""
        return self.calls <= _ALL or not self.calls & (self.calls - 1)

    def count(self, a: Tensor, b: Tensor) -> None:
        """Count a call."""
        stack = a.shape[:-2].numel()
        shape = ProductShape(stack, a.shape[-2], b.shape[-1], a.shape[-1])
        self.calls += 1
        self.multiply_adds += shape.multiply_adds
        self.shapes[shape] += 1
        left, right = (str(x.dtype).removeprefix("torch.") for x in (a, b))
        self.dtypes = (left, right)

    def measure(self, a: Array, b: Array, rng: np.random.Generator) -> None:
        """Measure samples of a call."""
        formats = [
            one.recipe.of(role)
            for one in self.gathered.values()
            for role in (self.place.left, self.place.right)
        ]
        by = 1 if self.is_swapped else 0
        for sample in samples(a, b, by, band_of(formats), rng):
            rest = sample.without_outliers()
            truth, truth_of_rest = sample.truth, rest.truth
            for one in self.gathered.values():
                one.take(sample, rest, truth, truth_of_rest)
            self.elements += int(sample.a.finite.sum()) * int(sample.b.finite.sum())
            self.outliers.update(map(int, sample.outliers))
            self.has_probabilities &= _are_probabilities(sample.a.measured)
        self.samples += 1

    @property
    def is_swapped(self) -> bool:
        """Whether the first operand is the weights: rows name them second."""
        return self.place.left == "weights" and self.place.right != "weights"


#: A layer, what its operands are, and where a product without weights was computed.
_Key = tuple[Place, tuple[str, int] | None]


class Recorder:
    """Watch the products of PyTorch in this thread, and measure samples of them.

    Use it in a ``with`` statement. Programs compute as usual in it: the results are
    PyTorch's own, except that it computes attention and transformer layers in several
    operations, not in one fused kernel.

    Parameters
    ----------
    precisions : iterable of str
        The formats to measure, as in `report`.
    device : str, optional
        The device whose sums are measured.
    model : Module, optional
        The module that names of layers are relative to.
    seed : int
        Chooses the lines that are measured.

    Raises
    ------
    ValueError
        For an unknown name, for none, and for one that the device cannot multiply.
    TypeError
        For names that are not strings.
    """

    def __init__(
        self,
        precisions: Iterable[str],
        *,
        device: DeviceName | None = None,
        model: nn.Module | None = None,
        seed: int = 0,
    ) -> None:
        names = checked_strings(precisions, "precisions")
        if not names:
            raise ValueError("precisions must name at least one format; got none")
        self.recipes = {name: make_recipe(name, device=device) for name in names}
        self._rng = np.random.default_rng(seed)
        self._products: dict[_Key, _Product] = {}
        self._mode = RecordingMode(self._take, model)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self._mode.watch())
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def _take(self, a: Tensor, b: Tensor, place: Place) -> None:
        """Take in a product."""
        line = None
        if not place.is_backward and "weights" not in (place.left, place.right):
            line = _line_of_model()
        key = (place, line)
        found = self._products.get(key)
        if found is None:
            gathered = {
                name: Gathered(recipe, place) for name, recipe in self.recipes.items()
            }
            found = self._products[key] = _Product(place, gathered)
        found.count(a, b)
        if found.is_measured:
            with matmul_precision(None), np.errstate(all="ignore"):
                found.measure(as_array(a), as_array(b), self._rng)

    @property
    def rows(self) -> tuple[LayerRow, ...]:
        """The products so far, in the order of their first calls."""
        whole = sum(one.multiply_adds for one in self._products.values())
        kinds = _kinds(self._products)
        return tuple(
            _row(one, kinds[key], whole) for key, one in self._products.items()
        )

    @property
    def unreached(self) -> tuple[Unreached, ...]:
        """The operations that multiply matrices and were not measured."""
        found = self._mode.unreached.copy()
        if self._mode.inner:
            found[INNER] = self._mode.inner
        return tuple(
            Unreached(name, reason, calls)
            for (name, reason), calls in found.most_common()
        )


def _line_of_model() -> tuple[str, int] | None:
    """Return the file and line of the model that computes."""
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_OF_MODELS) or module.partition(".")[0] not in _OURS:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def _are_probabilities(x: Array) -> bool:
    """Return whether rows are results of a softmax, perhaps of 16 bits."""
    sums = x.sum(axis=1, dtype=np.float64)
    return x.shape[1] > 1 and bool(
        (x >= 0).all() and (np.abs(sums - 1) < 2.0**-7).all()
    )


# -- rows --------------------------------------------------------------------------


def _row(one: _Product, kind: str, whole: int) -> LayerRow:
    place, swapped = one.place, one.is_swapped
    roles, dtypes = (place.left, place.right), one.dtypes
    if swapped:
        roles, dtypes = roles[::-1], dtypes[::-1]
    return LayerRow(
        place.layer,
        kind,
        *roles,
        place.is_backward,
        one.calls,
        one.multiply_adds,
        one.multiply_adds / whole if whole else 0.0,
        dict(one.shapes.most_common(_MOST)),
        dtypes,
        one.samples,
        one.elements,
        tuple(k for k, _ in one.outliers.most_common(_MOST)),
        {name: x.result(swapped) for name, x in one.gathered.items()},
    )


def _kinds(products: dict[_Key, _Product]) -> dict[_Key, str]:
    """Return names of the products of layers that have several; of others ""."""
    layers: dict[str, list[_Key]] = {}
    for key in products:
        layers.setdefault(key[0].layer, []).append(key)
    found: dict[_Key, str] = {}
    for keys in layers.values():
        has_weights = any(
            "weights" in key[0] and not key[0].is_backward for key in keys
        )
        names = [_kind(products[key], has_weights) for key in keys]
        if len(keys) == 1:
            names = [""]
        elif len({*names}) < len(names):
            names = _numbered(names)
        found |= dict(zip(keys, names, strict=True))
    return found


def _kind(one: _Product, has_weights: bool) -> str:
    """Return a name of a product of a layer that multiplies by weights, or not."""
    place = one.place
    roles = {place.left, place.right}
    if place.is_backward:
        if not has_weights:
            return "gradient"
        return "input gradient" if "weights" in roles else "weight gradient"
    if "weights" in roles:
        return "weights"
    if place.left == "probabilities" or (one.has_probabilities and one.samples):
        return "values"
    return "scores"


def _numbered(names: Sequence[str]) -> list[str]:
    """Return names, those that occur several times with a number."""
    several, seen = Counter(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} {seen[name]}" if several[name] > 1 else name)
    return found
