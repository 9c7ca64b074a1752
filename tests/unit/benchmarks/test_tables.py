from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from zorder_pipeline.benchmarks import tables

ROWS = 20_000
MAKERS = (tables.skewed, tables.wide, tables.flights, tables.taxi)


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_rows_depend_on_the_seed_alone(make) -> None:
    once = make(2000, 7)
    assert once.num_rows == 2000
    assert repr(once.to_pydict()) == repr(make(2000, 7).to_pydict())
    assert repr(once.to_pydict()) != repr(make(2000, 8).to_pydict())


def _nan_count(column: pa.ChunkedArray) -> int:
    return int(np.isnan(column.drop_null().to_numpy()).sum())


def test_skewed_is_skewed_correlated_and_has_nulls_and_nan() -> None:
    rows = tables.skewed(ROWS, 1)
    counts = sorted((c["counts"] for c in pc.value_counts(rows["tenant"]).to_pylist()), reverse=True)
    assert counts[0] > 0.15 * ROWS
    assert len(counts) > 20
    pairs = rows.group_by(["tenant", "country"]).aggregate([])
    assert pairs.num_rows == len(counts)  # a tenant decides its country
    assert rows["plan"].null_count > 0 < rows["score"].null_count
    assert _nan_count(rows["score"]) > 0
    times = rows["event_time"].cast(pa.int64()).to_numpy()
    assert 0 < np.mean(np.diff(times) < 0) < 0.15  # in order, but for the late ones


def test_wide_has_40_columns_of_five_kinds() -> None:
    rows = tables.wide(ROWS, 1)
    assert rows.num_columns == 40
    assert {str(t) for t in rows.schema.types} == {"int64", "double", "string", "date32[day]", "decimal128(21, 2)"}
    one, other = (rows[name].to_numpy() for name in ("i01", "i02"))
    assert np.corrcoef(one, other)[0, 1] > 0.9
    assert abs(np.corrcoef(rows["i03"].to_numpy(), other)[0, 1]) < 0.1


def test_flights_and_trips_come_by_time() -> None:
    for rows, column in ((tables.flights(ROWS, 1), "time_hour"), (tables.taxi(ROWS, 1), "tpep_pickup_datetime")):
        assert rows.num_columns == 19
        times = rows[column].cast(pa.int64()).to_numpy()
        assert np.mean(np.diff(times) < 0) < 0.001


def test_cancelled_flights_have_no_times_and_a_reason() -> None:
    rows = tables.flights(ROWS, 1)
    cancelled = rows.filter(rows["cancelled"])
    assert 0 < cancelled.num_rows == cancelled["dep_time"].null_count
    assert cancelled["reason"].null_count == 0
    assert rows["reason"].null_count == ROWS - cancelled.num_rows
    assert _nan_count(rows["arr_delay"]) > 0


def test_a_vendors_feed_lacks_its_columns_together() -> None:
    rows = tables.taxi(ROWS, 1)
    nulls = {rows[name].null_count for name in ("passenger_count", "RatecodeID", "Airport_fee")}
    assert len(nulls) == 1
    assert nulls.pop() > 0
    assert rows.schema.field("tpep_pickup_datetime").type == pa.timestamp("us")
