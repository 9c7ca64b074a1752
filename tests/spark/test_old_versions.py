"""A table that nobody has written to for longer than its deleted files are kept is laid out, proven and read as any."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_relayout import make
from zorder_pipeline import pipeline
from zorder_pipeline.pipeline import LearnSettings, layout_by_hand
from zorder_pipeline.pipeline.rewriting.proof import prove
from zorder_pipeline.relayout.snapshot import open_table

TEN_DAYS = 10 * 86_400


@pytest.mark.parametrize("committer", ["transaction", pytest.param("public", marks=pytest.mark.matrix)])
@pytest.mark.parametrize("hashed", [False, pytest.param(True, marks=pytest.mark.matrix)])
def test_what_replaced_an_old_version_is_proven(
    spark: SparkSession, tmp_path: Path, committer: str, hashed: bool
) -> None:
    """Delta refuses to read a version that was replaced, and is older than files are kept; they are there, though."""
    path = make(spark, tmp_path / "t", rows=3000)
    for entry in (tmp_path / "t" / "_delta_log").iterdir():
        os.utime(entry, (time.time() - TEN_DAYS,) * 2)
    before = open_table(spark, path, committer=committer)
    plan = layout_by_hand(spark, path, {"k": 3}, settings=LearnSettings(target_file_rows=500))
    assert pipeline.apply(spark, path, plan, force=True, committer=committer).decision == "applied"
    proof = prove(before, open_table(spark, path, committer=committer), hashed)
    assert proof.rows == (3000, 3000)
    assert proof.contents[0] == proof.contents[1]
    assert proof.compared == ("hash of every row" if hashed else "nulls per column")
    assert before.read().count() == 3000
    assert open_table(spark, path, committer=committer).at(before.version).read().count() == 3000
