"""Programs of the developers; none is installed."""
