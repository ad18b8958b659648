"""The commands of `tf32dtype`, one a file.

A command's module has `add_arguments(parser)` and `run(arguments)`; `run` prints
its report, and raises `CommandError` for what the user has to put right.
"""

from .._measures import UserError


class CommandError(UserError):
    """What the user typed cannot be done; the message is one line."""
