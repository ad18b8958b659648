"""A program, run as `python script.py ...` or `python -m module ...` runs it.

`tf32dtype run` and `tf32dtype report` take their own arguments before the program.
"""

import builtins
import importlib.util
import linecache
import os
import runpy
import sys
import threading
from argparse import REMAINDER, ArgumentParser, Namespace
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NoReturn

from .._base.errors import UserError

_INTERRUPTED = 130  # as of a program that the signal ended


class Failed(SystemExit):
    """The program has raised an exception, which was shown as Python shows it."""

    def __init__(self, error: BaseException, code: int) -> None:
        super().__init__(code)
        self.error = error


def add_program(parser: ArgumentParser) -> None:
    """Add the arguments that name a program; all arguments after its name go to it."""
    group = parser.add_argument_group("Program")
    group.add_argument(
        "-m",
        dest="is_module",
        action="store_true",
        help="run a module instead of a script (default: script)",
    )
    group.add_argument(
        "program",
        metavar="script.py",
        help="run this script; a module with -m; - reads standard input",
    )
    group.add_argument(
        "arguments", nargs=REMAINDER, metavar="...", help="pass these to the program"
    )


def add_regions(group: Any) -> None:
    """Add `--only` and `--except`, which include and exclude regions of the program."""
    for name, dest, what in (
        ("--only", "only", "include only this region (default: all"),
        ("--except", "excepted", "exclude this region (default: none"),
    ):
        group.add_argument(
            name,
            dest=dest,
            action="append",
            default=[],
            metavar="FILE[:FUNCTION]",
            help=f"{what}; repeatable)",
        )


def run_program(arguments: Namespace) -> NoReturn:
    """Run the program, and exit as it does.

    Raises
    ------
    UserError
        If there is no such program; none of it has run then.
    SystemExit
        How it ended: `Failed` after an exception.
    """
    sys.argv = [arguments.program, *arguments.arguments]
    if arguments.is_module:
        _run_module(arguments.program)
    else:
        _run_script(arguments.program)
    # Leave flushing to Python, which handles streams that the program has changed.
    raise SystemExit


def end_of_program(arguments: Namespace) -> SystemExit:
    """Run the program, wait for its threads, and return how it ended.

    In a process that the program has forked this does not return, but ends as the
    program does: its parent prints the summary.

    Raises
    ------
    UserError
        If there is no such program; none of it has run then.
    """
    process = os.getpid()
    try:
        run_program(arguments)
    except SystemExit as end:
        ending = end
    if os.getpid() != process:
        raise ending
    try:
        _join_threads()
    except KeyboardInterrupt as error:
        # Python also continues after an interrupt here, and checks no threads again.
        vars(threading)["_shutdown"] = lambda: None
        return Failed(error, _INTERRUPTED)
    return ending


def _join_threads() -> None:
    """Wait for the program's threads, as Python does at its end.

    The threads of a pool run until these functions tell them that Python ends.
    """
    for end_pools in reversed(vars(threading).get("_threading_atexits", [])):
        end_pools()
    this = threading.current_thread()
    while others := [x for x in threading.enumerate() if not (x.daemon or x is this)]:
        others[0].join()


def _run_script(path: str) -> None:
    loader = SourceFileLoader("__main__", path)
    # Keep the module, unlike runpy: threads that outlive the last line may use it.
    main = ModuleType("__main__")
    vars(main).update(__cached__=None, __loader__=loader, __builtins__=builtins)
    if path == "-":
        source, path = sys.stdin.buffer.read(), "<stdin>"
        _import_from("")
        # Tracebacks and reports look for its lines.
        lines = source.decode(errors="replace").splitlines(keepends=True)
        linecache.cache[path] = len(source), None, lines, path
    else:
        try:
            source = loader.get_data(path)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror}") from None
        _import_from(os.path.dirname(os.path.realpath(path)))
        path = os.path.abspath(path)
    vars(main)["__file__"] = path
    sys.modules["__main__"] = main
    try:
        code: CodeType = loader.source_to_code(source, path)
    except (SyntaxError, ValueError) as error:
        _fail(error.with_traceback(None))
    try:
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        _fail(error)


def _run_module(name: str) -> None:
    _import_from(os.getcwd())
    try:
        found = importlib.util.find_spec(name)
    except ImportError as error:
        raise UserError(f"{name} cannot be imported: {error}") from None
    except ValueError:
        found = None
    if found is None:
        raise UserError(f"{name!r} is not an installed module")
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit:
        raise
    except BaseException as error:
        _fail(error)


def _import_from(folder: str) -> None:
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _fail(error: BaseException) -> NoReturn:
    """Show an exception as Python does, from the program's first frame on."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_globals.get("__name__") != "__main__":
        trace = trace.tb_next
    if trace:
        error = error.with_traceback(trace)
    sys.excepthook(type(error), error, error.__traceback__)
    raise Failed(error, _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)
