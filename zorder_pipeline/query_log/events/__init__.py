"""Scans and conditions from the plans in Spark's event logs."""
