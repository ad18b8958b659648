"""What formats are, and what a product loses in them, for commands and the report."""
