"""A program, or a block, in another format: NumPy's arithmetic and the products."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from ..._matmul.precisions import Settings, precision_of_format
from ..arithmetic import arithmetic
from ..context import watched_precision
from .options import ReportOptions


@contextmanager
def rounded(options: ReportOptions) -> Iterator[None]:
    """Round as a report is asked to, in the whole process."""
    if options.arithmetic is None:
        yield
        return
    precision = precision_of_format(options.arithmetic)
    with ExitStack() as stack:
        if precision:
            settings = Settings(
                precision, float64=options.float64, blas=True, dots=True
            )
            stack.enter_context(watched_precision(settings))
        stack.enter_context(
            arithmetic(options.arithmetic, float64=options.float64, watch=True)
        )
        yield
