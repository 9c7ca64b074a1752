"""The command line on a table the project has never seen: the contract's keys, a second apply, errors."""

import datetime as dt
import json
import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from tests.json_page import json_printed
from zorder_pipeline.cli import common, main

ROWS, FILES = 24_000, 12


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, str]:
    """A table written by delta-rs in arrival order, a log of narrow look-ups, and a log of nothing that helps."""
    root = tmp_path_factory.mktemp("flights")
    rng = np.random.default_rng(4)
    carriers = np.array(["AA", "DL", "UA", "WN", "B6", None], dtype=object)
    day0 = dt.datetime(2024, 1, 1)
    minutes = np.sort(rng.integers(0, 300 * 1440, ROWS))
    table = pa.table(
        {
            "departure": pa.array([day0 + dt.timedelta(minutes=int(m)) for m in minutes], pa.timestamp("us")),
            "carrier": pa.array(carriers[rng.integers(0, 6, ROWS)]),
            "tail": pa.array([f"N{n:05d}" for n in rng.integers(0, 3000, ROWS)]),
            "distance": pa.array(rng.integers(50, 5000, ROWS), pa.int32()),
            "delay": pa.array(np.where(rng.random(ROWS) < 0.05, np.nan, rng.normal(8, 30, ROWS))),
            "cancelled": pa.array(rng.random(ROWS) < 0.02),
        }
    )
    path = root / "flights"
    for part in range(FILES):
        write_deltalake(path, table.slice(part * ROWS // FILES, ROWS // FILES), mode="append")
    statements = []
    for i in range(160):
        distance, tail = int(rng.integers(50, 4900)), int(rng.integers(0, 3000))
        where = (
            f"distance BETWEEN {distance} AND {distance + 60}" if i % 3 else f"tail = 'N{tail:05d}' AND NOT cancelled"
        )
        statements.append(f"SELECT avg(delay) FROM prod.air.flights_v2 f WHERE {where} -- {i}")
    log = root / "queries.jsonl"
    log.write_text("".join(json.dumps({"statement": s}) + "\n" for s in statements) + "{broken\n")
    useless = root / "useless.sql"
    useless.write_text("SELECT 1; SELECT * FROM elsewhere WHERE x = 1; CREATE TABLE t (a int);")
    return str(path), str(log), str(useless)


def zorder(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, dict, str]:
    """Exit code, the JSON object of the last line (with docs/json.md's keys), and stderr of a command run here."""
    monkeypatch.setattr(sys, "argv", ["zorder", *words])
    monkeypatch.setattr(common.err, "_file", sys.stderr)
    monkeypatch.setattr(common.out, "_file", sys.stdout)
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    shown = capsys.readouterr()
    return code, json_printed(words[0], shown.out) if "--json" in words and not code else {}, shown.err


def test_learn_apply_evaluate_inspect(
    spark: SparkSession,
    flights: tuple[str, str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path, log, _ = flights
    source = ("--table", path, "--log", log, "--alias", "flights_v2", "--json")
    plan = str(tmp_path / "plan.json")
    rows = sorted(map(str, spark.read.format("delta").load(path).collect()))
    schema = spark.read.format("delta").load(path).schema

    code, before, _ = zorder(capsys, monkeypatch, "evaluate", *source)
    assert code == 0
    assert (before["queries"], before["files"], before["rows"], before["unusable"]) == (160, FILES, ROWS, 1)
    assert before["rows_read_fraction"] > 0.9
    assert 0 < before["matched_fraction"] < 0.02
    assert 0 < before["row_groups_read_fraction"] <= 1

    code, learned, _ = zorder(capsys, monkeypatch, "learn", *source, "--trials", "60", "--out", plan)
    assert code == 0
    assert {"layout", "predicted", "baselines", "trials", "seconds"} <= learned.keys()
    assert set(learned["layout"]["bits"]) == {"distance", "tail"}
    assert learned["predicted"]["validation_fraction"] < 0.6

    apply = ("apply", "--table", path, "--plan", plan, "--json")
    code, dry, _ = zorder(capsys, monkeypatch, *apply, "--force", "--dry-run")
    assert (dry["decision"], dry["files_removed"], DeltaTable(path).version()) == ("applied", FILES, FILES - 1)
    code, done, _ = zorder(capsys, monkeypatch, *apply, "--force")
    assert (code, done["decision"], done["rows"], done["files_removed"]) == (0, "applied", ROWS, FILES)
    assert done["version"] == DeltaTable(path).version() == FILES
    code, again, _ = zorder(capsys, monkeypatch, *apply, "--force")
    assert (code, again["decision"], DeltaTable(path).version()) == (0, "nothing_to_do", FILES)

    code, after, _ = zorder(capsys, monkeypatch, "evaluate", *source)
    assert after["files"] == done["files_added"]
    assert after["rows_read_fraction"] == pytest.approx(learned["predicted"]["validation_fraction"], rel=0.25)
    assert after["matched_fraction"] == before["matched_fraction"]
    assert sorted(map(str, spark.read.format("delta").load(path).collect())) == rows
    assert spark.read.format("delta").load(path).schema == schema

    code, seen, _ = zorder(capsys, monkeypatch, "inspect", "--table", path, "--json")
    assert (seen["files"], seen["clustered_fraction"]) == (done["files_added"], 1.0)
    assert list(seen["layouts"]) == [learned["layout"]["layout_id"]]

    code, back, _ = zorder(capsys, monkeypatch, "rollback", "--table", path, "--json")
    assert (code, back["restored_version"]) == (0, FILES - 1)


def test_ingest_counts_every_line(
    flights: tuple[str, str, str], capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, found, _ = zorder(capsys, monkeypatch, "ingest", "--log", flights[1], "--json")
    assert (code, found["lines"], found["used"], found["quarantined"]) == (0, 161, 160, 1)
    assert found["lines"] == found["used"] + found["ignored"] + found["quarantined"]
    assert found["reasons"] == {"malformed_json": 1}


@pytest.mark.parametrize("curve", ["interleave", "gray", "sequence", "hilbert"])
def test_a_layout_by_hand_is_declined_without_force(
    spark: SparkSession,
    flights: tuple[str, str, str],
    tmp_path: Path,
    curve: str,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = str(tmp_path / "plan.json")
    words = (
        "layout",
        "--table",
        flights[0],
        "--bits",
        "distance:4,departure:2",
        "--curve",
        curve,
        "--out",
        plan,
        "--json",
    )
    code, made, _ = zorder(capsys, monkeypatch, *words)
    assert code == 0
    assert sum(made["layout"]["bits"].values()) == 6
    version = DeltaTable(flights[0]).version()
    code, declined, _ = zorder(capsys, monkeypatch, "apply", "--table", flights[0], "--plan", plan, "--json")
    assert (code, declined["decision"]) == (0, "declined")
    assert declined["reasons"][0].startswith("no workload")
    assert DeltaTable(flights[0]).version() == version
    if curve == "hilbert":
        code, done, _ = zorder(capsys, monkeypatch, "apply", "--table", flights[0], "--plan", plan, "--force", "--json")
        assert (done["decision"], done["rows"]) == ("applied", ROWS)


@pytest.mark.slow
def test_the_size_of_row_groups_reaches_the_files(
    spark: SparkSession,
    flights: tuple[str, str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan, table = str(tmp_path / "plan.json"), ("--table", flights[0])
    code, _, _ = zorder(capsys, monkeypatch, "layout", *table, "--bits", "delay:3", "--out", plan)
    assert code == 0
    words = ("apply", *table, "--plan", plan, "--force", "--full", "--json")

    def row_groups(*option: str) -> list[int]:
        code, done, told = zorder(capsys, monkeypatch, *words, *option)
        assert (code, done.get("rows")) == (0, ROWS), told
        return [
            pq.read_metadata(file.removeprefix("file://")).num_row_groups for file in DeltaTable(flights[0]).file_uris()
        ]

    assert set(row_groups()) == {1}
    assert min(row_groups("--row-group-bytes", "8192")) > 1
    assert set(row_groups()) == {1}, "the setting lasts for one rewrite"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("learn", "--log", "{useless}", "--out", "{plan}"), "no usable query of .* among 3 statements"),
        (("learn", "--log", "/nowhere.jsonl", "--out", "{plan}"), "query log /nowhere.jsonl does not exist"),
        (("evaluate", "--log", "{useless}"), "none of the 3 statements reads .* 1 time; if the log calls .* --alias"),
        (
            ("learn", "--log", "{whole}", "--out", "{plan}"),
            "1 statement: 1 query scans it and none has a condition",
        ),
        (("evaluate", "--log", "{garbage}"), r"1 line cannot be used \(1: no SQL of the dialect.*another --dialect"),
        (("stats", "--log", "{whole}", "--state", "{plan}"), "of all that the log's 1 query of it filter by"),
        (("stats", "--log", "{useless}", "--state", "{plan}"), "none of the log's 3 statements reads it; .* --alias"),
        (("stats", "--state", "{plan}"), "none.json holds no query; record .*, or name one with --log, or a plan with"),
        (("apply", "--plan", "{plan}"), "there is no plan .*write one with zorder learn"),
        (("layout", "--bits", "speed:3", "--out", "{plan}"), "column speed is not in .*; it has departure, carrier"),
        (("layout", "--bits", "carrier", "--out", "{plan}"), "'carrier' is not column:bits"),
        (
            ("learn", "--log", "{log}", "--target-file-rows", "9", "--target-file-bytes", "2000", "--out", "{plan}"),
            "not both",
        ),
    ],
)
def test_what_cannot_be_done_gets_one_sentence_and_changes_nothing(
    spark: SparkSession,
    flights: tuple[str, str, str],
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    places = {"useless": flights[2], "plan": str(tmp_path / "none.json"), "log": flights[1]}
    for name, statement in (("whole", "SELECT * FROM flights"), ("garbage", "SELECT * FROM flights WHERE a !> 7")):
        places[name] = str(tmp_path / f"{name}.sql")
        Path(places[name]).write_text(f"{statement};\n")
    version = DeltaTable(flights[0]).version()
    command, *rest = (word.format(**places) for word in words)
    code, _, told = zorder(capsys, monkeypatch, command, "--table", flights[0], *rest)
    assert code == 1
    last = told.strip().splitlines()[-1]
    assert last.startswith("zorder: ")
    assert re.search(sentence, last)
    assert "Traceback" not in told
    assert DeltaTable(flights[0]).version() == version


def test_a_missing_table_gets_one_sentence(
    spark: SparkSession, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, told = zorder(capsys, monkeypatch, "inspect", "--table", "/no/such/table")
    assert code == 1
    assert "/no/such/table is no Delta table" in told
