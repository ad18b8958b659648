"""What the product A @ B of two files loses in each format.

Both operands are rounded to the format, multiplied exactly, summed in float32 and
the sums rounded to the format, as `A.astype(T) @ B.astype(T)` does; the float64
product is the truth.

SNR           -20 log10 of the relative error ||C - A @ B|| / ||A @ B|| (Frobenius),
              in dB; in brackets where the float32 sums are kept unrounded
overflows     numbers of A, of B and of the result beyond the format's range: they
              became Inf, NaN or the largest number
underflows    nonzero numbers below the smallest normal that did not stay exact
--scale       multiplies A, B and the result of formats below 16 bits by a power of
              two each, which brings the largest magnitude just inside the range
condition     of a dot product: sum |x_i y_i| / |sum x_i y_i|; k 2^-24 times it
              bounds the relative error of a float32 sum of k products
--device      compares tensor cores instead, in the formats that they have: how far
              their float32 results are from float64, in brackets exact sums of the
              rounded operands; then each two of them, an ulp being the distance to
              the next float32
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import load
from ..precision import matmul_precision
from . import CommandError, devices
from .facts import NUMPY_NAMES, Facts, select, signed
from .measures import (
    blocks,
    errors,
    largest_magnitude,
    largest_relative,
    power_of_two_scale,
    snr_db,
)
from .text import Table, decibels, number, print_json, size

Array = NDArray[Any]

_HEADER = (
    "format",
    "SNR dB",
    "(sums)",
    "max rel. error",
    "overflows A,B,C",
    "underflows A,B,C",
    "bytes",
)
_TENSORS = ("a", "b", "result")


def add_arguments(parser: ArgumentParser) -> None:
    """Arguments of `tf32dtype compare`."""
    parser.add_argument("a", metavar="A.npy", help="a matrix, or a vector as a row")
    parser.add_argument("b", metavar="B.npy", help="a matrix, or a vector as a column")
    parser.add_argument(
        "--formats", metavar="NAMES", help="names with commas between (all signed ones)"
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
def run(arguments: Namespace) -> None:
    """Print the report."""
    units = devices.find(arguments.device or [])
    if units:
        if arguments.target_db is not None:
            raise CommandError("--target-db chooses a format, --device compares units")
        chosen = select(arguments.formats, devices.formats(units))
        devices.check(units, chosen)
    else:
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
    report: dict[str, Any] = {
        "shape": {"m": a.shape[0], "k": a.shape[1], "n": b.shape[1]}
    }
    if units:
        report["condition"] = conditions(a, b)
        results, pairs = devices.compare(a, b, units, chosen, scale=arguments.scale)
        report["devices"] = [result.record() for result in results]
        report["pairs"] = [pair.record() for pair in pairs]
        tables = devices.tables(results, pairs, scaled=arguments.scale)
    else:
        report["condition"], losses = compare(a, b, chosen, scale=arguments.scale)
        report["formats"] = [loss.record() for loss in losses]
        tables = [_table(losses, scaled=arguments.scale)]
        if arguments.target_db is not None:
            report["target_db"] = arguments.target_db
            report["cheapest"] = cheapest(losses, arguments.target_db)
    if arguments.json:
        print_json(report)
    else:
        _print(arguments, report, tables)


@dataclass(frozen=True)
class Scales:
    """What the numbers are multiplied by before they are rounded."""

    a: float = 1.0
    b: float = 1.0
    result: float = 1.0


@dataclass
class Loss:
    """What one format loses, gathered block by block."""

    form: Facts
    scales: Scales
    bytes: int
    error_squares: float = 0.0
    sum_error_squares: float = 0.0  # of the unrounded float32 sums
    truth_squares: float = 0.0
    largest_relative: float = 0.0
    overflows: Counter[str] = field(default_factory=Counter)
    underflows: Counter[str] = field(default_factory=Counter)

    @property
    def snr(self) -> float:
        """In dB, of the result in the format."""
        return snr_db(self.error_squares, self.truth_squares)

    @property
    def sum_snr(self) -> float:
        """In dB, of the float32 sums."""
        return snr_db(self.sum_error_squares, self.truth_squares)

    def round(self, name: str, x: Array) -> Array:
        """Numbers of `a`, `b` or `result` in the format, with their scale."""
        scale = getattr(self.scales, name)
        return (x if scale == 1 else x.astype(np.float64) * scale).astype(
            self.form.dtype
        )

    def count(self, name: str, exact: Array, rounded: Array) -> None:
        """Count what left the range when `exact`, in float64, was rounded."""
        exact = exact * getattr(self.scales, name)
        self.overflows[name] += _overflows(self.form, exact, rounded)
        self.underflows[name] += _underflows(self.form, exact, rounded)

    def take(self, truth: Array, rounded_a: Array, rounded_b: Array) -> None:
        """Take in a block of the product."""
        sums = _float32_product(rounded_a, rounded_b).astype(np.float64)
        sums /= self.scales.a * self.scales.b
        rounded = self.round("result", sums)
        self.count("result", np.where(np.isfinite(sums), sums, truth), rounded)
        result = rounded.astype(np.float64) / self.scales.result
        error = errors(result, truth)
        sum_error = errors(sums, truth)
        self.error_squares += float(np.vdot(error, error))
        self.sum_error_squares += float(np.vdot(sum_error, sum_error))
        self.truth_squares += float(np.vdot(truth, truth))
        worst = largest_relative(error, truth)
        self.largest_relative = max(self.largest_relative, worst)

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": self.form.name,
            "scales": asdict(self.scales),
            "snr_db": self.snr,
            "snr_db_float32_sums": self.sum_snr,
            "largest_relative_error": self.largest_relative,
            "overflows": {name: self.overflows[name] for name in _TENSORS},
            "underflows": {name: self.underflows[name] for name in _TENSORS},
            "bytes": self.bytes,
        }


def compare(
    a: Array, b: Array, forms: list[Facts], *, scale: bool = False
) -> tuple[dict[str, float], list[Loss]]:
    """Compare the product in each format with the product in float64.

    Parameters
    ----------
    a, b : numpy.ndarray
        Finite matrices, (m, k) and (k, n), of any real dtype.
    forms : list of Facts
        The formats.
    scale : bool
        Whether formats below 16 bits get scales.

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
    truth_b = b.astype(np.float64)
    with np.errstate(all="ignore"):
        conditions, amax = _conditions(a, truth_b)
        losses = []
        for form in forms:
            scales = Scales()
            if scale and form.bits < 16:
                tensors = (largest_magnitude(a), largest_magnitude(b), amax)
                scales = Scales(*(power_of_two_scale(x, form) for x in tensors))
            loss = Loss(form, scales, form.dtype.itemsize * numbers)
            loss.count("b", truth_b, loss.round("b", b))
            losses.append(loss)
        for rows in blocks(a.shape[0], b.shape[1]):
            truth_a = a[rows].astype(np.float64)
            truth = truth_a @ truth_b
            for loss in losses:
                rounded_a = loss.round("a", a[rows])
                loss.count("a", truth_a, rounded_a)
                loss.take(truth, rounded_a, loss.round("b", b))
    return _condition_report(conditions, a.shape[1]), losses


def conditions(a: Array, b: Array) -> dict[str, float]:
    """Condition numbers of the dot products, and bounds of float32's error."""
    with np.errstate(all="ignore"):
        found, _ = _conditions(a, b.astype(np.float64))
    return _condition_report(found, a.shape[1])


def _conditions(a: Array, truth_b: Array) -> tuple[Array, float]:
    """Condition numbers of all dot products, and the largest magnitude of one."""
    conditions = np.empty((a.shape[0], truth_b.shape[1]), np.float32)
    amax = 0.0
    for rows in blocks(*conditions.shape):
        truth_a = a[rows].astype(np.float64)
        truth = np.abs(truth_a @ truth_b)
        conditions[rows] = np.abs(truth_a) @ np.abs(truth_b) / truth
        amax = max(amax, float(truth.max()))
    return conditions, amax


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
    if array.dtype.kind not in "biuf":
        raise CommandError(f"{path} holds {array.dtype}, not real numbers")
    if array.ndim not in (1, 2) or array.size == 0:
        raise CommandError(
            f"{path} has shape {array.shape}; a matrix or a vector is needed"
        )
    bad = array.size - int(np.count_nonzero(np.isfinite(array)))
    if bad:
        raise CommandError(f"{path} holds {bad} values that are Inf or NaN")
    return array


def _float32_product(a: Array, b: Array) -> Array:
    if a.dtype == np.float64:
        return a @ b
    if a.dtype in (np.float16, np.float32):
        return a.astype(np.float32) @ b.astype(np.float32)
    sums: Array = np.matmul(a, b, dtype=np.float32)
    return sums


# -- measures -----------------------------------------------------------------


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
    got = rounded[tiny].astype(np.float64)
    return int(np.count_nonzero((got != source[tiny]) & np.isfinite(got)))


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


def _print(arguments: Namespace, report: dict[str, Any], tables: list[Table]) -> None:
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
    for table in tables:
        print()
        table.print()
    if "cheapest" in report:
        found = report["cheapest"] or "none of these formats"
        print(f"\nCheapest that reaches {report['target_db']:g} dB: {found}")


def _table(losses: list[Loss], *, scaled: bool) -> Table:
    return Table(
        "A @ B in each format, against float64" + ", scaled below 16 bits" * scaled,
        _HEADER,
        [
            [
                loss.form.name,
                decibels(loss.snr),
                f"({decibels(loss.sum_snr)})",
                number(loss.largest_relative),
                ",".join(str(loss.overflows[name]) for name in _TENSORS),
                ",".join(str(loss.underflows[name]) for name in _TENSORS),
                size(loss.bytes),
            ]
            for loss in losses
        ],
    )
