"""The collector: watches a process's products between `start` and `stop`."""

from __future__ import annotations

from dataclasses import dataclass

from .places import Run
from .regions import Region


@dataclass(frozen=True)
class CollectorOptions:
    """What a collector watches, and where it looks for places."""

    #: dots and norms too
    dots: bool = False
    #: the products inside LAPACK too
    lapack: bool = False
    #: keep all rows, columns and products: no sampling
    exact: bool = False
    #: packages whose frames count as the user's code: places inside of them are shown
    stop_at: tuple[str, ...] = ()
    #: products of these regions alone; empty: of all
    only: tuple[Region, ...] = ()
    #: products of these are left out
    excepted: tuple[Region, ...] = ()


class Collector:
    """Watches products. One runs at a time.

    Parameters
    ----------
    options : CollectorOptions
        What to watch.
    argv : tuple of str
        The program and its arguments; empty for a `with` block.
    """

    def __init__(self, options: CollectorOptions, argv: tuple[str, ...] = ()) -> None:
        self.options = options
        self.argv = argv

    def start(self) -> None:
        """Begin to watch.

        Raises
        ------
        UserError
            If products cannot be watched here, or a collector is at work.
        """
        raise NotImplementedError

    def stop(self) -> Run:
        """Cease to watch, in whatever thread; what was seen."""
        raise NotImplementedError
