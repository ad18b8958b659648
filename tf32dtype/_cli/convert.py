"""Convert a checkpoint to another format, as safetensors files.

Example:

  $ tf32dtype convert model.safetensors small.safetensors --to mxfp8
  ...small.safetensors: 1 tensor converted, 2 copied, 32.25 KiB became 20.38 KiB
  tensor             from          to  SNR dB  max rel. error  ...
  --------------  -------  ----------  ------  --------------  ...
  layer.0.weight  float32  mxfp8_e4m3    31.0           0.102  ...
  left out by default, --include converts them: lm_head (output head)
  config.json needs "quantization_config": {"quant_method": "compressed-tensors", ...

Example: a folder of files, without some tensors

  $ tf32dtype convert model/ model-mxfp8/ --to mxfp8 --exclude 'self_attn'

Example: each layer in the format of a plan, such as tf32dtype.interop.torch.tune finds

  $ tf32dtype convert model/ model-mixed/ --plan plan.toml

All floating-point tensors are converted. Formats below 16 bits convert only tensors of
two or more axes, since norms and biases are vectors. Block formats of 4 to 8 bits, and
formats with --scheme or --tile, also leave out embeddings, norms, routers of experts
and the output head, which inference reads in the original format. `--include` and
`--exclude` choose other ones. All other tensors are copied unchanged.

Block formats store their scales as tensors of their own, whose names and layout
`--scheme` chooses. With `--scheme` or `--tile`, fp8_e4m3 and fp8_e5m2 have scales too:
one per row, or one per 128 x 128 values under the scheme deepseek. Inference reads from
config.json, under the key quantization_config, how weights are quantized.

With --plan, the weights of linear layers are stored as compressed-tensors, with one
group in quantization_config for each pair of formats of weights and activations. The
command refuses formats that compressed-tensors does not have, and names the layers.

If OUT is a folder and IN is a folder with a config.json, the tokenizer and the other
files that a model needs are copied, and config.json is written with its
quantization_config. If OUT is a file, nothing is copied, and the key is printed.

Columns of the table:

SNR dB          -20 log10 of the relative error
max rel. error  the largest relative error of one value
out of range    values that are out of the format's range
became 0        nonzero values that became 0
not finite      values of the input that are Inf or NaN

Lines on standard error name the tensors with an SNR below `--min-db`, the worst first,
and the cheapest format that keeps each of them. The exit code is then 1 unless
`--force` is given. A tensor with NaN or Inf that the format cannot hold is copied
unchanged. A line on standard error reports this, and the exit code is 1.

One tensor is in memory at a time. The work is in OUT.part, with a journal in
OUT.part.journal. If a conversion is interrupted, run the same command again: it resumes
unless the input has changed. OUT gets its name when the conversion is complete.
"""

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from .._base.errors import UserError
from .._base.text import (
    Table,
    counted,
    decibels,
    number,
    print_json,
    printable,
    progress,
    size,
)
from .._base.wording import joined
from .._files.convert.convert import Result, convert
from .._files.convert.options import Options
from .._files.convert.plan import said_of_parts
from .._files.convert.planned import Planned
from .._files.convert.targets import Target, find
from .._files.convert.weak import MOST, Weak, find_weak
from .._files.layer_plans import layer_plan_text, read_layer_plan
from .._files.safetensors.schemes import SCHEMES
from .._formats.quantize import ROUNDINGS
from .._programs.streams import say
from ..blocks.formats import BLOCK_SIZES, RULES
from . import add_options, add_output, add_patterns
from .operands import opened


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype convert`."""
    files = parser.add_argument_group("Input")
    options = {
        "source IN": "read a .npy, .npz, GGUF, HDF5, Zarr or ONNX file, or safetensors:"
        " a file, an index of several files, or a folder with an index",
    }
    add_options(files, options)
    add_patterns(
        files,
        "convert only tensors whose names match (default: see above)",
        "copy tensors whose names match unchanged (default: none)",
    )
    precision = parser.add_argument_group("Precision")
    options = {
        "--to FORMAT": "convert to this format (bf16, fp8_e4m3, float16, ...) or block"
        " format (mxfp8, mxfp4, nvfp4, tcfp12, ...) (default: the formats of --plan)",
        "--plan FILE": "convert the weights of each layer to the format that this plan"
        " has for it (default: convert to the format of --to)",
    }
    add_options(precision, options)
    options = {
        "--weights-only": "leave out the formats of activations in --plan (default: say"
        " them in quantization_config)",
    }
    add_options(precision, options)
    precision.add_argument(
        "--rounding",
        choices=ROUNDINGS,
        default="ties_to_even",
        metavar="NAME",
        help=f"round in this direction: {', '.join(ROUNDINGS)} (default: ties_to_even)",
    )
    options = {"--seed N": "seed --rounding stochastic (default: 0)"}
    add_options(precision, options, type=int)
    precision.add_argument(
        "--overflow",
        choices=("saturate",),
        help="replace values out of range by the largest value (default: as td.quantize"
        " and td.blocks.quantize do)",
    )
    options = {
        "--scale RULE": f"choose the scales of blocks by this rule: {', '.join(RULES)}"
        " (default: the block format's)",
    }
    add_options(precision, options, choices=RULES)
    precision.add_argument(
        "--block-size",
        type=int,
        choices=BLOCK_SIZES,
        help="store one scale per N values (default: the block format's)",
    )
    options = {
        "--tile RxC": "store one scale per R rows and C columns with --to fp8_e4m3 or"
        " fp8_e5m2: 128x128, 1x128, 1xall, allxall (default: 1xall)",
    }
    add_options(precision, options)
    output = add_output(parser)
    options = {
        "out OUT": "write this file *.safetensors; if IN has several files, also a"
        " folder, or an index in a folder",
        "--scheme NAME": f"name and lay out scales in this way: {joined(SCHEMES)}; vllm"
        " means compressed-tensors, and tf32dtype has all formats (default: the first"
        " of these that can hold the format)",
    }
    add_options(output, options)
    options = {
        "--min-db DB": "name tensors with a lower SNR, and exit with 1 (default: 10)",
    }
    add_options(output, options, type=float, default=10)
    options = {
        "--force": "replace OUT if it exists, and accept tensors below --min-db"
        " (default: stop with an error; exit with 1)",
    }
    add_options(output, options)


def run(arguments: Namespace) -> int:
    """Convert, and print the table; 1 if a tensor could not be converted."""
    options, target = _work(arguments)
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
            _tell("stopped; run the same command again to resume")
            raise
        most = 0 if arguments.plan else MOST
        weak = find_weak(source, result.targets, result.records, arguments.min_db, most)
    if arguments.json:
        print_json(
            {
                "outputs": result.outputs,
                "bytes_in": result.bytes_in,
                "bytes_out": result.bytes_out,
                "tensors": result.records,
                "kept": result.kept,
                "left_out": result.left_out,
                "not_converted": result.failed,
                "below_min_db": [x.record() for x in weak],
                "quantization_config": result.quantization_config,
                "config": result.files.config,
                "files_copied": result.files.copied,
                "files_not_copied": result.files.not_copied,
            }
        )
    else:
        _print(result)
        if result.left_out:
            parts = said_of_parts(result.left_out)
            why = "by default, --include converts them"
            if arguments.plan:
                why = "unless the plan has their exact names"
            print(f"left out {why}: {parts}")
        _print_files(result)
    for name, why in result.failed.items():
        _tell(f"{printable(name)} is copied unchanged: {why}")
    _tell_weak(weak, arguments.min_db, arguments.force)
    return int(bool(result.failed or (weak and not arguments.force)))


#: The options that --plan replaces, and their defaults.
_REPLACED: dict[str, Any] = {
    "to": None,
    "scheme": None,
    "include": [],
    "rounding": "ties_to_even",
    "overflow": None,
    "scale": None,
    "block_size": None,
    "tile": None,
    "seed": None,
}


def _work(arguments: Namespace) -> tuple[Options, Target | Planned]:
    """Return the options, and the format or plan that they describe."""
    if arguments.plan is None:
        if arguments.to is None:
            raise UserError("--to or --plan must be given; use --help to see how")
        if arguments.weights_only:
            raise UserError("--weights-only must only be given with --plan")
        options = _options(arguments)
        return options, find(options)
    for name, usual in _REPLACED.items():
        if getattr(arguments, name) != usual:
            option = name.replace("_", "-")
            raise UserError(f"--{option} cannot be combined with --plan")
    try:
        plan = read_layer_plan(arguments.plan)
    except ValueError as error:
        raise UserError(str(error)) from None
    if not plan.final:
        _tell(f"{arguments.plan} is not final, but the best so far of its search")
    options = Options(
        "",
        exclude=tuple(arguments.exclude),
        plan=layer_plan_text(plan),
        weights_only=arguments.weights_only,
    )
    return options, Planned(plan, arguments.weights_only)


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
        raise UserError(
            f"--tile must be such as 128x128, 1x128, 1xall or allxall; got {text}"
        )
    rows, columns = (None if x == "all" else int(x) for x in found.groups())
    return rows, columns


def _tell_weak(weak: list[Weak], min_db: float, force: bool) -> None:
    """Name the tensors below the limit, and the formats that keep them."""
    for x in weak[:MOST]:
        lost = f" ({x.to_zero:.1%} became 0)" if x.to_zero else ""
        remedy = "--exclude keeps it as it is"
        if x.use_db is not None:
            remedy = f"--to {x.use} has {decibels(x.use_db)} dB"
        _tell(f"{printable(x.name)} has {decibels(x.snr_db)} dB{lost}; {remedy}")
    if len(weak) > MOST:
        _tell(f"{counted(len(weak) - MOST, 'further tensor')} below --min-db")
    if weak:
        what = "accepted because of --force" if force else "use --force to accept this"
        _tell(f"{counted(len(weak), 'tensor')} below --min-db {number(min_db)}: {what}")


def _tell(line: str) -> None:
    say("convert", line)


def _print(result: Result) -> None:
    count = len(result.records)
    Table(
        f"{result.outputs[-1]}: {counted(count, 'tensor')} converted,"
        f" {len(result.kept)} copied, {size(result.bytes_in)} became"
        f" {size(result.bytes_out)}",
        [
            "tensor",
            "from",
            "to",
            "SNR dB",
            "max rel. error",
            "out of range",
            "became 0",
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
                str(record["out_of_range"]),
                str(record["to_zero"]),
                str(record["not_finite"]),
                size(record["bytes_out"]),
            ]
            for record in result.records
        ],
    ).print()
    if recoded := sum(record["recoded"] for record in result.records):
        print(
            f"{counted(recoded, 'tensor')} changed code exactly: elements were"
            " multiplied by a power of two, and scales divided by it"
        )


def _print_files(result: Result) -> None:
    """Print the files of the model that are copied, or not, and its configuration."""
    files = result.files
    if files.copied:
        print(f"copied: {', '.join(map(printable, files.copied))}")
    for why in dict.fromkeys(files.not_copied.values()):
        names = [name for name, x in files.not_copied.items() if x == why]
        print(f"not copied: {', '.join(map(printable, names))} ({why})")
    if files.config is not None:
        print(f"written: {files.config}")
    elif result.quantization_config is not None:
        text = json.dumps({"quantization_config": result.quantization_config})
        print(f"config.json needs {text[1:-1]}")
