"""A report as one HTML page that needs nothing else: no script, no remote resource, readable in light and in dark."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from zorder_pipeline.pictures import data_uri

__all__ = ["Card", "Picture", "Report", "Section", "Table", "page"]

LEAST = 1e-9
"""Smaller numbers are printed as 0."""
STYLE = """
:root { color-scheme: light dark; --ink: #222; --soft: #5b5b5b; --line: #d9d9d9; --ground: #fff; --card: #f5f7f9;
  --mark: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8e8e8; --soft: #a9a9a9; --line: #3a3a3a; --ground: #121212;
  --card: #1c1f22; --mark: #56b4e9; }
  /* pictures are drawn on white: turned round, white becomes the page's ground and the hues stay what they are */
  figure img { filter: invert(0.93) hue-rotate(180deg); } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 4rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { margin: 0 0 .2rem; font-size: 1.7rem; overflow-wrap: anywhere; }
h2 { margin: 2.6rem 0 .4rem; padding-top: .8rem; border-top: 1px solid var(--line); font-size: 1.25rem; }
p { margin: .4rem 0; } .soft, figcaption { color: var(--soft); } .lead { font-size: 1.15rem; font-weight: 600; }
nav { margin: 1rem 0; } nav a { margin-right: .9rem; white-space: nowrap; } a { color: var(--mark); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: .7rem; margin: 1rem 0; }
.card { padding: .7rem .9rem; border-radius: .5rem; background: var(--card); }
.card b { display: block; font-size: 1.45rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
figure { margin: 1.2rem 0; } img { display: block; max-width: 100%; height: auto; }
figcaption { margin-top: .3rem; font-size: .9rem; }
.wide { overflow-x: auto; } table { margin: .8rem 0; border-collapse: collapse; font-size: .93rem; }
th, td { padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
@media (max-width: 40rem) { td:last-child:not(.number) { min-width: 14rem; } }
footer { margin-top: 3rem; font-size: .85rem; color: var(--soft); }
@media print { nav { display: none; } figure, table { break-inside: avoid; } }
"""


@dataclass(frozen=True)
class Card:
    """A figure at the top: what it is, and its value."""

    name: str
    value: str


@dataclass(frozen=True)
class Picture:
    """A PNG with the sentence that says what there is to see, for those who do not see it, too."""

    png: bytes
    caption: str


@dataclass(frozen=True)
class Table:
    """Rows under a header; numbers are flush right."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Section:
    """A part of the page: its heading, sentences, and what is shown under them, in order."""

    title: str
    sentences: Sequence[str] = ()
    parts: Sequence[Picture | Table] = ()


@dataclass(frozen=True)
class Report:
    """What the page says.

    Attributes:
        title: the table's name.
        lead: the one sentence that matters.
        about: where and when.
    """

    title: str
    lead: str
    about: str
    cards: Sequence[Card] = ()
    sections: Sequence[Section] = field(default=())


def page(report: Report) -> str:
    """The report as HTML; whatever text is in it, none of it becomes markup.

    >>> "<b>" in page(Report("a<b>", "lead", "about"))
    False
    """
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    title = _text(report.title)
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    # nothing is loaded from anywhere, also if something got through that should not have
    allowed = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    yield f'<meta http-equiv="Content-Security-Policy" content="{allowed}">'
    yield f"<title>{title}: how the table lies</title>\n<style>{STYLE}</style>\n</head>\n<body>"
    yield f'<h1>{title}</h1>\n<p class="lead">{_text(report.lead)}</p>\n<p class="soft">{_text(report.about)}</p>'
    links = (f'<a href="#part{i}">{_text(section.title)}</a>' for i, section in enumerate(report.sections))
    yield f"<nav>{' '.join(links)}</nav>"
    if report.cards:
        cards = (f'<div class="card"><b>{_text(card.value)}</b>{_text(card.name)}</div>' for card in report.cards)
        yield f'<div class="cards">{"".join(cards)}</div>'
    yield "<main>"
    for i, section in enumerate(report.sections):
        yield f'<section id="part{i}">\n<h2>{_text(section.title)}</h2>'
        yield from (f"<p>{_text(sentence)}</p>" for sentence in section.sentences)
        for part in section.parts:
            yield from _picture(part) if isinstance(part, Picture) else _table(part)
        yield "</section>"
    yield "</main>\n<footer>Made by zorder report. Colours are those of Okabe and Ito.</footer>\n</body>\n</html>"


def _picture(picture: Picture) -> Iterator[str]:
    caption = _text(picture.caption)
    yield f'<figure><img alt="{caption}" src="{data_uri(picture.png)}"><figcaption>{caption}</figcaption></figure>'


def _table(table: Table) -> Iterator[str]:
    numeric = [
        bool(table.rows) and all(isinstance(row[i], int | float) for row in table.rows)
        for i in range(len(table.header))
    ]
    head = "".join(f"<th{_class(n)}>{_text(name)}</th>" for name, n in zip(table.header, numeric, strict=True))
    yield f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>'
    for row in table.rows:
        cells = (f"<td{_class(n)}>{_text(_cell(value))}</td>" for value, n in zip(row, numeric, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _class(number: bool) -> str:
    return ' class="number"' if number else ""


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 999.5 else _three_figures(value)
    return str(value)


def _three_figures(value: float) -> str:
    """A small number by its first three figures, none of them a power of ten; one that says nothing any more is 0.

    >>> _three_figures(999.4), _three_figures(0.00001234), _three_figures(-0.5), _three_figures(1e-30)
    ('999', '0.0000123', '-0.5', '0')
    """
    if abs(value) < LEAST:
        return "0"
    return f"{Decimal(f'{value:.3g}'):f}" if math.isfinite(value) else ""


def _text(text: str) -> str:
    return html.escape(text, quote=True)
