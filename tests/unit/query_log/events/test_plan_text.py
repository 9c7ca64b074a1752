"""Filters as Spark prints them: what they mean, and what is said of them when they are cut off."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zorder_pipeline.model.predicate import And, Opaque
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.query_log.events.plan_scans import _leaves_of, scans_of
from zorder_pipeline.query_log.events.plan_sources import source_filters
from zorder_pipeline.query_log.events.plan_text import catalyst_filters

SCHEMA = "struct<b:int,c:string,d:date,ts:timestamp,f:double,flag:boolean,odd name:string,s:struct<x:int,y:string>>"

TYPED = TableSchema((Column("d", "date"), Column("ts", "timestamp")))


def _plan(also: str = "", **metadata: str) -> dict[str, Any]:
    """A scan of the columns of its schema, and of others."""
    facts = {"Location": "PreparedDeltaFileIndex(1 paths)[file:/data/my events]", "ReadSchema": SCHEMA, **metadata}
    names = [*dict.fromkeys(column.parts[0] for column in _leaves_of(facts["ReadSchema"])), *also.split()]
    text = f"FileScan parquet spark_catalog.shop.events[{','.join(f'{name}#1' for name in names)}] Batched: true"
    if "..." in facts["ReadSchema"]:
        text = text.replace("]", ",... 3 more fields]")
    return {
        "nodeName": "Scan parquet spark_catalog.shop.events",
        "simpleString": text,
        "metadata": facts,
        "children": [],
    }


def _predicate(plan: dict[str, Any]) -> tuple[str, bool]:
    (scan,) = scans_of(plan, None, "UTC")
    return scan.predicate.to_sql(), scan.partial


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[isnotnull(b#1), (b#1 > 5)]", "b > 5"),
        ("[(b#1 <=> 5)]", "b <=> 5"),
        ("[NOT (b#1 <=> 5)]", "b <> 5 OR b IS NULL"),
        ("[isnotnull(c#2), (c#2 = a, b)]", "c = 'a, b'"),
        ("[isnotnull(c#2), (c#2 = x) AND (y)]", "c = 'x) AND (y'"),
        ("[(c#2 = null)]", "c = 'null'"),
        ("[c#2 IN (abc,a, b,it's)]", "c IN ('abc', 'a, b', 'it''s')"),
        ("[b#1 IN (1,null)]", "b IN (1, NULL)"),
        ("[b#1 INSET 1, 2, 3]", "b IN (1, 2, 3)"),
        ("[b#1 INSET 1, 2, 3, isnotnull(b#1)]", "b IN (1, 2, 3)"),
        ("[((b#1 = 1) OR ((c#2 = x) AND (b#1 < -5)))]", "b = 1 OR (c = 'x' AND b < -5)"),
        ("[StartsWith(c#2, ab)]", "startswith(c, 'ab')"),
        ("[NOT StartsWith(c#2, ab)]", "NOT (STARTSWITH(c, 'ab'))"),
        ("[c#2 LIKE a_b%]", "startswith(c, 'a') AND c LIKE 'a_b%'"),
        ("[c#2 LIKE a!_% ESCAPE '!']", "startswith(c, 'a_') AND c LIKE 'a!_%' ESCAPE '!'"),
        ("[c#2 LIKE a!!b% ESCAPE '!']", "startswith(c, 'a!b') AND c LIKE 'a!!b%' ESCAPE '!'"),
        ("[c#2 LIKE a!%b ESCAPE '!']", "c = 'a%b' AND c LIKE 'a!%b' ESCAPE '!'"),
        ("[c#2 LIKE a)_b% ESCAPE ')']", "startswith(c, 'a_b') AND c LIKE 'a)_b%' ESCAPE ')'"),
        ("[c#2 LIKE a'_b% ESCAPE ''']", r"startswith(c, 'a_b') AND c LIKE 'a\'_b%' ESCAPE '\''"),
        (
            "[((b#1 = 1) OR c#2 LIKE a!_b% ESCAPE '!')]",
            "b = 1 OR (startswith(c, 'a_b') AND c LIKE 'a!_b%' ESCAPE '!')",
        ),
        ("[NOT c#2 LIKE a!_% ESCAPE '!']", "NOT (c LIKE 'a!_%' ESCAPE '!')"),
        ("[lower(c#2) LIKE a!_% ESCAPE '!']", "LOWER(c) LIKE 'a!_%' ESCAPE '!'"),
        ("[c#2 RLIKE a ESCAPE '!']", r"c RLIKE 'a ESCAPE \'!\''"),
        ("[likeall(c#2, a%, b%)]", "<anonymous over c>"),
        ("[likeany(c#2, a%, b%)]", "<anonymous over c>"),
        ("[(ts#4 >= 2024-01-02 03:04:05.678901)]", "ts >= '2024-01-02 03:04:05.678901'"),
        ("[(year(cast(ts#4 as date)) = 2024)]", "ts >= DATE '2024-01-01' AND ts < DATE '2025-01-01'"),
        ("[(date_trunc(month, ts#4, Some(Etc/UTC)) = 2024-02-01 00:00:00)]", None),
        ("[NOT flag#6]", "flag = false"),
        ("[(f#5 = NaN)]", "f = 'NaN'"),
        ("[(odd name#7 = x y)]", "odd name = 'x y'"),
        ("[(s#8.x = 7)]", "s.x = 7"),
        ("[(b#1 > scalar-subquery#12 [])]", "<function over b>"),
        ("[((b#1 % 2) = 0)]", "(b % 2) = 0"),
        ("[((b#1 + 1) > 5)]", "(b + 1) > 5"),
        ("[(UDF(c#2) = x)]", "<function over c>"),
    ],
)
def test_catalyst_filters(text: str, expected: str | None) -> None:
    found, partial = _predicate(_plan(DataFilters=text))
    assert found == expected or (expected is None and "ts >= DATE '2024-02-01'" in found)
    assert not partial or "subquery" in text


WIDE = "struct<a:int,b:int,c:string,c2:string,m:map<string,string>,xs:array<string>,fl:float,ts:timestamp,d:date>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[isnotnull(m#1), (lower(m#1[country]) = de)]", "<function over m>"),
        ("[(upper(xs#1[0]) = X)]", "<function over xs>"),
        ("[(cast(m#1[k] as string) = abc)]", "<function over m>"),
        ("[(concat(xs#1[0], xs#1[1]) = ab)]", "<function over xs>"),
        ("[(lower(CASE WHEN (a#1 > 5) THEN x ELSE y END) = x)]", "<function over a>"),
        ("[((lower(m#1[k]) = x) OR (a#2 = 5)), (b#3 > 1)]", "(<function over m> OR a = 5) AND b > 1"),
        ("[(coalesce(m#1[k], c#2, x) = y)]", "<column_comparison over c, m>"),
        ("[NOT coalesce(xs#1[0], (c#2 = q), false)]", "<coalesce over xs, c>"),
        ("[(c#2 = m#1[k])]", "<column_comparison over c, m>"),
        ("[(a#2 > m#1[k])]", "<column_comparison over a, m>"),
        ("[CASE WHEN (a#1 = 1) THEN (greatest(a#1, b#2, 3) > 2) ELSE true END]", "TRUE"),
        ("[if ((a#1 > 5)) (coalesce(a#1, b#2, 0) > 3) else true, (b#2 = 1)]", "b = 1"),
        ("[a#1]", "TRUE"),
        ("[(date_trunc(month, ts#1, Some(Asia/Tokyo)) = 2024-01-01 00:00:00)]", "<function over ts>"),
        ("[(trim(c#1, Some(x)) = abc)]", "<function over c>"),
        ("[c#1 INSET Doe, Jane, Smith, John, a]", "<in over c>"),
        ("[c#1 INSET A, B, CASE WHEN (a#1 = 1) THEN (b#2 > 2) ELSE true END]", "c IN ('A', 'B')"),
        ("[(c#1 = ReusedSubquery Subquery scalar-subquery#4, [id=#9])]", "<function over c>"),
    ],
)
def test_what_has_no_rule_is_no_text_that_could_be_found_false(text: str, expected: str) -> None:
    """Taken for texts, an element of a map or a CASE were compared, and the query seemed to need no file."""
    assert _predicate(_plan(DataFilters=text, ReadSchema=WIDE)) == (expected, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[(coalesce((100 - a#1), b#2, 0) > 5)]", "COALESCE((100 - a), b, 0) > 5"),
        ("[((5 < a#1) OR (coalesce(c#2, c2#3, x) = y))]", "a > 5 OR COALESCE(c, c2, 'x') = 'y'"),
        ("[((isnotnull(a#1) AND (5 < a#1)) AND (coalesce(b#2, a#1, 0) > 3))]", "a > 5 AND COALESCE(b, a, 0) > 3"),
        ("[(2024-01-01 <= d#1)]", "d >= '2024-01-01'"),
        (
            "[isnotnull(c#1), c#1 INSET C, C#, C++, Go, Java, (a#1 > 5)]",
            "c IN ('C', 'C#', 'C++', 'Go', 'Java') AND a > 5",
        ),
        ("[c#1 INSET A, Item#5, Z, isnotnull(c#1)]", "c IN ('A', 'Item#5', 'Z')"),
        ("[c#1 INSET A, Item#5, Z]", "c IN ('A', 'Item#5', 'Z')"),
        ("[(c#1 = Brand#12), (a#2 < 5)]", "c = 'Brand#12' AND a < 5"),
        (
            "[(((c#1 = Brand#12) AND c2#2 IN (SM CASE,SM#4)) OR (c#1 = Brand#23))]",
            "(c = 'Brand#12' AND c2 IN ('SM CASE', 'SM#4')) OR c = 'Brand#23'",
        ),
        ("[NOT (c#1 = Brand#45)]", "c <> 'Brand#45'"),
        ("[StartsWith(c#1, Brand#1)]", "startswith(c, 'Brand#1')"),
        ("[(c#1 = lower(X))]", "c = 'lower(X)'"),
        ("[NOT (c#1 = concat(a, b))]", "c <> 'concat(a, b)'"),
        ("[(fl#1 = 0.1)]", "fl = 0.10000000149011612e0"),
        ("[(cast(fl#1 as double) <= 0.1)]", "fl <= 0.1"),
    ],
)
def test_texts_with_numbers_and_calls_in_them_are_texts(text: str, expected: str) -> None:
    """``Brand#12`` was taken for an attribute; constant calls are computed before Spark prints a plan."""
    assert _predicate(_plan(DataFilters=text, ReadSchema=WIDE)) == (expected, False)


@pytest.mark.parametrize("text", ["[(c#1 = Brand#12)]", "[c#1 INSET A#1, B, C]", "[c#1 IN (A#1,B)]"])
def test_what_may_be_a_text_or_an_attribute_says_nothing(text: str) -> None:
    found, partial = _predicate(_plan(DataFilters=text, ReadSchema="struct<c:string,... 3 more fields>"))
    assert (found.endswith(" over c>"), partial) == (True, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[IsNotNull(b), GreaterThan(b,5)]", "b > 5"),
        ("[*IsNotNull(c), *EqualTo(c,a, b)]", "c = 'a, b'"),
        ("[Or(LessThan(b,5),And(EqualTo(c,x),Not(In(b, [1,2]))))]", "b < 5 OR (c = 'x' AND b NOT IN (1, 2))"),
        ("[StringStartsWith(c,ab), EqualNullSafe(flag,true)]", "startswith(c, 'ab') AND flag <=> true"),
        ("[EqualTo(`odd name`,x), EqualTo(s.x,7)]", "odd name = 'x' AND s.x = 7"),
        ("[GreaterThanOrEqual(ts,2024-01-02T03:04:05Z)]", "ts >= '2024-01-02T03:04:05Z'"),
    ],
)
def test_source_filters_where_nothing_else_is_printed(text: str, expected: str) -> None:
    assert _predicate(_plan(PushedFilters=text)) == (expected, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[isnotnull(d#3), (d#3 >= 8766), (d#3 < 9131)]", ((8766, None), (None, 9130))),
        ("[(d#3 <=> -1)]", ((-1, -1),)),
        ("[d#3 IN (8766,9131)]", ((8766, 9131),)),
        ("[d#3 INSET 8766, 9131]", ((8766, 9131),)),
        ("[NOT (d#3 > 8766)]", ((None, 8766),)),
        ("[(cast(ts#4 as date) = 2)]", ((172_800_000_000, None), (None, 259_199_999_999))),
        ("[(ts#4 > 1706745600000001)]", ((1706745600000002, None),)),
        ("[(ts#4 <= -1)]", ((None, -1),)),
        ("[(cast(d#3 as timestamp) >= 757382400000001)]", ((8767, None),)),
    ],
)
def test_dates_and_timestamps_of_spark_before_3_2_are_counts(text: str, expected: tuple[Any, ...]) -> None:
    """What a condition asks for, as canonical values: days, or microseconds, since 1970."""
    (scan,) = scans_of(_plan(DataFilters=text), None, "America/New_York")
    parts = scan.predicate.children if isinstance(scan.predicate, And) else (scan.predicate,)
    found = [to_boxes(part, TYPED, "UTC")[0][0].tested[0] for part in parts]
    assert (tuple((each.low, each.high) for each in found), scan.partial) == (expected, False)


@pytest.mark.parametrize("text", ["[(d#3 > 3000000)]", "[(ts#4 < 999999999999999999)]", "[NOT (d#3 = 99999999999999)]"])
def test_a_moment_that_has_no_year_of_four_digits_says_nothing(text: str) -> None:
    (scan,) = scans_of(_plan(DataFilters=text), None, "UTC")
    assert isinstance(scan.predicate, Opaque)
    assert scan.predicate.expression == ""


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("string", "[isnotnull(part#9), (part#9 = 2024)]", "part = '2024'"),
        ("string", "[(part#9 >= 007)]", "part >= '007'"),
        ("string", "[part#9 IN (01,1e5,+5)]", "part IN ('01', '1e5', '+5')"),
        ("string", "[(part#9 = true)]", "part = 'true'"),
        ("string", "[(cast(part#9 as int) = 7)]", "CAST(part AS INT) = 7"),
        ("int", "[(part#9 = 2024)]", "part = 2024"),
        ("date", "[(part#9 = 2024-01-02)]", "part = '2024-01-02'"),
    ],
)
def test_literals_of_partition_columns_are_of_the_types_that_the_table_has(kind: str, text: str, expected: str) -> None:
    """Plans print texts without quotes, and no types of partition columns."""
    asked: list[tuple[str, ...]] = []

    def types_of(names: tuple[str, ...]) -> dict[str, str]:
        asked.append(names)
        return {"Part": kind}

    (scan,) = scans_of(_plan(PartitionFilters=text), None, "UTC", types_of)
    assert (scan.predicate.to_sql().replace("Part", "part"), scan.partial) == (expected, False)
    assert asked == [("spark_catalog.shop.events", "file:/data/my events")]
    assert "Part" not in scan.columns


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[(c#1 = part#9)]", "c = part"),
        ("[NOT (c#1 = part#9)]", "NOT (c = part)"),
        ("[((c#1 = part#9) OR (a#2 = 5))]", "c = part OR a = 5"),
        ("[StartsWith(c#1, part#9)]", "STARTSWITH(c, part)"),
        ("[(concat(c#1, part#9) = xy)]", "CONCAT(c, part) = 'xy'"),
        ("[(c#1 = lower(part#9))]", "c = LOWER(part)"),
        ("[(c#1 = _metadata#4.file_path)]", "TRUE"),
        ("[(part#9 = Brand#12)]", "part = 'Brand#12'"),
        ("[(lower(CASE WHEN (part#9 = a) THEN x ELSE y END) = x)]", "<function over part>"),
    ],
)
def test_columns_that_the_schema_of_the_files_does_not_have_are_columns(text: str, expected: str) -> None:
    """Partition columns stand in no ReadSchema, but in the list of what a scan gives out."""
    (scan,) = scans_of(_plan(PartitionFilters=text, ReadSchema=WIDE, also="part _metadata"), None, "UTC")
    assert scan.predicate.to_sql() == expected
    plan = _plan(PartitionFilters=text, ReadSchema=WIDE)
    plan["simpleString"] = ""
    (scan,) = scans_of(plan, None, "UTC")
    assert "#" not in scan.predicate.to_sql()


def test_what_a_join_prunes_by_is_no_condition_of_the_query() -> None:
    text = "[isnotnull(part#9), dynamicpruningexpression(part#9 IN dynamicpruning#12)]"
    assert _predicate(_plan(PartitionFilters=text, also="part")) == ("part IS NOT NULL", False)


def test_a_zone_counts_as_the_sessions_where_the_log_tells_none() -> None:
    text = "[(date_trunc(month, ts#4, Some(Asia/Tokyo)) = 2024-02-01 00:00:00)]"
    (scan,) = scans_of(_plan(DataFilters=text), None, "")
    assert "ts >= DATE '2024-02-01'" in scan.predicate.to_sql()


def test_pushed_floats_are_floats() -> None:
    found = _predicate(_plan(PushedFilters="[In(fl, [0.5,0.1]), EqualTo(fl,0.1)]", ReadSchema=WIDE))
    assert found == ("fl IN (0.5e0, 0.10000000149011612e0) AND fl = 0.10000000149011612e0", False)


def test_pushed_values_with_a_comma_in_them_are_none() -> None:
    assert _predicate(_plan(PushedFilters="[In(c, [a, b,c]), EqualTo(b,1)]")) == ("b = 1", True)


def test_a_count_of_a_column_whose_type_the_plan_does_not_say_says_nothing_of_a_date() -> None:
    (scan,) = scans_of(_plan(PartitionFilters="[(day#9 >= 8766)]"), None, "UTC")
    assert to_boxes(scan.predicate, TableSchema((Column("day", "date", partition=True),))) == ((),)


@pytest.mark.parametrize(
    "text",
    [
        "[b#1 INSET 1, 2, 3, ... 35 more fields]",
        "[b#1 INSET 1, 2, 3, ... 35 more fields, (c#2 = x)]",
        "[(c#2 = abc), (b#1 > 5), (d#3 >= 20...",
    ],
)
def test_what_spark_cut_off_is_partial_and_never_guessed(text: str) -> None:
    found, partial = _predicate(_plan(DataFilters=text))
    assert partial
    assert "1, 2, 3" not in found
    assert "d >=" not in found


def test_the_filter_node_above_says_what_the_scan_does_not() -> None:
    scan = _plan(PushedFilters="[IsNotNull(c)]")
    plan = {"nodeName": "Filter", "simpleString": "Filter (isnotnull(c#2) AND (upper(c#2) = X))", "children": [scan]}
    assert _predicate(plan) == ("UPPER(c) = 'X'", False)


def test_a_photon_and_a_gpu_scan() -> None:
    photon = _plan(RequiredDataFilters="[isnotnull(b#1), (b#1 > 5)]", DictionaryFilters="[(b#1 > 5)]")
    photon["nodeName"] = "PhotonScan parquet shop.events"
    assert _predicate(photon) == ("b > 5", False)
    text = (
        "GpuFileGpuScan parquet shop.events[b#1,c#2] Batched: true, DataFilters: [isnotnull(b#1), (b#1 > 5)], "
        "Format: Parquet, Location: InMemoryFileIndex(1 paths)[file:/data/events], PartitionFilters: [], "
        "PushedFilters: [IsNotNull(b), GreaterThan(b,5)], ReadSchema: struct<b:int,c:string>"
    )
    gpu = {"nodeName": "GpuScan parquet shop.events", "simpleString": text, "metadata": {}, "children": []}
    (scan,) = scans_of(gpu, None, "UTC")
    assert (scan.names, scan.predicate.to_sql()) == (("shop.events", "file:/data/events"), "b > 5")


def test_deltas_own_log_is_no_table() -> None:
    log = _plan(Location="DeltaLogFileIndex(1 paths)[file:/data/events/_delta_log]")
    assert scans_of(log, None, "UTC") == []


@given(st.text(max_size=200))
def test_no_text_crashes_or_hangs_the_grammars(text: str) -> None:
    types = {"b": "int", "c": "string"}
    started = time.monotonic()
    for given_text in (text, f"[{text}]", f"[(c#2 = {text})]", f"[(b#1 > {text})]"):
        catalyst_filters(given_text, types)
        source_filters(given_text, types)
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        *("[" + "(" * 5000, "[" + "NOT " * 5000, "[(c#1 = " + ")" * 5000, "[c#1 IN (" + "a," * 9999),
        *(
            "[" + "(c#1[k] < x), " * 9999,
            "[" + "(c#1[k < x, " * 9999,
            "[" + "(5 < (" * 9999,
            "[c#1 INSET a" + ", c#1" * 9999,
            "[c#1 IN (" + "a, " * 20_000 + ")]",
            "[c#1 IN (A#1" + ", (y)" * 9999 + ")]",
            "[(c#1 = " + "x" * 180_000 + "#",
            "[(c#1 = " + "x.y-" * 40_000 + "#1" + "(" * 9999,
        ),
    ],
)
def test_bombs(text: str) -> None:
    started = time.monotonic()
    assert catalyst_filters(text, {"c": "string"}).partial
    assert time.monotonic() - started < 10


@given(st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="()[],\n"), min_size=1, max_size=30))
def test_a_string_without_brackets_and_commas_is_read_as_it_was(value: str) -> None:
    found = catalyst_filters(f"[isnotnull(c#1), (c#1 = {value})]", {"c": "string"})
    assert found.conditions[-1].unnest().expression.this == value


@pytest.mark.parametrize(
    "condition", ["c#2 LIKE a, b!_% ESCAPE '!'", "NOT c#2 LIKE a!, b ESCAPE '!'", "c#2 LIKE %a, b%", "c#2 RLIKE a, b"]
)
def test_a_pattern_that_may_go_on_behind_a_comma_says_nothing(condition: str) -> None:
    for text in (f"[isnotnull(c#2), {condition}]", f"[isnotnull(c#2), {condition}, (b#1 = 1)]"):
        found = catalyst_filters(text, {"c": "string", "b": "int"})
        assert found.partial
        assert not any("LIKE" in node.sql("spark") for node in found.conditions)


def test_a_column_with_a_dot_in_its_name_is_no_field_of_a_struct() -> None:
    schema = "struct<user.name:string,s:struct<y:string>>"
    text = "[(upper(user.name#1) = ANN), (upper(s#2.y) = BOB)]"
    (scan,) = scans_of(_plan(ReadSchema=schema, DataFilters=text), None, "UTC")
    assert [one.expression for one in scan.predicate.children if isinstance(one, Opaque)] == [
        "UPPER(`user.name`) = 'ANN'",
        "UPPER(s.y) = 'BOB'",
    ]
    assert scan.columns == ("user.name", "s")
