"""What the search tried, column by column, and what a rewrite costs against what it saves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LinearSegmentedColormap

from .canvas import BLACK, GREEN, GREY, INK, VERMILION, figure_of, percent, plain_axes, short, to_png

__all__ = ["cost_and_benefit", "parallel_bits"]

SHADES = LinearSegmentedColormap.from_list("shades", ["#003F5C", "#5B84B1", "#D3DAE6"])
"""From good to bad by lightness alone: readable with every kind of colour blindness."""
SHOWN, BEST = 150, 10


def parallel_bits(columns: Sequence[str], bits: npt.NDArray[np.integer], costs: npt.NDArray[np.float64]) -> bytes:
    """Parallel coordinates of a search: a line per layout, at each column the bits that it gave it.

    Args:
        columns: names, the most important first.
        bits: bits per layout and column, shape (layouts, columns).
        costs: share of rows read under each layout, shape (layouts,).
    """
    message = _message(columns, bits, costs)
    figure, axes = figure_of(max(6.0, 1.1 * len(columns) + 1.6), 3.6, message)
    order = np.argsort(-costs, kind="stable")
    order = (
        order[np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int))]
        if len(order)
        else order
    )
    rng = np.random.default_rng(0)
    spread = np.ptp(costs) or 1.0
    first = int(np.argmin(costs)) if len(costs) else -1
    order = np.append(order[order != first], first) if len(order) else order
    best = set(order[-BEST:].tolist())
    for i in order:  # the good ones last, on top
        heights = bits[i] + rng.uniform(-0.14, 0.14, len(columns))
        share = float((costs[i] - costs.min()) / spread)
        strong = i in best
        axes.plot(
            range(len(columns)), heights, color=BLACK if i == first else SHADES(share),
            linewidth=2.6 if i == first else 1.4 if strong else 0.7, alpha=1.0 if strong else 0.45,
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [short(name, 16) for name in columns], rotation=20, ha="right")
    axes.set_ylabel("bits of the key")
    axes.set_ylim(-0.4, float(bits.max(initial=1)) + 0.4)
    for place in range(len(columns)):
        axes.axvline(place, color=GREY, linewidth=0.6)
    plain_axes(axes, grid="y")
    text = "thick: the best layout; the stronger a line stands out, the fewer rows its queries read"
    axes.text(0, -0.27, text, transform=axes.transAxes, fontsize=8.5, color=GREY)
    return to_png(figure)


def _message(columns: Sequence[str], bits: npt.NDArray[np.integer], costs: npt.NDArray[np.float64]) -> str:
    if not len(costs) or not len(columns):
        return "No layout was tried"
    best = bits[int(np.argmin(costs))]
    given = [f"{columns[i]} {best[i]}" for i in np.argsort(-best, kind="stable") if best[i]][:3]
    return f"The best layout by bits alone gives {', '.join(given) or 'no column any'} bits"


def cost_and_benefit(cost: tuple[float, float, float], saving: tuple[float, float, float], unit: str) -> bytes:
    """What a rewrite costs against what it saves, with the interval of each.

    Args:
        cost, saving: expected, at least and at most, in ``unit``.
        unit: such as core-seconds.
    """
    message = _verdict(cost, saving)
    figure, axes = figure_of(7.2, 1.9, message)
    for place, (name, (middle, low, high), colour) in enumerate(
        (("saving over the horizon", saving, GREEN), ("cost of the rewrite", cost, VERMILION))
    ):
        axes.barh(place, middle, height=0.55, color=colour, hatch="//" if place else "", edgecolor="white")
        axes.plot([low, high], [place, place], color=INK, linewidth=1.6, marker="|", markersize=9)
        text = f" {middle:,.0f} ({low:,.0f} to {high:,.0f})"
        axes.text(max(middle, high), place, text, va="center", fontsize=9)
        axes.text(0, place - 0.42, name, fontsize=9, va="bottom", ha="left", color=INK)
    axes.set_yticks([])
    axes.set_ylim(1.5, -0.7)
    axes.set_xlim(min(0.0, saving[1] * 1.05), max(saving[2], cost[2], saving[0], cost[0], 1e-9) * 1.35)
    axes.set_xlabel(unit)
    plain_axes(axes, grid="x")
    axes.spines["left"].set_visible(False)
    return to_png(figure)


def _verdict(cost: tuple[float, float, float], saving: tuple[float, float, float]) -> str:
    if saving[1] > cost[0]:
        return f"Even the least saving expected is {saving[1] / max(cost[0], 1e-9):,.1f} times the cost"
    if saving[0] > cost[0]:
        return "It would pay on average, but not surely"
    share = saving[0] / max(cost[0], 1e-9)
    return f"The saving is {percent(max(0.0, share))} of the cost"
