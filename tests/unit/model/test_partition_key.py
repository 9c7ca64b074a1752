"""The word for a partition says which it is, whatever its values are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.errors import TableError
from zorder_pipeline.model.partition_key import NULL, partition_condition, partition_key, partition_values

VALUES = st.none() | st.text(max_size=12) | st.sampled_from(["...", "a/b", "a=b", "%2F", NULL, "a,b", "1\n2"])


@given(st.lists(st.tuples(st.text(min_size=1, max_size=5), VALUES), min_size=1, max_size=3))
def test_the_values_come_back(parts: list[tuple[str, str | None]]) -> None:
    columns, values = [name for name, _ in parts], tuple(value for _, value in parts)
    key = partition_key(columns, values)
    assert partition_values(key, columns) == values
    assert "..." not in key  # a range of partitions to Dagster
    assert not set(key) & set(",\n\r\t")


@pytest.mark.parametrize("key", ["2026-01-01", "day=1", "ds=1/region=2", "ds"])
def test_another_tables_partition_is_refused(key: str) -> None:
    with pytest.raises(TableError, match=r"write ds=\.\.\."):
        partition_values(key, ["ds"])
    with pytest.raises(TableError, match="not partitioned"):
        partition_values(key, [])


def test_the_condition_holds_no_text_of_the_value() -> None:
    text = partition_condition("ds=it's%2F/n=1", {"ds": "string", "n": "int"})
    assert "it's" not in text
    assert text.startswith("`ds` = try_cast(decode(X'")
    assert text.endswith("AS int)")


def test_instants_are_read_as_such_also_where_timestamp_has_no_zone() -> None:
    text = partition_condition("at=2026-01-01 00%3A00%3A00", {"at": "timestamp"})
    assert text.endswith(" AS timestamp_ltz)")
