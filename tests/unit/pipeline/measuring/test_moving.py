"""How far a table's queries have moved from those that its layout was learned from."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from zorder_pipeline.model.literals import Literal
from zorder_pipeline.model.predicate import Comparison, predicate_to_json
from zorder_pipeline.pipeline.measuring.moving import COMPARED, FEWEST, Moved, moved
from zorder_pipeline.query_log.insight import alike
from zorder_pipeline.query_log.intake import without_spark
from zorder_pipeline.query_log.intake.without_spark import StoredQueries

SECOND = 1_000_000
START = 1_700_000_000
"""When the first query was asked, seconds since 1970 UTC."""
RNG = np.random.default_rng(3)
COLUMNS = ["abc"[i] for i in RNG.integers(0, 3, 2_000)]
SHUFFLED = RNG.permutation(len(COLUMNS))
"""Rows lie in the state in the order in which logs were read."""


def stored(folder: Path) -> StoredQueries:
    """Queries of a table, one a second, each by a column of its own literal."""
    one = [Comparison(COLUMNS[i], "=", (Literal("number", str(i)),)) for i in SHUFFLED]
    rows = {
        "run": ["r"] * len(one),
        "source": ["log"] * len(one),
        "table_name": ["t"] * len(one),
        "predicate": [json.dumps(predicate_to_json(each)) for each in one],
        "query_timestamp": (START + SHUFFLED) * SECOND,
    }
    files = {"batch": 1, "run": "r", "generation": "g", "source": "log", "name": "log", "log": "log"}
    write_deltalake(str(folder / "query_log"), pa.table(rows))
    write_deltalake(str(folder / "log_files"), pa.Table.from_pylist([files]))
    return StoredQueries(str(folder))


@pytest.mark.parametrize("later", [0, FEWEST - 1, FEWEST, 150, 1_500, 2_000])
def test_no_more_is_parsed_than_is_compared(tmp_path: Path, later: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of retention_days of queries it was all, table after table, until Dagster ended the sensor's tick."""
    parsed: list[str] = []
    columns_of = without_spark._columns

    def noted(predicate: str) -> Set[str]:
        parsed.append(predicate)
        return columns_of(predicate)

    monkeypatch.setattr(without_spark, "_columns", noted)
    found = moved(stored(tmp_path), "t", START + len(COLUMNS) - later - 1, 90)
    if later < FEWEST or later == len(COLUMNS):
        assert found is None
        assert not parsed
        return
    every = [{name} for name in COLUMNS]
    compared = min(len(every), later + max(COMPARED, later))
    assert len(parsed) == compared
    assert found == Moved(1 - alike(every[-compared:-later], every[-later:]), later)


def test_queries_of_one_moment_are_compared_as_many_as_asked_for(tmp_path: Path) -> None:
    rows = [
        {
            "run": "r",
            "source": "log",
            "table_name": "t",
            "predicate": json.dumps(predicate_to_json(Comparison(name, "is_null", ()))),
            "query_timestamp": (START + moment) * SECOND,
        }
        for name, moment, count in (("a", 1, 3 * COMPARED), ("a", 2, FEWEST), ("b", 3, FEWEST))
        for _ in range(count)
    ]
    files = {"batch": 1, "run": "r", "generation": "g", "source": "log", "name": "log", "log": "log"}
    write_deltalake(str(tmp_path / "query_log"), pa.Table.from_pylist(rows))
    write_deltalake(str(tmp_path / "log_files"), pa.Table.from_pylist([files]))
    assert moved(StoredQueries(str(tmp_path)), "t", START + 2.0, 90) == Moved(1.0, FEWEST)


def test_a_column_that_was_renamed_is_no_other_one(tmp_path: Path) -> None:
    queries = stored(tmp_path)
    moments = START + len(COLUMNS) - 500 - 1
    assert moved(queries, "t", moments, 90, {"A": "b", "c": "b"}) == Moved(0.0, 500)
