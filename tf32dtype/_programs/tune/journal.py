"""Keep the results of trials in a journal next to the plan, which `--resume` reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ..._base.errors import UserError
from ..._base.journal import Journal

SUFFIX = ".journal"


class Trials:
    """Records of trials by their keys.

    Parameters
    ----------
    path : str
        The journal.
    resumes : bool
        Use the records of an earlier search; otherwise remove them.
    tell : callable
        Given a line for the user.
    option : str
        The name of the option `resumes`, for errors.

    Raises
    ------
    UserError
        If there is nothing to resume; and as `Journal`.
    """

    def __init__(
        self,
        path: str,
        resumes: bool,
        tell: Callable[[str], None],
        option: str = "--resume",
    ) -> None:
        if resumes and not os.path.lexists(path):
            raise UserError(f"{option} must find a journal; got none at {path}")
        self._journal = Journal(path, "tune")
        if self._journal.is_damaged:
            tell("begins again, since its journal is damaged")
        if not resumes or self._journal.is_damaged:
            self._journal.begin()
        self._records = {record["key"]: record for record in self._journal.records}

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the record of a key, or None."""
        return self._records.get(key)

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record."""
        self._records[key] = {"key": key, **record}
        self._journal.write(self._records[key])

    def close(self) -> None:
        """Release the journal for other processes; remove it if nothing is in it."""
        (self._journal.close if self._records else self._journal.remove)()
