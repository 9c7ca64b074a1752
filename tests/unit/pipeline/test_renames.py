"""Later queries at earlier versions, by physical names, which a rename leaves as they are; and earlier ones now."""

from __future__ import annotations

from dataclasses import replace

from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Or, Predicate
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline.renames import as_called_now, as_called_then
from zorder_pipeline.relayout.leaves import Leaf


def leaf(name: str, physical: str) -> Leaf:
    return Leaf((name,), (physical,), Column(name, "int"), physical)


def equals(column: str) -> Comparison:
    return Comparison(column, "=", (Literal("number", "7"),))


def told(predicate: Predicate, now: list[Leaf], then: list[Leaf]) -> tuple[Predicate, tuple[str, ...]]:
    names = ("customer", "store", "cust")
    (found,) = as_called_then([LoggedQuery("t", predicate, names)], now, then)
    return found.predicate, found.columns


THEN = [leaf("cust", "col-1"), leaf("store", "col-2")]


def test_a_renamed_column_goes_by_its_old_name() -> None:
    now = [leaf("Customer", "col-1"), leaf("store", "col-2"), leaf("new", "col-3")]
    asked = And((equals("customer"), Or((equals("store"), equals("customer"))), equals("new")))
    by_old = And((equals("cust"), Or((equals("store"), equals("cust"))), equals("new")))
    assert told(asked, now, THEN) == (by_old, ("cust", "store", "cust"))


def test_columns_that_were_swapped_are_told_apart() -> None:
    now = [leaf("store", "col-1"), leaf("cust", "col-2")]
    assert told(And((equals("store"), equals("cust"))), now, THEN)[0] == And((equals("cust"), equals("store")))


def test_a_later_column_of_an_old_name_says_nothing() -> None:
    now = [leaf("customer", "col-1"), leaf("store", "col-2"), leaf("cust", "col-9")]
    assert told(equals("cust"), now, THEN) == (And(()), ("cust", "store"))


def test_queries_stay_what_they_are_where_nothing_was_renamed() -> None:
    queries = [LoggedQuery("t", equals("cust"))]
    assert as_called_then(queries, [*THEN, leaf("new", "col-3")], THEN) is queries


SCHEMA = TableSchema((Column("customer", "int"), Column("s.b", "int")), (("Cust", "customer"), ("s.a", "s.b")))


def test_earlier_queries_go_by_the_names_of_today() -> None:
    pattern = Opaque("like", ("cust", "note"), "LOWER(cust) LIKE '%cust%' AND note > 'a'")
    asked = And((equals("cust"), Or((equals("S.A"), equals("customer"))), equals("gone"), pattern))
    (found,) = as_called_now([LoggedQuery("t", asked, ("CUST", "gone"))], SCHEMA)
    by_new = Opaque("like", ("customer", "note"), "LOWER(customer) LIKE '%cust%' AND note > 'a'")
    rest = (Or((equals("s.b"), equals("customer"))), equals("gone"), by_new)
    assert found.predicate == And((equals("customer"), *rest))
    assert found.columns == ("customer", "gone")
    assert as_called_now([found], SCHEMA) == (found,)


def test_an_expression_over_a_column_that_had_no_name_then_is_never_evaluated() -> None:
    now = [leaf("customer", "col-1"), leaf("store", "col-2"), leaf("cust", "col-9")]
    pattern = Opaque("like", ("cust",), "cust LIKE '%x%'")
    assert told(pattern, now, THEN)[0] == Opaque("like", (), "")


DOTTED = Column.at(("user.name",), "string")
BOTH = TableSchema((Column.at(("a", "b"), "string"), replace(Column.at(("a.b",), "string"), name="`a.b`")))


def test_what_older_states_have_of_a_column_with_a_dot_in_its_name_is_mended() -> None:
    """As a struct's field, which there is none of: features of it could not be evaluated."""
    written = Opaque("function", ("user.name",), "UPPER(user.name) = 'ANN' AND s.x = 1")
    (found,) = as_called_now([LoggedQuery("t", written)], TableSchema((DOTTED,)))
    assert found.predicate == replace(written, expression="UPPER(`user.name`) = 'ANN' AND s.x = 1")
    assert as_called_now([found], TableSchema((DOTTED,))) == (found,)


def test_a_column_with_a_dot_in_its_name_is_renamed_like_others() -> None:
    written = Opaque("function", ("user.name",), "UPPER(`user.name`) = 'ANN'")
    schema = TableSchema((Column("user_name", "string"),), (("user.name", "user_name"),))
    (found,) = as_called_now([LoggedQuery("t", written)], schema)
    assert found.predicate == Opaque("function", ("user_name",), "UPPER(user_name) = 'ANN'")


def test_a_field_is_renamed_and_no_column_whose_name_reads_like_its_path() -> None:
    then = [Leaf(("a", "c"), ("col-1",), Column.at(("a", "c"), "string"), "")]
    now = [Leaf((), ("col-1",), BOTH.columns[0], ""), Leaf((), ("col-2",), BOTH.columns[1], "")]
    then.append(replace(now[1]))
    both = Opaque("function", ("a.b", "`a.b`"), "UPPER(a.b) = UPPER(`a.b`)")
    (found,) = as_called_then([LoggedQuery("t", both)], now, then)
    assert found.predicate == Opaque("function", ("a.c", "`a.b`"), "UPPER(a.c) = UPPER(`a.b`)")
