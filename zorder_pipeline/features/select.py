"""Feature selection: candidates, the correlation graph over them, and the columns a key may use (seed 004, 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import networkx as nx

from zorder_pipeline.model.schema import TableSchema
from zorder_pipeline.model.workload import LoggedQuery

from .candidates import Candidate, column_candidates, query_weights
from .correlation import build_graph, traverse
from .expressions import ExpressionCandidate, expression_candidates
from .predicates import PredicateCandidate, predicate_candidates
from .sample import Sample

__all__ = ["Analysis", "Edge", "analyse"]

MAX_CATEGORIES = 64
"""A column of more values is no category: contingency of sparse tables says 1 about everything."""

Edge = tuple[str, str, float, str]
"""Two columns, the strength of their correlation (0 to 1) and its kind (ascending, descending, contingency)."""


@dataclass(frozen=True)
class Analysis:
    """What the workload analysis found.

    Attributes:
        candidates: every filtered column, most frequent first; ``chosen`` says whether it is primary.
        expression_candidates: functions of columns that queries compare with constants.
        predicate_candidates: predicates that no column's order serves.
        primary: columns that deserve bits of the key.
        correlated: candidates left to statistics: they follow others, or ``max_features`` was reached.
        edges: correlations found; ``contingency`` ones are for information, as they imply no order.
        ranked: the columns that a key may use (Delta statistics, no partition column, not constant), at most
            ``max_features``: primary ones first, then the other filtered ones, each by weighted frequency.
    """

    candidates: tuple[Candidate, ...]
    predicate_candidates: tuple[PredicateCandidate, ...]
    primary: tuple[str, ...]
    correlated: tuple[str, ...]
    edges: tuple[Edge, ...]
    ranked: tuple[str, ...]
    expression_candidates: tuple[ExpressionCandidate, ...] = ()

    @property
    def followers(self) -> tuple[str, ...]:
        """The correlated columns that sorting by a primary one sorts, too."""
        alike = {frozenset((a, b)) for a, b, _, kind in self.edges if kind != "contingency"}
        return tuple(c for c in self.correlated if any(frozenset((c, other)) in alike for other in self.primary))

    def to_json(self, redact: bool = False) -> dict[str, Any]:
        """JSON-ready form; with ``redact`` the predicates' literals are hidden."""
        return {
            "candidates": [asdict(candidate) for candidate in self.candidates],
            "expression_candidates": [candidate.to_json(redact) for candidate in self.expression_candidates],
            "predicate_candidates": [candidate.to_json(redact) for candidate in self.predicate_candidates],
            "primary": list(self.primary),
            "correlated": list(self.correlated),
            "edges": [list(edge) for edge in self.edges],
            "ranked": list(self.ranked),
        }


def analyse(
    queries: Sequence[LoggedQuery],
    schema: TableSchema,
    sample: Sample,
    *,
    max_features: int = 16,
    half_life_days: float | None = None,
    scanned: Sequence[float] | None = None,
    solved: bool = False,
) -> Analysis:
    """Select features for one table.

    Args:
        queries: its queries.
        sample: rows of at least the columns that the queries filter by.
        max_features: columns that a key may use, at most.
        half_life_days: age at which a query counts half; None counts all alike.
        scanned: share of the table that each query would scan if only its partitions were pruned; None takes all.
        solved: some readers skip by what was solved out of expressions, too, as scans through ``reading/`` do.
    """
    weights = query_weights(queries, half_life_days, scanned)
    found = column_candidates(queries, weights, schema, sample, solved=solved)
    usable = [c for c in found if _usable(c, schema)]
    graph = build_graph(
        {c.column: sample.columns[c.column] for c in usable},
        seed=sample.seed,
        categorical={c.column for c in usable if c.distinct <= MAX_CATEGORIES},
    )
    order: nx.Graph[str] = nx.Graph()
    order.add_nodes_from(c.column for c in usable if c.chosen)
    for a, b, data in graph.edges(data=True):
        if data["kind"] != "contingency" and a in order and b in order:
            order.add_edge(a, b)
    frequency = {c.column: c.frequency for c in usable}
    primary, correlated = traverse(order, frequency, max_features)
    ranked = sorted(usable, key=lambda c: (c.column not in primary, -c.frequency))
    predicates = predicate_candidates(queries, weights, schema, found)
    expressions = expression_candidates(queries, weights, schema)
    return Analysis(
        expression_candidates=expressions,
        candidates=tuple(_judged(c, primary, correlated, graph, max_features) for c in found),
        predicate_candidates=predicates,
        primary=primary,
        correlated=correlated,
        edges=tuple((a, b, float(data["strength"]), str(data["kind"])) for a, b, data in graph.edges(data=True)),
        ranked=tuple(c.column for c in ranked[:max_features]),
    )


def _usable(candidate: Candidate, schema: TableSchema) -> bool:
    column = schema.find(candidate.column)
    varied = candidate.distinct > 1 or (candidate.distinct == 1 and candidate.null_share > 0)
    return column is not None and not column.partition and candidate.level == "delta" and varied


def _judged(
    candidate: Candidate, primary: Sequence[str], correlated: Sequence[str], graph: nx.Graph[str], limit: int
) -> Candidate:
    """The candidate with what the graph's traversal made of it."""
    name = candidate.column
    if not candidate.chosen or name in primary:
        return candidate
    near = {other: graph.edges[name, other] for other in graph.neighbors(name)} if name in graph else {}
    leading = [other for other in primary if near.get(other, {}).get("kind") in ("ascending", "descending")]
    if name in correlated and leading:
        edge = near[leading[0]]
        why = f"{name} follows {leading[0]} ({edge['kind']}, {edge['strength']:.2f}): sorting by that sorts it, too"
        return replace(candidate, chosen=False, reason=why)
    if name in correlated:
        return replace(candidate, chosen=False, reason=f"{limit} features come before {name}")
    return replace(candidate, chosen=False, reason=f"{name} was not in the sample")
