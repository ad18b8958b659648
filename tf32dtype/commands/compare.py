"""What the product A @ B of two files loses in each format.

Both operands are rounded to the format, multiplied exactly, summed in float32 and
the sums rounded to the format, as `A.astype(T) @ B.astype(T)` does; the float64
product is the truth.

SNR           -20 log10 of the relative error ||C - A @ B|| / ||A @ B|| (Frobenius),
              in dB; in brackets where the float32 sums are kept unrounded
overflows     numbers of A, of B and of the result beyond the format's range: they
              became Inf, NaN or the largest number
underflows    nonzero numbers below the smallest normal that did not stay exact
condition     of a dot product: sum |x_i y_i| / |sum x_i y_i|; k 2^-24 times it
              bounds the relative error of a float32 sum of k products
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import load
from . import CommandError
from .facts import NUMPY_NAMES, Facts, select, signed
from .measures import snr_db
from .text import Table, decibels, number, print_json, size

Array = NDArray[Any]

_HEADER = (
    "format",
    "SNR dB",
    "(sums)",
    "largest rel. error",
    "overflows A, B, C",
    "underflows A, B, C",
    "bytes",
)
_BLOCK_ELEMENTS = 1 << 22  # of the result: 32 MiB in float64


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype compare`."""
    parser.add_argument("a", metavar="A.npy", help="a matrix, or a vector as a row")
    parser.add_argument("b", metavar="B.npy", help="a matrix, or a vector as a column")
    parser.add_argument(
        "--formats", metavar="NAMES", help="names with commas between (all signed ones)"
    )
    parser.add_argument(
        "--target-db",
        type=float,
        metavar="DB",
        help="name the cheapest format whose SNR reaches this",
    )


def run(arguments: Namespace) -> None:
    """Print the report."""
    chosen = select(arguments.formats, [*signed(), *NUMPY_NAMES[:2]])
    a = _read(arguments.a)
    b = _read(arguments.b)
    a = a[np.newaxis] if a.ndim == 1 else a
    b = b[:, np.newaxis] if b.ndim == 1 else b
    if a.shape[1] != b.shape[0]:
        raise CommandError(
            f"{arguments.a} has {a.shape[1]} columns and {arguments.b} has "
            f"{b.shape[0]} rows: they do not multiply"
        )
    conditions, losses = compare(a, b, chosen)
    report: dict[str, Any] = {
        "shape": {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]},
        "condition": conditions,
        "formats": [loss.record() for loss in losses],
    }
    if arguments.target_db is not None:
        report["target_db"] = arguments.target_db
        report["cheapest"] = cheapest(losses, arguments.target_db)
    if arguments.json:
        print_json(report)
    else:
        _print(arguments, report, losses)


@dataclass
class Loss:
    """What one format loses, gathered block by block."""

    form: Facts
    bytes: int
    error_squares: float = 0.0
    sum_error_squares: float = 0.0  # of the unrounded float32 sums
    truth_squares: float = 0.0
    largest_relative: float = 0.0
    overflows: dict[str, int] = field(default_factory=lambda: _zeros())
    underflows: dict[str, int] = field(default_factory=lambda: _zeros())

    @property
    def snr(self) -> float:
        """In dB, of the result in the format."""
        return snr_db(self.error_squares, self.truth_squares)

    @property
    def sum_snr(self) -> float:
        """In dB, of the float32 sums."""
        return snr_db(self.sum_error_squares, self.truth_squares)

    def operand(self, name: str, source: Array, rounded: Array) -> None:
        """Count what left the range when an operand was rounded."""
        self.overflows[name] += _overflows(self.form, source, rounded)
        self.underflows[name] += _underflows(self.form, source, rounded)

    def result(self, truth: Array, sums: Array, rounded: Array) -> None:
        """Take in a block of the product."""
        lost = np.isfinite(truth) & ~np.isfinite(rounded)
        self.overflows["result"] += int(np.count_nonzero(lost)) + (
            _overflows(self.form, sums, rounded) if _saturates(self.form) else 0
        )
        self.underflows["result"] += _underflows(self.form, sums, rounded)
        error = np.abs(_finite_or_infinite(rounded) - truth)
        self.error_squares += float(np.vdot(error, error))
        sum_error = _finite_or_infinite(sums) - truth
        self.sum_error_squares += float(np.vdot(sum_error, sum_error))
        self.truth_squares += float(np.vdot(truth, truth))
        wrong = error > 0
        if wrong.any():
            worst = np.max(error[wrong] / np.abs(truth[wrong]))
            self.largest_relative = max(self.largest_relative, float(worst))

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": self.form.name,
            "snr_db": self.snr,
            "snr_db_float32_sums": self.sum_snr,
            "largest_relative_error": self.largest_relative,
            "overflows": self.overflows,
            "underflows": self.underflows,
            "bytes": self.bytes,
        }


def compare(
    a: Array, b: Array, forms: list[Facts]
) -> tuple[dict[str, float], list[Loss]]:
    """Compare the product in each format with the product in float64.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n), of any real dtype.
    forms : list of Facts
        The formats.

    Returns
    -------
    dict, list of Loss
        Condition numbers of the dot products, and a Loss for each format.

    Notes
    -----
    Works on blocks of rows: beside the operands it holds B in float64, one
    rounded B at a time and, for the median, a condition number an entry.
    """
    numbers = a.size + b.size + a.shape[0] * b.shape[1]
    losses = [Loss(form, form.dtype.itemsize * numbers) for form in forms]
    truth_b = b.astype(np.float64)
    conditions = np.empty((a.shape[0], b.shape[1]), np.float32)
    with np.errstate(all="ignore"):
        for loss in losses:
            loss.operand("b", truth_b, b.astype(loss.form.dtype))
        for rows in _blocks(a.shape[0], b.shape[1]):
            truth_a = a[rows].astype(np.float64)
            truth = truth_a @ truth_b
            conditions[rows] = np.abs(truth_a) @ np.abs(truth_b) / np.abs(truth)
            for loss in losses:
                rounded_a = a[rows].astype(loss.form.dtype)
                loss.operand("a", truth_a, rounded_a)
                sums = _float32_product(rounded_a, b.astype(loss.form.dtype))
                loss.result(truth, sums, sums.astype(loss.form.dtype))
    return _condition_report(conditions, a.shape[1]), losses


def cheapest(losses: list[Loss], target: float) -> str | None:
    """The format of fewest bytes, then bits, that reaches an SNR; None if none does."""
    good = [loss for loss in losses if loss.snr >= target]
    if not good:
        return None
    return min(good, key=lambda o: (o.bytes, o.form.bits, -o.snr)).form.name


# -- input --------------------------------------------------------------------


def _read(path: str) -> Array:
    try:
        with open(path, "rb") as stream:
            magic = stream.read(len(np.lib.format.MAGIC_PREFIX))
        if not magic.startswith((np.lib.format.MAGIC_PREFIX, b"PK")):
            raise CommandError(f"{path} is no .npy file")
        array = load(path, mmap_mode="r")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise CommandError(f"{path} cannot be read: {error}") from None
    if not isinstance(array, np.ndarray):
        raise CommandError(f"{path} is an archive; give a .npy file")
    if array.dtype.kind not in "biuf" and not _is_ours(array):
        raise CommandError(f"{path} holds {array.dtype}, not real numbers")
    if array.ndim not in (1, 2) or array.size == 0:
        raise CommandError(
            f"{path} has shape {array.shape}; a matrix or a vector is needed"
        )
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise CommandError(f"{path} holds {bad} values that are Inf or NaN")
    return array


def _is_ours(array: Array) -> bool:
    return bool(np.issubdtype(array.dtype, np.floating))


def _blocks(m: int, n: int) -> Iterator[slice]:
    step = max(1, _BLOCK_ELEMENTS // n)
    for start in range(0, m, step):
        yield slice(start, min(m, start + step))


def _float32_product(a: Array, b: Array) -> Array:
    if a.dtype == np.float64:
        return a @ b
    if a.dtype.kind == "f":  # NumPy's float16 and float32
        return a.astype(np.float32) @ b.astype(np.float32)
    sums: Array = np.matmul(a, b, dtype=np.float32)
    return sums


# -- measures -----------------------------------------------------------------


def _zeros() -> dict[str, int]:
    return {"a": 0, "b": 0, "result": 0}


def _finite_or_infinite(x: Array) -> Array:
    """In float64; a NaN, which is an overflow here, becomes an infinite error."""
    wide = x.astype(np.float64)
    wide[np.isnan(wide)] = np.inf
    return wide


def _saturates(form: Facts) -> bool:
    return not (form.has_infinity or form.has_nan)


def _overflows(form: Facts, source: Array, rounded: Array) -> int:
    if _saturates(form):
        half = form.spacing(Fraction(form.max)) / 2
        limit = float(Fraction(form.max) + half)  # the tie goes up, to an even number
        beyond = np.abs(source) >= limit
    else:
        beyond = np.isfinite(source) & ~np.isfinite(rounded)
    return int(np.count_nonzero(beyond))


def _underflows(form: Facts, source: Array, rounded: Array) -> int:
    tiny = (source != 0) & (np.abs(source) < form.smallest_normal)
    return int(np.count_nonzero(rounded[tiny].astype(np.float64) != source[tiny]))


def _condition_report(conditions: Array, k: int) -> dict[str, float]:
    """NaN, from dot products of zeros alone, is left out."""
    known = conditions[~np.isnan(conditions)]
    if known.size == 0:
        known = np.ones(1, np.float32)
    median = float(np.median(known))
    greatest = float(np.max(known))
    unit = k * 2.0**-24
    return {
        "median": median,
        "greatest": greatest,
        "float32_bound_median": unit * median,
        "float32_bound_greatest": unit * greatest,
    }


# -- text ---------------------------------------------------------------------


def _print(arguments: Namespace, report: dict[str, Any], losses: list[Loss]) -> None:
    shape = report["shape"]
    condition = report["condition"]
    print(
        f"A {shape['m']} x {shape['k']} from {arguments.a}, "
        f"B {shape['k']} x {shape['n']} from {arguments.b}"
    )
    for name in ("median", "greatest"):
        print(
            f"condition of the dot products, {name}: {number(condition[name])}; "
            f"float32 bound {number(condition[f'float32_bound_{name}'])}"
        )
    print()
    Table(
        "A @ B in each format, against float64",
        _HEADER,
        [
            [
                loss.form.name,
                decibels(loss.snr),
                f"({decibels(loss.sum_snr)})",
                number(loss.largest_relative),
                ", ".join(map(str, loss.overflows.values())),
                ", ".join(map(str, loss.underflows.values())),
                size(loss.bytes),
            ]
            for loss in losses
        ],
    ).print()
    if "cheapest" in report:
        found = report["cheapest"] or "none of these formats"
        print(f"\nCheapest that reaches {report['target_db']:g} dB: {found}")
