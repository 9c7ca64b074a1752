"""Learns from the queries that were really asked how a Delta table should lie, and rewrites it where that pays."""

__version__ = "0.1.0"
