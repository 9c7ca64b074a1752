"""The relayout on real Delta tables: no row, schema or property changes; features, races, skew and kills."""

import datetime as dt
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.spark import writers
from zorder_pipeline import pipeline
from zorder_pipeline.errors import LostRaceError, TableError, VerificationError
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.relayout import commit, rewrite
from zorder_pipeline.relayout.commit import Transaction
from zorder_pipeline.relayout.job import RelayoutResult
from zorder_pipeline.relayout.rollback import rollback
from zorder_pipeline.relayout.select import in_partitions
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

pytestmark = pytest.mark.usefixtures("compiled")

TARGET = 500


def spec_for(*columns: str, bits: int = 3, span: int = 3000) -> KeySpec:
    """Interleaved bits of bigint columns whose values are about 0 .. span."""
    values = np.arange(span)
    features = tuple(rank_encoding(c, "bigint", values, np.ones(span, bool)).feature(bits) for c in columns)
    return KeySpec(features, tuple(range(len(columns))) * bits, tie_break=columns)


def relayout(spark: SparkSession, path: str, spec: KeySpec, **options: Any) -> RelayoutResult:
    return writers.relayout(spark, path, spec, **{"target": TARGET, "verify": "hash", **options})


def content(spark: SparkSession, path: str) -> list[str]:
    return sorted(map(str, spark.read.format("delta").load(path).collect()))


def make(spark: SparkSession, path: Path, rows: int = 3000, files: int = 6, **properties: str) -> str:
    """id, a decoy, a text; ``files`` files in an order that helps nobody."""
    frame = spark.range(rows).selectExpr("id", "(id * 7919) % 3000 AS k", "concat('row ', id) AS name")
    writer = frame.repartition(files).write.format("delta")
    for key, value in properties.items():
        writer = writer.option(key, value)
    writer.save(str(path))
    return str(path)


def version(spark: SparkSession, path: str) -> int:
    return open_table(spark, path).version


def test_every_type_survives_and_a_second_run_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n = 1200

    def some(values: list) -> list:
        return [None if i % 11 == 5 else value for i, value in enumerate(values)]

    table = pa.table(
        {
            "k": pa.array(rng.integers(0, 3000, n)),
            "tiny": pa.array(some(rng.integers(-100, 100, n).tolist()), pa.int8()),
            "real": pa.array(some([*rng.normal(size=n - 2).tolist(), float("nan"), float("-inf")]), pa.float32()),
            "dec": pa.array(some([Decimal(int(v)).scaleb(-3) for v in rng.integers(-(10**9), 10**9, n)])),
            "wide": pa.array(some([Decimal(int(v) * 10**15) for v in rng.integers(0, 10**9, n)]), pa.decimal128(38, 0)),
            "s": pa.array(some([f"\u00fc{v}" * (v % 9) for v in range(n)])),
            "b": pa.array(some([bytes([v % 256]) for v in range(n)])),
            "flag": pa.array(some([v % 3 == 0 for v in range(n)])),
            "day": pa.array(some([dt.date(1950, 1, 1) + dt.timedelta(days=v * 13) for v in range(n)])),
            "at": pa.array(some(rng.integers(0, 2 * 10**15, n).tolist()), pa.timestamp("us", "UTC")),
            "local": pa.array(some(rng.integers(0, 2 * 10**15, n).tolist()), pa.timestamp("us")),
            "list": pa.array(some([[v, None] for v in range(n)])),
            "map": pa.array(some([[("x", v)] for v in range(n)]), pa.map_(pa.string(), pa.int64())),
            "nest": pa.array(some([{"in.ner": v, "t": str(v)} for v in range(n)])),
            "odd na.me`": pa.array(range(n)),
        }
    )
    path = str(tmp_path / "types")
    names = {"delta.columnMapping.mode": "name"}  # blanks and dots in names need it
    frame = spark.createDataFrame(table)
    writer = frame.repartition(4).write.format("delta")
    for key, value in names.items():
        writer = writer.option(key, value)
    writer.save(path)
    before, schema = content(spark, path), spark.read.format("delta").load(path).schema
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("properties", "minWriterVersion", "tableFeatures")
    properties = detail.collect()
    spec = spec_for("k", "odd na.me`")
    done = relayout(spark, path, spec)
    assert (done.committed, done.rows, done.files_removed) == (True, n, 4)
    assert content(spark, path) == before
    assert spark.read.format("delta").load(path).schema == schema
    assert detail.collect() == properties
    again = relayout(spark, path, spec)
    assert (again.committed, again.version, again.skipped_files) == (False, done.version, done.files_added)
    assert version(spark, path) == done.version
    assert relayout(spark, path, spec, full=True).committed
    assert content(spark, path) == before


def test_partitions_where_and_new_files(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "parts")
    frame = spark.range(3000).selectExpr(
        "id AS k", "CASE WHEN id % 10 = 0 THEN NULL WHEN id % 2 = 0 THEN 'a b/=%' ELSE 'z' END AS p", "id % 3 AS q"
    )
    frame.repartition(3).write.format("delta").partitionBy("p", "q").save(path)
    before, spec = content(spark, path), spec_for("k")
    for where, message in (
        (
            "k = 1",
            r"used: `k` is no partition column; it has to be a condition on the partition columns p, q$",
        ),
        ("p = 'none'", "matches no partition"),
    ):
        with pytest.raises(TableError, match=message):
            relayout(spark, path, spec, where=where)
    one = relayout(spark, path, spec, where="p = 'a b/=%' AND q < 2")
    files = open_table(spark, path).files()
    touched = {part for part, layout in zip(files.partitions, files.layout, strict=True) if layout}
    assert touched == {("a b/=%", "0"), ("a b/=%", "1")}
    rest = relayout(spark, path, spec)
    assert one.rows + rest.rows == 3000
    assert content(spark, path) == before
    frame.where("p = 'z' AND q = 1").write.format("delta").mode("append").save(path)
    added = relayout(spark, path, spec)  # only the new file, and small ones it may be merged with
    assert added.files_removed < len(open_table(spark, path).files())
    with pytest.raises(TableError, match="has no partition columns"):
        relayout(spark, make(spark, tmp_path / "plain"), spec, where="p = 1")


@pytest.mark.matrix
@pytest.mark.parametrize("committer", ["transaction", "public"])
def test_a_condition_that_asks_for_more_than_the_partition_columns_is_refused(
    spark: SparkSession, tmp_path: Path, committer: str
) -> None:
    path = str(tmp_path / "t")
    spark.range(20).selectExpr("id AS k", "id % 4 AS p").write.format("delta").partitionBy("p").save(path)
    snapshot = open_table(spark, path, committer=committer)
    files = snapshot.files()
    spark.udf.register("of_python", lambda value: value == 1, "boolean")
    cases = {
        "rand() < 0.5": "it would pick other partitions each time",
        "p = 1 AND uuid() <> ''": "it would pick other partitions each time",
        f"p IN (SELECT p FROM delta.`{path}`)": "it has a subquery",
        "of_python(p)": "it calls a function written in Python",
        "1 = 1": "it names no partition column",
        "'p' <> ''": "it names no partition column",
        "_metadata.file_path <> '' OR p = 1": "`_metadata`.`file_path` is no partition column",
    }
    for where, problem in cases.items():
        told = f"--where {where!r} cannot be used: {problem}; it has to be a condition on the partition columns p"
        with pytest.raises(TableError, match=f"^{re.escape(told)}$"):
            in_partitions(snapshot, files, where)
    for where in ("exists(array(1, 2), x -> x = p)", "p BETWEEN 1 AND length(current_user()) * 0 + 2", "`P` IN (1, 2)"):
        found = in_partitions(snapshot, files, where)
        assert {files.partitions[i] for i in np.flatnonzero(found)} == {("1",), ("2",)}


@pytest.mark.matrix
def test_half_of_the_rows_in_one_key_are_dealt_out_evenly(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "skew")
    spark.range(6000).selectExpr("IF(id < 3000, 77, id - 3000) AS k", "id").repartition(5).write.format("delta").save(
        path
    )
    relayout(spark, path, spec_for("k", bits=6))
    rows = open_table(spark, path).files().rows
    assert rows.max() <= 2 * TARGET
    assert rows.sum() == 6000


def deletion_vectors(spark: SparkSession, path: str) -> None:
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 5 = 0")
    assert open_table(spark, path).files().deleted.sum() == 600


def renamed(spark: SparkSession, path: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN name TO `new name`")
    spark.sql(f"ALTER TABLE delta.`{path}` ADD COLUMN extra INT")


def constrained(spark: SparkSession, path: str) -> None:
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT small CHECK (k < 3000)")


def nothing(spark: SparkSession, path: str) -> None:
    """No preparation."""


@pytest.mark.slow  # tests/spark/test_delta_features.py looks closer at more of them
@pytest.mark.parametrize(
    ("prepare", "properties"),
    [
        (deletion_vectors, {"delta.enableDeletionVectors": "true"}),
        (renamed, {"delta.columnMapping.mode": "name"}),
        (constrained, {}),
        (nothing, {"delta.appendOnly": "true", "delta.checkpointPolicy": "v2"}),
        (nothing, {"delta.enableInCommitTimestamps": "true", "delta.dataSkippingNumIndexedCols": "1"}),
    ],
)
def test_table_features_survive(
    spark: SparkSession, tmp_path: Path, prepare: Callable[[SparkSession, str], None], properties: dict[str, str]
) -> None:
    path = make(spark, tmp_path / "t", **properties)
    prepare(spark, path)
    before = content(spark, path)
    assert relayout(spark, path, spec_for("k")).rows == len(before)
    assert content(spark, path) == before
    assert open_table(spark, path).files().deleted.sum() == 0
    assert not relayout(spark, path, spec_for("k")).committed


def test_row_ids_change_feed_and_streams_do_not_notice(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}
    path = make(spark, tmp_path / "t", **properties)

    def ids() -> list:
        frame = spark.read.format("delta").load(path)
        found = frame.selectExpr("id", "_metadata.row_id AS r", "_metadata.row_commit_version AS v").collect()
        return sorted(map(tuple, found))

    def stream() -> int:
        source = spark.readStream.format("delta").load(path)
        sink = source.writeStream.format("delta").option("checkpointLocation", str(tmp_path / "checkpoint"))
        sink.trigger(availableNow=True).start(str(tmp_path / "sink")).awaitTermination()
        return spark.read.format("delta").load(str(tmp_path / "sink")).count()

    assert stream() == 3000
    before = ids()
    done = relayout(spark, path, spec_for("k"))
    assert ids() == before
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", done.version)
    assert changes.load(path).count() == 0
    assert stream() == 3000


@pytest.mark.matrix
def test_generated_columns(spark: SparkSession, tmp_path: Path) -> None:
    from delta.tables import DeltaTable

    path = str(tmp_path / "generated")
    table = DeltaTable.create(spark).location(path).addColumn("k", "BIGINT")
    table.addColumn("twice", "BIGINT", generatedAlwaysAs="k * 2").execute()
    spark.range(2000).selectExpr("id AS k").write.format("delta").mode("append").save(path)
    before = content(spark, path)
    assert relayout(spark, path, spec_for("k")).committed
    assert content(spark, path) == before


def test_a_liquid_table_is_refused_with_advice(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "liquid")
    spark.sql(f"CREATE TABLE delta.`{path}` (k BIGINT) USING delta CLUSTER BY (k)")
    assert "CLUSTER BY" in str(open_table(spark, path).unsupported())
    assert open_table(spark, make(spark, tmp_path / "plain")).unsupported() is None


@pytest.mark.matrix
def test_a_table_of_delta_rs(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "rs")
    table = pa.table(
        {"k": pa.array(range(1500)), "at": pa.array(range(1500), pa.timestamp("us")), "p": ["x", "y", None] * 500}
    )
    write_deltalake(path, table, partition_by=["p"])
    before = content(spark, path)
    assert relayout(spark, path, spec_for("k")).committed
    assert content(spark, path) == before
    assert rollback(spark, path).restored_version == 0


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run ``act`` once, after the first attempt has written its files and before it commits."""
    write = Transaction.write
    pending = [act]

    def interrupted(self: Transaction, *args: Any) -> Any:
        result = write(self, *args)
        if pending:
            pending.pop()()
        return result

    monkeypatch.setattr(Transaction, "write", interrupted)


def test_a_concurrent_append_survives(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(spark, tmp_path / "t")
    before = content(spark, path)
    new = spark.range(5000, 5010).selectExpr("id", "id AS k", "'new' AS name")
    between(monkeypatch, lambda: new.write.format("delta").mode("append").save(path))
    relayout(spark, path, spec_for("k"))
    assert content(spark, path) == sorted(before + list(map(str, new.collect())))


def test_a_concurrent_delete_is_not_undone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(spark, tmp_path / "t")
    between(monkeypatch, lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 100"))
    assert relayout(spark, path, spec_for("k")).committed  # the second attempt, on what is left
    assert spark.read.format("delta").load(path).count() == 2900


def test_a_lost_race_commits_nothing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(spark, tmp_path / "t")
    monkeypatch.setattr(rewrite, "ATTEMPTS", 1)
    between(monkeypatch, lambda: spark.sql(f"UPDATE delta.`{path}` SET name = 'u' WHERE id % 2 = 0"))
    with pytest.raises(LostRaceError, match="nothing was committed"):
        relayout(spark, path, spec_for("k"))
    assert version(spark, path) == 1
    assert spark.read.format("delta").load(path).where("name = 'u'").count() == 1500


def test_a_failed_check_commits_nothing_and_leaves_no_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(spark, tmp_path / "t")
    files = set(Path(path).glob("*.parquet"))
    monkeypatch.setattr(commit, "actions_summary", lambda actions: (1, 2999, 1))
    with pytest.raises(VerificationError, match="2999 rows were written of 3000 read"):
        relayout(spark, path, spec_for("k"))
    assert version(spark, path) == 0
    assert set(Path(path).glob("*.parquet")) == files


@pytest.mark.slow
def test_a_plan_for_an_older_version_rewrites_what_is_still_there(spark: SparkSession, tmp_path: Path) -> None:
    path = make(spark, tmp_path / "t")
    old: TableSnapshot = open_table(spark, path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 7")
    done = relayout(spark, path, spec_for("k"), snapshot=old)
    assert (done.committed, done.rows) == (True, 2999)


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests.spark.test_relayout import relayout, spec_for
from zorder_pipeline.spark import session
def progress(text):
    if {moment!r} in text:
        os.kill(os.getpid(), signal.SIGKILL)
spark = session({{"spark.master": "local[2]", "spark.driver.memory": "1g"}})
relayout(spark, {path!r}, spec_for("k"), progress=progress)
"""


@pytest.mark.matrix
@pytest.mark.parametrize("moment", ["writing", pytest.param("committed", marks=pytest.mark.slow)])
def test_a_killed_relayout_leaves_a_whole_table(spark: SparkSession, tmp_path: Path, moment: str) -> None:
    path = make(spark, tmp_path / "t")
    before = content(spark, path)
    root = str(Path(__file__).resolve().parents[2])
    code = KILLED.format(root=root, moment=moment, path=path)
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    assert version(spark, path) == (1 if moment == "committed" else 0)
    assert content(spark, path) == before
    assert relayout(spark, path, spec_for("k")).committed == (moment != "committed")
    assert content(spark, path) == before


def test_raw_bits_by_hand_are_those_that_tell_the_tables_values_apart(spark: SparkSession, tmp_path: Path) -> None:
    """The first bits of a bigint are the same for all values that a table of a million rows has."""
    path = str(tmp_path / "t")
    spark.range(1_000_000, 1_001_000, numPartitions=2).write.format("delta").save(path)
    plan = pipeline.layout_by_hand(spark, path, {"id": 4}, encoding="bits")
    assert plan.spec is not None
    assert [b - a for a, b in pairwise(plan.spec.features[0].breakpoints)] == [128] * 14


def test_bits_by_hand_are_of_leaves_each_once_and_tell_which_have_no_statistics(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    rows = spark.range(100).selectExpr(
        "id", "named_struct('u', id, 'v', id) AS s", "id AS `c,d`", "id AS late", "id AS `No.`"
    )
    options = {"delta.dataSkippingNumIndexedCols": "4", "delta.columnMapping.mode": "name"}
    rows.write.format("delta").options(**options).save(path)
    with pytest.raises(TableError, match=r"column s of .* is a struct; name a field of it: s\.u, s\.v"):
        pipeline.layout_by_hand(spark, path, {"s": 2})
    with pytest.raises(TableError, match=r"column id of .* is named twice"):
        pipeline.layout_by_hand(spark, path, {"id": 2, "ID": 1})
    with pytest.raises(TableError, match=r"column No is not in .* \(did you mean No\.\?\); it has id, s\.u"):
        pipeline.layout_by_hand(spark, path, {"No": 2})
    plan = pipeline.layout_by_hand(spark, path, {"`c,d`": 2, "late": 2})
    assert plan.spec is not None
    assert [feature.column for feature in plan.spec.features] == ["c,d", "late"]
    assert len(plan.notes) == 1
    assert plan.notes[0].startswith("Delta keeps no min and max of late, so that no file is skipped by it")


@pytest.mark.slow
def test_a_layout_by_hand_stays_the_same_one_when_the_table_lies_by_it(spark: SparkSession, tmp_path: Path) -> None:
    path, state, bits = make(spark, tmp_path / "t"), str(tmp_path / "state"), {"k": 4, "id": 2}
    settings = pipeline.LearnSettings(sample_rows=1000, target_file_rows=TARGET)
    first = pipeline.layout_by_hand(spark, path, bits, settings=settings)
    assert pipeline.apply(spark, path, first, force=True, state=state).decision == "applied"
    present = pipeline.present_plan(spark, open_table(spark, path), state)
    plans = [pipeline.layout_by_hand(spark, path, bits, settings=settings, present=p) for p in (present, None)]
    assert first.spec is not None
    same, anew = (plan.spec.layout_id == first.spec.layout_id for plan in plans if plan.spec is not None)
    assert (same, anew) == (True, False)  # a sample of the new files has other ranks
    assert pipeline.apply(spark, path, plans[0], force=True, state=state).decision == "nothing_to_do"
    other = pipeline.layout_by_hand(spark, path, {"k": 2, "id": 4}, settings=settings, present=present)
    assert other.spec is not None
    assert other.spec.layout_id != first.spec.layout_id
