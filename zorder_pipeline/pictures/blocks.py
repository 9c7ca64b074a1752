"""Files as rectangles in the plane of two columns, as in figure 1 of seed 000."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from zorder_pipeline.model.wording import counted

from .canvas import COLUMNS, GREY, INK, Floats, figure_of, percent, short, to_png

__all__ = ["blocks_2d"]

FILES, MARKED = 64, 5
"""Files outlined at most, and those of them whose rows are coloured."""
POINTS, COLOURED = 1500, 80
"""Rows drawn at most, and those of each marked file."""
MARKERS = "osD^v"
SIDES: tuple[Literal["bottom", "center", "top"], ...] = ("bottom", "center", "top")

Ints = npt.NDArray[np.integer[Any]]


def blocks_2d(codes: Mapping[str, Ints], panels: Mapping[str, Ints]) -> bytes:
    """Sample rows in the plane of two columns, and the files that hold them: small rectangles can be skipped.

    Both axes are ranks, so every strip of equal width holds as many rows and nothing tells a value. A value that many
    rows share is as wide as its share of the rows, and its rows are spread over that width.

    Args:
        codes: for the two columns, integers that order the rows by the column, shape (rows,).
        panels: by title (``before``, ``after``), the file of each row, shape (rows,).
    """
    names = list(codes)
    extents = [_extent(values) for values in codes.values()]
    boxes = {panel: _boxes(file, extents) for panel, file in panels.items()}
    message = _message({panel: _area(found) for panel, found in boxes.items()}, names)
    figure, _ = figure_of(3.8 * max(1, len(panels)), 4.2, message, axes=False)
    figure.subplots_adjust(top=0.93)
    grid = figure.subplots(1, max(1, len(panels)), squeeze=False, gridspec_kw={"wspace": 0.08})
    rng = np.random.default_rng(0)
    x, y = (low + (high - low) * rng.random(len(low)) for low, high in extents)
    shown = np.sort(rng.permutation(len(x))[:POINTS])
    for axes, (panel, file) in zip(grid[0], panels.items(), strict=True):
        found = boxes[panel]
        _draw(axes, x, y, file, found, shown)
        outlined = (
            f"{min(FILES, len(found)):,} of {len(found):,} files" if len(found) > FILES else counted(len(found), "file")
        )
        axes.set_title(
            f"{panel}: a file spans {percent(_area(found))}", loc="left", fontsize=10, weight="bold", color=INK
        )
        axes.set_xlabel(f"{short(names[0], 28)}, by rank\n{outlined} outlined", fontsize=9)
    for axes in grid[0][1:]:
        axes.set_yticks([])
    grid[0][0].set_ylabel(f"{short(names[1], 28)}, by rank", fontsize=9)
    return to_png(figure)


def _draw(axes: Axes, x: Floats, y: Floats, file: Ints, boxes: Floats, shown: npt.NDArray[np.int64]) -> None:
    """The rows as dots, some files as outlines, and a few of these with their own rows in colour."""
    numbers = np.unique(file)
    # by lot: every fourth file may be the same corner of every square
    outlined = np.sort(np.random.default_rng(1).permutation(len(numbers))[:FILES])
    marked = np.unique(np.linspace(0, len(outlined) - 1, min(MARKED, len(outlined)) + 2).round().astype(int)[1:-1])
    axes.scatter(x[shown], y[shown], s=2, color="#D0D0D0", linewidth=0, rasterized=True)
    for place in outlined:
        axes.add_patch(_rectangle(boxes[place], edgecolor=GREY, linewidth=0.6, alpha=0.8))
    for i, place in enumerate(outlined[marked]):
        colour = COLUMNS[i]
        rows = np.flatnonzero(file == numbers[place])[:COLOURED]
        axes.add_patch(_rectangle(boxes[place], edgecolor=colour, linewidth=2.0, zorder=3))
        axes.scatter(x[rows], y[rows], s=7, marker=MARKERS[i], color=colour, linewidth=0, zorder=4)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    ticks = ["lowest", "half of the rows", "highest"]
    across, upwards = axes.set_xticklabels(ticks, fontsize=8), axes.set_yticklabels(ticks, fontsize=8, rotation=90)
    across[0].set_horizontalalignment("left")  # within the panel's own width, so that two panels do not touch
    across[2].set_horizontalalignment("right")
    for label, side in zip(upwards, SIDES, strict=True):
        label.set_verticalalignment(side)
    axes.tick_params(length=0)
    axes.set_aspect("equal")
    axes.spines[:].set_visible(False)


def _rectangle(box: Floats, **style: Any) -> Rectangle:
    left, right, bottom, top = (float(value) for value in box)
    return Rectangle((left, bottom), right - left, top - bottom, fill=False, **style)


def _extent(codes: Ints) -> tuple[Floats, Floats]:
    """Share of the rows below each row's value, and share up to it, shape (rows,) each."""
    rows = max(1, len(codes))
    _, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    upto = np.cumsum(counts)
    return ((upto - counts) / rows)[place.ravel()], (upto / rows)[place.ravel()]


def _boxes(file: Ints, extents: list[tuple[Floats, Floats]]) -> Floats:
    """Left, right, bottom and top of each file, by ascending number, shape (files, 4)."""
    numbers, place = np.unique(file, return_inverse=True)
    boxes = np.empty((len(numbers), 4))
    for axis, (low, high) in enumerate(extents):
        boxes[:, 2 * axis], boxes[:, 2 * axis + 1] = 1.0, 0.0
        np.minimum.at(boxes[:, 2 * axis], place.ravel(), low)
        np.maximum.at(boxes[:, 2 * axis + 1], place.ravel(), high)
    return boxes


def _area(boxes: Floats) -> float:
    """Share of the plane that a file covers, on average."""
    return float(((boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])).mean()) if len(boxes) else 0.0


def _message(areas: Mapping[str, float], names: list[str]) -> str:
    plane = " and ".join(short(name, 24) for name in names)
    if len(areas) != 2:
        return f"Files in the plane of {plane}"
    before, after = areas.values()
    if 0.95 * before <= after <= before / 0.95:
        return f"In the plane of {plane} files are as large as before"
    times = max(before, after) / max(min(before, after), 1e-9)
    word = "smaller" if after < before else "larger"
    return f"In the plane of {plane} a file is {times:.{0 if times >= 10 else 1}f} times {word}"
