"""A layout in words: widths in the column's own terms, and no literal of a string or a moment."""

import pytest

from zorder_pipeline.layout.explain import explain
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
        ("decimal(10,2)", (150,), "c: 2 ranges, split at 1.50 (1 bit)"),
        ("string", ("secret",), "c: 2 ranges, split at a value in the middle (1 bit)"),
        ("string", ("a", "b", "c"), "c: 4 ranges of about as many rows (2 bits)"),
        ("double", (float("-inf"), 1.0, float("nan")), "c: 4 ranges of about as many rows (2 bits)"),
    ],
)
def test_widths_are_said_in_the_columns_own_terms(type_name: str, points: tuple, words: str) -> None:
    assert words in single(type_name, points)[0]


def test_a_hilbert_curve_is_named() -> None:
    assert single("int", (1, 2, 3), "hilbert")[-1].endswith("along a Hilbert curve")
