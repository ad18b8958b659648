"""What of a conversion is done, in a file beside the output: one cut off goes on.

A line of JSON says what is converted, from what files and how; each further one names a
tensor whose data are in the output's work file, on the disk, and what it has lost.
"""

from __future__ import annotations

import json
import os
from typing import IO, Any

from .._measures import UserError

SUFFIX = ".part.journal"


class Journal:
    """The journal of one output.

    Parameters
    ----------
    path : str
    identity : dict
        What is converted, how: another one begins anew.

    Attributes
    ----------
    done : dict of str to dict
        What the tensors have lost that an earlier run has converted.
    kept : dict of str to str or None
        The tensors that cannot be converted, and why; None: to be found.
    is_complete : bool
        All are done; files may have their names.
    is_new : bool
        No earlier run has left one.
    began_anew : str
        Why an earlier run's work is not taken; empty: it is, or there is none.

    Raises
    ------
    UserError
        If another process has it.
    """

    def __init__(self, path: str, identity: dict[str, Any]) -> None:
        self.path = path
        self.done: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, str] | None = None
        self.is_complete = False
        self.is_new = False
        self.began_anew = ""
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._stream: IO[str] = open(path, "a+", encoding="utf-8")  # noqa: SIM115
        try:
            _lock(self._stream, path)
            self._read()
        except BaseException:
            self._stream.close()
            raise

    def _read(self) -> None:
        self._stream.seek(0)
        text = self._stream.read()
        lines = text.split("\n")
        if not text:
            self.is_new = True
            return
        try:
            begin = json.loads(lines[0])
            found, kept = begin["identity"], begin["kept"]
        except (ValueError, KeyError, TypeError):
            self.began_anew = "its journal is damaged"
            return
        if found != self._identity:
            self.began_anew = _difference(found, self._identity)
            return
        self.kept = kept
        end = len(lines[0].encode()) + 1
        for line in lines[1:-1]:  # what follows the last is a line cut off
            try:
                record = json.loads(line)
                self.is_complete |= record.get("complete", False)
                if "tensor" in record:
                    self.done[record["tensor"]] = record["loss"]
            except (ValueError, KeyError, AttributeError):
                break
            end += len(line.encode()) + 1
        self._stream.truncate(end)

    def begin(self, kept: dict[str, str]) -> None:
        """Begin anew, with these tensors that cannot be converted."""
        self.kept, self.done, self.is_complete = kept, {}, False
        self._stream.truncate(0)
        self._write({"identity": self._identity, "kept": kept})

    def write(self, records: dict[str, dict[str, Any]]) -> None:
        """Note tensors that are on the disk, and what they have lost."""
        for name, loss in records.items():
            self.done[name] = loss
            self._write({"tensor": name, "loss": loss})

    def complete(self) -> None:
        """Note that all are, before files get their names."""
        self.is_complete = True
        self._write({"complete": True})

    def _write(self, record: dict[str, Any]) -> None:
        self._stream.write(json.dumps(record) + "\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Let others have it."""
        self._stream.close()

    def remove_if_new(self) -> None:
        """Leave nothing behind of a run that has not begun."""
        if self.is_new:
            os.unlink(self.path)

    def remove(self) -> None:
        """It is not needed any more."""
        os.unlink(self.path)
        self.close()


def _lock(stream: IO[str], path: str) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two at a time are the user's to avoid
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise UserError(
            f"{path.removesuffix(SUFFIX)} is being written by another convert"
        ) from None


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """What the earlier run did otherwise."""
    if old.get("sources") != new["sources"]:
        return "the input has changed"
    if old.get("version") != new["version"]:
        return f"it was of tf32dtype {old.get('version')}"
    before, now = old.get("options") or {}, new["options"]
    names = [name for name in now if before.get(name) != now[name]]
    said = ", ".join(f"--{name.replace('_', '-')} {before.get(name)}" for name in names)
    return f"it was with {said}" if said else "the outputs differ"
