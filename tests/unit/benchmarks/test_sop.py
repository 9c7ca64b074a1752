"""SOP's queries on the denormalised table against DuckDB, and SOP's files and bits against brute force."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.benchmarks import layout, sop
from zorder_pipeline.benchmarks.cases import Loaded, load
from zorder_pipeline.benchmarks.data import denormalised_lineitem
from zorder_pipeline.benchmarks.denormalised import SOP_TEMPLATES, TABLE
from zorder_pipeline.benchmarks.harness import Options, summarise
from zorder_pipeline.benchmarks.templates import Draw
from zorder_pipeline.model.ranges import Interval, Range

SCALE = 0.01
READ = {"q3": (0.0, 0.2), "q5": (0.0, 0.02), "q6": (0.005, 0.05), "q8": (0.0, 0.005), "q10": (0.005, 0.05)}
READ |= {"q12": (0.001, 0.02), "q14": (0.005, 0.03), "q19": (0.0, 0.002)}
"""Shares of the line items that the queries match by TPC-H's own selectivities, generously."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return pq.read_table(denormalised_lineitem(tmp_path_factory.mktemp("sop"), SCALE))


@pytest.fixture(scope="module")
def loaded(rows: pa.Table) -> Loaded:
    return load(sop.CASE, rows, 200, 80, 0)


@pytest.fixture(scope="module")
def db(rows: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as db:
        db.register(TABLE, rows)
        yield db


@pytest.mark.matrix
def test_every_line_item_is_there_once_with_what_belongs_to_it(
    rows: pa.Table, db: duckdb.DuckDBPyConnection, lineitem: duckdb.DuckDBPyConnection
) -> None:
    total = "SELECT count(*), sum(l_quantity), count(DISTINCT l_orderkey) FROM"
    assert db.execute(f"{total} {TABLE}").fetchall() == lineitem.execute(f"{total} lineitem").fetchall()
    assert len(rows.column_names) == 28  # all within the first 32, of which Delta keeps statistics
    asked = "SELECT count(DISTINCT {0}), max(n) FROM (SELECT {0}, count(DISTINCT {1}) AS n FROM {2} GROUP BY 1)"
    for key, what in (("l_orderkey", "o_orderdate"), ("l_partkey", "p_type"), ("l_suppkey", "s_nation")):
        assert db.execute(asked.format(key, what, TABLE)).fetchall()[0][1] == 1
    assert db.execute(asked.format("s_nation", "s_region", TABLE)).fetchall() == [(25, 1)]
    assert db.execute(f"SELECT count(DISTINCT p_type), count(DISTINCT c_region) FROM {TABLE}").fetchall() == [(150, 5)]


@pytest.mark.parametrize("template", SOP_TEMPLATES, ids=lambda template: template.name)
def test_queries_match_what_tpch_says(template, db: duckdb.DuckDBPyConnection) -> None:  # type: ignore[no-untyped-def]
    draw = Draw(np.random.default_rng(0), SCALE)
    shares = []
    total = db.execute(f"SELECT count(*) FROM {TABLE}").fetchall()[0][0]
    for _ in range(20):
        statement = template.make(draw)
        db.execute(statement).fetchall()
        where = statement.split(" WHERE ")[1].split(" GROUP BY ")[0]
        shares.append(db.execute(f"SELECT count(*) FROM {TABLE} WHERE {where}").fetchall()[0][0] / total)
    low, high = READ[template.name]
    assert low < np.mean(shares) < high


def test_rows_satisfy_conditions_as_single_rows_tell(loaded: Loaded) -> None:
    every = np.arange(0, loaded.rows, 97)
    columns = loaded.part(every)
    for box, _ in sop.frequent_conditions(loaded.train_boxes)[:40]:
        told = sop.satisfied(box, columns)
        for place in range(0, len(every), 11):
            assert told[place] == all(
                any(
                    (part.low is None or (value > part.low if part.low_open else value >= part.low))
                    and (part.high is None or (value < part.high if part.high_open else value <= part.high))
                    for part in item.intervals
                )
                for item in box
                for value in (columns[item.column][0][place],)
            )
    nothing = (np.array([1, 0]), np.array([True, False]))
    assert sop.satisfied((Range("x", "int", (Interval(0, 0),), nulls=True),), {"x": nothing}).tolist() == [False, True]


def test_conditions_are_weighed_by_the_queries_that_imply_them() -> None:
    def query(low: int) -> tuple[tuple[Range, ...], ...]:
        return ((Range("x", "int", (Interval(low, None),)),),)

    found = sop.frequent_conditions([query(5), query(5), query(3), ((),)])
    assert found == [(query(5)[0], 2.0), (query(3)[0], 3.0)]


def test_partitions_are_cut_into_files_of_about_the_wanted_size() -> None:
    partition = np.random.default_rng(0).choice([0, 1, 2, 4], 10_000, p=[0.5, 0.3, 0.199, 0.001])
    file = sop.sop_files(partition, 100)
    assert np.unique(file).tolist() == list(range(int(file.max()) + 1))
    for number in range(int(file.max()) + 1):
        assert len(set(partition[file == number])) == 1, "a file has rows of one partition"
    sizes = np.bincount(file)
    assert sizes[:-1].min() > 90
    assert sizes.max() < 110


def test_bits_only_skip_files_without_matching_rows(loaded: Loaded, tmp_path: Path) -> None:
    boxes = [box for box, _ in sop.frequent_conditions(loaded.train_boxes)][:20]
    truth = [sop.satisfied(box, loaded.columns) for box in boxes]
    single = np.arange(loaded.rows, dtype=np.int32)
    plain = loaded.estimator(loaded.unseen_boxes)
    read = sop.reader(loaded, boxes, truth, loaded.unseen_boxes)
    assert (read.rows_read(single, loaded.rows) <= plain.rows_read(single, loaded.rows)).all()
    exact = [np.any([sop.satisfied(box, loaded.columns) for box in query], axis=0) for query in loaded.unseen_boxes]
    assert (read.rows_read(single, loaded.rows) >= [hit.sum() for hit in exact]).all(), "no matching row is skipped"
    _, partition = np.unique(np.stack(truth), axis=1, return_inverse=True)
    file = sop.sop_files(partition, 500)
    count = int(file.max()) + 1
    least = [np.isin(file, np.unique(file[hit])).sum() for hit in exact]
    with_bits, without = read.rows_read(file, count), plain.rows_read(file, count)
    assert (with_bits >= least).all()
    assert (with_bits <= without).all()
    assert with_bits.sum() < without.sum()


def test_the_workload_measures_sop_beside_ours(rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sop, "CASE", replace(sop.CASE, rows=lambda _, __: rows.slice(0, 10_000)))
    monkeypatch.setattr(layout, "QUERIES", 60)
    monkeypatch.setattr(sop, "BITS", (4, 8))
    monkeypatch.setattr("zorder_pipeline.benchmarks.layout.TRIALS", 20)
    options = Options((0,), tmp_path, scale=0.02, against=("sop", "sort"))
    found = summarise(sop.run(options, lambda _: None))["contenders"]
    assert {"ours", "sop", "sort"} < set(found)
    assert "stored" not in found
    share = {name: contender["mean"]["share"] for name, contender in found.items()}
    assert 0 < share["ours"] < 1
    assert 0 < share["sop"] < 1
