"""The error that a command prints in one line."""


class UserError(ValueError):
    """Say in one line why something that the user asked for cannot be done."""
