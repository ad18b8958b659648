"""Other libraries and files. Nothing in the package stands on this."""
