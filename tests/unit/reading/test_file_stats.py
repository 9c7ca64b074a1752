"""Statistics are matched with files by path and deletion vector; in doubt a file has none."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.reading import file_stats
from zorder_pipeline.reading.aligned import aligned
from zorder_pipeline.reading.believed import believed
from zorder_pipeline.reading.file_numbers import same_files
from zorder_pipeline.reading.file_stats import FileStats
from zorder_pipeline.reading.footers import read_footers
from zorder_pipeline.reading.gather import STATS
from zorder_pipeline.reading.gathered import STORED, Gathered, counts_in, zoned

A = Feature("a", "column", "int", "`a`", ("a",), True)
E = Feature("a + 1", "expression", "int", "a + 1", ("a",))


def _gathered(*rows: tuple[Feature, str, str, str, int, int]) -> Gathered:
    """Rows of feature, path, vector, session, low and high."""
    fields = {field.name: [None] * len(rows) for field in STATS}
    table = pa.table({name: pa.array(values, STATS.field(name).type) for name, values in fields.items()})
    columns = list(zip(*rows, strict=True))
    filled = {
        "feature": pa.array([f.name for f in columns[0]]), "kind": pa.array([f.kind for f in columns[0]]),
        "type": pa.array([f.type for f in columns[0]]), "sql": pa.array([f.sql for f in columns[0]]),
        "nulls": pa.array([0] * len(rows), pa.int64()),
        "columns": pa.array(['{"a": "col-1"}'] * len(rows)),
        "rows": pa.array([10] * len(rows), pa.int64()), "low_whole": pa.array(columns[4], pa.int64()),
        "high_whole": pa.array(columns[5], pa.int64()),
    }  # fmt: skip
    for name, values in filled.items():
        table = table.set_column(table.column_names.index(name), name, values)
    for name, values in (("path", columns[1]), ("vector", columns[2]), ("session", columns[3])):
        table = table.append_column(name, pa.array(values, pa.string()))
    return Gathered(table)


def test_only_statistics_of_the_present_vector_or_of_none_count() -> None:
    gathered = _gathered(
        (A, "f1", "", "", 1, 2), (A, "f2", "", "", 3, 9), (A, "f2", "u@v", "", 4, 5), (A, "f3", "u@old", "", 6, 7),
        (A, "gone", "", "", 8, 8),
    )  # fmt: skip
    (found,) = aligned(gathered, [A], ["f3", "f2", "f1", "new"], ["u@w", "u@v", "u@x", ""], "s")
    assert found.zones.known.tolist() == [False, True, True, False]
    assert found.zones.low[1:3].tolist() == [4, 1]  # the exact vector's before those without one
    assert found.zones.null_count.tolist() == [-1, 0, 0, -1]


def test_since_when_statistics_are_kept_is_told_also_once_the_first_ones_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of a merge past midnight all rows were of the new day: what others appended the day before had none."""
    held, began = Gathered(_stored("old", 1)), dt.date(2024, 1, 2)
    wrote: list[pa.Table] = []
    monkeypatch.setattr(file_stats, "made_changeable", lambda _spark, _path, change: change())
    monkeypatch.setattr(FileStats, "load", lambda *_, **__: held)
    monkeypatch.setattr(FileStats, "_write", lambda *_: None)
    monkeypatch.setattr(FileStats, "_wrote", lambda _self, _table, rows: wrote.append(rows))
    for version, path in ((2, "new"), (3, "newer")):
        rows = _stored(path, version)
        stats = rows.rename_columns(["file" if name == "path" else name for name in rows.column_names])
        store = FileStats(None, "/state")  # type: ignore[arg-type]
        assert store.update("t", version, "here", stats.select(STATS.names), {path: ""}, {"a": "col-1"}) == (1, 1)
        held = Gathered(wrote[-1])
        assert held.rows["path"].to_pylist() == [path]
        assert held.rows["stats_date"].to_pylist() > [began]
        assert held.since() == began
    assert Gathered(STORED.empty_table()).since() is None


def _stored(path: str, version: int) -> pa.Table:
    """A row as the state has it, of 2 January 2024, before rows told since when there are any."""
    (row,) = _gathered((A, path, "", "", 1, 2)).rows.to_pylist()
    row |= {"version": version, "stats_date": dt.date(2024, 1, 2), "schema_version": 2}
    return pa.Table.from_pylist([{name: row.get(name) for name in STORED.names}], STORED)


def test_what_was_gathered_last_comes_first_and_of_that_what_is_newest() -> None:
    """A relayout's new files have statistics of all that are kept, gathered of one version: 48 of these are kept."""
    names = ["old", "b", "a", "new"]
    rows = _gathered(*((replace(A, name=name), "f", "", "", 1, 2) for name in [*names, *names[1:]]))
    held = Gathered(rows.rows.append_column("version", pa.array([1, 1, 1, 2, 3, 3, 3], pa.int64())))
    assert [feature.name for feature in held.features()] == ["new", "a", "b", "old"]


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(
            [A, replace(A, sql="a"), replace(A, name="b"), E, replace(E, sql="a + 2"), replace(E, name="x")]
        ),
        st.sampled_from(["f1", "f2", "f3"]),
        st.sampled_from(["", "u@v"]),
        st.sampled_from(["", "here", "elsewhere"]),
        st.booleans(),
    ),
    max_size=30,
)
_ASKED = st.lists(st.sampled_from([A, replace(A, equality=False), replace(A, name="b"), E, replace(E, equality=True)]))


@given(_ROWS, _ASKED)
def test_a_file_is_complete_that_has_rows_of_all_that_is_asked(
    told: list[tuple[Feature, str, str, str, bool]], asked: list[Feature]
) -> None:
    """Against the rows one by one."""
    gathered = Gathered(STORED.empty_table())
    if told:
        rows = _gathered(*((*row[:4], 1, 2) for row in told)).rows
        rows = rows.set_column(rows.column_names.index("sought"), "sought", pa.array([row[4] for row in told]))
        gathered = Gathered(rows)

    def has(file: tuple[str, str], one: Feature) -> bool:
        return any(
            (row[1], row[2]) == file
            and row[3] in ("", "here")
            and (row[0].name, row[0].kind) == (one.name, one.kind)
            and (one.kind == "column" or row[0].sql == one.sql)
            and (row[4] or not one.equality)
            for row in told
        )

    files = {(row[1], row[2]) for row in told if row[3] in ("", "here")}
    assert gathered.complete(asked, "here") == {file for file in files if all(has(file, one) for one in asked)}


def test_values_that_one_of_two_runs_looked_for_count() -> None:
    """Of two that gather the same at once both rows stay, in any order."""
    rows = _gathered((A, "f1", "", "", 1, 2), (A, "f1", "", "", 1, 2)).rows
    places = [np.array([3, 7], dtype="<u2").tobytes(), None]
    for told in (places, places[::-1]):
        index = rows.column_names.index("places")
        given = Gathered(rows.set_column(index, "places", pa.array(told, pa.binary())))
        (found,) = aligned(given, [A], ["f1"], [""], "s")
        assert found.filtered is not None
        assert found.filtered.tolist() == [True]


def test_expressions_of_another_session_do_not_count() -> None:
    gathered = _gathered((E, "f1", "", "zone UTC", 1, 2), (A, "f1", "", "", 0, 1))
    assert [item.feature for item in aligned(gathered, [A, E], ["f1"], [""], "zone Asia/Tokyo")] == [A]
    assert [item.feature for item in aligned(gathered, [A, E], ["f1"], [""], "zone UTC")] == [A, E]
    otherwise = [replace(one, sql="a + 1L") for one in (A, E)]  # a column's text is where it lies, and no meaning
    assert [item.feature.kind for item in aligned(gathered, otherwise, ["f1"], [""], "zone UTC")] == ["column"]


@pytest.mark.parametrize(
    "sql",
    [
        "HOUR(a)", "MINUTE(a) = 3", "SECOND(a)", "EXTRACT(HOUR FROM a)", "DATE_TRUNC('HOUR', a)",
        "MONTHS_BETWEEN(a, b)", "a + INTERVAL '1' HOUR", "DATEDIFF(HOUR, a, b)", "DATE_ADD(MONTH, 1, a)",
        "CAST(a AS TIMESTAMP)", "TO_DATE(a, 'yyyyMMdd')", "FROM_UNIXTIME(a)", "DATE_FORMAT(a, 'HH')",
        "UNIX_SECONDS(a)", "TO_CHAR(a, 'HH')",
    ],
)  # fmt: skip
def test_instants_of_texts_and_dates_do_not_count_by_other_rules_of_time_zones(sql: str) -> None:
    """Spark makes them of any column."""
    of_old, of_any = "zone Asia/Almaty, zone rules 2023c", "zone Asia/Almaty"
    feature = replace(E, name=sql, sql=sql)
    rows = _gathered((feature, "f1", "", of_old, 1, 2), (feature, "f2", "", of_any, 1, 2)).rows
    assert zoned(rows).to_pylist() == [True, True]
    assert counts_in(rows, of_old).to_pylist() == [True, False]
    assert counts_in(rows, "zone Asia/Almaty, zone rules 2024a").to_pylist() == [False, False]


@pytest.mark.parametrize("sql", ["UPPER(a)", "YEAR(a)", "DATE_ADD(a, 3)", "DATEDIFF(a, b)", "a LIKE '%late%'", "a"])
def test_what_makes_no_instant_counts_by_any_rules_of_time_zones(sql: str) -> None:
    rows = _gathered((replace(E, name=sql, sql=sql), "f1", "", "zone Asia/Almaty", 1, 2)).rows
    assert counts_in(rows, "zone Asia/Almaty, zone rules 2024a").to_pylist() == [True]


@pytest.mark.parametrize(
    "nonsense",
    [
        *(
            {name: None}
            for name in ("path", "vector", "session", "feature", "kind", "type", "columns", "rows", "nulls")
        ),
        *({"columns": text} for text in ("{nonsense", "[1, 2]", "5", "", '{"a": 1}')),
        *(
            {"rows": 0},
            {"rows": -5},
            {"nulls": None},
            {"nulls": -2},
            {"nulls": 11},
            {"kind": "nonsense"},
            {"places": b"abc"},
            {"places": b"a"},
        ),
        *({"high_whole": None}, {"low_whole": 3}, {"low_real": 1.0}, {"low_text": "b", "high_text": "a"}),
    ],
)
def test_a_row_that_nobody_of_us_wrote_is_not_believed(nonsense: dict[str, object]) -> None:
    """By bounds of no rows a file would be left out, and what is no JSON was a raw error."""
    (row,) = _gathered((A, "f1", "", "", 1, 2)).rows.to_pylist()
    null = {"low_whole": None, "high_whole": None, "rows": 1, "nulls": 1, "places": b"ab"}
    rows = [row, row | nonsense, row | null]
    table = pa.Table.from_pylist([{name: one.get(name) for name in STORED.names} for one in rows], STORED)
    assert believed(table).to_pylist() == [table.to_pylist()[0], table.to_pylist()[2]]
    assert believed(table.slice(0, 1)).num_rows == 1
    assert believed(table.slice(0, 0)).num_rows == 0


def test_a_name_that_means_another_column_now_has_no_statistics() -> None:
    gathered = _gathered((A, "f1", "", "", 0, 1))
    assert len(gathered.under({"a": "col-1", "b": "col-2"})) == 1
    assert len(gathered.under({"a": "col-2", "old": "col-1"})) == 0


def test_files_are_recognised_by_their_whole_path() -> None:
    paths = ["p=1/part-0.parquet", "p=2/part-0.parquet", "p=a%20b/x%25y.parquet", "file:/elsewhere/z.parquet"]
    uris = [
        "file:///t/p=2/part-0.parquet",
        "file:///elsewhere/z.parquet",
        "file:///t/p=a%20b/x%25y.parquet",
        "s3://o/q",
    ]
    assert same_files(uris, "file:/t", paths) == [paths[1], paths[3], paths[2], None]


@pytest.mark.parametrize("name", ["a b", "a%20b", "a%b"])
def test_a_folder_that_looks_encoded_is_none(tmp_path: Path, name: str) -> None:
    """Hadoop writes a table's location as it is; file names of Spark's scans and of AddFile actions are encoded."""
    assert same_files([f"file:///t/{quote(name)}/x%20y.parquet"], f"file:/t/{name}", ["x%20y.parquet"]) == [
        "x%20y.parquet"
    ]
    folder = tmp_path / name
    folder.mkdir()
    pq.write_table(pa.table({"a": [1, 2, 3]}), folder / "x y.parquet")
    assert read_footers(f"file:{folder}", ["x%20y.parquet"]).complete
