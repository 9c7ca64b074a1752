"""The nightly budget among tables of which one fails: order, choice, and what the relayouts are told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dagster import (
    AssetIn,
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    DagsterInstance,
    DagsterRun,
    Definitions,
    EventLogEntry,
    Failure,
    FilesystemIOManager,
    IOManager,
    ResourceParam,
    asset,
    in_process_executor,
)
from dagster._core.events import StepMaterializationData

from zorder_pipeline.assets import budget
from zorder_pipeline.assets.budget import AFTER, BEFORE, BUDGET, granted, made_here, nightly_budget, offers
from zorder_pipeline.assets.common import POOL, QUERY_LOG, VALUES, Shelf
from zorder_pipeline.assets.records import Judged, Night
from zorder_pipeline.config import PipelineConfig, TableConfig
from zorder_pipeline.model.decision import APPROVE, DECLINE, Decision
from zorder_pipeline.model.plan import Plan
from zorder_pipeline.pipeline import Judgement
from zorder_pipeline.pipeline.judging.judgements import Part
from zorder_pipeline.pipeline.judging.nightly import share_budget
from zorder_pipeline.pipeline.records import Preview

pytestmark = pytest.mark.dagster

HOUR = 3600.0
ROOT = Path(__file__).parents[2]
SAVINGS = {"good": 100 * HOUR, "better": 200 * HOUR, "broken": 900 * HOUR}


def judgement(name: str) -> Judgement:
    plan = Plan(f"/{name}", name, "hash", 0, None, "learned", 100)
    return Judgement(
        name, f"/{name}", 0, plan, Decision(APPROVE, "worth_it", ("worth it",)), Preview(0, 1),
        (Part("", HOUR, SAVINGS[name]),),
    )  # fmt: skip


def definitions(
    config: PipelineConfig, folder: Path, seen: dict[str, str], meanwhile: Callable[[], object] = lambda: None
) -> Definitions:
    """The real budget between stand-ins for a table's judgement and its relayout; ``meanwhile`` the log is read."""
    shelves = [Shelf(config, table) for table in config.tables]

    @asset(key=QUERY_LOG, pool=POOL)
    def log() -> int:
        meanwhile()
        return 1

    def stages(shelf: Shelf) -> list[Any]:
        name = shelf.table.name

        @asset(key=shelf.key("cost_benefit"), deps=[QUERY_LOG], op_tags=BEFORE, pool=POOL, io_manager_key=VALUES)
        def judge() -> Judged:
            if name == "broken":
                raise Failure("no such table")
            return Judged(judgement(name))

        judged = AssetIn(key=shelf.key("cost_benefit"))

        @asset(key=shelf.key("clustered_table"), deps=[BUDGET], ins={"judged": judged}, op_tags=AFTER, pool=POOL)
        def relay(context, zorder_values: ResourceParam[IOManager], judged: Judged) -> None:  # type: ignore[no-untyped-def]
            seen[name] = granted(context, zorder_values, shelf, judged.judgement).outcome

        return [judge, relay]

    chains = [made for shelf in shelves for made in stages(shelf)]
    return Definitions(
        assets=[log, *chains, offers(shelves), nightly_budget(config, shelves)],
        resources={VALUES: FilesystemIOManager(base_dir=str(folder))},
        executor=in_process_executor,
    )


def test_the_best_table_gets_the_budget_whatever_fails(tmp_path: Path) -> None:
    tables = tuple(TableConfig(name=name, location=f"/{name}") for name in SAVINGS)
    config = PipelineConfig(tables=tables, state=str(tmp_path), budget_core_hours=1.5)
    seen: dict[str, str] = {}
    defs = definitions(config, tmp_path, seen)
    job = defs.resolve_implicit_global_asset_job_def()
    with DagsterInstance.ephemeral() as instance:
        night = job.execute_in_process(instance=instance, raise_on_error=False)
        assert seen == {"good": "postponed", "better": "approved"}
        begun = [e.step_key for e in night.all_events if e.event_type_value in ("STEP_START", "STEP_FAILURE")]
        place = begun.index("night__nightly_budget")
        assert {"good__cost_benefit", "better__cost_benefit", "broken__cost_benefit"} <= set(begun[:place])
        offered, facts = (made.metadata for made in night.asset_materializations_for_node("night__nightly_budget"))
        assert "| good | approved |" in offered["tables"].value, "what the budget chose from"
        assert (facts["approved"].value, facts["postponed"].value) == (1, 1)
        assert "| good | postponed |" in facts["tables"].value
        alone = [AssetKey(["good", "cost_benefit"]), AssetKey(["good", "clustered_table"])]
        job.execute_in_process(instance=instance, asset_selection=alone)
        assert seen["good"] == "approved", "a run without the budget, for one table, is not bound by last night's"


def test_of_a_table_of_which_some_partitions_fit_these_are_told() -> None:
    """All twenty were, beside a reason that did not say that most of them wait."""
    parts = tuple(Part(f"ds={number}", 2 * HOUR, (50 - number) * HOUR) for number in range(20))
    whole = replace(judgement("good"), parts=parts)
    (some,) = share_budget([whole], 8)
    for one, row in (
        (whole, "| good | approved | 40 | 810 | worth it |"),
        (some, "| good | approved | 8 | 194 | 4 of 20 partitions fit tonight's budget, those that save most in it"),
    ):
        table = str(budget._facts({"good": one}, 8.0)["tables"].value)
        assert row in table


@pytest.mark.parametrize(("core_hours", "outcome"), [(1.5, "postponed"), (None, "approved")])
def test_what_was_judged_after_the_budget_has_no_room_in_it(
    core_hours: float | None, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed in a night, and is done again without the budget, which succeeded."""
    known = judgement("better")
    monkeypatch.setattr(budget, "made_here", lambda *_: True)
    monkeypatch.setattr(budget, "value_of", lambda *_: Night({"better": known}))
    nothing: Any = None

    def found(judged: Judgement) -> Judgement:
        table = TableConfig(name=judged.name, location=judged.table)
        config = PipelineConfig(tables=(table,), state=str(tmp_path), budget_core_hours=core_hours)
        return granted(nothing, nothing, Shelf(config, table), judged)

    assert found(judgement("better")) is known
    newer = judgement("better")
    for late in (judgement("good"), replace(newer, plan=replace(newer.plan, target_file_rows=200))):
        assert found(late).outcome == outcome
    held = found(judgement("good")).decision
    if core_hours is not None:
        assert held.cause == "budget"
        assert held.reasons[0].endswith(
            "tonight's 1.5 core-hours were shared out before it was judged; materialize good/clustered_table by "
            "itself, or leave it to the next night"
        )
    refused = replace(judgement("good"), decision=Decision(DECLINE, "not_worth_it", ("no",)))
    assert found(refused) is refused, "that says more than the budget"


def test_the_budget_comes_after_the_judgements_also_where_another_run_holds_the_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "WAITS", (1, 1))
    tables = tuple(TableConfig(name=name, location=f"/{name}") for name in ("good", "better", "broken"))
    config = PipelineConfig(tables=tables, state=str(tmp_path), budget_core_hours=1.5)
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text((ROOT / "dagster_home" / "dagster.yaml").read_text())
    with DagsterInstance.from_config(str(home)) as instance:
        storage = instance.event_log_storage

        def other_run() -> None:
            """Waits in line, so that it gets the slot once the log is read, and gives it back after a while."""
            storage.claim_concurrency_slot(POOL, "other-run", "its-step", 1)
            threading.Timer(5.0, lambda: storage.free_concurrency_slots_for_run("other-run")).start()

        seen: dict[str, str] = {}
        job = definitions(config, tmp_path, seen, other_run).resolve_implicit_global_asset_job_def()
        night = job.execute_in_process(instance=instance, raise_on_error=False)
        steps = [
            event.step_key for event in night.all_events if event.event_type_value in ("STEP_START", "STEP_SUCCESS")
        ]
        assert steps.index("night__nightly_budget") < steps.index("good__cost_benefit"), "it is the first that can run"
        made = [event.step_key for event in night.all_events if event.event_type_value == "STEP_SUCCESS"]
        assert made.index("night__nightly_budget") > made.index("good__cost_benefit")
        assert seen == {"good": "postponed", "better": "approved"}


def test_a_run_goes_on_with_what_any_of_those_before_it_made() -> None:
    """Done again for the third time: the night itself never came as far as the budget, the first repetition did."""
    with DagsterInstance.ephemeral() as instance:
        night = instance.add_run(DagsterRun("job", "night"))
        runs = [night]
        for name in ("first", "second", "third"):
            again = DagsterRun("job", name, parent_run_id=runs[-1].run_id, root_run_id="night")
            runs.append(instance.add_run(again))
        _made(instance, "first", BUDGET)

        def found(run: DagsterRun, before: bool = True) -> bool:
            context: Any = SimpleNamespace(run=run, instance=instance)
            return made_here(context, BUDGET, before)

        assert [found(run) for run in runs] == [False, True, True, True]
        assert [found(run, before=False) for run in runs] == [False, True, False, False]
        _made(instance, "night", BUDGET)
        instance.delete_run("first")
        assert found(runs[-1]), "the first of all is known, whatever was deleted in between"


def _made(instance: DagsterInstance, run: str, key: AssetKey) -> None:
    made = StepMaterializationData(AssetMaterialization(key), [])
    event = DagsterEvent("ASSET_MATERIALIZATION", "job", event_specific_data=made, step_key="budget")
    instance.store_event(EventLogEntry(None, "debug", "", run, time.time(), "budget", "job", event))
