"""The options of a conversion."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from ..._base.errors import UserError


@dataclass(frozen=True)
class Options:
    """The options of `tf32dtype convert`, except the output path."""

    #: the format; empty with a plan
    to: str
    scheme: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rounding: str = "ties_to_even"
    #: how to treat values out of range; None for the default of the format's quantize
    overflow: str | None = None
    #: the scale rule of a block format; None for the format's default
    scale: str | None = None
    block_size: int | None = None
    #: the rows and columns that share a scale; None in a place for all of them
    tile: tuple[int | None, int | None] | None = None
    #: the seed of stochastic rounding
    seed: int | None = None
    #: the text of a plan of layers, which then replaces the format
    plan: str = ""
    #: whether the formats of activations in the plan are left out
    weights_only: bool = False

    def record(self) -> dict[str, Any]:
        """Return the options as a dictionary for the journal."""
        return asdict(self)

    def patterns(self) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
        """Return the compiled expressions of `--include` and `--exclude`."""
        return patterns(self.include, self.exclude)


def patterns(
    include: tuple[str, ...], exclude: tuple[str, ...]
) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
    """Compile the expressions of the options `--include` and `--exclude`.

    Raises
    ------
    UserError
        If one of them is not a regular expression.
    """
    return _compiled("include", include), _compiled("exclude", exclude)


def _compiled(option: str, expressions: tuple[str, ...]) -> list[re.Pattern[str]]:
    found = []
    for expression in expressions:
        try:
            found.append(re.compile(expression))
        except re.error as error:
            raise UserError(
                f"--{option} must be a regular expression; got {expression}: {error}"
            ) from None
    return found
