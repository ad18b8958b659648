"""How messages name what was given, and pages of the documentation."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

from . import version
from .caller import warn

_LONGEST = 100  # characters of a text, or of one thing's repr
_MOST = 6  # things in a list

#: The pages that messages name: the titles by the paths on the site.
PAGES = {
    "benchmarks/accuracy": "Accuracy of reduced precision",
    "concepts/blocks": "Block formats: TCFP, OCP MX and NVFP4",
    "concepts/formats": "Number formats",
    "how_to/arithmetic": "Run NumPy arithmetic in reduced precision",
    "how_to/blas": "Run Octave, R or SciPy in reduced precision",
    "how_to/check_result": "Check a matrix product from a file",
    "how_to/convert_checkpoint": "Convert checkpoint files",
    "how_to/diff": "Compare two files of tensors",
    "how_to/explain_differences": "Explain why two GPUs differ",
    "how_to/files": "Read and write model and array files",
    "how_to/precision": "Run float32 matrix multiplications in reduced precision",
    "how_to/read_checkpoint": "Read a checkpoint",
    "how_to/report": "Find the lines that lose accuracy",
    "how_to/terminal": "Inspect numbers in the terminal",
    "how_to/test_kernel": "Test a GPU kernel",
    "how_to/tune": "Search the lowest precision that keeps the answer",
    "reference/command": "Command line",
}

#: The commands that list the same names as attributes do.
_COMMANDS = {
    "td.typing.PrecisionName": "`tf32dtype run --help`",
    "td.tensor_core.devices": "`tf32dtype compare --help`",
    "td.blocks.formats": "`tf32dtype sizes 1`",
    "td.formats": "`tf32dtype formats`",
}

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _LONGEST
_short.maxlist = _short.maxtuple = _short.maxdict = _short.maxset = _MOST


def brief(value: Any) -> str:
    """Return a value for an error: its repr, or its kind if the repr is long.

    Parameters
    ----------
    value : object
        The given value.

    Returns
    -------
    str
        One short line; of anything with a dtype and a shape (arrays of NumPy, CuPy and
        PyTorch, of blocks and of tiles) these, but not its values.

    Examples
    --------
    >>> brief(np.zeros((2, 3), np.float32)), brief("bf17"), brief([1] * 1000)
    ('an array of float32, shape (2, 3)', "'bf17'", '[1, 1, 1, 1, 1, 1, ...]')
    """
    if isinstance(value, type):
        return repr(value)
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(shape, tuple) and len(shape) > 0:
        what = dtype
        if hasattr(value, "scale_format"):
            kind = "blocks" if hasattr(value, "block_size") else "tiles"
            what = f"{value.format} {kind}"
        return f"an array of {what}, shape {tuple(shape)}"
    return " ".join(_short.repr(value).split())


def page(*paths: str) -> str:
    """Return the addresses of pages of the documentation, or words that name them.

    Parameters
    ----------
    *paths : str
        One or two of `PAGES`.

    Returns
    -------
    str
        Addresses once `DOCUMENTATION` of version.py holds that of the site.

    Examples
    --------
    >>> page("concepts/formats")
    'the page "Number formats" of the documentation'
    >>> page("concepts/formats", "reference/command")
    'the pages "Number formats" and "Command line" of the documentation'
    """
    if version.DOCUMENTATION:
        site = version.DOCUMENTATION.rstrip("/")
        return " and ".join(f"{site}/{path}.html" for path in paths)
    pages = "page" if len(paths) == 1 else "pages"
    quoted = " and ".join(f'"{PAGES[path]}"' for path in paths)
    return f"the {pages} {quoted} of the documentation"


def one_of(
    argument: str,
    value: object,
    choices: Iterable[object],
    listing: str = "",
    fix: str | None = None,
) -> str:
    """Return the message of an error for a value that is not one of the choices.

    Parameters
    ----------
    argument : str
        The name of the argument.
    value : object
        The value that was given.
    choices : iterable of object
        The values that are allowed.
    listing : str, optional
        The command or attribute that lists the choices. The message names it and the
        three choices nearest to the value, or the first three if none is near; by
        default it lists all choices.
    fix : str, optional
        A sentence that says how to fix the error. It replaces the nearest choices.

    Examples
    --------
    >>> one_of("order", "up", ("low", "high"))
    "order must be 'low' or 'high'; got 'up'"
    >>> one_of("format", "tf23", ["tf32", "float16"], "td.formats")
    "format must be one of td.formats; got 'tf23'. Did you mean tf32?"
    """
    names = [*choices]
    allowed = listing or joined([*map(brief, names)])
    several = "one of " if listing or len(names) > 2 else ""
    if listing and fix is None:
        fix = did_you_mean(value, names)
        if names and not fix:
            fix = f"For example, use {joined([*map(str, names[:3])])}"
    end = f". {fix}" if fix else ""
    return f"{argument} must be {several}{allowed}; got {brief(value)}{end}"


def in_terminal(message: str) -> str:
    """Return a message of `one_of` with commands in place of attributes.

    Examples
    --------
    >>> in_terminal("format must be one of td.formats; got 'tf23'")
    "format must be one of those in `tf32dtype formats`; got 'tf23'"
    """
    for attribute, command in _COMMANDS.items():
        message = message.replace(f"one of {attribute}", f"one of those in {command}")
        message = message.replace(attribute, command)
    return message


def did_you_mean(value: object, choices: Iterable[object], module: str = "") -> str:
    """Return a question with the at most three choices nearest to a value, or "".

    `module`, such as "td.", is put before each.
    """
    import difflib  # here: only errors need it

    if not isinstance(value, str):
        return ""
    small = value.lower()
    names = {str(name).lower(): str(name) for name in choices}
    within = [name for name in names if small and small in name]
    near = (within or difflib.get_close_matches(small, names, 3))[:3]
    return f"Did you mean {joined([module + names[x] for x in near])}?" if near else ""


def cast_advice(dtype: Any, to: str, name: str = "x") -> str:
    """Return the sentence that tells how an array of a dtype is cast, or ""."""
    if dtype.kind == "c":
        return f". Use {name}.real and {name}.imag"
    return f". Cast it, {name}.astype(np.{to})" if dtype.kind in "biuf" else ""


def joined(words: Sequence[str]) -> str:
    """Return words with commas, and "or" before the last: "a, b or c"."""
    return " or ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def warn_of_raw_bytes(array: Any, name: str) -> None:
    """Warn a reader of raw items without a dtype, and name the likely dtype.

    Parameters
    ----------
    array : ndarray or scalar
        The array that was read.
    name : str
        The name of its source, for the warning.
    """
    dtype = array.dtype
    if dtype.kind == "V" and not dtype.isbuiltin and dtype.names is None:
        example = {1: "float8_e4m3fn", 2: "bfloat16", 4: "tf32"}.get(dtype.itemsize)
        cure = f", for example array.view(td.{example})" if example else ""
        warn(
            f"{name} holds raw items of {dtype.itemsize} bytes: np.save and h5py do not"
            f" keep the dtype. View the array in its dtype{cure}, or write files with"
            " td.save or td.hdf5.save"
        )
