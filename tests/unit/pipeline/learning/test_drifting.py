"""What nights remember of a table: what the present layout has lost, and the courses that are followed on paper."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.gate.drift import Course, Drift
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.learning import drifting, learn
from zorder_pipeline.pipeline.learning.candidates import _missed
from zorder_pipeline.pipeline.learning.drifting import block_of, missed, nothing_lost
from zorder_pipeline.pipeline.learning.memory import Memory, Rival
from zorder_pipeline.pipeline.learning.new_queries import new_queries, uncounted
from zorder_pipeline.pipeline.learning.worth import why_not_search
from zorder_pipeline.pipeline.records import LearnSettings

ROWS, FILES = 400, 4
SCHEMA = TableSchema((Column("a", "int"), Column("b", "int")))
A, B = (KeySpec((FeatureCodes(name, "int", (100, 200, 300), (0, 1, 2, 3), 2),), (0, 0)) for name in "ab")
PLAN = Plan("t", "id", "hash", 0, A, "learned", ROWS // FILES)
PRICE = 10.0
COSTS: Any = SimpleNamespace(
    scans=lambda work, _: SimpleNamespace(expected=work.bytes), relayout=lambda *_: SimpleNamespace(expected=PRICE)
)
"""A scan of the whole table costs 1."""


@pytest.fixture(autouse=True)
def _sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drifting, "query_bytes", lambda _, queries: np.ones(len(queries)))


def asked(column: str, day: int, count: int = 20) -> list[LoggedQuery]:
    """Look-ups of a day, which read a quarter of the table by its own layout and all of it by the other."""
    values = [Literal("number", str(value)) for value in range(0, ROWS, ROWS // count)]
    return [
        LoggedQuery("t", Comparison(column, "=", (value,)), (column,), column, day * DAY + i)
        for i, value in enumerate(values)
    ]


def analysis_of(queries: Sequence[LoggedQuery]) -> Any:
    """A table of two columns that know nothing of each other, and its log."""
    number = np.arange(ROWS)
    values = {"a": number, "b": number * 7 % ROWS}
    arrays = {name: (column, np.ones(ROWS, dtype=np.bool_)) for name, column in values.items()}
    files = np.ones(FILES)

    class Files:
        bytes = files
        partition_codes = np.zeros(FILES, dtype=np.int64)

        def __len__(self) -> int:
            return FILES

    snapshot = SimpleNamespace(schema=SCHEMA, table_id="id", files=Files)
    sample = SimpleNamespace(arrays=arrays, columns=arrays, rows=ROWS, total_rows=ROWS)
    boxes = [to_boxes(query.predicate, SCHEMA) for query in queries]
    return SimpleNamespace(snapshot=snapshot, sample=sample, queries=tuple(queries), boxes=boxes)


def nights(days: str) -> list[Memory]:
    """What is remembered after each night, the table lying by layout A: one letter names what a day asks for."""
    log: list[LoggedQuery] = []
    memory, found = Memory(rivals={B.layout_id: Rival(B, ROWS // FILES)}), []
    for day, column in enumerate(days):
        log += asked(column, day)
        analysis = analysis_of(log)
        standing = block_of(analysis, Rival(A, ROWS // FILES))
        memory = missed(analysis, memory, PLAN, standing, PLAN, [], COSTS)
        found.append(memory)
    return found


def test_a_course_on_paper_returns_to_the_table_s_own_layout() -> None:
    """Else a patience would not pay for the way back, and look better than it is."""
    memories = nights("bbaaaa")
    courses = [memory.drift.paper[0] for memory in memories if memory.drift is not None]
    here, there = A.layout_id, B.layout_id
    assert [course.present for course in courses] == [there, there, here, here, here, here]
    assert (courses[-1].changes, courses[-1].spent) == (2, pytest.approx(20 + 5 + 20 + 3 * 5 + 2 * PRICE, rel=0.05))
    for memory in memories:
        assert memory.drift is not None
        assert memory.drift.real.present == here
        assert memory.drift.real.due({here: 0.0, there: 1e9}) is None, "the table lies by it"


def test_the_layout_that_the_deciding_course_lies_by_is_offered_besides_the_one_most_missed() -> None:
    """Its patience is one cost: else the table waited out a large one in a layout that the course had left."""
    rivals = {name: Rival(B, 100) for name in ("led", "most", "none")}
    course = Course(100.0, A.layout_id, {"led": 11.0, "most": 30.0, "none": 0.0})
    assert list(_missed(Memory(Drift(course, (), "led"), rivals), PLAN)) == ["most", "led"]
    assert list(_missed(Memory(Drift(course, (), "most"), rivals), PLAN)) == ["most"]
    assert _missed(Memory(Drift.begin(A.layout_id), rivals), PLAN) == {}


def test_what_the_present_layout_has_lost_grows_by_what_is_new() -> None:
    first, second, third = (memory.drift for memory in nights("bba"))
    assert first is not None
    assert second is not None
    assert third is not None
    lost = [drift.real.regret[B.layout_id] for drift in (first, second, third)]
    assert lost[0] == pytest.approx(15.0, rel=0.1)
    assert lost == [pytest.approx(times * lost[0], rel=0.1) for times in (1, 2, 1)]


@pytest.mark.parametrize(("holds", "every"), [(1, 1), (3, 3), (5, 5), (90, 8)])
def test_queries_are_counted_before_the_log_forgets_them(holds: int, every: int) -> None:
    """Nights on which nothing is ever lost that a change would pay for, with a log that holds so many days."""
    dear: Any = SimpleNamespace(scans=COSTS.scans, relayout=lambda *_: SimpleNamespace(expected=1e9))
    memory, log, counted = Memory(columns={"a": "int"}), list[LoggedQuery](), list[int]()
    for day in range(30):
        log = [query for query in [*log, *asked("a", day)] if (query.timestamp or 0) >= (day + 1 - holds) * DAY]
        analysis = analysis_of(log)
        standing = block_of(analysis, Rival(A, ROWS // FILES))
        gate = GateSettings(costs=dear)
        if not why_not_search(analysis, LearnSettings(), memory, PLAN, standing, None, 1000, gate):
            memory = missed(analysis, memory, PLAN, standing, PLAN, [], dear)
            counted.append(day)
    assert counted == list(range(0, 30, every))
    assert memory.drift is not None
    assert memory.drift.real.spent == pytest.approx(5.0 * (counted[-1] + 1)), "every query once"


def test_without_times_or_without_new_queries_nothing_waits() -> None:
    seen = analysis_of(asked("a", 3))
    assert uncounted(seen, Memory(), PLAN) == (pytest.approx(0, abs=1e-6), pytest.approx(0, abs=1e-6))
    known = Memory(Drift.begin(A.layout_id), watermark=4 * DAY)
    assert uncounted(analysis_of([*asked("a", 1), *asked("a", 3)]), known, PLAN) == (0.0, pytest.approx(2.0))
    assert uncounted(analysis_of([LoggedQuery("t", asked("a", 0)[0].predicate)]), known, PLAN) == (0.0, 0.0)


def two_logs(days: int, anew: int | None = None, weekly: bool = False) -> list[Memory]:
    """What is remembered after each night of a table of two logs: one comes at once, the other, which asks more, a day
    later. What is new is laid out each night, by a plan that knows of its queries.

    Args:
        anew: the night on which both are read again in whole.
        weekly: each export of the later log has its last week, under another name.
    """
    plan, log = replace(PLAN, log_watermark=-1), list[LoggedQuery]()
    memory, found = Memory(rivals={B.layout_id: Rival(B, ROWS // FILES)}), []
    for day in range(days):
        before = range(max(0, day - (7 if weekly else 1)), day)
        log += [replace(query, batch=2 * day) for then in before for query in asked("b", then, 40)]
        log += [
            replace(query, batch=2 * day + 1, timestamp=(query.timestamp or 0) + DAY // 2) for query in asked("a", day)
        ]
        if day == anew:
            log = [replace(query, batch=None) for query in log]
        analysis = analysis_of(log)
        standing = block_of(analysis, Rival(A, ROWS // FILES))
        memory = missed(analysis, memory, plan, standing, plan, [], COSTS)
        plan = replace(plan, origin="kept", log_watermark=memory.watermark)
        found.append(Memory.from_json(json.loads(json.dumps(memory.to_json()))))
    return found


@pytest.mark.parametrize("weekly", [False, True])
def test_what_a_log_delivers_late_counts_once(weekly: bool) -> None:
    """Queries of an event log that came a day after others' were never counted, so that nothing was lost by them."""
    remembered = two_logs(5, weekly=weekly)
    regret = [memory.drift.real.regret[B.layout_id] for memory in remembered if memory.drift is not None]
    assert regret[0] == 0.0, "by the first log alone the table lies well"
    assert regret[1:] == [pytest.approx(15.0 * night, rel=0.1) for night in (1, 2, 3, 4)]


def test_logs_that_are_read_anew_bring_nothing_late() -> None:
    spent = [memory.drift.real.spent for memory in two_logs(6, anew=3) if memory.drift is not None]
    told = np.diff(spent)
    assert told[2] == pytest.approx(5.0, rel=0.1), "of that night only what is later than all before"
    assert told[3:] == pytest.approx(told[1], rel=0.1), "and on the next ones all again"


def test_what_was_asked_before_the_layout_was_learned_is_not_late() -> None:
    memory, plan = Memory(Drift.begin(A.layout_id), watermark=3 * DAY, batch=4), replace(PLAN, log_watermark=2 * DAY)
    log = [replace(asked("b", day, 1)[0], batch=batch) for day, batch in ((0, 1), (1, 5), (2, 5), (3, 5), (4, 5))]
    log = [replace(query, timestamp=(query.timestamp or 0) - 1) for query in log]
    assert uncounted(analysis_of(log), memory, plan)[0] == pytest.approx(1.0), "that of day 3 is late, that of 4 new"


def test_of_a_log_without_times_what_came_in_last_is_new_wherever_it_stands() -> None:
    old, late = ([replace(query, timestamp=None, batch=batch) for query in asked("a", 0)] for batch in (1, 2))
    known = Memory(Drift.begin(A.layout_id), counted=20, batch=1)
    assert new_queries(analysis_of([*late[:5], *old]), known, PLAN) == [0, 1, 2, 3, 4]
    assert new_queries(analysis_of([*late[:3], *old[3:]]), known, PLAN) == [0, 1, 2], "as many were purged"
    anew = [replace(query, batch=None) for query in old]
    assert new_queries(analysis_of(anew), known, PLAN) == [], "read anew, with nothing more"
    assert new_queries(analysis_of([*anew, *anew[:3]]), known, PLAN) == [20, 21, 22]
    assert new_queries(analysis_of([*late[:2], *anew, anew[0]]), known, PLAN) == [0, 1, 22]
    alone = [replace(query, batch=None) for query in (*old, *late[:2])]
    assert new_queries(analysis_of(alone), replace(known, batch=None), PLAN) == [20, 21]


@pytest.mark.parametrize("readers", [0.0, 0.5])
@pytest.mark.parametrize("stored", [True, False])
def test_what_a_first_layout_was_learned_from_is_not_lost_by_it(
    stored: bool, readers: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a log without times: all of it counted as new in the first night, as nobody had noted how much there was."""
    old, late = (
        [replace(one, timestamp=None, batch=batch if stored else None) for one in asked("a", 0)] for batch in (1, 2)
    )
    for name in ("Unseen", "_with_promise"):
        monkeypatch.setattr(learn, name, lambda *given, **_: given[-1])
    monkeypatch.setattr(learn, "_with_candidates", lambda _situation, night: night.plan)
    monkeypatch.setattr(learn, "with_bloom_filters", lambda _analysis, plan, _settings: plan)
    monkeypatch.setattr(learn, "contest_of", lambda *_: object() if stored else None)
    monkeypatch.setattr(learn, "for_reading", lambda _contest, plan, _proof, learned: (plan, learned))
    monkeypatch.setattr(
        learn, "sought", lambda *_, **__: SimpleNamespace(learned=SimpleNamespace(before=None), weights=None)
    )
    monkeypatch.setattr(learn, "drafted", lambda *_: PLAN)
    analysis, memory = analysis_of(old), Memory()
    situation = SimpleNamespace(
        analysis=analysis, blocks=None, kept=None, partition=None, unsought="", unseen=None, unseen_boxes=[], now=None,
        rate=(1.0, "assumed"), memory=memory, laid_out=None, present=None, settings=None,
    )  # fmt: skip
    monkeypatch.setattr(learn, "situation_of", lambda *_: situation)
    after = learn.learn_remembering(analysis, LearnSettings(enriched_share=readers), memory=memory)[2]
    assert new_queries(analysis_of(old), after, PLAN) == []
    assert new_queries(analysis_of([*old, *late]), after, PLAN) == list(range(len(old), len(old) + len(late)))


def test_of_a_log_with_times_a_table_without_a_layout_needs_no_new_note_each_night() -> None:
    """A table that the gate declines got one every night; its first plan tells until when its queries count."""
    memory, log = Memory(columns={"a": "int"}), list[LoggedQuery]()
    for day in range(3):
        log += [replace(one, batch=day) for one in asked("a", day)]
        assert nothing_lost(analysis_of(log), memory) == memory
    learned = replace(PLAN, log_watermark=log[-1].timestamp)
    assert new_queries(analysis_of([*log, *asked("a", 3, count=5)]), memory, learned) == list(range(60, 65))


def test_a_log_that_is_missing_for_a_night_is_not_counted_again() -> None:
    log, memory = [query for day in range(4) for query in asked("a", day)], Memory()
    spent = []
    for held in (log[:60], log[:20], log[:60], log, log):
        analysis = analysis_of(held)
        memory = missed(analysis, memory, PLAN, block_of(analysis, Rival(A, ROWS // FILES)), PLAN, [], COSTS)
        assert memory.drift is not None
        spent.append(memory.drift.real.spent)
    assert spent == [pytest.approx(5.0 * days) for days in (3, 3, 3, 4, 4)]


def test_a_clock_that_is_ahead_counts_no_query_twice() -> None:
    """Times of up to a day ahead are taken as they are: local times that are read as UTC."""
    ahead = [
        replace(query, timestamp=int(time.time() * 1e6) + (i - 18) * DAY // 24) for i, query in enumerate(asked("a", 0))
    ]
    memory, spent = Memory(), []
    for _ in range(3):
        analysis = analysis_of(ahead)
        memory = missed(analysis, memory, PLAN, block_of(analysis, Rival(A, ROWS // FILES)), PLAN, [], COSTS)
        assert memory.drift is not None
        spent.append(memory.drift.real.spent)
    assert spent == pytest.approx([5.0] * 3)
    assert memory.watermark == ahead[-1].timestamp


def test_a_watermark_at_which_no_query_can_be_goes_back() -> None:
    impossible = Memory(Drift.begin(A.layout_id), watermark=int(time.time() * 1e6) + 900 * DAY)
    analysis = analysis_of(asked("a", 1))
    block = block_of(analysis, Rival(A, ROWS // FILES))
    assert missed(analysis, impossible, PLAN, block, PLAN, [], COSTS).watermark == DAY + 19
