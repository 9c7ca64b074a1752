"""How a table is named in SQL."""

import os

import pytest

from zorder_pipeline.errors import TableError
from zorder_pipeline.relayout.public_snapshot import open_public
from zorder_pipeline.state.delta_tables import sql_name


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("a.b", "`a`.`b`"),
        ("`a.b`.c", "`a.b`.`c`"),
        ("`a``b`.`c`", "`a``b`.`c`"),
        ("/a`b/c", "delta.`/a``b/c`"),
        ("s3://bucket/t", "delta.`s3://bucket/t`"),
        ("file:/t", "delta.`file:/t`"),
        ("./t", f"delta.`{os.getcwd()}/t`"),
        ("state/t", f"delta.`{os.getcwd()}/state/t`"),
    ],
)
def test_a_folder_is_named_in_full(table: str, name: str) -> None:
    assert sql_name(table) == name


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("a`", "`a```"),
        ("a` VERSION AS OF 1; DROP TABLE b", "`a`` VERSION AS OF 1; DROP TABLE b`"),
        ("`a` b", "```a`` b`"),
        ("`a`.b`", "```a```.`b```"),
        ("`a``", "```a`````"),
        ("``", "``````"),
    ],
)
def test_nothing_in_a_name_is_taken_for_sql(table: str, name: str) -> None:
    """As a log may have a table of any name: FROM `a`` VERSION AS OF 1; DROP TABLE b`."""
    assert sql_name(table) == name


@pytest.mark.parametrize("table", ["a`${spark.hadoop.fs.s3a.secret.key}`", "${env:HOME}", "/lake/${env:HOME}"])
def test_a_name_into_which_spark_would_put_a_setting_is_not_opened(table: str) -> None:
    """Else Delta's error would quote the setting."""

    class Session:
        def sql(self, text: str) -> None:
            raise AssertionError(text)

    with pytest.raises(TableError, match=r"cannot be opened: its name holds \$\{, which Spark replaces; rename it$"):
        open_public(Session(), table)  # type: ignore[arg-type]
