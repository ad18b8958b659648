"""The options of a command that choose a precision and its scope."""

from argparse import ArgumentParser, Namespace, _ArgumentGroup
from typing import get_args

from .._formats.quantize import Tf32Rounding
from .._matmul.precisions import PRECISIONS, Scale, Settings, SpecialValues, Unless

_OTHERS = {
    "float64": "include float64 multiplications (default: no)",
    "complex64": "include complex64 multiplications, with --float64 also complex128"
    " (default: no)",
    "dots": "include dot products and norms (default: no)",
    "lapack": "include matrix multiplications inside LAPACK (default: no)",
}


def add_precision(parser: ArgumentParser) -> tuple[_ArgumentGroup, _ArgumentGroup]:
    """Add the arguments that `tf32dtype run` and `tf32dtype blas` share.

    Returns
    -------
    tuple of argument groups
        The groups "Precision" and "Scope".
    """
    group = parser.add_argument_group("Precision")
    group.add_argument(
        "--precision",
        metavar="NAME",
        help="use this precision: "
        + ", ".join(row.short for row in PRECISIONS)
        + ", or a long name",
    )
    usual = Settings(None)
    for option, kind, default, what in (
        (
            "--rounding",
            Tf32Rounding,
            usual.rounding,
            "round operands to tf32 this way (default: ties_to_even; with --device as"
            " the device's library)",
        ),
        (
            "--scale",
            Scale,
            usual.scale,
            f"choose what gets its own scale in fp8 (default: {usual.scale})",
        ),
        (
            "--special-values",
            SpecialValues,
            usual.special_values,
            f"choose how x3, x6 and x9 handle Inf (default: {usual.special_values})",
        ),
    ):
        metavar = "|".join(get_args(kind))
        group.add_argument(option, default=default, metavar=metavar, help=what)
    scope = parser.add_argument_group("Scope")
    for name, what in _OTHERS.items():
        scope.add_argument(f"--{name}", action="store_true", help=what)
    scope.add_argument(
        "--min-size",
        type=int,
        default=0,
        metavar="K",
        help="exclude sums of fewer than K products (default: 0)",
    )
    return group, scope


def settings_of(arguments: Namespace, blas: bool = True) -> Settings:
    """Return the arguments of `matmul_precision`."""
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
