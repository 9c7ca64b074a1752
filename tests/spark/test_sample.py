"""Samples of real Delta tables: reproducible, complete when asked, in canonical values, with the right file per row."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.errors import TableError
from zorder_pipeline.features.sample import take_sample
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

ROWS = 4000
COLUMNS = ["id", "s.a.b", "we`ird.name", "ts", "ntz", "amount", "day", "region"]


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableSnapshot]:
    """Four partitions of a file or two, with deletion vectors, column mapping and awkward names; 10 rows deleted."""
    path: Path = tmp_path_factory.mktemp("sample") / "t"
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    (
        spark.range(0, ROWS, 1, 2)
        .selectExpr(
            "id",
            "named_struct('a', named_struct('b', IF(id % 10 = 0, NULL, id * 2))) AS s",
            "concat('v', id) AS `we``ird.name`",
            "timestamp_micros(id * 1000000 + 7) AS ts",
            "CAST(TIMESTAMP_NTZ '1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) AS TIMESTAMP_NTZ) AS ntz",
            "CAST(id / 100 AS DECIMAL(12, 2)) AS amount",
            "date_from_unix_date(CAST(id % 50 AS INT)) AS day",
            "concat('r', id % 4) AS region",
            "map('k', id) AS m",
        )
        .write.format("delta")
        .partitionBy("region")
        .option("delta.enableDeletionVectors", "true")
        .option("delta.columnMapping.mode", "name")
        .save(str(path))
    )
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 10")
    yield open_table(spark, str(path))
    spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


def test_everything_in_canonical_values(spark: SparkSession, table: TableSnapshot) -> None:
    live = ROWS - 10
    sample = take_sample(table, [*COLUMNS, "m"], rows=live, seed=0, total_rows=live)
    assert (sample.rows, sample.total_rows, sample.version) == (live, live, table.version)
    assert list(sample.columns) == COLUMNS  # a map has no order and is left out
    ids = sample.columns["id"].values
    assert sorted(ids.tolist()) == list(range(10, ROWS))
    values = {name: column.values for name, column in sample.columns.items()}
    assert np.array_equal(values["ts"], ids * 1_000_000 + 7)
    assert np.array_equal(values["ntz"], ids * 1_000_000)
    assert np.array_equal(values["amount"], ids)
    assert np.array_equal(values["day"], ids % 50)
    assert values["we`ird.name"].tolist() == [f"v{i}" for i in ids]
    nested = sample.columns["s.a.b"]
    assert np.array_equal(nested.valid, ids % 10 != 0)
    assert np.array_equal(nested.values[nested.valid], 2 * ids[nested.valid])
    assert sample.file.dtype == np.int32
    assert len(set(sample.file.tolist())) == len(table.files())
    assert np.all(np.diff(sample.file) >= 0)
    assert all(len(set(values["region"][sample.file == i])) == 1 for i in set(sample.file.tolist()))


def test_of_a_large_table_some_files_are_read_and_every_partition(
    spark: SparkSession, table: TableSnapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zorder_pipeline.features.sampling.MIN_FILES", 2)
    monkeypatch.setattr("zorder_pipeline.features.sampling.MAX_SCANNED", 1)
    sample = take_sample(table, COLUMNS, rows=ROWS, seed=3, total_rows=ROWS - 10)
    assert 4 <= sample.files_read < len(table.files())
    assert len(set(sample.file.tolist())) == sample.files_read
    assert set(sample.columns["region"].values.tolist()) == {"r0", "r1", "r2", "r3"}
    ids = sample.columns["id"].values
    assert ids.min() >= 10  # deleted rows stay hidden
    assert np.array_equal(sample.columns["amount"].values, ids)
    few = take_sample(table, ["id"], rows=200, seed=3, total_rows=ROWS - 10)
    assert 120 < few.rows < 300
    assert set(few.columns["id"].values.tolist()) <= set(ids.tolist())
    assert take_sample(table, ["id"], rows=200, seed=3, total_rows=ROWS - 10).rows == few.rows


def test_a_partition_of_which_few_files_are_read_has_its_share_of_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve files of one partition, of which three are read, and one file of each of three others."""
    frame = spark.range(0, 15_000, 1, 15).selectExpr("id", "IF(id < 12000, 'large one', concat('p', id DIV 1000)) AS p")
    frame.write.format("delta").partitionBy("p").save(str(tmp_path / "t t"))
    monkeypatch.setattr("zorder_pipeline.features.sampling.MIN_FILES", 4)
    monkeypatch.setattr("zorder_pipeline.features.sampling.MAX_SCANNED", 1)
    table = open_table(spark, str(tmp_path / "t t"))
    sample = take_sample(table, ["id", "p"], rows=1500, seed=1, total_rows=15_000)
    assert (len(table.files()), sample.files_read) == (15, 6)
    assert 1300 < sample.rows < 1700
    large = sample.columns["p"].values == "large one"
    assert 0.75 < large.mean() < 0.85
    assert len(set(sample.file[large].tolist())) == 3
    assert len(set(sample.columns["id"].values.tolist())) == sample.rows


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_large_and_small_files_of_a_partition_have_their_share_of_the_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vectors: str
) -> None:
    """Files of which unlike shares of their rows are taken are scanned apart: no row twice, each with its values."""
    path = str(tmp_path / "t")
    shaped = spark.range(0, 20_000, 1, 1).selectExpr("id", "named_struct('x', -id) AS s", "id DIV 10000 AS day")
    writer = shaped.write.format("delta").partitionBy("day").option("delta.enableDeletionVectors", vectors)
    writer.save(path)
    late = spark.range(20_000, 24_000, 1, 40).selectExpr("id", "named_struct('x', -id) AS s", "id % 2 AS day")
    late.write.format("delta").mode("append").save(path)
    monkeypatch.setattr("zorder_pipeline.features.sampling.MIN_FILES", 20)
    monkeypatch.setattr("zorder_pipeline.features.sampling.MAX_SCANNED", 1)
    table = open_table(spark, path)
    asked = {"twice": ("2 * id", "bigint"), "fails": ("1 / (id DIV 20000 - 1) > 0", "boolean")}
    sample = take_sample(table, ["id", "s.x", "day"], rows=4_000, seed=1, total_rows=24_000, expressions=asked)
    ids = sample.columns["id"].values
    assert sample.files_read < len(table.files())
    assert len(set(ids.tolist())) == sample.rows
    assert np.array_equal(sample.columns["s.x"].values, -ids)
    assert np.array_equal(sample.columns["twice"].values, 2 * ids)
    assert list(sample.columns) == ["id", "s.x", "day", "twice"]
    assert 3_600 < sample.rows < 4_400
    assert abs((ids >= 20_000).mean() - 4_000 / 24_000) < 0.06
    nested = take_sample(table, ["id"], rows=1_000, seed=1, total_rows=24_000)
    assert set(nested.columns["id"].values.tolist()) < set(ids.tolist())


def test_the_same_rows_for_the_same_seed(spark: SparkSession, table: TableSnapshot) -> None:
    def draw(rows: int, seed: int) -> list[int]:
        sample = take_sample(table, ["id"], rows=rows, seed=seed, total_rows=ROWS - 10)
        return [int(value) for value in sample.columns["id"].values]

    first = draw(1000, 1)
    partitions = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        assert draw(1000, 1) == first
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", partitions or "128MB")
    assert 850 < len(first) < 1150
    assert len(set(first)) == len(first)
    assert set(draw(300, 1)) < set(first)
    assert draw(1000, 2) != first


def test_an_unknown_column_and_an_empty_sample(spark: SparkSession, table: TableSnapshot) -> None:
    with pytest.raises(TableError, match="column nope cannot be sampled"):
        take_sample(table, ["nope"], rows=1, seed=0, total_rows=1)
    empty = take_sample(table, ["id", "we`ird.name", "amount"], rows=0, seed=0, total_rows=ROWS)
    assert (empty.rows, len(empty.file), len(empty.columns["amount"].values)) == (0, 0, 0)


def test_a_column_that_is_called_like_the_metadata(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 100, 1, 1).selectExpr("id AS _metadata").write.format("delta").save(str(tmp_path / "t"))
    sample = take_sample(open_table(spark, str(tmp_path / "t")), ["_metadata"], rows=100, seed=0, total_rows=100)
    assert sample.columns["_metadata"].values.tolist() == list(range(100))


def test_an_expression_that_fails_on_a_row_is_left_out(spark: SparkSession, table: TableSnapshot) -> None:
    asked = {
        "half": ("id / 2", "double"),
        "none": ("1 / (id - 77) > 0", "boolean"),
        "text": ("CAST(region AS INT)", "int"),
    }
    sample = take_sample(table, ["id"], rows=ROWS, seed=0, total_rows=ROWS - 10, expressions=asked)
    assert list(sample.columns) == ["id", "half"]
    assert np.array_equal(sample.columns["half"].values, sample.columns["id"].values / 2)
