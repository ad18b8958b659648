"""Helpers of the whole package: errors, wording, options, scopes, lazy imports."""
