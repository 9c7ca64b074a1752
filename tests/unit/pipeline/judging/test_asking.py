"""A plan that a person rejected: for how long its like is not asked for. And how one that waits is answered."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.approval import APPROVED, PENDING, REJECTED, WITHDRAWN, Request
from zorder_pipeline.model.candidate import ANOTHER
from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY
from zorder_pipeline.pipeline.judging import asking as asking_module
from zorder_pipeline.pipeline.judging.asking import Asking
from zorder_pipeline.pipeline.judging.judgements import Judgement, Rules
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.relayout.file_list import FileList

PLAN = Plan("/t", "id", "hash", 0, None, "learned", 100, action=ANOTHER)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
ASKED = int(BEGIN.timestamp() * 1e6)


def asked_again(after_days: float, approval_days: float) -> Judgement:
    """What becomes of a plan of which the like was asked for two days before it was rejected."""
    no = Request("t", "id", PLAN, REJECTED, ASKED - 2 * DAY, ASKED, by="asha")
    now = datetime.fromtimestamp((ASKED + after_days * DAY) / 1e6, UTC)
    asking = Asking(
        SimpleNamespace(all=lambda _: [no]),  # type: ignore[arg-type]
        "state",
        SimpleNamespace(snapshot=SimpleNamespace(table_id="id")),  # type: ignore[arg-type]
        Rules(approval="changes", approval_days=approval_days),
        now,
        asking=False,
    )
    return asking.answered(Judgement("t", "/t", 0, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(0, 1)))


def test_a_rejection_holds_for_its_days_from_the_answer_on() -> None:
    holds, over = asked_again(6.9, 7.0), asked_again(7.1, 7.0)
    assert (holds.outcome, holds.decision.cause) == ("declined", "rejected")
    assert holds.decision.reasons[0].endswith("rejected by asha, and its like is not asked for until 2026-01-08")
    assert holds.decision.reasons[1] == "worth it"
    assert (over.outcome, over.decision.cause) == ("postponed", "awaiting_approval")


@pytest.mark.parametrize("days", [3e6, 1e12])
def test_a_rejection_may_hold_for_ever(days: float) -> None:
    """There is no date so many days from now."""
    found = asked_again(400.0, days)
    assert found.decision.cause == "rejected"
    assert found.decision.reasons[0].endswith("not asked for until 9999-12-31")


SPEC = KeySpec((FeatureCodes("a", "int", (10,), (0, 1), 1, null_code=0),), (0,))


def lying_by(layout: str) -> FileList:
    """Files of a table that lies by a layout, but for what is new."""
    number, rows = np.arange(2), np.array([100, 5])
    return FileList(
        path=np.array(["old", "new"], dtype=object), bytes=rows * 10, rows=rows, deleted=rows * 0,
        layout=(layout, ""), generation=np.array([3, -1]),
        key_low=number, key_high=number, modified=number, partitions=((), ()), load_zones=lambda columns: {},
    )  # fmt: skip


def pinned_again(layout: str, approval: str) -> Judgement:
    """What becomes of a layout given by hand in a night in which new data came to a table that lies by ``layout``."""
    plan = Plan("/t", "id", "hash", 0, SPEC, "manual", 100)
    files = lying_by(SPEC.layout_id if layout == "same" else layout)
    asking = Asking(
        SimpleNamespace(all=lambda _: []),  # type: ignore[arg-type]
        "state",
        SimpleNamespace(snapshot=SimpleNamespace(table_id="id", files=lambda: files)),  # type: ignore[arg-type]
        Rules(approval=approval),
        BEGIN,
        asking=False,
    )
    return asking.answered(Judgement("t", "/t", 0, plan, Decision(APPROVE, "gate_off", ("pinned",)), Preview(0, 1)))


def test_what_is_new_is_laid_out_by_pinned_bits_without_asking_every_night() -> None:
    """With `approval: changes` it was put to a person each time, as if the table were given another layout."""
    assert pinned_again("same", "changes").outcome == "approved"
    for layout, approval in (("", "changes"), ("another", "changes"), ("same", "always")):
        assert pinned_again(layout, approval).decision.cause == "awaiting_approval", (layout, approval)


def test_what_waits_is_answered_by_the_name_that_it_was_asked_by() -> None:
    asking = Asking(
        SimpleNamespace(),  # type: ignore[arg-type]
        "/state",
        SimpleNamespace(),  # type: ignore[arg-type]
        Rules(approval="changes"),
        BEGIN,
    )
    judged = Judgement("orders", "/t", 0, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(0, 1))
    told = asking._put(judged, Request("/data/orders", "id", PLAN, PENDING, ASKED)).decision.reasons[0]
    assert f"zorder approve --table /data/orders --plan {PLAN.plan_id} --state /state" in told


@pytest.mark.parametrize("status", [PENDING, APPROVED])
@pytest.mark.parametrize(
    ("keep", "layout"), [(True, "another"), (False, "another"), (True, ""), (True, SPEC.layout_id)]
)
def test_an_approval_of_another_layout_does_not_outlive_that_the_table_keeps_its_own(
    status: str, keep: bool, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`layout.keep` was set after it: the change was carried out all the same."""
    request = Request("t", "id", Plan("/t", "id", "hash", 0, SPEC, "learned", 100), status, ASKED - 1, ASKED, by="asha")
    settled: list[tuple[Request, str, str]] = []
    schema = TableSchema((Column("a", "int"),))
    files = lying_by(layout)
    snapshot = SimpleNamespace(
        table_id="id", files=lambda: files, schema=schema, asked_schema=schema, whole_partitions=False
    )
    monkeypatch.setattr(asking_module, "preview", lambda *_: Preview(0, 1))
    asking = Asking(
        SimpleNamespace(settle=lambda *given: settled.append(given)),  # type: ignore[arg-type]
        "/state",
        SimpleNamespace(snapshot=snapshot, gate=GateSettings(change_layout=not keep), where=None),  # type: ignore[arg-type]
        Rules(approval="changes"),
        BEGIN,
    )
    found = asking._open([request])
    if keep and layout == "another":
        assert found is None
        assert settled == [(request, WITHDRAWN, "the table keeps its layout: layout.keep is set")]
    else:
        assert found == request
        assert not settled
