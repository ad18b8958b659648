"""The report of a model's layers: the errors of their products in other formats."""
