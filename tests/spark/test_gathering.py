"""Statistics are the same whatever was known beforehand of the values that a column holds."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.reading import gather as gathering
from zorder_pipeline.reading.file_numbers import numbers, same_files
from zorder_pipeline.reading.gather import STATS, evaluable, gather
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

COLUMNS = {
    "word": "string",
    "small": "smallint",
    "edge": "bigint",
    "day": "date",
    "at": "timestamp",
    "many": "int",
    "nothing": "string",
}
FEATURES = (
    *(Feature(name, "column", of, f"`{name}`", (name,), of != "date") for name, of in COLUMNS.items()),
    Feature("MONTH(day)", "expression", "int", "MONTH(day)", ("day",), True),
    Feature("price / small", "expression", "", "price / small", ("price", "small")),
    Feature("twice", "expression", "", "CAST(small AS DOUBLE) + CAST(many AS DOUBLE)", ("small", "many")),
    Feature("word LIKE '%b%'", "predicate", "boolean", "word LIKE '%b%'", ("word",)),
)
ROWS = """
SELECT id,
       CASE WHEN id % 7 != 0 THEN element_at(array('b', 'ä', '', 'zz', 'Z'), CAST(id % 5 AS INT) + 1) END AS word,
       CAST(id % 3 - 1 AS SMALLINT) AS small,
       CASE WHEN id > 205 THEN 9223372036854775807L ELSE shiftleft(-1L, 63) + id % 2 * 3 END AS edge,
       date_add(DATE '1969-12-20', CAST(id % 40 AS INT)) AS day,
       timestamp_micros(id % 4 * 1000001 - 5) AS at,
       CAST(id AS INT) AS many,
       CAST(NULL AS STRING) AS nothing,
       CAST(id AS DECIMAL(15, 2)) / 7 AS price
FROM range({0}, {1})
"""


@pytest.fixture(scope="module")
def snapshot(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> TableSnapshot:
    """Three files; the last holds words that no other does, and nothing is divided by zero."""
    path = str(tmp_path_factory.mktemp("gathering") / "t")
    for low, high in ((0, 100), (100, 200), (200, 210)):
        rows = spark.sql(ROWS.format(low, high)).where("small != 0 OR small IS NULL")
        if low == 200:
            rows = rows.replace("zz", "never before", ["word"])
        rows.coalesce(1).write.format("delta").mode("append").save(path)
    return open_table(spark, path)


def _all(snapshot: TableSnapshot, some: DataFrame) -> dict[tuple[str, str], dict[str, object]]:
    """Each file's statistics of each feature; places of a Bloom filter have no order."""
    paths = [str(path) for path in snapshot.files().path]
    features = evaluable(snapshot.read(), FEATURES)
    assert len(features) == len(FEATURES)
    found = gather(snapshot.read_files(paths), features, snapshot.stored_as, lambda: some)
    rows = {(str(row["file"]), str(row["feature"])): row for row in found.to_pylist()}
    for row in rows.values():
        places = row["places"]
        row["places"] = places and {places[i : i + 2] for i in range(0, len(places), 2)}
    assert len(rows) == 3 * len(FEATURES)
    return rows


def test_values_that_are_known_are_found_as_those_that_are_not(snapshot: TableSnapshot) -> None:
    slowly = _all(snapshot, snapshot.read().limit(0))
    paths = [str(path) for path in snapshot.files().path]
    for some in (snapshot.read(), snapshot.read_files(paths[:1]), snapshot.read_files(paths[2:])):
        assert _all(snapshot, some) == slowly


def test_files_told_by_numbers_have_the_same_statistics(snapshot: TableSnapshot) -> None:
    files = snapshot.files()
    told = numbers(files.bytes, files.modified)
    assert told is not None
    paths = [str(path) for path in files.path]
    features = evaluable(snapshot.read(), FEATURES)
    by_uri = gather(snapshot.read(), features, snapshot.stored_as)
    called = dict(zip(told.tolist(), paths, strict=True))
    by_number = gather(snapshot.read(), features, snapshot.stored_as, numbered=called)
    names = same_files(by_uri["file"].to_pylist(), snapshot.location, paths)
    by_uri = by_uri.set_column(0, "file", pa.array(names, pa.string()))
    order = [("file", "ascending"), ("feature", "ascending")]
    kept = [name for name in STATS.names if name != "places"]  # which have no order
    assert by_number.select(kept).sort_by(order).equals(by_uri.select(kept).sort_by(order))
    del called[told.tolist()[0]]
    unknown = gather(snapshot.read(), features, snapshot.stored_as, numbered=called)
    assert unknown["file"].null_count == len(FEATURES)


def test_statistics_are_those_of_the_rows(snapshot: TableSnapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = gathering._at_once

    def counted(frames: list[DataFrame]) -> list[pa.Table]:
        asked.append(len(frames))
        return real(frames)

    monkeypatch.setattr(gathering, "_at_once", counted)
    found = _all(snapshot, snapshot.read())
    assert asked == [2], "what has few values takes one aggregation, what has many another"
    last = {
        feature: row for (file, feature), row in found.items() if row["rows"] == min(r["rows"] for r in found.values())
    }
    rows = snapshot.read().where("id >= 200").toPandas()
    words = rows["word"].dropna()
    assert (last["word"]["low_text"], last["word"]["high_text"]) == (min(words), max(words))
    assert last["word"]["nulls"] == int(rows["word"].isna().sum()) > 0
    assert last["nothing"]["nulls"] == len(rows)
    assert last["nothing"]["low_text"] is None
    assert (last["twice"]["low_real"], last["twice"]["high_real"]) == pytest.approx(
        ((rows["small"] + rows["many"]).min(), (rows["small"] + rows["many"]).max())
    )
    quotients = (rows["price"] / rows["small"]).astype(float)
    assert last["price / small"]["low_real"] <= quotients.min() <= quotients.max() <= last["price / small"]["high_real"]
    assert last["price / small"]["low_real"] == pytest.approx(quotients.min())
