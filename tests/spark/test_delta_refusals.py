"""Tables that a relayout refuses, with one sentence that says the way out; and the corners of those that it takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline import LearnSettings, apply, compact, layout_by_hand, triage
from zorder_pipeline.relayout import snapshot as snapshots
from zorder_pipeline.relayout.snapshot import open_table

pytestmark = pytest.mark.matrix

ROWS = "SELECT /*+ REPARTITION(4) */ (id * 7919) % 400 AS k"


def laid_out(spark: SparkSession, path: str, *columns: str, where: str | None = None) -> ApplyResult:
    """The table after a relayout, whose rows are checked."""
    bits = dict.fromkeys(columns or ("k",), 2)
    plan = layout_by_hand(spark, path, bits, settings=LearnSettings(target_file_rows=100))
    before = content(spark, path)
    done = apply(spark, path, plan, force=True, where=where)
    assert content(spark, path) == before
    return done


def content(spark: SparkSession, path: str) -> list[str]:
    frame = spark.read.format("delta").load(path) if "/" in path else spark.table(path)
    return sorted(map(str, frame.collect()))


def with_feature(path: str, feature: str, *, reader: bool) -> None:
    """Add a feature to the protocol of a table's first version, as another engine would have."""
    log = Path(path, "_delta_log", f"{0:020}.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if protocol := line.get("protocol"):
            protocol |= {"minReaderVersion": 3 if reader else 1, "minWriterVersion": 7}
            protocol.setdefault("writerFeatures", []).append(feature)
            if reader:
                protocol.setdefault("readerFeatures", []).append(feature)
    log.write_text("\n".join(map(json.dumps, lines)))
    log.with_name(f".{log.name}.crc").unlink(missing_ok=True)
    log.with_suffix(".crc").unlink(missing_ok=True)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta AS {ROWS} FROM range(400)")
    return f"{tmp_path}/t"


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    yield
    spark.conf.set("spark.sql.session.timeZone", str(before))


def test_a_liquid_table_is_refused_until_it_is_clustered_by_none(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT) USING delta CLUSTER BY (k)")
    spark.sql(f"INSERT INTO delta.`{path}` {ROWS} FROM range(400)")
    with pytest.raises(UnsupportedTableError, match=r"ALTER TABLE \.\.\. CLUSTER BY \(<columns>\), or CLUSTER BY NONE"):
        laid_out(spark, path)
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY NONE")
    assert laid_out(spark, path).decision == "applied"
    spark.sql(f"OPTIMIZE delta.`{path}`")
    spark.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY (k)")
    with pytest.raises(UnsupportedTableError, match="liquid clustering"):
        laid_out(spark, path)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (False, "feature fromTheFuture, .*; use the learned columns as advice .* DROP FEATURE"),
        (True, "cannot be opened: .*DELTA_UNSUPPORTED_FEATURES_FOR_READ.* fromTheFuture; .* DROP FEATURE"),
    ],
)
def test_an_unknown_feature_is_refused(spark: SparkSession, tmp_path: Path, reader: bool, message: str) -> None:
    path = f"{tmp_path}/t"
    spark.range(9).selectExpr("id AS k").write.format("delta").save(f"{path}-original")
    Path(f"{path}-original").rename(path)  # Delta remembers what it has read of the other path
    with_feature(path, "fromTheFuture", reader=reader)
    with pytest.raises(UnsupportedTableError, match=message):
        laid_out(spark, path)


def test_a_feature_that_this_delta_cannot_write_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was written, and only the commit failed, each night: the files stayed."""
    path = f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE delta.`{path}-original` USING delta AS {ROWS} FROM range(400)")
    Path(f"{path}-original").rename(path)
    with_feature(path, "collations", reader=False)
    message = "cannot be rewritten: .*DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.* collations; .* DROP FEATURE"
    files = set(Path(path).glob("*.parquet"))
    with pytest.raises(UnsupportedTableError, match=message):
        laid_out(spark, path)
    assert open_table(spark, path, committer="public").unsupported() is None, "another Delta may be able to"
    monkeypatch.setattr(snapshots, "why_unwritable", lambda *_: None)
    with pytest.raises(UnsupportedTableError, match=message):  # by the commit, which is a definite answer
        laid_out(spark, path)
    assert set(Path(path).glob("*.parquet")) == files


@pytest.mark.parametrize("committer", ["auto", "public"])
@pytest.mark.parametrize("folder", ["p=1", "data"])
def test_a_folder_inside_of_a_table_is_no_table(
    spark: SparkSession, tmp_path: Path, committer: str, folder: str
) -> None:
    path = f"{tmp_path}/t"
    spark.range(9).selectExpr("id AS k", "id % 2 AS p").write.format("delta").partitionBy("p").save(path)
    Path(path, "data").mkdir()
    advice = "give that, with --where for some partitions, if the command has that"
    with pytest.raises(TableError, match=f"^{path}/{folder} lies in the folder of the table {path}; {advice}$"):
        open_table(spark, f"{path}/{folder}", committer=committer)


@pytest.mark.parametrize("committer", ["auto", "public"])
def test_a_table_whose_log_is_damaged_is_told_in_one_sentence(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    """What Delta raises then stops the night of its table alone: it is an error of ours."""
    path = f"{tmp_path}/t"
    for _ in range(4):
        spark.range(9).write.format("delta").mode("append").save(f"{path}-original-{committer}")
    Path(f"{path}-original-{committer}").rename(path)
    for kept in Path(path, "_delta_log").glob(f"*{1:020d}*"):
        kept.unlink()
    with pytest.raises(TableError, match=r"table .*/t cannot be opened: .*VERSIONS_NOT_CONTIGUOUS"):
        open_table(spark, path, committer=committer)


@pytest.mark.parametrize("delta", ["3.3.2", "5.0.0", "of no known version"])
def test_another_delta_is_refused_at_the_start(
    spark: SparkSession, table: str, monkeypatch: pytest.MonkeyPatch, delta: str
) -> None:
    monkeypatch.setattr(snapshots, "session_versions", lambda spark: (spark.version, delta))
    with pytest.raises(UnsupportedTableError, match=rf"Delta {delta}; supported are Spark 4\.0 with"):
        open_table(spark, table)


def test_a_column_called_as_ours_are_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta AS SELECT id AS k, id AS `__Zorder_key` FROM range(9)")
    with pytest.raises(UnsupportedTableError, match="column __Zorder_key, a name that zorder itself uses; rename"):
        laid_out(spark, f"{tmp_path}/t")


@pytest.mark.slow
def test_a_generated_column_of_another_time_zone_is_refused(spark: SparkSession, tmp_path: Path, zone: None) -> None:
    path = f"{tmp_path}/t"
    columns = "(k BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)))"
    spark.sql(f"CREATE TABLE delta.`{path}` {columns} USING delta")
    spark.sql(f"INSERT INTO delta.`{path}` (k, at) {ROWS}, timestamp_seconds(id * 8639) FROM range(400)")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    with pytest.raises(TableError, match=r"Generated Column \(day <=> CAST.*set spark.sql.session.timeZone"):
        laid_out(spark, path)
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert laid_out(spark, path, "k", "day").decision == "applied"


def test_a_catalog_table_goes_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE features LOCATION '{tmp_path}/a b%20c'")
    try:
        spark.sql(f"CREATE TABLE features.t USING delta AS {ROWS} FROM range(400)")
        assert laid_out(spark, "features.t").decision == "applied"
        assert laid_out(spark, "`features`.`t`").decision == "nothing_to_do"
        assert spark.sql("DESCRIBE HISTORY features.t").first()["operation"] == "OPTIMIZE"  # type: ignore[index]
        assert laid_out(spark, f"{tmp_path}/a b%20c/t").decision == "nothing_to_do"
    finally:
        spark.sql("DROP DATABASE features CASCADE")


@pytest.mark.parametrize("committer", ["auto", "public"])
def test_a_table_of_the_catalog_in_another_format_is_refused(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    (tmp_path / "log.sql").write_text("SELECT * FROM plain WHERE k = 1;\n")
    spark.sql("CREATE TABLE plain USING parquet AS SELECT 1 AS k")
    try:
        with pytest.raises(
            TableError, match=r"^plain is a table of (format parquet|another format), no Delta table"
        ) as refused:
            open_table(spark, "plain", committer=committer)
        if committer == "auto":  # one among the tables that a log names ends no command
            (found,) = triage(spark, [str(tmp_path / "log.sql")])
            assert found.problem == str(refused.value)
    finally:
        spark.sql("DROP TABLE plain")


@pytest.mark.slow
def test_partitions_of_every_type(spark: SparkSession, tmp_path: Path, zone: None) -> None:
    path = f"{tmp_path}/t"
    values = (
        "id % 2 = 0 AS a, date_from_unix_date(id % 2) AS b, timestamp_micros(id % 2 * 1234567) AS c, "
        "CAST(timestamp_micros(id % 2 * 7654321) AS TIMESTAMP_NTZ) AS d, "
        "CAST(id % 2 / 3 AS DECIMAL(20, 5)) AS e, binary(string(id % 2)) AS f, "
        'float(id % 2 / 3) AS g, tinyint(id % 2) AS h, IF(id % 3 = 0, NULL, concat("a:/%\'=\u00e9 ", id % 2)) AS i, '
        "string(NULL) AS j, -0.0D * (id % 2) AS l"
    )
    by = "a, b, c, d, e, f, g, h, i, j, l"
    spark.sql(f"CREATE TABLE delta.`{path}` USING delta PARTITIONED BY ({by}) AS {ROWS}, {values} FROM range(400)")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    one = laid_out(spark, path, where="b = DATE '1970-01-02' AND h = 1 AND i IS NULL AND c > '1969-12-31 19:00:00'")
    assert 0 < one.rows < 200
    assert one.rows + laid_out(spark, path).rows == 400


def test_a_partition_of_nan(spark: SparkSession, tmp_path: Path) -> None:
    values = "IF(id % 2 = 0, double('NaN'), 1.5D) AS p"
    spark.sql(f"CREATE TABLE delta.`{tmp_path}/t` USING delta PARTITIONED BY (p) AS {ROWS}, {values} FROM range(400)")
    assert laid_out(spark, f"{tmp_path}/t").decision == "applied"


@pytest.mark.slow
def test_a_dotted_name_that_is_also_a_field_goes_by_its_quoted_name(spark: SparkSession, tmp_path: Path) -> None:
    path, mapping = f"{tmp_path}/t", "PARTITIONED BY (`c.d`) TBLPROPERTIES (delta.columnMapping.mode = 'name')"
    columns = "a STRUCT<b: INT>, `a.b` STRING, c STRUCT<d: INT>, `c.d` INT"
    spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT, {columns}) USING delta {mapping}")
    spark.sql(f"INSERT INTO delta.`{path}` {ROWS}, struct(-id), 'x' || id, struct(id), id % 2 FROM range(400)")
    assert [column.name for column in open_table(spark, path).schema.columns] == ["k", "a.b", "`a.b`", "c.d", "`c.d`"]
    for name in ("a.b", "`a.b`"):
        assert laid_out(spark, path, name, where="`c.d` = 1").rows == 200
        files = open_table(spark, path).files()
        zones, ours = files.zones[name], [i for i, part in enumerate(files.partitions) if part == ("1",)]
        assert sorted(zones.low[ours])[1] > sorted(zones.high[ours])[0]  # the files' ranges are apart


def test_an_empty_table_has_nothing_to_do(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/t"
    spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT) USING delta")
    assert laid_out(spark, path).decision == "nothing_to_do"
    assert compact(spark, path).reasons == ("the table is empty",)
    spark.sql(f"INSERT INTO delta.`{path}` SELECT NULL FROM range(9)")
    assert laid_out(spark, path).decision == "applied"
