"""A checkpoint from format to format, one tensor in memory at a time."""
