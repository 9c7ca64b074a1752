"""Tables with each feature that Delta has, for `test_delta_features`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

__all__ = ["CASES", "Case", "made"]

TYPE_CHECK = "spark.databricks.delta.schema.typeCheck.enabled"
K = "(id * 7919) % 400 AS k"
FOUR = "SELECT /*+ REPARTITION(4) */"
FROM = "FROM range(400)"
WRITES = (
    "UPDATE {t} SET v = 'late' WHERE k = 1",
    "DELETE FROM {t} WHERE k = 2",
    (
        "MERGE INTO {t} AS t USING (SELECT 3L AS k, 'merged' AS v UNION ALL SELECT 999L, 'merged') AS s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
    ),
)


class Case(NamedTuple):
    """A table and what is done with it.

    Attributes:
        name: the feature.
        make: statements that make table ``{t}``, which has an integer column k.
        insert: columns and select list of the ten rows appended after the relayout, from ``range(10)``.
        writes: statements after that.
        then: condition over the whole table that holds at the end, as an aggregate.
        bits: the layout.
        delta_rs: why delta-rs cannot read the table, empty when it can.
        folder: name of the table's folder.
        verify: how the relayout itself checks the rows.
    """

    name: str
    make: tuple[str, ...]
    insert: str
    writes: tuple[str, ...]
    then: str
    bits: dict[str, int] = {"k": 3}  # noqa: RUF012 - never changed
    delta_rs: str = ""
    folder: str = "t"
    verify: str = "hash"


def made(spark: SparkSession, folder: Path, case: Case) -> str:
    """Make the case's table in a folder; returns its path."""
    path = str(folder / case.folder)
    for statement in case.make:
        spark.sql(statement.replace("{t}", f"delta.`{path}`").replace("{path}", path))
    return f"{path}-clone" if case.name == "a shallow clone" else path


CASES = (
    Case(
        "deletion vectors, row tracking and change feed",
        (
            (
                "CREATE TABLE {t} (k BIGINT, v STRING) USING delta TBLPROPERTIES (delta.enableDeletionVectors = true, "
                "delta.enableRowTracking = true, delta.enableChangeDataFeed = true)"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, concat('row ', id) {FROM}",
            "DELETE FROM {t} WHERE k % 5 = 0",
            "UPDATE {t} SET v = 'changed' WHERE k % 7 = 0",
        ),
        "SELECT id, 'new'",
        WRITES,
        "count(*) = 329 AND count_if(v = 'late') = 2 AND count_if(v = 'merged') = 3 AND count_if(k = 2) = 0",
        delta_rs="row tracking",
    ),
    Case(
        "column mapping by name, after RENAME, DROP and ADD, with dots and blanks in names and a renamed partition",
        (
            (
                "CREATE TABLE {t} (k BIGINT, gone INT, `a.b` INT, a STRUCT<c: INT, `x y`: STRING>, `part one` STRING) "
                "USING delta PARTITIONED BY (`part one`) TBLPROPERTIES (delta.columnMapping.mode = 'name')"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, 1, id, struct(id, 'x'), IF(id % 2 = 0, 'b/=% ', NULL) {FROM}",
            "ALTER TABLE {t} RENAME COLUMN `part one` TO `part.two`",
            "ALTER TABLE {t} RENAME COLUMN a.c TO `d e`",
            "ALTER TABLE {t} DROP COLUMN gone",
            "ALTER TABLE {t} ADD COLUMN gone STRING",
            "INSERT INTO {t} SELECT 500 + id, id, struct(id, 'y'), 'b/=% ', 'back' FROM range(40)",
        ),
        "SELECT id, id, struct(id, 'z'), 'new', NULL",
        ("UPDATE {t} SET `a.b` = -1 WHERE a.`d e` = 3",),
        "count(*) = 450 AND count_if(`a.b` = -1) = 3 AND count(gone) = 40 AND count(DISTINCT `part.two`) = 2",
        bits={"k": 2, "a.b": 2, "a.d e": 2},
    ),
    Case(
        "column mapping by id, after two columns swapped their names",
        (
            "CREATE TABLE {t} (k BIGINT, one INT, two INT) USING delta TBLPROPERTIES (delta.columnMapping.mode = 'id')",
            f"INSERT INTO {{t}} {FOUR} {K}, id, -id {FROM}",
            "ALTER TABLE {t} RENAME COLUMN one TO `was one`",
            "ALTER TABLE {t} RENAME COLUMN two TO one",
            "ALTER TABLE {t} DROP COLUMN `was one`",
        ),
        "SELECT id, id",
        ("DELETE FROM {t} WHERE one < -390",),
        "count(*) = 401 AND max(one) = 9",
        bits={"k": 2, "one": 2},
    ),
    Case(
        "generated, identity and default columns, CHECK and NOT NULL",
        (
            (
                "CREATE TABLE {t} (n BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 3), "
                "k BIGINT NOT NULL, "
                "day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), at TIMESTAMP, d INT DEFAULT 7) USING delta "
                "TBLPROPERTIES (delta.feature.allowColumnDefaults = 'supported')"
            ),
            f"INSERT INTO {{t}} (k, at) {FOUR} {K}, timestamp_seconds(id * 86399) {FROM}",
            "ALTER TABLE {t} ADD CONSTRAINT small CHECK (k < 4000)",
        ),
        "(k, at) SELECT 1000 + id, NULL",
        ("UPDATE {t} SET at = NULL WHERE k = 3",),
        "count(*) = 410 AND count(DISTINCT n) = 410 AND bool_and(n % 3 = 2) AND "
        "min(n) FILTER (WHERE k >= 1000) > max(n) FILTER (WHERE k < 1000) "
        "AND count(day) = 399 AND count_if(d = 7) = 410",
        bits={"k": 2, "day": 2, "n": 1},
    ),
    Case(
        "structs, arrays, maps and variants",
        (
            (
                "CREATE TABLE {t} (k BIGINT, s STRUCT<i: INT, inner: STRUCT<t: STRING>>, a ARRAY<STRUCT<x: INT>>, "
                "m MAP<STRING, ARRAY<INT>>, v VARIANT, va ARRAY<VARIANT>, b BINARY, nothing VOID) USING delta"
            ),
            (
                f"INSERT INTO {{t}} {FOUR} {K}, IF(id % 9 = 0, NULL, struct(id, struct(string(id)))), "
                "array(struct(id)), "
                "map('x', array(id, NULL)), parse_json(concat('{\"a\": [', id, ', null]}')), "
                f"array(parse_json(string(id))), IF(id = 0, NULL, binary(string(id))), NULL {FROM}"
            ),
        ),
        "SELECT id, NULL, NULL, NULL, parse_json('1'), NULL, NULL, NULL",
        ("DELETE FROM {t} WHERE s.i = 5",),
        "count(*) = 409 AND sum(m['x'][0]) = 79795 AND sum(variant_get(v, '$.a[0]', 'int')) = 79795",
        bits={"k": 2, "s.i": 2, "s.inner.t": 1},
        delta_rs="variant",
    ),
    Case(
        "timestamp_ntz, decimals, char, varchar and collations",
        (
            f"SET {TYPE_CHECK} = false",  # open-source Delta lets no new table have collations
            (
                "CREATE TABLE {t} (k INT, at TIMESTAMP_NTZ, d DECIMAL(38, 6), small DECIMAL(9, 2), c CHAR(5), "
                "w VARCHAR(9), "
                "s STRING COLLATE UTF8_LCASE, f FLOAT) USING delta"
            ),
            (
                f"INSERT INTO {{t}} {FOUR} {K}, CAST(timestamp_micros(-999999 + id * 86400000001) AS TIMESTAMP_NTZ), "
                "id * -12345678901234567890.123456, id / 8, id, 'w', IF(id % 2 = 0, 'A', 'a'), "
                f"IF(id = 3, float('NaN'), -id) {FROM}"
            ),
            f"RESET {TYPE_CHECK}",
        ),
        "SELECT id, NULL, NULL, NULL, 'x', 'y', 'z', NULL",
        ("UPDATE {t} SET s = 'A' WHERE s = 'Z'",),
        "count(*) = 410 AND count_if(s = 'a') = 410 AND bool_and(length(c) = 5)",
        bits={"k": 1, "at": 2, "d": 2, "small": 1, "f": 1},
    ),
    Case(
        "type widening",
        (
            (
                "CREATE TABLE {t} (k SMALLINT, d DECIMAL(5, 2), f FLOAT, day DATE, s STRUCT<i: INT>) USING delta "
                "TBLPROPERTIES (delta.enableTypeWidening = true, delta.feature.timestampNtz = 'supported')"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, id / 4, id / 8, date_from_unix_date(id), struct(id) {FROM}",
            "ALTER TABLE {t} ALTER COLUMN k TYPE BIGINT",
            "ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(20, 4)",
            "ALTER TABLE {t} ALTER COLUMN f TYPE DOUBLE",
            "ALTER TABLE {t} ALTER COLUMN day TYPE TIMESTAMP_NTZ",
            "ALTER TABLE {t} ALTER COLUMN s.i TYPE BIGINT",
            "INSERT INTO {t} SELECT 1L << 40, 1e12, 1e300, TIMESTAMP_NTZ '2020-02-02 02:02:02', struct(1L << 40)",
        ),
        "SELECT id, id, id, NULL, NULL",
        ("UPDATE {t} SET d = 1e13 WHERE k = 1",),
        "count(*) = 411 AND max(k) = 1L << 40 AND max(d) = 1e13 AND max(f) = 1e300 AND count(day) = 401",
        bits={"k": 2, "d": 2, "f": 1, "day": 2, "s.i": 1},
        delta_rs="type widening",
    ),
    Case(
        "v2 checkpoints with structs only, in-commit timestamps and file size",
        (
            (
                "CREATE TABLE {t} (k BIGINT, v STRING) USING delta TBLPROPERTIES (delta.checkpointPolicy = 'v2', "
                "delta.checkpointInterval = 2, delta.checkpoint.writeStatsAsJson = false, "
                "delta.checkpoint.writeStatsAsStruct = true, delta.enableInCommitTimestamps = true)"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, 'v' {FROM}",
            "INSERT INTO {t} VALUES (400, 'v')",
        ),
        "SELECT id, 'new'",
        ("DELETE FROM {t} WHERE k = 4",),
        "count(*) = 409",
    ),
    Case(
        "append-only, protocol 1/2, a path with blanks and percent signs",
        (
            (
                "CREATE TABLE {t} (k BIGINT, p DATE) USING delta PARTITIONED BY (p) TBLPROPERTIES "
                "(delta.appendOnly = true, delta.minReaderVersion = 1, delta.minWriterVersion = 2)"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, date_from_unix_date(id % 2) {FROM}",
        ),
        "SELECT id, NULL",
        (),
        "count(*) = 410",
        delta_rs="a percent sign in a path",
        folder="a b%20c=1",
    ),
    Case(
        "a thousand columns",
        (f"CREATE TABLE {{t}} USING delta AS {FOUR} {K}, {', '.join(f'id + {i} AS c{i}' for i in range(999))} {FROM}",),
        "SELECT id, " + ", ".join("0" for _ in range(999)),
        ("DELETE FROM {t} WHERE c998 = 0",),
        "count(*) = 400 AND sum(c998) = 79800 + 998 * 400",
        bits={"k": 2, "c998": 2},
        verify="counts",
    ),
    Case(
        "Iceberg compatibility",
        (
            (
                "CREATE TABLE {t} (k BIGINT, p INT, at TIMESTAMP) USING delta PARTITIONED BY (p) TBLPROPERTIES "
                "(delta.enableIcebergCompatV2 = true, delta.columnMapping.mode = 'name')"
            ),
            f"INSERT INTO {{t}} {FOUR} {K}, id % 2, timestamp_seconds(id) {FROM}",
        ),
        "SELECT id, id, NULL",
        ("DELETE FROM {t} WHERE at < timestamp_seconds(10)",),
        "count(*) = 400",
        bits={"k": 2, "at": 1},
        delta_rs="Iceberg compatibility",
    ),
    Case(
        "a shallow clone",
        (
            f"CREATE TABLE {{t}} USING delta AS {FOUR} {K} {FROM}",
            "CREATE TABLE delta.`{path}-clone` SHALLOW CLONE {t}",
        ),
        "SELECT id",
        (),
        "count(*) = 410",
    ),
    Case(
        "row tracking with generated, identity and default columns",
        (
            (
                "CREATE TABLE {t} (n BIGINT GENERATED ALWAYS AS IDENTITY, k BIGINT, "
                "half BIGINT GENERATED ALWAYS AS (k DIV 2), d INT DEFAULT 7) USING delta TBLPROPERTIES "
                "(delta.feature.allowColumnDefaults = 'supported', delta.enableRowTracking = true, "
                "delta.enableDeletionVectors = true)"
            ),
            f"INSERT INTO {{t}} (k) {FOUR} {K} {FROM}",
            "UPDATE {t} SET d = 8 WHERE k % 7 = 0",
            "DELETE FROM {t} WHERE k % 5 = 0",
        ),
        "(k) SELECT 1000 + id",
        ("UPDATE {t} SET d = 9 WHERE k = 3",),
        "count(*) = 330 AND count(DISTINCT n) = 330 AND bool_and(half = k DIV 2) "
        "AND min(n) FILTER (WHERE k >= 1000) > max(n) FILTER (WHERE k < 1000) AND count_if(d = 9) = 1",
        bits={"k": 2, "half": 1, "n": 1},
        delta_rs="row tracking",
    ),
)
