"""A plan.json that somebody changed: it is a plan still or it is refused, and nothing else is raised."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zorder_pipeline.errors import PlanError
from zorder_pipeline.model.candidate import ANOTHER, COMPACTION, Candidate
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan, Promise, read_plan
from zorder_pipeline.model.schema import Column, TableSchema

SCHEMA = TableSchema((Column("a", "double"), Column("s", "string"), Column("b", "binary"), Column("n", "int")))
FEATURES = (
    FeatureCodes("a", "double", (1.5, float("inf"), float("nan")), (0, 1, 2, 3), 2, nan_code=3),
    FeatureCodes("s", "string", ("m\u00fc",), (0, 1), 1, 1),
    FeatureCodes("b", "binary", (b"\x00\xff",), (0, 1), 1),
    FeatureCodes("n", "int", (5, 10, 11, 12), (0, 1, 2, 3, 4), 1, high=9),
    FeatureCodes("n > 3", "boolean", (1,), (0, 1), 1, expression="n > 3"),
)
BITS = KeySpec(FEATURES, (0, 1, 0, 2, 4, 3), "interleave", ("a", "s"), rows=2, spare=1, clock="n")
TREE = KeySpec(
    FEATURES[:2],
    (1, 0),
    "tree",
    tree=CutTree((0, LEAF, LEAF), (2, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 1), (1.0, 0.5, 2)),
)
PROMISE = Promise(7, 0.5, 0.25, page_bytes_before=3.5, rate_source="observed")
PLAN = Plan(
    "file:/t",
    "id-1",
    SCHEMA.fingerprint,
    3,
    BITS,
    "learned",
    1000,
    PROMISE,
    {"train": 0.5},
    {"sort": 0.75},
    trials=9,
    log_watermark=11,
    learned_at=12,
    notes=("n",),
    statistics=(
        Feature("n > 3", "predicate", "boolean", "n > 3", ("n",)),
        Feature("s", "column", "string", "s", ("s",)),
    ),
    reading={"rows": 0.5},
    action=ANOTHER,
    candidates=(
        Candidate(COMPACTION, None, 4000, PROMISE, {"ds=1": 0.5}, lost=1.5),
        Candidate(ANOTHER, TREE, 500, PROMISE, {"ds=1": 0.5}, {"ds=1": 1}),
    ),
    partitions=("ds=1",),
)
DATA = json.loads(json.dumps(PLAN.to_json()))


def places(node: Any, at: tuple = ()) -> list[tuple]:
    """Where there is something in JSON data: every node's path, the root's left out."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path for key, child in items for path in ((*at, key), *places(child, (*at, key)))]


DELETED = object()
PLACES = [path for path in places(DATA) if path != ("schema_version",)]
WRONG_NUMBERS = (True, -1, 0, 1, 5, 2.5, 10**12, 10**40, -(10**40), float("inf"), float("nan"))
WRONG_TEXTS = (
    "",
    "x",
    "7",
    "ü\ud800",
    "decimal(9,2)",
    "decimal(999999999,0)",
    "array<int>",
    "binary",
    "tree",
    "hilbert",
)
WRONG_VALUES = ({}, {"x": 1}, {"float": "x"}, {"float": []}, {"float": "nan"}, {"bytes": "=x"}, {"bytes": 5})
WRONG_LISTS = ([], [1], [[]], ["x"], [3, 2, 1])
WRONG = st.sampled_from([DELETED, None, *WRONG_NUMBERS, *WRONG_TEXTS, *WRONG_VALUES, *WRONG_LISTS])
SWAPPED = st.sampled_from(PLACES).map(lambda path: copy.deepcopy(at(DATA, path)))


def at(data: Any, path: tuple) -> Any:
    for key in path:
        data = data[key]
    return data


def changed(path: tuple, value: Any) -> dict[str, Any]:
    """The plan's data with another value in one place, or with nothing there."""
    data = copy.deepcopy(DATA)
    parent = at(data, path[:-1])
    if value is DELETED:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return data


@given(st.sampled_from(PLACES), WRONG | SWAPPED)
@example(("spec", "features", 0, "breakpoints", 0), {"float": "x"})
@example(("spec", "features", 0, "type"), 5)
@example(("spec", "features", 0, "bits"), 10**12)
@example(("candidates", 1, "spec", "tree", "cut", 0), float("inf"))
@example(("candidates", 1, "spec", "tree", "feature", 0), -5)
def test_a_changed_plan_is_a_plan_or_is_refused(path: tuple, value: Any) -> None:
    try:
        plan = Plan.from_json(changed(path, value))
    except PlanError:
        return
    text = json.dumps(plan.to_json())
    assert json.dumps(Plan.from_json(json.loads(text)).to_json()) == text
    assert len(plan.plan_id) == 8
    for spec in (plan.spec, *(candidate.spec for candidate in plan.candidates)):
        assert spec is None or (spec.highest >= 0 and spec.columns and spec.layout_id)


def test_the_plan_that_is_changed_is_one() -> None:
    assert json.dumps(Plan.from_json(DATA).to_json()) == json.dumps(DATA)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "features", 0, "breakpoints", 0), {"float": "x"}),
        (("spec", "features", 2, "breakpoints", 0), {"bytes": "=x"}),
        (("spec", "features", 0, "type"), 5),
        (("spec", "features", 1, "type"), "int"),
        (("spec", "features", 1, "type"), "array<string>"),
        (("spec", "features", 3, "breakpoints"), [10, 5, 11, 12]),
        (("spec", "features", 3, "breakpoints"), [5, 5, 11, 12]),
        (("spec", "features", 3, "breakpoints", 3), 10**40),
        (("spec", "features", 3, "high"), "9"),
        (("spec", "features", 3, "null_code"), DELETED),
        (("spec", "features", 3, "bits"), 1.0),
        (("spec", "tie_break"), [1]),
        (("spec",), [5]),
        (("candidates", 1, "spec", "tree", "cut", 0), 2.5),
        (("candidates", 0, "promise", "before"), "much"),
        (("candidates", 0, "target_file_rows"), 0),
        (("target_file_rows",), 10**40),
        (("statistics", 0, "kind"), "other"),
        (("statistics", 0), "n"),
        (("predicted", "train"), None),
        (("notes",), 5),
        (("table",), 5),
        (("more",), 5),
    ],
)
def test_a_malformed_plan_is_refused(tmp_path: Path, path: tuple, value: Any) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(changed(path, value)))
    with pytest.raises(PlanError, match=r"malformed|ascending") as caught:
        read_plan(tmp_path / "plan.json")
    assert "\n" not in str(caught.value)
