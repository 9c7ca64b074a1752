"""How a table is named in SQL."""

import os

import pytest

from zorder_pipeline.state.delta_tables import sql_name


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("a.b", "`a`.`b`"),
        ("`a.b`.c", "`a.b`.c"),
        ("/a`b/c", "delta.`/a``b/c`"),
        ("s3://bucket/t", "delta.`s3://bucket/t`"),
        ("file:/t", "delta.`file:/t`"),
        ("./t", f"delta.`{os.getcwd()}/t`"),
        ("state/t", f"delta.`{os.getcwd()}/state/t`"),
    ],
)
def test_a_folder_is_named_in_full(table: str, name: str) -> None:
    assert sql_name(table) == name
