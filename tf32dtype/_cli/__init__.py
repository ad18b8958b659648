"""The commands of `tf32dtype`, one per file.

A command's module has `add_arguments(parser)` and `run(arguments)`. `run` prints its
report, and raises `UserError` for errors that the user has to correct. The module's
docstring is the text of `--help`: the purpose, an example with its output, the rules.
"""

from argparse import ArgumentParser
from typing import Any


def add_patterns(group: Any, include: str, exclude: str) -> None:
    """Add `--include` and `--exclude`, with a text for each."""
    for option, text in (("include", include), ("exclude", exclude)):
        group.add_argument(
            f"--{option}",
            action="append",
            default=[],
            metavar="REGEX",
            help=f"{text}; repeatable, searched for anywhere in a name",
        )


def add_output(parser: ArgumentParser) -> Any:
    """Add the group "Output" with `--json`, and return the group."""
    group = parser.add_argument_group("Output")
    group.add_argument("--json", action="store_true", help="print JSON (default: text)")
    return group
