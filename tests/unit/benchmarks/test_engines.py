"""Times of real engines: the arithmetic, and DuckDB on small files (Spark's part runs in tests/spark)."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.benchmarks.engines import Times, duckdb_times, per_query


def test_the_empty_query_is_taken_off_and_rounds_are_medians() -> None:
    times = Times(np.array([[3.0, 1.0, 2.0], [0.5, 0.5, 0.5]]), np.array([[0.5, 0.5, 9.0], [0.6, 0.6, 0.6]]))
    assert times.median.tolist() == [2.0, 0.5]
    assert times.net.tolist() == [1.5, 0.001]  # never nothing: ratios are taken of it
    assert times.spread == pytest.approx(0.25)
    assert list(per_query(times, "spark")) == ["spark_s", "spark_net_s"]
    assert per_query(Times(times.seconds, times.empty, np.ones(2)), "spark")["scanned"].tolist() == [1.0, 1.0]


def test_duckdb_reads_every_table_for_every_query(tmp_path: Path) -> None:
    paths = {name: tmp_path / name / "t" for name in ("one", "other")}
    for path in paths.values():
        path.mkdir(parents=True)
        pq.write_table(pa.table({"a": list(range(1000))}), path / "part.parquet")
    found = duckdb_times(paths, ["SELECT sum(a) FROM t WHERE a < 10", "SELECT max(a) FROM t"], "t", rounds=2)
    assert list(found) == ["one", "other"]
    for times in found.values():
        assert times.seconds.shape == times.empty.shape == (2, 2)
        assert (times.seconds > 0).all()
        assert times.scanned is None
