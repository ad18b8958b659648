"""Facts on formats and their errors in products, for the commands and the report."""
