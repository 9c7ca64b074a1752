"""With ``redact_literals`` no literal of a query is told: not by metadata, messages, nor the table's own history."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import write_deltalake

from tests.dagster.conftest import write_log
from zorder_pipeline import pictures
from zorder_pipeline.assets.layout import _plan_facts, _plane_facts
from zorder_pipeline.assets.run import run_tables
from zorder_pipeline.config import load_config
from zorder_pipeline.features.sample import Sample, SampleColumn
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline import TableAnalysis, in_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.dagster
CONFIG = """
spark: {master: "local[2]"}
state: state
redact_literals: true
query_logs: [{path: log.jsonl, format: sql}]
tables:
  - {name: calls, location: calls, search: {trials: 40, sample_rows: 4000}, layout: {target_file_rows: 500},
     gate: {enabled: false, enriched_reader_share: 1.0}}
"""
NAMES = ("Jane", "Miller", "Winterbottom", "Okonkwo", "Vasquez", "Lindqvist")


def test_names_of_predicates_tell_no_literal() -> None:
    text = "note LIKE '%Jane%'"
    day = FeatureCodes("day", "date", (19_000,), (0, 1), 1)
    spec = KeySpec((FeatureCodes(text, "boolean", (1,), (0, 1), 1, expression=text), day), (1, 0))
    statistics = (Feature(text, "predicate", "boolean", text, ("note",)),)
    plan = Plan("/t", "id", "hash", 0, spec, "learned", 100, statistics=statistics)
    shown = _plan_facts(plan, "key")
    told = " ".join([*in_words(plan, "key"), *(str(getattr(v, "value", v)) for v in shown.values())])
    assert "<predicate over note, " in told
    assert in_words(plan, "key") == in_words(plan, "key") != in_words(plan, "another one")
    assert "Jane" not in told
    assert "Jane" in " ".join(in_words(plan))
    assert shown["layout id"] == spec.layout_id


@pytest.mark.parametrize(
    ("name", "redact", "axes"),
    [
        ("note LIKE '%Jane%'", False, ["note LIKE '%Jane%'", "day"]),
        ("note LIKE '%Jane%'", True, None),  # learned before literals were redacted
        ("<predicate over note, 1f2e>", True, ["<predicate over note, 1f2e>", "day"]),
    ],
)
def test_axes_of_the_plane_tell_no_literal(
    monkeypatch: pytest.MonkeyPatch, name: str, redact: bool, axes: list[str] | None
) -> None:
    drawn: list[Mapping[str, Any]] = []
    monkeypatch.setattr(pictures, "blocks_2d", lambda codes, _: drawn.append(codes) or b"")
    values = {name: np.arange(40) % 2, "day": np.arange(40)}
    columns = {key: SampleColumn(column, np.ones(40, dtype=np.bool_)) for key, column in values.items()}
    sample = Sample(columns, np.arange(40, dtype=np.int32) // 10, 40, 40)
    snapshot: Any = SimpleNamespace(schema=TableSchema((Column("note", "string"), Column("day", "int"))))
    nothing: Any = None
    analysis = TableAnalysis(snapshot, (), sample, nothing, (), {})
    learned: Any = SimpleNamespace(computed={})
    codes = FeatureCodes(name, "boolean", (1,), (0, 1), 1, expression="note LIKE '%Jane%'")
    spec = KeySpec((codes, FeatureCodes("day", "int", (20,), (0, 1), 1)), (0, 1))
    _plane_facts(analysis, Plan("/t", "id", "hash", 0, spec, "learned", 10), learned, "key" if redact else None)
    assert [list(codes) for codes in drawn] == ([axes] if axes else [])


@pytest.mark.spark
@pytest.mark.slow
def test_no_literal_is_told_by_a_night(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    for _ in range(8):
        note = [f"call from {NAMES[i]} at {n}" for i, n in zip(rng.integers(0, 6, 500), range(500), strict=True)]
        rows = pa.table({"day": rng.integers(0, 1000, 500), "note": note, "a": rng.random(500), "b": rng.random(500)})
        write_deltalake(str(tmp_path / "calls"), rows, mode="append")
    lines = []
    for i in range(120):
        name = NAMES[rng.integers(0, 6)]
        condition = (f"note LIKE '%{name}%'", f"note LIKE '%{name}%' OR a * 3 < 0.0123{i % 4}", f"b * 2 < 0.1{i % 9}")[
            i % 3
        ]
        stamp = f"2026-01-{1 + i // 24:02d}T{i % 24:02d}:00:00Z"
        lines.append({"statement": f"SELECT count(*) FROM calls WHERE {condition}", "timestamp": stamp, "user": "ann"})
    write_log(tmp_path / "log.jsonl", lines)
    (tmp_path / "tables.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    with DagsterInstance.ephemeral() as instance:
        (done,) = run_tables(config, ["calls"], instance=instance)
        told = "\n".join(
            str(record) for record in instance.all_logs(instance.get_run_records(limit=1)[0].dagster_run.run_id)
        )
    assert done.decision == "applied", done.reasons
    kinds = {row["kind"] for row in spark.read.format("delta").load(str(tmp_path / "state" / "file_stats")).collect()}
    assert {"predicate", "expression"} <= kinds, "scans through reading are what this table is laid out for"
    told += str(spark.sql(f"DESCRIBE HISTORY delta.`{tmp_path / 'calls'}`").collect())
    assert "predicate" in told
    for literal in (*NAMES, "0.0123"):
        at = told.find(literal)
        assert at < 0, told[max(0, at - 300) : at + 100]
