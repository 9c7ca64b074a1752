"""Studies that outlive a search: batches, resuming, other objectives, storages that cannot be written."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from zorder_pipeline.errors import ConfigError
from zorder_pipeline.layout import study as study_module
from zorder_pipeline.layout import study_place
from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.layout.search import Found, SearchSettings, search
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.layout.study import FORM, export_study
from zorder_pipeline.layout.study_json import from_json, to_json
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.schema import Column, TableSchema

ROWS, FILES, TRIALS = 4_000, 32, 140
SCHEMA = TableSchema(tuple(Column(name, "int") for name in "abc"))


@pytest.fixture(scope="module")
def problem() -> tuple[SampledTable, Estimator]:
    return make_problem(0)


def make_problem(seed: int) -> tuple[SampledTable, Estimator]:
    rng = np.random.default_rng(seed)
    columns = {name: (rng.integers(0, 1000, ROWS), np.ones(ROWS, dtype=bool)) for name in "abc"}
    types = {column.name: column.type for column in SCHEMA.columns}
    table = SampledTable.build(columns, types, list("abc"), np.zeros(ROWS, dtype=np.int32), FILES)
    return table, Estimator.build(columns, SCHEMA, [box(rng) for _ in range(30)], ROWS)


def box(rng: np.random.Generator) -> Boxes:
    parts = []
    for column, width in (("a", 50), ("b", 200)):
        low = int(rng.integers(0, 1000 - width))
        parts.append(Comparison(column, "between", (Literal("number", str(low)), Literal("number", str(low + width)))))
    return to_boxes(And(tuple(parts)), SCHEMA)


def run(problem: tuple[SampledTable, Estimator], storage: str | None, **changes: object) -> Found:
    settings = SearchSettings(**({"trials": TRIALS, "seed": 3, "storage": storage} | changes))  # type: ignore[arg-type]
    return search(*problem, np.ones(30), [Draft((0, 0, 1, 1))], settings)


def same(a: Found, b: Found) -> bool:
    return a.draft == b.draft and a.history.tolist() == b.history.tolist()


def stored(storage: str, name: str = "bit_allocation") -> optuna.Study:
    opened = storage if "://" in storage else JournalStorage(JournalFileBackend(storage))
    return optuna.load_study(study_name=name, storage=opened)


@pytest.fixture(params=["journal", "sqlite"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "new" / "s.log") if request.param == "journal" else f"sqlite:///{tmp_path}/s.db"


def test_a_stored_study_is_optunas_own_and_changes_no_result(problem, storage: str) -> None:
    found = run(problem, storage)
    assert same(found, run(problem, None))
    kept = stored(storage)
    assert len(kept.trials) == len(found.history)
    assert kept.best_value == found.cost
    assert tuple(kept.best_trial.user_attrs["order"]) == found.draft.order
    for mine, theirs in zip(found.study.trials, kept.trials, strict=True):
        assert (mine.number, mine.value, mine.params) == (theirs.number, theirs.value, theirs.params)
        assert (mine.user_attrs, mine.distributions) == (theirs.user_attrs, theirs.distributions)
        assert theirs.datetime_complete is not None


def test_the_same_search_again_evaluates_nothing_and_stores_nothing(problem, storage: str, monkeypatch) -> None:
    found = run(problem, storage)
    calls: list[Draft] = []
    read = SampledTable.rows_read
    monkeypatch.setattr(SampledTable, "rows_read", lambda s, d, e: calls.append(d) or read(s, d, e))
    assert same(run(problem, storage), found)
    assert len(calls) == 1  # the probe in the objective's hash
    assert len(stored(storage).trials) == len(found.history)


@pytest.mark.parametrize("after", [1, 60, 111])
def test_a_crash_loses_a_batch_at_most_and_the_rest_goes_on(
    problem, storage: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_module, "BATCH_TRIALS", 20)
    whole = run(problem, None)
    left = [after]
    add = study_module.StudyStore.add

    def crashing(self: study_module.StudyStore, trial: optuna.trial.FrozenTrial) -> None:
        add(self, trial)
        left[0] -= 1
        if not left[0]:
            self._pending = []  # what a killed process would lose
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(study_module.StudyStore, "add", crashing)
        with pytest.raises(KeyboardInterrupt):
            run(problem, storage)
    assert after - 20 < len(stored(storage).trials) <= after
    assert same(run(problem, storage), whole)
    assert len(stored(storage).trials) == len(whole.history)


def test_an_interrupted_search_writes_what_it_has(problem, storage: str) -> None:
    calls = [0]

    def stop(done: int, planned: int, best: float) -> None:
        calls[0] = done
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(*problem, np.ones(30), [], SearchSettings(TRIALS, storage=storage), stop)
    assert len(stored(storage).trials) == calls[0] > 0


def test_a_search_with_another_seed_starts_from_the_best_known(problem, storage: str) -> None:
    first = run(problem, storage)
    second = run(problem, storage, seed=4, trials=30)
    assert second.cost <= first.cost
    assert second.phases["warm start"] == 1 + study_module.WARM_STARTS
    assert same(run(problem, storage, seed=4, trials=30), second)


def test_another_objective_gets_its_own_study_and_the_old_one_stays(problem, storage: str) -> None:
    first = run(problem, storage)
    other = make_problem(1)
    second = run(other, storage)
    assert same(second, run(other, None))
    opened = storage if "://" in storage else JournalStorage(JournalFileBackend(storage))
    names = optuna.get_all_study_names(opened)
    assert len(names) == 2
    assert all(name.startswith("bit_allocation") for name in names)
    assert len(stored(storage).trials) == len(first.history)
    run(other, storage)
    assert len(optuna.get_all_study_names(opened)) == 2


def test_half_a_line_of_a_killed_writer_is_dropped(problem, tmp_path: Path) -> None:
    path = tmp_path / "s.log"
    found = run(problem, str(path))
    path.write_bytes(path.read_bytes()[:-40])
    assert same(run(problem, str(path)), found)
    assert len(stored(str(path)).trials) == len(found.history)


@pytest.mark.parametrize(
    ("storage", "told"),
    [
        ("{}/file/s.log", "file"),
        ("{}", "folder"),
        ("sqlite:///{}/none/s.db", "none does not exist; make that folder first"),
        ("sqlite:///{}", "is a folder"),
        ("postgresql://me:hidden@nowhere/studies", "me:***@nowhere"),
        ("postgresql://me:hidden@nowhere:port/studies", "postgresql://… is no URL of a database"),
        ("nonsense://me:hidden@x", "nonsense://me:***@x is no URL of a database"),
    ],
)
def test_a_storage_that_cannot_be_written_is_named_in_one_sentence(
    problem, storage: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError) as error:
        run(problem, storage.format(tmp_path))
    message = str(error.value)
    assert "\n" not in message
    assert told in message
    assert "hidden" not in message


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("not a journal\nat all\n", 1),
        ("hello\nworld", 1),
        ("hello", 1),
        ('{"statement": "SELECT 1"}\n', 1),
        ('{"op_code":0,"worker_id":"a","study_name":"s","directions":[1]}\nand more', 2),
    ],
)
def test_a_file_that_is_no_journal_is_left_as_it_is(problem, content: str, line: int, tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content)
    with pytest.raises(ConfigError, match=rf"notes\.txt is no Optuna journal: its line {line} is no entry of one; "):
        run(problem, str(path))
    assert path.read_text() == content
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("content", ["", '{"op_', '{"op_code":0,"worker_id":"a","study_n'])
def test_what_a_killed_writer_left_of_a_first_line_is_no_reason_to_refuse(
    problem, content: str, tmp_path: Path
) -> None:
    path = tmp_path / "s.log"
    path.write_text(content)
    run(problem, str(path))
    assert stored(str(path)).trials


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        (
            "postgresql://me:hidden@host/studies",
            "psycopg{}; pip install zorder-pipeline[postgres]",
        ),
        ("mysql://me:hidden@host/studies", "MySQLdb{}; pip install mysqlclient"),
        (
            "postgresql+asyncpg://host/s",
            "asyncpg{}; install it, or leave +asyncpg out of the URL",
        ),
    ],
)
def test_a_driver_that_is_missing_is_told_with_what_brings_it(
    url: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("psycopg", "psycopg2", "MySQLdb", "asyncpg"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(study_place, "find_spec", lambda _: None)
    assert study_place.place_problem(url) == f"needs the driver {advice.format(', which is not installed')}"


@pytest.mark.parametrize(
    ("installed", "driver"),
    [({"psycopg", "psycopg2"}, "postgresql"), ({"psycopg2"}, "postgresql+psycopg2"), (set(), "postgresql")],
)
def test_postgresql_is_reached_by_the_driver_that_is_there(
    installed: set[str], driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study_place, "find_spec", lambda name: name if name in installed else None)
    assert study_place.database_url("postgresql://host/studies").drivername == driver
    assert study_place.database_url("postgresql+asyncpg://host/studies").drivername == "postgresql+asyncpg"


def test_a_server_that_does_not_answer_is_told_without_the_password() -> None:
    pytest.importorskip("psycopg2")
    told = study_place.place_problem("postgresql+psycopg2://me:hidden@127.0.0.1:1/studies", connect=True)
    assert told is not None
    assert told.startswith("cannot be reached (")
    assert "hidden" not in told


@pytest.mark.parametrize("parameters", ["user=me&password=hidden", "sslpassword=hidden&sslmode=require"])
def test_a_password_among_the_parameters_of_a_url_is_not_told(parameters: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_place, "place_problem", lambda _: "is not to be had")
    with pytest.raises(ConfigError, match=r"^the study storage postgresql://host/studies is not to be had$"):
        study_place.refuse_place(f"postgresql://host/studies?{parameters}")


def test_a_study_is_the_same_after_json(problem: tuple[SampledTable, Estimator]) -> None:
    found = search(*problem, np.ones(30), [Draft((0, 0, 1, 1)), Draft((0, 1, 0, 1), "hilbert")], SearchSettings(60, 3))
    again = from_json(json.loads(json.dumps(to_json(found.study))))
    assert again.user_attrs == found.study.user_attrs
    assert again.best_trial.params == found.study.best_trial.params
    for trial, was in zip(again.trials, found.study.trials, strict=True):
        assert (trial.value, trial.params, trial.user_attrs) == (was.value, was.params, was.user_attrs)
        assert trial.distributions == was.distributions
        assert trial.datetime_start is not None
        assert was.datetime_start is not None
        assert abs((trial.datetime_start - was.datetime_start).total_seconds()) < 0.001
    hidden = from_json(to_json(found.study), {name: f"<{name}>" for name in "abc"})
    assert list(hidden.trials[0].params) == [f"{kind} <{name}>" for name in "abc" for kind in ("start", "stride")]


@pytest.mark.parametrize("storage", ["{}/study.log", "sqlite:///{}/study.db"])
def test_a_search_goes_on_with_what_was_written_of_it(
    problem: tuple[SampledTable, Estimator], storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, warm = storage.format(tmp_path), [Draft((0, 0, 1, 1)), Draft((0, 1, 0, 1), "hilbert")]
    settings = SearchSettings(60, 3)
    found = search(*problem, np.ones(30), warm, settings)
    name = export_study(from_json(to_json(found.study)), place)
    assert name == settings.study
    kept = stored(place)
    assert [t.params for t in kept.trials] == [t.params for t in found.study.trials if FORM not in t.user_attrs]
    assert len(kept.trials) == len(found.study.trials) - 1, "an order says not all of a Hilbert curve"
    assert export_study(found.study, place) == name
    assert len(stored(place).trials) == len(kept.trials)
    asked: list[Draft | None] = []
    reading = SampledTable.rows_read

    def counting(table: SampledTable, draft: Draft | None, *others: object) -> np.ndarray:
        asked.append(draft)
        return reading(table, draft, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(SampledTable, "rows_read", counting)
    again = search(*problem, np.ones(30), warm, replace(settings, storage=place))
    assert same(again, found)
    assert asked.count(warm[1]) == 1
    assert len(asked) == 2, "of the Hilbert curve, and of the layout that says what the costs are of"


def test_another_search_s_study_of_the_same_name_is_left_alone(
    problem: tuple[SampledTable, Estimator], tmp_path: Path
) -> None:
    place = str(tmp_path / "study.log")
    first, second = (search(*each, np.ones(30), [], SearchSettings(40, 3)) for each in (problem, make_problem(1)))
    names = [export_study(each.study, place) for each in (first, second)]
    assert names[1].startswith(f"{names[0]}-")
    assert [len(stored(place, name).trials) for name in names] == [len(first.study.trials), len(second.study.trials)]
