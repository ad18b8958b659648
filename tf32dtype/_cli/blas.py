"""A program that is not Python, with its products of BLAS in a chosen precision.

`tf32dtype blas --precision bf16 octave script.m` starts the program with a library that
catches its matrix products: those that it, and the libraries it loads, have any BLAS
make by a call from object to object. At the end one line on standard error tells how
many obeyed. The same by hand:

    LD_PRELOAD=$(tf32dtype blas --path) TF32DTYPE_MATMUL_PRECISION=bf16 octave script.m

TF32DTYPE_BLAS takes words with commas between: float64, complex64, dots, lapack,
min_size=K, rounding=..., scale=..., special_values=... Without a precision products are
counted.
"""

import os
from argparse import REMAINDER, ArgumentParser, Namespace

from .._matmul.precisions import resolve
from . import CommandError, preload
from .precision_options import add_precision, settings_of


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype blas`."""
    parser.add_argument(
        "--path", action="store_true", help="print the library's path, and end"
    )
    add_precision(parser)
    parser.add_argument("program", metavar="PROGRAM", nargs="?", help="what to start")
    parser.add_argument("arguments", nargs=REMAINDER, metavar="...", help="its own")


def run(arguments: Namespace) -> int:
    """Become the program."""
    if arguments.path:
        print(preload.library())
        return 0
    if arguments.program is None:
        raise CommandError("a program is needed, or --path")
    settings = settings_of(arguments)
    try:
        resolve(settings)
    except ValueError as error:
        raise CommandError(str(error)) from None
    variables = {**os.environ, **preload.environment(settings)}
    words = [arguments.program, *arguments.arguments]
    try:
        os.execvpe(arguments.program, words, variables)
    except OSError as error:
        raise CommandError(f"{arguments.program}: {error.strerror}") from None
