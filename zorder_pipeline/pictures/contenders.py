"""A benchmark's contenders side by side."""

from __future__ import annotations

from collections.abc import Mapping

from .canvas import BLUE, GREY, INK, figure_of, plain_axes, to_png

__all__ = ["contender_bars"]


def contender_bars(panels: Mapping[str, Mapping[str, float]], title: str, ours: str) -> bytes:
    """One panel per measure, one bar per contender, ours in colour.

    Args:
        panels: by measure, the mean of each contender.
        ours: the contender drawn in colour.
    """
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    figure, _ = figure_of(4.2 + 3.1 * len(panels), 0.9 + 0.36 * len(names), title, axes=False)
    grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (measure, means) in zip(grid, panels.items(), strict=True):
        longest = max(means.values(), default=0.0)
        for place, name in enumerate(names):
            if name in means:
                axes.barh(place, means[name], 0.66, color=BLUE if name == ours else GREY)
                told = f"{means[name]:,.0f}" if means[name] >= 100 else f"{means[name]:.3g}"
                axes.text(means[name] + 0.02 * longest, place, told, va="center", fontsize=8, color=INK)
        axes.set(xlim=(0, longest * 1.25 or 1), xlabel=measure, yticks=range(len(names)), yticklabels=names)
        plain_axes(axes, "x")
        axes.locator_params(axis="x", nbins=4)  # more numbers of six digits would overlap
    grid[0].invert_yaxis()
    figure.tight_layout()
    return to_png(figure)
