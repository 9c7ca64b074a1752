"""The search: reproducible with any number of workers, within its budget, and no worse than what it starts from."""

import itertools

import numpy as np
import pytest

from zorder_pipeline.layout import search as search_module
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.search import Found, SearchSettings, search
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.trials import Space
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES = 6_000, 16
SCHEMA = TableSchema(tuple(Column(name, "int") for name in "abcd"))
WIDTHS = {"a": 40, "b": 120, "c": 400}


def make_problem(features: str = "abcd", files: int = FILES, values: int = 1000) -> tuple[SampledTable, Estimator]:
    rng = np.random.default_rng(1)
    columns = {name: (rng.integers(0, values, ROWS), np.ones(ROWS, dtype=bool)) for name in "abcd"}
    types = {column.name: column.type for column in SCHEMA.columns}
    table = SampledTable.build(columns, types, list(features), np.zeros(ROWS, dtype=np.int32), files)
    return table, Estimator.build(columns, SCHEMA, [box(rng) for _ in range(40)], ROWS)


def box(rng: np.random.Generator) -> Boxes:
    parts = []
    for column in rng.choice(list(WIDTHS), 2, replace=False):
        low = int(rng.integers(0, 1000 - WIDTHS[column]))
        bounds = (Literal("number", str(low)), Literal("number", str(low + WIDTHS[column])))
        parts.append(Comparison(str(column), "between", bounds))
    return to_boxes(And(tuple(parts)), SCHEMA)


@pytest.fixture(scope="module")
def problem() -> tuple[SampledTable, Estimator]:
    return make_problem()


def run(problem: tuple[SampledTable, Estimator], warm: tuple[Draft, ...] = (), **settings: object) -> Found:
    return search(*problem, np.ones(40), warm, SearchSettings(**settings))  # type: ignore[arg-type]


@pytest.mark.parametrize("sampler", ["moves", "cma-es", "tpe"])
def test_the_result_follows_from_the_seed_whatever_the_workers(problem, sampler: str) -> None:
    results = [run(problem, trials=130, seed=5, workers=workers, sampler=sampler) for workers in (1, 3, 1)]
    assert len({result.draft for result in results}) == 1
    assert results[0].history.tolist() == results[1].history.tolist() == results[2].history.tolist()
    orders = [[trial.user_attrs["order"] for trial in result.study.trials] for result in results]
    assert orders[0] == orders[1] == orders[2]
    assert sampler in results[0].phases


def test_no_layout_is_evaluated_twice_and_every_trial_is_recorded(problem) -> None:
    found = run(problem, (Draft((0, 1)), Draft((0, 1))), trials=200)
    orders = [tuple(trial.user_attrs["order"]) for trial in found.study.trials]
    assert len(set(orders)) == len(orders) == len(found.history) == sum(found.phases.values()) <= 200
    assert found.phases["warm start"] == 1
    assert (np.diff(found.history) <= 0).all()


@pytest.mark.parametrize("sampler", ["moves", "cma-es"])
@pytest.mark.parametrize("trials", [1, 2, 7, 31, 90])
def test_the_budget_holds(problem, trials: int, sampler: str) -> None:
    found = run(problem, (Draft((0, 1)), Draft((2, 1, 0))), trials=trials, sampler=sampler)
    assert 1 <= len(found.history) <= trials


def test_without_time_the_warm_starts_are_still_compared(problem) -> None:
    found = run(problem, (Draft((3, 3, 3)), Draft((0, 1, 0, 1))), seconds=0.0)
    assert found.draft == Draft((0, 1, 0, 1))
    assert len(found.history) == 2


def test_a_search_without_warm_starts_and_time_gives_a_layout(problem) -> None:
    assert len(run(problem, seconds=0.0).draft.order) == 1


def test_it_finds_the_best_of_all_orders(problem) -> None:
    table, estimator = make_problem("abc", files=4)
    found = run((table, estimator), trials=600)
    lengths = range(1, search_module.key_bits(4) + 1)
    every = (Draft(order) for length in lengths for order in itertools.product(range(3), repeat=length))
    best = min(float(table.rows_read(draft, estimator).mean()) for draft in every)
    assert found.cost <= best * 1.02


def test_a_plateau_ends_it_early(problem) -> None:
    assert len(run(problem, trials=5000).history) < 2000


def test_a_space_that_is_exhausted_ends_it() -> None:
    found = run(make_problem("a"), trials=600)
    assert set(found.draft.order) == {0}
    assert len(found.history) <= search_module.key_bits(FILES)


def test_a_warm_start_of_another_kind_may_win(problem) -> None:
    hilbert = Draft((0, 1) * 8, "hilbert")
    found = run(problem, (hilbert, Draft((0,) * 16, aligned=False)), trials=60)
    table, estimator = problem
    assert found.cost <= table.rows_read(hilbert, estimator).mean() + 1e-9


def test_progress_is_told_and_ends_with_the_result(problem) -> None:
    told: list[tuple[int, int, float]] = []
    found = search(*problem, np.ones(40), [], SearchSettings(90), lambda *line: told.append(line))
    assert told[0][:2] == (20, 90)
    assert told[-1] == (len(found.history), 90, found.cost)


def test_points_and_orders_fit_each_other(problem) -> None:
    space = Space.of(problem[0], 8)
    for order in [(0, 1, 0, 1, 0, 1, 0, 1), (2,) * 8, (3, 0, 1, 0, 1, 0, 1, 0)]:
        assert space.draft(space.params(Draft(order))).order == order
    assert space.cut((0,) * 30) == (0,) * 8
    assert not space.holds((0,) * 30)
