"""`td.report`: what the products of a block would lose, and where."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, TextIO, TypeAlias

if TYPE_CHECKING:
    from .._formats.aliases import (
        BlockFormatNamed,
        FormatAlias,
        FormatName,
        NumPyName,
    )
    from .._matmul.precisions import PrecisionName
    from ..tensor_core.device import DeviceInstruction, DeviceName
    from .advice import Advice, PlaceReport
    from .collect import Collector
    from .options import ReportOptions
    from .places import Elsewhere, Run
    from .report import Report

    Measured: TypeAlias = PrecisionName | BlockFormatNamed
    Unit: TypeAlias = DeviceName | DeviceInstruction


class report:
    """Tell what the products of a block would lose in other precisions, and where.

    The block runs as it is. Every matrix product of the process, of NumPy, SciPy and
    whatever calls BLAS, in all threads, is counted by its place in the source; samples
    of its operands are multiplied in each precision when the block ends.

    Parameters
    ----------
    precision : str or sequence of str, optional
        What to measure, besides "f32": precisions of `matmul_precision` and block
        formats; all by default.
    device : str or sequence of str, optional
        Devices whose tensor cores are measured too, "H100" or "H100:mma.sync".
    target_db : float
        What a place is said to bear: a precision whose SNR reaches so many dB, and
        whose every error is at most 10^(-target_db/20) of the sum of the magnitudes of
        the same row's and column's products.
    exact : bool
        Keep all operands and measure all, however long it takes.
    dots : bool
        Watch dots and norms too.
    lapack : bool
        Watch the products inside LAPACK too.
    stop_at : str or sequence of str
        Packages whose lines are shown as if they were the user's.
    only, excepted : str or sequence of str
        Regions of the source, "FILE" or "FILE:FUNCTION", that alone are watched, or
        that are not.
    arithmetic : str, optional
        A format that NumPy's float32 arithmetic is rounded to in the block, and its
        products if there is a precision of that name: see `tf32dtype.arithmetic`. What
        that did is part of the report.
    float64 : bool
        Whether float64 numbers are rounded too.

    Attributes
    ----------
    places : tuple
        A triple (place, figures, verdict) for each place, the heaviest first.
    elsewhere : tuple
        What was not reached.
    advice : tuple
        What to do.

    Raises
    ------
    ValueError
        For an unknown precision, device, file or function.
    RuntimeError
        If it is asked before the block has ended, or entered twice.

    See Also
    --------
    matmul_precision : To compute in a precision.

    Notes
    -----
    The command ``tf32dtype report script.py`` does the same for a program.
    See :doc:`/how_to/report` for what the figures are.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.ones((64, 64), np.float32)
    >>> with td.report() as r:  # doctest: +SKIP
    ...     c = a @ a
    >>> r.places[0].verdict.text  # doctest: +SKIP
    'bears fp8_e4m3'
    >>> r.save("report.html")  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        precision: Measured | Iterable[Measured] | None = None,
        device: Unit | Iterable[Unit] | None = None,
        target_db: float = 40.0,
        exact: bool = False,
        dots: bool = False,
        lapack: bool = False,
        stop_at: str | Iterable[str] = (),
        only: str | Iterable[str] = (),
        excepted: str | Iterable[str] = (),
        arithmetic: FormatName | FormatAlias | NumPyName | None = None,
        float64: bool = False,
    ) -> None:
        from .options import options

        self._options: ReportOptions = options(
            precision=precision,
            device=device,
            target_db=target_db,
            exact=exact,
            dots=dots,
            lapack=lapack,
            stop_at=stop_at,
            only=only,
            excepted=excepted,
            arithmetic=arithmetic,
            float64=float64,
        )
        self._collector: Collector | None = None
        self._made: Report | None = None

    def __enter__(self) -> report:
        from . import collect
        from .rounded import rounded

        if self._collector is not None:
            raise RuntimeError("a report is made once: td.report() for each block")
        collector = collect.Collector(self._options.collector)
        collector.start()
        self._rounded = rounded(self._options)
        try:
            self._rounded.__enter__()
        except BaseException:
            collector.stop()
            raise
        self._collector = collector
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._collector is not None
        try:
            self._rounded.__exit__(None, None, None)
        finally:
            run = self._collector.stop()
        from .report import Report

        ending = "" if error is None else f"raised {kind_and_message(error)}"
        self._made = Report(run, self._options, ending)

    @property
    def _report(self) -> Report:
        if self._made is None:
            raise RuntimeError("the report is made when the block ends")
        return self._made

    @property
    def run(self) -> Run:
        """What was seen."""
        return self._report.run

    @property
    def places(self) -> tuple[PlaceReport, ...]:
        """Place, figures and verdict of each, the heaviest first."""
        return self._report.places

    @property
    def elsewhere(self) -> tuple[Elsewhere, ...]:
        """What was not reached."""
        return self._report.elsewhere

    @property
    def advice(self) -> tuple[Advice, ...]:
        """What to do."""
        return self._report.advice

    def print(self, stream: TextIO | None = None) -> None:
        """Write a table and the advice.

        Parameters
        ----------
        stream : text file, optional
            By default standard output.
        """
        self._report.print(stream)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page, or data for programs.

        Parameters
        ----------
        path : path
            It ends in ".html" or ".json".
        """
        self._report.save(os.fspath(path))


def kind_and_message(error: BaseException) -> str:
    """An exception in one line."""
    name = type(error).__name__
    lines = str(error).splitlines()
    return f"{name}: {lines[0]}" if lines else name
