"""Zone maps: how much of each column's values every file spans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from zorder_pipeline.model.wording import counted

from .canvas import GREY, INK, Floats, figure_of, percent, short, to_png

__all__ = ["zone_map"]

FAR_LESS = 0.5
"""What files span of a column is far less when it is at most so much of what it was."""

WIDTHS = LinearSegmentedColormap.from_list("widths", ["#F7FBFF", "#9ECAE1", "#2171B5", "#08306B"])


def zone_map(panels: Mapping[str, Mapping[str, Floats]]) -> bytes:
    """How much of each column's values every file spans: pale cells are files that most queries can skip.

    Each panel has its files from the narrowest to the widest on average, a file in the same place of every row.

    Args:
        panels: by title (``before``, ``after``), per column the span of each file, max - min as share of the column's
            values, 0 to 1, shape (files,). NaN where the file has no statistics.
    """
    columns = list(dict.fromkeys(name for spans in panels.values() for name in spans))
    message = _zone_message(panels)
    figure, _ = figure_of(7.2, 1.2 + len(panels) * (0.62 + 0.3 * len(columns)), message, axes=False)
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"hspace": 0.5})
    picture = None
    for axes, (name, spans) in zip(grid[:, 0], panels.items(), strict=True):
        files = max((len(values) for values in spans.values()), default=1)
        cells = np.full((len(columns), files), np.nan)
        for row, column in enumerate(columns):
            if column in spans:
                cells[row] = spans[column]
        cells = cells[:, np.argsort(np.nan_to_num(cells, nan=1.0).mean(axis=0), kind="stable")]
        picture = axes.imshow(cells, aspect="auto", cmap=WIDTHS, vmin=0, vmax=1, interpolation="nearest")
        axes.set_facecolor("#FFE9C7")
        axes.set_yticks(range(len(columns)), [short(column, 20) for column in columns])
        axes.set_xticks([])
        axes.set_xlabel(f"{counted(files, 'file')}, from the narrowest to the widest", fontsize=8.5, color=GREY)
        axes.set_title(name, loc="left", fontsize=10, weight="bold", color=INK)
        for row in range(len(columns)):
            mean = float(np.nanmean(cells[row])) if np.isfinite(cells[row]).any() else math.nan
            text = "no statistics" if math.isnan(mean) else f" {percent(mean)}"
            axes.text(1.0, row, text, va="center", ha="left", fontsize=8.5, transform=axes.get_yaxis_transform())
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    if picture is not None:
        bar = figure.colorbar(picture, ax=grid[:, 0].tolist(), fraction=0.025, pad=0.09, aspect=14)
        bar.set_ticks([0, 0.5, 1], labels=["one value", "half", "all values"])
        bar.outline.set_visible(False)
        bar.ax.tick_params(length=0, labelsize=8.5)
    return to_png(figure)


def _zone_message(panels: Mapping[str, Mapping[str, Floats]]) -> str:
    if len(panels) != 2:
        return "How much of each column's values a file spans"
    before, after = panels.values()
    gains = {
        name: float(np.nanmean(before[name])) - float(np.nanmean(after[name]))
        for name in before
        if name in after and np.isfinite(before[name]).any() and np.isfinite(after[name]).any()
    }
    ranked = sorted(gains, key=lambda name: -gains[name])
    narrower = [name for name in ranked if gains[name] > 0.02]
    wider = [name for name in reversed(ranked) if gains[name] < -0.02]
    if narrower:
        named = narrower[:3]
        far = all(float(np.nanmean(after[name])) <= FAR_LESS * float(np.nanmean(before[name])) for name in named)
        return f"Files now span {'far ' if far else ''}less of {_listed(named)}"
    return f"Files now span more of {_listed(wider[:3])}" if wider else "Files span as much of each column as before"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
