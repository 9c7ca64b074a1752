"""A relayout that is committed is shown, whatever fails in telling of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dagster import AssetCheckSeverity, AssetMaterialization, DagsterInstance, Output, build_asset_context

from zorder_pipeline import pictures, pipeline
from zorder_pipeline.assets import committed, relayout
from zorder_pipeline.assets.checks import CHECKS
from zorder_pipeline.assets.common import Shelf
from zorder_pipeline.assets.records import AnalysedTable, Judged, Relayout
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.promise import Promise
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.pipeline import Judgement
from zorder_pipeline.pipeline.judging.judgements import Part
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.pipeline.rewriting import proof

pytestmark = pytest.mark.dagster


class Files(SimpleNamespace):
    """The files of a table."""

    def __len__(self) -> int:
        return len(self.rows)


TABLE = TableConfig(name="t", location="/t")
ZONES = SimpleNamespace(shares_read=lambda _: np.ones(0))
SNAPSHOT = SimpleNamespace(
    version=9, table_id="id", location="/t", partition_columns=["p"], schema=SimpleNamespace(columns=()),
    files=lambda: Files(bytes=np.array([100]), rows=np.array([10]), zone_map=lambda: ZONES),
)  # fmt: skip


PLAN = Plan("/t", "id", "hash", 0, None, "learned", 100, promise=Promise(queries=9, before=0.9, after=0.1, low=0.6))
PROOF = proof.Proof((10, 10), ("{}", "{}"), ("{}", "{}"), ("7", "7"), "hash of every row")


def broken(*_: object, **__: object) -> Any:
    raise OSError("no space left")


def noted_until_it_breaks(*_: object) -> Iterator[AssetMaterialization]:
    yield AssetMaterialization("t", partition="p=1")
    broken()


def materialized(monkeypatch: pytest.MonkeyPatch, result: ApplyResult, judgement: Any) -> list[Any]:
    """What the asset yields after a commit whose telling goes as the test has it."""

    def carried_out(*_: object) -> Iterator[Any]:
        yield from ()
        return result

    monkeypatch.setattr(relayout, "_tonight", lambda *_: judgement)
    monkeypatch.setattr(relayout, "opened", lambda *_: SNAPSHOT)
    monkeypatch.setattr(relayout, "_carried_out", carried_out)
    monkeypatch.setattr(committed, "noted_changes", noted_until_it_breaks)
    asset = relayout.clustered_table(Shelf(PipelineConfig(tables=(TABLE,), state="/state"), TABLE))
    nothing: Any = None
    with DagsterInstance.ephemeral() as instance, build_asset_context(instance=instance) as context:
        analysed = AnalysedTable(9, (), nothing, nothing, ())
        return list(asset(context, SimpleNamespace(session=None), None, Judged(judgement), analysed))


def test_a_committed_relayout_is_shown_though_nothing_else_can_be_told_of_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proven: Any = SimpleNamespace(rows=(10, 10), nothing=False)
    done = Relayout(ApplyResult(9, "applied", ("worth it",)), proven, np.ones(2), np.ones(2), 0.5)
    monkeypatch.setattr(committed, "opened", lambda *_: SNAPSHOT)
    monkeypatch.setattr(committed, "_measured", lambda *_: done)
    check = SimpleNamespace(warning="it saves less", drawn=None)
    monkeypatch.setattr(pipeline, "check_promises", lambda *_, **__: [check])
    for name in ("promises_kept", "rows_per_query"):
        monkeypatch.setattr(pictures, name, broken)
    judgement = SimpleNamespace(decision=SimpleNamespace(approved=True), plan=None)
    noted, shown = materialized(monkeypatch, done.result, judgement)
    assert (noted.partition, isinstance(shown, Output), shown.value) == ("p=1", True, done)
    assert {"undo", "before and after", "dagster/row_count"} <= shown.metadata.keys()
    said = capsys.readouterr().err
    assert said.count("no space left") == 4, "the promises are looked at before it, too"
    assert said.count("it saves less") == 2


@pytest.mark.parametrize("failing", ["opened", "prove", "table_facts"])
def test_a_committed_relayout_that_cannot_be_proven_is_shown_and_fails_its_checks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failing: str
) -> None:
    monkeypatch.setattr(committed, "opened", lambda *_: SNAPSHOT)
    monkeypatch.setattr(proof, "prove", lambda *_: PROOF)
    monkeypatch.setattr(proof if failing == "prove" else committed, failing, broken)
    monkeypatch.setattr(pipeline, "check_promises", lambda *_, **__: [])
    judgement = Judgement("t", "/t", 7, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(7))
    *notes, shown = materialized(monkeypatch, ApplyResult(9, "applied", ("worth it",)), judgement)
    assert isinstance(shown, Output)
    assert len(notes) == (failing != "opened"), "what is known of partitions is noted before"
    assert (shown.metadata["Delta version"].value, shown.metadata["undo"].value) == (9, "zorder rollback --table /t")
    if failing == "table_facts":
        assert all(check(shown.value).passed for _, check, blocking in CHECKS if blocking)
        return
    checked = [check(shown.value) for _, check, _ in CHECKS]
    assert not any(result.passed for result in checked)
    sentence = (
        "compared was nothing, as that failed: no space left; version 9 is committed: look at DESCRIBE HISTORY, or "
    )
    assert {str(result.description)[: len(sentence)] for result in checked} == {sentence}
    assert "t: version 9 is committed, and whether it holds the same rows" in capsys.readouterr().err


@pytest.mark.parametrize(("smallest", "uneven"), [(0.25, True), (1.0, False), (None, False)])
def test_files_that_are_meant_to_differ_in_size_are_no_odd_ones(
    monkeypatch: pytest.MonkeyPatch, smallest: float | None, uneven: bool
) -> None:
    told: list[bool] = []
    spec: Any = None if smallest is None else SimpleNamespace(smallest_file=smallest, columns=())
    monkeypatch.setattr(committed, "opened", lambda *_: SNAPSHOT)
    monkeypatch.setattr(proof, "prove", lambda *given: (told.append(given[3]), PROOF)[1])
    monkeypatch.setattr(pipeline, "check_promises", lambda *_, **__: [])
    decision = Decision(APPROVE, "worth_it", ("worth it",))
    judgement = Judgement("t", "/t", 7, replace(PLAN, spec=spec), decision, Preview(7))
    materialized(monkeypatch, ApplyResult(9, "applied", ("worth it",)), judgement)
    assert told == [uneven]


def test_where_only_what_queries_read_cannot_be_told_the_promise_alone_is_in_doubt(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The proof, which may have taken a reading of the table, was thrown away, and blocking checks failed."""
    monkeypatch.setattr(committed, "opened", lambda *_: SNAPSHOT)
    monkeypatch.setattr(proof, "prove", lambda *_: PROOF)
    monkeypatch.setattr(ZONES, "shares_read", broken)
    monkeypatch.setattr(pipeline, "check_promises", lambda *_, **__: [])
    judgement = Judgement("t", "/t", 7, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(7))
    *_, shown = materialized(monkeypatch, ApplyResult(9, "applied", ("worth it",)), judgement)
    checked = {name: check(shown.value) for name, check, _ in CHECKS}
    assert [name for name, result in checked.items() if not result.passed] == ["promise_kept"]
    assert checked["promise_kept"].severity == AssetCheckSeverity.WARN
    assert str(checked["promise_kept"].description).startswith("what its queries read now could not be told: no space")
    assert "rows read per later query" not in str(shown.metadata["before and after"].value)
    said = capsys.readouterr().err
    assert "t: what later queries read could not be told: no space left" in said
    assert "whether it holds the same rows" not in said


def test_what_was_stopped_between_two_bins_promised_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = tuple(Part(f"p={i}", 1.0, 1.0, 0.5, bytes=100) for i in range(2))
    decision = Decision(APPROVE, "worth_it", ("worth it",))
    judged = Judgement("t", "/t", 7, PLAN, decision, Preview(7, bytes_rewritten=200), parts)
    monkeypatch.setattr(proof, "prove", lambda *_: None)
    zones = SimpleNamespace(shares_read=lambda boxes: np.ones(0))
    snapshot: Any = SimpleNamespace(files=lambda: SimpleNamespace(zone_map=lambda: zones))
    asked: Any = SimpleNamespace(which=np.arange(0))

    def promised(rewritten: int) -> tuple[float | None, float]:
        result = ApplyResult(9, "applied", ("held",), bytes_rewritten=rewritten)
        found = committed._measured(judged, result, snapshot, snapshot, asked, (), False)
        return found.promised, found.promised_low

    assert promised(200) == pytest.approx((0.8, 0.6))
    assert promised(50) == pytest.approx((0.2, 0.15))
