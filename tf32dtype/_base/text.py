"""How the commands and the report write numbers, tables and JSON.

On a terminal, tables are no wider than it is, and rich draws them if it is installed. A
pipe gets plain text, one line per row.
"""

import io
import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GAP = 2  # blanks between columns
_SHORTEST = 12  # characters that are left of a name where a terminal is narrow
_PARTS = re.compile(r"[^./]+")  # of a tensor's name, or a path


class Painted(str):
    """Text in pieces that rich gives a color; elsewhere it is plain text.

    Parameters
    ----------
    *pieces : tuple of str
        A text and a style of rich, such as "bold red".
    """

    pieces: tuple[tuple[str, str], ...]

    def __new__(cls, *pieces: tuple[str, str]) -> Self:
        self = super().__new__(cls, "".join(text for text, _ in pieces))
        self.pieces = pieces
        return self


@dataclass(frozen=True)
class Table:
    """A table of text: names on the left, numbers flush right.

    The first `keys` columns name a row. If the table is wider than the terminal, they
    are repeated in each part below the first one.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    keys: int = 1

    def print(self, stream: TextIO | None = None) -> None:
        """Write to a stream; None: standard output."""
        if not _is_terminal(stream):
            self._print_plain(stream)
            return
        columns = shutil.get_terminal_size().columns
        for i, part in enumerate(self._shortened(columns)._fitting(columns)):
            if i:
                print(file=stream)
            if _has_rich():
                part._print_rich(stream)
            else:
                part._print_plain(stream)

    def _widths(self) -> list[int]:
        lines = [self.header, *self.rows]
        return [max(map(len, column)) for column in zip(*lines, strict=True)]

    def _print_plain(self, stream: TextIO | None) -> None:
        print(self.title, file=stream)
        widths = self._widths()
        for line in [self.header, ["-" * width for width in widths], *self.rows]:
            cells = [line[0].ljust(widths[0])]
            cells += [
                cell.rjust(n) for cell, n in zip(line[1:], widths[1:], strict=True)
            ]
            print((" " * _GAP).join(cells).rstrip(), file=stream)

    def _shortened(self, width: int) -> "Table":
        """Return the same table with shorter names.

        Names have at most half of the width, and less where each column then fits.
        """
        names, *others = self._widths()
        beside = width - max(others, default=0) - _GAP
        room = max(min(beside, width // 2), _SHORTEST)
        if names <= room or self.keys != 1:
            return self
        rows = [[shortened(row[0], room), *row[1:]] for row in self.rows]
        return replace(self, rows=rows)

    def _fitting(self, width: int) -> "list[Table]":
        """Tables no wider than the terminal, each with the columns that name a row."""
        widths = [n + _GAP for n in self._widths()]
        keys = list(range(self.keys))
        groups = [list(keys)]
        for column in range(self.keys, len(widths)):
            used = sum(widths[i] for i in groups[-1]) - _GAP
            if used + widths[column] > width and len(groups[-1]) > self.keys:
                groups.append(list(keys))
            groups[-1].append(column)
        return [
            Table(
                self.title if i == 0 else "continued",
                [self.header[column] for column in group],
                [[row[column] for column in group] for row in self.rows],
            )
            for i, group in enumerate(groups)
        ]

    def _print_rich(self, stream: TextIO | None) -> None:
        from rich import box
        from rich.table import Table as RichTable

        table = RichTable(
            box=box.SIMPLE_HEAD,
            padding=(0, _GAP - 1, 0, 0),
            pad_edge=False,
            show_edge=False,
        )
        for i, name in enumerate(self.header):
            table.add_column(name, justify="right" if i else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(_rich_text, row))
        console = _console(stream)
        console.print(self.title, style="bold")
        console.print(table)


def shortened(name: str, room: int) -> str:
    """Shorten the name of a tensor, or a path, to a width.

    As many of its first components as needed become one letter. Numbers and the last
    component are kept: m.l.10.q_proj.weight.
    """
    parts = [*_PARTS.finditer(name)][:-1]
    for part in [part for part in parts if not part[0].isdigit()]:
        if len(name) <= room:
            break
        start = part.start() - (len(part.string) - len(name))
        name = name[: start + 1] + name[start + len(part[0]) :]
    return name


def _console(stream: TextIO | None) -> "Console":
    from rich.console import Console

    return Console(file=stream, highlight=False, markup=False)


def _rich_text(text: str) -> "Text | str":
    from rich.text import Text

    return Text.assemble(*text.pieces) if isinstance(text, Painted) else text


def say(line: str) -> None:
    """Print a line, in its colors if rich can draw on the output."""
    if isinstance(line, Painted) and draws():
        _console(None).print(_rich_text(line), soft_wrap=True)
    else:
        print(line)


def line_width() -> int:
    """Characters of a line of a drawing: those of the terminal, up to 80."""
    columns = shutil.get_terminal_size().columns if _is_terminal(None) else 80
    return max(40, min(columns, 80))


def draws(stream: TextIO | None = None) -> bool:
    """Return whether rich can draw on a stream, by default on standard output."""
    return _is_terminal(stream) and _has_rich()


def _is_terminal(stream: TextIO | None) -> bool:
    found = stream or sys.stdout
    return found is not None and found.isatty()


@cache
def _has_rich() -> bool:
    return find_spec("rich") is not None


def import_all() -> None:
    """Import the modules that drawing needs, if tables are drawn.

    A module that is imported after a program has run might be a file of the program's.
    """
    if not any(stream and draws(stream) for stream in (sys.stdout, sys.stderr)):
        return
    nowhere = io.StringIO()
    Table("", ("",), (("",),))._print_rich(nowhere)
    with _bar("", 1, nowhere) as advance:
        advance()


@contextmanager
def progress(
    wanted: bool,
    what: str,
    total: int,
    stream: TextIO | None = None,
    after: float = 0,
) -> Iterator[Callable[[], None]]:
    """Show a progress bar on a terminal, and yield a function that advances it.

    It is drawn once `after` seconds have passed.
    """
    if not (wanted and draws(stream)):
        yield lambda: None
        return
    start, steps = monotonic(), 0
    bar: Callable[[], None] | None = None
    with ExitStack() as drawn:
        if not after:
            bar = drawn.enter_context(_bar(what, total, stream))

        def advance() -> None:
            nonlocal bar, steps
            steps += 1
            if bar is not None:
                bar()
            elif monotonic() - start >= after:
                bar = drawn.enter_context(_bar(what, total, stream))
                for _ in range(steps):
                    bar()

        yield advance


@contextmanager
def _bar(what: str, total: int, stream: TextIO | None) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import Progress

    # Draw only between the steps: a thread that draws would disturb their times.
    console = Console(file=stream)
    with Progress(console=console, transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=total)

        def advance() -> None:
            bar.advance(task)
            bar.refresh()

        yield advance


def printable(text: str) -> str:
    """Return a name of a file with escapes as Python writes them.

    Characters that move the cursor, and halves of letters, are escaped.
    """
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in text)


def print_json(report: Any) -> None:
    """Write a report for programs."""
    print(strict_json(report))


def strict_json(report: Any) -> str:
    """Return a report for programs.

    Strict JSON has no infinity and no NaN: they are the strings "inf", "-inf" and
    "nan", which `float` of Python reads.
    """
    return json.dumps(_strict(report), indent=2, allow_nan=False)


def _strict(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def number(x: float, digits: int = 3) -> str:
    """Return a measured value, to a few digits."""
    return f"{x:.{digits}g}"


def decibels(x: float) -> str:
    """Return a signal-to-noise ratio in dB; "exact" if there is no noise."""
    return "exact" if x == math.inf else f"{x:.1f}"


def power_of_two(x: float) -> str:
    """Return a fact as "2^-10" if it is a power of two, else in decimals."""
    mantissa, exponent = math.frexp(x)
    return f"2^{exponent - 1}" if mantissa == 0.5 else number(x, 6)


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, as "1 tensor" or "2 tensors"."""
    return f"{count} {noun}{'s' * (count != 1)}"


def size(count: int) -> str:
    """Return a number of bytes, in the unit that leaves at most four digits."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    step = min(max(count.bit_length() - 1, 0) // 10, len(units) - 1)
    return f"{count / 1024**step:.4g} {units[step]}"


_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = ".:-=+*#@"
_MOST_BARS = 24


def bars(counts: Sequence[int]) -> str:
    """Draw counts as a line of bars, several counts in each if there are many.

    A blank is for none. Heights grow with the logarithm, so that few among many are
    visible.
    """
    most = min(_MOST_BARS, shutil.get_terminal_size().columns // 4 or 1)
    step = -(-len(counts) // (most if draws() else _MOST_BARS)) or 1
    sums = [sum(counts[i : i + step]) for i in range(0, len(counts), step)]
    letters = _BARS if _encodes(_BARS) else _PLAIN_BARS
    top = math.log1p(max(sums, default=0)) or 1.0
    last = len(letters) - 1
    return "".join(
        letters[round(last * math.log1p(count) / top)] if count else " "
        for count in sums
    )


def _encodes(text: str) -> bool:
    """Return whether the encoding of standard output has these letters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
