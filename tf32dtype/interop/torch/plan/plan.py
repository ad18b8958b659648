"""Plans: the formats of each layer of a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

from ...._base.arguments import checked_flag, checked_path
from ...._base.text import Table, counted, number
from ...._base.whole_files import write_whole
from ...._base.wording import brief, one_of
from ...._files.layer_plans import (
    FORMATS,
    NONE,
    Fact,
    LayerPlan,
    PlannedLayer,
    check_facts,
    layer_plan_text,
    read_layer_plan,
)
from ....tensor_core.look_up import find_device
from ..hook.recipe import Recipe, make_recipe

#: The formats of a layer as users give them.
GivenFormats = str | Mapping[str, str] | PlannedLayer | None
#: Rows that `repr` shows.
_MOST = 60


class Plan(LayerPlan):
    """Formats for each layer of a PyTorch model.

    Parameters
    ----------
    layers : mapping
        Names of layers, as in `named_modules`, with their formats. In a name, ``*``
        matches any characters; the first name that matches a layer counts. Formats are
        a precision of `matmul_precision`, or a dictionary of its arguments `precision`,
        `weights`, `activations`, `gradients`, `kv_cache` and `probabilities`. With
        None, PyTorch computes the layer as usual.
    default : str or dict, optional
        The formats of all other layers.
    device, instruction : str, optional
        As in `matmul_precision`, for all layers.
    final : bool
        Whether the search that found the plan has ended.
    found : mapping, optional
        Facts about how the plan was found: strings, numbers and booleans.

    Attributes
    ----------
    layers : tuple
        The layers in the plan's order, with their name and formats as attributes.
    default, device, instruction, final, found
        As given.

    Raises
    ------
    ValueError
        For an unknown format, and for formats that the device cannot multiply; the
        message names the layer. For facts of other types.
    TypeError
        For other arguments of the wrong type.

    See Also
    --------
    tune : Find a plan.
    apply : Make a model run in a plan.
    matmul_precision : Run any model in a plan, also its backward pass.

    Examples
    --------
    >>> from tf32dtype.interop import torch as tt
    >>> plan = tt.Plan({"head": None, "blocks.*": "fp8_e4m3:row"}, default="bf16")
    >>> print(plan.recipe("blocks.3.up"), plan.recipe("embed"), plan.recipe("head"))
    fp8_e4m3:row bf16 None
    """

    #: recipes by entries of the plan, and by the names of layers that ran
    _recipes: dict[PlannedLayer, Recipe | None]
    _of_layers: dict[str, Recipe | None]

    def __init__(
        self,
        layers: Mapping[str, GivenFormats] | None = None,
        *,
        default: GivenFormats = None,
        device: str | None = None,
        instruction: str | None = None,
        final: bool = True,
        found: Mapping[str, Fact] | None = None,
    ) -> None:
        layers = layers or {}
        if not isinstance(layers, Mapping):
            raise TypeError(f"layers must be a dictionary; got {brief(layers)}")
        found = dict(found or {})
        check_facts(found)
        self._take(
            LayerPlan(
                tuple(_planned(name, given) for name, given in layers.items()),
                _planned("*", default, "default"),
                device,
                instruction,
                bool(checked_flag(final, "final")),
                found,
            )
        )

    def _take(self, plan: LayerPlan) -> None:
        if plan.device is not None:
            find_device(plan.device)
        super().__init__(**vars(plan))
        recipes = [
            self._checked(layer, f"layer {brief(layer.name)}") for layer in plan.layers
        ]
        recipes.append(self._checked(plan.default, "default"))
        known = dict(zip((*plan.layers, plan.default), recipes, strict=True))
        object.__setattr__(self, "_recipes", known)
        object.__setattr__(self, "_of_layers", {})

    def _checked(self, layer: PlannedLayer, where: str) -> Recipe | None:
        formats: dict[str, Any] = layer.formats
        if not formats:
            return None
        formats |= {"device": self.device, "instruction": self.instruction}
        try:
            return make_recipe(formats.pop("precision", None), **formats)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None

    def recipe(self, layer: str) -> Recipe | None:
        """Return the formats of a layer's operands; None: PyTorch computes as usual.

        Parameters
        ----------
        layer : str
            The layer's name in `named_modules`.
        """
        if layer not in self._of_layers:
            self._of_layers[layer] = self._recipes[self.find(layer)]
        return self._of_layers[layer]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a TOML file.

        Parameters
        ----------
        path : path
            The file, which is replaced as a whole.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_whole(checked_path(path), layer_plan_text(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a plan from a TOML file.

        Parameters
        ----------
        path : path
            A file that `save` wrote, or one written by hand.

        Raises
        ------
        ValueError
            If the file cannot be read or is not a plan; the message names the key.
        """
        name = checked_path(path)
        plan = cls.__new__(cls)
        read = read_layer_plan(name)
        try:
            plan._take(read)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        return plan

    def print(self) -> None:
        """Print the plan as a table."""
        rows = [self._row(layer) for layer in (*self.layers, self.default)]
        rows[-1][0] = "all others"
        self._table(rows).print()

    def _row(self, layer: PlannedLayer) -> list[str]:
        recipe = self._recipes[layer]
        if recipe is None:
            return [layer.name, NONE, NONE, "", ""]
        bits = number(recipe.weights.bits, 4)
        formats = [str(recipe.weights), str(recipe.activations)]
        return [layer.name, *formats, ", ".join(recipe.others), bits]

    def _table(self, rows: list[list[str]]) -> Table:
        header = ["layer", "weights", "activations", "others", "bits per weight"]
        if not any(row[3] for row in rows):
            del header[3]
            rows = [[*row[:3], *row[4:]] for row in rows]
        return Table(self._title(), header, rows)

    def _title(self) -> str:
        device = f", on {self.device}" if self.device else ""
        state = "" if self.final else ", not final"
        return f"plan of {counted(len(self.layers), 'layer')}{device}{state}"

    def __repr__(self) -> str:
        layers = [*self.layers[:_MOST], self.default]
        rows = [" ".join(filter(None, self._row(layer)[:4])) for layer in layers]
        rows[-1] = rows[-1].replace("*", "all others", 1)
        if (more := len(self.layers) - _MOST) > 0:
            rows.insert(-1, f"... and {more} more")
        return f"<{self._title()}: {'; '.join(rows)}>"

    def __hash__(self) -> int:
        return hash((self.layers, self.default, self.device, self.instruction))

    def __reduce__(self) -> Any:
        return _again, tuple(getattr(self, x) for x in LayerPlan.__dataclass_fields__)


def _again(*values: Any) -> Plan:
    """Return a plan that was pickled."""
    plan = Plan.__new__(Plan)
    plan._take(LayerPlan(*values))
    return plan


def _planned(name: str, given: GivenFormats, where: str = "") -> PlannedLayer:
    where = where or f"layer {brief(name)}"
    if not isinstance(name, str):
        raise TypeError(f"names of layers must be strings; got {brief(name)}")
    if isinstance(given, PlannedLayer):
        given = given.formats
    if given is None or given == NONE:
        return PlannedLayer(name)
    if isinstance(given, str):
        return PlannedLayer(name, given)
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{where} must have a format, a dictionary of formats, or None; got"
            f" {brief(given)}"
        )
    for key, value in given.items():
        if key not in FORMATS:
            raise ValueError(f"{where}: {one_of('key', key, FORMATS)}")
        if not isinstance(value, str):
            raise TypeError(f"{where}: {key} must be a string; got {brief(value)}")
    return PlannedLayer(name, **given)


def checked_plan(plan: Plan | str | os.PathLike[str]) -> Plan:
    """Return a plan, which may be given by the path of its file.

    Raises
    ------
    TypeError
        For anything else.
    ValueError
        As `Plan.load`.
    """
    if isinstance(plan, Plan):
        return plan
    if not isinstance(plan, str | os.PathLike):
        raise TypeError(f"plan must be a Plan or the path of one; got {brief(plan)}")
    return Plan.load(plan)
