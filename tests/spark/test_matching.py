"""How many rows match a query: counted in batches, on a large table alone where it reads little."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from zorder_pipeline import pipeline
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.spark_sql import boxes_sql
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.reading import matching
from zorder_pipeline.reading.matching import matching_rows
from zorder_pipeline.relayout.snapshot import open_table

pytestmark = pytest.mark.matrix

CONDITIONS = (
    *("a < 10", "a = 5 OR b = 'x'", "b IS NULL", "b IN ('x', 'y') AND a >= 50", "a > 1000", "true", "a < 10"),
    "NOT (a < 10)",
)


class _Counted:
    """A frame that counts how often it is read."""

    def __init__(self, frame: DataFrame) -> None:
        self._frame, self.scans = frame, 0

    def __getattr__(self, name: str) -> Any:
        self.scans += 1
        return getattr(self._frame, name)


@pytest.mark.parametrize(("small", "apart", "scans_expected"), [(0, 1.0, 6), (1_000, 1.0, 2), (0, 0.5, 4)])
def test_rows_are_counted_as_spark_counts_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, apart: float, scans_expected: int
) -> None:
    path = str(tmp_path / "t")
    columns = "CAST(IF(id % 9 = 0, NULL, id) AS INT) AS a", "element_at(array('x', 'y', NULL), INT(id % 3) + 1) AS b"
    for low in (0, 50):
        rows = spark.range(low, low + 50).selectExpr(*columns)
        rows.coalesce(1).write.format("delta").mode("append").save(path)
    snapshot = open_table(spark, path)
    boxes = []
    for condition in CONDITIONS:
        scans = parse_statement(
            f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": snapshot.schema}, zone="UTC"
        )
        assert not isinstance(scans, Unusable)
        boxes.append(to_boxes(scans[0].predicate, snapshot.schema))
    monkeypatch.setattr(matching, "SMALL", small)
    monkeypatch.setattr(matching, "APART", apart)
    monkeypatch.setattr(matching, "BATCH", 3)
    read = snapshot.files().zone_map()
    rows_read = np.array([50.0 * read.matching(query).sum() for query in boxes])
    told: list[str] = []
    asked = _Counted(snapshot.read())
    found = matching_rows(cast(Any, asked), boxes, snapshot.paths, 100, rows_read, told.append)
    assert asked.scans == scans_expected
    assert found.tolist() == [spark.read.format("delta").load(path).where(text).count() for text in CONDITIONS]
    assert len(told) == 2, "six different queries that restrict something, in batches of three"


@pytest.mark.parametrize("condition", ["a = 5", "a < 10", "a IN (3, 7)", "a BETWEEN 2 AND 8 OR a = 9"])
def test_a_query_that_is_counted_alone_opens_its_own_files_only(
    spark: SparkSession, tmp_path: Path, condition: str
) -> None:
    path = str(tmp_path / "t")
    for low in (0, 50, 100):
        spark.range(low, low + 50).selectExpr("id AS a").coalesce(1).write.format("delta").mode("append").save(path)
    snapshot = open_table(spark, path)
    scans = parse_statement(
        f"SELECT * FROM t WHERE {condition}", aliases={"t": "t"}, schemas={"t": snapshot.schema}, zone="UTC"
    )
    assert not isinstance(scans, Unusable)
    boxes = to_boxes(scans[0].predicate, snapshot.schema)
    asked = snapshot.read().where(boxes_sql(boxes, dict(snapshot.paths), never_null=False))
    assert len(asked.inputFiles()) == 1
    assert asked.count() == snapshot.read().where(condition).count()


def test_rows_that_match_are_told_by_conditions_that_statistics_do_not_see_through(
    spark: SparkSession, tmp_path: Path
) -> None:
    path, log = str(tmp_path / "t"), tmp_path / "log.sql"
    spark.range(0, 100, 1, 2).selectExpr("id", "date_add(DATE'2024-12-01', INT(id)) AS d").write.format("delta").save(
        path
    )
    for condition, rows in (("year(d) = 2024", 31), ("id + 1 < 5", 4), ("year(d) = 2026", 0), ("id % 2 = 0", 100)):
        log.write_text(f"SELECT * FROM t WHERE {condition};")
        found = pipeline.evaluate(spark, path, [str(log)])
        assert (condition, found.rows_read_fraction) == (condition, 1.0)
        assert (condition, found.matched_fraction) == (condition, rows / 100)
