"""Our selection of files against Delta's own, on a table with every kind of column, file and statistics.

Delta's side is what its file index answers for the scan in Spark's physical plan. Ours may never be smaller: neither
than the files that hold a matching row, nor than what Delta reads, because then the estimator would promise skipping
that Delta does not do. Where ours is larger, one of `REASONS` has to say why; they are counted. One more is the single
way in which ours may be smaller than Delta's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from tests.conftest import INTERPRETED
from tests.spark.gathering import files_of as files_under
from tests.spark.skipping_cases import FIXED, KINDS, Case, Conditions, make_table
from zorder_pipeline.benchmarks.data import session_conf
from zorder_pipeline.java import class_name, items
from zorder_pipeline.layout.skipping import Estimator
from zorder_pipeline.model.ranges import Boxes, to_boxes
from zorder_pipeline.model.values import canonical_array
from zorder_pipeline.model.workload import LoggedQuery
from zorder_pipeline.model.zone_map import ZoneMap
from zorder_pipeline.pipeline.partition_conditions import boxes_on
from zorder_pipeline.query_log.statements.sql import Unusable, parse_statement
from zorder_pipeline.relayout.snapshot import TableSnapshot, open_table

REASONS = {
    "unread": "Spark infers IS NOT NULL from a condition of which we know nothing, so that Delta skips files that are "
    "all null in its column.",
    "folded": "Spark finds that a condition cannot hold (a literal outside the type, x = 3 AND x > 5) and then does "
    "not even read the files whose statistics are missing.",
    "no maximum": "Delta uses the minimum of strings that it could not cut to a maximum, we use both bounds or none.",
}
LACKING = "lacking"
"""Delta asks for statistics on behalf of a condition that we cannot use (IS NOT NULL inferred from it, one half of an
OR that Spark has folded), and reads every file that lacks them: those written before a column was added, those without
any, those with a string that has no maximum."""
CONF = INTERPRETED
"""Hundreds of small plans: compiling them would take ten times as long as running them."""
DATA_FILE = re.compile(r"part-[\w-]+\.c\d+\.snappy\.parquet")
BATCH = 50

Files = frozenset[int]


class Table(NamedTuple):
    """The table as both sides see it; files are numbers."""

    path: str
    snapshot: TableSnapshot
    zones: ZoneMap
    names: tuple[str, ...]
    rows: pa.Table

    def all_null(self, column: str) -> Files:
        """Files in which the column is known to be null in every row."""
        zones = self.zones.columns[column]
        assert self.zones.physical_rows is not None
        return files_of((zones.null_count >= 0) & (zones.null_count >= self.zones.physical_rows))

    def no_maximum(self, column: str) -> Files:
        """Files that have some statistics of the column, but not both bounds."""
        zones = self.zones.columns[column]
        return files_of((zones.null_count >= 0) & ~zones.known) - self.all_null(column)


class Verdict(NamedTuple):
    """What each side says of one condition."""

    case: Case
    boxes: Boxes
    matching: Files
    delta: Files
    ours: Files
    said: str

    def __str__(self) -> str:
        return (
            f"{self.case.sql}\n  read as {self.said}\n  matching rows in {sorted(self.matching)}, "
            f"Delta reads {sorted(self.delta)}, we {sorted(self.ours)}"
        )


def files_of(mask: npt.NDArray[np.bool_]) -> Files:
    return frozenset(np.flatnonzero(mask).tolist())


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    path = str(tmp_path_factory.mktemp("skipping") / "t")
    with session_conf(spark, CONF):
        make_table(spark, path)
        snapshot = open_table(spark, path)
        files = snapshot.files()
        frame = spark.read.format("delta").load(path)
        frame.createOrReplaceTempView("skipping")
        rows = frame.selectExpr("*", "_metadata.file_name AS file").toArrow()
        spark.createDataFrame(rows).createOrReplaceTempView("skipping_rows")
        names = tuple(str(name).rsplit("/", 1)[-1] for name in files.path)
        yield Table(path, snapshot, files.zone_map(), names, rows)


def judged(spark: SparkSession, table: Table, cases: Sequence[Case], zone: str) -> list[Verdict]:
    """Both sides' answers to every condition, in a session of time zone ``zone``."""
    with session_conf(spark, CONF | {"spark.sql.session.timeZone": zone}):
        with ThreadPoolExecutor(2) as pool:
            read = list(pool.map(lambda case: read_by_delta(spark, table, case.sql), cases))
        matching = [files for i in range(0, len(cases), BATCH) for files in matched(spark, table, cases[i : i + BATCH])]
    queries = [read_by_us(table, case.sql, zone) for case in cases]
    asked = zip(queries, boxes_on(table.snapshot, queries), strict=True)
    return [
        Verdict(case, boxes, hit, delta, files_of(table.zones.matching(boxes)), query.predicate.to_sql())
        for case, hit, delta, (query, boxes) in zip(cases, matching, read, asked, strict=True)
    ]


def read_by_us(table: Table, condition: str, zone: str = "UTC") -> LoggedQuery:
    schemas = {"t": table.snapshot.schema}
    scans = parse_statement(
        f"SELECT * FROM skipping WHERE {condition}", aliases={"skipping": "t"}, schemas=schemas, zone=zone
    )
    assert isinstance(scans, tuple), condition
    return LoggedQuery("t", scans[0].predicate, zone=zone)


def read_by_delta(spark: SparkSession, table: Table, condition: str) -> Files:
    """The files that Delta's own index gives the scan; a plan without a scan reads none."""
    plan = spark.sql(f"SELECT * FROM skipping WHERE {condition}")._jdf.queryExecution().executedPlan()
    found = set()
    for leaf in items(plan.collectLeaves()):
        if class_name(leaf) == "FileSourceScanExec":
            index = leaf.relation().location()
            actions = index.matchingFiles(leaf.partitionFilters(), leaf.dataFilters()).mkString("\n")
            found.update(DATA_FILE.findall(actions))
    return frozenset(table.names.index(name) for name in found)


def matched(spark: SparkSession, table: Table, cases: Sequence[Case]) -> list[Files]:
    """The files that hold a matching row, counted by Spark without any skipping."""
    counts = ", ".join(f"count_if({case.sql})" for case in cases)
    found = spark.sql(f"SELECT file, {counts} FROM skipping_rows GROUP BY file").collect()
    return [frozenset(table.names.index(row[0]) for row in found if row[i + 1]) for i in range(len(cases))]


def check(verdicts: Sequence[Verdict], table: Table) -> Counter[str]:
    """Assert what has to hold of every verdict.

    Returns:
        How many selections are "equal" to Delta's, and how many are others for which reason.
    """
    counts: Counter[str] = Counter()
    problems = []
    for verdict in verdicts:
        if not verdict.matching <= verdict.delta:
            problems.append(f"Delta loses rows, or this test errs: {verdict}")
        elif not verdict.matching <= verdict.ours:
            problems.append(f"a file with matching rows is not selected: {verdict}")
        elif verdict.case.traits and verdict.ours < verdict.delta <= verdict.ours | lacking(verdict, table):
            counts[LACKING] += 1
        elif not verdict.delta <= verdict.ours:
            problems.append(f"Delta reads files that we claim are skipped: {verdict}")
        elif (reason := why_larger(verdict, table)) is None:
            problems.append(f"we read more than Delta and nothing says why: {verdict}")
        else:
            counts[reason] += 1
    assert not problems, "\n".join(problems)
    return counts


def lacking(verdict: Verdict, table: Table) -> Files:
    """Files without statistics of one of the columns, or without one of its bounds."""
    names = {name for name in verdict.case.columns if name in table.zones.columns}
    return frozenset().union(
        *(files_of(table.zones.columns[name].null_count < 0) for name in names),
        *(table.no_maximum(name) for name in names if KINDS[name] == "string"),
    )


def why_larger(verdict: Verdict, table: Table) -> str | None:
    surplus, case = verdict.ours - verdict.delta, verdict.case
    if not surplus:
        return "equal"
    explained: dict[str, Files] = {
        "no maximum": frozenset().union(*(table.no_maximum(name) for name in case.columns if name == "s")),
        "unread": frozenset().union(*(table.all_null(name) for name in case.columns if name in table.zones.columns)),
        "folded": verdict.ours,
    }
    given = [reason for reason in REASONS if reason in case.traits or reason == "no maximum"]
    if surplus <= frozenset().union(*(explained[reason] for reason in given)):
        return next(reason for reason in given if surplus & explained[reason])
    return None


def estimated(table: Table, verdicts: Sequence[Verdict], files: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which of ``files`` the estimator reads for each verdict's boxes, from the rows alone, shape (verdicts, files)."""
    schema = table.snapshot.schema
    columns = {}
    for column in schema.columns:
        values = table.rows.column(column.name.split(".")[0])
        for part in column.name.split(".")[1:]:
            values = pc.struct_field(values, part)
        if column.value_type.orderable:
            columns[column.name] = canonical_array(values, column.value_type)
    everything = Estimator.build(columns, schema, [verdict.boxes for verdict in verdicts], table.rows.num_rows)
    number = np.array([table.names.index(name) for name in table.rows.column("file").to_pylist()])
    read = []
    for file in files:
        rows = np.flatnonzero(number == file)
        alone = replace(everything, low=everything.low[rows], high=everything.high[rows])
        read.append(alone.rows_read(np.zeros(len(rows), dtype=np.int32), 1) > 0)
    return np.array(read).T


def beyond_bmp(table: Table) -> Files:
    """Files with a string of characters that are two units in UTF-16."""
    texts = zip(table.rows.column("s").to_pylist(), table.rows.column("file").to_pylist(), strict=True)
    return frozenset(table.names.index(file) for text, file in texts if text and max(text) > "\uffff")


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, table: Table) -> list[Verdict]:
    """The fixed conditions, operators over columns, and combinations; some in a zone with summer time."""
    some, other = Conditions(table.rows, seed=1), Conditions(table.rows, seed=2)
    cases = [*FIXED, *islice(some.every_pair(), 48), *(some.tree() for _ in range(16))]
    local = [*islice(other.every_pair(), 8), *(other.tree() for _ in range(5))]
    return judged(spark, table, cases, "UTC") + judged(spark, table, local, "Europe/Berlin")


def test_the_table_has_every_kind_of_file(table: Table) -> None:
    files, zones = table.snapshot.files(), table.zones.columns
    assert len(files) == 16
    assert files.deleted.max() > 0
    assert files_of(zones["i"].null_count < 0)  # no statistics
    assert table.all_null("i")
    assert table.no_maximum("s")
    assert "beyond" not in zones
    assert files_of(zones["late"].null_count < 0) > files_of(zones["i"].null_count < 0)
    assert {None, "a", "b c/=%\u00e9\"'\\"} < {p for p, _ in files.partitions}


def test_we_select_every_file_with_a_matching_row_and_every_file_that_delta_reads(
    table: Table, verdicts: list[Verdict]
) -> None:
    counts = check(verdicts, table)
    print(counts)
    assert counts["equal"] > 0.8 * len(verdicts), counts
    assert counts[LACKING] < 0.01 * len(verdicts), counts


def test_pure_ranges_skip_exactly_what_delta_skips(table: Table, verdicts: list[Verdict]) -> None:
    plain = [v for v in verdicts if not v.case.traits and "s" not in v.case.columns]
    assert len(plain) > 60
    assert [str(v) for v in plain if v.ours != v.delta] == []
    assert sum(len(v.ours) < len(table.names) for v in plain) > 0.7 * len(plain)  # and they do skip


def test_the_estimator_reads_what_the_zone_maps_say(table: Table, verdicts: list[Verdict]) -> None:
    """On the files whose statistics are complete, as they are after a relayout.

    For strings the estimator puts the larger of Delta's two tie-breakers behind every maximum that it cuts, and so may
    read more; it does not know that Delta counts characters beyond the BMP twice when it cuts a maximum.
    """
    known = np.ones(len(table.names), dtype=bool)
    for name, zones in table.zones.columns.items():
        if name != "late":
            known &= zones.null_count >= 0
    files = sorted(files_of(known & (table.snapshot.files().deleted == 0)) - table.no_maximum("s"))
    assert len(files) > 10
    usable = [v for v in verdicts if not {"late", "flag", "bin"} & set(v.case.columns)]
    for verdict, read in zip(usable, estimated(table, usable, files), strict=True):
        theirs = {file for file, hit in zip(files, read, strict=True) if hit}
        ours = {file for file in files if file in verdict.ours}
        if "s" not in verdict.case.columns:
            assert theirs == ours, f"the estimator reads {theirs}: {verdict}"
        else:
            assert theirs >= ours - beyond_bmp(table), f"the estimator reads {theirs}: {verdict}"


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param("s = 'it''s'", id="a quote written as two"),
        pytest.param("k = 9007199254740993D", id="a double against a bigint"),
        pytest.param("dec >= 9.10D", id="a double against a decimal"),
    ],
)
def test_literals_mean_what_they_mean_to_spark(spark: SparkSession, table: Table, condition: str) -> None:
    check(judged(spark, table, [Case(condition, ("s", "k", "dec"), frozenset({"unread"}))], "UTC"), table)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("seed", "zone"), [(11, "UTC"), (12, "America/St_Johns"), (13, "Asia/Kathmandu")])
def test_a_thousand_more_conditions(spark: SparkSession, table: Table, seed: int, zone: str) -> None:
    some = Conditions(table.rows, seed)
    cases = [*islice(some.every_pair(), 400), *(some.tree(depth=3) for _ in range(600))]
    counts = check(judged(spark, table, cases, zone), table)
    print(counts)
    assert counts["equal"] > 0.7 * len(cases), counts
    assert counts[LACKING] < 0.01 * len(cases), counts


def test_no_file_is_left_out_by_a_padded_column(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pads a CHAR while it reads, and tests what it made of it."""
    path = str(tmp_path / "t")
    spark.sql(f"CREATE TABLE delta.`{path}` (c CHAR(6), v VARCHAR(6), p CHAR(2)) USING delta PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('a', 'a', 'de')")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES ('b', 'b', 'fr')")
    snapshot = open_table(spark, path)
    for condition in ("c = 'a'", "c = 'a     '", "c < 'a'", "c IS NULL", "v = 'a'", "p = 'de'", "p = 'de' AND c = 'a'"):
        scan = parse_statement(f"SELECT * FROM t WHERE {condition}", schemas={"t": snapshot.schema})
        assert not isinstance(scan, Unusable)
        read = snapshot.files().zone_map().matching(to_boxes(scan[0].predicate, snapshot.schema))
        assert read.sum() == files_under(spark.read.format("delta").load(path).where(condition)), condition
