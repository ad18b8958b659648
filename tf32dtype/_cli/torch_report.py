"""Programs that use PyTorch: `tf32dtype report --torch`."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, NoReturn, TextIO

from .._base.arguments import checked_number
from .._base.errors import UserError
from .._programs.program import Failed, end_of_program
from .._programs.report.naming import kind_and_message
from .._programs.report.output import check_folder
from .._programs.streams import flush_own, keep, tell
from .torch_program import import_torch

if TYPE_CHECKING:
    from ..interop.torch.layer_report.result import LayerReport

#: Options that the report of layers has no use for, and what they are by default.
_UNUSED: dict[str, object] = {
    "exact": False,
    "arithmetic": None,
    "check": None,
    "by": "operand",
    "only": [],
    "excepted": [],
    "stop_at": [],
    "dots": False,
    "lapack": False,
    "float64": False,
}


def report_torch(arguments: Namespace, usual_target: float) -> NoReturn:
    """Run a program, report the layers of its models, and exit as the program does.

    Parameters
    ----------
    arguments : Namespace
        The arguments of `tf32dtype report`.
    usual_target : float
        The default of `--target-db`, which is another one for layers.
    """
    for name, usual in _UNUSED.items():
        if getattr(arguments, name) != usual:
            option = "--except" if name == "excepted" else f"--{name.replace('_', '-')}"
            raise UserError(f"{option} cannot be combined with --torch")
    if len(arguments.device) > 1:
        raise UserError("--device must be given only once with --torch")
    device = next(iter(arguments.device), None)
    import_torch()
    from ..interop.torch.hook.recipe import formats_on
    from ..interop.torch.layer_report.making import PRECISIONS, TARGET_DB
    from ..interop.torch.layer_report.recording import Recorder
    from ..interop.torch.layer_report.result import LayerReport

    target = checked_number(arguments.target_db, "--target-db")
    if target == usual_target:
        target = TARGET_DB
    if not 0 < target < float("inf"):
        raise UserError(f"--target-db must be more than 0 and finite; got {target:g}")
    names = arguments.precision and arguments.precision.replace(",", " ").split()
    try:
        recorder = Recorder(names or formats_on(device, PRECISIONS), device=device)
    except (ValueError, TypeError) as error:
        raise UserError(str(error)) from None
    paths = [
        path and os.path.abspath(path) for path in (arguments.html, arguments.json)
    ]
    for path in filter(None, paths):
        check_folder(path)
    with recorder:
        ending = end_of_program(arguments)
    title = os.path.basename(arguments.program)
    report = LayerReport(
        title,
        tuple(recorder.recipes),
        device,
        target,
        recorder.rows,
        unreached=recorder.unreached,
    )
    whole = keep("report", paths[0], report.to_html)
    whole &= keep("report", paths[1], report.to_json)
    if not arguments.quiet:
        whole &= _print(report, ending)
    if not whole and ending.code in (None, 0):
        raise SystemExit(1)
    raise ending


def _print(report: LayerReport, ending: SystemExit) -> bool:
    """Print the report; return whether that was possible."""
    flush_own()

    def write(stream: TextIO) -> None:
        print(file=stream)
        if isinstance(ending, Failed):
            how = kind_and_message(ending.error)
            print(f"The program raised {how}. The report is of its run.", file=stream)
        if report.rows:
            report.print(stream)
            return
        how = "were measured" if report.unreached else "ran"
        print(f"No products of PyTorch {how}.", file=stream)
        for one in report.unreached:
            print(f"Not measured: {one.name} {one.reason} ({one.calls})", file=stream)

    return tell(sys.__stdout__, write) is None
