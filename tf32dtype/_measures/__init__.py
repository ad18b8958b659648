"""What formats are, and what a product loses in them: for the commands and the report.

What the user has to put right is a `UserError`.
"""


class UserError(ValueError):
    """What the user asked for cannot be done; the message is one line."""
