"""Queries like those asked: anywhere or near as their shape does, of the same widths and weights, the same by seed."""

import numpy as np
import pytest

from tests.unit.layout.test_trees import SCHEMA, between, sample
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.grow import Grower, uneven
from zorder_pipeline.layout.similar import ANYWHERE, COPIES, MOST_QUERIES, with_similar
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes

ROWS = 10_000
VALUES = np.random.default_rng(0).permutation(ROWS)
COLUMNS = {
    "a": (VALUES, np.ones(ROWS, dtype=np.bool_)),
    "b": (VALUES + 3, np.ones(ROWS, dtype=np.bool_)),  # goes with a
    "c": (np.random.default_rng(1).integers(0, 50, ROWS), np.arange(ROWS) % 5 > 0),
}


def estimator(queries: list[Boxes]) -> Estimator:
    return Estimator.build(COLUMNS, SCHEMA, queries, ROWS)


def matched(of: Estimator) -> np.ndarray:
    """Rows that each query reads if every row is a file of its own: those that match."""
    return of.rows_read(np.arange(ROWS, dtype=np.int32), ROWS)


def test_weights_are_shared_out_and_the_own_queries_come_first() -> None:
    own = estimator([between(a=(i * 100, i * 100 + 50)) for i in range(60)])
    weights = np.linspace(1, 2, 60)
    more, shared = with_similar(own, weights)
    times = more.queries // 60
    assert times == COPIES + 1
    assert len(shared) == more.queries
    assert shared.reshape(times, 60).sum(axis=0) == pytest.approx(weights)
    assert (more.first[: len(own.first)] == own.first).all()
    assert (matched(more)[:60] == matched(own)).all()


def test_repeats_of_a_query_weigh_where_it_is() -> None:
    """Asked a hundred times, it is asked again in the same place: only its first time tells that others may come."""
    own = estimator([between(a=(i * 100, i * 100 + 50)) for i in range(60)])
    times = np.where(np.arange(60) == 7, 100.0, 1.0)
    more, shared = with_similar(own, times * 2, times)
    shared = shared.reshape(more.queries // 60, 60)
    assert shared.sum(axis=0) == pytest.approx(times * 2)
    assert shared[0, 7] == pytest.approx(2 * 99 + 2 / len(shared))
    assert shared[1:, 7] == pytest.approx(2 / len(shared))
    assert with_similar(own, np.ones(60))[1].tolist() == with_similar(own, np.ones(60), np.ones(60))[1].tolist()


def test_a_shape_that_asks_for_any_row_moves_anywhere_and_keeps_its_width() -> None:
    low = np.random.default_rng(2).integers(0, 9_900, 100).tolist()
    more, _ = with_similar(estimator([between(a=(x, x + 50)) for x in low]), np.ones(100))
    assert np.histogram(more.first, 10, (0, ROWS))[0].min() > 0.05 * more.queries
    assert np.quantile(matched(more), 0.1) >= 45
    assert matched(more).max() <= 55


def test_a_shape_that_keeps_to_some_region_stays_in_it_but_for_half_of_the_copies() -> None:
    low = np.random.default_rng(2).integers(2_000, 2_500, 100).tolist()
    more, _ = with_similar(estimator([between(a=(x, x + 50)) for x in low]), np.ones(100))
    copies = more.first.reshape(-1, 100)[1:]
    near = np.add.outer(np.arange(len(copies)), np.arange(100)) % ANYWHERE != ANYWHERE - 1
    assert near.mean() == pytest.approx(1 - 1 / ANYWHERE, abs=0.05)
    assert np.quantile(copies[near], 0.05) > 1_500
    assert np.quantile(copies[near], 0.95) < 3_000
    assert len(set(copies[near].ravel().tolist())) > 300
    assert np.histogram(copies[~near], 10, (0, ROWS))[0].min() > 0.05 * copies[~near].size


@pytest.mark.parametrize("width", [50, 300, 1_000, 3_000])
def test_ranges_that_overlap_do_not_seem_to_lie_together(width: int) -> None:
    """Uniform ones ask for any row: a query's copies that are not sent anywhere are as far away as the others are."""
    low = np.random.default_rng(2).integers(0, ROWS - width, 100)
    more, _ = with_similar(estimator([between(a=(x, x + width)) for x in low.tolist()]), np.ones(100))
    copies = more.first.reshape(-1, 100)[1:]
    near = np.add.outer(np.arange(len(copies)), np.arange(100)) % ANYWHERE != ANYWHERE - 1
    apart = np.abs(copies - low)
    assert apart[near].mean() > 0.8 * apart[~near].mean()


def test_alternatives_keep_their_widths_and_do_not_gather_at_the_ends() -> None:
    rng = np.random.default_rng(5)
    own = estimator([sum((between(a=(x, x)) for x in rng.integers(0, ROWS, 5).tolist()), ()) for _ in range(60)])
    more, _ = with_similar(own, np.ones(60))
    moved = more.first[len(own.first) :]
    assert ((moved == moved.max()) | (moved == moved.min())).mean() < 0.02
    either = [between(a=(x, x + 100)) + between(c=(y, y + 9)) for x, y in rng.integers(0, 40, (60, 2)).tolist()]
    own = estimator(either)
    more, _ = with_similar(own, np.ones(60))
    of_c = more.column[len(own.first) :] == own.column[1]
    first, last = (part[len(own.first) :][of_c] for part in (more.first, more.last))
    assert (first == last).mean() < 0.05, "rows are null where c is, which is no place to move by"


def test_queries_of_rows_that_were_not_sampled_keep_to_their_region() -> None:
    gaps = {**COLUMNS, "b": (VALUES * 10, np.ones(ROWS, dtype=np.bool_))}
    keys = np.random.default_rng(6).integers(9_500, 9_990, 100) * 10 + 5  # between two rows
    own = Estimator.build(gaps, SCHEMA, [between(b=(x, x)) for x in keys.tolist()], ROWS)
    assert matched(own).sum() == 0
    copies = with_similar(own, np.ones(100))[0].first.reshape(-1, 100)[1:]
    near = np.add.outer(np.arange(len(copies)), np.arange(100)) % ANYWHERE != ANYWHERE - 1
    top = copies > np.quantile(copies, 0.5)
    assert top[near].mean() > 0.8 > top[~near].mean()


def test_regions_that_none_asked_for_yet_are_not_kept_in_few_large_files() -> None:
    """The queries move on, as a dashboard of the newest days does: what they ask for tomorrow counts, too."""
    rng, files, columns = np.random.default_rng(3), 60, sample(0)
    rows = len(columns["a"][0])

    def queries(low: int, high: int) -> list[Boxes]:
        corners = zip(rng.integers(low, high, 80).tolist(), rng.integers(0, 9_700, 80).tolist(), strict=True)
        return [between(a=(x, x + 300), b=(y, y + 300)) for x, y in corners]

    asked, tomorrow = queries(0, 7_000), Estimator.build(columns, SCHEMA, queries(7_300, 9_700), rows)
    types = {column.name: column.type for column in SCHEMA.columns}
    table = SampledTable.build(columns, types, list("ab"), np.zeros(rows, dtype=np.int32), files)
    own, weights = Estimator.build(columns, SCHEMA, asked, rows), np.ones(80)

    def read(of: Estimator, shares: np.ndarray) -> float:
        grower = Grower(table, of, shares, uneven(asked, table.encodings))
        return float(table.rows_read(grower.tree(), tomorrow).mean())

    as_asked, with_others = read(own, weights), read(*with_similar(own, weights))
    evenly = float(table.rows_read(Draft((0, 1) * 12), tomorrow).mean())
    assert with_others < 0.7 * as_asked
    assert with_others < 1.2 * evenly


def test_columns_that_go_together_are_moved_together() -> None:
    low = np.random.default_rng(2).integers(0, 9_900, 50).tolist()
    asked = [between(a=(x, x + 50), b=(x, x + 60)) for x in low]
    more, _ = with_similar(estimator(asked), np.ones(50))
    assert (matched(more) > 0).mean() > 0.95


def test_open_ends_nulls_and_points_stay_what_they_are() -> None:
    def one(column: str, sign: str, value: int) -> Boxes:
        return to_boxes(Comparison(column, sign, (Literal("number", str(value)),)), SCHEMA)

    some = [one("a", ">=", 9_000), one("c", "=", 7), to_boxes(Comparison("c", "is_null"), SCHEMA)]
    own = estimator(some * 5)
    more, _ = with_similar(own, np.ones(15))
    last, first = (part.reshape(-1, len(own.first)) for part in (more.last, more.first))
    assert (last[:, own.last == own.last.max()] == own.last.max()).all()
    points = own.first == own.last
    assert (first[:, points] == last[:, points]).all()
    nothing = matched(more).reshape(-1, 15)[:, 2::3]
    assert (nothing == ROWS / 5).all()


def test_many_queries_and_empty_logs_are_left_alone_and_equal_ones_get_equal_copies() -> None:
    plenty = estimator([between(a=(i, i + 50)) for i in range(MOST_QUERIES // 2 + 1)])
    assert with_similar(plenty, np.ones(plenty.queries))[0] is plenty
    nothing = estimator([])
    assert with_similar(nothing, np.ones(0))[0] is nothing
    own = estimator([between(a=(i * 100, i * 100 + 50)) for i in range(20)])
    one, two = (with_similar(own, np.ones(20))[0].first for _ in range(2))
    assert (one == two).all()


def test_a_query_that_matches_nothing_is_moved_from_where_its_ranges_lie() -> None:
    asked = [between(a=(x, x + 50), b=(9_000 - x, 9_050 - x)) for x in range(0, 2_000, 100)]
    more, _ = with_similar(estimator(asked), np.ones(20))
    assert (more.first[40:] != np.tile(more.first[:40], COPIES)).mean() > 0.5
