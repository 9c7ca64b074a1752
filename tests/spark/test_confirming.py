"""What is promised on all rows is what the rewritten table's own statistics then say."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.pipeline import apply, layout_by_hand, learn
from zorder_pipeline.pipeline.learning import confirming
from zorder_pipeline.pipeline.learning.confirming import MOST_CELL_BITS, confirmed, confirmed_in
from zorder_pipeline.pipeline.records import LearnSettings
from zorder_pipeline.query_log.statements.sql import parse_statement
from zorder_pipeline.relayout.cell_zones import CellZones, zones_by_cell
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

pytestmark = pytest.mark.usefixtures("compiled")

ROWS, PER_FILE = 6_000, 250
CONDITIONS = (
    "a BETWEEN 200 AND 260",
    "a > 990",
    "f > 0.95",
    "f < 0.05",
    "f IS NULL",
    "f = 'NaN'",
    "s LIKE 'name 7%'",
    "s > 'name 95'",
    "long = concat(repeat('x', 40), '5')",
    "d BETWEEN 1.00 AND 1.50",
    "at BETWEEN TIMESTAMP '2024-01-01 00:10:00' AND TIMESTAMP '2024-01-01 00:12:00'",
    "empty IS NOT NULL",
    "empty = 3",
    "flag",
    "a < 100 AND p = 'x'",
    "p IS NULL AND s < 'name 2'",
    "p = 'y' AND q = DATE '2024-01-02' AND a < 300",
    "a IN (1, 500)",
    "a < 10 OR f > 0.99",
    "a >= 0",
)


@pytest.fixture(params=[(), ("p",), ("q", "p")], ids=["whole", "partitioned", "by two, in another order"])
def path(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    rows = spark.range(ROWS, numPartitions=12).selectExpr(
        "id",
        "cast(pmod(hash(id), 1000) as int) AS a",
        "CASE WHEN id % 11 = 0 THEN NULL WHEN id % 501 = 0 THEN double('NaN') ELSE rand(3) END AS f",
        "concat('name ', pmod(hash(id, 1), 100)) AS s",
        "concat(repeat('x', 40), pmod(hash(id, 2), 10)) AS long",
        "cast(pmod(hash(id, 3), 1000) / 100 AS decimal(6, 2)) AS d",
        "timestamp_micros(1704067200000000 + cast(pmod(hash(id, 4), 3600) as bigint) * 1000000 + id) AS at",
        "cast(NULL AS int) AS empty",
        "id % 7 = 0 AS flag",
        "element_at(array('x', 'y', NULL), cast(id % 3 + 1 AS int)) AS p",
        "date_add(DATE '2024-01-01', cast(id % 2 AS int)) AS q",
    )
    found = str(tmp_path / "t")
    writer = rows.write.format("delta")
    (writer.partitionBy(*request.param) if request.param else writer).save(found)
    return found


def boxes_of(snapshot: TableSnapshot, conditions: Sequence[str] = CONDITIONS) -> list[Boxes]:
    found = []
    for condition in conditions:
        (scan,) = parse_statement(f"SELECT * FROM t WHERE {condition}", schemas={"t": snapshot.schema})
        found.append(to_boxes(scan.predicate, snapshot.schema))
    return found


def shares(snapshot: TableSnapshot, queries: list[Boxes]) -> np.ndarray:
    return snapshot.files().zone_map().shares_read(queries)


@pytest.mark.parametrize(
    "curve",
    ["gray", pytest.param("interleave", marks=pytest.mark.slow), pytest.param("hilbert", marks=pytest.mark.slow)],
)
def test_the_rewritten_table_reads_what_was_confirmed(spark: SparkSession, path: str, curve: str) -> None:
    snapshot = open_table(spark, path)
    queries = boxes_of(snapshot)
    plan = layout_by_hand(
        spark, path, {"a": 3, "f": 3, "s": 3}, curve=curve, settings=LearnSettings(target_file_rows=PER_FILE)
    )
    found = confirmed(snapshot, plan.spec, PER_FILE, queries)
    assert found is not None
    before, after = found
    assert before == pytest.approx(shares(snapshot, queries)), "now"
    assert apply(spark, path, plan, force=True).decision == "applied"
    relaid = shares(open_table(spark, path), queries)
    assert after == pytest.approx(relaid, rel=0.02, abs=PER_FILE / ROWS / 10), dict(
        zip(CONDITIONS, relaid, strict=True)
    )
    assert after.mean() < 0.85 * before.mean()


@pytest.mark.parametrize("path", [("q", "p")], indirect=True, ids=["partitioned"])
def test_one_scan_tells_what_files_of_other_sizes_read(
    spark: SparkSession, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = open_table(spark, path)
    queries = boxes_of(snapshot)
    plan = layout_by_hand(spark, path, {"a": 3, "f": 3, "s": 3}, settings=LearnSettings(target_file_rows=PER_FILE))
    scans: list[object] = []

    def scanned(*given: Any) -> CellZones:
        scans.append(given)
        return zones_by_cell(*given)

    monkeypatch.setattr(confirming, "zones_by_cell", scanned)
    larger = 2 * PER_FILE
    told = confirmed_in(snapshot, plan.spec, (PER_FILE, larger), queries)
    assert len(scans) == 1
    (before, small), (again, large) = told[PER_FILE], told[larger]
    assert before.tolist() == again.tolist() == pytest.approx(shares(snapshot, queries))
    alone = confirmed(snapshot, plan.spec, PER_FILE, queries)
    assert alone is not None
    assert small.tolist() == alone[1].tolist()
    assert large.mean() > 1.05 * small.mean()
    assert apply(spark, path, replace(plan, target_file_rows=larger), force=True).decision == "applied"
    relaid = open_table(spark, path)
    assert large == pytest.approx(shares(relaid, queries), rel=0.02, abs=PER_FILE / ROWS / 10)
    twice = confirmed_in(relaid, plan.spec, (larger, 8 * larger), queries)
    assert list(twice) == [larger], "others would rewrite other files"
    assert twice[larger][1].tolist() == pytest.approx(shares(relaid, queries).tolist())


def test_what_came_after_a_layout_was_learned_is_confirmed_as_it_is_laid_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    day = spark.range(2_000, numPartitions=4).selectExpr("cast(pmod(hash(id), 100) AS int) AS a", "id")
    day.write.format("delta").save(path)
    plan = layout_by_hand(spark, path, {"a": 5}, settings=LearnSettings(target_file_rows=100))
    day.selectExpr("a + 100 AS a", "id").write.format("delta").mode("append").save(path)
    snapshot = open_table(spark, path)
    queries = boxes_of(snapshot, [f"a = {a}" for a in (50, 120, 150, 180)])
    found = confirmed(snapshot, plan.spec, 100, queries)
    assert found is not None
    assert apply(spark, path, plan, force=True).decision == "applied"
    assert found[1] == pytest.approx(shares(open_table(spark, path), queries), abs=0.01)
    assert found[1].max() < 0.1


def test_a_key_of_too_many_cells_is_left_to_the_sample(spark: SparkSession, path: str) -> None:
    plan = layout_by_hand(
        spark, path, {"id": 16, "a": MOST_CELL_BITS - 15}, settings=LearnSettings(target_file_rows=PER_FILE)
    )
    assert confirmed(open_table(spark, path), plan.spec, PER_FILE, []) is None


def test_a_table_of_many_small_files_does_not_seem_to_lie_well(spark: SparkSession, tmp_path: Path) -> None:
    """A present file has four rows in the sample, of which a zone map is half as wide as the file's own."""
    path, log = str(tmp_path / "t"), tmp_path / "log.sql"
    rows = spark.range(20_000, numPartitions=150)
    rows.selectExpr("pmod(hash(id), 1000) AS a", "pmod(hash(id, 1), 1000) AS b").write.format("delta").save(path)
    rng = np.random.default_rng(0)
    asked = [(int(rng.integers(0, 900)), int(rng.integers(0, 900))) for _ in range(60)]
    log.write_text(
        "".join(f"SELECT * FROM t WHERE a BETWEEN {a} AND {a + 60} AND b BETWEEN {b} AND {b + 60};\n" for a, b in asked)
    )
    settings = LearnSettings(trials=60, sample_rows=600, target_file_rows=7_000, confirm=False)
    plan = learn(spark, path, [str(log)], settings=settings)
    assert plan.baselines["stored"] > 0.95
    assert plan.promise.before > 0.95
    assert plan.spec is not None
