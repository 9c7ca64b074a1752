"""Which files may hold a row that a query needs, by every statistic there is, and which statistic says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from zorder_pipeline.model.file_stats import FeatureStats, bloom_place
from zorder_pipeline.model.ranges import Boxes, Range
from zorder_pipeline.model.values import ValueType
from zorder_pipeline.model.zone_map import ColumnZones, Mask, ZoneMap

from .told_bounds import loosened

__all__ = ["Excluded", "FileTests", "without_hulls"]

KINDS = ("partition", "delta", "column", "expression", "bloom", "predicate")
"""In the order in which they are asked: statistics first, then predicate bits (seed 004)."""
MOST_LOOKED_UP = 1_000
"""Values of one IN that are looked up in Bloom filters."""

Test: TypeAlias = tuple[str, str]
"""Kind of a statistic, and the column, expression or predicate that it is of."""
_Answers: TypeAlias = dict[tuple[str, Range], Mask]
"""The files that each kind of statistic leaves for a range."""


@dataclass(frozen=True)
class Excluded:
    """Files that a statistic excluded and none before it did."""

    kind: str
    name: str
    files: int


class FileTests:
    """The statistics of n files, ready to be asked.

    Args:
        delta: what Delta's log says of them.
        enriched: statistics of our own, by the name of the column in the widened schema.
        foreign: files that others than Spark may have written, shape (n,); None where there is none. Their log may tell
            the bounds of floats without NaN, as the Delta protocol lets writers do, and those of decimals rounded.
    """

    def __init__(self, delta: ZoneMap, enriched: Mapping[str, FeatureStats], foreign: Mask | None = None) -> None:
        self.delta = replace(delta, columns=_certain(delta.columns), all_or_none=False)
        self.enriched = dict(enriched)
        self.foreign = foreign if foreign is not None and foreign.any() else None
        self._loosened: dict[str, ColumnZones] = {}

    def matching(self, boxes: Boxes, own: bool = True, delta: Mask | None = None) -> Mask:
        """Files that may hold a row of one of the boxes, shape (n,); what is not known does not exclude.

        Args:
            own: also ask statistics of our own.
            delta: files that Delta's own selection reads, shape (n,); None where all are. What it leaves out by bounds
                that are not sure a plain read does not return either.
        """
        wanted = [test for test in self._tests(boxes) if own or test[0] in ("partition", "delta")]
        return self._left(boxes, wanted, self._both_answers(boxes), delta)

    def excluded(self, boxes: Boxes, delta: Mask | None = None) -> tuple[Excluded, ...]:
        """What each statistic excludes that those before it did not, those that exclude nothing left out.

        Args:
            delta: as in `matching`.
        """
        return self.excluded_from_all([(boxes, delta)])

    def excluded_from_all(self, asked: Sequence[tuple[Boxes, Mask | None]]) -> tuple[Excluded, ...]:
        """The same of several scans at once: a file is excluded that none of them may need.

        Args:
            asked: the boxes of each scan, and what Delta's own selection reads for it, as in `matching`.
        """
        tests = self._tests(tuple(box for boxes, _ in asked for box in boxes))
        answers = [self._both_answers(boxes) for boxes, _ in asked]
        before = len(self.delta)
        found = []
        for count, (kind, name) in enumerate(tests, 1):
            left = np.zeros(len(self.delta), dtype=np.bool_)
            for (boxes, delta), told in zip(asked, answers, strict=True):
                left |= self._left(boxes, tests[:count], told, delta)
            if (after := int(left.sum())) < before:
                found.append(Excluded(kind, name, before - after))
            before = after
        return tuple(found)

    def _left(
        self, boxes: Boxes, tests: Sequence[Test], answers: tuple[_Answers, _Answers], delta: Mask | None
    ) -> Mask:
        sure, as_told = answers
        found = self._remaining(boxes, tests, sure)
        if sure is as_told or delta is None:
            return found
        return found & (delta | self._remaining(boxes, tests, as_told))

    def _both_answers(self, boxes: Boxes) -> tuple[_Answers, _Answers]:
        """The answers that are sure, and those by the log's bounds as they are told; the same where none is doubted."""
        as_told = self._answers(boxes)
        sure = {key: self._surely(key[1], told) for key, told in as_told.items() if key[0] == "delta"}
        doubted = {key: mask for key, mask in sure.items() if mask is not as_told[key]}
        return (as_told | doubted if doubted else as_told), as_told

    def _surely(self, item: Range, told: Mask) -> Mask:
        """The files that a range leaves by bounds that are sure; ``told`` itself where none are doubted."""
        zones = self.delta.columns[item.column]
        if item.column not in self._loosened:
            self._loosened[item.column] = loosened(zones, item.type, self.foreign)
        if (loose := self._loosened[item.column]) is not zones:
            told = replace(self.delta, columns={item.column: loose}).matching(((item,),))
        if self.foreign is not None and _holds_nan(item):
            told = told | (self.foreign & zones.known)
        return told

    def _tests(self, boxes: Boxes) -> list[Test]:
        """What can be asked for these boxes, in order."""
        found: dict[Test, None] = {}
        for item in _ranges(boxes):
            for kind, name in self._of_range(item):
                found[kind, name] = None
        return sorted(found, key=lambda test: KINDS.index(test[0]))

    def _of_range(self, item: Range) -> Iterable[Test]:
        if (zones := self.delta.columns.get(item.column)) is not None:
            yield "partition" if zones.exact else "delta", item.column
        if (stats := self.enriched.get(item.column)) is not None:
            yield stats.feature.kind, item.column
            if stats.bloom is not None:
                yield "bloom", item.column

    def _answers(self, boxes: Boxes) -> _Answers:
        return {
            (kind, item): self._answer(kind, item) for item in set(_ranges(boxes)) for kind, _ in self._of_range(item)
        }

    def _answer(self, kind: str, item: Range) -> Mask:
        if kind in ("partition", "delta"):
            return replace(self.delta, columns={item.column: self.delta.columns[item.column]}).matching(((item,),))
        stats = self.enriched[item.column]
        if kind == "bloom":
            return _looked_up(stats, item)
        return ZoneMap(stats.rows, self.delta.bytes, {item.column: stats.zones}, stats.rows).matching(((item,),))

    def _remaining(self, boxes: Boxes, tests: Iterable[Test], answers: _Answers) -> Mask:
        asked = set(tests)
        result = np.zeros(len(self.delta), dtype=np.bool_)
        for box in boxes:
            hit = np.ones(len(self.delta), dtype=np.bool_)
            for item in box:
                for kind, name in self._of_range(item):
                    if (kind, name) in asked:
                        hit &= answers[kind, item]
            result |= hit
        return result


def _certain(columns: Mapping[str, ColumnZones]) -> Mapping[str, ColumnZones]:
    """Bounds without those of texts that Delta's log cannot hold: bytes that are no UTF-8 are U+FFFD in it.

    Those may be on the wrong side of the values, which tells where more is asked of them than Delta asks.
    """

    def certain(zones: ColumnZones) -> ColumnZones:
        if zones.exact or zones.low.dtype.kind != "O":
            return zones
        both = zip(zones.low.tolist(), zones.high.tolist(), strict=True)
        wrong = [any(isinstance(value, str) and "\ufffd" in value for value in pair) for pair in both]
        return replace(zones, known=zones.known & ~np.array(wrong, dtype=np.bool_)) if any(wrong) else zones

    return {name: certain(zones) for name, zones in columns.items()}


def without_hulls(boxes: Boxes) -> Boxes:
    """The boxes with every value of an IN tested alone, which Delta does not do."""
    return tuple(tuple(replace(item, hull=False) for item in box) for box in boxes)


def _holds_nan(item: Range) -> bool:
    """Whether NaN, which is larger than all numbers and equal to itself, is in one of a range's intervals."""
    if ValueType.parse(item.type).family != "float":
        return False
    return any(one.high is None or (one.high != one.high and not one.high_open) for one in item.tested)


def _ranges(boxes: Boxes) -> Iterable[Range]:
    return (item for box in boxes for item in box)


def _looked_up(stats: FeatureStats, item: Range) -> Mask:
    """Files whose Bloom filter may hold one of the values that the range asks for, if it asks for single values."""
    assert stats.bloom is not None
    assert stats.filtered is not None
    points = {interval.low for interval in item.intervals}
    single = all(interval.low is not None and interval.low == interval.high for interval in item.intervals)
    if not single or item.nulls or len(points) > MOST_LOOKED_UP or ValueType.parse(item.type).family == "float":
        return np.ones(len(stats.filtered), dtype=np.bool_)
    found: npt.NDArray[np.bool_] = ~stats.filtered
    for value in points:
        assert value is not None
        found[stats.bloom.having(bloom_place(value))] = True
    return found
