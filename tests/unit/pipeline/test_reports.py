"""What scans and statements are said to read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque
from zorder_pipeline.pipeline.reading.choosing import NO_FEWER, Chosen, Reading
from zorder_pipeline.pipeline.reading.reports import StatementReport, of_reading, unread
from zorder_pipeline.reading.prune import Excluded

FILES = SimpleNamespace(rows=np.array([10, 20, 30, 40]), bytes=np.array([1, 2, 3, 4]))
FIVE = Comparison("a", "=", (Literal("number", "5"),))
BY_TRUTH, BY_BOUNDS = Excluded("predicate", "c LIKE '%x%'", 2), Excluded("delta", "a", 1)


class Listed(SimpleNamespace):
    """A table's files, which have a number."""

    def __len__(self) -> int:
        return len(self.rows)


def _known(*excluded: Excluded) -> Any:
    tests = SimpleNamespace(excluded_from_all=lambda asked: excluded)
    snapshot = SimpleNamespace(location="file:/t", version=7, files=lambda: Listed(**vars(FILES)))
    return SimpleNamespace(
        snapshot=snapshot,
        tests=tests,
        told=lambda predicates: {},
        boxes=lambda predicate, told: (),
        in_partitions=lambda predicate, told: _mask(0, 1, 2, 3),
    )


def _mask(*numbers: int) -> Any:
    return np.isin(np.arange(4), numbers)


def _report(chosen: Chosen) -> StatementReport:
    return of_reading(Reading(None, (chosen,)), ())  # type: ignore[arg-type]


def test_of_a_chosen_relation_it_is_told_what_excluded_what() -> None:
    asked = And((FIVE, Opaque("Contains", ("c",))))
    chosen = Chosen(_known(BY_BOUNDS, BY_TRUTH), (asked,), (_mask(1, 2, 3),), _mask(3))
    assert str(_report(chosen)).splitlines() == [
        "file:/t at version 7: 1 of 4 files, 40 of 100 rows (Delta alone: 3 files)",
        "  1 file excluded by Delta's min/max of a",
        "  2 files excluded by the truth of the predicate c LIKE '%x%'",
        "  asked: a = 5 AND <Contains over c>",
    ]
    assert _report(chosen).to_json() == {
        "relations": [
            {
                "table": "file:/t",
                "version": 7,
                "files": 4,
                "rows": 100,
                "bytes": 10,
                "files_read": 1,
                "rows_read": 40,
                "bytes_read": 4,
                "delta_files_read": 3,
                "excluded": [
                    {"kind": "delta", "name": "a", "files": 1},
                    {"kind": "predicate", "name": "c LIKE '%x%'", "files": 2},
                ],
                "asked": "a = 5 AND <Contains over c>",
                "left_to_delta": None,
            }
        ],
        "left_to_spark": None,
    }


def test_scans_of_one_relation_ask_for_what_one_of_them_does() -> None:
    chosen = Chosen(_known(BY_BOUNDS), (FIVE, And(()), FIVE), (_mask(0), _mask(1), _mask(0, 2)), _mask(0))
    (told,) = _report(chosen).relations
    assert (told.asked, told.delta_files_read) == ("a = 5 OR TRUE", 3)


def test_what_is_left_to_delta_is_read_by_its_own_selection_also_where_ours_is_not_as_sure() -> None:
    chosen = Chosen(_known(BY_BOUNDS), (FIVE,), (_mask(0, 1),), None, NO_FEWER)
    assert str(_report(chosen)).splitlines() == [
        "file:/t at version 7: 2 of 4 files, 30 of 100 rows (Delta alone: 2 files)",
        "  1 file excluded by Delta's min/max of a",
        "  1 file excluded by bounds that Delta alone takes for sure, of its columns",
        "  asked: a = 5",
        f"  left to Delta: {NO_FEWER}",
    ]


def test_what_is_not_known_is_not_told() -> None:
    report = _report(Chosen(_known(), why="nobody knows"))
    assert str(report) == "file:/t at version 7: 4 files, 100 rows\n  left to Delta: nobody knows"
    left = Reading(None, left="it is a stream")  # type: ignore[arg-type]
    report = of_reading(left, [unread(_known().snapshot, "the whole statement is left to Spark")])
    assert str(report).splitlines()[:2] == ["left to Spark: it is a stream", "file:/t at version 7: 4 files, 100 rows"]
    assert report.to_json()["relations"][0]["files_read"] is None
