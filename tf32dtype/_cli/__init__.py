"""The commands of `tf32dtype`, one a file.

A command's module has `add_arguments(parser)` and `run(arguments)`; `run` prints
its report, and raises `CommandError` for what the user has to put right.
"""


class CommandError(Exception):
    """What the user typed cannot be done; the message is one line."""
