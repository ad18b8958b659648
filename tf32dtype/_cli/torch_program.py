"""Programs that use PyTorch: `tf32dtype run --torch`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from .._base.errors import UserError
from .._base.text import strict_json
from .._files.layer_plans import read_layer_plan
from .._programs.program import Failed, end_of_program
from .._programs.report.naming import kind_and_message, numbered, some
from .._programs.report.output import check_folder
from .._programs.streams import keep, tell
from . import add_options

if TYPE_CHECKING:
    from ..interop.torch import matmul_precision

#: The roles of operands, by the option that names their format.
_ROLES = {
    "--weights FORMAT": "weights",
    "--activations FORMAT": "activations",
    "--gradients FORMAT": "gradients",
    "--kv-cache FORMAT": "cached keys and values of attention",
    "--probabilities FORMAT": "probabilities of attention",
}
#: Options that PyTorch's products have no use for, and what they are by default.
_UNUSED: dict[str, Any] = {
    "float64": False,
    "complex64": False,
    "dots": False,
    "lapack": False,
    "min_size": 0,
    "no_blas": False,
    "no_children": False,
    "arithmetic": None,
}
_MOST = 6  # layers and operations that a line names


def add_torch(parser: ArgumentParser) -> None:
    """Add the options for PyTorch."""
    group = parser.add_argument_group("PyTorch")
    options = {
        "--torch": "replace the products of PyTorch's operations, by layer, instead of"
        " those of NumPy and BLAS; --only and --except then name layers, --precision"
        " and --plan may have block formats (default: no)",
    }
    add_options(group, options)
    options = {
        option: f"round {what} to this format, with --torch (default: that of"
        " --precision)"
        for option, what in _ROLES.items()
    }
    add_options(group, options)


def refuse_torch_options(arguments: Namespace) -> None:
    """Raise UserError for options of PyTorch without --torch."""
    for option in _ROLES:
        name = option.split()[0]
        if getattr(arguments, name[2:].replace("-", "_")) is not None:
            raise UserError(f"{name} must be given with --torch")


def import_torch() -> Any:
    """Return `tf32dtype.interop.torch`; raise UserError if PyTorch is missing."""
    try:
        from ..interop import torch as tt
    except ImportError as error:
        raise UserError(str(error)) from None
    return tt


def torch_formats(given: str | None, usual: str, device: Any = None) -> tuple[str, ...]:
    """Return formats in their canonical spelling, the cheapest first.

    Parameters
    ----------
    given : str or None
        Names that commas or spaces separate. None: those of the usual names that the
        device can multiply.
    usual : str
        The usual names.
    device : str, optional
        The device that multiplies.

    Raises
    ------
    UserError
        For an unknown format or device, for formats that the device cannot multiply,
        for none, and if PyTorch is missing.
    """
    import_torch()
    from ..interop.torch.hook.operand_format import operand_format
    from ..interop.torch.hook.recipe import formats_on, make_recipe

    names: Sequence[str] = (given or usual).replace(",", " ").split()
    if not given:
        names = formats_on(device, names)

    try:
        found = {operand_format(name) for name in names}
        for name in names:
            make_recipe(name, device=device)
    except ValueError as error:
        raise UserError(str(error)) from None
    if not found:
        raise UserError("--precisions must name at least one format; got none")
    return tuple(map(str, sorted(found, key=lambda x: (x.is_unrounded, x.bits))))


def torch_scope(arguments: Namespace) -> matmul_precision:
    """Return the scope that the arguments describe.

    Raises
    ------
    UserError
        For options that do not fit, and if PyTorch is missing.
    """
    for name, usual in _UNUSED.items():
        if getattr(arguments, name, usual) != usual:
            option = f"--{name.replace('_', '-')}"
            raise UserError(f"{option} cannot be combined with --torch")
    tt = import_torch()
    given: dict[str, Any] = {
        name: getattr(arguments, name)
        for name in (
            *("weights", "activations", "gradients", "kv_cache", "probabilities"),
            *("rounding", "device", "instruction", "plan"),
        )
        if getattr(arguments, name, None) is not None
    }
    for name, usual in (("scale", "tensor"), ("special_values", "propagate")):
        if getattr(arguments, name) != usual:
            given[name] = getattr(arguments, name)
    if arguments.precision is None and not given:
        raise UserError(
            "--precision, --plan or the format of an operand must be given before the"
            " program, since later arguments go to the program"
        )
    try:
        scope: matmul_precision = tt.matmul_precision(
            arguments.precision,
            only=arguments.only or None,
            skip=arguments.excepted,
            **given,
        )
        return scope
    except (ValueError, TypeError) as error:
        text = str(error)
        for option in _ROLES:
            name = option.split()[0]
            role = name[2:].replace("-", "_")
            if text.startswith(f"{role}: "):
                text = f"{name}{text.removeprefix(role)}"
        raise UserError(text) from None


class Summary:
    """The products of PyTorch in a run.

    Parameters
    ----------
    scope : matmul_precision
        The scope that the program ran in.
    name : str
        Words for the formats.
    ending : str
        How the program failed; "" if it did not.
    inner : int
        Products in scopes of the program's own.
    absent : sequence of str
        Lines about names that match no layer.
    """

    def __init__(
        self,
        scope: matmul_precision,
        name: str,
        ending: str,
        inner: int,
        absent: Sequence[str],
    ) -> None:
        self.scope = scope
        self.name = name
        self.ending = ending
        self.inner = inner
        self.absent = absent

    def record(self) -> dict[str, Any]:
        """Return a record for JSON."""
        return {
            "precision": self.name,
            "ending": self.ending,
            "calls": sum(self.scope.calls.values()),
            "layers": dict(self.scope.calls),
            "in_own_scopes": self.inner,
            "names_of_no_layer": [*self.absent],
            "unreached": [
                {"operation": name, "reason": why, "calls": count}
                for (name, why), count in self.scope.unreached.most_common()
            ],
        }

    def print(self, stream: TextIO) -> None:
        """Write the summary."""
        calls, name = self.scope.calls, self.name
        if self.ending:
            print(f"tf32dtype: the program {self.ending}", file=stream)
        total = sum(calls.values())
        if total:
            print(
                f"tf32dtype: {numbered(total, 'product')} of"
                f" {numbered(len(calls), 'layer')} ran in {name}",
                file=stream,
            )
            rows = [f"{x or 'outside of layers'} ({n})" for x, n in calls.most_common()]
            print(f"  layers: {some(rows, _MOST, ', ')}", file=stream)
        else:
            result = "" if self.inner else "; the results are unchanged"
            print(
                f"tf32dtype: no product of PyTorch ran in {name}{result}", file=stream
            )
        if self.inner:
            print(
                f"  {numbered(self.inner, 'product')} ran in the program's own scopes"
                " (matmul_precision, apply), which replace this one",
                file=stream,
            )
        for line in self.absent:
            print(f"  {line}", file=stream)
        for (operation, why), count in self.scope.unreached.most_common():
            print(f"  unchanged: {operation} {why} ({count})", file=stream)


def run_torch(arguments: Namespace) -> NoReturn:
    """Run a program with PyTorch's products replaced; print the summary; exit as it."""
    scope = torch_scope(arguments)
    from ..interop.torch.hook.mode import entered
    from ..interop.torch.names import said_of_names

    if arguments.json is not None:
        check_folder(arguments.json)
    path = arguments.json and os.path.abspath(arguments.json)
    scope.warns = False  # the summary names what was not replaced
    names = {"--only": arguments.only, "--except": arguments.excepted}
    if arguments.plan:
        names["--plan"] = [x.name for x in read_layer_plan(arguments.plan).layers]
    with scope:
        mode = entered()
        ending = end_of_program(arguments)
    known = mode.layers.names if mode else []
    absent = [
        line
        for option, given in names.items()
        for line in said_of_names(given, known, option)
        if known
    ]
    how = ""
    if isinstance(ending, Failed):
        how = f"raised {kind_and_message(ending.error)}"
    name = "the plan's formats" if arguments.plan else str(scope.recipe)
    inner = mode.inner if mode else 0
    summary = Summary(scope, name, how, inner, absent)
    whole = keep("run", path, lambda: strict_json(summary.record()) + "\n")
    if not arguments.quiet:
        tell(sys.__stderr__, summary.print)
    if ending.code in (None, 0):
        if arguments.strict and not scope.calls:
            raise SystemExit(3)
        if not whole:
            raise SystemExit(1)
    raise ending
