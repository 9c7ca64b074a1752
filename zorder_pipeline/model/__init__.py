"""What travels between the stages: plain frozen data with a stable, versioned JSON form.

This package imports nothing else of zorder_pipeline but its error classes, and neither Spark nor Dagster.
"""
