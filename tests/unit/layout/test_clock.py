"""The clock: later rows are kept apart where their time is asked for, and divided by other columns where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from zorder_pipeline.layout.cells import cut_cells
from zorder_pipeline.layout.clock import with_clock
from zorder_pipeline.layout.deepen import deepened
from zorder_pipeline.layout.draft import AnyDraft, Draft, SampledTable
from zorder_pipeline.layout.explain import explain
from zorder_pipeline.layout.extend import extended
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.tree import TreeDraft
from zorder_pipeline.model.cut_tree import LEAF
from zorder_pipeline.model.key_spec import KeySpec
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS = 20_000
TYPES = {"a": "int", "b": "int", "day": "date", "sent": "date", "born": "date", "number": "int"}
SCHEMA = TableSchema(tuple(Column(name, kind) for name, kind in TYPES.items()))
Columns = dict[str, tuple[np.ndarray, np.ndarray]]


def columns(days: tuple[int, int] = (0, 100), seed: int = 0) -> Columns:
    """Rows whose day, the day they were sent and their number go together."""
    rng, valid = np.random.default_rng(seed), np.ones(ROWS, dtype=bool)
    day = rng.integers(*days, ROWS)
    found = {"a": rng.integers(0, 1000, ROWS), "b": rng.integers(0, 1000, ROWS), "day": day}
    found |= {"sent": day + rng.integers(0, 3, ROWS), "born": rng.integers(0, 20_000, ROWS)}
    found["number"] = day * 1000 + rng.integers(0, 1000, ROWS)
    return {name: (values, valid) for name, values in found.items()}


def asks(seed: int, wanted: dict[str, tuple[int, int]], count: int = 80) -> list[Boxes]:
    """Queries for ranges: by column the largest low bound, and the width."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        ends = []
        for name, (most, width) in wanted.items():
            low = int(rng.integers(0, most + 1))
            for sign, value in (("<=", low + width), (">=", low)):
                text = str(np.datetime64(value, "D")) if TYPES[name] == "date" else str(value)
                ends.append(Comparison(name, sign, (Literal("string" if TYPES[name] == "date" else "number", text),)))
        found.append(to_boxes(And(tuple(ends)), SCHEMA))
    return found


def sampled(features: list[str]) -> tuple[SampledTable, Columns]:
    rows = columns()
    return SampledTable.build(rows, TYPES, features, np.zeros(ROWS, np.int32), 6), rows


def clocked(
    table: SampledTable, rows: Columns, draft: AnyDraft, queries: list[Boxes], schema: TableSchema = SCHEMA
) -> KeySpec:
    even = np.ones(len(queries))
    deeper, spare = deepened(draft, table, Estimator.build(rows, schema, queries, ROWS), even)
    plain = replace(table.spec(deeper), rows=ROWS, spare=spare)
    return with_clock(plain, deeper, table, rows, schema, queries, even)


def without_statistics(*names: str) -> TableSchema:
    return TableSchema(tuple(replace(column, delta_stats=column.name not in names) for column in SCHEMA.columns))


def read(spec: KeySpec, rows: Columns, total: int, files: int, queries: list[Boxes]) -> float:
    file = files_under(extended(spec, rows, total), rows, ROWS / files).astype(np.int32)
    return float(Estimator.build(rows, SCHEMA, queries, ROWS).rows_read(file, int(file.max()) + 1).mean()) / ROWS


AB = {"a": (900, 60), "b": (900, 60)}
ALL_DAYS = {"a": (900, 60), "day": (0, 100)}


@pytest.mark.parametrize("kind", ["interleave", "tree"])
def test_a_key_without_a_time_keeps_later_rows_apart_where_they_are_asked_for(kind: str) -> None:
    table, rows = sampled(["a", "b", "day"])
    queries = asks(0, ALL_DAYS)  # of a table of 100 days
    estimator = Estimator.build(rows, SCHEMA, asks(0, AB), ROWS)
    tree = grow_tree(table.fine[:2], estimator, np.ones(80), table.rows_per_file)
    draft = tree if kind == "tree" else Draft((0, 1, 0, 1))
    plain = table.spec(draft)
    spec = with_clock(replace(plain, rows=ROWS), draft, table, rows, SCHEMA, queries, np.ones(80))
    assert spec.columns == (*plain.columns, "day")
    assert spec.clock == "day"
    assert KeySpec.from_json(spec.to_json()) == spec
    order = np.argsort(keys(plain, rows), kind="stable")
    assert (np.diff(keys(spec, rows)[order]) >= 0).all()  # nothing changes until days come
    assert "day: one range; rows that come after it will be kept apart" in explain(spec)
    assert not any("inside files" in sentence for sentence in explain(spec))
    later = columns((100, 500), seed=3)
    key = keys(extended(spec, later, 4 * ROWS), later)
    assert sorted(set((key >> spec.bits).tolist())) == [1, 2, 3, 4]
    cells, counts = np.unique(key, return_counts=True)
    file = np.searchsorted(cut_cells(cells, counts, ROWS / 8).starts, key, side="right")
    day = later["day"][0]
    assert max(int(np.ptp(day[file == i])) for i in range(int(file.max()) + 1)) <= 110


DAYS = {"day": (0, 100)}


def test_where_few_ask_for_a_time_the_others_gain_by_growth() -> None:
    table, rows = sampled(["a", "b", "day"])
    draft = Draft((0, 1, 0, 1, 0, 1))
    by_days, grown = clocked(table, rows, draft, asks(1, DAYS)), columns((0, 1000), seed=7)
    for timed, chosen in ((4, ("a", "b")), (40, ("a", "b", "day"))):  # of eighty queries
        spec = clocked(table, rows, draft, asks(0, AB, 80 - timed) + asks(1, DAYS, timed))
        assert spec.columns == chosen
        later = asks(5, AB, 80 - timed) + asks(6, {"day": (900, 100)}, timed)
        others = read(replace(spec, clock=""), grown, 10 * ROWS, 60, later)
        saved = others / read(by_days, grown, 10 * ROWS, 60, later)
        assert saved > 2 if "day" in chosen else saved < 0.5


def test_what_is_asked_beyond_the_days_that_there_are_counts() -> None:
    table, rows = sampled(["a", "b", "day"])
    queries = asks(0, AB, 40) + asks(1, {"day": (900, 10)}, 40)  # most are of days to come
    assert clocked(table, rows, Draft((0, 1, 0, 1, 0, 1)), queries).clock == "day"


def test_a_clock_is_told_by_who_asks_for_it_or_for_what_goes_with_it() -> None:
    table, rows = sampled(["a", "b", "born", "sent", "number", "day"])
    draft = Draft((0, 1, 0, 1))
    sent = asks(2, {"a": (900, 60), "sent": (0, 120)})
    assert clocked(table, rows, draft, sent).clock == "sent"
    assert clocked(table, rows, draft, sent, without_statistics("sent")).clock == "day"
    assert clocked(table, rows, draft, sent, without_statistics("sent", "day")).clock == "a"  # stays in its range
    assert clocked(table, rows, Draft((4, 1, 4)), sent).clock == "sent"  # a time before a number
    numbers, no_times = asks(2, {"number": (50_000, 60_000)}), without_statistics("sent", "day", "born")
    assert clocked(table, rows, Draft((4, 1, 4)), numbers, no_times).clock == "number"
    assert clocked(table, rows, Draft((1, 4, 4)), numbers, no_times).clock == ""
    either = [(*left, *right) for left, right in zip(asks(3, AB), sent, strict=True)]
    assert clocked(table, rows, draft, either).clock == "a"  # OR: no file is left out by a time alone
    curve = Draft((0, 1) * 2, "hilbert")
    assert clocked(table, rows, curve, sent) == replace(table.spec(curve), rows=ROWS, clock="a")  # nothing is added


def test_a_key_with_a_time_keeps_its_bits() -> None:
    table, rows = sampled(["a", "b", "day"])
    timed = clocked(table, rows, Draft((2, 0, 0)), asks(0, {"a": (900, 60), "day": (80, 10)}))
    assert (timed.clock, timed.columns[:2]) == ("day", ("day", "a"))
    assert timed.layout_id == replace(timed, clock="", spare=0).layout_id


def test_a_column_that_is_no_clock_has_one_epoch_and_one_of_spare_bits_none() -> None:
    rng = np.random.default_rng(3)
    table, _ = sampled(["a", "b", "number"])
    later = columns((0, 100), seed=5)
    grown = {**later, "a": (rng.integers(0, 2000, ROWS), later["a"][1])}  # as many below the old range as beyond
    spec = replace(table.spec(Draft((0, 1, 0, 1))), rows=ROWS)
    assert [f.epochs for f in extended(spec, grown, 10 * ROWS).features] == [1, 0]
    assert [f.epochs for f in extended(replace(spec, clock="a"), grown, 10 * ROWS).features] == [1, 0]
    spare = replace(table.spec(Draft((1, 1, 1, 0))), rows=ROWS, spare=1)
    assert extended(spare, grown, 10 * ROWS) == spare


def test_a_tree_without_cuts_gets_no_clock() -> None:
    table, rows = sampled(["a", "day"])
    nothing = np.zeros(1, dtype=np.int64)
    leaf = TreeDraft(nothing + LEAF, nothing, nothing, nothing, nothing, nothing > 0)
    spec = table.spec(leaf)
    assert with_clock(spec, leaf, table, rows, SCHEMA, asks(0, DAYS), np.ones(80)) == spec
