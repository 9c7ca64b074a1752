"""Many tables side by side: what their queries read now, and what they could read."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.ticker import PercentFormatter

from .canvas import GREEN, GREY, LIGHT, figure_of, percent, plain_axes, short, to_png

__all__ = ["tables_to_gain"]

ROWS = 20


def tables_to_gain(tables: Sequence[tuple[str, float, float, float]]) -> bytes:
    """Bars of the share of rows that queries read: now, under a learned layout, and the bound no layout can beat.

    Args:
        tables: name and the three shares, the table with most to gain first; at most 20 are drawn.
    """
    shown = list(tables)[:ROWS]
    best = max(shown, key=lambda item: item[1] - item[2])
    message = f"{best[0]}: queries read {percent(best[1])} of the rows, and could read {percent(best[2])}"
    height = 1.4 + 0.5 * len(shown)
    figure, axes = figure_of(8.0, height, message)
    figure.subplots_adjust(top=1 - 0.35 / height, bottom=0.85 / height)
    for place, (_, now, learned, bound) in enumerate(shown):
        axes.barh(place - 0.17, now, 0.3, color=GREY, label="now" if not place else None)
        axes.barh(place + 0.17, learned, 0.3, color=GREEN, label="learned layout" if not place else None)
        axes.plot([bound, bound], [place - 0.36, place + 0.36], color="black", linewidth=1.6)
        axes.text(now + 0.01, place - 0.17, percent(now), va="center", fontsize=8.5)
        axes.text(learned + 0.01, place + 0.17, percent(learned), va="center", fontsize=8.5, weight="bold")
    axes.plot([], [], color="black", linewidth=1.6, label="no layout can beat this")
    axes.set_yticks(range(len(shown)), [short(name, 32) for name, *_ in shown])
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.set_xlim(0, min(1.12, 1.15 * max(now for _, now, *_ in shown) + 0.05))
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("share of the rows that a query reads")
    plain_axes(axes, "x")
    axes.spines["left"].set_color(LIGHT)
    figure.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3, frameon=False, fontsize=9)
    return to_png(figure)
