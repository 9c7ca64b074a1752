from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from zorder_pipeline.benchmarks import peers
from zorder_pipeline.benchmarks.data import live_bytes
from zorder_pipeline.benchmarks.workloads import tpch_statements


@pytest.mark.parametrize(
    ("where", "columns"),
    [
        ("a = 1 AND b = 2", ["a", "b"]),
        ("a < b AND c >= DATE '2024-01-01'", ["c"]),
        ("a BETWEEN 1 AND 2 OR b IN (1, 2)", ["a", "b"]),
        ("a IS NULL AND b LIKE 'x%'", ["a", "b"]),
        ("a LIKE '%x' AND b LIKE 'x%' AND c LIKE '_x'", ["b"]),
        ("a = 1 AND a < 3 AND upper(b) = 'X'", ["a"]),
        ("a = (SELECT max(c) FROM t WHERE b = 2)", ["b"]),
    ],
)
def test_columns_compared_with_constants_count(where: str, columns: list[str]) -> None:
    assert sorted(peers.frequent_columns([f"SELECT 1 FROM t WHERE {where}"], 5)) == columns


def test_a_column_counts_once_per_statement_and_bad_sql_not_at_all() -> None:
    log = ["SELECT 1 FROM t WHERE a = 1 OR a = 2 OR a = 3", *["SELECT 1 FROM t WHERE b = 7"] * 2, "SELEC ((", ""]
    assert peers.frequent_columns(log, 5) == ["b", "a"]


def test_patterns_count_by_how_they_begin() -> None:
    log = ["SELECT 1 FROM t WHERE a LIKE '%x'", *["SELECT 1 FROM t WHERE a LIKE 'x%'"] * 2]
    assert peers.frequent_columns([*log, *["SELECT 1 FROM t WHERE b LIKE '%y%'"] * 9], 5) == ["a"]
    assert peers.frequent_columns(log[:1], 5) == []


def test_the_demo_columns_are_stable_over_seeds() -> None:
    chosen = [peers.frequent_columns([r["statement"] for r in tpch_statements(500, seed)], 2) for seed in range(5)]
    assert chosen == [["l_shipdate", "l_partkey"]] * 5


def test_peers_come_in_one_order() -> None:
    assert [peer.name for peer in peers.peers_named(["liquid", "stored"])] == ["stored", "liquid"]
    assert len({peer.name for peer in peers.PEERS}) == len(peers.PEERS)


def test_a_peer_is_given_the_most_frequent_columns_that_it_takes() -> None:
    types = {"price": "decimal(15,2)", "day": "date", "part": "bigint", "store": "int"}
    given = {peer.name: peer.given(types) for peer in peers.PEERS}
    assert given["zorder2"] == given["iceberg-sort"] == ["price", "day"]
    assert given["iceberg-zorder2"] == ["day", "part"]
    assert given["iceberg-zorder4"] == ["day", "part", "store"]  # there are no more
    assert given["stored"] == []


def test_the_target_size_gives_delta_the_wanted_file_count(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"a": list(range(50_000))}))
    size = int(peers.optimize_conf(str(tmp_path), 12)["spark.databricks.delta.optimize.maxFileSize"])
    assert live_bytes(tmp_path) // size == 12  # as OptimizeTableCommand computes it


def test_best_sort_keeps_the_column_that_measures_best(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(spark: object, source: str, path: str, column: str, files: int) -> float:
        Path(path).mkdir(parents=True)
        (Path(path) / column).touch()
        return {"a": 1.0, "b": 2.0, "c": 3.0}[column]

    monkeypatch.setattr(peers, "_sorted_copy", fake)

    def measure(path: str) -> float:
        return {"a": 50.0, "b": 20.0, "c": 30.0}[next(Path(path).iterdir()).name]

    dest = tmp_path / "sort" / "t"
    assert peers.sort(None, "", str(dest), ["a", "b", "c", "d"], 4, measure) == 2.0  # type: ignore[arg-type]
    assert [p.name for p in dest.iterdir()] == ["b"]
    assert [p.name for p in dest.parent.iterdir()] == ["t"]
