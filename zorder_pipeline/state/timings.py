"""The state's table ``calibrations``: relayouts and scans that were timed on copies, to know what they cost here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .state_table import StateTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Timing", "Timings"]

SCHEMA_VERSION = 1
COLUMNS = (
    *("schema_version INT", "table_id STRING", "table_location STRING", "calibrated_at TIMESTAMP"),
    *("calibration_date DATE", "kind STRING", "bytes DOUBLE", "files BIGINT", "features INT", "additional INT"),
    *("predicates INT", "hashed BOOLEAN", "seconds DOUBLE", "cores INT"),
)


@dataclass(frozen=True)
class Timing:
    """A timed relayout or scan.

    Attributes:
        kind: ``relayout`` or ``scan``.
        bytes: of the replaced files, or of the columns that were read.
        files: replaced and written, or opened.
        features, additional, predicates, hashed: as of a relayout's cost.
        seconds, cores: what it took, and of how many cores.
    """

    table_id: str
    kind: str
    bytes: float
    files: int
    seconds: float
    cores: int
    features: int = 0
    additional: int = 0
    predicates: int = 0
    hashed: bool = False


class Timings:
    """What was timed, a row each.

    Args:
        state: folder of the state, on any Hadoop filesystem.
    """

    def __init__(self, spark: SparkSession, state: str) -> None:
        self.table = StateTable(spark, state, "calibrations", COLUMNS, SCHEMA_VERSION, "calibration_date")

    def record(self, location: str, timings: Iterable[Timing]) -> None:
        """Add what one calibration timed, all or nothing."""
        now = datetime.now(UTC)
        common = {"schema_version": SCHEMA_VERSION, "table_location": location, "calibrated_at": now.isoformat()}
        common |= {"calibration_date": now.date().isoformat()}
        self.table.append([common | vars(item) for item in timings])

    def all(self) -> list[Timing]:
        """Everything that was timed."""
        names = list(Timing.__dataclass_fields__)
        return [Timing(**row.asDict()) for row in self.table.read().select(*names).collect()]
