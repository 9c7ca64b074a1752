"""Pictures of what the chain found, for the assets' metadata and for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from zorder_pipeline import pictures
from zorder_pipeline.features.ordering import ranks
from zorder_pipeline.features.sample import Sample
from zorder_pipeline.features.select import Analysis
from zorder_pipeline.layout.explain import cut_levels, uses
from zorder_pipeline.layout.importance import column_importance
from zorder_pipeline.layout.learn import Learned
from zorder_pipeline.layout.trials import features_of
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.predicate import comparisons
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.records import TableAnalysis
from zorder_pipeline.relayout.snapshot import TableSnapshot

from .keeping import sample_files

if TYPE_CHECKING:
    import optuna

__all__ = ["asked_over_time", "graph", "layout", "layouts_compared", "plane", "search", "tried", "zones"]

COLUMNS_SHOWN = 8
COORDINATES = 10

Floats = npt.NDArray[np.float64]


def asked_over_time(queries: Sequence[LoggedQuery]) -> bytes:
    """When queries were asked, each by the first column that it filters by."""
    asked: dict[str, list[int]] = {}
    for query in queries:
        if query.timestamp is not None:
            first = next((item.column for item in comparisons(query.predicate)), "no filter")
            asked.setdefault(first, []).append(query.timestamp)
    return pictures.queries_over_time(asked)


def graph(features: Analysis) -> bytes:
    """The correlation graph of the columns that queries filter by."""
    drawn = {*features.ranked, *features.correlated}
    edges = [edge for edge in features.edges if {edge[0], edge[1]} <= drawn]
    return pictures.correlation_graph(
        {c.column: c.queries for c in features.candidates if c.column in drawn},
        {(a, b): strength for a, b, strength, _ in edges},
        {(a, b): kind for a, b, _, kind in edges},
        features.primary,
    )


def layout(spec: KeySpec) -> bytes:
    """Whose bits the key has, or by what the tree cuts."""
    if spec.tree is not None:
        return pictures.layout_cuts(cut_levels(spec), uses(spec), len(spec.tree.leaf_keys))
    return pictures.layout_bits(
        [spec.features[i].column for i in spec.dividing], spare=len(spec.dividing) - len(spec.telling)
    )


def plane(analysis: TableAnalysis, plan: Plan, after: bool = True) -> bytes | None:
    """Rows and files in the plane of the layout's two most used columns, as ranks: no value is told.

    Args:
        after: also as the plan would lay them; without it, only as they lie now.

    Returns:
        None for a layout by fewer columns, or, ``after``, one by a column that was not sampled.
    """
    used = [name for name in uses(plan.spec) if name in analysis.sample.columns][:2] if plan.spec else []
    if plan.spec is None or len(used) < 2:
        return None
    if after and any(name not in analysis.sample.columns for name in plan.spec.columns):
        return None
    sampled = [(name, analysis.sample.columns[name]) for name in used]
    codes = {name: np.where(column.valid, ranks(column.values) + 1, 0) for name, column in sampled}
    panels: dict[str, npt.NDArray[Any]] = {"before" if after else "now": analysis.sample.file}
    if after:
        panels["after"] = sample_files(analysis, plan.spec, plan.target_file_rows)
    return pictures.blocks_2d(codes, panels)


def layouts_compared(learned: Learned) -> bytes:
    """What queries would read under each layout that was weighed."""
    return pictures.layout_shares(learned.compared, learned.name)


def search(study: optuna.Study) -> bytes:
    """Every layout that a search tried, in order."""
    kept = [trial for trial in study.trials if trial.value is not None and np.isfinite(trial.value)]
    phases = [str(trial.user_attrs.get("phase", "search")) for trial in kept]
    return pictures.search_history([float(trial.value or 0.0) for trial in kept], phases)


def tried(study: optuna.Study) -> bytes | None:
    """Parallel coordinates of a search: the bits that each layout gave to each column, the important columns first."""
    kept = [t for t in study.trials if "order" in t.user_attrs and t.value is not None and np.isfinite(t.value)]
    if not kept:
        return None
    names = features_of(kept[0])
    bits = np.array([[trial.user_attrs["order"].count(i) for i in range(len(names))] for trial in kept])
    weight = column_importance(study)
    best = bits[int(np.argmin([trial.value or 0.0 for trial in kept]))]
    order = sorted(range(len(names)), key=lambda i: (-weight.get(names[i], 0.0), -int(best[i])))[:COORDINATES]
    costs = np.array([trial.value for trial in kept], dtype=np.float64)
    return pictures.parallel_bits([names[i] for i in order], bits[:, order], costs)


def zones(snapshots: dict[str, TableSnapshot], sample: Sample, columns: Sequence[str]) -> bytes | None:
    """How much of each column every file spans, per snapshot; None when no column has statistics.

    Args:
        snapshots: the table by the panel's title.
        columns: the first eight that the sample has are drawn.
    """
    shown = [name for name in columns if name in sample.columns][:COLUMNS_SHOWN]
    panels: dict[str, dict[str, Floats]] = {}
    for title, snapshot in snapshots.items():
        found = {name: _spans(snapshot, sample, name) for name in shown}
        panels[title] = {name: spans for name, spans in found.items() if spans is not None}
    return pictures.zone_map(panels) if all(panels.values()) else None


def _spans(snapshot: TableSnapshot, sample: Sample, name: str) -> Floats | None:
    """Share of the sampled values between each file's min and max, NaN without statistics, shape (files,)."""
    found = snapshot.files().zone_map().columns.get(name)
    column = sample.columns[name]
    values = np.sort(column.values[column.valid])
    if found is None or not len(values):
        return None
    spans = np.full(len(found.known), np.nan)
    low = np.searchsorted(values, found.low[found.known], side="left")
    high = np.searchsorted(values, found.high[found.known], side="right")
    spans[found.known] = np.clip((high - low) / len(values), 0.0, 1.0)
    return spans
