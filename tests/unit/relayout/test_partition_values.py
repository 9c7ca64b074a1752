"""Which instants have a local time that another one has, too; texts that are no values, by the names of folders."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from zorder_pipeline.errors import UnsupportedTableError
from zorder_pipeline.model.schema import Column
from zorder_pipeline.relayout.leaves import Leaf
from zorder_pipeline.relayout.partition_values import is_ambiguous, refuse_unreadable

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


def by_public_api(path: str, *values: str | None) -> Any:
    """A table by `s`, a text, and `n`, a number, of one file."""
    names = ("s", "n")
    kinds = zip(names, ("string", "int"), strict=True)
    leaves = tuple(Leaf((name,), (name,), Column(name, kind, partition=True), "") for name, kind in kinds)
    files = SimpleNamespace(partitions=(values,), path=np.array([path], dtype=object))
    return SimpleNamespace(
        location="/t", partition_columns=names, partition_leaves=leaves, whole_partitions=True, files=lambda: files
    )


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("file:/t/s=x/n=__HIVE_DEFAULT_PARTITION__/part-0.parquet", ("x", None)),
        ("file:/t/s=x/n=/part-0.parquet", ("x", None)),
        ("file:/t/s=abc/n=7/part-0.parquet", (None, "7")),
        ("file:/n=1/t/aB/part-0.parquet", ("x", None)),  # of column mapping, below another table's folder
        ("part-0.parquet", ("x", None)),
    ],
)
def test_partitions_whose_folders_tell_nothing_else_are_rewritten(path: str, values: tuple[str | None, ...]) -> None:
    refuse_unreadable(by_public_api(path, *values), np.array([0]))


@pytest.mark.parametrize(("folder", "text"), [("n=abc", "abc"), ("n=1%252F2", "1/2")])
def test_a_folder_tells_a_text_that_is_read_as_null(folder: str, text: str) -> None:
    table = by_public_api(f"file:/t/s=x/{folder}/part-0.parquet", "x", None)
    with pytest.raises(UnsupportedTableError, match=f"partition column n has the value '{text}', which is no int"):
        refuse_unreadable(table, np.array([0]))
