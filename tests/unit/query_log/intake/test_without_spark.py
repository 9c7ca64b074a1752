"""The stored query log as sensors read it: which rows are a table's."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from zorder_pipeline.model.literals import Literal
from zorder_pipeline.model.predicate import Comparison, predicate_to_json
from zorder_pipeline.query_log.intake.without_spark import StoredQueries


def test_queries_that_are_stored_in_lower_case_are_the_tables_too(tmp_path: Path) -> None:
    """As the log's reader counts them."""
    asked = [("Orders", "a"), ("orders", "b"), ("ORDERS", "c"), ("orders_old", "d")]
    rows = [
        {
            "run": "r",
            "source": "log",
            "table_name": name,
            "predicate": json.dumps(predicate_to_json(Comparison(column, "=", (Literal("number", "1"),)))),
            "query_timestamp": 1_700_000_000_000_000 + i,
        }
        for i, (name, column) in enumerate(asked)
    ]
    files = {"batch": 1, "run": "r", "generation": "g", "source": "log", "name": "log", "log": "log"}
    write_deltalake(str(tmp_path / "query_log"), pa.Table.from_pylist(rows))
    write_deltalake(str(tmp_path / "log_files"), pa.Table.from_pylist([files]))
    stored = StoredQueries(str(tmp_path))
    assert stored.moments("Orders", 30).tolist() == [1_700_000_000_000_000, 1_700_000_000_000_001]
    assert stored.filtered_columns("Orders", 0) == [{"a"}, {"b"}]
    assert stored.filtered_columns("Orders", 1_700_000_000_000_001) == [{"b"}]


def test_a_query_of_another_age_hides_no_other(tmp_path: Path) -> None:
    """States hold them from before such times were unknown ones: of a log that is gone they are never read again."""
    day, now = 86_400_000_000, 1_700_000_000_000_000
    times = [0, now - 100 * day, now - day, now, None, 253_402_300_799_000_000]  # the last one is in 9999
    predicate = json.dumps(predicate_to_json(Comparison("a", "is_null", ())))
    row = {"run": "r", "source": "log", "table_name": "t", "predicate": predicate}
    files = {"batch": 1, "run": "r", "generation": "g", "source": "log", "name": "log", "log": "log"}
    rows = [row | {"query_timestamp": time} for time in times]
    write_deltalake(str(tmp_path / "query_log"), pa.Table.from_pylist(rows))
    write_deltalake(str(tmp_path / "log_files"), pa.Table.from_pylist([files]))
    stored = StoredQueries(str(tmp_path))
    assert stored.moments("t", 90).tolist() == [now - day, now]
    assert stored.moments("t", 100_000).tolist() == [now - 100 * day, now - day, now]
    assert [len(stored.filtered_columns("t", since)) for since in (0, now - day)] == [3, 2]


def test_before_any_log_was_read_there_is_no_query(tmp_path: Path) -> None:
    stored = StoredQueries(str(tmp_path))
    assert (stored.moments("t", 30).tolist(), stored.filtered_columns("t", 0)) == ([], [])
