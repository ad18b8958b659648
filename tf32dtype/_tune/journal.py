"""What trials came to, in a file beside the plan: a search that was cut off goes on."""

from __future__ import annotations

import json
import os
from typing import Any

from .._measures import UserError


class Journal:
    """Lines of JSON, each a key and a record.

    Parameters
    ----------
    path : str
        The file.
    resumes : bool
        Read what is there; else it begins anew.
    """

    def __init__(self, path: str, resumes: bool) -> None:
        self.path = path
        self._records: dict[str, dict[str, Any]] = {}
        if resumes:
            self._read()
        elif os.path.exists(path):
            os.unlink(path)

    def _read(self) -> None:
        try:
            with open(self.path, encoding="utf-8") as file:
                lines = file.read().split("\n")
        except OSError as error:
            raise UserError(
                f"nothing to resume: {self.path}: {error.strerror}"
            ) from None
        for line in lines:
            try:
                record = json.loads(line)
                self._records[record.pop("key")] = record
            except (ValueError, KeyError, AttributeError):
                continue  # a line that was cut off

    def find(self, key: str) -> dict[str, Any] | None:
        """The record of a key; None: there is none."""
        return self._records.get(key)

    def write(self, key: str, record: dict[str, Any]) -> None:
        """Keep a record."""
        self._records[key] = record
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, **record}) + "\n")
