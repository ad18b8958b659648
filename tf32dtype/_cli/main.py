"""The command line: `tf32dtype COMMAND`, one of those in `_COMMANDS`.

Whatever the user has to put right is one line on standard error and exit code 2. Exit
code 1 is for an answer that is no, and for output that cannot be written.
"""

import argparse
import errno
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from .. import __version__
from .._measures import UserError
from . import (
    blas,
    compare,
    convert,
    demo,
    formats,
    inspect,
    report,
    run,
    sizes,
    tune,
    values,
)
from .streams import open_closed, say, tell

_COMMANDS = {
    "blas": (blas, "a program that is not Python, with its products in a precision"),
    "demo": (demo, "classify real images in formats of 32 to 4 bits"),
    "compare": (compare, "what a product, or storing an array, loses in each format"),
    "convert": (convert, "a checkpoint in another format, its tensors one at a time"),
    "formats": (formats, "range, precision and spacing of every format"),
    "inspect": (inspect, "the bits of numbers, or the tensors of a file"),
    "report": (report, "what a program would lose in each precision, and where"),
    "run": (run, "a program with its matrix products in a chosen precision"),
    "sizes": (sizes, "bytes of so many numbers in every format"),
    "tune": (tune, "the cheapest precision of each place that keeps the answer"),
    "values": (values, "all numbers of a format, or how many each binade has"),
}

# A negative number, which argparse would take for an option where it is no plain
# decimal (-inf, -1/3). A blank before it keeps it an argument.
_NEGATIVE = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if message.startswith("unrecognized"):
            message += f"; use {self.prog} COMMAND --help to list all options"
        self.exit(2, f"{self.prog}: {message}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write a message; unlike argparse, let errors of standard output through."""
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            tell(file or sys.stderr, lambda stream: print(message, end="", file=stream))


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; `sys.argv[1:]` by default.

    Returns
    -------
    int
        The exit code: 0, 1 if the answer is no (nothing reaches `--target-db`), or 2 if
        the arguments cannot be used.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] not in (
        ["blas"],
        ["run"],
        ["report"],
        ["tune"],
    ):  # whose words are another program's
        words = [f" {word}" if _NEGATIVE.match(word) else word for word in words]
    if words[:1] not in (["run"], ["report"]):  # whose program gets them as they are
        open_closed()
    command, code = "", 0
    try:
        parser = _parser()
        try:
            arguments = parser.parse_args(words)
        finally:
            _flush()  # the help
        if arguments.command is None:
            parser.print_help()
        else:
            command = arguments.command
            code = _COMMANDS[command][0].run(arguments) or 0
        _flush()
    except UserError as error:
        say(command, str(error))
        return 2
    except OSError as error:
        # What is still to be written must not be tried again at exit.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a reader that has enough is fine
            closed = error.errno == errno.EBADF
            say(command, "standard output is closed" if closed else str(error))
            return 1
    except MemoryError as error:
        say(command, str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _flush() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="tf32dtype",
        description="Reduced-precision numbers: what they are and what they lose.",
    )
    parser.add_argument(
        "--version", action="version", version=f"tf32dtype {__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, summary) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=module.__doc__)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(command)
        if module not in (blas, run, report, tune):
            command.add_argument(
                "--json", action="store_true", help="print JSON instead of tables"
            )
    return parser
