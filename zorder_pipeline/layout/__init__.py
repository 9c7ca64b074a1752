"""Stage 3: learning the row order. Pure numpy: neither Spark nor Dagster is imported here."""
