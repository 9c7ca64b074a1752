"""What the terminal shows of names and statements is what they are, never markup."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.table import Table

from tests.json_page import json_printed
from zorder_pipeline.cli import common, main

NASTY = ("[/b]", "orders[eu]", ":smile:", "[red]x[/red]")


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "log.sql").write_text("".join(f"SELECT a FROM `{name}` WHERE a > 3;\n" for name in NASTY))
    return str(tmp_path / "log.sql")


def _shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    monkeypatch.setattr(sys, "argv", ["zorder", *words])
    monkeypatch.setattr(common.out, "file", sys.stdout)
    monkeypatch.setattr(common.out, "quiet", False)
    monkeypatch.setattr(common.err, "file", sys.stderr)
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
    monkeypatch.setattr(common.out, "file", sys.stdout)
    monkeypatch.setattr(common.out, "quiet", False)
    monkeypatch.setattr(common.err, "file", sys.stderr)
    common.print_figures(text, [(text, text)])
    common.print_columns(text, (text, text), [(text, text)], best=text)
    common.out.print(f"- {text}", soft_wrap=True)
    common.Progress()(text)
    shown = capsys.readouterr()
    assert (shown.out.count(text), shown.err.count(text)) == (9, 1)
