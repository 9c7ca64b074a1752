"""Relayouts by what they promised and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from .canvas import BLUE, GREY, INK, LIGHT, VERMILION, figure_of, percent, plain_axes, short, to_png

__all__ = ["KeptPromise", "promises_kept"]

ROWS = 20


@dataclass(frozen=True)
class KeptPromise:
    """One relayout.

    Attributes:
        name: what it is called in the picture.
        promised, promised_low: share of the rows that a query was to read less, and its lower end.
        measured: the same, measured; None when it was not checked yet.
        kept: whether the promise was not missed by more than the set factor; None when it was not checked yet, or
            nothing was promised.
        cost: core-seconds measured.
        foretold: low, expected and high core-seconds; None where nothing was foretold.
    """

    name: str
    promised: float
    promised_low: float
    measured: float | None
    kept: bool | None
    cost: float
    foretold: tuple[float, float, float] | None


def promises_kept(relayouts: Sequence[KeptPromise]) -> bytes:
    """Two panels, a line per relayout: rows saved, and cost; a bar for what was promised, a mark for what was measured.

    Args:
        relayouts: the newest last; the 20 newest are drawn, newest on top.
    """
    shown = list(relayouts)[-ROWS:][::-1]
    checked = [item for item in shown if item.measured is not None and item.kept is not None]
    kept = sum(bool(item.kept) for item in checked)
    title = f"{kept} of {len(checked)} checked promises were kept" if checked else "no promise was checked yet"
    if checked:
        last = checked[0]
        title += f"; the latest saves {percent(last.measured or 0.0)} of the rows, promised {percent(last.promised)}"
    height = 1.8 + 0.36 * len(shown)
    figure, _ = figure_of(9.0, height, title, axes=False)
    saved, cost = figure.subplots(1, 2, sharey=True)
    figure.subplots_adjust(top=1 - 0.45 / height, bottom=0.95 / height, wspace=0.08)
    for place, item in enumerate(shown):
        low = min(item.promised_low, item.promised)
        saved.plot([low, item.promised], [place, place], color=GREY, linewidth=6, solid_capstyle="butt", alpha=0.6)
        saved.plot(item.promised, place, "|", color=INK, markersize=12)
        if item.measured is not None:
            _mark(saved, item.measured, place, item.kept is False)
        if item.foretold is not None:
            first, expected, last_ = item.foretold
            cost.plot([first, last_], [place, place], color=GREY, linewidth=6, solid_capstyle="butt", alpha=0.6)
            cost.plot(expected, place, "|", color=INK, markersize=12)
            _mark(cost, item.cost, place, not first <= item.cost <= last_)
        else:
            _mark(cost, item.cost, place, False)
    saved.set_yticks(range(len(shown)), [short(item.name, 28) for item in shown])
    saved.set_ylim(len(shown) - 0.4, -0.6)
    saved.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    saved.set_xlabel("rows that a query reads less")
    cost.set_xlabel("core-seconds of the relayout")
    cost.set_xlim(left=0)
    for axes in (saved, cost):
        plain_axes(axes, "x")
        axes.spines["left"].set_color(LIGHT)
    saved.plot([], [], color=GREY, linewidth=6, alpha=0.6, label="promised, from its least on")
    saved.plot([], [], "o", color=BLUE, label="measured")
    saved.plot([], [], "X", color=VERMILION, markersize=8, label="measured, not as promised")
    figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3, frameon=False, fontsize=9)
    return to_png(figure)


def _mark(axes: Axes, value: float, place: int, off: bool) -> None:
    axes.plot(value, place, "X" if off else "o", color=VERMILION if off else BLUE, markersize=9 if off else 7)
