"""Plans and keys: they survive JSON, refuse what does not fit, and say why."""

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from zorder_pipeline.errors import PlanError
from zorder_pipeline.model.candidate import ANOTHER, Candidate
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.lasting import Lasting
from zorder_pipeline.model.plan import PLAN_VERSION, Plan, Promise, read_plan, write_plan
from zorder_pipeline.model.schema import Column, TableSchema

SCHEMA = TableSchema((Column("a", "double"), Column("s", "string")))
SPEC = KeySpec(
    (
        FeatureCodes("a", "double", (1.5, float("inf")), (0, 1, 3), 2, 0),
        FeatureCodes("s", "string", ("m\u00fc",), (0, 1), 1, 1),
    ),
    (0, 1, 0),
    tie_break=("a", "s"),
)
PLAN = Plan(
    "file:/t", "id-1", SCHEMA.fingerprint, 3, SPEC, "learned", 1000, Promise(queries=7, before=0.5), notes=("n",)
)


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    write_plan(PLAN, tmp_path / "deep" / "plan.json")
    assert read_plan(tmp_path / "deep" / "plan.json") == PLAN
    assert json.loads((tmp_path / "deep" / "plan.json").read_text())["schema_version"] == PLAN_VERSION


def test_a_column_that_is_spelled_otherwise_is_called_as_the_table_calls_it() -> None:
    """A table may be overwritten with other letters: its id stays, and names are looked up as they are written."""
    now = TableSchema((Column("A", "double"), Column("S", "string")))
    called = PLAN.as_called(now)
    assert called.spec is not None
    assert [feature.column for feature in called.spec.features] == ["A", "S"]
    assert called.spec.tie_break == ("A", "S")
    assert called.spec.layout_id == SPEC.layout_id
    assert called.as_called(now) == called


def test_a_plan_that_waits_saves_what_is_left_when_it_is_carried_out() -> None:
    learned = datetime(2026, 11, 27, tzinfo=UTC)
    fading, page_fading = Lasting((0.0, 4.0), (1.0, 0.0), since=1.0), Lasting((0.0, 2.0), (1.0, 0.5))
    candidate = Candidate(ANOTHER, SPEC, 1000, PLAN.promise, lasting={"": fading}, page_lasting={"": page_fading})
    plan = dataclasses.replace(PLAN, action=ANOTHER, candidates=(candidate,), learned_at=int(learned.timestamp() * 1e6))
    then = plan.at(learned + timedelta(days=1, hours=12))
    assert then.lasting_by_partition()[""].over(0) == pytest.approx(1 - 2.5 / 4)
    assert then.lasting_by_partition(pages=True)[""].over(0) == pytest.approx(1 - 1.5 / 4)
    assert then.plan_id == plan.plan_id, "what a person approved is still the same"
    later = then.at(learned + timedelta(days=2))
    assert later == plan.at(learned + timedelta(days=2)), "no day counts twice"
    assert Plan.from_json(json.loads(json.dumps(later.to_json()))) == later
    for same in (plan, dataclasses.replace(plan, learned_at=None), dataclasses.replace(plan, candidates=())):
        assert same.at(learned if same is plan else learned + timedelta(days=9)) is same


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no plan .*; write one with zorder learn"),
        ("{", "is no JSON"),
        ("[]", "holds no JSON object"),
        ('{"schema_version": 99}', "schema_version 99 and this code reads 1"),
        ('{"schema_version": 1}', "/plan.json: the plan is malformed: it lacks 'spec'; learn it again"),
        (json.dumps(PLAN.to_json() | {"notes": 5}), "/plan.json: the plan is malformed: 'int' object is not iterable"),
    ],
)
def test_a_bad_plan_file_gets_one_sentence(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "plan.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(PlanError, match=message) as caught:
        read_plan(path)
    assert "\n" not in str(caught.value)


def test_a_plan_that_computes_by_what_spark_would_replace_is_refused() -> None:
    spec = dataclasses.replace(SPEC.features[1], expression="c LIKE '%${env:HOME}%'")
    plan = dataclasses.replace(PLAN, spec=dataclasses.replace(SPEC, features=(SPEC.features[0], spec)))
    feature = Feature("x", "predicate", "boolean", "c LIKE '%${env:HOME}%'", ("c",))
    for bad in (plan, dataclasses.replace(PLAN, statistics=(feature,))):
        with pytest.raises(PlanError, match=r"holds \$\{, which Spark replaces"):
            Plan.from_json(json.loads(json.dumps(bad.to_json())))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (TableSchema((Column("s", "string"),)), "column a of the plan's layout is gone"),
        (TableSchema((Column("a", "float"), Column("s", "string"))), "column a of the plan's layout is now float"),
    ],
)
def test_a_plan_is_refused_when_its_columns_changed(schema: TableSchema, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        PLAN.refuse_unless_fits("id-1", schema)


def test_a_plan_is_refused_when_its_layout_names_what_the_table_never_had() -> None:
    other = dataclasses.replace(SPEC.features[1], column="z")
    bad = dataclasses.replace(PLAN, spec=dataclasses.replace(SPEC, features=(SPEC.features[0], other), tie_break=()))
    with pytest.raises(PlanError, match="column z of the plan's layout is gone"):
        bad.refuse_unless_fits("id-1", SCHEMA)
    bad = dataclasses.replace(PLAN, spec=dataclasses.replace(SPEC, tie_break=("z",)))
    with pytest.raises(PlanError, match="column z, by which the plan's layout breaks ties, is gone"):
        bad.refuse_unless_fits("id-1", SCHEMA)


def test_a_plan_fits_a_table_with_a_new_column_and_no_other_table() -> None:
    PLAN.refuse_unless_fits("id-1", TableSchema((*SCHEMA.columns, Column("new", "int"))))
    with pytest.raises(PlanError, match=r"made for another table .*one that was replaced is another since"):
        PLAN.refuse_unless_fits("id-2", SCHEMA)


@pytest.mark.parametrize(
    "change",
    [{"order": (0, 1)}, {"curve": "peano"}, {"order": (0, 1, 0, 2)}],
)
def test_a_key_must_use_each_feature_as_often_as_it_has_bits(change: dict) -> None:
    with pytest.raises(PlanError):
        dataclasses.replace(SPEC, **change)


def test_the_layout_id_names_everything_that_moves_rows() -> None:
    assert SPEC.layout_id == KeySpec.from_json(json.loads(json.dumps(SPEC.to_json()))).layout_id
    assert SPEC.layout_id != dataclasses.replace(SPEC, order=(1, 0, 0)).layout_id
    assert SPEC.allocation() == {"a": 2, "s": 1}


NOW = TableSchema((Column("amount", "double"), Column("S", "string"), Column("new", "int")), (("a", "amount"),))


def test_a_renamed_column_leaves_a_layout_what_it_is() -> None:
    called = PLAN.as_called(NOW)
    assert called.spec is not None
    assert (called.spec.columns, called.spec.tie_break) == (("amount", "S"), ("amount", "S"))
    assert called.spec.layout_id == SPEC.layout_id
    called.refuse_unless_fits("id-1", NOW)
    assert Plan.from_json(json.loads(json.dumps(called.to_json()))) == called
    again = TableSchema((Column("total", "double"), Column("s", "string")), (("amount", "total"), ("a", "total")))
    for earlier in (PLAN, called):
        later = earlier.as_called(again)
        assert later.spec is not None
        assert (later.spec.columns, later.spec.layout_id) == (("total", "s"), SPEC.layout_id)
        assert later.as_called(again) == later
    back = called.as_called(TableSchema(SCHEMA.columns, (("amount", "a"),))).spec
    assert back is not None
    assert (back.columns, back.layout_id) == (("a", "s"), SPEC.layout_id)


def test_a_layout_follows_whole_numbers_that_are_widened() -> None:
    spec = KeySpec((FeatureCodes("n", "int", (5,), (0, 1), 1, high=9),), (0,), rows=10, clock="n")
    wide = TableSchema((Column("m", "bigint"),), (("n", "m"),))
    plan = dataclasses.replace(PLAN, spec=spec).as_called(wide)
    assert plan.spec is not None
    assert (plan.spec.features[0].type, plan.spec.clock, plan.spec.layout_id) == ("bigint", "m", spec.layout_id)
    plan.refuse_unless_fits("id-1", wide)
    for kind in ("smallint", "double", "string"):
        schema = TableSchema((Column("n", kind),))
        assert spec.as_called(schema) is spec
        with pytest.raises(PlanError, match=f"column n of the plan's layout is now {kind}"):
            dataclasses.replace(PLAN, spec=spec).refuse_unless_fits("id-1", schema)


def test_a_column_in_the_place_of_another_one_is_not_taken_for_both() -> None:
    spec = KeySpec((FeatureCodes("a", "int", (5,), (0, 1), 1), FeatureCodes("b", "int", (5,), (0, 1), 1)), (0, 1))
    swapped_in = TableSchema((Column("a_old", "int"), Column("a", "int")), (("b", "a"),))
    assert spec.as_called(swapped_in) is spec
    with pytest.raises(PlanError, match="column b of the plan's layout is gone"):
        dataclasses.replace(PLAN, spec=spec, schema_hash="").refuse_unless_fits("id-1", swapped_in)


def test_a_layout_by_a_column_that_is_gone_or_taken_stays_as_it_is() -> None:
    assert SPEC.as_called(TableSchema((Column("s", "string"),))) is SPEC
    assert SPEC.as_called(TableSchema((Column("a", "double"), Column("s", "string")), (("b", "a"),))) is SPEC
