"""What a rewrite must not change, whatever the session is set to: values, partitions and rows of odd tables."""

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.spark.delta_feature_cases import TYPE_CHECK
from tests.spark.test_relayout import content, relayout, spec_for, version
from zorder_pipeline import pipeline
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.errors import TableError, UnsupportedTableError
from zorder_pipeline.model.partition_key import partition_condition
from zorder_pipeline.pipeline.rewriting.proof import prove
from zorder_pipeline.relayout.cell_zones import zones_by_cell
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.snapshot import PUBLIC, forget_snapshots, open_table
from zorder_pipeline.relayout.verify import content_hash
from zorder_pipeline.state.session_conf import ZONE, set_for_a_while

pytestmark = pytest.mark.matrix

SPEC = spec_for("k")
COMMITTERS = ("auto", pytest.param(PUBLIC, marks=pytest.mark.slow))


def created(spark: SparkSession, path: Path, columns: str, rows: str, partition: str = "", **properties: str) -> str:
    """A table of 1,000 ``rows`` over the ids of a range, in two files."""
    by = f"PARTITIONED BY ({partition})" if partition else ""
    told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta {by} {f'TBLPROPERTIES ({told})' if told else ''}")
    spark.sql(f"INSERT INTO delta.`{path}` SELECT /*+ REPARTITION(2) */ {rows} FROM range(1000)")
    return str(path)


def rewritten(spark: SparkSession, path: str, committer: str = "auto", **options: Any) -> Any:
    return relayout(spark, path, SPEC, snapshot=open_table(spark, path, committer=committer), **options)


def log_was_edited(spark: SparkSession, path: str) -> None:
    """Forget checksums of a table's log, and what is in memory of it."""
    for checksum in (Path(path) / "_delta_log").glob("*.crc"):  # hidden ones, too
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    forget_snapshots()


def counted(spark: SparkSession, path: str, value: str) -> list[tuple[Any, ...]]:
    return sorted(
        map(tuple, spark.sql(f"SELECT {value}, count(*) FROM delta.`{path}` GROUP BY ALL").collect()), key=str
    )


@pytest.mark.parametrize("committer", COMMITTERS)
def test_partitions_by_the_empty_string_are_refused_and_can_be_left_out(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path = str(tmp_path / "t")
    rows = {"k": pa.array(range(1000), pa.int64()), "p": pa.array(["", None, "a", "b"] * 250)}
    write_deltalake(path, pa.table(rows), partition_by=["p"])
    before = counted(spark, path, "p")
    with pytest.raises(UnsupportedTableError, match=r"partition column p has the value ''.*leave that partition out"):
        rewritten(spark, path, committer, bin_bytes=1)  # the other bins come first
    plan = pipeline.layout_by_hand(spark, path, {"k": 2}, settings=pipeline.LearnSettings(target_file_rows=100))
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match="leave that partition out"):
            pipeline.apply(spark, path, plan, force=True, dry_run=dry_run, committer=committer)
    assert version(spark, path) == 0
    assert rewritten(spark, path, committer, where="p IS NULL OR p <> ''").rows == 750
    assert counted(spark, path, "p") == before


@pytest.mark.parametrize("committer", COMMITTERS)
@pytest.mark.parametrize(
    ("kind", "values", "right", "wrong"),
    [
        ("INT", "IF(id % 2 = 0, NULL, id % 4)", "3", "abc"),
        ("DATE", "date_add(DATE'2024-02-28', int(id % 4))", "2024-02-29", "2024-02-30"),
    ],
)
def test_partitions_by_texts_that_are_no_values_are_refused_and_can_be_left_out(
    spark: SparkSession, tmp_path: Path, kind: str, values: str, right: str, wrong: str, committer: str
) -> None:
    """Spark reads them as null and would write that: no engine could put them right any more."""
    path = created(spark, tmp_path / "t", f"k BIGINT, p {kind}", f"id, {values}", "p")
    entry = Path(path) / "_delta_log" / f"{1:020}.json"
    changed = entry.read_text().replace(f'"p":"{right}"', f'"p":"{wrong}"').replace(f"p={right}/", f"p={wrong}/")
    entry.write_text(changed)
    (Path(path) / f"p={right}").rename(Path(path) / f"p={wrong}")
    log_was_edited(spark, path)
    before = counted(spark, path, "p, sum(k)")
    told = f"partition column p has the value '{wrong}', which is no {kind.lower()}.*--where \"p IS NOT NULL\""
    with pytest.raises(UnsupportedTableError, match=told):
        rewritten(spark, path, committer, bin_bytes=1)  # the other bins come first
    assert version(spark, path) == 1
    assert rewritten(spark, path, where="p IS NOT NULL").rows == counted(spark, path, "p IS NULL")[0][1]
    assert counted(spark, path, "p, sum(k)") == before
    assert (wrong,) in open_table(spark, path).files().partitions


@pytest.mark.slow
def test_a_null_of_numbers_that_is_written_as_an_empty_text_is_a_partition_as_any(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = created(spark, tmp_path / "t", "k BIGINT, p INT", "id, IF(id % 3 = 0, NULL, id % 3)", "p")
    entry = Path(path) / "_delta_log" / f"{1:020}.json"
    entry.write_text(entry.read_text().replace('"partitionValues":{"p":null}', '"partitionValues":{"p":""}'))
    log_was_edited(spark, path)
    keys = open_table(spark, path).files().partitions
    assert (None,) in keys and ("",) not in keys  # noqa: PT018
    before = counted(spark, path, "p, sum(k)")
    done = rewritten(spark, path, where=partition_condition("p=__HIVE_DEFAULT_PARTITION__", {"p": "int"}))
    assert done.rows == 334
    assert counted(spark, path, "p, sum(k)") == before


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["+10000-01-01 00:00:00", "-0044-03-15 12:30:00.000001"])
def test_days_that_python_does_not_have_may_be_partitions(spark: SparkSession, tmp_path: Path, moment: str) -> None:
    given = f"IF(id % 2 = 0, TIMESTAMP_NTZ'{moment}', NULL)"
    path = created(spark, tmp_path / "t", "k BIGINT, p TIMESTAMP_NTZ", f"id, {given}", "p")
    before = counted(spark, path, "CAST(p AS STRING), sum(k)")
    assert rewritten(spark, path).rows == 1000
    assert counted(spark, path, "CAST(p AS STRING), sum(k)") == before
    snapshot = open_table(spark, path)
    assert len(np.unique(zones_by_cell(snapshot, SPEC, ["k"], snapshot.files().path.tolist()).partition)) == 2


@pytest.mark.slow
def test_texts_that_are_no_utf8_can_be_laid_out_by(spark: SparkSession, tmp_path: Path) -> None:
    wrong = "CAST(unhex(concat(hex(CAST(id % 256 AS INT)), '80')) AS STRING)"
    path = created(spark, tmp_path / "t", "k BIGINT, s STRING", f"id, IF(id % 3 = 0, {wrong}, concat('a', id))")
    plan = pipeline.layout_by_hand(spark, path, {"s": 4}, settings=pipeline.LearnSettings(target_file_rows=100))
    before = counted(spark, path, "hex(s), sum(k)")
    assert pipeline.apply(spark, path, plan, force=True).rows == 1000
    assert counted(spark, path, "hex(s), sum(k)") == before
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"statement": "SELECT k FROM t WHERE s = 'a7'"}) + "\n")
    found = pipeline.evaluate(spark, path, [str(log)], aliases=["t"])
    assert found.files_per_query[0] < found.files / 2


@pytest.mark.parametrize("committer", COMMITTERS)
def test_partitions_by_instants_are_written_in_utc_whatever_the_session_does(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path = created(
        spark, tmp_path / "t", "k BIGINT, at TIMESTAMP", "id, timestamp_seconds(1700000000 + id % 2 * 3600)", "at"
    )
    before = counted(spark, path, "unix_seconds(at)")
    local = {"spark.databricks.delta.write.utcTimestampPartitionValues": "false"}
    local["spark.sql.timestampType"] = "TIMESTAMP_NTZ"  # to which a cast to TIMESTAMP would lead
    with set_for_a_while(spark, local | {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        assert rewritten(spark, path, committer, where="at < TIMESTAMP_LTZ'2023-11-14 22:30:00Z'").rows == 500
        assert rewritten(spark, path, committer, full=True).rows == 1000
    assert counted(spark, path, "unix_seconds(at)") == before


def test_instants_are_written_in_the_machine_s_zone_where_the_session_names_none(
    spark: SparkSession, tmp_path: Path
) -> None:
    """In UTC, which they were written in for want of a zone, a generated column is another and refuses the rows."""
    path, zones = str(tmp_path / "t"), spark._jvm.java.util.TimeZone
    own = zones.getDefault()
    zones.setDefault(zones.getTimeZone("Asia/Tokyo"))
    try:
        with set_for_a_while(spark, {ZONE: None}):
            columns = "k BIGINT, at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))"
            spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta PARTITIONED BY (at)")
            rows = "SELECT /*+ REPARTITION(2) */ id, timestamp_seconds(1700000000 + id % 2 * 3600) FROM range(1000)"
            spark.sql(f"INSERT INTO delta.`{path}` (k, at) {rows}")
            before = counted(spark, path, "unix_seconds(at), day")
            assert rewritten(spark, path).rows == 1000
            assert counted(spark, path, "unix_seconds(at), day") == before
    finally:
        zones.setDefault(own)


@pytest.mark.slow
def test_days_of_old_are_neither_read_nor_written_by_another_calendar(spark: SparkSession, tmp_path: Path) -> None:
    path, day = str(tmp_path / "t"), dt.date(1500, 1, 1)
    write_deltalake(path, pa.table({"k": pa.array(range(1000), pa.int64()), "d": pa.array([day] * 1000)}))
    for place in ("sql", "sql.legacy"):  # the name before Spark 3.2
        legacy = {f"spark.{place}.parquet.datetimeRebaseModeInRead": "LEGACY"}
        with session_conf(spark, legacy), pytest.raises(TableError, match="nothing was committed"):
            rewritten(spark, path)
    with session_conf(spark, {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"}):
        assert rewritten(spark, path).committed
    assert DeltaTable(path).to_pyarrow_table().column("d").unique().to_pylist() == [day]
    instants = created(spark, tmp_path / "i", "k BIGINT, at TIMESTAMP", "id, timestamp_seconds(id)")
    with session_conf(spark, {"spark.sql.parquet.int96TimestampConversion": "true"}):
        assert rewritten(spark, path, full=True).committed  # it has no instants
        with pytest.raises(UnsupportedTableError, match=r"set spark.sql.parquet.int96TimestampConversion to false"):
            rewritten(spark, instants)


def test_structs_without_a_field_that_files_have_do_not_become_null(spark: SparkSession, tmp_path: Path) -> None:
    mapped = {"delta.columnMapping.mode": "name"}
    path = created(spark, tmp_path / "t", "k BIGINT, s STRUCT<a: INT>", "id, IF(id < 9, NULL, struct(1))", **mapped)
    for change in ("ADD COLUMN s.b INT", "DROP COLUMN s.a"):
        spark.sql(f"ALTER TABLE delta.`{path}` {change}")
    before = counted(spark, path, "s IS NULL")
    assert before == [(False, 991), (True, 9)]
    old = open_table(spark, path)
    with session_conf(spark, {"spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing": "true"}):
        assert rewritten(spark, path).committed
        contents = prove(old, open_table(spark, path), hashed=True).contents
        assert contents[0] == contents[1]
    assert counted(spark, path, "s IS NULL") == before


def test_a_column_without_a_type_is_no_part_of_what_is_compared_where_delta_does_not_read_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """On Spark 4.0 it does not by default, and such a table was never rewritten with ``verify: hash``."""
    with set_for_a_while(spark, {"spark.databricks.delta.createDataFrame.dropNullColumns": "true"}):
        path = created(spark, tmp_path / "t", "k BIGINT, nothing VOID, v BIGINT", "id, NULL, id % 7")
        before = counted(spark, path, "v")
        assert rewritten(spark, path, verify="hash").rows == 1000
        assert counted(spark, path, "v") == before
    assert open_table(spark, path).struct.names == ["k", "nothing", "v"]


def test_files_whose_columns_have_no_ids_are_an_error_whatever_the_session_makes_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = created(spark, tmp_path / "t", "k BIGINT, v INT", "id, 1", **{"delta.columnMapping.mode": "id"})
    first = next(Path(path).glob("**/*.parquet"))
    read = pq.read_table(first)
    kinds = pa.schema([pa.field(field.name, field.type) for field in read.schema])
    size = first.stat().st_size
    pq.write_table(pa.table(read.columns, schema=kinds), first)
    (first.parent / f".{first.name}.crc").unlink()
    entry = Path(path) / "_delta_log" / f"{1:020}.json"
    entry.write_text(entry.read_text().replace(f'"size":{size},', f'"size":{first.stat().st_size},'))
    log_was_edited(spark, path)
    lenient = {"spark.sql.parquet.fieldId.read.ignoreMissing": "true"}
    with set_for_a_while(spark, lenient), pytest.raises(TableError, match="nothing was committed"):
        rewritten(spark, path)
    assert version(spark, path) == 1


@pytest.mark.parametrize("committer", COMMITTERS)
def test_a_file_that_cannot_be_read_is_an_error_whatever_the_session_passes_over(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    with set_for_a_while(spark, {"spark.databricks.delta.stats.collect": "false"}):
        path = created(spark, tmp_path / "t", "k BIGINT", "id")
    first = next(Path(path).glob("*.parquet"))
    first.write_bytes(b"X" * first.stat().st_size)
    (first.parent / f".{first.name}.crc").unlink()
    ignored = {f"spark.sql.files.ignore{kind}Files": "true" for kind in ("Corrupt", "Missing")}
    with set_for_a_while(spark, ignored), pytest.raises(Exception, match=r"(?i)parquet|corrupt|footer"):
        rewritten(spark, path, committer)
    assert version(spark, path) == 1


def test_settings_that_would_spoil_the_new_files_do_not_count(spark: SparkSession, tmp_path: Path) -> None:
    mode = {"delta.columnMapping.mode": "id"}
    path = created(spark, tmp_path / "t", "k BIGINT, v INT", "id, 1", **mode)
    spoiling = {"spark.databricks.delta.stats.collect": "false", "spark.sql.parquet.fieldId.write.enabled": "false"}
    with set_for_a_while(spark, spoiling):
        assert rewritten(spark, path).committed
    assert open_table(spark, path).files().zones_of(["k"])["k"].known.all()
    assert spark.sql(f"SELECT count(k), sum(v) FROM delta.`{path}`").collect()[0][:] == (1000, 1000)


@pytest.mark.parametrize(
    ("kind", "values", "by"),
    [
        ("DOUBLE", "IF(id % 2 = 0, 0.0D, -0.0D)", "CAST(p AS STRING)"),
        pytest.param(
            "DATE", "IF(id % 2 = 0, DATE'+10000-01-01', DATE'2020-01-01')", "unix_date(p)", marks=pytest.mark.slow
        ),
        pytest.param(
            "TIMESTAMP", "timestamp_seconds(IF(id % 2 = 0, 253402300800, 0))", "unix_micros(p)", marks=pytest.mark.slow
        ),
    ],
)
def test_odd_partition_values_keep_their_rows_and_few_files(
    spark: SparkSession, tmp_path: Path, kind: str, values: str, by: str
) -> None:
    path = created(spark, tmp_path / "t", f"k BIGINT, p {kind}", f"id, {values}", "p")
    before = counted(spark, path, by)
    done = rewritten(spark, path, target=100)
    assert counted(spark, path, by) == before
    assert 8 <= done.files_added <= 20


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("array(1, null)", "array(null, 1)"),
        ("array(1)", "array(1, null)"),
        ("array(array(1), array(2))", "array(array(1, 2))"),
        ("named_struct('a', 1, 'b', CAST(null AS INT))", "named_struct('a', CAST(null AS INT), 'b', 1)"),
        ("array(struct(1), null)", "array(struct(1))"),
        ("array(-0.0D)", "array(0.0D)"),
        ("-0.0F", "0.0F"),
        ("map('a', timestamp_micros(1))", "map('a', timestamp_micros(2))"),
        ("parse_json('1')", "parse_json('1.0')"),
        ("array('ab', 'c')", "array('a', 'bc')"),
        ("'A' COLLATE UTF8_LCASE", "'a' COLLATE UTF8_LCASE"),
    ],
)
def test_the_hash_sees_what_is_inside_of_values(spark: SparkSession, one: str, other: str) -> None:
    hashes = [content_hash(spark.sql(f"SELECT {text} AS x")) for text in (one, other, one)]
    assert hashes[0] != hashes[1]
    assert hashes[0] == hashes[2]


@pytest.mark.slow
def test_maps_with_binary_keys_are_verified_by_hash(spark: SparkSession, tmp_path: Path) -> None:
    rows = "id, map(CAST(string(id) AS BINARY), named_struct('a', id, 'b', array(id, null)))"
    path = created(spark, tmp_path / "t", "k BIGINT, m MAP<BINARY, STRUCT<a: BIGINT, b: ARRAY<BIGINT>>>", rows)
    assert rewritten(spark, path, verify="hash").committed


@pytest.mark.slow
def test_files_of_one_name_in_two_partitions_are_counted_apart(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for p, rows in ((1, 400), (2, 600)):
        (path / f"p={p}").mkdir(parents=True)
        pq.write_table(pa.table({"k": pa.array(range(rows), pa.int64())}), path / f"p={p}" / "000000_0.parquet")
    spark.sql(f"CONVERT TO DELTA parquet.`{path}` NO STATISTICS PARTITIONED BY (p INT)")
    assert sorted(open_table(spark, str(path)).files().rows) == [400, 600]
    before = content(spark, str(path))
    assert rewritten(spark, str(path)).rows == 1000
    assert content(spark, str(path)) == before


@pytest.mark.parametrize("committer", ["auto", PUBLIC])
def test_wrong_counts_in_the_log_are_looked_into(spark: SparkSession, tmp_path: Path, committer: str) -> None:
    """Delta counts by them: by public API the relayout was taken back, else reported as one that lost rows."""
    path = created(spark, tmp_path / "t", "k BIGINT", "id")
    entry = Path(path) / "_delta_log" / f"{1:020}.json"
    entry.write_text(entry.read_text().replace('\\"numRecords\\":', '\\"numRecords\\":1'))
    log_was_edited(spark, path)
    old = open_table(spark, path)
    assert old.files().rows.sum() > 1000
    before = content(spark, path)
    assert rewritten(spark, path, committer, verify="counts").committed
    assert content(spark, path) == before
    assert [prove(old, open_table(spark, path), hashed).rows for hashed in (False, True)] == [(1000, 1000)] * 2


def test_files_without_a_row_are_nothing_to_do(spark: SparkSession, tmp_path: Path) -> None:
    path = created(spark, tmp_path / "t", "k BIGINT", "id")
    rewritten(spark, path, target=1000)
    empty = Path(path) / "empty.parquet"
    pq.write_table(pa.table({"k": pa.array([], pa.int64())}), empty)
    add = {"path": empty.name, "partitionValues": {}, "size": empty.stat().st_size, "modificationTime": 1}
    add |= {"dataChange": True, "stats": '{"numRecords":0}'}
    (Path(path) / "_delta_log" / f"{3:020}.json").write_text(json.dumps({"add": add}) + "\n")
    done = rewritten(spark, path, target=1000)
    assert (done.committed, done.files_removed) == (False, 0)
    assert rewritten(spark, path, target=1000, full=True).rows == 1000


def test_a_column_called_metadata_is_the_tables_own(spark: SparkSession, tmp_path: Path) -> None:
    path = created(spark, tmp_path / "t", "k BIGINT, _metadata STRING", "id, 'mine'")
    before = content(spark, path)
    settings = pipeline.LearnSettings(target_file_rows=3000)
    assert pipeline.compact(spark, path, settings=settings).files_added == 1
    assert content(spark, path) == before


@pytest.mark.parametrize(
    ("properties", "way"),
    [
        ({}, "compaction"),
        pytest.param({"delta.enableRowTracking": "true"}, "auto", marks=pytest.mark.slow),
        pytest.param({}, PUBLIC, marks=pytest.mark.slow),
    ],
)
def test_chars_get_no_blanks_that_their_files_do_not_have(
    spark: SparkSession, tmp_path: Path, properties: dict[str, str], way: str
) -> None:
    """Spark adds them for its readers alone: others would see the table's values change."""
    path = created(spark, tmp_path / "t", "k BIGINT, c CHAR(6)", "id, id", **properties)

    def stored() -> Counter[int]:
        table = DeltaTable(path).to_pyarrow_table(columns=["c"])
        return Counter(len(value) for value in table["c"].to_pylist())

    before = stored()
    assert before == {1: 10, 2: 90, 3: 900}
    if way == "compaction":
        settings = pipeline.LearnSettings(target_file_rows=2000)
        assert pipeline.compact(spark, path, settings=settings, verify="hash").decision == "applied"
    else:
        assert rewritten(spark, path, way, verify="hash").committed
    assert stored() == before


@pytest.mark.slow
@pytest.mark.parametrize("committer", ["auto", PUBLIC])
def test_a_table_of_collated_texts_is_rolled_back(spark: SparkSession, tmp_path: Path, committer: str) -> None:
    with set_for_a_while(spark, {TYPE_CHECK: "false"}):
        path = created(spark, tmp_path / "t", "k BIGINT, s STRING COLLATE UTF8_LCASE", "id, if(id % 2 = 0, 'A', 'a')")
    before = counted(spark, path, "CAST(s AS BINARY)")
    assert rewritten(spark, path, committer, verify="hash").committed
    assert rollback(spark, path, committer=committer).restored_version == 1
    assert counted(spark, path, "CAST(s AS BINARY)") == before
