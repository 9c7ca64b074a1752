"""Partitions that are relaid one by one: those that the table does not have are named, and the others are done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.test_accidents import plain
from zorder_pipeline import pipeline
from zorder_pipeline.gate.settings import GateSettings

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
