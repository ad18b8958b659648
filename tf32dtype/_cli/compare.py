"""What the product A @ B of two files loses in each format, or storing one file.

FILE is a .npy file, FILE:NAME a tensor of a .npz, safetensors, GGUF, HDF5, Zarr or ONNX
file; blocks and their scales are taken as the numbers they stand for. A and B are
rounded to the format, multiplied exactly, summed in float32 and the sums rounded to the
format, as `A.astype(T) @ B.astype(T)` does; the float64 product is the truth.

SNR           -20 log10 of the relative error ||C - A @ B|| / ||A @ B|| (Frobenius),
              in dB; in brackets where the float32 sums are kept unrounded
overflows     numbers of A, of B and of the result beyond the format's range: they
              became Inf, NaN or the largest number
underflows    nonzero numbers below the smallest normal that did not stay exact
--scale       multiplies A, B and the result of formats below 16 bits by a power of
              two each, which brings the largest magnitude just inside the range
--precision   td.matmul's products, whose results are float32: f32, tf32, tf32x3, bf16,
              bf16x3, bf16x6, bf16x9, f16, fp8_e4m3, fp8_e5m2, and with both operands
              in a block format: mxfp8_e4m3, nvfp4, tcfp12, ... Bytes are those of what
              is multiplied, all parts of it, and of the result
condition     of a dot product: sum |x_i y_i| / |sum x_i y_i|; k 2^-24 times it
              bounds the relative error of a float32 sum of k products
--device      compares tensor cores instead, in the formats that they have, or in those
              that are named, block formats and --precision of parts among them: how
              far their float32 results are from float64, in brackets exact sums of
              the rounded operands; then each two of them, an ulp being the distance
              to the next float32
--target-db   names what takes the fewest bytes and reaches that SNR; the exit code is
              1 if nothing does

One FILE alone: the error of its numbers in each format and block format, whose blocks
lie along the last axis.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._formats.table import formats
from .._matmul.context import matmul_precision
from .._matmul.precisions import known as precision_names
from .._measures.error_measures import blocks
from .._measures.format_facts import NUMPY_NAMES, Facts, known, select, signed
from .._measures.units import find as find_units
from .._measures.ways import Way
from .._measures.ways import select as ways_of
from .._text import Table, number, print_json, progress
from ..blocks.formats import formats as block_formats
from . import (
    CommandError,
    compare_devices,
    compare_precisions,
    compare_products,
    compare_storage,
)
from .operands import read

Array = NDArray[Any]


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype compare`."""
    parser.add_argument(
        "a",
        metavar="A",
        help="a matrix, or a vector as a row: FILE.npy, FILE.safetensors:NAME, ...",
    )
    parser.add_argument(
        "b",
        metavar="B",
        nargs="?",
        help="a matrix, or a vector as a column; without it: what storing A loses",
    )
    parser.add_argument(
        "--formats", metavar="NAMES", help="names with commas between (all signed ones)"
    )
    parser.add_argument(
        "--precision", metavar="NAMES", help="bf16x9, tf32x3, mxfp8_e4m3, nvfp4, ..."
    )
    parser.add_argument(
        "--scale", action="store_true", help="scale what is below 16 bits"
    )
    parser.add_argument(
        "--target-db",
        type=float,
        metavar="DB",
        help="name the cheapest format whose SNR reaches this",
    )
    parser.add_argument(
        "--device",
        action="append",
        metavar="NAME",
        help="compare tensor cores: H100, A100, H100:mma.sync, ... (repeatable)",
    )


@matmul_precision(None)  # whatever the process has: NumPy is compared with
def run(arguments: Namespace) -> int:
    """Print the report; 1 if nothing reaches the target."""
    if arguments.target_db is not None and np.isnan(arguments.target_db):
        raise CommandError("--target-db must be a number of dB; got nan")
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


Report = tuple[dict[str, Any], list[Table]]


def _stored(arguments: Namespace) -> Report:
    for option in ("precision", "device"):
        if getattr(arguments, option):
            raise CommandError(
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
    forms = _facts(named, arguments.formats or arguments.precision)
    a, b = _factors(arguments)
    steps = len(forms) * len([*blocks(a.shape[0], b.shape[1])]) + len(ways)
    tables, report = [], _report(arguments, a, b)
    with progress(not arguments.json, "multiplying", steps) as advance:
        report["condition"], found = compare_products.compare(
            a, b, forms, advance, scale=arguments.scale
        )
        ways_found = compare_precisions.compare(a, b, ways, advance)
    if found:
        report["formats"] = [loss.record() for loss in found]
        tables.append(compare_products.table(found, scaled=arguments.scale))
    if ways_found:
        report["precisions"] = [result.record() for result in ways_found]
        tables.append(compare_precisions.table(ways_found))
    candidates: list[_Candidate] = [*found, *ways_found]
    _add_cheapest(report, arguments.target_db, candidates)
    return report, tables


def _on_devices(arguments: Namespace) -> Report:
    if arguments.target_db is not None:
        raise CommandError(
            "--target-db and --device must not be given together; use --target-db to"
            " choose among formats, --device to compare tensor cores"
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
    """Names of formats, and of block formats."""
    words = _words(names)
    if names is not None and not words:
        raise CommandError("--formats must name at least one format; got an empty list")
    for word in words:
        if word in precision_names() and word not in (*known(), *formats.known()):
            raise CommandError(
                f"--formats must not name precisions; use --precision {word}"
            )
    in_blocks: list[str] = [
        block_formats[word].name for word in words if word in block_formats
    ]
    return [word for word in words if word not in block_formats], in_blocks


def _named(arguments: Namespace) -> tuple[list[str], list[Way]]:
    """Names of formats; precisions and block formats, of either option."""
    named, in_blocks = _names(arguments.formats)
    wanted = [*in_blocks, *_words(arguments.precision)]
    if arguments.precision is not None and not _words(arguments.precision):
        raise CommandError(
            "--precision must name at least one precision; got an empty list"
        )
    return named, ways_of([*dict.fromkeys(wanted)])


def _facts(named: Sequence[str], given: str | None) -> list[Facts]:
    """The formats that are named; all signed ones where no option names any."""
    if given is None:
        return select(None, [*signed(), *NUMPY_NAMES[:2]])
    return select(",".join(named), ()) if named else []


def _factors(arguments: Namespace) -> tuple[Array, Array]:
    names = arguments.a, arguments.b
    a, b = (read(name) for name in names)
    for name, x in zip(names, (a, b), strict=True):
        if x.ndim not in (1, 2):
            raise CommandError(
                f"{name} must be a matrix or a vector; got shape {x.shape}. To compare"
                f" storage formats use: tf32dtype compare {name}"
            )
    a = a[np.newaxis] if a.ndim == 1 else a
    b = b[:, np.newaxis] if b.ndim == 1 else b
    if a.shape[1] != b.shape[0]:
        raise CommandError(
            f"{names[0]} must have as many columns as {names[1]} has rows; "
            f"got {a.shape[1]} and {b.shape[0]}"
        )
    return a, b


# -- reports --------------------------------------------------------------------


class _Candidate(Protocol):
    """What may be the cheapest."""

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
    """What has the fewest bytes, then the least cost, of those that reach a target."""
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
        condition = report["condition"]
        for name in ("median", "greatest"):
            print(
                f"condition of the dot products, {name}: {number(condition[name])}; "
                f"float32 bound {number(condition[f'float32_bound_{name}'])}"
            )
    for table in tables:
        print()
        table.print()
    if "cheapest" in report:
        found = report["cheapest"] or "none of these"
        print(f"\nCheapest that reaches {report['target_db']:g} dB: {found}")
