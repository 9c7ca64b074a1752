"""The search and the choice on small planted tables."""

from typing import Any, cast

import numpy as np
import pytest

from zorder_pipeline.layout.baselines import BASELINES, Training, lexicographic, warm_starts
from zorder_pipeline.layout.blocks import split_log
from zorder_pipeline.layout.choosing import choose
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.evidence import BlockQueries, KnownTable, WeighedLog
from zorder_pipeline.layout.interleave import keys
from zorder_pipeline.layout.learn import Learned, learn_layout
from zorder_pipeline.layout.options import applicable
from zorder_pipeline.layout.placement import files_under
from zorder_pipeline.layout.promise import whole_table_shares
from zorder_pipeline.layout.search import SearchSettings, key_bits, search
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.asked import Asked
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES = 20_000, 64
SCHEMA = TableSchema(tuple(Column(name, "int") for name in "abcx"))
TYPES = {column.name: column.type for column in SCHEMA.columns}


def sample(seed: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return {name: (rng.integers(0, 100_000, ROWS), np.ones(ROWS, dtype=bool)) for name in "abcx"}


def ranges(columns: str, widths: list[int], count: int, seed: int) -> list[Boxes]:
    """Conjunctions of one range per column."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(count):
        parts = []
        for column, width in zip(columns, widths, strict=True):
            start = int(rng.integers(0, 100_000 - width))
            parts.append(
                Comparison(column, "between", (Literal("number", str(start)), Literal("number", str(start + width))))
            )
        result.append(to_boxes(And(tuple(parts)), SCHEMA))
    return result


def learn(queries: list[Boxes], columns: dict | None = None, stored: np.ndarray | None = None) -> Learned:
    columns = columns or sample()
    stored = np.random.default_rng(9).integers(0, FILES, ROWS).astype(np.int32) if stored is None else stored
    table = SampledTable.build(columns, TYPES, list("abcx"), stored, FILES)
    return learn_layout(KnownTable(table, columns, SCHEMA), logged(queries), SearchSettings(200, 1))


def logged(queries: list[Boxes], weights: np.ndarray | None = None) -> WeighedLog:
    """Different statements, in this order; each weighs 1 without ``weights``."""
    blocks = split_log([str(i) for i in range(len(queries))], [None] * len(queries))
    return WeighedLog(queries, np.ones(len(queries)) if weights is None else weights, blocks)


def test_unequal_filters_get_unequal_bits_and_unqueried_columns_none() -> None:
    """Seed 000's point: a narrow filter on a deserves more bits than a wide one on b; or a tree's files more cuts."""
    queries, columns = ranges("ab", [5_000, 25_000], 120, 3), sample()
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, dtype=np.int32), FILES)
    on_all = Estimator.build(columns, SCHEMA, queries, ROWS)
    found = search(table, on_all, np.ones(120), [], SearchSettings(200, 1)).draft
    a, b, *others = (found.order.count(feature) for feature in range(4))
    assert a > b > 0
    assert others == [0, 0]
    learned = learn(queries)
    assert set(learned.spec.allocation()) == {"a", "b"}
    file = files_under(learned.spec, columns, ROWS / FILES)

    def width(name: str) -> float:
        """Of the range of values that a file holds, on average."""
        values = columns[name][0]
        return float(np.mean([np.ptp(values[file == i]) for i in range(file.max() + 1)]))

    assert width("a") < 0.5 * width("b") < 0.5 * width("x")
    assert learned.after.mean() < min(v for k, v in learned.baselines.items() if k.startswith("zorder"))


def test_many_small_files_are_judged_by_their_own_statistics() -> None:
    """Of a file with one row in the sample the zone map is far too narrow: such a table seems to lie well."""
    columns, queries = sample(), ranges("ab", [30_000, 30_000], 120, 3)
    stored = np.arange(ROWS, dtype=np.int32)
    table = SampledTable.build(columns, TYPES, list("abcx"), stored, FILES)

    def found(lies: np.ndarray | None) -> Learned:
        known = KnownTable(table, columns, SCHEMA, lies=lies)
        return learn_layout(known, logged(queries), SearchSettings(100, 1))

    assert found(None).spec is None
    learned = found(np.ones(120))
    assert learned.spec is not None
    assert learned.baselines["stored"] == learned.before.mean() == learned.standing.mean() == 1.0


def test_laying_out_what_is_new_of_many_small_files_saves_nothing_by_what_the_sample_misses() -> None:
    """What they read now is told by their own statistics, what they will read only by the sample."""
    columns, queries, stored = sample(), ranges("ab", [30_000, 30_000], 120, 3), np.arange(ROWS, dtype=np.int32) // 4
    table = SampledTable.build(columns, TYPES, list("abcx"), stored, FILES)
    sorted_by = (np.argsort(np.argsort(columns["a"][0])) // (ROWS // FILES)).astype(np.int32)
    saved = []
    for kept in (stored, sorted_by):
        known = KnownTable(table, columns, SCHEMA, kept=kept, lies=np.full(120, 0.9))
        learned = learn_layout(known, logged(queries), SearchSettings(1, 1), searching=False)
        assert (learned.before == 0.9).all()
        saved.append((learned.before - learned.standing).mean())
    assert saved[0] == 0.0
    assert 0.3 < saved[1] < 0.8


@pytest.mark.parametrize("partitioned", [False, True])
def test_nothing_is_promised_of_rows_too_rare_to_be_sampled(partitioned: bool) -> None:
    """Alarms of one row in a million: under any layout of the sample they read nothing, whatever they really read."""
    columns, schema = sample(), TableSchema((*SCHEMA.columns, Column("p", "int", partition=True)))
    partition = np.arange(ROWS, dtype=np.int32) % 3 if partitioned else None
    rare = Comparison("p", "=", (Literal("number", "2"),)) if partitioned else None
    columns["p"] = (np.array([1, 3, 4])[np.arange(ROWS) % 3], np.ones(ROWS, dtype=bool))
    alarms = [to_boxes(rare or Comparison("a", ">", (Literal("number", str(200_000 + i)),)), schema) for i in range(60)]
    stored = np.arange(ROWS, dtype=np.int32)
    table = SampledTable.build(columns, TYPES, list("abcx"), stored, FILES, partition)

    def found(queries: list[Boxes]) -> Learned:
        lies = np.full(len(queries), 0.3)
        return learn_layout(KnownTable(table, columns, schema, lies=lies), logged(queries), SearchSettings(40, 1))

    alone = found(alarms)
    assert alone.spec is None
    assert (alone.before == alone.after).all()
    others = ranges("ab", [10_000, 10_000], 60, 3)
    mixed = found([boxes for pair in zip(alarms, others, strict=True) for boxes in pair])
    assert mixed.spec is not None
    same = mixed.before == mixed.after
    assert 0 < same.sum() < len(same)
    assert (mixed.after[~same] > 0).all()


def test_a_time_budget_bounds_what_is_searched_and_says_what_was_left_out() -> None:
    columns, queries = sample(), ranges("ab", [5_000, 25_000], 60, 3)
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, np.int32), FILES)
    settings = SearchSettings(10**6, 1, seconds=0.1)  # in which no machine comes to a plateau
    learned = learn_layout(KnownTable(table, columns, SCHEMA), logged(queries), settings)
    assert (learned.left_out, learned.late[-1]) == ((), "piecewise")
    assert len(learned.history) < 10**5
    assert any(f"after {len(learned.history)} of 1,000,000 trials" in clause for clause in learned.shortened)
    assert learned.spec is not None


def test_of_a_budget_that_is_gone_at_once_what_a_person_would_pick_is_still_compared_with() -> None:
    columns, queries = sample(), ranges("ab", [5_000, 25_000], 60, 3)
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, np.int32), FILES)
    learned = learn_layout(KnownTable(table, columns, SCHEMA), logged(queries), SearchSettings(10**6, 1, seconds=1e-9))
    made = [baseline.name for baseline in BASELINES if not baseline.searched]
    assert list(learned.baselines) == ["stored", *made]
    assert learned.late == ("seed", "qd-tree", "piecewise")
    assert {"tree was not grown", "uneven-tree was not grown"} < set(learned.shortened)
    assert any("not learned again" in clause for clause in learned.shortened)
    assert learned.spec is not None
    assert len(learned.after) > 0


def test_a_budget_that_cuts_nothing_short_changes_nothing() -> None:
    columns, queries = sample(), ranges("ab", [5_000, 25_000], 60, 3)
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, np.int32), FILES)

    def found(seconds: float | None) -> Learned:
        settings = SearchSettings(60, 1, seconds)
        return learn_layout(KnownTable(table, columns, SCHEMA), logged(queries), settings)

    free, bound = found(None), found(1e6)
    assert (free.name, free.spec, free.baselines) == (bound.name, bound.spec, bound.baselines)
    assert np.array_equal(free.after, bound.after)
    assert (bound.late, bound.shortened) == (free.late, free.shortened) == ((), ())


def test_what_is_done_besides_trials_is_told() -> None:
    columns, queries = sample(), ranges("ab", [5_000, 25_000], 60, 3)
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, np.int32), FILES)
    told: list[str] = []
    learn_layout(KnownTable(table, columns, SCHEMA), logged(queries), SearchSettings(40, 1), say=told.append)
    begun = [text for text in told if ":" not in text and not text.endswith("again")]
    assert begun == [
        "growing uneven-tree",
        "growing tree",
        "comparing with seed, layout 13 of 15",
        "comparing with qd-tree, layout 14 of 15",
        "comparing with piecewise, layout 15 of 15",
    ]


def test_the_table_stays_when_it_already_lies_well() -> None:
    columns = sample()
    stored = (np.argsort(np.argsort(columns["a"][0])) * FILES // ROWS).astype(np.int32)
    learned = learn(ranges("a", [10], 80, 4), columns, stored)
    assert learned.spec is None
    assert learned.name == "stored"


def test_what_is_promised_is_what_the_whole_table_shows() -> None:
    """A sample of 40 rows per file, whose zone maps are too narrow."""
    rng = np.random.default_rng(11)
    whole = {name: (rng.integers(0, 100_000, 400_000), np.ones(400_000, dtype=bool)) for name in "ab"}
    some = np.sort(rng.choice(400_000, 2_560, replace=False))
    columns = {name: (values[some], valid[some]) for name, (values, valid) in whole.items()}
    table = SampledTable.build(columns, TYPES, list("ab"), np.zeros(len(some), dtype=np.int32), FILES)
    draft = Draft((0, 1) * 4, "interleave", aligned=False)
    asked = ranges("ab", [9_000, 9_000], 200, 12)
    keys_of_all = keys(table.spec(draft), whole)
    file = np.searchsorted(np.quantile(keys_of_all, np.arange(1, FILES) / FILES), keys_of_all, side="right")
    true = Estimator.build(whole, SCHEMA, asked, 400_000).rows_read(file.astype(np.int32), FILES).mean() / 400_000
    estimator = Estimator.build(columns, SCHEMA, asked, len(some))
    naive = table.rows_read(draft, estimator).mean()
    told = whole_table_shares(estimator, *table.blocks(draft), 400_000 / len(some)).mean()
    assert naive < 0.95 * true
    assert told == pytest.approx(true, rel=0.05)
    all_of_it = whole_table_shares(estimator, *table.blocks(draft), 1.0)
    assert np.array_equal(all_of_it, table.rows_read(draft, estimator)), (
        "of a sample that is the table nothing is unseen"
    )
    between = whole_table_shares(estimator, *table.blocks(draft), 2.0).mean()
    assert naive < between < told


def test_without_enough_distinct_queries_nothing_is_promised() -> None:
    learned = learn(ranges("a", [100], 4, 5))
    assert len(learned.before) == 0


def test_the_same_seed_gives_the_same_layout() -> None:
    queries = ranges("abc", [4_000, 9_000, 20_000], 60, 6)
    assert learn(queries).spec == learn(queries).spec


def test_the_spec_gives_the_keys_the_search_worked_with() -> None:
    columns = sample()
    table = SampledTable.build(columns, TYPES, list("abc"), np.zeros(ROWS, dtype=np.int32), FILES)
    draft = Draft((0, 2, 0, 1, 0, 2))
    assert (keys(table.spec(draft), columns) == table.keys(draft)).all()


def test_every_baseline_and_the_seeds_method_can_be_laid_out() -> None:
    columns = sample()
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, dtype=np.int32), FILES)
    estimator = Estimator.build(columns, SCHEMA, ranges("ab", [20_000, 20_000], 30, 7), ROWS)
    training = Training(table, estimator, ranges("ab", [20_000, 20_000], 30, 7), np.ones(30), SearchSettings(trials=15))
    assert (training.filtered == 2).all()
    shares = {baseline.name: training.cost(baseline.make(training)) for baseline in BASELINES}
    assert all(0 < share < 1 for share in shares.values())
    assert shares["zorder-2"] < shares["sort"]
    assert min(shares, key=shares.__getitem__) == "qd-tree"  # for the queries that it was made of


@pytest.mark.parametrize("name", ["qd-tree", "piecewise"])
def test_a_baseline_that_wins_is_the_layout_that_was_chosen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the select queries this tree was better than our own kind of tree, which must not take its place.

    As ours are it is then made again of all queries that do not promise.
    """
    monkeypatch.setattr("zorder_pipeline.layout.learn.choose", lambda *_: name)
    queries, columns = ranges("ab", [5_000, 25_000], 120, 3), sample()
    learned = learn(queries, columns)
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, dtype=np.int32), FILES)
    known = split_log([str(i) for i in range(120)], [None] * 120).known
    asked = [queries[i] for i in known.statements]
    estimator = Estimator.build(columns, SCHEMA, asked, ROWS)
    training = Training(table, estimator, asked, np.ones(len(asked)), SearchSettings(50, 1))
    chosen = next(baseline for baseline in BASELINES if baseline.name == name).make(training)
    assert learned.name == name
    assert learned.spec.tree == table.spec(chosen).tree


def test_sorting_by_columns_of_few_values_first_can_be_chosen_as_it_was_compared() -> None:
    """Of their 16 bits each the first column has three that tell anything: the others come to the next column."""
    rng, columns = np.random.default_rng(0), sample()
    columns["a"] = (rng.integers(0, 5, ROWS), np.ones(ROWS, dtype=bool))
    queries = []
    for start in rng.integers(0, 99_000, 40).tolist():
        point = Comparison("a", "=", (Literal("number", str(rng.integers(5))),))
        narrow = Comparison("b", "between", (Literal("number", str(start)), Literal("number", str(start + 1_000))))
        queries.append(to_boxes(And((point, narrow)), SCHEMA))
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, dtype=np.int32), FILES)
    estimator = Estimator.build(columns, SCHEMA, queries, ROWS)
    for name, count in (("lexicographic-2", 2), ("lexicographic-3", 3)):
        draft = lexicographic(count)(Training(table, estimator, queries, np.ones(40), SearchSettings(10)))
        assert draft is not None
        laid_out = applicable(draft, table)
        assert len(set(laid_out.order)) == 2, name
        assert table.rows_read(laid_out, estimator).mean() <= table.rows_read(draft, estimator).mean(), name
    assert any(len(set(draft.order[:3])) == 1 and set(draft.order[3:]) == {1} for draft in warm_starts(table))


def test_the_search_keeps_to_its_budget_and_records_every_trial() -> None:
    columns = sample()
    table = SampledTable.build(columns, TYPES, list("abcx"), np.zeros(ROWS, dtype=np.int32), FILES)
    estimator = Estimator.build(columns, SCHEMA, ranges("ab", [3_000, 9_000], 30, 7), ROWS)
    found = search(table, estimator, np.ones(30), [], SearchSettings(trials=90))
    assert len(found.history) == len(found.study.trials) <= 90
    assert (np.diff(found.history) <= 0).all()
    assert found.study.best_value == pytest.approx(found.cost)


@pytest.mark.parametrize(("files", "bits"), [(1, 4), (64, 9), (500, 12), (10**9, 16)])
def test_key_bits_grow_with_the_number_of_files(files: int, bits: int) -> None:
    assert key_bits(files) == bits


def test_what_queries_cost_decides_between_layouts() -> None:
    """Half of the queries filter by a and half by b: the dearer half gets the bits."""
    queries = ranges("a", [3_000], 90, 3) + ranges("b", [3_000], 90, 4)
    queries = [queries[i] for i in np.random.default_rng(0).permutation(180)]
    columns = sample()
    stored = np.random.default_rng(9).integers(0, FILES, ROWS).astype(np.int32)
    table = SampledTable.build(columns, TYPES, list("abcx"), stored, FILES)
    on_a = np.array([any(item.column == "a" for box in query for item in box) for query in queries])
    bits = {}
    for dear in ("a", "b"):
        weights = np.where(on_a == (dear == "a"), 1.9, 0.1)
        known = KnownTable(table, columns, SCHEMA)
        bits[dear] = learn_layout(known, logged(queries, weights), SearchSettings(200, 1)).spec.allocation()
    assert bits["a"]["a"] > bits["a"].get("b", 0)
    assert bits["b"]["b"] > bits["b"].get("a", 0)


def test_what_queries_weigh_decides_whether_a_gain_is_sure() -> None:
    """Twenty light queries gain what three heavy ones lose."""
    weights = np.array([1.0] * 20 + [10.0] * 3)
    asked = Asked.once(23)
    stored, read = np.full(23, 0.5), np.array([0.0] * 20 + [1.0] * 3)
    for weigh, name in ((np.ones(23), "learned"), (weights, "stored")):
        select = BlockQueries([], cast(Any, None), asked.sums(weigh), asked, weigh)
        assert choose({"learned": read}, stored, select, np.random.default_rng(0)) == name
