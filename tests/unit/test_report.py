"""The page of a report: self-contained, and nothing in it becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from zorder_pipeline import pictures
from zorder_pipeline.features.candidates import Candidate
from zorder_pipeline.features.select import Analysis
from zorder_pipeline.report import Card, Picture, Report, Section, Table, page
from zorder_pipeline.report.books import nights
from zorder_pipeline.report.collect import _columns, _lead
from zorder_pipeline.report.facts import Facts

ODD = '<script src="http://x/y.js">&"\''
PNG = pictures.condition_forms({"column = value": 3}, ["column = value"])
REPORT = Report(
    ODD, ODD, ODD, [Card(ODD, ODD)],
    [Section(ODD, [ODD], [Picture(PNG, ODD), Table((ODD, "n"), [(ODD, 1200), (None, 3)])]), Section("empty")],
)  # fmt: skip


class Tags(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_whatever_the_text_is_it_stays_text() -> None:
    found = Tags(page(REPORT))
    assert not {tag for tag, _ in found.tags} & {"script", "iframe", "object", "embed", "link", "form", "input"}
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)
    assert found.words.count(ODD) == 11


def test_nothing_is_loaded_from_anywhere() -> None:
    for tag, attributes in Tags(page(REPORT)).tags:
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:image/png;base64,", "#part")), (tag, value)
    assert "url(" not in page(REPORT)
    assert "@import" not in page(REPORT)
    assert "default-src 'none'" in page(REPORT)


@pytest.mark.parametrize("wanted", ["prefers-color-scheme: dark", 'alt="', 'lang="en"', "viewport"])
def test_it_is_for_everybody(wanted: str) -> None:
    assert wanted in page(REPORT)


def test_figures_are_flush_right_and_readable() -> None:
    text = page(REPORT)
    assert '<td class="number">1,200</td>' in text
    assert '<th class="number">n</th>' in text


@pytest.mark.parametrize(("why", "said"), [("it is a liquid table", "it is a liquid table"), ("", "no layout reads")])
def test_a_search_that_could_not_be_made_says_why(why: str, said: str) -> None:
    facts = Facts(None, None, (), (), None, (), None, None, None, why_not=why)  # type: ignore[arg-type]
    assert said in _lead(facts, 0.5, None)


def test_a_column_that_comes_after_the_others_is_told_from_them() -> None:
    """It said yes, and why not."""
    asked = [
        Candidate(name, "int", 9, 9, 0.5, 9, 9, 0.0, 0.1, 1.0, "delta", name == "user", "why")
        for name in ("user", "land", "ds")
    ]
    features = Analysis(tuple(asked), (), ("user",), (), (), ("user", "land"))
    shown = _columns(SimpleNamespace(features=features, sample=SimpleNamespace(rows=9)))  # type: ignore[arg-type]
    (table,) = (part for part in shown.parts if isinstance(part, Table))
    assert [row[5] for row in table.rows] == ["yes", "yes, after the others", "no"]


@pytest.mark.parametrize(
    ("cost", "heads", "cells"),
    [(35.0, "core-seconds spent", (35.0, 0.1)), (7200.0, "core-hours spent", (2.0, 0.1 / 3600))],
)
def test_small_sums_are_no_thousandths_of_hours(
    cost: float, heads: str, cells: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    month: Any = SimpleNamespace(month="2026-11", relayouts=1, cost=cost, saved=0.1, net=0.1 - cost, checked=1.0)
    check: Any = SimpleNamespace(warning=None, drawn=None)
    monkeypatch.setattr(pictures, "promises_kept", lambda _: PNG)
    books = SimpleNamespace(checks=[check], months=[month], price_per_core_hour=0.0)
    facts = Facts(None, None, (), (), None, (), None, None, None, books=books)  # type: ignore[arg-type]
    (table,) = (part for part in nights(facts)[1].parts if isinstance(part, Table))
    assert (table.header[2], tuple(table.rows[0][2:4])) == (heads, pytest.approx(cells))


def test_figures_are_no_powers_of_ten() -> None:
    rows = [[999.6], [999.4], [-999.9], [0.00001234], [123456.7], [0.0]]
    shown = page(Report("t", "lead", "about", sections=[Section("s", (), [Table(["x"], rows)])]))
    cells = ("1,000", "999", "-1,000", "0.0000123", "123,457", "0")
    assert [f'<td class="number">{cell}</td>' in shown for cell in cells] == [True] * len(cells)
