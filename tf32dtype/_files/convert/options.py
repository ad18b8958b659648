"""What a conversion is told."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from ..._base.errors import UserError


@dataclass(frozen=True)
class Options:
    """The options of `tf32dtype convert`, but where the output goes."""

    to: str
    scheme: str | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rounding: str = "ties_to_even"
    #: None: what the format's quantize does by itself
    overflow: str | None = None
    #: of block formats; None: the format's own
    scale: str | None = None
    block_size: int | None = None
    #: rows and columns of a scale; None: all of them
    tile: tuple[int | None, int | None] | None = None
    #: of stochastic rounding
    seed: int | None = None

    def record(self) -> dict[str, Any]:
        """For the journal."""
        return asdict(self)

    def patterns(self) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
        """The expressions of both options, as `patterns` returns them."""
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
