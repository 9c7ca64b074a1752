"""Which names of statements mean which of the known tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.pipeline.logs import Unopened, names_and_schemas, names_of
from zorder_pipeline.query_log.catalog import Catalog, generation_of


def lying(location: str) -> Any:
    return SimpleNamespace(location=location, schema=None)


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
        assert set(schemas) == ({"flights"} if found.schema else set())
        return generation_of(Catalog.of(aliases, schemas, {}, "spark"), "UTC")

    opened = SimpleNamespace(location="file:/lake/air/flights_v2", schema=TableSchema((Column("a", "int"),)))
    assert generation(Unopened.at("/lake/air/flights_v2")) == generation(opened)


def test_a_name_that_two_folders_share_means_neither_but_with_the_folder_above() -> None:
    both = {name: (f"/{name}/orders", f"file:/{name}/orders", (f"orders_{name}",)) for name in ("eu", "us")}
    found = catalog(**both)
    assert meant(found, "eu.orders", "us.orders", "orders_us") == ["eu", "us", "us"]
    assert meant(found, "orders", "ASIA.ORDERS") == [None, None], "it was taken for the table that came last"
    table, place, names = both["eu"]
    assert meant(catalog(**both | {"eu": (table, place, (*names, "Orders"))}), "orders") == ["eu"], "an alias says so"
