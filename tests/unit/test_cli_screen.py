"""What the terminal shows of names and statements is what they are, never markup."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.table import Table

from tests.json_page import json_printed
from zorder_pipeline.cli import common, main
from zorder_pipeline.cli.screen import Screen

NASTY = ("[/b]", "orders[eu]", ":smile:", "[red]x[/red]")


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "log.sql").write_text("".join(f"SELECT a FROM `{name}` WHERE a > 3;\n" for name in NASTY))
    return str(tmp_path / "log.sql")


def _shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["zorder", *words])
    monkeypatch.setattr(common.out, "_file", sys.stdout)
    monkeypatch.setattr(common.out, "quiet", False)
    monkeypatch.setattr(common.err, "_file", sys.stderr)
    main()
    return capsys.readouterr().out


def test_names_of_a_log_are_no_markup(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = _shown(monkeypatch, capsys, "ingest", "--log", log)
    assert all(f"What is asked of {name}" in told and f"\n{name} " in told for name in NASTY)


def test_nothing_is_rendered_beside_json(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rendered(*_: object) -> None:
        raise AssertionError("a table was rendered")

    monkeypatch.setattr(Table, "__rich_console__", rendered)
    told = _shown(monkeypatch, capsys, "ingest", "--log", log, "--json")
    assert set(json_printed("ingest", told)["tables"]) == set(NASTY)


@pytest.mark.parametrize("text", NASTY)
def test_every_kind_of_line_shows_text_as_it_is(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common.out, "_file", sys.stdout)
    monkeypatch.setattr(common.out, "quiet", False)
    monkeypatch.setattr(common.err, "_file", sys.stderr)
    common.print_figures(text, [(text, text)])
    common.print_columns(text, (text, text), [(text, text)], best=text)
    common.out.print(f"- {text}", soft_wrap=True)
    common.Progress()(text)
    shown = capsys.readouterr()
    assert (shown.out.count(text), shown.err.count(text)) == (9, 1)


def test_a_log_cannot_drive_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Escape sequences in a table's name: one clears the screen, one sets the title, one is a byte of its own."""
    path = tmp_path / "log.sql"
    path.write_text("SELECT a FROM `x\x1b[2jy\x1b]0;owned\x07\x9b31mz` WHERE a > 3;\n", encoding="utf-8")
    told = _shown(monkeypatch, capsys, "ingest", "--log", str(path))
    assert not {character for character in told if ord(character) < 32 or 127 <= ord(character) < 160} - {"\n"}
    assert "\nx␛[2jy␛]0;owned" in told
    common.err.print("zorder: no table \x1b[2J\u202e", soft_wrap=True)
    assert capsys.readouterr().err == "zorder: no table ␛[2J\ufffd\n"


def test_the_terminals_own_colours_stay() -> None:
    screen = Screen(force_terminal=True, color_system="standard", width=40, _environ={})
    with screen.capture() as captured:
        screen.print("done", style="bold")
    assert captured.get() == "\x1b[1mdone\x1b[0m\n"


def test_places_that_are_longer_than_the_screen_are_folded_and_not_cut_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(common.out, "_file", sys.stdout)
    monkeypatch.setattr(common.out, "quiet", False)
    monkeypatch.setattr(common.out, "_width", 60)
    places = [f"s3a://a-bucket-of-ours/warehouse/eu/orders_{name}" for name in ("paid", "open")]
    common.print_columns("Relayouts", ("table", *("a figure",) * 4), [(place, *("12.5%",) * 4) for place in places])
    shown = "".join(line.split("│")[1].strip() for line in capsys.readouterr().out.splitlines() if "│" in line)
    assert shown == "".join(places)
