"""Checks: the numbers of a program's result, and the distance of two results.

A result has parts, each with its own scale: arrays, columns of a table, numbers within
brackets, or single numbers. So a small number counts as much as a large one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._base.errors import UserError
from ..._base.wording import brief
from ..report.changes import scales_of_text

Array = NDArray[Any]
#: The numbers of a result, by the name of a part.
Numbers = dict[str, Array]


class CheckError(Exception):
    """A run gave no result that can be compared; the message is one line."""


class Check:
    """Read the numbers of a program's result, as a check's string says.

    Parameters
    ----------
    text : str
        "file:PATH", "regex:PATTERN" or "python:FILE:FUNCTION".

    Raises
    ------
    UserError
        For any other string.
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
        #: whether it reads files that the program writes
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
        """Return the answer of a run.

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
            parts = {k: np.ravel(x) for k, x in self._read(folder, output).items()}
        except CheckError:
            raise
        except Exception as error:
            raise CheckError(
                f"the check cannot read its numbers: {brief(str(error))}"
            ) from None
        found = {name: _wide(part) for name, part in parts.items()}
        if not any(part.size for part in found.values()):
            raise CheckError("the check must find at least one number; got none")
        if not all(np.isfinite(part).all() for part in found.values()):
            raise CheckError("the result must be finite; got NaN or Inf")
        return found

    def _file(self, folder: str, output: str) -> Numbers:
        path = os.path.join(folder, self._what)
        if not os.path.isfile(path):
            raise CheckError(f"the program must write {self._what}; got no such file")
        if path.endswith((".npy", ".npz")):
            loaded = np.load(path, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"": loaded}
            with loaded:
                return {name: loaded[name] for name in sorted(loaded)}
        with open(path, encoding="utf-8", errors="replace") as file:
            return _parts(scales_of_text(file.read()).values())

    def _regex(self, folder: str, output: str) -> Numbers:
        scales = scales_of_text(output)
        found = []
        for match in self._pattern.finditer(output):
            for i in range(1, match.re.groups + 1) if match.re.groups else (0,):
                if match[i] is not None:
                    start = match.start(i)
                    own = f"at {start}", 0.0
                    found.append((scales.get(start, own)[0], float(match[i])))
        return _parts(found)

    def _python(self, folder: str, output: str) -> Numbers:
        found = self._function(folder, output)
        return found if isinstance(found, dict) else {"": np.asarray(found)}


def _parts(numbers: Iterable[tuple[str, float]]) -> Numbers:
    """Return numbers by the name of their part."""
    found: dict[str, list[float]] = {}
    for name, value in numbers:
        found.setdefault(name, []).append(value)
    return {name: np.array(part) for name, part in found.items()}


def _wide(part: Array) -> Array:
    if part.dtype.kind not in "biufc":
        raise CheckError(f"the check must return numbers; got {part.dtype}")
    return part.astype(np.complex128 if part.dtype.kind == "c" else np.float64)


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

    It is relative to the largest magnitude of the reference's part, or absolute. It is
    infinite if the count of numbers differs.
    """
    shapes = [{k: x.shape for k, x in one.items()} for one in (found, reference)]
    if shapes[0] != shapes[1]:
        return float("inf")
    errors = [_part_distance(found[k], reference[k], absolute) for k in reference]
    return max(errors)


def _part_distance(found: Array, reference: Array, absolute: bool) -> float:
    greatest = float(np.max(np.abs(found - reference), initial=0.0))
    scale = 1.0 if absolute else float(np.max(np.abs(reference), initial=0.0))
    if greatest == 0:
        return 0.0
    return greatest / scale if scale else float("inf")


def digest(found: Numbers) -> str:
    """Return a hash that tells answers apart, to the bit."""
    made = hashlib.sha256()
    for name, part in found.items():
        made.update(f"{name} {part.dtype.str} {part.size} ".encode() + part.tobytes())
    return made.hexdigest()
