"""Which instants have a local time that another one has, too."""

import pytest

from zorder_pipeline.relayout.partition_values import is_ambiguous

TWICE = "2025-11-02T06:30:00.000000Z"


@pytest.mark.parametrize(
    ("text", "zone", "ambiguous"),
    [
        (TWICE, "America/New_York", True),
        ("2025-11-02T04:30:00Z", "America/New_York", False),
        ("2025-11-02T07:30:00Z", "America/New_York", False),
        (TWICE, "UTC", False),
        (TWICE, "+05:30", False),
        (TWICE, "GMT-8", False),
        (TWICE, "Nowhere/Land", True),
        ("+12025-11-02T06:30:00Z", "America/New_York", True),
    ],
)
def test_an_hour_that_comes_twice_is_known(text: str, zone: str, ambiguous: bool) -> None:
    assert is_ambiguous(text, zone) is ambiguous
