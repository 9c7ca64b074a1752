"""Sorting index, contingency and graph: the seed's examples, brute force, and correlations planted in noise."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.features import correlation, ordering
from zorder_pipeline.features.correlation import build_graph, traverse
from zorder_pipeline.features.ordering import Codes, contingency, order_shares, ordered, ranks, sorting_index
from zorder_pipeline.features.sample import SampleColumn

small = st.lists(st.integers(0, 6), max_size=40)
pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=40)


def column(values: object, valid: object = None) -> SampleColumn:
    array = np.asarray(values)
    return SampleColumn(array, np.ones(len(array), dtype=bool) if valid is None else np.asarray(valid))


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ([1, 3, 5, 2, 4], 0.7),
        ([1, 2, 3], 1.0),
        ([3, 2, 1], 0.0),
        ([7] * 9, 0.0),
        ([False] * 500 + [True] * 500, 0.5005005),
    ],
)
def test_sorting_index_of_the_seed(values: list[int], index: float) -> None:
    assert sorting_index(np.array(values)) == pytest.approx(index)


@given(small)
def test_sorting_index_is_the_double_sum(values: list[int]) -> None:
    n = len(values)
    k = sum(values[j] > values[i] for i in range(n) for j in range(i + 1, n))
    assert sorting_index(np.array(values)) == pytest.approx(k / (n * (n - 1) / 2) if n > 1 else 1.0)


@given(pairs)
def test_order_shares_count_pairs(rows: list[tuple[int, int]]) -> None:
    a, b = (ranks(np.array([row[i] for row in rows], dtype=np.int64)) for i in (0, 1))
    signs = [
        (np.sign(int(a[j] - a[i])), np.sign(int(b[j] - b[i])))
        for i in range(len(rows))
        for j in range(i + 1, len(rows))
    ]
    counted = [(x, y) for x, y in signs if x or y]
    same = sum(x * y > 0 for x, y in counted) / max(1, len(counted))
    opposite = sum(x * y < 0 for x, y in counted) / max(1, len(counted))
    assert order_shares(a, b) == pytest.approx((same, opposite))
    assert order_shares(b, a) == order_shares(a, b)  # every edge is bidirectional


@given(pairs)
def test_contingency_is_the_formula(rows: list[tuple[int, int]]) -> None:
    a, b = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    square = 0.0
    for i in set(a.tolist()):
        for j in set(b.tolist()):
            expected = float((a == i).mean() * (b == j).mean())
            square += (float(((a == i) & (b == j)).mean()) - expected) ** 2 / expected
    fewer = min(len(set(a.tolist())), len(set(b.tolist()))) - 1
    assert contingency(a, b) == pytest.approx(square / fewer if fewer > 0 else 0.0, abs=1e-9)


def test_ranks_follow_the_total_order() -> None:
    assert ranks(np.array([np.nan, 1.0, -np.inf, np.nan])).tolist() == [2, 1, 0, 2]
    assert ranks(np.array(["\U0001f600", "\uffff", "a"], dtype=object)).tolist() == [2, 1, 0]
    assert ranks(np.array([10**30, -1, 10**30], dtype=object)).tolist() == [1, 0, 1]


def test_table_4_2_is_descending() -> None:
    year, sold = np.array([2017, 2018, 2015, 2014]), np.array([1024, 770, 3400, 3800])
    assert sorting_index(sold[np.argsort(year)]) == 0.0
    assert order_shares(ranks(year), ranks(sold)) == (0.0, 1.0)


def test_table_4_3_is_a_dependency_but_no_order() -> None:
    first, second = np.arange(1, 101), np.array([1, 0] + [1] * 98)
    assert contingency(first, second) == pytest.approx(1.0)
    graph = build_graph({"a": column(first), "b": column(second)})
    assert not graph.edges
    assert (
        build_graph({"a": column(first), "b": column(second)}, categorical={"a", "b"}).edges["a", "b"]["kind"]
        == "contingency"
    )


def test_constants_and_booleans_follow_nothing() -> None:
    key = np.arange(1000)
    graph = build_graph(
        {"key": column(key), "constant": column(key * 0), "flag": column(key >= 500), "copy": column(key >= 500)}
    )
    assert not graph.edges


@pytest.mark.parametrize("seed", range(20))
def test_planted_correlations_are_found_and_no_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 3000
    a, noise = rng.normal(size=n), rng.normal(size=n)
    zipf = rng.zipf(1.5, n).clip(max=50)
    columns = {
        "a": column(a),
        "up": column(np.exp(a) + rng.normal(size=n) * 0.01),
        "down": column(-(a**3)),
        "noise": column(noise),
        "loose": column(a + noise),
        "few": column(zipf),
        "few_text": column(np.array([f"{value:03d}" for value in zipf], dtype=object)),
        "half_null": column(a, rng.random(n) < 0.5),
    }
    category = rng.integers(0, 8, n)
    columns |= {
        "category": column(category),
        "of_category": column(np.array([3, 0, 2, 1, 3, 1, 0, 2])[category]),  # a function of it, in no order
        "other_category": column(rng.integers(0, 8, n)),
        "constant": column(np.zeros(n)),
        "boolean": column(rng.random(n) < 0.5),
    }
    categorical = {"category", "of_category", "other_category", "constant", "boolean"}
    graph = build_graph(columns, rows=2000, seed=seed, categorical=categorical)
    found = {(x, y): data["kind"] for x, y, data in graph.edges(data=True)}
    assert found == {
        ("a", "up"): "ascending",
        ("a", "down"): "descending",
        ("up", "down"): "descending",
        ("few", "few_text"): "ascending",
        ("category", "of_category"): "contingency",
    }


def table(seed: int, n: int = 6_000) -> dict[str, SampleColumn]:
    """Columns that follow one another more or less: with noise around the threshold, ties, nulls and rare values."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=n)
    columns = {f"near_{noise}": column(base + rng.normal(size=n) * noise) for noise in (0.05, 0.15, 0.22, 0.3, 0.6)}
    columns["coarse"] = column(np.round(-base * 3))
    columns["nulls"] = column(base, rng.random(n) < 0.96)
    columns["more_nulls"] = column(base, rng.random(n) < 0.92)
    columns["sparse"] = column(base, rng.random(n) < 0.01)
    rare = np.where(rng.random(n) < 0.002, rng.integers(1, 6, n), 0)
    columns |= {"rare": column(rare), "rare_too": column(rare * 2), "rare_else": column(np.roll(rare, 7))}
    texts = np.array([f"{value:02d}" for value in rng.integers(0, 30, n)], dtype=object)
    return columns | {"texts": column(texts), "key": column(rng.permutation(n)), "two": column(base > 0)}


@pytest.mark.parametrize("seed", range(8))
def test_what_few_rows_tell_apart_all_rows_do(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = table(seed)
    found = build_graph(columns, seed=seed, categorical={"rare", "rare_too", "texts", "two", "coarse"})
    monkeypatch.setattr(correlation, "FEW_ROWS", 6_000)
    expected = build_graph(columns, seed=seed, categorical={"rare", "rare_too", "texts", "two", "coarse"})
    assert nx.utils.graphs_equal(found, expected)
    assert found.has_edge("near_0.05", "near_0.15")
    assert found.has_edge("rare", "rare_too")
    assert not found.has_edge("near_0.05", "near_0.6")


def test_columns_that_do_not_follow_each_other_are_compared_by_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def counted(a: Codes, b: Codes) -> tuple[int, int, int]:
        compared.append(len(a))
        return ordered(a, b)

    for module in (correlation, ordering):  # few rows in the one, all of them in the other
        monkeypatch.setattr(module, "ordered", counted)
    rng = np.random.default_rng(1)
    columns = {str(i): column(rng.normal(size=20_000)) for i in range(10)}
    graph = build_graph(columns | {"copy": columns["3"]})
    assert list(graph.edges) == [("3", "copy")]
    assert sorted(compared) == [1_000] * 55 + [20_000]


FIGURE = nx.Graph([(1, 2), (1, 3), (2, 3), (2, 4), (4, 5), (4, 6)])
OFTEN = {1: 9, 4: 8, 2: 7, 3: 3, 5: 2, 6: 1}


def test_traversal_of_figure_4_5() -> None:
    primary, correlated = traverse(FIGURE, OFTEN, 6)
    assert (primary, set(correlated)) == ((1, 4), {2, 3, 5, 6})
    assert FIGURE.number_of_edges() == 6  # the caller's graph stays


@pytest.mark.parametrize(("policy", "primary"), [("frequency", (5, 1, 4)), ("degree", (2, 4)), ("both", (2, 4))])
def test_policies_differ_in_order(policy: str, primary: tuple[int, ...]) -> None:
    often = {5: 10, 1: 9, 4: 8, 2: 7.5, 3: 3, 6: 1} if policy == "frequency" else {2: 9, 1: 8, 4: 7, 5: 3, 3: 2, 6: 1}
    assert traverse(FIGURE, often, 6, policy)[0] == primary  # type: ignore[arg-type]


def test_limit_and_isolated_vertices() -> None:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from("abc")
    assert traverse(graph, {"a": 1, "b": 3, "c": 2}, 2) == (("b", "c"), ("a",))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda e: e[0] != e[1])), st.integers(0, 9))
def test_traversal_splits_all_vertices(edges: list[tuple[int, int]], limit: int) -> None:
    graph = nx.Graph(edges)
    primary, correlated = traverse(graph, {v: v % 3 for v in graph}, limit)
    assert sorted([*primary, *correlated]) == sorted(graph)
    assert len(primary) <= limit
    if len(primary) < limit:
        assert all(set(graph[vertex]) & set(primary) for vertex in correlated)  # each follows a primary one
