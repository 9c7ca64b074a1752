"""Learns from the queries that were really asked how a Delta table should lie, and rewrites it where that pays.

>>> import zorder_pipeline  # loads neither PySpark nor Dagster
>>> zorder_pipeline.__all__
['explain', 'explain_sql', 'record', 'scan', 'sql']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .pipeline.reading.recording import record as record
    from .pipeline.reading.scanning import explain as explain
    from .pipeline.reading.scanning import explain_sql as explain_sql
    from .pipeline.reading.scanning import scan as scan
    from .pipeline.reading.scanning import sql as sql

__all__ = ["explain", "explain_sql", "record", "scan", "sql"]
__version__ = "0.3.0"

_PUBLIC = dict.fromkeys(("explain", "explain_sql", "scan", "sql"), "scanning") | {"record": "recording"}


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:  # by name, as importing them here would load Spark
        return getattr(import_module(f"{__name__}.pipeline.reading.{_PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
