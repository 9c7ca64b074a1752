"""What ``bit_allocation`` shows of a layout of either kind, and what it takes from the last night."""

import json
from types import SimpleNamespace

import pytest
from dagster import AssetKey, AssetMaterialization, DagsterInstance, MetadataValue

from zorder_pipeline.assets.layout import BIT_ORDER, _earlier, _plan_facts, _search_facts
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.plan import Plan

pytestmark = pytest.mark.dagster

NAME = FeatureCodes("name", "string", ("Miller",), (0, 1), 1)
DAY = FeatureCodes("day", "date", (19_000,), (0, 1), 1)
BITS = KeySpec((NAME, DAY), (1, 0))
TREE = KeySpec(
    (NAME, DAY), (0, 1), "tree", (),
    CutTree((0, 1, LEAF, LEAF, LEAF), (1, 1, 0, 0, 0), (1, 3, 2, 3, 4), (2, 4, 2, 3, 4), (0, 0, 2, 0, 1)),
)  # fmt: skip


def facts(spec: KeySpec) -> dict:
    return _plan_facts(Plan("/t", "id", "hash", 0, spec, "learned", 100), redact_key=None)


def test_a_tree_is_shown_by_its_cuts() -> None:
    shown = facts(TREE)
    assert "cuts of the tree by level" in shown["layout"].value
    assert "| name | 1 |\n| day | 0.667 |" in shown["layout"].value
    assert BIT_ORDER not in shown
    told = json.dumps({name: getattr(value, "value", value) for name, value in shown.items()})
    assert "Miller" not in told
    assert "19000" not in told


def test_bits_are_shown_in_their_order() -> None:
    shown = facts(BITS)
    assert "bits of the sort key" in shown["layout"].value
    assert shown[BIT_ORDER].value == ["day", "name"]


@pytest.mark.parametrize("others", [{}, {"sort": 0.4}])
def test_layouts_are_compared_where_there_are_several(others: dict[str, float]) -> None:
    """A night that sought no layout drew one bar, in the colour of the best."""
    learned = SimpleNamespace(name="stored", compared=others | {"stored": 0.6}, baselines=others, before=(), study=None)
    shown = _search_facts(Plan("/t", "id", "hash", 0, BITS, "kept", 100), learned)  # type: ignore[arg-type]
    assert ("share of rows read by layout" in shown) == bool(others)


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({BIT_ORDER: MetadataValue.json(["day", "name"])}, [["day", "name"]]),
        ({BIT_ORDER: MetadataValue.json({"a": 1})}, []),
        ({}, []),
        (None, []),
    ],
)
def test_the_last_nights_order_is_found_in_its_metadata(metadata: dict | None, expected: list) -> None:
    key = AssetKey(["sales", "bit_allocation"])
    with DagsterInstance.ephemeral() as instance:
        if metadata is not None:
            instance.report_runless_asset_event(AssetMaterialization(key, metadata=metadata))
        context, shelf = (
            SimpleNamespace(instance=instance),
            SimpleNamespace(key=lambda stage: AssetKey(["sales", stage])),
        )
        assert _earlier(context, shelf) == expected  # type: ignore[arg-type]
