"""The key as a Spark Column against the numpy kernel, per type, on the values where the two could part."""

import datetime as dt
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from zorder_pipeline.layout.bits import raw_encoding
from zorder_pipeline.layout.draft import SampledTable
from zorder_pipeline.layout.encoding import rank_encoding
from zorder_pipeline.layout.grow import grow_tree
from zorder_pipeline.layout.interleave import hilbert_table, keys
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.cut_tree import LEAF, CutTree
from zorder_pipeline.model.key_spec import FeatureCodes, KeySpec
from zorder_pipeline.model.predicate import Comparison, Literal
from zorder_pipeline.model.ranges import to_boxes
from zorder_pipeline.model.schema import Column, TableSchema
from zorder_pipeline.model.values import ValueType, canonical_array
from zorder_pipeline.relayout.key_column import KEY, PAYLOAD, TREE_LIMIT, with_key
from zorder_pipeline.state.session_conf import set_for_a_while

pytestmark = pytest.mark.usefixtures("compiled")

RNG = np.random.default_rng(5)


def with_nulls(values: list) -> list:
    return [None if i % 9 == 4 else value for i, value in enumerate(values)]


COLUMNS = {
    "tinyint": pa.array(with_nulls([*range(-128, 128)]), pa.int8()),
    "int": pa.array(with_nulls([*RNG.integers(-(2**31), 2**31, 300).tolist(), -(2**31), 2**31 - 1, 0]), pa.int32()),
    "bigint": pa.array(with_nulls([*RNG.integers(-(2**63), 2**63 - 1, 300).tolist(), -(2**63), 2**63 - 1])),
    "float": pa.array(
        with_nulls([*RNG.normal(size=200).tolist(), float("nan"), float("inf"), -0.0, 0.0]), pa.float32()
    ),
    "double": pa.array(with_nulls([*RNG.normal(size=200).tolist(), float("nan"), float("-inf"), -0.0, 0.0, 5e-324])),
    "decimal(12,2)": pa.array(with_nulls([Decimal(int(v)).scaleb(-2) for v in RNG.integers(-(10**11), 10**11, 200)])),
    "decimal(38,20)": pa.array(
        with_nulls([Decimal(int(v)).scaleb(-20) for v in RNG.integers(-(10**17), 10**17, 200)]), pa.decimal128(38, 20)
    ),
    "string": pa.array(
        with_nulls(["", "\u00fc", "\U0001f600z", "\uffff", "it's", '"\\', "\x00", *map(str, range(200))])
    ),
    "binary": pa.array(with_nulls([b"", b"\xff", b"\x00", b"\x7f\xff", *(str(i).encode() for i in range(150))])),
    "date": pa.array(
        with_nulls([dt.date(1, 1, 1), dt.date(9999, 12, 31), *(dt.date(1970 + i, 3, 4) for i in range(90))])
    ),
    "timestamp": pa.array(with_nulls(RNG.integers(-(10**15), 2 * 10**15, 200).tolist()), pa.timestamp("us", "UTC")),
    "timestamp_ntz": pa.array(with_nulls(RNG.integers(-(10**15), 2 * 10**15, 200).tolist()), pa.timestamp("us")),
    "boolean": pa.array(with_nulls([True, False] * 10)),
}


COPIES = [f"CAST(id * {i} AS DECIMAL(21, 2)) AS c{i}" for i in range(18)]


def check(spark: SparkSession, column: pa.Array, spec: KeySpec, name: str = "c", struct: bool = False) -> None:
    rows = spark.createDataFrame(pa.table({name: column, "row": np.arange(len(column))}))
    paths = {spec.features[0].column: (name,)}
    if struct:
        rows = rows.selectExpr(f"named_struct('in.ner', `{name}`) AS outer", "row")
        paths = {spec.features[0].column: ("outer", "in.ner")}
    table = hilbert_table(spec) if spec.curve == "hilbert" else None
    found = with_key(rows, spec, paths, table).orderBy("row").select(KEY).toArrow()[KEY].to_numpy()
    values = canonical_array(column, spec.features[0].value_type)
    assert found.tolist() == keys(spec, {spec.features[0].column: values}).tolist()


@pytest.mark.parametrize("bits", [2, 7])
@pytest.mark.parametrize("type_name", COLUMNS)
def test_column_and_numpy_agree(spark: SparkSession, type_name: str, bits: int) -> None:
    column = COLUMNS[type_name]
    values, valid = canonical_array(column, ValueType.parse(type_name))
    half = len(values) // 2  # learned on half of the rows: the other half has values between and beyond breakpoints
    feature = rank_encoding("c", type_name, values[:half], valid[:half]).feature(bits)
    spec = KeySpec((feature,), (0,) * bits)
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York" if bits == 2 else "UTC")
    try:
        check(spark, column, spec)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.parametrize("type_name", ["float", "double"])
def test_nan_has_a_code_of_its_own(spark: SparkSession, type_name: str) -> None:
    feature = rank_encoding("c", type_name, *canonical_array(COLUMNS[type_name], ValueType(type_name))).feature(7)
    assert feature.nan_code is not None
    check(spark, COLUMNS[type_name], KeySpec((feature,), (0,) * 7))


def test_many_breakpoints_are_searched_in_an_array(spark: SparkSession) -> None:
    column = COLUMNS["int"]
    feature = rank_encoding("c", "int", *canonical_array(column, ValueType("int"))).feature(16)
    assert len(feature.breakpoints) > TREE_LIMIT
    check(spark, column, KeySpec((feature,), (0,) * 16))


@pytest.mark.parametrize(
    ("type_name", "bits"),  # with 12 bits NaN and strings of two characters are breakpoints
    [
        *((name, 12 if name == "string" else 6) for name in COLUMNS),
        pytest.param("float", 12, marks=pytest.mark.slow),
    ],
)
def test_raw_bits_agree(spark: SparkSession, type_name: str, bits: int) -> None:
    check(spark, COLUMNS[type_name], KeySpec((raw_encoding("c", type_name, bits),), (0,) * bits))


@pytest.mark.parametrize("type_name", ["float", "double"])
def test_zeros_of_either_sign_are_one_value_to_a_search_of_many_breakpoints(
    spark: SparkSession, type_name: str
) -> None:
    points = tuple(float(i) for i in range(-20, 21))
    column = pa.array(
        [-0.0, 0.0, None, float("nan"), float("inf"), -20.0, 20.5, -5e-324 if type_name == "double" else -1e-40]
    )
    column = column.cast(pa.float32() if type_name == "float" else pa.float64())
    assert len(points) > TREE_LIMIT
    feature = FeatureCodes("c", type_name, points, tuple(range(42)), 6, null_code=0)
    check(spark, column, KeySpec((feature,), (0,) * 6))


def test_a_decimal_that_was_widened_since_is_searched_alike(spark: SparkSession) -> None:
    values = [Decimal(int(v)).scaleb(-2) for v in RNG.integers(-(10**11), 10**11, 300)]
    column = pa.array(with_nulls(values), pa.decimal128(12, 2))
    feature = rank_encoding("c", "decimal(12,2)", *canonical_array(column, ValueType("decimal(12,2)"))).feature(7)
    spec = KeySpec((feature,), (0,) * 7)
    narrow, wide = (
        spark.createDataFrame(pa.table({"c": column.cast(kind)})) for kind in (column.type, pa.decimal128(20, 4))
    )
    found = [with_key(rows, spec, {"c": ("c",)}).toPandas()[KEY].tolist() for rows in (narrow, wide)]
    assert found[0] == found[1] == keys(spec, {"c": canonical_array(column, ValueType("decimal(12,2)"))}).tolist()


def test_columns_lie_in_one_with_copies_beside_it(spark: SparkSession) -> None:
    feature = FeatureCodes("a.b", "bigint", (3, 5), (0, 1, 2), 2, null_code=0)
    rows = spark.createDataFrame(pa.table({"a.b": [1, 4, None, 9], "we`ird": list("abcd"), "p": [1, 1, 2, 2]}))
    found = with_key(rows, KeySpec((feature,), (0, 0)), {"a.b": ("a.b",)}, beside=["p"])
    assert found.columns == ["p", PAYLOAD, KEY]
    assert found.select(f"{PAYLOAD}.*").collect() == rows.collect()
    assert [(row["p"], row[KEY]) for row in found.collect()] == [(1, 0), (1, 1), (2, 0), (2, 2)]


def test_names_with_dots_blanks_and_backquotes(spark: SparkSession) -> None:
    feature = rank_encoding("we.i`rd c", "int", *canonical_array(COLUMNS["int"], ValueType("int"))).feature(3)
    check(spark, COLUMNS["int"], KeySpec((feature,), (0, 0, 0)), name="we.i`rd c")
    check(spark, COLUMNS["int"], KeySpec((feature,), (0, 0, 0)), struct=True)


@pytest.mark.parametrize("curve", ["interleave", "gray", "hilbert"])
def test_several_features_interleave_alike(spark: SparkSession, curve: str) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({name: rng.integers(0, 64, 500) for name in "ab"})
    features = tuple(
        FeatureCodes(name, "bigint", tuple(range(4, 64, 4)), tuple(range(16)), 4, null_code=0) for name in "ab"
    )
    spec = KeySpec(features, (0, 0, 1, 0, 1, 1, 0, 1), curve)
    rows = spark.createDataFrame(table)
    hilbert = hilbert_table(spec) if curve == "hilbert" else None
    found = with_key(rows, spec, {"a": ("a",), "b": ("b",)}, hilbert).select("a", "b", KEY).toArrow()
    columns = {name: canonical_array(found[name], ValueType("bigint")) for name in "ab"}
    assert found[KEY].to_pylist() == keys(spec, columns).tolist()
    assert json.dumps(spec.to_json())


@pytest.mark.parametrize("type_name", ["int", "string", "double", "decimal(12,2)", "timestamp"])
def test_a_tree_is_walked_alike(spark: SparkSession, type_name: str) -> None:
    rng = np.random.default_rng(3)
    column = COLUMNS[type_name]
    other = pa.array(with_nulls(rng.integers(0, 50, len(column)).tolist()))
    table = pa.table({"c": column, "d": other})
    columns = {"c": canonical_array(column, ValueType.parse(type_name)), "d": canonical_array(other, ValueType("int"))}
    schema = TableSchema((Column("c", type_name), Column("d", "int")))
    sampled = SampledTable.build(
        columns, {"c": type_name, "d": "int"}, ["c", "d"], np.zeros(len(column), dtype=np.int32), 16
    )
    queries = [to_boxes(Comparison("d", "<", (Literal("number", str(i)),)), schema) for i in range(1, 50, 7)]
    estimator = Estimator.build(columns, schema, queries, len(column))
    draft = grow_tree(sampled.fine, estimator, np.ones(len(queries)), sampled.rows_per_file)
    spec = KeySpec.from_json(json.loads(json.dumps(sampled.spec(draft).to_json())))
    assert spec.tree is not None
    assert spec.tree.depth > 3
    rows = spark.createDataFrame(table.append_column("row", pa.array(range(len(column)))))
    found = with_key(rows, spec, {"c": ("c",), "d": ("d",)}).orderBy("row").select(KEY).toArrow()[KEY].to_numpy()
    assert found.tolist() == keys(spec, columns).tolist() == sampled.keys(draft).tolist()


@pytest.mark.parametrize("curve", ["tree", "interleave", "gray"])
def test_keys_of_many_columns_are_computed_in_code_that_java_compiles(spark: SparkSession, curve: str) -> None:
    """Methods of more than 8,000 bytes stay interpreted; Spark then runs a dozen projections that each copy the row."""
    rng = np.random.default_rng(4)
    points = {name: tuple(sorted(rng.choice(10**6, 200, replace=False).tolist())) for name in "ab"}
    features = tuple(FeatureCodes(name, "bigint", points[name], tuple(range(201)), 8, null_code=0) for name in "ab")
    if curve == "tree":
        inner = (1 << 9) - 1
        nodes = np.arange(2 * inner + 1)
        asked, cut = np.where(nodes < inner, rng.integers(0, 2, len(nodes)), LEAF), rng.integers(1, 200, len(nodes))
        low, high = (np.where(nodes < inner, 2 * nodes + side, nodes) for side in (1, 2))
        key, cut = np.where(nodes < inner, 0, nodes - inner), np.where(nodes < inner, cut, 0)
        tree = CutTree(*(tuple(each.tolist()) for each in (asked, cut, low, high, key)))
        spec = KeySpec(features, (0, 1), "tree", tree=tree)
    else:
        spec = KeySpec(features, (0, 1) * 8, curve)
    rows = spark.range(100).selectExpr("id * 9973 % 1000000 AS a", "id * 7919 % 1000000 AS b", *COPIES)
    with set_for_a_while(spark, {"spark.sql.adaptive.enabled": "false"}):
        keyed = with_key(rows, spec, {"a": ("a",), "b": ("b",)}, beside=[]).select(f"{PAYLOAD}.*", KEY)
        debug = spark._jvm.org.apache.spark.sql.execution.debug  # type: ignore[union-attr]
        plan = keyed.repartition(2, KEY)._jdf.queryExecution().executedPlan()
        stages = debug.__getattr__("package$").__getattr__("MODULE$").codegenStringSeq(plan)
        sizes = [stages.apply(i)._3().maxMethodCodeSize() for i in range(stages.size())]
    assert sizes
    assert max(sizes) < 8000
    found = keyed.select("a", "b", KEY).toArrow()
    columns = {name: canonical_array(found[name], ValueType("bigint")) for name in "ab"}
    assert found[KEY].to_pylist() == keys(spec, columns).tolist()
