"""The commands of `tf32dtype`, one per file.

A command's module has `add_arguments(parser)` and `run(arguments)`. `run` prints its
report, and raises `UserError` for errors that the user has to correct. The module's
docstring is the text of `--help`: the purpose, an example with its output, the rules.
"""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any


def add_options(group: Any, helps: Mapping[str, str], **keywords: Any) -> None:
    """Add options by "--name METAVAR" and their help; one without METAVAR is a switch.

    The keywords of `add_argument` apply to each option.
    """
    for option, text in helps.items():
        name, _, metavar = option.partition(" ")
        how = {"metavar": metavar} if metavar else {"action": "store_true"}
        group.add_argument(name, help=text, **how, **keywords)


def add_patterns(group: Any, include: str, exclude: str) -> None:
    """Add `--include` and `--exclude`, with a text for each."""
    how = "; repeatable, searched for anywhere in a name"
    options = {"--include REGEX": include + how, "--exclude REGEX": exclude + how}
    add_options(group, options, action="append", default=[])


def add_output(parser: ArgumentParser) -> Any:
    """Add the group "Output" with `--json`, and return the group."""
    group = parser.add_argument_group("Output")
    add_options(group, {"--json": "print JSON (default: text)"})
    return group
