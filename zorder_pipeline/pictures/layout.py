"""The learned layout: whose bits they are, how it compares, how the search found it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from .canvas import (
    BLACK,
    COLUMNS,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    PURPLE,
    SKY,
    YELLOW,
    figure_of,
    percent,
    plain_axes,
    short,
    to_png,
)

__all__ = ["column_importance", "layout_bits", "layout_cuts", "layout_shares", "search_history"]

STORED = "stored"
"""Name of the table as it lies now, among layouts."""
NAMED = 8
"""Columns of a tree with a colour and a number of their own; the others share one."""
LEAST_IMPORTANT = 12

PALE = 0.3
"""Opacity of bits that tell no files apart."""


def layout_bits(order: Sequence[str], spare: int = 0) -> bytes:
    """Which column owns which bit of the sort key, most significant bit on the left.

    Args:
        order: column per bit, most significant first.
        spare: how many of the last bits tell no files apart; they are drawn pale.
    """
    counts = {name: list(order).count(name) for name in dict.fromkeys(order)}
    first = next(iter(counts))
    message = f"The key of {len(order)} bits splits by {first} first"
    width = max(6.5, 0.52 * len(order) + 1.5)
    runs = [(name, len(list(run))) for name, run in groupby(order)]
    fits = all(0.1 * len(name) < 0.75 * width * length / len(order) for name, length in runs)  # inches
    figure, axes = figure_of(width, (2.0 if fits else 2.9) + 0.2 * math.ceil(len(counts) / 2), message)
    colours = {name: COLUMNS[i % len(COLUMNS)] for i, name in enumerate(counts)}
    taken = dict.fromkeys(counts, 0)
    for place, name in enumerate(order):
        taken[name] += 1
        pale = place >= len(order) - spare
        alpha = PALE if pale else 1.0
        axes.add_patch(Rectangle((place + 0.04, 0), 0.92, 1, color=colours[name], linewidth=0, alpha=alpha))
        shade = GREY if pale else _ink(colours[name])
        axes.text(place + 0.5, 0.5, str(taken[name]), ha="center", va="center", color=shade, fontsize=11, weight="bold")
    start = 0
    for name, length in runs:
        middle = start + length / 2
        if fits:
            axes.text(middle, 1.08, name, ha="center", fontsize=9)
        else:
            text = short(name, 24)
            axes.text(middle - 0.15, 1.08, text, ha="left", fontsize=9, rotation=35, rotation_mode="anchor")
        start += length
    handles = [Rectangle((0, 0), 1, 1, color=colours[name]) for name in counts]
    labels = [f"{name}: {bits} bit{'s' * (bits > 1)}, {_ranges(bits)}" for name, bits in counts.items()]
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, -0.06), ncols=2, frameon=False)
    axes.text(0, -0.08, "coarsest split", ha="left", va="top", fontsize=9, color=GREY)
    finest = "finest split; pale bits order rows inside files" if spare else "finest split"
    axes.text(len(order), -0.08, finest, ha="right", va="top", fontsize=9, color=GREY)
    axes.set(xlim=(0, len(order)), ylim=(-0.2, 1.3 if fits else 2.0))
    axes.axis("off")
    return to_png(figure)


def layout_cuts(levels: Sequence[Mapping[str, float]], uses: Mapping[str, float], cells: int) -> bytes:
    """Which columns a tree cuts by, level by level: on the left the whole table is cut, on the right single cells.

    Args:
        levels: share of the level's cells that each column cuts, from the root; what is missing from 1 is not cut.
        uses: how much each column is cut by, in any unit, the most used first.
        cells: cells of the whole tree.
    """
    named = list(uses)[: NAMED if len(uses) <= NAMED else NAMED - 1]
    others, total = [name for name in uses if name not in named], max(1, sum(uses.values()))
    root = max(levels[0], key=lambda name: levels[0][name]) if levels else ""
    message = f"The tree of {cells:,} cells cuts by {root} first" if levels else "The tree makes no cut"
    width = max(6.5, 0.52 * len(levels) + 1.5)
    labels = [f"{i + 1}  {short(name, 26)}: {percent(uses[name] / total)} of the cuts" for i, name in enumerate(named)]
    if others:
        rest = sum(uses[name] for name in others)
        labels.append(f"+  {len(others)} more columns: {percent(rest / total)} of the cuts")
    figure, axes = figure_of(width, 2.9 + 0.2 * math.ceil(len(labels) / 2), message)
    for place, shares in enumerate(levels):
        bottom = 0.0
        rest = sum(shares.get(name, 0.0) for name in others)
        heights = [*(shares.get(name, 0.0) for name in named), *([rest] if others else [])]
        for i, height in enumerate(heights):
            colour, text = _shade(i, len(named))
            axes.add_patch(Rectangle((place + 0.04, bottom), 0.92, height, color=colour, linewidth=0))
            if height > 0.07:
                mark = str(i + 1) if i < len(named) else "+"
                at = (place + 0.5, bottom + height / 2)
                axes.text(*at, mark, ha="center", va="center", color=text, fontsize=10, weight="bold")
            bottom += height
        axes.add_patch(Rectangle((place + 0.04, 0), 0.92, 1, fill=False, edgecolor=LIGHT, linewidth=0.8))
    handles = [Rectangle((0, 0), 1, 1, color=_shade(i, len(named))[0]) for i in range(len(labels))]
    axes.legend(handles, labels, loc="upper left", bbox_to_anchor=(0, -0.1), ncols=2, frameon=False)
    axes.text(0, -0.03, "first cut", ha="left", va="top", fontsize=9, color=GREY)
    last = f"level {len(levels)}; white: cells that are not cut further"
    axes.text(len(levels) or 1, -0.03, last, ha="right", va="top", fontsize=9, color=GREY)
    axes.set(xlim=(0, len(levels) or 1), ylim=(-0.1, 1.02))
    axes.axis("off")
    return to_png(figure)


def column_importance(shares: Mapping[str, float]) -> bytes:
    """How much the search's outcome depended on each column's bits: longer bars matter more.

    Args:
        shares: importance by column, together 1; the twelve largest are drawn.
    """
    names = sorted(shares, key=lambda name: -shares[name])[:LEAST_IMPORTANT]
    first = " and ".join(names[:2])
    message = f"What is read depends most on the bits of {first}" if names else "No column mattered"
    figure, axes = figure_of(7.2, 1.2 + 0.3 * max(1, len(names)), message)
    for place, name in enumerate(names):
        axes.barh(place, shares[name], height=0.72, color=GREEN if place < 2 else LIGHT)
        axes.text(shares[name], place, f" {percent(shares[name])}", va="center", fontsize=9)
    axes.set_yticks(range(len(names)), [short(name, 28) for name in names])
    axes.set_ylim(max(1, len(names)) - 0.45, -0.55)
    axes.set_xlim(0, max(shares.values(), default=1.0) * 1.14)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_xlabel("importance of the number of bits that a column gets (PED-ANOVA)")
    plain_axes(axes, grid="x")
    axes.tick_params(axis="y", length=0)
    return to_png(figure)


def layout_shares(shares: Mapping[str, float], ours: str) -> bytes:
    """Mean share of the table's rows that a query reads, by layout: shorter bars are better.

    Args:
        shares: share by layout's name, 0 to 1.
        ours: name of the learned layout; that of the table as it lies now is `STORED`.
    """
    names = sorted(shares, key=lambda name: shares[name], reverse=True)
    message = _compare(shares, ours)
    figure, axes = figure_of(7.2, 1.5 + 0.33 * len(names), message)
    colours = [GREEN if name == ours else GREY if name == STORED else LIGHT for name in names]
    axes.barh(names, [shares[name] for name in names], color=colours, height=0.72)
    for place, name in enumerate(names):
        weight = "bold" if name in (ours, STORED) else "normal"
        axes.text(shares[name], place, f" {percent(shares[name])}", va="center", fontsize=9, weight=weight)
    for label in axes.get_yticklabels():
        if label.get_text() in (ours, STORED):
            label.set_fontweight("bold")
    axes.set_xlim(0, max(shares.values(), default=1.0) * 1.14 or 1.0)
    axes.set_xlabel("share of the table's rows that a query reads, on average (shorter is better)")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    plain_axes(axes, grid="x")
    axes.tick_params(axis="y", length=0)
    return to_png(figure)


def search_history(values: Sequence[float], phases: Sequence[str]) -> bytes:
    """Every layout the search tried as a dot, the best so far as a line.

    Args:
        values: share of rows read by the training queries, by trial.
        phases: what proposed each trial (warm start, greedy, cma-es, local).
    """
    cost = np.asarray(values, dtype=np.float64)
    best = np.minimum.accumulate(cost) if len(cost) else cost
    found = int(np.argmin(cost)) + 1 if len(cost) else 0
    message = f"Best layout found at trial {found} of {len(cost)}" if len(cost) else "No trial was made"
    figure, axes = figure_of(7.2, 3.6, message)
    markers = "o^sDvP"
    for i, name in enumerate(dict.fromkeys(phases)):
        chosen = np.flatnonzero([phase == name for phase in phases])
        axes.scatter(
            chosen + 1,
            cost[chosen],
            s=14,
            marker=markers[i % 6],
            color=COLUMNS[(i + 1) % 8 if i else 1],
            alpha=0.75,
            linewidth=0,
            label=name,
        )
    axes.step(np.arange(1, len(cost) + 1), best, where="post", color=BLACK, linewidth=2, label="best so far")
    if len(cost):
        axes.set_ylim(float(best[-1]) * 0.92, float(np.quantile(cost, 0.98)) * 1.06)
    axes.set_xlabel("trial")
    axes.set_ylabel("share of rows read\n(training queries)")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes, grid="y")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.18), ncols=5, columnspacing=1.2, fontsize=9)
    return to_png(figure)


def _ink(colour: str) -> str:
    """The colour of text on ``colour``."""
    return BLACK if colour in (YELLOW, ORANGE, SKY, PURPLE, LIGHT) else "white"


def _shade(place: int, named: int) -> tuple[str, str]:
    """The colour of a tree's column by its place, and that of the text on it; what has no name is grey."""
    colour = COLUMNS[place] if place < named else LIGHT
    return colour, _ink(colour)


def _ranges(bits: int) -> str:
    return f"up to {2**bits:,} ranges"


def _compare(shares: Mapping[str, float], ours: str) -> str:
    mine = shares.get(ours)
    others = {name: share for name, share in shares.items() if name != ours}
    if mine is None or not others:
        return "Share of rows a query reads, by layout"
    if ours == STORED:
        return "The table stays as it is: no layout reads clearly less"
    text = f"The learned layout reads {percent(mine)} of the rows"
    if STORED in shares and mine > 0 and shares[STORED] > mine:
        text += f", {shares[STORED] / mine:.1f} times fewer than now"
    return text
