from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.benchmarks.compare import same_results, same_rows
from zorder_pipeline.errors import ZorderError

STATEMENTS = [
    "SELECT count(*), sum(v) FROM t WHERE k < 50",
    "SELECT k, v FROM t WHERE k BETWEEN 10 AND 20",
    "SELECT max(k) FROM t",
]
CELLS = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["a", ""]), st.floats(allow_infinity=False))


def _table(path: Path, keys: list[int], **options: Any) -> str:
    rows = pa.table({"k": keys, "v": [0.1 * key for key in keys]})
    write_deltalake(str(path), rows, **options)
    return str(path)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=8), st.randoms(use_true_random=False))
def test_order_does_not_matter(rows: list[tuple[Any, ...]], rng: random.Random) -> None:
    other = rows[:]
    rng.shuffle(other)
    assert same_rows(rows, other)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8))
def test_a_missing_row_matters(rows: list[tuple[Any, ...]]) -> None:
    assert not same_rows(rows, rows[1:])
    assert not same_rows(rows, [*rows[1:], (99, True)])


def test_values_of_another_type_differ() -> None:
    assert not same_rows([(1,)], [("1",)])
    assert not same_rows([(1.0,)], [(1.0 + 1e-6,)])


def test_the_same_rows_in_another_order_and_more_files_agree(tmp_path: Path) -> None:
    keys = list(range(100))
    one = _table(tmp_path / "a" / "t", keys)
    other = _table(tmp_path / "b" / "t", keys[::-2])
    _table(tmp_path / "b" / "t", keys[::2], mode="append")
    assert same_results(None, STATEMENTS, one, other, name="t") == []


def test_only_what_differs_is_named(tmp_path: Path) -> None:
    one = _table(tmp_path / "a" / "t", list(range(100)))
    other = _table(tmp_path / "b" / "t", [key for key in range(100) if key != 30])
    assert same_results(None, STATEMENTS * 2, one, other, name="t") == STATEMENTS[:1]


def test_two_versions_of_a_table(tmp_path: Path) -> None:
    path = _table(tmp_path / "t", list(range(100)))
    _table(tmp_path / "t", [200], mode="append")
    assert same_results(None, STATEMENTS, path, path, name="t", version_a=0, version_b=0) == []
    assert same_results(None, STATEMENTS, path, path, name="t", version_a=0) == STATEMENTS[2:]


def test_what_needs_spark_says_so(tmp_path: Path) -> None:
    path = _table(tmp_path / "t", [1, 2])
    with pytest.raises(ZorderError, match="DuckDB cannot run 'SELECT no_function"):
        same_results(None, ["SELECT no_function(k) FROM t"], path, path, name="t")
    parted = _table(tmp_path / "parted" / "t", [1, 2], partition_by=["k"])
    with pytest.raises(ZorderError, match="give a Spark session"):
        same_results(None, STATEMENTS, path, parted, name="t")
