"""What was asked over time, and by what."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from matplotlib.dates import ConciseDateFormatter
from matplotlib.ticker import MaxNLocator

from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.wording import counted

from .canvas import COLUMNS, GREY, LIGHT, figure_of, plain_axes, short, to_png

__all__ = ["condition_forms", "queries_over_time"]

BINS = 60
HOUR = DAY // 24
NAMED = 6
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "")


def queries_over_time(asked: Mapping[str, Sequence[int]]) -> bytes:
    """How many queries were asked when, by the column that they filter by.

    Args:
        asked: times of the queries, microseconds since 1970 UTC, by the group that each counts to once, such as the
            first column it filters by; the six largest groups are told apart by colour and hatching.
    """
    named = sorted((name for name in asked if asked[name]), key=lambda name: -len(asked[name]))
    groups = {name: np.asarray(asked[name], dtype=np.float64) for name in named[:NAMED]}
    if rest := [moment for name in named[NAMED:] for moment in asked[name]]:
        groups[f"{len(named) - NAMED} others"] = np.asarray(rest, dtype=np.float64)
    every = np.concatenate(list(groups.values())) if groups else np.zeros(0)
    if not len(every):
        figure, axes = figure_of(7.2, 1.6, "No query in the log has a time")
        axes.axis("off")
        return to_png(figure)
    first, last = float(every.min()), float(every.max())
    unit, name = (HOUR, "hour") if last - first < 2 * DAY else (DAY, "day")
    count = int(np.clip(np.ceil((last - first + 1) / unit), 1, BINS))
    edges = np.linspace(first, max(last, first + unit), count + 1)
    width = (edges[1] - edges[0]) / unit
    per = name if 0.9 <= width <= 1.1 else f"{width:.1f} {name}s"
    most = next(iter(groups))
    message = f"{counted(len(every), 'query')} from {_day(first)} to {_day(last)}, most of them by {most}"
    figure, axes = figure_of(7.2, 3.0, message)
    places = edges / 1e6 / 86_400  # days since 1970, matplotlib's own unit
    bottom = np.zeros(count)
    for i, (label, moments) in enumerate(groups.items()):
        heights = np.histogram(moments, edges)[0].astype(np.float64)
        axes.bar(
            places[:-1], heights, width=np.diff(places) * 0.92, bottom=bottom, align="edge",
            color=COLUMNS[i] if i < NAMED else LIGHT, hatch=HATCHES[i], edgecolor="white", linewidth=0.3,
            label=f"{short(label, 24)} ({len(moments):,})",
        )  # fmt: skip
        bottom += heights
    axes.xaxis_date(UTC)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(axes.xaxis.get_major_locator()))  # type: ignore[no-untyped-call]
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel(f"queries per {per}")
    plain_axes(axes, grid="y")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, -0.14), ncols=3, fontsize=9)
    return to_png(figure)


def condition_forms(forms: Mapping[str, int], skipping: Collection[str]) -> bytes:
    """How often conditions of each form were asked: which of them min/max statistics can help.

    Args:
        forms: times by form, in words.
        skipping: those by which files are skipped, which have a colour of their own.
    """
    names = sorted(forms, key=lambda name: -forms[name])
    total = max(1, sum(forms.values()))
    message = f"Most conditions have the form: {names[0]}" if names else "No condition was asked"
    figure, axes = figure_of(7.2, 1.0 + 0.3 * max(1, len(names)), message)
    for place, name in enumerate(names):
        axes.barh(place, forms[name], height=0.72, color=COLUMNS[0] if name in skipping else GREY)
        axes.text(forms[name], place, f" {forms[name]:,} ({forms[name] / total:.0%})", va="center", fontsize=9)
    axes.set_yticks(range(len(names)), [short(name, 44) for name in names])
    axes.set_ylim(max(1, len(names)) - 0.45, -0.55)
    axes.set_xlim(0, max(forms.values(), default=1) * 1.2)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_xlabel("conditions", color=GREY)
    plain_axes(axes, grid="x")
    axes.tick_params(axis="y", length=0)
    return to_png(figure)


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment / 1e6, UTC).strftime("%Y-%m-%d")
