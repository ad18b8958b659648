"""Measure the error of storing an array, or of multiplying two, in each format.

Example: the error of storing an array

  $ tf32dtype compare A.npy --formats bf16,mxfp4
  20 x 30 from A.npy

  Error of storing the array in each format
  format    bits  SNR dB  max rel. error  max error  overflows  underflows      bytes
  --------  ----  ------  --------------  ---------  ---------  ----------  ---------
  bfloat16    16    55.6         0.00384    0.00761          0           0  1.172 KiB
  mxfp4     4.25    18.0               1      0.899          -           -      340 B

Example: the error of A @ B, and the smallest format that reaches 40 dB

  $ tf32dtype compare A.npy B.npy --formats tf32,bf16,fp8_e4m3 --target-db 40
  A 20 x 30 from A.npy, B 30 x 10 from B.npy
  Condition number of the dot products: median 4.12, largest 115
  Error bound of float32 sums, relative: median 7.37e-06, largest 0.000205

  Error of A @ B in each format, relative to float64
  format         SNR dB  sums SNR dB  max rel. error  ...
  -------------  ------  -----------  --------------  ...
  tf32             69.7         71.7         0.00955  ...
  bfloat16         50.7         53.3           0.106  ...
  float8_e4m3fn    27.2         28.7            2.57  ...

  Cheapest format that reaches 40 dB: bfloat16

A file is FILE.npy, or FILE:NAME for a tensor of a .npz, safetensors, GGUF, HDF5, Zarr
or ONNX file. A block array counts as the values that it represents.

One array is rounded to each format, and to each block format with the blocks along its
last axis. Two arrays are rounded to the format and multiplied. The products are exact,
the sums are in float32, and the result is rounded to the format, as
`A.astype(T) @ B.astype(T)` does. The reference is the float64 result. To find out how
much two tensors differ, use `tf32dtype diff A B`. If A and B are files of several
tensors, without names, the command prints the same as `tf32dtype diff A B`.

Columns of the tables:

SNR dB          -20 log10 of the relative error ||C - A @ B|| / ||A @ B|| (Frobenius)
sums SNR dB     the same with results that stay in float32
exact SNR dB    the same with exact sums of the rounded operands
overflows       values of A, of B and of the result that are out of the format's range:
                they became Inf, NaN or the largest value
underflows      nonzero values below the smallest normal value that were rounded
matmuls         component multiplications that one multiplication takes
bytes           of all operands, with all their components, and of the result
ulps            difference of two devices in steps to the next float32
max error       the largest error of a result, relative to sum |x_i y_i|
max ulps        the largest difference from the exact result, rounded once; - if a
                finite result became Inf or NaN

The condition number of a dot product is sum |x_i y_i| / |sum x_i y_i|. Multiplied by
k 2^-24, it bounds the relative error of a float32 sum of k products. There is no bound
if A, B or sum |x_i y_i| has values out of the range of float32.

The exit code is 1 if nothing reaches --target-db.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from shlex import quote
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._base.errors import UserError
from .._base.text import Table, number, print_json, progress
from .._formats.table import formats
from .._matmul.precisions import known as precision_names
from .._matmul.precisions import whole_name
from .._measures import emulation
from .._measures.error_measures import blocks
from .._measures.format_facts import NUMPY_NAMES, Facts, known, select, signed
from .._measures.units import find as find_units
from .._measures.ways import Way
from .._measures.ways import select as ways_of
from .._programs.context import matmul_precision
from ..blocks.formats import formats as block_formats
from ..tensor_core import devices
from . import (
    add_options,
    add_output,
    compare_devices,
    compare_emulation,
    compare_precisions,
    compare_products,
    compare_storage,
    diff,
)
from .diff_tensors import Limits
from .operands import are_checkpoints, have_one_name, read

Array = NDArray[Any]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of `tf32dtype compare`."""
    files = parser.add_argument_group("Input")
    matrix = "read a matrix, or a vector as a row: FILE.npy, FILE.npz:NAME, ..."
    add_options(files, {"a A": matrix})
    matrix = "read a matrix, or a vector as a column (default: only store A)"
    add_options(files, {"b B": matrix}, nargs="?")
    precision = parser.add_argument_group("Precision")
    options = {
        "--formats NAMES": "compare these formats and block formats, separated by"
        " commas (default: all signed formats, and block formats if A is only stored;"
        " with --device all that the device has; with --precision none)",
        "--precision NAMES": "multiply as td.matmul does, with results in float32: f32,"
        " tf32, tf32x3, bf16, bf16x3, bf16x6, bf16x9, f16, fp8_e4m3, fp8_e5m2, or with"
        " both operands in a block format: mxfp8_e4m3, nvfp4, tcfp12, ...; exact and"
        " the emulated precisions crt2 to crt20, crt2_fast to crt20_fast, and int8x2 to"
        " int8x20, are compared with the exact product (default: none)",
        "--scale": "multiply A, B and the result by a power of two each in formats"
        " below 16 bits, so that the largest magnitude is just inside the range"
        " (default: no scales)",
    }
    add_options(precision, options)
    options = {
        "--device NAME": "multiply on the tensor core of this device, or on one"
        " instruction such as H100:mma.sync, with float32 accumulators:"
        f" {', '.join(devices)}. Repeat it to compare devices pairwise (default: none)",
    }
    add_options(precision, options, action="append")
    options = {
        "--target-db DB": "name the format with the fewest bytes whose SNR reaches this"
        " (default: none)",
    }
    add_options(add_output(parser), options, type=float)


@matmul_precision(None)  # whatever the process has: NumPy is compared with
def run(arguments: Namespace) -> int:
    """Print the report; 1 if nothing reaches the target."""
    if arguments.target_db is not None and np.isnan(arguments.target_db):
        raise UserError("--target-db must be a number of dB; got nan")
    if _is_diff(arguments):
        return _diff(arguments)
    if arguments.b is None:
        report, tables = _stored(arguments)
    elif arguments.device:
        report, tables = _on_devices(arguments)
    else:
        report, tables = _products(arguments)
    if arguments.json:
        print_json(report)
    else:
        _print(report, tables)
    return int("cheapest" in report and report["cheapest"] is None)


def _is_diff(arguments: Namespace) -> bool:
    """Return whether two checkpoints are given, and no option of a product."""
    options = ("formats", "precision", "device", "scale", "target_db")
    asks_for_product = any(getattr(arguments, x) not in (None, False) for x in options)
    return (
        arguments.b is not None
        and not asks_for_product
        and are_checkpoints(arguments.a, arguments.b)
    )


def _diff(arguments: Namespace) -> int:
    """Print how two checkpoints differ."""
    if not arguments.json:
        print(
            "Both files hold several tensors: these are their differences, as"
            " `tf32dtype diff` prints them. To multiply two tensors, use FILE:NAME"
        )
    found, kinds = diff.report((arguments.a, arguments.b), Limits())
    diff.show(found, kinds, json=arguments.json)
    return 0


Report = tuple[dict[str, Any], list[Table]]


def _stored(arguments: Namespace) -> Report:
    for option in ("precision", "device"):
        if getattr(arguments, option):
            raise UserError(
                f"--{option} must only be given with two files; got only {arguments.a}"
            )
    named, in_blocks = _names(arguments.formats)
    if arguments.formats is None:
        in_blocks = [*block_formats]
    forms: list[Facts | str] = [*_facts(named, arguments.formats), *in_blocks]
    x = read(arguments.a)
    with progress(not arguments.json, "rounding", len(forms)) as advance:
        results = compare_storage.store(x, forms, advance, scale=arguments.scale)
    report = {
        "files": [arguments.a],
        "shape": [*x.shape],
        "formats": [result.record() for result in results],
    }
    _add_cheapest(report, arguments.target_db, results)
    return report, [compare_storage.table(results, scaled=arguments.scale)]


def _products(arguments: Namespace) -> Report:
    named, ways = _named(arguments)
    whole = _whole(arguments)
    if whole and arguments.target_db is not None:
        raise UserError(
            f"--target-db must not be given with --precision {whole[0]}, whose cost is"
            " not its bytes; the last lines name the precisions that suffice"
        )
    forms = _facts(named, arguments.formats or arguments.precision)
    a, b = _factors(arguments)
    steps = len(forms) * len([*blocks(a.shape[0], b.shape[1])]) + len(ways) + len(whole)
    tables, report = [], _report(arguments, a, b)
    with progress(not arguments.json, "multiplying", steps) as advance:
        report["condition"], found = compare_products.compare(
            a, b, forms, advance, scale=arguments.scale
        )
        ways_found = compare_precisions.compare(a, b, ways, advance)
        emulated = emulation.measure(a, b, whole, advance) if whole else None
    if found:
        report["formats"] = [loss.record() for loss in found]
        tables.append(compare_products.table(found, scaled=arguments.scale))
    if ways_found:
        report["precisions"] = [result.record() for result in ways_found]
        tables.append(compare_precisions.table(ways_found))
    if emulated:
        report["emulation"] = compare_emulation.record(emulated)
        tables.append(compare_emulation.table(emulated))
        if emulated.has_emulated:
            report["conclusions"] = compare_emulation.conclusions(emulated)
    candidates: list[_Candidate] = [*found, *ways_found]
    _add_cheapest(report, arguments.target_db, candidates)
    return report, tables


def _on_devices(arguments: Namespace) -> Report:
    if arguments.target_db is not None:
        raise UserError(
            "--target-db and --device must not be given together; use --target-db to"
            " choose among formats, --device to compare tensor cores"
        )
    if whole := _whole(arguments):
        raise UserError(
            f"--precision {whole[0]} must not be given with --device: its integer"
            " products are the same on every device; omit --device"
        )
    units = find_units(arguments.device)
    named, ways = _named(arguments)
    chosen: list[compare_devices.Subject] = []
    if named or not ways:
        names = ",".join(named) or None
        forms = select(names, compare_devices.formats(units))
        chosen += [compare_devices.Plain(form) for form in forms]
    chosen += [compare_devices.Named(way) for way in ways]
    compare_devices.check(units, chosen)
    a, b = _factors(arguments)
    report = _report(arguments, a, b)
    report["condition"] = compare_products.conditions(a, b)
    results, pairs = compare_devices.compare(a, b, units, chosen, scale=arguments.scale)
    report["devices"] = [result.record() for result in results]
    report["pairs"] = [pair.record() for pair in pairs]
    return report, compare_devices.tables(results, pairs, scaled=arguments.scale)


# -- arguments ------------------------------------------------------------------


def _words(names: str | None) -> list[str]:
    return (names or "").replace(",", " ").split()


def _names(names: str | None) -> tuple[list[str], list[str]]:
    """Return names of formats, and of block formats."""
    words = _words(names)
    if names is not None and not words:
        raise UserError("--formats must name at least one format; got an empty list")
    for word in words:
        if word in precision_names() and word not in (*known(), *formats.known()):
            raise UserError(
                f"--formats must not name precisions; use --precision {word}"
            )
    in_blocks: list[str] = [
        block_formats[word].name for word in words if word in block_formats
    ]
    return [word for word in words if word not in block_formats], in_blocks


def _named(arguments: Namespace) -> tuple[list[str], list[Way]]:
    """Return names of formats; precisions and block formats, of either option."""
    named, in_blocks = _names(arguments.formats)
    words = [x for x in _words(arguments.precision) if whole_name(x) is None]
    wanted = [*in_blocks, *words]
    if arguments.precision is not None and not _words(arguments.precision):
        raise UserError(
            "--precision must name at least one precision; got an empty list"
        )
    return named, ways_of([*dict.fromkeys(wanted)])


def _whole(arguments: Namespace) -> list[str]:
    """Return the precisions that are compared with the exact product."""
    words = dict.fromkeys(_words(arguments.precision))
    return [word for word in words if whole_name(word) is not None]


def _facts(named: Sequence[str], given: str | None) -> list[Facts]:
    """Return the formats that are named; all signed ones where no option names any."""
    if given is None:
        return select(None, [*signed(), *NUMPY_NAMES[:2]])
    return select(",".join(named), ()) if named else []


def _factors(arguments: Namespace) -> tuple[Array, Array]:
    names = arguments.a, arguments.b
    a, b = (read(name) for name in names)
    for name, x in zip(names, (a, b), strict=True):
        if x.ndim not in (1, 2):
            raise UserError(
                f"{name} must be a matrix or a vector; got shape {x.shape}. To compare"
                f" storage formats use: tf32dtype compare {name}"
            )
        if not _fits_float64(x):
            raise UserError(
                f"{name} must hold numbers that float64 holds exactly, since products"
                f" are compared in float64; got {x.dtype} with more bits. Save"
                " x.astype(np.float64)"
            )
    a = a[np.newaxis] if a.ndim == 1 else a
    b = b[:, np.newaxis] if b.ndim == 1 else b
    if a.shape[1] != b.shape[0]:
        raise UserError(
            f"{names[0]} must have as many columns as {names[1]} has rows; "
            f"got {a.shape[1]} and {b.shape[0]}"
        )
    return a, b


def _fits_float64(x: Array) -> bool:
    """Return whether float64 holds all numbers, as far as longdouble shows it."""
    if x.dtype.kind not in "iuf" or x.dtype.itemsize < 8 or x.dtype == np.float64:
        return True
    with np.errstate(all="ignore"):
        return bool(np.all(x.astype(np.float64) == x.astype(np.longdouble)))


# -- reports --------------------------------------------------------------------


class _Candidate(Protocol):
    """A result that may be the cheapest one."""

    bytes: int

    @property
    def name(self) -> str: ...
    @property
    def cost(self) -> float: ...
    @property
    def snr(self) -> float: ...


def _report(arguments: Namespace, a: Array, b: Array) -> dict[str, Any]:
    return {
        "files": [arguments.a, arguments.b],
        "shape": {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]},
    }


def _add_cheapest(
    report: dict[str, Any], target: float | None, results: Sequence[_Candidate]
) -> None:
    """Add the cheapest result that reaches the target: by bytes, then by cost."""
    if target is None:
        return
    good = [result for result in results if result.snr >= target]
    best = min(good, key=lambda o: (o.bytes, o.cost, -o.snr), default=None)
    report["target_db"] = target
    report["cheapest"] = best and best.name


def _print(report: dict[str, Any], tables: list[Table]) -> None:
    files, shape = report["files"], report["shape"]
    if len(files) == 1:
        print(f"{' x '.join(map(str, shape)) or 'A number'} from {files[0]}")
    else:
        print(
            f"A {shape['m']} x {shape['k']} from {files[0]}, "
            f"B {shape['k']} x {shape['n']} from {files[1]}"
        )
        is_square = shape["m"] == shape["k"] == shape["n"]
        if is_square and files[0] != files[1] and have_one_name(*files):
            print(
                "A and B have the same name and shape: the table has the error of"
                " A @ B;"
                f" `tf32dtype diff {' '.join(map(quote, files))}` compares them"
            )
        condition = {name: number(x) for name, x in report["condition"].items()}
        print(
            f"Condition number of the dot products: median {condition['median']},"
            f" largest {condition['largest']}"
        )
        print(
            "Error bound of float32 sums: none, since A, B or sum |x_i y_i| overflows"
            " in float32"
            if report["condition"]["float32_overflows"]
            else "Error bound of float32 sums, relative:"
            f" median {condition['float32_bound_median']},"
            f" largest {condition['float32_bound_largest']}"
        )
    for table in tables:
        print()
        table.print()
    if "conclusions" in report:
        print("", *report["conclusions"], sep="\n")
    if "cheapest" in report:
        kinds = (kind for kind in ("format", "precision") if f"{kind}s" in report)
        kind, found = " or ".join(kinds), report["cheapest"]
        reaches = f"reaches {report['target_db']:g} dB"
        print(
            f"\nCheapest {kind} that {reaches}: {found}"
            if found
            else f"\nNo {kind} {reaches}"
        )
