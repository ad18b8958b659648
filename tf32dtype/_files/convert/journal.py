"""The journal of a conversion: its inputs and options, and the tensors that are done.

The first record has the sources, the options and the outputs. Each further record names
a tensor whose data are on the disk, in the work file of its output, and its losses.
"""

from __future__ import annotations

import json
from typing import Any

from ..._base.journal import Journal

SUFFIX = ".part.journal"


class Notes(Journal):
    """The journal of one output.

    Parameters
    ----------
    path : str
        The file.
    identity : dict
        Sources, options and outputs: a run with others begins again.

    Attributes
    ----------
    done : dict of str to dict
        The losses of the tensors that an earlier run has converted.
    kept : dict of str to str or None
        The tensors that cannot be converted, and why; None: not known yet.
    is_complete : bool
        All tensors are done; files may have their names.
    began_anew : str
        Why an earlier run's work is not used; empty: it is used, or does not exist.

    Raises
    ------
    UserError
        As `Journal`.
    """

    def __init__(self, path: str, identity: dict[str, Any]) -> None:
        super().__init__(path, "convert")
        self.done: dict[str, dict[str, Any]] = {}
        self.kept: dict[str, str] | None = None
        self.is_complete = False
        self.began_anew = ""
        self._identity: dict[str, Any] = json.loads(json.dumps(identity))
        if self.is_new:
            return
        if not self.records:
            self.began_anew = "the journal is damaged"
            return
        first, *others = self.records
        if first["identity"] != self._identity:
            self.began_anew = _difference(first["identity"], self._identity)
            return
        self.kept = first["kept"]
        for record in others:
            self.is_complete |= record.get("complete", False)
            if "tensor" in record:
                self.done[record["tensor"]] = record["loss"]

    def begin_with(self, kept: dict[str, str]) -> None:
        """Begin again, with these tensors that cannot be converted."""
        self.kept, self.done, self.is_complete = kept, {}, False
        self.begin({"identity": self._identity, "kept": kept})

    def add(self, losses: dict[str, dict[str, Any]]) -> None:
        """Note tensors that are on the disk, and their losses."""
        self.done.update(losses)
        self.write(*({"tensor": name, "loss": x} for name, x in losses.items()))

    def complete(self) -> None:
        """Note that all tensors are done, before files get their names."""
        self.is_complete = True
        self.write({"complete": True})


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the difference of an earlier run."""
    if old.get("sources") != new["sources"]:
        return "the input has changed"
    if old.get("version") != new["version"]:
        return f"the earlier run was by tf32dtype {old.get('version')}"
    before, now = old.get("options") or {}, new["options"]
    names = [name for name in now if before.get(name) != now[name]]
    said = ", ".join(f"--{name.replace('_', '-')} {before.get(name)}" for name in names)
    return f"the earlier run had {said}" if said else "the outputs differ"
