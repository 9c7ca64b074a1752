"""Partitions that are relaid one by one: those that the table does not have are named, and the others are done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.test_accidents import plain
from zorder_pipeline import pipeline
from zorder_pipeline.errors import NoPartitionError
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.candidate import COMPACTION, INCREMENTAL, Candidate
from zorder_pipeline.model.promise import Promise
from zorder_pipeline.pipeline.rewriting.apply import GONE_SINCE
from zorder_pipeline.pipeline.rewriting.partitions import _with_the_present_layout
from zorder_pipeline.relayout.snapshot import open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_partition_that_is_gone_fails_in_a_sentence_and_leaves_the_others_done(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = plain(spark, tmp_path / "t", "p")
    plan = pipeline.layout_by_hand(spark, path, {"k": 3})
    settings, gate = pipeline.RelayoutSettings(), GateSettings(enabled=False)
    keys = ["p=7", "p=01", "q=1"]
    gone, done, other = pipeline.apply_partitions(spark, path, plan, keys, settings, gate=gate)
    assert str(gone.error) == f"there is no such partition; file:{path} has 2, e.g. p=0"
    assert done.result is not None
    assert done.result.decision == "applied"
    assert str(other.error) == "q=1 is no partition of a table that is partitioned by p; write p=..."


def test_a_plan_from_before_the_newest_data_lays_them_out_by_the_layout_there_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As a night learns it that finds the table in good order: a backfill of what came later did nothing."""
    path, state = plain(spark, tmp_path / "t", "p"), str(tmp_path / "state")
    plan = pipeline.layout_by_hand(spark, path, {"k": 3})
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    spark.read.format("delta").load(path).where("p = 0").write.format("delta").mode("append").save(path)
    staying = replace(plan, spec=None, unsought="the present layout can have lost too little")
    settings, gate = pipeline.RelayoutSettings(state=state), GateSettings(enabled=False)
    new, old = pipeline.apply_partitions(spark, path, staying, ["p=0", "p=1"], settings, gate=gate)
    assert [part.result.decision for part in (new, old) if part.result is not None] == ["applied", "nothing_to_do"]
    assert plan.spec is not None
    snapshot = open_table(spark, path)
    assert set(snapshot.files().layout) == {plan.spec.layout_id}
    onward = _with_the_present_layout(spark, snapshot, staying, state)
    assert (onward.action, onward.promises_part) == (INCREMENTAL, False)
    merging = replace(staying, candidates=(Candidate(COMPACTION, None, 100, Promise()),))
    assert _with_the_present_layout(spark, snapshot, merging, state) == merging


def test_partitions_may_come_and_go_while_others_are_done(spark: SparkSession, tmp_path: Path) -> None:
    path = plain(spark, tmp_path / "t", "p")
    plan = pipeline.layout_by_hand(spark, path, {"k": 3})
    settings, gate = pipeline.RelayoutSettings(), GateSettings(enabled=False)
    parts = pipeline.apply_partitions(spark, path, plan, ["p=0", "p=1", "p=2"], settings, gate=gate)
    next(parts)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p = 1")
    spark.range(9).selectExpr("id AS k", "2 AS p").write.format("delta").mode("append").save(path)
    gone, come = parts
    assert str(gone.error) == f"there is no such partition; file:{path} has 2, e.g. p=0"
    assert come.result is not None
    assert come.result.decision == "applied"


def test_what_was_approved_of_partitions_that_are_deleted_since_is_nothing_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A night judges all tables before it rewrites any: a retention job may be faster."""
    path = plain(spark, tmp_path / "t", "p")
    judged = pipeline.judge_table(
        spark, path, pipeline.layout_by_hand(spark, path, {"k": 3}), gate=GateSettings(enabled=False)
    )
    judged = replace(judged, partitions=("p=1",))
    spark.sql(f"DELETE FROM delta.`{path}` WHERE p = 1")
    for dry_run in (True, False):
        done = pipeline.carry_out(spark, judged, dry_run=dry_run)
        assert (done.decision, done.reasons) == ("nothing_to_do", (GONE_SINCE,))
    both = replace(judged, partitions=("p=0", "p=1"))
    assert pipeline.carry_out(spark, both).decision == "applied"
    with pytest.raises(NoPartitionError, match="matches no partition"):
        pipeline.carry_out(spark, replace(judged, partitions=None), where="p = 1")


def test_a_condition_that_ends_in_a_comment_holds_with_the_partitions_of_a_plan(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The brackets that join the two were part of the comment."""
    path, where = plain(spark, tmp_path / "t", "p"), "p < 2 -- the older ones"
    judged = pipeline.judge_table(
        spark, path, pipeline.layout_by_hand(spark, path, {"k": 3}), gate=GateSettings(enabled=False), where=where
    )
    done = pipeline.carry_out(spark, replace(judged, partitions=("p=1", "p=2")), where=where)
    assert done.decision == "applied"
    files = open_table(spark, path).files()
    laid_out = {values for values, layout in zip(files.partitions, files.layout, strict=True) if layout}
    assert laid_out == {("1",)}
