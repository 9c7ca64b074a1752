"""Counts of lines: all of them are used, ignored or quarantined, and parts come to the whole."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.predicate import And
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.query_log.intake.tally import Tally
from zorder_pipeline.query_log.statements.sql import Unusable

used = st.lists(st.sampled_from("tu").map(lambda table: LoggedQuery(table, And(()))), min_size=1, max_size=3)
ignored = st.builds(Unusable, st.sampled_from(["set", "other_table"]), st.just(True), st.sampled_from([(), ("x", "y")]))
quarantined = st.builds(Unusable, st.sampled_from(["parse_error", "set"]), st.just(False))


@given(st.lists(st.one_of(used, ignored, quarantined), max_size=20), st.integers(0, 20))
def test_every_line_is_counted_once_and_parts_come_to_the_whole(lines: list, cut: int) -> None:
    def tally(some: list) -> Tally:
        found = Tally()
        for line in some:
            found.add(line)
        return found

    whole = tally(lines)
    assert whole.lines == len(lines) == whole.used + whole.ignored.total() + whole.quarantined.total()
    assert whole.tables.total() == sum(len(line) for line in lines if isinstance(line, list))
    stored = [json.loads(json.dumps(tally(some).to_json())) for some in (lines[:cut], lines[cut:])]
    assert Tally.of(stored).to_json() == whole.to_json()
    log = whole.log()
    assert (log.lines, log.used, log.queries) == (whole.lines, whole.used, ())
    assert log.ignored | log.unmatched == whole.ignored | whole.unmatched
