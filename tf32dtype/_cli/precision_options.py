"""The options of a command that name a precision, and which products are to obey it."""

from argparse import ArgumentParser, Namespace
from typing import get_args

from .._formats.quantize import Tf32Rounding
from .._matmul.precisions import PRECISIONS, Scale, Settings, SpecialValues, Unless

_OTHERS = {
    "float64": "products in float64 obey too",
    "complex64": "products in complex64 obey too; with --float64 in complex128",
    "dots": "dots and norms obey too: products whose result is one number",
    "lapack": "products obey that LAPACK makes inside its routines",
}


def add_precision(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype run` and `tf32dtype blas`."""
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help=", ".join(row.short for row in PRECISIONS) + ", or a long name",
    )
    usual = Settings(None)
    for option, kind, default, whose in (
        (
            "--rounding",
            Tf32Rounding,
            usual.rounding,
            "of operands under tf32 (ties_to_even; as a device's library)",
        ),
        ("--scale", Scale, usual.scale, "what has a scale of its own under fp8"),
        (
            "--special-values",
            SpecialValues,
            usual.special_values,
            "what becomes of Inf in x3, x6 and x9",
        ),
    ):
        metavar = "|".join(get_args(kind))
        parser.add_argument(option, default=default, metavar=metavar, help=whose)
    for name, what in _OTHERS.items():
        parser.add_argument(f"--{name}", action="store_true", help=what)
    parser.add_argument(
        "--min-size",
        type=int,
        default=0,
        metavar="K",
        help="sums of fewer than K products are left as they are (0)",
    )


def settings_of(arguments: Namespace, blas: bool = True) -> Settings:
    """What `matmul_precision` is to be given."""
    plan = getattr(arguments, "plan", None)
    return Settings(
        arguments.precision,
        rounding=arguments.rounding,
        scale=arguments.scale,
        special_values=arguments.special_values,
        device=getattr(arguments, "device", None),
        instruction=getattr(arguments, "instruction", None),
        float64=arguments.float64,
        complex64=arguments.complex64,
        blas=blas,
        dots=arguments.dots or (False if plan is None else Unless.BLAS),
        lapack=arguments.lapack and blas,
        min_size=arguments.min_size,
        plan=plan,
    )
