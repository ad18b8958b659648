"""`td.report`: the losses of matrix multiplications in lower precisions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

if TYPE_CHECKING:
    from ..._formats.aliases import BlockFormatNamed, FormatAlias, FormatName, NumPyName
    from ..._matmul.precisions import PrecisionName
    from ...tensor_core.device import DeviceInstruction, DeviceName
    from .advice import Advice, CallSiteReport
    from .call_sites import NotReached, Run
    from .collect import Collector
    from .options import ReportOptions
    from .report import Report

    Measured: TypeAlias = PrecisionName | BlockFormatNamed
    Unit: TypeAlias = DeviceName | DeviceInstruction


class report:
    """Report how much precision each matrix multiplication of a block needs.

    The block runs unchanged. Every matrix multiplication of the process, by NumPy,
    SciPy or any other caller of BLAS, in all threads, is counted by call site. When the
    block ends, samples of the operands are multiplied in each precision.

    Parameters
    ----------
    precision : str or sequence of str, optional
        The precisions and block formats to measure besides "f32"; all by default.
    device : str or sequence of str, optional
        Devices whose tensor cores are measured too, such as "H100" or
        "H100:mma.sync".
    target_db : float
        The SNR in dB that makes a precision sufficient (default: 40). Every error must
        also be at most 10^(-target_db/20) of the sum of the magnitudes of the same
        row's and column's products.
    exact : bool
        Whether to keep and measure all operands instead of samples, however long it
        takes.
    dots : bool
        Whether to watch dot products and norms too.
    lapack : bool
        Whether to watch the matrix multiplications inside LAPACK too.
    stop_at : str or sequence of str, optional
        Packages whose lines are shown as if they were yours.
    only, excepted : str or sequence of str, optional
        Regions of the source, "FILE" or "FILE:FUNCTION", to watch or to exclude.
    by : {"operand", "line"}
        The rows of the report. "operand": one row per line and constant matrix that the
        line multiplies by. This separates the layers of a network that all call one
        function. "line": one row per line.
    arithmetic : str, optional
        A format to round NumPy's float32 arithmetic to in the block; matrix
        multiplications too if a precision has that name. See `tf32dtype.arithmetic`.
        The report then includes the effects of this rounding.
    float64 : bool
        Whether float64 values are rounded too.
    trial : callable, optional
        A function without arguments that computes the program's numbers and returns
        them: arrays, numbers, or lists and dictionaries of these. After the block it is
        called twice as it is, and once with each call site in its advised precision.
        The advice then says how much the numbers change.

    Attributes
    ----------
    call_sites : tuple
        A triple (call_site, figures, verdict) for each call site, the heaviest first.
    not_reached : tuple
        The work that was not reached.
    advice : tuple
        The advice, one line each.

    Raises
    ------
    ValueError
        For an unknown precision, device, file, function or `by`.
    TypeError
        If `trial` is not a function, `target_db` is not a number, or a name is not a
        string.
    RuntimeError
        If a result is read before the block has ended, or the report is entered twice.

    See Also
    --------
    matmul_precision : Run a block in a precision.
    arithmetic : Round the float32 arithmetic of a block to a format.

    Notes
    -----
    The command ``tf32dtype report script.py`` does the same for a program.
    A notebook shows a report that is a cell's value as a table with the advice.
    See :doc:`/how_to/report` for the measurements.

    Examples
    --------
    >>> import numpy as np, tf32dtype as td
    >>> a = np.ones((64, 64), np.float32)
    >>> with td.report() as r:  # doctest: +SKIP
    ...     c = a @ a
    >>> r.call_sites[0].verdict.text  # doctest: +SKIP
    'fp8_e4m3 is enough'
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
        by: Literal["operand", "line"] = "operand",
        arithmetic: FormatName | FormatAlias | NumPyName | None = None,
        float64: bool = False,
        trial: Callable[[], Any] | None = None,
    ) -> None:
        from .options import options

        if not (trial is None or callable(trial)):
            raise TypeError(f"trial must be a function; got {type(trial).__name__}")
        self._trial = trial

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
            by=by,
            arithmetic=arithmetic,
            float64=float64,
        )
        self._collector: Collector | None = None
        self._made: Report | None = None

    def __enter__(self) -> report:
        from . import collect
        from .rounded import rounded

        if self._collector is not None:
            raise RuntimeError(
                "a report cannot be entered twice; use a new td.report() for each block"
            )
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

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        assert self._collector is not None
        try:
            self._rounded.__exit__(None, None, None)
        finally:
            run = self._collector.stop()
        from .naming import kind_and_message
        from .report import Report

        ending = "" if error is None else f"raised {kind_and_message(error)}"
        made = Report(run, self._options, ending)
        if self._trial is not None and error is None:
            made.try_function(self._trial)
        self._made = made

    @property
    def _report(self) -> Report:
        if self._made is None:
            raise RuntimeError("the report is not available before its block ends")
        return self._made

    @property
    def run(self) -> Run:
        """The run that was watched."""
        return self._report.run

    @property
    def call_sites(self) -> tuple[CallSiteReport, ...]:
        """Each call site with its figures and verdict, the heaviest first."""
        return self._report.call_sites

    @property
    def not_reached(self) -> tuple[NotReached, ...]:
        """The work that was not reached."""
        return self._report.not_reached

    @property
    def advice(self) -> tuple[Advice, ...]:
        """The advice, one line each."""
        return self._report.advice

    def print(self, stream: TextIO | None = None) -> None:
        """Print the table and the advice.

        Parameters
        ----------
        stream : text file, optional
            The file to print to (default: standard output).

        Raises
        ------
        RuntimeError
            If the block has not ended.
        """
        self._report.print(stream)

    def _repr_html_(self) -> str | None:
        """Return the table and the advice in HTML; None before the block ends."""
        return self._made.to_fragment() if self._made else None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a page or as JSON.

        Parameters
        ----------
        path : path
            The file, which ends in ".html" or ".json".

        Raises
        ------
        ValueError
            For another ending, and for a folder that does not exist.
        OSError
            If the file cannot be written; an existing file is then unchanged.
        RuntimeError
            If the block has not ended.
        """
        from ..._base.arguments import checked_path

        self._report.save(checked_path(path))
