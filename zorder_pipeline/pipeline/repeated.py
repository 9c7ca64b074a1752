"""One table under two entries of a configuration: it is the first one's, and by the other it is not laid out.

Both would judge the same version, and the second rewrite what the first has just written. What a state knows of a table
goes by the table's id, which a copied folder keeps: so of a table and its copy one alone is laid out, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from zorder_pipeline.model.places import is_same_place, known_as

__all__ = ["Lying", "repeated", "why_repeated"]


class Lying(Protocol):
    """A table that was opened, or of which only its place is known.

    Attributes:
        location: URI of its folder.
        table_id: Delta's id of it; "" where that is not known.
    """

    @property
    def location(self) -> str: ...

    @property
    def table_id(self) -> str: ...


def repeated(tables: Mapping[str, tuple[Lying, object]]) -> dict[str, str]:
    """By the name of each table that an earlier entry is, too, the name of that one.

    >>> from types import SimpleNamespace as At
    >>> one, copy = (At(location=place, table_id="1") for place in ("/lake/t", "/lake/copy"))
    >>> repeated({"t": (one, ()), "u": (At(location="/lake/u", table_id="2"), ()), "copy": (copy, ())})
    {'copy': 't'}
    """
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, (table, _) in tables.items():
        known = [known_as(table.location), *filter(None, [table.table_id])]
        earlier = next((first[key] for key in known if key in first), None)
        if earlier is not None:
            found[name] = earlier
        first = dict.fromkeys(known, name) | first
    return found


def why_repeated(table: Lying, first: str, earlier: Lying) -> str:
    """Why a table of which `repeated` tells is not laid out, with the way out.

    Args:
        first: name of the earlier entry, whose table is ``earlier``.
    """
    if is_same_place(table.location, earlier.location):
        return (
            f"it is the same table as {first}, in {earlier.location}, and is not laid out a second time; keep one of "
            "the two entries in tables.yaml, with the names of the other as its aliases"
        )
    return (
        f"{table.location} has the Delta id of {first} in {earlier.location}, as a copy of its folder has, so what is "
        "known of one would be taken for the other, and it is not laid out; take it out of tables.yaml, or write it as "
        "a table of its own (CREATE TABLE … AS SELECT)"
    )
