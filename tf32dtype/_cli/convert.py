"""A checkpoint in another format: safetensors from any file of tensors.

  tf32dtype convert model.safetensors small.safetensors --to bf16
  tf32dtype convert model/ model-mxfp8/ --to mxfp8 --exclude 'embed|lm_head'

IN       .npy, .npz, safetensors (a file, the index of several, or a folder with one),
         GGUF, HDF5, Zarr, ONNX
OUT      a file *.safetensors; of an IN of several files also a folder, or the index in
         one, which gets files of the same names
--to     a format (bf16, fp8_e4m3, float16, ...), or a block format (mxfp8, mxfp4,
         nvfp4, tcfp12, ...), whose scales become tensors of their own
--scheme how weights with scales are called and stored: compressed-tensors (or vllm),
         modelopt, quark, gpt-oss, torchao, deepseek, or tf32dtype, which has all
         formats. Without it the one that most readers know. With it, or with --tile,
         fp8_e4m3 and fp8_e5m2 have scales too: of a row, deepseek's of 128 x 128
--include, --exclude
         regular expressions that are searched for in the names. What is not said:
         floating tensors are converted, to formats below 16 bits those of two axes or
         more alone (norms and biases are vectors); all others stay as they are

The table has, of each tensor that was converted, the SNR (-20 log10 of the relative
error, in dB), the largest relative error, and how many numbers were beyond the format's
range or became 0. A tensor with NaN or Inf that the format does not have stays as it
is, which is told, and the exit code is 1.

One tensor is in memory at a time. The work is in OUT.part, with a journal beside: what
was cut off goes on when the same command is run again, unless the input has changed.
OUT gets its name when all is done.
"""

import re
import sys
from argparse import ArgumentParser, Namespace

from .._convert.convert import Result, convert
from .._convert.options import Options
from .._convert.targets import find
from .._formats.quantize import ROUNDINGS
from .._text import Table, decibels, number, print_json, printable, progress, size
from ..blocks.formats import BLOCK_SIZES, RULES
from . import CommandError
from .operands import opened
from .streams import say


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype convert`."""
    parser.add_argument("source", metavar="IN", help="a file of tensors, or a folder")
    parser.add_argument("out", metavar="OUT", help="*.safetensors, or a folder")
    parser.add_argument("--to", required=True, metavar="FORMAT", help="of the tensors")
    parser.add_argument("--scheme", metavar="NAME", help="how scales are named")
    for option, help in (("include", "convert these alone"), ("exclude", "not these")):
        parser.add_argument(
            f"--{option}",
            action="append",
            default=[],
            metavar="RE",
            help=f"{help} (repeatable)",
        )
    parser.add_argument(
        "--rounding", choices=ROUNDINGS, default="ties_to_even", help="ties_to_even"
    )
    parser.add_argument(
        "--overflow",
        choices=("saturate",),
        help="take the greatest number for what is beyond the range",
    )
    parser.add_argument(
        "--scale", choices=RULES, help="how the scales of blocks are found"
    )
    parser.add_argument(
        "--block-size", type=int, choices=BLOCK_SIZES, help="numbers of a scale"
    )
    parser.add_argument(
        "--tile",
        metavar="RxC",
        help="rows and columns of a scale, of --to fp8_e4m3 and the like: 128x128,"
        " 1xall (the default), allxall",
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of --rounding stochastic (0)"
    )
    parser.add_argument("--force", action="store_true", help="replace OUT")


def run(arguments: Namespace) -> int:
    """Convert, and print the table; 1 if a tensor could not be converted."""
    options = _options(arguments)
    target = find(options)
    with opened(arguments.source) as source:
        try:
            result = convert(
                source,
                arguments.out,
                options,
                target,
                force=arguments.force,
                progress=lambda what, steps: progress(True, what, steps, sys.stderr),
                tell=_tell,
            )
        except KeyboardInterrupt:
            _tell("stopped; the same command goes on with what is done")
            raise
    if arguments.json:
        print_json(
            {
                "outputs": result.outputs,
                "bytes_in": result.bytes_in,
                "bytes_out": result.bytes_out,
                "tensors": result.records,
                "kept": result.kept,
                "not_converted": result.failed,
            }
        )
    else:
        _print(result)
    for name, why in result.failed.items():
        _tell(f"{printable(name)} stays as it is: {why}")
    return int(bool(result.failed))


def _options(arguments: Namespace) -> Options:
    seed = arguments.seed
    if arguments.rounding == "stochastic" and seed is None:
        seed = 0
    return Options(
        arguments.to,
        arguments.scheme,
        tuple(arguments.include),
        tuple(arguments.exclude),
        arguments.rounding,
        arguments.overflow,
        arguments.scale,
        arguments.block_size,
        _tile(arguments.tile),
        seed,
    )


def _tile(text: str | None) -> tuple[int | None, int | None] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(all|[1-9]\d*)x(all|[1-9]\d*)", text)
    if found is None:
        raise CommandError(
            f"--tile must be such as 128x128, 1x128, 1xall or allxall; got {text}"
        )
    rows, columns = (None if x == "all" else int(x) for x in found.groups())
    return rows, columns


def _tell(line: str) -> None:
    say("convert", line)


def _print(result: Result) -> None:
    count = len(result.records)
    Table(
        f"{result.outputs[-1]}: {count} tensors converted, {len(result.kept)} kept,"
        f" {size(result.bytes_in)} became {size(result.bytes_out)}",
        [
            "tensor",
            "from",
            "to",
            "SNR dB",
            "max rel. error",
            "beyond range",
            "to zero",
            "not finite",
            "bytes",
        ],
        [
            [
                printable(record["name"]),
                record["from"],
                record["to"],
                decibels(record["snr_db"]),
                number(record["largest_relative_error"]),
                str(record["beyond_range"]),
                str(record["to_zero"]),
                str(record["not_finite"]),
                size(record["bytes_out"]),
            ]
            for record in result.records
        ],
    ).print()
