"""The version and the site's address; the build and the package both read them here."""

__version__ = "0.1.0"

#: The address of the published documentation; empty while there is none.
DOCUMENTATION = ""
