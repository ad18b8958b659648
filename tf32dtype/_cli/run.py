"""A program, unchanged, with NumPy's products in a chosen precision.

It runs as `python script.py ...` or `python -m module ...` runs it: all words after its
name are its own, and so are its exit code and its traceback. The precision is that of
the whole process, as td.set_matmul_precision sets it; processes that it starts anew are
not reached. docs/precision.md tells which functions of NumPy obey.
"""

from argparse import ArgumentParser, Namespace
from typing import NoReturn, get_args

from .._formats.quantize import Tf32Rounding
from .._matmul.context import set_matmul_precision
from .._matmul.precisions import PRECISIONS, Scale, SpecialValues
from . import CommandError
from .program import add_program, run_program


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
    add_program(parser)


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
    run_program(arguments)
