"""Run a program that is not Python with its BLAS calls in a lower precision.

Example:

  $ tf32dtype blas --precision bf16 octave script.m

The program starts with a preloaded library that intercepts its matrix multiplications:
calls of any BLAS by the program and by the libraries that it loads. At the end, a line
on standard error says how many used the precision. You can also preload the library
yourself:

  $ LD_PRELOAD=$(tf32dtype blas --path) TF32DTYPE_MATMUL_PRECISION=bf16 octave script.m

TF32DTYPE_BLAS holds options separated by commas: float64, complex64, dots, lapack,
min_size=K, rounding=..., scale=..., special_values=..., quiet. Without a precision,
calls are only counted.
"""

import os
from argparse import REMAINDER, ArgumentParser, Namespace

from .._base.errors import UserError
from .._programs import preload
from .._programs.context import resolve_settings
from . import add_options
from .precision_options import add_precision, settings_of


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype blas`."""
    group = parser.add_argument_group("Program")
    group.add_argument(
        "program", metavar="PROGRAM", nargs="?", help="start this program"
    )
    group.add_argument(
        "arguments", nargs=REMAINDER, metavar="...", help="pass these to the program"
    )
    add_precision(parser)
    group = parser.add_argument_group("Output")
    path = "print the library's path and exit (default: start the program)"
    add_options(group, {"--path": path})


def run(arguments: Namespace) -> int:
    """Replace this process by the program."""
    if arguments.path:
        print(preload.library())
        return 0
    if arguments.program is None:
        raise UserError(
            "PROGRAM must be given; use --path to print only the library's path"
        )
    settings = settings_of(arguments)
    try:
        resolve_settings(settings)
        variables = {**os.environ, **preload.environment(settings)}
    except ValueError as error:
        raise UserError(str(error)) from None
    words = [arguments.program, *arguments.arguments]
    try:
        os.execvpe(arguments.program, words, variables)
    except OSError as error:
        raise UserError(
            f"{arguments.program} cannot be started: {error.strerror}"
        ) from None
