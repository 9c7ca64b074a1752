"""Stage 4: does a rewrite pay? Pure: neither Spark nor Dagster is imported here."""
