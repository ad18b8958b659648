"""The errors of a model's outputs if only one group of layers is rounded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from ...._base.arguments import checked_strings
from ...._base.text import counted, progress
from ...._base.wording import brief, did_you_mean
from ...._measures.error_measures import snr_db
from ..hook.mode import ProductMode
from ..hook.recipe import Recipe
from ..names import absent, is_one_of
from .rows import WHOLE, GroupRow, LayerRow
from .running import Outputs, Runs, change, check

#: Groups that are made at most.
MOST_GROUPS = 64
#: Seconds from which on an estimate is told.
_PATIENCE = 5


@dataclass
class Sensitivities:
    """The outputs' errors, in dB.

    Attributes
    ----------
    groups : dict
        The layers of each group.
    whole : dict
        The SNR of the outputs with all layers rounded, by precision.
    by_group : dict
        The same with one group rounded, by group and precision.
    failures : dict
        The errors of runs that failed, by group ("": all layers) and precision.
    estimated_seconds : float or None
        How long the runs of single groups were expected to take.
    is_partial : bool
        Whether Ctrl-C has ended the runs.
    """

    groups: dict[str, tuple[str, ...]]
    whole: dict[str, float] = field(default_factory=dict)
    by_group: dict[tuple[str, str], float] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    estimated_seconds: float | None = None
    is_partial: bool = False

    def rows(self, rows: Sequence[LayerRow]) -> tuple[GroupRow, ...]:
        """Return the rows of the groups, given those of the layers."""
        precisions = [*dict.fromkeys(name for row in rows for name in row.errors)]
        return tuple(
            GroupRow(
                name,
                layers,
                sum(row.share for row in rows if row.layer in layers),
                {
                    x: self.by_group[name, x]
                    for x in precisions
                    if (name, x) in self.by_group
                },
            )
            for name, layers in self.groups.items()
        )


def groups_of(
    layers: Iterable[str],
    given: Mapping[str, Iterable[str] | str] | None = None,
    most: int = MOST_GROUPS,
) -> dict[str, tuple[str, ...]]:
    """Return groups of layers.

    Parameters
    ----------
    layers : iterable of str
        The layers that multiply, in their order.
    given : mapping, optional
        Patterns of names of layers, by the group's name; ``*`` matches any characters.
        None: each layer is a group. If these are more than `most`, layers are a group
        whose names begin with the same modules, or that follow each other.

    Raises
    ------
    ValueError
        For a pattern that no layer matches.
    """
    names = [*dict.fromkeys(layers)]
    if given is not None:
        return _given(names, given)
    if len(names) <= most:
        return {name or WHOLE: (name,) for name in names}
    deepest = max(name.count(".") for name in names)
    for depth in range(deepest, 0, -1):
        found: dict[str, list[str]] = {}
        for name in names:
            found.setdefault(".".join(name.split(".")[:depth]), []).append(name)
        if len(found) <= most:
            return _named(found.values(), found)
    size = -(-len(names) // most)
    pieces = [names[i : i + size] for i in range(0, len(names), size)]
    return _named(pieces, [f"{piece[0]} ... {piece[-1]}" for piece in pieces])


def _named(
    pieces: Iterable[Sequence[str]], names: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    return {
        piece[0] if len(piece) == 1 else name: tuple(piece)
        for name, piece in zip(names, pieces, strict=True)
    }


def _given(
    names: Sequence[str], given: Mapping[str, Iterable[str] | str]
) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping) or not given:
        raise ValueError(
            "groups must be a dict of patterns of names of layers, by the group's"
            f" name; got {brief(given)}"
        )
    found = {}
    for group, some in given.items():
        patterns = checked_strings(some, f"groups[{group!r}]")
        for one in absent(patterns, names):
            raise ValueError(
                f"groups[{group!r}] must match layers that multiply matrices; got"
                f" {brief(one)}. {did_you_mean(one, names)}".rstrip(" .")
            )
        found[str(group)] = tuple(x for x in names if is_one_of(x, patterns))
    return found


def measure_outputs(
    runs: Runs,
    recipes: Mapping[str, Recipe],
    groups: dict[str, tuple[str, ...]],
    quiet: bool,
) -> Sensitivities:
    """Run a model with all layers rounded, and with only one group of them.

    Ctrl-C ends the runs; the result is marked.
    """
    found = Sensitivities(groups)
    several = {name: group for name, group in groups.items() if len(groups) > 1}
    total = 1 + len(recipes) * (1 + len(several))
    try:
        with progress(not quiet, "Rounding layers", total, sys.stderr) as advance:
            _measure(found, several, runs, recipes, quiet, advance)
    except KeyboardInterrupt:
        found.is_partial = True
    if len(groups) == 1:
        [only] = groups
        found.by_group = {(only, name): snr for name, snr in found.whole.items()}
    return found


def _measure(
    found: Sensitivities,
    groups: Mapping[str, tuple[str, ...]],
    runs: Runs,
    recipes: Mapping[str, Recipe],
    quiet: bool,
    advance: Callable[[], None],
) -> None:
    everything = frozenset(layer for group in found.groups.values() for layer in group)
    began = perf_counter()
    usual = _run(runs, None, frozenset())
    check(usual)
    plain = perf_counter() - began
    advance()
    seconds = 0.0
    for name, recipe in recipes.items():
        began = perf_counter()
        snr = _snr(found, ("", name), runs, recipe, everything, usual)
        found.whole[name] = snr
        # All groups together take as long as this run beyond the plain products.
        took = perf_counter() - began
        seconds += len(groups) * plain + max(took - plain, 0)
        advance()
    found.estimated_seconds = seconds if groups else 0.0
    if not quiet and seconds > _PATIENCE:
        count = counted(len(groups) * len(recipes), "time")
        print(
            f"tf32dtype: runs the model {count}, about {seconds:.0f} s; Ctrl-C leaves"
            " the rest out",
            file=sys.stderr,
        )
    for name, recipe in recipes.items():
        for group, layers in groups.items():
            found.by_group[group, name] = _snr(
                found, (group, name), runs, recipe, frozenset(layers), usual
            )
            advance()


def _snr(
    found: Sensitivities,
    key: tuple[str, str],
    runs: Runs,
    recipe: Recipe,
    layers: frozenset[str],
    usual: Sequence[Outputs],
) -> float:
    try:
        outputs = _run(runs, recipe, layers)
    except ValueError as error:
        found.failures[key] = str(error)
        return float("-inf")
    return snr_db(*change(outputs, usual))


def _run(runs: Runs, recipe: Recipe | None, layers: frozenset[str]) -> list[Outputs]:
    """Return the outputs with some layers rounded."""
    mode = ProductMode(lambda layer: recipe if layer in layers else None, runs.model)
    with mode.watch():
        return runs.outputs()
