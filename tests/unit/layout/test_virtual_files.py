"""Virtual files: their columns' bytes against what a Parquet writer makes of all the rows, and which files are read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.virtual_files import files_read, pieces, virtual_file_bytes
from zorder_pipeline.model.ranges import Interval, Range
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType, canonical_array

ROWS, FILES = 60_000, 6


def written(folder: Path, column: pa.Array, codec: str) -> float:
    """Bytes of the column in ``FILES`` files of consecutive rows, with a dictionary where Spark's writer makes one."""
    dictionary = len(column.unique()) < 0.3 * len(column)
    total = 0
    for part in range(FILES):
        rows = column.slice(part * ROWS // FILES, ROWS // FILES)
        pq.write_table(pa.table({"c": rows}), folder / "x.parquet", compression=codec, use_dictionary=dictionary)
        total += pq.read_metadata(folder / "x.parquet").row_group(0).column(0).total_compressed_size
    return float(total)


def make(kind: str) -> tuple[pa.Array, str]:
    rng = np.random.default_rng(0)
    if kind == "few words":
        words = pa.array(["AIR", "RAIL", "SHIP", "TRUCK", "MAIL"])
        return pa.DictionaryArray.from_arrays(rng.integers(0, 5, ROWS), words).cast(pa.string()), "string"
    if kind == "random numbers":
        return pa.array(rng.integers(0, 1 << 62, ROWS)), "bigint"
    if kind == "doubles":
        return pa.array(rng.normal(size=ROWS)), "double"
    if kind == "dates":
        return pa.array(rng.integers(8000, 10500, ROWS).astype(np.int32), pa.date32()), "date"
    if kind == "sorted dates":
        return pa.array(np.sort(rng.integers(8000, 10500, ROWS)).astype(np.int32), pa.date32()), "date"
    if kind == "texts":
        heard = np.array(["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "he", "slept"])
        return pa.array([" ".join(words) for words in heard[rng.integers(0, 12, (ROWS, 6))]]), "string"
    return pa.array(rng.integers(0, 300, ROWS), mask=rng.random(ROWS) < 0.3), "bigint"


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
@pytest.mark.parametrize(
    "kind", ["few words", "random numbers", "doubles", "dates", "sorted dates", "texts", "numbers with nulls"]
)
def test_bytes_told_from_a_twentieth_of_the_rows_are_those_of_a_writer(tmp_path: Path, kind: str, codec: str) -> None:
    column, type_name = make(kind)
    actual = written(tmp_path, column, codec)
    chosen = np.sort(np.random.default_rng(1).choice(ROWS, ROWS // 20, replace=False))
    values, valid = canonical_array(column, ValueType.parse(type_name))
    file = chosen * FILES // ROWS
    told = virtual_file_bytes(
        values[chosen], valid[chosen], type_name, file, np.arange(len(chosen)), FILES, ROWS / len(chosen), codec
    )
    assert told.shape == (FILES,)
    assert told.sum() == pytest.approx(actual, rel=0.25 if kind == "sorted dates" else 0.12)


def test_a_column_takes_fewer_bytes_where_the_layout_sorts_it() -> None:
    rng = np.random.default_rng(0)
    values, valid = rng.integers(0, 5000, 6000), np.ones(6000, dtype=np.bool_)
    mixed, ranked = np.arange(6000) // 1000, np.argsort(np.argsort(values)) // 1000
    sizes = [
        virtual_file_bytes(values, valid, "bigint", file, np.lexsort((values, file)), 6, 100.0)
        for file in (mixed, ranked)
    ]
    assert sizes[1].sum() < 0.9 * sizes[0].sum()


def test_the_files_a_query_reads_are_those_the_estimator_counts_the_rows_of() -> None:
    rng = np.random.default_rng(0)
    columns = {name: (rng.integers(0, 1000, 5000), rng.random(5000) > 0.1) for name in ("a", "b")}
    schema = TableSchema((Column("a", "bigint"), Column("b", "bigint")))
    queries = []
    for i in range(40):
        low = int(rng.integers(0, 900))
        first = Range("a", "bigint", (Interval(low, low + 50),), nulls=i % 7 == 0)
        second = Range("b", "bigint", (Interval(low, low + 100),))
        queries.append(((first, second),) if i % 3 else ((first,), (second,)))
    estimator = Estimator.build(columns, schema, queries, 5000)
    file = rng.integers(0, 40, 5000).astype(np.int32)
    hits = files_read(estimator, file, 40)
    rows = np.bincount(file, minlength=40)
    assert np.array_equal(hits @ rows, estimator.rows_read(file, 40))


def test_row_groups_cut_each_file_in_the_order_of_its_rows() -> None:
    file, key = np.array([1, 0, 1, 0, 1, 1]), np.array([3, 1, 1, 0, 2, 0])
    order = np.lexsort((key, file))
    assert pieces(file, order, 2).tolist() == [3, 1, 2, 0, 3, 2]


def test_each_file_is_cut_into_a_number_of_its_own() -> None:
    file, key = np.array([1, 0, 1, 0, 1, 1, 2]), np.array([3, 1, 1, 0, 2, 0, 0])
    order = np.lexsort((key, file))
    assert pieces(file, order, np.array([1, 4, 1])).tolist() == [4, 0, 2, 0, 3, 1, 5]
