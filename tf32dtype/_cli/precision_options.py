"""The options that name a precision and the matrix multiplications that use it."""

from argparse import ArgumentParser, Namespace
from typing import Any, get_args

from .._exact.rounding import ExactRounding
from .._matmul.precisions import PRECISIONS, Scale, Settings, SpecialValues, Unless
from . import add_options

_OTHERS = {
    "--float64": "include matrix multiplications in float64 (default: float32 only)",
    "--complex64": "include matrix multiplications in complex64; with --float64, in"
    " complex128, too (default: only real ones)",
    "--dots": "include dot products and norms, whose result is one number (default:"
    " leave them unchanged)",
    "--lapack": "include matrix multiplications inside LAPACK's routines (default:"
    " leave them unchanged)",
}


def add_precision(parser: ArgumentParser) -> tuple[Any, Any]:
    """Add the options of `tf32dtype run` and `tf32dtype blas`.

    Returns
    -------
    argparse groups
        "Precision" and "Scope", to which a command may add options.
    """
    precision = parser.add_argument_group("Precision")
    scope = parser.add_argument_group("Scope")
    names = ", ".join(row.short for row in PRECISIONS)
    options = {
        "--precision NAME": f"multiply matrices in this precision: {names}, or a long"
        " name such as TF32_TF32_F32. In Python programs only, exact rounds the exact"
        " sums once. In NumPy's functions only, crt2 to crt20 and int8x2 to int8x20"
        " emulate products on INT8 units (default: none)",
    }
    add_options(precision, options)
    usual = Settings(None)
    for option, kind, default, text in (
        (
            "--rounding",
            ExactRounding,
            usual.rounding,
            "round operands to tf32 by ties_to_even, ties_to_away or toward_zero; with"
            " exact, round results by any of these (default: ties_to_even; with"
            " --device, that of the device's library)",
        ),
        (
            "--scale",
            Scale,
            usual.scale,
            "scale fp8 operands per matrix, or per row of the first one and column of"
            f" the second (default: {usual.scale})",
        ),
        (
            "--special-values",
            SpecialValues,
            usual.special_values,
            "keep Inf in tf32x3, bf16x3, bf16x6 and bf16x9, or replace Inf by the"
            f" largest float32 (default: {usual.special_values})",
        ),
    ):
        metavar = "|".join(get_args(kind))
        precision.add_argument(option, default=default, metavar=metavar, help=text)
    add_options(scope, _OTHERS)
    options = {
        "--min-size K": "leave sums of fewer than K terms unchanged (default: 0)",
    }
    add_options(scope, options, type=int, default=0)
    return precision, scope


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
