"""What the ledger tells of a relayout, also in rows that an older version wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest

from zorder_pipeline.state.entry import Entry, entry_of

PROMISE = {
    "queries": 40, "bytes_saved_per_query": 8e8, "files_saved_per_query": 9.0, "bytes_before": 1e9,
    "files_before": 12.0, "queries_per_day": 5.0, "page_bytes_saved_per_query": 4e8, "page_bytes_before": 6e8,
}  # fmt: skip
OLDEST: dict[str, Any] = {
    "table_id": "id", "table_location": "/t", "layout_id": "a", "version": 7, "moment": 1, "bytes_rewritten": 1e9,
    "rows": 100, "files_removed": 20, "files_added": 3, "columns": 2, "seconds": 10.0, "cores": 4,
    "promised_before": 0.9, "promised_after": 0.3, "promised_low": 0.5,
}  # fmt: skip
"""All that was known when the state was young: what came later is null in such rows."""
LATER = (
    "replaced_version", "additional", "predicates", "hashed", "cost_expected", "cost_low", "cost_high",
    "cost_measured", "credited", "log_watermark", "measured_queries", "measured_before", "measured_after",
    "measured_bytes_saved", "measured_files_saved", "measured_per_day", "measured_page_bytes_saved",
    "measured_since", "measured_until", "gate", "ended", "looked_until", "promise", "run", "merged",
)  # fmt: skip


def told(**row: Any) -> Entry:
    return entry_of({**dict.fromkeys(LATER), **OLDEST, **row})


def test_a_row_of_before_there_was_more_to_note_is_read_by_what_was_so_then() -> None:
    entry = told()
    assert (entry.location, entry.committed_at, entry.files) == ("/t", 1, 23)
    assert entry.replaced_version == 6, "each relayout was one commit"
    assert entry.credited == 1.0, "and rewrote all that its plan was for"
    assert entry.cost_measured == 40.0, "its seconds on all cores"
    assert (entry.additional, entry.predicates, entry.hashed, entry.gate) == (0, 0, False, {})
    assert (entry.measured_queries, entry.measured_bytes, entry.measured_per_day) == (0, None, None)
    assert (entry.measured_before, entry.measured_after, entry.measured_files) == (0.0, 0.0, 0.0)
    assert entry.horizon_days == 30.0
    assert (entry.lasting, entry.ended_at) == (None, None)


def test_what_is_noted_goes_before_what_would_be_assumed() -> None:
    noted = {"replaced_version": 0, "credited": 0.0, "cost_measured": 3.0, "additional": 2, "predicates": 1}
    entry = told(**noted, hashed=True, gate=json.dumps({"assumptions": {"horizon_days": 7}}))
    assert (entry.replaced_version, entry.credited, entry.cost_measured) == (0, 0.0, 3.0)
    assert (entry.additional, entry.predicates, entry.hashed, entry.horizon_days) == (2, 1, True, 7.0)
    entry = told(measured_queries=6, measured_before=0.5, measured_after=0.25, measured_files_saved=-2.0)
    assert (entry.measured_queries, entry.measured_before, entry.measured_after) == (6, 0.5, 0.25)
    assert (entry.measured_files, entry.bytes_rewritten) == (-2.0, 1e9)
    assert [told(merged=text).merged for text in (None, "{}", '{"7": 40}')] == [None, {}, {7: 40}]


@pytest.mark.parametrize(
    ("promise", "promised", "per_query"),
    [
        (PROMISE, 0.15, (8e8, 9.0, 1e9, 12.0, 5.0, 4e8, 6e8)),
        ({"queries": 40}, 0.15, (0.0, 0.0, 0.0, 0.0, 0.0, None, None)),  # told of rows alone
        (None, 0.0, (0.0, 0.0, 0.0, 0.0, 0.0, None, None)),  # by hand: its columns are no promise
    ],
)
def test_a_promise_is_what_queries_proved_of_the_part_that_was_done(
    promise: dict[str, float] | None, promised: float, per_query: tuple[float | None, ...]
) -> None:
    entry = told(promise=None if promise is None else json.dumps(promise), credited=0.25)
    assert entry.promised == pytest.approx(promised)
    assert entry.promised_whole == pytest.approx(4 * promised)
    sizes = (entry.promised_bytes, entry.promised_files, entry.bytes_before, entry.files_before)
    assert (*sizes, entry.queries_per_day, entry.promised_page_bytes, entry.page_bytes_before) == per_query


def test_what_was_foretold_of_later_days_is_credited_by_day_and_of_the_log_as_it_was() -> None:
    lasting = {"days": [0.0, 2.0], "shares": [0.8, 0.0], "since": 0.0, "credited": 0.5}
    fades = told(gate=json.dumps({"assumptions": {"lasting": lasting}}), credited=0.25)
    assert fades.credited_over(0.0) == fades.credited_over(-1.0) == 0.25
    assert fades.credited_over(2.0) == pytest.approx(0.2)
    assert fades.credited_over(1.0, since=1.0) == pytest.approx(0.1)
    assert told(credited=0.25).credited_over(2.0) == 0.25
