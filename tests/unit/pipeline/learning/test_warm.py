"""Last night's layout as a start of tonight's search: by column names, as far as the columns are still searched."""

import numpy as np

from zorder_pipeline.layout.draft import Draft, SampledTable
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.pipeline.learning.seeking import _drafts
from zorder_pipeline.pipeline.learning.words import bit_order

FEATURES = tuple(FeatureCodes(name, "int", (1,), (0, 1), 1) for name in ("b", "a"))


def table(*names: str) -> SampledTable:
    rows = np.arange(64)
    columns = {name: (rows * (i + 3) % 64, np.ones(64, dtype=bool)) for i, name in enumerate(names)}
    return SampledTable.build(columns, dict.fromkeys(names, "int"), names, np.zeros(64, dtype=np.int32), 4)


def test_a_bit_order_is_found_again_by_its_columns() -> None:
    order = bit_order(KeySpec(FEATURES, (0, 1)))
    assert order == ("b", "a")
    assert _drafts([order], table("a", "b", "c")) == [Draft((1, 0))]


def test_a_search_starts_without_spare_bits() -> None:
    assert bit_order(KeySpec(FEATURES, (0, 1), spare=1)) == ("b",)


def test_a_layout_that_needs_another_column_is_left_out() -> None:
    assert _drafts([("b", "a"), ("a", "a"), ()], table("a", "c")) == [Draft((0, 0))]


def test_a_tree_and_a_hilbert_curve_are_no_bit_order() -> None:
    tree = CutTree((0, LEAF, LEAF), (1, 0, 0), (1, 1, 2), (2, 1, 2), (0, 0, 1))
    assert bit_order(KeySpec(FEATURES, (0, 1), "tree", (), tree)) == ()
    assert bit_order(KeySpec(FEATURES, (0, 1), "hilbert")) == ()


def test_a_key_longer_than_the_search_knows_is_cut() -> None:
    (draft,) = _drafts([("a",) * 40], table("a"))
    assert draft == Draft((0,) * 16)
