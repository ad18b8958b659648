"""The finished report of a model's layers, and its files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from io import StringIO
from typing import TextIO

from ...._base.arguments import checked_path
from ...._base.whole_files import write_whole
from ...._base.wording import one_of
from ...._programs.report.output import check_folder
from .html import to_fragment, to_html
from .json_report import to_json
from .rows import GroupRow, LayerRow, Unreached
from .table import print_report


@dataclass(frozen=True)
class LayerReport:
    """The errors of a model's layers in other formats, which `report` returns.

    Attributes
    ----------
    model : str
        The class of the model.
    precisions : tuple of str
        The formats.
    device : str or None
        The device whose sums were measured.
    target_db : float
        The required SNR in dB.
    rows : tuple of LayerRow
        The products of the layers, in the order of their first calls.
    groups : tuple of GroupRow
        Groups of layers, and the model's outputs with only one of them rounded. Empty
        without sensitivities.
    output_db : dict
        For each precision the SNR of the model's outputs in dB with all layers rounded.
    failures : dict
        The errors of runs that failed, by group ("" for all layers) and precision.
        Their SNR is -inf.
    unreached : tuple of Unreached
        Operations that multiply matrices and were not measured.
    estimated_seconds : float or None
        How long the runs of single groups were expected to take.
    is_partial : bool
        Whether Ctrl-C has ended the runs.

    See Also
    --------
    report : Make a report.

    Examples
    --------
    >>> import torch
    >>> from tf32dtype.interop import torch as tt
    >>> model = torch.nn.Sequential(torch.nn.Linear(64, 8))
    >>> made = tt.report(model, (torch.ones(1, 64),), ["bf16"], quiet=True)
    >>> isinstance(made, tt.LayerReport), made.rows[0].layer, made.rows[0].calls
    (True, '0', 1)
    """

    model: str
    precisions: tuple[str, ...]
    device: str | None
    target_db: float
    rows: tuple[LayerRow, ...]
    groups: tuple[GroupRow, ...] = ()
    output_db: dict[str, float] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    unreached: tuple[Unreached, ...] = ()
    estimated_seconds: float | None = None
    is_partial: bool = False

    def print(self, file: TextIO | None = None) -> None:
        """Write tables and the verdicts.

        Parameters
        ----------
        file : text stream, optional
            Where to write (default: the standard output).
        """
        print_report(self, file)

    def to_text(self) -> str:
        """Return what `print` writes to a file."""
        stream = StringIO()
        print_report(self, stream)
        return stream.getvalue()

    def to_json(self) -> str:
        """Return the report as strict JSON; Inf and NaN are strings."""
        return to_json(self)

    def to_html(self) -> str:
        """Return the report as one HTML page that needs no network."""
        return to_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file as a whole, or leave it as it was.

        Parameters
        ----------
        path : str or path
            Ends in ".html", ".json" or ".txt".

        Raises
        ------
        ValueError
            For another ending, and a folder that does not exist.
        OSError
            If it cannot be written.
        """
        text = checked_path(path)
        makers = {".html": self.to_html, ".json": self.to_json, ".txt": self.to_text}
        ending = os.path.splitext(text)[1].lower()
        if ending not in makers:
            raise ValueError(one_of("the ending of path", ending, makers))
        check_folder(text)
        write_whole(text, makers[ending]())

    def _repr_html_(self) -> str:
        return to_fragment(self)
