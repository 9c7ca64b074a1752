"""Night after night: the layout is kept while nothing surely beats it, and only what is new is laid out."""

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.test_command_line import zorder
from zorder_pipeline import pipeline
from zorder_pipeline.errors import ZorderError
from zorder_pipeline.gate.cost import CostModel
from zorder_pipeline.gate.drift import Course, Drift
from zorder_pipeline.gate.settings import GateSettings
from zorder_pipeline.layout.draft import Draft
from zorder_pipeline.layout.study_json import to_json
from zorder_pipeline.layout.trials import Space
from zorder_pipeline.model.candidate import INCREMENTAL
from zorder_pipeline.model.file_stats import shown
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.model.predicate import And, Comparison, Literal
from zorder_pipeline.model.results import ApplyResult
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.judging import judge as judging
from zorder_pipeline.pipeline.learning import proving, tonight
from zorder_pipeline.pipeline.learning.keeping import kept_files
from zorder_pipeline.pipeline.learning.memory import Memory, Rival
from zorder_pipeline.pipeline.logs import ingest
from zorder_pipeline.relayout.snapshot import open_table
from zorder_pipeline.state.ledger import SCHEMA_VERSION, Ledger
from zorder_pipeline.state.memory import Memories
from zorder_pipeline.state.studies import KeptStudy, Studies

SETTINGS = pipeline.LearnSettings(trials=60, target_file_rows=500)


def add(spark: SparkSession, path: str, first: int, rows: int) -> None:
    frame = spark.range(first, first + rows).selectExpr(
        "id", "pmod(hash(id, 1), 10000) AS part", "pmod(hash(id, 2), 10000) AS price", "id DIV 100 AS day"
    )
    frame.repartition(3).write.format("delta").mode("append").save(path)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Look-ups by part, and by ranges of prices."""
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    with path.open("w") as file:
        for i in range(160):
            low = int(rng.integers(0, 9800))
            where = f"part = {low}" if i % 2 else f"price BETWEEN {low} AND {low + 200}"
            stamp = f"2026-01-{1 + i // 10:02d}T00:00:{i % 60:02d}Z"
            file.write(json.dumps({"statement": f"SELECT * FROM t WHERE {where}", "timestamp": stamp}) + "\n")
    return str(path)


LARGE_FILES = CostModel(per_opened_file=0.0)
"""These tables' files stand for large ones, for which opening them is nothing."""


def night(
    spark: SparkSession,
    path: str,
    log: str,
    state: str,
    costs: CostModel = LARGE_FILES,
    settings: pipeline.LearnSettings = SETTINGS,
) -> tuple[Plan, ApplyResult]:
    """What the nightly run does for one table."""
    snapshot = open_table(spark, path)
    found = ingest([log], {snapshot.location: (snapshot, ("t",))})
    layouts = pipeline.layouts_in_use(spark, snapshot, state)
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], settings, layouts=layouts)
    gate = GateSettings(queries_per_day=1e6, min_new_data_bytes=0, costs=costs)
    plan, _ = pipeline.learn_tonight(spark, analysis, state, settings, gate=gate)
    return plan, pipeline.apply(spark, path, plan, gate=gate, state=state)


@pytest.mark.slow
def test_only_what_is_new_is_laid_out_and_nothing_without_new_data(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 20_000)
    plan, done = night(spark, path, log, state)
    assert (plan.origin, done.decision, done.rows) == ("learned", "applied", 20_000)
    for _ in range(2):
        plan, done = night(spark, path, log, state)
        assert done.decision == "nothing_to_do"
    add(spark, path, 20_000, 1_500)
    plan, done = night(spark, path, log, state)
    assert (done.gate["action"], done.decision) == (INCREMENTAL, "applied")
    assert done.rows < 3_000
    kept = next(candidate.promise for candidate in plan.candidates if candidate.action == INCREMENTAL)
    assert kept.after < kept.before
    assert len(set(open_table(spark, path).files().layout)) == 1
    evaluated = pipeline.evaluate(spark, path, [log], aliases=["t"])
    assert evaluated.rows_read_fraction == pytest.approx(kept.after, rel=0.1)


def test_a_layout_is_kept_up_by_columns_that_the_log_no_longer_filters_by(spark: SparkSession, tmp_path: Path) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 3_000)
    plan = pipeline.layout_by_hand(spark, path, {"part": 2, "id": 1}, settings=SETTINGS)
    assert pipeline.apply(spark, path, plan, force=True, state=state).decision == "applied"
    add(spark, path, 3_000, 1_500)
    snapshot = open_table(spark, path)
    log = tmp_path / "log.jsonl"
    asked = [{"statement": f"SELECT part FROM t WHERE part = {i}"} for i in range(30)]
    log.write_text("".join(json.dumps(line) + "\n" for line in asked))
    found = ingest([str(log)], {snapshot.location: (snapshot, ("t",))})
    (layout,) = pipeline.layouts_in_use(spark, snapshot, state)
    assert layout == plan.spec
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS, layouts=[layout])
    assert analysis.features.ranked == ("part",)
    assert kept_files(pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS), plan, None) is None
    kept = kept_files(analysis, plan, None)
    assert kept is not None
    assert (kept != analysis.sample.file).any()


@pytest.mark.slow
def test_the_ledger_holds_a_relayout_once_and_gives_its_plan_back(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 6_000)
    assert Ledger(spark, state).latest("any") is None
    plan, done = night(spark, path, log, state)
    ledger, spec = Ledger(spark, state), plan.spec
    assert spec is not None
    assert ledger.latest(plan.table_id) == ledger.latest(plan.table_id, spec.layout_id) == plan
    assert ledger.latest(plan.table_id, "another") is None
    (first,) = ledger.entries(plan.table_id)
    ledger.record(plan, spec.layout_id, done.version, vars(done) | {"run": first.run}, {})
    rows = spark.read.format("delta").load(f"{state}/relayouts").collect()
    assert len(rows) == 1
    assert (rows[0]["rows"], rows[0]["version"]) == (6_000, done.version)
    assert rows[0]["promised_after"] == pytest.approx(plan.promise.after)


@pytest.mark.slow
def test_a_ledger_of_the_first_schema_is_read_and_gets_the_new_columns(
    spark: SparkSession, tmp_path: Path, log: str
) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 6_000)
    plan, done = night(spark, path, log, state)
    place = f"{state}/relayouts"
    new = ("additional", "predicates", "hashed", "replaced_version", "credited", "run")
    rows = spark.read.format("delta").load(place)
    old = rows.drop(*(name for name in rows.columns if name in new or name.startswith(("cost_", "measured_"))))
    stored = old.withColumn("schema_version", F.lit(1)).toPandas()
    shutil.rmtree(place)
    spark.createDataFrame(stored, old.schema).write.format("delta").partitionBy("relayout_date").save(place)
    ledger = Ledger(spark, state)
    (entry,) = ledger.entries(plan.table_id)
    assert entry.cost_measured == pytest.approx(done.seconds * spark.sparkContext.defaultParallelism)
    assert (entry.measured_queries, entry.replaced_version, ledger.latest(plan.table_id)) == (0, done.version - 1, plan)
    ledger.measured(entry, {"queries": 7, "before": 1.0, "after": 0.5})
    (entry,) = ledger.entries(plan.table_id)
    assert entry.promised == pytest.approx(plan.promise.before - plan.promise.after)
    assert (entry.measured_queries, entry.measured_before, entry.measured_after) == (7, 1.0, 0.5)
    assert spark.read.format("delta").load(place).select("schema_version").collect()[0][0] == SCHEMA_VERSION
    spark.sql(f"UPDATE delta.`{place}` SET schema_version = 99")
    with pytest.raises(ZorderError, match="newer version of zorder"):
        ledger.entries()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_nights_without_new_data_or_drift_rewrite_nothing(spark: SparkSession, tmp_path: Path, log: str) -> None:
    """Ten queries more each night, of the same kinds."""
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 20_000)
    assert night(spark, path, log, state)[1].decision == "applied"
    version, rng = open_table(spark, path).version, np.random.default_rng(1)
    longer = tmp_path / "longer.jsonl"
    longer.write_text(Path(log).read_text())
    for number in range(10):
        with longer.open("a") as file:
            for i in range(10):
                low = int(rng.integers(0, 9800))
                where = f"part = {low}" if i % 2 else f"price BETWEEN {low} AND {low + 200}"
                stamp = f"2026-01-{17 + number:02d}T00:00:{i:02d}Z"
                file.write(json.dumps({"statement": f"SELECT * FROM t WHERE {where}", "timestamp": stamp}) + "\n")
        _, done = night(spark, path, str(longer), state)
        assert done.decision in ("declined", "nothing_to_do"), done.reasons
    assert open_table(spark, path).version == version


def proofs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is asked to be proved on all rows, which then tells nothing."""
    asked: list[tuple[Any, ...]] = []

    def told(nothing: Any, *given: Any) -> Any:
        asked.append(given)
        return nothing

    monkeypatch.setattr(proving, "confirmed", partial(told, None))
    monkeypatch.setattr(proving, "confirmed_in", partial(told, {}))
    return asked


@pytest.mark.slow
@pytest.mark.parametrize("always", [False, True])
def test_a_workload_that_moved_is_followed_when_it_was_missed_long_enough(
    spark: SparkSession, tmp_path: Path, log: str, monkeypatch: pytest.MonkeyPatch, always: bool
) -> None:
    """Nights of another kind of queries: first the regret is too small, then the table goes over, once.

    Costs are as assumed, whatever relayouts take on this machine: a night loses about half of what a change costs.
    """
    for module in (tonight, judging):
        monkeypatch.setattr(module, "cost_model", lambda *given: given[-1])
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 20_000)
    night(spark, path, log, state)
    before, laid_out = open_table(spark, path).files().layout[0], list[str]()
    proved = proofs(monkeypatch)
    moved, decisions = tmp_path / "moved.jsonl", []
    moved.write_text(Path(log).read_text())
    for number in range(4):
        with moved.open("a") as file:
            for i in range(400):
                stamp = f"2026-02-{1 + number:02d}T{i // 60:02d}:{i % 60:02d}:00Z"
                text = f"SELECT * FROM t WHERE day = {(i * 7 + number) % 200}"
                file.write(json.dumps({"statement": text, "timestamp": stamp}) + "\n")
        costs = CostModel(base=1e-3, per_job=6.0, per_written_file=0.0, scan=40.0, per_opened_file=0.0)
        plan, done = night(spark, path, str(moved), state, costs, replace(SETTINGS, always_search=always))
        decisions.append((done.decision, done.gate.get("cause"), plan.unsought != ""))
        laid_out.append(open_table(spark, path).files().layout[0])
    assert laid_out[0] == before != laid_out[1]  # searching or not
    assert len(set(laid_out[1:])) == 1
    if not always:  # who learns every night may also merge small files
        assert [decision == "applied" for decision, *_ in decisions] == [False, True, False, False]
        assert decisions[2] == decisions[0]
    assert {unsought for _, _, unsought in decisions if always} <= {False}
    waiting = ("declined", "not_lost_enough", False) if always else ("nothing_to_do", "in_good_order", True)
    assert decisions[0] == waiting
    assert len(proved) == 1  # on all rows only what was missed long enough, learned tonight or before


@pytest.mark.slow
def test_no_layout_is_sought_again_where_none_can_pay(
    spark: SparkSession, tmp_path: Path, log: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first night looks, and proves nothing on all rows that the gate declines; later ones do not even look."""
    proved = proofs(monkeypatch)
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 3_000)
    costs = CostModel(per_job=3e6)
    plan, done = night(spark, path, log, state, costs)
    assert (plan.unsought, done.decision, done.gate["cause"]) == ("", "declined", "not_worth_it")
    assert plan.spec is not None
    assert not proved
    plan, done = night(spark, path, log, state, costs)
    assert (plan.spec, plan.trials, done.decision, done.gate["cause"]) == (None, 0, "declined", "not_worth_it")
    assert plan.unsought in done.reasons[0]
    assert plan.promise.after == plan.promise.before
    assert Plan.from_json(plan.to_json()) == plan
    plan, _ = night(spark, path, log, state, costs, replace(SETTINGS, always_search=True))
    assert plan.spec is not None
    plan, done = night(spark, path, log, state, LARGE_FILES)
    assert (plan.unsought, done.decision) == ("", "applied")
    assert proved


@pytest.mark.slow
def test_a_remembered_layout_of_a_dropped_column_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    """On a night that seeks nothing, too, though most was lost against it."""
    path, state, log = str(tmp_path / "t"), str(tmp_path / "state"), tmp_path / "log.jsonl"
    add(spark, path, 0, 3_000)
    present, rival, other = (
        pipeline.layout_by_hand(spark, path, {name: 2}, settings=SETTINGS) for name in ("part", "day", "price")
    )
    assert pipeline.apply(spark, path, present, force=True, state=state).decision == "applied"
    asked = [{"statement": f"SELECT part FROM t WHERE part = {i}"} for i in range(30)]
    log.write_text("".join(json.dumps(line) + "\n" for line in asked))
    known = {plan.spec.layout_id: Rival(plan.spec, 500) for plan in (present, rival, other) if plan.spec}
    here, gone, left = known
    memory = Memory(Drift(Course(1.0, here, {gone: 2.0, left: 1.0}), ()), known, counted=30, columns={"part": "int"})
    Memories(spark, state).note(present.table_id, memory.to_json())
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    spark.sql(f"ALTER TABLE delta.`{path}` DROP COLUMN day")
    plan, _ = night(spark, path, str(log), state, CostModel(per_job=3e6))  # the first apply's seconds decide nothing
    assert plan.unsought
    assert {c.spec.layout_id for c in plan.candidates if c.spec is not None and c.lost} == {left}
    assert {spec.layout_id for spec in pipeline.layouts_in_use(spark, open_table(spark, path), state)} == {here, left}


@pytest.mark.slow
def test_a_dropped_column_is_named_and_its_layout_given_up(spark: SparkSession, tmp_path: Path, log: str) -> None:
    path, state = str(tmp_path / "t"), str(tmp_path / "state")
    add(spark, path, 0, 6_000)
    night(spark, path, log, state)
    frame = spark.read.format("delta").load(path).withColumn("part", F.col("part").cast("string"))
    frame.withColumn("colour", F.lit("red")).write.format("delta").mode("overwrite").option(
        "overwriteSchema", "true"
    ).save(path)
    plan, _ = night(spark, path, log, state)
    assert "column part is now string, it was int" in plan.notes
    assert "column colour is new (string)" in plan.notes


def equal(column: str, kind: str, value: str) -> Comparison:
    return Comparison(column, "=", (Literal(kind, value),))


@pytest.mark.slow
def test_of_a_table_by_days_only_those_that_are_asked_for_are_laid_out(spark: SparkSession, tmp_path: Path) -> None:
    """Queries look up parts in the newest three days: twelve cold ones stay as they were written, night after night."""
    path, state, log = str(tmp_path / "t"), str(tmp_path / "state"), tmp_path / "log.jsonl"
    costs = CostModel(scan=1e4, per_opened_file=0.0)

    def day(number: int) -> None:
        columns = ("id", f"DATE'2026-01-{number:02d}' AS day", "pmod(hash(id), 10000) AS part")
        frame = spark.range(number * 4_000, (number + 1) * 4_000).selectExpr(*columns).repartition(4)
        frame.write.format("delta").partitionBy("day").mode("append").save(path)
        with log.open("a") as file:
            for i in range(120 if number > 14 else 0):
                where = f"day = DATE'2026-01-{number - i % 3:02d}' AND part = {(i * 167 + number) % 10000}"
                stamp = f"2026-01-{number + 1:02d}T{i // 60:02d}:00:{i % 60:02d}Z"
                file.write(json.dumps({"statement": f"SELECT * FROM t WHERE {where}", "timestamp": stamp}) + "\n")

    def laid_out() -> dict[str | None, set[str]]:
        files = open_table(spark, path).files()
        pairs = list(zip(files.partitions, files.layout, strict=True))
        return {day: {layout for (other,), layout in pairs if other == day} for (day,), layout in pairs if layout}

    for number in range(1, 16):
        day(number)
    plan, done = night(spark, path, str(log), state, costs)
    hot = [f"2026-01-{number}" for number in (13, 14, 15)]
    assert (done.decision, done.rows, sorted(laid_out())) == ("applied", 12_000, hot), done.reasons
    assert any(reason.startswith("3 of 15 partitions pay for their own rewrite") for reason in done.reasons)
    (entry,) = Ledger(spark, state).entries()
    assert entry.credited == pytest.approx(1.0, abs=0.01), "all that was promised, by a fifth of the bytes"
    assert "queries move on to newer data" in done.reasons[0]
    assert entry.credited_over(30) < 0.1, "in three days nobody asks for these any more"
    asked = [(day, hour, str((24 * day + hour) * 409 % 10000)) for day in range(15, 25) for hour in range(24)]
    moved = [
        LoggedQuery(
            "t",
            And((equal("day", "date", f"2026-01-{day - hour % 3}"), equal("part", "number", part))),
            timestamp=int(datetime(2026, 1, day + 1, hour, 30, tzinfo=UTC).timestamp() * 1e6),
        )
        for day, hour, part in asked[2:]  # the log ends at one
    ]
    for days in (1, 2, 3, 9):
        (check,) = pipeline.check_promises(spark, state, path, moved[: days * 24])
        assert check.kept == pytest.approx(1.0, abs=0.15), f"{days} days later"
    assert plan.spec is not None
    here = {plan.spec.layout_id}

    plan, done = night(spark, path, str(log), state, costs, replace(SETTINGS, always_search=True))
    assert done.decision != "applied", done.reasons
    remembered = tonight._noted(Memories(spark, state), open_table(spark, path))
    assert remembered.drift is not None
    assert {remembered.drift.real.present} == here, "the nights are counted from the first one on"

    day(16)
    plan, done = night(spark, path, str(log), state, costs)
    assert (done.decision, done.rows, done.gate["action"]) == ("applied", 4_000, INCREMENTAL), done.reasons
    assert laid_out() == dict.fromkeys([*hot, "2026-01-16"], here)
    version = done.version
    for _ in range(2):
        assert night(spark, path, str(log), state, costs)[1].decision != "applied"
    assert open_table(spark, path).version == version


def test_what_a_night_tried_is_looked_at_from_the_state(
    spark: SparkSession, tmp_path: Path, log: str, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, state, place = str(tmp_path / "t"), str(tmp_path / "state"), str(tmp_path / "study.log")
    add(spark, path, 0, 6_000)
    asked = ("study", "--table", path, "--state", state, "--json")
    Path(state).mkdir()
    code, _, said = zorder(capsys, monkeypatch, *asked)
    assert code == 1
    assert said.endswith(
        f"{state} keeps no search for this table: nights add those that they make; zorder learn --study keeps one that "
        "is made by hand\n"
    )
    snapshot = open_table(spark, path)
    found = ingest([log], {snapshot.location: (snapshot, ("t",))})
    analysis = pipeline.analyse(spark, snapshot, found, [snapshot.location], SETTINGS)
    plan, learned = pipeline.learn_tonight(spark, analysis, state, SETTINGS)
    assert learned.study is not None
    pipeline.learn_tonight(spark, analysis, state, SETTINGS)
    code, told, _ = zorder(capsys, monkeypatch, *asked, "--out", place)
    assert code == 0
    assert (told["trials"], told["cost"], len(told["kept"])) == (plan.trials, "rows", 1), "the same search again is one"
    assert told["best"] == told["layouts"][0]["share"] == learned.study.best_value
    assert set(told["layouts"][0]["order"]) <= {"part", "price"}
    assert sum(told["phases"].values()) == plan.trials
    written = optuna.load_study(study_name=told["study"], storage=JournalStorage(JournalFileBackend(place)))
    assert written.best_value == told["best"]
    assert written.best_trial.params == learned.study.best_trial.params
    (kept,) = pipeline.kept_studies(spark, state, snapshot.table_id)
    hidden = pipeline.kept_study(spark, state, snapshot.table_id, kept, "key")
    assert hidden.best_trial.params == learned.study.best_trial.params, "names of the table's columns are no literals"
    day = (datetime.now(UTC).date() - timedelta(days=9)).isoformat()
    code, _, said = zorder(capsys, monkeypatch, *asked, "--day", day)
    assert code == 1
    assert f"no search of {day}" in said
    spark.sql(f"UPDATE delta.`{state}/studies` SET search_date = '{day}'")
    assert pipeline.expire(spark, state, ["t"], 9) == {}
    assert pipeline.expire(spark, state, ["t"], 8) == {"studies": 1}
    assert pipeline.expire(spark, state, ["t"], 8) == {}


def test_what_searches_tried_of_expressions_is_shown_without_their_constants(
    spark: SparkSession, tmp_path: Path
) -> None:
    state, seen = str(tmp_path / "state"), dict[str, str]()
    some = (f"c LIKE '%{i}%'" for i in range(65_537))  # more than there are names
    alike = next(
        [before, text]
        for text in some
        if (before := seen.setdefault(shown(text, "expression", (), "key"), text)) != text
    )
    space = Space(["renamed", *alike, "<predicate over c, 1f>"], [2, 1, 1, 1], 4)
    study = optuna.create_study(study_name="t")
    study.add_trials([space.trial(Draft((0, i)), 0.5 / i, "moves") for i in (1, 2, 3)])
    studies, found = Studies(spark, state), KeptStudy("t", 1_700_000_000_000_000, "rows", 3, 0.25, 1.0)
    studies.keep("id", "/t", "one", found, to_json(study) | {"columns": ["renamed"]})
    (kept,) = pipeline.kept_studies(spark, state, "id")
    assert kept == found
    trials = [pipeline.kept_study(spark, state, "id", kept, key).best_trial for key in (None, "key")]
    names = [list(trial.params)[::2] for trial in trials]
    assert names[0] == [f"start {name}" for name in space.names]
    assert "LIKE" not in str(names[1])
    assert [names[1][0], names[1][3]] == [names[0][0], names[0][3]]
    assert list(trials[1].params.values()) == list(trials[0].params.values())
    studies.keep("another", "/u", "one", kept, {})
    assert pipeline.purge(spark, state, 10_000, "bob")["studies"] == 2
    assert studies.kept("id") == []
