"""Reading: what Parquet footers say, and which rows match."""
