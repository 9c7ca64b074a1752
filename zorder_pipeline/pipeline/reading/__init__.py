"""Scans over the files that may match, the statistics for them, and the recorder."""
