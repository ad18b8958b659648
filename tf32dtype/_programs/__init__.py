"""Programs that are watched: scopes of precision, plans, the report and the tuner."""
