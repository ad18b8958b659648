"""Check the results of a matrix product, without a tolerance.

Example:

  $ tf32dtype check d.npy a.npy b.npy --unit H100
  wrong: 2,048 of 65,536 elements; no order of additions gives them
  where: rows 64-127 of columns 128-159
  fault: k 224 to 255 is missing: rows 64-127 of columns 128-159
  ...

Example: tensors of a file, and a page with a picture of the errors

  $ tf32dtype check x.npz:d x.npz:a x.npz:b --unit H100 --html check.html

D must be alpha * (A @ B) + beta * C + bias. All are .npy, .npz, safetensors, GGUF,
HDF5, Zarr or ONNX files; FILE:NAME is one tensor of a file. --unit names the device
that computed D: its formats and additions bound the error of each element, for any
order of the sums. "float32" and "float64" stand for programs that add in this format.
The devices are V100, T4, A100, L40S, H100, B200, RTX Blackwell, MI100, MI250X, MI300X,
AVX512_BF16, AMX and Arm BF16. Other names of them are known, such as RTX 4090.

The verdict is one of these:

identical      all bits of D are those of a known way: a unit, and the order of sums
within bound   no known way gives these bits, but rounding explains each element
wrong          no order of additions gives some of the elements

Exit codes: 0 for a product that is not wrong, 1 for a wrong one, 2 for an input error.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from html import escape
from typing import Any

from .. import __version__
from .._base.errors import UserError
from .._base.text import print_json
from .._checks.check import Check
from .._checks.checking import check_matmul
from .._checks.fault_map import svg_map
from .._programs.report.html import whole_page
from .._programs.report.output import check_folder
from .._programs.streams import keep
from . import add_options, add_output
from .operands import read

_COLORS = {"identical": "good", "within bound": "good", "wrong": "bad"}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    files = parser.add_argument_group("Input")
    for name, text in (
        ("d", "check the results in this file"),
        ("a", "use the first operand in this file"),
        ("b", "use the second operand in this file"),
    ):
        files.add_argument(name, metavar=name.upper(), help=text)
    files.add_argument(
        "c", metavar="C", nargs="?", help="add the array in this file (default: none)"
    )
    scale = "multiply by a number, or by one number per {}, from a file (default: 1)"
    options = {
        "--bias FILE": "add the bias in this file (default: none)",
        "--scale-a SCALE": scale.format("row of A"),
        "--scale-b SCALE": scale.format("column of B"),
    }
    add_options(files, options)
    options = {
        "--alpha NUMBER": "multiply the product by this number (default: 1)",
        "--beta NUMBER": "multiply C by this number (default: 1)",
    }
    add_options(files, options, type=float, default=1.0)
    precision = parser.add_argument_group("Precision")
    options = {
        "--unit UNIT": 'use the bound of this device, of "float32" or of "float64"'
        " (required)",
    }
    add_options(precision, options, required=True)
    options = {
        "--instruction NAME": "use this instruction of the device (default: that of its"
        " libraries)",
        "--accumulator DTYPE": "use accumulators of float16 or float32 (default:"
        " float32)",
        "--rounding NAME": "round float32 operands to tf32 this way (default: try that"
        " of the vendor's library, and toward_zero)",
    }
    add_options(precision, options)
    options = {
        "--promote-every K": "add the sums of K products to other float32 accumulators"
        " (default: never)",
        "--sample N": "check N elements of random rows and columns (default: all"
        " elements, or 2^20 if there are more than 2^36 multiplications)",
    }
    add_options(precision, options, type=int)
    options = {"--factor NUMBER": "multiply all bounds by this number (default: 1)"}
    add_options(precision, options, type=float, default=1.0)
    options = {"--html FILE": "write a page with a map (default: none)"}
    add_options(add_output(parser), options)


def run(arguments: Namespace) -> int:
    """Print the verdict; 1 if the product is wrong, or the page cannot be written."""
    if arguments.html is not None:
        check_folder(arguments.html)
    names = ("d", "a", "b", "c", "bias")
    arrays: dict[str, Any] = {
        name: None if text is None else read(text, finite=False)
        for name in names
        for text in [getattr(arguments, name)]
    }
    try:
        found = check_matmul(
            **arrays,
            unit=arguments.unit,
            instruction=arguments.instruction,
            accumulator=arguments.accumulator,
            rounding=arguments.rounding,
            alpha=arguments.alpha,
            beta=arguments.beta,
            scale_a=_scale(arguments.scale_a),
            scale_b=_scale(arguments.scale_b),
            promote_every=arguments.promote_every,
            factor=arguments.factor,
            sample=arguments.sample,
        )
    except (TypeError, ValueError) as error:
        raise UserError(str(error)) from None
    if arguments.json:
        print_json(found.record())
    else:
        print(found)
    files = " ".join(getattr(arguments, name) for name in ("d", "a", "b"))
    is_written = keep("check", arguments.html, lambda: _page(found, files))
    return int(not found or not is_written)


def _scale(text: str | None) -> Any:
    """Return the scale that a number or a file stands for."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return read(text)


def _page(found: Check, names: str) -> str:
    return whole_page(f"{names}: check", _body(found, names))


def _body(found: Check, names: str) -> Iterator[str]:
    first, *rest = found.lines()
    yield f"<h1>{escape(names)}</h1>"
    yield f'<p class="{_COLORS[found.verdict]}">{escape(first)}</p>'
    yield f'<p class="dim">tf32dtype {escape(__version__)}</p>'
    yield "<ul>"
    for line in rest:
        if line.startswith("map:"):
            break
        yield f"<li>{escape(line)}</li>"
    yield "</ul>"
    yield "<h2>Where the errors are</h2>"
    yield (
        "<p>Each square stands for some elements: pale green if their largest error is"
        " up to 0.1 of the bound, green up to the bound, pale red if some elements are"
        " wrong, and red if nearly all are.</p>"
    )
    yield f'<div class="wide">{svg_map(found.worst_matrix)}</div>'
