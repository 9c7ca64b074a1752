"""Reading: statistics of files beyond Delta's, which files may match, what Parquet footers say, which rows match."""
