"""The command line: `tf32dtype COMMAND`, one of those in `_COMMANDS`.

Whatever the user has to put right is one line on standard error and exit code 2. Exit
code 1 is for an answer that is no, and for output that cannot be written.
"""

import argparse
import errno
import importlib
import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from .. import __version__
from .._base.errors import UserError
from .._base.wording import in_terminal, one_of, page
from .._programs.streams import open_closed, say, tell


class _Command(NamedTuple):
    summary: str
    pages: tuple[str, ...]  # paths of `PAGES`


_COMMANDS = {
    "demo": _Command(
        "classify images of digits in formats of 32 to 4 bits",
        ("reference/command",),
    ),
    "formats": _Command(
        "list the range and precision of every format", ("concepts/formats",)
    ),
    "values": _Command(
        "list all values of a format, or count them per binade",
        ("how_to/terminal",),
    ),
    "inspect": _Command(
        "show the bits of numbers, or summarize a file",
        ("how_to/terminal", "how_to/read_checkpoint"),
    ),
    "sizes": _Command(
        "compute the memory of N parameters in every format",
        ("concepts/blocks",),
    ),
    "compare": _Command(
        "measure the error of an array, or of A @ B, in each format",
        ("how_to/explain_differences", "benchmarks/accuracy", "how_to/diff"),
    ),
    "check": _Command(
        "check a matrix product of a GPU or a library",
        ("how_to/test_kernel", "how_to/check_result"),
    ),
    "diff": _Command(
        "compare two files of tensors, tensor by tensor", ("how_to/diff",)
    ),
    "convert": _Command(
        "convert a checkpoint to another format", ("how_to/convert_checkpoint",)
    ),
    "report": _Command(
        "measure the error of each line in each precision",
        ("how_to/report",),
    ),
    "tune": _Command(
        "find the lowest precision of each line that is enough",
        ("how_to/tune",),
    ),
    "run": _Command(
        "run a Python program in reduced precision",
        ("how_to/precision", "how_to/blas"),
    ),
    "blas": _Command(
        "run a program in another language in reduced precision", ("how_to/blas",)
    ),
}

#: The help lists commands by the question that they answer.
_QUESTIONS = {
    "Where do I start?": ("demo",),
    "How do the formats differ?": ("formats", "values", "inspect", "sizes"),
    "How much do my arrays lose?": ("compare", "diff", "convert"),
    "Is this matrix product right?": ("check",),
    "Which precision does my program need?": ("report", "tune", "run", "blas"),
}

# A negative number. argparse takes -inf or -1/3 for an option, since they are not plain
# decimals. A blank before the number keeps it an argument.
_NEGATIVE = re.compile(r"-(\.?\d|inf|nan)", re.IGNORECASE)


class _Parser(argparse.ArgumentParser):
    #: the chosen command: argparse reports its unknown options to the outer parser
    chosen = ""

    def error(self, message: str) -> NoReturn:
        prog = self.prog
        if message.startswith("unrecognized"):
            prog = self.chosen or prog
            message += f"; use {prog} --help to list all options"
        self.exit(2, f"{prog}: {message}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise an error for a value that is not one of the choices."""
        if action.choices is not None and value not in action.choices:
            name = action.option_strings[0] if action.option_strings else action.metavar
            listing = f"those in `{self.prog} --help`" if name == "COMMAND" else ""
            message = one_of(str(name), value, action.choices, listing)
            raise argparse.ArgumentError(None, message)

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
        The exit code: 0, 1 if the answer is no (nothing reaches `--target-db`, or files
        differ), or 2 if the arguments cannot be used.
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
        parser = _parser(next((word for word in words if word[:1] != "-"), ""))
        try:
            arguments = parser.parse_args(words)
        finally:
            _flush()  # the help
        if arguments.command is None:
            parser.print_help()
        else:
            command = arguments.command
            code = arguments.run(arguments) or 0
        _flush()
    except UserError as error:
        say(command, in_terminal(str(error)))
        return 2
    except OSError as error:
        # Python must not try to write the rest of the output again at exit.
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


def _parser(chosen: str) -> argparse.ArgumentParser:
    """Return the parser of the arguments.

    All commands have a name in it. Only the chosen command is imported and has its
    arguments, because the import of all commands takes longer than most of them run.
    """
    parser = _Parser(
        prog="tf32dtype",
        usage="tf32dtype [-h] [--version] COMMAND ...",
        description="Inspect reduced-precision formats, and measure their errors.",
        epilog=_list_of_commands(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"tf32dtype {__version__}"
    )
    # Without a help text they are not listed a second time.
    commands = parser.add_subparsers(
        prog=parser.prog, dest="command", metavar="COMMAND", help=argparse.SUPPRESS
    )
    for name, row in _COMMANDS.items():
        command = commands.add_parser(
            name,
            epilog=textwrap.fill(f"More: {page(*row.pages)}", 79),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name == chosen:
            module = importlib.import_module(f".{name}", __package__)
            command.description = module.__doc__
            module.add_arguments(command)
            command.set_defaults(run=module.run)
            parser.chosen = command.prog
    return parser


def _list_of_commands() -> str:
    lines = []
    for question, names in _QUESTIONS.items():
        lines.append(question)
        lines += [f"  {name:9}{_COMMANDS[name].summary}" for name in names]
        lines.append("")
    return "\n".join([*lines, "tf32dtype COMMAND --help explains a command."])
