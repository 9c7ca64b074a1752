"""Settings by which tables are read and written as all sessions read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.state.session_conf import own_setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ALL_ROWS", "ANY_AGE", "AS_OTHERS", "COMPILED", "as_others_read", "exactly", "quick_reads"]
__all__ += ["reads_otherwise"]

ANY_AGE = {"spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration": "false"}
"""Read versions older than `delta.deletedFileRetentionDuration`: the files of the one that we replaced are there."""

AS_SORTED = {"spark.databricks.delta.convertEmptyToNullForStringPartitionCol": "false"}
"""Take rows as they are sorted. Of a table with constraints Delta else puts null in the place of empty texts of its
partition columns, of which a rewrite has none, and sorts the rows once more, by partition alone: what does not fit into
memory is interleaved then."""
AS_STORED = {"spark.sql.readSideCharPadding": "false"}
"""Read CHAR columns as they are in the files: other engines would see the blanks that Spark adds.

A relation is made anew where somebody asks for its metadata, so this must hold for all of a rewrite."""
_WITHOUT_IDS = "spark.sql.parquet.fieldId.read.ignoreMissing"
ALL_ROWS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    _WITHOUT_IDS: "false",
}
"""A file that cannot be read is an error, also one whose columns have no ids where the table finds them by these: rows
that are passed over would be gone after a rewrite, and nulls be all that is left of the others."""
COMPILED = {"spark.sql.codegen.hugeMethodLimit": "8000"}
"""HotSpot interprets methods of more bytecode for ever, and Spark makes them of keys and statistics by expressions: its
own code in several methods is slower than such a one, and several times faster than an interpreted one."""
_IN_A_GO = {"parquet.hadoop.vectored.io.enabled": "false"}
_MEANT = {
    # both kinds of dates and instants of old: as the Delta protocol means them, and Spark marks its files so
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.databricks.delta.stats.collect": "true",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
}
_REBASED = {
    f"spark.sql.parquet.{kind}RebaseModeInRead": f"spark.sql.legacy.parquet.{kind}RebaseModeInRead"
    for kind in ("datetime", "int96")
}
"""With the name that each had before Spark 3.2, which counts where the one of today is not set."""
_SHIFTED = "spark.sql.parquet.int96TimestampConversion"
_NULL_STRUCTS = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
_BY_CASE = "spark.sql.caseSensitive"
AS_OTHERS = {_NULL_STRUCTS: "false", _BY_CASE: "false", _SHIFTED: "false"}
"""Read values as sessions usually do, whatever this one is for.

A struct is what its file says, also where that has none of the fields that are asked for: it would be null. A column is
found also in files that spell it otherwise, as Hive and others wrote them before a table was made of them: a session
that minds the case reads nulls there, and would write them. No two columns of Delta differ by case alone. Instants of
other engines are not shifted."""


def exactly(spark: SparkSession, *, instants: bool) -> dict[str, str]:
    """Settings under which a rewrite reads all rows and writes them as other sessions will read them.

    A session may take the days before 1582 of files without Spark's mark for those of another calendar, or instants of
    other engines for local time; other sessions do not, so whatever was written then would be wrong for one of them.
    Where a file has such days, reading it fails instead; that no file has such instants cannot be told.

    Args:
        instants: the table has a TIMESTAMP.

    Raises:
        UnsupportedTableError: the session shifts instants of other engines.
    """
    if instants and str(own_setting(spark, _SHIFTED)).lower() == "true":
        raise UnsupportedTableError(
            f"this session reads instants that other engines wrote otherwise than other sessions do: set {_SHIFTED} to "
            "false, or new files would hold the shifted ones"
        )
    meant = AS_STORED | AS_SORTED | AS_OTHERS | _MEANT
    return ALL_ROWS | meant | dict.fromkeys(_legacy(spark), "EXCEPTION")


def quick_reads(location: str) -> dict[str, str]:
    """Settings under which Parquet files are read the quicker way, by where a table is.

    Many ranges at once are quicker from an object store; of local files, whose checksums are read besides, Hadoop may
    start a thread for each range: a third of a scan went there.

    >>> quick_reads("s3a://lake/flights")
    {}
    """
    return _IN_A_GO if location.startswith(("file:", "/")) else {}


def as_others_read(spark: SparkSession) -> dict[str, str]:
    """Settings under which all rows are read, no value otherwise than other sessions read it: that fails instead."""
    return ALL_ROWS | AS_OTHERS | dict.fromkeys(_legacy(spark), "EXCEPTION")


def reads_otherwise(spark: SparkSession) -> bool:
    """Whether the session reads old days, instants of other engines, names, or what a file lacks, otherwise than others
    usually do."""
    odd = (_SHIFTED, _BY_CASE, _NULL_STRUCTS, _WITHOUT_IDS)
    return bool(_legacy(spark)) or any(str(own_setting(spark, key)).lower() == "true" for key in odd)


def _legacy(spark: SparkSession) -> list[str]:
    """Settings, by the names of today, by which the session reads old days and instants by another calendar."""
    told = {name: own_setting(spark, name) or own_setting(spark, before) for name, before in _REBASED.items()}
    return [name for name, mode in told.items() if str(mode).upper() == "LEGACY"]
