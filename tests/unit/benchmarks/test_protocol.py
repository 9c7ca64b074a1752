"""Seed 000's protocol: what is written holds every row once, and what is counted is what DuckDB finds in the files."""

from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from zorder_pipeline.benchmarks import protocol, tables
from zorder_pipeline.benchmarks.cases import CASES, Loaded, load
from zorder_pipeline.benchmarks.harness import bound

ROWS, GROUPS = 6_000, 40


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return tables.skewed(ROWS, 3)


@pytest.fixture(scope="module")
def loaded(rows: pa.Table) -> Loaded:
    return load(next(case for case in CASES if case.name == "skewed"), rows, 30, 30, 1)


def test_every_row_is_written_once_into_row_groups_of_the_wanted_sizes(rows: pa.Table, tmp_path: Path) -> None:
    place = np.random.default_rng(0).permutation(ROWS)
    sizes = np.full(GROUPS, ROWS // GROUPS)
    protocol._write(rows, (place, sizes), tmp_path)
    found = duckdb.sql(
        f"SELECT count(*), count(DISTINCT event_id) FROM read_parquet('{tmp_path}/*.parquet')"
    ).fetchall()
    assert found == [(ROWS, ROWS)]
    groups = duckdb.sql(
        f"SELECT DISTINCT file_name, row_group_id, row_group_num_rows FROM parquet_metadata('{tmp_path}/*.parquet')"
    ).fetchall()
    assert sorted(count for _, _, count in groups) == sizes.tolist()


def test_rows_read_lie_between_the_matches_and_the_table(rows: pa.Table, loaded: Loaded, tmp_path: Path) -> None:
    even = np.full(GROUPS, ROWS // GROUPS)
    protocol._write(rows, (np.arange(ROWS), even), tmp_path)
    found, facts = protocol._read(loaded, tmp_path)
    matched = protocol._matched(loaded)
    least = bound(matched, ROWS, GROUPS, 0).per_query["rows"]
    assert (matched <= least).all()
    assert (least <= found["rows"]).all()
    assert (found["rows"] <= ROWS).all()
    assert (found["rows"] == found["row_groups"] * (ROWS // GROUPS)).all()
    assert facts["row_groups"] == GROUPS


@pytest.mark.parametrize("name", ["flights", "taxi"])
def test_both_logs_keep_at_most_a_hundredth(name: str, tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == name)
    table = case.rows(tmp_path, 0.03)
    _, later = case.logs(table, 60, 60, 0, 0.03)
    some, texts = protocol.drawn(case, table, 30, 0, 0.03)
    assert len(some.train) == len(some.train_boxes) == len(some.unseen) == len(some.unseen_boxes) == len(texts)
    with duckdb.connect() as db:
        db.register(name, table)

        def kept(text: str) -> float:
            where = text.split(" WHERE ", 1)[1]
            return float(db.sql(f"SELECT count(*) FROM {name} WHERE {where}").fetchall()[0][0] / len(table))

        few = [text for text in (record["statement"] for record in later) if kept(text) <= protocol.MOST]
    assert texts == few[:30]
    assert len(few) < 60, "some are refused"


def test_the_most_selective_column_keeps_fewest_rows(loaded: Loaded) -> None:
    from zorder_pipeline.benchmarks.layout import learn

    _, sampled, chosen = learn(loaded, GROUPS, 0)
    best = sampled.encodings[protocol._most_selective(loaded, sampled, chosen)].column
    kept: dict[str, list[float]] = {}
    for query in loaded.train_boxes:  # an oracle by single rows, interval by interval
        for item in query[0]:
            values, valid = loaded.columns[item.column]
            hit = ~valid if item.nulls else np.zeros(len(values), dtype=bool)
            for part in item.intervals:
                low = np.ones(len(values), dtype=bool) if part.low is None else values >= part.low
                high = np.ones(len(values), dtype=bool) if part.high is None else values <= part.high
                hit |= valid & low & high
            kept.setdefault(item.column, []).append(float(hit.mean()))
    means = {name: np.mean(shares) for name, shares in kept.items()}
    assert means[best] <= min(means[e.column] for e in sampled.encodings if e.column in means) * 1.5
