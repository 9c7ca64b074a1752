"""What of a plan's promise is booked, where a relayout was stopped between two bins or lost a race."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline.model.decision import APPROVE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline.judging.judgements import Judgement, Part
from zorder_pipeline.pipeline.records import Preview
from zorder_pipeline.pipeline.rewriting import booking
from zorder_pipeline.pipeline.rewriting.booking import Booking

PLAN = Plan("/t", "id", "hash", 0, None, "learned", 100)
PARTS = (Part("p=1", 1.0, 1.0, 0.5, bytes=60), Part("p=2", 1.0, 1.0, 0.3, bytes=40))
JUDGED = Judgement("t", "/t", 3, PLAN, Decision(APPROVE, "worth_it", ("worth it",)), Preview(3), PARTS)


def booked(monkeypatch: pytest.MonkeyPatch, judged: Judgement, *bins: tuple[int, int]) -> list[tuple[float, float]]:
    """Shares of the promise: noted before and recorded after, of attempts that would rewrite so much, and did."""
    recorded: list[float] = []
    begun: list[float] = []
    work = SimpleNamespace(additional=0, predicates=0, hashed=False)
    monkeypatch.setattr(booking, "relayout_work", lambda *_: work)
    ledger = SimpleNamespace(record=lambda *given: recorded.append(given[5]["credited"]))
    monkeypatch.setattr(booking, "Ledger", lambda *_: ledger)
    beginnings = SimpleNamespace(note=lambda noted: begun.append(noted.work["credited"]))
    monkeypatch.setattr(booking, "Beginnings", lambda *_: beginnings)
    snapshot: Any = SimpleNamespace(spark=None, version=3, location="/t")
    for would, did in bins:
        done: Any = SimpleNamespace(bytes_rewritten=did, version=4)
        books = Booking("/state", snapshot, PLAN, Preview(3, bytes_rewritten=would), judged, "counts", print)
        books.begin("run")
        assert books.record(done) == ""
    return list(zip(begun, recorded, strict=True))


def test_attempts_bring_together_what_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one finds less to do, and had all of the promise once more."""
    first, second = booked(monkeypatch, JUDGED, (100, 60), (40, 40))
    assert first == pytest.approx((0.8, 0.48))
    assert second == pytest.approx((0.32, 0.32))
    ((_, grown),) = booked(monkeypatch, JUDGED, (300, 100))
    assert grown == pytest.approx(0.8 / 3), "others have written since it was judged"


def test_no_more_is_booked_than_was_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    assert booked(monkeypatch, JUDGED, (300, 300)) == [(0.8, 0.8)], "others wrote meanwhile"
    unknown = Judgement("t", "/t", 3, PLAN, JUDGED.decision, Preview(3), (Part("", 1.0, 1.0, 0.8),))
    assert booked(monkeypatch, unknown, (100, 60)) == [(0.8, 0.8)], "as an earlier version stored it"
