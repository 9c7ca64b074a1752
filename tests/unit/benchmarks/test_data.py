from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from zorder_pipeline.benchmarks import data
from zorder_pipeline.errors import TableError, ZorderError


def test_lineitem_parts_follow_each_other_in_order_key(lineitem_files: list[Path]) -> None:
    assert len(lineitem_files) == 12
    keys = [pq.read_table(path, columns=["l_orderkey"]).column(0).to_pylist() for path in lineitem_files]
    joined = [key for part in keys for key in part]
    assert joined == sorted(joined)
    assert sum(map(len, keys)) == 60_175  # dbgen's row count at scale 0.01
    assert max(map(len, keys)) < 1.2 * min(map(len, keys))


def test_types_are_those_of_tpch(lineitem_files: list[Path]) -> None:
    schema = pq.read_schema(lineitem_files[0])
    assert str(schema.field("l_extendedprice").type) == "decimal128(15, 2)"
    assert str(schema.field("l_shipdate").type) == "date32[day]"


def test_the_join_has_each_line_item_once(tmp_path: Path, lineitem: duckdb.DuckDBPyConnection) -> None:
    joined = data.orders_lineitem(tmp_path, 0.01)
    assert pq.ParquetFile(joined).metadata.num_columns == 24
    total = f"SELECT count(*), sum(l_quantity), count(DISTINCT o_orderkey) FROM read_parquet('{joined}')"
    plain = "SELECT count(*), sum(l_quantity), count(DISTINCT l_orderkey) FROM lineitem"
    assert lineitem.execute(total).fetchall() == lineitem.execute(plain).fetchall()


def test_writing_again_replaces_the_files(tmp_path: Path) -> None:
    data.write_tpch(tmp_path, 0.001, "orders", parts=4)
    assert len(data.write_tpch(tmp_path, 0.001, "orders", parts=2)) == 2
    assert len(list((tmp_path / "orders").iterdir())) == 2


def test_a_failing_generator_gives_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ZorderError, match=r"could not write nosuch at scale 1: .*unknown table"):
        data.write_tpch(tmp_path, 1, "nosuch")


def test_a_missing_generator_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(ZorderError, match="pip install tpchgen-cli"):
        data.write_lineitem(tmp_path, 0.001)


def test_no_delta_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no Delta table"):
        data.file_count(tmp_path)


class _Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


class _Session:
    def __init__(self) -> None:
        self.conf = _Conf(kept="1")


def test_session_settings_are_put_back_even_after_an_error() -> None:
    spark = _Session()
    inside = data.session_conf(spark, {"kept": "2", "new": "3"})  # type: ignore[arg-type]
    with contextlib.suppress(KeyError), inside:
        assert spark.conf == {"kept": "2", "new": "3"}
        raise KeyError
    assert spark.conf == {"kept": "1"}
