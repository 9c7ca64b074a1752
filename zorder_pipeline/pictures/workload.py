"""What was asked: which columns, which of them follow each other, and how many rows each query reads."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from zorder_pipeline.model.wording import counted

from .canvas import BLUE, GREEN, GREY, ORANGE, VERMILION, Floats, figure_of, percent, plain_axes, short, to_png

__all__ = ["correlation_graph", "rows_per_query"]

PER_ROW = 5
STYLES = {"ascending": "-", "descending": "--", "contingency": ":"}
NOTES = {"descending": "dashed: the other way round", "contingency": "dotted: one determines the other"}


def correlation_graph(
    frequencies: Mapping[str, float],
    edges: Mapping[tuple[str, str], float],
    kinds: Mapping[tuple[str, str], str] | None = None,
    chosen: Collection[str] | None = None,
) -> bytes:
    """Columns that queries filter by, and a line between two that follow each other: one of them is enough in a key.

    Args:
        frequencies: queries that filter by each column; the area of its circle.
        edges: strength of each correlation, 0 to 1; pairs absent are uncorrelated.
        kinds: ``ascending`` (a full line), ``descending`` (dashed) or ``contingency`` (dotted) by edge.
        chosen: columns that the search may use, filled; the others are hollow. All of them without it.
    """
    graph: Any = nx.Graph()
    graph.add_nodes_from(frequencies)
    graph.add_weighted_edges_from((a, b, weight) for (a, b), weight in edges.items() if a in graph and b in graph)
    forms = {frozenset(pair): kind for pair, kind in (kinds or {}).items()}
    places = _places(graph)
    bottom = min((y for _, y in places.values()), default=-1.0)
    height = (1.45 if edges else 0.4) - bottom + 0.5
    figure, axes = figure_of(7.2, 0.5 + 1.35 * height, _graph_message(edges, forms))
    top = max(frequencies.values(), default=1.0) or 1.0
    largest = 1100 * min(1.0, 10 / max(1, graph.number_of_nodes()))
    sizes = {name: 90 + largest * frequencies[name] / top for name in frequencies}
    for a, b, weight in graph.edges(data="weight"):
        (x1, y1), (x2, y2) = places[a], places[b]
        style = STYLES[forms.get(frozenset((a, b)), "ascending")]
        width = 0.8 + 3.2 * max(0.0, min(1.0, weight))
        axes.plot([x1, x2], [y1, y2], color=ORANGE, linewidth=width, linestyle=style, zorder=1)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 0.8}
        middle = ((x1 + x2) / 2, (y1 + y2) / 2)
        axes.text(*middle, f"{weight:.2f}", fontsize=8, ha="center", va="center", bbox=box, zorder=2)
    for name, (x, y) in places.items():
        filled = chosen is None or name in chosen
        fill = BLUE if filled else "white"
        axes.scatter([x], [y], s=sizes[name], color=fill, edgecolor=BLUE if filled else GREY, linewidth=1.5, zorder=3)
        reach = math.sqrt(sizes[name]) / 2 + 4
        right, up = (x, y) if graph.degree(name) else (0.0, -1.0)
        length = math.hypot(right, up) or 1.0
        queries = f"{frequencies[name]:,.0f} quer{'y' if frequencies[name] == 1 else 'ies'}"
        axes.annotate(
            f"{short(name, 22)}\n{queries}",
            (x, y),
            (reach * right / length, reach * up / length),
            textcoords="offset points",
            ha="center" if abs(right) < 0.3 else "left" if right > 0 else "right",
            va="center" if abs(up) < 0.3 else "bottom" if up > 0 else "top",
            fontsize=9,
            zorder=4,
        )
    legend = [
        ["circle: queries that filter by the column"],
        ["line: sorting by one also sorts the other (1.00 = fully)"],
    ]
    hollow = [name for name in frequencies if chosen is not None and name not in chosen]
    legend[0] += [_hollow(hollow, graph, forms)] if hollow else []
    legend[1] += [NOTES[kind] for kind in ("descending", "contingency") if kind in forms.values()]
    text = "\n".join(", ".join(line) for line in (legend if edges else legend[:1]))
    where = axes.transAxes
    axes.text(0.5, -0.02, text, transform=where, ha="center", va="top", fontsize=8.5, color=GREY, linespacing=1.4)
    axes.set(xlim=(-2.6, 2.6), ylim=(bottom - 0.5, bottom - 0.5 + height))
    axes.axis("off")
    return to_png(figure)


def _hollow(names: Sequence[str], graph: Any, forms: Mapping[frozenset[str], str]) -> str:
    """Why columns are hollow: each follows a filled one, or they come after the others for another reason."""

    def follows(name: str, other: str) -> bool:
        return other not in names and forms.get(frozenset((name, other))) != "contingency"

    stood_for = all(any(follows(name, other) for other in graph.neighbors(name)) for name in names)
    return "hollow: another column stands for it" if stood_for else "hollow: it comes after the others"


def rows_per_query(before: Floats, after: Floats, labels: tuple[str, str] = ("now", "new layout")) -> bytes:
    """Share of rows each query reads before and after, queries sorted by what they read: area between is the saving.

    Args:
        before, after: share of the table's rows per query, 0 to 1, shape (queries,) each.
    """
    better, worse = int((after < before).sum()), int((after > before).sum())
    mean = (float(before.mean()) if len(before) else 0.0, float(after.mean()) if len(after) else 0.0)
    message = f"On average a query reads {percent(mean[1])} of the rows instead of {percent(mean[0])}"
    figure, axes = figure_of(7.2, 3.6, message)
    place = np.arange(len(before) + 1)
    low, high = (_steps(np.sort(values)[::-1]) for values in (after, before))
    axes.fill_between(place, low, high, step="post", color=GREEN, alpha=0.18, linewidth=0)
    axes.step(place, high, where="post", color=VERMILION, linewidth=2.2, linestyle=(0, (4, 1.5)), label=labels[0])
    axes.step(place, low, where="post", color=GREEN, linewidth=2.2, label=labels[1])
    axes.legend(frameon=False, loc="best")
    axes.set(xlim=(0, max(1, len(before))), ylim=(0, None))
    axes.set_xlabel(
        f"{counted(len(before), 'query')}, each curve from the one that reads most\n"
        f"{better:,} read less than before, {worse:,} read more"
    )
    axes.set_ylabel("share of rows read")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: percent(value)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    plain_axes(axes, grid="y")
    return to_png(figure)


def _steps(values: Floats) -> Floats:
    return np.concatenate([values, values[-1:]]) if len(values) else np.zeros(1)


def _graph_message(edges: Mapping[tuple[str, str], float], kinds: Mapping[frozenset[str], str]) -> str:
    if not edges:
        return "No two columns follow each other: each needs its own bits"
    (a, b), weight = max(edges.items(), key=lambda item: item[1])
    kind = kinds.get(frozenset((a, b)), "ascending")
    if kind == "contingency":
        return f"A value of one of {a} and {b} determines the other ({weight:.2f})"
    return f"Sorting by {a} also sorts {b}{' the other way' if kind == 'descending' else ''} ({weight:.2f})"


def _places(graph: Any) -> dict[str, tuple[float, float]]:
    """Columns that belong together next to each other on an ellipse, the lone ones in rows below it."""
    groups = [group for group in nx.connected_components(graph) if len(group) > 1]
    linked = [name for group in sorted(groups, key=len, reverse=True) for name in graph if name in group]
    lone = [name for name in graph if name not in set(linked)]
    turns = [2 * math.pi * i / max(1, len(linked)) - math.pi / 4 for i in range(len(linked))]
    places = {name: (1.5 * math.sin(turn), math.cos(turn)) for name, turn in zip(linked, turns, strict=True)}
    for i, name in enumerate(lone):
        row, column = divmod(i, PER_ROW)
        width = min(PER_ROW, len(lone) - PER_ROW * row)
        places[name] = ((column + 0.5) / width * 4.4 - 2.2, (-1.75 if linked else 0.0) - 0.75 * row)
    return places
