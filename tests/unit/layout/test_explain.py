"""A layout in words: widths in the column's own terms, and no literal of a string or a moment."""

import pytest

from zorder_pipeline.layout.explain import cut_levels, explain, uses
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec


def single(type_name: str, points: tuple, curve: str = "interleave") -> tuple[str, ...]:
    bits = max(1, len(points).bit_length())
    return explain(
        KeySpec((FeatureCodes("c", type_name, points, tuple(range(len(points) + 1)), bits),), (0,) * bits, curve)
    )


@pytest.mark.parametrize(
    ("type_name", "points", "words"),
    [
        ("date", tuple(range(0, 70, 10)), "c: 8 ranges, each about a week wide (3 bits)"),
        ("timestamp", tuple(range(0, 7 * 3_600_000_000, 3_600_000_000)), "each about an hour wide"),
        ("decimal(10,2)", (100, 350, 600), "c: 4 ranges, each about 2.5 wide (2 bits)"),
        ("decimal(12,2)", (0, 123450, 246900), "c: 4 ranges, each about 1,234 wide (2 bits)"),
        ("bigint", (0, 1_234_567, 2_469_134), "c: 4 ranges, each about 1,234,567 wide (2 bits)"),
        ("int", (0, 11, 23, 34), "each about 11 wide"),
        ("decimal(10,2)", (150,), "c: 2 ranges, split at 1.50 (1 bit)"),
        ("string", ("secret",), "c: 2 ranges, split at a value in the middle (1 bit)"),
        ("string", ("a", "b", "c"), "c: 4 ranges of about as many rows (2 bits)"),
        ("double", (float("-inf"), 1.0, float("nan")), "c: 4 ranges of about as many rows (2 bits)"),
    ],
)
def test_widths_are_said_in_the_columns_own_terms(type_name: str, points: tuple, words: str) -> None:
    assert words in single(type_name, points)[0]


def test_what_tells_files_apart_is_told_before_what_orders_rows_inside_them() -> None:
    day = FeatureCodes("day", "date", tuple(range(7, 112, 7)), tuple(range(16)), 4)
    part = FeatureCodes("part", "int", (10, 20, 30), (0, 1, 2, 3), 2)
    flag = FeatureCodes("flag", "int", (), (1,), 1)
    assert explain(KeySpec((day, part, flag), (0, 2, 0, 0, 1, 0, 1), spare=2)) == (
        "day: 8 ranges, each about 2 weeks wide (3 bits); inside files 16 ranges, each about a week wide (4 bits)",
        "flag: values apart from nulls (1 bit)",
        "part: 2 ranges, split at 20 (1 bit); inside files 4 ranges, each about 10 wide (2 bits)",
        "order of the bits, most significant first: day, flag, day x2, part, day, part",
        "the last 2 bits order rows inside files, and will tell files apart when the table has grown",
    )


def test_a_hilbert_curve_is_named() -> None:
    assert single("int", (1, 2, 3), "hilbert")[-1].endswith("along a Hilbert curve")


def test_a_gray_curve_is_named_where_columns_take_turns() -> None:
    features = tuple(FeatureCodes(name, "int", (1, 2, 3), (0, 1, 2, 3), 2) for name in "ab")
    assert "along a Gray-code curve" in explain(KeySpec(features, (0, 1, 0, 1), "gray"))[-1]
    assert not any("Gray" in sentence for sentence in single("int", (1, 2, 3), "gray"))


def tree() -> KeySpec:
    """The root cuts by name; its left child by day twice, its right child by price: five cells."""
    cuts = CutTree(
        feature=(0, 1, 2, LEAF, 1, LEAF, LEAF, LEAF, LEAF),
        cut=(1, 1, 1, 0, 3, 0, 0, 0, 0),
        low=(1, 3, 5, 3, 7, 5, 6, 7, 8),
        high=(2, 4, 6, 3, 8, 5, 6, 7, 8),
        key=(0, 0, 0, 0, 0, 3, 4, 1, 2),
    )
    name = FeatureCodes("name", "string", ("Miller",), (0, 1), 1)
    day = FeatureCodes("day", "date", (100, 103, 107), (0, 1, 2, 3), 2)
    price = FeatureCodes("price", "decimal(9,2)", (1250,), (0, 1), 1)
    return KeySpec((name, day, price), (0, 1, 2), "tree", ("name",), cuts)


def test_a_tree_is_told_in_words() -> None:
    assert explain(tree()) == (
        "a tree of 4 cuts, 3 deep, makes 5 cells",
        "name: 42% of the cuts that make a cell, at a value in the middle",
        "day: 42% of the cuts that make a cell, at 2 values; a cell is about a week wide",
        "price: 17% of the cuts that make a cell, at 12.50",
        "columns of the first cuts, the coarsest first: name, then day or price, then day",
    )


def test_a_trees_cuts_are_counted_per_cell_and_per_level() -> None:
    """Every cell is cut off by name, three of five by day, two of them twice; white is what is not cut further."""
    assert uses(tree()) == {"name": 1.0, "day": 1.0, "price": 0.4}
    assert cut_levels(tree()) == ({"name": 1.0}, {"day": 0.5, "price": 0.5}, {"day": 0.25})
    bits = KeySpec((FeatureCodes("c", "int", (1, 2, 3), (0, 1, 2, 3), 2),), (0, 0))
    assert (uses(bits), cut_levels(bits)) == ({"c": 2}, ())


def test_no_string_and_no_moment_is_told() -> None:
    assert not [sentence for sentence in explain(tree()) if "Miller" in sentence or "103" in sentence]
