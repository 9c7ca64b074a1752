"""Columns in the paths of Parquet files: as Spark itself reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.pipeline.rewriting.importing import table_from_parquet
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.session_conf import set_for_a_while

pytestmark = [pytest.mark.spark, pytest.mark.matrix]

NULL = "__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize(
    "values",
    [
        ("1", "-2", NULL),
        ("01", "02"),
        ("1", "3000000000"),
        ("1.5", "2", "-.5"),
        ("1.5", "3000000000"),
        ("2026-01-01", NULL),
        ("2026-1-1",),
        ("2026-01-01", "2026-02-30"),
        ("2026-01-01", "2026-01-02 03:04:05"),
        ("2026-01-01 03:04:05.2",),
        ("2026-01-01 03:04:05.25",),
        ("2026-01-01 03:04",),
        ("2026-01", "2026-02"),
        ("2026-01-01", "7"),
        ("true", "0x10", "+1", "a b", "a=b", "a/%25"),
    ],
    ids=str,
)
def test_values_of_paths_have_the_types_that_spark_reads(
    spark: SparkSession, tmp_path: Path, values: tuple[str, ...]
) -> None:
    for number, value in enumerate(values):
        folder = tmp_path / "source" / f"key={quote(value, safe=' +')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": [number]}), folder / "a.parquet")
    made = table_from_parquet([tmp_path / "source"], tmp_path / "table")
    assert made.partition_by == ("key",)
    ours = spark.read.format("delta").load(str(tmp_path / "table")).select("id", "key")
    theirs = spark.read.parquet(str(tmp_path / "source")).select("id", "key")
    assert ours.schema["key"].dataType == theirs.schema["key"].dataType
    assert Counter(ours.collect()) == Counter(theirs.collect())


def test_structs_of_other_files_may_have_more_fields(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for number, value in enumerate(({"a": 1}, {"a": 2, "b": "x"})):
        pq.write_table(pa.table({"s": [value]}), tmp_path / "source" / f"{number}.parquet")
    table_from_parquet([tmp_path / "source"], tmp_path / "table")
    rows = spark.read.format("delta").load(str(tmp_path / "table")).orderBy("s.a").collect()
    assert [(row.s.a, row.s.b) for row in rows] == [(1, None), (2, "x")]


def test_fields_of_structs_count_as_columns_of_which_there_are_statistics(spark: SparkSession, tmp_path: Path) -> None:
    fields = pa.array([{f"f{i}": i for i in range(40)}])
    pq.write_table(pa.table({"s": fields, "last": [7]}), tmp_path / "rows.parquet")
    table_from_parquet([tmp_path / "rows.parquet"], tmp_path / "table")
    columns = {column.name: column for column in open_table(spark, str(tmp_path / "table")).schema.columns}
    assert columns["s.f39"].delta_stats
    assert columns["last"].delta_stats


def test_a_wide_table_has_statistics_of_all_its_columns_and_learning_tells_of_those_without(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Delta keeps them of 32 columns, unless the table says otherwise."""
    rows = pa.table({f"c{i}": pa.array(range(1000), pa.int64()) for i in range(40)})
    pq.write_table(rows, tmp_path / "wide.parquet")
    path, log = str(tmp_path / "t"), tmp_path / "log.jsonl"
    table_from_parquet([tmp_path / "wide.parquet"], path)
    asked = "".join(f'{{"statement": "SELECT * FROM t WHERE c39 = {i}"}}\n' for i in range(0, 1000, 20))
    log.write_text(asked)
    settings = pipeline.LearnSettings(target_file_rows=100, trials=20)
    plan = pipeline.learn(spark, path, [str(log)], aliases=["t"], settings=settings)
    assert plan.spec is not None
    assert not any("c39" in note for note in plan.notes)
    usual = str(tmp_path / "usual")
    spark.read.parquet(str(tmp_path / "wide.parquet")).write.format("delta").save(usual)
    plan = pipeline.learn(spark, usual, [str(log)], aliases=["t"], settings=settings)
    assert plan.spec is None
    note, unsought = plan.notes
    assert unsought.startswith("no order of rows was sought: queries filter by no column that can order rows")
    assert note.startswith("ordinary readers skip no file by c39 (100% of the queries)")
    assert "set delta.dataSkippingStatsColumns to all that are filtered by (`c39`)" in note


def test_instants_that_spark_wrote_as_int96_are_instants_of_any_year(spark: SparkSession, tmp_path: Path) -> None:
    """Nanoseconds, as which pyarrow reads them, end in 2262."""
    times = ["0001-01-03 00:00:00", "1500-01-01 12:00:00", "2024-05-06 07:08:09.123456", "9999-12-31 00:00:00", None]
    frame = spark.createDataFrame([(i, text) for i, text in enumerate(times)], "id INT, text STRING").selectExpr(
        "id", "CAST(text AS TIMESTAMP) AS ts",
        "named_struct('a', id, 'ts', CAST(text AS TIMESTAMP), 'm', map(id, CAST(text AS TIMESTAMP))) AS s",
        "array(CAST(text AS TIMESTAMP)) AS l", "CAST(text AS TIMESTAMP_NTZ) AS ntz",
    )  # fmt: skip
    modes = {f"spark.sql.parquet.{kind}RebaseModeInWrite": "CORRECTED" for kind in ("datetime", "int96")}
    with set_for_a_while(spark, modes | {"spark.sql.parquet.outputTimestampType": "INT96"}):
        frame.coalesce(1).write.parquet(str(tmp_path / "source"))
    table_from_parquet([tmp_path / "source"], tmp_path / "table")
    ours = spark.read.format("delta").load(str(tmp_path / "table"))
    theirs = spark.read.parquet(str(tmp_path / "source"))
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    shown = "CAST(struct(*) AS STRING)"
    assert Counter(ours.selectExpr(shown).collect()) == Counter(theirs.selectExpr(shown).collect())


def test_folders_behind_links_are_read_as_spark_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    for place, count in (("source/ds=2026-01-01", 2), ("disk", 3)):
        (tmp_path / place).mkdir(parents=True)
        pq.write_table(pa.table({"id": range(count)}), tmp_path / place / "a.parquet")
    for day in ("2026-01-02", "2026-01-03"):
        (tmp_path / "source" / f"ds={day}").symlink_to(tmp_path / "disk")
    table_from_parquet([tmp_path / "source"], tmp_path / "table")
    ours = spark.read.format("delta").load(str(tmp_path / "table"))
    assert sorted(ours.collect()) == sorted(spark.read.parquet(str(tmp_path / "source")).collect())
    assert ours.count() == 8


def test_a_file_that_is_named_twice_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "source" / "more").mkdir(parents=True)
    for place in ("a.parquet", "more/b.parquet"):
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "source" / place)
    (tmp_path / "link").symlink_to(tmp_path / "source" / "more")
    sources = [tmp_path / "source", tmp_path / "source" / "more", tmp_path / "link", tmp_path / "source" / "a.parquet"]
    assert table_from_parquet(sources, tmp_path / "table").rows == 4
