"""A layout in plain words."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import groupby, pairwise

from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.values import DAY
from zorder_pipeline.model.wording import counted

__all__ = ["cut_levels", "explain", "uses"]

FIRST_LEVELS = 3
"""Levels of a tree whose columns are named."""

_SPANS: tuple[tuple[float, str], ...] = (
    (365.25 * DAY, "year"),
    (30.4 * DAY, "month"),
    (7.0 * DAY, "week"),
    (1.0 * DAY, "day"),
    (3_600_000_000.0, "hour"),
    (60_000_000.0, "minute"),
    (1_000_000.0, "second"),
)


def explain(spec: KeySpec) -> tuple[str, ...]:
    """What the layout does, a sentence per column and one on their order, most significant first.

    >>> day = FeatureCodes("day", "date", tuple(range(30, 480, 30)), tuple(range(16)), 4)
    >>> part = FeatureCodes("part", "int", (50,), (0, 1), 1)
    >>> for sentence in explain(KeySpec((day, part), (0, 1, 0, 0, 0))):
    ...     print(sentence)
    day: 16 ranges, each about a month wide (4 bits)
    part: 2 ranges, split at 50 (1 bit)
    order of the bits, most significant first: day, part, day x3
    """
    if spec.tree is not None:
        return _tree(spec, spec.tree)
    telling = Counter(spec.telling)
    sentences = [_feature(spec.features[i], telling[i]) for i in dict.fromkeys(spec.order)]
    if spec.curve == "hilbert":
        return (*sentences, "the cells so made follow each other along a Hilbert curve")
    runs = [(spec.features[i].column, len(list(run))) for i, run in groupby(spec.dividing)]
    words = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in runs)
    sentences.append(f"order of the bits, most significant first: {words}")
    if spec.curve == "gray" and len(runs) > 1:
        sentences.append(
            "the cells so made follow each other along a Gray-code curve: from one to the next a single column changes"
        )
    spare = len(spec.dividing) - len(spec.telling)
    if spare:
        which = f"last {spare} bits order" if spare > 1 else "last bit orders"
        sentences.append(f"the {which} rows inside files, and will tell files apart when the table has grown")
    return tuple(sentences)


def uses(spec: KeySpec) -> dict[str, float]:
    """How often the layout divides a cell by each column, the most used first.

    Bits of the key; for a tree the cuts between its root and a cell, on average over the cells.
    """
    counts: Counter[str] = Counter()
    if spec.tree is None:
        counts.update(spec.features[i].column for i in spec.order)
        return dict(counts.most_common())
    below = _cells_below(spec.tree)
    for node, feature in enumerate(spec.tree.feature):
        if feature != LEAF:
            counts[spec.features[feature].column] += below[node]
    return {name: count / below[0] for name, count in counts.most_common()}


def cut_levels(spec: KeySpec) -> tuple[dict[str, float], ...]:
    """By level of the tree, from the root: the share of the level's cells that each column cuts.

    What is missing from 1 are cells that are not cut further; empty without a tree.
    """
    if spec.tree is None:
        return ()
    levels = _levels(spec, spec.tree)
    return tuple({name: count / cells for name, count in cuts.most_common()} for cells, cuts in levels)


def _cells_below(tree: CutTree) -> list[int]:
    """Leaves below each node; 1 at a leaf."""
    below = [1] * len(tree.feature)
    for node in reversed(range(len(tree.feature))):  # children come after their parent
        if tree.feature[node] != LEAF:
            below[node] = below[tree.low[node]] + below[tree.high[node]]
    return below


def _levels(spec: KeySpec, tree: CutTree) -> list[tuple[int, Counter[str]]]:
    """By level: its cells, and how many of them each column cuts; the last level that is cut comes last."""
    levels: list[tuple[int, Counter[str]]] = []
    nodes = [0]
    while cut := [node for node in nodes if tree.feature[node] != LEAF]:
        levels.append((len(nodes), Counter(spec.features[tree.feature[node]].column for node in cut)))
        nodes = [child for node in cut for child in (tree.low[node], tree.high[node])]
    return levels


def _tree(spec: KeySpec, tree: CutTree) -> tuple[str, ...]:
    used = uses(spec)
    cells, ways = len(tree.leaf_keys), sum(used.values())
    if not used:
        return ("a tree without a cut: one cell holds all rows",)
    first = [_either(columns) for _, columns in _levels(spec, tree)[:FIRST_LEVELS]]
    features = {feature.column: i for i, feature in enumerate(spec.features)}
    return (
        f"a tree of {counted(cells - 1, 'cut')}, {tree.depth} deep, makes {cells:,} cells",
        *(
            f"{name}: {_share(count / ways)} of the cuts that make a cell, {_places(spec, features[name])}"
            for name, count in used.items()
        ),
        f"columns of the first cuts, the coarsest first: {', then '.join(first)}",
        *(_feature(feature, feature.bits) for feature in spec.features if not feature.divides),
        *_sizes(tree),
    )


def _sizes(tree: CutTree) -> Iterator[str]:
    """How files differ in size, if they do."""
    if tree.size:
        yield (
            f"files of {min(tree.leaf_sizes):.2g} to {max(tree.leaf_sizes):.2g} times the usual size: small ones where "
            "that saves queries most, large ones where few look"
        )


def _places(spec: KeySpec, index: int) -> str:
    """Where a tree cuts by a feature, and what the cells so made span of it."""
    assert spec.tree is not None
    feature = spec.features[index]
    starts = {code: feature.breakpoints[place] for place, code in enumerate(feature.codes[1:])}
    cuts = {cut for cut, asked in zip(spec.tree.cut, spec.tree.feature, strict=True) if asked == index}
    if len(cuts) == 1:
        return f"at {_show(starts.get(cuts.pop(), math.nan), feature)}"  # NaN has a code, but no breakpoint
    width = _width(
        [(starts.get(low), starts.get(high)) for low, high in _cells(spec.tree, index) if low and high], feature
    )
    return f"at {len(cuts):,} values" + (f"; a cell is about {width} wide" if width else "")


def _cells(tree: CutTree, index: int) -> list[tuple[int, int]]:
    """The first code of a feature in each leaf and the first one after it; 0 where no cut bounds the leaf."""
    found, stack = [], [(0, 0, 0)]
    while stack:
        node, low, high = stack.pop()
        if tree.feature[node] == LEAF:
            found.append((low, high))
            continue
        cut = tree.cut[node] if tree.feature[node] == index else 0
        stack += [(tree.low[node], low, cut or high), (tree.high[node], cut or low, high)]
    return found


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 else "under 1%"


def _either(columns: Mapping[str, int]) -> str:
    """``a``, ``a or b``, ``a, b or c``: what different cells of one level are cut by, the most frequent first."""
    names = sorted(columns, key=lambda name: (-columns[name], name))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _feature(feature: FeatureCodes, telling: int) -> str:
    """What a feature does of which so many bits tell files apart."""
    if not feature.divides:
        return f"{feature.column}: one range; rows that come after it will be kept apart"
    inside = f"inside files {_ranges(feature, feature.bits)}" if telling < feature.bits else ""
    words = [_ranges(feature, telling)] * (telling > 0) + [inside] * bool(inside)
    return f"{feature.column}: {'; '.join(words)}"


def _ranges(feature: FeatureCodes, bits: int) -> str:
    """The ranges that the first bits of a feature tell apart."""
    coarse = [code >> (feature.bits - bits) for code in feature.codes]
    points = [point for point, (low, high) in zip(feature.breakpoints, pairwise(coarse), strict=True) if low != high]
    asked = f"({counted(bits, 'bit')})"
    if not points:
        return f"values apart from nulls {asked}"
    head = f"{len(points) + 1:,} ranges"
    if len(points) == 1:
        return f"{head}, split at {_show(points[0], feature)} {asked}"
    width = _width(pairwise(points), feature)
    return f"{head}, each about {width} wide {asked}" if width else f"{head} of about as many rows {asked}"


def _show(value: object, feature: FeatureCodes) -> str:
    family = feature.value_type.family
    if family == "decimal" and isinstance(value, int):
        return str(Decimal(value).scaleb(-feature.value_type.scale))
    if family in ("date", "timestamp", "timestamp_ntz", "string", "binary"):
        return "a value in the middle"  # a string or a moment may be personal data
    return str(value)


def _width(ranges: Iterable[tuple[object, object]], feature: FeatureCodes) -> str:
    """The usual width of ranges in the column's own terms; empty where widths mean nothing."""
    family = feature.value_type.family
    gaps = [float(high) - float(low) for low, high in ranges if _finite(low) and _finite(high)]  # type: ignore[arg-type]
    if not gaps:
        return ""
    gap = statistics.median(gaps)
    if family in ("date", "timestamp", "timestamp_ntz"):
        micros = gap * DAY if family == "date" else gap
        size, unit = next(((s, u) for s, u in _SPANS if micros >= 0.75 * s), (1_000_000.0, "second"))
        count = round(micros / size)
        return f"a{'n' if unit == 'hour' else ''} {unit}" if count <= 1 else f"{count} {unit}s"
    width = gap / 10**feature.value_type.scale
    return f"{width:,.0f}" if family == "integer" or width >= 1000 else f"{width:.4g}"


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
