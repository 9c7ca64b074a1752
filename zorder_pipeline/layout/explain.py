"""A layout in plain words."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby, pairwise

from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec

__all__ = ["explain"]

_DAY = 86_400_000_000
_SPANS: tuple[tuple[float, str], ...] = (
    (365.25 * _DAY, "year"),
    (30.4 * _DAY, "month"),
    (7.0 * _DAY, "week"),
    (1.0 * _DAY, "day"),
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
    sentences = [_feature(feature) for feature in (spec.features[i] for i in dict.fromkeys(spec.order))]
    if spec.curve == "hilbert":
        return (*sentences, "the cells so made follow each other along a Hilbert curve")
    runs = [(spec.features[i].column, len(list(run))) for i, run in groupby(spec.order)]
    words = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in runs)
    return (*sentences, f"order of the bits, most significant first: {words}")


def _feature(feature: FeatureCodes) -> str:
    bits = f"({feature.bits} bit{'s' if feature.bits > 1 else ''})"
    ranges = len(feature.codes)
    head = f"{feature.column}: {ranges} ranges"
    points = feature.breakpoints
    if len(points) == 1:
        return f"{head}, split at {_show(points[0], feature)} {bits}"
    width = _width(points, feature)
    return f"{head}, each about {width} wide {bits}" if width else f"{head} of about as many rows {bits}"


def _show(value: object, feature: FeatureCodes) -> str:
    family = feature.value_type.family
    if family == "decimal" and isinstance(value, int):
        return str(Decimal(value).scaleb(-feature.value_type.scale))
    if family in ("date", "timestamp", "timestamp_ntz", "string", "binary"):
        return "a value in the middle"  # a string or a moment may be personal data
    return str(value)


def _width(points: Sequence[object], feature: FeatureCodes) -> str:
    family = feature.value_type.family
    numbers = [float(p) for p in points if isinstance(p, int | float) and p == p and abs(p) != float("inf")]
    gaps = [b - a for a, b in pairwise(numbers)]
    if not gaps:
        return ""
    gap = statistics.median(gaps)
    if family in ("date", "timestamp", "timestamp_ntz"):
        micros = gap * _DAY if family == "date" else gap
        size, unit = next(((s, u) for s, u in _SPANS if micros >= 0.75 * s), (1_000_000.0, "second"))
        count = round(micros / size)
        return f"a{'n' if unit == 'hour' else ''} {unit}" if count <= 1 else f"{count} {unit}s"
    return f"{gap / 10**feature.value_type.scale:.4g}"
