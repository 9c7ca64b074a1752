"""Which key new files are laid out by: one that divides what lies beyond the range of the learned one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.zone_map import ColumnZones
from zorder_pipeline.relayout import clustering
from zorder_pipeline.relayout.clustering import extended_for
from zorder_pipeline.relayout.file_list import FileList

LEARNED = 64
"""Days that the layout was learned from."""
DAY = np.arange(LEARNED, 2 * LEARNED).repeat(50)
"""Those that came since, in two files."""
EACH = len(DAY) // 2
EVERY = np.ones(len(DAY), dtype=np.bool_)
KNOWN, UNKNOWN, NULL = (True, 0), (False, -1), (False, EACH)
"""Whether a file's bounds are told, and how many nulls are (-1: that is not)."""


def learned() -> KeySpec:
    days = np.arange(LEARNED)
    feature = rank_encoding("day", "int", days, np.ones(LEARNED, dtype=np.bool_)).feature(5)
    return KeySpec((feature,), (0,) * 5, rows=len(DAY), clock="day")


def listed(*told: tuple[bool, int], high: int = 2 * LEARNED - 1, rows: int = EACH, deleted: int = 0) -> FileList:
    number = np.arange(len(told))
    each, nothing = np.full(len(told), rows), np.zeros(len(told), dtype=np.int64)
    known, nulls = np.array([item[0] for item in told]), np.array([item[1] for item in told])
    zones = ColumnZones(nothing, np.where(known, high, 0), known, nulls)
    return FileList(
        path=number.astype(object), bytes=each, rows=each, deleted=nothing + deleted, layout=("",) * len(told),
        generation=nothing - 1, key_low=nothing - 1, key_high=nothing - 1, modified=nothing,
        partitions=((),) * len(told), load_zones=lambda columns: {"day": zones} if "day" in columns else {},
    )  # fmt: skip


def used(monkeypatch: pytest.MonkeyPatch, files: FileList, spec: KeySpec | None = None) -> tuple[KeySpec, list[int]]:
    """The key that the files are laid out by, and for how many columns their rows were asked."""
    asked: list[int] = []

    def values(rows: Any, snapshot: Any, names: list[str], expected: float) -> Any:
        asked.append(len(names))
        return dict.fromkeys(names, (DAY, EVERY))

    monkeypatch.setattr(clustering, "_values", values)
    nothing: Any = None
    return extended_for(spec or learned(), extended, nothing, files, np.arange(len(files)), nothing), asked


@pytest.mark.parametrize("told", [(KNOWN, KNOWN), (UNKNOWN, UNKNOWN), (NULL, UNKNOWN)])
def test_new_days_are_divided_whether_or_not_their_files_tell_them(
    told: tuple[tuple[bool, int], ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days of writers that keep no statistics had one key, so that each new file had all of them."""
    found, asked = used(monkeypatch, listed(*told))
    assert asked == [1]
    assert len(np.unique(keys(found, {"day": (DAY, EVERY)}))) == 32


@pytest.mark.parametrize(
    "files",
    [
        listed(KNOWN, KNOWN, high=LEARNED - 1),
        listed(KNOWN, NULL, high=LEARNED - 1),
        listed((False, EACH + 9), deleted=9),  # a deletion vector hides some of them
        listed(UNKNOWN, rows=0),
    ],
)
def test_rows_are_not_read_where_nothing_can_lie_beyond(files: FileList, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = learned()
    assert used(monkeypatch, files, spec) == (spec, [])


@pytest.mark.parametrize(("expression", "columns"), [("", 2), ("id + 1", 1)])
def test_columns_without_statistics_are_looked_up_and_expressions_are_not(
    expression: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, spec = listed(KNOWN), learned()
    other = rank_encoding("other", "int", np.arange(9), np.ones(9, dtype=np.bool_)).feature(2)
    both = (*spec.features, replace(other, expression=expression))
    wider = replace(spec, features=both, order=(0,) * 5 + (1,) * 2)
    assert used(monkeypatch, files, wider)[1] == [columns]
