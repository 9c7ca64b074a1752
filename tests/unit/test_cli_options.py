"""What the command line refuses before it starts Spark, in one sentence."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import click
import numpy as np
import pytest
from rich.console import Console

from zorder_pipeline import config
from zorder_pipeline.cli import common, entry, learning, main, runs, targets
from zorder_pipeline.errors import ConfigError, ZorderError
from zorder_pipeline.model.candidate import COMPACTION
from zorder_pipeline.model.plan import Plan


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What a command says on stderr when it stops with an error."""
    monkeypatch.setattr(sys, "argv", ["zorder", *words])
    monkeypatch.setattr(common.err, "_file", sys.stderr)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (1, 2)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


@pytest.mark.parametrize(
    ("out", "sentence"),
    [
        ("nowhere/plan.json", "nowhere does not exist; make that folder first"),
        (".", ". is a folder; name a file in it"),
    ],
)
def test_a_plan_that_cannot_be_written_is_refused_before_it_is_learned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, out: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refused(capsys, monkeypatch, "layout", "--table", "/t", "--bits", "a:1", "--out", out)
    assert told.startswith(f"zorder: --out {out} cannot be written: ")
    assert sentence in told


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("triage", "--picture", "nowhere/x.png"), "--picture"),
        (("learn", "--table", "/t", "--log", "x.sql", "--out", "p.json", "--study", "nowhere/study.log"), "--study"),
    ],
)
def test_other_files_are_refused_alike_and_no_folder_is_made(
    words: tuple[str, ...],
    option: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refused(capsys, monkeypatch, *words)
    assert told.startswith(f"zorder: {option} {words[-1]} cannot be written: ")
    assert "nowhere does not exist; make that folder first" in told
    assert not list(tmp_path.iterdir())


def test_a_column_without_a_name_gets_no_filters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("layout", "--table", "/t", "--bits", "a:3", "--out", str(tmp_path / "p.json"))
    told = refused(capsys, monkeypatch, *words, "--bloom-filters", "a,,b")
    assert told.startswith(
        "zorder: --bloom-filters 'a,,b' names a column without a name; give names, e.g. order_id,email"
    )
    assert [learning._filtered(None, option, value) for option, value in _FILTERS] == [
        None,
        (),
        (),
        ("a", "b c", "d,e"),
    ]


_FILTERS = [
    (click.Option(["--bloom-filters"], default=default), value)
    for default, value in (("auto", "auto"), ("auto", "none"), ("none", "none"), ("none", "a, `b c`,`d,e`"))
]


def test_a_file_that_holds_no_study_is_refused_and_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, words = tmp_path / "keep.txt", ("learn", "--table", "/t", "--log", "x.sql", "--out", str(tmp_path / "p.json"))
    kept.write_text("hello\nworld")
    told = refused(capsys, monkeypatch, *words, "--study", str(kept))
    assert told.startswith(f"zorder: --study {kept} is no Optuna journal: its line 1 is no entry of one; ")
    assert kept.read_text() == "hello\nworld"


@pytest.mark.parametrize(
    ("study", "sentence"),
    [
        (
            "sqlite:////nowhere/dir/x.db",
            "--study sqlite:////nowhere/dir/x.db cannot be written: /nowhere/dir does not exist; make that",
        ),
        ("mysql+none://u:secret@host/x", "--study mysql+none://u:***@host/x is no URL of a database; write "),
    ],
)
def test_a_database_that_no_study_can_be_kept_in_is_refused(
    study: str, sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(
        capsys, monkeypatch, "learn", "--table", "/t", "--log", "x.sql", "--out", "/tmp/p.json", "--study", study
    )
    assert told.startswith(f"zorder: {sentence}")


@pytest.mark.parametrize(("command", "option"), [("demo", "--workdir"), ("bench", "--out")], ids=["demo", "bench"])
def test_a_file_is_no_place_for_a_folder(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.txt").touch()
    told = refused(capsys, monkeypatch, command, option, str(tmp_path / "f.txt"))
    assert f"Invalid value for '{option}'" in told
    assert "is a file" in told


@pytest.mark.parametrize(("command", "option"), [("demo", "--workdir"), ("bench", "--out")], ids=["demo", "bench"])
def test_a_folder_below_a_file_is_refused_before_anything_is_made(
    command: str, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f.txt").touch()
    place = tmp_path / "f.txt" / "below"
    told = refused(capsys, monkeypatch, command, option, str(place))
    assert told == f"zorder: {option}: the folder {place} cannot be written: not a directory; choose another place\n"


def test_a_seed_below_zero_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = refused(capsys, monkeypatch, "learn", "--table", "/t", "--log", "x.sql", "--out", "p.json", "--seed", "-1")
    assert "Invalid value for '--seed'" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("day:99",), "day:99 asks for more bits than a column has; give 1 to 16"),
        (("day:9,day:9",), "--bits 'day:9,day:9' names day twice; give each column its bits once"),
        (("day:13", "--encoding", "bits"), "day:13 asks for more than 12 raw bits; use --encoding rank"),
        (("a:16,b:16,c:16,d:16",), "64 bits are asked for in all; a key has at most 61 with curve interleave"),
        (("a:9,b:9", "--curve", "hilbert"), "18 bits are asked for in all; a key has at most 16 with curve hilbert"),
        (
            ("a:9,b:1,c:1,d:1,e:1,f:1,g:1", "--curve", "hilbert"),
            (
                "curve hilbert counts each of 7 columns with the bits of the finest, 63 in all of at most 62; "
                "give them more equal bits, or take curve gray"
            ),
        ),
    ],
)
def test_more_bits_than_there_can_be_are_refused(
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plan = str(tmp_path / "p.json")
    told = refused(capsys, monkeypatch, "layout", "--table", "/t", "--out", plan, "--bits", *words)
    assert told == f"zorder: {sentence}\n"


def test_an_unknown_time_zone_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    told = refused(capsys, monkeypatch, "ingest", "--log", "x.sql", "--time-zone", "Europe/Berlln")
    assert told == "zorder: --time-zone must be a time zone name such as Europe/Berlin, not Europe/Berlln\n"


def test_a_java_home_without_java_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from pyspark.sql import SparkSession

    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = refused(capsys, monkeypatch, "inspect", "--table", "/t")
    assert f"JAVA_HOME={tmp_path} holds no bin/java; set it to a Java 17 or newer" in told


def test_without_a_command_the_help_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = refused(capsys, monkeypatch)
    assert told.startswith("Usage: zorder")
    assert "\n  learn " in told


def test_a_table_that_is_not_there_stops_no_run_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "tables.yaml"
    place.write_text("query_logs: [{path: nolog}]\ntables: [{name: a, location: nowhere}]\n")
    assert [table.name for table in runs._configuration(str(place)).tables] == ["a"]
    monkeypatch.setenv("ZORDER_CONFIG", str(place))
    assert runs._configuration(None).tables[0].location == f"{tmp_path}/nowhere"


def test_of_the_example_it_is_said_that_it_is_that(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "tables.yaml").write_text("tables: [{name: a, location: nowhere}]\n")
    for name in ("ZORDER_CONFIG", "DAGSTER_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(config, "config_file", lambda: tmp_path / "tables.yaml")
    with pytest.raises(ConfigError, match="which does not exist; that is the example of zorder demo"):
        runs._configuration(None)
    (tmp_path / "nowhere").mkdir()
    runs._configuration(None)
    assert capsys.readouterr().err == (
        f"this is the example of zorder demo, {tmp_path}/tables.yaml: name your own with --config\n"
    )
    runs._configuration(str(tmp_path / "tables.yaml"))
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "give one of --table, --sql and --file: a scan of one table, or"),
        (
            ("--table", "/t", "--sql", "SELECT 1"),
            "give one of --table, --sql and --file: a scan of one table, or",
        ),
        (
            ("--sql", "SELECT 1", "--where", "a = 1"),
            "--where means nothing without --table; write it into the query",
        ),
        (
            ("--file", "q.sql", "--version", "0"),
            "--version means nothing without --table; write it into the query",
        ),
        (("--file", "none.sql"), "--file none.sql cannot be read: no such file or directory; name a file that holds"),
        (("--file", "."), "--file . cannot be read: is a directory; name a file that holds one query"),
        (("--file", "blank.sql"), "--file blank.sql is empty; write one query into it"),
        (("--file", "latin.sql"), "--file latin.sql is no text in UTF-8; save it as that"),
        (("--table", "/t", "--state", "none"), "the state none does not exist; name the folder that `state` in"),
    ],
)
def test_what_is_to_be_explained_is_said_once(
    words: tuple[str, ...],
    sentence: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blank.sql").write_text("\n ")
    (tmp_path / "latin.sql").write_bytes("SELECT 'Ä'".encode("latin-1"))
    assert refused(capsys, monkeypatch, "explain", *words).startswith(f"zorder: {sentence}")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
def test_every_option_that_takes_a_fraction_takes_finite_numbers_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: str
) -> None:
    asked = [
        (name, option.opts[0])
        for name, command in entry.zorder.commands.items()
        for option in command.params
        if isinstance(option.type, click.FloatRange | type(click.FLOAT))
    ]
    assert len(asked) >= 9
    for command, option in asked:
        told = refused(capsys, monkeypatch, command, f"{option}={number}")
        assert f"Invalid value for '{option}'" in told
        assert f"{number} is no finite number" in told or "is not in the range" in told


def test_printed_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    def figures() -> common.Payload:
        "Figures."
        return {"net": np.float64("nan"), "days": (float("inf"), np.int64(3)), "deep": {"a": [float("-inf"), 1.5]}}

    common.command(figures).main(["--json"], standalone_mode=False)
    printed = capsys.readouterr().out.splitlines()[-1]
    assert json.loads(printed, parse_constant=pytest.fail) == {
        "net": None,
        "days": [None, 3],
        "deep": {"a": [None, 1.5]},
    }


def test_bits_are_of_columns_whose_names_may_hold_commas() -> None:
    assert learning._bits("`st ct`.`x.y`:4, `c,d:4` : 3,e:1") == {"`st ct`.`x.y`": 4, "`c,d:4`": 3, "e": 1}


@pytest.mark.parametrize(
    ("bits", "told"),
    [("a:4,b:1,a:3", "names a twice"), ("a:4,,b:1", "'' is not column:bits"), ("`a,b:3", "'`a' is not column:bits")],
)
def test_bits_that_are_none_are_refused(bits: str, told: str) -> None:
    with pytest.raises(ZorderError, match=told):
        learning._bits(bits)


def test_a_file_for_which_there_is_no_room_is_named() -> None:
    with pytest.raises(ZorderError, match=r"^--picture /dev/full cannot be written: no space left on device; choose"):
        targets.write_file("/dev/full", b"drawn", "--picture")


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (Plan("/t", "id", "hash", 0, None, "learned", 100), "; there is nothing to apply\n"),
        (Plan("/t", "id", "hash", 0, None, "learned", 100, action=COMPACTION), "; apply it with: zorder apply\n"),
    ],
)
def test_a_plan_that_does_nothing_is_not_to_be_applied(
    plan: Plan, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = io.StringIO()
    monkeypatch.setattr(learning, "out", Console(file=page, width=200))
    learning._told(plan, str(tmp_path / "plan.json"), "zorder apply")
    assert page.getvalue().endswith(told)
