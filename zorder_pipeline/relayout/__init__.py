"""Stage 5: rewriting the files of a Delta table by a learned key, in one transaction a bin."""
