"""The journal of a conversion: inputs, options, and finished tensors.

The first record has the sources, the options and the outputs. Each further record has
the name and the losses of a tensor whose data are in the work file on the disk.
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
        The path of the journal.
    identity : dict
        Sources, options and outputs. A run with another identity starts over.

    Attributes
    ----------
    done : dict of str to dict
        The losses of the tensors that an earlier run has converted.
    kept : dict of str to str or None
        The tensors that cannot be converted, with the reasons; None: not known yet.
    is_complete : bool
        Whether all tensors are finished; files may already have their final names.
    began_anew : str
        Why the work of an earlier run is not used. Empty if it is used or missing.

    Raises
    ------
    UserError
        As for `Journal`.
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
        """Start over, with these tensors that cannot be converted."""
        self.kept, self.done, self.is_complete = kept, {}, False
        self.begin({"identity": self._identity, "kept": kept})

    def add(self, losses: dict[str, dict[str, Any]]) -> None:
        """Note tensors whose data are on the disk, and their losses."""
        self.done.update(losses)
        self.write(*({"tensor": name, "loss": x} for name, x in losses.items()))

    def complete(self) -> None:
        """Note that all tensors are finished, before files get their final names."""
        self.is_complete = True
        self.write({"complete": True})


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Describe how an earlier run differs."""
    if old.get("sources") != new["sources"]:
        return "the input has changed"
    if old.get("version") != new["version"]:
        return f"the earlier run was by tf32dtype {old.get('version')}"
    before, now = old.get("options") or {}, new["options"]
    names = [name for name in now if before.get(name) != now[name]]
    said = ", ".join(f"--{name.replace('_', '-')} {before.get(name)}" for name in names)
    return f"the earlier run had {said}" if said else "the outputs differ"
