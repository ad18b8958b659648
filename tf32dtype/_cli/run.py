"""A program, unchanged, with NumPy's products in a chosen precision.

It runs as `python script.py ...` or `python -m module ...` runs it: all words after its
name are its own, and so are its exit code and its traceback. The precision is that of
the whole process, as td.set_matmul_precision sets it; processes that it starts anew are
not reached. docs/precision.md tells which functions of NumPy obey.
"""

import builtins
import importlib.util
import os
import runpy
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import NoReturn, get_args

from .._formats.quantize import Tf32Rounding
from .._matmul.context import set_matmul_precision
from .._matmul.precisions import PRECISIONS, Scale, SpecialValues
from . import CommandError


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype run`."""
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help=", ".join(row.short for row in PRECISIONS) + ", or a long name",
    )
    for option, kind, whose in (
        ("--rounding", Tf32Rounding, "of operands under tf32"),
        ("--scale", Scale, "what has a scale of its own under fp8"),
        ("--special-values", SpecialValues, "what becomes of Inf in x3, x6 and x9"),
    ):
        words = get_args(kind)
        metavar = "|".join(words)
        parser.add_argument(option, default=words[0], metavar=metavar, help=whose)
    parser.add_argument("--device", metavar="NAME", help="with this one's tensor core")
    parser.add_argument(
        "--instruction", metavar="NAME", help="mma.sync, wgmma or tcgen05"
    )
    for name in ("float64", "complex64"):
        parser.add_argument(
            f"--{name}", action="store_true", help=f"products in {name} obey too"
        )
    parser.add_argument(
        "-m", dest="is_module", action="store_true", help="the program is a module"
    )
    parser.add_argument("program", metavar="script.py", help="or a module's name")
    parser.add_argument("arguments", nargs=REMAINDER, metavar="...", help="its own")


def run(arguments: Namespace) -> NoReturn:
    """Run the program, and exit as it does."""
    if arguments.precision is None:
        raise CommandError(
            "--precision is needed, before the program, as all words after that are its"
            f" own: tf32dtype run --precision NAME {arguments.program}"
        )
    try:
        set_matmul_precision(
            arguments.precision,
            rounding=arguments.rounding,
            scale=arguments.scale,
            special_values=arguments.special_values,
            float64=arguments.float64,
            complex64=arguments.complex64,
            device=arguments.device,
            instruction=arguments.instruction,
        )
    except ValueError as error:
        raise CommandError(str(error)) from None
    sys.argv = [arguments.program, *arguments.arguments]
    if arguments.is_module:
        _run_module(arguments.program)
    else:
        _run_script(arguments.program)
    # Flushing is Python's own to do, which knows what a program does to its streams.
    raise SystemExit


def _run_script(path: str) -> None:
    loader = SourceFileLoader("__main__", path)
    try:
        source = loader.get_data(path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    _import_from(os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)
    # It stays, unlike with runpy: what goes on after the last line may look for it.
    main = ModuleType("__main__")
    vars(main).update(
        __file__=path, __cached__=None, __loader__=loader, __builtins__=builtins
    )
    sys.modules["__main__"] = main
    try:
        code: CodeType = loader.source_to_code(source, path)
    except (SyntaxError, ValueError) as error:
        _fail(error.with_traceback(None))
    try:
        exec(code, vars(main))
    except Exception as error:
        _fail(error)
    except KeyboardInterrupt as error:
        _fail(error, 130)


def _run_module(name: str) -> None:
    _import_from(os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except ImportError as error:
        raise CommandError(f"{name}: {error}") from None
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"no module named {name!r}")
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except Exception as error:
        _fail(error)
    except KeyboardInterrupt as error:
        _fail(error, 130)


def _import_from(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _fail(error: BaseException, code: int = 1) -> NoReturn:
    """Show an exception as Python does, from the program's first frame on."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    if trace:
        error = error.with_traceback(trace)
    sys.excepthook(type(error), error, error.__traceback__)
    raise SystemExit(code)
