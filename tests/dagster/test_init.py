"""``zorder init``: from Parquet and a log to a Dagster home, without Spark."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from dagster._core.instance import ref
from deltalake import DeltaTable

from tests.json_page import json_printed
from zorder_pipeline.assets import cut_off
from zorder_pipeline.cli import start
from zorder_pipeline.cli.entry import zorder
from zorder_pipeline.config import load_config
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.pipeline.rewriting.importing import table_from_parquet

pytestmark = pytest.mark.dagster


def run(*words: str | Path) -> dict[str, object]:
    done = CliRunner().invoke(zorder, ["init", *map(str, words), "--json"], catch_exceptions=True)
    if done.exception is not None:
        raise done.exception
    return json_printed("init", done.stdout)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    folder = tmp_path / "flights"
    folder.mkdir()
    for part in range(2):
        pq.write_table(pa.table({"day": [part] * 3, "carrier": ["a", "b", "c"]}), folder / f"{part}.parquet")
    (tmp_path / "log.sql").write_text("SELECT * FROM flights WHERE day = 1;\n")
    return tmp_path


def test_parquet_becomes_a_table_with_its_configuration(mine: Path) -> None:
    told = run(mine / "home", "--parquet", mine / "flights", "--partition-by", "day", "--log", mine / "log.sql")
    assert told["rows"] == 6
    table = DeltaTable(str(mine / "home" / "flights"))
    assert table.metadata().partition_columns == ["day"]
    assert sorted(table.to_pyarrow_table()["carrier"].to_pylist()) == ["a", "a", "b", "b", "c", "c"]
    config = load_config(mine / "home" / "tables.yaml")
    assert [found.name for found in config.tables] == ["flights"]
    assert (mine / "home" / "dagster.yaml").is_file()


@pytest.mark.parametrize(
    ("folder", "name", "aliases"),
    [
        ("orders.2024", "orders_2024", ["orders.2024"]),
        ("sales.orders", "sales_orders", ["sales.orders"]),
        ("plain", "plain", []),
    ],
)
def test_a_folder_s_name_is_taken_whole(mine: Path, folder: str, name: str, aliases: list[str]) -> None:
    """It was cut at its last dot: statements about `orders` taught the layout of the archive `orders.2024`."""
    table_from_parquet([mine / "flights"], mine / "lake" / folder)
    run(mine / "home", "--table", mine / "lake" / folder, "--log", mine / "log.sql")
    (table,) = load_config(mine / "home" / "tables.yaml").tables
    assert (table.name, list(table.aliases)) == (name, aliases)


def test_a_file_of_parquet_gives_the_table_its_name(mine: Path) -> None:
    (mine / "flights" / "0.parquet").rename(mine / "air.v2.parquet")
    assert (
        Path(str(run(mine / "home", "--parquet", mine / "air.v2.parquet", "--log", mine / "log.sql")["table"])).name
        == "air_v2"
    )


def test_metrics_of_a_home_without_a_night_are_counted(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, target = mine / "home", mine / "zorder.prom"
    run(home, "--parquet", mine / "flights", "--log", mine / "log.sql")
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    words = ["metrics", "--config", str(home / "tables.yaml"), "--out", str(target), "--json"]
    told = json_printed("metrics", CliRunner().invoke(zorder, words, catch_exceptions=False).stdout)
    assert told["figures"] == sum(not line.startswith("#") for line in target.read_text().splitlines())


def test_what_is_wrong_is_said_in_one_sentence(mine: Path) -> None:
    log = ("--log", mine / "log.sql")
    with pytest.raises(ZorderError, match="either --parquet"):
        run(mine / "home", *log)
    with pytest.raises(ZorderError, match=r"no column month; the files have day, carrier"):
        run(mine / "home", "--parquet", mine / "flights", "--partition-by", "month", *log)
    (mine / "empty").mkdir()
    with pytest.raises(ZorderError, match="no Parquet file in"):
        run(mine / "home", "--parquet", mine / "empty", *log)
    (mine / "bad.parquet").write_text("no")
    with pytest.raises(ZorderError, match="cannot be made a Delta table"):
        run(mine / "home", "--parquet", mine / "bad.parquet", *log)
    run(mine / "home", "--parquet", mine / "flights", *log)
    with pytest.raises(ZorderError, match="is there already; add the table to it"):
        run(mine / "home", "--table", mine / "home" / "flights", *log)


@pytest.mark.parametrize(
    ("home", "words", "sentence"),
    [
        (".", (), "flights is or holds .*flights, of which it is to be made, .*--name"),
        (".", ("--parquet", "flights/0.parquet", "--name", "flights"), "flights is or holds .*0.parquet, of which it"),
        ("flights", (), "flights/flights lies in .*flights, of which it .*name another HOME"),
        ("link", (), "link/flights lies in .*flights, of which it .*name another HOME"),
        (".", ("--name", "others"), "others is there already, and no empty folder; name another HOME, .* --name"),
    ],
    ids=["itself", "holds", "within", "link", "others"],
)
def test_a_folder_with_files_of_others_becomes_no_table(
    mine: Path, home: str, words: tuple[str, ...], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table lay among the files that it was made of: readers saw each row twice, and VACUUM deleted these files."""
    (mine / "others").mkdir()
    (mine / "others" / "notes.txt").touch()
    (mine / "link").symlink_to("flights/inner")
    monkeypatch.chdir(mine)
    before = sorted(mine.rglob("*"))
    with pytest.raises(ZorderError, match=sentence):
        run(home, *(() if "--parquet" in words else ("--parquet", "flights")), *words, "--log", "log.sql")
    assert sorted(mine.rglob("*")) == before


def test_a_table_that_was_not_made_leaves_nothing_and_is_made_anew(mine: Path) -> None:
    whole = (mine / "flights" / "1.parquet").read_bytes()
    (mine / "flights" / "1.parquet").write_bytes(whole[:4] + b"\xff" * 40 + whole[44:])
    words = (mine / "home", "--parquet", mine / "flights", "--log", mine / "log.sql")
    with pytest.raises(ZorderError, match="cannot be made a Delta table"):
        run(*words)
    assert not list((mine / "home").iterdir())
    (mine / "flights" / "1.parquet").write_bytes(whole)
    assert run(*words)["rows"] == 6
    (mine / "home" / "tables.yaml").unlink()
    with pytest.raises(ZorderError, match=r"holds a Delta table already; .* use it with --table"):
        run(*words)


def test_no_table_lies_in_a_folder_of_dagsters_or_of_ours(mine: Path) -> None:
    """Its files lay among Dagster's records, which a VACUUM of the table deletes."""
    home = str(mine / "home")
    defaults = [found for found in ref.InstanceRef.config_defaults(home).values() if found is not None]
    kept = [found.config_dict["base_dir"] for found in defaults if "base_dir" in found.config_dict]
    kept += [ref._defs_state_directory(home), str(mine / "home" / cut_off.FOLDER), str(mine / "home" / "state")]
    folders = {Path(place).relative_to(home).parts[0] for place in kept if place != home}
    assert folders == {*start.OURS, *start.DAGSTERS} - {"logs"}, "these are Dagster's telemetry's, where that is on"
    for name in (*start.OURS, *start.DAGSTERS, "History"):
        with pytest.raises(ZorderError, match=rf"^{name} is (our|Dagster's) name of something .* with --name"):
            run(home, "--parquet", mine / "flights", "--name", name, "--log", mine / "log.sql")
    assert not (mine / "home").exists()
    other = mine / "lake" / "history"
    table_from_parquet([mine / "flights"], other)
    assert run(home, "--table", other, "--log", mine / "log.sql")["table"] == str(other)


def table_of(mine: Path, *words: str | Path) -> tuple[DeltaTable, list[object]]:
    """The new table, and the columns it is said to be partitioned by."""
    told = run(mine / "home", *words, "--log", mine / "log.sql")
    columns = told["partition_by"]
    assert isinstance(columns, list)
    return DeltaTable(str(told["table"])), columns


@pytest.fixture
def by_day(tmp_path: Path) -> Path:
    """Parquet as Hive lays it out: the day is in the paths alone."""
    for day in ("2026-01-01", "2026-01-02", "__HIVE_DEFAULT_PARTITION__"):
        place = tmp_path / "flights" / f"day={day}" / "carrier=a%2Fb %C3%BC"
        place.mkdir(parents=True)
        pq.write_table(pa.table({"id": [1, 2]}), place / "part.parquet")
    (tmp_path / "log.sql").write_text("SELECT * FROM flights WHERE day = '2026-01-01';\n")
    return tmp_path


def test_columns_in_paths_are_columns_and_partition_the_table(by_day: Path) -> None:
    table, columns = table_of(by_day, "--parquet", by_day / "flights")
    assert columns == table.metadata().partition_columns == ["day", "carrier"]
    rows = table.to_pyarrow_table().sort_by([("day", "ascending"), ("id", "ascending")]).to_pylist()
    days = [date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 2), None, None]
    assert [row["day"] for row in rows] == days
    assert {row["carrier"] for row in rows} == {"a/b ü"}


def test_other_columns_may_partition_what_has_some_in_its_paths(by_day: Path) -> None:
    table, columns = table_of(by_day, "--parquet", by_day / "flights", "--partition-by", "carrier")
    assert columns == table.metadata().partition_columns == ["carrier"]
    assert {"day", "id"} < set(table.to_pyarrow_table().column_names)


def test_one_partition_alone_has_its_columns_too(by_day: Path) -> None:
    day = by_day / "flights" / "day=2026-01-01"
    table, columns = table_of(by_day, "--parquet", day, "--name", "flights")
    assert columns == ["day", "carrier"]
    assert set(table.to_pyarrow_table()["day"].to_pylist()) == {date(2026, 1, 1)}


def test_the_path_is_right_where_files_have_its_column_too(tmp_path: Path, mine: Path) -> None:
    (tmp_path / "f" / "k=7").mkdir(parents=True)
    pq.write_table(pa.table({"K": ["x"], "id": [1]}), tmp_path / "f" / "k=7" / "a.parquet")
    table, _ = table_of(mine, "--parquet", tmp_path / "f")
    assert table.to_pyarrow_table().to_pylist() == [{"id": 1, "k": 7}]


def test_paths_of_two_tables_are_refused(by_day: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), by_day / "flights" / "stray.parquet")
    with pytest.raises(ZorderError, match=r"stray.parquet have different columns in their paths \(day, carrier; none"):
        run(by_day / "home", "--parquet", by_day / "flights", "--log", by_day / "log.sql")


@pytest.mark.parametrize("inside", [".", "year=2026", "year=2026/a.parquet"])
def test_a_delta_table_is_not_taken_for_its_files(mine: Path, inside: str) -> None:
    table = mine / "lake" / "sales"
    (table / "_delta_log").mkdir(parents=True)
    (table / "_delta_log" / "0.json").touch()
    (table / "year=2026").mkdir()
    pq.write_table(pa.table({"id": [1]}), table / "year=2026" / "a.parquet")
    for source in (table / inside, mine / "lake"):
        with pytest.raises(ZorderError, match=f"{table} is a table of Delta.*--table {table} instead of --parquet"):
            run(mine / "home", "--parquet", source, "--log", mine / "log.sql")
    assert not (mine / "home" / "tables.yaml").exists()


def test_tables_of_other_formats_are_not_taken_for_their_files(mine: Path) -> None:
    (mine / "flights" / "metadata").mkdir()
    (mine / "flights" / "metadata" / "v1.metadata.json").touch()
    with pytest.raises(ZorderError, match="is a table of Iceberg"):
        run(mine / "home", "--parquet", mine / "flights", "--log", mine / "log.sql")


def test_what_failed_jobs_have_left_is_passed_over(mine: Path) -> None:
    for name in ("_temporary/0/x.parquet", ".hidden/x.parquet", ".x.parquet", "_x.parquet", "_SUCCESS"):
        (mine / "flights" / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"day": [9], "carrier": ["z"]}), mine / "flights" / name)
    (mine / "flights" / "b.parquet").mkdir()  # as Spark calls folders
    table, _ = table_of(mine, "--parquet", mine / "flights")
    assert table.to_pyarrow_table().num_rows == 6


def test_every_column_that_some_file_has_is_kept(mine: Path) -> None:
    day = pa.array([3_000_000_000], pa.int64())
    pq.write_table(pa.table({"day": pa.array([5], pa.int32())}), mine / "flights" / "0.parquet")
    pq.write_table(pa.table({"extra": [{"a": 1, "b": "x"}], "day": day}), mine / "flights" / "2.parquet")
    table, _ = table_of(mine, "--parquet", mine / "flights")
    rows = table.to_pyarrow_table().to_pylist()
    assert {"day": 5, "carrier": None, "extra": None} in rows
    assert {"day": 3_000_000_000, "carrier": None, "extra": {"a": 1, "b": "x"}} in rows
    assert len(rows) == 5


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (pa.table({"day": ["x"]}), r"column day is int64 in .*0.parquet and string in .*9.parquet"),
        (pa.table({"day": [0.5]}), r"column day is int64 in .*0.parquet and double in .*9.parquet"),
        (pa.table({"Day": [1]}), r"columns day in .*0.parquet and Day in .*9.parquet are one to Spark and Delta"),
        (pa.table({"at": pa.array([1], pa.time64("us"))}), r"column at is time64\[us\], which Delta has no type for"),
    ],
    ids=["text", "fractions", "capitals", "times"],
)
def test_columns_that_no_type_holds_are_refused_by_name(mine: Path, other: pa.Table, sentence: str) -> None:
    pq.write_table(other, mine / "flights" / "9.parquet")
    with pytest.raises(ZorderError, match=sentence):
        run(mine / "home", "--parquet", mine / "flights", "--log", mine / "log.sql")
