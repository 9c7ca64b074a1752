"""A table whose queries move: templates, logs in segments, and what every query reads under layouts learned on the way.

The table is simulated whole, as arrays, cut into files by each layout; a query reads the files whose zone maps it may
match. A query costs the share of the table's rows that it reads, so that a full scan costs 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zorder_pipeline.layout.baselines import warm_starts
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.search import SearchSettings, search
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.ranges import Boxes, Interval, Range, columns_asked
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType, canonical_array

from .cases import as_stored, drill_downs, spark_type
from .lookups import Filter, Shape

__all__ = ["KINDS", "SEGMENTS", "Log", "World", "draw_log"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FILES = 100
SAMPLE = 8_000
TRIALS = 60
SEGMENTS = 20
TEMPLATES = 12
IN_TURN = 300
"""Queries after which an alternating log changes sides."""
KINDS = ("segments", "alternating", "gradual", "steady")


@dataclass(frozen=True)
class Log:
    """Queries in the order in which they are asked.

    Attributes:
        kind: ``segments`` (one template after the other), ``alternating`` (two templates in turn), ``gradual`` (from
            one mixture of templates to another) or ``steady`` (one mixture throughout).
        template: template of each query, shape (queries,).
        boxes: what each query asks for.
        starts: first query of each segment.
    """

    kind: str
    template: Ints
    boxes: tuple[Boxes, ...] = field(repr=False)
    starts: tuple[int, ...] = (0,)


@dataclass
class World:
    """One table, one log, and the cost of each of its queries under each layout that was ever learned.

    Attributes:
        columns: canonical values and validity of the filtered columns, shape (rows,) each.
        sampled: a sample of the rows, from which layouts are learned.
        log: what is asked.
        exact: the log's queries over all rows.
        on_sample: the log's queries over the sample.
        specs: layouts, the first one None: the table as it was stored.
        costs: share of the rows that each query reads under each layout, shape (queries,) each.
    """

    columns: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = field(repr=False)
    schema: TableSchema
    rows: int
    sampled: SampledTable = field(repr=False)
    sample: dict[str, tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]] = field(repr=False)
    log: Log = field(repr=False)
    exact: Estimator = field(repr=False)
    specs: list[KeySpec | None] = field(default_factory=lambda: [None])
    costs: list[Floats] = field(default_factory=list, repr=False)
    learned_from: dict[tuple[int, ...], int] = field(default_factory=dict, repr=False)

    @staticmethod
    def build(rows: pa.Table, log: Log, seed: int) -> World:
        """A world over a table as it is stored: in the order in which its rows came."""
        schema, columns = arrays(rows, columns_asked(log.boxes))
        n = len(rows)
        chosen = np.sort(np.random.default_rng(seed).choice(n, min(SAMPLE, n), replace=False))
        sample = {name: (values[chosen], valid[chosen]) for name, (values, valid) in columns.items()}
        types = {column.name: column.type for column in schema.columns}
        stored = (chosen * FILES // n).astype(np.int32)
        sampled = SampledTable.build(sample, types, list(columns), stored, FILES)
        world = World(columns, schema, n, sampled, sample, log, Estimator.build(columns, schema, log.boxes, n))
        world.costs.append(world.exact.rows_read(as_stored(n, FILES), FILES) / n)
        return world

    def learn(self, queries: Ints, weights: Floats, seed: int = 0) -> int:
        """Number of the layout learned from some of the log's queries: the better one of a bit order and a tree.

        Three quarters of the queries teach, the others, the newest ones, choose.
        """
        key = tuple(queries.tolist())
        if key in self.learned_from:
            return self.learned_from[key]
        cut = len(queries) * 3 // 4
        teach, choose = (
            Estimator.build(self.sample, self.schema, [self.log.boxes[i] for i in part], self.sampled.rows)
            for part in (queries[:cut], queries[cut:])
        )
        settings = SearchSettings(TRIALS, seed)
        drafts = (
            grow_tree(self.sampled.fine, teach, weights[:cut], self.sampled.rows_per_file),
            search(self.sampled, teach, weights[:cut], warm_starts(self.sampled), settings).draft,
        )
        read = [float(self.sampled.rows_read(draft, choose) @ weights[cut:]) for draft in drafts]
        self.specs.append(self.sampled.spec(drafts[int(np.argmin(read))]))
        self.learned_from[key] = number = len(self.specs) - 1
        self.costs.append(self._read(number))
        return number

    def features(self, layout: int) -> int:
        """Columns of a layout's key."""
        spec = self.specs[layout]
        return len(spec.features) if spec is not None else 1

    def _read(self, layout: int) -> Floats:
        spec = self.specs[layout]
        assert spec is not None
        file = files_under(spec, self.columns, self.rows / FILES)
        return self.exact.rows_read(file.astype(np.int32), int(file.max()) + 1) / self.rows


def draw_log(rows: pa.Table, kind: str, queries: int, seed: int) -> Log:
    """A log of random drill-downs, every literal new, in segments of random lengths.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind of log {kind}; one of {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    shapes = [shape for part in range(4) for shape in drill_downs(rows, 1000 * seed + part)][:TEMPLATES]
    template, starts = _templates(kind, queries, len(shapes), rng)
    names = {item.column for shape in shapes for item in shape.filters}
    schema, columns = arrays(rows, names)
    sorted_values = {name: np.sort(values[valid]) for name, (values, valid) in columns.items()}
    types = {column.name: column.type for column in schema.columns}
    boxes = tuple(_query(shapes[i], sorted_values, types, rng) for i in template)
    return Log(kind, template, boxes, starts)


def arrays(rows: pa.Table, names: set[str]) -> tuple[TableSchema, dict[str, Any]]:
    """Schema of a table, and canonical values and validity of some of its columns."""
    kinds = {item.name: spark_type(item.type) for item in rows.schema}
    schema = TableSchema(
        tuple(Column(name, kind, delta_stats=ValueType.parse(kind).delta_min_max) for name, kind in kinds.items())
    )
    return schema, {n: canonical_array(rows.column(n), ValueType.parse(kinds[n])) for n in sorted(names)}


def _templates(kind: str, queries: int, count: int, rng: np.random.Generator) -> tuple[Ints, tuple[int, ...]]:
    if kind == "steady":
        return rng.choice(count, queries, p=rng.dirichlet(np.full(count, 2.0))), (0,)
    if kind == "alternating":
        pair = rng.choice(count, 2, replace=False)
        starts = range(0, queries, IN_TURN)
        return pair[np.arange(queries) // IN_TURN % 2], tuple(starts)
    if kind == "gradual":
        first, last = rng.dirichlet(np.full(count, 0.3), 2)
        late = rng.random(queries) < np.arange(queries) / queries
        return np.where(late, rng.choice(count, queries, p=last), rng.choice(count, queries, p=first)), (0,)
    lengths = rng.dirichlet(np.full(SEGMENTS, 6.0)) * queries
    ends = np.round(np.cumsum(lengths)).astype(np.int64)
    order = [int(rng.integers(count))]
    while len(order) < SEGMENTS:
        order.append(int(rng.choice([i for i in range(count) if i != order[-1]])))
    segment = np.searchsorted(ends, np.arange(queries), side="right").clip(max=SEGMENTS - 1)
    return np.array(order)[segment], (0, *ends[:-1].tolist())


def _query(shape: Shape, values: dict[str, Any], types: dict[str, str], rng: np.random.Generator) -> Boxes:
    parts = (Range(f.column, types[f.column], (_interval(f, values[f.column], rng),)) for f in shape.filters)
    return (tuple(parts),)


def _interval(item: Filter, values: npt.NDArray[Any], rng: np.random.Generator) -> Interval:
    """A condition with literals drawn from the column's own values, as `zorder_pipeline.benchmarks.lookups` does it."""
    n = len(values)
    if item.op == "point":
        value = _plain(values[int(rng.integers(n))])
        return Interval(value, value)
    if item.op == "above":
        return Interval(_plain(values[int(n * (1 - min(1.0, item.share * rng.uniform(0.8, 1.2))))]))
    width = min(n - 1, max(1, int(n * item.share * rng.uniform(0.3, 1.7))))
    low = int(rng.integers(n - width))
    return Interval(_plain(values[low]), _plain(values[low + width]))


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
