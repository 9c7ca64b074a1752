"""Statistics that would skip next to nothing under a layout are not gathered."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

from zorder_pipeline.assets.records import AnalysedTable
from zorder_pipeline.layout.blocks import LogBlocks
from zorder_pipeline.model.file_stats import Feature
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.predicate import And, Comparison, Literal, Opaque, Predicate
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.pipeline import TableAnalysis
from zorder_pipeline.pipeline.learning.useful_statistics import _between, useful_statistics

FILES, EACH = 8, 50
FILE = np.repeat(np.arange(FILES, dtype=np.int32), EACH)
SCHEMA = TableSchema((Column("place", "int"), Column("kind", "string"), Column("flag", "string")))
RNG = np.random.default_rng(1)


def in_blocks(statement: npt.NDArray[np.int64], block: npt.NDArray[np.int64]) -> LogBlocks:
    """Each statement a condition and an observation of its own."""
    return LogBlocks(statement, statement, block, statement, np.ones(len(statement)))


def each_once(queries: int) -> LogBlocks:
    """Each query a statement of its own, and nothing kept apart."""
    return in_blocks(np.arange(queries), np.zeros(queries, dtype=np.int64))


def _looked_up(name: str, value: str) -> Predicate:
    return Comparison(name, "=", (Literal("string", value),))


def _whole(text: str) -> Predicate:
    return Opaque("like", ("place",), text)


def _feature(name: str, kind: Any, weight: float, **more: Any) -> Feature:
    type_name = {"predicate": "boolean", "column": "string"}[kind]
    return Feature(name, kind, type_name, name, (name,), weight=weight, **more)


KIND, FLAG = (_feature(name, "column", 3.0, equality=True) for name in ("kind", "flag"))
SORTED, MIXED, TWIN, NEVER = (
    _feature(f"place LIKE '%{n}%'", "predicate", weight) for n, weight in ((1, 9.0), (2, 8.0), (3, 1.0), (4, 1.0))
)
FEATURES = (SORTED, MIXED, KIND, FLAG, TWIN, NEVER)


def _analysis(queries: list[Predicate]) -> TableAnalysis:
    """Eight files: one has a kind of its own, between those of the others; predicate 1 is true in another alone."""
    rows = FILES * EACH
    kind = np.where(RNG.random(rows) < 0.5, "a", "z").astype(object)
    kind[FILE == 3] = "m"
    columns = {
        "place": np.arange(rows, dtype=np.int64),
        "kind": kind,
        "flag": np.array(["N", "R"], dtype=object)[np.arange(rows) % 2],
        SORTED.name: (FILE == 5).astype(np.int64),
        MIXED.name: (np.arange(rows) % 3 == 0).astype(np.int64),
        TWIN.name: (FILE == 5).astype(np.int64),
        NEVER.name: np.zeros(rows, dtype=np.int64),
    }
    return _analysed(columns, FEATURES, queries)


def _analysed(
    columns: dict[str, np.ndarray[Any, Any]],
    features: Sequence[Feature],
    queries: Sequence[Predicate],
    whole: int = 1,
) -> TableAnalysis:
    rows = len(columns["place"])
    everywhere = np.ones(rows, dtype=np.bool_)
    arrays = {name: (values, everywhere) for name, values in columns.items()}
    sample = SimpleNamespace(arrays=arrays, rows=rows, total_rows=rows * whole)
    logged = tuple(LoggedQuery("t", predicate) for predicate in queries)
    names = {feature: feature.name for feature in features}
    snapshot = SimpleNamespace(schema=SCHEMA)
    return TableAnalysis(cast(Any, snapshot), logged, cast(Any, sample), cast(Any, None), (), names)


KINDS_ALONE = _looked_up("kind", "3")
QUERIES = [
    _whole(SORTED.name),
    _whole(MIXED.name),
    And((_whole(SORTED.name), _whole(TWIN.name))),
    _looked_up("kind", "m"),
    _looked_up("flag", "N"),
]


def test_what_excludes_no_file_is_left_out_and_one_of_two_that_say_the_same() -> None:
    found = useful_statistics(_analysis(QUERIES), FILE, np.ones(len(QUERIES)), each_once(len(QUERIES)), None)
    assert found == (SORTED, KIND), "of twins the one asked more often; nobody asks for the last"


def test_a_value_between_the_bounds_is_found_by_its_bloom_filter_alone() -> None:
    analysis = _analysis(QUERIES)
    without = dataclasses.replace(KIND, equality=False)
    columns = {(without if feature == KIND else feature): name for feature, name in analysis.columns.items()}
    found = useful_statistics(
        dataclasses.replace(analysis, columns=columns), FILE, np.ones(len(QUERIES)), each_once(len(QUERIES)), None
    )
    assert found == (SORTED,)


def test_what_is_gathered_already_stays() -> None:
    kept = (MIXED, _feature("no more asked for", "predicate", 1.0))
    found = useful_statistics(_analysis(QUERIES), FILE, np.ones(len(QUERIES)), each_once(len(QUERIES)), None, kept)
    assert found == (SORTED, MIXED, KIND)


def test_the_last_part_of_the_log_does_not_decide() -> None:
    blocks = in_blocks(np.arange(5), np.array([0, 0, 1, 2, 2]))
    assert useful_statistics(_analysis(QUERIES), FILE, np.ones(len(QUERIES)), blocks, None) == (SORTED,)


@pytest.mark.parametrize(("times", "kept"), [(1, False), (40, True)])
def test_a_statement_that_is_asked_again_weighs_what_all_its_queries_do(times: int, kept: bool) -> None:
    """What only one of two hundred statements skips by is worth gathering where it is asked forty times."""
    others = [_looked_up("flag", "N")] * 200
    statement = np.array([*range(200), *[200] * times])
    blocks = in_blocks(statement, np.zeros(len(statement), dtype=np.int64))
    analysis = _analysis([*others, *[_whole(SORTED.name)] * times])
    found = useful_statistics(analysis, FILE, np.ones(len(statement)), blocks, None)
    assert (SORTED in found) == kept


def _key(column: str, kind: str, *cuts: Any, spare: int = 0) -> KeySpec:
    bits = max(1, len(cuts).bit_length())
    return KeySpec((FeatureCodes(column, kind, cuts, tuple(range(len(cuts) + 1)), bits),), (0,) * bits, spare=spare)


def test_bounds_of_a_column_count_where_the_layout_cuts_it() -> None:
    """A rare value widens the bounds of every real file and of hardly any in the sample."""
    apart = _analysed({"place": FILE.astype(np.int64), "kind": FILE.astype(str).astype(object)}, [KIND], [KINDS_ALONE])
    each = tuple(str(i) for i in range(1, FILES))
    for spec, kept in (
        (_key("kind", "string", *each), ()),
        (_key("kind", "string", "4"), (KIND,)),  # '3' may lie in any of four files
        (_key("kind", "string", *each, spare=2), (KIND,)),
        (_key("place", "int", 4), (KIND,)),
        (None, (KIND,)),
    ):
        assert useful_statistics(apart, FILE, np.ones(1), each_once(1), spec) == kept


def test_what_is_rare_in_the_sample_does_not_hide_what_is_needed_in_real_files() -> None:
    rare, half = _feature("place LIKE '%rare%'", "predicate", 9.0), _feature("place LIKE '%half%'", "predicate", 8.0)
    rows = FILES * EACH
    columns = {
        "place": np.arange(rows, dtype=np.int64),
        rare.name: np.zeros(rows, dtype=np.int64),
        half.name: (FILE == 5).astype(np.int64),
    }
    analysis = _analysed(columns, [rare, half], [And((_whole(rare.name), _whole(half.name)))])
    assert half in useful_statistics(analysis, FILE, np.ones(1), each_once(1), None)


def test_bounds_of_a_sample_hide_no_predicate() -> None:
    """One row in 10,000 has a 'z': each real file, and none of the sample's."""
    half = _feature("place LIKE '%half%'", "predicate", 1.0)
    rows = FILES * EACH
    columns = {
        "place": np.arange(rows, dtype=np.int64),
        "kind": np.array(list("abcdefgh"), dtype=object)[np.arange(rows) % 8],
        half.name: (FILE >= 4).astype(np.int64),
    }
    for equality in (False, True):
        kind = dataclasses.replace(KIND, equality=equality)
        queries = [
            And((Comparison("kind", ">=", (Literal("string", "z"),)), _whole(half.name))),
            Comparison("kind", ">=", (Literal("string", "h"),)),
        ]
        analysis = _analysed(columns, [kind, half], queries)
        assert half in useful_statistics(analysis, FILE, np.ones(2), each_once(2), None)


@pytest.mark.parametrize(("whole", "kept"), [(1, False), (10_000, True)])
def test_a_bloom_filter_that_real_files_are_too_large_for_hides_nothing(whole: int, kept: bool) -> None:
    rows = FILES * EACH
    half = _feature("place LIKE '%half%'", "predicate", 1.0)
    columns = {
        "place": np.arange(rows, dtype=np.int64),
        "kind": np.array([f"{i * 7919 % rows:05d}" for i in range(rows)], dtype=object),
        half.name: (FILE >= 4).astype(np.int64),
    }
    known = str(columns["kind"][5 * EACH])
    analysis = _analysed(columns, [KIND, half], [And((_looked_up("kind", known), _whole(half.name)))], whole)
    assert (half in useful_statistics(analysis, FILE, np.ones(1), each_once(1), None)) == kept


def test_what_may_be_lost_is_measured_by_what_queries_read_at_best() -> None:
    """Six hundred lookups that Delta's own bounds serve make no room for one that reads all without its statistic."""
    files = 1000
    file = np.arange(files, dtype=np.int32)
    special = _feature("place LIKE '%special%'", "predicate", 1.0)
    columns = {"place": file.astype(np.int64), special.name: (file % 100 == 0).astype(np.int64)}
    queries = [Comparison("place", "=", (Literal("number", str(i)),)) for i in range(600)]
    analysis = _analysed(columns, [special], [*queries, _whole(special.name)])
    assert useful_statistics(analysis, file, np.ones(601), each_once(601), None) == (special,)


def test_what_is_lost_without_several_of_them_adds_up() -> None:
    files, predicates = 600, 20
    file = np.arange(files, dtype=np.int32)
    features = [_feature(f"place LIKE '%{n}%'", "predicate", 1.0 + n) for n in range(predicates)]
    truth = {f.name: (file // 15 != n).astype(np.int64) for n, f in enumerate(features)}
    analysis = _analysed({"place": file.astype(np.int64), **truth}, features, [_whole(f.name) for f in features])
    found = useful_statistics(analysis, file, np.ones(predicates), each_once(predicates), None)
    assert found == tuple(features[3:]), "each saves its query 2.5%, all queries 0.13%: three may go, four may not"


def test_of_a_sample_without_rows_nothing_is_known() -> None:
    nothing = _analysed({"place": np.zeros(0, dtype=np.int64)}, [SORTED], [_whole(SORTED.name)])
    assert useful_statistics(nothing, FILE[:0], np.ones(1), each_once(1), None) == (SORTED,)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(TableAnalysis)])
def test_nothing_of_an_analysis_is_lost_between_two_assets(name: str) -> None:
    """What was: without the columns, scans through reading got neither a layout nor statistics from any night."""
    analysis = _analysis(QUERIES)
    marked = dataclasses.replace(analysis, **{name: SimpleNamespace(version=7) if name == "snapshot" else object()})
    snapshot = SimpleNamespace(version=7)
    stored = AnalysedTable.of(cast(Any, SimpleNamespace(**{**vars(marked), "snapshot": snapshot})))
    back = stored.analysis(cast(Any, marked.snapshot))
    assert getattr(back, name) is getattr(marked, name)


@pytest.mark.parametrize(
    ("values", "cuts"),
    [
        (np.array([-7, 0, 3, 3, 9]), [0, 3]),
        (np.array([-7.5, 0.0, 2.5, np.inf]), [0.0, 2.5]),
        (np.array(["", "ab", "b", "\ue000", "z"], dtype=object), ["ab", "b\0", "\ue000"]),
        (np.array([b"", b"a", b"b"], dtype=object), [b"a", b"b"]),
        (np.array([-(10**30), 5, 10**30], dtype=object), [5]),
        (np.array([], dtype=np.int64), []),
        (np.array([], dtype=object), ["a"]),
        (np.array([-(2**63), 0, 4, 2**63 - 1]), [-(2**63), 4]),
    ],
)
def test_values_lie_between_the_cuts_around_them(values: np.ndarray[Any, Any], cuts: list[Any]) -> None:
    low, high = _between(values, cuts)
    for value, lowest, highest in zip(values.tolist(), low.tolist(), high.tolist(), strict=True):
        assert lowest <= value <= highest
        assert all(cut <= value for cut in cuts if cut <= lowest), "the same cuts are below the value and its bound"
        assert not any(value < cut < highest for cut in cuts), "no cut between a value and its upper bound"
