"""Checks: the numbers of a program's result, and the distance of two results."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.errors import UserError
from ..._base.wording import brief

Numbers = NDArray[Any]
_NUMBER = re.compile(
    r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|inf|nan)\b", re.I
)


class CheckError(Exception):
    """A run has no answer; the message is one line."""


class Check:
    """What a check's text asks for.

    Parameters
    ----------
    text : str
        "file:PATH", "regex:PATTERN" or "python:FILE:FUNCTION".

    Raises
    ------
    UserError
        For another text.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        kind, colon, self._what = text.partition(":")
        readers: dict[str, Callable[[str, str], Numbers]] = {
            "file": self._file,
            "regex": self._regex,
            "python": self._python,
        }
        if not colon or kind not in readers or not self._what:
            raise UserError(
                "--check must be file:PATH, regex:PATTERN or python:FILE:FUNCTION; got"
                f" {brief(text)}"
            )
        self._read = readers[kind]
        #: it looks at files that the program writes
        self.needs_folder = kind != "regex"
        if kind == "regex":
            try:
                self._pattern = re.compile(self._what, re.MULTILINE)
            except re.error as error:
                raise UserError(
                    f"--check must have a valid pattern; got {brief(text)}: {error}"
                ) from None
        if kind == "python":
            self._function = _function(self._what)

    def numbers(self, folder: str, output: str) -> Numbers:
        """The answer of a run.

        Parameters
        ----------
        folder : str
            Where it ran.
        output : str
            Its standard output.

        Raises
        ------
        CheckError
            If there is none.
        """
        try:
            found = np.ravel(self._read(folder, output))
        except CheckError:
            raise
        except Exception as error:
            raise CheckError(
                f"the check cannot read its numbers: {brief(str(error))}"
            ) from None
        if found.dtype.kind not in "biufc":
            raise CheckError(f"the check must return numbers; got {found.dtype}")
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        found = found.astype(wide)
        if not found.size:
            raise CheckError("the check must find at least one number; got none")
        if not np.isfinite(found).all():
            raise CheckError("the result must be finite; got NaN or Inf")
        return found

    def _file(self, folder: str, output: str) -> Numbers:
        path = os.path.join(folder, self._what)
        if not os.path.isfile(path):
            raise CheckError(f"the program must write {self._what}; got no such file")
        if path.endswith((".npy", ".npz")):
            loaded = np.load(path, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            with loaded:
                return np.concatenate([np.ravel(loaded[x]) for x in sorted(loaded)])
        with open(path, encoding="utf-8", errors="replace") as file:
            return np.array([float(x) for x in _NUMBER.findall(file.read())])

    def _regex(self, folder: str, output: str) -> Numbers:
        found: list[str | None] = []
        for match in self._pattern.finditer(output):
            found += match.groups() or (match.group(),)
        return np.array([float(x) for x in found if x is not None])

    def _python(self, folder: str, output: str) -> Numbers:
        return np.asarray(self._function(folder, output))


def _function(text: str) -> Callable[[str, str], Any]:
    where, colon, name = text.rpartition(":")
    if not colon:
        raise UserError(
            f"--check must be python:FILE:FUNCTION or python:MODULE:FUNCTION; got"
            f" python:{text}"
        )
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location("tf32dtype_check", where)
            assert spec
            assert spec.loader
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(where)
        function: Callable[[str, str], Any] = getattr(module, name)
    except Exception as error:
        raise UserError(
            f"--check python:{text} cannot be loaded: {brief(str(error))}"
        ) from None
    return function


def distance(found: Numbers, reference: Numbers, absolute: bool) -> float:
    """Return the largest error of a number.

    It is relative to the largest magnitude of the reference, or absolute. It is
    infinite if the count of numbers differs.
    """
    if found.shape != reference.shape:
        return float("inf")
    greatest = float(np.max(np.abs(found - reference)))
    scale = 1.0 if absolute else float(np.max(np.abs(reference)))
    if greatest == 0:
        return 0.0
    return greatest / scale if scale else float("inf")


def digest(found: Numbers) -> str:
    """What tells answers apart, to the bit."""
    return hashlib.sha256(found.dtype.str.encode() + found.tobytes()).hexdigest()
