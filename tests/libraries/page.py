"""Write the table of docs/reference/libraries.md: results of the calls in this folder.

    python -m tests.libraries.page [--check]

It needs every library, and also runs each call with ml_dtypes' arrays.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version

from tests.libraries.calls import Call, agrees, run
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "libraries.md"
BEGIN, END = "<!-- calls:begin -->", "<!-- calls:end -->"
#: The modules with calls, in the order of the page.
MODULES = """
    torch_tensors jax_arrays xarray dask_arrays pandas scipy sklearn matplotlib numba
    joblib numpy_files safetensors_files hdf5_files zarr_arrays onnx_tensors gguf_files
    arrow tensorstore polars
""".split()


def modules() -> Iterator[tuple[str, list[Call], str]]:
    """Yield the name of each library, its calls and their preparation."""
    for name in MODULES:
        module = import_module(f"tests.libraries.test_calls_{name}")
        yield module.LIBRARY, module.CALLS, module.PREPARATION


def theirs(call: Call, preparation: str) -> str:
    """Return the result with ml_dtypes' arrays: one word if equal for all formats."""
    found = []
    for format in call.formats:
        eps = 2.0**-7 if format == "bfloat16" else 2.0**-3
        good = True
        for numbers in call.numbers:
            outcome, truth = (
                run(call.code, preparation, format, owner, numbers)
                for owner in ("ml_dtypes", "float64")
            )
            good &= agrees(outcome, truth, call.within, eps)
        if outcome.gives.endswith(("Error", "Exception")) or good:
            found.append(outcome.gives.replace(format, "same dtype"))
        else:
            what = "raw bytes" if outcome.gives.startswith("void") else outcome.gives
            found.append(f"**wrong** ({what})")
    if len({*found}) == 1:
        return found[0]
    return ", ".join(
        f"{format}: {x}" for format, x in zip(call.formats, found, strict=True)
    )


def works(cell: str) -> bool:
    return not any(word in cell for word in ("Error", "Exception", "wrong"))


def ours(call: Call) -> str:
    """Return the first cells of a row: the call, and its result with our arrays."""
    gives = call.gives.replace("{format}", "same dtype")
    gives = gives.replace("{void}", "raw bytes")
    if call.steps:
        gives += ", rounded at each step"
    if call.instead:
        gives = f"{gives}; write `{call.instead}`"
    elif call.why:
        gives = f"{gives}: {call.why}"
    if len(call.formats) == 1:
        gives = f"{call.formats[0]}: {gives}"
    return f"| {_code(call.code)} | {_cell(gives)} |"


def table() -> str:
    """Return the table of the page."""
    lines: list[str] = []
    libraries = []
    count = own = other = lined = 0
    for library, calls, preparation in modules():
        anchor = re.sub(r"[^\w -]", "", library.lower()).replace(" ", "-")
        libraries.append(f"[{library}](#{anchor})")
        lines += ["", f"## {library}", ""]
        if preparation:
            lines += ["```", preparation.strip(), "```", ""]
        lines += ["| call | tf32dtype | ml_dtypes |", "|---|---|---|"]
        for call in calls:
            peer = theirs(call, preparation)
            count += 1
            own += call.works
            lined += bool(call.instead)
            other += works(peer)
            lines.append(f"{ours(call)} {_cell(peer)} |")
    head = (
        f"Of {count} calls, {own} work as they are with arrays of tf32dtype, {lined}"
        f" have a line that works in their place, {count - own - lined} have none;"
        f" {other} work with arrays of ml_dtypes {version('ml_dtypes')}."
    )
    contents = textwrap.fill(", ".join(libraries), 90, break_long_words=False)
    return "\n".join([head, "", contents, *lines, ""])


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if it would change")
    arguments = parser.parse_args()
    old = PAGE.read_text()
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    new = f"{before}{BEGIN}\n{table()}{END}{after}"
    if arguments.check:
        return int(new != old)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
