"""Which names of statements mean which of the known tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from zorder_pipeline.config import load_config
from zorder_pipeline.errors import TableError
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline import logs
from zorder_pipeline.pipeline.logs import Unopened, configured_sources, configured_tables, names_and_schemas, names_of
from zorder_pipeline.pipeline.records import LogSource
from zorder_pipeline.pipeline.repeated import repeated
from zorder_pipeline.query_log.intake.store import LogStore
from zorder_pipeline.query_log.statements.catalog import Catalog, generation_of


def lying(location: str, table_id: str = "") -> Any:
    return SimpleNamespace(location=location, asked_schema=None, table_id=table_id)


def catalog(**tables: tuple[str, str, tuple[str, ...]]) -> Catalog:
    """Of tables as configured: what opens them, where they lie, and their names and aliases."""
    known = {
        name: (lying(place), names_of(table, lying(place), names)) for name, (table, place, names) in tables.items()
    }
    return Catalog.of(*names_and_schemas(known), {}, "spark")


def meant(found: Catalog, *names: str) -> list[str | None]:
    return [found._match(name.split(".")) for name in names]


def test_a_table_is_meant_by_its_aliases_its_catalog_name_and_its_folder() -> None:
    found = catalog(
        flights=("/lake/air/flights_v2", "file:/lake/air/flights_v2", ("flights", "ops.flights")),
        sales=("shop.sales", "s3a://lake/warehouse/3f2a", ("sales",)),
    )
    assert meant(found, "FLIGHTS", "ops.flights", "flights_v2", "air.flights_v2") == ["flights"] * 4
    assert meant(found, "shop.sales", "prod.shop.sales", "sales", "3f2a") == ["sales"] * 4
    assert meant(found, "nobody.knows") == [None]
    assert found.named("/lake/air/flights_v2") == "flights"
    assert found.named("s3a://lake/warehouse/3f2a") == "sales"


def test_a_table_that_cannot_be_opened_keeps_its_names() -> None:
    """Else the logs would be read again, tonight without it and once more with it."""

    def generation(found: Any) -> str:
        known = {"flights": (found, names_of("/lake/air/flights_v2", found, ("flights",)))}
        aliases, schemas = names_and_schemas(known)
        assert set(schemas) == ({"flights"} if found.asked_schema else set())
        return generation_of(Catalog.of(aliases, schemas, {}, "spark"), "UTC")

    opened = SimpleNamespace(location="file:/lake/air/flights_v2", asked_schema=TableSchema((Column("a", "int"),)))
    assert generation(Unopened.at("/lake/air/flights_v2")) == generation(opened)


@pytest.mark.parametrize("known_by", ["location: {}/flights_v2", "catalog: air.flights"])
def test_a_configured_table_that_cannot_be_opened_keeps_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_by: str
) -> None:
    """Also one of a catalog, whose folder is where it lay when a log was read last: event logs name it by that."""
    (tmp_path / "tables.yaml").write_text(f"tables: [{{name: flights, {known_by.format(tmp_path)}}}]\n")
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    place = f"file:{tmp_path}/flights_v2"
    spark: Any = None
    warned: list[str] = []

    def cannot_be_opened(*_: object, **__: object) -> None:
        raise TableError("gone")

    def aliases() -> dict[str, str]:
        return names_and_schemas(configured_tables(spark, config, warned.append))[0]

    monkeypatch.setattr(LogStore, "places", lambda _: {"flights": place})
    monkeypatch.setattr(logs, "open_table", lambda *_, **__: lying(place))
    opened = aliases()
    assert (opened[f"{tmp_path}/flights_v2"], warned) == ("flights", [])
    monkeypatch.setattr(logs, "open_table", cannot_be_opened)
    assert aliases() == opened
    assert warned == ["flights: gone"]
    monkeypatch.setattr(LogStore, "places", lambda _: {})
    assert aliases() == (opened if "location" in known_by else {}), "of what was never opened no names are made up"


def test_a_name_that_two_folders_share_means_neither_but_with_the_folder_above() -> None:
    both = {name: (f"/{name}/orders", f"file:/{name}/orders", (f"orders_{name}",)) for name in ("eu", "us")}
    found = catalog(**both)
    assert meant(found, "eu.orders", "us.orders", "orders_us") == ["eu", "us", "us"]
    assert meant(found, "orders", "ASIA.ORDERS") == [None, None], "it was taken for the table that came last"
    table, place, names = both["eu"]
    assert meant(catalog(**both | {"eu": (table, place, (*names, "Orders"))}), "orders") == ["eu"], "an alias says so"


def test_tables_of_one_name_in_two_schemas_are_told_apart_without_their_catalog() -> None:
    """Statements name the schema, and seldom the catalog: these counted for neither table."""
    lake = catalog(**{name: (f"main.{name}.orders", f"s3a://lake/{name}", (name,)) for name in ("eu", "us")})
    assert meant(lake, "eu.orders", "main.us.orders", "orders") == ["eu", "us", None]
    own = catalog(
        eu=("spark_catalog.eu.orders", "file:/warehouse/eu.db/orders", ("sold",)),
        us=("us.orders", "file:/lake/eu/orders", ("bought",)),
    )
    assert meant(own, "EU.orders", "us.orders", "spark_catalog.us.orders", "orders") == ["eu", "us", "us", None]


@pytest.mark.parametrize(
    "place", ["/lake/us/orders", "/lake/us/orders/", "file:/lake/us/orders", "file:///lake/us/orders"]
)
def test_a_folder_that_is_named_whole_means_its_table_and_none_of_the_same_last_name(place: str) -> None:
    """It counted for the table that is called like the folder, which lies elsewhere, or for neither."""
    found = catalog(
        orders=("/lake/eu/orders", "file:/lake/eu/orders", ("orders",)),
        us=("/lake/us/orders", "file:/lake/us/orders", ("us",)),
    )
    table = sqlglot.parse_one(f"SELECT * FROM delta.`{place}`", read="spark").find(exp.Table)
    assert table is not None
    assert (found.find(table), found.named(place)) == ("us", "us")
    assert meant(found, "orders", "delta./elsewhere/orders") == ["orders", "orders"]


def test_a_table_of_two_entries_is_meant_by_the_names_of_both_as_the_first() -> None:
    """The later one took the certain names that both have, and what follows from their folder meant neither."""
    found = catalog(
        by_path=("/lake/orders", "file:/lake/orders", ("by_path", "sold")),
        by_name=("shop.orders", "file:///lake/orders/", ("by_name", "shop.orders")),
    )
    assert meant(found, "sold", "orders", "by_name", "shop.orders", "dev.orders") == ["by_path"] * 5
    assert found.named("/lake/orders") == "by_path"


def test_a_table_of_two_entries_is_told_by_its_place_or_its_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that a catalog knows by a name, too; and a copied folder, which keeps the id."""
    (tmp_path / "tables.yaml").write_text(
        f"tables: [{{name: one, location: {tmp_path}/one}}, {{name: gone, location: {tmp_path}/gone}},"
        " {name: again, catalog: shop.one}, {name: copy, location: copy}, {name: other, location: other}]\n"
    )
    config = load_config(tmp_path / "tables.yaml", check_paths=False)
    spark: Any = None
    seen = {
        f"{tmp_path}/one": lying(f"file:{tmp_path}/one", "1"),
        "shop.one": lying(f"file:{tmp_path}/one", "1"),
        f"{tmp_path}/copy": lying(f"file:{tmp_path}/copy", "1"),
        f"{tmp_path}/other": lying(f"file:{tmp_path}/other", "2"),
    }

    def opened(_: object, table: str, **__: object) -> Any:
        if table not in seen:
            raise TableError("gone")
        return seen[table]

    warned: list[str] = []
    monkeypatch.setattr(logs, "open_table", opened)
    known = configured_tables(spark, config, warned.append)
    assert repeated(known) == {"again": "one", "copy": "one"}
    away, again, copy = warned
    assert away == "gone: gone"
    assert again == (
        f"again: it is the same table as one, in file:{tmp_path}/one, and is not laid out a second time; keep one of "
        "the two entries in tables.yaml, with the names of the other as its aliases"
    )
    assert copy == (
        f"copy: file:{tmp_path}/copy has the Delta id of one in file:{tmp_path}/one, as a copy of its folder has, so "
        "what is known of one would be taken for the other, and it is not laid out; take it out of tables.yaml, or "
        "write it as a table of its own (CREATE TABLE … AS SELECT)"
    )


def test_a_log_by_hand_is_read_as_the_configured_one_in_which_it_lies(tmp_path: Path) -> None:
    read = "[{path: a, dialect: trino}, {path: a/b, dialect: hive, time_zone: Asia/Tokyo}]"
    (tmp_path / "tables.yaml").write_text(f"query_logs: {read}\ntables: [{{name: t, location: t}}]\n")
    config = load_config(tmp_path / "tables.yaml", check_paths=False)

    def sources(place: str) -> list[tuple[str, str, str]]:
        found = configured_sources(config, LogSource(f"{tmp_path}/{place}", dialect="duckdb"))
        return [(one.path.removeprefix(f"{tmp_path}/"), one.dialect, one.zone) for one in found]

    hive = ("a/b", "hive", "Asia/Tokyo")
    assert sources("a/x.jsonl") == [("a/x.jsonl", "trino", "UTC")]
    assert sources("a/b/x.jsonl") == [("a/b/x.jsonl", "hive", "Asia/Tokyo")]
    assert sources("a/") == [("a/", "trino", "UTC"), hive]
    assert sources("ab.jsonl") == [("ab.jsonl", "duckdb", "UTC")]
    assert sources("") == [("", "duckdb", "UTC"), ("a", "trino", "UTC"), hive]


def test_a_state_knows_a_table_by_whatever_its_place_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "orders").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    places = {"far": "s3a://lake/orders", "near": f"file:{tmp_path}/real/orders", "orders": "file:/elsewhere/orders"}
    monkeypatch.setattr(LogStore, "places", lambda _: places)
    monkeypatch.setattr(LogStore, "__init__", lambda *_: None)
    spark: Any = None
    for table in ("s3://lake/orders", f"{tmp_path}/link/orders"):
        names = logs.names_in_state(spark, "state", table, lying(table))
        assert names[0] == ("far" if table.startswith("s3") else "near")
        assert "orders" not in names, "that is another one's"
