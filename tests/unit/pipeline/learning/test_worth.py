"""Whether a search, or the proof on all rows, can pay: bounds that no layout beats."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan, Promise
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.costs import relayout_work
from zorder_pipeline.pipeline.learning import worth
from zorder_pipeline.pipeline.learning.memory import Memory
from zorder_pipeline.pipeline.learning.volumes import FileVolumes
from zorder_pipeline.pipeline.records import LearnSettings, Preview
from zorder_pipeline.relayout.file_list import FileList

SPEC = KeySpec((FeatureCodes("a", "int", (10,), (0, 1), 1, null_code=0),), (0,))
PLAN = Plan("t", "id", "hash", 0, SPEC, "learned", 1000)
STANDING = np.zeros(1, dtype=np.int32)
LOOKED = Memory(columns={"a": "int"})
COSTS = CostModel(base=100.0, per_job=10.0, per_written_file=0.0, scan=50.0, per_opened_file=0.1)


def analysis_of(files: int = 4, size: float = 1e9, layout: str = "") -> Any:
    each, none = np.full(files, int(size / files)), np.full(files, -1)
    listed = FileList(
        path=np.array([f"part-{i:05d}" for i in range(files)], dtype=object),
        bytes=each,
        rows=each // 100,
        deleted=np.zeros(files, dtype=np.int64),
        layout=(layout,) * files,
        generation=none,
        key_low=none,
        key_high=none,
        modified=np.arange(files),
        partitions=((),) * files,
        load_zones=lambda columns: {},
    )
    schema = TableSchema((Column("a", "int"), Column("b", "int")))
    return SimpleNamespace(snapshot=SimpleNamespace(files=lambda: listed, table_id="id", schema=schema))


def test_a_partitioned_table_is_held_against_its_cheapest_partition() -> None:
    snapshot = analysis_of().snapshot
    split = replace(snapshot.files(), bytes=np.array([6e8, 1e8, 2e8, 1e8]).astype(np.int64), partitions=tuple("abbb"))
    parted = SimpleNamespace(files=lambda: split, table_id="id")
    whole, least = (worth.least_cost(table, COSTS) for table in (snapshot, parted))
    assert (whole, least) == (pytest.approx(110.0), pytest.approx(50.0))


def volumes(size: float, files: float, queries: int = 8) -> FileVolumes:
    return FileVolumes(*(np.full(queries, value) for value in (size, files, files * 10, 0.5)))


def why(
    now: FileVolumes | None,
    scans: float,
    present: Plan | None = None,
    memory: Memory = LOOKED,
    settings: LearnSettings | None = None,
    layout: str = "",
    **gate: Any,
) -> str:
    given = GateSettings(costs=COSTS, **gate)
    return worth.why_not_search(
        analysis_of(layout=layout), settings or LearnSettings(), memory, present, STANDING, now, scans, given
    )


def test_a_search_pays_where_all_that_is_read_costs_more_than_the_cheapest_rewrite() -> None:
    now = volumes(1e8, 4)  # 5.4 core-seconds a query, and a rewrite takes 110 at least
    assert why(now, 30) == ""
    told = why(now, 15)
    assert told.startswith("not worth it, whatever the layout: at 0.5 queries a day over 30 days")
    assert "costs 81.0 core-seconds, and a rewrite at least" in told


@pytest.mark.parametrize(
    "given",
    [
        {"memory": Memory()},
        {"settings": LearnSettings(always_search=True)},
        {"enabled": False},
        {"now": None},
    ],
)
def test_the_first_look_and_whoever_asks_for_it_searches_all_the_same(given: dict[str, Any]) -> None:
    assert why(**{"now": volumes(1e8, 4), "scans": 1.0} | given) == ""


def test_a_table_that_lies_by_a_layout_waits_until_it_may_have_lost_what_a_change_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, told = volumes(1e8, 4), [90.0, 1.0, 30.0]
    monkeypatch.setattr(worth, "most_lost", lambda *_: told[0])
    monkeypatch.setattr(worth, "uncounted", lambda *_: told[1:])
    assert "can have lost 90.0 core-seconds at most" in why(now, 1000, PLAN)
    assert why(None, 1000, PLAN)
    readers = LearnSettings(enriched_share=0.5)
    assert why(now, 1000, PLAN, settings=readers) == "", "what scans through reading/ lose by it is not known"
    assert why(now, 1, PLAN, settings=readers).startswith("not worth it, whatever the layout"), "all that is read is"
    told[0] = 150.0
    assert why(now, 1000, PLAN) == ""
    told[:] = [90.0, worth.LONGEST_DAYS, 30.0]
    assert why(now, 1000, PLAN) == ""
    told[:] = [90.0, 2.8, 3.0]  # or the log forgets the queries before they count
    assert why(now, 1000, PLAN) == ""
    told[:] = [90.0, 0.0, 0.0]
    assert why(now, 1000, PLAN), "nothing is new, or nothing has a time"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"enabled": False},
        {"settings": LearnSettings(enriched_share=0.5)},
        {"settings": LearnSettings(always_search=True)},
        {"memory": Memory()},
        {"present": None},
    ],
)
def test_no_layout_is_sought_for_a_table_that_keeps_its_own(given: dict[str, Any]) -> None:
    """One that was found would be declined, and what is new would not be laid out by the one that is kept."""
    asked = {"now": volumes(1e8, 4), "scans": 1e6, "present": PLAN, "change_layout": False} | given
    assert why(**asked, layout="its own") == "the table keeps its layout: layout.keep is set"
    assert why(**asked | {"change_layout": True, "enabled": False}, layout="its own") == ""
    assert "layout.keep" not in why(**asked | {"present": None}), "it has none yet"


def test_a_promise_is_proved_where_the_gate_may_accept_it_in_whatever_files() -> None:
    now, gate = volumes(1e8, 900), GateSettings(costs=COSTS)
    promised = PLAN.choosing(_candidate(saved=1e6))
    assert worth.may_pay(analysis_of(), promised, volumes(1e8, 4), 10, gate) is False
    assert worth.may_pay(analysis_of(), promised, now, 10, gate)  # larger files may save what opening them takes
    assert worth.may_pay(analysis_of(layout=SPEC.layout_id), promised, volumes(1e8, 4), 50, gate)
    lost = PLAN.choosing(_candidate(saved=1e9, lost=50.0))
    assert not worth.may_pay(analysis_of(), lost, now, 1e6, gate)
    assert worth.may_pay(analysis_of(), PLAN.choosing(_candidate(saved=1e9, lost=500.0)), now, 1e6, gate)
    assert not worth.may_pay(
        analysis_of(), PLAN.choosing(_candidate(saved=1e9, lost=500.0)), now, 1e6, GateSettings(change_layout=False)
    )


@given(st.integers(1, 2000), st.floats(1e3, 1e12), st.integers(1, 3000), st.booleans())
def test_no_rewrite_costs_less_than_the_least(files: int, size: float, made: int, hashed: bool) -> None:
    analysis, costs = analysis_of(files, size), CostModel()
    would = Preview(
        0, files_removed=files, files_added=made, bytes_rewritten=int(analysis.snapshot.files().bytes.sum())
    )
    work = relayout_work(analysis.snapshot, PLAN, would, "hash" if hashed else "counts")
    assert worth.least_cost(analysis.snapshot, costs) <= costs.relayout(work, "id").expected
    assert worth.least_cost(analysis.snapshot, costs, "another") == worth.least_cost(analysis.snapshot, costs)


def _candidate(saved: float, lost: float | None = None) -> Any:
    promise = Promise(bytes_saved_per_query=saved)
    return SimpleNamespace(spec=SPEC, action="another", target_file_rows=1000, promise=promise, lost=lost, patience=1.0)
